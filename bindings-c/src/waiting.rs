//! Calls that wait in the caller's own way, without a thread for each.

use core::time::Duration;
use std::sync::Mutex;

use polyflake::{Polled, ThreadWait, Wait, Waiting};

use crate::snowflake::{SNOWFLAKE, polyflake_snowflake, room, with};
use crate::status::{Failure, given, guard, output, polyflake_detail, polyflake_status};

/// A call that waits in the caller's own way: in an event loop, or in a runtime that has cheaper threads than the
/// system's. While it waits it has a place among all calls of the process that wait for the same IDs. It may move between
/// threads, but only one may poll it at a time.
#[derive(Debug)]
pub struct polyflake_waiting {
    ids: *const polyflake_snowflake,
    waiting: Mutex<Waiting>,
}

/// Makes a call that waits in the caller's own way, to be polled by polyflake_waiting_poll. It may be used for one call
/// after another. The Snowflake must not be freed before it.
///
/// Returns POLYFLAKE_INVALID_OPTION if a pointer is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_waiting_new(
    snowflake: *const polyflake_snowflake,
    waiting: *mut *mut polyflake_waiting,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (ids, waiting) = unsafe { (given(snowflake, SNOWFLAKE)?, output(waiting, "waiting is NULL")?) };
        let made = polyflake_waiting { ids, waiting: Mutex::default() };
        waiting.write(Box::into_raw(Box::new(made)));
        Ok(())
    })
}

/// Writes up to n IDs to the array at ids, and how many these are to *filled. If *filled is 0, there are none yet: poll
/// again once *pause_ns have passed (if n is 0, the call is done). It does not wait for the clock itself, but for the disk where there is a state file.
///
/// waited_ns is how long the call has waited since it last got IDs, in real time; 0 at first. While it waits, another
/// thread may take IDs for it, so n must not be smaller when it polls again. The IDs of one poll are of one node.
///
/// Returns what polyflake_next_id returns, POLYFLAKE_SEQUENCE_EXHAUSTED once waited_ns has reached max_wait_ms; and
/// POLYFLAKE_INVALID_OPTION while it is being polled, by another thread or from its Snowflake's own clock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_waiting_poll(
    waiting: *const polyflake_waiting,
    waited_ns: u64,
    n: usize,
    ids: *mut u64,
    filled: *mut usize,
    pause_ns: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (waiting, ids, filled, pause_ns) = unsafe {
            (
                given(waiting, "waiting is NULL")?,
                room(n, ids, "ids is NULL")?,
                output(filled, "filled is NULL")?,
                output(pause_ns, "pause_ns is NULL")?,
            )
        };
        // SAFETY: the Snowflake is not freed before, as the header requires.
        let snowflake = unsafe { given(waiting.ids, SNOWFLAKE)? };
        // Not `lock`: the clock may be the caller's, and poll it again.
        let mut state = waiting.waiting.try_lock().map_err(|_| Failure::Misuse("waiting is being polled"))?;
        let waited = (waited_ns > 0).then_some(Duration::from_nanos(waited_ns));
        let mut poll =
            |waited| with!(snowflake, snowflake => snowflake.poll_waiting(&mut state, ids, waited));
        let mut polled = poll(waited)?;
        if let Polled::Disk(bound_move) = polled {
            if let Err(error) = bound_move.run() {
                // The call is over, and leaves its place: what is taken for it from here on would be the next one's.
                *state = Waiting::default();
                return Err(error.into());
            }
            // The same call.
            polled = poll(Some(waited.unwrap_or(Duration::from_nanos(1))))?;
        }
        let (count, pause) = match polled {
            Polled::Filled(count) => (count, Duration::ZERO),
            Polled::Pause(pause) => (0, pause),
            // Another process was faster, and used up what the disk had brought.
            Polled::Disk(_) => (0, Duration::from_nanos(1)),
        };
        filled.write(count);
        pause_ns.write(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX));
        Ok(())
    })
}

/// Blocks the calling thread for ns, as exactly as polyflake_next_id waits: it sleeps, and spins in the last 0.1 ms. For
/// runtimes whose own timers are too coarse for the end of a wait.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_pause(ns: u64) {
    guard(core::ptr::null_mut(), || Ok(ThreadWait::new().pause(Duration::from_nanos(ns))?));
}

/// Frees a call that waits: it leaves its place to those behind it. Does nothing for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_waiting_free(waiting: *mut polyflake_waiting) {
    if !waiting.is_null() {
        // SAFETY: the pointer came from polyflake_waiting_new and is freed only once.
        drop(unsafe { Box::from_raw(waiting) });
    }
}
