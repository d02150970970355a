//! Turns the core's errors into Python exceptions.

use std::cell::RefCell;

use polyflake::{Error, ErrorCode};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

thread_local! {
    /// An exception raised by the caller's clock, kept until the call on that thread returns.
    static CLOCK_RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Keeps an exception raised by the caller's clock as the cause of the `clock_failed` error that follows.
pub(crate) fn clock_raised(raised: PyErr) {
    CLOCK_RAISED.set(Some(raised));
}

/// Creates the exception for an error from the core.
pub(crate) fn exception(error: &Error) -> PyErr {
    Python::attach(|py| {
        let cause = match error.code() {
            ErrorCode::ClockFailed => CLOCK_RAISED.take(),
            _ => None,
        };
        match cause {
            // KeyboardInterrupt and SystemExit are not failures, so they pass through.
            Some(raised) if !raised.is_instance_of::<PyException>(py) => raised,
            cause => build(py, error, cause).unwrap_or_else(|failed| failed),
        }
    })
}

fn build(py: Python<'_>, error: &Error, cause: Option<PyErr>) -> PyResult<PyErr> {
    let message = match &cause {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    };
    let arguments = PyDict::new(py);
    if let Some(ms) = error.behind_ms() {
        arguments.set_item("behind_ms", ms)?;
    }
    if let Some(ms) = error.retry_after_ms() {
        arguments.set_item("retry_after_ms", ms)?;
    }
    let class = class(py, error.code())?;
    let raised = PyErr::from_value(class.call((message,), Some(&arguments))?);
    raised.set_cause(py, cause);
    Ok(raised)
}

/// Returns the exception class for a code, which the Python half of the package defines.
pub(crate) fn class(py: Python<'_>, code: ErrorCode) -> PyResult<Bound<'_, PyType>> {
    static BY_CODE: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let by_code = BY_CODE.get_or_try_init(py, || -> PyResult<_> {
        let found = py.import("polyflake._errors")?.getattr("BY_CODE")?;
        Ok(found.cast_into::<PyDict>()?.unbind())
    })?;
    Ok(by_code.bind(py).as_any().get_item(code.number())?.cast_into::<PyType>()?)
}

/// Lets `?` turn the core's errors into exceptions.
pub(crate) trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T, Error> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| exception(&error))
    }
}
