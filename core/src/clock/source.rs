//! The system's clocks.

use core::time::Duration;

pub(crate) const NS_PER_MS: i64 = 1_000_000;

/// The system's clocks, from which a [`BuiltinClock`](crate::BuiltinClock) is built.
///
/// [`StdTime`](crate::StdTime) reads the operating system's clocks, with the `std` feature. A platform
/// without `std` (`wasm32-unknown-unknown`) supplies an implementation to `Options::build_on`.
pub trait TimeSource {
    /// The wall clock, in Unix ns (from 1677 to 2262).
    fn wall_ns(&self) -> i64;

    /// Nanoseconds since a fixed moment, independent of the wall clock.
    fn monotonic_ns(&self) -> i64;

    /// The wall clock, in Unix ms. A reading may be cached until the wall clock reaches the next millisecond,
    /// or for a millisecond if the clock steps before then.
    #[inline]
    fn wall_ms(&self) -> i64 {
        self.wall_ns().div_euclid(NS_PER_MS)
    }

    /// The wall clock, in Unix ms, without a cache.
    fn wall_ms_uncached(&self) -> i64 {
        self.wall_ms()
    }
}

/// Returns the time left until `target_ms`, or zero if it has passed.
pub(crate) fn ns_until(now_ns: i64, target_ms: i64) -> Duration {
    let ns = i128::from(target_ms) * i128::from(NS_PER_MS) - i128::from(now_ns);
    Duration::from_nanos(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
}
