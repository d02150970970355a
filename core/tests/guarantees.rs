//! The README's guarantees for a single process.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use polyflake::{ClockError, ClockName, Error, ErrorCode, Layout, SequenceStart, Snowflake, Wait};

/// Each test uses different nodes, because a process has only one cursor per node.
fn builder(node: u64) -> polyflake::Options {
    Snowflake::builder().node(node)
}

#[test]
fn eight_threads_repeat_nothing_and_each_goes_up() {
    const THREADS: usize = 8;
    const EACH: usize = if cfg!(miri) { 200 } else { 250_000 };
    // Under contention, waits are unfair. Their duration is not tested here.
    let ids = builder(1).max_wait_ms(60_000).build().unwrap();
    let issued: Vec<Vec<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let ids = &ids;
                scope.spawn(move || {
                    // Half the threads take single IDs and half take batches, all from the same cursor.
                    if thread % 2 == 0 {
                        ids.iter().take(EACH).map(Result::unwrap).collect()
                    } else {
                        let mut all = vec![0; EACH];
                        all.chunks_mut(999).for_each(|part| ids.fill(part).unwrap());
                        all
                    }
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut per_tick = std::collections::HashMap::<u64, u64>::new();
    let mut all = HashSet::with_capacity(THREADS * EACH);
    for thread in &issued {
        assert!(thread.is_sorted_by(|a, b| a < b), "each thread's IDs go up");
        for id in thread {
            assert!(all.insert(*id), "{id} is repeated");
            let decoded = ids.decode(*id).unwrap();
            assert_eq!(decoded.node(), 1);
            *per_tick.entry(decoded.ticks()).or_default() += 1;
        }
    }
    assert_eq!(all.len(), THREADS * EACH);
    assert!(per_tick.values().all(|count| *count <= ids.layout().ids_per_tick()));
}

#[test]
fn owners_in_threads_of_their_own_repeat_nothing_beside_others_on_their_cursor() {
    const EACH: usize = if cfg!(miri) { 100 } else { 50_000 };
    // A layout wide enough for the slots that are lost when the owners take turns.
    let layout = "timestamp:39|worker:5|sequence:20@1735689600000/1ms";
    let made = || builder(3).layout(layout).max_wait_ms(60_000).build().unwrap();
    let issued: Vec<Vec<u64>> = thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 0..2 {
            threads.push(scope.spawn(|| made().iter().take(EACH).map(Result::unwrap).collect()));
            threads.push(scope.spawn(|| made().into_local().take(EACH).map(Result::unwrap).collect()));
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(issued.iter().all(|thread: &Vec<u64>| thread.is_sorted_by(|a, b| a < b)));
    assert_eq!(issued.iter().flatten().collect::<HashSet<_>>().len(), 4 * EACH);
}

#[test]
fn an_owner_takes_a_whole_tick_and_no_more() {
    let mut ids = builder(4).layout("yitter").build().unwrap().into_local();
    let all: Vec<u64> = ids.by_ref().take(64 * 50).map(Result::unwrap).collect();
    assert!(all.is_sorted_by(|a, b| a < b));
    let ticks: Vec<u64> = all.iter().map(|id| ids.decode(*id).unwrap().ticks()).collect();
    assert!(ticks.chunk_by(|a, b| a == b).all(|tick| tick.len() <= 64));
    // As with a shared Snowflake, all ticks are full except where the scheduler pauses the thread.
    assert!(ticks.chunk_by(|a, b| a == b).any(|tick| tick.len() == 64));
}

#[test]
fn an_owners_ids_spread_as_others_do() {
    let now = Cell::new(1_700_000_000_000);
    for layout in ["twitter", "yitter", "timestamp:41|sequence:3@0/1ms"] {
        let options = || Snowflake::builder().layout(layout).node(0);
        let ids = options().build_with_clock(|| Ok(now.get())).unwrap();
        let mut own = options().build_with_clock(|| Ok(now.get())).unwrap().into_local();
        for _ in 0..100 {
            now.set(now.get() + 1);
            assert_eq!(own.try_next_id().unwrap(), ids.try_next_id().unwrap());
        }
    }
}

#[test]
fn an_owner_who_closes_has_nothing_left() {
    let mut ids = builder(5).build().unwrap().into_local();
    let first = ids.next_id().unwrap();
    assert_eq!(ids.decode(first).unwrap().node(), ids.node());
    let mut batch = [0; 100];
    ids.fill(&mut batch).unwrap();
    assert!(batch[0] > first && ids.next_ids(3).unwrap()[0] > batch[99]);
    ids.next_id().unwrap();
    ids.close();
    let codes = [ids.next_id(), ids.try_next_id(), ids.next_ids(1).map(|ids| ids[0])];
    assert!(codes.iter().all(|refused| refused.unwrap_err().code() == ErrorCode::Closed));
}

#[test]
fn an_owner_tolerates_a_step_back_and_counts_it_once() {
    let now = Cell::new(1_700_000_000_000);
    let clock = || Ok(now.get());
    let mut ids = builder(6).max_backward_ms(100).build_with_clock(clock).unwrap().into_local();
    let first = ids.next_id().unwrap();
    now.set(now.get() - 100);
    assert_eq!((1..=200).map(|n| ids.try_next_id().unwrap() - first - n).sum::<u64>(), 0);
    assert_eq!(ids.stats().unwrap().rollbacks, 1);
    now.set(now.get() - 1);
    assert_eq!(ids.try_next_id().unwrap_err().behind_ms(), Some(101));
    now.set(now.get() + 1);
    assert_eq!(ids.try_next_id().unwrap(), first + 201);
}

#[test]
fn layouts_with_equal_bits_share_a_cursor() {
    let twitter = builder(2).layout("twitter").build().unwrap();
    let leaf = builder(2).layout("leaf").build().unwrap();
    let pairs = builder(0).layout("twitter").node([("datacenter", 0), ("worker", 2)]).build().unwrap();
    let mut last = 0;
    for _ in 0..1000 {
        for ids in [&twitter, &leaf, &pairs] {
            let id = ids.next_id().unwrap();
            assert!(id > last);
            last = id;
        }
    }
    // A different epoch is a different ID space.
    assert!(builder(2).layout("cosid").max_backward_ms(5).build().is_ok());
}

#[test]
fn a_snowflake_built_for_each_call_repeats_nothing() {
    let mut last = 0;
    for _ in 0..if cfg!(miri) { 50 } else { 5000 } {
        let id = builder(3).build().unwrap().next_id().unwrap();
        assert!(id > last);
        last = id;
    }
}

#[test]
fn a_shared_cursor_keeps_its_first_tolerance() {
    let first = builder(4).max_ahead_ms(5).build().unwrap();
    let refused = builder(4).build().unwrap_err();
    assert_eq!(refused.code(), ErrorCode::InvalidOption);
    assert!(refused.to_string().contains("max_ahead_ms is 0"), "{refused}");
    assert!(builder(4).max_ahead_ms(5).max_backward_ms(0).build().is_err());
    // Options that belong to the Snowflake, not to the cursor, may differ.
    assert!(builder(4).max_ahead_ms(5).max_wait_ms(0).clock(ClockName::Steady).build().is_ok());
    first.next_id().unwrap();
}

#[test]
fn a_restart_within_a_tick_cannot_repeat() {
    // A new cursor treats the tick in which it is created as used up.
    for (node, layout) in [(5, "sonyflake2"), (6, "timestamp:31|machine:10|sequence:22@1577203200000/1s")] {
        let made_in = now_ms();
        let ids = builder(node).layout(layout).build().unwrap();
        let id = ids.next_id().unwrap();
        assert!(ids.decode(id).unwrap().timestamp_ms() > made_in);
    }
}

#[test]
fn the_time_in_an_id_was_read_during_the_call() {
    let ids = builder(7).build().unwrap();
    for _ in 0..1000 {
        let before = now_ms();
        let decoded = ids.decode(ids.next_id().unwrap()).unwrap();
        assert!(before <= decoded.timestamp_ms() && decoded.timestamp_ms() <= now_ms());
    }
}

fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

#[test]
fn a_clock_that_goes_back_forever_hangs_nothing() {
    let now = AtomicI64::new(1_800_000_000_000);
    let ids = builder(8)
        .max_backward_ms(u32::MAX)
        .max_wait_ms(20)
        .build_with_clock(|| Ok(now.fetch_sub(1, Ordering::Relaxed)))
        .unwrap();
    let mut issued = 0;
    let error = loop {
        match ids.next_id() {
            Ok(_) => issued += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), ErrorCode::ClockMovedBackwards);
    assert!(error.behind_ms().unwrap() > 0 && error.retry_after_ms() > error.behind_ms());
    // At most one tick's worth of IDs, because after a step back, IDs may only continue in the last tick.
    assert!(issued <= ids.layout().ids_per_tick());
}

/// Time that passes only during pauses, and advances a clock by the same amount.
#[derive(Default)]
struct PausesAlone {
    elapsed: Duration,
    clock_ms: Option<Arc<AtomicI64>>,
}

impl Wait for PausesAlone {
    type Error = Error;

    fn elapsed(&mut self) -> Duration {
        self.elapsed
    }

    fn pause(&mut self, pause: Duration) -> Result<(), Error> {
        // A clock that counts in ms is never read more often than this.
        let pause = pause.max(Duration::from_millis(1));
        self.elapsed += pause;
        if let Some(clock) = &self.clock_ms {
            clock.fetch_add(i64::try_from(pause.as_millis()).unwrap(), Ordering::Relaxed);
        }
        Ok(())
    }
}

#[test]
fn a_wait_on_a_clock_that_stands_is_bounded_by_real_time() {
    let ids = builder(0).layout("timestamp:40|worker:1|sequence:1@0/1s").max_wait_ms(30);
    let ids = ids.build_with_clock(|| Ok(5_000)).unwrap();
    ids.next_ids(2).unwrap();
    let mut wait = PausesAlone::default();
    let error = ids.next_id_with(&mut wait).unwrap_err();
    assert_eq!(wait.elapsed, Duration::from_millis(30));
    assert_eq!(error.code(), ErrorCode::SequenceExhausted);
    assert_eq!(error.retry_after_ms(), Some(1000));
    assert_eq!(ids.stats().unwrap().waits, 1);
    // The same, but in real time, without a custom wait.
    assert_eq!(ids.next_id().unwrap_err(), error);
}

#[test]
fn a_thread_that_loses_the_processor_looks_once_more_before_it_gives_up() {
    /// Real time advances only when the test says so.
    struct Held<'a>(&'a Cell<u64>);

    impl Wait for Held<'_> {
        type Error = Error;

        fn elapsed(&mut self) -> Duration {
            Duration::from_millis(self.0.get())
        }

        fn pause(&mut self, _: Duration) -> Result<(), Error> {
            Ok(())
        }
    }

    let (real_ms, readings) = (Cell::new(0), Cell::new(0));
    let clock = || {
        let now_ms = 1_000 + i64::try_from(real_ms.get()).unwrap();
        readings.set(readings.get() + 1);
        if readings.get() == 4 {
            // After the first reading during a wait of at most 11 ms, the thread is preempted for 50 ms.
            real_ms.set(50);
        }
        Ok::<_, ClockError>(now_ms)
    };
    let layout = "timestamp:41|worker:1|sequence:1@0/1ms";
    let ids = Snowflake::builder().layout(layout).node(0).max_wait_ms(11).build_with_clock(clock).unwrap();
    let next = || ids.next_id_with(&mut Held(&real_ms));
    let taken = [next().unwrap(), next().unwrap(), next().unwrap()];
    assert_eq!(ids.decode(taken[2]).unwrap().ticks(), 1_050);
    assert!(readings.get() > 4, "the third call waited");
}

#[test]
fn a_batch_waits_as_long_for_each_run() {
    let now = Arc::new(AtomicI64::new(5_000));
    let clock = Arc::clone(&now);
    let ids = builder(0).layout("timestamp:40|worker:1|sequence:1@0/20ms").max_wait_ms(30);
    let ids = ids.build_with_clock(move || Ok(clock.load(Ordering::Relaxed))).unwrap();
    let mut wait = PausesAlone { clock_ms: Some(now), ..PausesAlone::default() };
    let mut batch = [0; 20];
    // Together, nine waits of 20 ms take longer than max_wait_ms, but no single one does.
    ids.fill_with(&mut batch, &mut wait).unwrap();
    assert_eq!(wait.elapsed, Duration::from_millis(9 * 20));
    assert!(batch.is_sorted_by(|a, b| a < b));
}

#[test]
fn what_interrupts_a_wait_ends_the_call() {
    #[derive(Debug, PartialEq)]
    enum Ended {
        Interrupted,
        Refused(Error),
    }
    impl From<Error> for Ended {
        fn from(error: Error) -> Self {
            Self::Refused(error)
        }
    }
    struct Interrupt;
    impl Wait for Interrupt {
        type Error = Ended;
        fn elapsed(&mut self) -> Duration {
            Duration::ZERO
        }
        fn pause(&mut self, pause: Duration) -> Result<(), Ended> {
            assert!(pause > Duration::ZERO);
            Err(Ended::Interrupted)
        }
    }
    let ids = builder(0).layout("timestamp:40|worker:1|sequence:1@0/1s");
    let ids = ids.build_with_clock(|| Ok(5_000)).unwrap();
    ids.next_ids(2).unwrap();
    assert_eq!(ids.next_id_with(&mut Interrupt), Err(Ended::Interrupted));
}

#[test]
fn a_failing_clock_is_named_and_loses_nothing() {
    let fails = std::cell::Cell::new(false);
    let clock =
        || if fails.get() { Err(ClockError::new("the time server is away")) } else { Ok(1_700_000_000_000) };
    let ids = builder(9).build_with_clock(clock).unwrap();
    let first = ids.next_id().unwrap();
    fails.set(true);
    let error = ids.next_id().unwrap_err();
    assert_eq!(error.code(), ErrorCode::ClockFailed);
    assert_eq!(error.to_string(), "clock_failed: the time server is away");
    fails.set(false);
    assert_eq!(ids.next_id().unwrap(), first + 1);
}

#[test]
fn stats_count_waits_rollbacks_and_the_lead() {
    let now = AtomicI64::new(1_700_000_000_000);
    let ids = builder(10).max_ahead_ms(50).build_with_clock(|| Ok(now.load(Ordering::Relaxed))).unwrap();
    assert_eq!(ids.stats().unwrap().last_issued_ms, None);
    ids.next_ids(4096 * 11).unwrap();
    let stats = ids.stats().unwrap();
    assert!((10..=11).contains(&stats.lead_ms), "{stats:?}");
    assert_eq!(stats.last_issued_ms, Some(1_700_000_000_000 + stats.lead_ms));
    assert_eq!((stats.waits, stats.rollbacks), (0, 0));
    now.fetch_sub(200, Ordering::Relaxed);
    ids.next_id().unwrap();
    ids.next_id().unwrap();
    assert_eq!(ids.stats().unwrap().rollbacks, 1, "one step back counts once");
    now.fetch_sub(5000, Ordering::Relaxed);
    ids.next_id().unwrap_err();
    assert_eq!(ids.stats().unwrap().waits, 0, "an error is not a wait");
}

#[test]
fn the_steady_clock_issues() {
    let ids = builder(11).clock(ClockName::Steady).build().unwrap();
    let batch = ids.next_ids(10_000).unwrap();
    assert!(batch.is_sorted_by(|a, b| a < b));
}

#[test]
fn baidu_has_run_out_and_says_so() {
    let ids = builder(12).layout(Layout::parse("baidu").unwrap()).build().unwrap();
    assert_eq!(ids.next_id().unwrap_err().code(), ErrorCode::TimeOutOfRange);
}

#[test]
fn close_ends_the_calls_that_wait() {
    let now = AtomicI64::new(1_700_000_000_000);
    let clock = || Ok(now.load(Ordering::Relaxed));
    let layout = "timestamp:40|worker:1|sequence:1@0/60s";
    let ids =
        Snowflake::builder().layout(layout).node(0).max_wait_ms(u32::MAX).build_with_clock(clock).unwrap();
    ids.next_ids(2).unwrap();
    thread::scope(|scope| {
        // One of them leads, and the others wait for it.
        let waiting = [(); 3].map(|()| scope.spawn(|| ids.next_id()));
        while ids.stats().unwrap().waits < 3 {
            thread::yield_now();
        }
        ids.close();
        for call in waiting {
            assert_eq!(call.join().unwrap().unwrap_err().code(), ErrorCode::Closed);
        }
    });
    // Every call fails this way, no matter what its clock returns.
    let fails = Snowflake::builder().node(0).build_with_clock(|| Err(ClockError::new("away"))).unwrap();
    fails.close();
    let calls = [ids.stats().map(drop), ids.fill(&mut []), ids.fill(&mut [0]), fails.next_id().map(drop)];
    assert!(calls.iter().all(|call| call.unwrap_err().code() == ErrorCode::Closed), "{calls:?}");
}

#[test]
fn a_call_inside_a_waiting_call_does_not_wait_for_it() {
    /// Takes an ID in the middle of a wait, as a signal handler may.
    struct Handler<'a>(&'a Snowflake, Option<u64>);

    impl Wait for Handler<'_> {
        type Error = Error;

        fn elapsed(&mut self) -> Duration {
            Duration::ZERO
        }

        fn pause(&mut self, _: Duration) -> Result<(), Error> {
            if self.1.is_none() {
                self.1 = Some(self.0.next_id()?);
            }
            Ok(())
        }
    }

    let ids = builder(13).layout("yitter").max_wait_ms(60_000).build().unwrap();
    let mut handler = Handler(&ids, None);
    let mut last = 0;
    while handler.1.is_none() {
        last = ids.next_id_with(&mut handler).unwrap();
    }
    assert!(last > handler.1.unwrap());
}

#[test]
fn layouts_that_split_the_bits_differently_are_separate_systems() {
    // As the README says, nothing prevents these two from issuing the same IDs.
    let issued = |layout: &str, node: u64| {
        let options = Snowflake::builder().layout(layout).node(node).sequence_start(SequenceStart::Zero);
        options.build_with_clock(|| Ok(1_700_000_000_000)).unwrap().next_ids(1000).unwrap()
    };
    assert_eq!(issued("twitter", 1), issued("business", 4));
}
