//! Where the time comes from: one method that gives Unix ms or an error.

use core::fmt;
use core::str::FromStr;
use core::sync::atomic::Ordering;
use core::time::Duration;

use portable_atomic::AtomicI64;

use crate::error::{Detail, Error, Word};
#[cfg(feature = "alloc")]
use crate::options::Resolved;
#[cfg(feature = "std")]
pub use crate::system::StdTime;

/// The operating system's time, which needs the `std` feature.
#[cfg(not(feature = "std"))]
#[derive(Debug)]
pub enum StdTime {}

#[cfg(not(feature = "std"))]
impl TimeSource for StdTime {
    fn wall_ns(&self) -> i64 {
        match *self {}
    }

    fn monotonic_ns(&self) -> i64 {
        match *self {}
    }
}

/// A source of time. Closures that return `Result<i64, ClockError>` are clocks.
///
/// A clock may stand still, jump and go back: [`Snowflake`](crate::Snowflake) never repeats an ID for it. It is
/// read at least once a call, and no lock is held while it runs.
///
/// ```
/// use polyflake::{Snowflake, UnixTime};
/// let ids = Snowflake::builder().node(7).build_with_clock(|| Ok(1_735_689_600_000))?;
/// let id = ids.next_id()?;
/// assert_eq!(ids.decode(id)?.timestamp_ms(), 1_735_689_600_000);
/// # Ok::<(), polyflake::Error>(())
/// ```
pub trait Clock {
    /// The time now, in Unix ms (milliseconds since 1970-01-01T00:00Z, leap seconds not counted).
    fn unix_ms(&self) -> Result<i64, ClockError>;

    /// The same, for a clock that keeps a reading for a while: read anew, after all that the caller did before. A call
    /// asks for it before it refuses, waits, or takes the clock to have stepped back.
    fn unix_ms_uncached(&self) -> Result<i64, ClockError> {
        self.unix_ms()
    }

    /// About how long until [`unix_ms`](Self::unix_ms), which gave `now_ms`, gives `target_ms`. It may be too
    /// short, for the clock is read again; a clock that counts finer than a ms can say it more exactly.
    fn until(&self, now_ms: i64, target_ms: i64) -> Duration {
        let whole_ms = u64::try_from(target_ms.saturating_sub(now_ms)).unwrap_or(0);
        // The first of these ms may be all but over.
        Duration::from_millis(whole_ms.saturating_sub(1)).max(Duration::from_micros(200))
    }

    /// Whether it is the system's clock, which is the same for all that have one.
    #[doc(hidden)]
    fn is_of_the_system(&self) -> bool {
        false
    }
}

impl<F: Fn() -> Result<i64, ClockError>> Clock for F {
    fn unix_ms(&self) -> Result<i64, ClockError> {
        self()
    }
}

/// What a [`Clock`] returns when it has no time to give; it becomes `clock_failed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockError {
    reason: &'static str,
}

impl ClockError {
    /// An error whose message is `reason`.
    pub const fn new(reason: &'static str) -> Self {
        Self { reason }
    }

    pub(crate) const fn reason(&self) -> &'static str {
        self.reason
    }
}

impl fmt::Display for ClockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason)
    }
}

impl core::error::Error for ClockError {}

impl From<ClockError> for Error {
    fn from(error: ClockError) -> Self {
        Detail::Clock(error).into()
    }
}

/// The name of a built-in clock, as the option `clock` takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ClockName {
    /// `system`: the wall clock.
    #[default]
    System,
    /// `steady`: the wall clock while it moves forward; while it stands behind what was already seen, monotonic
    /// time at half rate until the wall clock has caught up.
    Steady,
}

impl FromStr for ClockName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "system" => Ok(Self::System),
            "steady" => Ok(Self::Steady),
            _ => Err(Detail::Option {
                option: "clock",
                value: Word::new(name.as_bytes()),
                fits: "system or steady",
            }
            .into()),
        }
    }
}

pub(crate) const NS_PER_MS: i64 = 1_000_000;

/// What a system tells of time, for a [`BuiltinClock`] to be made of. [`StdTime`] is the operating system's, with
/// the `std` feature; a platform without it (`wasm32-unknown-unknown`) brings its own, for `Options::build_on`.
pub trait TimeSource {
    /// The wall clock, in Unix ns (from 1677 to 2262).
    fn wall_ns(&self) -> i64;

    /// Nanoseconds since some fixed moment, whatever the wall clock does.
    fn monotonic_ns(&self) -> i64;

    /// The wall clock, in Unix ms. A reading may be kept for as long as the wall clock stands in the same ms, or for a
    /// ms if it steps meanwhile.
    #[inline]
    fn wall_ms(&self) -> i64 {
        self.wall_ns().div_euclid(NS_PER_MS)
    }

    /// The wall clock, in Unix ms, read anew.
    fn wall_ms_uncached(&self) -> i64 {
        self.wall_ms()
    }
}

/// The clock of a Snowflake that was given none of its own.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuiltinClock<S = StdTime> {
    /// The wall clock.
    System(SystemClock<S>),
    /// The wall clock without its steps back.
    Steady(SteadyClock<S>),
}

#[cfg(feature = "alloc")]
impl<S: TimeSource> BuiltinClock<S> {
    pub(crate) fn new(options: &Resolved, source: S) -> Self {
        match options.clock {
            ClockName::System => Self::System(SystemClock(source)),
            ClockName::Steady => Self::Steady(SteadyClock::on(source, options.max_backward_ms)),
        }
    }
}

impl<S: TimeSource> Clock for BuiltinClock<S> {
    #[inline(always)]
    fn unix_ms(&self) -> Result<i64, ClockError> {
        match self {
            Self::System(clock) => clock.unix_ms(),
            Self::Steady(clock) => clock.unix_ms(),
        }
    }

    fn unix_ms_uncached(&self) -> Result<i64, ClockError> {
        match self {
            Self::System(clock) => clock.unix_ms_uncached(),
            Self::Steady(clock) => clock.unix_ms_uncached(),
        }
    }

    fn until(&self, now_ms: i64, target_ms: i64) -> Duration {
        match self {
            Self::System(clock) => clock.until(now_ms, target_ms),
            Self::Steady(clock) => clock.until(now_ms, target_ms),
        }
    }

    fn is_of_the_system(&self) -> bool {
        matches!(self, Self::System(_))
    }
}

/// The wall clock (`CLOCK_REALTIME` and its like). It can step, forwards and back; it goes on while the machine
/// is suspended.
///
/// Within a ms it is read again only once the processor's counter of time says that the ms may be over, where the
/// processor promises that the counter keeps its rate (x86-64 with an invariant TSC, `AArch64`): a step of the clock is
/// noticed within a ms.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock<S = StdTime>(S);

impl<S: TimeSource> Clock for SystemClock<S> {
    #[inline(always)]
    fn unix_ms(&self) -> Result<i64, ClockError> {
        Ok(self.0.wall_ms())
    }

    fn unix_ms_uncached(&self) -> Result<i64, ClockError> {
        Ok(self.0.wall_ms_uncached())
    }

    fn until(&self, _: i64, target_ms: i64) -> Duration {
        ns_until(self.0.wall_ns(), target_ms)
    }
}

/// The wall clock while it moves forward. While it stands behind what was already seen, monotonic time at half
/// rate from there, until the wall clock has caught up: no step back shows, if it is within the bound given to
/// [`new`](Self::new). A wall clock further back than that is given as it is, from there on.
///
/// Monotonic time (`CLOCK_MONOTONIC` and its like) stands still while the machine is suspended and the wall
/// clock does not, so that after a suspend the wall clock catches up the sooner.
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
    #[cfg(feature = "alloc")]
    const fn on(source: S, max_backward_ms: u32) -> Self {
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
    #[cfg(any(feature = "alloc", test))]
    const fn new(max_backward_ms: u32) -> Self {
        Self { max_backward_ns: max_backward_ms as i64 * NS_PER_MS, anchor_ns: AtomicI64::new(i64::MIN) }
    }

    fn ns(&self, wall_ns: i64, monotonic_ns: i64) -> i64 {
        let half = monotonic_ns / 2;
        let wall_anchor = wall_ns - half;
        let anchor = self.anchor_ns.fetch_max(wall_anchor, Ordering::AcqRel);
        let floor = anchor.saturating_add(half);
        if floor.saturating_sub(wall_ns) > self.max_backward_ns {
            // Not to be hidden: what was seen is forgotten, and the cursor alone decides. Should another thread
            // have moved the anchor meanwhile, the next reading does this.
            let _ = self.anchor_ns.compare_exchange(anchor, wall_anchor, Ordering::AcqRel, Ordering::Relaxed);
            return wall_ns;
        }
        floor.max(wall_ns)
    }
}

fn ns_until(now_ns: i64, target_ms: i64) -> Duration {
    let ns = i128::from(target_ms) * i128::from(NS_PER_MS) - i128::from(now_ns);
    Duration::from_nanos(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    const MS: i64 = NS_PER_MS;

    #[test]
    fn a_step_back_within_the_bound_never_shows() {
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
    fn a_step_back_past_the_bound_is_given_as_it_is() {
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
