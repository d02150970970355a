//! The last slot that a Snowflake may take on the fast path, without further checks.

#[cfg(loom)]
use loom::sync::atomic::AtomicPtr;
#[cfg(not(loom))]
use portable_atomic::AtomicPtr;
use portable_atomic::{AtomicU64, Ordering};

use crate::error::Error;

/// A pointer to the word that holds the limit. On the hot path, a single comparison thus covers every reason
/// to leave it: the first ID, which is taken differently; `close`; a fork; the end of the slots reserved in a
/// state file.
#[derive(Debug)]
pub(crate) struct Limit {
    word: AtomicPtr<AtomicU64>,
}

/// Both words hold a value below every slot and are never written. Only their addresses differ.
static NOT_STARTED: AtomicU64 = AtomicU64::new(0);
static CLOSED: AtomicU64 = AtomicU64::new(0);

impl Limit {
    /// The limit of a Snowflake that has not issued its first ID yet.
    pub(crate) fn not_started() -> Self {
        Self::of(&NOT_STARTED)
    }

    pub(crate) fn of(word: &'static AtomicU64) -> Self {
        Self { word: AtomicPtr::new(address(word)) }
    }

    /// Returns the last slot that may be taken without further checks. It is at most the layout's last slot.
    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        let word = self.word.load(Ordering::Acquire);
        // SAFETY: the pointer only ever points to words that live as long as the process.
        #[allow(unsafe_code)]
        unsafe { &*word }.load(Ordering::Acquire)
    }

    pub(crate) fn has_started(&self) -> bool {
        self.word.load(Ordering::Acquire) != address(&NOT_STARTED)
    }

    /// Uses the limit in `word` from now on, if the Snowflake has not started yet.
    pub(crate) fn start(&self, word: &'static AtomicU64) {
        // This fails if the Snowflake has been closed.
        let _ = self.word.compare_exchange(
            address(&NOT_STARTED),
            address(word),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
    }

    /// Uses the limit in `word` from now on, unless the Snowflake is closed.
    pub(crate) fn follow(&self, word: &'static AtomicU64) {
        let follow = |before| (before != address(&CLOSED)).then_some(address(word));
        let _ = self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, follow);
    }

    /// Sets the limit below every slot from now on.
    pub(crate) fn close(&self) {
        self.word.store(address(&CLOSED), Ordering::Release);
    }

    /// The address of the pointer.
    #[cfg(all(feature = "std", not(loom)))]
    pub(crate) const fn pointer(&self) -> *const *const u64 {
        self.word.as_ptr().cast_const().cast()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.word.load(Ordering::Acquire) == address(&CLOSED)
    }
}

const fn address(word: &'static AtomicU64) -> *mut AtomicU64 {
    core::ptr::from_ref(word).cast_mut()
}

/// The error for using anything that belongs to the parent process.
#[cfg(feature = "std")]
pub(crate) fn forked() -> Error {
    crate::error::error!(
        Forked,
        "build the Snowflake in the child process, with another node: the parent process used this node, or one with the same \
         IDs, and two processes on one node repeat IDs. Processes may share a node if all of them open its state file from the start"
    )
}

/// Without an operating system there is no parent process, so nobody would ever see a longer message.
#[cfg(not(feature = "std"))]
pub(crate) fn forked() -> Error {
    use crate::error::ErrorCode::Forked;
    Error::new(Forked, Forked.message(), &[])
}
