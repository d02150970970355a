//! Facts about a layout: how many IDs it allows, how long it lasts, and what to consider before choosing it.

use crate::layout::Layout;

/// A reason to think twice before choosing a layout, from [`Layout::warnings`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Warning {
    /// The layout has ended: its IDs can still be decoded, but no more can be generated.
    Ended,
    /// The layout ends within five years.
    EndsSoon,
    /// The layout's epoch is in the future, and no IDs can be generated before then.
    NotBegun,
    /// IDs take more than 53 bits. JavaScript's Number rounds them, as do spreadsheets and most JSON tools.
    Over53Bits,
    /// IDs take 64 bits. A signed 64-bit integer, as in databases, cannot hold the upper half.
    Over63Bits,
    /// A node field is above the timestamp. Only the IDs of a single node sort by time, and the IDs of a time
    /// range are not contiguous.
    NotSortedByTime,
}

impl Warning {
    /// All warnings.
    pub const ALL: [Self; 6] = [
        Self::Ended,
        Self::EndsSoon,
        Self::NotBegun,
        Self::Over53Bits,
        Self::Over63Bits,
        Self::NotSortedByTime,
    ];

    /// The name, such as `ends_soon`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::EndsSoon => "ends_soon",
            Self::NotBegun => "not_begun",
            Self::Over53Bits => "over_53_bits",
            Self::Over63Bits => "over_63_bits",
            Self::NotSortedByTime => "not_sorted_by_time",
        }
    }

    /// The meaning of the warning.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Ended => "its timestamps have run out: it decodes IDs but generates none",
            Self::EndsSoon => "its timestamps run out within five years",
            Self::NotBegun => "its epoch is in the future: it generates no IDs until then",
            Self::Over53Bits => {
                "IDs over 53 bits are not exact as a JavaScript Number: give them to JavaScript as strings"
            }
            Self::Over63Bits => "IDs of 64 bits do not fit a signed 64-bit integer, such as SQL's BIGINT",
            Self::NotSortedByTime => {
                "a node field is above the timestamp: IDs sort by time only within each node, and a range of IDs is not a time range"
            }
        }
    }
}

/// Five years, one of them a leap year.
const SOON_MS: u64 = (5 * 365 + 1) * 86_400_000;

impl Layout {
    /// The number of IDs that one node can issue in a second, rounded down.
    ///
    /// ```
    /// assert_eq!(polyflake::Layout::parse("sonyflake")?.ids_per_second(), 25_600);
    /// # Ok::<(), polyflake::Error>(())
    /// ```
    pub const fn ids_per_second(&self) -> u64 {
        // At most 2^32 * 1000; a tick is never 0.
        match (self.ids_per_tick() * 1000).checked_div(self.tick_ms()) {
            Some(ids) => ids,
            None => 0,
        }
    }

    /// The time from the layout's epoch to its end, in ms.
    pub const fn lasts_ms(&self) -> u64 {
        self.ends_at_ms() - self.epoch_ms()
    }

    /// Returns the warnings that apply at the instant `now_ms` (Unix ms).
    ///
    /// ```
    /// use polyflake::{Layout, Warning};
    /// let now_ms = 1_767_225_600_000; // 2026-01-01
    /// let warnings = Layout::parse("baidu")?.warnings(now_ms);
    /// assert!(warnings.eq([Warning::Ended, Warning::Over53Bits]));
    /// # Ok::<(), polyflake::Error>(())
    /// ```
    pub fn warnings(&self, now_ms: u64) -> impl Iterator<Item = Warning> + use<> {
        let layout = *self;
        Warning::ALL.into_iter().filter(move |warning| layout.warrants(*warning, now_ms))
    }

    fn warrants(&self, warning: Warning, now_ms: u64) -> bool {
        let ends = self.ends_at_ms();
        match warning {
            Warning::Ended => ends < now_ms,
            Warning::EndsSoon => ends >= now_ms && ends < now_ms.saturating_add(SOON_MS),
            Warning::NotBegun => self.epoch_ms() > now_ms,
            Warning::Over53Bits => self.total_bits() > 53,
            Warning::Over63Bits => self.total_bits() > 63,
            Warning::NotSortedByTime => {
                self.node_fields().any(|field| field.shift() > self.timestamp_shift())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn warnings_begin_and_end_on_time() {
        let layout = Layout::parse("timestamp:41|sequence:10@1700000000000/1ms").unwrap();
        let at = |now_ms| layout.warnings(now_ms).collect::<Vec<_>>();
        let end = layout.ends_at_ms();
        assert_eq!(at(1_699_999_999_999), [Warning::NotBegun]);
        assert_eq!(at(1_700_000_000_000), []);
        assert_eq!(at(end - SOON_MS), []);
        assert_eq!(at(end - SOON_MS + 1), [Warning::EndsSoon]);
        assert_eq!(at(end), [Warning::EndsSoon]);
        assert_eq!(at(end + 1), [Warning::Ended]);
        assert_eq!(at(u64::MAX), [Warning::Ended]);
    }

    #[test]
    fn widths_and_places_are_warned_of() {
        let at = |text| Layout::parse(text).unwrap().warnings(1_767_225_600_000).collect::<Vec<_>>();
        assert_eq!(at("js-safe"), []);
        assert_eq!(at("seata"), [Warning::Over53Bits, Warning::NotSortedByTime]);
        assert_eq!(at("mastodon"), [Warning::Over53Bits, Warning::Over63Bits]);
    }

    #[test]
    fn rates_are_whole_numbers() {
        let rate = |text| Layout::parse(text).unwrap().ids_per_second();
        assert_eq!(rate("twitter"), 4_096_000);
        assert_eq!(rate("baidu"), 8192);
        assert_eq!(rate("timestamp:20|sequence:1@0/3s"), 0);
        assert_eq!(rate("timestamp:30|sequence:32@0/1ms"), (1 << 32) * 1000);
    }
}
