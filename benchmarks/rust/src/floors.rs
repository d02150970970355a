//! The least work that any such call must do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::measure::{BATCH, Batches};
use crate::suite::{About, Role, SHARED, Suite};

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
    use std::arch::x86_64::{_mm_lfence, _rdtsc};

    pub fn read() -> u64 {
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { _rdtsc() }
    }

    /// Not executed before earlier loads.
    pub fn read_in_order() -> u64 {
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { _mm_lfence() };
        read()
    }
}

pub fn add(suite: &mut Suite) {
    let floor = |subject| About {
        subject,
        package: "",
        role: Role::Floor,
        reads_clock: true,
        ticker: false,
        capacity: 0,
        time_of: |_| 0,
        note: "",
    };
    suite.singles(SHARED, &floor("SystemTime::now"), || wall_clock);
    suite.singles(SHARED, &floor("SystemTime::now and compare_exchange"), || {
        let cursor = AtomicU64::new(0);
        move || advance(&cursor, wall_clock())
    });
    suite.singles(SHARED, &About { reads_clock: false, ..floor("compare_exchange") }, || {
        let cursor = AtomicU64::new(0);
        move || advance(&cursor, 0)
    });
    #[cfg(target_arch = "x86_64")]
    {
        suite.singles(SHARED, &floor("rdtsc"), || counter::read);
        suite.singles(SHARED, &floor("rdtsc and compare_exchange"), || {
            let cursor = AtomicU64::new(0);
            move || advance(&cursor, counter::read())
        });
        suite.singles(SHARED, &floor("lfence, rdtsc and compare_exchange"), || {
            let cursor = AtomicU64::new(0);
            move || advance(&cursor, counter::read_in_order())
        });
    }
    let numbers = About { reads_clock: false, ..floor("1,024 consecutive numbers into a buffer") };
    suite.batches(&numbers, Batches { burst: 1000, bursts: 8 }, || {
        let mut first = 0;
        move |buffer: &mut [u64; BATCH]| {
            for (number, n) in buffer.iter_mut().zip(first..) {
                *number = n;
            }
            first += BATCH as u64;
        }
    });
}
