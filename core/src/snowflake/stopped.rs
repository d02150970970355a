//! The reasons a call takes no slot, and the corresponding errors.

use crate::clock::ClockError;
use crate::error::{Error, error};
use crate::lease::LeaseUse;
use crate::limit;
use crate::rule::{Run, Stop, ms_until};
use crate::snowflake::Snowflake;
use crate::system::StateFault;

/// A call that found no free slot.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Blocked {
    pub(super) stopped: Stopped,
    pub(super) part: Part,
}

impl From<Stopped> for Blocked {
    fn from(stopped: Stopped) -> Self {
        Self { stopped, part: Part::default() }
    }
}

impl Blocked {
    /// How many of a batch's IDs have already been written.
    pub const fn filled(&self) -> usize {
        self.part.filled
    }
}

/// How many of a batch's IDs have been written, and the bits of their node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Part {
    pub(super) filled: usize,
    pub(super) placed_node: u64,
}

impl Part {
    /// Returns the part of a batch that is still to be filled.
    pub(super) fn rest<'a>(&self, ids: &'a mut [u64]) -> Option<&'a mut [u64]> {
        ids.get_mut(self.filled..).filter(|rest| !rest.is_empty())
    }
}

/// The reason `take` took nothing.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stopped {
    ByRule {
        stop: Stop,
        now_ms: i64,
    },
    Clock(ClockError),
    Forked,
    Closed,
    State(StateFault),
    /// This run, which follows slot `last`, must be reserved in the state file before it is taken.
    Unreserved {
        last: u64,
        run: Run,
        now_ms: i64,
    },
    /// The lease must be renewed, or another node must be leased.
    LeaseEnded,
}

impl<C> Snowflake<C> {
    pub(super) fn error_of(&self, stopped: Stopped) -> Error {
        match stopped {
            Stopped::ByRule { stop, now_ms } => self.error_of_stop(stop, now_ms),
            Stopped::Clock(error) => error.into(),
            Stopped::Forked => limit::forked(),
            Stopped::Closed => {
                error!(Closed, "this Snowflake is closed and issues no more IDs; build another")
            }
            // This can only happen with a state file.
            Stopped::State(fault) => {
                self.state_file.map_or_else(|| exhausted(0), |file| file.error_of(fault))
            }
            Stopped::Unreserved { .. } => exhausted(0),
            // This can only happen with a lease.
            Stopped::LeaseEnded => self.lease.as_ref().map_or_else(|| exhausted(0), LeaseUse::lost),
        }
    }

    fn error_of_stop(&self, stop: Stop, now_ms: i64) -> Error {
        match stop {
            Stop::OutOfRange => self.layout.out_of_range(now_ms.into()),
            Stop::Ended => error!(
                TimeOutOfRange,
                "the layout's last ID is used up; its time ends at % (Unix ms)",
                Number(self.layout.ends_at_ms())
            ),
            Stop::Backwards { behind_ms, retry_at_ms }
            | Stop::Exhausted { behind_ms: Some(behind_ms), retry_at_ms } => {
                // `behind_ms` and `retry_after_ms` read the first and the last value.
                error!(
                    ClockMovedBackwards,
                    "the clock is % ms behind the last ID (max_backward_ms is %); the next ID can come in % ms",
                    Number(behind_ms),
                    Number(self.max_backward_ms.into()),
                    Number(ms_until(now_ms, retry_at_ms))
                )
            }
            // The caller's clock often stands still in tests.
            Stop::Exhausted { behind_ms: None, retry_at_ms } if self.shared.is_none() => error!(
                SequenceExhausted,
                "the sequence of this tick is used up; the next ID can come once the caller's clock has moved on by % ms from % \
                 (Unix ms)",
                Number(ms_until(now_ms, retry_at_ms)),
                Number(u64::try_from(now_ms).unwrap_or(0))
            ),
            Stop::Exhausted { behind_ms: None, retry_at_ms } => exhausted(ms_until(now_ms, retry_at_ms)),
        }
    }
}

fn exhausted(retry_after_ms: u64) -> Error {
    error!(
        SequenceExhausted,
        "the sequence of this tick is used up; the next ID can come in % ms",
        Number(retry_after_ms)
    )
}
