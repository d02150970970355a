//! Makes forks wait for moments at which a child inherits nothing half-done.
//!
//! SQLite keeps a record of its locks in the process's memory. A child inherits that record, but not the
//! locks, so no fork may happen while a connection is open.
//!
//! The stores' clients have locks and queues that all threads of a process share, such as the pool of buffers
//! of `mysql_async`. If a thread of the parent holds such a lock during a fork, the child waits for it forever. Only the
//! keeper's thread uses these clients, so a fork waits until that thread is parked, and the thread stays parked until
//! the fork has ended.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

/// The longest that a fork waits for another thread's transaction, or a transaction for a fork. A transaction takes
/// a few ms, and at most 10 more if it waits for another process, but a disk may stall.
const LONGEST: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(1);
/// The longest that a fork waits for a keeper's thread to park, or the thread for a fork. The thread parks after a
/// few dozen µs, unless a store that the program provides blocks it.
const LONGEST_RUN: Duration = Duration::from_secs(1);
const RUN_PAUSE: Duration = Duration::from_micros(100);

/// This process's ID while one of its threads has a connection or is forking, otherwise 0. A child may inherit its
/// parent's ID.
static HOLDER: AtomicU32 = AtomicU32::new(0);
/// Whether this process was forked while another thread had a connection.
static IS_TORN: AtomicBool = AtomicBool::new(false);
/// This process's ID while a fork waits in it, otherwise 0. No connection is opened meanwhile: in a busy process,
/// `HOLDER` is free only briefly between transactions.
static WAITS: AtomicU32 = AtomicU32::new(0);
/// This process's ID in the upper half, and in the lower half the number of its keeper's threads that are not parked.
/// (The thread of a keeper that has been closed may still be running when the next one starts.)
static RUNNING: AtomicU64 = AtomicU64::new(0);
/// This process's ID while a fork keeps the keeper's threads parked, otherwise 0.
static STOPS: AtomicU32 = AtomicU32::new(0);
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How many `before` handlers have run for this thread's fork: more than one if two threads registered the
    /// handlers, or if another handler forks.
    static FORKING: Cell<u32> = const { Cell::new(0) };
    /// Whether this thread's fork holds `HOLDER`.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread is one of those in `RUNNING`.
    static RUNS: Cell<bool> = const { Cell::new(false) };
}

/// Makes forks wait. A fork that has already begun does not, so this is called before the keeper's thread is started.
pub(crate) fn register() {
    if !IS_REGISTERED.load(Ordering::Acquire) {
        // SAFETY: the handlers only wait on atomics and store to them, and are never unloaded, like the core's
        // handlers.
        #[allow(unsafe_code)]
        let refused = unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) };
        // This fails only if memory runs out. The next call tries again.
        IS_REGISTERED.store(refused == 0, Ordering::Release);
    }
}

/// The keeper's thread, from its start to its end.
pub(crate) struct Running(());

impl Running {
    pub(crate) fn begin() -> Self {
        unpark();
        Self(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        park();
    }
}

/// Called before the keeper's thread parks.
pub(crate) fn park() {
    if RUNS.replace(false) {
        count(|running| running.saturating_sub(1));
    }
}

/// Called after the keeper's thread was parked. Waits for a fork that is under way.
pub(crate) fn unpark() {
    if RUNS.replace(true) {
        return;
    }
    let since = Instant::now();
    loop {
        count(|running| running + 1);
        // A fork stores to `STOPS` before it looks at `RUNNING`, so at least one of the two waits for the other.
        if STOPS.load(Ordering::SeqCst) != process::id() || since.elapsed() >= LONGEST_RUN {
            return;
        }
        count(|running| running.saturating_sub(1));
        thread::sleep(RUN_PAUSE);
    }
}

/// Runs a part of the program, such as its listener, which may block or wait for a fork. Forks do not wait for it.
pub(crate) fn aside<T>(run: impl FnOnce() -> T) -> T {
    if !RUNS.get() {
        return run();
    }
    park();
    let result = run();
    unpark();
    result
}

fn count(change: impl Fn(u64) -> u64) {
    let this = process::id();
    let changed = |word| Some(word_of(this, change(running_in(word, this))));
    let _ = RUNNING.fetch_update(Ordering::SeqCst, Ordering::SeqCst, changed);
}

fn word_of(process: u32, running: u64) -> u64 {
    u64::from(process) << 32 | running
}

/// Returns the lower half of `RUNNING`. A child may inherit its parent's word, but has none of its parent's threads.
fn running_in(word: u64, process: u32) -> u64 {
    if word >> 32 == u64::from(process) { word & u64::from(u32::MAX) } else { 0 }
}

/// Waits until the keeper's threads are parked, except for this thread if it is one of them.
fn stop() {
    let (this, since) = (process::id(), Instant::now());
    STOPS.store(this, Ordering::SeqCst);
    while running_in(RUNNING.load(Ordering::SeqCst), this) > u64::from(RUNS.get())
        && since.elapsed() < LONGEST_RUN
    {
        thread::sleep(RUN_PAUSE);
    }
}

/// Why no connection may be opened.
#[cfg(feature = "sqlite")]
pub(crate) enum Refused {
    /// Other threads had connections or were forking for the whole wait.
    ForNow,
    /// The parent had a connection when it forked.
    InThisProcess,
}

/// While this value exists, any `fork` in this process waits.
#[cfg(feature = "sqlite")]
#[derive(Debug)]
pub(crate) struct NoForks(());

#[cfg(feature = "sqlite")]
impl NoForks {
    pub(crate) async fn begin() -> Result<Self, Refused> {
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
            tokio::time::sleep(PAUSE).await;
        }
    }
}

#[cfg(feature = "sqlite")]
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
            break;
        }
        WAITS.store(process::id(), Ordering::Release);
        thread::sleep(PAUSE);
    }
    // A transaction needs the keeper's thread, so the thread is stopped only now.
    if HOLDS.get() {
        stop();
    }
}

extern "C" fn after() {
    FORKING.set(FORKING.get().saturating_sub(1));
    if FORKING.get() == 0 && HOLDS.replace(false) {
        STOPS.store(0, Ordering::SeqCst);
        release();
    }
}

extern "C" fn in_child() {
    WAITS.store(0, Ordering::Release);
    STOPS.store(0, Ordering::SeqCst);
    RUNNING.store(word_of(process::id(), RUNS.get().into()), Ordering::SeqCst);
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

    /// What a child would inherit half-done.
    static IS_BUSY: AtomicBool = AtomicBool::new(false);

    /// Runs the keeper's thread in bursts until `is_over`.
    fn bursts(is_over: &AtomicBool) {
        let _running = Running::begin();
        while !is_over.load(Ordering::SeqCst) {
            IS_BUSY.store(true, Ordering::SeqCst);
            thread::sleep(PAUSE);
            IS_BUSY.store(false, Ordering::SeqCst);
            park();
            unpark();
        }
    }

    #[test]
    fn a_fork_waits_until_the_keepers_thread_is_parked() {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| bursts(&is_over));
            for _ in 0..50 {
                let since = Instant::now();
                let status = status_of(|| {
                    let is_alone = running_in(RUNNING.load(Ordering::SeqCst), process::id()) == 0;
                    // The child's own keeper can run, and its forks wait for it.
                    let _running = Running::begin();
                    is_alone && !IS_BUSY.load(Ordering::SeqCst) && status_of(|| RUNS.get()) == 0
                });
                // On a busy machine, the fork may have given up.
                assert!(status == 0 || since.elapsed() >= LONGEST_RUN);
            }
            is_over.store(true, Ordering::SeqCst);
        });
    }

    #[test]
    fn a_thread_waits_for_a_fork_that_is_under_way() {
        let has_run = AtomicBool::new(false);
        thread::scope(|scope| {
            let since = Instant::now();
            before();
            scope.spawn(|| {
                let _running = Running::begin();
                has_run.store(true, Ordering::SeqCst);
            });
            thread::sleep(20 * PAUSE);
            let ran = has_run.load(Ordering::SeqCst);
            assert!(!ran || since.elapsed() >= LONGEST_RUN);
            after();
        });
        assert!(has_run.load(Ordering::SeqCst));
    }

    /// Neither waits for the other forever: this test has to sit out both limits.
    #[test]
    fn a_thread_that_never_parks_and_a_fork_that_never_ends() {
        let (ends, is_over) = std::sync::mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let _running = Running::begin();
                is_over.recv().unwrap_err();
            });
            while running_in(RUNNING.load(Ordering::SeqCst), process::id()) == 0 {
                thread::sleep(PAUSE);
            }
            assert_eq!(status_of(|| true), 0);
            drop(ends);
        });
        before();
        thread::scope(|scope| {
            scope.spawn(|| drop(Running::begin()));
        });
        after();
    }

    #[test]
    fn a_listener_runs_aside() {
        let _running = Running::begin();
        assert!(!aside(|| RUNS.get()) && RUNS.get());
    }
}
