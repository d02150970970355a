//! Models of the cursor, the process-wide table, and the numbers that counters have in hand. Loom runs their
//! threads in every interleaving: `RUSTFLAGS="--cfg loom" cargo test --release --test models`. Each model has
//! a mutant that makes it fail: tools/models --mutants.
#![cfg(loom)]

use std::sync::Arc;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicI64, Ordering};
use loom::thread;
use polyflake::{BuiltinClock, ClockError, Error, ErrorCode, Lease, LeaseKeeper, Snowflake, TimeSource};

// From a crate that loom cannot build as a whole.
#[path = "../../coordination/src/counter/segments.rs"]
#[allow(dead_code)]
mod segments;

use segments::{Rest, Run, Segments};

const START: i64 = 1_000;

/// Every interleaving with at most three preemptions, which is enough for typical bugs. Without a limit, the
/// models take minutes.
fn model(body: impl Fn() + Send + Sync + 'static) {
    with_preemptions(3, body);
}

fn with_preemptions(most: usize, body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(most);
    builder.check(body);
}

/// A clock that threads of the model advance.
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

impl TimeSource for Moved {
    fn wall_ns(&self) -> i64 {
        self.0.load(Ordering::Acquire) * 1_000_000
    }

    fn monotonic_ns(&self) -> i64 {
        0
    }
}

fn ids(clock: &Moved, sequence_bits: u32, max_backward_ms: u32) -> Arc<Snowflake<Moved>> {
    let layout = format!("timestamp:40|worker:4|sequence:{sequence_bits}@0/1ms");
    let options = Snowflake::builder().layout(layout.as_str()).node(1).max_backward_ms(max_backward_ms);
    Arc::new(options.max_wait_ms(0).build_with_clock(clock.clone()).unwrap())
}

/// Runs `threads` that each take `each` IDs, together with `meanwhile`, and returns the IDs of each thread.
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

/// Checks that no ID repeats and that each thread's IDs increase. Returns the error codes.
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
        // Two slots for three calls that want one each.
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
fn a_step_back_past_the_tolerance_is_refused_and_repeats_nothing() {
    model(|| {
        let clock = Moved::new();
        let ids = ids(&clock, 8, 2);
        let results = run(2, 2, &ids, || clock.to(START - 5));
        assert!(check(&results).iter().all(|code| *code == ErrorCode::ClockMovedBackwards));
        // If any call was early enough, the cursor is where the clock was.
        let issued = results.iter().flatten().filter_map(|result| result.ok());
        let was_early = issued.map(|id| ids.decode(id).unwrap().timestamp_ms()).max() == Some(START as u64);
        assert_eq!(ids.try_next_id().is_err(), was_early);
    });
}

#[test]
fn a_thread_that_pauses_between_the_cursor_and_the_clock_is_no_rollback() {
    model(|| {
        let clock = Moved::new();
        let ids = ids(&clock, 8, 2);
        // The clock only moves forward, but by more than the tolerance. A thread that reads it before the
        // cursor, and is overtaken in between, sees a rollback that never happened.
        let results = run(2, 1, &ids, || clock.to(START + 500));
        assert!(check(&results).is_empty());
    });
}

/// Models the threads of an interpreter: all calls that take IDs hold its lock, and some of them move the
/// cursor without a locked instruction.
#[test]
fn calls_under_one_lock_repeat_nothing() {
    model(|| {
        let ids = ids(&Moved::new(), 8, 1000);
        ids.try_next_id().unwrap();
        let lock = Arc::new(Mutex::new(()));
        let taking: Vec<_> = (0..2)
            .map(|_| {
                let (ids, lock) = (Arc::clone(&ids), Arc::clone(&lock));
                thread::spawn(move || {
                    let by_a_store = {
                        let _held = lock.lock().unwrap();
                        ids.poll_next_id_under_lock().or_else(|blocked| ids.try_next_id_after(blocked))
                    };
                    let _held = lock.lock().unwrap();
                    vec![by_a_store, ids.try_next_id()]
                })
            })
            .collect();
        let results: Vec<_> = taking.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(check(&results).is_empty());
    });
}

/// A Snowflake that shares the process's cursor for its node.
fn shared(clock: &Moved, node: u64) -> Snowflake<BuiltinClock<Moved>> {
    let options = Snowflake::builder().layout("timestamp:40|worker:4|sequence:8@0/1ms").node(node);
    options.max_wait_ms(0).build_on(clock.clone(), |clock| clock).unwrap()
}

/// Has threads build a Snowflake for each of `nodes` at the same time, then takes IDs from each of them, and
/// from another one for each node.
fn build_at_once<const N: usize>(nodes: [u64; N]) {
    let clock = Moved::new();
    let building = nodes.map(|node| {
        let clock = clock.clone();
        thread::spawn(move || shared(&clock, node))
    });
    let built = building.map(|thread| thread.join().unwrap());
    // A new cursor treats the tick in which it is created as used up.
    clock.to(START + 1);
    let again = nodes.map(|node| shared(&clock, node));
    // Two cursors for the same node would repeat IDs, and a cursor created just now has no IDs left.
    let results: Vec<_> = built.iter().chain(&again).map(|ids| vec![ids.try_next_id()]).collect();
    assert!(check(&results).is_empty(), "a cursor is lost");
}

#[test]
fn two_threads_that_build_for_one_node_share_its_cursor() {
    model(|| build_at_once([1, 1]));
}

#[test]
fn three_threads_that_build_for_one_node_share_its_cursor() {
    model(|| build_at_once([1, 1, 1]));
}

#[test]
fn threads_that_build_for_nodes_of_their_own_lose_none() {
    model(|| build_at_once([1, 2, 3]));
}

#[test]
fn threads_that_build_for_one_node_amid_others_share_its_cursor() {
    model(|| build_at_once([1, 2, 1]));
}

/// A keeper without a store, for the models' leases.
#[derive(Debug)]
struct NoStore;

impl LeaseKeeper for NoStore {
    fn wake(&self) {}

    fn joined(&self) {}

    fn left(&self, _: bool) {}

    fn store(&self) -> &'static str {
        ""
    }

    fn retry_after_ms(&self) -> u64 {
        0
    }

    fn is_reachable(&self) -> bool {
        true
    }
}

/// A Snowflake on a lease that holds node 1 from the beginning.
fn leased(clock: &Moved) -> (&'static Lease, Arc<Snowflake<Moved>>) {
    let options = Snowflake::builder().layout("timestamp:40|worker:4|sequence:8@0/1ms").lease("redis://host");
    let options = options.max_wait_ms(0);
    let lease = options.new_lease(Box::new(NoStore)).unwrap();
    assert!(lease.hold(1, START.unsigned_abs(), START.unsigned_abs() + 1000));
    (lease, Arc::new(options.build_on_lease(lease, clock.clone(), |_| clock.clone()).unwrap()))
}

/// Checks the nodes: another process has node 1 from the tick that `end` returned, and the previous owner had
/// node 2 up to its first tick.
fn check_nodes(ids: &Snowflake<Moved>, results: &[Vec<Result<u64, Error>>], end: u64, second: u64) {
    check(results);
    for id in results.iter().flatten().filter_map(|result| result.ok()) {
        let decoded = ids.decode(id).unwrap();
        match decoded.node() {
            1 => {
                assert!(decoded.ticks() < end, "an ID of tick {}, given back from {end} on", decoded.ticks())
            }
            2 => assert!(decoded.ticks() >= second, "an ID of tick {}, before {second}", decoded.ticks()),
            node => panic!("node {node}"),
        }
    }
}

#[test]
fn a_node_that_is_given_back_issues_nothing_more() {
    model(|| {
        let clock = Moved::new();
        let (lease, ids) = leased(&clock);
        let mut end = 0;
        let results = run(2, 1, &ids, || end = lease.end());
        check_nodes(&ids, &results, end, 0);
    });
}

#[test]
fn a_lease_that_gets_another_node_issues_with_one_of_them() {
    model(|| {
        let clock = Moved::new();
        let (lease, ids) = leased(&clock);
        // The Snowflake now has the first node's words.
        ids.try_next_id().unwrap();
        let second = START.unsigned_abs() + 1;
        let mut end = 0;
        let mut mine = Vec::new();
        let mut results = run(1, 1, &ids, || {
            end = lease.end();
            clock.to(START + 1);
            assert!(lease.hold(2, second, second + 1000));
            // This call learns of the node while the other call is about to use it.
            mine.push(ids.try_next_id());
        });
        results.push(mine);
        check_nodes(&ids, &results, end, second);
    });
}

/// Two threads take numbers while a third removes the numbers in hand and adds new ones.
#[test]
fn numbers_in_hand_are_taken_once() {
    // With three preemptions, this model takes a minute.
    with_preemptions(2, || {
        let segments = Arc::new(Segments::new());
        let mut all = Vec::new();
        let mut install = |first| {
            segments.install(Run { first, stride: 1, count: 2 });
            all.extend([first, first + 1]);
        };
        // One segment and part of another.
        install(1);
        let mut got = numbers(segments.take(1));
        install(11);
        let taking: Vec<_> = [1, 2]
            .map(|wanted| {
                let segments = Arc::clone(&segments);
                thread::spawn(move || numbers(segments.take(wanted)))
            })
            .into();
        got.extend(left_of(&segments.end()));
        // Takes the place of the first segment.
        install(21);
        got.extend(taking.into_iter().flat_map(|thread| thread.join().unwrap()));
        got.extend(left_of(&segments.end()));
        check_numbers(&segments, got, &all);
    });
}

/// A thread takes one number while another removes the numbers in hand, adds new ones and takes some of
/// those.
#[test]
fn numbers_taken_one_by_one_are_taken_once() {
    model(|| {
        let segments = Arc::new(Segments::new());
        let mut all = Vec::new();
        let mut install = |first| {
            segments.install(Run { first, stride: 1, count: 2 });
            all.extend([first, first + 1]);
        };
        install(1);
        let mut got: Vec<_> = one(&segments).into_iter().collect();
        install(11);
        let taking = {
            let segments = Arc::clone(&segments);
            thread::spawn(move || one(&segments))
        };
        got.extend(left_of(&segments.end()));
        install(21);
        got.extend(one(&segments));
        got.extend(taking.join().unwrap());
        got.extend(left_of(&segments.end()));
        check_numbers(&segments, got, &all);
    });
}

/// A thread takes the last number of a segment while another moves to the next one and puts a new one in
/// place of the first.
#[test]
fn the_last_number_of_a_segment_is_taken_once() {
    model(|| {
        let segments = Arc::new(Segments::new());
        let mut all = Vec::new();
        let mut install = |first| {
            segments.install(Run { first, stride: 1, count: 2 });
            all.extend([first, first + 1]);
        };
        install(1);
        let mut got: Vec<_> = one(&segments).into_iter().collect();
        install(11);
        let taking = {
            let segments = Arc::clone(&segments);
            thread::spawn(move || one(&segments))
        };
        // This does not use `end`, which reads the first segment's place: loom lets a write move only before
        // the last read, and that must be the thread's.
        got.extend(numbers(segments.take(1)));
        if segments.wants_more() {
            install(21);
        }
        got.extend(taking.join().unwrap());
        got.extend(left_of(&segments.end()));
        check_numbers(&segments, got, &all);
    });
}

/// A thread takes a number while others use up its segment and the next, and put new ones in their places.
#[test]
fn a_number_of_a_segment_that_was_left_is_taken_once() {
    model(|| {
        let segments = Arc::new(Segments::new());
        let install = |segments: &Segments, first| segments.install(Run { first, stride: 1, count: 2 });
        install(&segments, 1);
        let mut got: Vec<_> = one(&segments).into_iter().collect();
        install(&segments, 11);
        let mut all = vec![1, 2, 11, 12];
        let taking = {
            let segments = Arc::clone(&segments);
            thread::spawn(move || [segments.take(1), segments.take(1)])
        };
        let installing = {
            let segments = Arc::clone(&segments);
            thread::spawn(move || {
                let (mut installed, mut got) = (Vec::new(), Vec::new());
                for first in [21, 31] {
                    if segments.wants_more() {
                        install(&segments, first);
                        installed.extend([first, first + 1]);
                        got.extend(numbers(segments.take(1)));
                    }
                }
                (installed, got)
            })
        };
        got.extend(one(&segments));
        got.extend(taking.join().unwrap().into_iter().flat_map(numbers));
        let (installed, others) = installing.join().unwrap();
        all.extend(installed);
        got.extend(others);
        got.extend(left_of(&segments.end()));
        check_numbers(&segments, got, &all);
    });
}

fn one(segments: &Segments) -> Option<u64> {
    segments.take_one(|| {})
}

/// Checks that each number was taken once, or was given up.
fn check_numbers(segments: &Segments, mut got: Vec<u64>, all: &[u64]) {
    got.sort_unstable();
    assert!(got.is_sorted_by(|a, b| a < b), "a number is taken twice: {got:?}");
    assert!(got.iter().all(|number| all.contains(number)), "{got:?} of {all:?}");
    assert!(all.len() - got.len() <= segments.given_up() as usize, "a number is lost: {got:?} of {all:?}");
}

fn numbers(taken: Option<(Run, bool)>) -> Vec<u64> {
    taken.into_iter().flat_map(|(run, _)| run.first..=run.last()).collect()
}

/// Returns the numbers that were still in hand.
fn left_of(rest: &Rest) -> Vec<u64> {
    let before = rest.before.into_iter().flat_map(|(run, left)| run.last() + 1 - left..=run.last());
    before.chain(rest.newest.first + rest.taken..rest.newest.first + rest.newest.count).collect()
}
