//! The wall clock without its steps back.

use core::sync::atomic::Ordering;
use core::time::Duration;

use portable_atomic::AtomicI64;

use crate::clock::source::{NS_PER_MS, TimeSource, ns_until};
use crate::clock::{Clock, ClockError};
use crate::system::StdTime;

/// The wall clock while it moves forward. While it is behind what was already seen, monotonic time at half
/// rate from there, until the wall clock has caught up: no step back shows, if it is within the tolerance given to
/// [`new`](Self::new). A wall clock further back than that is given as it is, from there on.
///
/// Monotonic time (`CLOCK_MONOTONIC` and its like) stops while the machine is suspended and the wall clock does not,
/// so that the wall clock catches up earlier after a suspend.
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
    /// A clock that hides steps back of up to `max_backward_ms` milliseconds.
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
        // The monotonic clock after the wall clock: a pause between the two then sets the anchor too low and not too
        // high, which would run ahead of the wall clock by half the pause.
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
    /// The greatest `given - monotonic / 2` so far. Adding half the monotonic time of any later moment gives
    /// the time already seen plus half of what has gone by since: the floor below which nothing is given.
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
            // Not to be hidden: forget what was seen, and leave it to the cursor. If another thread has moved the anchor
            // meanwhile, the next reading does this.
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
        // From there on it is the wall clock, and hides the next step back.
        assert_eq!(slew.ns(49_900 * MS, 29_910 * MS), 49_900 * MS);
        assert_eq!(slew.ns(50_100 * MS, 30_110 * MS), 50_100 * MS);
        assert_eq!(slew.ns(49_600 * MS, 30_210 * MS), 50_150 * MS);
    }

    /// A machine that pauses for 100 ms before the second time that anybody asks for the time.
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
