//! The value types `Layout`, `Field`, `Decoded` and `DecodedAll`.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use polyflake::{Decoded, DecodedAll, Field, Layout, Node, Number};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PyString, PyTuple};

use crate::convert;
use crate::errors::OrRaise;
use crate::load::load;

/// The meaning of an ID's bits: the fields from the highest bit down, the epoch, and the tick.
///
/// ``Layout("twitter")`` is a preset; see PRESETS.
/// ``Layout("timestamp:41|worker:10|sequence:12@1288834974657/1ms")`` creates a layout from a layout string, with the
/// epoch in Unix ms and the tick as Nms or Ns.
/// ``Layout(fields={"timestamp": 41, "worker": 10, "sequence": 12}, epoch_ms=1288834974657)`` creates the same layout
/// from its parts, highest field first; tick_ms is 1 by default.
/// ``str(layout)`` returns the layout string.
///
/// Raises:
///     InvalidLayoutError: if the layout is invalid.
///     UnknownLayoutError: if no preset has this name.
///
/// >>> from polyflake import Layout
/// >>> Layout("discord").decode(175928847299117063).fields["worker"]
/// 1
#[pyclass(frozen, eq, hash, module = "polyflake", name = "Layout")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyLayout(pub(crate) Layout);

/// Reads a layout from a `Layout` or a string.
pub(crate) fn given(value: &Bound<'_, PyAny>) -> PyResult<Layout> {
    if let Ok(layout) = value.cast::<PyLayout>() {
        return Ok(layout.get().0);
    }
    if !value.is_instance_of::<PyString>() {
        return Err(convert::wrong_type(value, "layout", "a str or a Layout"));
    }
    Layout::parse(&convert::text(value, "layout")?).or_raise()
}

#[pymethods]
impl PyLayout {
    #[new]
    #[pyo3(signature = (text = None, /, *, fields = None, epoch_ms = None, tick_ms = None))]
    fn new(
        text: Option<&Bound<'_, PyAny>>,
        fields: Option<&Bound<'_, PyAny>>,
        epoch_ms: Option<&Bound<'_, PyAny>>,
        tick_ms: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        match (text, fields, epoch_ms) {
            (Some(text), None, None) if tick_ms.is_none() => given(text).map(Self),
            (None, Some(fields), Some(epoch_ms)) => {
                let fields = pairs(fields)?;
                let fields = fields.iter().map(|(name, bits)| (name.as_str(), *bits));
                let epoch_ms = convert::number(epoch_ms, "epoch_ms")?;
                let tick_ms = tick_ms.map_or(Ok(1.into()), |tick| convert::number(tick, "tick_ms"))?;
                Layout::from_fields(fields, epoch_ms, tick_ms).or_raise().map(Self)
            }
            _ => Err(PyTypeError::new_err(
                "Layout takes a preset's name or a layout string, or fields= and epoch_ms=",
            )),
        }
    }

    /// Decode an ID.
    ///
    /// Raises:
    ///     InvalidIdError: if the ID has bits set outside the layout.
    fn decode(&self, id: &Bound<'_, PyAny>) -> PyResult<PyDecoded> {
        self.0.decode(convert::number(id, "id")?).or_raise().map(PyDecoded)
    }

    /// Decode all IDs in a contiguous buffer of 8-byte integers, such as an array.array("Q"), a memoryview or a NumPy
    /// array. The formats are Q and q, and L and l if they have 8 bytes. The buffer may be read-only.
    ///
    /// The IDs are copied, so the buffer may change afterwards. Nothing else may write to it during the call.
    ///
    /// Raises:
    ///     TypeError or BufferError: if the buffer is not of this kind.
    ///     InvalidIdError: if an ID is negative or has bits set outside the layout. The message names the first such
    ///         ID.
    fn decode_all(slf: &Bound<'_, Self>, buffer: &Bound<'_, PyAny>) -> PyResult<PyDecodedAll> {
        let takes = "decode_all takes a contiguous buffer of 8-byte integers (format Q or q)";
        let (buffer, signed) = convert::buffer(buffer, takes)?;
        let mut ids = vec![0; buffer.item_count()];
        // SAFETY: the exporter keeps `ids.len()` contiguous 8-byte integers at `buf_ptr` for as long as `buffer` is
        // held. Bytes need no alignment, and every bit pattern is a valid u64.
        unsafe {
            let first = buffer.buf_ptr().cast::<u8>();
            first.copy_to_nonoverlapping(ids.as_mut_ptr().cast(), size_of_val(ids.as_slice()));
        }
        let layout = &slf.get().0;
        let negative = signed && ids.iter().fold(0, |bits, id| bits | id) >> 63 == 1;
        if negative || layout.decode_all(&ids).is_err() {
            for id in &ids {
                let id = if signed { i64::from_ne_bytes(id.to_ne_bytes()).into() } else { Number::from(*id) };
                layout.decode(id).or_raise()?;
            }
        }
        Ok(PyDecodedAll { ids, layout: slf.clone().unbind(), columns: Columns::default() })
    }

    /// Build an ID from a time, a node and a sequence number.
    ///
    /// Args:
    ///     time: a datetime with a time zone, or an int of Unix ms, rounded down to the tick.
    ///     node: an int, a mapping of field names to ints, or None if the layout has no node field.
    ///
    /// The ID may equal one that was already issued.
    ///
    /// Raises:
    ///     TimeOutOfRangeError: if the time is before the epoch or past the layout's end.
    ///     InvalidNodeError: if the node does not fit the layout.
    ///     InvalidOptionError: if the sequence number does not fit the layout, or the time has no time zone.
    #[pyo3(signature = (time, node, sequence))]
    fn compose(
        &self,
        time: &Bound<'_, PyAny>,
        node: Option<&Bound<'_, PyAny>>,
        sequence: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let time = convert::unix_time(time)?;
        let node = node.map_or(Ok(Node::NO_FIELDS), convert::node)?;
        self.0.compose(time, node, convert::number(sequence, "sequence")?).or_raise()
    }

    /// Return the lowest ID at or after a time: a datetime with a time zone, or an int of Unix ms.
    ///
    /// Raises:
    ///     TimeOutOfRangeError: if the layout has no ID for this time.
    ///     InvalidLayoutError: if a node field is above the timestamp.
    ///     InvalidOptionError: if the time has no time zone.
    fn min_id(&self, time: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.min_id(convert::unix_time(time)?).or_raise()
    }

    /// Return the highest ID at or before a time: a datetime with a time zone, or an int of Unix ms.
    ///
    /// Raises:
    ///     TimeOutOfRangeError: if the layout has no ID for this time.
    ///     InvalidLayoutError: if a node field is above the timestamp.
    ///     InvalidOptionError: if the time has no time zone.
    fn max_id(&self, time: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.max_id(convert::unix_time(time)?).or_raise()
    }

    /// All fields, highest first.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.fields().iter().map(|field| PyField(*field)))
    }

    /// The start of tick 0, in Unix ms.
    #[getter]
    fn epoch_ms(&self) -> u64 {
        self.0.epoch_ms()
    }

    /// The start of tick 0, in UTC; None past the year 9999.
    #[getter]
    fn epoch<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        convert::to_datetime(py, self.0.epoch_ms())
    }

    /// The length of a tick, in ms.
    #[getter]
    fn tick_ms(&self) -> u64 {
        self.0.tick_ms()
    }

    /// The layout's last instant, in Unix ms.
    #[getter]
    fn ends_at_ms(&self) -> u64 {
        self.0.ends_at_ms()
    }

    /// The layout's last instant, in UTC; None past the year 9999.
    #[getter]
    fn ends_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        convert::to_datetime(py, self.0.ends_at_ms())
    }

    /// The number of IDs that one node can issue in a tick.
    #[getter]
    fn ids_per_tick(&self) -> u64 {
        self.0.ids_per_tick()
    }

    /// The number of nodes the layout can distinguish.
    #[getter]
    fn nodes(&self) -> u64 {
        self.0.nodes()
    }

    /// The combined width of all fields, in bits.
    #[getter]
    fn total_bits(&self) -> u32 {
        self.0.total_bits()
    }

    /// The width of the timestamp, in bits.
    #[getter]
    fn timestamp_bits(&self) -> u32 {
        self.0.timestamp_bits()
    }

    /// The number of bits below the timestamp.
    #[getter]
    fn timestamp_shift(&self) -> u32 {
        self.0.timestamp_shift()
    }

    /// The width of the sequence, in bits.
    #[getter]
    fn sequence_bits(&self) -> u32 {
        self.0.sequence_bits()
    }

    /// The number of bits below the sequence.
    #[getter]
    fn sequence_shift(&self) -> u32 {
        self.0.sequence_shift()
    }

    /// The combined width of all node fields, in bits.
    #[getter]
    fn node_bits(&self) -> u32 {
        self.0.node_bits()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Layout('{}')", self.0)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyAny>, (String,)) {
        (slf.get_type().into_any(), (slf.get().0.to_string(),))
    }
}

/// Reads the names and widths of fields from a mapping or an iterable of pairs.
fn pairs(fields: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Number)>> {
    let items = convert::items(fields)?.unwrap_or_else(|| fields.clone());
    let mut pairs = Vec::new();
    let not_a_pair = "fields must be pairs of a name (str) and a width in bits (int)";
    for pair in items.try_iter().map_err(|_| PyTypeError::new_err(not_a_pair))? {
        let pair: Vec<Bound<'_, PyAny>> = pair?.try_iter()?.collect::<PyResult<_>>()?;
        let [name, bits] = pair.as_slice() else { return Err(PyTypeError::new_err(not_a_pair)) };
        let name = convert::text(name, "a field's name")?.into_owned();
        pairs.push((name, convert::number(bits, "a field's width")?));
    }
    Ok(pairs)
}

/// A field of a layout.
#[pyclass(frozen, eq, hash, module = "polyflake", name = "Field")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyField(Field);

#[pymethods]
impl PyField {
    /// ``timestamp``, ``sequence``, or the name of a node field.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The width of the field, in bits.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits()
    }

    /// The number of bits below the field.
    #[getter]
    fn shift(&self) -> u32 {
        self.0.shift()
    }

    /// A mask of the field's bits within an ID.
    #[getter]
    fn mask(&self) -> u64 {
        self.0.mask()
    }

    fn __repr__(&self) -> String {
        format!("Field(name='{}', bits={}, shift={})", self.0.name(), self.0.bits(), self.0.shift())
    }
}

/// A decoded ID.
#[pyclass(frozen, eq, module = "polyflake", name = "Decoded")]
#[derive(PartialEq, Eq)]
pub(crate) struct PyDecoded(pub(crate) Decoded);

#[pymethods]
impl PyDecoded {
    /// The ID.
    #[getter]
    fn id(&self) -> u64 {
        self.0.id()
    }

    /// The layout used to decode the ID.
    #[getter]
    fn layout(&self) -> PyLayout {
        PyLayout(*self.0.layout())
    }

    /// The start of the ID's tick, in Unix ms.
    #[getter]
    fn timestamp_ms(&self) -> u64 {
        self.0.timestamp_ms()
    }

    /// The start of the ID's tick, in UTC; None past the year 9999.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        convert::to_datetime(py, self.0.timestamp_ms())
    }

    /// The number of ticks since the epoch.
    #[getter]
    fn ticks(&self) -> u64 {
        self.0.ticks()
    }

    /// All node bits as one number, highest field first.
    #[getter]
    fn node(&self) -> u64 {
        self.0.node()
    }

    /// The values of the node fields by name, highest field first.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        for (name, value) in self.0.fields() {
            fields.set_item(name, value)?;
        }
        Ok(fields)
    }

    /// The sequence number within the tick.
    #[getter]
    fn sequence(&self) -> u64 {
        self.0.sequence()
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let decoded = &self.0;
        let time = match self.time(py)? {
            Some(time) => time.call_method0("isoformat")?.to_string(),
            None => "None".to_owned(),
        };
        let mut repr = format!("Decoded(id={}, time={time}", decoded.id());
        for (name, value) in decoded.fields() {
            // Writing to a `String` cannot fail.
            let _ = write!(repr, ", {name}={value}");
        }
        Ok(format!("{repr}, sequence={})", decoded.sequence()))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (u64,))> {
        Ok((slf.getattr("layout")?.getattr("decode")?, (slf.get().0.id(),)))
    }
}

/// Many decoded IDs, as columns. Each column is a read-only memoryview with one value per ID, in the same order, and is
/// created when it is first read.
///
/// ``numpy.asarray(column)`` does not copy the column. ``ids`` has format Q (uint64), and all other columns have format
/// q (int64), so ``numpy.asarray(decoded.timestamps_ms).view("datetime64[ms]")`` returns the times.
#[pyclass(frozen, eq, hash, module = "polyflake", name = "DecodedAll")]
pub(crate) struct PyDecodedAll {
    ids: Vec<u64>,
    layout: Py<PyLayout>,
    columns: Columns,
}

/// The columns that have been read so far.
#[derive(Default)]
struct Columns {
    ids: OnceLock<Py<PyAny>>,
    timestamps_ms: OnceLock<Py<PyAny>>,
    ticks: OnceLock<Py<PyAny>>,
    nodes: OnceLock<Py<PyAny>>,
    fields: OnceLock<Py<PyDict>>,
    sequences: OnceLock<Py<PyAny>>,
}

#[pymethods]
impl PyDecodedAll {
    /// The IDs.
    #[getter]
    fn ids(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        once(py, &self.columns.ids, || column(py, "Q", self.ids.iter().copied()))
    }

    /// The layout used to decode the IDs.
    #[getter]
    fn layout(&self, py: Python<'_>) -> Py<PyLayout> {
        self.layout.clone_ref(py)
    }

    /// The start of each ID's tick, in Unix ms.
    #[getter]
    fn timestamps_ms(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        once(py, &self.columns.timestamps_ms, || column(py, "q", self.decoded()?.timestamps_ms()))
    }

    /// The number of ticks since the epoch.
    #[getter]
    fn ticks(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        once(py, &self.columns.ticks, || column(py, "q", self.decoded()?.ticks()))
    }

    /// All node bits as one number, highest field first.
    #[getter]
    fn nodes(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        once(py, &self.columns.nodes, || column(py, "q", self.decoded()?.nodes()))
    }

    /// The columns of the node fields by name, highest field first.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = once(py, &self.columns.fields, || {
            let fields = PyDict::new(py);
            let decoded = self.decoded()?;
            for field in decoded.layout().node_fields() {
                if let Some(values) = decoded.field(field.name()) {
                    fields.set_item(field.name(), column(py, "q", values)?)?;
                }
            }
            Ok(fields)
        })?;
        // A copy, because the caller may change it.
        fields.bind(py).copy()
    }

    /// The sequence number within each tick.
    #[getter]
    fn sequences(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        once(py, &self.columns.sequences, || column(py, "q", self.decoded()?.sequences()))
    }

    fn __len__(&self) -> usize {
        self.ids.len()
    }

    fn __repr__(&self) -> String {
        format!("DecodedAll({} IDs, layout='{}')", self.ids.len(), self.layout.get().0)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>,))> {
        let ids = slf.getattr("ids")?.call_method0("tobytes")?;
        let ids = load(slf.py(), "array")?.getattr("array")?.call1(("Q", ids))?;
        Ok((slf.getattr("layout")?.getattr("decode_all")?, (ids,)))
    }
}

impl PyDecodedAll {
    fn decoded(&self) -> PyResult<DecodedAll<'_>> {
        self.layout.get().0.decode_all(&self.ids).or_raise()
    }
}

impl PartialEq for PyDecodedAll {
    fn eq(&self, other: &Self) -> bool {
        self.ids == other.ids && self.layout.get() == other.layout.get()
    }
}

impl Hash for PyDecodedAll {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ids.hash(state);
        self.layout.get().hash(state);
    }
}

/// Creates a value on first use. It is created outside the lock, which would otherwise be held while Python code runs.
fn once<'py, T>(
    py: Python<'py>,
    cell: &OnceLock<Py<T>>,
    make: impl FnOnce() -> PyResult<Bound<'py, T>>,
) -> PyResult<Py<T>> {
    if let Some(value) = cell.get() {
        return Ok(value.clone_ref(py));
    }
    let value = make()?.unbind();
    Ok(cell.get_or_init(|| value).clone_ref(py))
}

/// Creates a read-only memoryview of 8-byte integers.
fn column<'py>(
    py: Python<'py>,
    format: &str,
    values: impl ExactSizeIterator<Item = u64>,
) -> PyResult<Bound<'py, PyAny>> {
    let bytes = PyBytes::new_with(py, values.len() * size_of::<u64>(), |bytes| {
        for (bytes, value) in bytes.chunks_exact_mut(size_of::<u64>()).zip(values) {
            bytes.copy_from_slice(&value.to_ne_bytes());
        }
        Ok(())
    })?;
    PyMemoryView::from(&bytes)?.call_method1("cast", (format,))
}
