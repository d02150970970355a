//! Counts the users of a lease or a counter. The keeper releases a lease or a counter that has no users.

use core::time::Duration;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::watched::{LOOK_EVERY, lock};

/// The users of a lease or a counter.
#[derive(Debug)]
pub(crate) struct Users {
    /// How long the lease or counter is kept after its last user leaves without closing it.
    keep: Duration,
    present: Mutex<Present>,
    over: Condvar,
    /// The keeper's thread, if nothing else needs it, so that it exits once this lease or counter is
    /// released.
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Present {
    count: u64,
    /// Whether the last user closed the lease or counter, rather than just leaving.
    is_closed: bool,
    /// When the last user left.
    since: Instant,
    is_over: bool,
}

impl Users {
    pub(crate) fn new(keep: Duration) -> Self {
        let present = Present { count: 0, is_closed: false, since: Instant::now(), is_over: false };
        Self { keep, present: Mutex::new(present), over: Condvar::new(), thread: Mutex::new(None) }
    }

    pub(crate) fn join(&self) {
        let mut present = lock(&self.present);
        present.count += 1;
        present.is_closed = false;
    }

    /// Removes a user. Returns true if this was the last user.
    pub(crate) fn leave(&self, is_closed: bool) -> bool {
        let mut present = lock(&self.present);
        present.count = present.count.saturating_sub(1);
        if present.count > 0 {
            return false;
        }
        present.is_closed = is_closed;
        present.since = Instant::now();
        true
    }

    pub(crate) fn are_none(&self) -> bool {
        lock(&self.present).count == 0
    }

    /// Returns how much longer the lease or counter is kept, or `None` if it has users.
    pub(crate) fn kept_for(&self) -> Option<Duration> {
        let present = lock(&self.present);
        let left = || self.keep.saturating_sub(present.since.elapsed());
        (present.count == 0).then(|| if present.is_closed { Duration::ZERO } else { left() })
    }

    /// Returns true if the lease or counter may be released: it has no users, and the last user closed it or
    /// left long enough ago.
    pub(crate) fn are_gone(&self) -> bool {
        self.kept_for().is_some_and(|kept| kept.is_zero())
    }

    /// Records that the lease or counter was released or abandoned.
    pub(crate) fn end(&self) {
        lock(&self.present).is_over = true;
        self.over.notify_all();
    }

    /// Stores the keeper's thread, which exits once this lease or counter is released.
    pub(crate) fn keep_thread(&self, thread: Option<JoinHandle<()>>) {
        *lock(&self.thread) = thread;
    }

    /// Waits until the lease or counter is released, for at most `longest`. Call this after the last user has
    /// closed it.
    pub(crate) fn wait_until_over(&self, longest: Duration) {
        let deadline = Instant::now() + longest;
        let mut present = lock(&self.present);
        while !present.is_over {
            let left = deadline.saturating_duration_since(Instant::now());
            // A new user may have joined.
            if left.is_zero() || present.count > 0 {
                return;
            }
            let waited = self.over.wait_timeout(present, left.min(LOOK_EVERY));
            present = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let is_last = present.count == 0;
        drop(present);
        // After a failure, there may still be other users, and the thread may still be running.
        if is_last {
            if let Some(thread) = lock(&self.thread).take() {
                let _ = thread.join();
            }
        }
    }
}
