//! Polyflake's calls.

use std::sync::Arc;

use polyflake_coordination::{Counter, CounterOptions};

use crate::STEP;
use crate::floors::{EXCHANGE, NUMBERS};
use crate::measure::{ASKED, BATCH, BATCHES_ASKED, BATCHES_IN_HAND, Batches, IN_HAND, Measured, One, Two};
use crate::suite::{ASKED_BATCHES, BATCHES, MARIADB, ONE, Role, Row, Suite, TWO};

const AUTO: &str = "the default: its segments grow to 1,000,000";

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

fn add<'a>(
    suite: &'a mut Suite,
    table: &'static str,
    subject: &str,
    measured: impl Measured + 'static,
) -> &'a mut Row {
    suite.add(table, Role::Ours, subject, version(), measured)
}

/// That in `Cargo.lock`.
fn version() -> &'static str {
    let after = include_str!("../Cargo.lock").split_once("name = \"polyflake-coordination\"\nversion = \"");
    after.and_then(|(_, rest)| rest.split('"').next()).unwrap_or_default()
}

/// With segments: the store is asked in the background. A row of `Sequences` belongs here too.
pub fn in_hand(suite: &mut Suite, store: &str) {
    let counter = Arc::new(open(&options("in hand", store).step(STEP)));
    let auto = Arc::new(open(&options("auto", store)));
    for (counter, subject, note) in [
        (&counter, "polyflake Counter next_id", "segments of 10,000,000"),
        (&auto, "polyflake Counter next_id, step=auto", AUTO),
    ] {
        let ids = Arc::clone(counter);
        add(suite, ONE, subject, One(move || next_id(&ids), IN_HAND)).note(note).over(EXCHANGE).at_most(10.0);
        let ids = Arc::clone(counter);
        add(suite, TWO, subject, Two(move || next_id(&ids), IN_HAND)).note(note).over(EXCHANGE);
    }
    // Larger segments: at this speed one of 10,000,000 lasts for 3 ms.
    let large = Arc::new(open(&options("large", store).step(1_000_000_000)));
    let ids = Arc::clone(&large);
    add(suite, BATCHES, "polyflake Counter fill", Batches(move |to: &mut _| fill(&ids, to), BATCHES_IN_HAND))
        .note("segments of 1,000,000,000")
        .over(NUMBERS)
        .at_most(0.3);
    add(
        suite,
        BATCHES,
        "polyflake Counter fill, step=auto",
        Batches(move |to: &mut _| fill(&auto, to), BATCHES_IN_HAND),
    )
    .note(AUTO)
    .over(NUMBERS);
}

/// With `step=1`, which asks the store for each number.
pub fn asked(suite: &mut Suite, name: &str, table: &'static str, store: &str) {
    let counter = Arc::new(open(&options("asked", store).step(1)));
    let ids = Arc::clone(&counter);
    let subject = format!("polyflake Counter step=1, {name}");
    add(suite, table, &subject, One(move || next_id(&ids), ASKED));
    let subject = format!("polyflake Counter fill, step=1, {name}");
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
