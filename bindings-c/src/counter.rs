//! Counters: numbers from a store.

use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;

use polyflake_coordination::{Counter, CounterOptions, CounterStats};

use crate::options::polyflake_options;
use crate::snowflake::room;
use crate::status::{
    Failure, given, guard, length_with, output, polyflake_detail, polyflake_status, write_sized,
};

/// Issues numbers that count up, each only once: 1, 2, 3 and so on. A store hands them out in segments, so that most
/// numbers need no round trip. Any number of threads may use it at once.
#[derive(Debug)]
pub struct polyflake_counter {
    counter: Counter,
    name: CString,
}

/// Statistics for monitoring. They cover the whole process since it first opened a counter with this name.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_counter_counts {
    /// sizeof(polyflake_counter_counts), set by the caller.
    pub size: usize,
    /// How many numbers are in hand.
    pub in_hand: u64,
    /// How many numbers the next segment will have.
    pub step: u64,
    /// How many times the store has handed out numbers.
    pub segments: u64,
    /// How many numbers were skipped to keep blocks consecutive and numbers increasing.
    pub skipped: u64,
    /// How many times a call found no number in hand and waited or failed.
    pub waits: u64,
}

const COUNTER: &str = "counter is NULL";
const NUMBER: &str = "number is NULL";
const OPTIONS: &str = "options is NULL";

/// Opens a counter with options, which are copied. Creates the counter if the store does not have it, and waits for at
/// most max_wait_ms until the counter can issue a number. Free it with polyflake_counter_free.
///
/// All counters in a process with the same stores and name share the numbers in hand. A library thread, which blocks
/// all signals, asks the store for more before they are used up. It does so until the last of these counters is closed,
/// or one TTL after the last is freed (the address sets the TTL; 30 s by default). Events are reported to the listener
/// set with polyflake_set_lease_listener.
///
/// If a process exits without calling polyflake_counter_close, the numbers it had fetched but not returned are skipped:
/// at most two segments, plus the numbers taken by calls in progress.
///
/// Returns POLYFLAKE_INVALID_OPTION if an option is missing or invalid, if the stores differ in order or number from
/// those the counter started with, if this process already uses the counter with a different start or step, or if the
/// library was built without stores; or POLYFLAKE_COUNTER_UNAVAILABLE if the store cannot be reached or refuses to hand
/// out numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_open(
    options: *const polyflake_options,
    counter: *mut *mut polyflake_counter,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (from, counter) = unsafe { (given(options, OPTIONS)?, output(counter, COUNTER)?) };
        let opened = from.named(CounterOptions::new, CounterOptions::set).open()?;
        // The name of an open counter contains no NUL.
        let name = CString::new(opened.name()).unwrap_or_default();
        counter.write(Box::into_raw(Box::new(polyflake_counter { counter: opened, name })));
        Ok(())
    })
}

/// Closes a counter. From then on, calls return POLYFLAKE_CLOSED, and so do calls that are waiting in other threads.
/// Closing the last counter with a given name in this process returns the rest of its last segment to the store,
/// waiting for at most 5 s. Closing a counter again, or passing NULL, does nothing. This does not free the counter:
/// call polyflake_counter_free once no thread is inside a call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_close(counter: *const polyflake_counter) {
    // SAFETY: as the header requires.
    if let Some(counter) = unsafe { counter.as_ref() } {
        guard(core::ptr::null_mut(), || {
            counter.counter.close();
            Ok(())
        });
    }
}

/// Frees a counter that no thread is using any longer, whether or not it was closed. If it was not, its numbers in hand
/// are kept for one TTL, so that the next counter with that name can use them. Does nothing for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_free(counter: *mut polyflake_counter) {
    if !counter.is_null() {
        // SAFETY: the pointer came from polyflake_counter_open and is freed only once.
        drop(unsafe { Box::from_raw(counter) });
    }
}

/// Gets the next number. With one store, it is greater than every number this process received before the call began.
/// If no number is in hand, the call waits for the store, for at most max_wait_ms. A child process fetches its own
/// numbers.
///
/// Returns POLYFLAKE_COUNTER_UNAVAILABLE if the store hands out no number within that time, and at once if waiting
/// would not help (the store refuses, the counter was removed, or it has reached 2^63-1); or POLYFLAKE_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_next_id(
    counter: *const polyflake_counter,
    number: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    // SAFETY: as the header requires.
    guard(detail, || unsafe { get(counter, number, Counter::next_id) })
}

/// Returns the next number itself, for languages where an output parameter is expensive. Works like
/// polyflake_counter_next_id, but returns 0, which is never a number, on failure. To find out why, call
/// polyflake_counter_next_id, which waits again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_next_id_or_zero(counter: *const polyflake_counter) -> u64 {
    // SAFETY: as the header requires.
    unsafe { or_zero(counter, Counter::next_id) }
}

/// Gets the next number without waiting for the store.
///
/// Returns POLYFLAKE_COUNTER_UNAVAILABLE if no number is in hand; the library then asks the store for more in the
/// background. With a step of 1, this always happens. Returns POLYFLAKE_CLOSED after polyflake_counter_close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_try_next_id(
    counter: *const polyflake_counter,
    number: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    // SAFETY: as the header requires.
    guard(detail, || unsafe { get(counter, number, Counter::try_next_id) })
}

/// Returns the next number itself, or 0, which is never a number, if polyflake_counter_try_next_id would fail. In that
/// case, polyflake_counter_next_id waits for a number or reports why it cannot get one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_try_next_id_or_zero(counter: *const polyflake_counter) -> u64 {
    // SAFETY: as the header requires.
    unsafe { or_zero(counter, Counter::try_next_id) }
}

/// Fills the array at numbers with the next n numbers. With one store, each is greater than the one before. They are
/// not necessarily consecutive. If n is 0, numbers may be NULL. Whenever no number is in hand, the call waits for the
/// store, for at most max_wait_ms. On failure, the contents of the array are meaningless; numbers may be lost but are
/// never repeated.
///
/// Returns the same statuses as polyflake_counter_next_id, or POLYFLAKE_INVALID_OPTION for an array of more than
/// SIZE_MAX / 2 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_fill(
    counter: *const polyflake_counter,
    n: usize,
    numbers: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (counter, numbers) = unsafe { (given(counter, COUNTER)?, room(n, numbers, "numbers is NULL")?) };
        Ok(counter.counter.fill(numbers)?)
    })
}

/// Gets the first of n consecutive numbers; the last is *first + n - 1. n must be between 1 and POLYFLAKE_MAX_BATCH. If
/// fewer than n numbers are left in hand, they are skipped, and the store is asked for more.
///
/// Returns the same statuses as polyflake_counter_next_id, or POLYFLAKE_INVALID_OPTION if n is out of range, or if the
/// counter has several stores, whose numbers are not consecutive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_next_block(
    counter: *const polyflake_counter,
    n: i64,
    first: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (counter, first) = unsafe { (given(counter, COUNTER)?, output(first, "first is NULL")?) };
        first.write(counter.counter.next_block(n)?);
        Ok(())
    })
}

/// Gets the highest number in any segment that the store has handed out, to any process, or 0 before the first segment.
/// Queries the store.
///
/// Returns POLYFLAKE_COUNTER_UNAVAILABLE if the store cannot be reached within max_wait_ms or has no such counter, or
/// POLYFLAKE_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_peek(
    counter: *const polyflake_counter,
    number: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    // SAFETY: as the header requires.
    guard(detail, || unsafe { get(counter, number, Counter::peek) })
}

/// Moves the counter above number: from then on, the store hands out only greater numbers. This process gives up its
/// numbers in hand; other processes first use up theirs. Changes nothing if the counter is already higher.
///
/// Returns the same statuses as polyflake_counter_peek, or POLYFLAKE_INVALID_OPTION for a number that is not between 1
/// and 2^63-1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_raise(
    counter: *const polyflake_counter,
    number: u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let counter = unsafe { given(counter, COUNTER)? };
        Ok(counter.counter.raise(number)?)
    })
}

/// Deletes the counter from the store. From then on, this process's counters with that name issue no numbers. A process
/// that opens the counter later starts again at the first number, so numbers repeat. *existed is 1 if the store had the
/// counter, otherwise 0.
///
/// Returns the same statuses as polyflake_counter_peek.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_remove(
    counter: *const polyflake_counter,
    existed: *mut c_int,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (counter, existed) = unsafe { (given(counter, COUNTER)?, output(existed, "existed is NULL")?) };
        existed.write(counter.counter.remove()?.into());
        Ok(())
    })
}

/// Returns the counter's name. The string belongs to the counter: do not free it, and do not use it after the counter
/// is freed. Works on a closed counter too. Returns NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_name(counter: *const polyflake_counter) -> *const c_char {
    // SAFETY: as the header requires.
    unsafe { counter.as_ref() }.map_or(core::ptr::null(), |counter| CStr::as_ptr(&counter.name))
}

/// Gets statistics for monitoring. Set counts->size first.
///
/// Returns POLYFLAKE_CLOSED after polyflake_counter_close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_stats(
    counter: *const polyflake_counter,
    counts: *mut polyflake_counter_counts,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let counter = unsafe { given(counter, COUNTER)? };
        let CounterStats { in_hand, step, segments, skipped, waits, .. } = counter.counter.stats()?;
        let value = polyflake_counter_counts { size: 0, in_hand, step, segments, skipped, waits };
        // SAFETY: as the header requires.
        unsafe { write_sized(counts, length_with!(polyflake_counter_counts, waits: u64), &value) }
    })
}

/// # Safety
/// As the header requires of `polyflake_counter_next_id`.
#[inline]
unsafe fn get(
    counter: *const polyflake_counter,
    number: *mut u64,
    call: impl FnOnce(&Counter) -> Result<u64, polyflake::Error>,
) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    let (counter, number) = unsafe { (given(counter, COUNTER)?, output(number, NUMBER)?) };
    number.write(call(&counter.counter)?);
    Ok(())
}

/// # Safety
/// As the header requires of `polyflake_counter_next_id_or_zero`.
#[inline]
unsafe fn or_zero(
    counter: *const polyflake_counter,
    call: impl FnOnce(&Counter) -> Result<u64, polyflake::Error>,
) -> u64 {
    let mut number = 0;
    guard(core::ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        number = call(&unsafe { given(counter, COUNTER)? }.counter).unwrap_or_default();
        Ok(())
    });
    number
}
