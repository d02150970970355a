//! The source of time: one method that returns Unix ms or an error.

use core::fmt;
use core::time::Duration;

use crate::error::{Error, ErrorCode};

mod builtin;
pub(crate) mod source;
mod steady;

pub use builtin::{BuiltinClock, ClockName, SystemClock};
pub use source::TimeSource;
pub use steady::SteadyClock;

/// A source of time. Any closure that returns `Result<i64, ClockError>` is a clock.
///
/// A clock may stop, jump or go back: a [`Snowflake`](crate::Snowflake) never repeats an ID because of it.
/// Every call reads the clock at least once, and holds no lock while doing so.
///
/// ```
/// use polyflake::{Snowflake, UnixTime};
/// let ids = Snowflake::builder().node(7).build_with_clock(|| Ok(1_735_689_600_000))?;
/// let id = ids.next_id()?;
/// assert_eq!(ids.decode(id)?.timestamp_ms(), 1_735_689_600_000);
/// # Ok::<(), polyflake::Error>(())
/// ```
pub trait Clock {
    /// The current time, in Unix ms (milliseconds since 1970-01-01T00:00Z, not counting leap seconds).
    ///
    /// # Errors
    ///
    /// Any reason the clock cannot tell the time. The call that needed it then fails with `clock_failed`.
    fn unix_ms(&self) -> Result<i64, ClockError>;

    /// The current time, read afresh after everything the caller has done so far. Only a clock that caches
    /// its readings needs to override this. A call uses it before it fails, waits, or decides that the clock
    /// has stepped back.
    ///
    /// # Errors
    ///
    /// The same as for [`unix_ms`](Self::unix_ms).
    fn unix_ms_uncached(&self) -> Result<i64, ClockError> {
        self.unix_ms()
    }

    /// Roughly how long it will be until [`unix_ms`](Self::unix_ms), which has just returned `now_ms`,
    /// returns `target_ms`. The answer may be too short, because the clock is read again afterwards. A clock
    /// with a resolution finer than a millisecond can be more precise.
    fn until(&self, now_ms: i64, target_ms: i64) -> Duration {
        let whole_ms = u64::try_from(target_ms.saturating_sub(now_ms)).unwrap_or(0);
        // The first of these milliseconds may be almost over.
        Duration::from_millis(whole_ms.saturating_sub(1)).max(Duration::from_micros(200))
    }

    /// Returns true for the system's clock, which all its users share.
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

/// The error from a [`Clock`] that cannot tell the time. The call fails with `clock_failed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockError {
    reason: &'static str,
}

impl ClockError {
    /// Creates an error with the message `reason`.
    pub const fn new(reason: &'static str) -> Self {
        Self { reason }
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
        Self::new(ErrorCode::ClockFailed, error.reason, &[])
    }
}
