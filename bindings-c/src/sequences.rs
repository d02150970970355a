//! Sequences: a separate count for each key.

use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use std::ffi::CString;

use polyflake_coordination::{SequenceKey, Sequences, SequencesOptions, SequencesStats};

use crate::options::polyflake_options;
use crate::snowflake::room;
use crate::status::{
    Failure, given, given_counted, guard, length_with, output, polyflake_detail, polyflake_status,
    write_sized,
};

/// The key is the string in text and length.
pub const POLYFLAKE_KEY_TEXT: c_int = 0;
/// The key is the signed integer in integer, converted from int64_t.
pub const POLYFLAKE_KEY_INT: c_int = 1;
/// The key is the unsigned integer in integer.
pub const POLYFLAKE_KEY_UINT: c_int = 2;

/// A key with its own count: a string, or an integer from -2^63 to 2^64-1. The integer 5 and the string "5" are
/// different keys; the signed and the unsigned integer 5 are the same key.
///
///   polyflake_key alice = {POLYFLAKE_KEY_TEXT, 0, "alice", 5};
///   polyflake_key seven = {POLYFLAKE_KEY_UINT, 7, NULL, 0};
#[repr(C)]
#[derive(Clone, Copy)]
pub struct polyflake_key {
    /// POLYFLAKE_KEY_TEXT, POLYFLAKE_KEY_INT or POLYFLAKE_KEY_UINT.
    pub kind: c_int,
    /// The integer; for POLYFLAKE_KEY_INT, (uint64_t)value.
    pub integer: u64,
    /// The string in UTF-8, which may contain NULs and need not end with one. Read only for POLYFLAKE_KEY_TEXT.
    pub text: *const c_char,
    /// The length of the string in bytes. Any length works: a key's memory use does not depend on it.
    pub length: usize,
}

/// Omits the string, because its pointer may be invalid.
impl fmt::Debug for polyflake_key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("polyflake_key").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Keeps a separate count for each key: 1, 2, 3 and so on for "alice", and the same for "bob". Use them to number the
/// messages in an inbox or the versions of a document. Any number of threads may use them at once.
///
/// A key's numbers increase, and none is issued twice, by any process, as long as the store does not lose a write it
/// has acknowledged. A key skips numbers if it was evicted from memory and is used again, or if it is new in a section
/// that has evicted keys. After a process exits without calling polyflake_sequences_close, all keys in a section
/// continue above the section's bound, which is at most two steps above its highest number.
///
/// Only the process that holds the lease issues numbers. In other processes, calls return POLYFLAKE_LEASE_UNAVAILABLE,
/// with a message that gives the holder's label in backticks.
#[derive(Debug)]
pub struct polyflake_sequences {
    sequences: Sequences,
    name: CString,
}

/// Statistics for monitoring. They cover the whole process since it first opened sequences with this name.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_sequences_counts {
    /// sizeof(polyflake_sequences_counts), set by the caller.
    pub size: usize,
    /// How many keys are in memory.
    pub keys: u64,
    /// How many keys were evicted from memory to make room for others.
    pub evicted: u64,
    /// How many times bounds were moved in the store.
    pub moves: u64,
    /// How many times a call waited or gave up.
    pub waits: u64,
    /// How much longer numbers may be issued if the lease is not renewed, in ms; 0 if another process holds it.
    pub time_left_ms: u64,
}

const SEQUENCES: &str = "sequences is NULL";
const KEY: &str = "key is NULL";
const KEYS: &str = "keys is NULL";

/// Opens sequences with options, which are copied. Creates them if the store does not have them, and waits for the
/// lease for at most the wait time set in the address (35 s by default: the TTL plus 5 s). Free them with
/// polyflake_sequences_free.
///
/// All sequences in a process with the same store and name share their counts. A library thread, which blocks all
/// signals, renews the lease and moves bounds. It does so until the last of these sequences is closed, or one TTL after
/// the last is freed. Events are reported to the listener set with polyflake_set_lease_listener.
///
/// Returns POLYFLAKE_INVALID_OPTION if an option is missing or invalid, if the sequences were created with a different
/// number of sections, if this process already uses them with different options, or if the library was built without
/// stores; or POLYFLAKE_LEASE_UNAVAILABLE if another process, named in the message, holds the lease, or if the store
/// cannot be reached.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_sequences_open(
    options: *const polyflake_options,
    sequences: *mut *mut polyflake_sequences,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (from, sequences) =
            unsafe { (given(options, "options is NULL")?, output(sequences, SEQUENCES)?) };
        let opened = from.named(SequencesOptions::new, SequencesOptions::set).open()?;
        // The name of open sequences contains no NUL.
        let name = CString::new(opened.name()).unwrap_or_default();
        sequences.write(Box::into_raw(Box::new(polyflake_sequences { sequences: opened, name })));
        Ok(())
    })
}

/// Closes sequences. From then on, calls return POLYFLAKE_CLOSED, and so do calls that are waiting in other threads.
/// Closing the last sequences with a given name in this process stores each section's highest number, above which its
/// keys then continue, and releases the lease. This waits for the store, for at most two attempts and 10 s in all.
/// Closing sequences again, or passing NULL, does nothing. This does not free the sequences: call
/// polyflake_sequences_free once no thread is inside a call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_sequences_close(sequences: *const polyflake_sequences) {
    // SAFETY: as the header requires.
    if let Some(sequences) = unsafe { sequences.as_ref() } {
        guard(core::ptr::null_mut(), || {
            sequences.sequences.close();
            Ok(())
        });
    }
}

/// Frees sequences that no thread is using any longer, whether or not they were closed. If they were not, their lease
/// is kept for one TTL, so that the next sequences with that name in this process can use it. Does nothing for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_sequences_free(sequences: *mut polyflake_sequences) {
    if !sequences.is_null() {
        // SAFETY: the pointer came from polyflake_sequences_open and is freed only once.
        drop(unsafe { Box::from_raw(sequences) });
    }
}

/// Gets the key's next number, usually from memory. If the key's section has reached its bound or the lease has
/// expired, the call waits for the store, for at most max_wait_ms.
///
/// Returns POLYFLAKE_LEASE_UNAVAILABLE if another process, named in the message, now holds the lease;
/// POLYFLAKE_LEASE_LOST if the lease could not be renewed and is not regained within that time;
/// POLYFLAKE_COUNTER_UNAVAILABLE if the store does not move the bound within that time, and at once if waiting would
/// not help (the store refuses or has lost writes, or the section has reached 2^63-1); POLYFLAKE_INVALID_OPTION for an
/// invalid key; POLYFLAKE_CLOSED; or POLYFLAKE_FORKED in a child of the process that opened the sequences.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_sequences_next_id(
    sequences: *const polyflake_sequences,
    key: *const polyflake_key,
    number: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    // SAFETY: as the header requires.
    guard(detail, || unsafe { get(sequences, key, number, |sequences, key| sequences.next_id(key)) })
}

/// Gets the key's next number without waiting for the store.
///
/// Returns the same statuses as polyflake_sequences_next_id, but at once. If the store is needed, the library queries
/// it in the background.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_sequences_try_next_id(
    sequences: *const polyflake_sequences,
    key: *const polyflake_key,
    number: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    // SAFETY: as the header requires.
    guard(detail, || unsafe { get(sequences, key, number, |sequences, key| sequences.try_next_id(key)) })
}

/// Fills the array at numbers with a number for each of the n keys, in the order of the keys. This is much faster per
/// number than single calls. A key that occurs twice gets two numbers, the second greater than the first. If n is 0,
/// keys and numbers may be NULL. Whenever the call must wait for the store, it waits for at most max_wait_ms. On
/// failure, nothing is written; numbers may be lost but are never repeated.
///
/// Returns the same statuses as polyflake_sequences_next_id, or POLYFLAKE_INVALID_OPTION for arrays of more than
/// SIZE_MAX / 2 bytes. If a key is invalid, no number is taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_sequences_next_ids(
    sequences: *const polyflake_sequences,
    keys: *const polyflake_key,
    n: usize,
    numbers: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (sequences, keys, numbers) = unsafe {
            (given(sequences, SEQUENCES)?, all_keys(n, keys)?, room(n, numbers, "numbers is NULL")?)
        };
        // SAFETY: as the header requires.
        let keys: Vec<SequenceKey<'_>> =
            keys.iter().map(|key| unsafe { read_key(key) }).collect::<Result<_, _>>()?;
        for (to, number) in numbers.iter_mut().zip(sequences.sequences.next_ids(keys)?) {
            *to = number;
        }
        Ok(())
    })
}

/// Returns the sequences' name. The string belongs to the sequences: do not free it, and do not use it after they are
/// freed. Works on closed sequences too. Returns NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_sequences_name(sequences: *const polyflake_sequences) -> *const c_char {
    // SAFETY: as the header requires.
    unsafe { sequences.as_ref() }.map_or(core::ptr::null(), |sequences| CStr::as_ptr(&sequences.name))
}

/// Gets statistics for monitoring. Set counts->size first.
///
/// Returns POLYFLAKE_CLOSED after polyflake_sequences_close, or POLYFLAKE_FORKED in a child of the process that opened
/// the sequences.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_sequences_stats(
    sequences: *const polyflake_sequences,
    counts: *mut polyflake_sequences_counts,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let sequences = unsafe { given(sequences, SEQUENCES)? };
        let SequencesStats { keys, evicted, moves, waits, time_left_ms, .. } = sequences.sequences.stats()?;
        let value = polyflake_sequences_counts { size: 0, keys, evicted, moves, waits, time_left_ms };
        // SAFETY: as the header requires.
        unsafe { write_sized(counts, length_with!(polyflake_sequences_counts, time_left_ms: u64), &value) }
    })
}

/// # Safety
/// As the header requires of `polyflake_sequences_next_id`.
#[inline]
unsafe fn get(
    sequences: *const polyflake_sequences,
    key: *const polyflake_key,
    number: *mut u64,
    call: impl FnOnce(&Sequences, SequenceKey<'_>) -> Result<u64, polyflake::Error>,
) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    let (sequences, key, number) = unsafe {
        (given(sequences, SEQUENCES)?, read_key(given(key, KEY)?)?, output(number, "number is NULL")?)
    };
    number.write(call(&sequences.sequences, key)?);
    Ok(())
}

/// # Safety
/// The key's text is NULL, or points to `length` bytes.
#[inline]
unsafe fn read_key(key: &polyflake_key) -> Result<SequenceKey<'_>, Failure> {
    match key.kind {
        POLYFLAKE_KEY_TEXT => {
            // SAFETY: as the caller promises.
            let bytes = unsafe { given_counted(key.text, key.length, "the key's text is NULL")? };
            let text =
                core::str::from_utf8(bytes).map_err(|_| Failure::Misuse("the key's text is not UTF-8"))?;
            Ok(text.into())
        }
        POLYFLAKE_KEY_INT => Ok(i64::from_ne_bytes(key.integer.to_ne_bytes()).into()),
        POLYFLAKE_KEY_UINT => Ok(key.integer.into()),
        _ => Err(Failure::Misuse("the key's kind is none of POLYFLAKE_KEY_TEXT, _INT and _UINT")),
    }
}

/// Turns the pointer to an array of n keys into a slice. The pointer may be NULL if n is 0.
///
/// # Safety
/// The pointer is NULL, or points to n keys that do not change during the call.
unsafe fn all_keys<'a>(n: usize, start: *const polyflake_key) -> Result<&'a [polyflake_key], Failure> {
    if start.is_null() && n > 0 {
        return Err(Failure::Misuse(KEYS));
    }
    if n > isize::MAX as usize / size_of::<polyflake_key>() {
        return Err(Failure::Misuse("n does not fit in memory"));
    }
    if n == 0 {
        return Ok(&[]);
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { core::slice::from_raw_parts(start, n) })
}
