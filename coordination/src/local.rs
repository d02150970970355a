//! This machine's clocks and random numbers, for the protocol.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::lease::Time;

/// The starting point for elapsed time on systems that have no boot-time clock.
static START: OnceLock<Instant> = OnceLock::new();

#[cfg(any(target_os = "linux", target_os = "android"))]
const COUNTS_SLEEP: nix::time::ClockId = nix::time::ClockId::CLOCK_BOOTTIME;
/// On Apple's systems, this clock keeps running during sleep.
#[cfg(target_vendor = "apple")]
const COUNTS_SLEEP: nix::time::ClockId = nix::time::ClockId::CLOCK_MONOTONIC;

/// The machine's clocks.
#[derive(Debug)]
pub(crate) struct Clocks;

impl Time for Clocks {
    fn wall_ms(&self) -> i64 {
        let ms = |since: std::time::Duration| i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => ms(after),
            Err(before) => -ms(before.duration()),
        }
    }

    fn elapsed_ms(&self) -> u64 {
        // On these systems, `Instant` stops while the machine sleeps.
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        if let Ok(since) = nix::time::clock_gettime(COUNTS_SLEEP) {
            let since: std::time::Duration = since.into();
            return u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        }
        let since = START.get_or_init(Instant::now).elapsed();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Returns a random number from the operating system, so that forked or restored processes draw different
/// numbers.
pub(crate) fn random() -> u64 {
    // This fails only if the system has no source of random numbers. Even then, processes draw different
    // numbers.
    getrandom::u64().unwrap_or_else(|_| {
        use std::hash::{BuildHasher as _, RandomState};
        RandomState::new().hash_one((std::process::id(), Clocks.elapsed_ms(), Clocks.wall_ms()))
    })
}
