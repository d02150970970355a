//! Where there are no state files: elsewhere than on Unix, and on machines without 64-bit atomics, where a cursor
//! would need a lock that every process shares.

use portable_atomic::AtomicU64;
use std::path::Path;

use super::registry::Key;
use crate::clock::Clock;
use crate::error::{Error, StateFault};
use crate::options::Resolved;
use crate::rule::{Cursor, Rule};

/// There is none.
#[derive(Debug)]
pub(crate) enum StateFile {}

impl StateFile {
    pub(crate) fn open(path: &Path, _: &Key, _: &Resolved, _: &Rule, _: &impl Clock) -> Result<Self, Error> {
        Err(Error::state(path, StateFault::NoPlatform))
    }

    pub(crate) fn cursor(&self) -> &Cursor {
        match *self {}
    }

    pub(crate) fn limit(&self) -> &'static AtomicU64 {
        match *self {}
    }

    pub(crate) fn may_pass(&self, _: u64, _: u64) -> bool {
        match *self {}
    }

    pub(crate) fn move_bound(&self, _: &Rule, _: u64, _: i64) -> Result<(), StateFault> {
        match *self {}
    }

    pub(crate) fn still_in_place(&self) -> Result<(), StateFault> {
        match *self {}
    }

    pub(crate) fn is_at(&self, _: &Path) -> Result<bool, Error> {
        match *self {}
    }

    pub(crate) fn same_bounds(&self, _: &Resolved) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn path(&self) -> &Path {
        match *self {}
    }

    pub(crate) fn refusal(&self, _: StateFault) -> Error {
        match *self {}
    }

    pub(crate) fn check_lead(&self, _: &Rule, _: i64) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn floor(&self) -> u64 {
        match *self {}
    }

    pub(crate) fn has_begun(&self) {
        match *self {}
    }

    pub(crate) fn was_reset(&self) -> bool {
        match *self {}
    }

    pub(crate) fn begin(&mut self, _: &Rule, _: &impl Clock) -> Result<(), Error> {
        match *self {}
    }
}

/// Sets a state file's cursor back: `state_file`, for this platform has none.
pub fn reset_state(path: impl AsRef<Path>) -> Result<(), Error> {
    Err(Error::state(path.as_ref(), StateFault::NoPlatform))
}

/// Sets a state file's cursor back to a clock of the caller's: `state_file`, for this platform has none.
pub fn reset_state_with_clock(path: impl AsRef<Path>, _: &impl Clock) -> Result<(), Error> {
    Err(Error::state(path.as_ref(), StateFault::NoPlatform))
}
