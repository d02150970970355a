//! What the protocol needs of this machine: its clocks, and random numbers.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::lease::Time;

/// Where no clock tells how long the machine has been on.
static START: OnceLock<Instant> = OnceLock::new();

#[cfg(any(target_os = "linux", target_os = "android"))]
const COUNTS_SLEEP: nix::time::ClockId = nix::time::ClockId::CLOCK_BOOTTIME;
/// There it does.
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
        // What Rust has for an `Instant` there stands still while the machine sleeps.
        #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
        if let Ok(since) = nix::time::clock_gettime(COUNTS_SLEEP) {
            let since: std::time::Duration = since.into();
            return u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        }
        let since = START.get_or_init(Instant::now).elapsed();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

/// From the operating system, so that processes which fork or are restored do not have the same numbers.
pub(crate) fn random() -> u64 {
    // It fails only where there is no such source; then these differ at least.
    getrandom::u64().unwrap_or_else(|_| {
        use std::hash::{BuildHasher as _, RandomState};
        RandomState::new().hash_one((std::process::id(), Clocks.elapsed_ms(), Clocks.wall_ms()))
    })
}
