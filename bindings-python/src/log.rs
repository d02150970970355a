//! Logs events from leases, counters and sequences to the logger `polyflake`.
//!
//! The keeper's thread must not wait for the GIL. It only puts events into a queue, and makes sure that a Python thread
//! is running, which logs the queued events and then exits.

use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use polyflake_coordination::{Event, PerProcess};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use crate::interpreter;
use crate::load::{attach, load};

/// How long an exiting program waits for a handler that is still logging.
const AT_EXIT: Duration = Duration::from_secs(2);
/// Levels of the `logging` module.
const WARNING: u8 = 30;
const INFO: u8 = 20;

/// A process's events that have yet to be logged.
#[derive(Default)]
struct Log {
    line: Mutex<Line>,
    changed: Condvar,
}

#[derive(Default)]
struct Line {
    events: VecDeque<Event>,
    /// Whether a thread is logging the events, or is about to start the thread that will.
    has_thread: bool,
    /// The number of threads that are starting a logging thread. They may still be in the interpreter after the logging
    /// thread has exited.
    starters: u32,
    /// Whether the interpreter is about to shut down, so that nothing more is logged.
    is_over: bool,
}

static LOG: PerProcess<Log> = PerProcess::new();

/// Makes sure that events are logged. Called before anything that can emit events is opened, so that programs without
/// events import nothing.
///
/// Works only in the main interpreter. A thread that Python did not create attaches to the main interpreter, and any
/// other interpreter must not shut down before its Python threads have exited.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    // No lock is taken, because a fork halfway through would leave the lock held in the child. Registering it twice
    // is harmless.
    static IS_READY: AtomicBool = AtomicBool::new(false);
    if !IS_READY.load(Ordering::Acquire) && interpreter::is_main(py) {
        load(py, "polyflake._log")?;
        let at_exit = PyCFunction::new_closure(py, None, None, |arguments, _| end(arguments.py()))?;
        load(py, "atexit")?.call_method1("register", (at_exit,))?;
        polyflake_coordination::set_listener(Some(Box::new(|event| LOG.get(|_| Log::default()).put(event))));
        IS_READY.store(true, Ordering::Release);
    }
    Ok(())
}

impl Log {
    /// Locks the queue. A thread that holds this lock never waits for the GIL.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&'static self, event: &Event) {
        let mut line = self.line();
        if line.is_over {
            return;
        }
        line.events.push_back(event.clone());
        if !line.has_thread {
            let starter = thread::Builder::new().name("polyflake-log".into());
            // If no thread can be started, the next event triggers another attempt, or the event is logged when the
            // program exits.
            if starter.spawn(|| self.start()).is_ok() {
                line.has_thread = true;
                line.starters += 1;
            }
        }
    }

    /// Starts the Python thread. The interpreter does not shut down while this is running: see `end`.
    fn start(&'static self) {
        let started = attach(|py| {
            let started = load(py, "polyflake._log").and_then(|module| {
                module.call_method1("start", (self.take_function(py)?,))?;
                Ok(())
            });
            started.map_err(|raised| raised.write_unraisable(py, None))
        });
        let mut line = self.line();
        line.starters -= 1;
        if !matches!(started, Some(Ok(()))) {
            line.has_thread = false;
        }
        self.changed.notify_all();
    }

    /// Creates the function that `polyflake._log` calls to fetch the next event.
    fn take_function<'py>(&'static self, py: Python<'py>) -> PyResult<Bound<'py, PyCFunction>> {
        PyCFunction::new_closure(py, None, None, |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
            // A logging handler may have forked in the logging thread.
            let is_mine = LOG.present().is_some_and(|it| ptr::eq(it, self));
            if !is_mine {
                return None;
            }
            let mut line = self.line();
            let event = line.events.pop_front();
            if event.is_none() {
                line.has_thread = false;
                self.changed.notify_all();
            }
            event.map(|event| {
                let level = if event.kind.is_warning() { WARNING } else { INFO };
                (level, event.message, event.kind.name(), event.node, event.store)
            })
        })
    }
}

/// Runs when the program exits. Logs the queued events, and keeps threads from entering an interpreter that has shut
/// down.
fn end(py: Python<'_>) -> PyResult<()> {
    let Some(log) = LOG.present() else { return Ok(()) };
    log.line().is_over = true;
    py.detach(|| {
        let is_busy = |line: &mut Line| line.has_thread || line.starters > 0;
        drop(log.changed.wait_timeout_while(log.line(), AT_EXIT, is_busy));
    });
    if log.line().has_thread {
        return Ok(());
    }
    load(py, "polyflake._log")?.call_method1("log", (log.take_function(py)?,))?;
    Ok(())
}
