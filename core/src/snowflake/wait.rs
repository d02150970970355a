//! Waiting for slots, in a thread.
//!
//! A stopped call takes the same steps here and in `polled.rs`, which blocks no thread:
//!
//! 1. If its run only needs a reservation in the state file, it reserves and takes the run
//!    (`reserve_and_take`).
//! 2. `pause_after` returns how long to pause before looking again, or the reason the call fails.
//! 3. It joins the calls waiting for the same cursor. One of them leads, and looks on behalf of all of them.
//! 4. When slots become available, the leader takes them and gives each call its share (`take_for_all`).

use core::time::Duration;

use crate::clock::Clock;
use crate::error::Error;
use crate::lease::LeaseUse;
use crate::rule::{Stop, Taken};
use crate::snowflake::Snowflake;
use crate::snowflake::reservation::Reservation;
use crate::snowflake::stopped::{Blocked, Stopped};
use crate::system::{Process, Turn};
use crate::wait::Wait;

impl<C: Clock> Snowflake<C> {
    /// Returns the next ID, waiting with the caller's `wait` for up to `max_wait_ms` of real time.
    ///
    /// # Errors
    ///
    /// The same as for `next_id`, or the error that interrupted the wait.
    #[inline]
    pub fn next_id_with<W: Wait>(&self, wait: &mut W) -> Result<u64, W::Error> {
        self.poll_next_id().or_else(|blocked| self.next_id_after(blocked, wait))
    }

    /// Continues a blocked call without waiting for slots, as [`try_next_id`](Self::try_next_id) does after
    /// [`poll_next_id`](Self::poll_next_id). It may take as long as syncing a state file to disk.
    #[doc(hidden)]
    #[cold]
    pub fn try_next_id_after(&self, blocked: Blocked) -> Result<u64, Error> {
        match self.reserve_and_take(1, blocked.stopped, Reservation::write) {
            Ok(taken) => Ok(self.first_of(taken)),
            Err(stopped) => {
                if let Stopped::ByRule { stop: Stop::Exhausted { .. }, .. } = stopped {
                    self.count_wait();
                }
                Err(self.error_of(stopped))
            }
        }
    }

    /// Continues a blocked call, waiting up to `max_wait_ms` of real time.
    #[doc(hidden)]
    #[cold]
    pub fn next_id_after<W: Wait>(&self, blocked: Blocked, wait: &mut W) -> Result<u64, W::Error> {
        self.wait_and_take(1, blocked.stopped, wait).map(|taken| self.first_of(taken))
    }

    /// Takes up to `count` slots as soon as some are available, or fails after `max_wait_ms`.
    pub(super) fn wait_and_take<W: Wait>(
        &self,
        count: u64,
        stopped: Stopped,
        wait: &mut W,
    ) -> Result<Taken, W::Error> {
        let since = wait.elapsed();
        let mut stopped = match self.reserve_and_take(count, stopped, |slots| slots.write_in(wait)) {
            Ok(taken) => return Ok(taken),
            Err(stopped) => stopped,
        };
        // Errors are returned before the call joins the others, because joining requires a lock and memory.
        // Returning an error requires neither, and in a child created by a bare `clone`, the heap may be
        // locked forever.
        let mut pause = self.pause_after(stopped, None)?;
        // Includes the time spent on the disk write if another call got there first.
        let mut waited = wait.elapsed().saturating_sub(since);
        if self.wait_left(waited).is_zero() {
            return Err(self.error_of(stopped).into());
        }
        let turn = Process::current().wait_for(self.waits_for(), count);
        loop {
            if turn.leads() {
                wait.pause(pause.min(Turn::longest_pause()))?;
            } else {
                let (place, left) = (turn.place(), self.wait_left(waited));
                wait.block_on(&mut || place.wait(left));
                // Checks whether the call was interrupted.
                wait.pause(Duration::ZERO)?;
            }
            // Must come before the clock is read again: a thread that is preempted after this point has yet
            // to see the slots that become available before it resumes.
            waited = wait.elapsed().saturating_sub(since);
            if let Some(taken) = turn.given() {
                return Ok(taken);
            }
            let taken = match self.check_open() {
                Ok(()) if turn.leads() => take_for_all(&turn, count, |count| {
                    let taken = self.take(count, self.clock.unix_ms());
                    taken.or_else(|stopped| {
                        self.reserve_and_take(count, stopped, |slots| slots.write_in(wait))
                    })
                }),
                Ok(()) => Err(stopped),
                Err(ended) => Err(ended),
            };
            stopped = match taken {
                Ok(taken) => return Ok(taken),
                Err(stopped) => stopped,
            };
            if matches!(stopped, Stopped::Unreserved { .. }) {
                waited = wait.elapsed().saturating_sub(since);
            }
            pause = match self.pause_after(stopped, Some(waited)) {
                Ok(pause) => pause,
                // A leader may have taken slots for this call since it last looked.
                Err(error) => return turn.given().ok_or(error.into()),
            };
        }
    }

    /// Returns the key of the calls that wait together: the cursor, and the clock (the system's or another).
    pub(super) fn waits_for(&self) -> (usize, usize) {
        let clock = if self.clock.is_of_the_system() { 0 } else { core::ptr::from_ref(self).addr() };
        (core::ptr::from_ref(self.cursor()).addr(), clock)
    }

    /// Returns how long a blocked call should pause before it looks again. `waited` is the real time since it
    /// last took a slot, or `None` if it has not paused since then.
    pub(super) fn pause_after(&self, stopped: Stopped, waited: Option<Duration>) -> Result<Duration, Error> {
        let pause = match stopped {
            // During the disk write, other calls used up all the slots it reserved.
            Stopped::Unreserved { .. } => Duration::ZERO,
            Stopped::ByRule { stop: Stop::Exhausted { retry_at_ms, .. }, now_ms } => {
                let retry_at_ms = i64::try_from(retry_at_ms).unwrap_or(i64::MAX);
                self.clock.until(now_ms, retry_at_ms)
            }
            // The keeper extends the lease's bound, or gets another node, either within a millisecond or only
            // after a long time. Leases need `std`.
            Stopped::LeaseEnded if cfg!(feature = "std") && !self.has_lease_panicked() => {
                let waited = waited.unwrap_or_default();
                (waited / 8).clamp(Duration::from_millis(1), Turn::longest_pause())
            }
            _ => return Err(self.error_of(stopped)),
        };
        if waited.is_none() {
            self.count_wait();
        }
        let left = self.wait_left(waited.unwrap_or_default());
        if left.is_zero() {
            return Err(self.error_of(stopped));
        }
        Ok(pause.min(left))
    }

    /// Returns true if waiting for the lease is pointless.
    fn has_lease_panicked(&self) -> bool {
        self.lease.as_ref().is_some_and(LeaseUse::has_panicked)
    }

    /// Returns how much longer a call may wait if it has already waited for `waited`.
    fn wait_left(&self, waited: Duration) -> Duration {
        Duration::from_millis(self.max_wait_ms.into()).saturating_sub(waited)
    }
}

/// Takes slots for a call and for the calls waiting with it.
pub(super) fn take_for_all(
    turn: &Turn,
    count: u64,
    take: impl FnOnce(u64) -> Result<Taken, Stopped>,
) -> Result<Taken, Stopped> {
    let others = turn.others();
    let taken = take(count.saturating_add(others.wanted()))?;
    Ok(others.share(taken))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use crate::system::{LONGEST_WAIT, ThreadWait};

    #[test]
    fn a_call_that_does_not_lead_waits_no_longer_than_it_may() {
        let options =
            Snowflake::builder().layout("timestamp:41|node:4|sequence:1@0/1s").node(1).max_wait_ms(5);
        let ids = options.build_with_clock(|| Ok(1_700_000_000_000)).unwrap();
        let _leader = Process::current().wait_for(ids.waits_for(), 1);
        let follower = || {
            let error = loop {
                // A tick has two slots, and the clock stands still.
                if let Err(error) = ids.next_id_with(&mut ThreadWait::new()) {
                    break error;
                }
            };
            let says =
                "can come once the caller's clock has moved on by 1000 ms from 1700000000000 (Unix ms)";
            assert!(std::format!("{error}").ends_with(says), "{error}");
            assert_eq!(error.retry_after_ms(), Some(1000));
            (error.code(), LONGEST_WAIT.get())
        };
        let (code, longest) = std::thread::scope(|scope| scope.spawn(follower).join().unwrap());
        assert_eq!(code, ErrorCode::SequenceExhausted);
        // Zero on a machine so slow that the time runs out before the call waits.
        assert!(longest <= Duration::from_millis(5), "{longest:?}");
    }
}
