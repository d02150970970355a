//! Stands in for `Sequences` in a build without the `coordination` feature.

use polyflake::Error;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::errors::OrRaise;

/// Sequences, which this build does not support.
#[pyclass(frozen, module = "polyflake", name = "Sequences")]
pub(crate) struct PySequences;

#[pymethods]
impl PySequences {
    #[new]
    #[pyo3(signature = (*_arguments, **_options))]
    fn new(_arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Err(Error::no_stores("sequences")).or_raise()
    }
}

/// Figures for monitoring, about Sequences.
#[pyclass(frozen, module = "polyflake", name = "SequencesStats")]
pub(crate) struct PySequencesStats;
