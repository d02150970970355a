//! Leased nodes, normally assigned by a keeper. Here, the test assigns them.
#![cfg(all(unix, not(loom)))]

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use polyflake::{
    BuiltinClock, Error, ErrorCode, Lease, LeaseKeeper, LeaseState, Options, Snowflake, StdTime,
};

/// A keeper that counts the notifications it receives.
#[derive(Debug, Default, Clone)]
struct Keeper {
    wakes: Arc<AtomicU64>,
    joined: Arc<AtomicU64>,
    left: Arc<AtomicU64>,
    closed: Arc<AtomicU64>,
    has_panicked: Arc<AtomicBool>,
}

impl LeaseKeeper for Keeper {
    fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::SeqCst);
    }

    fn joined(&self) {
        self.joined.fetch_add(1, Ordering::SeqCst);
    }

    fn left(&self, is_closed: bool) {
        self.left.fetch_add(1, Ordering::SeqCst);
        self.closed.fetch_add(u64::from(is_closed), Ordering::SeqCst);
    }

    fn store(&self) -> &'static str {
        "redis://host:6379/0"
    }

    fn retry_after_ms(&self) -> u64 {
        700
    }

    fn is_reachable(&self) -> bool {
        true
    }

    fn has_panicked(&self) -> bool {
        self.has_panicked.load(Ordering::SeqCst)
    }
}

/// Each test has a different epoch, so that no test receives another's nodes.
struct Test {
    options: Options,
    epoch_ms: u64,
    keeper: Keeper,
    lease: &'static Lease,
}

impl Test {
    fn new(epoch_ms: u64) -> Self {
        let layout = format!("timestamp:41|datacenter:5|worker:5|sequence:12@{epoch_ms}/1ms");
        let options =
            Snowflake::builder().layout(layout.as_str()).lease("redis://host/0").max_wait_ms(60_000);
        let keeper = Keeper::default();
        let lease = options.new_lease(Box::new(keeper.clone())).unwrap();
        Self { options, epoch_ms, keeper, lease }
    }

    fn ids(&self) -> Snowflake {
        self.build(&self.options)
    }

    fn build(&self, options: &Options) -> Snowflake {
        options.build_on_lease(self.lease, StdTime, |clock: BuiltinClock| clock).unwrap()
    }

    /// The current tick.
    fn now(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        u64::try_from(now).unwrap() - self.epoch_ms
    }

    fn hold(&self, node: u64) {
        assert!(self.lease.hold(node, self.now(), self.now() + 3_600_000));
    }
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorCode {
    result.unwrap_err().code()
}

#[test]
fn a_lease_brings_a_node_and_another_one() {
    let test = Test::new(1_500_000_000_001);
    let ids = test.ids();
    let error = ids.try_next_id().unwrap_err();
    assert_eq!((error.code(), error.retry_after_ms()), (ErrorCode::LeaseLost, Some(700)));
    assert!(error.to_string().contains("redis://host:6379/0 has not renewed it"), "{error}");
    assert!(test.keeper.wakes.load(Ordering::SeqCst) > 0);

    test.hold(7);
    let first = ids.next_id().unwrap();
    assert_eq!((ids.decode(first).unwrap().node(), ids.node()), (7, 7));
    assert!(ids.next_ids(10_000).unwrap().iter().all(|id| ids.decode(*id).unwrap().node() == 7));
    let last = ids.next_id().unwrap();

    let issued_until = test.lease.end();
    assert_eq!(issued_until, ids.decode(last).unwrap().ticks() + 1);
    assert_eq!(code(ids.try_next_id()), ErrorCode::LeaseLost);
    assert_eq!(test.lease.end(), 0);

    test.hold(900);
    let next = ids.next_id().unwrap();
    assert_eq!(ids.node(), 900);
    let (last, next) = (ids.decode(last).unwrap(), ids.decode(next).unwrap());
    assert!(next.node() == 900 && next.ticks() > last.ticks(), "{last:?} {next:?}");
}

/// Calls fail immediately, and their errors promise no retry.
#[test]
fn nothing_is_waited_for_once_the_keeper_has_panicked() {
    let test = Test::new(1_500_000_000_101);
    let ids = test.build(&test.options.clone().max_wait_ms(u32::MAX));
    test.hold(7);
    ids.next_id().unwrap();
    test.keeper.has_panicked.store(true, Ordering::SeqCst);
    ids.next_id().unwrap();
    test.lease.end();
    let error = ids.next_id().unwrap_err();
    assert_eq!((error.code(), error.retry_after_ms()), (ErrorCode::LeaseLost, None));
    assert!(
        error.to_string().contains("node 7 is over: the task that renews it at redis://host:6379/0 panicked"),
        "{error}"
    );
    assert_eq!(test.lease.node(), Some(7));
}

#[test]
fn nothing_is_issued_at_the_bound_or_past_it() {
    let test = Test::new(1_500_000_000_002);
    let options = test.options.clone().max_ahead_ms(1000).max_wait_ms(0);
    let lease = options.new_lease(Box::new(test.keeper.clone())).unwrap();
    // A clock that stands still in tick 5000, so that only max_ahead_ms lets the ticks advance.
    let now_ms = i64::try_from(test.epoch_ms + 5000).unwrap();
    let ids = options.build_on_lease(lease, StdTime, |_| move || Ok(now_ms)).unwrap();
    let bound = 5002;
    assert!(lease.hold(3, 5000, bound));
    let mut last = 0;
    let end = loop {
        match ids.next_id() {
            Ok(id) => last = ids.decode(id).unwrap().ticks(),
            Err(error) => break error,
        }
    };
    assert_eq!((end.code(), last), (ErrorCode::LeaseLost, bound - 1));
    assert_eq!(code(ids.next_ids(1)), ErrorCode::LeaseLost);
    lease.extend(bound + 2);
    let more = ids.next_ids(4096).unwrap();
    assert!(more.iter().all(|id| (bound..bound + 2).contains(&ids.decode(*id).unwrap().ticks())));
    // Extending the lease to an earlier bound does not move its bound back.
    lease.extend(bound);
    assert!(ids.next_id().is_ok());
    lease.shorten(bound);
    assert_eq!(code(ids.next_id()), ErrorCode::LeaseLost);
}

#[test]
fn a_call_waits_for_the_keeper_and_a_batch_is_of_one_node() {
    let test = Test::new(1_500_000_000_003);
    let ids = test.build(&test.options.clone());
    let bound = test.now() + 100;
    assert!(test.lease.hold(1, bound - 100, bound));
    let batch = thread::scope(|scope| {
        // More IDs than fit in 100 ticks.
        let batch = scope.spawn(|| ids.next_ids(1_000_000).unwrap());
        while test.keeper.wakes.load(Ordering::SeqCst) == 0 {
            thread::yield_now();
        }
        test.lease.end();
        test.hold(2);
        batch.join().unwrap()
    });
    assert!(batch.is_sorted_by(|a, b| a < b));
    assert!(batch.iter().all(|id| ids.decode(*id).unwrap().node() == 2));
}

#[test]
fn nodes_change_under_threads_and_nothing_repeats() {
    let test = Test::new(1_500_000_000_004);
    let ids = test.build(&test.options.clone());
    let other = test.build(&test.options.clone());
    let done = AtomicU64::new(0);
    // For each term: the node, its first tick, and the tick after its last one.
    let mut terms = Vec::new();
    let all: Vec<Vec<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|n| {
                let (ids, done, test) = (if n % 2 == 0 { &ids } else { &other }, &done, &test);
                scope.spawn(move || {
                    let mut all = Vec::new();
                    let mut local = (n == 3).then(|| test.build(&test.options.clone()).into_local());
                    while done.load(Ordering::SeqCst) == 0 {
                        match (n, &mut local) {
                            (_, Some(local)) => all.push(local.next_id().unwrap()),
                            (2, None) => all.extend(ids.next_ids(50).unwrap()),
                            _ => all.push(ids.next_id().unwrap()),
                        }
                    }
                    all
                })
            })
            .collect();
        for round in 0..200 {
            let first = test.now().max(terms.last().map_or(0, |(_, _, end)| *end));
            assert!(test.lease.hold(round % 8, first, first + 10_000));
            thread::sleep(Duration::from_micros(round * 17 % 3000));
            terms.push((round % 8, first, test.lease.end().max(first)));
        }
        done.store(1, Ordering::SeqCst);
        test.hold(9);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut seen = HashSet::new();
    for id in all.iter().flatten() {
        assert!(seen.insert(*id), "{id} twice");
        let decoded = ids.decode(*id).unwrap();
        let (node, tick) = (decoded.node(), decoded.ticks());
        let is_in = |(of, first, end): &(u64, u64, u64)| *of == node && (*first..*end).contains(&tick);
        assert!(node == 9 || terms.iter().any(is_in), "node {node} in tick {tick}");
    }
    for (n, ids) in all.iter().enumerate() {
        assert!(n == 2 || ids.is_sorted_by(|a, b| a < b), "thread {n}");
    }
    assert_eq!(ids.stats().unwrap().lease_losses, 0);
}

#[test]
fn the_keeper_hears_who_comes_and_goes_once() {
    let test = Test::new(1_500_000_000_005);
    let (ids, other) = (test.ids(), test.ids());
    ids.close();
    ids.close();
    assert_eq!(code(ids.next_id()), ErrorCode::Closed);
    assert_eq!(ids.lease().unwrap().unwrap().state, LeaseState::Closed);
    drop((ids, other));
    let counts = [&test.keeper.joined, &test.keeper.left, &test.keeper.closed];
    assert_eq!(counts.map(|count| count.load(Ordering::SeqCst)), [2, 2, 1]);
}

#[test]
fn a_lease_tells_how_it_stands() {
    let test = Test::new(1_500_000_000_006);
    let ids = test.ids();
    let bound = test.now() + 3_600_000;
    assert!(test.lease.hold(70, 0, bound));
    let info = ids.lease().unwrap().unwrap();
    assert_eq!((info.node, info.bound_ms, info.state), (70, test.epoch_ms + bound, LeaseState::Held));
    assert!(info.left_ms <= 3_600_000 && info.store == "redis://host:6379/0");
    test.lease.end();
    test.lease.count_loss();
    let info = ids.lease().unwrap().unwrap();
    assert_eq!((info.state, info.left_ms), (LeaseState::Lost, 0));
    assert_eq!(ids.stats().unwrap().lease_losses, 1);
    assert_eq!(Snowflake::builder().node(1).build().unwrap().lease().unwrap(), None);
}

#[test]
fn a_snowflake_may_be_used_where_panics_are_caught() {
    fn is_safe<T: std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    is_safe::<Snowflake>();
}

#[test]
fn one_node_has_one_lease_or_none_in_a_process() {
    let test = Test::new(1_500_000_000_007);
    let layout = test.ids().layout().to_string();
    let unleased = Snowflake::builder().layout(layout.as_str());
    let _used = unleased.clone().node(5).build().unwrap();
    assert!(test.lease.is_used(5));
    assert!(!test.lease.hold(5, 0, u64::MAX));
    let other = test.options.new_lease(Box::new(Keeper::default())).unwrap();
    assert!(!test.lease.is_used(6) && !other.is_used(6));
    test.hold(6);
    // A lease may get back a node it has lost.
    assert!(!test.lease.is_used(6) && other.is_used(6));
    assert!(!other.hold(6, 0, u64::MAX));
    let error = unleased.clone().node(6).build().unwrap_err();
    assert!(error.to_string().contains("this process leases this node, or has leased it"), "{error}");
    test.lease.end();
    assert!(other.hold(6, 0, u64::MAX));
    assert_eq!(code(unleased.node(6).build()), ErrorCode::InvalidOption);
}

#[test]
fn options_that_do_not_go_with_a_lease_are_refused() {
    let test = Test::new(1_500_000_000_008);
    let _first = test.ids();
    for (options, says) in [
        (test.options.clone().state("/tmp/state"), "state and lease are both given"),
        (Snowflake::builder().lease(""), "lease is ``"),
    ] {
        let error = options.lease_terms().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    let other = test.options.clone().max_ahead_ms(5);
    assert_eq!(
        code(other.build_on_lease(test.lease, StdTime, |clock: BuiltinClock| clock)),
        ErrorCode::InvalidOption
    );
    assert_eq!(code(test.options.build()), ErrorCode::InvalidOption);
    assert_eq!(code(test.options.build_with_clock(|| Ok(0))), ErrorCode::InvalidOption);
    let fixed = |options: Options| options.lease_terms().map(|terms| terms.unwrap().fixed);
    let options = || test.options.clone();
    assert_eq!(fixed(options()), Ok((0, 0)));
    assert_eq!(fixed(options().node([("datacenter", 3)])), Ok((31 << 5, 3 << 5)));
    assert_eq!(fixed(options().node([("worker", 31)])), Ok((31, 31)));
    assert_eq!(fixed(options().node(1023)), Ok((1023, 1023)));
    assert_eq!(code(fixed(options().node(1024))), ErrorCode::InvalidNode);
    assert_eq!(code(fixed(options().node([("shard", 1)]))), ErrorCode::InvalidNode);
    assert_eq!(code(fixed(options().node([("worker", 32)]))), ErrorCode::InvalidNode);
    let secret = format!("{:?}", options().lease("redis://:secret@host"));
    assert!(!secret.contains("secret"), "{secret}");
}

#[test]
fn children_have_none_of_it() {
    let test = Test::new(1_500_000_000_009);
    let ids = test.ids();
    test.hold(11);
    let check_child = || {
        // SAFETY: the child calls only async-signal-safe functions, which use no lock and no heap.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let codes = [code(ids.next_id()), code(ids.lease())];
            let is_right = codes == [ErrorCode::Forked; 2] && ids.node() == 11;
            // SAFETY: this ends the child immediately.
            unsafe { libc::_exit(i32::from(!is_right)) };
        }
        let mut status = 1;
        // SAFETY: this writes only to `status`.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
    };
    // Before the parent's first ID, and after it.
    check_child();
    let first = ids.next_id().unwrap();
    check_child();
    assert!(ids.next_id().unwrap() > first);
    drop(ids);
    assert_eq!(test.keeper.left.load(Ordering::SeqCst), 1);
}

#[test]
fn a_process_may_have_more_nodes_than_a_page_has_words() {
    let test = Test::new(1_500_000_000_010);
    let ids = test.ids();
    for node in 0..1000 {
        assert!(test.lease.hold(node, test.now(), u64::MAX), "{node}");
        let id = ids.next_id().unwrap();
        assert_eq!(ids.decode(id).unwrap().node(), node);
        test.lease.end();
    }
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "does not keep others from the cursor")]
fn a_lock_of_the_callers_is_not_enough() {
    let test = Test::new(1_500_000_000_011);
    test.hold(1);
    let _ = test.ids().poll_next_id_under_lock();
}

/// Nodes change while calls from event loops wait, receive slots from threads, are dropped, and ask again.
#[test]
fn nodes_change_under_polled_calls_and_nothing_repeats() {
    use polyflake::{Polled, Waiting};
    let layout = "timestamp:41|worker:10|sequence:2@1500000000014/1ms";
    let options = Snowflake::builder().layout(layout).lease("redis://host/0").max_wait_ms(60_000);
    let keeper = Keeper::default();
    let lease = options.new_lease(Box::new(keeper)).unwrap();
    let ids = options.build_on_lease(lease, StdTime, |clock: BuiltinClock| clock).unwrap();
    let now = || {
        u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
            - 1_500_000_000_014
    };
    let done = AtomicU64::new(0);
    let mut terms = Vec::new();
    let all: Vec<Vec<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..5)
            .map(|n| {
                let (ids, done) = (&ids, &done);
                scope.spawn(move || {
                    let mut all = Vec::new();
                    let mut calls: Vec<_> = (0..10).map(|_| Waiting::default()).collect();
                    let mut round = 0_u64;
                    while done.load(Ordering::SeqCst) == 0 {
                        if n > 1 {
                            all.push(ids.next_id().unwrap());
                            continue;
                        }
                        for waiting in &mut calls {
                            round = round
                                .wrapping_mul(6_364_136_223_846_793_005)
                                .wrapping_add(1_442_695_040_888_963_407);
                            if (round >> 33) % 10 == 0 {
                                *waiting = Waiting::default();
                            }
                            let mut some = [0; 3];
                            let n = 1 + (round >> 40) as usize % 3;
                            if let Ok(Polled::Filled(n)) =
                                ids.poll_waiting(waiting, &mut some[..n], Some(Duration::from_millis(1)))
                            {
                                all.extend(&some[..n]);
                            }
                        }
                        thread::sleep(Duration::from_micros(300));
                    }
                    all
                })
            })
            .collect();
        for round in 0..400_u64 {
            let first = now().max(terms.last().map_or(0, |(_, _, end): &(u64, u64, u64)| *end));
            assert!(lease.hold(round % 8, first, first + 10_000));
            thread::sleep(Duration::from_micros(round * 17 % 3000));
            if round % 3 == 0 {
                lease.shorten(now() + 1);
                thread::sleep(Duration::from_micros(round * 13 % 3000));
            }
            terms.push((round % 8, first, lease.end().max(first)));
        }
        let first = now().max(terms.last().unwrap().2);
        assert!(lease.hold(9, first, first + 3_600_000));
        terms.push((9, first, u64::MAX));
        done.store(1, Ordering::SeqCst);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut seen = HashSet::new();
    for id in all.iter().flatten() {
        assert!(seen.insert(*id), "{id} twice");
        let id = ids.decode(*id).unwrap();
        assert!(
            terms.iter().any(|(node, first, end)| id.node() == *node && (*first..*end).contains(&id.ticks())),
            "{id:?} is of no term"
        );
    }
    println!("{} IDs in {} terms", seen.len(), terms.len());
}
