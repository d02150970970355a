//! The operating system's monotonic time.

/// Time since a moment chosen by the system. A start time in a `LazyLock` would not do: if a fork copies it
/// while another thread is initializing it, the child blocks forever.
#[cfg(unix)]
pub(super) fn monotonic_ns() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes to `now`. Every Unix has this clock, so the call cannot fail.
    #[allow(unsafe_code)]
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
    }
    #[allow(
        clippy::useless_conversion,
        clippy::unnecessary_fallible_conversions,
        reason = "32 bits on some systems"
    )]
    let (seconds, ns) = (i64::from(now.tv_sec), i64::from(now.tv_nsec));
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}

/// Time since the first call. `fork` does not exist here.
#[cfg(not(unix))]
pub(super) fn monotonic_ns() -> i64 {
    use std::sync::LazyLock;
    use std::time::Instant;

    static SINCE: LazyLock<Instant> = LazyLock::new(Instant::now);
    i64::try_from(SINCE.elapsed().as_nanos()).unwrap_or(i64::MAX)
}
