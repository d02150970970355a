//! Waiting without holding the interpreter, and with an ear for signals.

use std::time::Duration;

use polyflake::{Error, ThreadWait, Wait};
use pyo3::prelude::*;

use crate::errors;

/// How long Ctrl-C may go unheard.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// Waits in a thread that has released the interpreter.
pub(crate) struct Detached {
    thread: ThreadWait,
    heard_at: Duration,
}

impl Detached {
    pub(crate) const fn new() -> Self {
        Self { thread: ThreadWait::new(), heard_at: Duration::ZERO }
    }
}

/// An exception that ends a wait: Polyflake's, or what a signal raised.
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
        // A longer pause is cut short; the clock is read again in any case.
        self.thread.pause(pause.min(SIGNALS_EVERY))?;
        let elapsed = self.thread.elapsed();
        if elapsed.saturating_sub(self.heard_at) >= SIGNALS_EVERY {
            self.heard_at = elapsed;
            #[expect(
                clippy::redundant_closure_for_method_calls,
                reason = "the method's lifetime is too narrow"
            )]
            Python::attach(|py| py.check_signals()).map_err(Raised)?;
        }
        Ok(())
    }
}
