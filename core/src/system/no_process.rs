//! Where there is no operating system, there is one process, and it has no children.

use portable_atomic::AtomicU64;

/// The only one.
#[derive(Debug)]
pub(crate) struct Process;

static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);

impl Process {
    pub(crate) fn current() -> &'static Self {
        &Self
    }

    #[expect(clippy::unused_self, reason = "as where there are children")]
    pub(crate) fn is_alive(&self) -> bool {
        true
    }

    #[expect(clippy::unused_self, reason = "as where there are children")]
    pub(crate) fn limit(&self) -> &'static AtomicU64 {
        &LIMIT
    }
}
