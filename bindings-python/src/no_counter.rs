//! Stands in for `Counter` in a build without the `coordination` feature.

use polyflake::Error;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::errors::OrRaise;

/// A counter, which this build does not support.
#[pyclass(frozen, module = "polyflake", name = "Counter")]
pub(crate) struct PyCounter;

#[pymethods]
impl PyCounter {
    #[new]
    #[pyo3(signature = (*_arguments, **_options))]
    fn new(_arguments: &Bound<'_, PyTuple>, _options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Err(Error::no_stores("counters")).or_raise()
    }
}

/// Figures for monitoring, about Counters.
#[pyclass(frozen, module = "polyflake", name = "CounterStats")]
pub(crate) struct PyCounterStats;
