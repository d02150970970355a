//! Taking slots: the path of an ID, and what keeps a call from taking one.

use portable_atomic::{AtomicU64, Ordering};

use crate::clock::{Clock, ClockError};
use crate::cursor::Cursor;
use crate::error::{Error, error};
use crate::lease::LeaseUse;
use crate::limit;
use crate::rule::{Run, Stop, Taken, ms_until};
use crate::snowflake::Snowflake;
use crate::snowflake::bound::BoundMove;
use crate::system::{StateFault, StateFile};

impl<C: Clock> Snowflake<C> {
    /// The next ID, or what [`next_id_after`](Self::next_id_after) needs to continue. For callers that hold something (an
    /// interpreter) which they release only when they must wait.
    ///
    /// ```
    /// use polyflake::{Snowflake, ThreadWait};
    /// let ids = Snowflake::builder().node(7).build()?;
    /// let id = match ids.poll_next_id() {
    ///     Ok(id) => id,
    ///     Err(blocked) => ids.next_id_after(blocked, &mut ThreadWait::new())?,
    /// };
    /// # Ok::<(), polyflake::Error>(())
    /// ```
    // Go has a copy of this path: see `Words`.
    #[doc(hidden)]
    #[inline(always)]
    pub fn poll_next_id(&self) -> Result<u64, Blocked> {
        self.poll_next_id_by(Cursor::advance)
    }

    /// As [`poll_next_id`](Self::poll_next_id), without a locked instruction. For callers of which only one at a time can
    /// move the cursor: every thread that calls for IDs holds one lock (an interpreter's), which it releases only in a
    /// [`Wait`](crate::Wait), and there is no state file, through which other processes move the cursor too, and no lease,
    /// whose keeper moves it.
    #[doc(hidden)]
    #[inline(always)]
    pub fn poll_next_id_under_lock(&self) -> Result<u64, Blocked> {
        debug_assert!(
            self.state_file.is_none() && self.lease.is_none(),
            "a lock of the callers does not keep others from the cursor"
        );
        self.poll_next_id_by(Cursor::advance_under_lock)
    }

    #[inline(always)]
    fn poll_next_id_by(&self, advance: impl Fn(&Cursor, u64, u64) -> bool) -> Result<u64, Blocked> {
        let now_ms = match self.clock.unix_ms() {
            Ok(now_ms) => now_ms,
            Err(error) => return self.poll_whole_rule(Err(error)),
        };
        let cursor = self.cursor();
        let last = cursor.load();
        if let Some(slot) = self.rule.next_in_tick(last, now_ms) {
            // The limit after the clock, which may be the caller's and fork. Below it there is a next slot.
            if last < self.limit.get() {
                // After the limit, and before the cursor moves: see `Lease`.
                let placed_node = self.placed_node();
                if advance(cursor, last, slot) {
                    return Ok(self.id_of(slot, placed_node));
                }
            }
        }
        self.poll_whole_rule(Ok(now_ms))
    }

    #[cold]
    #[inline(never)]
    fn poll_whole_rule(&self, now_ms: Result<i64, ClockError>) -> Result<u64, Blocked> {
        match self.take(1, now_ms) {
            Ok(taken) => Ok(self.first_of(taken)),
            Err(stopped) => Err(stopped.into()),
        }
    }

    /// Takes up to `wanted` slots, all in one piece, by the whole rule. `now_ms` is this call's reading of the clock.
    #[inline(never)]
    pub(super) fn take(&self, wanted: u64, now_ms: Result<i64, ClockError>) -> Result<Taken, Stopped> {
        let cursor = self.cursor();
        // The clock first, so that this thread needs the cursor's cache line for as short as possible. But another thread
        // may come between the two with a later reading, and a reading may have been cached. So what looks like a step
        // back, an error or a wait is looked at once more, with the clock read again, after the cursor.
        let read = |now_ms: Result<i64, ClockError>| {
            // After `close`, that is the error.
            now_ms.map_err(|error| self.over().unwrap_or(Stopped::Clock(error)))
        };
        let mut now_ms = read(now_ms)?;
        let mut again = false;
        loop {
            let last = cursor.load();
            if again {
                now_ms = read(self.clock.unix_ms_uncached())?;
            }
            match self.present_rule().step(last, now_ms, wanted) {
                Ok(Run { rolled_back: true, .. }) | Err(_) if !again => {
                    again = true;
                    if let Some(file) = self.state_file {
                        file.still_in_place().map_err(Stopped::State)?;
                    }
                }
                Ok(mut run) => {
                    // After the clock, which may be the caller's and fork.
                    if run.last > self.limit.get() {
                        run = match self.past_limit(last, run, now_ms) {
                            Err(Stopped::At { .. }) if !again => {
                                again = true;
                                continue;
                            }
                            other => other?,
                        };
                    }
                    // After the limit, and before the cursor moves: see `Lease`.
                    let placed_node = self.placed_node();
                    if cursor.advance(last, run.last) {
                        if run.rolled_back {
                            self.saw_rollback(last);
                        }
                        self.has_taken();
                        return Ok(Taken { run, placed_node });
                    }
                    give_way();
                }
                Err(stop) => {
                    if let Some(over) = self.over() {
                        return Err(over);
                    }
                    if let Some(lease) = self.lease.as_ref().filter(|lease| lease.has_ended()) {
                        lease.wake();
                        return Err(Stopped::LeaseEnded);
                    }
                    if matches!(stop, Stop::Backwards { .. } | Stop::Blocked { behind_ms: Some(_), .. }) {
                        self.saw_rollback(last);
                    }
                    return Err(Stopped::At { stop, now_ms });
                }
            }
        }
    }

    /// What may be taken of a free run past the limit. The first run starts as in a fresh tick.
    #[cold]
    fn past_limit(&self, last: u64, run: Run, now_ms: i64) -> Result<Run, Stopped> {
        if let Some(over) = self.over() {
            return Err(over);
        }
        if let Some(lease) = &self.lease {
            return self.past_bound_of(lease, last, run);
        }
        let mut run = run;
        if !self.limit.has_started() {
            if last < self.floor() {
                let stopped = |stop| Stopped::At { stop, now_ms };
                run = self.rule.first_run(self.rule.step(self.floor(), now_ms, 1).map_err(stopped)?);
            } else if self.cursor().began_at(last) {
                run = self.rule.first_run(run);
            }
        }
        let limit = self.live_limit().load(Ordering::Acquire);
        if run.last <= limit {
            return Ok(run);
        }
        match self.state_file {
            Some(file) if file.may_pass(run.last, limit) => Ok(run),
            Some(_) => Err(Stopped::AtBound { last, run, now_ms }),
            None => Err(Stopped::Forked),
        }
    }

    /// The same with a lease, which may have another node by now: then a run that does not follow on what that one's
    /// predecessor issued fails at the cursor.
    fn past_bound_of(&self, lease: &LeaseUse, last: u64, run: Run) -> Result<Run, Stopped> {
        lease.look(|node, limit| {
            self.node.store(node, Ordering::Relaxed);
            self.placed_node.store(self.layout.place_node(node), Ordering::Relaxed);
            self.limit.follow(limit);
        });
        let mut run = run;
        if self.cursor().began_at(last) {
            run = self.present_rule().first_run(run);
        }
        let limit = self.limit.get();
        if run.first > limit {
            lease.wake();
            return Err(if self.limit.is_closed() { Stopped::Closed } else { Stopped::LeaseEnded });
        }
        Ok(Run { last: run.last.min(limit), ..run })
    }

    /// Continues after a `take` that stopped at the state file's bound, by moving the bound on disk, once.
    pub(super) fn past_bound(
        &self,
        wanted: u64,
        stopped: Stopped,
        on_disk: impl FnOnce(BoundMove) -> Result<(), StateFault>,
    ) -> Result<Taken, Stopped> {
        let Stopped::AtBound { last, run, now_ms } = stopped else { return Err(stopped) };
        if let Some(bound_move) = self.bound_move_of(run, now_ms) {
            on_disk(bound_move).map_err(Stopped::State)?;
        }
        self.take_stopped(wanted, last, run)
    }

    /// Takes a run that had stopped at the state file's bound, which has moved on since.
    pub(super) fn take_stopped(&self, wanted: u64, last: u64, run: Run) -> Result<Taken, Stopped> {
        if let Some(over) = self.over() {
            return Err(over);
        }
        // While the disk was at it, the clock may have been set back, and another file have begun below this run.
        if let Some(file) = self.state_file {
            file.still_in_place().map_err(Stopped::State)?;
        }
        // This very run, so that it succeeds even if the clock has passed the new bound meanwhile.
        if self.cursor().advance(last, run.last) {
            self.has_taken();
            return Ok(Taken { run, placed_node: self.placed_node() });
        }
        self.take(wanted, self.clock.unix_ms())
    }
}

impl<C> Snowflake<C> {
    /// The word that holds the limit once the first ID was issued.
    fn live_limit(&self) -> &'static AtomicU64 {
        self.state_file.map_or_else(|| self.process_limit(), StateFile::limit)
    }

    fn process_limit(&self) -> &'static AtomicU64 {
        self.made_in.limit(self.layout.slot_bits())
    }

    /// Up to which slot another process may have issued.
    fn floor(&self) -> u64 {
        self.state_file.map_or(0, StateFile::floor)
    }

    /// After slots were taken: from the first ones on the limit is the cursor's, and the cursor is past the floor.
    #[inline]
    fn has_taken(&self) {
        if !self.limit.has_started() && self.lease.is_none() {
            if let Some(file) = self.state_file {
                file.has_begun();
            }
            self.limit.start(self.live_limit());
        }
    }

    /// What keeps this Snowflake from issuing, whatever the time is.
    pub(super) fn over(&self) -> Option<Stopped> {
        if self.limit.is_closed() {
            return Some(Stopped::Closed);
        }
        let is_forked = self.state_file.is_none() && !self.made_in.is_alive();
        is_forked.then_some(Stopped::Forked)
    }
}

/// After a swap that another thread won, for less than 2 us: it has the cursor's cache line now, and both issue more IDs
/// in runs than in turns, where the line moves for each ID. With two threads an ID takes 12 ns and not 36.
#[cold]
fn give_way() {
    for _ in 0..32 {
        core::hint::spin_loop();
    }
}

/// A call that found no free slot.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Blocked {
    pub(super) stopped: Stopped,
    pub(super) part: Part,
}

impl From<Stopped> for Blocked {
    fn from(stopped: Stopped) -> Self {
        Self { stopped, part: Part::default() }
    }
}

impl Blocked {
    /// How many IDs of a batch were written before.
    pub const fn filled(&self) -> usize {
        self.part.filled
    }
}

/// How much of a batch is written, and the node's bits of it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Part {
    pub(super) filled: usize,
    pub(super) placed_node: u64,
}

impl Part {
    /// What is left to fill.
    pub(super) fn rest<'a>(&self, ids: &'a mut [u64]) -> Option<&'a mut [u64]> {
        ids.get_mut(self.filled..).filter(|rest| !rest.is_empty())
    }
}

/// A step that took nothing.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stopped {
    At {
        stop: Stop,
        now_ms: i64,
    },
    Clock(ClockError),
    Forked,
    Closed,
    State(StateFault),
    /// The state file's bound must move on before this run, which follows on `last`, is taken.
    AtBound {
        last: u64,
        run: Run,
        now_ms: i64,
    },
    /// The lease must be renewed, or bring another node.
    LeaseEnded,
}

impl<C> Snowflake<C> {
    /// The error of a call that does not wait.
    #[cold]
    pub(super) fn give_up(&self, stopped: Stopped) -> Error {
        if let Stopped::At { stop: Stop::Blocked { .. }, .. } = stopped {
            self.count_wait();
        }
        self.error_of(stopped)
    }

    pub(super) fn error_of(&self, stopped: Stopped) -> Error {
        match stopped {
            Stopped::At { stop, now_ms } => self.error_of_stop(stop, now_ms),
            Stopped::Clock(error) => error.into(),
            Stopped::Forked => limit::forked(),
            Stopped::Closed => {
                error!(Closed, "this Snowflake is closed and issues no more IDs; build another")
            }
            // Only a Snowflake with a state file stops so.
            Stopped::State(fault) => {
                self.state_file.map_or_else(|| exhausted(0), |file| file.error_of(fault))
            }
            Stopped::AtBound { .. } => exhausted(0),
            // And only one with a lease so.
            Stopped::LeaseEnded => self.lease.as_ref().map_or_else(|| exhausted(0), LeaseUse::lost),
        }
    }

    fn error_of_stop(&self, stop: Stop, now_ms: i64) -> Error {
        match stop {
            Stop::OutOfRange => self.layout.out_of_range(now_ms.into()),
            Stop::Ended => error!(
                TimeOutOfRange,
                "the layout's last ID is used up; its time ends at % (Unix ms)",
                Number(self.layout.ends_at_ms())
            ),
            Stop::Backwards { behind_ms, retry_at_ms }
            | Stop::Blocked { behind_ms: Some(behind_ms), retry_at_ms } => {
                // Its `behind_ms` and `retry_after_ms` are the first value and the last.
                error!(
                    ClockMovedBackwards,
                    "the clock is % ms behind the last ID (max_backward_ms is %); the next ID can come in % ms",
                    Number(behind_ms),
                    Number(self.max_backward_ms.into()),
                    Number(ms_until(now_ms, retry_at_ms))
                )
            }
            // In a test, that clock often stands still.
            Stop::Blocked { behind_ms: None, retry_at_ms } if self.shared.is_none() => error!(
                SequenceExhausted,
                "the sequence of this tick is used up; the next ID can come once the caller's clock has moved on by % ms from % \
                 (Unix ms)",
                Number(ms_until(now_ms, retry_at_ms)),
                Number(u64::try_from(now_ms).unwrap_or(0))
            ),
            Stop::Blocked { behind_ms: None, retry_at_ms } => exhausted(ms_until(now_ms, retry_at_ms)),
        }
    }
}

fn exhausted(retry_after_ms: u64) -> Error {
    error!(
        SequenceExhausted,
        "the sequence of this tick is used up; the next ID can come in % ms",
        Number(retry_after_ms)
    )
}
