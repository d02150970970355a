//! A Snowflake of one owner: it takes slots a few at a time, and issues them without a compare-and-swap for each.

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

/// How many slots are taken at once, of ticks that have many.
const SLOTS: u64 = 64;

/// A [`Snowflake`] of one owner: the same IDs by the same rule, without a compare-and-swap for each because it takes
/// `&mut self`. Made by [`Snowflake::into_local`].
///
/// It reads the clock for each ID, but takes slots from the cursor up to 64 at a time. Other Snowflakes may share the
/// cursor: nothing repeats, and each ID is still greater than all whose calls returned before. But when one of them issues
/// an ID, or this one is dropped, the slots that are left are lost, so that `sequence_exhausted` or a wait comes earlier.
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
    /// The last slot taken: the cursor, until others move it.
    taken: u64,
    taken_in: &'static Process,
    /// The bits of the node that they are of, in their place.
    placed_node: u64,
    /// How many are taken at once: at most a quarter of a tick, so that those of IDs issued slowly do not reach its end.
    /// The next tick's would begin at 0, and not spread.
    at_once: u64,
}

impl<C> Snowflake<C> {
    /// Makes it a Snowflake of one owner, which saves the compare-and-swap for most IDs.
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

    /// All node fields joined, from the highest to the lowest.
    pub fn node(&self) -> u64 {
        self.ids.node()
    }

    /// Takes an ID apart by this Snowflake's layout, as [`Snowflake::decode`].
    ///
    /// # Errors
    ///
    /// As for [`Snowflake::decode`].
    pub fn decode(&self, id: impl Into<Number>) -> Result<Decoded, Error> {
        self.ids.decode(id)
    }

    /// Ends this Snowflake, as [`Snowflake::close`] does.
    pub fn close(&mut self) {
        self.ids.close();
        self.issued = self.taken;
    }

    /// Whether there are slots left that are taken and not issued. Those below another Snowflake's IDs would come too late.
    #[inline(always)]
    fn has_slots(&self) -> bool {
        self.issued < self.taken && self.ids.cursor().load() == self.taken
    }
}

impl<C: Clock> LocalSnowflake<C> {
    /// The next ID, or what [`next_id_after`](Snowflake::next_id_after) needs to continue, as [`Snowflake::poll_next_id`].
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

    /// The next of the slots that are taken, by the whole rule.
    #[cold]
    fn step(&mut self, now_ms: i64) -> Result<u64, Blocked> {
        match self.ids.rule.step(self.issued, now_ms, 1).ok() {
            Some(run) if run.rolled_back => self.look_again(),
            Some(run) if self.may_issue(run.first) => Ok(self.issue(run.first)),
            // A later tick, or the parent's slots.
            Some(_) => self.take(),
            None => self.look_again(),
        }
    }

    /// As [`Snowflake`] does where the clock seems to have stepped back, or there seems to be no slot.
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

    /// Whether a slot is the next of those that are taken, by this process. Asked after the clock, which may be the
    /// caller's and fork.
    #[inline(always)]
    fn may_issue(&self, slot: u64) -> bool {
        slot == self.issued + 1 && self.taken_in.is_alive()
    }

    #[inline(always)]
    fn issue(&mut self, slot: u64) -> u64 {
        self.issued = slot;
        self.ids.id_of(slot, self.placed_node)
    }

    /// The first of more slots.
    #[cold]
    fn take(&mut self) -> Result<u64, Blocked> {
        let taken = self.ids.take(self.at_once, self.ids.clock.unix_ms());
        let Taken { run, placed_node } = taken.map_err(Blocked::from)?;
        self.taken = run.last;
        self.taken_in = Process::current();
        self.placed_node = placed_node;
        Ok(self.issue(run.first))
    }

    /// The next ID, or an error at once if there is none yet, as [`Snowflake::try_next_id`].
    ///
    /// # Errors
    ///
    /// As for [`Snowflake::try_next_id`].
    #[inline]
    pub fn try_next_id(&mut self) -> Result<u64, Error> {
        self.poll_next_id().or_else(|blocked| self.ids.try_next_id_after(blocked))
    }

    /// The next ID, waiting in the caller's way, as [`Snowflake::next_id_with`].
    ///
    /// # Errors
    ///
    /// As for [`Snowflake::next_id_with`].
    #[inline]
    pub fn next_id_with<W: Wait>(&mut self, wait: &mut W) -> Result<u64, W::Error> {
        self.poll_next_id().or_else(|blocked| self.ids.next_id_after(blocked, wait))
    }

    /// Fills `ids`, waiting in the caller's way, as [`Snowflake::fill_with`].
    ///
    /// # Errors
    ///
    /// As for [`Snowflake::fill_with`].
    pub fn fill_with<W: Wait>(&mut self, ids: &mut [u64], wait: &mut W) -> Result<(), W::Error> {
        self.ids.fill_with(ids, wait)
    }

    /// Waits, lead and rollbacks, as [`Snowflake::stats`]; slots that are taken count as issued.
    ///
    /// # Errors
    ///
    /// As for [`Snowflake::stats`].
    pub fn stats(&self) -> Result<Stats, Error> {
        self.ids.stats()
    }
}

#[cfg(feature = "std")]
impl<C: Clock> LocalSnowflake<C> {
    /// The next ID, waiting for at most `max_wait_ms` of real time, as [`Snowflake::next_id`].
    ///
    /// # Errors
    ///
    /// As for [`Snowflake::next_id`].
    #[inline]
    pub fn next_id(&mut self) -> Result<u64, Error> {
        self.next_id_with(&mut crate::system::ThreadWait::new())
    }

    /// Fills `ids`, as [`Snowflake::fill`].
    ///
    /// # Errors
    ///
    /// As for [`Snowflake::fill`].
    pub fn fill(&mut self, ids: &mut [u64]) -> Result<(), Error> {
        self.ids.fill(ids)
    }

    /// The next `n` IDs, as [`Snowflake::next_ids`].
    ///
    /// # Errors
    ///
    /// As for [`Snowflake::next_ids`].
    pub fn next_ids(&mut self, n: impl Into<Number>) -> Result<std::vec::Vec<u64>, Error> {
        self.ids.next_ids(n)
    }
}

/// The IDs one after the other, each as [`next_id`](LocalSnowflake::next_id) gives it; it never ends.
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
