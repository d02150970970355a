//! The Snowflake: the cursor's rule with a clock, a layout and waiting around it.

use core::fmt;
use core::time::Duration;

#[cfg(feature = "std")]
use crate::clock::StdTime;
#[cfg(feature = "alloc")]
use crate::clock::TimeSource;
use crate::clock::{BuiltinClock, Clock, ClockError};
use crate::decode::Decoded;
#[cfg(feature = "std")]
use crate::error::StateFault;
use crate::error::{Detail, Error};
use crate::layout::{Layout, ones};
use crate::limit::Limit;
use crate::number::Number;
use crate::options::{Options, Resolved};
use crate::rule::{Cursor, Rule, Run, Stop, ms_until};
#[cfg(feature = "std")]
use crate::system::StateFile;
use crate::system::{Process, Turn};
use portable_atomic::{AtomicU64, Ordering};

mod local;

pub use local::LocalSnowflake;

/// The most IDs that one [`Snowflake::next_ids`] gives (2^24); [`Snowflake::fill`] has no bound of its own.
pub const MAX_BATCH: u64 = 1 << 24;

/// A generator of unique, time-ordered 64-bit IDs.
///
/// Shared by reference between threads, without a lock ([`into_local`](Self::into_local) makes one for a single owner,
/// which is faster). Two Snowflakes of one process share one cursor, so that neither repeats the other's IDs, if they have
/// the same epoch and tick, the same places and widths of timestamp and sequence, and the same node bits, whatever their
/// layouts are called. Layouts that split the bits differently are separate systems, whose IDs may be equal. A Snowflake on a
/// caller's own clock has a cursor of its own.
///
/// ```
/// use polyflake::Snowflake;
/// let ids = Snowflake::builder().node(7).build()?;
/// let first = ids.next_id()?;
/// assert!(ids.next_id()? > first);
/// assert_eq!(ids.next_ids(1000)?.len(), 1000);
/// for id in ids.iter().take(3) {
///     println!("{}", id?);
/// }
/// # Ok::<(), polyflake::Error>(())
/// ```
pub struct Snowflake<C = BuiltinClock> {
    rule: Rule,
    placed_node: u64,
    timestamp_shift: u32,
    sequence_shift: u32,
    sequence_bits: u32,
    max_wait_ms: u32,
    max_backward_ms: u32,
    cursor: CursorRef,
    limit: Limit,
    made_in: &'static Process,
    clock: C,
    layout: Layout,
    node: u64,
}

enum CursorRef {
    Own(Cursor),
    #[cfg(feature = "alloc")]
    OfProcess(&'static Cursor),
    #[cfg(feature = "std")]
    OfHost(&'static StateFile),
}

/// How a call waits for the clock: real time, and a pause. `std` has [`ThreadWait`](crate::ThreadWait); an
/// interpreter that must hear of signals, or a system without threads, brings its own.
pub trait Wait {
    /// What ends a call: Polyflake's error, or whatever interrupts a pause.
    type Error: From<Error>;

    /// Real time since the first call of this method: monotonic, whatever the wall clock does.
    fn elapsed(&mut self) -> Duration;

    /// Lets about `pause` go by, or says why the call must end. A pause of zero only asks for that: the call waits for
    /// others that wait for the same cursor.
    fn pause(&mut self, pause: Duration) -> Result<(), Self::Error>;
}

/// What an operator may want to graph, from [`Snowflake::stats`]. Counted since the cursor was made, by all
/// Snowflakes that share it, on slow paths only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Stats {
    /// How often a call found no free slot and waited or gave up.
    pub waits: u64,
    /// How many steps back of the clock were seen, tolerated or refused.
    pub rollbacks: u64,
    /// By how many ms the last tick taken lies ahead of the clock; 0 where it does not.
    pub lead_ms: u64,
    /// The start of the last ID's tick, in Unix ms; `None` before the first ID.
    pub last_issued_ms: Option<u64>,
}

impl Snowflake {
    /// The options of a new Snowflake, at their defaults.
    pub fn builder() -> Options {
        Options::default()
    }
}

impl Options {
    /// A Snowflake on the caller's own clock, with a cursor of its own, or that of a state file.
    ///
    /// Refuses with `invalid_layout`, `unknown_layout`, `invalid_node` or `invalid_option`; with a state file also
    /// as `build` does, and with `clock_failed`.
    pub fn build_with_clock<C: Clock>(&self, clock: C) -> Result<Snowflake<C>, Error> {
        let resolved = self.resolve()?;
        let rule = resolved.rule();
        // Before the clock is read, which may fork.
        let made_in = Process::current();
        #[cfg(feature = "std")]
        if let Some(cursor) = resolved.host_cursor(&rule, &clock)? {
            return Ok(Snowflake::new(&resolved, rule, cursor, made_in, clock));
        }
        Ok(Snowflake::new(&resolved, rule, CursorRef::Own(Cursor::new(0)), made_in, clock))
    }

    /// A Snowflake on a built-in clock. It shares its cursor with those that this process already has with the same epoch,
    /// tick, places and widths of timestamp and sequence, and node bits.
    ///
    /// A cursor that is new counts the tick it is made in, and `max_ahead_ms` more, as used up, so that a
    /// process that restarts within a tick repeats nothing: the first ID may wait for the next tick.
    ///
    /// Refuses with `invalid_layout`, `unknown_layout`, `invalid_node`, or `invalid_option` (also where
    /// `max_ahead_ms` or `max_backward_ms` differ from those the shared cursor was made with, or that cursor stands
    /// in another state file, or in none), `forked` for a node that the parent had before a fork without a state
    /// file, or `state_file`.
    ///
    /// With a state file it waits until nothing that was issued through it before can repeat: for at most a second and a
    /// tick, where the file is new, after a reboot, and where another file was put in its place; otherwise not at all.
    #[cfg(feature = "std")]
    pub fn build(&self) -> Result<Snowflake, Error> {
        self.build_on(StdTime, |clock| clock)
    }

    /// `build`, on the time of a platform without `std`. `wrap` puts the clock into a form of the caller's, which
    /// may have other kinds of clocks too.
    #[cfg(feature = "alloc")]
    pub fn build_on<S: TimeSource, C: Clock>(
        &self,
        source: S,
        wrap: impl FnOnce(BuiltinClock<S>) -> C,
    ) -> Result<Snowflake<C>, Error> {
        let resolved = self.resolve()?;
        let rule = resolved.rule();
        let made_in = Process::current();
        let clock = wrap(BuiltinClock::new(&resolved, source));
        #[cfg(feature = "std")]
        if let Some(cursor) = resolved.host_cursor(&rule, &clock)? {
            return Ok(Snowflake::new(&resolved, rule, cursor, made_in, clock));
        }
        let cursor = crate::system::process_cursor(&resolved, &rule, &clock)?;
        Ok(Snowflake::new(&resolved, rule, CursorRef::OfProcess(cursor), made_in, clock))
    }
}

impl Resolved {
    fn rule(&self) -> Rule {
        let (backward_ms, ahead_ms) = (self.max_backward_ms, self.max_ahead_ms);
        Rule::new(&self.layout, self.node, backward_ms, ahead_ms, self.sequence_start)
    }

    /// The cursor in the state file, if one is given.
    #[cfg(feature = "std")]
    fn host_cursor(&self, rule: &Rule, clock: &impl Clock) -> Result<Option<CursorRef>, Error> {
        let Some(path) = &self.state else { return Ok(None) };
        let file = crate::system::host_cursor(self, path, rule, clock)?;
        Ok(Some(CursorRef::OfHost(file)))
    }
}

impl<C> Snowflake<C> {
    fn new(from: &Resolved, rule: Rule, cursor: CursorRef, made_in: &'static Process, clock: C) -> Self {
        let layout = from.layout;
        let limit = match cursor {
            // A caller's clock may be at any tick, and there is none before it that was used up.
            CursorRef::Own(_) => Limit::of(made_in.limit()),
            #[cfg(feature = "alloc")]
            _ => Limit::not_started(),
        };
        Self {
            rule,
            placed_node: layout.place_node(from.node),
            timestamp_shift: layout.timestamp_shift(),
            sequence_shift: layout.sequence_shift(),
            sequence_bits: layout.sequence_bits(),
            max_wait_ms: from.max_wait_ms,
            max_backward_ms: from.max_backward_ms,
            cursor,
            limit,
            made_in,
            clock,
            layout,
            node: from.node,
        }
    }

    /// Ends this Snowflake: from here on every call fails with `closed`, and so do calls that are waiting. A call that
    /// already has its slots returns them. Others on the same cursor go on, and the cursor itself, with its state file,
    /// stays with the process. Dropping one has no effect beyond it either.
    ///
    /// ```
    /// use polyflake::{ErrorCode, Snowflake};
    /// let ids = Snowflake::builder().node(7).build()?;
    /// ids.close();
    /// assert_eq!(ids.next_id().unwrap_err().code(), ErrorCode::Closed);
    /// # Ok::<(), polyflake::Error>(())
    /// ```
    pub fn close(&self) {
        self.limit.close();
    }

    /// The layout.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// All node fields joined, from the highest to the lowest.
    pub const fn node(&self) -> u64 {
        self.node
    }

    /// The clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Takes an ID apart by this Snowflake's layout. Refuses with `invalid_id`.
    pub fn decode(&self, id: impl Into<Number>) -> Result<Decoded, Error> {
        self.layout.decode(id)
    }

    #[inline]
    pub(crate) fn cursor(&self) -> &Cursor {
        match &self.cursor {
            CursorRef::Own(cursor) => cursor,
            #[cfg(feature = "alloc")]
            CursorRef::OfProcess(cursor) => cursor,
            #[cfg(feature = "std")]
            CursorRef::OfHost(file) => file.cursor(),
        }
    }

    /// The word that holds the limit once the first ID was issued.
    fn live_limit(&self) -> &'static AtomicU64 {
        match self.cursor {
            #[cfg(feature = "std")]
            CursorRef::OfHost(file) => file.limit(),
            _ => self.made_in.limit(),
        }
    }

    /// Up to which slot somebody else may have issued.
    fn floor(&self) -> u64 {
        match self.cursor {
            #[cfg(feature = "std")]
            CursorRef::OfHost(file) => file.floor(),
            _ => 0,
        }
    }

    /// After slots were taken: from the first ones on the limit is the cursor's, and the cursor is past the floor.
    #[inline]
    fn has_taken(&self) {
        if !self.limit.has_started() {
            #[cfg(feature = "std")]
            if let CursorRef::OfHost(file) = self.cursor {
                file.has_begun();
            }
            self.limit.start(self.live_limit());
        }
    }

    /// What keeps this Snowflake from issuing, whatever the time is.
    fn over(&self) -> Option<Stopped> {
        if self.limit.is_closed() {
            return Some(Stopped::Closed);
        }
        #[cfg(feature = "std")]
        if let CursorRef::OfHost(_) = self.cursor {
            return None;
        }
        (!self.made_in.is_alive()).then_some(Stopped::Forked)
    }

    #[inline(always)]
    pub(crate) const fn id_of(&self, slot: u64) -> u64 {
        let ticks = slot >> self.sequence_bits;
        let sequence = slot & ones(self.sequence_bits);
        ticks << self.timestamp_shift | sequence << self.sequence_shift | self.placed_node
    }

    /// Writes the IDs of a run, which has no more of them than `ids` takes, and says how many.
    fn write(&self, run: Run, ids: &mut [u64]) -> usize {
        let count = usize::try_from(run.last - run.first).map_or(usize::MAX, |more| more.saturating_add(1));
        let mut rest = ids.get_mut(..count).unwrap_or_default();
        let mut slot = run.first;
        while !rest.is_empty() {
            // Within a tick only the sequence changes, so that the loop below is an addition an ID.
            let left = ones(self.sequence_bits) - (slot & ones(self.sequence_bits));
            let in_tick = usize::try_from(left).map_or(usize::MAX, |left| left.saturating_add(1));
            let (tick, others) = rest.split_at_mut(in_tick.min(rest.len()));
            let mut next = self.id_of(slot);
            for id in tick.iter_mut() {
                *id = next;
                // Past the last one it may wrap.
                next = next.wrapping_add(1 << self.sequence_shift);
            }
            slot = slot.wrapping_add(tick.len() as u64);
            rest = others;
        }
        count
    }
}

impl<C: Clock> Snowflake<C> {
    /// The next ID, or an error at once where there is none yet.
    ///
    /// Refuses with `sequence_exhausted`, `clock_moved_backwards`, `time_out_of_range`, `clock_failed`, `forked`,
    /// `state_file`, or `closed` after `close`.
    #[inline]
    pub fn try_next_id(&self) -> Result<u64, Error> {
        self.poll_next_id().or_else(|blocked| self.try_next_id_after(blocked))
    }

    /// The next ID, or what [`next_id_after`](Self::next_id_after) needs to go on. For callers that hold
    /// something (an interpreter) which they let go of only when they must wait.
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
    #[inline(always)]
    pub fn poll_next_id(&self) -> Result<u64, Blocked> {
        let now_ms = self.clock.unix_ms();
        if let Ok(now_ms) = now_ms {
            let cursor = self.cursor();
            let last = cursor.load();
            if let Some(slot) = self.rule.next_in_tick(last, now_ms) {
                // After the clock, which may be the caller's and fork.
                if slot <= self.limit.get() && cursor.advance(last, slot) {
                    return Ok(self.id_of(slot));
                }
            }
        }
        match self.take(1, now_ms) {
            Ok(run) => Ok(self.id_of(run.first)),
            Err(stopped) => Err(Blocked { stopped, filled: 0 }),
        }
    }

    /// Up to `wanted` slots, all in one piece, for a caller who issues them itself.
    pub(crate) fn poll_slots(&self, wanted: u64) -> Result<Run, Blocked> {
        self.take(wanted, self.clock.unix_ms()).map_err(|stopped| Blocked { stopped, filled: 0 })
    }

    /// The run that the rule gives after `last`, if any, taking none.
    pub(crate) fn step_from(&self, last: u64, now_ms: i64) -> Option<Run> {
        self.rule.step(last, now_ms, 1).ok()
    }

    /// The slot after `last`, if it lies in the clock's own tick.
    #[inline(always)]
    pub(crate) fn next_in_tick(&self, last: u64, now_ms: i64) -> Option<u64> {
        self.rule.next_in_tick(last, now_ms)
    }

    /// Goes on with a call that was blocked, without waiting: what [`try_next_id`](Self::try_next_id) does after
    /// [`poll_next_id`](Self::poll_next_id). It may take as long as a disk does to sync a state file.
    #[cold]
    pub fn try_next_id_after(&self, blocked: Blocked) -> Result<u64, Error> {
        #[cfg(feature = "std")]
        let blocked = match self.past_bound(1, blocked.stopped) {
            Ok(run) => return Ok(self.id_of(run.first)),
            Err(stopped) => Blocked { stopped, filled: 0 },
        };
        Err(self.give_up(&blocked))
    }

    /// Goes on with a call that was blocked, waiting at most `max_wait_ms` of real time.
    ///
    /// Refuses as [`next_id`](Self::next_id) does, or with what interrupted the wait.
    #[cold]
    pub fn next_id_after<W: Wait>(&self, blocked: Blocked, wait: &mut W) -> Result<u64, W::Error> {
        self.take_later(1, blocked, wait).map(|run| self.id_of(run.first))
    }

    /// The next ID, waiting in the caller's way: at most `max_wait_ms` of real time.
    ///
    /// Refuses as [`next_id`](Self::next_id) does, or with what interrupted the wait.
    #[inline]
    pub fn next_id_with<W: Wait>(&self, wait: &mut W) -> Result<u64, W::Error> {
        self.poll_next_id().or_else(|blocked| self.next_id_after(blocked, wait))
    }

    /// Fills `ids`, or as many of them as [`Blocked::filled`] says; [`fill_after`](Self::fill_after) goes on.
    pub fn poll_fill(&self, ids: &mut [u64]) -> Result<(), Blocked> {
        let mut filled = 0;
        if let (true, Some(stopped)) = (ids.is_empty(), self.over()) {
            return Err(Blocked { stopped, filled });
        }
        while let Some(rest) = ids.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.take(rest.len() as u64, self.clock.unix_ms()) {
                Ok(run) => filled += self.write(run, rest),
                Err(stopped) => return Err(Blocked { stopped, filled }),
            }
        }
        Ok(())
    }

    /// Fills the rest of `ids` after [`poll_fill`](Self::poll_fill) was blocked, waiting at most `max_wait_ms` of
    /// real time between two runs. An error part-way loses the IDs already written: they are not issued again.
    ///
    /// Refuses as [`next_id`](Self::next_id) does, or with what interrupted the wait.
    pub fn fill_after<W: Wait>(
        &self,
        ids: &mut [u64],
        blocked: Blocked,
        wait: &mut W,
    ) -> Result<(), W::Error> {
        let mut blocked = blocked;
        let mut filled = 0;
        loop {
            filled += blocked.filled;
            let rest = ids.get_mut(filled..).unwrap_or_default();
            let run = self.take_later(rest.len() as u64, blocked, wait)?;
            filled += self.write(run, rest);
            let Some(rest) = ids.get_mut(filled..).filter(|rest| !rest.is_empty()) else { return Ok(()) };
            match self.poll_fill(rest) {
                Ok(()) => return Ok(()),
                Err(again) => blocked = again,
            }
        }
    }

    /// Fills `ids`, waiting in the caller's way; see [`fill_after`](Self::fill_after).
    pub fn fill_with<W: Wait>(&self, ids: &mut [u64], wait: &mut W) -> Result<(), W::Error> {
        self.poll_fill(ids).or_else(|blocked| self.fill_after(ids, blocked, wait))
    }

    /// How long a blocked call should pause before it polls again. For callers that wait without blocking (an
    /// event loop); the others have [`next_id_after`](Self::next_id_after). `waited` is the real time since the
    /// call last took a slot, or `None` where it has not paused since.
    ///
    /// Refuses as [`next_id`](Self::next_id) does, where waiting is no use or `max_wait_ms` is over.
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
    pub fn pause_after(&self, blocked: &Blocked, waited: Option<Duration>) -> Result<Duration, Error> {
        #[cfg(feature = "std")]
        if let Stopped::AtBound { run, now_ms, .. } = blocked.stopped {
            self.move_bound(run, now_ms).map_err(|fault| self.state_refusal(fault))?;
            return Ok(Duration::ZERO);
        }
        let Stopped::At { stop: Stop::Blocked { retry_at_ms, .. }, now_ms } = blocked.stopped else {
            return Err(self.refusal(blocked));
        };
        if waited.is_none() {
            self.count_wait();
        }
        let longest = Duration::from_millis(self.max_wait_ms.into());
        let left = longest.saturating_sub(waited.unwrap_or_default());
        if left.is_zero() {
            return Err(self.refusal(blocked));
        }
        let retry_at_ms = i64::try_from(retry_at_ms).unwrap_or(i64::MAX);
        Ok(self.clock.until(now_ms, retry_at_ms).min(left))
    }

    /// The work on the disk that a call waits for which stopped at a state file's bound, for another thread to do; after
    /// it the call polls again. [`pause_after`](Self::pause_after) would do it itself.
    #[cfg(feature = "std")]
    #[doc(hidden)]
    pub fn bound_move(&self, blocked: &Blocked) -> Option<BoundMove> {
        match (&self.cursor, blocked.stopped) {
            (CursorRef::OfHost(file), Stopped::AtBound { run, now_ms, .. }) => {
                Some(BoundMove { file, rule: self.rule, to: run.last, now_ms })
            }
            _ => None,
        }
    }

    /// Waits, lead and rollbacks, for an operator's graphs. Reads the clock once; refuses with `clock_failed`
    /// or `forked`.
    pub fn stats(&self) -> Result<Stats, Error> {
        let cursor = self.cursor();
        if let Some(over) = self.over() {
            return Err(self.refusal(&Blocked { stopped: over, filled: 0 }));
        }
        let tick = self.rule.tick_of(cursor.load());
        let start_ms = self.rule.start_ms(tick);
        let now_ms = self.clock.unix_ms_uncached()?;
        let has_issued = cursor.has_issued();
        Ok(Stats {
            waits: cursor.waits.load(core::sync::atomic::Ordering::Relaxed),
            rollbacks: cursor.rollbacks.load(core::sync::atomic::Ordering::Relaxed),
            lead_ms: if has_issued { ms_until(now_ms, start_ms) } else { 0 },
            last_issued_ms: has_issued.then_some(start_ms),
        })
    }

    /// Takes up to `wanted` slots, all in one piece, by the whole rule. `now_ms` is the clock's reading for this call.
    #[inline(never)]
    fn take(&self, wanted: u64, now_ms: Result<i64, ClockError>) -> Result<Run, Stopped> {
        let cursor = self.cursor();
        // The clock first, so that the cursor's line is this thread's for as short as can be. But another thread may come
        // between the two with a later reading, and a reading may have been kept: so what looks like a step back, or like
        // a reason to refuse or to wait, is looked at once more, with the clock read anew and after the cursor.
        let read = |now_ms: Result<i64, ClockError>| {
            // After `close` there is nothing else to say.
            now_ms.map_err(|error| self.over().unwrap_or(Stopped::Clock(error)))
        };
        let mut now_ms = read(now_ms)?;
        let mut again = false;
        loop {
            let last = cursor.load();
            if again {
                now_ms = read(self.clock.unix_ms_uncached())?;
            }
            match self.rule.step(last, now_ms, wanted) {
                Ok(Run { rolled_back: true, .. }) | Err(_) if !again && !cfg!(mutant = "one_look") => {
                    again = true;
                    #[cfg(feature = "std")]
                    if let CursorRef::OfHost(file) = self.cursor {
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
                    if cursor.advance(last, run.last) {
                        if run.rolled_back {
                            self.saw_rollback(last);
                        }
                        self.has_taken();
                        return Ok(run);
                    }
                    #[cfg(feature = "std")]
                    give_way();
                }
                Err(stop) => {
                    if let Some(over) = self.over() {
                        return Err(over);
                    }
                    if matches!(stop, Stop::Backwards { .. } | Stop::Blocked { behind_ms: Some(_), .. }) {
                        self.saw_rollback(last);
                    }
                    return Err(Stopped::At { stop, now_ms });
                }
            }
        }
    }

    /// What may be taken of a run that is free and lies past the limit: a first run begins as in a fresh tick; and what
    /// keeps it from being taken, if anything does.
    #[cold]
    fn past_limit(&self, last: u64, run: Run, now_ms: i64) -> Result<Run, Stopped> {
        if let Some(over) = self.over() {
            return Err(over);
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
        match self.cursor {
            #[cfg(feature = "std")]
            CursorRef::OfHost(file) if !file.may_pass(run.last, limit) => {
                Err(Stopped::AtBound { last, run, now_ms })
            }
            #[cfg(feature = "std")]
            CursorRef::OfHost(_) => Ok(run),
            _ => Err(Stopped::Forked),
        }
    }

    /// Goes on after a `take` that stopped at the state file's bound, moving it on disk; other stops stay.
    #[cfg(feature = "std")]
    fn past_bound(&self, wanted: u64, stopped: Stopped) -> Result<Run, Stopped> {
        let mut stopped = stopped;
        while let Stopped::AtBound { last, run, now_ms } = stopped {
            self.move_bound(run, now_ms).map_err(Stopped::State)?;
            if let Some(over) = self.over() {
                return Err(over);
            }
            // This very run, so that it goes on even where the clock has passed the new bound meanwhile.
            if self.cursor().advance(last, run.last) {
                self.has_taken();
                return Ok(run);
            }
            match self.take(wanted, self.clock.unix_ms()) {
                Ok(run) => return Ok(run),
                Err(again) => stopped = again,
            }
        }
        Err(stopped)
    }

    #[cfg(feature = "std")]
    fn move_bound(&self, run: Run, now_ms: i64) -> Result<(), StateFault> {
        match &self.cursor {
            CursorRef::OfHost(file) => file.move_bound(&self.rule, run.last, now_ms),
            _ => Ok(()),
        }
    }

    /// Takes up to `wanted` slots once there are some, or gives up when the time is up.
    fn take_later<W: Wait>(&self, wanted: u64, blocked: Blocked, wait: &mut W) -> Result<Run, W::Error> {
        let mut blocked = blocked;
        #[cfg(feature = "std")]
        match self.past_bound(wanted, blocked.stopped) {
            Ok(run) => return Ok(run),
            Err(stopped) => blocked = Blocked { stopped, filled: 0 },
        }
        let (mut since, mut so_far) = (None, None);
        let turn = Turn::join(self.waits_for(), wanted);
        loop {
            let pause = match self.pause_after(&blocked, so_far) {
                Ok(pause) => pause,
                // It may have been given some since it last looked.
                Err(error) => return turn.given().ok_or(error.into()),
            };
            let since = *since.get_or_insert_with(|| wait.elapsed());
            if turn.leads() {
                wait.pause(pause.min(Turn::longest_pause()))?;
            } else {
                turn.wait();
                // What may interrupt it.
                wait.pause(Duration::ZERO)?;
            }
            // Before the clock is read once more: a thread that loses the processor after that has not yet seen what the
            // time brought.
            so_far = Some(wait.elapsed().saturating_sub(since));
            if let Some(run) = turn.given() {
                return Ok(run);
            }
            let taken = match self.over() {
                Some(over) => Err(over),
                None if turn.leads() => self.take_for_all(wanted, &turn),
                None => Err(blocked.stopped),
            };
            match taken {
                Ok(run) => return Ok(run),
                Err(stopped) => blocked = Blocked { stopped, filled: 0 },
            }
        }
    }

    /// Takes slots for a call that leads, and for those that wait for it.
    fn take_for_all(&self, wanted: u64, turn: &Turn) -> Result<Run, Stopped> {
        let others = turn.others();
        let wanted = wanted.saturating_add(others.wanted());
        let taken = self.take(wanted, self.clock.unix_ms());
        #[cfg(feature = "std")]
        let taken = taken.or_else(|stopped| self.past_bound(wanted, stopped));
        taken.map(|run| others.share(run))
    }

    /// What a call waits for: the cursor, by the system's clock or by another.
    fn waits_for(&self) -> (usize, usize) {
        let clock = if self.clock.is_of_the_system() { 0 } else { core::ptr::from_ref(self).addr() };
        (core::ptr::from_ref(self.cursor()).addr(), clock)
    }
}

/// After a swap that another thread won, for less than 2 us: it has the cursor's cache line now, and both get more IDs
/// out of it in runs than by turns, where the line moves for each. Two threads: 12 ns an ID and not 36.
#[cfg(feature = "std")]
#[cold]
fn give_way() {
    for _ in 0..32 {
        core::hint::spin_loop();
    }
}

/// A call that found no free slot.
#[derive(Debug, Clone, Copy)]
pub struct Blocked {
    stopped: Stopped,
    filled: usize,
}

impl Blocked {
    /// How many IDs of a batch were written before.
    pub const fn filled(&self) -> usize {
        self.filled
    }
}

/// From [`Snowflake::bound_move`].
#[cfg(feature = "std")]
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct BoundMove {
    file: &'static StateFile,
    rule: Rule,
    to: u64,
    now_ms: i64,
}

#[cfg(feature = "std")]
impl BoundMove {
    /// Moves the bound, on disk first. Refuses with `state_file`.
    pub fn run(self) -> Result<(), Error> {
        self.file.move_bound(&self.rule, self.to, self.now_ms).map_err(|fault| self.file.refusal(fault))
    }
}

/// A step that took nothing.
#[derive(Debug, Clone, Copy)]
enum Stopped {
    At {
        stop: Stop,
        now_ms: i64,
    },
    Clock(ClockError),
    Forked,
    Closed,
    #[cfg(feature = "std")]
    State(StateFault),
    /// The state file's bound must move on before this run, which follows on `last`, is taken.
    #[cfg(feature = "std")]
    AtBound {
        last: u64,
        run: Run,
        now_ms: i64,
    },
}

impl<C> Snowflake<C> {
    #[cold]
    pub(crate) fn saw_rollback(&self, last: u64) {
        self.cursor().saw_rollback(self.rule.tick_of(last));
    }

    fn count_wait(&self) {
        self.cursor().waits.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
    }

    #[cfg(feature = "std")]
    fn state_refusal(&self, fault: StateFault) -> Error {
        match &self.cursor {
            CursorRef::OfHost(file) => file.refusal(fault),
            _ => Error::state(std::path::Path::new(""), fault),
        }
    }

    /// The error of a call that does not wait.
    #[cold]
    fn give_up(&self, blocked: &Blocked) -> Error {
        if let Stopped::At { stop: Stop::Blocked { .. }, .. } = blocked.stopped {
            self.count_wait();
        }
        self.refusal(blocked)
    }

    fn refusal(&self, blocked: &Blocked) -> Error {
        let (stop, now_ms) = match blocked.stopped {
            Stopped::At { stop, now_ms } => (stop, now_ms),
            Stopped::Clock(error) => return error.into(),
            Stopped::Forked => return Detail::Forked.into(),
            Stopped::Closed => return Detail::Closed.into(),
            #[cfg(feature = "std")]
            Stopped::State(fault) => return self.state_refusal(fault),
            #[cfg(feature = "std")]
            Stopped::AtBound { .. } => return Detail::Exhausted { retry_after_ms: 0 }.into(),
        };
        match stop {
            Stop::OutOfRange => self.layout.out_of_range(now_ms.into()),
            Stop::Ended => Detail::LayoutEnded { ends_at_ms: self.layout.ends_at_ms() }.into(),
            Stop::Backwards { behind_ms, retry_at_ms }
            | Stop::Blocked { behind_ms: Some(behind_ms), retry_at_ms } => Detail::Backwards {
                behind_ms,
                retry_after_ms: ms_until(now_ms, retry_at_ms),
                max_backward_ms: self.max_backward_ms,
            }
            .into(),
            Stop::Blocked { behind_ms: None, retry_at_ms } => {
                Detail::Exhausted { retry_after_ms: ms_until(now_ms, retry_at_ms) }.into()
            }
        }
    }
}

#[cfg(feature = "std")]
impl<C: Clock> Snowflake<C> {
    /// The next ID, waiting for at most `max_wait_ms` of real time where the tick's sequence is used up.
    ///
    /// Refuses with `sequence_exhausted` or `clock_moved_backwards` where that wait was not enough (a step back
    /// past `max_backward_ms` does not wait), `time_out_of_range`, `clock_failed`, `forked` in a child of the process
    /// that made it without a state file, `state_file`, or `closed` after [`close`](Self::close).
    #[inline]
    pub fn next_id(&self) -> Result<u64, Error> {
        self.next_id_with(&mut crate::system::ThreadWait::new())
    }

    /// Fills `ids`, waiting for at most `max_wait_ms` of real time between two runs. An error part-way loses the
    /// IDs already written: they are not issued again.
    ///
    /// Refuses as [`next_id`](Self::next_id) does.
    pub fn fill(&self, ids: &mut [u64]) -> Result<(), Error> {
        self.fill_with(ids, &mut crate::system::ThreadWait::new())
    }

    /// The next `n` IDs, 1 to [`MAX_BATCH`] of them. Refuses as [`fill`](Self::fill) does, and another `n` with
    /// `invalid_option`.
    pub fn next_ids(&self, n: impl Into<Number>) -> Result<std::vec::Vec<u64>, Error> {
        let mut ids = std::vec![0; batch_size(n)?];
        self.fill(&mut ids)?;
        Ok(ids)
    }

    /// The IDs one after the other, each as [`next_id`](Self::next_id) gives it; it never ends.
    pub const fn iter(&self) -> Iter<'_, C> {
        Iter { ids: self }
    }
}

/// The `n` of a batch, if it is 1 to [`MAX_BATCH`]; `invalid_option` else.
pub fn batch_size(n: impl Into<Number>) -> Result<usize, Error> {
    let n = n.into();
    let fits = n.to_u64().filter(|n| (1..=MAX_BATCH).contains(n)).and_then(|n| usize::try_from(n).ok());
    fits.ok_or(Detail::OptionRange { option: "n", value: n, min: 1, max: MAX_BATCH }.into())
}

#[cfg(feature = "std")]
impl<'a, C: Clock> IntoIterator for &'a Snowflake<C> {
    type Item = Result<u64, Error>;
    type IntoIter = Iter<'a, C>;

    fn into_iter(self) -> Iter<'a, C> {
        self.iter()
    }
}

/// The IDs of a Snowflake one after the other, from [`Snowflake::iter`].
#[cfg(feature = "std")]
pub struct Iter<'a, C = BuiltinClock> {
    ids: &'a Snowflake<C>,
}

#[cfg(feature = "std")]
impl<C: Clock> Iterator for Iter<'_, C> {
    type Item = Result<u64, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.ids.next_id())
    }
}

#[cfg(feature = "std")]
impl<C> fmt::Debug for Iter<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("ids", self.ids).finish()
    }
}

impl<C> fmt::Debug for Snowflake<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snowflake {{ layout: {}, node: {} }}", self.layout, self.node)
    }
}
