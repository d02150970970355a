//! Code shared by the tests of several crates.
//!
//! - `servers`: the stores' servers, on free ports. `proxy`: an unreliable network in front of them.
//! - `backend`: the operations that tests perform on any store.
//! - `journals`: test processes that record everything they receive. `faketime`: their clocks, set through libfaketime.
//! - `taken_numbers`: the numbers they took, and whether any was handed out twice.
#![cfg(unix)]
// Only tests use this crate, and they stop at the first failure.
#![allow(missing_docs, missing_debug_implementations)]
#![allow(clippy::missing_errors_doc, clippy::missing_panics_doc)]
#![allow(clippy::new_without_default, clippy::return_self_not_must_use)]

pub mod backend;
pub mod faketime;
pub mod journals;
pub mod proxy;
pub mod servers;
pub mod taken_numbers;
