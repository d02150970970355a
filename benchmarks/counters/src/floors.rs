//! The least work that any such call must do.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::measure::{BATCH, Batches, FLOOR, FLOOR_OF_BATCHES, One, Two};
use crate::suite::{BATCHES, ONE, Role, Suite, TWO};

/// On a cache line of its own.
#[repr(align(128))]
struct Cursor(AtomicU64);

impl Cursor {
    fn new() -> Box<Self> {
        Box::new(Self(AtomicU64::new(0)))
    }

    /// What a counter does to its cursor.
    fn take(&self) -> u64 {
        let mut last = self.0.load(Ordering::Acquire);
        loop {
            match self.0.compare_exchange_weak(last, last + 1, Ordering::AcqRel, Ordering::Acquire) {
                Ok(taken) => return taken,
                Err(other) => last = other,
            }
        }
    }
}

pub fn add(suite: &mut Suite) {
    const EXCHANGE: &str = "compare_exchange";
    const ADD: &str = "fetch_add";
    const NUMBERS: &str = "1,024 consecutive numbers into a buffer";
    let exchange = || {
        let cursor = Cursor::new();
        move || cursor.take()
    };
    let add = || {
        let cursor = Cursor::new();
        move || cursor.0.fetch_add(1, Ordering::AcqRel)
    };
    suite.add(ONE, Role::Floor, EXCHANGE, "", One(exchange(), FLOOR));
    suite.add(ONE, Role::Floor, ADD, "", One(add(), FLOOR));
    suite.floor(ONE, EXCHANGE);
    suite.add(TWO, Role::Floor, EXCHANGE, "", Two(exchange(), FLOOR));
    suite.add(TWO, Role::Floor, ADD, "", Two(add(), FLOOR));
    suite.floor(TWO, EXCHANGE);
    let mut first = 0;
    let numbers = move |buffer: &mut [u64; BATCH]| {
        for (number, n) in buffer.iter_mut().zip(first..) {
            *number = n;
        }
        first += BATCH as u64;
    };
    suite.add(BATCHES, Role::Floor, NUMBERS, "", Batches(numbers, FLOOR_OF_BATCHES));
    suite.floor(BATCHES, NUMBERS);
}
