//! The least work that any such call must do.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::measure::{BATCH, Batches};
use crate::some_ids;
use crate::suite::{BATCHES, DECODE, DECODE_ALL, OWNED, SHARED, Suite};

/// Advances a state as a generator does; `now` is the time it has read.
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
        // SAFETY: this reads a register that these systems let programs read.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) counts, options(nomem, nostack)) };
        counts
    }
}

/// Where Polyflake does not read a counter, the wall clock is used instead.
#[cfg(not(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", any(target_os = "linux", target_vendor = "apple"))
)))]
mod counter {
    pub fn read() -> u64 {
        crate::rows::unix_us()
    }
}

pub fn add(suite: &mut Suite) {
    suite.singles(OWNED, "counter", || counter::read);
    let counter_and_swap = "counter and compare_exchange";
    let take = || {
        let cursor = AtomicU64::new(0);
        move || advance(&cursor, counter::read())
    };
    suite.singles(SHARED, counter_and_swap, take);
    suite.two_threads(counter_and_swap, take);
    let numbers = "1,024 consecutive numbers into a buffer";
    suite.batches(BATCHES, numbers, Batches { burst: 1000, bursts: 8 }, || {
        let mut first = 0;
        move |buffer: &mut [u64; BATCH]| {
            for (number, n) in buffer.iter_mut().zip(first..) {
                *number = n;
            }
            first += BATCH as u64;
        }
    });
    let shifts = "shifts and masks that the compiler knows";
    suite.singles(DECODE, shifts, || some_ids(|id| [id >> 22, id >> 12 & 0x3FF, id & 0xFFF]));
    let shift = "a shift of 1,024 numbers into a buffer";
    suite.batches(DECODE_ALL, shift, Batches { burst: 100, bursts: 8 }, || {
        let ids = crate::ids_to_decode();
        move |buffer: &mut [u64; BATCH]| {
            for (time, id) in buffer.iter_mut().zip(std::hint::black_box(&ids)) {
                *time = id >> 22;
            }
        }
    });
}
