//! What the SQL stores have in common.
//!
//! Records are in the table `polyflake_records`.

pub(super) mod counters;
pub(super) mod records;

use core::time::Duration;
use std::time::Instant;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

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

/// How a store comes by its next connection.
///
/// Opening and checking takes a dozen round trips. On a loaded machine, or far from the server, a single attempt may be too short for
/// that, so it goes on between attempts.
#[derive(Debug)]
pub(super) struct Opening<C> {
    /// What came of it, and when.
    task: JoinSet<(Result<C, StoreError>, Instant)>,
    /// When the last two calls ended before the server answered: it may still be at work for each, on another connection.
    ended: [Option<Instant>; 2],
}

impl<C> Default for Opening<C> {
    fn default() -> Self {
        Self { task: JoinSet::new(), ended: [None; 2] }
    }
}

impl<C: Send + 'static> Opening<C> {
    /// A connection is given up although the server has not answered.
    pub(super) fn gave_up_busy(&mut self) {
        self.ended = [self.ended[1], Some(Instant::now())];
    }

    /// The connection that is being opened, or else a new one. Opening is given up after the time of three attempts. It begins beside one
    /// connection that may be busy, but not beside two.
    pub(super) async fn opened(
        &mut self,
        attempt: Duration,
        at: &str,
        open: impl Future<Output = Result<C, StoreError>> + Send + 'static,
    ) -> Result<C, StoreError> {
        // What came of it long ago says nothing of the present.
        if let Some(Ok((opened, at))) = self.task.try_join_next() {
            if at.elapsed() <= longest_idle(attempt) {
                return opened;
            }
        }
        if self.task.is_empty() {
            let begins = self.ended[0].map(|ended| ended + LONGEST_LOCK);
            let (longest, at) = (attempt * 3, at.to_owned());
            self.task.spawn(async move {
                if let Some(begins) = begins {
                    sleep(begins.saturating_duration_since(Instant::now())).await;
                }
                let why = format!("{at}: no connection within {} ms", longest.as_millis());
                let opened = timeout(longest, open).await.unwrap_or(Err(StoreError::Unreachable(why)));
                (opened, Instant::now())
            });
        }
        match self.task.join_next().await {
            Some(Ok((opened, _))) => opened,
            _ => Err(StoreError::Unreachable(format!("{at}: the task that connects ended"))),
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
