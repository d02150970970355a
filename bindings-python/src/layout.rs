//! `Layout`, `Field` and `Decoded`: values.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

use polyflake::{Decoded, Field, Layout, Node, Number};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyTuple};

use crate::convert;
use crate::errors::OrRaise;

/// What the bits of an ID mean: fields from the highest bit down, the epoch, and the tick.
///
/// ``Layout("twitter")`` is a preset (see PRESETS),
/// ``Layout("timestamp:41|worker:10|sequence:12@1288834974657/1ms")`` a text (the epoch in Unix ms, the tick
/// as Nms or Ns), and ``Layout(fields={"timestamp": 41, "worker": 10, "sequence": 12}, epoch_ms=1288834974657)``
/// the same from its parts, the highest field first. ``str()`` gives the text.
///
/// Raises InvalidLayoutError or UnknownLayoutError.
///
/// >>> from polyflake import Layout
/// >>> Layout("discord").decode(175928847299117063).fields["worker"]
/// 1
#[pyclass(frozen, eq, hash, module = "polyflake", name = "Layout")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyLayout(pub(crate) Layout);

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
            (Some(text), None, None) if tick_ms.is_none() => convert::layout(text).map(Self),
            (None, Some(fields), Some(epoch_ms)) => {
                let fields = pairs(fields)?;
                let fields = fields.iter().map(|(name, bits)| (name.as_str(), *bits));
                let epoch_ms = convert::number(epoch_ms, "epoch_ms")?;
                let tick_ms = tick_ms.map_or(Ok(1.into()), |tick| convert::number(tick, "tick_ms"))?;
                Layout::from_fields(fields, epoch_ms, tick_ms).or_raise().map(Self)
            }
            _ => {
                Err(PyTypeError::new_err("Layout takes a preset's name or a text, or fields= and epoch_ms="))
            }
        }
    }

    /// Takes an ID apart. Raises InvalidIdError for one with bits above the layout's.
    fn decode(&self, id: &Bound<'_, PyAny>) -> PyResult<PyDecoded> {
        self.0.decode(convert::number(id, "id")?).or_raise().map(PyDecoded)
    }

    /// The ID of an instant (a datetime with a time zone, or an int of Unix ms), rounded down to its tick, a
    /// node (an int, a mapping, or None where the layout has no node field) and a sequence number. Nothing keeps it from repeating an issued ID.
    ///
    /// Raises TimeOutOfRangeError, InvalidNodeError, or InvalidOptionError for the sequence.
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

    /// The lowest ID at or after an instant (a datetime with a time zone, or an int of Unix ms).
    ///
    /// Raises TimeOutOfRangeError, or InvalidLayoutError where a node field stands above the timestamp.
    fn min_id(&self, time: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.min_id(convert::unix_time(time)?).or_raise()
    }

    /// The highest ID at or before an instant (a datetime with a time zone, or an int of Unix ms).
    ///
    /// Raises TimeOutOfRangeError, or InvalidLayoutError where a node field stands above the timestamp.
    fn max_id(&self, time: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.max_id(convert::unix_time(time)?).or_raise()
    }

    /// Every field, from the highest bit down.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.fields().iter().map(|field| PyField(*field)))
    }

    /// The instant of tick 0, in Unix ms.
    #[getter]
    fn epoch_ms(&self) -> u64 {
        self.0.epoch_ms()
    }

    /// The instant of tick 0 in UTC; None past the year 9999.
    #[getter]
    fn epoch<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        convert::to_datetime(py, self.0.epoch_ms())
    }

    /// How long a tick lasts, in ms.
    #[getter]
    fn tick_ms(&self) -> u64 {
        self.0.tick_ms()
    }

    /// The layout's last instant, in Unix ms.
    #[getter]
    fn ends_at_ms(&self) -> u64 {
        self.0.ends_at_ms()
    }

    /// The layout's last instant in UTC; None past the year 9999.
    #[getter]
    fn ends_at<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        convert::to_datetime(py, self.0.ends_at_ms())
    }

    /// How many IDs one node can issue in a tick.
    #[getter]
    fn ids_per_tick(&self) -> u64 {
        self.0.ids_per_tick()
    }

    /// How many nodes the layout tells apart.
    #[getter]
    fn nodes(&self) -> u64 {
        self.0.nodes()
    }

    /// The width of all fields together.
    #[getter]
    fn total_bits(&self) -> u32 {
        self.0.total_bits()
    }

    /// The width of the timestamp.
    #[getter]
    fn timestamp_bits(&self) -> u32 {
        self.0.timestamp_bits()
    }

    /// How many bits stand below the timestamp.
    #[getter]
    fn timestamp_shift(&self) -> u32 {
        self.0.timestamp_shift()
    }

    /// The width of the sequence.
    #[getter]
    fn sequence_bits(&self) -> u32 {
        self.0.sequence_bits()
    }

    /// How many bits stand below the sequence.
    #[getter]
    fn sequence_shift(&self) -> u32 {
        self.0.sequence_shift()
    }

    /// The width of all node fields together.
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

/// A mapping, or a sequence of pairs, of names to widths.
fn pairs(fields: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Number)>> {
    let items = match fields.cast::<PyMapping>() {
        Ok(mapping) => mapping.items()?.into_any(),
        Err(_) => fields.clone(),
    };
    let mut pairs = Vec::new();
    let no_pair = "fields must be pairs of a name (str) and a width in bits (int)";
    for pair in items.try_iter().map_err(|_| PyTypeError::new_err(no_pair))? {
        let pair: Vec<Bound<'_, PyAny>> = pair?.try_iter()?.collect::<PyResult<_>>()?;
        let [name, bits] = pair.as_slice() else { return Err(PyTypeError::new_err(no_pair)) };
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
    /// ``timestamp``, ``sequence``, or a node field's own name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The field's width.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits()
    }

    /// How many bits stand below the field.
    #[getter]
    fn shift(&self) -> u32 {
        self.0.shift()
    }

    /// The field's bits, in their place in the ID.
    #[getter]
    fn mask(&self) -> u64 {
        self.0.mask()
    }

    fn __repr__(&self) -> String {
        format!("Field(name='{}', bits={}, shift={})", self.0.name(), self.0.bits(), self.0.shift())
    }
}

/// An ID taken apart.
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

    /// The layout it was taken apart by.
    #[getter]
    fn layout(&self) -> PyLayout {
        PyLayout(*self.0.layout())
    }

    /// The start of the ID's tick, in Unix ms.
    #[getter]
    fn timestamp_ms(&self) -> u64 {
        self.0.timestamp_ms()
    }

    /// The start of the ID's tick in UTC; None past the year 9999.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        convert::to_datetime(py, self.0.timestamp_ms())
    }

    /// How many ticks after the epoch.
    #[getter]
    fn ticks(&self) -> u64 {
        self.0.ticks()
    }

    /// All node fields joined, from the highest to the lowest.
    #[getter]
    fn node(&self) -> u64 {
        self.0.node()
    }

    /// The node fields' names and values, from the highest down.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        for (name, value) in self.0.fields() {
            fields.set_item(name, value)?;
        }
        Ok(fields)
    }

    /// The number within the tick.
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
            // Writing to a `String` does not fail.
            let _ = write!(repr, ", {name}={value}");
        }
        Ok(format!("{repr}, sequence={})", decoded.sequence()))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (u64,))> {
        Ok((slf.getattr("layout")?.getattr("decode")?, (slf.get().0.id(),)))
    }
}
