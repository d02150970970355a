//! Sequences: a count for each of many keys.

use core::ffi::{CStr, c_char, c_int};
use core::fmt;
use std::ffi::CString;

use crate::options::polyflake_options;
use crate::snowflake::room;
use crate::status::{
    Failure, given, given_counted, guard, length_with, output, polyflake_detail, polyflake_status,
    write_sized,
};

#[cfg(feature = "coordination")]
use polyflake_coordination::{SequenceKey, Sequences, SequencesOptions, SequencesStats};

#[cfg(not(feature = "coordination"))]
use without::{SequenceKey, Sequences, SequencesOptions, SequencesStats};

/// A key is a text: text and length.
pub const POLYFLAKE_KEY_TEXT: c_int = 0;
/// A key is a signed integer: integer, which is converted from int64_t.
pub const POLYFLAKE_KEY_INT: c_int = 1;
/// A key is an unsigned integer: integer.
pub const POLYFLAKE_KEY_UINT: c_int = 2;

/// What is counted for: a text, or an integer from -2^63 to 2^64-1. The integer 5 and the text "5" are two keys; the
/// signed and the unsigned integer 5 are one.
///
///   polyflake_key alice = {POLYFLAKE_KEY_TEXT, 0, "alice", 5};
///   polyflake_key seven = {POLYFLAKE_KEY_UINT, 7, NULL, 0};
#[repr(C)]
#[derive(Clone, Copy)]
pub struct polyflake_key {
    /// POLYFLAKE_KEY_TEXT, POLYFLAKE_KEY_INT or POLYFLAKE_KEY_UINT.
    pub kind: c_int,
    /// The integer, for POLYFLAKE_KEY_INT as (uint64_t)value.
    pub integer: u64,
    /// The text in UTF-8, which may contain NULs and need not end with one. Read only for POLYFLAKE_KEY_TEXT.
    pub text: *const c_char,
    /// How many bytes the text has. Any number: a key takes the same memory however long it is.
    pub length: usize,
}

/// Without the text, which may not be there.
impl fmt::Debug for polyflake_key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("polyflake_key").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// A count for each of many keys: 1, 2, 3 and so on for "alice", and for "bob" the same. For the messages of an inbox,
/// or the versions of a document. Any number of threads may use it at once.
///
/// The numbers of a key increase, and none is given twice, by whichever process, as long as the store loses no write
/// that it acknowledged. Numbers are skipped: by a key that left memory and came back, by a new key where others left,
/// and by all keys of a section, at most two steps, when a process ended without polyflake_sequences_close.
///
/// Only the process that holds the lease gives numbers. The others get POLYFLAKE_LEASE_UNAVAILABLE, with the
/// label of the process that has it between backquotes in the message.
#[derive(Debug)]
pub struct polyflake_sequences {
    sequences: Sequences,
    name: CString,
}

/// Counters for monitoring, counted since the first sequences of that name were opened, by all of this process.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_sequences_counts {
    /// sizeof(polyflake_sequences_counts), set by the caller.
    pub size: usize,
    /// How many keys are in memory.
    pub keys: u64,
    /// How many keys left memory, for others to have room.
    pub evicted: u64,
    /// How often bounds were moved in the store.
    pub moves: u64,
    /// How often a call waited or gave up.
    pub waits: u64,
    /// For how long numbers may be given if the lease is not renewed, in ms; 0 where another process has it.
    pub time_left_ms: u64,
}

const SEQUENCES: &str = "sequences is NULL";
const KEY: &str = "key is NULL";
const KEYS: &str = "keys is NULL";

/// Opens sequences with options, which are copied: makes them where the store has none, and waits for the lease, for at
/// most the address's wait (its ttl + 5 s, so 35 s by default). Free them with polyflake_sequences_free.
///
/// All sequences of one process with the same store and name are one. A thread of the library renews the lease and moves
/// bounds, until the last of them is closed, or was freed a ttl ago. It takes no signals. What happens is told to
/// polyflake_set_lease_listener's function.
///
/// Returns POLYFLAKE_INVALID_OPTION for an option that is missing or cannot be, where the sequences began with another
/// number of sections, where this process uses them with other options, and from a library that was built without
/// stores; or POLYFLAKE_LEASE_UNAVAILABLE if another process has the lease, which the message names, or the store cannot
/// be reached.
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
        // The name of open sequences has no NUL.
        let name = CString::new(opened.name()).unwrap_or_default();
        sequences.write(Box::into_raw(Box::new(polyflake_sequences { sequences: opened, name })));
        Ok(())
    })
}

/// Closes sequences. From then on, calls return POLYFLAKE_CLOSED, and so do calls that are waiting in other threads. The
/// last ones of a name in this process write how far the keys counted, so that nothing is skipped, and give the lease
/// back: this waits for the store, for no longer than two attempts take, which is at most 10 s. Closing again does
/// nothing, and so does NULL. It frees nothing: call polyflake_sequences_free once no thread is in a call.
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

/// Frees sequences that no thread uses any more, closed or not. If they were not closed, their lease is kept for a ttl,
/// so that the next sequences of that name in this process go on with it. Does nothing for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_sequences_free(sequences: *mut polyflake_sequences) {
    if !sequences.is_null() {
        // SAFETY: the pointer came from polyflake_sequences_open and is freed only once.
        drop(unsafe { Box::from_raw(sequences) });
    }
}

/// Gets the key's next number, from memory in most calls. Where the key's section has come to its bound, or the lease
/// has expired, waits for the store, for at most max_wait_ms.
///
/// Returns POLYFLAKE_LEASE_UNAVAILABLE if another process has the lease by now, which the message names;
/// POLYFLAKE_LEASE_LOST if the lease could not be renewed and did not come back in that time;
/// POLYFLAKE_COUNTER_UNAVAILABLE if the store did not move the bound in that time, and at once where waiting does not
/// help: the store refuses, has lost writes, or the section has reached 2^63-1; POLYFLAKE_INVALID_OPTION for a key that
/// is none; POLYFLAKE_CLOSED; or POLYFLAKE_FORKED in a child of the process that opened the sequences.
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
/// Returns what polyflake_sequences_next_id returns, at once: the store is asked meanwhile.
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

/// Fills the array at numbers with a number for each of the n keys, in their order: much faster per number than single
/// calls. A key that is there twice has two, which increase. n may be 0, and keys and numbers may then be NULL. Waits
/// for the store for at most max_wait_ms, each time that it must. If it fails, nothing is written; numbers may be lost
/// but are never repeated.
///
/// Returns what polyflake_sequences_next_id returns, and for a key that is none before any number is taken; or
/// POLYFLAKE_INVALID_OPTION for arrays of more than SIZE_MAX / 2 bytes.
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

/// Returns the sequences' name, which belongs to them: do not free it, nor use it after they are freed. Works on closed
/// ones too. Returns NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_sequences_name(sequences: *const polyflake_sequences) -> *const c_char {
    // SAFETY: as the header requires.
    unsafe { sequences.as_ref() }.map_or(core::ptr::null(), |sequences| CStr::as_ptr(&sequences.name))
}

/// Gets counters for monitoring. Set counts->size first.
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
/// The text is NULL, or points to as many bytes as the length says.
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

/// Turns the pointer to an array of n keys into a slice. It may be NULL if n is 0.
///
/// # Safety
/// It is NULL, or points to n keys that do not change during the call.
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

/// A build without stores has no sequences: none can be opened.
#[cfg(not(feature = "coordination"))]
mod without {
    use core::marker::PhantomData;

    use polyflake::Error;

    #[derive(Debug)]
    pub(super) enum Sequences {}

    pub(super) struct SequencesOptions;

    pub(super) struct SequenceKey<'a>(PhantomData<&'a ()>);

    pub(super) struct SequencesStats {
        pub(super) keys: u64,
        pub(super) evicted: u64,
        pub(super) moves: u64,
        pub(super) waits: u64,
        pub(super) time_left_ms: u64,
    }

    impl<'a> From<&'a str> for SequenceKey<'a> {
        fn from(_: &'a str) -> Self {
            Self(PhantomData)
        }
    }

    impl From<i64> for SequenceKey<'_> {
        fn from(_: i64) -> Self {
            Self(PhantomData)
        }
    }

    impl From<u64> for SequenceKey<'_> {
        fn from(_: u64) -> Self {
            Self(PhantomData)
        }
    }

    impl SequencesOptions {
        pub(super) const fn new(_: &str) -> Self {
            Self
        }

        pub(super) const fn set(self, _: &str, _: &str) -> Self {
            self
        }

        #[expect(clippy::unused_self, reason = "it stands for one that uses it")]
        pub(super) fn open(&self) -> Result<Sequences, Error> {
            Err(Error::no_stores("sequences"))
        }
    }

    impl Sequences {
        pub(super) const fn close(&self) {
            match *self {}
        }

        pub(super) fn next_id<'a>(&self, _: impl Into<SequenceKey<'a>>) -> Result<u64, Error> {
            match *self {}
        }

        pub(super) fn try_next_id<'a>(&self, _: impl Into<SequenceKey<'a>>) -> Result<u64, Error> {
            match *self {}
        }

        pub(super) fn next_ids(&self, _: Vec<SequenceKey<'_>>) -> Result<Vec<u64>, Error> {
            match *self {}
        }

        pub(super) const fn name(&self) -> &str {
            match *self {}
        }

        pub(super) const fn stats(&self) -> Result<SequencesStats, Error> {
            match *self {}
        }
    }
}
