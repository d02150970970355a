//! SQLite keeps a record of its locks in the process's memory. A child inherits that record, but not the
//! locks, so no fork may happen while a connection is open.

use core::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// True while a thread has a connection or is forking.
static BUSY: AtomicBool = AtomicBool::new(false);
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

/// While this value exists, any `fork` in this process waits.
#[derive(Debug)]
pub(super) struct NoForks(());

impl NoForks {
    pub(super) fn begin() -> Self {
        if !IS_REGISTERED.swap(true, Ordering::AcqRel) {
            // SAFETY: the handlers only wait on an atomic and store to it, and are never unloaded, like the
            // core's handlers.
            #[allow(unsafe_code)]
            let refused = unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after)) };
            // This fails only if memory runs short. The next call tries again.
            IS_REGISTERED.store(refused == 0, Ordering::Release);
        }
        before();
        Self(())
    }
}

impl Drop for NoForks {
    fn drop(&mut self) {
        after();
    }
}

/// Waits before a fork. A transaction takes a few ms, and at most 10 more if it waits for another process.
extern "C" fn before() {
    while BUSY.swap(true, Ordering::AcqRel) {
        thread::sleep(Duration::from_millis(1));
    }
}

extern "C" fn after() {
    BUSY.store(false, Ordering::Release);
}
