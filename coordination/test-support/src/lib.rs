//! What the tests of several crates share.
//!
//! - `servers`: the servers of stores, on free ports. `proxy`: a bad network before them.
//! - `backend`: what a test does to a store, whichever it is.
//! - `journals`: processes of a test that write down what they are given. `faketime`: their clocks, set by libfaketime.
#![cfg(unix)]
// Only tests use it, and they end with the first failure.
#![allow(missing_docs, missing_debug_implementations)]
#![allow(clippy::missing_errors_doc, clippy::missing_panics_doc)]
#![allow(clippy::new_without_default, clippy::return_self_not_must_use)]

pub mod backend;
pub mod faketime;
pub mod journals;
pub mod proxy;
pub mod servers;
