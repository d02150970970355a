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
    since_signals: Duration,
}

impl Detached {
    pub(crate) const fn new() -> Self {
        Self { thread: ThreadWait::new(), since_signals: Duration::ZERO }
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
        let pause = pause.min(SIGNALS_EVERY);
        self.thread.pause(pause)?;
        self.since_signals += pause;
        if self.since_signals >= SIGNALS_EVERY {
            self.since_signals = Duration::ZERO;
            #[expect(
                clippy::redundant_closure_for_method_calls,
                reason = "the method's lifetime is too narrow"
            )]
            Python::attach(|py| py.check_signals()).map_err(Raised)?;
        }
        Ok(())
    }

    fn resumed(&mut self) {
        self.thread.resumed();
    }
}
