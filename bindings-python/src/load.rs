//! Keeps forks apart from imports, and from threads that attach to the interpreter.
//!
//! A fork copies the lock of a module that another thread is importing, and the child would wait for that lock forever.
//! The same goes for the interpreter's own lock, which a thread that Python did not create takes while it attaches,
//! before it waits for the GIL. So a fork waits until no other thread is importing or attaching, and threads that
//! import or attach wait for other threads' forks. Every wait ends after a while, because the other thread may itself
//! be waiting for a lock that this one holds. If a fork then copies the lock of a module, the child raises an
//! `ImportError` instead of waiting.
//!
//! Python itself does not protect the program's own imports from forks.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// How long a fork waits for other threads, and how long a thread that holds no lock waits for forks.
const FORK_WAITS: Duration = Duration::from_secs(30);
/// How long an import waits for forks by other threads.
const IMPORT_WAITS: Duration = Duration::from_secs(2);

/// One import, or one thread that attaches. Forks wait for both. `ALL` counts these, waiting forks and other forks in
/// separate bits.
const BUSY: u64 = 1;
/// One fork that waits. Meanwhile no thread attaches, so that a stream of events cannot delay the fork.
const WAITING: u64 = 1 << 32;
/// One fork that has finished waiting.
const FORK: u64 = 1 << 48;
const ALL_BUSY: u64 = WAITING - 1;
const ALL_WAITING: u64 = (FORK - 1) & !ALL_BUSY;
const ALL_FORKS: u64 = !(FORK - 1);

/// Counts the imports, attaching threads and forks in this process. A mutex would not do: a thread without the GIL
/// could hold it during a fork, and the child would inherit it locked.
static ALL: AtomicU64 = AtomicU64::new(0);
/// Whether this process was forked amid another thread's import.
static IS_TORN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// This thread's part of `ALL`. A signal handler may start an import or a fork during another one.
    static MINE: Cell<u64> = const { Cell::new(0) };
}

/// The imported modules. They are kept here, because a program may remove a module from `sys.modules`, and importing it
/// again would create a second one.
static LOADED: PyOnceLock<Py<PyDict>> = PyOnceLock::new();

/// Import a module on first use.
#[pyfunction(name = "_load")]
pub(crate) fn load<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    let loaded = LOADED.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
    if let Some(module) = loaded.get_item(name)? {
        return Ok(module);
    }
    if IS_TORN.load(Ordering::Relaxed) && !is_imported(py, name)? {
        return Err(PyImportError::new_err(format!(
            "cannot import {name}: this process was forked while another thread was importing a module, and the \
             import might never end; open the first lease or counter before forking"
        )));
    }
    // The import may need a lock that another module's hook takes before a fork, as the hook of `logging` does. The hook
    // registered last runs first, so a fork waits for the import before it takes that lock.
    register(py)?;
    let busy = Busy::begin(ALL_FORKS, IMPORT_WAITS, || py.detach(pause));
    let module = py.import(name)?.into_any();
    drop(busy);
    // A signal handler that runs amid the same import gets an incomplete module, and the import may still fail.
    if is_imported(py, name)? {
        loaded.set_item(name, &module)?;
    }
    Ok(module)
}

/// Makes forks and imports wait for each other.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    LOADED.get_or_init(py, || PyDict::new(py).unbind());
    register(py)
}

/// Registers the hooks. They only count, so they can be registered several times.
fn register(py: Python<'_>) -> PyResult<()> {
    #[cfg(unix)]
    forget_other_threads_in_children();
    // Windows has no forks.
    if let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? {
        // A signal handler that raises could end a hook written in Python before its first line.
        let hooks = PyDict::new(py);
        hooks.set_item("before", wrap_pyfunction!(before_fork, py)?)?;
        hooks.set_item("after_in_parent", wrap_pyfunction!(after_fork, py)?)?;
        hooks.set_item("after_in_child", wrap_pyfunction!(after_fork, py)?)?;
        register.call((), Some(&hooks))?;
    }
    Ok(())
}

#[pyfunction]
fn before_fork(py: Python<'_>) {
    if MINE.get() & ALL_FORKS > 0 {
        // Another hook has already waited, for this fork or for an outer one.
        return add(FORK);
    }
    add(WAITING);
    begin(FORK - WAITING, ALL_BUSY, FORK_WAITS, || py.detach(pause));
}

#[pyfunction]
fn after_fork() {
    // Hooks that were registered amid the fork run only after it.
    if MINE.get() & ALL_FORKS > 0 {
        end(FORK);
    }
}

/// Stops counting threads that do not exist in a child. The handler runs before any Python code there, because the
/// program's own hooks may start threads.
#[cfg(unix)]
fn forget_other_threads_in_children() {
    static IS_REGISTERED: AtomicBool = AtomicBool::new(false);

    extern "C" fn in_child() {
        let others = ALL.swap(MINE.get(), Ordering::SeqCst).wrapping_sub(MINE.get());
        if others & ALL_BUSY > 0 {
            IS_TORN.store(true, Ordering::Relaxed);
        }
    }

    if !IS_REGISTERED.load(Ordering::Acquire) {
        // SAFETY: the handler only stores to atomics, running it twice changes nothing, and Python never unloads it.
        let refused = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        // This fails only if memory runs out. The next call tries again.
        IS_REGISTERED.store(refused == 0, Ordering::Release);
    }
}

/// Attaches a thread that Python did not create and that holds no lock, unless the interpreter is shutting down.
pub(crate) fn attach<T>(call: impl FnOnce(Python<'_>) -> T) -> Option<T> {
    let _busy = Busy::begin(ALL_FORKS | ALL_WAITING, FORK_WAITS, pause);
    Python::try_attach(call)
}

/// Makes forks by other threads wait until it is dropped.
struct Busy(());

impl Busy {
    fn begin(others: u64, longest: Duration, pause: impl Fn()) -> Self {
        begin(BUSY, others, longest, pause);
        Self(())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        end(BUSY);
    }
}

/// Waits until other threads have nothing in progress that `others` covers, then counts `mine`.
fn begin(mine: u64, others: u64, longest: Duration, pause: impl Fn()) {
    let since = Instant::now();
    loop {
        let all = ALL.load(Ordering::SeqCst);
        if (all - MINE.get()) & others > 0 && since.elapsed() < longest {
            pause();
        } else if ALL.compare_exchange(all, all + mine, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            return MINE.set(MINE.get() + mine);
        }
    }
}

fn add(mine: u64) {
    ALL.fetch_add(mine, Ordering::SeqCst);
    MINE.set(MINE.get() + mine);
}

fn end(mine: u64) {
    ALL.fetch_sub(mine, Ordering::SeqCst);
    MINE.set(MINE.get() - mine);
}

fn pause() {
    thread::sleep(Duration::from_millis(1));
}

/// Returns whether a module's import is complete, so that importing it again takes no lock.
fn is_imported(py: Python<'_>, name: &str) -> PyResult<bool> {
    let modules = py.import("sys")?.getattr("modules")?;
    let module = modules.cast::<PyDict>()?.get_item(name)?;
    let Some(module) = module.filter(|it| !it.is_none()) else { return Ok(false) };
    let Some(spec) = module.getattr_opt("__spec__")? else { return Ok(true) };
    spec.getattr_opt("_initializing")?.map_or(Ok(true), |it| Ok(!it.is_truthy()?))
}
