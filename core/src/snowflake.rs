//! The Snowflake: combines the cursor's rule with a clock, a layout and waiting.

use core::fmt;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use portable_atomic::{AtomicU64, Ordering};

use crate::clock::{BuiltinClock, Clock};
use crate::cursor::Cursor;
use crate::decode::Decoded;
use crate::error::Error;
use crate::layout::Layout;
#[cfg(feature = "std")]
use crate::lease::GiveBack;
use crate::lease::LeaseUse;
use crate::limit::Limit;
use crate::number::Number;
use crate::options::Options;
use crate::rule::{Rule, Taken};
#[cfg(feature = "std")]
use crate::system::ThreadWait;
use crate::system::{Process, StateFile};

mod batch;
mod build;
#[cfg(feature = "std")]
mod iter;
mod local;
mod polled;
mod reservation;
mod stats;
mod stopped;
mod take;
mod wait;
#[cfg(all(feature = "std", not(loom)))]
mod words;

pub use batch::{MAX_BATCH, batch_size};
#[cfg(feature = "std")]
pub use iter::Iter;
pub use local::LocalSnowflake;
pub use polled::{Polled, Waiting};
pub use reservation::Reservation;
pub use stats::Stats;
pub use stopped::Blocked;
#[cfg(all(feature = "std", not(loom)))]
pub use words::Words;

/// Issues unique, time-ordered 64-bit IDs.
///
/// Threads share a Snowflake by reference, without a lock. [`into_local`](Self::into_local) turns it into a
/// Snowflake for a single owner.
///
/// Two Snowflakes in a process share a cursor, so neither repeats the other's IDs, if they have the same
/// epoch and tick, the same timestamp and sequence positions and widths, and the same node bits. The names of
/// the layouts do not matter. Layouts that split the bits differently are separate systems, and their IDs may
/// collide. A Snowflake on a caller's clock has its own cursor.
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
    /// The node's bits at their positions, and the node. A lease may change both.
    placed_node: AtomicU64,
    node: AtomicU64,
    timestamp_shift: u32,
    sequence_shift: u32,
    sequence_bits: u32,
    sequence_mask: u64,
    max_wait_ms: u32,
    max_backward_ms: u32,
    /// The cursor in the process's registry or in a state file. If `None`, the clock is the caller's, and the
    /// cursor is `own`.
    shared: Option<&'static Cursor>,
    own: Cursor,
    state_file: Option<&'static StateFile>,
    limit: Limit,
    made_in: &'static Process,
    clock: C,
    layout: Layout,
    lease: Option<LeaseUse>,
}

impl Snowflake {
    /// Returns the options for a new Snowflake, with their defaults.
    pub fn builder() -> Options {
        Options::default()
    }
}

impl<C> Snowflake<C> {
    /// Closes this Snowflake: from now on, every call fails with `closed`, including calls that are already
    /// waiting. A call that has already taken its slots returns them. Other Snowflakes on the same cursor
    /// keep working, and the process keeps the cursor and its state file. Dropping a Snowflake does not
    /// affect others either.
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
        if let Some(lease) = &self.lease {
            lease.close();
        }
    }

    /// Like [`close`](Self::close), but returns the part that may wait for the lease's store, so that it can
    /// run on another thread.
    #[cfg(feature = "std")]
    #[doc(hidden)]
    pub fn close_later(&self) -> Option<GiveBack> {
        self.limit.close();
        self.lease.as_ref().and_then(LeaseUse::leave)
    }

    /// The layout.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The values of all node fields combined into one number, highest field first.
    ///
    /// With a lease, the node may change after the lease is lost, so this is the node of either the last ID
    /// or the next one. In a forked child, this is still the parent's node.
    pub fn node(&self) -> u64 {
        self.lease.as_ref().and_then(LeaseUse::node).unwrap_or_else(|| self.node.load(Ordering::Relaxed))
    }

    /// The maximum time a call waits, in ms.
    #[doc(hidden)]
    pub const fn max_wait_ms(&self) -> u32 {
        self.max_wait_ms
    }

    /// The clock.
    pub const fn clock(&self) -> &C {
        &self.clock
    }

    /// Decodes an ID with this Snowflake's layout.
    ///
    /// # Errors
    ///
    /// `invalid_id` if the ID does not fit the layout.
    pub fn decode(&self, id: impl Into<Number>) -> Result<Decoded, Error> {
        self.layout.decode(id)
    }

    #[inline(always)]
    fn cursor(&self) -> &Cursor {
        self.shared.unwrap_or(&self.own)
    }

    #[inline(always)]
    const fn id_of(&self, slot: u64, placed_node: u64) -> u64 {
        let ticks = slot >> self.sequence_bits;
        let sequence = slot & self.sequence_mask;
        ticks << self.timestamp_shift | sequence << self.sequence_shift | placed_node
    }

    const fn first_of(&self, taken: Taken) -> u64 {
        self.id_of(taken.run.first, taken.placed_node)
    }

    #[inline(always)]
    fn placed_node(&self) -> u64 {
        self.placed_node.load(Ordering::Relaxed)
    }

    /// Returns the rule for this Snowflake's current node.
    #[inline]
    fn present_rule(&self) -> Rule {
        // Leases need `std`.
        if cfg!(feature = "std") { self.rule.of_node(self.node.load(Ordering::Relaxed)) } else { self.rule }
    }
}

impl<C: Clock> Snowflake<C> {
    /// Returns the next ID, or an error immediately if none is available yet.
    ///
    /// # Errors
    ///
    /// `sequence_exhausted` if this tick's sequence is used up, and the errors of `next_id`.
    #[inline]
    pub fn try_next_id(&self) -> Result<u64, Error> {
        self.poll_next_id().or_else(|blocked| self.try_next_id_after(blocked))
    }
}

#[cfg(feature = "std")]
impl<C: Clock> Snowflake<C> {
    /// Returns the next ID. If the tick's sequence is used up, this waits up to `max_wait_ms` of real time.
    ///
    /// # Errors
    ///
    /// - `sequence_exhausted` if no ID became available during that wait.
    /// - `clock_moved_backwards` if no ID became available during that wait because the clock stepped back.
    ///   After a step back of more than `max_backward_ms`, this does not wait.
    /// - `time_out_of_range` before the layout's epoch and after its end.
    /// - `clock_failed` if the caller's clock returned an error.
    /// - `forked` in a child of the process that built the Snowflake, without a state file.
    /// - `state_file` if the state file was moved or deleted, or cannot be written.
    /// - `closed` after [`close`](Self::close).
    #[inline]
    pub fn next_id(&self) -> Result<u64, Error> {
        // The same as `next_id_with`, except that the `ThreadWait` is created only if the call has to wait.
        self.poll_next_id().or_else(|blocked| self.next_id_after(blocked, &mut ThreadWait::new()))
    }

    /// Fills `ids`, waiting up to `max_wait_ms` of real time between runs. If an error occurs partway, the
    /// IDs already written are lost: they are not issued again.
    ///
    /// # Errors
    ///
    /// The same as for [`next_id`](Self::next_id).
    pub fn fill(&self, ids: &mut [u64]) -> Result<(), Error> {
        self.fill_with(ids, &mut ThreadWait::new())
    }

    /// Returns the next `n` IDs, where `n` is 1 to [`MAX_BATCH`].
    ///
    /// # Errors
    ///
    /// The same as for [`fill`](Self::fill), plus `invalid_option` for any other `n`.
    pub fn next_ids(&self, n: impl Into<Number>) -> Result<std::vec::Vec<u64>, Error> {
        let mut ids = std::vec![0; batch_size(n)?];
        self.fill(&mut ids)?;
        Ok(ids)
    }
}

impl<C> fmt::Debug for Snowflake<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snowflake {{ layout: {}, node: {} }}", self.layout, self.node())
    }
}
