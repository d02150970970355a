//! SQLite keeps a record of its locks in the process's memory. A child inherits that record, but not the
//! locks, so no fork may happen while a connection is open.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use tokio::time::sleep;

/// The longest that a fork waits for another thread's transaction, or a transaction for a fork. A transaction takes
/// a few ms, and at most 10 more if it waits for another process, but a disk may stall.
const LONGEST: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(1);

/// This process's ID while one of its threads has a connection or is forking, otherwise 0. A child may inherit its
/// parent's ID.
static HOLDER: AtomicU32 = AtomicU32::new(0);
/// Whether this process was forked while another thread had a connection.
static IS_TORN: AtomicBool = AtomicBool::new(false);
/// This process's ID while a fork waits in it, otherwise 0. No connection is opened meanwhile: in a busy process,
/// `HOLDER` is free only briefly between transactions.
static WAITS: AtomicU32 = AtomicU32::new(0);
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How many `before` handlers have run for this thread's fork: more than one if two threads registered the
    /// handlers, or if another handler forks.
    static FORKING: Cell<u32> = const { Cell::new(0) };
    /// Whether this thread's fork holds `HOLDER`.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// Makes forks wait for connections. A fork that has already begun does not, so this is called before a
/// thread that opens connections is started.
pub(super) fn register() {
    if !IS_REGISTERED.load(Ordering::Acquire) {
        // SAFETY: the handlers only wait on atomics and store to them, and are never unloaded, like the core's
        // handlers.
        #[allow(unsafe_code)]
        let refused = unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) };
        // This fails only if memory runs out. The next call tries again.
        IS_REGISTERED.store(refused == 0, Ordering::Release);
    }
}

/// Why no connection may be opened.
pub(super) enum Refused {
    /// Other threads had connections or were forking for the whole wait.
    ForNow,
    /// The parent had a connection when it forked.
    InThisProcess,
}

/// While this value exists, any `fork` in this process waits.
#[derive(Debug)]
pub(super) struct NoForks(());

impl NoForks {
    pub(super) async fn begin() -> Result<Self, Refused> {
        register();
        let since = Instant::now();
        loop {
            if WAITS.load(Ordering::Acquire) != process::id() && hold() {
                let held = Self(());
                return if IS_TORN.load(Ordering::Acquire) { Err(Refused::InThisProcess) } else { Ok(held) };
            }
            if since.elapsed() >= LONGEST {
                return Err(Refused::ForNow);
            }
            sleep(PAUSE).await;
        }
    }
}

impl Drop for NoForks {
    fn drop(&mut self) {
        release();
    }
}

fn hold() -> bool {
    let this = process::id();
    match HOLDER.compare_exchange(0, this, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => true,
        Err(holder) if holder == this => false,
        // No handler has run in this child: the fork did not wait for the connection.
        Err(parent) => {
            IS_TORN.store(true, Ordering::Release);
            HOLDER.compare_exchange(parent, this, Ordering::AcqRel, Ordering::Acquire).is_ok()
        }
    }
}

/// Does nothing in a child that inherited its parent's `HOLDER`.
fn release() {
    let _ = HOLDER.compare_exchange(process::id(), 0, Ordering::AcqRel, Ordering::Relaxed);
}

extern "C" fn before() {
    FORKING.set(FORKING.get() + 1);
    if FORKING.get() > 1 {
        return;
    }
    let since = Instant::now();
    loop {
        HOLDS.set(hold());
        if HOLDS.get() || since.elapsed() >= LONGEST {
            WAITS.store(0, Ordering::Release);
            return;
        }
        WAITS.store(process::id(), Ordering::Release);
        thread::sleep(PAUSE);
    }
}

extern "C" fn after() {
    FORKING.set(FORKING.get().saturating_sub(1));
    if FORKING.get() == 0 && HOLDS.replace(false) {
        release();
    }
}

extern "C" fn in_child() {
    WAITS.store(0, Ordering::Release);
    if HOLDS.get() {
        // The parent held `HOLDER` for this fork. If this fork is nested in another one, the outer fork still needs it.
        HOLDER.store(process::id(), Ordering::Release);
    }
    after();
}

#[cfg(test)]
mod tests {
    use tokio::runtime::{Builder, Runtime};
    use tokio::time::timeout;

    use super::*;

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_time().build().unwrap()
    }

    fn begin() -> Result<NoForks, Refused> {
        runtime().block_on(NoForks::begin())
    }

    /// Forks, and returns the child's exit status.
    fn status_of(child: impl FnOnce() -> bool) -> i32 {
        // SAFETY: the child uses no lock of another thread, and does not return. The timer ends it if it hangs.
        #[allow(unsafe_code)]
        unsafe {
            let pid = libc::fork();
            if pid == 0 {
                libc::alarm(60);
                libc::_exit(i32::from(!child()));
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
            status
        }
    }

    #[test]
    fn a_child_of_a_fork_that_did_not_wait_opens_nothing_and_can_fork() {
        let held = begin().ok();
        // As if the fork had begun before the handlers were registered.
        FORKING.set(1);
        let status = status_of(|| {
            FORKING.set(0);
            let refused = matches!(begin(), Err(Refused::InThisProcess));
            let grandchild = || matches!(begin(), Err(Refused::InThisProcess));
            refused && status_of(grandchild) == 0
        });
        FORKING.set(0);
        drop(held);
        assert_eq!(status, 0);
    }

    #[test]
    fn one_holder_at_a_time() {
        let held = begin().ok();
        assert!(held.is_some());
        let soon = async { timeout(Duration::from_millis(20), NoForks::begin()).await };
        assert!(runtime().block_on(soon).is_err());
        assert_eq!(HOLDER.load(Ordering::Acquire), process::id());
        drop(held);
        assert!(begin().is_ok());
    }

    #[test]
    fn a_fork_amid_a_fork() {
        register();
        FORKING.set(1);
        HOLDS.set(hold_soon());
        // The child goes on with the outer fork.
        let status = status_of(|| {
            let holder = HOLDER.load(Ordering::Acquire) == process::id();
            after();
            holder && HOLDER.load(Ordering::Acquire) == 0 && begin().is_ok()
        });
        after();
        assert_eq!(status, 0);
    }

    fn hold_soon() -> bool {
        while !hold() {
            thread::sleep(PAUSE);
        }
        true
    }

    #[test]
    fn handlers_that_were_registered_twice() {
        assert!(begin().is_ok());
        IS_REGISTERED.store(false, Ordering::Release);
        let opens = || begin().is_ok();
        assert_eq!(status_of(|| opens() && status_of(opens) == 0), 0);
        assert!(begin().is_ok());
    }
}
