//! Decides when to send the next request to a store. Leases, counters and sequences use the same rule.

use core::time::Duration;
use std::time::Instant;

use crate::local::random;

/// The maximum pause after the first failed attempt. The limit doubles with each subsequent failure.
const FIRST: Duration = Duration::from_millis(200);
/// The maximum time between renewals. It is short so that a loss is noticed quickly.
const LONGEST_RENEWAL: Duration = Duration::from_secs(10);
/// The maximum pause after a conflict with other processes.
const APART_MS: u64 = 50;

/// The time of the next attempt, and the number of consecutive failed attempts.
#[derive(Debug)]
pub(super) struct Pace {
    next: Instant,
    failures: u32,
    /// The maximum pause: a third of the TTL.
    longest: Duration,
}

impl Pace {
    /// Creates a pace whose first attempt is due at once.
    pub(super) fn new(ttl_ms: u64) -> Self {
        Self { next: Instant::now(), failures: 0, longest: Duration::from_millis(ttl_ms / 3) }
    }

    pub(super) const fn next(&self) -> Instant {
        self.next
    }

    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    pub(super) const fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Makes the next attempt due now, regardless of the result of the last one.
    pub(super) fn now(&mut self) {
        self.next = Instant::now();
    }

    /// Records a success. The next attempt may follow at once.
    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
        self.now();
    }

    /// Records that a lease was renewed. The next renewal is due after a third of the TTL, give or take up to
    /// a tenth of that time, so that processes that started together do not stay in step.
    pub(super) fn renewed(&mut self, ttl_ms: u64) {
        self.failures = 0;
        let third = Duration::from_millis(ttl_ms / 3).min(LONGEST_RENEWAL);
        self.next = Instant::now() + third / 10 * 9 + up_to(third / 5);
    }

    /// Records a failure caused by a problem of unknown duration. The pauses double and are random, so that a
    /// thousand processes do not all query a store the moment it restarts.
    pub(super) fn failed(&mut self) {
        self.failed_for(Duration::MAX);
    }

    /// Like [`failed`](Self::failed), but for a problem that is known to end within `known`.
    pub(super) fn failed_for(&mut self, known: Duration) {
        let most = FIRST.saturating_mul(1 << self.failures.min(16)).min(self.longest);
        self.failures = self.failures.saturating_add(1);
        let pause = FIRST / 4 + up_to(most);
        self.next = Instant::now() + pause.min(known.saturating_add(up_to(Duration::from_millis(APART_MS))));
    }

    /// Records a conflict, in which another process got there first. The next attempt may succeed at once.
    pub(super) fn contended(&mut self) {
        self.failures = self.failures.saturating_add(1);
        self.next = Instant::now() + up_to(Duration::from_millis(APART_MS));
    }
}

fn up_to(most: Duration) -> Duration {
    let most = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(random() % most.saturating_add(1).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the longest of 400 pauses and their total.
    fn pauses(pace: &mut Pace, ask: impl Fn(&mut Pace)) -> (Duration, Duration) {
        let mut pauses = Vec::new();
        for _ in 0..400 {
            let before = Instant::now();
            ask(pace);
            pauses.push(pace.next() - before);
        }
        (pauses.iter().copied().max().unwrap_or_default(), pauses.iter().sum())
    }

    #[test]
    fn pauses_grow_to_a_third_of_the_time_to_live() {
        let mut pace = Pace::new(30_000);
        assert!(pace.is_due() && !pace.has_failed());
        for most in [200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000] {
            let before = Instant::now();
            pace.failed();
            let pause = pace.next() - before;
            let slack = Duration::from_secs(5);
            assert!(pause <= FIRST / 4 + Duration::from_millis(most) + slack, "{most}: {pause:?}");
            assert!(pause >= FIRST / 4, "{most}: {pause:?}");
        }
        let (longest, all) = pauses(&mut pace, Pace::failed);
        assert!(longest > Duration::from_secs(8), "{longest:?}");
        // On average, a pause is half as long as the longest possible pause.
        assert!((Duration::from_secs(1_500)..Duration::from_secs(2_600)).contains(&all), "{all:?}");
        pace.succeeded();
        assert!(pace.is_due() && !pace.has_failed());
    }

    #[test]
    fn nobody_waits_longer_than_for_what_is_known() {
        let mut pace = Pace::new(3_600_000);
        for _ in 0..30 {
            pace.failed_for(Duration::from_millis(300));
        }
        let (longest, _) = pauses(&mut pace, |pace| pace.failed_for(Duration::from_millis(300)));
        assert!(longest < Duration::from_secs(5), "{longest:?}");
        let (longest, _) = pauses(&mut pace, Pace::contended);
        assert!(longest < Duration::from_secs(5) && pace.has_failed(), "{longest:?}");
    }

    #[test]
    fn renewals_are_spread() {
        let mut pace = Pace::new(30_000);
        let (longest, all) = pauses(&mut pace, |pace| pace.renewed(3_600_000));
        assert!(longest > Duration::from_millis(10_500), "{longest:?}");
        assert!((Duration::from_secs(3_700)..Duration::from_secs(4_300)).contains(&all), "{all:?}");
    }
}
