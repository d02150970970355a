//! Only one interpreter in a process can use this module: the first to import it.
//!
//! PyO3 does not check this for a module with two-phase initialization. CPython rejects only interpreters with a
//! separate GIL, and a program can turn that check off. But the cursor's code path without a locked instruction relies
//! on there being a single GIL, and the statics hold classes and exceptions created by the first interpreter.

use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Identifies the interpreter that can use the module; 0 before the first import. The value is kept after that
/// interpreter shuts down.
static OWNER: AtomicUsize = AtomicUsize::new(0);
/// The last value assigned. Interpreter IDs cannot be used for this, because they start at 0 again after `Py_Finalize`.
static LAST_MARK: AtomicUsize = AtomicUsize::new(0);

/// Claims the module for this interpreter. Returns an `ImportError` in every interpreter except the first.
pub(crate) fn claim(py: Python<'_>) -> PyResult<()> {
    // SAFETY: this thread is attached to an interpreter, which keeps its dict alive. A null pointer means that the
    // interpreter has no dict.
    let marks = unsafe {
        let marks = ffi::PyInterpreterState_GetDict(ffi::PyInterpreterState_Get());
        Bound::from_borrowed_ptr_or_opt(py, marks)
    };
    let marks =
        marks.ok_or_else(|| PyImportError::new_err("the interpreter has no dict"))?.cast_into::<PyDict>()?;
    // Each copy of the library has its own key.
    let key = format!("polyflake at {:p}", &raw const OWNER);
    let new = LAST_MARK.fetch_add(1, Ordering::Relaxed) + 1;
    let mark: usize = marks.call_method1("setdefault", (key, new))?.extract()?;
    match OWNER.compare_exchange(0, mark, Ordering::AcqRel, Ordering::Acquire) {
        Err(owner) if owner != mark => Err(PyImportError::new_err(
            "polyflake was first imported in another interpreter of this process, and only that one can use it: \
             interpreters would share its state without a common lock; let one interpreter of each process import it \
             (with mod_wsgi, set WSGIApplicationGroup %{GLOBAL})",
        )),
        _ => Ok(()),
    }
}

/// Returns whether this thread is attached to the main interpreter.
pub(crate) fn is_main(_py: Python<'_>) -> bool {
    // SAFETY: this thread is attached to an interpreter.
    unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) == 0 }
}
