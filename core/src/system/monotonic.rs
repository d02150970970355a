//! The operating system's monotonic time.

/// Since some fixed moment, as the system counts: a start of our own, kept in a `LazyLock`, would block a child forever
/// that a fork copies while another thread initializes it.
#[cfg(unix)]
pub(super) fn monotonic_ns() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes to `now`, and every Unix has this clock: it cannot fail.
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

/// Since the first call. There is no `fork` here.
#[cfg(not(unix))]
pub(super) fn monotonic_ns() -> i64 {
    use std::sync::LazyLock;
    use std::time::Instant;

    static SINCE: LazyLock<Instant> = LazyLock::new(Instant::now);
    i64::try_from(SINCE.elapsed().as_nanos()).unwrap_or(i64::MAX)
}
