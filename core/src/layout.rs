//! The meaning of an ID's bits: fields, epoch and tick.

use core::fmt;

use crate::word::{OwnedWord, display, write_u64};

mod facts;
mod key;
mod parse;
mod presets;
#[cfg(feature = "serde")]
mod serde;

pub(crate) use key::Key;
pub(crate) use parse::split;

pub use facts::Warning;
pub use presets::{PRESETS, Preset};

/// The maximum number of node fields in a layout.
pub const MAX_NODE_FIELDS: usize = 8;
const MAX_FIELDS: usize = MAX_NODE_FIELDS + 2;
const MAX_NAME: usize = 24;
pub(crate) const TIMESTAMP: &str = "timestamp";
pub(crate) const SEQUENCE: &str = "sequence";

/// A field of a layout: its name, its width and its position.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Field {
    name: [u8; MAX_NAME],
    name_len: u8,
    bits: u8,
    shift: u8,
}

impl Field {
    const NONE: Self = Self { name: [0; MAX_NAME], name_len: 0, bits: 0, shift: 0 };

    /// The field's name: `timestamp`, `sequence`, or the name of a node field.
    pub const fn name(&self) -> &str {
        match core::str::from_utf8(self.name_bytes()) {
            Ok(name) => name,
            Err(_) => "",
        }
    }

    pub(crate) const fn name_bytes(&self) -> &[u8] {
        match self.name.split_at_checked(self.name_len as usize) {
            Some((name, _)) => name,
            None => &[],
        }
    }

    /// The field's width in bits.
    pub const fn bits(&self) -> u32 {
        self.bits as u32
    }

    /// The number of bits below the field.
    pub const fn shift(&self) -> u32 {
        self.shift as u32
    }

    /// The field's highest value.
    pub const fn max(&self) -> u64 {
        ones(self.bits())
    }

    /// The field's bits, at their position in the ID.
    pub const fn mask(&self) -> u64 {
        self.max() << self.shift
    }

    /// The field's value in `id`.
    pub const fn value(&self, id: u64) -> u64 {
        (id >> self.shift) & self.max()
    }

    /// Returns true for a node field, and false for the timestamp and the sequence.
    pub const fn is_node(&self) -> bool {
        !same(self.name_bytes(), TIMESTAMP.as_bytes()) && !same(self.name_bytes(), SEQUENCE.as_bytes())
    }
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}<<{}", self.name(), self.bits, self.shift)
    }
}

/// The meaning of an ID's bits: the fields from the highest bit down, the epoch, and the tick.
///
/// Create a layout from the name of a preset or a layout string with [`Layout::parse`], or from its parts with
/// [`Layout::new`]. Both work in `const`. `Display` shows a layout as its text, which parses back to an equal
/// layout.
///
/// ```
/// use polyflake::Layout;
/// const SHORT: Layout = match Layout::parse("timestamp:39|sequence:8|machine:16@1735689600000/10ms") {
///     Ok(layout) => layout,
///     Err(_) => panic!("not a layout"),
/// };
/// assert_eq!(SHORT, Layout::parse("sonyflake2")?);
/// assert_eq!(SHORT.nodes(), 65_536);
/// assert_eq!(SHORT.ids_per_tick(), 256);
/// # Ok::<(), polyflake::Error>(())
/// ```
///
/// Limits: exactly one `timestamp` and one `sequence` (at most 32 bits), with the timestamp above the
/// sequence; at most 8 node fields, totalling at most 32 bits; at most 64 bits in all; names of at most 24
/// bytes; an end no later than 2^63-1 Unix ms.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    fields: [Field; MAX_FIELDS],
    count: u8,
    timestamp: Field,
    sequence: Field,
    epoch_ms: u64,
    tick_ms: u64,
}

impl Layout {
    /// All fields, from the highest bit down.
    pub const fn fields(&self) -> &[Field] {
        match self.fields.split_at_checked(self.count as usize) {
            Some((fields, _)) => fields,
            None => &[],
        }
    }

    /// The field with this name.
    pub const fn field(&self, name: &str) -> Option<Field> {
        if name.is_empty() { None } else { find(&self.fields, name.as_bytes()) }
    }

    /// The node fields, from the highest bit down.
    pub fn node_fields(&self) -> impl DoubleEndedIterator<Item = &Field> {
        self.fields().iter().filter(|field| field.is_node())
    }

    pub(crate) const fn timestamp(&self) -> Field {
        self.timestamp
    }

    pub(crate) const fn sequence(&self) -> Field {
        self.sequence
    }

    /// The instant of tick 0, in Unix ms.
    pub const fn epoch_ms(&self) -> u64 {
        self.epoch_ms
    }

    /// The length of a tick, in ms.
    pub const fn tick_ms(&self) -> u64 {
        self.tick_ms
    }

    /// The layout's last instant, in Unix ms: the last ms of its last tick.
    pub const fn ends_at_ms(&self) -> u64 {
        // The constructors have checked that this fits.
        (self.timestamp.max() * self.tick_ms) + self.epoch_ms + (self.tick_ms - 1)
    }

    /// The combined width of all fields: every ID is below 2 to this power.
    pub const fn total_bits(&self) -> u32 {
        // There are no gaps between the fields or below the last one.
        match self.fields() {
            [highest, ..] => highest.bits() + highest.shift(),
            [] => 0,
        }
    }

    /// The width of a slot, which consists of the timestamp and the sequence.
    pub(crate) const fn slot_bits(&self) -> u32 {
        self.timestamp_bits() + self.sequence_bits()
    }

    /// The width of the timestamp.
    pub const fn timestamp_bits(&self) -> u32 {
        self.timestamp.bits()
    }

    /// The number of bits below the timestamp.
    pub const fn timestamp_shift(&self) -> u32 {
        self.timestamp.shift()
    }

    /// The width of the sequence.
    pub const fn sequence_bits(&self) -> u32 {
        self.sequence.bits()
    }

    /// The number of bits below the sequence.
    pub const fn sequence_shift(&self) -> u32 {
        self.sequence.shift()
    }

    /// The combined width of all node fields.
    pub const fn node_bits(&self) -> u32 {
        self.total_bits() - self.slot_bits()
    }

    /// The number of IDs that one node can issue in a tick.
    pub const fn ids_per_tick(&self) -> u64 {
        1 << self.sequence.bits
    }

    /// The number of distinct nodes.
    pub const fn nodes(&self) -> u64 {
        1 << self.node_bits()
    }

    /// Combines the values of the node fields in `id`, highest field first.
    pub(crate) fn node_of(&self, id: u64) -> u64 {
        self.node_fields().fold(0, |node, field| (node << field.bits()) | field.value(id))
    }

    /// Returns the bits of a whole node (at most `nodes() - 1`) at the positions of its fields.
    pub(crate) fn place_node(&self, mut node: u64) -> u64 {
        let mut bits = 0;
        for field in self.node_fields().rev() {
            bits |= (node & field.max()) << field.shift();
            node >>= field.bits();
        }
        bits
    }

    /// The names of the node fields, formatted for an error message.
    pub(crate) fn node_names(&self) -> OwnedWord<52> {
        let mut names = OwnedWord::EMPTY;
        for (n, field) in self.node_fields().enumerate() {
            if n > 0 {
                names.push(b", ");
            }
            names.push(field.name_bytes());
        }
        names
    }
}

impl Layout {
    /// Writes the layout's text in pieces, for programs that are too small to include `core::fmt`.
    pub fn write_text(&self, out: &mut dyn FnMut(&str)) {
        for (n, field) in self.fields().iter().enumerate() {
            out(if n == 0 { "" } else { "|" });
            out(field.name());
            out(":");
            write_u64(out, field.bits.into());
        }
        out("@");
        write_u64(out, self.epoch_ms);
        out("/");
        let is_seconds = self.tick_ms % 1000 == 0;
        write_u64(out, if is_seconds { self.tick_ms / 1000 } else { self.tick_ms });
        out(if is_seconds { "s" } else { "ms" });
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(f, |out| self.write_text(out))
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Layout({self})")
    }
}

/// The highest value that fits in `bits` bits (at most 64).
pub(crate) const fn ones(bits: u32) -> u64 {
    match bits {
        0 => 0,
        bits => u64::MAX >> (64 - bits),
    }
}

const fn find(mut fields: &[Field], name: &[u8]) -> Option<Field> {
    while let Some((field, rest)) = fields.split_first() {
        if same(field.name_bytes(), name) {
            return Some(*field);
        }
        fields = rest;
    }
    None
}

/// `==` for `const fn`.
pub(crate) const fn same(mut left: &[u8], mut right: &[u8]) -> bool {
    while let (Some((a, left_rest)), Some((b, right_rest))) = (left.split_first(), right.split_first()) {
        if *a != *b {
            return false;
        }
        (left, right) = (left_rest, right_rest);
    }
    left.is_empty() && right.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_placed_and_read_back() {
        let layout = Layout::parse("region:3|timestamp:30|rack:4|sequence:8|machine:5@0/10ms").unwrap();
        for node in [0, 1, 0b1010_1100_1001, layout.nodes() - 1] {
            assert_eq!(layout.node_of(layout.place_node(node)), node);
        }
        assert!(layout.node_names().is(b"region, rack, machine"));
    }
}
