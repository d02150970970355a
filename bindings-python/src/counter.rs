//! `Counter` from `polyflake_coordination`, with Python types.

use std::sync::Arc;

use polyflake_coordination::{Counter, CounterOptions, CounterStats};
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyRange, PyString, PyTuple};

use crate::awaited::{self, Waiter};
use crate::batch;
use crate::convert;
use crate::errors::OrRaise;
use crate::wait::ReleasesGil;

/// Issues numbers that count up, each only once: 1, 2, 3 and so on. A Counter is an iterator, and is safe to share
/// between threads.
///
/// Args:
///     name: a name for the counter, 1 to 100 characters.
///     store: the address of a store that hands out the numbers in segments, such as "postgres://host/shop", or a list
///         of addresses. Several stores divide the numbers among themselves, and the numbers are then unique but not
///         ordered.
///     start: the first number, if the store does not have the counter yet: 1 to 2**63-1. Default: 1.
///     step: the size of a segment: 1 to 1000000000 numbers, or "auto" (the default), which requests enough to last ten
///         minutes, from 100 to 1000000. With 1, each number is requested from the store, and numbers increase across
///         all processes.
///     max_wait_ms: the maximum time that a call waits for the store. Default: 10000.
///
/// No number is issued twice, by any process, as long as the store does not lose writes that it has acknowledged. With
/// one store, each number is greater than every number this process received before the call began. If a process exits
/// without calling close, the numbers it had fetched but not returned are skipped: at most two segments, plus the
/// numbers taken by calls in progress.
///
/// The constructor creates the counter if the store does not have it, and waits, without the GIL, until it can issue a
/// number. Calls wait in the same way if no number is in hand. Within a process, Counters with the same name and store
/// share the numbers in hand. After a fork, the child's Counters fetch their own numbers.
///
/// Raises:
///     InvalidOptionError: if an option is invalid, if the stores differ in order or number from those the counter
///         started with, or if this process already uses the counter with a different start or step.
///     CounterUnavailableError: if the store cannot be reached within max_wait_ms, or if the store refuses to hand out
///         numbers.
///
/// >>> from polyflake import Counter
/// >>> with Counter("orders", store="postgres://host/shop") as orders:  # doctest: +SKIP
/// ...     orders.next_id(), orders.next_id()
/// (1, 2)
#[pyclass(frozen, module = "polyflake", name = "Counter")]
pub(crate) struct PyCounter(
    /// Shared with awaited calls: their thread must hold no Python object, see `awaited::begin`.
    Arc<Counter>,
);

#[pymethods]
impl PyCounter {
    #[new]
    #[pyo3(signature = (name, *, store, start = None, step = None, max_wait_ms = None))]
    fn new(
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        store: &Bound<'_, PyAny>,
        start: Option<&Bound<'_, PyAny>>,
        step: Option<&Bound<'_, PyAny>>,
        max_wait_ms: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut options = CounterOptions::new(convert::name(name)?);
        for address in addresses(store)? {
            options = options.store(&convert::text(&address, "an address of store")?);
        }
        if let Some(start) = start {
            options = options.start(convert::number(start, "start")?);
        }
        if let Some(step) = step {
            options = match step.cast::<PyString>() {
                Ok(auto) if auto.to_string_lossy() == "auto" => options.auto_step(),
                _ => options.step(convert::number_or(step, "step", "an int or 'auto'")?),
            };
        }
        if let Some(ms) = max_wait_ms {
            options = options.max_wait_ms(convert::number(ms, "max_wait_ms")?);
        }
        crate::log::prepare(py)?;
        Ok(Self(Arc::new(options.open_with(&mut ReleasesGil::new(py))?)))
    }

    /// Return the next number. If no number is in hand, wait for the store without the GIL, for at most max_wait_ms.
    ///
    /// Raises:
    ///     CounterUnavailableError: if the store did not hand out a number within max_wait_ms, or at once if waiting
    ///         would not help: the store refuses, the counter was removed, or it has reached 2**63-1.
    ///     ClosedError: after close.
    fn next_id(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.next_id_with(&mut ReleasesGil::new(py))?)
    }

    /// Return the next number if one is in hand, without waiting for the store.
    ///
    /// Raises:
    ///     CounterUnavailableError: if no number is in hand. More are then requested from the store in the background.
    ///         With a step of 1, this is always raised, because no number is ever in hand.
    ///     ClosedError: after close.
    fn try_next_id(&self) -> PyResult<u64> {
        self.0.try_next_id().or_raise()
    }

    /// Return a list of the next n numbers, in increasing order. They are not necessarily consecutive: see next_block.
    /// If the call raises an exception, numbers may be lost, but are never issued again.
    ///
    /// Raises:
    ///     InvalidOptionError: if n is not 1 to 16777216.
    ///     PolyflakeError: for the same reasons as next_id.
    fn next_ids(&self, py: Python<'_>, n: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        batch::list(py, n, |numbers, wait| self.0.fill_with(numbers, wait))
    }

    /// Fill a writable, contiguous buffer of 8-byte integers with numbers, such as an array.array("Q"), a memoryview,
    /// or a NumPy or ctypes array. The formats are Q and q, and L and l if they have 8 bytes. Nothing else may write to
    /// the buffer during the call. If the call raises an exception, numbers may be lost, but are never issued again.
    ///
    /// Raises:
    ///     TypeError or BufferError: if the buffer is not of this kind.
    ///     PolyflakeError: for the same reasons as next_id.
    fn fill(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        batch::fill(py, buffer, false, |numbers, wait| self.0.fill_with(numbers, wait))
    }

    /// Return a range of n consecutive numbers. If fewer than n are left in hand, skip them and ask the store for
    /// more.
    ///
    /// Raises:
    ///     InvalidOptionError: if n is not between 1 and 16777216, or if there are several stores, whose numbers are
    ///         not consecutive.
    ///     PolyflakeError: for the same reasons as next_id.
    fn next_block<'py>(&self, py: Python<'py>, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let count = batch::size(n)?;
        let first = self.0.next_block_with(count, &mut ReleasesGil::new(py))?;
        range(py, first, count as u64)
    }

    /// Return the highest number in the segments that the store has handed out, to any process, or 0 before the first.
    /// This queries the store.
    ///
    /// Raises:
    ///     CounterUnavailableError: if the store cannot be reached within max_wait_ms, or has no such counter.
    ///     ClosedError: after close.
    fn peek(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.peek_with(&mut ReleasesGil::new(py))?)
    }

    /// Move the counter above `number`, so that the store hands out only higher segments. This process gives up its
    /// numbers in hand; other processes first use up theirs. If the counter is already higher, nothing changes. This
    /// queries the store.
    ///
    /// Raises:
    ///     InvalidOptionError: if number is not between 1 and 2**63-1.
    ///     PolyflakeError: for the same reasons as peek.
    fn raise_to(&self, py: Python<'_>, number: &Bound<'_, PyAny>) -> PyResult<()> {
        let number = convert::number(number, "number")?;
        Ok(self.0.raise_with(number, &mut ReleasesGil::new(py))?)
    }

    /// Delete the counter from the store, and return whether it existed. From then on, this process's Counters with
    /// that name issue no more numbers. The next time the counter is opened, it begins at its start again, and numbers
    /// repeat.
    ///
    /// Raises:
    ///     PolyflakeError: for the same reasons as peek, and always for a table that belongs to another system.
    fn remove(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.remove_with(&mut ReleasesGil::new(py))?)
    }

    /// Like next_id, but for an asyncio event loop: waiting for the store does not block a thread. A number in hand is
    /// returned at once. If the task is cancelled, a number may be lost, but is never issued again.
    ///
    /// Raises:
    ///     PolyflakeError: for the same reasons as next_id.
    fn next_id_async<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        awaited::coroutine(slf, [Some("try_next_id"), Some("_next_id_later")], &[])
    }

    /// Like next_ids, but for an asyncio event loop: see next_id_async.
    ///
    /// Raises:
    ///     PolyflakeError: for the same reasons as next_ids.
    fn next_ids_async<'py>(slf: &Bound<'py, Self>, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        awaited::coroutine(slf, [Some("_next_ids_now"), Some("_next_ids_later")], &[n])
    }

    /// Like next_block, but for an asyncio event loop: see next_id_async.
    ///
    /// Raises:
    ///     PolyflakeError: for the same reasons as next_block.
    fn next_block_async<'py>(slf: &Bound<'py, Self>, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        awaited::coroutine(slf, [None, Some("_next_block_later")], &[n])
    }

    fn _next_id_later(&self, py: Python<'_>, ticket: u64) -> PyResult<Waiter> {
        let counter = Arc::clone(&self.0);
        let call = async move { counter.next_id_async().await };
        awaited::begin(py, ticket, call, |py, number| number.into_py_any(py))
    }

    fn _next_ids_now(&self, n: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let mut numbers = vec![0; batch::size(n)?];
        self.0.try_fill(&mut numbers).or_raise()?;
        Ok(numbers)
    }

    fn _next_ids_later(&self, py: Python<'_>, ticket: u64, n: &Bound<'_, PyAny>) -> PyResult<Waiter> {
        let count = batch::size(n)?;
        let counter = Arc::clone(&self.0);
        let call = async move {
            let mut numbers = vec![0; count];
            counter.fill_async(&mut numbers).await?;
            Ok(numbers)
        };
        awaited::begin(py, ticket, call, |py, numbers| numbers.into_py_any(py))
    }

    fn _next_block_later(&self, py: Python<'_>, ticket: u64, n: &Bound<'_, PyAny>) -> PyResult<Waiter> {
        let count = batch::size(n)? as u64;
        let counter = Arc::clone(&self.0);
        let call = async move { counter.next_block_async(count).await };
        awaited::begin(py, ticket, call, move |py, first| Ok(range(py, first, count)?.unbind()))
    }

    /// Close this Counter. From then on, calls raise ClosedError, including calls that are already waiting. Other
    /// Counters with that name are not affected. A with block closes its Counter on exit.
    ///
    /// Closing the last Counter with a name in this process gives back the numbers in hand that belong to the last
    /// segment. This waits for the store, without the GIL, for at most 5 s.
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

    /// The counter's name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Statistics for monitoring.
    ///
    /// Raises:
    ///     ClosedError: after close.
    #[getter]
    fn stats(&self) -> PyResult<PyCounterStats> {
        self.0.stats().or_raise().map(PyCounterStats)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<u64> {
        self.next_id(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Counter({})", PyString::new(py, self.0.name()).repr()?))
    }

    #[expect(clippy::unused_self, reason = "a method in Python")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Counter cannot be pickled or copied: create one in each process, with the same name and store",
        ))
    }
}

/// Creates a range, whose last number is at most 2^63-1.
fn range(py: Python<'_>, first: u64, count: u64) -> PyResult<Bound<'_, PyAny>> {
    py.get_type::<PyRange>().call1((first, first + count))
}

/// Returns the address, or the addresses, as a list.
fn addresses<'py>(store: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if store.is_instance_of::<PyString>() {
        return Ok(vec![store.clone()]);
    }
    let takes = "a str or a sequence of str";
    if !convert::is_sequence(store)? {
        return Err(convert::wrong_type(store, "store", takes));
    }
    store.try_iter()?.collect()
}

/// Statistics for monitoring. They cover all Counters in this process with the same name and store, from when the first
/// of them was opened.
#[pyclass(frozen, eq, hash, module = "polyflake", name = "CounterStats")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyCounterStats(CounterStats);

#[pymethods]
impl PyCounterStats {
    /// How many numbers are in hand.
    #[getter]
    fn in_hand(&self) -> u64 {
        self.0.in_hand
    }

    /// The size of the next segment.
    #[getter]
    fn step(&self) -> u64 {
        self.0.step
    }

    /// The number of times the store has handed out numbers.
    #[getter]
    fn segments(&self) -> u64 {
        self.0.segments
    }

    /// How many numbers were skipped to keep each block consecutive and numbers increasing.
    #[getter]
    fn skipped(&self) -> u64 {
        self.0.skipped
    }

    /// The number of calls that found no number in hand and waited or failed.
    #[getter]
    fn waits(&self) -> u64 {
        self.0.waits
    }

    fn __repr__(&self) -> String {
        let CounterStats { in_hand, step, segments, skipped, waits, .. } = self.0;
        format!(
            "CounterStats(in_hand={in_hand}, step={step}, segments={segments}, skipped={skipped}, waits={waits})"
        )
    }
}
