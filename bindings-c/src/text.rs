//! IDs as text, and the names of the presets.

use core::ffi::{CStr, c_char};
use std::ffi::CString;
use std::sync::OnceLock;

use polyflake::{Format, Number, PRESETS};

use crate::status::{Failure, given_text, guard, output, polyflake_detail, polyflake_status};

/// Room for the longest text of an ID and its NUL.
pub const POLYFLAKE_ID_TEXT_SIZE: usize = 21;

/// Writes an ID, with its NUL, into the capacity bytes at text; POLYFLAKE_ID_TEXT_SIZE are always enough. format
/// is "decimal", "hex", "base32" (Crockford, 13 digits), "base36", "base58" (Bitcoin's) or "base62" (11 digits);
/// base32 and base62 sort as the IDs do.
///
/// POLYFLAKE_INVALID_OPTION for another format or too little room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_id_write(
    id: u64,
    format: *const c_char,
    text: *mut c_char,
    capacity: usize,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let format: Format = unsafe { given_text(format, "format is NULL")? }.parse()?;
        // SAFETY: as the header asks.
        unsafe { write_text(&format.write(id), text, capacity) }
    })
}

/// Reads an ID that polyflake_id_write or another program wrote; hex, base32 and base36 in both cases.
///
/// POLYFLAKE_INVALID_ID, whose message names the position, for a foreign character or a number over 64 bits,
/// POLYFLAKE_INVALID_OPTION for another format.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_id_read(
    text: *const c_char,
    format: *const c_char,
    id: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (text, format, id) = unsafe {
            (
                given_text(text, "text is NULL")?,
                given_text(format, "format is NULL")?,
                output(id, "id is NULL")?,
            )
        };
        id.write(format.parse::<Format>()?.read(&text)?);
        Ok(())
    })
}

/// The ID as a signed integer, as a database's BIGINT and languages without unsigned ones hold it.
///
/// POLYFLAKE_INVALID_ID for one above 2^63 - 1, which only layouts of 64 bits have, late in their time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_id_signed(
    id: u64,
    number: *mut i64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let number = unsafe { output(number, "number is NULL")? };
        number.write(Number::from(id).to_signed_id()?);
        Ok(())
    })
}

/// How many presets there are.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_preset_count() -> usize {
    PRESETS.len()
}

/// The name of the preset number index, counted from 0; NULL past the last. Static.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_preset_name(index: usize) -> *const c_char {
    static NAMES: OnceLock<Vec<CString>> = OnceLock::new();
    let names =
        NAMES.get_or_init(|| PRESETS.iter().filter_map(|preset| CString::new(preset.name).ok()).collect());
    names.get(index).map_or(core::ptr::null(), |name| CStr::as_ptr(name))
}

/// Writes a text and its NUL.
///
/// # Safety
/// `target` is NULL, or points to `capacity` bytes that nothing else uses during the call.
pub(crate) unsafe fn write_text(text: &str, target: *mut c_char, capacity: usize) -> Result<(), Failure> {
    if target.is_null() {
        return Err(Failure::Misuse("text is NULL"));
    }
    if capacity <= text.len() {
        return Err(Failure::Misuse("capacity is too small for the text and its NUL"));
    }
    // SAFETY: as the caller promises, and text.len() < capacity.
    unsafe {
        target.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        target.add(text.len()).write(0);
    }
    Ok(())
}
