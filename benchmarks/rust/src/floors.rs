//! The least work that any such call must do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::measure::{BATCH, Batches};
use crate::some_ids;
use crate::suite::{About, BATCHES, DECODE, DECODE_ALL, OWNED, SHARED, Suite};

fn wall_clock() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    since.as_secs() << 32 | u64::from(since.subsec_nanos())
}

/// What a generator does to its state; `now` is the time it has read.
fn advance(cursor: &AtomicU64, now: u64) -> u64 {
    let last = cursor.load(Ordering::Relaxed);
    let next = last.wrapping_add(1 | now & 1);
    let _ = cursor.compare_exchange(last, next, Ordering::Relaxed, Ordering::Relaxed);
    next
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use std::arch::x86_64::_rdtsc;

    pub fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { _rdtsc() }
    }
}

#[cfg(all(target_arch = "aarch64", any(target_os = "linux", target_vendor = "apple")))]
mod counter {
    pub fn read() -> u64 {
        let counts;
        // SAFETY: reads a register that these systems let programs read.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) counts, options(nomem, nostack)) };
        counts
    }
}

/// Where Polyflake reads no counter, the wall clock stands in.
#[cfg(not(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", any(target_os = "linux", target_vendor = "apple"))
)))]
mod counter {
    pub(super) use super::wall_clock as read;
}

pub fn add(suite: &mut Suite) {
    suite.singles(SHARED, &About::floor("SystemTime::now"), || wall_clock);
    suite.singles(SHARED, &About::floor("SystemTime::now and compare_exchange"), || {
        let cursor = AtomicU64::new(0);
        move || advance(&cursor, wall_clock())
    });
    suite.singles(SHARED, &About::floor("compare_exchange"), || {
        let cursor = AtomicU64::new(0);
        move || advance(&cursor, 0)
    });
    for table in [SHARED, OWNED] {
        suite.singles(table, &About::floor("counter"), || counter::read);
    }
    let counter_and_swap = About::floor("counter and compare_exchange");
    let take = || {
        let cursor = AtomicU64::new(0);
        move || advance(&cursor, counter::read())
    };
    suite.singles(SHARED, &counter_and_swap, take);
    suite.two_threads(&counter_and_swap, take);
    #[cfg(target_arch = "x86_64")]
    suite.singles(SHARED, &About::floor("lfence, rdtsc and compare_exchange"), || {
        let cursor = AtomicU64::new(0);
        move || {
            // SAFETY: every x86-64 processor has the instruction.
            unsafe { std::arch::x86_64::_mm_lfence() };
            advance(&cursor, counter::read())
        }
    });
    let numbers = About::floor("1,024 consecutive numbers into a buffer");
    suite.batches(BATCHES, &numbers, Batches { burst: 1000, bursts: 8 }, || {
        let mut first = 0;
        move |buffer: &mut [u64; BATCH]| {
            for (number, n) in buffer.iter_mut().zip(first..) {
                *number = n;
            }
            first += BATCH as u64;
        }
    });
    let shifts = About::floor("shifts and masks that the compiler knows");
    suite.singles(DECODE, &shifts, || some_ids(|id| [id >> 22, id >> 12 & 0x3FF, id & 0xFFF]));
    let shifts = About::floor("a shift of 1,024 numbers into a buffer");
    suite.batches(DECODE_ALL, &shifts, Batches { burst: 100, bursts: 8 }, || {
        let ids = crate::ids_to_decode();
        move |buffer: &mut [u64; BATCH]| {
            for (time, id) in buffer.iter_mut().zip(std::hint::black_box(&ids)) {
                *time = id >> 22;
            }
        }
    });
}
