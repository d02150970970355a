//! A Snowflake with a single owner. It takes several slots at once and issues them without a compare-and-swap
//! for each.

use core::fmt;

use crate::clock::{BuiltinClock, Clock};
use crate::decode::Decoded;
use crate::error::Error;
use crate::layout::Layout;
use crate::number::Number;
use crate::rule::Taken;
use crate::snowflake::stopped::Blocked;
use crate::snowflake::{Snowflake, Stats};
use crate::system::Process;
use crate::wait::Wait;

/// The number of slots taken at once, if ticks have enough of them.
const SLOTS: u64 = 64;

/// A [`Snowflake`] with a single owner. It issues the same IDs by the same rule, but takes `&mut self` and so
/// needs no compare-and-swap per ID. [`Snowflake::into_local`] creates it.
///
/// It reads the clock for each ID, but takes up to 64 slots at a time from the cursor. Other Snowflakes may
/// share the cursor: no ID repeats, and each ID is still greater than every ID returned before its call
/// began. However, when one of them issues an ID, or this Snowflake is dropped, the remaining slots are lost,
/// so `sequence_exhausted` or a wait comes sooner.
///
/// ```
/// use polyflake::Snowflake;
/// let mut ids = Snowflake::builder().node(7).build()?.into_local();
/// let first = ids.next_id()?;
/// assert!(ids.next_id()? > first);
/// for id in ids.by_ref().take(3) {
///     println!("{}", id?);
/// }
/// # Ok::<(), polyflake::Error>(())
/// ```
pub struct LocalSnowflake<C = BuiltinClock> {
    ids: Snowflake<C>,
    /// The last slot issued.
    issued: u64,
    /// The last slot taken. It equals the cursor until other Snowflakes advance it.
    taken: u64,
    taken_in: &'static Process,
    /// The bits of the slots' node, at their positions.
    placed_node: u64,
    /// The number of slots taken at once: at most a quarter of a tick. At a low rate, the slots therefore do
    /// not reach the end of the tick; if they did, the next tick would begin at 0 instead of at a number
    /// chosen by `spread`.
    at_once: u64,
}

impl<C> Snowflake<C> {
    /// Turns this into a Snowflake with a single owner, which saves the compare-and-swap for most IDs.
    pub fn into_local(self) -> LocalSnowflake<C> {
        LocalSnowflake {
            at_once: SLOTS.min(self.layout().ids_per_tick() / 4).max(1),
            ids: self,
            issued: 0,
            taken: 0,
            taken_in: Process::current(),
            placed_node: 0,
        }
    }
}

impl<C> LocalSnowflake<C> {
    /// The layout.
    pub const fn layout(&self) -> &Layout {
        self.ids.layout()
    }

    /// The values of all node fields combined into one number, highest field first.
    pub fn node(&self) -> u64 {
        self.ids.node()
    }

    /// Decodes an ID with this Snowflake's layout, as [`Snowflake::decode`] does.
    ///
    /// # Errors
    ///
    /// The same as for [`Snowflake::decode`].
    pub fn decode(&self, id: impl Into<Number>) -> Result<Decoded, Error> {
        self.ids.decode(id)
    }

    /// Closes this Snowflake, as [`Snowflake::close`] does.
    pub fn close(&mut self) {
        self.ids.close();
        self.issued = self.taken;
    }

    /// Returns true if some slots have been taken but not issued, and the cursor has not moved since. Once
    /// another Snowflake has issued an ID, it is too late to issue slots below it.
    #[inline(always)]
    fn has_slots(&self) -> bool {
        self.issued < self.taken && self.ids.cursor().load() == self.taken
    }
}

impl<C: Clock> LocalSnowflake<C> {
    /// Returns the next ID, or the state from which [`next_id_after`](Snowflake::next_id_after) continues, as
    /// [`Snowflake::poll_next_id`] does.
    #[inline(always)]
    fn poll_next_id(&mut self) -> Result<u64, Blocked> {
        if self.has_slots() {
            if let Ok(now_ms) = self.ids.clock().unix_ms() {
                match self.ids.rule.next_in_tick(self.issued, now_ms) {
                    Some(slot) if self.may_issue(slot) => return Ok(self.issue(slot)),
                    _ => return self.step(now_ms),
                }
            }
        }
        self.take()
    }

    /// Issues the next taken slot if the full rule allows it.
    #[cold]
    fn step(&mut self, now_ms: i64) -> Result<u64, Blocked> {
        match self.ids.rule.step(self.issued, now_ms, 1).ok() {
            Some(run) if run.rolled_back => self.look_again(),
            Some(run) if self.may_issue(run.first) => Ok(self.issue(run.first)),
            // The run is in a later tick, or the slots belong to the parent process.
            Some(_) => self.take(),
            None => self.look_again(),
        }
    }

    /// Checks again, as [`Snowflake`] does when the clock seems to have stepped back or no slot seems to be
    /// free.
    fn look_again(&mut self) -> Result<u64, Blocked> {
        let now_ms = self.ids.clock().unix_ms_uncached().ok();
        match now_ms.and_then(|now_ms| self.ids.rule.step(self.issued, now_ms, 1).ok()) {
            Some(run) if self.may_issue(run.first) => {
                if run.rolled_back {
                    self.ids.saw_rollback(self.issued);
                }
                Ok(self.issue(run.first))
            }
            _ => self.take(),
        }
    }

    /// Returns true if `slot` is the next of the slots this process has taken. Must be called after the clock
    /// is read, because a caller's clock may fork.
    #[inline(always)]
    fn may_issue(&self, slot: u64) -> bool {
        slot == self.issued + 1 && self.taken_in.is_alive()
    }

    #[inline(always)]
    fn issue(&mut self, slot: u64) -> u64 {
        self.issued = slot;
        self.ids.id_of(slot, self.placed_node)
    }

    /// Takes more slots and issues the first of them.
    #[cold]
    fn take(&mut self) -> Result<u64, Blocked> {
        let taken = self.ids.take(self.at_once, self.ids.clock.unix_ms());
        let Taken { run, placed_node } = taken.map_err(Blocked::from)?;
        self.taken = run.last;
        self.taken_in = Process::current();
        self.placed_node = placed_node;
        Ok(self.issue(run.first))
    }

    /// Returns the next ID, or an error immediately if none is available yet, as [`Snowflake::try_next_id`]
    /// does.
    ///
    /// # Errors
    ///
    /// The same as for [`Snowflake::try_next_id`].
    #[inline]
    pub fn try_next_id(&mut self) -> Result<u64, Error> {
        self.poll_next_id().or_else(|blocked| self.ids.try_next_id_after(blocked))
    }

    /// Returns the next ID, waiting with the caller's `wait`, as [`Snowflake::next_id_with`] does.
    ///
    /// # Errors
    ///
    /// The same as for [`Snowflake::next_id_with`].
    #[inline]
    pub fn next_id_with<W: Wait>(&mut self, wait: &mut W) -> Result<u64, W::Error> {
        self.poll_next_id().or_else(|blocked| self.ids.next_id_after(blocked, wait))
    }

    /// Fills `ids`, waiting with the caller's `wait`, as [`Snowflake::fill_with`] does.
    ///
    /// # Errors
    ///
    /// The same as for [`Snowflake::fill_with`].
    pub fn fill_with<W: Wait>(&mut self, ids: &mut [u64], wait: &mut W) -> Result<(), W::Error> {
        self.ids.fill_with(ids, wait)
    }

    /// Returns statistics, as [`Snowflake::stats`] does. Slots that have been taken count as issued.
    ///
    /// # Errors
    ///
    /// The same as for [`Snowflake::stats`].
    pub fn stats(&self) -> Result<Stats, Error> {
        self.ids.stats()
    }
}

#[cfg(feature = "std")]
impl<C: Clock> LocalSnowflake<C> {
    /// Returns the next ID, waiting up to `max_wait_ms` of real time, as [`Snowflake::next_id`] does.
    ///
    /// # Errors
    ///
    /// The same as for [`Snowflake::next_id`].
    #[inline]
    pub fn next_id(&mut self) -> Result<u64, Error> {
        self.next_id_with(&mut crate::system::ThreadWait::new())
    }

    /// Fills `ids`, as [`Snowflake::fill`] does.
    ///
    /// # Errors
    ///
    /// The same as for [`Snowflake::fill`].
    pub fn fill(&mut self, ids: &mut [u64]) -> Result<(), Error> {
        self.ids.fill(ids)
    }

    /// Returns the next `n` IDs, as [`Snowflake::next_ids`] does.
    ///
    /// # Errors
    ///
    /// The same as for [`Snowflake::next_ids`].
    pub fn next_ids(&mut self, n: impl Into<Number>) -> Result<std::vec::Vec<u64>, Error> {
        self.ids.next_ids(n)
    }
}

/// An endless iterator over the IDs, each taken with [`next_id`](LocalSnowflake::next_id).
#[cfg(feature = "std")]
impl<C: Clock> Iterator for LocalSnowflake<C> {
    type Item = Result<u64, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some(self.next_id())
    }
}

impl<C> fmt::Debug for LocalSnowflake<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSnowflake").field("ids", &self.ids).finish_non_exhaustive()
    }
}
