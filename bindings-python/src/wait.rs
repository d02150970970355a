//! Waiting without the GIL, and handling signals meanwhile.

use std::time::Duration;

use polyflake::{Error, ThreadWait, Wait};
use pyo3::prelude::*;

use crate::errors;

/// How often a waiting call handles signals, such as Ctrl-C.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Waits in a thread that has released the GIL.
pub(crate) struct Detached {
    thread: ThreadWait,
    signals_at: Duration,
}

impl Detached {
    pub(crate) const fn new() -> Self {
        Self { thread: ThreadWait::new(), signals_at: Duration::ZERO }
    }
}

/// An exception that ends a wait: one of Polyflake's, or one that a signal handler raised.
pub(crate) struct Raised(pub(crate) PyErr);

impl From<Error> for Raised {
    fn from(error: Error) -> Self {
        Self(errors::exception(&error))
    }
}

impl Wait for Detached {
    type Error = Raised;

    fn elapsed(&mut self) -> Duration {
        self.thread.elapsed()
    }

    fn pause(&mut self, pause: Duration) -> Result<(), Raised> {
        // Longer pauses are cut short, because the clock is read again in any case.
        self.thread.pause(pause.min(SIGNALS_EVERY))?;
        let elapsed = self.thread.elapsed();
        if elapsed.saturating_sub(self.signals_at) >= SIGNALS_EVERY {
            self.signals_at = elapsed;
            #[expect(
                clippy::redundant_closure_for_method_calls,
                reason = "the method's lifetime is too narrow"
            )]
            Python::attach(|py| py.check_signals()).map_err(Raised)?;
        }
        Ok(())
    }
}
