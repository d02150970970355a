//! The operating system's time.

use std::time::{SystemTime, UNIX_EPOCH};

use super::cached_clock::CachedClock;
use super::counter::Processor;
use super::monotonic::monotonic_ns;
use crate::clock::source::TimeSource;

/// The operating system's time, as provided by `std`.
#[derive(Debug, Clone, Copy, Default)]
pub struct StdTime;

impl TimeSource for StdTime {
    fn wall_ns(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, i64::wrapping_neg),
        }
    }

    fn monotonic_ns(&self) -> i64 {
        monotonic_ns()
    }

    #[inline(always)]
    fn wall_ms(&self) -> i64 {
        KEPT.unix_ms(&Processor, || self.wall_ns())
    }

    fn wall_ms_uncached(&self) -> i64 {
        KEPT.renew(&Processor, || self.wall_ns())
    }
}

/// All Snowflakes share this cache.
#[cfg(not(loom))]
pub(super) static KEPT: CachedClock = CachedClock::new();
#[cfg(loom)]
loom::lazy_static! { pub(super) static ref KEPT: CachedClock = CachedClock::new(); }

impl StdTime {
    /// The addresses of [`CachedClock::words`].
    #[cfg(not(loom))]
    pub(crate) const fn words() -> [*const u64; 2] {
        KEPT.words()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, SystemClock};
    use core::time::Duration;

    #[test]
    fn the_system_clock_is_the_wall_clock() {
        let before = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let clock = SystemClock::<StdTime>::default();
        let now = clock.unix_ms().unwrap();
        let after = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        assert!(before <= u128::try_from(now).unwrap() && u128::try_from(now).unwrap() <= after);
        assert!(clock.until(now, now + 1000) <= Duration::from_secs(1));
        assert_eq!(clock.until(now, now - 1), Duration::ZERO);
    }

    #[test]
    fn a_kept_reading_is_the_wall_clocks_ms() {
        let wall_ms = || StdTime.wall_ns().div_euclid(crate::clock::source::NS_PER_MS);
        // Covers a few dozen millisecond boundaries.
        for _ in 0..if cfg!(miri) { 100 } else { 500_000 } {
            let before = wall_ms();
            let given = StdTime.wall_ms();
            assert!((before..=wall_ms()).contains(&given));
        }
    }
}
