//! The native half of the Python package `polyflake`. It only converts types; the core does everything else.
#![allow(clippy::doc_markdown, reason = "doc comments here become Python docstrings")]

mod awaited;
mod batch;
mod convert;
mod counter;
mod errors;
mod interpreter;
mod layout;
mod lease;
mod load;
mod log;
mod public_ids;
mod sequences;
mod snowflake;
mod wait;

use std::ffi::CString;

use polyflake::{ErrorCode, Format};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::OrRaise;

/// Write an ID as text: ``decimal`` (the default), ``hex``, ``base32``, ``base36``, ``base58``, ``base62``,
/// ``uuid``, ``bwmarrin-base32`` or ``bwmarrin-base58``.
///
/// Strings in ``base32`` (Crockford, 13 digits), ``base62`` (11 digits) and ``uuid`` (a version 8 UUID, for columns of
/// that type) sort in the order of the IDs. The last two formats use the alphabets of the Go package
/// bwmarrin/snowflake.
///
/// Raises:
///     InvalidIdError: if the ID does not fit in 64 bits.
///     InvalidOptionError: if the format is unknown.
///
/// >>> from polyflake import format_id
/// >>> format_id(38358284406638839, "base32")
/// '01226N0640J7Q'
#[pyfunction]
#[pyo3(signature = (id, format = None))]
fn format_id(id: &Bound<'_, PyAny>, format: Option<&Bound<'_, PyAny>>) -> PyResult<String> {
    let format = format_of(format)?;
    let id = convert::number(id, "id")?.to_id().or_raise()?;
    Ok(format.write(id).as_str().to_owned())
}

/// Parse an ID from text written by format_id or another program. The default format is ``decimal``.
///
/// ``hex``, ``base32``, ``base36`` and ``uuid`` may be in upper or lower case.
///
/// Raises:
///     InvalidIdError: if the text contains an invalid character, exceeds 64 bits, or is a UUID that does not represent
///         an ID. The message gives the position.
///     InvalidOptionError: if the format is unknown.
///
/// >>> from polyflake import parse_id
/// >>> parse_id("01226n0640j7q", "base32")
/// 38358284406638839
#[pyfunction]
#[pyo3(signature = (text, format = None))]
fn parse_id(text: &Bound<'_, PyAny>, format: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    format_of(format)?.read(&convert::text(text, "text")?).or_raise()
}

fn format_of(name: Option<&Bound<'_, PyAny>>) -> PyResult<Format> {
    name.map_or(Ok(Format::default()), |name| convert::text(name, "format")?.parse().or_raise())
}

/// The native half of polyflake.
#[pymodule(gil_used = false)]
fn _polyflake(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    // This comes first, so that no other interpreter can receive objects that belong to the first one.
    interpreter::claim(py)?;
    if let Some(warning) = polyflake::copies_warning().and_then(|text| CString::new(text).ok()) {
        PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &warning, 1)?;
    }
    convert::prepare(py)?;
    load::prepare(py)?;
    // Not public, so not in `__all__`.
    module.setattr("_load", wrap_pyfunction!(load::load, module)?)?;
    // Creates the class.
    py.get_type::<awaited::Waiter>();
    errors::class(py, ErrorCode::Internal)?;
    module.add_class::<counter::PyCounter>()?;
    module.add_class::<counter::PyCounterStats>()?;
    module.add_class::<layout::PyDecoded>()?;
    module.add_class::<layout::PyDecodedAll>()?;
    module.add_class::<layout::PyField>()?;
    module.add_class::<layout::PyLayout>()?;
    module.add_class::<lease::PyLease>()?;
    module.add_class::<public_ids::PyPublicIds>()?;
    module.add_class::<sequences::PySequences>()?;
    module.add_class::<sequences::PySequencesStats>()?;
    module.add_class::<snowflake::PySnowflake>()?;
    module.add_class::<snowflake::PyStats>()?;
    module.add_function(wrap_pyfunction!(snowflake::reset_state, module)?)?;
    module.add_function(wrap_pyfunction!(format_id, module)?)?;
    module.add_function(wrap_pyfunction!(parse_id, module)?)?;
    let presets = polyflake::PRESETS.iter().map(|preset| preset.name);
    module.add("PRESETS", PyTuple::new(py, presets)?)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
