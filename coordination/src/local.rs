//! This machine's clocks and random numbers, for the protocol.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::lease::Time;

/// The start for systems without a clock that tells how long the machine has been on.
static START: OnceLock<Instant> = OnceLock::new();

#[cfg(any(target_os = "linux", target_os = "android"))]
const COUNTS_SLEEP: nix::time::ClockId = nix::time::ClockId::CLOCK_BOOTTIME;
/// On Apple's systems, this clock counts sleep.
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
        // On these systems, `Instant` stands still while the machine sleeps.
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        if let Ok(since) = nix::time::clock_gettime(COUNTS_SLEEP) {
            let since: std::time::Duration = since.into();
            return u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        }
        let since = START.get_or_init(Instant::now).elapsed();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// Returns a random number from the operating system, so that processes that fork or are restored get
/// different numbers.
pub(crate) fn random() -> u64 {
    // This fails only if the system has no such source. The numbers then still differ.
    getrandom::u64().unwrap_or_else(|_| {
        use std::hash::{BuildHasher as _, RandomState};
        RandomState::new().hash_one((std::process::id(), Clocks.elapsed_ms(), Clocks.wall_ms()))
    })
}
