//! Imports modules when they are first needed, but not while another thread forks.
//!
//! A fork copies the lock of a module that another thread is importing, and the child would wait for that lock forever.
//! So a fork waits for imports by other threads, and an import waits for forks by other threads. Both waits end after a
//! while, because the other thread may itself be waiting for a lock that this one holds. If a fork then copies such a
//! lock, the child raises an `ImportError` instead of waiting.
//!
//! Python itself does not protect the program's own imports from forks.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// How long a fork waits for imports by other threads.
const FORK_WAITS: Duration = Duration::from_secs(30);
/// How long an import waits for forks by other threads.
const IMPORT_WAITS: Duration = Duration::from_secs(2);

/// How many imports and forks are in progress. A signal handler may begin one amid another on the same thread.
#[derive(Debug, Clone, Copy)]
struct Count {
    importing: u32,
    forking: u32,
}

#[derive(Debug)]
struct State {
    all: Count,
    /// Whether this process was forked amid another thread's import.
    is_torn: bool,
}

/// Only threads attached to the interpreter take this lock, and no thread detaches while it holds the lock. So a child
/// never inherits a lock held by another thread.
static STATE: Mutex<State> = Mutex::new(State { all: Count { importing: 0, forking: 0 }, is_torn: false });

thread_local! {
    static MINE: Cell<Count> = const { Cell::new(Count { importing: 0, forking: 0 }) };
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
    if state().is_torn && !is_imported(py, name)? {
        return Err(PyImportError::new_err(format!(
            "cannot import {name}: this process was forked while another thread was importing a module, and the \
             import might never end; open the first lease or counter before forking"
        )));
    }
    // The import may need a lock that another module's hook takes before a fork, as the hook of `logging` does. The hook
    // registered last runs first, so a fork waits for the import before it takes that lock.
    register(py)?;
    let importing = Importing::begin(py);
    let module = py.import(name)?.into_any();
    drop(importing);
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
    // Windows has no forks.
    if let Some(register) = py.import("os")?.getattr_opt("register_at_fork")? {
        // A signal handler that raises could end a hook written in Python before its first line.
        let hooks = PyDict::new(py);
        hooks.set_item("before", wrap_pyfunction!(before_fork, py)?)?;
        hooks.set_item("after_in_parent", wrap_pyfunction!(after_in_parent, py)?)?;
        hooks.set_item("after_in_child", wrap_pyfunction!(after_in_child, py)?)?;
        register.call((), Some(&hooks))?;
    }
    Ok(())
}

#[pyfunction]
fn before_fork(py: Python<'_>) {
    if MINE.get().forking > 0 {
        // Another hook has already waited, for this fork or for an outer one.
        return for_both(&mut state(), |count| count.forking += 1);
    }
    wait(py, FORK_WAITS, |count| &mut count.importing, |count| &mut count.forking);
}

#[pyfunction]
fn after_in_parent() {
    let mut state = state();
    // Hooks that were registered amid the fork run only after it.
    if MINE.get().forking > 0 {
        for_both(&mut state, |count| count.forking -= 1);
    }
}

#[pyfunction]
fn after_in_child() {
    after_in_parent();
    let (mut state, mine) = (state(), MINE.get());
    // The other threads do not exist in this process.
    state.is_torn |= state.all.importing > mine.importing;
    state.all = mine;
}

/// Counts an import until it is dropped.
struct Importing(());

impl Importing {
    fn begin(py: Python<'_>) -> Self {
        wait(py, IMPORT_WAITS, |count| &mut count.forking, |count| &mut count.importing);
        Self(())
    }
}

impl Drop for Importing {
    fn drop(&mut self) {
        for_both(&mut state(), |count| count.importing -= 1);
    }
}

/// Waits until no other thread is counted in `others`, then counts this one in `begun`.
fn wait(
    py: Python<'_>,
    longest: Duration,
    others: fn(&mut Count) -> &mut u32,
    begun: fn(&mut Count) -> &mut u32,
) {
    let since = Instant::now();
    loop {
        let mut state = state();
        if *others(&mut state.all) <= *others(&mut MINE.get()) || since.elapsed() >= longest {
            for_both(&mut state, |count| *begun(count) += 1);
            return;
        }
        drop(state);
        py.detach(|| thread::sleep(Duration::from_millis(1)));
    }
}

fn for_both(state: &mut State, mut change: impl FnMut(&mut Count)) {
    let mut mine = MINE.get();
    change(&mut mine);
    MINE.set(mine);
    change(&mut state.all);
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether a module's import is complete, so that importing it again takes no lock.
fn is_imported(py: Python<'_>, name: &str) -> PyResult<bool> {
    let modules = py.import("sys")?.getattr("modules")?;
    let module = modules.cast::<PyDict>()?.get_item(name)?;
    let Some(module) = module.filter(|it| !it.is_none()) else { return Ok(false) };
    let Some(spec) = module.getattr_opt("__spec__")? else { return Ok(true) };
    spec.getattr_opt("_initializing")?.map_or(Ok(true), |it| Ok(!it.is_truthy()?))
}
