//! Noticing `fork`, without a system call for an ID.
//!
//! A handler that runs in every child marks the cursors it inherited as its parent's. It only stores to atomics,
//! in the child's own copy of the memory: nothing of the parent's is touched, and no lock is needed.

use core::sync::atomic::{AtomicU32, Ordering};

/// How many forks lie between this process and the one in which Polyflake was first used.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// A moment in the line of forks: equal in one process, and less in its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u32);

impl Generation {
    /// This process's, whose children are noticed from here on.
    pub(crate) fn of_this_process() -> Self {
        notice_children();
        Self::now()
    }

    #[inline]
    pub(crate) fn now() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }
}

#[cfg(unix)]
fn notice_children() {
    use core::sync::atomic::AtomicBool;

    static NOTICED: AtomicBool = AtomicBool::new(false);

    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
        super::table::disown_all();
        super::time::KEPT.after_fork();
    }

    // Miri has no `fork`.
    if !NOTICED.load(Ordering::Acquire) && !cfg!(miri) {
        // Two threads may both come here: a handler that runs twice does no harm, and one that is not there yet
        // when a Snowflake is, would.
        // SAFETY: the handler is async-signal-safe (it stores to atomics alone) and is never unloaded: the shared
        // library of the C ABI is linked so, and Python unloads no extension module.
        #[allow(unsafe_code)]
        let refused = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        // It is refused for want of memory alone; the next Snowflake tries again.
        NOTICED.store(refused == 0, Ordering::Release);
    }
}

/// Where there is no `fork`, there is nothing to notice.
#[cfg(not(unix))]
fn notice_children() {}
