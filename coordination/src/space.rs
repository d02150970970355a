//! A space: the nodes that one lease can choose from, and what makes two leases compete for them.

use core::fmt;

/// A namespace and what shapes the bits of an ID. Snowflakes of one space that have the same node make equal IDs, so a store
/// hands out each node of a space once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Space {
    /// From the store's address. Letters, digits, `.`, `_` and `-`.
    pub namespace: String,
    /// The start of tick 0, in Unix ms.
    pub epoch_ms: u64,
    /// The length of a tick, in ms.
    pub tick_ms: u64,
    /// The width of the timestamp.
    pub timestamp_bits: u32,
    /// The number of bits below the timestamp.
    pub timestamp_shift: u32,
    /// The width of the sequence.
    pub sequence_bits: u32,
    /// The number of bits below the sequence.
    pub sequence_shift: u32,
}

impl Space {
    /// The tick of an instant; 0 before the epoch.
    #[must_use]
    pub const fn tick_of(&self, unix_ms: u64) -> u64 {
        unix_ms.saturating_sub(self.epoch_ms) / self.tick_ms
    }

    /// The first tick that starts at or after an instant.
    #[must_use]
    pub const fn tick_from(&self, unix_ms: u64) -> u64 {
        unix_ms.saturating_sub(self.epoch_ms).div_ceil(self.tick_ms)
    }

    /// When a tick starts, in Unix ms.
    #[must_use]
    pub const fn start_ms(&self, tick: u64) -> u64 {
        self.epoch_ms.saturating_add(tick.saturating_mul(self.tick_ms))
    }
}

/// All but the namespace, as stores keep it: `timestamp:41<<22|sequence:12<<0@1288834974657/1ms`.
impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            epoch_ms, tick_ms, timestamp_bits, timestamp_shift, sequence_bits, sequence_shift, ..
        } = self;
        write!(
            f,
            "timestamp:{timestamp_bits}<<{timestamp_shift}|sequence:{sequence_bits}<<{sequence_shift}\
             @{epoch_ms}/{tick_ms}ms"
        )
    }
}
