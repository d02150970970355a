//! Replaces `Counter` in a build without the feature `coordination`.

use polyflake::Error;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::errors::OrRaise;

/// Numbers that count up, which this build does not have.
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

/// Counters for monitoring, of a Counter.
#[pyclass(frozen, module = "polyflake", name = "CounterStats")]
pub(crate) struct PyCounterStats;
