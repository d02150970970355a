//! `Counter`: the one of `polyflake_coordination`, with Python types.

use polyflake_coordination::{Counter, CounterOptions, CounterStats};
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyRange, PySequence, PyString, PyTuple};

use crate::awaited::{self, Waiter};
use crate::batch;
use crate::convert;
use crate::errors::OrRaise;
use crate::wait::ReleasesGil;

/// Numbers that count up, each given once: 1, 2, 3 and so on. It is an iterator, and safe to share between threads.
///
/// Args:
///     name: what the numbers are for: 1 to 100 characters.
///     store: the address of a store that hands the numbers out in segments, such as "postgres://host/shop". Or a
///         list of addresses, which share the numbers out: unique, but not ordered.
///     start: the first number, where the store has no such counter yet: 1 to 2**63-1. Default: 1.
///     step: how many numbers a segment has, 1 to 1000000000, or "auto" (the default): what lasts ten minutes, from
///         100 up to 1000000. With 1 the store is asked for each number, and numbers increase over all processes.
///     max_wait_ms: the longest a call waits for the store. Default: 10000.
///
/// No number is given twice, by whichever process, as long as the store loses no write that it acknowledged. Each number
/// is greater than every number that this process got before the call began (with one store). A process that ends without
/// close leaves a gap of at most the numbers that it had in hand: two segments.
///
/// The constructor makes the counter where the store has none, and waits without the GIL until it can give a number. So
/// do calls where no number is in hand. Counters of one name and store share what a process has in hand. After a fork, a
/// child's fetches its own numbers.
///
/// Raises:
///     InvalidOptionError: if an option is invalid, if the stores are in another order or number than the counter began
///         with, or if this process uses the counter with another start or step.
///     CounterUnavailableError: if the store cannot be reached within max_wait_ms, or will not give numbers.
///
/// >>> from polyflake import Counter
/// >>> with Counter("orders", store="postgres://host/shop") as orders:  # doctest: +SKIP
/// ...     orders.next_id(), orders.next_id()
/// (1, 2)
#[pyclass(frozen, module = "polyflake", name = "Counter")]
pub(crate) struct PyCounter(Counter);

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
        // Names that UTF-8 cannot encode are no names: as texts for the core, several would be one.
        let name = name.cast::<PyString>().map_err(|_| convert::wrong_type(name, "name", "a str"))?;
        let mut options = CounterOptions::new(name.to_str()?);
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
        Ok(Self(options.open_with(&mut ReleasesGil::new(py))?))
    }

    /// The next number. If none is in hand, wait for the store without the GIL, for at most max_wait_ms.
    ///
    /// Raises:
    ///     CounterUnavailableError: if the store gave none within max_wait_ms; at once where waiting does not help: it
    ///         refuses, somebody removed the counter, or it has reached 2**63-1.
    ///     ClosedError: after close.
    fn next_id(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.next_id_with(&mut ReleasesGil::new(py))?)
    }

    /// The next number, if one is in hand: it does not wait for the store.
    ///
    /// Raises:
    ///     CounterUnavailableError: if none is in hand: the store is asked for more meanwhile. Always with a step of 1,
    ///         which keeps none in hand.
    ///     ClosedError: after close.
    fn try_next_id(&self) -> PyResult<u64> {
        self.0.try_next_id().or_raise()
    }

    /// A list of the next n numbers, increasing. They need not follow each other: see next_block. After an exception,
    /// numbers may be lost, but are never given again.
    ///
    /// Raises:
    ///     InvalidOptionError: if n is not 1 to 16777216.
    ///     PolyflakeError: as next_id.
    fn next_ids(&self, py: Python<'_>, n: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        batch::list(py, n, |numbers, wait| self.0.fill_with(numbers, wait))
    }

    /// Fill a writable, contiguous buffer of 8-byte integers with numbers: an array.array("Q"), a memoryview, a NumPy or
    /// ctypes array. The formats are Q and q, and L and l if they have 8 bytes. Nothing else may write to the buffer meanwhile.
    /// After an exception, numbers may be lost, but are never given again.
    ///
    /// Raises:
    ///     TypeError or BufferError: if it is not such a buffer.
    ///     PolyflakeError: as next_id.
    fn fill(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        batch::fill(py, buffer, false, |numbers, wait| self.0.fill_with(numbers, wait))
    }

    /// A range of n numbers that follow each other. Where fewer are left of what is in hand, those are passed over, and
    /// the store is asked.
    ///
    /// Raises:
    ///     InvalidOptionError: if n is not 1 to 16777216, or with several stores, whose numbers do not follow each other.
    ///     PolyflakeError: as next_id.
    fn next_block<'py>(&self, py: Python<'py>, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let count = polyflake::batch_size(convert::number(n, "n")?).or_raise()?;
        let first = self.0.next_block_with(count, &mut ReleasesGil::new(py))?;
        range(py, first, count as u64)
    }

    /// The highest number that the store has handed out, in segments, to any process; 0 before the first. Asks the store.
    ///
    /// Raises:
    ///     CounterUnavailableError: if the store cannot be reached within max_wait_ms, or has no such counter.
    ///     ClosedError: after close.
    fn peek(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.0.peek_with(&mut ReleasesGil::new(py))?)
    }

    /// Move the counter above `number`: the store gives no segment below it any more, and this process gives up what it has
    /// in hand; other processes use up theirs. It changes nothing where the counter is further already. Asks the store.
    ///
    /// Raises:
    ///     InvalidOptionError: if number is not 1 to 2**63-1.
    ///     PolyflakeError: as peek.
    fn raise_to(&self, py: Python<'_>, number: &Bound<'_, PyAny>) -> PyResult<()> {
        let number = convert::number(number, "number")?;
        Ok(self.0.raise_with(number, &mut ReleasesGil::new(py))?)
    }

    /// Delete the counter from the store. The next open begins at its start again, and numbers repeat. This
    /// process's Counters of that name give none from then on. Returns whether there was one.
    ///
    /// Raises:
    ///     PolyflakeError: as peek, also in a table of others.
    fn remove(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.0.remove_with(&mut ReleasesGil::new(py))?)
    }

    /// next_id, awaited in an event loop of asyncio: a call that waits for the store blocks no thread. What is in hand
    /// comes at once. If the task is cancelled, a number may be lost, but is never given again.
    ///
    /// Raises:
    ///     PolyflakeError: as next_id.
    fn next_id_async<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        awaited::coroutine(slf, [Some("try_next_id"), Some("_next_id_later")], &[])
    }

    /// next_ids, awaited as next_id_async is.
    ///
    /// Raises:
    ///     PolyflakeError: as next_ids.
    fn next_ids_async<'py>(slf: &Bound<'py, Self>, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        awaited::coroutine(slf, [Some("_next_ids_now"), Some("_next_ids_later")], &[n])
    }

    /// next_block, awaited as next_id_async is.
    ///
    /// Raises:
    ///     PolyflakeError: as next_block.
    fn next_block_async<'py>(slf: &Bound<'py, Self>, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        awaited::coroutine(slf, [None, Some("_next_block_later")], &[n])
    }

    fn _next_id_later(slf: Py<Self>, py: Python<'_>, ticket: u64) -> PyResult<Waiter> {
        let call = async move { slf.get().0.next_id_async().await };
        awaited::begin(py, ticket, call, |py, number| number.into_py_any(py))
    }

    fn _next_ids_now(&self, n: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        let mut numbers = vec![0; polyflake::batch_size(convert::number(n, "n")?).or_raise()?];
        self.0.try_fill(&mut numbers).or_raise()?;
        Ok(numbers)
    }

    fn _next_ids_later(slf: Py<Self>, py: Python<'_>, ticket: u64, n: &Bound<'_, PyAny>) -> PyResult<Waiter> {
        let count = polyflake::batch_size(convert::number(n, "n")?).or_raise()?;
        let call = async move {
            let mut numbers = vec![0; count];
            slf.get().0.fill_async(&mut numbers).await?;
            Ok(numbers)
        };
        awaited::begin(py, ticket, call, |py, numbers| numbers.into_py_any(py))
    }

    fn _next_block_later(
        slf: Py<Self>,
        py: Python<'_>,
        ticket: u64,
        n: &Bound<'_, PyAny>,
    ) -> PyResult<Waiter> {
        let count = polyflake::batch_size(convert::number(n, "n")?).or_raise()? as u64;
        let call = async move { slf.get().0.next_block_async(count).await };
        awaited::begin(py, ticket, call, move |py, first| Ok(range(py, first, count)?.unbind()))
    }

    /// Close this Counter: from then on, calls raise ClosedError, also those that wait. Other Counters of that name are not
    /// affected. A with block closes it at the end.
    ///
    /// The last one of a name in this process gives back what it has in hand of its last segment. That waits for the store
    /// without the GIL, for at most 5 s.
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

/// The last is at most 2^63-1.
fn range(py: Python<'_>, first: u64, count: u64) -> PyResult<Bound<'_, PyAny>> {
    py.get_type::<PyRange>().call1((first, first + count))
}

/// One address or several.
fn addresses<'py>(store: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    if store.is_instance_of::<PyString>() {
        return Ok(vec![store.clone()]);
    }
    let takes = "a str or a sequence of str";
    let several = store.cast::<PySequence>().map_err(|_| convert::wrong_type(store, "store", takes))?;
    several.try_iter()?.collect()
}

/// Counters for monitoring, of all of this process's Counters of one name and store, since the first was made.
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

    /// How many numbers the next segment has.
    #[getter]
    fn step(&self) -> u64 {
        self.0.step
    }

    /// How often the store gave numbers.
    #[getter]
    fn segments(&self) -> u64 {
        self.0.segments
    }

    /// How many numbers were passed over, so that a block is one run and numbers go on increasing.
    #[getter]
    fn skipped(&self) -> u64 {
        self.0.skipped
    }

    /// How often a call found no number in hand, and waited or failed.
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
