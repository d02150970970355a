//! Waiting in a thread: a long pause sleeps, and spins only at the end.

use core::time::Duration;
use std::time::Instant;

use crate::error::Error;
use crate::wait::Wait;

/// How late a sleep may return: timer slack (50 µs on Linux) plus the time until the thread is scheduled
/// again.
const SPIN: Duration = Duration::from_micros(100);

/// Waits by putting the calling thread to sleep.
///
/// ```
/// use polyflake::{Snowflake, ThreadWait};
/// let ids = Snowflake::builder().node(7).build()?;
/// let id = ids.next_id_with(&mut ThreadWait::new())?;
/// # Ok::<(), polyflake::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct ThreadWait {
    since: Option<Instant>,
}

impl ThreadWait {
    /// Creates a `ThreadWait`. It reads no clock until a call has to wait.
    pub const fn new() -> Self {
        Self { since: None }
    }
}

impl Wait for ThreadWait {
    type Error = Error;

    fn elapsed(&mut self) -> Duration {
        self.since.get_or_insert_with(Instant::now).elapsed()
    }

    fn pause(&mut self, pause: Duration) -> Result<(), Error> {
        let start = Instant::now();
        if let Some(asleep) = pause.checked_sub(SPIN).filter(|asleep| !asleep.is_zero()) {
            std::thread::sleep(asleep);
        }
        while start.elapsed() < pause {
            core::hint::spin_loop();
        }
        Ok(())
    }
}
