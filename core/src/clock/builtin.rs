//! The built-in clocks.

use core::str::FromStr;
use core::time::Duration;

use crate::clock::source::{TimeSource, ns_until};
use crate::clock::steady::SteadyClock;
use crate::clock::{Clock, ClockError};
use crate::error::{Error, error};
use crate::system::StdTime;

/// The name of a built-in clock: a value of the option `clock`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ClockName {
    /// `system`: the wall clock.
    #[default]
    System,
    /// `steady`: the wall clock while it moves forward, and monotonic time at half rate while the wall clock
    /// is behind the latest time already returned. A step back of more than `max_backward_ms` is not hidden.
    Steady,
}

impl FromStr for ClockName {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "system" => Ok(Self::System),
            "steady" => Ok(Self::Steady),
            _ => {
                Err(error!(InvalidOption, "clock is `%`; it takes system or steady", Bytes(name.as_bytes())))
            }
        }
    }
}

/// The clock of a Snowflake built without a caller's clock.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuiltinClock<S = StdTime> {
    /// The wall clock.
    System(SystemClock<S>),
    /// The wall clock without its backward steps.
    Steady(SteadyClock<S>),
}

impl<S> BuiltinClock<S> {
    pub(crate) const fn new(name: ClockName, max_backward_ms: u32, source: S) -> Self {
        match name {
            ClockName::System => Self::System(SystemClock(source)),
            ClockName::Steady => Self::Steady(SteadyClock::on(source, max_backward_ms)),
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

/// The wall clock (`CLOCK_REALTIME` or similar). It can step forwards and backwards, and keeps running while
/// the machine is suspended.
///
/// If the processor promises that its time counter keeps a constant rate (x86-64 with an invariant TSC,
/// `AArch64`), the clock is read again only when the counter shows that the current millisecond may be over.
/// A step of the clock is therefore noticed within a millisecond.
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
