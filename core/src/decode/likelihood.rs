//! The likelihood that an ID belongs to a layout, judged by the time its bits would represent.

use crate::decode::Decoded;

/// The likelihood that an ID belongs to the layout that decoded it, from [`Decoded::likelihood`]. The most
/// likely comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Likelihood {
    /// At least a week after the epoch, and not in the future.
    Plausible,
    /// Soon after the epoch. In any layout, small numbers decode to such times.
    Early,
    /// More than a day in the future.
    Future,
    /// Before November 2010, when the first Snowflakes were made.
    TooOld,
}

impl Likelihood {
    /// The name, such as `too_old`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plausible => "plausible",
            Self::Early => "early",
            Self::Future => "future",
            Self::TooOld => "too_old",
        }
    }
}

const DAY_MS: u64 = 86_400_000;
/// The first day of Twitter's Snowflakes: 2010-11-04. Only a layout with an older epoch can decode to an earlier time.
const FIRST_SNOWFLAKES_MS: u64 = 1_288_828_800_000;

impl Decoded {
    /// Returns the likelihood that the ID belongs to this layout, judged at the instant `now_ms` (Unix ms).
    ///
    /// ```
    /// use polyflake::{Layout, Likelihood};
    /// let now_ms = 1_767_225_600_000; // 2026-01-01
    /// let at = |layout| Layout::parse(layout)?.decode(175928847299117063_u64).map(|it| it.likelihood(now_ms));
    /// assert_eq!(at("discord")?, Likelihood::Plausible);
    /// assert_eq!(at("mastodon")?, Likelihood::Future);
    /// # Ok::<(), polyflake::Error>(())
    /// ```
    pub const fn likelihood(&self, now_ms: u64) -> Likelihood {
        let time_ms = self.timestamp_ms();
        // A machine's clock may be fast, and its IDs are then in the future.
        if time_ms > now_ms.saturating_add(DAY_MS) {
            Likelihood::Future
        } else if time_ms < FIRST_SNOWFLAKES_MS {
            Likelihood::TooOld
        } else if time_ms - self.layout.epoch_ms() < 7 * DAY_MS {
            Likelihood::Early
        } else {
            Likelihood::Plausible
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, UnixTime};

    #[test]
    fn each_ends_where_the_next_begins() {
        let layout = Layout::default();
        let now_ms = 1_767_225_600_000;
        let at = |ms: u64| layout.compose(UnixTime::from_ms(ms), 0, 1).and_then(|id| layout.decode(id));
        let likelihood = |ms: u64| at(ms).unwrap().likelihood(now_ms);
        let week = layout.epoch_ms() + 7 * DAY_MS;
        assert_eq!(likelihood(week - 1), Likelihood::Early);
        assert_eq!(likelihood(week), Likelihood::Plausible);
        assert_eq!(likelihood(now_ms + DAY_MS), Likelihood::Plausible);
        assert_eq!(likelihood(now_ms + DAY_MS + 1), Likelihood::Future);
        let old = Layout::parse("mastodon").unwrap();
        assert_eq!(old.decode(1_u64).unwrap().likelihood(now_ms), Likelihood::TooOld);
    }
}
