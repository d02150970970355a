//! The least work that any such call must do.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::measure::{BATCH, Batches, FLOOR, FLOOR_OF_BATCHES, FLUSH, KEYS_IN_HAND, One, Random, Threads};
use crate::suite::{BATCHES, ETCD, FEW, KEYS, MANY, MARIADB, ONE, POSTGRES, REDIS, SQLITE, Suite, TWO};

/// What a counter does to its cursor.
const ADD: &str = "fetch_add";
const FEW_KEYS: &str = "an entry of a HashMap in a Mutex, 1,000 keys";
const MANY_KEYS: &str = "an entry of a HashMap in a Mutex, 10,000,000 keys";
const NUMBERS: &str = "1,024 consecutive numbers into a buffer";

/// On its own cache line.
#[repr(align(128))]
struct Cursor(AtomicU64);

impl Cursor {
    fn new() -> Box<Self> {
        Box::new(Self(AtomicU64::new(0)))
    }

    /// What a batch does to it.
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

/// Writes and syncs one block of a private file on each call.
fn flush() -> impl FnMut() -> u64 {
    let folder = tempfile::tempdir_in(std::env::temp_dir()).expect("a folder for a file");
    let file = File::create(folder.path().join("file")).expect("a file that can be written");
    let mut times = 0_u64;
    move || {
        // The folder goes with it.
        let _ = &folder;
        times += 1;
        let block = [times.to_le_bytes()[0]; 4096];
        file.write_all_at(&block, 0).and_then(|()| file.sync_data()).expect("the disk takes it");
        times
    }
}

pub fn add(suite: &mut Suite, are_in_memory: bool) {
    const EXCHANGE: &str = "compare_exchange";
    let exchange = || {
        let cursor = Cursor::new();
        move || cursor.take()
    };
    let add = || {
        let cursor = Cursor::new();
        move || cursor.0.fetch_add(1, Ordering::AcqRel)
    };
    suite.add(ONE, EXCHANGE, "", One(exchange(), FLOOR));
    suite.add(ONE, ADD, "", One(add(), FLOOR));
    suite.add(TWO, EXCHANGE, "", Threads(2, exchange(), FLOOR));
    suite.add(TWO, ADD, "", Threads(2, add(), FLOOR));
    let mut first = 0;
    let numbers = move |buffer: &mut [u64; BATCH]| {
        for (number, n) in buffer.iter_mut().zip(first..) {
            *number = n;
        }
        first += BATCH as u64;
    };
    suite.add(BATCHES, NUMBERS, "", Batches(numbers, FLOOR_OF_BATCHES));
    let note = if are_in_memory {
        "not in the figures of the stores, whose files are in memory"
    } else {
        "in the figures of the stores too"
    };
    for (name, keys) in [(FEW_KEYS, FEW), (MANY_KEYS, MANY)] {
        let (mut random, map) = (Random::default(), Mutex::new(HashMap::new()));
        let entry = move || {
            let mut map = map.lock().expect("no thread has panicked");
            if map.is_empty() {
                map.extend((0..keys).map(|key| (key, 0_u64)));
            }
            let number = map.entry(random.below(keys)).or_default();
            *number += 1;
            *number
        };
        suite.add(KEYS, name, "", One(entry, KEYS_IN_HAND));
    }
    for table in [REDIS, POSTGRES, MARIADB, SQLITE, ETCD] {
        suite.add(table, "a flush of this machine's disk", "", One(flush(), FLUSH)).note(note);
    }
}
