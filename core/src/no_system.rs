//! A stand-in for `system` in builds without an operating system: a single process without children, threads
//! or files.

use core::time::Duration;

use portable_atomic::AtomicU64;

use crate::clock::TimeSource;
use crate::layout::ones;
use crate::rule::Taken;

#[path = "system/no_state_file.rs"]
mod state_file;

pub(crate) use state_file::{StateFault, StateFile};

/// The operating system's time. It needs the `std` feature.
#[derive(Debug)]
pub enum StdTime {}

impl TimeSource for StdTime {
    fn wall_ns(&self) -> i64 {
        match *self {}
    }

    fn monotonic_ns(&self) -> i64 {
        match *self {}
    }
}

/// The path of a state file, which cannot exist here.
#[derive(Debug, Clone)]
pub(crate) enum StatePath {}

/// The only process.
#[derive(Debug)]
pub(crate) struct Process;

#[expect(clippy::unused_self, reason = "as where there are children")]
impl Process {
    pub(crate) fn current() -> &'static Self {
        &Self
    }

    pub(crate) fn is_alive(&self) -> bool {
        true
    }

    pub(crate) fn wait_for(&self, _: (usize, usize), _: u64) -> Turn {
        Turn
    }

    pub(crate) fn poll_for(&self, _: (usize, usize), _: u64) -> Turn {
        Turn
    }

    /// Returns the last slot of layouts whose slots have `slot_bits` bits.
    pub(crate) fn limit(&self, slot_bits: u32) -> &'static AtomicU64 {
        static LIMITS: [AtomicU64; 65] = limits();
        let [.., last] = &LIMITS;
        usize::try_from(slot_bits).ok().and_then(|bits| LIMITS.get(bits)).unwrap_or(last)
    }
}

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler only")]
const fn limits() -> [AtomicU64; 65] {
    let mut limits = [const { AtomicU64::new(0) }; 65];
    let mut bits = 0;
    while bits < 65 {
        limits[bits as usize] = AtomicU64::new(ones(bits));
        bits += 1;
    }
    limits
}

/// The only waiting call.
#[derive(Debug)]
pub(crate) struct Turn;

#[expect(clippy::unused_self, reason = "as where there are threads")]
impl Turn {
    pub(crate) const fn wants(&self, _: u64) {}

    pub(crate) const fn leads(&self) -> bool {
        true
    }

    pub(crate) const fn longest_pause() -> Duration {
        Duration::MAX
    }

    pub(crate) const fn place(&self) -> &Self {
        self
    }

    pub(crate) const fn wait(&self, _: Duration) {}

    pub(crate) const fn given(&self) -> Option<Taken> {
        None
    }

    pub(crate) const fn others(&self) -> Others {
        Others
    }
}

/// The other waiting calls. Here, there are never any.
#[derive(Debug)]
pub(crate) struct Others;

#[expect(clippy::unused_self, reason = "as where there are threads")]
impl Others {
    pub(crate) const fn wanted(&self) -> u64 {
        0
    }

    pub(crate) const fn share(self, taken: Taken) -> Taken {
        taken
    }
}
