//! Which bits of an ID mean what: fields, epoch and tick, parsed and checked in one place.

use core::fmt;
use core::str::FromStr;

use crate::error::{Error, FieldNames, LayoutFault, Word, refuse};
use crate::number::{Number, at, display, parse_digits, put, write_u64};

pub(crate) mod presets;

pub use presets::{PRESETS, Preset};

/// The most node fields a layout may have.
pub const MAX_NODE_FIELDS: usize = 8;
const MAX_FIELDS: usize = MAX_NODE_FIELDS + 2;
const MAX_NAME: usize = 24;
const MAX_BITS: u32 = 64;
/// For the sequence, and for all node fields together.
const MAX_PART_BITS: u32 = 32;
pub(crate) const TIMESTAMP: &str = "timestamp";
pub(crate) const SEQUENCE: &str = "sequence";

/// A field of a layout: its name, its width and where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Field {
    name: [u8; MAX_NAME],
    name_len: u8,
    bits: u8,
    shift: u8,
}

impl Field {
    const NONE: Self = Self { name: [0; MAX_NAME], name_len: 0, bits: 0, shift: 0 };

    /// The field's name: `timestamp`, `sequence`, or a node field's own.
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

    /// How many bits stand below the field.
    pub const fn shift(&self) -> u32 {
        self.shift as u32
    }

    /// The field's highest value.
    pub const fn max(&self) -> u64 {
        ones(self.bits())
    }

    /// The field's bits, in their place in the ID.
    pub const fn mask(&self) -> u64 {
        self.max() << self.shift
    }

    /// The field's value in `id`.
    pub const fn value(&self, id: u64) -> u64 {
        (id >> self.shift) & self.max()
    }

    /// Whether it is a node field: neither the timestamp nor the sequence.
    pub const fn is_node(&self) -> bool {
        !same(self.name_bytes(), TIMESTAMP.as_bytes()) && !same(self.name_bytes(), SEQUENCE.as_bytes())
    }
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}<<{}", self.name(), self.bits, self.shift)
    }
}

/// What the bits of an ID mean: fields from the highest bit down, the epoch, and the tick.
///
/// A layout is made from a preset's name or a layout text with [`Layout::parse`], or from its parts with
/// [`Layout::new`]; both work in `const`. It prints as its text, which parses back to an equal layout.
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
/// Bounds: exactly one `timestamp` and one `sequence` (at most 32 bits), the timestamp above the sequence; at
/// most 8 node fields with at most 32 bits together; at most 64 bits in all; names of at most 24 bytes; an end
/// of at most 2^63-1 Unix ms.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    fields: [Field; MAX_FIELDS],
    count: u8,
    timestamp: Field,
    sequence: Field,
    epoch_ms: u64,
    tick_ms: u64,
}

/// A layout whose fields are still being read, highest first.
struct Draft {
    fields: [Field; MAX_FIELDS],
    count: usize,
    /// The sum of the widths so far: at most `10 * 64`.
    bits: u32,
}

impl Draft {
    const EMPTY: Self = Self { fields: [Field::NONE; MAX_FIELDS], count: 0, bits: 0 };

    const fn has(&self, name: &[u8]) -> bool {
        find(&self.fields, name).is_some()
    }

    const fn push(mut self, name: &[u8], bits: Option<u64>, bits_text: Word) -> Result<Self, Error> {
        if !is_name(name) {
            return refuse(LayoutFault::FieldName { name: Word::new(name) });
        }
        let bits = match bits {
            Some(bits @ 1..=64) => narrow(bits),
            _ => return refuse(LayoutFault::Bits { field: Word::new(name), bits: bits_text }),
        };
        if self.has(name) {
            return refuse(LayoutFault::Doubled { name: Word::new(name) });
        }
        let mut field = Field { name: [0; MAX_NAME], name_len: narrow(name.len() as u64), bits, shift: 0 };
        let mut index = 0;
        while let Some(byte) = at(name, index) {
            put(&mut field.name, index, byte);
            index += 1;
        }
        let reserved = self.has(TIMESTAMP.as_bytes()) as usize + self.has(SEQUENCE.as_bytes()) as usize;
        if field.is_node() && self.count - reserved == MAX_NODE_FIELDS {
            return refuse(LayoutFault::TooManyNodeFields);
        }
        put(&mut self.fields, self.count, field);
        self.count += 1;
        self.bits += bits as u32;
        Ok(self)
    }

    const fn finish(mut self, epoch_ms: u64, tick_ms: u64) -> Result<Layout, Error> {
        if !self.has(TIMESTAMP.as_bytes()) {
            return refuse(LayoutFault::Missing { name: TIMESTAMP });
        }
        if !self.has(SEQUENCE.as_bytes()) {
            return refuse(LayoutFault::Missing { name: SEQUENCE });
        }
        if self.bits > MAX_BITS {
            return refuse(LayoutFault::TooManyBits { bits: self.bits });
        }
        let mut below = narrow(self.bits as u64);
        let mut index = 0;
        while let Some(mut field) = at(&self.fields, index) {
            if index == self.count {
                break;
            }
            below -= field.bits;
            field.shift = below;
            put(&mut self.fields, index, field);
            index += 1;
        }
        let (Some(timestamp), Some(sequence)) =
            (find(&self.fields, TIMESTAMP.as_bytes()), find(&self.fields, SEQUENCE.as_bytes()))
        else {
            return refuse(LayoutFault::Missing { name: TIMESTAMP });
        };
        if sequence.shift > timestamp.shift {
            return refuse(LayoutFault::SequenceAboveTimestamp);
        }
        if sequence.bits() > MAX_PART_BITS {
            return refuse(LayoutFault::SequenceTooWide { bits: sequence.bits() });
        }
        let node_bits = self.bits - timestamp.bits() - sequence.bits();
        if node_bits > MAX_PART_BITS {
            return refuse(LayoutFault::NodeTooWide { bits: node_bits });
        }
        // The timestamp has at most 63 bits, so the number of ticks fits.
        let end = match (1_u64 << timestamp.bits).checked_mul(tick_ms) {
            Some(span) => span.checked_add(epoch_ms),
            None => None,
        };
        match end {
            Some(end) if end - 1 <= i64::MAX as u64 => Ok(Layout {
                fields: self.fields,
                count: narrow(self.count as u64),
                timestamp,
                sequence,
                epoch_ms,
                tick_ms,
            }),
            _ => refuse(LayoutFault::EndsTooLate),
        }
    }
}

impl Layout {
    /// A layout from its fields' names and widths in bits, highest first, its epoch in Unix ms, and its tick
    /// in ms.
    ///
    /// Refuses with `invalid_layout`.
    ///
    /// ```
    /// use polyflake::Layout;
    /// let layout = Layout::new(&[("timestamp", 41), ("worker", 10), ("sequence", 12)], 1_288_834_974_657, 1)?;
    /// assert_eq!(layout, Layout::parse("leaf")?);
    /// # Ok::<(), polyflake::Error>(())
    /// ```
    pub const fn new(fields: &[(&str, u32)], epoch_ms: u64, tick_ms: u64) -> Result<Self, Error> {
        let mut draft = Draft::EMPTY;
        let mut fields = fields;
        while let Some(((name, bits), rest)) = fields.split_first() {
            draft = match draft.push(name.as_bytes(), Some(*bits as u64), digits(*bits as u64)) {
                Ok(draft) => draft,
                Err(error) => return Err(error),
            };
            fields = rest;
        }
        if epoch_ms > i64::MAX as u64 {
            return refuse(LayoutFault::Epoch { epoch: digits(epoch_ms) });
        }
        if tick_ms == 0 {
            return refuse(LayoutFault::Tick { tick: digits(tick_ms) });
        }
        draft.finish(epoch_ms, tick_ms)
    }

    /// [`Layout::new`] from numbers as a caller gave them: what does not fit is refused by its value.
    pub fn from_fields<N: AsRef<str>>(
        fields: impl IntoIterator<Item = (N, Number)>,
        epoch_ms: impl Into<Number>,
        tick_ms: impl Into<Number>,
    ) -> Result<Self, Error> {
        let (epoch, tick) = (epoch_ms.into(), tick_ms.into());
        let mut draft = Draft::EMPTY;
        for (name, bits) in fields {
            draft = draft.push(name.as_ref().as_bytes(), bits.to_u64(), Word::of(bits))?;
        }
        let Some(epoch_ms) = epoch.to_i64().and_then(|ms| u64::try_from(ms).ok()) else {
            return refuse(LayoutFault::Epoch { epoch: Word::of(epoch) });
        };
        match tick.to_u64() {
            None | Some(0) => refuse(LayoutFault::Tick { tick: Word::of(tick) }),
            Some(tick_ms) => draft.finish(epoch_ms, tick_ms),
        }
    }

    /// A layout from a preset's name (see [`PRESETS`](crate::PRESETS)) or from a text
    /// `FIELD:BITS|FIELD:BITS@EPOCH/TICK`.
    ///
    /// EPOCH is in Unix ms, TICK is `Nms` or `Ns`. A text with any of `:|@/` is a layout text, any other a
    /// preset's name. Refuses with `invalid_layout` or `unknown_layout`.
    ///
    /// ```
    /// use polyflake::Layout;
    /// let layout = Layout::parse("timestamp:41|shard:13|sequence:10@1314220021721/1ms")?;
    /// assert_eq!(layout, Layout::parse("instagram")?);
    /// # Ok::<(), polyflake::Error>(())
    /// ```
    pub const fn parse(text: &str) -> Result<Self, Error> {
        let (_, stop, _) = split(text.as_bytes(), b":|@/");
        if stop.is_none() { crate::layout::presets::find(text) } else { Self::parse_text(text.as_bytes()) }
    }

    pub(crate) const fn parse_text(mut rest: &[u8]) -> Result<Self, Error> {
        let mut draft = Draft::EMPTY;
        loop {
            let (name, stop, after) = split(rest, b":|@/");
            if !matches!(stop, Some(b':')) {
                return refuse(LayoutFault::Expected { what: "FIELD:BITS", found: Word::new(rest) });
            }
            let (bits, stop, after) = split(after, b"|@");
            draft = match draft.push(name, parse_digits(bits), Word::new(bits)) {
                Ok(draft) => draft,
                Err(error) => return Err(error),
            };
            rest = after;
            match stop {
                Some(b'|') => {}
                Some(_) => break,
                None => return refuse(LayoutFault::Expected { what: "@EPOCH", found: Word::new(rest) }),
            }
        }
        let (epoch, stop, tick) = split(rest, b"/");
        let epoch_ms = match parse_digits(epoch) {
            Some(ms) if ms <= i64::MAX as u64 => ms,
            _ => return refuse(LayoutFault::Epoch { epoch: Word::new(epoch) }),
        };
        if stop.is_none() {
            return refuse(LayoutFault::Expected { what: "/TICK", found: Word::new(tick) });
        }
        let tick_ms = match tick {
            [number @ .., b'm', b's'] => parse_digits(number),
            [number @ .., b's'] => match parse_digits(number) {
                Some(seconds) => seconds.checked_mul(1000),
                None => None,
            },
            _ => None,
        };
        match tick_ms {
            None | Some(0) => refuse(LayoutFault::Tick { tick: Word::new(tick) }),
            Some(tick_ms) => draft.finish(epoch_ms, tick_ms),
        }
    }

    /// Every field, from the highest bit down.
    pub const fn fields(&self) -> &[Field] {
        match self.fields.split_at_checked(self.count as usize) {
            Some((fields, _)) => fields,
            None => &[],
        }
    }

    /// The field of that name.
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

    /// How long a tick lasts, in ms.
    pub const fn tick_ms(&self) -> u64 {
        self.tick_ms
    }

    /// The layout's last instant, in Unix ms: the last ms of its last tick.
    pub const fn ends_at_ms(&self) -> u64 {
        // Checked to fit when the layout was made.
        (self.timestamp.max() * self.tick_ms) + self.epoch_ms + (self.tick_ms - 1)
    }

    /// The width of all fields together: IDs lie below 2 to this power.
    pub const fn total_bits(&self) -> u32 {
        self.timestamp.bits() + self.sequence.bits() + self.node_bits()
    }

    /// The width of the timestamp.
    pub const fn timestamp_bits(&self) -> u32 {
        self.timestamp.bits()
    }

    /// How many bits stand below the timestamp.
    pub const fn timestamp_shift(&self) -> u32 {
        self.timestamp.shift()
    }

    /// The width of the sequence.
    pub const fn sequence_bits(&self) -> u32 {
        self.sequence.bits()
    }

    /// How many bits stand below the sequence.
    pub const fn sequence_shift(&self) -> u32 {
        self.sequence.shift()
    }

    /// The width of all node fields together.
    pub const fn node_bits(&self) -> u32 {
        let mut bits = 0;
        let mut fields = self.fields();
        while let Some((field, rest)) = fields.split_first() {
            if field.is_node() {
                bits += field.bits();
            }
            fields = rest;
        }
        bits
    }

    /// How many IDs one node can issue in a tick.
    pub const fn ids_per_tick(&self) -> u64 {
        1 << self.sequence.bits
    }

    /// How many nodes the layout tells apart.
    pub const fn nodes(&self) -> u64 {
        1 << self.node_bits()
    }

    /// The values of the node fields in `id`, joined from the highest field to the lowest.
    pub(crate) fn node_of(&self, id: u64) -> u64 {
        self.node_fields().fold(0, |node, field| (node << field.bits()) | field.value(id))
    }

    /// A whole node (at most `nodes() - 1`) with each field's bits in their place.
    pub(crate) fn place_node(&self, mut node: u64) -> u64 {
        let mut bits = 0;
        for field in self.node_fields().rev() {
            bits |= (node & field.max()) << field.shift();
            node >>= field.bits();
        }
        bits
    }

    pub(crate) fn node_names(&self) -> FieldNames {
        let mut names = FieldNames::EMPTY;
        for (n, field) in self.node_fields().enumerate() {
            if n > 0 {
                names.push(b", ");
            }
            names.push(field.name_bytes());
        }
        names
    }
}

impl Default for Layout {
    /// The `twitter` preset.
    fn default() -> Self {
        crate::layout::presets::TWITTER
    }
}

impl Layout {
    /// The layout's text in pieces, for programs that are too small for `core::fmt`.
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

impl FromStr for Layout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for Layout {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Layout {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Layout {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = Layout;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a layout's text or a preset's name")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Layout, E> {
                Layout::parse(text).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A width, a length or a count: at most 64.
#[expect(clippy::cast_possible_truncation, reason = "callers have checked the bound")]
const fn narrow(small: u64) -> u8 {
    small as u8
}

/// The highest value of `bits` bits (at most 64).
pub(crate) const fn ones(bits: u32) -> u64 {
    match bits {
        0 => 0,
        bits => u64::MAX >> (64 - bits),
    }
}

const fn is_name(mut name: &[u8]) -> bool {
    if name.len() > MAX_NAME || !matches!(name.first(), Some(b'a'..=b'z')) {
        return false;
    }
    while let Some((byte, rest)) = name.split_first() {
        if !matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-') {
            return false;
        }
        name = rest;
    }
    true
}

/// The bytes before the first of `stops`, that stop, and the bytes after it.
pub(crate) const fn split<'a>(text: &'a [u8], stops: &[u8]) -> (&'a [u8], Option<u8>, &'a [u8]) {
    let mut length = 0;
    while let Some(byte) = at(text, length) {
        let mut rest_of_stops = stops;
        while let Some((stop, others)) = rest_of_stops.split_first() {
            if byte == *stop {
                let (before, from_stop) = text.split_at(length);
                let (_, after) = from_stop.split_at(1);
                return (before, Some(byte), after);
            }
            rest_of_stops = others;
        }
        length += 1;
    }
    (text, None, &[])
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

/// `value` in decimal digits, for `const fn`.
const fn digits(mut value: u64) -> Word {
    let mut reversed = [0_u8; 20];
    let mut count = 0;
    while count == 0 || value > 0 {
        put(&mut reversed, count, b'0' + (value % 10) as u8);
        value /= 10;
        count += 1;
    }
    let mut word = Word::EMPTY;
    while count > 0 {
        count -= 1;
        if let Some(digit) = at(&reversed, count) {
            word.push(&[digit]);
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn what_is_wrong_and_what_would_fit() {
        for (text, says) in [
            ("timestamp:37|worker:20|sequence:16@0/1ms", "73 bits, 9 too many"),
            ("timestamp:41|worker:10@0/1ms", "no sequence field"),
            ("worker:10|sequence:12@0/1ms", "no timestamp field"),
            ("timestamp:41|timestamp:2|sequence:12@0/1ms", "field timestamp stands twice"),
            ("sequence:12|timestamp:41@0/1ms", "above the timestamp"),
            ("timestamp:41|worker:0|sequence:12@0/1ms", "field worker has `0` bits; it takes 1 to 64"),
            ("timestamp:41|Worker:1|sequence:12@0/1ms", "`Worker` is no field name"),
            ("timestamp:41|sequence:12@0/0ms", "the tick is `0ms`"),
            ("timestamp:41|sequence:12@0", "expected /TICK"),
            ("timestamp:41|sequence:12", "expected @EPOCH"),
            ("timestamp:41|sequence:12|", "expected FIELD:BITS"),
            ("timestamp:41|sequence:12@-1/1ms", "the epoch is `-1`"),
            ("timestamp:63|sequence:1@1/1ms", "reaches past Unix ms 9223372036854775807"),
            ("timestamp:20|sequence:33@0/1ms", "the sequence has 33 bits; it takes 1 to 32"),
            ("timestamp:20|a:17|b:16|sequence:8@0/1ms", "33 bits together"),
        ] {
            let error = Layout::parse(text).unwrap_err().to_string();
            assert!(error.starts_with("invalid_layout: ") && error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn parts_are_refused_like_their_text() {
        let long = "timestamp:41|worker:10|sequence:12@9223372036854775808/1ms";
        let fields = [("timestamp", 41), ("worker", 10), ("sequence", 12)];
        assert_eq!(Layout::new(&fields, 1 << 63, 1), Layout::parse(long));
        assert!(Layout::new(&fields, 0, 0).unwrap_err().to_string().contains("the tick is `0`"));
        assert!(Layout::new(&[("timestamp", 65)], 0, 1).unwrap_err().to_string().contains("`65` bits"));
        let nine: std::vec::Vec<_> = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(|n| (n, 1)).into();
        assert!(Layout::new(&nine, 0, 1).unwrap_err().to_string().contains("more than 8 node fields"));
    }

    #[test]
    fn nodes_are_placed_and_read_back() {
        let layout = Layout::parse("region:3|timestamp:30|rack:4|sequence:8|machine:5@0/10ms").unwrap();
        for node in [0, 1, 0b1010_1100_1001, layout.nodes() - 1] {
            assert_eq!(layout.node_of(layout.place_node(node)), node);
        }
        assert_eq!(layout.node_names().to_string(), "region, rack, machine");
    }
}
