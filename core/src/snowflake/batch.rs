//! Taking many IDs at once, in runs of slots.

use crate::clock::Clock;
use crate::error::Error;
use crate::number::Number;
use crate::rule::Taken;
use crate::snowflake::Snowflake;
use crate::snowflake::stopped::{Blocked, Part, Stopped};
use crate::wait::Wait;

/// The maximum number of IDs from one [`Snowflake::next_ids`] call (2^24). [`Snowflake::fill`] accepts any
/// number.
pub const MAX_BATCH: u64 = 1 << 24;

/// Returns the size of a batch, where `n` is 1 to [`MAX_BATCH`].
///
/// # Errors
///
/// `invalid_option` for any other `n`.
pub fn batch_size(n: impl Into<Number>) -> Result<usize, Error> {
    let n = n.into().in_range("n", 1, MAX_BATCH)?;
    // No supported target has fewer than 32 bits.
    Ok(usize::try_from(n).unwrap_or(usize::MAX))
}

impl<C: Clock> Snowflake<C> {
    /// Fills `ids`. If blocked, it has filled as many as [`Blocked::filled`] reports, and
    /// [`fill_after`](Self::fill_after) fills the rest.
    #[doc(hidden)]
    pub fn poll_fill(&self, ids: &mut [u64]) -> Result<(), Blocked> {
        let mut part = Part::default();
        let filled = if ids.is_empty() { self.check_open() } else { self.take_rest(ids, &mut part) };
        filled.map_err(|stopped| Blocked { stopped, part })
    }

    /// Fills the rest of `ids` after [`poll_fill`](Self::poll_fill) was blocked, waiting up to `max_wait_ms`
    /// of real time between runs. If an error occurs partway, the IDs already written are lost: they are not
    /// issued again.
    #[doc(hidden)]
    pub fn fill_after<W: Wait>(
        &self,
        ids: &mut [u64],
        blocked: Blocked,
        wait: &mut W,
    ) -> Result<(), W::Error> {
        let Blocked { mut stopped, mut part } = blocked;
        loop {
            let count = part.rest(ids).unwrap_or_default().len() as u64;
            let taken = self.wait_and_take(count, stopped, wait)?;
            self.write(taken, ids, &mut part);
            match self.take_rest(ids, &mut part) {
                Ok(()) => return Ok(()),
                Err(again) => stopped = again,
            }
        }
    }

    /// Takes and writes the missing IDs of a batch, without waiting.
    #[inline]
    fn take_rest(&self, ids: &mut [u64], part: &mut Part) -> Result<(), Stopped> {
        while let Some(rest) = part.rest(ids) {
            let taken = self.take(rest.len() as u64, self.clock.unix_ms())?;
            self.write(taken, ids, part);
        }
        Ok(())
    }

    /// Fills `ids`, waiting with the caller's `wait` for up to `max_wait_ms` of real time between runs. If an
    /// error occurs partway, the IDs already written are lost: they are not issued again.
    ///
    /// # Errors
    ///
    /// The same as for `next_id`, or the error that interrupted the wait.
    pub fn fill_with<W: Wait>(&self, ids: &mut [u64], wait: &mut W) -> Result<(), W::Error> {
        self.poll_fill(ids).or_else(|blocked| self.fill_after(ids, blocked, wait))
    }
}

impl<C> Snowflake<C> {
    /// Writes the IDs of a run, which must fit in `ids`. If the lease has switched to another node, the batch
    /// starts over, because all its IDs must have the same node.
    pub(super) fn write(&self, taken: Taken, ids: &mut [u64], part: &mut Part) {
        // Leases need `std`.
        if cfg!(feature = "std") && taken.placed_node != part.placed_node {
            *part = Part { filled: 0, placed_node: taken.placed_node };
        }
        let run = taken.run;
        let count = usize::try_from(run.last - run.first).map_or(usize::MAX, |more| more.saturating_add(1));
        let end = part.filled.saturating_add(count);
        let mut rest = ids.get_mut(part.filled..end).unwrap_or_default();
        part.filled = end;
        let mut slot = run.first;
        while !rest.is_empty() {
            // Within a tick only the sequence changes, so the loop below needs one addition per ID.
            let left = self.sequence_mask - (slot & self.sequence_mask);
            let in_tick = usize::try_from(left).map_or(usize::MAX, |left| left.saturating_add(1));
            let (tick, others) = rest.split_at_mut(in_tick.min(rest.len()));
            let mut next = self.id_of(slot, taken.placed_node);
            for id in tick.iter_mut() {
                *id = next;
                // This may overflow after the last ID.
                next = next.wrapping_add(1 << self.sequence_shift);
            }
            slot = slot.wrapping_add(tick.len() as u64);
            rest = others;
        }
    }
}
