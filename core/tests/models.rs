//! Models of the cursor in every interleaving of its threads, by loom:
//! `RUSTFLAGS="--cfg loom" cargo test --release --test models`.
#![cfg(loom)]

use std::sync::Arc;

use loom::sync::atomic::{AtomicI64, Ordering};
use loom::thread;
use polyflake::{ClockError, Error, ErrorCode, Snowflake};

const START: i64 = 1_000;

/// Every interleaving with at most three preemptions, which is where such bugs show; without a bound, the models
/// take minutes.
fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

/// A clock that threads of the model move.
#[derive(Clone)]
struct Moved(Arc<AtomicI64>);

impl Moved {
    fn new() -> Self {
        Self(Arc::new(AtomicI64::new(START)))
    }

    fn to(&self, ms: i64) {
        self.0.store(ms, Ordering::Release);
    }
}

impl polyflake::Clock for Moved {
    fn unix_ms(&self) -> Result<i64, ClockError> {
        Ok(self.0.load(Ordering::Acquire))
    }
}

fn ids(clock: &Moved, sequence_bits: u32, max_backward_ms: u32) -> Arc<Snowflake<Moved>> {
    let layout = format!("timestamp:40|worker:4|sequence:{sequence_bits}@0/1ms");
    let options = Snowflake::builder().layout(layout.as_str()).node(1).max_backward_ms(max_backward_ms);
    Arc::new(options.max_wait_ms(0).build_with_clock(clock.clone()).unwrap())
}

/// Runs `threads` that each take `each` IDs, and `meanwhile`; gives what each got.
fn run(
    threads: usize,
    each: usize,
    ids: &Arc<Snowflake<Moved>>,
    meanwhile: impl FnOnce(),
) -> Vec<Vec<Result<u64, Error>>> {
    let taking: Vec<_> = (0..threads)
        .map(|_| {
            let ids = Arc::clone(ids);
            thread::spawn(move || (0..each).map(|_| ids.try_next_id()).collect::<Vec<_>>())
        })
        .collect();
    meanwhile();
    taking.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// No repeat, and each thread's IDs go up; gives the codes of the refusals.
fn check(results: &[Vec<Result<u64, Error>>]) -> Vec<ErrorCode> {
    let mut all = Vec::new();
    let mut refused = Vec::new();
    for thread in results {
        let issued: Vec<u64> = thread.iter().filter_map(|result| result.ok()).collect();
        assert!(issued.is_sorted_by(|a, b| a < b), "a thread's IDs go up: {issued:?}");
        all.extend(issued);
        refused.extend(thread.iter().filter_map(|result| result.err()).map(|error| error.code()));
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "an ID is repeated");
    refused
}

#[test]
fn two_threads_repeat_nothing() {
    model(|| {
        let ids = ids(&Moved::new(), 8, 1000);
        assert!(check(&run(2, 2, &ids, || {})).is_empty());
    });
}

#[test]
fn three_threads_repeat_nothing() {
    model(|| {
        let ids = ids(&Moved::new(), 8, 1000);
        assert!(check(&run(3, 1, &ids, || {})).is_empty());
    });
}

#[test]
fn a_used_up_tick_is_shared_out_exactly() {
    model(|| {
        // Two slots, and three that want one.
        let results = run(3, 1, &ids(&Moved::new(), 1, 1000), || {});
        assert_eq!(check(&results), [ErrorCode::SequenceExhausted]);
    });
}

#[test]
fn a_step_back_amid_calls_repeats_nothing() {
    model(|| {
        let clock = Moved::new();
        let ids = ids(&clock, 8, 1000);
        let results = run(2, 2, &ids, || clock.to(START - 5));
        assert!(check(&results).is_empty());
    });
}

#[test]
fn a_step_back_past_the_bound_is_refused_and_repeats_nothing() {
    model(|| {
        let clock = Moved::new();
        let ids = ids(&clock, 8, 2);
        let refused = check(&run(2, 2, &ids, || clock.to(START - 5)));
        assert!(refused.iter().all(|code| *code == ErrorCode::ClockMovedBackwards));
    });
}

#[test]
fn a_thread_that_pauses_between_the_cursor_and_the_clock_is_no_rollback() {
    model(|| {
        let clock = Moved::new();
        let ids = ids(&clock, 8, 2);
        // The clock only goes forward, and by more than the bound: whoever reads it before the cursor, and is
        // overtaken between the two, sees a rollback that never was.
        let results = run(2, 1, &ids, || clock.to(START + 500));
        assert!(check(&results).is_empty());
    });
}
