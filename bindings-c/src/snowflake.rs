//! Snowflakes.

use core::ffi::c_uint;

use polyflake::{Error, MAX_BATCH, Options, Snowflake, batch_size};

use crate::layout::polyflake_layout;
use crate::options::{CallersClock, polyflake_options};
use crate::status::{
    Failure, given, guard, length_with, output, polyflake_detail, polyflake_status, write_sized,
};

/// Issues unique, time-ordered 64-bit IDs. Any number of threads may use it at once.
#[derive(Debug)]
pub struct polyflake_snowflake {
    pub(crate) snowflake: AnySnowflake,
    layout: polyflake_layout,
}

#[derive(Debug)]
pub(crate) enum AnySnowflake {
    Builtin(Snowflake),
    Callers(Snowflake<CallersClock>),
}

/// Calls `$call` on the core's Snowflake, whichever clock it uses.
macro_rules! with {
    ($snowflake:expr, $ids:ident => $call:expr) => {
        match &$snowflake.snowflake {
            $crate::snowflake::AnySnowflake::Builtin($ids) => $call,
            $crate::snowflake::AnySnowflake::Callers($ids) => $call,
        }
    };
}
pub(crate) use with;

/// Statistics for monitoring. They cover the time since the cursor was created, and are updated only on slow paths.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_stats {
    /// sizeof(polyflake_stats), set by the caller.
    pub size: usize,
    /// How many times a call found no free slot and waited or failed.
    pub waits: u64,
    /// How many times the clock was seen to step backward, whether or not the step was tolerated.
    pub rollbacks: u64,
    /// How far the last tick used is ahead of the clock, in ms; 0 if it is not ahead.
    pub lead_ms: u64,
    /// The start of the last ID's tick, in Unix ms; -1 before the first ID.
    pub last_issued_ms: i64,
    /// How many times the lease was lost because it expired or another process had its node; 0 without a lease.
    pub lease_losses: u64,
}

/// The largest batch in bindings that allocate the array themselves; see polyflake_check_batch.
pub const POLYFLAKE_MAX_BATCH: u64 = 16_777_216;

const _: () = assert!(POLYFLAKE_MAX_BATCH == MAX_BATCH);

pub(crate) const SNOWFLAKE: &str = "snowflake is NULL";

/// Creates a Snowflake from options, which are copied. Free it with polyflake_snowflake_free.
///
/// With a built-in clock, Snowflakes in one process share a cursor, and so never repeat each other's IDs, if they have
/// the same epoch and tick, the same timestamp and sequence positions and widths, and the same node bits in the same
/// place. The names of their layouts do not matter. The first ID of a new cursor may have to wait for the next tick.
/// Layouts that split the bits differently are separate systems, and their IDs may collide.
///
/// With a state file, all processes that name the file share its cursor. Creating the file takes about a second,
/// because its cursor starts above every ID that a process with an older, deleted file may still issue. Opening an
/// existing file right after a reboot takes as long. A custom clock must advance by that much before any ID is issued.
///
/// With a lease, this asks the store for a node, and waits for at most the wait time set in the address (35 s by
/// default: the TTL plus 5 s). Snowflakes in one process with the same address, layout and `node` share one lease. A
/// library thread, which blocks all signals, renews it until the last of them is closed, or one TTL after the last is
/// freed.
///
/// Returns POLYFLAKE_INVALID_NODE for a missing or invalid node; POLYFLAKE_INVALID_OPTION if any other option is
/// invalid, if the node's cursor already exists with a different max_ahead_ms or max_backward_ms, or with a different
/// state file or none, or if a lease is combined with a state file or a custom clock; POLYFLAKE_FORKED for a node that
/// the parent process used before a fork without a state file; POLYFLAKE_STATE_FILE if the state file cannot be used;
/// POLYFLAKE_LEASE_UNAVAILABLE if no node is free or the store cannot be reached; or POLYFLAKE_CLOCK_FAILED if a custom
/// clock fails (it is read here only if there is a state file).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_new(
    options: *const polyflake_options,
    snowflake: *mut *mut polyflake_snowflake,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (from, snowflake) =
            unsafe { (given(options, "options is NULL")?, output(snowflake, "snowflake is NULL")?) };
        let made = match from.snowflake()? {
            (options, None) => AnySnowflake::Builtin(build(options)?),
            (options, Some(clock)) => AnySnowflake::Callers(options.build_with_clock(clock)?),
        };
        let layout = match &made {
            AnySnowflake::Builtin(ids) => *ids.layout(),
            AnySnowflake::Callers(ids) => *ids.layout(),
        };
        let boxed = polyflake_snowflake { snowflake: made, layout: polyflake_layout(layout) };
        snowflake.write(Box::into_raw(Box::new(boxed)));
        Ok(())
    })
}

/// Builds a Snowflake, with a lease if the options ask for one.
fn build(options: &Options) -> Result<Snowflake, Error> {
    match options.lease_terms()? {
        Some(_) => polyflake_coordination::open(options),
        None => options.build(),
    }
}

/// Closes a Snowflake. From then on, calls for an ID or for stats return POLYFLAKE_CLOSED, and so do calls that are
/// waiting in other threads; a call that already has its IDs returns them. Other Snowflakes on the same cursor are not
/// affected. Closing a Snowflake again, or passing NULL, does nothing. This does not free the Snowflake: call
/// polyflake_snowflake_free once no thread is inside a call.
///
/// Closing the last Snowflake on a lease gives the node back. This waits for the store, for at most a sixth of the TTL
/// or 5 s, whichever is shorter. The node can then be leased again at once, and the library's thread has exited, unless
/// other leases, counters or sequences still need it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_close(snowflake: *const polyflake_snowflake) {
    // SAFETY: as the header requires.
    if let Some(snowflake) = unsafe { snowflake.as_ref() } {
        guard(core::ptr::null_mut(), || {
            with!(snowflake, ids => ids.close());
            Ok(())
        });
    }
}

/// Frees a Snowflake that no thread is using any longer, whether or not it was closed. Its cursor and its hold on a
/// state file last as long as the process. If it was not closed, its lease is kept for one TTL, so that the next
/// Snowflake can use it. Does nothing for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_free(snowflake: *mut polyflake_snowflake) {
    if !snowflake.is_null() {
        // SAFETY: the pointer came from polyflake_snowflake_new and is freed only once.
        drop(unsafe { Box::from_raw(snowflake) });
    }
}

/// Gets the next ID. If the tick's sequence is used up, the call waits for at most max_wait_ms of real time.
///
/// Returns POLYFLAKE_SEQUENCE_EXHAUSTED or POLYFLAKE_CLOCK_MOVED_BACKWARDS if that was not long enough (after a step
/// back of more than max_backward_ms, the call does not wait), POLYFLAKE_TIME_OUT_OF_RANGE if the clock is outside the
/// layout's range, POLYFLAKE_CLOCK_FAILED if the custom clock fails, POLYFLAKE_FORKED in a child process without a
/// state file, POLYFLAKE_STATE_FILE if the state file can no longer be used, POLYFLAKE_LEASE_LOST if the lease has
/// expired and was not renewed within max_wait_ms, or POLYFLAKE_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_next_id(
    snowflake: *const polyflake_snowflake,
    id: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (snowflake, id) = unsafe { (given(snowflake, SNOWFLAKE)?, output(id, "id is NULL")?) };
        id.write(with!(snowflake, ids => ids.next_id())?);
        Ok(())
    })
}

/// Returns the next ID itself, for languages where an output parameter is expensive. Works like polyflake_next_id, but
/// returns 0, which is never an ID, on failure. To find out why, call polyflake_next_id, or polyflake_try_next_id,
/// which does not wait again. Either may succeed if an ID has become available since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_next_id_or_zero(snowflake: *const polyflake_snowflake) -> u64 {
    let mut id = 0;
    guard(core::ptr::null_mut(), || {
        // SAFETY: as the header requires.
        let snowflake = unsafe { given(snowflake, SNOWFLAKE)? };
        id = with!(snowflake, ids => ids.next_id()).unwrap_or_default();
        Ok(())
    });
    id
}

/// Gets the next ID without waiting.
///
/// Returns the same statuses as polyflake_next_id, but at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_try_next_id(
    snowflake: *const polyflake_snowflake,
    id: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (snowflake, id) = unsafe { (given(snowflake, SNOWFLAKE)?, output(id, "id is NULL")?) };
        id.write(with!(snowflake, ids => ids.try_next_id())?);
        Ok(())
    })
}

/// Fills the array at ids with the next n IDs, each greater than the one before. This is much faster per ID than single
/// calls. If n is 0, ids may be NULL. Between two runs of IDs, the call waits for at most max_wait_ms of real time. On
/// failure, the contents of the array are meaningless; IDs may be lost but are never repeated.
///
/// Returns the same statuses as polyflake_next_id, or POLYFLAKE_INVALID_OPTION for an array of more than
/// SIZE_MAX / 2 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_fill(
    snowflake: *const polyflake_snowflake,
    n: usize,
    ids: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    // SAFETY: as the header requires.
    guard(detail, || unsafe { fill(snowflake, n, ids) })
}

/// Gets the next ID if one is available now, or 0, which is never an ID, if the caller must wait for one. This call
/// does not wait for the clock, for a lease's store or for a state file's disk. If the ID is 0, continue with
/// polyflake_waiting_poll, and pass a waited_ns of at least 1, because this call has already counted the wait.
///
/// Returns the same statuses as polyflake_next_id, but at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_next_id_now(
    snowflake: *const polyflake_snowflake,
    id: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (snowflake, id) = unsafe { (given(snowflake, SNOWFLAKE)?, output(id, "id is NULL")?) };
        id.write(with!(snowflake, ids => ids.next_id_now())?);
        Ok(())
    })
}

/// Returns the next ID itself. Works like polyflake_next_id_now, but also returns 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_next_id_now_or_zero(snowflake: *const polyflake_snowflake) -> u64 {
    let mut id = 0;
    guard(core::ptr::null_mut(), || {
        // SAFETY: as the header requires.
        let snowflake = unsafe { given(snowflake, SNOWFLAKE)? };
        id = with!(snowflake, ids => ids.next_id_now()).unwrap_or_default();
        Ok(())
    });
    id
}

/// Writes as many of the next n IDs as are available now to the array at ids, and their count to *filled. If *filled
/// is less than n, wait for the rest in the same way as after polyflake_next_id_now. All IDs in a batch have the same
/// node: if the lease changes the node during the wait, fill the array again from its start. On failure, IDs may be
/// lost but are never repeated.
///
/// Returns the same statuses as polyflake_fill, but at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_fill_now(
    snowflake: *const polyflake_snowflake,
    n: usize,
    ids: *mut u64,
    filled: *mut usize,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (snowflake, ids, filled) = unsafe {
            (given(snowflake, SNOWFLAKE)?, room(n, ids, "ids is NULL")?, output(filled, "filled is NULL")?)
        };
        filled.write(with!(snowflake, snowflake => snowflake.fill_now(ids))?);
        Ok(())
    })
}

/// Checks the size of a batch. Bindings that allocate the array themselves call this first.
///
/// Returns POLYFLAKE_INVALID_OPTION unless n is between 1 and POLYFLAKE_MAX_BATCH.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_check_batch(n: i64, detail: *mut polyflake_detail) -> polyflake_status {
    guard(detail, || {
        batch_size(n)?;
        Ok(())
    })
}

unsafe fn fill(snowflake: *const polyflake_snowflake, n: usize, ids: *mut u64) -> Result<(), Failure> {
    // SAFETY: as the header requires.
    let (snowflake, ids) = unsafe { (given(snowflake, SNOWFLAKE)?, room(n, ids, "ids is NULL")?) };
    Ok(with!(snowflake, snowflake => snowflake.fill(ids))?)
}

/// Turns the pointer to an output array of n numbers into a slice. The pointer may be NULL if n is 0.
///
/// # Safety
/// The pointer is NULL, or points to n numbers that nothing else uses during the call.
pub(crate) unsafe fn room<'a>(
    n: usize,
    start: *mut u64,
    what: &'static str,
) -> Result<&'a mut [u64], Failure> {
    if start.is_null() && n > 0 {
        return Err(Failure::Misuse(what));
    }
    if n > isize::MAX as usize / size_of::<u64>() {
        return Err(Failure::Misuse("n does not fit in memory"));
    }
    if n == 0 {
        return Ok(&mut []);
    }
    // SAFETY: as the caller promises. Every bit pattern is a valid u64, and nothing is read before it is written.
    Ok(unsafe { core::slice::from_raw_parts_mut(start, n) })
}

/// Returns the layout. It belongs to the Snowflake: do not free it, and do not use it after the Snowflake is freed.
/// Returns NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_layout(
    snowflake: *const polyflake_snowflake,
) -> *const polyflake_layout {
    // SAFETY: as the header requires.
    match unsafe { snowflake.as_ref() } {
        Some(snowflake) => &raw const snowflake.layout,
        None => core::ptr::null(),
    }
}

/// Gets the node, as the value of all node bits together, highest field first. Works on a closed Snowflake too. With a
/// lease, the node may change: this is the node of either the last ID or the next one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_node(
    snowflake: *const polyflake_snowflake,
    node: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (snowflake, node) = unsafe { (given(snowflake, SNOWFLAKE)?, output(node, "node is NULL")?) };
        node.write(with!(snowflake, ids => ids.node()));
        Ok(())
    })
}

/// Gets max_wait_ms, the longest that a call waits for the clock. Works on a closed Snowflake too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_max_wait_ms(
    snowflake: *const polyflake_snowflake,
    max_wait_ms: *mut u32,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (snowflake, max_wait_ms) =
            unsafe { (given(snowflake, SNOWFLAKE)?, output(max_wait_ms, "max_wait_ms is NULL")?) };
        max_wait_ms.write(with!(snowflake, ids => ids.max_wait_ms()));
        Ok(())
    })
}

/// Everything a program needs to take an ID on its own, without calling this library, if that ID is in the same tick as
/// the last one. Meant for languages where a call is expensive, and filled in by polyflake_snowflake_words.
///
/// Read and write all words atomically, with at least acquire and release ordering, in these steps:
///
/// 1. start = *clock_start, then kept = *clock_kept. The low 20 bits of kept are the window; continue only if it is not
///    0. Then count = the processor's counter (the TSC on x86-64, CNTVCT_EL0 on AArch64). Continue only if count -
///    start is below the window. now = kept >> 20 is the time, in Unix ms.
/// 2. last = *cursor, next = last + 1. Continue only if next is in the tick of now, that is, if now - ((next >>
///    sequence_bits) * tick_ms + epoch_ms), modulo 2^64, is below tick_ms.
/// 3. Continue only if last < **limit. Both words may change at any time.
/// 4. Load *node, which a lease may change.
/// 5. Compare-and-swap *cursor from last to next. The ID is (next >> sequence_bits) << timestamp_shift | (next & mask)
///    << sequence_shift | the node from step 4, where mask is (1 << sequence_bits) - 1.
///
/// If you cannot continue, or if the swap fails, call polyflake_next_id.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_words {
    /// sizeof(polyflake_words), set by the caller.
    pub size: usize,
    /// The value of the processor's counter when the clock was read. All words except limit and node live as long as
    /// the library.
    pub clock_start: *const u64,
    /// That reading of the clock and its window, packed as in step 1.
    pub clock_kept: *const u64,
    /// The last ID taken, without its node: ticks << sequence_bits | sequence.
    pub cursor: *mut u64,
    /// A word in the Snowflake: do not use it after the Snowflake is freed.
    pub limit: *const *const u64,
    /// The start of tick 0, in Unix ms.
    pub epoch_ms: u64,
    /// The length of a tick, in ms.
    pub tick_ms: u64,
    /// The node bits, in their position in the ID. Like limit, this is a word in the Snowflake.
    pub node: *const u64,
    /// The width of the sequence, in bits.
    pub sequence_bits: c_uint,
    /// The number of bits below the sequence.
    pub sequence_shift: c_uint,
    /// The number of bits below the timestamp.
    pub timestamp_shift: c_uint,
}

/// Gets the words of a Snowflake. Set words->size first.
///
/// Returns POLYFLAKE_INVALID_OPTION if the clock is not "system", because every ID then requires a call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_words(
    snowflake: *const polyflake_snowflake,
    words: *mut polyflake_words,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let snowflake = unsafe { given(snowflake, SNOWFLAKE)? };
        let found = match &snowflake.snowflake {
            AnySnowflake::Builtin(ids) => ids.words(),
            AnySnowflake::Callers(_) => None,
        };
        let found =
            found.ok_or(Failure::Misuse("the clock is not the system's, so every ID takes a call"))?;
        let value = polyflake_words {
            size: 0,
            clock_start: found.clock_start,
            clock_kept: found.clock_kept,
            cursor: found.cursor.cast_mut(),
            limit: found.limit,
            epoch_ms: found.epoch_ms,
            tick_ms: found.tick_ms,
            node: found.placed_node,
            sequence_bits: found.sequence_bits,
            sequence_shift: found.sequence_shift,
            timestamp_shift: found.timestamp_shift,
        };
        // SAFETY: as the header requires.
        unsafe { write_sized(words, length_with!(polyflake_words, timestamp_shift: c_uint), &value) }
    })
}

/// Gets statistics for monitoring. Set stats->size first. Reads the clock once.
///
/// Returns POLYFLAKE_CLOCK_FAILED if the custom clock fails, POLYFLAKE_FORKED in a child process without a state file,
/// or POLYFLAKE_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_stats(
    snowflake: *const polyflake_snowflake,
    stats: *mut polyflake_stats,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let snowflake = unsafe { given(snowflake, SNOWFLAKE)? };
        let counted = with!(snowflake, ids => ids.stats())?;
        let value = polyflake_stats {
            size: 0,
            waits: counted.waits,
            rollbacks: counted.rollbacks,
            lead_ms: counted.lead_ms,
            last_issued_ms: counted.last_issued_ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(-1),
            lease_losses: counted.lease_losses,
        };
        // SAFETY: as the header requires.
        unsafe { write_sized(stats, length_with!(polyflake_stats, last_issued_ms: i64), &value) }
    })
}

#[cfg(test)]
mod tests {
    use polyflake_coordination::{CounterOptions, SequencesOptions, check_leases};

    use super::*;

    #[test]
    fn a_build_without_stores_says_so() {
        if check_leases().is_ok() {
            // This build has stores.
            return;
        }
        for (error, what) in [
            (build(&Options::default().lease("redis://h/0")).unwrap_err(), "leases"),
            (CounterOptions::new("c").store("redis://h/0").open().unwrap_err(), "counters"),
            (SequencesOptions::new("s").store("redis://h/0").open().unwrap_err(), "sequences"),
        ] {
            let message = format!(
                "invalid_option: this build has no stores, and so no {what}: \
                 build it with POLYFLAKE_STORES=redis, or with others"
            );
            assert_eq!(error.to_string(), message);
        }
    }
}
