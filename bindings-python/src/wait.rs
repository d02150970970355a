//! Waits without holding the GIL, while handling signals.

use std::time::Duration;

use polyflake::{Error, ThreadWait, Wait};
use pyo3::prelude::*;

use crate::errors;

/// The longest pause before a waiting call handles signals, such as Ctrl-C.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// A wait in a thread that holds the GIL. The GIL is released only while the thread waits: see
/// `PySnowflake::under_gil`.
pub(crate) struct ReleasesGil<'py> {
    py: Python<'py>,
    thread: ThreadWait,
}

impl<'py> ReleasesGil<'py> {
    pub(crate) const fn new(py: Python<'py>) -> Self {
        Self { py, thread: ThreadWait::new() }
    }
}

/// An exception, raised by Polyflake or by a signal handler, that ends a wait.
pub(crate) struct Raised(pub(crate) PyErr);

impl From<Error> for Raised {
    fn from(error: Error) -> Self {
        Self(errors::exception(&error))
    }
}

impl From<Raised> for PyErr {
    fn from(Raised(error): Raised) -> Self {
        error
    }
}

impl Wait for ReleasesGil<'_> {
    type Error = Raised;

    fn elapsed(&mut self) -> Duration {
        self.thread.elapsed()
    }

    fn pause(&mut self, pause: Duration) -> Result<(), Raised> {
        // Longer pauses are cut short. This is harmless, because the clock is read again in any case.
        let pause = pause.min(SIGNALS_EVERY);
        if !pause.is_zero() {
            self.py.detach(|| self.thread.pause(pause))?;
        }
        // A handler may fork. It runs before the call looks for a result, which belongs to the parent.
        self.py.check_signals().map_err(Raised)
    }

    fn block_on(&mut self, work: &mut (dyn FnMut() + Send)) {
        self.py.detach(work);
    }
}
