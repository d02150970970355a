//! Converts Python values to core types, and Unix times to `datetime`.

use std::borrow::Cow;
use std::path::PathBuf;

use chrono::{DateTime, Datelike, Timelike};
use polyflake::{ErrorCode, Node, Number, UnixTime};
use pyo3::buffer::{ElementType, PyUntypedBuffer};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTzInfo};

use crate::errors;

static INDEX: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Converts an `int` of any size, or an object with `__index__`, such as a NumPy integer. A bool is rejected.
pub(crate) fn number(value: &Bound<'_, PyAny>, what: &str) -> PyResult<Number> {
    number_or(value, what, "an int")
}

/// Like `number`, for an argument that also accepts other types.
pub(crate) fn number_or(value: &Bound<'_, PyAny>, what: &str, takes: &str) -> PyResult<Number> {
    if let Ok(int) = value.cast_exact::<PyInt>() {
        // Not u64: converting to it takes Python five times as many instructions.
        if let Ok(fits) = int.extract::<i64>() {
            return Ok(fits.into());
        }
    }
    if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyFloat>() {
        return Err(wrong_type(value, what, takes));
    }
    let int = INDEX.import(value.py(), "operator", "index")?.call1((value,)).map_err(|raised| {
        // Any other exception from `__index__` is passed on to the caller.
        if raised.is_instance_of::<PyTypeError>(value.py()) { wrong_type(value, what, takes) } else { raised }
    })?;
    if let Ok(fits) = int.extract::<u64>() {
        return Ok(fits.into());
    }
    if let Ok(fits) = int.extract::<i64>() {
        return Ok(fits.into());
    }
    // Python refuses to convert very long integers to strings.
    Ok(match int.str() {
        Ok(digits) => Number::parse(digits.to_str()?),
        Err(_) => Number::parse(&format!("an int of {} bits", int.call_method0("bit_length")?)),
    })
}

/// Converts a `str`. Lone surrogates, which UTF-8 cannot encode, become U+FFFD, which all parsers in the core reject.
pub(crate) fn text<'a>(value: &'a Bound<'_, PyAny>, what: &str) -> PyResult<Cow<'a, str>> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_string_lossy()),
        Err(_) => Err(wrong_type(value, what, "a str")),
    }
}

/// Converts the name of a counter or of sequences. A name that UTF-8 cannot encode is rejected, because several such
/// names would look the same to the core.
pub(crate) fn name<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    value.cast::<PyString>().map_err(|_| wrong_type(value, "name", "a str"))?.to_str()
}

/// Converts a `str` or an `os.PathLike`.
pub(crate) fn path(value: &Bound<'_, PyAny>, what: &str) -> PyResult<PathBuf> {
    value.extract().map_err(|raised: PyErr| {
        // Any other exception from `__fspath__` is passed on to the caller.
        if raised.is_instance_of::<PyTypeError>(value.py()) {
            wrong_type(value, what, "a str or an os.PathLike")
        } else {
            raised
        }
    })
}

pub(crate) fn node(value: &Bound<'_, PyAny>) -> PyResult<Node> {
    if let Some(items) = items(value)? {
        let mut node = Node::NO_FIELDS;
        for pair in items.try_iter()? {
            let (name, value) = pair?.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
            let name = text(&name, "the name of a node field")?;
            let value = of_host(&value).map_or_else(|| number(&value, "a node field"), Ok)?;
            node = node.with_field(&name, value);
        }
        return Ok(node);
    }
    let value =
        of_host(value).map_or_else(|| number_or(value, "node", "an int or a mapping of field to int"), Ok);
    value.map(Node::from)
}

/// Returns the number that "ordinal" or "ip" stands for, or `None` for any other value.
fn of_host(value: &Bound<'_, PyAny>) -> Option<Number> {
    Number::of_host(&value.cast::<PyString>().ok()?.to_string_lossy())
}

/// Returns a list of a mapping's items, or `None` for any other value.
pub(crate) fn items<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let is_mapping = value.is_instance_of::<PyDict>() || value.is_instance(mapping(value.py())?)?;
    is_mapping.then(|| value.py().get_type::<PyList>().call1((value.call_method0("items")?,))).transpose()
}

pub(crate) fn is_sequence(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.is_instance_of::<PyList>() || value.is_instance(sequence(value.py())?)?)
}

/// Converts an aware `datetime`, or an int of Unix ms.
pub(crate) fn unix_time(value: &Bound<'_, PyAny>) -> PyResult<UnixTime> {
    let py = value.py();
    if !value.is_instance(datetime(py)?.bind(py))? {
        let ms = number_or(value, "time", "a datetime with a time zone, or an int of Unix ms")?;
        return Ok(UnixTime::from_ms(ms));
    }
    if value.call_method0("utcoffset")?.is_none() {
        let message = format!(
            "invalid_option: time is {value}, which has no time zone; \
             give one, such as datetime.now(timezone.utc)"
        );
        return Err(PyErr::from_value(errors::class(py, ErrorCode::InvalidOption)?.call1((message,))?));
    }
    let microsecond = timedelta(py)?.call1(py, (0, 0, 1))?;
    let us = value.sub(epoch(py)?)?.floor_div(microsecond)?;
    Ok(UnixTime::from_us(us.extract()?))
}

/// Converts a Unix time to a `datetime` in UTC, or to `None` past the year 9999, the end of its range.
pub(crate) fn to_datetime(py: Python<'_>, unix_ms: u64) -> PyResult<Option<Bound<'_, PyAny>>> {
    let time = i64::try_from(unix_ms).ok().and_then(DateTime::from_timestamp_millis);
    let Some(time) = time.filter(|time| time.year() <= 9999) else { return Ok(None) };
    // This is the constructor form that pickles use, with the parts passed as bytes. Passing eight arguments would
    // nearly double the time that `decode(id).time` takes. Python keeps this form, because old pickles must remain
    // loadable.
    let [.., year_high, year_low] = time.year().to_be_bytes();
    let small = [time.month(), time.day(), time.hour(), time.minute(), time.second()];
    let [month, day, hour, minute, second] = small.map(|part| part.to_le_bytes()[0]);
    let [_, us_high, us_middle, us_low] = time.timestamp_subsec_micros().to_be_bytes();
    let state = [year_high, year_low, month, day, hour, minute, second, us_high, us_middle, us_low];
    datetime(py)?.bind(py).call1((PyBytes::new(py, &state), PyTzInfo::utc(py)?)).map(Some)
}

/// Returns a contiguous buffer of 8-byte integers, and whether they are signed. The error message for any other
/// buffer starts with `takes`.
pub(crate) fn buffer(value: &Bound<'_, PyAny>, takes: &str) -> PyResult<(PyUntypedBuffer, bool)> {
    let buffer = PyUntypedBuffer::get(value).or_else(|refused| {
        // ctypes arrays report no strides, which means they are contiguous. A memoryview adds the strides.
        let view = PyMemoryView::from(value).map_err(|_| refused)?;
        if view.getattr("ndim")?.eq(0)? {
            return Err(unfit(takes, "has no dimension"));
        }
        PyUntypedBuffer::get(&view)
    })?;
    let format = buffer.format();
    let signed = match ElementType::from_format(format) {
        ElementType::UnsignedInteger { bytes: 8 } => false,
        ElementType::SignedInteger { bytes: 8 } => true,
        _ => return Err(unfit(takes, &format!("has format {}", format.to_string_lossy()))),
    };
    if cfg!(target_endian = "little") && matches!(format.to_bytes(), [b'>' | b'!', _])
        || cfg!(target_endian = "big") && matches!(format.to_bytes(), [b'<', _])
    {
        return Err(unfit(takes, "has the other byte order"));
    }
    if buffer.item_size() != 8 {
        // The buffer's length is measured in items, not in bytes.
        return Err(unfit(takes, &format!("has items of {} bytes", buffer.item_size())));
    }
    if !buffer.is_c_contiguous() {
        return Err(unfit(takes, "is not contiguous"));
    }
    Ok((buffer, signed))
}

/// Returns all items of an iterable. Strings and bytes are rejected, because their elements are not the items the
/// caller meant.
pub(crate) fn listed<'py>(
    items: &Bound<'py, PyAny>,
    what: &str,
    of: &str,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if let Ok(list) = items.cast_exact::<PyList>() {
        Ok(list.iter().collect())
    } else if items.is_instance_of::<PyString>() || items.is_instance_of::<PyBytes>() {
        Err(wrong_type(items, what, &format!("an iterable of {of}")))
    } else {
        items.try_iter()?.collect()
    }
}

/// Creates the error for a buffer that a call does not accept.
pub(crate) fn unfit(takes: &str, what: &str) -> PyErr {
    PyTypeError::new_err(format!("{takes}; this one {what}"))
}

/// Converts a value returned by a caller's clock to Unix ms.
pub(crate) fn clock_reading(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    let invalid = |class: fn(String) -> PyErr| {
        let shown =
            value.repr().map_or_else(|_| "an int of very many digits".to_owned(), |it| it.to_string());
        class(format!("the clock returned {shown}; it must return an int of Unix ms, in 64 bits"))
    };
    match number(value, "") {
        Ok(reading) => reading.to_i64().ok_or_else(|| invalid(PyOverflowError::new_err)),
        Err(raised) if raised.is_instance_of::<PyTypeError>(value.py()) => Err(invalid(PyTypeError::new_err)),
        Err(raised) => Err(raised),
    }
}

pub(crate) fn wrong_type(value: &Bound<'_, PyAny>, what: &str, takes: &str) -> PyErr {
    let class = value.get_type();
    let class = class.name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{what} must be {takes}, not {class}"))
}

/// Looks up the Python objects that this module uses.
///
/// `PyOnceLock` lets other threads run while it is being set. If one of them forked then, the child would wait for it
/// forever.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    mapping(py)?;
    sequence(py)?;
    // Collecting an iterator's items makes PyO3 look up `operator.length_hint`.
    PyList::empty(py).try_iter()?.size_hint();
    INDEX.import(py, "operator", "index")?;
    timedelta(py)?;
    epoch(py)?;
    PyTzInfo::utc(py)?;
    Ok(())
}

// PyO3 would take these two from `collections.abc`, whose package takes longer to import.

fn mapping(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static MAPPING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    MAPPING.import(py, "_collections_abc", "Mapping")
}

fn sequence(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static SEQUENCE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    SEQUENCE.import(py, "_collections_abc", "Sequence")
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
    EPOCH.get_or_try_init(py, || datetime(py)?.call1(py, (1970, 1, 1, 0, 0, 0, 0, PyTzInfo::utc(py)?)))
}
