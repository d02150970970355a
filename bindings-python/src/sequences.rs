//! `Sequences`: those of `polyflake_coordination`, with Python types.

use polyflake_coordination::{OwnedKey, SequenceKey, Sequences, SequencesOptions, SequencesStats};
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::awaited::{self, Waiter};
use crate::convert;
use crate::errors::OrRaise;
use crate::wait::ReleasesGil;

/// How many keys of a batch get their numbers before other threads get the GIL: less than 1 ms.
const PART: usize = 4096;

/// A count for each of many keys: 1, 2, 3 and so on for "alice", and for "bob" the same. For the messages of an inbox, or
/// the versions of a document. It is safe to share between threads.
///
/// Args:
///     name: what the keys are: 1 to 100 characters.
///     store: the address of a store, such as "postgres://host/chat?label=10.0.0.7:8080". Others are told the label
///         while this process gives the numbers.
///     sections: how many bounds the store has, 1 to 16384. Each is shared by the keys of a section, and it cannot
///         be changed later. Default: 1024.
///     step: by how many numbers a bound is moved ahead: 1 to 1000000000. Default: 10000.
///     max_keys: how many keys stay in memory, of at most 40 bytes each: 1 to 1000000000. Default: 1000000.
///     max_wait_ms: the longest a call waits for the store: 0 to 4294967295. Default: 10000.
///
/// A key is a str, or an int from -2**63 to 2**64-1: 5 and "5" are two keys. Its numbers increase, and none is given twice,
/// by whichever process, as long as the store loses no write that it acknowledged. Numbers are skipped: by a key that left
/// memory and came back, by a new key where others left, and by all keys of a section, at most two steps, when a process
/// ended without close.
///
/// One process at a time gives numbers, by a lease. The constructor waits for that without the GIL, for at most the `wait`
/// of the address. Sequences of one name and store are one in a process. A child of a fork has none.
///
/// Raises:
///     InvalidOptionError: if an option is invalid, if the sequences began with another number of sections, or if this
///         process uses them with other options.
///     LeaseUnavailableError: if another process has the lease: the message names its label between backquotes. Or if the
///         store cannot be reached.
///
/// >>> from polyflake import Sequences
/// >>> with Sequences("inbox", store="postgres://host/chat") as inbox:  # doctest: +SKIP
/// ...     inbox.next_id("alice"), inbox.next_id("bob"), inbox.next_id("alice")
/// (1, 1, 2)
#[pyclass(frozen, module = "polyflake", name = "Sequences")]
pub(crate) struct PySequences(Sequences);

#[pymethods]
impl PySequences {
    #[new]
    #[pyo3(signature = (name, *, store, sections = None, step = None, max_keys = None, max_wait_ms = None))]
    fn new(
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        store: &Bound<'_, PyAny>,
        sections: Option<&Bound<'_, PyAny>>,
        step: Option<&Bound<'_, PyAny>>,
        max_keys: Option<&Bound<'_, PyAny>>,
        max_wait_ms: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        // Names that UTF-8 cannot encode are no names: as texts for the core, several would be one.
        let name = name.cast::<PyString>().map_err(|_| convert::wrong_type(name, "name", "a str"))?;
        let mut options = SequencesOptions::new(name.to_str()?).store(&convert::text(store, "store")?);
        if let Some(sections) = sections {
            options = options.sections(convert::number(sections, "sections")?);
        }
        if let Some(step) = step {
            options = options.step(convert::number(step, "step")?);
        }
        if let Some(keys) = max_keys {
            options = options.max_keys(convert::number(keys, "max_keys")?);
        }
        if let Some(ms) = max_wait_ms {
            options = options.max_wait_ms(convert::number(ms, "max_wait_ms")?);
        }
        crate::log::prepare(py)?;
        Ok(Self(options.open_with(&mut ReleasesGil::new(py))?))
    }

    /// The key's next number. If its section has come to its bound, or the lease was not renewed in time, wait for the
    /// store without the GIL, for at most max_wait_ms.
    ///
    /// Raises:
    ///     LeaseUnavailableError: if another process gives the numbers by now: the message names it.
    ///     LeaseLostError: if the lease could not be renewed, and does not come back within max_wait_ms.
    ///     CounterUnavailableError: if the store does not move the section's bound within max_wait_ms; at once where
    ///         waiting does not help: it refuses, has lost writes, or the section has reached 2**63-1.
    ///     InvalidOptionError: if the key is an int that 64 bits do not hold.
    ///     ClosedError: after close.
    ///     ForkedError: in a child of the process that opened it.
    fn next_id(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        Ok(self.0.next_id_with(to_key(key)?, &mut ReleasesGil::new(py))?)
    }

    /// The key's next number, if the store need not be waited for. It is asked meanwhile.
    ///
    /// Raises:
    ///     PolyflakeError: as next_id, at once.
    fn try_next_id(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.try_next_id(to_key(key)?).or_raise()
    }

    /// A list of a number for each of the keys, in their order; a key that is there twice has two. The keys are any
    /// iterable but a str or bytes. After an exception, numbers may be lost, but are never given again.
    ///
    /// Raises:
    ///     PolyflakeError: as next_id.
    fn next_ids(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let keys = convert::listed(keys, "keys", "str or int")?;
        // All of them before the first number, so that one that cannot be loses none.
        let keys: Vec<SequenceKey<'_>> = keys.iter().map(to_key).collect::<PyResult<_>>()?;
        let wait = &mut ReleasesGil::new(py);
        let mut parts = keys.chunks(PART);
        let mut numbers = self.0.next_ids_with(parts.next().unwrap_or_default().iter().copied(), wait)?;
        numbers.reserve_exact(keys.len() - numbers.len());
        for part in parts {
            py.detach(|| ());
            numbers.append(&mut self.0.next_ids_with(part.iter().copied(), wait)?);
        }
        Ok(numbers)
    }

    /// next_id, awaited in an event loop of asyncio: a call that waits for the store blocks no thread. What is in hand
    /// comes at once. If the task is cancelled, a number may be lost, but is never given again.
    ///
    /// Raises:
    ///     PolyflakeError: as next_id.
    fn next_id_async<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        awaited::coroutine(slf, [Some("try_next_id"), Some("_next_id_later")], &[key])
    }

    /// next_ids, awaited as next_id_async is.
    ///
    /// Raises:
    ///     PolyflakeError: as next_ids.
    fn next_ids_async<'py>(slf: &Bound<'py, Self>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        awaited::coroutine(slf, [None, Some("_next_ids_later")], &[keys])
    }

    fn _next_id_later(
        slf: Py<Self>,
        py: Python<'_>,
        ticket: u64,
        key: &Bound<'_, PyAny>,
    ) -> PyResult<Waiter> {
        let key = to_owned(key)?;
        let call = async move { slf.get().0.next_id_async((&key).into()).await };
        awaited::begin(py, ticket, call, |py, number| number.into_py_any(py))
    }

    fn _next_ids_later(
        slf: Py<Self>,
        py: Python<'_>,
        ticket: u64,
        keys: &Bound<'_, PyAny>,
    ) -> PyResult<Waiter> {
        let keys = convert::listed(keys, "keys", "str or int")?
            .iter()
            .map(to_owned)
            .collect::<PyResult<Vec<_>>>()?;
        let call = async move {
            let keys: Vec<_> = keys.iter().map(SequenceKey::from).collect();
            slf.get().0.next_ids_async(&keys).await
        };
        awaited::begin(py, ticket, call, |py, numbers| numbers.into_py_any(py))
    }

    /// Close these Sequences: from then on, calls raise ClosedError, also those that wait. Other Sequences of that name are
    /// not affected. A with block closes it at the end.
    ///
    /// The last one of a name in this process writes to the store how far its keys counted, and gives the lease back. That
    /// waits for the store without the GIL, but at most 10 s.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Counters for monitoring.
    ///
    /// Raises:
    ///     ClosedError: after close.
    ///     ForkedError: in a child of the process that opened it.
    #[getter]
    fn stats(&self) -> PyResult<PySequencesStats> {
        self.0.stats().or_raise().map(PySequencesStats)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Sequences({})", PyString::new(py, self.0.name()).repr()?))
    }

    #[expect(clippy::unused_self, reason = "a method in Python")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "Sequences cannot be pickled or copied: one process at a time gives their numbers",
        ))
    }
}

/// A key, out of Python's memory.
fn to_owned(key: &Bound<'_, PyAny>) -> PyResult<OwnedKey> {
    match key.cast::<PyString>() {
        Ok(text) => Ok(OwnedKey::Text(text.to_str()?.to_owned())),
        Err(_) => to_integer(key).map(OwnedKey::Integer),
    }
}

fn to_integer(key: &Bound<'_, PyAny>) -> PyResult<SequenceKey<'static>> {
    SequenceKey::try_from(convert::number_or(key, "key", "a str or an int")?).or_raise()
}

/// A `str`, or an `int` or an object with `__index__`.
#[inline]
fn to_key<'a>(key: &'a Bound<'_, PyAny>) -> PyResult<SequenceKey<'a>> {
    match key.cast::<PyString>() {
        // Texts that UTF-8 cannot encode are no keys: several would be one.
        Ok(text) => Ok(text.to_str()?.into()),
        Err(_) => to_integer(key),
    }
}

/// Counters for monitoring, of all of this process's Sequences of one name and store, since the first was opened.
#[pyclass(frozen, eq, hash, module = "polyflake", name = "SequencesStats")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PySequencesStats(SequencesStats);

#[pymethods]
impl PySequencesStats {
    /// How many keys are in memory.
    #[getter]
    fn keys(&self) -> u64 {
        self.0.keys
    }

    /// How many keys left memory, for others to have room.
    #[getter]
    fn evicted(&self) -> u64 {
        self.0.evicted
    }

    /// How often bounds were moved in the store.
    #[getter]
    fn moves(&self) -> u64 {
        self.0.moves
    }

    /// How often a call waited or gave up.
    #[getter]
    fn waits(&self) -> u64 {
        self.0.waits
    }

    /// For how long it may give numbers if the lease is not renewed, in ms; 0 where another process has it.
    #[getter]
    fn time_left_ms(&self) -> u64 {
        self.0.time_left_ms
    }

    fn __repr__(&self) -> String {
        let SequencesStats { keys, evicted, moves, waits, time_left_ms, .. } = self.0;
        format!(
            "SequencesStats(keys={keys}, evicted={evicted}, moves={moves}, waits={waits}, \
             time_left_ms={time_left_ms})"
        )
    }
}
