//! Statuses and their details, and the boundary where panics are caught.

use core::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use polyflake::{Error, ErrorCode};

/// POLYFLAKE_OK, or the permanent number of an error, which is the same in every language.
pub type polyflake_status = i32;

/// Success: the outputs are written.
pub const POLYFLAKE_OK: polyflake_status = 0;
/// The layout is invalid.
pub const POLYFLAKE_INVALID_LAYOUT: polyflake_status = 1;
/// No preset has this name.
pub const POLYFLAKE_UNKNOWN_LAYOUT: polyflake_status = 2;
/// A node field is missing, unknown or out of range.
pub const POLYFLAKE_INVALID_NODE: polyflake_status = 3;
/// The name or value of any other option is invalid, or a required pointer is NULL.
pub const POLYFLAKE_INVALID_OPTION: polyflake_status = 4;
/// The ID does not fit the layout, or the string is not an ID.
pub const POLYFLAKE_INVALID_ID: polyflake_status = 5;
/// The time is before the epoch or past the layout's end.
pub const POLYFLAKE_TIME_OUT_OF_RANGE: polyflake_status = 6;
/// The clock has stepped back by more than max_backward_ms.
pub const POLYFLAKE_CLOCK_MOVED_BACKWARDS: polyflake_status = 7;
/// No ID became available within the time the call may wait.
pub const POLYFLAKE_SEQUENCE_EXHAUSTED: polyflake_status = 8;
/// The Snowflake or the sequences were created by a parent process.
pub const POLYFLAKE_FORKED: polyflake_status = 9;
/// The custom clock returned something other than 0.
pub const POLYFLAKE_CLOCK_FAILED: polyflake_status = 10;
/// The state file cannot be used, or belongs to another layout or node.
pub const POLYFLAKE_STATE_FILE: polyflake_status = 11;
/// No node is free, another process holds the lease of the sequences, or the store cannot be reached.
pub const POLYFLAKE_LEASE_UNAVAILABLE: polyflake_status = 12;
/// The lease has expired; no more IDs or numbers are issued on it.
pub const POLYFLAKE_LEASE_LOST: polyflake_status = 13;
/// The Snowflake, the counter or the sequences are closed.
pub const POLYFLAKE_CLOSED: polyflake_status = 14;
/// The counter or a section of the sequences has no number: the store handed out none in time, or the numbers have run
/// out.
pub const POLYFLAKE_COUNTER_UNAVAILABLE: polyflake_status = 15;
/// A panic was caught, which is a bug in Polyflake.
pub const POLYFLAKE_INTERNAL: polyflake_status = 99;

/// The details of a failure. Set size to sizeof(polyflake_detail) before a call; the rest is written only if the call
/// does not return POLYFLAKE_OK.
#[repr(C)]
#[derive(Debug)]
pub struct polyflake_detail {
    /// sizeof(polyflake_detail), set by the caller.
    pub size: usize,
    /// For POLYFLAKE_CLOCK_MOVED_BACKWARDS, how many ms the clock is behind the last ID, less max_ahead_ms; otherwise 0.
    pub behind_ms: u64,
    /// How many ms the clock must advance before the next ID, for POLYFLAKE_CLOCK_MOVED_BACKWARDS and
    /// POLYFLAKE_SEQUENCE_EXHAUSTED; how many ms remain until the store is queried again, for POLYFLAKE_LEASE_LOST;
    /// otherwise 0.
    pub retry_after_ms: u64,
    /// A message that says what is wrong and what would work, NUL-terminated.
    pub message: [c_char; 496],
}

const MESSAGE_SIZE: usize = 496;

/// Returns the permanent name of a status, such as "invalid_layout": "ok" for POLYFLAKE_OK, "unknown" for a number that
/// is not a status. The string is static.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_status_name(status: polyflake_status) -> *const c_char {
    texts(status).0.as_ptr()
}

/// Returns the meaning of a status in one sentence, without values. The string is static.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_status_message(status: polyflake_status) -> *const c_char {
    texts(status).1.as_ptr()
}

/// The core's names and messages, with the NUL that C needs.
fn texts(status: polyflake_status) -> (&'static CStr, &'static CStr) {
    macro_rules! with_nul {
        ($text:expr) => {{
            const TEXT: &str = $text;
            const BYTES: [u8; TEXT.len() + 1] = {
                let mut bytes = [0; TEXT.len() + 1];
                let mut n = 0;
                while n < TEXT.len() {
                    bytes[n] = TEXT.as_bytes()[n];
                    n += 1;
                }
                bytes
            };
            const C: &CStr = match CStr::from_bytes_with_nul(&BYTES) {
                Ok(text) => text,
                Err(_) => panic!("a text holds a NUL"),
            };
            C
        }};
    }
    macro_rules! of {
        ($($code:ident)*) => {
            match status {
                POLYFLAKE_OK => (c"ok", c"it worked"),
                $(n if n == ErrorCode::$code.number() => {
                    (with_nul!(ErrorCode::$code.name()), with_nul!(ErrorCode::$code.message()))
                })*
                _ => (c"unknown", c"no status has this number"),
            }
        };
    }
    of!(InvalidLayout UnknownLayout InvalidNode InvalidOption InvalidId TimeOutOfRange ClockMovedBackwards
        SequenceExhausted Forked ClockFailed StateFile LeaseUnavailable LeaseLost Closed
        CounterUnavailable Internal)
}

/// Why a call fails.
pub(crate) enum Failure {
    Core(Error),
    /// The caller broke a rule of the ABI. The string says which.
    Misuse(&'static str),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

/// Runs the body of a call, and turns a panic into `POLYFLAKE_INTERNAL`.
#[inline]
pub(crate) fn guard(
    detail: *mut polyflake_detail,
    body: impl FnOnce() -> Result<(), Failure>,
) -> polyflake_status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => POLYFLAKE_OK,
        Ok(Err(failure)) => report(detail, &failure),
        Err(_) => {
            write(detail, "internal: a panic was caught: please report this bug", 0, 0);
            POLYFLAKE_INTERNAL
        }
    }
}

#[cold]
fn report(detail: *mut polyflake_detail, failure: &Failure) -> polyflake_status {
    match failure {
        Failure::Core(error) => {
            let (behind_ms, retry_after_ms) = (error.behind_ms(), error.retry_after_ms());
            write(detail, &error.to_string(), behind_ms.unwrap_or(0), retry_after_ms.unwrap_or(0));
            error.code().number()
        }
        Failure::Misuse(what) => {
            write(detail, &format!("invalid_option: {what}"), 0, 0);
            POLYFLAKE_INVALID_OPTION
        }
    }
}

fn write(detail: *mut polyflake_detail, message: &str, behind_ms: u64, retry_after_ms: u64) {
    let mut value = polyflake_detail { size: 0, behind_ms, retry_after_ms, message: [0; MESSAGE_SIZE] };
    copy_text(message, &mut value.message);
    // SAFETY: the pointer is NULL, or points to a struct that begins with its size. A struct that is too small is not
    // written to.
    let _ = unsafe {
        write_sized(detail, length_with!(polyflake_detail, message: [c_char; MESSAGE_SIZE]), &value)
    };
}

/// Copies as much of a string as fits, and fills the rest with at least one NUL.
pub(crate) fn copy_text(text: &str, room: &mut [c_char]) {
    let mut end = text.len().min(room.len() - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let bytes = text.bytes().take(end).chain(core::iter::repeat(0));
    for (to, from) in room.iter_mut().zip(bytes) {
        // `c_char` is signed on some targets and not on others.
        *to = c_char::from_ne_bytes([from]);
    }
}

/// Turns a required input pointer into a reference.
///
/// # Safety
/// The pointer is NULL, or points to a live `T` that does not change during the call.
#[inline]
pub(crate) unsafe fn given<'a, T>(pointer: *const T, what: &'static str) -> Result<&'a T, Failure> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_ref() }.ok_or(Failure::Misuse(what))
}

/// Turns a required output pointer into a reference.
///
/// # Safety
/// The pointer is NULL, or points to memory for a `T` that nothing else uses during the call.
#[inline]
pub(crate) unsafe fn output<'a, T>(
    pointer: *mut T,
    what: &'static str,
) -> Result<&'a mut core::mem::MaybeUninit<T>, Failure> {
    // SAFETY: as the caller promises; uninitialised memory is fine behind `MaybeUninit`.
    unsafe { pointer.cast::<core::mem::MaybeUninit<T>>().as_mut() }.ok_or(Failure::Misuse(what))
}

/// Turns a required NUL-terminated string into its bytes.
///
/// # Safety
/// The pointer is NULL, or points to bytes that end with a NUL.
pub(crate) unsafe fn given_bytes<'a>(
    pointer: *const c_char,
    what: &'static str,
) -> Result<&'a [u8], Failure> {
    if pointer.is_null() {
        return Err(Failure::Misuse(what));
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { CStr::from_ptr(pointer) }.to_bytes())
}

/// Turns a required pointer and a length into bytes.
///
/// # Safety
/// The pointer is NULL, or points to `length` bytes.
pub(crate) unsafe fn given_counted<'a>(
    pointer: *const c_char,
    length: usize,
    what: &'static str,
) -> Result<&'a [u8], Failure> {
    if pointer.is_null() {
        return Err(Failure::Misuse(what));
    }
    if length > isize::MAX as usize {
        return Err(Failure::Misuse("length does not fit in memory"));
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { core::slice::from_raw_parts(pointer.cast(), length) })
}

/// Turns a required NUL-terminated string into a string for one of the core's parsers. These accept only ASCII, so each
/// rejects invalid UTF-8 with the right error, which shows U+FFFD in its place.
///
/// # Safety
/// As for `given_bytes`.
pub(crate) unsafe fn given_text<'a>(
    pointer: *const c_char,
    what: &'static str,
) -> Result<std::borrow::Cow<'a, str>, Failure> {
    // SAFETY: as the caller promises.
    Ok(String::from_utf8_lossy(unsafe { given_bytes(pointer, what)? }))
}

/// Writes a struct that begins with its size. The caller sets that size, and no more than that is written, so that
/// programs built when the struct was shorter keep working. `first` is the struct's length in the first release; a
/// smaller size is rejected.
///
/// # Safety
/// `pointer` is NULL, or points to at least as many bytes as the `usize` at its start says, which nothing else uses
/// during the call. `T` is `repr(C)`, contains only integers, and begins with that `usize`.
pub(crate) unsafe fn write_sized<T>(pointer: *mut T, first: usize, value: &T) -> Result<(), Failure> {
    const SIZE: usize = size_of::<usize>();
    if pointer.is_null() {
        return Err(Failure::Misuse("the output struct is NULL"));
    }
    // SAFETY: as the caller promises. Only the size is read, until the check shows that the rest exists.
    let size = unsafe { pointer.cast::<usize>().read() };
    if size < first {
        return Err(Failure::Misuse("the output struct's size is not set to its sizeof"));
    }
    // SAFETY: both have this many bytes after their size.
    unsafe {
        let (from, to) = (core::ptr::from_ref(value).cast::<u8>(), pointer.cast::<u8>());
        to.add(SIZE).copy_from_nonoverlapping(from.add(SIZE), size.min(size_of::<T>()) - SIZE);
    }
    Ok(())
}

/// The length of a `repr(C)` struct up to and including a field, which is the last field of the first release.
macro_rules! length_with {
    ($type:ty, $field:ident: $field_type:ty) => {
        core::mem::offset_of!($type, $field) + size_of::<$field_type>()
    };
}
pub(crate) use length_with;

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Grown {
        size: usize,
        old: u64,
        new: u64,
    }

    #[test]
    fn a_grown_struct_fills_no_more_than_the_callers_shorter_one() {
        let first = length_with!(Grown, old: u64);
        let value = Grown { size: 0, old: 1, new: 2 };
        for (size, expected) in [
            (first, Some(Grown { size: first, old: 1, new: 9 })),
            (size_of::<Grown>(), Some(Grown { size: size_of::<Grown>(), old: 1, new: 2 })),
            (4096, Some(Grown { size: 4096, old: 1, new: 2 })),
            (first - 1, None),
            (0, None),
        ] {
            let mut callers = Grown { size, old: 9, new: 9 };
            // SAFETY: this is a whole Grown, whatever its size field says.
            let written = unsafe { write_sized(&raw mut callers, first, &value) };
            assert_eq!(written.is_ok(), expected.is_some());
            assert_eq!(callers, expected.unwrap_or(Grown { size, old: 9, new: 9 }));
        }
    }

    #[test]
    fn statuses_match_the_core() {
        let constants = [
            POLYFLAKE_INVALID_LAYOUT,
            POLYFLAKE_UNKNOWN_LAYOUT,
            POLYFLAKE_INVALID_NODE,
            POLYFLAKE_INVALID_OPTION,
            POLYFLAKE_INVALID_ID,
            POLYFLAKE_TIME_OUT_OF_RANGE,
            POLYFLAKE_CLOCK_MOVED_BACKWARDS,
            POLYFLAKE_SEQUENCE_EXHAUSTED,
            POLYFLAKE_FORKED,
            POLYFLAKE_CLOCK_FAILED,
            POLYFLAKE_STATE_FILE,
            POLYFLAKE_LEASE_UNAVAILABLE,
            POLYFLAKE_LEASE_LOST,
            POLYFLAKE_CLOSED,
            POLYFLAKE_COUNTER_UNAVAILABLE,
            POLYFLAKE_INTERNAL,
        ];
        assert_eq!(constants, ErrorCode::ALL.map(ErrorCode::number));
        for (constant, code) in constants.into_iter().zip(ErrorCode::ALL) {
            assert_eq!(texts(constant).0.to_str(), Ok(code.name()));
        }
    }

    #[test]
    fn a_panic_ends_at_the_boundary() {
        let mut detail = polyflake_detail {
            size: size_of::<polyflake_detail>(),
            behind_ms: 1,
            retry_after_ms: 1,
            message: [0; MESSAGE_SIZE],
        };
        let status = guard(&raw mut detail, || panic!("on purpose"));
        assert_eq!(status, POLYFLAKE_INTERNAL);
        // SAFETY: it ends with a NUL.
        let message = unsafe { CStr::from_ptr(detail.message.as_ptr()) };
        assert!(message.to_str().unwrap().starts_with("internal: "));
    }
}
