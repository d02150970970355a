//! The parts that the SQL stores have in common.
//!
//! Records are stored in the table `polyflake_records`.

pub(super) mod counters;
pub(super) mod records;

use core::time::Duration;
use std::time::Instant;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::store::StoreError;

/// The maximum time that a statement waits for another client's lock. Each SQL store sets this limit in the
/// database's own way.
pub(super) const LONGEST_LOCK: Duration = Duration::from_secs(1);

/// The maximum number of times that a call is attempted, without pauses, while it conflicts with other
/// clients' changes. Each time, one of the conflicting calls succeeds.
pub(super) const MOST_TRIES: u32 = 50;

/// The time limit for an attempt, unless the address sets a different one.
pub(super) const ATTEMPT: Duration = Duration::from_secs(5);

/// Returns the maximum time that a connection may be idle. After a pause longer than the time between
/// renewals, the connection may be dead.
pub(super) const fn longest_idle(attempt: Duration) -> Duration {
    attempt.saturating_mul(2)
}

/// Opens a store's next connection.
///
/// Opening and checking a connection takes a dozen round trips. On a loaded machine, or far from the server,
/// a single attempt may be too short for that, so opening continues between attempts. A lost network packet
/// looks the same, so after an attempt without an answer, a second connection is opened alongside the first.
/// The store takes the connection that is ready first.
#[derive(Debug)]
pub(super) struct Opening<C> {
    /// The tasks that open connections. Each task returns its result and the time at which it finished.
    tasks: JoinSet<(Result<C, StoreError>, Instant)>,
    /// The time when the last task began.
    begun: Option<Instant>,
    /// The times at which the last two unanswered calls were abandoned. The server may still be working on
    /// either of them, on another connection.
    ended: [Option<Instant>; 2],
}

impl<C> Default for Opening<C> {
    fn default() -> Self {
        Self { tasks: JoinSet::new(), begun: None, ended: [None; 2] }
    }
}

impl<C: Send + 'static> Opening<C> {
    /// Notes that the store gave up on a connection before the server had answered.
    pub(super) fn gave_up_busy(&mut self) {
        self.ended = [self.ended[1], Some(Instant::now())];
    }

    /// Returns a connection that is already being opened, or opens a new one. Gives up on opening a
    /// connection after three times the length of an attempt. Opens a connection alongside one that may be
    /// busy, but not alongside two.
    pub(super) async fn opened(
        &mut self,
        attempt: Duration,
        at: &str,
        open: impl Future<Output = Result<C, StoreError>> + Send + 'static,
    ) -> Result<C, StoreError> {
        let is_silent = self.begun.is_some_and(|begun| begun.elapsed() >= attempt);
        let mut come = self.has_come(attempt);
        if come.is_none() && (self.tasks.is_empty() || (self.tasks.len() == 1 && is_silent)) {
            self.begin(attempt, at, open);
        }
        loop {
            match come {
                Some(Err(error)) if self.tasks.is_empty() || matches!(error, StoreError::Refused(_)) => {
                    return Err(error);
                }
                Some(Ok(opened)) => {
                    self.tasks = JoinSet::new();
                    return Ok(opened);
                }
                _ => {}
            }
            come = match self.tasks.join_next().await {
                Some(Ok((opened, _))) => Some(opened),
                _ => return Err(StoreError::Unreachable(format!("{at}: the task that connects ended"))),
            };
        }
    }

    /// Returns the result if a connection was opened between two calls. Ignores a stale result, which says
    /// nothing about the current situation.
    fn has_come(&mut self, attempt: Duration) -> Option<Result<C, StoreError>> {
        while let Some(joined) = self.tasks.try_join_next() {
            match joined {
                Ok((opened, at)) if at.elapsed() <= longest_idle(attempt) => return Some(opened),
                _ => {}
            }
        }
        None
    }

    fn begin(
        &mut self,
        attempt: Duration,
        at: &str,
        open: impl Future<Output = Result<C, StoreError>> + Send + 'static,
    ) {
        let begins = self.ended[0].map(|ended| ended + LONGEST_LOCK);
        let (longest, at) = (attempt * 3, at.to_owned());
        self.begun = Some(Instant::now());
        self.tasks.spawn(async move {
            if let Some(begins) = begins {
                sleep(begins.saturating_duration_since(Instant::now())).await;
            }
            let why = format!("{at}: no connection within {} ms", longest.as_millis());
            let opened = timeout(longest, open).await.unwrap_or(Err(StoreError::Unreachable(why)));
            (opened, Instant::now())
        });
    }
}

/// Returns the error to report when none of several hosts can be used.
pub(super) fn none_of(mut failures: Vec<StoreError>) -> StoreError {
    if failures.len() == 1 {
        if let Some(only) = failures.pop() {
            return only;
        }
    }
    let texts: Vec<_> = failures.iter().map(StoreError::text).collect();
    let text = texts.join("; ");
    // If one of the hosts may answer later, the address is not wrong.
    if failures.iter().all(|failure| matches!(failure, StoreError::Refused(_))) {
        StoreError::Refused(text)
    } else {
        StoreError::Unreachable(text)
    }
}

/// The reason for ending a call early.
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
    /// Converts the fault to an error that names the place where the fault occurred.
    pub(super) fn explain(self, at: &str, explain: impl FnOnce(&str, &E) -> StoreError) -> StoreError {
        match self {
            Self::Client(error) => explain(at, &error),
            Self::Store(StoreError::Unreachable(text)) => StoreError::Unreachable(format!("{at}: {text}")),
            Self::Store(StoreError::Refused(text)) => StoreError::Refused(format!("{at}: {text}")),
        }
    }
}

/// Returns the error for a server that does not accept writes. Its answer says nothing about the server that
/// does.
pub(super) fn read_only() -> StoreError {
    StoreError::Unreachable(
        "the server is in recovery, read-only or not ready: connect to the server that accepts writes".into(),
    )
}

/// Converts a number so that a column can hold it, since some database tools cannot read unsigned 64-bit
/// integers.
pub(super) fn bigint(value: u64) -> Result<i64, StoreError> {
    i64::try_from(value)
        .map_err(|_| StoreError::Refused(format!("{value} is too large for a column of 64 bits")))
}

/// Converts a number from a column.
pub(super) fn whole(value: i64) -> Result<u64, StoreError> {
    u64::try_from(value)
        .map_err(|_| StoreError::Refused(format!("a column holds {value}, which is negative")))
}

pub(super) fn other_format(found: &str) -> StoreError {
    StoreError::Refused(format!("the tables have {found}, which this version of Polyflake does not know"))
}

#[cfg(test)]
mod tests {
    use core::future::{pending, ready};

    use super::*;

    /// None of these tests takes this long.
    const LONG: Duration = Duration::from_secs(3600);

    /// Starts a call, and drops it before it is done.
    async fn dropped(
        opening: &mut Opening<u8>,
        open: impl Future<Output = Result<u8, StoreError>> + Send + 'static,
    ) {
        assert!(timeout(Duration::from_millis(10), opening.opened(LONG, "", open)).await.is_err());
    }

    fn block<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
    }

    #[test]
    fn a_second_connection_is_opened_beside_a_silent_one() {
        block(async {
            let mut opening = Opening::default();
            dropped(&mut opening, pending()).await;
            // The attempt is not over yet.
            dropped(&mut opening, ready(Ok(1))).await;
            assert_eq!(opening.tasks.len(), 1);
            assert_eq!(opening.opened(Duration::ZERO, "", ready(Ok(2))).await, Ok(2));
            assert!(opening.tasks.is_empty());
        });
    }

    #[test]
    fn an_error_of_one_is_not_that_of_the_other() {
        block(async {
            let mut opening = Opening::default();
            let (send, receive) = tokio::sync::oneshot::channel();
            dropped(&mut opening, async { receive.await.unwrap() }).await;
            let failed = Err(StoreError::Unreachable("lost".into()));
            let mut call = Box::pin(opening.opened(Duration::ZERO, "", ready(failed)));
            assert!(timeout(Duration::from_millis(10), &mut call).await.is_err());
            send.send(Ok(1)).unwrap();
            assert_eq!(call.await, Ok(1));
        });
    }

    #[test]
    fn two_are_opened_at_most() {
        block(async {
            let mut opening = Opening::default();
            dropped(&mut opening, pending()).await;
            opening.begin(LONG, "", pending());
            let third = opening.opened(Duration::ZERO, "", ready(Ok(3)));
            assert!(timeout(Duration::from_millis(10), third).await.is_err());
            assert_eq!(opening.tasks.len(), 2);
        });
    }
}
