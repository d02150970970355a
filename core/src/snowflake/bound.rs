//! Moving a state file's bound, which a call waits for.

use crate::error::Error;
use crate::rule::{Rule, Run};
use crate::snowflake::Snowflake;
use crate::system::{StateFault, StateFile};
use crate::wait::Wait;

impl<C> Snowflake<C> {
    pub(super) fn bound_move_of(&self, run: Run, now_ms: i64) -> Option<BoundMove> {
        self.state_file.map(|file| BoundMove { file, rule: self.rule, to: run.last, now_ms })
    }

    /// Whether the bound on disk is past a run.
    pub(super) fn is_on_disk(&self, run: Run) -> bool {
        self.state_file.is_some_and(|file| file.is_on_disk(run.last))
    }
}

/// The disk write that a call which stopped at a state file's bound waits for, from [`Polled`](crate::Polled).
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct BoundMove {
    file: &'static StateFile,
    rule: Rule,
    to: u64,
    now_ms: i64,
}

impl BoundMove {
    /// Moves the bound, on disk first.
    ///
    /// # Errors
    ///
    /// `state_file`.
    pub fn run(self) -> Result<(), Error> {
        self.on_disk().map_err(|fault| self.file.error_of(fault))
    }

    pub(super) fn on_disk(self) -> Result<(), StateFault> {
        self.file.move_bound(&self.rule, self.to, self.now_ms)
    }

    pub(super) fn run_in(self, wait: &mut impl Wait) -> Result<(), StateFault> {
        let mut moved = Ok(());
        wait.block_on(&mut || moved = self.on_disk());
        moved
    }
}
