//! Delays forks until a child would inherit nothing half-done.
//!
//! SQLite keeps a record of its locks in the process's memory. A child inherits that record, but not the
//! locks, so no fork may happen while a connection is open.
//!
//! The stores' clients have locks and queues that all threads of a process share, such as the pool of buffers
//! of `mysql_async`. If a thread of the parent holds such a lock during a fork, the child waits for it forever. So a
//! fork waits until each thread that runs a client is parked, and these threads stay parked until the fork has ended.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{process, thread};

use tokio::runtime::Builder;

/// The longest that a fork waits for a transaction in SQLite, or a transaction for a fork. A transaction takes a few ms,
/// and at most 10 more if it waits for another process, but a disk may stall.
const LONGEST: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(1);
/// The longest that a fork waits for a thread to park or to run first, or a thread for forks. A thread parks after a few
/// dozen µs, unless a store that the program provides keeps it busy.
const LONGEST_RUN: Duration = Duration::from_secs(1);
const RUN_PAUSE: Duration = Duration::from_micros(100);

/// Set while a connection to SQLite is open.
static CONNECTION: Flag = Flag(AtomicU32::new(0));
/// Whether this process was forked while a connection was open.
#[cfg(feature = "sqlite")]
static IS_TORN: AtomicBool = AtomicBool::new(false);
/// The number of forks that wait or are under way. Until they have ended, no connection is opened and no thread unparks.
static FORKS: Count = Count(AtomicU64::new(0));
/// The number of threads that run a client and are not parked.
static RUNNING: Count = Count(AtomicU64::new(0));
/// The number of threads that forks keep from running. The next fork lets them run first.
static WAITING: Count = Count(AtomicU64::new(0));
static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How many `before` handlers have run for this thread's fork: more than one if two threads registered the
    /// handlers, or if another handler forks.
    static FORKING: Cell<u32> = const { Cell::new(0) };
    /// Whether this thread's fork is one of those in `FORKS`.
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread is one of those in `RUNNING`.
    static RUNS: Cell<bool> = const { Cell::new(false) };
    /// Whether this thread is one of those in `WAITING`.
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

/// The ID of the process that has set this flag, otherwise 0. For a child that inherits its parent's ID, the flag is not
/// set.
struct Flag(AtomicU32);

impl Flag {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst) == process::id()
    }

    /// Sets the flag if it is not set. Returns the previous ID, which is 0 or an inherited one.
    #[cfg(feature = "sqlite")]
    fn set(&self) -> Option<u32> {
        let this = process::id();
        let unless_set = |process| (process != this).then_some(this);
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, unless_set).ok()
    }

    #[cfg(feature = "sqlite")]
    fn clear(&self) {
        let _ = self.0.compare_exchange(process::id(), 0, Ordering::SeqCst, Ordering::SeqCst);
    }
}

/// A process's ID in the upper half, and that process's number in the lower half. A child that inherits them counts
/// from 0.
struct Count(AtomicU64);

impl Count {
    fn of(word: u64, process: u32) -> u64 {
        if word >> 32 == u64::from(process) { word & u64::from(u32::MAX) } else { 0 }
    }

    fn get(&self) -> u64 {
        Self::of(self.0.load(Ordering::SeqCst), process::id())
    }

    fn change(&self, change: impl Fn(u64) -> u64) {
        let this = process::id();
        let changed = |word| Some(u64::from(this) << 32 | change(Self::of(word, this)));
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, changed);
    }

    /// Sets the number, whichever process it belonged to: a child may have the ID of the process that counted.
    fn set(&self, number: u64) {
        self.0.store(u64::from(process::id()) << 32 | number, Ordering::SeqCst);
    }

    fn add_one(&self) {
        self.change(|number| number + 1);
    }

    fn remove_one(&self) {
        self.change(|number| number.saturating_sub(1));
    }
}

/// Waits until `is_so` returns true, but no longer than `longest`. Returns the last result.
fn wait(longest: Duration, pause: Duration, is_so: impl Fn() -> bool) -> bool {
    let since = Instant::now();
    while !is_so() {
        if since.elapsed() >= longest {
            return false;
        }
        thread::sleep(pause);
    }
    true
}

/// Makes forks wait. A fork that has already begun does not, so this is called before a client is first run.
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

/// Returns a runtime for clients. Forks wait for a thread that blocks on it while [`Running`] exists.
pub(crate) fn runtime() -> Builder {
    let mut runtime = Builder::new_current_thread();
    runtime.enable_all().on_thread_park(park).on_thread_unpark(unpark);
    runtime
}

/// A thread that runs clients. Forks wait for this thread except while it is parked.
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

fn park() {
    if RUNS.replace(false) {
        RUNNING.remove_one();
    }
}

fn unpark() {
    if RUNS.get() {
        return;
    }
    let may_run = || {
        RUNNING.add_one();
        // A fork counts itself before it looks at `RUNNING`, so at least one of the two waits for the other.
        let may_run = FORKS.get() == 0;
        if !may_run {
            RUNNING.remove_one();
        }
        may_run
    };
    if !may_run() {
        WAITS.set(true);
        WAITING.add_one();
        if !wait(LONGEST_RUN, RUN_PAUSE, may_run) {
            // A fork that hangs must not cost the process its lease.
            RUNNING.add_one();
        }
        WAITING.remove_one();
        WAITS.set(false);
    }
    // Set last: a child forked by a signal handler amid the wait runs from here on.
    RUNS.set(true);
}

/// Called between requests, since a thread that is always busy never parks.
pub(crate) fn give_way() {
    if RUNS.get() && FORKS.get() > 0 {
        park();
        unpark();
    }
}

/// Runs the program's own code, such as its listener, which may block or fork. Forks do not wait for it.
pub(crate) fn aside<T>(run: impl FnOnce() -> T) -> T {
    if !RUNS.get() {
        return run();
    }
    park();
    let result = run();
    unpark();
    result
}

/// Writes to standard error without the standard library's lock, which a child may inherit locked.
pub(crate) fn write_to_stderr(text: &str) {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        match nix::unistd::write(std::io::stderr(), rest) {
            Ok(0) => return,
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return,
        }
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
            if let Some(process) = CONNECTION.set() {
                if process != 0 {
                    // The fork that created this process did not wait for the parent's connection.
                    IS_TORN.store(true, Ordering::SeqCst);
                }
                let held = Self(());
                if IS_TORN.load(Ordering::SeqCst) {
                    return Err(Refused::InThisProcess);
                }
                // A fork counts itself before it looks at `CONNECTION`.
                if FORKS.get() == 0 {
                    return Ok(held);
                }
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
        CONNECTION.clear();
    }
}

/// Whether `WAITING` counts threads other than this one.
fn others_wait() -> bool {
    WAITING.get() > u64::from(WAITS.get())
}

/// Whether `RUNNING` counts threads other than this one.
fn others_run() -> bool {
    RUNNING.get() > u64::from(RUNS.get())
}

extern "C" fn before() {
    FORKING.set(FORKING.get() + 1);
    if FORKING.get() > 1 {
        return;
    }
    wait(LONGEST_RUN, RUN_PAUSE, || !others_wait());
    FORKS.add_one();
    IS_COUNTED.set(true);
    wait(LONGEST, PAUSE, || !CONNECTION.is_set());
    wait(LONGEST_RUN, RUN_PAUSE, || !others_run());
}

extern "C" fn after() {
    FORKING.set(FORKING.get().saturating_sub(1));
    if FORKING.get() == 0 && IS_COUNTED.replace(false) {
        FORKS.remove_one();
    }
}

extern "C" fn in_child() {
    RUNS.set(false);
    WAITS.set(false);
    RUNNING.set(0);
    WAITING.set(0);
    // If this fork is nested in another one, the outer fork is still under way.
    FORKS.set(u64::from(IS_COUNTED.get()));
    after();
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use tokio::runtime::Runtime;
    use tokio::time::timeout;

    use super::*;

    /// These tests share the flags of this process, and some set them for a second.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        register();
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

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
        let _alone = alone();
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
    fn one_connection_at_a_time() {
        let _alone = alone();
        let held = begin().ok();
        assert!(held.is_some());
        let soon = async { timeout(Duration::from_millis(20), NoForks::begin()).await };
        assert!(runtime().block_on(soon).is_err());
        assert!(CONNECTION.is_set());
        drop(held);
        assert!(begin().is_ok());
    }

    #[test]
    fn a_fork_amid_a_fork() {
        let _alone = alone();
        before();
        // The child goes on with the outer fork.
        let status = status_of(|| {
            let is_under_way = FORKS.get() == 1;
            after();
            is_under_way && FORKS.get() == 0 && begin().is_ok()
        });
        after();
        assert_eq!(status, 0);
    }

    #[test]
    fn two_forks_at_once() {
        let _alone = alone();
        before();
        thread::scope(|scope| {
            scope.spawn(|| {
                before();
                after();
            });
        });
        assert_eq!(FORKS.get(), 1);
        after();
        assert_eq!(FORKS.get(), 0);
    }

    #[test]
    fn a_fork_does_not_wait_for_its_own_thread() {
        let _alone = alone();
        let running = Running::begin();
        // Other tests' threads may run for a while.
        let is_alone = wait(LONGEST, PAUSE, || !others_run());
        drop(running);
        // A signal handler may fork on a thread that waits.
        WAITS.set(true);
        WAITING.add_one();
        let is_first = wait(LONGEST, PAUSE, || !others_wait());
        WAITING.remove_one();
        WAITS.set(false);
        assert!(is_alone && is_first);
    }

    #[test]
    fn a_child_with_the_id_of_the_process_that_counted() {
        let _alone = alone();
        let status = status_of(|| {
            RUNNING.add_one();
            WAITING.add_one();
            FORKS.add_one();
            in_child();
            RUNNING.get() == 0 && WAITING.get() == 0 && FORKS.get() == 0
        });
        assert_eq!(status, 0);
    }

    #[test]
    fn handlers_that_were_registered_twice() {
        let _alone = alone();
        assert!(begin().is_ok());
        IS_REGISTERED.store(false, Ordering::Release);
        let opens = || begin().is_ok();
        assert_eq!(status_of(|| opens() && status_of(opens) == 0), 0);
        assert!(begin().is_ok());
    }

    /// What a child would inherit half-done.
    static IS_BUSY: AtomicBool = AtomicBool::new(false);

    /// Runs and parks until `is_over`.
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
    fn a_fork_waits_until_other_threads_are_parked() {
        let _alone = alone();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| bursts(&is_over));
            let forks = (0..50).all(|_| {
                let since = Instant::now();
                let status = status_of(|| {
                    // The child's own threads can run, and its forks wait for them.
                    let _running = Running::begin();
                    RUNNING.get() == 1 && !IS_BUSY.load(Ordering::SeqCst) && status_of(|| !RUNS.get()) == 0
                });
                // On a busy machine, the fork may have given up.
                status == 0 || since.elapsed() >= LONGEST_RUN
            });
            is_over.store(true, Ordering::SeqCst);
            assert!(forks);
        });
    }

    #[test]
    fn a_thread_waits_for_a_fork_that_is_under_way() {
        let _alone = alone();
        let waits = || {
            let has_run = AtomicBool::new(false);
            thread::scope(|scope| {
                before();
                scope.spawn(|| {
                    let _running = Running::begin();
                    has_run.store(true, Ordering::SeqCst);
                });
                while WAITING.get() == 0 && !has_run.load(Ordering::SeqCst) {
                    thread::sleep(PAUSE);
                }
                let waits = !has_run.load(Ordering::SeqCst);
                after();
                waits
            })
        };
        // On a busy machine, the thread may give up before this one looks.
        assert!((0..5).any(|_| waits()));
    }

    #[test]
    fn a_fork_lets_waiting_threads_run_first() {
        let _alone = alone();
        let has_begun = AtomicBool::new(false);
        thread::scope(|scope| {
            let since = Instant::now();
            WAITING.add_one();
            scope.spawn(|| {
                before();
                has_begun.store(true, Ordering::SeqCst);
                after();
            });
            thread::sleep(20 * PAUSE);
            let has_waited = !has_begun.load(Ordering::SeqCst) || since.elapsed() >= LONGEST_RUN;
            WAITING.remove_one();
            assert!(has_waited);
        });
    }

    /// Neither waits for the other forever: this test has to sit out both limits.
    #[test]
    fn a_thread_that_never_parks_and_a_fork_that_never_ends() {
        let _alone = alone();
        let (ends, is_over) = std::sync::mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let _running = Running::begin();
                is_over.recv().unwrap_err();
            });
            while RUNNING.get() == 0 {
                thread::sleep(PAUSE);
            }
            let status = status_of(|| true);
            drop(ends);
            assert_eq!(status, 0);
        });
        before();
        thread::scope(|scope| {
            scope.spawn(|| drop(Running::begin()));
        });
        after();
    }

    #[test]
    fn a_listener_runs_aside() {
        let _alone = alone();
        let _running = Running::begin();
        assert!(!aside(|| RUNS.get()) && RUNS.get());
    }
}
