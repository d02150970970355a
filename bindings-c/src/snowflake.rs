//! Snowflakes.

use polyflake::{MAX_BATCH, Snowflake, batch_size};

use crate::layout::polyflake_layout;
use crate::options::{CallersClock, polyflake_options};
use crate::status::{
    Failure, given, guard, length_with, output, polyflake_detail, polyflake_status, write_sized,
};

/// A generator of unique, time-ordered 64-bit IDs. Any number of threads may use it at once.
#[derive(Debug)]
pub struct polyflake_snowflake {
    snowflake: AnySnowflake,
    layout: polyflake_layout,
}

#[derive(Debug)]
enum AnySnowflake {
    Builtin(Snowflake),
    Callers(Snowflake<CallersClock>),
}

/// Calls `$call` on the core's Snowflake, whichever clock it has.
macro_rules! with {
    ($snowflake:expr, $ids:ident => $call:expr) => {
        match &$snowflake.snowflake {
            AnySnowflake::Builtin($ids) => $call,
            AnySnowflake::Callers($ids) => $call,
        }
    };
}

/// What an operator may want to graph, counted since the cursor was made, on slow paths only.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_stats {
    /// sizeof(polyflake_stats), set by the caller.
    pub size: usize,
    /// How often a call found no free slot and waited or gave up.
    pub waits: u64,
    /// How many steps back of the clock were seen, tolerated or refused.
    pub rollbacks: u64,
    /// By how many ms the last tick taken lies ahead of the clock; 0 where it does not.
    pub lead_ms: u64,
    /// The start of the last ID's tick, in Unix ms; -1 before the first ID.
    pub last_issued_ms: i64,
}

/// The most IDs that a language whose call makes the array itself gives at once; see polyflake_check_batch.
pub const POLYFLAKE_MAX_BATCH: u64 = 16_777_216;

const _: () = assert!(POLYFLAKE_MAX_BATCH == MAX_BATCH);

/// A Snowflake from options, which are copied. Free it with polyflake_snowflake_free.
///
/// On a built-in clock, the Snowflakes of a process share one cursor, so that none repeats another's IDs, where their
/// epoch, their tick, the places and widths of timestamp and sequence, and their node's bits in their place are the
/// same, whatever the layouts are called. The first ID of a new cursor may wait for the next tick. Layouts that split
/// the bits in other ways are as two systems: nothing keeps their IDs apart.
///
/// With a state file, the cursor is the file's, for all processes that name it. A new file takes about a second, for it
/// starts above all that a holder of an older one may still issue; so does one after a reboot within a second. With a
/// clock of the caller's that clock must have moved on by as much before there are IDs.
///
/// POLYFLAKE_INVALID_NODE, or POLYFLAKE_INVALID_OPTION (also where max_ahead_ms or max_backward_ms differ from
/// those that a shared cursor was made with, or that cursor stands in another state file, or in none),
/// POLYFLAKE_FORKED for a node that the parent had before a fork without a state file, POLYFLAKE_STATE_FILE, or
/// POLYFLAKE_CLOCK_FAILED from the caller's clock, which a state file has it read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_new(
    options: *const polyflake_options,
    snowflake: *mut *mut polyflake_snowflake,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (from, snowflake) =
            unsafe { (given(options, "options is NULL")?, output(snowflake, "snowflake is NULL")?) };
        let made = match from.clock {
            None => AnySnowflake::Builtin(from.options.build()?),
            Some(clock) => AnySnowflake::Callers(from.options.build_with_clock(clock)?),
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

/// Ends a Snowflake: from here on every call for an ID or its stats is POLYFLAKE_CLOSED, calls that wait in other
/// threads end with it, and a call that has its IDs already returns them. Others on the same cursor go on. Closing
/// again does nothing. NULL is fine. It frees nothing: call polyflake_snowflake_free when no thread is in a call any
/// more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_close(snowflake: *const polyflake_snowflake) {
    // SAFETY: as the header asks.
    if let Some(snowflake) = unsafe { snowflake.as_ref() } {
        guard(core::ptr::null_mut(), || {
            with!(snowflake, ids => ids.close());
            Ok(())
        });
    }
}

/// Frees a Snowflake that no thread uses any more, closed or not. Its cursor stays with the process, with its state
/// file if it has one. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_free(snowflake: *mut polyflake_snowflake) {
    if !snowflake.is_null() {
        // SAFETY: the caller gives back what polyflake_snowflake_new gave, once.
        drop(unsafe { Box::from_raw(snowflake) });
    }
}

/// The next ID. Waits, for at most max_wait_ms of real time, where the tick's sequence is used up.
///
/// POLYFLAKE_SEQUENCE_EXHAUSTED or POLYFLAKE_CLOCK_MOVED_BACKWARDS where that was not enough (a step back past
/// max_backward_ms does not wait), POLYFLAKE_TIME_OUT_OF_RANGE, POLYFLAKE_CLOCK_FAILED, POLYFLAKE_FORKED in a child of
/// the process that made it without a state file, POLYFLAKE_STATE_FILE, or POLYFLAKE_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_next_id(
    snowflake: *const polyflake_snowflake,
    id: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (snowflake, id) = unsafe { (given(snowflake, SNOWFLAKE)?, output(id, "id is NULL")?) };
        id.write(with!(snowflake, ids => ids.next_id())?);
        Ok(())
    })
}

/// The next ID itself, for languages to which an output is dear: as polyflake_next_id, but 0, which is never an ID, in
/// place of a status. Then ask polyflake_next_id why; or polyflake_try_next_id, which does not wait a second time.
/// Either may also give an ID, if there is one meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_next_id_or_zero(snowflake: *const polyflake_snowflake) -> u64 {
    let mut id = 0;
    guard(core::ptr::null_mut(), || {
        // SAFETY: as the header asks.
        let snowflake = unsafe { given(snowflake, SNOWFLAKE)? };
        id = with!(snowflake, ids => ids.next_id()).unwrap_or_default();
        Ok(())
    });
    id
}

/// The next ID, or the status of polyflake_next_id at once where there is none yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_try_next_id(
    snowflake: *const polyflake_snowflake,
    id: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (snowflake, id) = unsafe { (given(snowflake, SNOWFLAKE)?, output(id, "id is NULL")?) };
        id.write(with!(snowflake, ids => ids.try_next_id())?);
        Ok(())
    })
}

/// The next n IDs into the array at ids, each greater than the one before: many times faster an ID than single calls.
/// Any n, 0 too, for which ids may be NULL. Waits for at most max_wait_ms of real time between two runs of them. Where
/// it does not return POLYFLAKE_OK, the array's content means nothing, and IDs may be lost but never come again.
///
/// As polyflake_next_id, and POLYFLAKE_INVALID_OPTION for an array of more than SIZE_MAX / 2 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_fill(
    snowflake: *const polyflake_snowflake,
    n: usize,
    ids: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    // SAFETY: as the header asks.
    guard(detail, || unsafe { fill(snowflake, n, ids) })
}

/// Whether a batch may have n IDs: for a language whose call makes the array itself, to ask before it takes the memory.
///
/// POLYFLAKE_INVALID_OPTION for an n that is not 1 to POLYFLAKE_MAX_BATCH.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_check_batch(n: i64, detail: *mut polyflake_detail) -> polyflake_status {
    guard(detail, || {
        batch_size(n)?;
        Ok(())
    })
}

unsafe fn fill(snowflake: *const polyflake_snowflake, n: usize, ids: *mut u64) -> Result<(), Failure> {
    // SAFETY: the caller gives NULL or a live Snowflake.
    let snowflake = unsafe { given(snowflake, SNOWFLAKE)? };
    if ids.is_null() && n > 0 {
        return Err(Failure::Misuse("ids is NULL"));
    }
    if n > isize::MAX as usize / size_of::<u64>() {
        return Err(Failure::Misuse("n is more than memory holds"));
    }
    let ids = if n == 0 {
        &mut []
    } else {
        // SAFETY: the caller gives an array of n IDs that nothing else uses meanwhile; any bytes are a u64, and none
        // is read before it is written.
        unsafe { core::slice::from_raw_parts_mut(ids, n) }
    };
    Ok(with!(snowflake, snowflake => snowflake.fill(ids))?)
}

/// The layout, which lives as long as the Snowflake and is not to be freed; NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_layout(
    snowflake: *const polyflake_snowflake,
) -> *const polyflake_layout {
    // SAFETY: as the header asks.
    match unsafe { snowflake.as_ref() } {
        Some(snowflake) => &raw const snowflake.layout,
        None => core::ptr::null(),
    }
}

/// All node fields joined, from the highest to the lowest. A closed Snowflake has it too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_node(
    snowflake: *const polyflake_snowflake,
    node: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (snowflake, node) = unsafe { (given(snowflake, SNOWFLAKE)?, output(node, "node is NULL")?) };
        node.write(with!(snowflake, ids => ids.node()));
        Ok(())
    })
}

/// Waits, lead and rollbacks, for an operator's graphs; set stats->size first. Reads the clock once.
///
/// POLYFLAKE_CLOCK_FAILED, POLYFLAKE_FORKED or POLYFLAKE_CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_stats(
    snowflake: *const polyflake_snowflake,
    stats: *mut polyflake_stats,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let snowflake = unsafe { given(snowflake, SNOWFLAKE)? };
        let counted = with!(snowflake, ids => ids.stats())?;
        let value = polyflake_stats {
            size: 0,
            waits: counted.waits,
            rollbacks: counted.rollbacks,
            lead_ms: counted.lead_ms,
            last_issued_ms: counted.last_issued_ms.and_then(|ms| i64::try_from(ms).ok()).unwrap_or(-1),
        };
        // SAFETY: as the header asks.
        unsafe { write_sized(stats, length_with!(polyflake_stats, last_issued_ms: i64), &value) }
    })
}

const SNOWFLAKE: &str = "snowflake is NULL";
