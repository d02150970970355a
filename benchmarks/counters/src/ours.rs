//! Polyflake's calls, and their floors.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use polyflake_coordination::{Counter, CounterOptions, SequencesOptions};

use crate::measure::{
    ASKED, BATCH, BATCHES_IN_HAND, BATCHES_OF_KEYS, IN_HAND, KEYS_IN_HAND, Random, batches, one, two,
};
use crate::rows::Rows;
use crate::{ASKED as ASKED_TABLE, BATCHES, FEW, KEYS, MANY, ONE, STEP, TWO};

fn options(name: &str, store: &str) -> CounterOptions {
    // On a busy machine, a store may answer late.
    CounterOptions::new(name).store(store).max_wait_ms(600_000)
}

fn open(options: &CounterOptions) -> Counter {
    options.open().expect("the store gives numbers")
}

fn next_id(counter: &Counter) -> u64 {
    counter.next_id().expect("a number within the longest wait")
}

fn fill(counter: &Counter, numbers: &mut [u64; BATCH]) {
    counter.fill(numbers).expect("numbers within the longest wait");
}

/// Counters with segments, which are fetched from the store in the background.
pub fn in_hand(rows: &Rows, store: &str) {
    let counter = || open(&options("in hand", store).step(STEP));
    let auto = || open(&options("auto", store));
    let subject = "polyflake Counter next_id";
    let subject_auto = "polyflake Counter next_id, step=auto";
    let next = |counter: Counter| move || next_id(&counter);
    rows.add(ONE, subject, "", || one(IN_HAND, next(counter())));
    rows.add(TWO, subject, "", || two(IN_HAND, next(counter())));
    rows.add(ONE, subject_auto, "", || one(IN_HAND, next(auto())));
    rows.add(TWO, subject_auto, "", || two(IN_HAND, next(auto())));
    rows.add(BATCHES, "polyflake Counter fill", "", || {
        // Larger segments: at this speed, a segment of 10,000,000 lasts only 3 ms.
        let large = open(&options("large", store).step(1_000_000_000));
        batches(BATCHES_IN_HAND, |to| fill(&large, to));
    });
}

/// Numbers for one key at a time, chosen at random, and for many keys in a batch. All keys are in memory.
pub fn sequences(rows: &Rows) {
    let opened = || {
        let folder = tempfile::tempdir().expect("a folder for a store");
        let store = format!("sqlite://{}", folder.path().join("sequences.db").display());
        let options = SequencesOptions::new("keys").store(&store).step(1_000_000).max_keys(20_000_000_u64);
        let sequences = options.open().expect("the store gives the lease");
        for keys in (0..MANY).step_by(10_000) {
            sequences.next_ids(keys..keys + 10_000).expect("numbers of all keys");
        }
        (folder, sequences)
    };
    for (keys, subject) in [
        (FEW, "polyflake Sequences next_id, 1,000 keys"),
        (MANY, "polyflake Sequences next_id, 10,000,000 keys"),
    ] {
        rows.add(KEYS, subject, "", || {
            let ((_folder, ids), mut random) = (opened(), Random::default());
            one(KEYS_IN_HAND, || ids.next_id(random.below(keys)).expect("a number"));
        });
    }
    rows.add(KEYS, "polyflake Sequences next_ids of 1,024, 10,000,000 keys", "", || {
        let ((_folder, ids), mut random) = (opened(), Random::default());
        batches(BATCHES_OF_KEYS, |to| {
            let keys = [(); BATCH].map(|()| random.below(MANY));
            to.copy_from_slice(&ids.next_ids(keys).expect("numbers"));
        });
    });
}

/// Counters with `step=1`, which ask the store for each number.
pub fn asked(rows: &Rows, name: &str, store: &str) {
    rows.add(ASKED_TABLE, &format!("polyflake Counter step=1, {name}"), "", || {
        let counter = open(&options("ours", store).step(1));
        one(ASKED, || next_id(&counter));
    });
}

/// The least work that any such call must do.
pub fn floors(rows: &Rows) {
    let cursor = || Box::new(Cursor(AtomicU64::new(0)));
    let add = |cursor: Box<Cursor>| move || cursor.0.fetch_add(1, Ordering::AcqRel);
    rows.add(ONE, "fetch_add", "", || one(IN_HAND, add(cursor())));
    rows.add(TWO, "fetch_add", "", || two(IN_HAND, add(cursor())));
    rows.add(BATCHES, "1,024 consecutive numbers into a buffer", "", || {
        let mut first = 0;
        batches(BATCHES_IN_HAND, |buffer| {
            for (number, n) in buffer.iter_mut().zip(first..) {
                *number = n;
            }
            first += BATCH as u64;
        });
    });
    for (name, keys) in [
        ("an entry of a HashMap in a Mutex, 1,000 keys", FEW),
        ("an entry of a HashMap in a Mutex, 10,000,000 keys", MANY),
    ] {
        rows.add(KEYS, name, "", || {
            let map: HashMap<u64, u64> = (0..keys).map(|key| (key, 0)).collect();
            let (mut random, map) = (Random::default(), Mutex::new(map));
            one(KEYS_IN_HAND, || {
                let mut map = map.lock().expect("no thread has panicked");
                let number = map.entry(random.below(keys)).or_default();
                *number += 1;
                *number
            });
        });
    }
}

/// On its own cache line.
#[repr(align(128))]
struct Cursor(AtomicU64);
