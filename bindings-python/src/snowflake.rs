//! `Snowflake` from the core, with Python types.

use std::sync::Arc;

use polyflake::{Blocked, Clock, ClockError, Error, Options, Snowflake, Stats};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::batch;
use crate::convert;
use crate::errors::{self, OrRaise};
use crate::layout::{self, PyDecoded, PyLayout};
use crate::lease::PyLease;
use crate::wait::ReleasesGil;

/// Issues unique, time-ordered 64-bit IDs. A Snowflake is an iterator, and is safe to share between threads.
///
/// Args:
///     layout: a preset's name, a layout string, or a Layout. Default: "twitter".
///     node: an int for all node bits, or a mapping of field names to ints. Required, unless the layout has no node
///         field or the node is leased. No other process may use the same node at the same time, unless they share a
///         state file.
///     max_backward_ms: how far the clock may step back before IDs stop being issued. Default: 1000.
///     max_ahead_ms: how far IDs may run ahead of the clock to serve a burst. Default: 0.
///     max_wait_ms: the maximum time that next_id waits. A batch may wait that long each time it stalls. Default: a
///         tick plus 1000 ms.
///     sequence_start: the first sequence number of a new tick: "spread" (the default) or "zero".
///     clock: "system" (the default), "steady", or a callable that returns Unix ms as an int.
///     state: the path of a file through which all processes on this host share the node. The file is created if it
///         does not exist. A Snowflake created before a fork then also works in the child.
///     lease: the address of a store that leases the node, such as "redis://host/0": redis, postgres, mysql, etcd,
///         zookeeper or sqlite. No two processes then have the same node at the same time. The constructor waits for a
///         free node, without the GIL, for at most the ``wait`` set in the address. If node sets only some of the
///         fields, they narrow the choice; if it is complete, that exact node is leased. A lease cannot be combined
///         with state or a callable clock.
///
/// With a built-in clock, the Snowflakes in a process share a cursor, and so never repeat each other's IDs, if they
/// have the same epoch and tick, the same timestamp and sequence positions and widths, and the same node bits. Layouts
/// that split the bits differently are separate systems, and their IDs may collide. With a custom clock, each Snowflake
/// has its own cursor, unless it has a state file.
///
/// Raises:
///     InvalidLayoutError: if the layout is invalid.
///     UnknownLayoutError: if no preset has this name.
///     InvalidNodeError: if the node is missing or does not fit the layout.
///     InvalidOptionError: if another option is invalid, if max_ahead_ms or max_backward_ms differs from that of the
///         shared cursor, or if the shared cursor uses a different state file or none.
///     StateFileError: if the state file cannot be used.
///     LeaseUnavailableError: if no node becomes free, or the store cannot be reached, within the ``wait`` set in the
///         address.
///     ClockFailedError: if the custom clock fails. The constructor reads it only if a state file is used.
///     ForkedError: if the parent process used this node before a fork, without a state file.
///
/// >>> from polyflake import Snowflake
/// >>> ids = Snowflake(node={"datacenter": 1, "worker": 7})
/// >>> ids.next_id() < ids.next_id()
/// True
#[pyclass(frozen, module = "polyflake", name = "Snowflake")]
pub(crate) struct PySnowflake {
    ids: AnySnowflake,
    /// Whether every thread that moves the cursor holds the GIL. This is false without a GIL and in the abi3t library,
    /// which runs both with and without one; with a state file, because other processes move the cursor too; and with a
    /// lease, because the keeper's thread moves it. There is only one GIL, because only one interpreter in a process
    /// has this module: see `interpreter.rs`.
    under_gil: bool,
}

enum AnySnowflake {
    Builtin(Snowflake),
    Callers(Snowflake<CallersClock>),
}

/// Evaluates `$call` on the core's Snowflake, whichever clock it uses.
macro_rules! with {
    ($self:ident, $ids:ident => $call:expr) => {
        match &$self.ids {
            AnySnowflake::Builtin($ids) => $call,
            AnySnowflake::Callers($ids) => $call,
        }
    };
}

/// A Python callable that returns Unix ms. Shared, so that no thread without the GIL drops it: see `awaited::begin`.
struct CallersClock(Arc<Py<PyAny>>);

impl Clock for CallersClock {
    fn unix_ms(&self) -> Result<i64, ClockError> {
        Python::attach(|py| {
            let reading = self.0.bind(py).call0().and_then(|it| convert::clock_reading(&it));
            reading.map_err(|raised| {
                errors::clock_raised(raised);
                ClockError::new("the clock failed")
            })
        })
    }
}

#[pymethods]
impl PySnowflake {
    #[new]
    #[pyo3(signature = (*, layout = None, node = None, max_backward_ms = None, max_ahead_ms = None,
                        max_wait_ms = None, sequence_start = None, clock = None, state = None, lease = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        py: Python<'_>,
        layout: Option<&Bound<'_, PyAny>>,
        node: Option<&Bound<'_, PyAny>>,
        max_backward_ms: Option<&Bound<'_, PyAny>>,
        max_ahead_ms: Option<&Bound<'_, PyAny>>,
        max_wait_ms: Option<&Bound<'_, PyAny>>,
        sequence_start: Option<&Bound<'_, PyAny>>,
        clock: Option<&Bound<'_, PyAny>>,
        state: Option<&Bound<'_, PyAny>>,
        lease: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let mut options = Options::default();
        if let Some(address) = lease {
            options = options.lease(&convert::text(address, "lease")?);
        }
        if let Some(path) = state {
            options = options.state(convert::path(path, "state")?);
        }
        if let Some(layout) = layout {
            options = options.layout(layout::given(layout)?);
        }
        if let Some(node) = node {
            options = options.node(convert::node(node)?);
        }
        if let Some(ms) = max_backward_ms {
            options = options.max_backward_ms(convert::number(ms, "max_backward_ms")?);
        }
        if let Some(ms) = max_ahead_ms {
            options = options.max_ahead_ms(convert::number(ms, "max_ahead_ms")?);
        }
        if let Some(ms) = max_wait_ms {
            options = options.max_wait_ms(convert::number(ms, "max_wait_ms")?);
        }
        if let Some(start) = sequence_start {
            options = options.sequence_start(convert::text(start, "sequence_start")?.parse().or_raise()?);
        }
        let snowflake = match clock {
            Some(clock) if clock.is_callable() => {
                let clock = Arc::new(clock.clone().unbind());
                AnySnowflake::Callers(build(py, state, || {
                    options.build_with_clock(CallersClock(Arc::clone(&clock)))
                })?)
            }
            Some(clock) if !clock.is_instance_of::<PyString>() => {
                return Err(convert::wrong_type(clock, "clock", "a str or a callable"));
            }
            name => {
                if let Some(name) = name {
                    options = options.clock(convert::text(name, "clock")?.parse().or_raise()?);
                }
                AnySnowflake::Builtin(match lease {
                    Some(_) => crate::lease::build(py, &options)?,
                    None => build(py, state, || options.build())?,
                })
            }
        };
        let under_gil = cfg!(not(Py_GIL_DISABLED)) && state.is_none() && lease.is_none();
        Ok(Self { ids: snowflake, under_gil })
    }

    /// Return the next ID. If the tick's sequence is used up, wait without the GIL, for at most max_wait_ms.
    ///
    /// Raises:
    ///     SequenceExhaustedError: if no ID became available within max_wait_ms.
    ///     ClockMovedBackwardsError: at once if the clock stepped back by more than max_backward_ms, or after the wait
    ///         if a smaller step back left no ID available within max_wait_ms.
    ///     TimeOutOfRangeError: if the clock is before the epoch or past the layout's end.
    ///     ClockFailedError: if the custom clock raised an exception, or did not return Unix ms.
    ///     StateFileError: if the state file was renamed, deleted or replaced, or cannot be written.
    ///     LeaseLostError: if the lease expired, and the store did not renew it within max_wait_ms.
    ///     ForkedError: in a child process, if there is no state file.
    ///     ClosedError: after close.
    fn next_id(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(with!(self, ids => {
            self.poll(ids).or_else(|blocked| ids.next_id_after(blocked, &mut ReleasesGil::new(py)))?
        }))
    }

    /// Return the next ID without waiting. Raises the same exceptions as next_id, but at once.
    fn try_next_id(&self, py: Python<'_>) -> PyResult<u64> {
        with!(self, ids => self.poll(ids).or_else(|blocked| {
            if self.under_gil {
                ids.try_next_id_after(blocked)
            } else {
                // This may write to disk.
                py.detach(|| ids.try_next_id_after(blocked))
            }
        }))
        .or_raise()
    }

    /// Close this Snowflake. From then on, requests for IDs or stats raise ClosedError. Other Snowflakes on the same
    /// node or state file are not affected. A with block closes its Snowflake on exit.
    ///
    /// Closing the last Snowflake that uses a lease gives the node back, so that another process can lease it at once.
    /// This waits for the store, without the GIL, for at most 5 s.
    fn close(&self, py: Python<'_>) {
        py.detach(|| with!(self, ids => ids.close()));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    /// Return a list of the next n IDs. If the call raises an exception, IDs may be lost, but are never repeated.
    ///
    /// Raises:
    ///     InvalidOptionError: if n is not between 1 and 16777216.
    ///     PolyflakeError: for the same reasons as next_id.
    fn next_ids(&self, py: Python<'_>, n: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        batch::list(py, n, |ids, wait| with!(self, snowflake => snowflake.fill_with(ids, wait)))
    }

    /// Fill a writable, contiguous buffer of 8-byte integers with IDs, such as an array.array("Q"), a memoryview, or a
    /// NumPy or ctypes array. The formats are Q and q, and L and l if they have 8 bytes; signed formats are accepted
    /// only if the layout leaves the top bit free. Nothing else may write to the buffer during the call. If the call
    /// raises an exception, IDs may be lost, but are never repeated.
    ///
    /// Raises:
    ///     TypeError or BufferError: if the buffer is not of this kind.
    ///     PolyflakeError: for the same reasons as next_id.
    fn fill(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<()> {
        let all_bits = with!(self, ids => ids.layout().total_bits()) == 64;
        batch::fill(
            py,
            buffer,
            all_bits,
            |ids, wait| with!(self, snowflake => snowflake.fill_with(ids, wait)),
        )
    }

    /// Decode an ID with this Snowflake's layout.
    ///
    /// Raises:
    ///     InvalidIdError: if the ID has bits set outside the layout.
    fn decode(&self, id: &Bound<'_, PyAny>) -> PyResult<PyDecoded> {
        let id = convert::number(id, "id")?;
        with!(self, ids => ids.decode(id)).or_raise().map(PyDecoded)
    }

    /// The layout of the IDs.
    #[getter]
    fn layout(&self) -> PyLayout {
        PyLayout(with!(self, ids => *ids.layout()))
    }

    /// All node bits as one number, highest field first. With a lease, this is the current node, which may change after
    /// the lease is lost.
    #[getter]
    fn node(&self) -> u64 {
        with!(self, ids => ids.node())
    }

    /// A snapshot of the lease, or None if there is no lease.
    ///
    /// Raises:
    ///     ClockFailedError: if the custom clock raised an exception, or did not return Unix ms.
    ///     ForkedError: in a child process, if there is no state file.
    #[getter]
    fn lease(&self) -> PyResult<Option<PyLease>> {
        Ok(with!(self, ids => ids.lease()).or_raise()?.map(PyLease))
    }

    /// Counters for monitoring.
    ///
    /// Raises:
    ///     ClockFailedError: if the custom clock raised an exception, or did not return Unix ms.
    ///     ForkedError: in a child process, if there is no state file.
    ///     ClosedError: after close.
    #[getter]
    fn stats(&self) -> PyResult<PyStats> {
        with!(self, ids => ids.stats()).or_raise().map(PyStats)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<u64> {
        self.next_id(py)
    }

    fn __repr__(&self) -> String {
        with!(self, ids => format!("Snowflake(layout='{}', node={})", ids.layout(), ids.node()))
    }

    #[expect(clippy::unused_self, reason = "a method in Python")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Snowflake cannot be pickled or copied: a copy in another process would repeat IDs; create one in each \
             process, with its own node",
        ))
    }

    fn __traverse__(&self, visit: pyo3::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
        match &self.ids {
            AnySnowflake::Builtin(_) => {}
            AnySnowflake::Callers(ids) => visit.call(&*ids.clock().0)?,
        }
        Ok(())
    }
}

/// Set a state file's cursor back to the system clock. Use this after a wrong clock has moved the cursor far into the
/// future.
///
/// Stop the processes that use the file first. In any process that is still running, calls raise StateFileError until
/// the process restarts. IDs that were issued ahead of the clock are issued again once the clock reaches their time.
/// If the cursor is not ahead of the clock, the file is left unchanged.
///
/// Raises:
///     StateFileError: if the file does not exist or cannot be used.
#[pyfunction]
pub(crate) fn reset_state(py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<()> {
    let path = convert::path(path, "path")?;
    py.detach(|| polyflake::reset_state(path)).or_raise()
}

/// Builds without the GIL if there is a state file, because opening the file may take a second.
fn build<T: Send>(
    py: Python<'_>,
    state: Option<&Bound<'_, PyAny>>,
    build: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    if state.is_some() { py.detach(build) } else { build() }.or_raise()
}

impl PySnowflake {
    #[inline]
    fn poll<C: Clock>(&self, ids: &Snowflake<C>) -> Result<u64, Blocked> {
        if self.under_gil { ids.poll_next_id_under_lock() } else { ids.poll_next_id() }
    }
}

/// Statistics for monitoring, counted since the cursor was created. They are updated only on slow paths.
#[pyclass(frozen, eq, hash, module = "polyflake", name = "Stats")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyStats(Stats);

#[pymethods]
impl PyStats {
    /// The number of calls that found no free slot and waited or failed.
    #[getter]
    fn waits(&self) -> u64 {
        self.0.waits
    }

    /// The number of times the clock was seen to step back, whether or not the step was tolerated.
    #[getter]
    fn rollbacks(&self) -> u64 {
        self.0.rollbacks
    }

    /// How far ahead of the clock the last tick taken is, in ms; 0 if it is not ahead.
    #[getter]
    fn lead_ms(&self) -> u64 {
        self.0.lead_ms
    }

    /// The start of the last ID's tick, in Unix ms, or None before the first ID.
    #[getter]
    fn last_issued_ms(&self) -> Option<u64> {
        self.0.last_issued_ms
    }

    /// The number of times the lease was lost, because it expired or another process had its node.
    #[getter]
    fn lease_losses(&self) -> u64 {
        self.0.lease_losses
    }

    fn __repr__(&self) -> String {
        let Stats { waits, rollbacks, lead_ms, lease_losses, .. } = self.0;
        let last = self.0.last_issued_ms.map_or_else(|| "None".to_owned(), |ms| ms.to_string());
        format!(
            "Stats(waits={waits}, rollbacks={rollbacks}, lead_ms={lead_ms}, last_issued_ms={last}, \
             lease_losses={lease_losses})"
        )
    }
}
