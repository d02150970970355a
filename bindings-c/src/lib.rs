//! The C ABI: it converts pointers and texts; the core decides everything else.
//!
//! `include/polyflake.h` is generated from this crate, so the doc comments here are written for C programmers.
#![allow(non_camel_case_types, reason = "these are C names")]
#![allow(clippy::doc_markdown, reason = "the comments become the C header's")]
#![allow(clippy::missing_safety_doc, reason = "the header's introduction says what every pointer must be")]

mod counter;
mod layout;
mod lease;
mod named;
mod options;
mod sequences;
mod snowflake;
mod status;
mod text;

use core::ffi::{c_char, c_uint};

pub use counter::*;
pub use layout::*;
pub use lease::*;
pub use options::*;
pub use sequences::*;
pub use snowflake::*;
pub use status::*;
pub use text::*;

/// The version of the ABI that this header describes. It goes up when programs must be recompiled.
pub const POLYFLAKE_ABI_VERSION: c_uint = 0;

/// The version of the library that this header came with. polyflake_version returns the version at run time.
pub const POLYFLAKE_VERSION_MAJOR: c_uint = 0;
/// See POLYFLAKE_VERSION_MAJOR.
pub const POLYFLAKE_VERSION_MINOR: c_uint = 1;
/// See POLYFLAKE_VERSION_MAJOR.
pub const POLYFLAKE_VERSION_PATCH: c_uint = 0;

/// Returns the ABI version of the library at run time, to compare with POLYFLAKE_ABI_VERSION.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_abi_version() -> c_uint {
    POLYFLAKE_ABI_VERSION
}

/// Returns the version of the library, such as "0.1.0": a static string.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
