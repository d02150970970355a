//! Lets an asyncio event loop await counter and sequence calls that wait for a store.
//!
//! One thread serves all such calls. It is not a Python thread, and must not wait for the GIL. It puts each result into
//! a queue, from which a Python thread passes it on to the event loop. The Python thread exits some time after the
//! last call.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use polyflake::{Error, ErrorCode, ThisProcess};
use polyflake_coordination::{PerProcess, forked_during_call};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use crate::errors::exception;
use crate::load::load;

/// How long the Python thread waits for another call before it exits.
const IDLE: Duration = Duration::from_secs(10);
/// How long an exiting program waits for the Python thread.
const AT_EXIT: Duration = Duration::from_secs(2);

/// Converts a call's result to a Python object.
type Given = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// A ticket, and the result or exception of its call.
type Told = (u64, Option<Py<PyAny>>, Option<Py<PyAny>>);

/// All the calls being awaited in a process.
#[derive(Default)]
struct Calls {
    line: Mutex<Line>,
    changed: Condvar,
}

#[derive(Default)]
struct Line {
    /// The results to pass on, with their calls' tickets.
    given: VecDeque<(u64, Given)>,
    /// The number of calls that have no result yet.
    pending: usize,
    has_thread: bool,
    /// Whether the interpreter is about to shut down, in which case no more results are passed on.
    is_over: bool,
}

static CALLS: PerProcess<Calls> = PerProcess::new();

/// Creates the coroutine for a call. It returns the result of the method `now`, or awaits the call that the method
/// `later` starts.
pub(crate) fn coroutine<'py>(
    object: &Bound<'py, PyAny>,
    [now, later]: [Option<&str>; 2],
    arguments: &[&Bound<'py, PyAny>],
) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    let method = |name: Option<&str>| name.map(|name| object.getattr(name)).transpose();
    let functions = [method(now)?, method(later)?];
    let functions = functions.iter().map(|it| it.clone().into_pyobject(py)).collect::<Result<Vec<_>, _>>()?;
    let arguments = functions.into_iter().chain(arguments.iter().map(|&it| it.clone()));
    // asyncio imports `logging`, which registers a hook. Import it first, so that ours is registered last: see `load`.
    load(py, "logging")?;
    load(py, "polyflake._awaited")?.getattr("given")?.call1(PyTuple::new(py, arguments.collect::<Vec<_>>())?)
}

/// Starts a call whose result goes to the waiter with this ticket.
///
/// Neither `call` nor `into_py` may hold a Python object. If a thread without the GIL dropped the object, PyO3 would take
/// a lock, and a child forked at that moment would wait for the lock forever.
pub(crate) fn begin<T: Send + 'static>(
    py: Python<'_>,
    ticket: u64,
    call: impl Future<Output = Result<T, Error>> + Send + 'static,
    into_py: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Waiter> {
    prepare(py)?;
    let calls = CALLS.get(|_| Calls::default());
    let (is_gone, process) = (Arc::new(AtomicBool::new(false)), ThisProcess::now());
    let gone = Arc::clone(&is_gone);
    let done = move |outcome: Option<Result<T, Error>>| {
        let given: Given = Box::new(move |py| match outcome {
            Some(Ok(value)) => into_py(py, value),
            Some(Err(error)) => Err(exception(&error)),
            None => Err(exception(&Error::from_outside(ErrorCode::Internal, "the call panicked"))),
        });
        let mut line = calls.line();
        line.pending -= 1;
        line.given.push_back((ticket, given));
        calls.changed.notify_all();
    };
    calls.line().pending += 1;
    if let Err(error) = polyflake_coordination::spawn(call, move || gone.load(Ordering::Relaxed), done) {
        calls.line().pending -= 1;
        return Err(exception(&error));
    }
    calls.start(py)?;
    Ok(Waiter { is_gone, process })
}

/// Tracks whether anyone is still waiting for a call.
#[pyclass(frozen, module = "polyflake._polyflake", name = "_Waiter")]
pub(crate) struct Waiter {
    is_gone: Arc<AtomicBool>,
    process: ThisProcess,
}

#[pymethods]
impl Waiter {
    /// Tells the call that nobody is waiting for it any more. Fails in a child if a signal handler forked during the call:
    /// the parent's event loop returns the result.
    fn end(&self) -> PyResult<()> {
        self.is_gone.store(true, Ordering::Relaxed);
        if self.process.is_alive() { Ok(()) } else { Err(exception(&forked_during_call())) }
    }
}

/// Registers `end`. No lock is taken, because a fork halfway through would leave the lock held in the child.
/// Registering it twice is harmless.
fn prepare(py: Python<'_>) -> PyResult<()> {
    static IS_READY: AtomicBool = AtomicBool::new(false);
    if !IS_READY.load(Ordering::Acquire) {
        let at_exit = PyCFunction::new_closure(py, None, None, |arguments, _| end(arguments.py()))?;
        load(py, "atexit")?.call_method1("register", (at_exit,))?;
        IS_READY.store(true, Ordering::Release);
    }
    Ok(())
}

impl Calls {
    /// Locks the queue. A thread that holds this lock never waits for the GIL.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes sure that the Python thread is running.
    fn start(&'static self, py: Python<'_>) -> PyResult<()> {
        let mut line = self.line();
        let is_there = line.has_thread || line.is_over;
        line.has_thread |= !is_there;
        drop(line);
        if is_there {
            return Ok(());
        }
        let take = PyCFunction::new_closure(py, None, None, |arguments, _: Option<&Bound<'_, PyDict>>| {
            self.take(arguments.py())
        })?;
        let started = load(py, "polyflake._awaited")?.call_method1("start", (take,));
        if started.is_err() {
            self.line().has_thread = false;
        }
        started.map(drop)
    }

    /// Returns the next ticket, and the result or exception of its call. Returns `None` if the thread must exit.
    fn take(&self, py: Python<'_>) -> Option<Told> {
        let (ticket, given) = py.detach(|| self.wait())?;
        Some(match given(py) {
            Ok(value) => (ticket, Some(value), None),
            Err(raised) => (ticket, None, Some(raised.into_value(py).into_any())),
        })
    }

    fn wait(&self) -> Option<(u64, Given)> {
        let (until, mut line) = (Instant::now() + IDLE, self.line());
        loop {
            if let Some(given) = line.given.pop_front().filter(|_| !line.is_over) {
                return Some(given);
            }
            let left = until.saturating_duration_since(Instant::now());
            if line.is_over || (left.is_zero() && line.pending == 0) {
                line.has_thread = false;
                self.changed.notify_all();
                return None;
            }
            // Every pending call finishes eventually, and then notifies `changed`.
            let longest = if left.is_zero() { IDLE } else { left };
            line = self.changed.wait_timeout(line, longest).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Runs when the program exits, because no thread may enter an interpreter that has shut down.
fn end(py: Python<'_>) {
    let Some(calls) = CALLS.present() else { return };
    py.detach(|| {
        let mut line = calls.line();
        line.is_over = true;
        calls.changed.notify_all();
        drop(calls.changed.wait_timeout_while(line, AT_EXIT, |line| line.has_thread));
    });
}
