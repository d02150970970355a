//! The cursor: the last slot taken, in one word that threads and processes share.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use portable_atomic::{AtomicU64, Ordering};

/// The last slot taken. It only grows.
///
/// A cursor can live in a state file, so its layout in memory is fixed and every bit pattern is valid.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Cursor {
    pub(crate) slot: AtomicU64,
    pub(crate) waits: AtomicU64,
    pub(crate) rollbacks: AtomicU64,
    /// The tick in which the latest of the `rollbacks` was seen, so that each step back is counted once.
    rollback_tick: AtomicU64,
    /// The initial value of `slot`. Nothing has been taken while `slot` still equals it.
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

    /// Returns the last slot taken. Uses Acquire ordering, because a caller that loads it twice reads the
    /// clock in between.
    #[inline]
    pub(crate) fn load(&self) -> u64 {
        self.slot.load(Ordering::Acquire)
    }

    /// Takes all slots up to `to` if `from` is still the last slot taken.
    #[inline]
    pub(crate) fn advance(&self, from: u64, to: u64) -> bool {
        self.slot.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Like [`advance`](Self::advance), but without a locked instruction. The caller's lock keeps other calls
    /// from moving the cursor between its `load` and this call.
    #[inline]
    pub(crate) fn advance_under_lock(&self, from: u64, to: u64) -> bool {
        debug_assert_eq!(self.load(), from, "another call moved the cursor without the lock");
        self.slot.store(to, Ordering::Release);
        true
    }

    /// Returns true if any slot has been taken since the cursor was created.
    pub(crate) fn has_issued(&self) -> bool {
        !self.began_at(self.load())
    }

    /// Returns true if a cursor at `last` has not issued anything yet.
    pub(crate) fn began_at(&self, last: u64) -> bool {
        last == self.first.load(Ordering::Relaxed)
    }

    /// Uses up all slots.
    pub(crate) fn use_up(&self) {
        self.slot.store(u64::MAX, Ordering::Release);
    }

    pub(crate) fn saw_rollback(&self, last_tick: u64) {
        if self.rollback_tick.swap(last_tick, Ordering::Relaxed) != last_tick {
            self.rollbacks.fetch_add(1, Ordering::Relaxed);
        }
    }
}
