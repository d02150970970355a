//! A space is a set of nodes. Leases in the same space compete for its nodes.

use core::fmt;

use polyflake::Layout;

/// A namespace, and the parameters that determine the form of an ID. Two Snowflakes with the same space and
/// node would generate equal IDs, so a store leases each node of a space to only one process at a time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Space {
    /// The namespace in the store's address. It consists of letters, digits, `.`, `_` and `-`.
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
    /// Returns the space of a layout.
    #[must_use]
    pub fn of(namespace: &str, layout: &Layout) -> Self {
        Self {
            namespace: namespace.into(),
            epoch_ms: layout.epoch_ms(),
            tick_ms: layout.tick_ms(),
            timestamp_bits: layout.timestamp_bits(),
            timestamp_shift: layout.timestamp_shift(),
            sequence_bits: layout.sequence_bits(),
            sequence_shift: layout.sequence_shift(),
        }
    }

    /// Returns the space for the leases of sequences. Sequences generate no IDs, so this space needs no
    /// layout.
    pub(crate) fn of_sequences(namespace: &str) -> Self {
        Self {
            namespace: namespace.into(),
            epoch_ms: 0,
            tick_ms: 1,
            timestamp_bits: 63,
            timestamp_shift: 0,
            sequence_bits: 0,
            sequence_shift: 0,
        }
    }

    /// Parses the text that `Display` writes.
    #[must_use]
    pub fn parse(namespace: &str, text: &str) -> Option<Self> {
        let (fields, rest) = text.split_once('@')?;
        let (timestamp, sequence) = fields.split_once('|')?;
        let (epoch, tick) = rest.split_once('/')?;
        let place = |field: &str, name: &str| {
            let (bits, shift) = field.strip_prefix(name)?.split_once("<<")?;
            bits.parse().ok().zip(shift.parse().ok())
        };
        let (timestamp_bits, timestamp_shift) = place(timestamp, "timestamp:")?;
        let (sequence_bits, sequence_shift) = place(sequence, "sequence:")?;
        let space = Self {
            namespace: namespace.into(),
            epoch_ms: epoch.parse().ok()?,
            tick_ms: tick.strip_suffix("ms")?.parse().ok().filter(|&ms| ms > 0)?,
            timestamp_bits,
            timestamp_shift,
            sequence_bits,
            sequence_shift,
        };
        // A number can be written in several ways, but stores use only one of them.
        (space.to_string() == text).then_some(space)
    }

    /// Returns the tick that contains an instant, or 0 if the instant is before the epoch.
    #[must_use]
    pub const fn tick_of(&self, unix_ms: u64) -> u64 {
        unix_ms.saturating_sub(self.epoch_ms) / self.tick_ms
    }

    /// Returns the first tick that starts at or after an instant.
    #[must_use]
    pub const fn tick_from(&self, unix_ms: u64) -> u64 {
        unix_ms.saturating_sub(self.epoch_ms).div_ceil(self.tick_ms)
    }

    /// Returns when a tick starts, in Unix ms.
    #[must_use]
    pub const fn start_ms(&self, tick: u64) -> u64 {
        self.epoch_ms.saturating_add(tick.saturating_mul(self.tick_ms))
    }
}

/// Writes the space without its namespace, in the form that stores keep:
/// `timestamp:41<<22|sequence:12<<0@1288834974657/1ms`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_space_is_read_as_it_is_written() {
        for preset in &polyflake::PRESETS {
            let space = Space::of("shop", &preset.layout);
            assert_eq!(Space::parse("shop", &space.to_string()), Some(space));
        }
        for text in [
            "",
            "counters",
            "timestamp:41<<22|sequence:12<<0@1288834974657/0ms",
            "timestamp:41<<22|sequence:12<<0@+1288834974657/1ms",
            "timestamp:41<<22|sequence:012<<0@1288834974657/1ms",
            "timestamp:41<<22|sequence:12<<0@1288834974657/1ms/nodes",
        ] {
            assert_eq!(Space::parse("shop", text), None, "{text}");
        }
    }
}
