//! IDs as text, and the names of the presets.

use core::ffi::c_char;

use polyflake::{Format, Number, PRESETS};

use crate::status::{Failure, given_text, guard, output, polyflake_detail, polyflake_status};

/// Enough bytes for any field name and its NUL.
pub const POLYFLAKE_NAME_SIZE: usize = 25;
/// Enough bytes for the text of any ID and its NUL.
pub const POLYFLAKE_ID_TEXT_SIZE: usize = 37;

/// Writes an ID as text, with a NUL, to the buffer of capacity bytes at text. POLYFLAKE_ID_TEXT_SIZE bytes are always
/// enough. format is "decimal", "hex", "base32" (Crockford, 13 digits), "base36", "base58" (Bitcoin alphabet), "base62"
/// (11 digits), "uuid" (a version 8 UUID, for columns of that type), "bwmarrin-base32" or "bwmarrin-base58" (the
/// alphabets of the Go package bwmarrin/snowflake). In base32, base62 and uuid, the strings sort in the order of the
/// IDs.
///
/// Returns POLYFLAKE_INVALID_OPTION for any other format, or if capacity is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_id_write(
    id: u64,
    format: *const c_char,
    text: *mut c_char,
    capacity: usize,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let format: Format = unsafe { given_text(format, "format is NULL")? }.parse()?;
        // SAFETY: as the header requires.
        unsafe { write_text(&format.write(id), text, capacity) }
    })
}

/// Reads an ID from text, as written by polyflake_id_write or by other programs. Hex, base32, base36 and uuid may be in
/// upper or lower case.
///
/// Returns POLYFLAKE_INVALID_ID for an invalid character, a number with more than 64 bits or a UUID that does not
/// represent an ID (the message gives the position), or POLYFLAKE_INVALID_OPTION for any other format.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_id_read(
    text: *const c_char,
    format: *const c_char,
    id: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
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

/// Converts an ID to a signed integer, for a BIGINT column and for languages without unsigned integers.
///
/// Returns POLYFLAKE_INVALID_ID for an ID above 2^63 - 1. Only 64-bit layouts have such IDs, in the second half of
/// their range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_id_signed(
    id: u64,
    number: *mut i64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let number = unsafe { output(number, "number is NULL")? };
        number.write(Number::from(id).to_signed_id()?);
        Ok(())
    })
}

/// Returns the number of presets.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_preset_count() -> usize {
    PRESETS.len()
}

/// Returns the name of the preset at index, counted from 0, or NULL if index is past the last preset. The string is
/// static.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_preset_name(index: usize) -> *const c_char {
    PRESET_NAMES.get(index).map_or(core::ptr::null(), |name| name.as_ptr().cast())
}

/// The core's names, with the NUL that C needs. They are built at compile time, because after a fork during lazy
/// initialization, the child would wait forever for a thread that it does not have.
static PRESET_NAMES: [[u8; POLYFLAKE_NAME_SIZE]; PRESETS.len()] = {
    let mut names = [[0; POLYFLAKE_NAME_SIZE]; PRESETS.len()];
    let mut n = 0;
    while n < names.len() {
        let name = PRESETS[n].name.as_bytes();
        assert!(name.len() < POLYFLAKE_NAME_SIZE);
        let mut at = 0;
        while at < name.len() {
            names[n][at] = name[at];
            at += 1;
        }
        n += 1;
    }
    names
};

/// Writes a string and its NUL.
///
/// # Safety
/// `target` is NULL, or points to `capacity` bytes that nothing else uses during the call.
pub(crate) unsafe fn write_text(text: &str, target: *mut c_char, capacity: usize) -> Result<(), Failure> {
    if target.is_null() {
        return Err(Failure::Misuse("text is NULL"));
    }
    if capacity <= text.len() {
        return Err(Failure::Misuse("capacity is too small for the string and its NUL"));
    }
    // SAFETY: as the caller promises, and text.len() < capacity.
    unsafe {
        target.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        target.add(text.len()).write(0);
    }
    Ok(())
}
