//! The C ABI. It converts pointers and strings; the core decides everything else.
//!
//! `include/polyflake.h` is generated from this crate, so the doc comments here are written for C programmers.
#![allow(non_camel_case_types, reason = "these are C names")]
#![allow(clippy::doc_markdown, reason = "the comments become the C header's")]
#![allow(clippy::missing_safety_doc, reason = "the header's introduction says what every pointer must be")]

mod counter;
mod layout;
mod lease;
mod options;
mod public_ids;
mod sequences;
mod snowflake;
mod status;
mod text;
mod waiting;

use core::ffi::{c_char, c_uint};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::ffi::CString;

use crate::status::guard;

pub use counter::*;
pub use layout::*;
pub use lease::*;
pub use options::*;
pub use public_ids::*;
pub use sequences::*;
pub use snowflake::*;
pub use status::*;
pub use text::*;
pub use waiting::*;

/// The version of the ABI that this header describes. It increases when programs must be recompiled.
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

/// Returns the version of the library, such as "0.1.0". The string is static.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns a warning if this process has loaded other copies of Polyflake besides this library (such as a Python
/// package or another version), otherwise NULL. Each copy has its own cursors, so Snowflakes with the same node repeat
/// each other's IDs if they are in different copies. Copies are detected on Linux; elsewhere, this returns NULL. A copy
/// loaded afterwards is detected by a later call, or by a call in that copy. The string is static.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_copies_warning() -> *const c_char {
    // Set by the first call that finds another copy, and kept.
    static WARNING: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
    let mut warning = ptr::null_mut();
    guard(ptr::null_mut(), || {
        warning = WARNING.load(Ordering::Acquire);
        if let (true, Some(text)) = (warning.is_null(), polyflake::copies_warning()) {
            warning = CString::new(text).unwrap_or_default().into_raw();
            WARNING.store(warning, Ordering::Release);
        }
        Ok(())
    });
    warning
}
