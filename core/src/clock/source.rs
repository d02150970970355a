//! What a system tells of time.

use core::time::Duration;

pub(crate) const NS_PER_MS: i64 = 1_000_000;

/// What a system tells of time, from which a [`BuiltinClock`](crate::BuiltinClock) is made.
///
/// [`StdTime`](crate::StdTime) is the operating system's, with the `std` feature; a platform without it
/// (`wasm32-unknown-unknown`) brings its own, for `Options::build_on`.
pub trait TimeSource {
    /// The wall clock, in Unix ns (from 1677 to 2262).
    fn wall_ns(&self) -> i64;

    /// Nanoseconds since some fixed moment, whatever the wall clock does.
    fn monotonic_ns(&self) -> i64;

    /// The wall clock, in Unix ms. A reading may be cached until the wall clock reaches the next ms, or for a ms if it
    /// steps meanwhile.
    #[inline]
    fn wall_ms(&self) -> i64 {
        self.wall_ns().div_euclid(NS_PER_MS)
    }

    /// The wall clock, in Unix ms, not cached.
    fn wall_ms_uncached(&self) -> i64 {
        self.wall_ms()
    }
}

/// How long until a time; zero if it has passed.
pub(crate) fn ns_until(now_ns: i64, target_ms: i64) -> Duration {
    let ns = i128::from(target_ms) * i128::from(NS_PER_MS) - i128::from(now_ns);
    Duration::from_nanos(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
}
