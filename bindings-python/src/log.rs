//! Events of leases, counters and sequences, as lines of the logger `polyflake`.
//!
//! The thread that keeps them must not wait for the GIL. So it only puts an event into a queue, and makes sure that
//! there is a Python thread, which logs the queue and then ends.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use polyflake_coordination::Event;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use crate::interpreter;
use crate::process::PerProcess;

/// How long the end of a program waits for a handler that is logging.
const AT_EXIT: Duration = Duration::from_secs(2);
/// Of `logging`.
const WARNING: u8 = 30;
const INFO: u8 = 20;

/// The events of a process.
#[derive(Default)]
struct Log {
    line: Mutex<Line>,
    changed: Condvar,
}

#[derive(Default)]
struct Line {
    events: VecDeque<Event>,
    /// Whether there is a thread for them, or one that starts it.
    has_thread: bool,
    /// How many threads are starting one: they may still be in the interpreter when that one has ended.
    starters: u32,
    /// Whether the interpreter is about to end: nothing is logged any more.
    is_over: bool,
}

static LOG: PerProcess<Log> = PerProcess::new();

/// Logs events from now on. Called before each of them, because nothing is imported before the first.
///
/// Only in the main interpreter: a thread that is not Python's attaches to that one, and another must not end before the
/// threads of Python that it has.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    // No lock, since a fork in the middle of this would leave it locked in the child. Doing it twice is harmless.
    static IS_READY: AtomicBool = AtomicBool::new(false);
    if !IS_READY.load(Ordering::Acquire) && interpreter::is_main(py) {
        crate::load(py, "polyflake._log")?;
        let at_exit = PyCFunction::new_closure(py, None, None, |arguments, _| end(arguments.py()))?;
        py.import("atexit")?.call_method1("register", (at_exit,))?;
        polyflake_coordination::set_listener(Some(Box::new(|event| LOG.get().put(event))));
        IS_READY.store(true, Ordering::Release);
    }
    Ok(())
}

impl Log {
    /// Nobody waits for the GIL with this lock.
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
            // If no thread can be started, the next event starts one, or the end of the program logs it.
            if starter.spawn(|| self.start()).is_ok() {
                line.has_thread = true;
                line.starters += 1;
            }
        }
    }

    /// Starts Python's thread. The interpreter does not end meanwhile: see `end`.
    fn start(&'static self) {
        let started = Python::try_attach(|py| {
            let started = py.import("polyflake._log").and_then(|module| {
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

    /// What `polyflake._log` asks for the next event.
    fn take_function<'py>(&'static self, py: Python<'py>) -> PyResult<Bound<'py, PyCFunction>> {
        PyCFunction::new_closure(py, None, None, |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
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

/// At the end of the program: logs what is in line, and lets no thread come to an interpreter that has ended.
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
    py.import("polyflake._log")?.call_method1("log", (log.take_function(py)?,))?;
    Ok(())
}
