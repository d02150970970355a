//! A state that the keeper changes, and that calls wait for.

use core::time::Duration;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use polyflake::{Error, Wait};

/// How long a call that waits for the keeper does not look whether it was interrupted.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// No invariant is open when a panic could come.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a store gave no number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trouble {
    pub(crate) error: Error,
    /// Whether waiting does not help.
    pub(crate) is_final: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Watched<S> {
    state: Mutex<S>,
    /// How often it has changed.
    changes: Mutex<u64>,
    changed: Condvar,
}

impl<S: Send> Watched<S> {
    pub(crate) fn new(state: S) -> Self {
        Self { state: Mutex::new(state), changes: Mutex::default(), changed: Condvar::new() }
    }

    pub(crate) fn get(&self) -> MutexGuard<'_, S> {
        lock(&self.state)
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut S)) {
        change(&mut self.get());
        *lock(&self.changes) += 1;
        self.changed.notify_all();
    }

    /// Looks whenever it has changed, for at most `longest`.
    pub(crate) fn wait_for<T, W: Wait>(
        &self,
        wait: &mut W,
        longest: Duration,
        mut look: impl FnMut() -> Option<Result<T, Error>>,
        too_late: impl FnOnce() -> Error,
    ) -> Result<T, W::Error> {
        let begun = wait.elapsed();
        loop {
            // Before it looks, so that a change meanwhile is not missed.
            let changes = *lock(&self.changes);
            if let Some(result) = look() {
                return result.map_err(Into::into);
            }
            let waited = wait.elapsed().saturating_sub(begun);
            let Some(left) = longest.checked_sub(waited).filter(|left| !left.is_zero()) else {
                return Err(too_late().into());
            };
            wait.block_on(&mut || self.wait_for_change(changes, left.min(LOOK_EVERY)));
            wait.pause(Duration::ZERO)?;
        }
    }

    fn wait_for_change(&self, changes: u64, longest: Duration) {
        let present = lock(&self.changes);
        if *present == changes {
            drop(self.changed.wait_timeout(present, longest).unwrap_or_else(PoisonError::into_inner));
        }
    }
}
