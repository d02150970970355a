//! `PublicIds` from the core, with Python types.

use polyflake::{PublicIdKey, PublicIds};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PySet, PyString, PyTuple};

use crate::convert;
use crate::errors::OrRaise;

/// Turns IDs into short strings for outsiders, such as ``order_15ShV20Bxc6UJvKSQbDvo0J``, and back. The string hides
/// when and where the ID was issued, and can be decoded without a lookup table.
///
/// Args:
///     keys: the keys, each ``pfk_`` and 23 base62 digits: an iterable of str, or one str with keys separated by
///         whitespace or commas. The first key is used for encoding, so an unordered set is rejected. Every key is used
///         for decoding. `generate_key` and ``polyflake public key`` generate keys.
///     prefix: the beginning of every string: words made of a-z and 0-9, joined by ``_``, at most 24 characters in all,
///         or "".
///
/// A PublicIds takes a few KiB of memory, and threads may share it. Its repr does not show the keys. When it is
/// dropped, it wipes the keys from its memory, but Python still holds the strings you passed in.
///
/// Raises:
///     InvalidOptionError: if a key or the prefix is invalid, if two keys have the same number or the same bytes, or if
///         there are no keys or more than 16. The message does not show any part of a key.
///
/// >>> from polyflake import PublicIds
/// >>> orders = PublicIds("pfk_10kvEGTqNtUTXFUlMnM4wIa", "order")
/// >>> orders.encode(1541815603606036480)
/// 'order_15ShV20Bxc6UJvKSQbDvo0J'
/// >>> orders.decode("order_15ShV20Bxc6UJvKSQbDvo0J")
/// 1541815603606036480
#[pyclass(frozen, module = "polyflake", name = "PublicIds")]
pub(crate) struct PyPublicIds(PublicIds);

#[pymethods]
impl PyPublicIds {
    #[new]
    fn new(keys: &Bound<'_, PyAny>, prefix: &Bound<'_, PyAny>) -> PyResult<Self> {
        let keys = if keys.is_instance_of::<PyString>() {
            vec![keys.clone()]
        } else if keys.is_instance_of::<PySet>() || keys.is_instance_of::<PyFrozenSet>() {
            // A set has no order, so different processes would encode with different keys.
            return Err(convert::wrong_type(keys, "keys", "a str or an iterable of str that has an order"));
        } else {
            convert::listed(keys, "keys", "str")?
        };
        let keys = keys.iter().map(|key| convert::text(key, "a key")).collect::<PyResult<Vec<_>>>()?;
        PublicIds::from_texts(&keys, &convert::text(prefix, "prefix")?).or_raise().map(Self)
    }

    /// Encode an ID as a string.
    ///
    /// Raises:
    ///     InvalidIdError: if the ID does not fit in 64 bits.
    fn encode<'py>(&self, id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let text = self.0.encode(convert::number(id, "id")?.to_id().or_raise()?);
        Ok(PyString::new(id.py(), &text))
    }

    /// Encode an iterable of IDs, such as those on a page of rows.
    ///
    /// Raises:
    ///     InvalidIdError: if an ID does not fit in 64 bits.
    fn encode_all<'py>(&self, ids: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyString>>> {
        convert::listed(ids, "ids", "int")?.iter().map(|id| self.encode(id)).collect()
    }

    /// Decode a string.
    ///
    /// A string that was not encoded with this prefix and one of these keys is accepted with a probability of 2**-64.
    ///
    /// Raises:
    ///     InvalidIdError: for any other string; the message gives the reason.
    fn decode(&self, text: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.decode(&convert::text(text, "text")?).or_raise()
    }

    /// Decode an iterable of strings.
    ///
    /// Raises:
    ///     InvalidIdError: if one of them is not an encoded ID; the message gives the reason.
    fn decode_all(&self, texts: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
        convert::listed(texts, "texts", "str")?.iter().map(|text| self.decode(text)).collect()
    }

    /// Generate a key from the operating system's random bytes. Keep it where you keep secrets.
    ///
    /// Args:
    ///     number: the key's number, from 0 to 61. Every encoded ID names its key by this number, so give each key a
    ///         different one. Default: 0.
    ///
    /// Raises:
    ///     InvalidOptionError: if the number is outside this range.
    #[staticmethod]
    #[pyo3(signature = (number = None))]
    fn generate_key(number: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
        let number = number.map_or(Ok(0.into()), |number| convert::number(number, "number"))?;
        let key = PublicIdKey::generate(number).or_raise()?;
        Ok(key.to_text().as_str().to_owned())
    }

    /// The prefix of the strings.
    #[getter]
    fn prefix(&self) -> &str {
        self.0.prefix()
    }

    /// The keys' numbers, in the order of the keys. The first key is used for encoding.
    #[getter]
    fn key_numbers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.key_numbers().collect::<Vec<_>>())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let numbers = self.key_numbers(py)?.repr()?;
        Ok(format!("PublicIds(prefix='{}', key_numbers={numbers})", self.0.prefix()))
    }

    // A PublicIds never changes, and copying it would put the keys in a second place in memory.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    #[expect(clippy::unused_self, reason = "a method in Python")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a PublicIds cannot be pickled, since it has keys; create one in each process",
        ))
    }
}
