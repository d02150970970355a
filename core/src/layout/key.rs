//! Determines whether two layouts generate the same IDs.

use crate::layout::Layout;

/// The properties that determine the bits of an ID. Layouts that differ only in the names of their fields, or
/// in how they divide the node's bits, generate equal IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) epoch_ms: u64,
    pub(crate) tick_ms: u64,
    pub(crate) placed_node: u64,
    /// One byte each, from the lowest: the timestamp's width and shift, and the sequence's width and shift.
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

    /// Returns a hash. Keys that differ only slightly, such as those of different nodes, have very different
    /// hashes: each word goes through the steps of `splitmix64` (<https://prng.di.unimi.it/splitmix64.c>).
    pub(crate) fn hash(&self) -> u64 {
        [self.epoch_ms, self.tick_ms, self.placed_node, self.bits].iter().fold(0, |hash: u64, word| {
            let mut mixed = (hash ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        })
    }
}
