//! Where the time comes from: one method that gives Unix ms or an error.

use core::fmt;
use core::time::Duration;

use crate::error::{Error, ErrorCode};

mod builtin;
pub(crate) mod source;
mod steady;

pub use builtin::{BuiltinClock, ClockName, SystemClock};
pub use source::TimeSource;
pub use steady::SteadyClock;

/// A source of time. Closures that return `Result<i64, ClockError>` are clocks.
///
/// A clock may stop, jump and go back: [`Snowflake`](crate::Snowflake) never repeats an ID because of it. It is
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
    ///
    /// # Errors
    ///
    /// Whatever keeps the clock from telling the time; the call that asked fails with `clock_failed`.
    fn unix_ms(&self) -> Result<i64, ClockError>;

    /// The same, read again and after everything the caller did before, for a clock that caches its reading. A call asks
    /// for it before it fails, waits, or decides that the clock has stepped back.
    ///
    /// # Errors
    ///
    /// As for [`unix_ms`](Self::unix_ms).
    fn unix_ms_uncached(&self) -> Result<i64, ClockError> {
        self.unix_ms()
    }

    /// About how long until [`unix_ms`](Self::unix_ms), which gave `now_ms`, gives `target_ms`. It may be too
    /// short, because the clock is read again; a clock that counts finer than a ms can be more exact.
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
