//! Waiting for slots without blocking a thread, for an event loop or a runtime that schedules its own waits.
//! The steps are those of `wait.rs`, one per poll.

use core::time::Duration;

use crate::clock::Clock;
use crate::error::Error;
use crate::rule::{Run, Taken};
use crate::snowflake::Snowflake;
use crate::snowflake::reservation::Reservation;
use crate::snowflake::stopped::{Blocked, Part, Stopped};
use crate::snowflake::wait::take_for_all;
use crate::system::{Process, Turn};

/// A call that waits without blocking a thread, for [`Snowflake::poll_waiting`]. Until the call has its IDs
/// or this is dropped, it holds a place among the process's calls waiting for the same cursor.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Waiting {
    turn: Option<Turn>,
    /// The run that is not reserved in the state file yet, and the slot before it.
    unreserved: Option<(u64, Run)>,
}

/// The progress of a call that waits without blocking a thread.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub enum Polled {
    /// The number of IDs written: at least one.
    Filled(usize),
    /// Poll again after this time.
    Pause(Duration),
    /// Run this on any thread, then poll again.
    Disk(Reservation),
}

impl<C: Clock> Snowflake<C> {
    /// Writes IDs to the front of `ids`, or returns what the call must wait for. All IDs from one poll have
    /// the same node.
    ///
    /// `waited` is the real time since the call last took IDs, or `None` if it has not waited since then.
    /// While the call waits, a leading thread may take IDs for it, so `ids` must not be shorter at the next
    /// poll; otherwise, some of these IDs are lost. If the disk write fails, so does the call, and the next
    /// one starts with a new `Waiting`.
    ///
    /// # Errors
    ///
    /// The same as for `next_id`.
    ///
    /// ```
    /// use polyflake::{Polled, Snowflake, Waiting};
    /// let ids = Snowflake::builder().node(7).build()?;
    /// let (mut waiting, mut id, mut since) = (Waiting::default(), [0], None);
    /// loop {
    ///     let waited = since.map(|since: std::time::Instant| since.elapsed());
    ///     match ids.poll_waiting(&mut waiting, &mut id, waited)? {
    ///         Polled::Filled(_) => break,
    ///         Polled::Pause(pause) => std::thread::sleep(pause), // or the event loop's own timer
    ///         Polled::Disk(reservation) => reservation.run()?,
    ///     }
    ///     since.get_or_insert_with(std::time::Instant::now);
    /// }
    /// # Ok::<(), polyflake::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn poll_waiting(
        &self,
        waiting: &mut Waiting,
        ids: &mut [u64],
        waited: Option<Duration>,
    ) -> Result<Polled, Error> {
        if waited.is_none() {
            // This is a new call, which must not receive anything taken for the last one.
            *waiting = Waiting::default();
        }
        let polled = self.poll_once(waiting, ids, waited);
        if !matches!(polled, Ok(Polled::Pause(_) | Polled::Disk(_))) {
            *waiting = Waiting::default();
        }
        polled
    }

    /// Returns the next ID if one is available now. Otherwise it returns 0, which is never an ID, and the
    /// caller continues with [`poll_waiting`](Self::poll_waiting), which does not count this wait again if
    /// its `waited` is never `None`. This function never waits, not even for the disk.
    ///
    /// # Errors
    ///
    /// The same as for `next_id`.
    #[doc(hidden)]
    #[inline]
    pub fn next_id_now(&self) -> Result<u64, Error> {
        self.poll_next_id().or_else(|blocked| self.must_wait(blocked).map(|_| 0))
    }

    /// Writes the IDs that are available now to the front of `ids`, and returns their number. All of them
    /// have the same node. If `ids` is not full, the caller must wait for the rest, as after
    /// [`next_id_now`](Self::next_id_now).
    ///
    /// # Errors
    ///
    /// The same as for `next_id`. The IDs already written are then lost.
    #[doc(hidden)]
    pub fn fill_now(&self, ids: &mut [u64]) -> Result<usize, Error> {
        match self.poll_fill(ids) {
            Ok(()) => Ok(ids.len()),
            Err(blocked) => self.must_wait(blocked),
        }
    }

    /// Returns how many IDs a call already has if it must wait for more, or its error if it cannot wait.
    #[cold]
    fn must_wait(&self, blocked: Blocked) -> Result<usize, Error> {
        if !matches!(blocked.stopped, Stopped::Unreserved { .. }) {
            self.pause_after(blocked.stopped, None)?;
        }
        Ok(blocked.filled())
    }

    fn poll_once(
        &self,
        waiting: &mut Waiting,
        ids: &mut [u64],
        waited: Option<Duration>,
    ) -> Result<Polled, Error> {
        let count = ids.len() as u64;
        if count == 0 {
            let open = self.check_open().map_err(|stopped| self.error_of(stopped));
            return open.map(|()| Polled::Filled(0));
        }
        let mut filled = |Taken { mut run, placed_node }| {
            // A leader may have taken more slots than this, because the call wanted more at an earlier poll.
            run.last = run.last.min(run.first.saturating_add(count - 1));
            let mut part = Part::default();
            self.write(Taken { run, placed_node }, ids, &mut part);
            Ok(Polled::Filled(part.filled))
        };
        if let Some(taken) = given(waiting) {
            return filled(taken);
        }
        if let Some(turn) = &waiting.turn {
            turn.wants(count);
        }
        let unreserved = waiting.unreserved.take();
        let stopped = match self.take_polled(waiting.turn.as_ref(), count, unreserved) {
            Ok(taken) => return filled(taken),
            Err(stopped) => stopped,
        };
        if let Stopped::Unreserved { last, run, now_ms } = stopped {
            let may_wait = unreserved.is_none() || self.pause_after(stopped, waited).is_ok();
            if let (true, Some(reservation)) = (may_wait, self.reservation_of(run, now_ms)) {
                waiting.unreserved = Some((last, run));
                return Ok(Polled::Disk(reservation));
            }
        }
        match self.pause_after(stopped, waited) {
            Ok(pause) => {
                waiting.turn.get_or_insert_with(|| Process::current().poll_for(self.waits_for(), count));
                Ok(Polled::Pause(pause))
            }
            // A leader may have taken slots for this call since it last looked.
            Err(error) => given(waiting).map_or(Err(error), filled),
        }
    }

    /// Takes slots for this call and, if it has joined the queue, for the calls waiting with it.
    fn take_polled(
        &self,
        turn: Option<&Turn>,
        count: u64,
        unreserved: Option<(u64, Run)>,
    ) -> Result<Taken, Stopped> {
        let take = |count| match unreserved {
            Some((last, run)) if self.is_reserved(run) => self.take_reserved(count, last, run),
            _ => self.take(count, self.clock.unix_ms()),
        };
        // If no slot is free, leave the others in the queue, because there may be thousands of them.
        let has_slot = match unreserved {
            Some(_) => true,
            None => match self.clock.unix_ms() {
                Ok(now_ms) => self.present_rule().step(self.cursor().load(), now_ms, 1).is_ok(),
                Err(error) => return self.take(count, Err(error)),
            },
        };
        match turn.filter(|_| has_slot) {
            Some(turn) => take_for_all(turn, count, take),
            None => take(count),
        }
    }
}

fn given(waiting: &Waiting) -> Option<Taken> {
    waiting.turn.as_ref().and_then(Turn::given)
}
