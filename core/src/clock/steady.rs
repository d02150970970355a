//! The wall clock without its backward steps.

use core::sync::atomic::Ordering;
use core::time::Duration;

use portable_atomic::AtomicI64;

use crate::clock::source::{NS_PER_MS, TimeSource, ns_until};
use crate::clock::{Clock, ClockError};
use crate::system::StdTime;

/// The wall clock while it moves forward. While the wall clock is behind the latest time already returned,
/// this clock continues from that time at half the rate of monotonic time, until the wall clock has caught
/// up. It hides every step back within the tolerance given to [`new`](Self::new). After a larger step back,
/// it follows the wall clock from there.
///
/// Monotonic time (`CLOCK_MONOTONIC` or similar) stops while the machine is suspended, but the wall clock
/// does not, so the wall clock catches up sooner after a suspend.
///
/// ```
/// use polyflake::{Clock, SteadyClock};
/// let clock = SteadyClock::new(1000);
/// let first = clock.unix_ms()?;
/// assert!(clock.unix_ms()? >= first);
/// # Ok::<(), polyflake::ClockError>(())
/// ```
#[derive(Debug)]
pub struct SteadyClock<S = StdTime> {
    source: S,
    slew: Slew,
}

#[cfg(feature = "std")]
impl SteadyClock {
    /// Creates a clock that hides steps back of up to `max_backward_ms` milliseconds.
    pub const fn new(max_backward_ms: u32) -> Self {
        Self::on(StdTime, max_backward_ms)
    }
}

impl<S> SteadyClock<S> {
    pub(super) const fn on(source: S, max_backward_ms: u32) -> Self {
        Self { source, slew: Slew::new(max_backward_ms) }
    }
}

impl<S: TimeSource> SteadyClock<S> {
    fn ns(&self) -> i64 {
        // Reads the monotonic clock after the wall clock. A pause between the two readings then makes the
        // anchor too low. In the other order it would be too high, and this clock would run ahead of the wall
        // clock by half the pause.
        let wall_ns = self.source.wall_ns();
        self.slew.ns(wall_ns, self.source.monotonic_ns())
    }
}

impl<S: TimeSource> Clock for SteadyClock<S> {
    #[inline(never)]
    fn unix_ms(&self) -> Result<i64, ClockError> {
        Ok(self.ns().div_euclid(NS_PER_MS))
    }

    fn until(&self, _: i64, target_ms: i64) -> Duration {
        ns_until(self.ns(), target_ms)
    }
}

/// The arithmetic of [`SteadyClock`], with both times as arguments.
#[derive(Debug)]
struct Slew {
    max_backward_ns: i64,
    /// The greatest `given - monotonic / 2` so far. Adding half of a later monotonic time yields the latest
    /// time returned plus half the time that has passed since. No earlier time is returned.
    anchor_ns: AtomicI64,
}

impl Slew {
    const fn new(max_backward_ms: u32) -> Self {
        Self { max_backward_ns: max_backward_ms as i64 * NS_PER_MS, anchor_ns: AtomicI64::new(i64::MIN) }
    }

    fn ns(&self, wall_ns: i64, monotonic_ns: i64) -> i64 {
        let half = monotonic_ns / 2;
        let wall_anchor = wall_ns - half;
        let anchor = self.anchor_ns.fetch_max(wall_anchor, Ordering::AcqRel);
        let floor = anchor.saturating_add(half);
        if floor.saturating_sub(wall_ns) > self.max_backward_ns {
            // This step back is too large to hide, so forget the earlier times and let the cursor handle it.
            // If another thread has just moved the anchor, the next reading does so instead.
            let _ = self.anchor_ns.compare_exchange(anchor, wall_anchor, Ordering::AcqRel, Ordering::Relaxed);
            return wall_ns;
        }
        floor.max(wall_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    const MS: i64 = NS_PER_MS;

    #[test]
    fn a_step_back_within_the_tolerance_never_shows() {
        let slew = Slew::new(1000);
        assert_eq!(slew.ns(5_000 * MS, 0), 5_000 * MS);
        assert_eq!(slew.ns(5_100 * MS, 100 * MS), 5_100 * MS);
        // 600 ms back: half rate from 5100 on.
        assert_eq!(slew.ns(4_600 * MS, 200 * MS), 5_150 * MS);
        assert_eq!(slew.ns(4_800 * MS, 400 * MS), 5_250 * MS);
        // The wall clock has caught up.
        assert_eq!(slew.ns(5_600 * MS, 1_200 * MS), 5_650 * MS);
        assert_eq!(slew.ns(5_700 * MS, 1_300 * MS), 5_700 * MS);
        assert_eq!(slew.ns(5_800 * MS, 1_400 * MS), 5_800 * MS);
    }

    #[test]
    fn a_step_back_past_the_tolerance_is_given_as_it_is() {
        let slew = Slew::new(1000);
        slew.ns(50_000 * MS, 0);
        assert_eq!(slew.ns(20_000 * MS, 10 * MS), 20_000 * MS);
        // From here on it follows the wall clock, and hides the next step back.
        assert_eq!(slew.ns(49_900 * MS, 29_910 * MS), 49_900 * MS);
        assert_eq!(slew.ns(50_100 * MS, 30_110 * MS), 50_100 * MS);
        assert_eq!(slew.ns(49_600 * MS, 30_210 * MS), 50_150 * MS);
    }

    /// A machine that pauses for 100 ms before the second reading of any clock.
    struct Pausing {
        now_ns: Cell<i64>,
        readings: Cell<u32>,
    }

    impl Pausing {
        fn read(&self) -> i64 {
            self.readings.set(self.readings.get() + 1);
            if self.readings.get() == 2 {
                self.now_ns.set(100 * MS);
            }
            self.now_ns.get()
        }
    }

    impl TimeSource for Pausing {
        fn wall_ns(&self) -> i64 {
            self.read()
        }

        fn monotonic_ns(&self) -> i64 {
            self.read()
        }
    }

    #[test]
    fn a_pause_between_two_readings_does_not_set_the_clock_ahead() {
        let source = Pausing { now_ns: Cell::new(0), readings: Cell::new(0) };
        let clock = SteadyClock { source, slew: Slew::new(1000) };
        for _ in 0..3 {
            let given = clock.ns();
            assert!(given <= clock.source.now_ns.get(), "{given}");
        }
    }
}
