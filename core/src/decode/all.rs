//! Decoding many IDs of the same layout into columns.

use crate::error::Error;
use crate::layout::{Field, Layout, MAX_NODE_FIELDS, ones};
use crate::number::Number;

/// IDs decoded by [`Layout::decode_all`]. Each method returns one value per ID, in the order of the IDs.
///
/// ```
/// use polyflake::Layout;
/// let layout = Layout::parse("discord")?;
/// let decoded = layout.decode_all(&[175928847299117063, 175928847299117064])?;
/// assert_eq!(decoded.timestamps_ms().collect::<Vec<_>>(), [1462015105796; 2]);
/// assert_eq!(decoded.sequences().collect::<Vec<_>>(), [7, 8]);
/// assert_eq!(decoded.field("worker").unwrap().next(), Some(1));
/// # Ok::<(), polyflake::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct DecodedAll<'a> {
    ids: &'a [u64],
    layout: &'a Layout,
}

impl<'a> DecodedAll<'a> {
    /// The IDs.
    pub const fn ids(&self) -> &'a [u64] {
        self.ids
    }

    /// The layout that decoded the IDs.
    pub const fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// The start of each ID's tick, in Unix ms.
    pub fn timestamps_ms(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        let (epoch_ms, tick_ms) = (self.layout.epoch_ms(), self.layout.tick_ms());
        self.ticks().map(move |ticks| epoch_ms + ticks * tick_ms)
    }

    /// The number of ticks between the epoch and each ID.
    pub fn ticks(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        self.values(self.layout.timestamp())
    }

    /// For each ID, the values of all node fields combined into one number, highest field first.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        let (parts, count) = node_parts(self.layout);
        self.ids.iter().map(move |id| {
            let value = |node, part: &NodePart| node << part.bits | (id >> part.shift) & ones(part.bits);
            parts.iter().take(count).fold(0, value)
        })
    }

    /// The values of a node field, or `None` if the layout has no such node field.
    pub fn field(&self, name: &str) -> Option<impl ExactSizeIterator<Item = u64> + use<'a>> {
        self.layout.field(name).filter(Field::is_node).map(|field| self.values(field))
    }

    /// The sequence numbers within the ticks.
    pub fn sequences(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        self.values(self.layout.sequence())
    }

    fn values(&self, field: Field) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        // Captures only these two values, because the whole field would be reloaded for each ID.
        let (shift, max) = (field.shift(), field.max());
        self.ids.iter().map(move |id| (id >> shift) & max)
    }
}

/// A group of adjacent node fields. Most layouts have just one.
#[derive(Clone, Copy, Default)]
struct NodePart {
    bits: u32,
    shift: u32,
}

/// Returns the parts, highest first, and how many there are.
fn node_parts(layout: &Layout) -> ([NodePart; MAX_NODE_FIELDS], usize) {
    let mut parts = [NodePart::default(); MAX_NODE_FIELDS];
    let mut count = 0;
    let mut above = None;
    for field in layout.node_fields() {
        let is_next = above == Some(field.shift() + field.bits());
        count += usize::from(!is_next);
        if let Some(part) = count.checked_sub(1).and_then(|last| parts.get_mut(last)) {
            *part = NodePart { bits: part.bits + field.bits(), shift: field.shift() };
        }
        above = Some(field.shift());
    }
    (parts, count)
}

impl Layout {
    /// Decodes many IDs. Reading a value afterwards takes a few nanoseconds.
    ///
    /// # Errors
    ///
    /// `invalid_id` if an ID has a bit set above the layout's highest bit. The message names the first such
    /// ID.
    pub fn decode_all<'a>(&'a self, ids: &'a [u64]) -> Result<DecodedAll<'a>, Error> {
        let max = ones(self.total_bits());
        // Checks all IDs at once first, which is faster than comparing each one.
        if ids.iter().fold(0, |bits, id| bits | id) > max {
            if let Some(id) = ids.iter().find(|id| **id > max) {
                return Err(Number::from(*id).too_wide(self.total_bits()));
            }
        }
        Ok(DecodedAll { ids, layout: self })
    }
}
