//! Lets a program inspect its lease, and wait for one.

use std::hash::{Hash, Hasher};

use polyflake::LeaseInfo;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::OrRaise;
use crate::wait::ReleasesGil;

/// A snapshot of a Snowflake's lease, from Snowflake.lease.
#[pyclass(frozen, eq, hash, module = "polyflake", name = "Lease")]
#[derive(PartialEq, Eq)]
pub(crate) struct PyLease(pub(crate) LeaseInfo);

impl Hash for PyLease {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let LeaseInfo { node, bound_ms, left_ms, .. } = self.0;
        (node, bound_ms, left_ms).hash(state);
    }
}

#[pymethods]
impl PyLease {
    /// The leased node, or the last one leased if none is held now.
    #[getter]
    fn node(&self) -> u64 {
        self.0.node
    }

    /// The time until which IDs may be issued without a reply from the store, in Unix ms; 0 if no node is held now.
    #[getter]
    fn bound_ms(&self) -> u64 {
        self.0.bound_ms
    }

    /// The number of ms left until bound_ms.
    #[getter]
    fn left_ms(&self) -> u64 {
        self.0.left_ms
    }

    /// The store's address, without secrets.
    #[getter]
    fn store(&self) -> &str {
        &self.0.store
    }

    /// One of "held", "unreachable" (the store did not answer the last request, and IDs are issued until the bound),
    /// "lost" (the lease expired, and no IDs are issued until the store renews it or leases another node), or "closed".
    #[getter]
    fn state(&self) -> &'static str {
        self.0.state.name()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let LeaseInfo { node, bound_ms, left_ms, store, state, .. } = &self.0;
        let store = PyString::new(py, store).repr()?;
        let state = state.name();
        Ok(format!(
            "Lease(node={node}, bound_ms={bound_ms}, left_ms={left_ms}, store={store}, state='{state}')"
        ))
    }
}

/// Builds a Snowflake with a leased node. Handles signals, and does not hold the GIL, while it waits for a node.
pub(crate) fn build(py: Python<'_>, options: &polyflake::Options) -> PyResult<polyflake::Snowflake> {
    crate::log::prepare(py)?;
    let leased = polyflake_coordination::lease(options, &mut ReleasesGil::new(py))?;
    options.build_on_lease(leased.lease(), polyflake::StdTime, |clock| clock).or_raise()
}
