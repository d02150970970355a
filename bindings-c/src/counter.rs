//! Counters: numbers from a store.

use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;

use crate::options::polyflake_options;
use crate::snowflake::room;
use crate::status::{
    Failure, given, guard, length_with, output, polyflake_detail, polyflake_status, write_sized,
};

#[cfg(feature = "coordination")]
use polyflake_coordination::{Counter, CounterOptions, CounterStats};

#[cfg(not(feature = "coordination"))]
use without::{Counter, CounterOptions, CounterStats};

/// Numbers that count up, each given once: 1, 2, 3 and so on. A store hands them out in segments, so that a number costs
/// no round trip. Any number of threads may use it at once.
#[derive(Debug)]
pub struct polyflake_counter {
    counter: Counter,
    name: CString,
}

/// Counters for monitoring, counted since the first counter of that name was opened, by all of this process.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_counter_counts {
    /// sizeof(polyflake_counter_counts), set by the caller.
    pub size: usize,
    /// How many numbers are in hand.
    pub in_hand: u64,
    /// How many numbers the next segment has.
    pub step: u64,
    /// How often the store gave numbers.
    pub segments: u64,
    /// How many numbers were passed over, so that a block is one run and numbers go on increasing.
    pub skipped: u64,
    /// How often a call found no number in hand, and waited or failed.
    pub waits: u64,
}

const COUNTER: &str = "counter is NULL";
const NUMBER: &str = "number is NULL";
const OPTIONS: &str = "options is NULL";

/// Opens a counter with options, which are copied: makes it where the store has none, and waits until it can give a
/// number, for at most max_wait_ms. Free it with polyflake_counter_free.
///
/// Counters of one process with the same stores and name share the numbers in hand. A thread of the library asks the
/// store for more before they are used up, until the last of them is closed, or was freed a ttl (in the address; 30 s by
/// default) ago. It takes no signals. What happens is told to polyflake_set_lease_listener's function.
///
/// A process that ends without polyflake_counter_close leaves a gap of at most the numbers that it had in hand: two
/// segments.
///
/// Returns POLYFLAKE_INVALID_OPTION for an option that is missing or cannot be, where the stores are in another order or
/// number than the counter began with, where this process uses the counter with another start or step, and from a
/// library that was built without stores; or POLYFLAKE_COUNTER_UNAVAILABLE if the store cannot be reached or will not
/// give numbers.
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
        // The name of an open counter has no NUL.
        let name = CString::new(opened.name()).unwrap_or_default();
        counter.write(Box::into_raw(Box::new(polyflake_counter { counter: opened, name })));
        Ok(())
    })
}

/// Closes a counter. From then on, calls return POLYFLAKE_CLOSED, and so do calls that are waiting in other threads. The
/// last one of a name in this process gives back what it has in hand of its last segment: it waits for the store, for at
/// most 5 s. Closing again does nothing, and so does NULL. It frees nothing: call polyflake_counter_free once no thread
/// is in a call.
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

/// Frees a counter that no thread uses any more, closed or not. If it was not closed, its numbers in hand are kept for a
/// ttl, so that the next counter of that name finds them. Does nothing for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_free(counter: *mut polyflake_counter) {
    if !counter.is_null() {
        // SAFETY: the pointer came from polyflake_counter_open and is freed only once.
        drop(unsafe { Box::from_raw(counter) });
    }
}

/// Gets the next number, which is greater than every one that this process got before the call began (with one store).
/// If none is in hand, waits for the store, for at most max_wait_ms. In a child process, it gets numbers of its own.
///
/// Returns POLYFLAKE_COUNTER_UNAVAILABLE if the store gave none in that time, and at once where waiting does not help:
/// the store refuses, somebody removed the counter, or the counter has reached 2^63-1; or POLYFLAKE_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_next_id(
    counter: *const polyflake_counter,
    number: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    // SAFETY: as the header requires.
    guard(detail, || unsafe { get(counter, number, Counter::next_id) })
}

/// Returns the next number itself, for languages where an output parameter is expensive: like polyflake_counter_next_id,
/// but returns 0, which is never a number, on failure. polyflake_counter_next_id says why, but waits again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_next_id_or_zero(counter: *const polyflake_counter) -> u64 {
    // SAFETY: as the header requires.
    unsafe { or_zero(counter, Counter::next_id) }
}

/// Gets the next number without waiting for the store.
///
/// Returns POLYFLAKE_COUNTER_UNAVAILABLE if none is in hand: the store is asked for more meanwhile. With a step of 1,
/// none ever is. Returns POLYFLAKE_CLOSED after polyflake_counter_close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_try_next_id(
    counter: *const polyflake_counter,
    number: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    // SAFETY: as the header requires.
    guard(detail, || unsafe { get(counter, number, Counter::try_next_id) })
}

/// Returns the next number itself, or 0, which is never a number, where polyflake_counter_try_next_id would fail. Then
/// polyflake_counter_next_id waits for one, or says why there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_try_next_id_or_zero(counter: *const polyflake_counter) -> u64 {
    // SAFETY: as the header requires.
    unsafe { or_zero(counter, Counter::try_next_id) }
}

/// Fills the array at numbers with the next n numbers, each greater than the one before (with one store), which need not
/// follow each other. n may be 0, and numbers may then be NULL. Waits for the store for at most max_wait_ms, each time
/// that none is in hand. If it fails, the contents of the array are meaningless; numbers may be lost but are never
/// repeated.
///
/// Returns what polyflake_counter_next_id returns, or POLYFLAKE_INVALID_OPTION for an array of more than SIZE_MAX / 2
/// bytes.
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

/// Gets the first of n numbers that follow each other; the last is it plus n - 1. n is 1 to POLYFLAKE_MAX_BATCH. Where
/// fewer than n are left of what is in hand, those are passed over, and the store is asked.
///
/// Returns what polyflake_counter_next_id returns, or POLYFLAKE_INVALID_OPTION for another n, and with several stores,
/// whose numbers do not follow each other.
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

/// Gets the highest number that the store has handed out, in segments, to any process; 0 before the first. Asks the
/// store.
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

/// Lets no number up to this one be handed out any more, by the store to any process: the next is above it. What is in
/// hand in this process is given up; other processes use up what they have. Changes nothing where the counter is further
/// already.
///
/// Returns what polyflake_counter_peek returns, or POLYFLAKE_INVALID_OPTION for a number that is not 1 to 2^63-1.
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

/// Deletes the counter from the store. The next open begins at its start again, and numbers repeat. The
/// counters of that name in this process give none from then on. *existed is 1 if there was one, otherwise 0.
///
/// Returns what polyflake_counter_peek returns.
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

/// Returns the counter's name, which belongs to the counter: do not free it, nor use it after the counter is freed.
/// Works on a closed counter too. Returns NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_counter_name(counter: *const polyflake_counter) -> *const c_char {
    // SAFETY: as the header requires.
    unsafe { counter.as_ref() }.map_or(core::ptr::null(), |counter| CStr::as_ptr(&counter.name))
}

/// Gets counters for monitoring. Set counts->size first.
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

/// A build without stores has no counters: none can be opened.
#[cfg(not(feature = "coordination"))]
mod without {
    use polyflake::Error;

    #[derive(Debug)]
    pub(super) enum Counter {}

    pub(super) struct CounterOptions;

    pub(super) struct CounterStats {
        pub(super) in_hand: u64,
        pub(super) step: u64,
        pub(super) segments: u64,
        pub(super) skipped: u64,
        pub(super) waits: u64,
    }

    impl CounterOptions {
        pub(super) const fn new(_: &str) -> Self {
            Self
        }

        pub(super) const fn set(self, _: &str, _: &str) -> Self {
            self
        }

        #[expect(clippy::unused_self, reason = "it stands for one that uses it")]
        pub(super) fn open(&self) -> Result<Counter, Error> {
            Err(Error::no_stores("counters"))
        }
    }

    impl Counter {
        pub(super) const fn close(&self) {
            match *self {}
        }

        pub(super) const fn next_id(&self) -> Result<u64, Error> {
            match *self {}
        }

        pub(super) const fn try_next_id(&self) -> Result<u64, Error> {
            match *self {}
        }

        pub(super) const fn fill(&self, _: &mut [u64]) -> Result<(), Error> {
            match *self {}
        }

        pub(super) const fn next_block(&self, _: i64) -> Result<u64, Error> {
            match *self {}
        }

        pub(super) const fn peek(&self) -> Result<u64, Error> {
            match *self {}
        }

        pub(super) const fn raise(&self, _: u64) -> Result<(), Error> {
            match *self {}
        }

        pub(super) const fn remove(&self) -> Result<bool, Error> {
            match *self {}
        }

        pub(super) const fn name(&self) -> &str {
            match *self {}
        }

        pub(super) const fn stats(&self) -> Result<CounterStats, Error> {
            match *self {}
        }
    }
}
