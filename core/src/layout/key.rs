//! What makes two layouts the same system of IDs.

use crate::layout::Layout;

/// What shapes the bits of an ID. Layouts that differ only in the names of their fields, or in how the node's bits are
/// divided, make equal IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) epoch_ms: u64,
    pub(crate) tick_ms: u64,
    pub(crate) placed_node: u64,
    /// A byte each, from the lowest: the timestamp's width and shift, and the sequence's.
    pub(crate) bits: u64,
}

impl Key {
    pub(crate) fn of(layout: &Layout, node: u64) -> Self {
        let timestamp = layout.timestamp_bits() | layout.timestamp_shift() << 8;
        let sequence = layout.sequence_bits() | layout.sequence_shift() << 8;
        Self {
            epoch_ms: layout.epoch_ms(),
            tick_ms: layout.tick_ms(),
            placed_node: layout.place_node(node),
            bits: u64::from(timestamp | sequence << 16),
        }
    }
}
