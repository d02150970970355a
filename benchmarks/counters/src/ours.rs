//! Polyflake's calls.

use std::fmt::Write as _;
use std::sync::Arc;

use polyflake_coordination::{Counter, CounterOptions, Sequences, SequencesOptions};

use crate::STEP;
use crate::measure::{
    ASKED, ASKED_BY_THREADS, BATCH, BATCHES_ASKED, BATCHES_IN_HAND, BATCHES_OF_KEYS, Batches, IN_HAND,
    KEYS_IN_HAND, Measured, One, Random, Threads,
};
use crate::suite::{ASKED_BATCHES, ASKED_THREADS, BATCHES, FEW, KEYS, MANY, MARIADB, ONE, Suite, TWO};

fn options(name: &str, store: &str) -> CounterOptions {
    // On a busy machine a store may answer late.
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

fn add(suite: &mut Suite, table: &'static str, subject: &str, measured: impl Measured + 'static) {
    suite.add(table, subject, "", measured);
}

/// With segments: the store is asked in the background.
pub fn in_hand(suite: &mut Suite, store: &str) {
    let counter = Arc::new(open(&options("in hand", store).step(STEP)));
    let auto = Arc::new(open(&options("auto", store)));
    for (counter, subject) in
        [(&counter, "polyflake Counter next_id"), (&auto, "polyflake Counter next_id, step=auto")]
    {
        let ids = Arc::clone(counter);
        add(suite, ONE, subject, One(move || next_id(&ids), IN_HAND));
        let ids = Arc::clone(counter);
        add(suite, TWO, subject, Threads(2, move || next_id(&ids), IN_HAND));
    }
    // Larger segments: at this speed one of 10,000,000 lasts for 3 ms.
    let large = Arc::new(open(&options("large", store).step(1_000_000_000)));
    let ids = Arc::clone(&large);
    add(suite, BATCHES, "polyflake Counter fill", Batches(move |to: &mut _| fill(&ids, to), BATCHES_IN_HAND));
    add(
        suite,
        BATCHES,
        "polyflake Counter fill, step=auto",
        Batches(move |to: &mut _| fill(&auto, to), BATCHES_IN_HAND),
    );
}

/// Numbers of one key at a time, chosen at random, and of many in a batch. All keys are in memory.
pub fn sequences(suite: &mut Suite, store: &str) {
    let options = SequencesOptions::new("keys").store(store).step(1_000_000).max_keys(20_000_000_u64);
    let sequences = Arc::new(options.open().expect("the store gives the lease"));
    for keys in (0..MANY).step_by(10_000) {
        sequences.next_ids(keys..keys + 10_000).expect("numbers of all keys");
    }
    let next = |sequences: &Sequences, key| sequences.next_id(key).expect("a number");
    for (keys, subject) in [
        (FEW, "polyflake Sequences next_id, 1,000 keys"),
        (MANY, "polyflake Sequences next_id, 10,000,000 keys"),
    ] {
        let (ids, mut random) = (Arc::clone(&sequences), Random::default());
        add(suite, KEYS, subject, One(move || next(&ids, random.below(keys)), KEYS_IN_HAND));
    }
    let (ids, mut random) = (Arc::clone(&sequences), Random::default());
    let batch = move |to: &mut [u64; BATCH]| {
        let keys = [(); BATCH].map(|()| random.below(MANY));
        to.copy_from_slice(&ids.next_ids(keys).expect("numbers"));
    };
    add(
        suite,
        KEYS,
        "polyflake Sequences next_ids of 1,024, 10,000,000 keys",
        Batches(batch, BATCHES_OF_KEYS),
    );
    let (mut random, mut text) = (Random::default(), String::new());
    let by_text = move || {
        text.clear();
        let _ = write!(text, "user:{}", random.below(FEW));
        sequences.next_id(&text).expect("a number")
    };
    add(suite, KEYS, "polyflake Sequences next_id, 1,000 texts", One(by_text, KEYS_IN_HAND));
}

/// With `step=1`, which asks the store for each number.
pub fn asked(suite: &mut Suite, name: &str, table: &'static str, store: &str) {
    let counter = Arc::new(open(&options("asked", store).step(1)));
    let ids = Arc::clone(&counter);
    let subject = format!("polyflake Counter step=1, {name}");
    add(suite, table, &subject, One(move || next_id(&ids), ASKED));
    let ids = Arc::clone(&counter);
    add(suite, ASKED_THREADS, &subject, Threads(16, move || next_id(&ids), ASKED_BY_THREADS));
    let subject = format!("polyflake Counter step=1, {name}");
    add(suite, ASKED_BATCHES, &subject, Batches(move |to: &mut _| fill(&counter, to), BATCHES_ASKED));
}

/// On the tables of others, whose rows have a step of 1.
pub fn of_others(suite: &mut Suite, store: &str) {
    for schema in ["leaf", "tinyid"] {
        let address = format!("{store}?schema={schema}");
        let counter = open(&options("ours", &address).step(1));
        let subject = format!("polyflake Counter step=1, schema={schema}");
        add(suite, MARIADB, &subject, One(move || next_id(&counter), ASKED));
    }
}
