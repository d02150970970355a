//! Where there are no threads, a call that waits is the only one.

use core::time::Duration;

use crate::rule::Run;

pub(crate) type Key = (usize, usize);

/// The only call that waits.
#[derive(Debug)]
pub(crate) struct Turn;

#[expect(clippy::unused_self, reason = "as where there are threads")]
impl Turn {
    pub(crate) const fn join(_: Key, _: u64) -> Self {
        Self
    }

    pub(crate) const fn leads(&self) -> bool {
        true
    }

    pub(crate) const fn longest_pause() -> Duration {
        Duration::MAX
    }

    pub(crate) const fn wait(&self) {}

    pub(crate) const fn given(&self) -> Option<Run> {
        None
    }

    pub(crate) const fn others(&self) -> Others {
        Others
    }
}

/// There are none.
#[derive(Debug)]
pub(crate) struct Others;

#[expect(clippy::unused_self, reason = "as where there are threads")]
impl Others {
    pub(crate) const fn wanted(&self) -> u64 {
        0
    }

    pub(crate) const fn share(self, run: Run) -> Run {
        run
    }
}
