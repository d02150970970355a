//! Public IDs: strings that hide what an ID reveals.

use core::ffi::{c_char, c_uint};

use polyflake::{PublicIdKey, PublicIdKeyText, PublicIds, PublicText};

use crate::status::{Failure, given, given_text, guard, output, polyflake_detail, polyflake_status};
use crate::text::write_text;

/// Converts IDs to public IDs and back. A public ID is a string that hides when and where the ID was issued. Immutable,
/// and safe to use from any thread. It takes a few KiB of memory.
#[derive(Debug)]
pub struct polyflake_public_ids(PublicIds);

/// Enough bytes for any public ID and its NUL.
pub const POLYFLAKE_PUBLIC_ID_SIZE: usize = 49;
/// Enough bytes for a key and its NUL.
pub const POLYFLAKE_PUBLIC_KEY_SIZE: usize = 28;

const _: () = assert!(POLYFLAKE_PUBLIC_ID_SIZE == PublicText::MAX_LEN + 1);
const _: () = assert!(POLYFLAKE_PUBLIC_KEY_SIZE == PublicIdKeyText::LEN + 1);

/// Prepares public IDs with a prefix. keys contains 1 to 16 keys, separated by white space or commas. The first key is
/// used for encoding, and every key for decoding. The prefix is "" or consists of words of the characters a-z and 0-9,
/// joined by _, with at most 24 characters in all. Free the result with polyflake_public_ids_free, which wipes its copy
/// of the keys from memory, but not yours.
///
/// Returns POLYFLAKE_INVALID_OPTION if a key or the prefix is invalid, or if two keys have the same number or the same
/// bytes. The message shows no part of a key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_public_ids_new(
    keys: *const c_char,
    prefix: *const c_char,
    ids: *mut *mut polyflake_public_ids,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (keys, prefix, ids) = unsafe {
            (
                given_text(keys, "keys is NULL")?,
                given_text(prefix, "prefix is NULL")?,
                output(ids, "ids is NULL")?,
            )
        };
        ids.write(Box::into_raw(Box::new(polyflake_public_ids(PublicIds::from_texts(&[keys], &prefix)?))));
        Ok(())
    })
}

/// Frees public IDs from polyflake_public_ids_new. Does nothing for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_public_ids_free(ids: *mut polyflake_public_ids) {
    if !ids.is_null() {
        // SAFETY: the pointer came from polyflake_public_ids_new and is freed only once.
        drop(unsafe { Box::from_raw(ids) });
    }
}

/// Writes an ID as a public ID, with a NUL, to the buffer of capacity bytes at text. POLYFLAKE_PUBLIC_ID_SIZE bytes are
/// always enough.
///
/// Returns POLYFLAKE_INVALID_OPTION if capacity is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_public_ids_encode(
    ids: *const polyflake_public_ids,
    id: u64,
    text: *mut c_char,
    capacity: usize,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        unsafe { write_text(&given(ids, "ids is NULL")?.0.encode(id), text, capacity) }
    })
}

/// Gets the ID from a public ID. A string that was not encoded with this prefix and one of these keys has a 1 in 2^64
/// chance of decoding anyway.
///
/// Returns POLYFLAKE_INVALID_ID for any other string, with the reason in the message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_public_ids_decode(
    ids: *const polyflake_public_ids,
    text: *const c_char,
    id: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (ids, text, id) = unsafe {
            (given(ids, "ids is NULL")?, given_text(text, "text is NULL")?, output(id, "id is NULL")?)
        };
        id.write(ids.0.decode(&text)?);
        Ok(())
    })
}

/// Generates a key from the operating system's random bytes and writes it, with a NUL, to the buffer of capacity bytes
/// at text. POLYFLAKE_PUBLIC_KEY_SIZE bytes are enough. number must be between 0 and 61. Public IDs identify their key
/// by its number, so give each key a different one.
///
/// Returns POLYFLAKE_INVALID_OPTION for any other number, or if capacity is too small.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_public_key_generate(
    number: c_uint,
    text: *mut c_char,
    capacity: usize,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        if text.is_null() {
            return Err(Failure::Misuse("text is NULL"));
        }
        let key = PublicIdKey::generate(u64::from(number))?;
        // SAFETY: as the header requires.
        unsafe { write_text(key.to_text().as_str(), text, capacity) }
    })
}
