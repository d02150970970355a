//! The C ABI: it converts pointers and texts, and the core decides.
//!
//! `include/polyflake.h` is made from this crate; what a C programmer must know stands in the comments here.
#![allow(non_camel_case_types, reason = "the names are C's")]
#![allow(clippy::doc_markdown, reason = "the comments are the C header's")]
#![allow(clippy::missing_safety_doc, reason = "the header's opening says what every pointer must be")]

mod layout;
mod options;
mod snowflake;
mod status;
mod text;

use core::ffi::{c_char, c_uint};

pub use layout::*;
pub use options::*;
pub use snowflake::*;
pub use status::*;
pub use text::*;

/// The version of the ABI that this header describes. It goes up when a program must be compiled anew.
pub const POLYFLAKE_ABI_VERSION: c_uint = 0;

/// The version of the library that this header came with, as polyflake_version gives it at run time.
pub const POLYFLAKE_VERSION_MAJOR: c_uint = 0;
/// See POLYFLAKE_VERSION_MAJOR.
pub const POLYFLAKE_VERSION_MINOR: c_uint = 1;
/// See POLYFLAKE_VERSION_MAJOR.
pub const POLYFLAKE_VERSION_PATCH: c_uint = 0;

/// The ABI version of the library at run time; to be compared with POLYFLAKE_ABI_VERSION.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_abi_version() -> c_uint {
    POLYFLAKE_ABI_VERSION
}

/// The library's version, such as "0.1.0". Static.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
