//! State that the keeper changes and that calls wait on.

use core::pin::pin;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use polyflake::{Error, ErrorCode, ThisProcess, Wait};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::url::Address;

/// The interval at which a call waiting for the keeper checks whether it was interrupted.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Locks a mutex even if a thread panicked while holding it. The code that holds a lock keeps the invariants
/// intact wherever it could panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a store returned no number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trouble {
    pub(crate) error: Error,
    /// True if waiting would not help.
    pub(crate) is_final: bool,
}

/// How a call waits: it either blocks its thread or is awaited.
pub(crate) trait Waiting {
    type Error: From<Error>;

    /// Returns the time since the call began to wait, or since some earlier moment.
    fn elapsed(&mut self) -> Duration;

    /// Waits until the state has changed more than `changes` times, but no longer than `longest`.
    async fn changed<S: Send>(
        &mut self,
        state: &Watched<S>,
        changes: u64,
        longest: Duration,
    ) -> Result<(), Self::Error>;
}

/// Blocks the thread, and waits with the caller's [`Wait`].
#[derive(Debug)]
pub(crate) struct Blocking<'a, W>(pub(crate) &'a mut W);

impl<W: Wait> Waiting for Blocking<'_, W> {
    type Error = W::Error;

    fn elapsed(&mut self) -> Duration {
        self.0.elapsed()
    }

    async fn changed<S: Send>(
        &mut self,
        state: &Watched<S>,
        changes: u64,
        longest: Duration,
    ) -> Result<(), W::Error> {
        self.0.block_on(&mut || state.block_until_changed(changes, longest.min(LOOK_EVERY)));
        self.0.pause(Duration::ZERO)
    }
}

/// Awaits the change in a Tokio runtime.
#[derive(Debug)]
pub(crate) struct Awaiting(Instant);

impl Awaiting {
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }
}

impl Waiting for Awaiting {
    type Error = Error;

    fn elapsed(&mut self) -> Duration {
        self.0.elapsed()
    }

    async fn changed<S: Send>(
        &mut self,
        state: &Watched<S>,
        changes: u64,
        longest: Duration,
    ) -> Result<(), Error> {
        // The caller checks the time.
        let _ = timeout(longest, state.changed_since(changes)).await;
        Ok(())
    }
}

/// Runs a future that waits with [`Blocking`]. Such a future is ready on the first poll.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

#[derive(Debug)]
pub(crate) struct Watched<S> {
    process: ThisProcess,
    state: Mutex<S>,
    /// The number of times the state has changed.
    changes: Mutex<u64>,
    /// `changed` wakes blocking calls, and `awaited` wakes awaited calls.
    changed: Condvar,
    awaited: Notify,
}

impl<S: Send> Watched<S> {
    pub(crate) fn new(state: S) -> Self {
        Self {
            process: ThisProcess::now(),
            state: Mutex::new(state),
            changes: Mutex::default(),
            changed: Condvar::new(),
            awaited: Notify::new(),
        }
    }

    pub(crate) fn get(&self) -> MutexGuard<'_, S> {
        lock(&self.state)
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut S)) {
        change(&mut self.get());
        *lock(&self.changes) += 1;
        self.changed.notify_all();
        self.awaited.notify_waiters();
    }

    /// Calls `look` after every change until it returns a result, for at most `longest`.
    pub(crate) async fn wait_for<T, W: Waiting>(
        &self,
        wait: &mut W,
        longest: Duration,
        mut look: impl FnMut() -> Option<Result<T, Error>>,
        too_late: impl FnOnce() -> Error,
    ) -> Result<T, W::Error> {
        let begun = wait.elapsed();
        loop {
            // A signal handler may have forked while the call waited, and both processes then continue the call. The
            // numbers belong to the parent, and in the child, locks may be held forever.
            if !self.process.is_alive() {
                return Err(crate::forked_during_call().into());
            }
            // Read the count before checking, so that no change in between is missed.
            let changes = *lock(&self.changes);
            if let Some(result) = look() {
                return result.map_err(Into::into);
            }
            let waited = wait.elapsed().saturating_sub(begun);
            let Some(left) = longest.checked_sub(waited).filter(|left| !left.is_zero()) else {
                return Err(too_late().into());
            };
            wait.changed(self, changes, left).await?;
        }
    }

    /// Calls `look` until it reports that opening has succeeded or failed. The keeper's task reports one or
    /// the other soon after the address's `wait` has elapsed. If the keeper's thread is not running, this
    /// method gives up a minute after that.
    pub(crate) async fn wait_until_open<W: Waiting>(
        &self,
        wait: &mut W,
        address: &Address,
        look: impl FnMut() -> Option<Result<(), Error>>,
    ) -> Result<(), W::Error> {
        let longest = Duration::from_millis(address.wait_ms) + Duration::from_secs(60);
        let no_thread_runs = || {
            let why = format!(
                "the thread that asks the store has not run for {}; if this process was forked while another thread of its \
                 parent started or ended, no thread can start here: fork before starting threads, or run a new program in \
                 the child",
                humantime::format_duration(longest)
            );
            Error::from_outside(ErrorCode::LeaseUnavailable, &why)
        };
        self.wait_for(wait, longest, look, no_thread_runs).await
    }

    fn block_until_changed(&self, changes: u64, longest: Duration) {
        let present = lock(&self.changes);
        if *present == changes {
            drop(self.changed.wait_timeout(present, longest).unwrap_or_else(PoisonError::into_inner));
        }
    }

    async fn changed_since(&self, changes: u64) {
        let mut told = pin!(self.awaited.notified());
        // From here on, `told` receives notifications, so a change after the count is checked is not missed.
        told.as_mut().enable();
        if *lock(&self.changes) == changes {
            told.await;
        }
    }
}
