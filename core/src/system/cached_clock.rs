//! The wall clock's millisecond, cached until the processor's counter shows that it may be over. This takes
//! 10 ns; reading the clock takes 25.
//!
//! A reading of the wall clock shows how much of its millisecond is left. Until the counter has advanced by
//! that much, the millisecond stays the same. Then the wall clock is read again, so a step of the clock takes
//! effect within a millisecond. A counter that jumps also triggers a reading. This need not be perfect: a call
//! that finds the reading behind the cursor, which looks like a step back, or a tick used up, reads the wall
//! clock before it fails or waits (`Clock::unix_ms_uncached`).

#[cfg(not(loom))]
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::counter::Counter;
use crate::clock::source::NS_PER_MS;

/// The bits of `kept` that hold the window: a million counts, enough for a millisecond of the fastest counter
/// whose rate is used directly.
const WINDOW_BITS: u32 = 20;
const WINDOW: u64 = (1 << WINDOW_BITS) - 1;

/// The last reading of the wall clock, on a separate cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct CachedClock {
    /// The counter just before the reading.
    start: AtomicU64,
    /// The Unix ms of the reading and, in the low bits, the window: the number of counts from `start` for
    /// which the reading is valid. 0 if there is no reading.
    kept: AtomicU64,
    /// True while a thread is reading the wall clock for the others.
    renewing: AtomicBool,
}

impl CachedClock {
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Self { start: AtomicU64::new(0), kept: AtomicU64::new(0), renewing: AtomicBool::new(false) }
    }

    #[cfg(loom)]
    pub(super) fn new() -> Self {
        Self { start: AtomicU64::new(0), kept: AtomicU64::new(0), renewing: AtomicBool::new(false) }
    }

    /// Returns the wall clock's millisecond.
    ///
    /// The two words may come from two readings, but an earlier reading's ms is never combined with a later
    /// one's start: `renew` stores the start last, and here it is loaded first. With an earlier start, the
    /// window just ends sooner.
    #[inline(always)]
    pub(super) fn unix_ms(&self, counter: &impl Counter, wall_ns: impl FnOnce() -> i64) -> i64 {
        let start = self.start.load(Ordering::Acquire);
        let kept = self.kept.load(Ordering::Acquire);
        let window = kept & WINDOW;
        if window != 0 && counter.now().wrapping_sub(start) < window {
            return i64::try_from(kept >> WINDOW_BITS).unwrap_or(i64::MAX);
        }
        self.renew(counter, wall_ns)
    }

    /// Returns the wall clock's millisecond, without the cache.
    #[cold]
    pub(super) fn renew(&self, counter: &impl Counter, wall_ns: impl FnOnce() -> i64) -> i64 {
        if counter.least_in(1000) == 0 {
            // Nothing is promised about the counter, so nothing is cached, and threads share no cache line
            // for the clock.
            return wall_ns().div_euclid(NS_PER_MS);
        }
        // Must come before the clock is read, so that a thread that pauses here does not replace a new
        // reading with an old one.
        let is_mine = !self.renewing.swap(true, Ordering::Acquire);
        let start = counter.now();
        let wall_ns = wall_ns();
        let ms = wall_ns.div_euclid(NS_PER_MS);
        if is_mine {
            let left_ns = NS_PER_MS - wall_ns.rem_euclid(NS_PER_MS);
            let window = counter.least_in(left_ns.unsigned_abs()).min(WINDOW);
            // Times before 1970 are not cached.
            self.kept.store(u64::try_from(ms).map_or(0, |ms| ms << WINDOW_BITS | window), Ordering::Release);
            self.start.store(start, Ordering::Release);
            self.renewing.store(false, Ordering::Release);
        }
        ms
    }

    /// The words `start` and `kept`, for [`Snowflake::words`](crate::Snowflake::words).
    #[cfg(not(loom))]
    pub(super) const fn words(&self) -> [*const u64; 2] {
        [self.start.as_ptr().cast_const(), self.kept.as_ptr().cast_const()]
    }

    /// Called in a newly forked child, in which no other thread can be reading the clock.
    pub(super) fn after_fork(&self) {
        self.renewing.store(false, Ordering::Release);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::thread;
    use std::sync::Arc;

    /// A time that a thread of the model advances, in counts of 2 ns each.
    struct Time(AtomicU64);

    impl Counter for Time {
        fn now(&self) -> u64 {
            self.0.load(Ordering::Acquire)
        }

        fn least_in(&self, ns: u64) -> u64 {
            ns / 2
        }
    }

    impl Time {
        fn wall_ns(&self) -> i64 {
            i64::try_from(self.now() * 2).unwrap()
        }

        fn wall_ms(&self) -> i64 {
            self.wall_ns() / NS_PER_MS
        }
    }

    #[test]
    fn a_kept_reading_is_the_time_of_the_call() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let shared = Arc::new((Time(AtomicU64::new(5_950_000)), CachedClock::new()));
            let read = |(time, cached): &(Time, CachedClock)| {
                let before_ms = time.wall_ms();
                let given_ms = cached.unix_ms(time, || time.wall_ns());
                assert!((before_ms..=time.wall_ms()).contains(&given_ms));
            };
            let theirs = Arc::clone(&shared);
            let other = thread::spawn(move || {
                read(&theirs);
                read(&theirs);
            });
            read(&shared);
            // The time advances from the end of one millisecond into the next.
            shared.0.0.store(6_000_010, Ordering::Release);
            read(&shared);
            other.join().unwrap();
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::clock::TimeSource;
    use crate::{BuiltinClock, Error, ErrorCode, Snowflake};
    use core::cell::Cell;
    use core::sync::atomic::AtomicU32;
    #[cfg(not(miri))]
    use proptest::prelude::*;
    #[cfg(not(miri))]
    use std::vec;

    /// A machine whose time, wall clock and counter are moved by hand.
    #[derive(Debug, Default)]
    struct Machine {
        wall_ns: Cell<i64>,
        counts: Cell<u64>,
        /// The number of times the wall clock was read.
        readings: Cell<u32>,
        kept: CachedClock,
        node: u32,
    }

    impl Default for CachedClock {
        fn default() -> Self {
            Self::new()
        }
    }

    /// A 3 GHz counter, about which no more is known than about a real processor's.
    impl Counter for &Machine {
        fn now(&self) -> u64 {
            self.counts.get()
        }

        fn least_in(&self, ns: u64) -> u64 {
            ns / 2
        }
    }

    impl TimeSource for &Machine {
        fn wall_ns(&self) -> i64 {
            self.readings.set(self.readings.get() + 1);
            self.wall_ns.get()
        }

        fn monotonic_ns(&self) -> i64 {
            0
        }

        fn wall_ms(&self) -> i64 {
            self.kept.unix_ms(self, || self.wall_ns())
        }

        fn wall_ms_uncached(&self) -> i64 {
            self.kept.renew(self, || self.wall_ns())
        }
    }

    impl Machine {
        fn at(ms: i64) -> Self {
            // Each machine has a different cursor.
            static NODES: AtomicU32 = AtomicU32::new(0);
            let node = NODES.fetch_add(1, Ordering::Relaxed);
            Self { wall_ns: Cell::new(ms * NS_PER_MS), node, ..Self::default() }
        }

        fn advance_wall(&self, ns: i64) {
            self.wall_ns.set(self.wall_ns.get() + ns);
        }

        fn advance_counter(&self, counts: u64) {
            self.counts.set(self.counts.get().wrapping_add(counts));
        }

        fn advance(&self, ns: i64) {
            self.advance_wall(ns);
            self.advance_counter(ns.unsigned_abs() * 3);
        }

        fn ids(&self, max_backward_ms: u32) -> Snowflake<BuiltinClock<&Self>> {
            let options = Snowflake::builder().layout("timestamp:30|node:32|sequence:2@1000000/1ms");
            options.node(self.node).max_backward_ms(max_backward_ms).build_on(self, |clock| clock).unwrap()
        }
    }

    fn ms_of(ids: &Snowflake<BuiltinClock<&Machine>>) -> Result<u64, Error> {
        Ok(ids.decode(ids.try_next_id()?)?.timestamp_ms())
    }

    #[test]
    fn a_ms_is_read_a_few_times_and_no_longer() {
        let machine = &Machine::at(5_000);
        for n in 0..200_000 {
            assert_eq!(machine.wall_ms(), 5_000 + n / 100_000);
            machine.advance(10);
        }
        // The counter is six times as fast as promised, so 5/6 of the remaining ms is left after each
        // reading, down to the length of one call.
        assert!((40..150).contains(&machine.readings.get()), "{machine:?}");
    }

    #[test]
    fn an_unpromised_counter_is_not_read() {
        struct None;
        impl Counter for None {
            fn now(&self) -> u64 {
                unreachable!("the processor may have none")
            }

            fn least_in(&self, _: u64) -> u64 {
                0
            }
        }
        let kept = CachedClock::new();
        for ns in [5_000_000, 5_999_999, 6_000_000, 4_000_000, -1] {
            assert_eq!(kept.unix_ms(&None, || ns), ns.div_euclid(NS_PER_MS));
            // Nothing is written either, so other threads have nothing to fetch.
            assert_eq!(kept.kept.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn another_thread_amid_a_reading_leaves_each_with_its_own() {
        let machine = &Machine::at(5_000);
        machine.kept.renewing.store(true, Ordering::Relaxed);
        for ms in [5_000, 5_001, 5_001] {
            machine.wall_ns.set(ms * NS_PER_MS);
            assert_eq!(machine.wall_ms(), ms);
        }
        assert_eq!((machine.readings.get(), machine.kept.kept.load(Ordering::Relaxed)), (3, 0));
        machine.kept.after_fork();
        assert_eq!((machine.wall_ms(), machine.wall_ms(), machine.readings.get()), (5_001, 5_001, 4));
    }

    #[test]
    fn a_counter_that_stands_still_holds_up_no_ids() {
        let machine = &Machine::at(5_000_000);
        let ids = machine.ids(1000);
        for ms in 1..100 {
            machine.advance_wall(NS_PER_MS);
            for _ in 0..4 {
                // Uses the last call's reading until the tick is used up.
                assert!(ms_of(&ids).unwrap() <= 5_000_000 + ms);
            }
            assert_eq!(machine.wall_ms_uncached(), machine.wall_ns.get() / NS_PER_MS);
        }
        assert_eq!(ids.stats().unwrap().rollbacks, 0);
    }

    #[test]
    fn what_looks_like_a_step_back_is_read_again() {
        let machine = &Machine::at(5_000_000);
        let ids = machine.ids(0);
        machine.advance(NS_PER_MS);
        assert_eq!(ms_of(&ids).unwrap(), 5_000_001);
        // The clock steps forward, and another thread sees this first. For threads with the old reading this
        // is not a step back.
        machine.advance_wall(10_000 * NS_PER_MS);
        let other = machine.ids(0);
        machine.kept.kept.store(0, Ordering::Relaxed);
        assert_eq!(ms_of(&other).unwrap(), 5_010_001);
        machine.kept.kept.store((5_000_001 << WINDOW_BITS) + 400_000, Ordering::Relaxed);
        assert_eq!(ms_of(&ids).unwrap(), 5_010_001);
        assert_eq!(ids.stats().unwrap().rollbacks, 0);
        // A real step back fails as soon as it is noticed.
        machine.advance_wall(-5_000 * NS_PER_MS);
        machine.advance_counter(500_000);
        assert_eq!(ms_of(&ids).unwrap_err().code(), ErrorCode::ClockMovedBackwards);
        assert_eq!(ids.stats().unwrap().rollbacks, 1);
    }

    /// An event that affects a machine.
    #[cfg(not(miri))]
    #[derive(Debug, Clone)]
    enum Event {
        /// The number of ns of real time that pass.
        Time(i64),
        StepWall(i64),
        JumpCounter(u64),
        /// The number of ns for which the counter stops.
        StopCounter(i64),
    }

    #[cfg(not(miri))]
    fn event() -> impl Strategy<Value = Event> {
        let short = 0..2 * NS_PER_MS;
        let jump = prop_oneof![0..10_000_000_u64, any::<u64>()];
        prop_oneof![
            20 => prop_oneof![0..1000_i64, short.clone()].prop_map(Event::Time),
            1 => (-20 * NS_PER_MS..20 * NS_PER_MS).prop_map(Event::StepWall),
            1 => jump.prop_map(Event::JumpCounter),
            1 => jump_back().prop_map(Event::JumpCounter),
            1 => short.prop_map(Event::StopCounter),
        ]
    }

    #[cfg(not(miri))]
    fn jump_back() -> impl Strategy<Value = u64> {
        (0..10_000_000_u64).prop_map(u64::wrapping_neg)
    }

    #[cfg(not(miri))]
    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        /// The counter has any rate from the slowest to 6 GHz, and the wall clock is off by up to 500 ppm.
        #[test]
        fn it_agrees_with_the_wall_clock_and_notices_a_step_within_a_ms_of_counter_time(
            mhz in 501_u64..6000,
            ppm in -500_i64..=500,
            start in 10_000 * NS_PER_MS..20_000 * NS_PER_MS,
            events in prop::collection::vec(event(), 1..200),
        ) {
            let machine = &Machine { wall_ns: Cell::new(start), ..Machine::default() };
            // The counts that have passed since the last step, jump or stop.
            let mut since = u64::MAX;
            // All the time that the counter has run, so that no event's fraction of a count is lost.
            let mut counted_ns = 0;
            for event in events {
                match event {
                    Event::Time(ns) => {
                        let before = counted_ns * mhz / 1000;
                        counted_ns += ns.unsigned_abs();
                        let counts = counted_ns * mhz / 1000 - before;
                        machine.advance_counter(counts);
                        machine.advance_wall(ns + ns * ppm / 1_000_000);
                        since = since.saturating_add(counts);
                    }
                    Event::StepWall(ns) | Event::StopCounter(ns) => {
                        machine.advance_wall(ns);
                        since = 0;
                    }
                    Event::JumpCounter(counts) => {
                        machine.advance_counter(counts);
                        since = 0;
                    }
                }
                let wall_ms = machine.wall_ns.get().div_euclid(NS_PER_MS);
                let given_ms = machine.wall_ms();
                if since >= 1000 * mhz {
                    prop_assert_eq!(given_ms, wall_ms);
                }
            }
            prop_assert_eq!(machine.wall_ms_uncached(), machine.wall_ns.get().div_euclid(NS_PER_MS));
        }

        /// A process is moved to another machine, where the counter can have any value and any rate, and may
        /// stand still. No ID repeats, and IDs keep increasing. From the first call on, an ID's time is one
        /// that the wall clock showed during a call within the counter's last 500,000 counts (a window): 1 ms
        /// at 500 MHz, 21 ms at 24 MHz, forever if it stands still.
        #[test]
        fn a_move_to_another_machine_repeats_nothing(
            moves in prop::collection::vec(
                (0..6000_u64, prop_oneof![jump_back(), any::<u64>(), Just(0)], -20 * NS_PER_MS..3600 * 1000 * NS_PER_MS,
                    prop::collection::vec(0..2 * NS_PER_MS, 1..20)),
                1..10,
            ),
        ) {
            let machine = &Machine::at(5_000_000);
            let ids = machine.ids(60_000);
            let mut last = 0;
            for (mhz, jump, step_ns, times) in moves {
                machine.advance_counter(jump);
                machine.advance_wall(step_ns);
                // Without this call, the counter could run into the old window later.
                machine.wall_ms();
                // For each call from here on: the counts so far, and the wall clock's ms.
                let mut past = vec![];
                let mut counts = 0;
                let first_ms = machine.wall_ms();
                for ns in times {
                    past.push((counts, machine.wall_ns.get().div_euclid(NS_PER_MS)));
                    machine.advance_wall(ns);
                    machine.advance_counter(ns.unsigned_abs() * mhz / 1000);
                    counts += ns.unsigned_abs() * mhz / 1000;
                    let wall_ms = machine.wall_ns.get().div_euclid(NS_PER_MS);
                    let given_ms = machine.wall_ms();
                    let mut recent = past.iter().filter(|(at, _)| counts - at < 500_000);
                    prop_assert!(
                        given_ms == wall_ms
                            || recent.any(|(_, ms)| *ms == given_ms)
                            || counts < 500_000 && given_ms == first_ms
                    );
                    if let Ok(id) = ids.try_next_id() {
                        prop_assert!(id > last, "{} after {}", id, last);
                        last = id;
                    }
                }
            }
        }
    }
}
