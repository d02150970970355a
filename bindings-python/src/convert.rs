//! Python's values as the core's, and instants as `datetime`.

use polyflake::{ErrorCode, Layout, Node, Number, UnixTime};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyMapping, PyString};

use crate::errors::{self, OrRaise};
use crate::layout::PyLayout;

static INDEX: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// An `int` (or what has `__index__`, such as NumPy's) of any size. A bool is no integer.
pub(crate) fn number(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Number> {
    if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyFloat>() {
        return Err(wrong_type(value, what, "an int"));
    }
    if let Ok(fits) = value.extract::<u64>() {
        return Ok(fits.into());
    }
    let Ok(int) = INDEX.import(value.py(), "operator", "index")?.call1((value,)) else {
        return Err(wrong_type(value, what, "an int"));
    };
    if let Ok(fits) = int.extract::<i64>() {
        return Ok(fits.into());
    }
    // Python refuses to write the digits of very long integers.
    Ok(match int.str() {
        Ok(digits) => Number::parse(digits.to_str()?),
        Err(_) => Number::parse(&format!("an int of {} bits", int.call_method0("bit_length")?)),
    })
}

pub(crate) fn layout(value: &Bound<'_, PyAny>) -> PyResult<Layout> {
    if let Ok(layout) = value.cast::<PyLayout>() {
        return Ok(layout.get().0);
    }
    let Ok(text) = value.cast::<PyString>() else {
        return Err(wrong_type(value, "layout", "a str or a Layout"));
    };
    Layout::parse(text.to_str()?).or_raise()
}

pub(crate) fn node(value: &Bound<'_, PyAny>) -> PyResult<Node> {
    if let Ok(fields) = value.cast::<PyMapping>() {
        let mut node = Node::NO_FIELDS;
        for pair in fields.items()? {
            let (name, value) = pair.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            let Ok(name) = name.cast::<PyString>() else {
                return Err(wrong_type(&name, "the name of a node field", "a str"));
            };
            node = node.with_field(name.to_str()?, number(&value, "a node field")?);
        }
        return Ok(node);
    }
    if value.is_instance_of::<PyString>() {
        return Err(wrong_type(value, "node", "an int or a mapping of field to int"));
    }
    match number(value, "node") {
        Ok(whole) => Ok(whole.into()),
        Err(_) => Err(wrong_type(value, "node", "an int or a mapping of field to int")),
    }
}

/// An aware `datetime`, or an int of Unix ms.
pub(crate) fn unix_time(value: &Bound<'_, PyAny>) -> PyResult<UnixTime> {
    let py = value.py();
    if !value.is_instance(datetime(py)?.bind(py))? {
        return match number(value, "time") {
            Ok(ms) => Ok(UnixTime::from_ms(ms)),
            Err(_) => Err(wrong_type(value, "time", "a datetime with a time zone, or an int of Unix ms")),
        };
    }
    if value.call_method0("utcoffset")?.is_none() {
        let message = format!(
            "invalid_option: time is {value}, which has no time zone and so names no instant; \
             give one, such as datetime.now(timezone.utc)"
        );
        return Err(PyErr::from_value(errors::class(py, ErrorCode::InvalidOption)?.call1((message,))?));
    }
    let microsecond = timedelta(py)?.call1(py, (0, 0, 1))?;
    let us = value.sub(epoch(py)?)?.floor_div(microsecond)?;
    Ok(UnixTime::from_us(us.extract()?))
}

/// An instant as a `datetime` in UTC, or `None` past the year 9999, where `datetime` ends.
pub(crate) fn to_datetime(py: Python<'_>, unix_ms: u64) -> PyResult<Option<Bound<'_, PyAny>>> {
    let milliseconds = PyDict::new(py);
    milliseconds.set_item("milliseconds", unix_ms)?;
    let time = timedelta(py)?
        .bind(py)
        .call((), Some(&milliseconds))
        .and_then(|after| epoch(py)?.bind(py).add(after));
    match time {
        Ok(time) => Ok(Some(time)),
        Err(error) if error.is_instance_of::<PyOverflowError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a caller's clock returned, as Unix ms.
pub(crate) fn clock_reading(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let is_int = value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
    value.extract::<i64>().ok().filter(|_| is_int).ok_or_else(|| {
        let text = value.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
        PyTypeError::new_err(format!("the clock returned {text}; it must return an int of Unix ms"))
    })
}

pub(crate) fn wrong_type(value: &Bound<'_, PyAny>, what: &str, takes: &str) -> PyErr {
    let class = value.get_type();
    let class = class.name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{what} must be {takes}, not {class}"))
}

fn datetime(py: Python<'_>) -> PyResult<&Py<PyAny>> {
    static DATETIME: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    DATETIME.get_or_try_init(py, || Ok(py.import("datetime")?.getattr("datetime")?.unbind()))
}

fn timedelta(py: Python<'_>) -> PyResult<&Py<PyAny>> {
    static TIMEDELTA: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    TIMEDELTA.get_or_try_init(py, || Ok(py.import("datetime")?.getattr("timedelta")?.unbind()))
}

/// 1970-01-01T00:00Z.
fn epoch(py: Python<'_>) -> PyResult<&Py<PyAny>> {
    static EPOCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    EPOCH.get_or_try_init(py, || {
        let utc = py.import("datetime")?.getattr("timezone")?.getattr("utc")?;
        datetime(py)?.call1(py, (1970, 1, 1, 0, 0, 0, 0, utc))
    })
}
