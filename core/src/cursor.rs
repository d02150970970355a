//! The cursor: the last slot taken, in one word that threads and processes share.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use portable_atomic::{AtomicU64, Ordering};

/// The last slot taken. It only ever grows.
///
/// It may be in a state file: its form is fixed, and every bit pattern is valid.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Cursor {
    pub(crate) slot: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) rollbacks: AtomicU64,
    /// The tick in which the last of `rollbacks` was seen, so that one step back counts once.
    rollback_tick: AtomicU64,
    /// Where it began: nothing was taken while it is still there.
    pub(crate) first: AtomicU64,
}

impl Cursor {
    pub(crate) fn new(first: u64) -> Self {
        Self {
            slot: AtomicU64::new(first),
            waits: AtomicU64::new(0),
            rollbacks: AtomicU64::new(0),
            rollback_tick: AtomicU64::new(u64::MAX),
            first: AtomicU64::new(first),
        }
    }

    /// The last slot taken. Acquire, because a caller that looks twice reads the clock after it.
    #[inline]
    pub(crate) fn load(&self) -> u64 {
        self.slot.load(Ordering::Acquire)
    }

    /// Takes all slots up to `to`, if `from` is still the last one taken.
    #[inline]
    pub(crate) fn advance(&self, from: u64, to: u64) -> bool {
        self.slot.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// As [`advance`](Self::advance), without a locked instruction. The caller's lock keeps others from moving the cursor
    /// between its `load` and this.
    #[inline]
    pub(crate) fn advance_under_lock(&self, from: u64, to: u64) -> bool {
        debug_assert_eq!(self.load(), from, "another call moved the cursor without the lock");
        self.slot.store(to, Ordering::Release);
        true
    }

    /// Whether any slot was taken since the cursor was made.
    pub(crate) fn has_issued(&self) -> bool {
        !self.began_at(self.load())
    }

    /// Whether a cursor that is at `last` has issued nothing yet.
    pub(crate) fn began_at(&self, last: u64) -> bool {
        last == self.first.load(Ordering::Relaxed)
    }

    /// Leaves nothing to take.
    pub(crate) fn use_up(&self) {
        self.slot.store(u64::MAX, Ordering::Release);
    }

    pub(crate) fn saw_rollback(&self, last_tick: u64) {
        if self.rollback_tick.swap(last_tick, Ordering::Relaxed) != last_tick {
            self.rollbacks.fetch_add(1, Ordering::Relaxed);
        }
    }
}
