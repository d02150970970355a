//! Statistics for monitoring.

use core::sync::atomic::Ordering;

use crate::clock::Clock;
use crate::error::Error;
#[cfg(feature = "std")]
use crate::lease::LeaseInfo;
use crate::lease::LeaseUse;
use crate::rule::ms_until;
use crate::snowflake::Snowflake;
#[cfg(feature = "std")]
use crate::snowflake::stopped::Stopped;

/// Statistics for monitoring, from [`Snowflake::stats`]. They cover all Snowflakes that have shared the
/// cursor since it was created, and are counted only on slow paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Stats {
    /// The number of times a call found no free slot and waited or gave up.
    pub waits: u64,
    /// The number of times the clock stepped back, whether tolerated or not.
    pub rollbacks: u64,
    /// How far the last tick taken is ahead of the clock, in ms. 0 if it is not ahead.
    pub lead_ms: u64,
    /// The start of the last ID's tick, in Unix ms; `None` before the first ID.
    pub last_issued_ms: Option<u64>,
    /// The number of times the lease was lost: it ran out before the store renewed it, another process had its
    /// node, or the store had lost its record.
    pub lease_losses: u64,
}

impl<C: Clock> Snowflake<C> {
    /// Returns statistics for monitoring. Reads the clock once.
    ///
    /// # Errors
    ///
    /// `clock_failed`, `forked` or `closed`.
    pub fn stats(&self) -> Result<Stats, Error> {
        let cursor = self.cursor();
        self.check_open().map_err(|stopped| self.error_of(stopped))?;
        let tick = self.rule.tick_of(cursor.load());
        let start_ms = self.rule.start_ms(tick);
        let now_ms = self.clock.unix_ms_uncached()?;
        let has_issued = cursor.has_issued();
        Ok(Stats {
            waits: cursor.waits.load(Ordering::Relaxed),
            rollbacks: cursor.rollbacks.load(Ordering::Relaxed),
            lead_ms: if has_issued { ms_until(now_ms, start_ms) } else { 0 },
            last_issued_ms: has_issued.then_some(start_ms),
            lease_losses: self.lease.as_ref().map_or(0, LeaseUse::losses),
        })
    }

    /// Describes the lease, if this Snowflake has one.
    ///
    /// # Errors
    ///
    /// `clock_failed` or `forked`.
    #[cfg(feature = "std")]
    pub fn lease(&self) -> Result<Option<LeaseInfo>, Error> {
        if let Err(forked @ Stopped::Forked) = self.check_open() {
            return Err(self.error_of(forked));
        }
        let Some(lease) = &self.lease else { return Ok(None) };
        let now_ms = self.clock.unix_ms_uncached()?;
        Ok(Some(lease.info(&self.rule, now_ms)))
    }
}

impl<C> Snowflake<C> {
    pub(super) fn count_wait(&self) {
        self.cursor().waits.fetch_add(1, Ordering::Relaxed);
    }

    #[cold]
    pub(super) fn saw_rollback(&self, last: u64) {
        self.cursor().saw_rollback(self.rule.tick_of(last));
    }
}
