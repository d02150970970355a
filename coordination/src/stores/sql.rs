//! What the SQL stores have in common.
//!
//! Records are in the table `polyflake_records`.

pub(super) mod counters;
pub(super) mod records;

use core::time::Duration;
use std::time::Instant;

use tokio::time::sleep;

use crate::store::StoreError;

/// How long the server lets a statement wait for another's lock: the statements below say so in the database's own words.
pub(super) const LONGEST_LOCK: Duration = Duration::from_secs(1);

/// How often a call is made that meets with others' changes, each time at once: one of those that meet succeeds each time.
pub(super) const MOST_TRIES: u32 = 50;

/// How long an attempt takes where nobody said so.
pub(super) const ATTEMPT: Duration = Duration::from_secs(5);

/// A connection that was idle for longer than a lease goes without a renewal may be dead.
pub(super) const fn longest_idle(attempt: Duration) -> Duration {
    attempt.saturating_mul(2)
}

/// Calls that were ended before the server answered: it may be at work for each of them still, on another connection.
#[derive(Debug, Default)]
pub(super) struct Ended {
    last: Option<Instant>,
    before: Option<Instant>,
}

impl Ended {
    pub(super) fn add(&mut self) {
        self.before = self.last.replace(Instant::now());
    }

    /// Until one more connection may be opened: beside one that may be busy, but not beside two.
    pub(super) async fn make_room(&self) {
        if let Some(before) = self.before {
            sleep((before + LONGEST_LOCK).saturating_duration_since(Instant::now())).await;
        }
    }
}

/// Why none of several hosts will do.
pub(super) fn none_of(mut failures: Vec<StoreError>) -> StoreError {
    if failures.len() == 1 {
        if let Some(only) = failures.pop() {
            return only;
        }
    }
    let texts: Vec<_> = failures.iter().map(StoreError::text).collect();
    let text = texts.join("; ");
    // Where one may answer later, the address is not wrong.
    if failures.iter().all(|failure| matches!(failure, StoreError::Refused(_))) {
        StoreError::Refused(text)
    } else {
        StoreError::Unreachable(text)
    }
}

/// What ends a call early.
pub(super) enum Fault<E> {
    Client(E),
    Store(StoreError),
}

impl<E> From<StoreError> for Fault<E> {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl<E> Fault<E> {
    /// With where it was.
    pub(super) fn explain(self, at: &str, explain: impl FnOnce(&str, &E) -> StoreError) -> StoreError {
        match self {
            Self::Client(error) => explain(at, &error),
            Self::Store(StoreError::Unreachable(text)) => StoreError::Unreachable(format!("{at}: {text}")),
            Self::Store(StoreError::Refused(text)) => StoreError::Refused(format!("{at}: {text}")),
        }
    }
}

pub(super) fn read_only() -> StoreError {
    StoreError::Refused("a read-only replica: the primary is needed".into())
}

/// For a column: databases have no unsigned 64-bit integers that all of their tools read.
pub(super) fn bigint(value: u64) -> Result<i64, StoreError> {
    i64::try_from(value)
        .map_err(|_| StoreError::Refused(format!("{value} is too large for a column of 64 bits")))
}

/// From a column.
pub(super) fn whole(value: i64) -> Result<u64, StoreError> {
    u64::try_from(value)
        .map_err(|_| StoreError::Refused(format!("a column holds {value}, which is negative")))
}

pub(super) fn other_format(found: &str) -> StoreError {
    StoreError::Refused(format!("the tables have {found}, which this version of Polyflake does not know"))
}
