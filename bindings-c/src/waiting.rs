//! Calls that leave the waiting to the caller, instead of each blocking a thread.

use core::time::Duration;
use std::sync::Mutex;

use polyflake::{Polled, ThreadWait, Wait, Waiting};

use crate::snowflake::{SNOWFLAKE, polyflake_snowflake, room, with};
use crate::status::{Failure, given, guard, output, polyflake_detail, polyflake_status};

/// A call that leaves the waiting to the caller: to an event loop, or to a runtime whose threads are cheaper than the
/// system's. While the call waits, it has a place in the queue of all calls in the process that wait for the same IDs.
/// It may move between threads, but only one thread may poll it at a time.
#[derive(Debug)]
pub struct polyflake_waiting {
    ids: *const polyflake_snowflake,
    waiting: Mutex<Waiting>,
}

/// Creates a call that leaves the waiting to the caller. Poll it with polyflake_waiting_poll. It can be reused for one
/// call after another. Free it before the Snowflake.
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

/// Writes up to n IDs to the array at ids, and their count to *filled. If *filled is 0, no ID is available yet: poll
/// again after *pause_ns (if n is 0, the call is done). The poll does not wait for the clock, but if there is a state
/// file, it may wait for the disk.
///
/// waited_ns is the real time that the call has waited since it last received IDs, or 0 at first. While the call waits,
/// another thread may take IDs for it, so n must not be smaller in the next poll. All IDs from one poll have the same
/// node.
///
/// Returns the same statuses as polyflake_next_id, with POLYFLAKE_SEQUENCE_EXHAUSTED once waited_ns has reached
/// max_wait_ms; or POLYFLAKE_INVALID_OPTION if the call is already being polled, by another thread or from the
/// Snowflake's own clock.
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
        // SAFETY: the Snowflake has not been freed yet, as the header requires.
        let snowflake = unsafe { given(waiting.ids, SNOWFLAKE)? };
        // Not `lock`, because a custom clock may poll the same call again.
        let mut state = waiting.waiting.try_lock().map_err(|_| Failure::Misuse("waiting is being polled"))?;
        let waited = (waited_ns > 0).then_some(Duration::from_nanos(waited_ns));
        let mut poll =
            |waited| with!(snowflake, snowflake => snowflake.poll_waiting(&mut state, ids, waited));
        let mut polled = poll(waited)?;
        if let Polled::Disk(reservation) = polled {
            if let Err(error) = reservation.run() {
                // The call is over and gives up its place: IDs taken for it from now on would go to the next call.
                *state = Waiting::default();
                return Err(error.into());
            }
            // Not 0, because this is still the same call.
            polled = poll(Some(waited.unwrap_or(Duration::from_nanos(1))))?;
        }
        let (count, pause) = match polled {
            Polled::Filled(count) => (count, Duration::ZERO),
            Polled::Pause(pause) => (0, pause),
            // Another process was faster and used up everything below the new bound.
            Polled::Disk(_) => (0, Duration::from_nanos(1)),
        };
        filled.write(count);
        pause_ns.write(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX));
        Ok(())
    })
}

/// Blocks the calling thread for ns nanoseconds, as precisely as polyflake_next_id waits: it sleeps, then spins for the
/// last 0.1 ms. Use it in runtimes whose own timers are too coarse for the end of a wait.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_pause(ns: u64) {
    guard(core::ptr::null_mut(), || Ok(ThreadWait::new().pause(Duration::from_nanos(ns))?));
}

/// Frees a waiting call, which gives up its place in the queue. Does nothing for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_waiting_free(waiting: *mut polyflake_waiting) {
    if !waiting.is_null() {
        // SAFETY: the pointer came from polyflake_waiting_new and is freed only once.
        drop(unsafe { Box::from_raw(waiting) });
    }
}
