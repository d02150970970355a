//! Snowflakes.

use polyflake::{Snowflake, batch_size};

use crate::layout::polyflake_layout;
use crate::options::{CallersClock, polyflake_options};
use crate::status::{
    Failure, given, guard, length_with, output, polyflake_detail, polyflake_status, write_sized,
};

/// A generator of unique, time-ordered 64-bit IDs. Any number of threads may use it at once.
#[derive(Debug)]
pub struct polyflake_snowflake {
    generator: Generator,
    layout: polyflake_layout,
}

#[derive(Debug)]
enum Generator {
    Builtin(Snowflake),
    Callers(Snowflake<CallersClock>),
}

/// Calls `$call` on the core's Snowflake, whichever clock it has.
macro_rules! with {
    ($snowflake:expr, $ids:ident => $call:expr) => {
        match &$snowflake.generator {
            Generator::Builtin($ids) => $call,
            Generator::Callers($ids) => $call,
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

/// A Snowflake from options, which are copied. On a built-in clock, Snowflakes of one process whose IDs could be
/// equal share one cursor, so that none repeats another's; the first ID of a new cursor may wait for the next
/// tick. Free it with polyflake_snowflake_free.
///
/// POLYFLAKE_INVALID_NODE, or POLYFLAKE_INVALID_OPTION (also where max_ahead_ms or max_backward_ms differ from
/// those that a shared cursor was made with, or that cursor stands in another state file, or in none),
/// POLYFLAKE_FORKED for a node that the parent had before a fork without a state file, or POLYFLAKE_STATE_FILE. With a
/// state file it may take up to a second, where the machine was started anew within that time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_new(
    options: *const polyflake_options,
    snowflake: *mut *mut polyflake_snowflake,
) -> polyflake_status {
    // SAFETY: as the header asks.
    unsafe { polyflake_snowflake_new_detailed(options, core::ptr::null_mut(), snowflake) }
}

/// polyflake_snowflake_new, with what is wrong in detail (NULL for none).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_new_detailed(
    options: *const polyflake_options,
    detail: *mut polyflake_detail,
    snowflake: *mut *mut polyflake_snowflake,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (from, snowflake) =
            unsafe { (given(options, "options is NULL")?, output(snowflake, "snowflake is NULL")?) };
        let generator = match from.clock {
            None => Generator::Builtin(from.options.build()?),
            Some(clock) => Generator::Callers(from.options.build_with_clock(clock)?),
        };
        let layout = match &generator {
            Generator::Builtin(ids) => *ids.layout(),
            Generator::Callers(ids) => *ids.layout(),
        };
        let made = polyflake_snowflake { generator, layout: polyflake_layout(layout) };
        snowflake.write(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// Frees a Snowflake that no thread uses any more. Its cursor stays with the process, with its state file if it has
/// one. NULL is fine.
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
/// the process that made it without a state file, or POLYFLAKE_STATE_FILE.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_next_id(
    snowflake: *const polyflake_snowflake,
    id: *mut u64,
) -> polyflake_status {
    // SAFETY: as the header asks.
    unsafe { polyflake_next_id_detailed(snowflake, core::ptr::null_mut(), id) }
}

/// polyflake_next_id, with what is wrong in detail (NULL for none).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_next_id_detailed(
    snowflake: *const polyflake_snowflake,
    detail: *mut polyflake_detail,
    id: *mut u64,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (snowflake, id) = unsafe { (given(snowflake, SNOWFLAKE)?, output(id, "id is NULL")?) };
        id.write(with!(snowflake, ids => ids.next_id())?);
        Ok(())
    })
}

/// The next ID, or the status of polyflake_next_id at once where there is none yet; detail may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_try_next_id(
    snowflake: *const polyflake_snowflake,
    detail: *mut polyflake_detail,
    id: *mut u64,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (snowflake, id) = unsafe { (given(snowflake, SNOWFLAKE)?, output(id, "id is NULL")?) };
        id.write(with!(snowflake, ids => ids.try_next_id())?);
        Ok(())
    })
}

/// The next n IDs, 1 to 16777216, into the array at ids. Waits for at most max_wait_ms of real time between two
/// runs of them. Where it does not return POLYFLAKE_OK, the array's content means nothing, and IDs may be lost
/// but never come again.
///
/// As polyflake_next_id, and POLYFLAKE_INVALID_OPTION for another n; detail may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_next_ids(
    snowflake: *const polyflake_snowflake,
    n: usize,
    detail: *mut polyflake_detail,
    ids: *mut u64,
) -> polyflake_status {
    guard(detail, || {
        batch_size(n)?;
        // SAFETY: as the header asks.
        unsafe { fill(snowflake, ids, n) }
    })
}

/// polyflake_next_ids for an array of any length, an empty one too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_fill(
    snowflake: *const polyflake_snowflake,
    n: usize,
    detail: *mut polyflake_detail,
    ids: *mut u64,
) -> polyflake_status {
    // SAFETY: as the header asks.
    guard(detail, || unsafe { fill(snowflake, ids, n) })
}

unsafe fn fill(snowflake: *const polyflake_snowflake, ids: *mut u64, n: usize) -> Result<(), Failure> {
    // SAFETY: the caller gives NULL or a live Snowflake.
    let snowflake = unsafe { given(snowflake, SNOWFLAKE)? };
    if ids.is_null() && n > 0 {
        return Err(Failure::Misuse("ids is NULL"));
    }
    if n > isize::MAX as usize / size_of::<u64>() {
        return Err(Failure::Misuse("n is more than memory holds"));
    }
    if n == 0 {
        return Ok(());
    }
    // SAFETY: the caller gives an array of n IDs that nothing else uses meanwhile; any bytes are a u64, and none
    // is read before it is written.
    let ids = unsafe { core::slice::from_raw_parts_mut(ids, n) };
    Ok(with!(snowflake, flake => flake.fill(ids))?)
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

/// All node fields joined, from the highest to the lowest; detail may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_node(
    snowflake: *const polyflake_snowflake,
    detail: *mut polyflake_detail,
    node: *mut u64,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (snowflake, node) = unsafe { (given(snowflake, SNOWFLAKE)?, output(node, "node is NULL")?) };
        node.write(with!(snowflake, ids => ids.node()));
        Ok(())
    })
}

/// Waits, lead and rollbacks, for an operator's graphs; set stats->size first. Reads the clock once.
/// POLYFLAKE_CLOCK_FAILED; detail may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_stats(
    snowflake: *const polyflake_snowflake,
    detail: *mut polyflake_detail,
    stats: *mut polyflake_stats,
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
