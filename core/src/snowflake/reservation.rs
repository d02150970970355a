//! Reserving slots on disk, in a state file, before they are taken.

use crate::error::Error;
use crate::rule::{Rule, Run};
use crate::snowflake::Snowflake;
use crate::system::{StateFault, StateFile};
use crate::wait::Wait;

impl<C> Snowflake<C> {
    /// Returns the reservation for a run, or `None` without a state file.
    pub(super) fn reservation_of(&self, run: Run, now_ms: i64) -> Option<Reservation> {
        self.state_file.map(|file| Reservation { file, rule: self.rule, to: run.last, now_ms })
    }

    /// Returns true if a run is reserved on disk.
    pub(super) fn is_reserved(&self, run: Run) -> bool {
        self.state_file.is_some_and(|file| file.is_reserved(run.last))
    }
}

/// The disk write that a call waits for if its slots are not reserved in the state file yet, from
/// [`Polled`](crate::Polled).
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Reservation {
    file: &'static StateFile,
    rule: Rule,
    to: u64,
    now_ms: i64,
}

impl Reservation {
    /// Writes the reservation to disk.
    ///
    /// # Errors
    ///
    /// `state_file`.
    pub fn run(self) -> Result<(), Error> {
        self.write().map_err(|fault| self.file.error_of(fault))
    }

    pub(super) fn write(self) -> Result<(), StateFault> {
        self.file.reserve(&self.rule, self.to, self.now_ms)
    }

    pub(super) fn write_in(self, wait: &mut impl Wait) -> Result<(), StateFault> {
        let mut written = Ok(());
        wait.block_on(&mut || written = self.write());
        written
    }
}
