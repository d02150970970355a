//! The operating system's time.

use std::sync::LazyLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::clock::TimeSource;

/// The operating system's time, as `std` gives it.
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
        static SINCE: LazyLock<Instant> = LazyLock::new(Instant::now);
        i64::try_from(SINCE.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }

    #[inline]
    fn wall_ms(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => {
                i64::try_from(after.as_secs()).unwrap_or(i64::MAX / 1000).saturating_mul(1000)
                    + i64::from(after.subsec_millis())
            }
            Err(_) => self.wall_ns().div_euclid(1_000_000),
        }
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
}
