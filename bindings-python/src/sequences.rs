//! `Sequences` from `polyflake_coordination`, with Python types.

use std::sync::Arc;

use polyflake_coordination::{OwnedKey, SequenceKey, Sequences, SequencesOptions, SequencesStats};
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::awaited::{self, Waiter};
use crate::convert;
use crate::errors::OrRaise;
use crate::wait::ReleasesGil;

/// How many of a batch's keys are given numbers before other threads can take the GIL. This takes less than 1 ms.
const PART: usize = 4096;

/// Counts separately for each of many keys: 1, 2, 3 and so on for "alice", and the same for "bob". Use it to number the
/// messages in an inbox or the versions of a document. It is safe to share between threads.
///
/// Args:
///     name: a name for the sequences, 1 to 100 characters.
///     store: the address of a store, such as "postgres://host/chat?label=10.0.0.7:8080". While this process holds the
///         lease, the errors in other processes show the label.
///     sections: the number of bounds in the store, 1 to 16384. The keys in a section share a bound. The number cannot
///         be changed later. Default: 1024.
///     step: the size of a step, 1 to 1000000000 numbers. A bound is moved to two steps above its section's highest
///         number. Default: 10000.
///     max_keys: the maximum number of keys kept in memory, 1 to 1000000000. Each takes at most 40 bytes. Default:
///         1000000.
///     max_wait_ms: the maximum time that a call waits for the store, 0 to 4294967295. Default: 10000.
///
/// A key is a str, or an int from -2**63 to 2**64-1; 5 and "5" are different keys. A key's numbers increase, and no
/// number is issued twice, by any process, as long as the store does not lose writes that it has acknowledged. A key
/// skips numbers if it was evicted from memory and is used again, and so do new keys after an eviction. After a process
/// exits without calling close, all keys in a section continue above the section's bound, which is at most two steps
/// above its highest number.
///
/// Only the process that holds the lease issues numbers. The constructor waits for the lease, without the GIL, for at
/// most the ``wait`` set in the address. All Sequences in a process with the same name and store share their keys.
/// After a fork, the parent's Sequences do not work in the child.
///
/// Raises:
///     InvalidOptionError: if an option is invalid, if the sequences were created with a different number of sections,
///         or if this process already uses them with different options.
///     LeaseUnavailableError: if another process holds the lease (the message gives its label in backticks), or if the
///         store cannot be reached.
///
/// >>> from polyflake import Sequences
/// >>> with Sequences("inbox", store="postgres://host/chat") as inbox:  # doctest: +SKIP
/// ...     inbox.next_id("alice"), inbox.next_id("bob"), inbox.next_id("alice")
/// (1, 1, 2)
#[pyclass(frozen, module = "polyflake", name = "Sequences")]
pub(crate) struct PySequences(
    /// Shared with awaited calls: their thread must hold no Python object, see `awaited::begin`.
    Arc<Sequences>,
);

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
        let mut options = SequencesOptions::new(convert::name(name)?).store(&convert::text(store, "store")?);
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
        Ok(Self(Arc::new(options.open_with(&mut ReleasesGil::new(py))?)))
    }

    /// Return the key's next number. If the key's section has reached its bound, or the lease was not renewed in time,
    /// wait for the store without the GIL, for at most max_wait_ms.
    ///
    /// Raises:
    ///     LeaseUnavailableError: if another process, named in the message, now issues the numbers.
    ///     LeaseLostError: if the lease could not be renewed, and was not regained within max_wait_ms.
    ///     CounterUnavailableError: if the store did not move the section's bound within max_wait_ms, or at once if
    ///         waiting would not help: the store refuses or has lost writes, or the section has reached 2**63-1.
    ///     InvalidOptionError: if the key is an int that does not fit in 64 bits.
    ///     ClosedError: after close.
    ///     ForkedError: in a child of the process that opened the sequences.
    fn next_id(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        Ok(self.0.next_id_with(to_key(key)?, &mut ReleasesGil::new(py))?)
    }

    /// Return the key's next number without waiting for the store. If that is not possible, the store is contacted in
    /// the background.
    ///
    /// Raises:
    ///     PolyflakeError: for the same reasons as next_id, but at once.
    fn try_next_id(&self, key: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.try_next_id(to_key(key)?).or_raise()
    }

    /// Return a list with one number per key, in the order of the keys. A key that occurs twice is given two. The keys
    /// may be any iterable except a str or bytes. If the call raises an exception, numbers may be lost, but are never
    /// issued again.
    ///
    /// Raises:
    ///     PolyflakeError: for the same reasons as next_id.
    fn next_ids(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let keys = convert::listed(keys, "keys", "str or int")?;
        // All keys are converted before the first number is taken, so that an invalid key loses no numbers.
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

    /// Like next_id, but for an asyncio event loop: waiting for the store does not block a thread. A number in hand is
    /// returned at once. If the task is cancelled, a number may be lost, but is never issued again.
    ///
    /// Raises:
    ///     PolyflakeError: for the same reasons as next_id.
    fn next_id_async<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        awaited::coroutine(slf, [Some("try_next_id"), Some("_next_id_later")], &[key])
    }

    /// Like next_ids, but for an asyncio event loop: see next_id_async.
    ///
    /// Raises:
    ///     PolyflakeError: for the same reasons as next_ids.
    fn next_ids_async<'py>(slf: &Bound<'py, Self>, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        awaited::coroutine(slf, [None, Some("_next_ids_later")], &[keys])
    }

    fn _next_id_later(&self, py: Python<'_>, ticket: u64, key: &Bound<'_, PyAny>) -> PyResult<Waiter> {
        let key = to_owned(key)?;
        let sequences = Arc::clone(&self.0);
        let call = async move { sequences.next_id_async((&key).into()).await };
        awaited::begin(py, ticket, call, |py, number| number.into_py_any(py))
    }

    fn _next_ids_later(&self, py: Python<'_>, ticket: u64, keys: &Bound<'_, PyAny>) -> PyResult<Waiter> {
        let keys = convert::listed(keys, "keys", "str or int")?
            .iter()
            .map(to_owned)
            .collect::<PyResult<Vec<_>>>()?;
        let sequences = Arc::clone(&self.0);
        let call = async move {
            let keys: Vec<_> = keys.iter().map(SequenceKey::from).collect();
            sequences.next_ids_async(&keys).await
        };
        awaited::begin(py, ticket, call, |py, numbers| numbers.into_py_any(py))
    }

    /// Close these Sequences. From then on, calls raise ClosedError, including calls that are already waiting. Other
    /// Sequences with that name are not affected. A with block closes its Sequences on exit.
    ///
    /// Closing the last Sequences with a given name in this process stores each section's highest number, above which
    /// its keys then continue, and gives the lease back. This waits for the store, without the GIL, for at most 10 s.
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

    /// The name of the sequences.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Statistics for monitoring.
    ///
    /// Raises:
    ///     ClosedError: after close.
    ///     ForkedError: in a child of the process that opened the sequences.
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
            "Sequences cannot be pickled or copied: only one process at a time issues their numbers",
        ))
    }
}

/// Copies a key out of Python's memory.
fn to_owned(key: &Bound<'_, PyAny>) -> PyResult<OwnedKey> {
    match key.cast::<PyString>() {
        Ok(text) => Ok(OwnedKey::Text(text.to_str()?.to_owned())),
        Err(_) => to_integer(key).map(OwnedKey::Integer),
    }
}

fn to_integer(key: &Bound<'_, PyAny>) -> PyResult<SequenceKey<'static>> {
    SequenceKey::try_from(convert::number_or(key, "key", "a str or an int")?).or_raise()
}

/// Converts a key: a `str`, an `int`, or an object with `__index__`.
#[inline]
fn to_key<'a>(key: &'a Bound<'_, PyAny>) -> PyResult<SequenceKey<'a>> {
    match key.cast::<PyString>() {
        // Strings that UTF-8 cannot encode are rejected, because different ones would become the same key.
        Ok(text) => Ok(text.to_str()?.into()),
        Err(_) => to_integer(key),
    }
}

/// Statistics for monitoring. They cover all Sequences in this process with the same name and store, from when the
/// first of them was opened.
#[pyclass(frozen, eq, hash, module = "polyflake", name = "SequencesStats")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PySequencesStats(SequencesStats);

#[pymethods]
impl PySequencesStats {
    /// The number of keys in memory.
    #[getter]
    fn keys(&self) -> u64 {
        self.0.keys
    }

    /// The number of keys evicted from memory to make room for others.
    #[getter]
    fn evicted(&self) -> u64 {
        self.0.evicted
    }

    /// The number of times bounds were moved in the store.
    #[getter]
    fn moves(&self) -> u64 {
        self.0.moves
    }

    /// The number of calls that waited or gave up.
    #[getter]
    fn waits(&self) -> u64 {
        self.0.waits
    }

    /// How much longer numbers may be issued if the lease is not renewed, in ms; 0 if another process holds it.
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
