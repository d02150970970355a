//! Taking slots without waiting: the hot path, and the slow path behind it.
//!
//! 1. `count_on` takes the next slot of the clock's current tick, below the limit. Nearly all IDs come from
//!    here.
//! 2. `take` takes slots according to the full rule. Above the limit, `permit` decides how many.
//! 3. If the state file has no slots reserved on disk, `reserve_and_take` reserves some.
//!
//! A call that is still stopped after that waits: `wait.rs` handles this in a thread, `polled.rs` without
//! one.

use portable_atomic::{AtomicU64, Ordering};

use crate::clock::{Clock, ClockError};
use crate::cursor::Cursor;
use crate::lease::LeaseUse;
use crate::rule::{Run, Stop, Taken};
use crate::snowflake::Snowflake;
use crate::snowflake::reservation::Reservation;
use crate::snowflake::stopped::{Blocked, Stopped};
use crate::system::{StateFault, StateFile};

impl<C: Clock> Snowflake<C> {
    /// Returns the next ID, or the state from which [`next_id_after`](Self::next_id_after) continues. For
    /// callers that hold a lock, such as an interpreter's, and release it only if they must wait.
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
    // The Go binding has a copy of this path: see `Words`.
    #[doc(hidden)]
    #[inline(always)]
    pub fn poll_next_id(&self) -> Result<u64, Blocked> {
        self.count_on(Cursor::advance)
    }

    /// Like [`poll_next_id`](Self::poll_next_id), but without a locked instruction. Only one caller at a time
    /// may move the cursor: all threads that take IDs hold the same lock (such as an interpreter's) and
    /// release it only in a [`Wait`](crate::Wait). A state file is not allowed, because other processes move
    /// its cursor, and neither is a lease, because its keeper moves the cursor.
    #[doc(hidden)]
    #[inline(always)]
    pub fn poll_next_id_under_lock(&self) -> Result<u64, Blocked> {
        debug_assert!(
            self.state_file.is_none() && self.lease.is_none(),
            "a lock of the callers does not keep others from the cursor"
        );
        self.count_on(Cursor::advance_under_lock)
    }

    /// Takes the next slot of the clock's current tick. If there is none, takes one according to the full
    /// rule.
    #[inline(always)]
    fn count_on(&self, advance: impl Fn(&Cursor, u64, u64) -> bool) -> Result<u64, Blocked> {
        let now_ms = match self.clock.unix_ms() {
            Ok(now_ms) => now_ms,
            Err(error) => return self.take_one(Err(error)),
        };
        let cursor = self.cursor();
        let last = cursor.load();
        if let Some(slot) = self.rule.next_in_tick(last, now_ms) {
            // Loads the limit after reading the clock, because a caller's clock may fork. Below the limit,
            // there is always a next slot.
            if last < self.limit.get() {
                // Must come after the limit is loaded and before the cursor moves: see `Lease`.
                let placed_node = self.placed_node();
                if advance(cursor, last, slot) {
                    return Ok(self.id_of(slot, placed_node));
                }
            }
        }
        self.take_one(Ok(now_ms))
    }

    #[cold]
    #[inline(never)]
    fn take_one(&self, now_ms: Result<i64, ClockError>) -> Result<u64, Blocked> {
        match self.take(1, now_ms) {
            Ok(taken) => Ok(self.first_of(taken)),
            Err(stopped) => Err(stopped.into()),
        }
    }

    /// Takes up to `count` contiguous slots according to the full rule. `now_ms` is this call's reading of
    /// the clock.
    #[inline(never)]
    pub(super) fn take(&self, count: u64, now_ms: Result<i64, ClockError>) -> Result<Taken, Stopped> {
        let cursor = self.cursor();
        // The clock is read first, so that this thread needs the cursor's cache line for as short a time as
        // possible. However, between the two steps, another thread may use a later reading, and the reading
        // may have been cached. Anything that looks like a step back, an error or a wait is therefore checked
        // again, with the clock read after the cursor.
        let read = |now_ms: Result<i64, ClockError>| {
            // After `close`, the error is `closed`.
            now_ms.map_err(|error| self.check_open().err().unwrap_or(Stopped::Clock(error)))
        };
        let mut now_ms = read(now_ms)?;
        let mut again = false;
        loop {
            let last = cursor.load();
            if again {
                now_ms = read(self.clock.unix_ms_uncached())?;
            }
            match self.present_rule().step(last, now_ms, count) {
                Ok(Run { rolled_back: true, .. }) | Err(_) if !again => {
                    again = true;
                    if let Some(file) = self.state_file {
                        file.still_in_place().map_err(Stopped::State)?;
                    }
                }
                Ok(mut run) => {
                    // Must come after the clock is read, because a caller's clock may fork.
                    if run.last > self.limit.get() {
                        run = match self.permit(last, run, now_ms) {
                            Err(Stopped::ByRule { .. }) if !again => {
                                again = true;
                                continue;
                            }
                            other => other?,
                        };
                    }
                    // Must come after the limit is loaded and before the cursor moves: see `Lease`.
                    let placed_node = self.placed_node();
                    if cursor.advance(last, run.last) {
                        if run.rolled_back {
                            self.saw_rollback(last);
                        }
                        self.start_limit();
                        return Ok(Taken { run, placed_node });
                    }
                    give_way();
                }
                Err(stop) => {
                    self.check_open()?;
                    if let Some(lease) = self.lease.as_ref().filter(|lease| lease.has_ended()) {
                        lease.wake();
                        return Err(Stopped::LeaseEnded);
                    }
                    if matches!(stop, Stop::Backwards { .. } | Stop::Exhausted { behind_ms: Some(_), .. }) {
                        self.saw_rollback(last);
                    }
                    return Err(Stopped::ByRule { stop, now_ms });
                }
            }
        }
    }

    /// Returns the part of a run past the limit that may be taken. The first run starts where a fresh tick
    /// would.
    #[cold]
    fn permit(&self, last: u64, run: Run, now_ms: i64) -> Result<Run, Stopped> {
        self.check_open()?;
        if let Some(lease) = &self.lease {
            return self.permit_by_lease(lease, last, run);
        }
        let mut run = run;
        if !self.limit.has_started() {
            // Another process may have issued slots up to this one.
            let floor = self.state_file.map_or(0, StateFile::floor);
            if last < floor {
                let stopped = |stop| Stopped::ByRule { stop, now_ms };
                run = self.rule.first_run(self.rule.step(floor, now_ms, 1).map_err(stopped)?);
            } else if self.cursor().began_at(last) {
                run = self.rule.first_run(run);
            }
        }
        let limit = self.limit_word().load(Ordering::Acquire);
        if run.last <= limit {
            return Ok(run);
        }
        match self.state_file {
            Some(file) if file.may_pass(run.last, limit) => Ok(run),
            Some(_) => Err(Stopped::Unreserved { last, run, now_ms }),
            None => Err(Stopped::Forked),
        }
    }

    /// Like `permit`, but for a lease. By now, the lease may have switched to another node. In that case, the
    /// cursor has moved and rejects a run that does not follow the last ID of the previous node.
    fn permit_by_lease(&self, lease: &LeaseUse, last: u64, run: Run) -> Result<Run, Stopped> {
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

    /// Resumes a `take` that stopped because its run was not yet reserved in the state file: tries once to
    /// reserve it.
    pub(super) fn reserve_and_take(
        &self,
        count: u64,
        stopped: Stopped,
        write: impl FnOnce(Reservation) -> Result<(), StateFault>,
    ) -> Result<Taken, Stopped> {
        let Stopped::Unreserved { last, run, now_ms } = stopped else { return Err(stopped) };
        if let Some(reservation) = self.reservation_of(run, now_ms) {
            write(reservation).map_err(Stopped::State)?;
        }
        self.take_reserved(count, last, run)
    }

    /// Takes a run that follows slot `last` and is now reserved in the state file.
    pub(super) fn take_reserved(&self, count: u64, last: u64, run: Run) -> Result<Taken, Stopped> {
        self.check_open()?;
        // During the disk write, the clock may have been set back and another file may have begun below this
        // run.
        if let Some(file) = self.state_file {
            file.still_in_place().map_err(Stopped::State)?;
        }
        // Takes exactly this run, so that the call succeeds even if the clock has since passed all reserved
        // slots.
        if self.cursor().advance(last, run.last) {
            self.start_limit();
            return Ok(Taken { run, placed_node: self.placed_node() });
        }
        self.take(count, self.clock.unix_ms())
    }
}

impl<C> Snowflake<C> {
    /// Returns the word that holds the limit after the first ID.
    fn limit_word(&self) -> &'static AtomicU64 {
        self.state_file.map_or_else(|| self.made_in.limit(self.layout.slot_bits()), StateFile::limit)
    }

    /// Called after slots are taken. Once the first slots have been taken, the cursor's limit applies, and
    /// the cursor is past the floor.
    #[inline]
    fn start_limit(&self) {
        if !self.limit.has_started() && self.lease.is_none() {
            if let Some(file) = self.state_file {
                file.has_begun();
            }
            self.limit.start(self.limit_word());
        }
    }

    /// Returns an error if this Snowflake may no longer issue IDs: it was closed, or it belongs to the parent
    /// process.
    pub(super) fn check_open(&self) -> Result<(), Stopped> {
        if self.limit.is_closed() {
            return Err(Stopped::Closed);
        }
        if self.state_file.is_none() && !self.made_in.is_alive() {
            return Err(Stopped::Forked);
        }
        Ok(())
    }
}

/// Pauses for less than 2 us after another thread wins a swap. That thread now has the cursor's cache line,
/// and the two threads issue IDs faster in runs than by alternating, which would move the line for each ID.
/// With two threads, an ID takes 12 ns instead of 36.
#[cold]
fn give_way() {
    for _ in 0..32 {
        core::hint::spin_loop();
    }
}
