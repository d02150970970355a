//! A stand-in where there are no state files: without an operating system, on systems other than Unix, and on
//! machines without 64-bit atomics, where all processes would have to share a lock for the cursor.

use portable_atomic::AtomicU64;

use crate::clock::Clock;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::rule::{Rule, Tolerance};

/// A state file. There are none here.
#[derive(Debug)]
pub(crate) enum StateFile {}

/// A fault in a state file. There are none here.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StateFault {}

impl StateFile {
    pub(crate) fn cursor(&self) -> &Cursor {
        match *self {}
    }

    pub(crate) fn limit(&self) -> &'static AtomicU64 {
        match *self {}
    }

    pub(crate) fn may_pass(&self, _: u64, _: u64) -> bool {
        match *self {}
    }

    pub(crate) fn is_reserved(&self, _: u64) -> bool {
        match *self {}
    }

    pub(crate) fn reserve(&self, _: &Rule, _: u64, _: i64) -> Result<(), StateFault> {
        match *self {}
    }

    pub(crate) fn still_in_place(&self) -> Result<(), StateFault> {
        match *self {}
    }

    pub(crate) fn check_tolerance(&self, _: Tolerance) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn is_other(&self) -> Error {
        match *self {}
    }

    pub(crate) fn error_of(&self, _: StateFault) -> Error {
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

#[cfg(feature = "std")]
mod without_files {
    use std::path::Path;

    use super::StateFile;
    use crate::clock::Clock;
    use crate::error::{Error, error};
    use crate::layout::Key;
    use crate::rule::{Rule, Tolerance};
    use crate::word::Word;

    impl StateFile {
        pub(crate) fn open(
            path: &Path,
            _: &Key,
            _: Tolerance,
            _: &Rule,
            _: &impl Clock,
        ) -> Result<Self, Error> {
            Err(no_state_file(path))
        }

        pub(crate) fn is_at(&self, _: &Path) -> Result<bool, Error> {
            match *self {}
        }
    }

    /// Would reset a state file's cursor, but always fails with `state_file`, because this platform has no
    /// state files.
    pub fn reset_state(path: impl AsRef<Path>) -> Result<(), Error> {
        Err(no_state_file(path.as_ref()))
    }

    /// Would reset a state file's cursor to the caller's clock, but always fails with `state_file`, because
    /// this platform has no state files.
    pub fn reset_state_with_clock(path: impl AsRef<Path>, _: &impl Clock) -> Result<(), Error> {
        Err(no_state_file(path.as_ref()))
    }

    fn no_state_file(path: &Path) -> Error {
        error!(
            StateFile,
            "`%` cannot be a state file: this platform has none; give each process its own node instead",
            Word(Word::path(path))
        )
    }
}
#[cfg(feature = "std")]
pub use without_files::{reset_state, reset_state_with_clock};
