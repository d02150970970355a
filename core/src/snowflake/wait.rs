//! Calls that find no slot: waiting for the clock, in a thread or in an event loop.

use core::time::Duration;

use crate::clock::Clock;
use crate::error::Error;
use crate::rule::{Stop, Taken};
use crate::snowflake::Snowflake;
use crate::snowflake::bound::BoundMove;
use crate::snowflake::take::{Blocked, Stopped};
use crate::system::{Process, Turn};
use crate::wait::Wait;

impl<C: Clock> Snowflake<C> {
    /// The next ID, waiting in the caller's way, for at most `max_wait_ms` of real time.
    ///
    /// # Errors
    ///
    /// Those of `next_id`, or what interrupted the wait.
    #[inline]
    pub fn next_id_with<W: Wait>(&self, wait: &mut W) -> Result<u64, W::Error> {
        self.poll_next_id().or_else(|blocked| self.next_id_after(blocked, wait))
    }

    /// Continues a call that was blocked, without waiting: what [`try_next_id`](Self::try_next_id) does after
    /// [`poll_next_id`](Self::poll_next_id). It may take as long as a disk does to sync a state file.
    #[doc(hidden)]
    #[cold]
    pub fn try_next_id_after(&self, blocked: Blocked) -> Result<u64, Error> {
        match self.past_bound(1, blocked.stopped, BoundMove::on_disk) {
            Ok(taken) => Ok(self.first_of(taken)),
            Err(stopped) => Err(self.give_up(stopped)),
        }
    }

    /// Continues a call that was blocked, waiting at most `max_wait_ms` of real time.
    #[doc(hidden)]
    #[cold]
    pub fn next_id_after<W: Wait>(&self, blocked: Blocked, wait: &mut W) -> Result<u64, W::Error> {
        self.take_later(1, blocked.stopped, wait).map(|taken| self.first_of(taken))
    }

    /// Takes up to `wanted` slots once there are some, or gives up when the time is up.
    pub(super) fn take_later<W: Wait>(
        &self,
        wanted: u64,
        stopped: Stopped,
        wait: &mut W,
    ) -> Result<Taken, W::Error> {
        let mut stopped = match self.past_bound(wanted, stopped, |bound_move| bound_move.run_in(wait)) {
            Ok(taken) => return Ok(taken),
            Err(stopped) => stopped,
        };
        // Before it joins the others, which takes a lock and memory: an error needs neither, and in a child made by a bare
        // `clone` the heap may be locked for ever.
        let mut pause = self.pause_after_stop(stopped, None)?;
        let turn = Process::current().wait_for(self.waits_for(), wanted);
        let since = wait.elapsed();
        loop {
            if turn.leads() {
                wait.pause(pause.min(Turn::longest_pause()))?;
            } else {
                let place = turn.place();
                wait.block_on(&mut || place.wait());
                // What may interrupt it.
                wait.pause(Duration::ZERO)?;
            }
            // Before the clock is read once more: a thread that loses the processor after that has not yet seen what the
            // time brought.
            let so_far = wait.elapsed().saturating_sub(since);
            if let Some(taken) = turn.given() {
                return Ok(taken);
            }
            let taken = match self.over() {
                Some(over) => Err(over),
                None if turn.leads() => self.take_for_all(wanted, &turn, wait),
                None => Err(stopped),
            };
            match taken {
                Ok(taken) => return Ok(taken),
                Err(again) => stopped = again,
            }
            pause = match self.pause_after_stop(stopped, Some(so_far)) {
                Ok(pause) => pause,
                // It may have been given some since it last looked.
                Err(error) => return turn.given().ok_or(error.into()),
            };
        }
    }

    /// Takes slots for a call that leads, and for those that wait for it.
    fn take_for_all(&self, wanted: u64, turn: &Turn, wait: &mut impl Wait) -> Result<Taken, Stopped> {
        let others = turn.others();
        let wanted = wanted.saturating_add(others.wanted());
        let taken = self.take(wanted, self.clock.unix_ms());
        let taken =
            taken.or_else(|stopped| self.past_bound(wanted, stopped, |bound_move| bound_move.run_in(wait)));
        taken.map(|taken| others.share(taken))
    }

    /// What a call waits for: the cursor, by the system's clock or by another.
    fn waits_for(&self) -> (usize, usize) {
        let clock = if self.clock.is_of_the_system() { 0 } else { core::ptr::from_ref(self).addr() };
        (core::ptr::from_ref(self.cursor()).addr(), clock)
    }

    /// How long a blocked call should pause before it polls again. For callers that wait without blocking (an event
    /// loop). `waited` is the real time since the call last took a slot, or `None` if it has not paused since.
    ///
    /// # Errors
    ///
    /// Those of `next_id`, if waiting does not help or `max_wait_ms` is over.
    ///
    /// ```
    /// use polyflake::Snowflake;
    /// let ids = Snowflake::builder().node(7).build()?;
    /// let mut waiting = None;
    /// let id = loop {
    ///     match ids.poll_next_id() {
    ///         Ok(id) => break id,
    ///         Err(blocked) => {
    ///             let since = waiting.map(|since: std::time::Instant| since.elapsed());
    ///             let pause = ids.pause_after(&blocked, since)?;
    ///             waiting.get_or_insert_with(std::time::Instant::now);
    ///             std::thread::sleep(pause); // or the event loop's own timer
    ///         }
    ///     }
    /// };
    /// # Ok::<(), polyflake::Error>(())
    /// ```
    #[doc(hidden)]
    pub fn pause_after(&self, blocked: &Blocked, waited: Option<Duration>) -> Result<Duration, Error> {
        self.pause_after_stop(blocked.stopped, waited)
    }

    fn pause_after_stop(&self, stopped: Stopped, waited: Option<Duration>) -> Result<Duration, Error> {
        let pause = match stopped {
            Stopped::AtBound { run, now_ms, .. } => {
                self.bound_move_of(run, now_ms).map_or(Ok(()), BoundMove::run)?;
                return Ok(Duration::ZERO);
            }
            Stopped::At { stop: Stop::Blocked { retry_at_ms, .. }, now_ms } => {
                let retry_at_ms = i64::try_from(retry_at_ms).unwrap_or(i64::MAX);
                self.clock.until(now_ms, retry_at_ms)
            }
            // It answers within a ms, or it takes long. Without `std` there are no leases.
            Stopped::LeaseEnded if cfg!(feature = "std") => {
                let waited = waited.unwrap_or_default();
                (waited / 8).clamp(Duration::from_millis(1), Turn::longest_pause())
            }
            _ => return Err(self.error_of(stopped)),
        };
        if waited.is_none() {
            self.count_wait();
        }
        let longest = Duration::from_millis(self.max_wait_ms.into());
        let left = longest.saturating_sub(waited.unwrap_or_default());
        if left.is_zero() {
            return Err(self.error_of(stopped));
        }
        Ok(pause.min(left))
    }

    /// The disk write that a call which stopped at a state file's bound waits for, to be done on another thread; then the
    /// call polls again. [`pause_after`](Self::pause_after) would do it on this one.
    #[doc(hidden)]
    pub fn bound_move(&self, blocked: &Blocked) -> Option<BoundMove> {
        let Stopped::AtBound { run, now_ms, .. } = blocked.stopped else { return None };
        self.bound_move_of(run, now_ms)
    }
}
