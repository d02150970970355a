//! Random layouts, options and clocks, compared with a second, simple implementation of the rule: one ID at a
//! time, in ticks and sequence numbers that cannot overflow.
#![cfg(not(any(loom, miri)))]

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use polyflake::{Clock, ClockError, Error, ErrorCode, Options, SequenceStart, Snowflake, TimeSource, Wait};
use proptest::prelude::*;
use proptest::sample::select;

/// The options of a Snowflake.
#[derive(Debug, Clone)]
struct Given {
    /// Names and widths, from the highest bit down.
    fields: Vec<(String, u32)>,
    epoch_ms: i128,
    tick_ms: i128,
    node: u64,
    backward_ms: u32,
    ahead_ms: u32,
    start: SequenceStart,
}

impl Given {
    fn bits(&self, wanted: impl Fn(&str) -> bool) -> u32 {
        self.fields.iter().filter(|(name, _)| wanted(name)).map(|(_, bits)| bits).sum()
    }

    fn timestamp_bits(&self) -> u32 {
        self.bits(|name| name == "timestamp")
    }

    fn sequence_bits(&self) -> u32 {
        self.bits(|name| name == "sequence")
    }

    fn node_bits(&self) -> u32 {
        self.bits(|name| name != "timestamp" && name != "sequence")
    }

    fn last_tick(&self) -> i128 {
        (1 << self.timestamp_bits()) - 1
    }

    fn start_ms(&self, tick: i128) -> i128 {
        self.epoch_ms + tick * self.tick_ms
    }

    fn is_allowed(&self) -> bool {
        self.bits(|_| true) <= 64 && self.start_ms(self.last_tick() + 1) <= 1 << 63
    }

    fn options(&self) -> Options {
        let fields: Vec<_> = self.fields.iter().map(|(name, bits)| format!("{name}:{bits}")).collect();
        let layout = format!("{}@{}/{}ms", fields.join("|"), self.epoch_ms, self.tick_ms);
        let options = Snowflake::builder().layout(layout.as_str()).node(self.node);
        options.max_backward_ms(self.backward_ms).max_ahead_ms(self.ahead_ms).sequence_start(self.start)
    }

    /// Returns the ID of a slot, with its bits put together field by field.
    fn id(&self, (tick, sequence): Slot) -> u64 {
        let (mut id, mut node_bits_left) = (0, self.node_bits());
        for (name, bits) in &self.fields {
            let value = match name.as_str() {
                "timestamp" => tick,
                "sequence" => sequence,
                _ => {
                    node_bits_left -= bits;
                    i128::from(self.node) >> node_bits_left
                }
            };
            id = (id << bits) | (value % (1 << bits));
        }
        u64::try_from(id).unwrap()
    }
}

fn given() -> impl Strategy<Value = Given> {
    let narrow_or_wide = prop_oneof![3 => 1..=3_u32, 1 => 1..=32_u32];
    let shape =
        (prop_oneof![1..=12_u32, 13..=63_u32], narrow_or_wide, prop::collection::vec(1..=6_u32, 0..=4));
    let times = (select(vec![0, 1_000, 1_288_834_974_657]), select(vec![1, 2, 7, 10, 1_000, 3_600_000]));
    let start = select(vec![SequenceStart::Zero, SequenceStart::Spread]);
    let ticks = || (0..=5_u32, -1..=1_i64, prop::bool::weighted(0.1));
    (shape, times, start, ticks(), ticks(), any::<u64>(), any::<[prop::sample::Index; 2]>())
        .prop_map(
            |((timestamp, sequence, nodes), (epoch_ms, tick_ms), start, backward, ahead, node, places)| {
                let mut fields: Vec<_> =
                    nodes.into_iter().enumerate().map(|(n, bits)| (format!("node-{n}"), bits)).collect();
                let timestamp_at = places[0].index(fields.len() + 1);
                fields.insert(timestamp_at, ("timestamp".to_owned(), timestamp));
                let sequence_at = timestamp_at + 1 + places[1].index(fields.len() - timestamp_at);
                fields.insert(sequence_at, ("sequence".to_owned(), sequence));
                // A few ticks or so, or the maximum.
                let ms = |(ticks, more, most): (u32, i64, bool)| {
                    let ms = i128::from(ticks) * tick_ms + i128::from(more);
                    if most { u32::MAX } else { u32::try_from(ms.max(0)).unwrap() }
                };
                let (backward_ms, ahead_ms) = (ms(backward), ms(ahead));
                let mut given = Given { fields, epoch_ms, tick_ms, node, backward_ms, ahead_ms, start };
                given.node %= 1 << given.node_bits();
                given
            },
        )
        .prop_filter("no layout", Given::is_allowed)
}

#[derive(Debug, Clone)]
enum Step {
    /// Moves the clock by ms, or by ticks.
    ByMs(i32),
    ByTicks(i8),
    /// Moves the clock to a tick, counted from the epoch or from the layout's end.
    FromEpoch(i8),
    FromEnd(i8),
    Take,
    Batch(usize),
    Wait,
    ClockFails,
}

fn script() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => (-20..=20).prop_map(Step::ByMs),
        1 => any::<i32>().prop_map(Step::ByMs),
        4 => (-8..=8_i8).prop_map(Step::ByTicks),
        1 => (-1..=8_i8).prop_map(Step::FromEpoch),
        1 => (-8..=1_i8).prop_map(Step::FromEnd),
        6 => Just(Step::Take),
        4 => (1..=40_usize).prop_map(Step::Batch),
        2 => Just(Step::Wait),
        1 => Just(Step::ClockFails),
    ];
    prop::collection::vec(step, 1..40)
}

/// A tick and a number within it.
type Slot = (i128, i128);

#[derive(Debug, PartialEq)]
enum Refusal {
    OutOfRange,
    Backwards { behind_ms: i128, retry_after_ms: i128 },
    Exhausted { retry_after_ms: i128 },
}

impl Refusal {
    fn of(error: &Error) -> Self {
        let behind_ms = error.behind_ms().map(i128::from);
        let retry_after_ms = error.retry_after_ms().map(i128::from);
        match error.code() {
            ErrorCode::TimeOutOfRange => Self::OutOfRange,
            ErrorCode::ClockMovedBackwards => {
                Self::Backwards { behind_ms: behind_ms.unwrap(), retry_after_ms: retry_after_ms.unwrap() }
            }
            ErrorCode::SequenceExhausted => Self::Exhausted { retry_after_ms: retry_after_ms.unwrap() },
            _ => panic!("{error}"),
        }
    }
}

/// The simple implementation of the rule.
struct Plain<'a> {
    given: &'a Given,
    last: Slot,
}

impl Plain<'_> {
    fn take(&mut self, now_ms: i128) -> Result<u64, Refusal> {
        let given = self.given;
        let tick_ms = given.tick_ms;
        let back = (i128::from(given.backward_ms) + tick_ms - 1) / tick_ms;
        let ahead = i128::from(given.ahead_ms) / tick_ms;

        let now = (now_ms - given.epoch_ms).div_euclid(tick_ms);
        if now < 0 || now > given.last_tick() {
            return Err(Refusal::OutOfRange);
        }
        let (last_tick, last_sequence) = self.last;
        let has_more = last_sequence + 1 < 1 << given.sequence_bits();
        let until = |tick: i128| given.start_ms(tick) - now_ms;
        let behind_ms = until(last_tick - ahead);
        if last_tick - now - ahead > back {
            let tick = if has_more { last_tick - ahead - back } else { last_tick - ahead + 1 };
            return Err(Refusal::Backwards { behind_ms, retry_after_ms: until(tick) });
        }
        let next = if has_more { (last_tick, last_sequence + 1) } else { (last_tick + 1, 0) };
        let slot = if next.0 < now { (now, self.starting_sequence(now)) } else { next };
        if slot.0 > given.last_tick() {
            return Err(Refusal::OutOfRange);
        }
        if slot.0 > now + ahead && slot.0 != last_tick {
            let retry_after_ms = until(slot.0 - ahead);
            return Err(if last_tick > now + ahead {
                Refusal::Backwards { behind_ms, retry_after_ms }
            } else {
                Refusal::Exhausted { retry_after_ms }
            });
        }
        self.last = slot;
        Ok(given.id(slot))
    }

    fn starting_sequence(&self, tick: i128) -> i128 {
        if self.given.start == SequenceStart::Zero {
            return 0;
        }
        let mut mixed = u64::try_from(tick).unwrap() ^ self.given.node.wrapping_shl(48);
        for (shift, factor) in [(30, 0xBF58_476D_1CE4_E5B9), (27, 0x94D0_49BB_1331_11EB), (31, 1)] {
            mixed = (mixed ^ mixed >> shift).wrapping_mul(factor);
        }
        i128::from(mixed) % 1.max((1 << self.given.sequence_bits()) / 4)
    }
}

/// A clock that stays at the time set by the test, and fails if no time is set.
struct Held(Cell<Option<i64>>);

impl Held {
    fn to(&self, ms: i128) {
        let ms = ms.clamp(i64::MIN.into(), i64::MAX.into());
        self.0.set(Some(i64::try_from(ms).unwrap()));
    }

    fn ms(&self) -> i128 {
        self.0.get().unwrap().into()
    }
}

impl Clock for &Held {
    fn unix_ms(&self) -> Result<i64, ClockError> {
        self.0.get().ok_or(ClockError::new("nowhere"))
    }
}

/// A system whose time is set by hand.
struct Moved(Arc<AtomicI64>);

impl TimeSource for Moved {
    fn wall_ns(&self) -> i64 {
        self.0.load(Ordering::Relaxed) * 1_000_000
    }

    fn monotonic_ns(&self) -> i64 {
        0
    }
}

/// A wait whose pauses move the clock. Nothing else moves it.
struct Pauses<'a>(&'a Held, Duration);

impl Wait for Pauses<'_> {
    type Error = Error;

    fn elapsed(&mut self) -> Duration {
        self.1
    }

    fn pause(&mut self, pause: Duration) -> Result<(), Error> {
        self.1 += pause;
        self.0.to(self.0.ms() + i128::try_from(pause.as_micros().div_ceil(1000)).unwrap());
        Ok(())
    }
}

/// A clock that returns its readings in order, and then the last one forever.
struct Readings {
    left: RefCell<Vec<i64>>,
    last: Cell<i64>,
}

impl Clock for &Readings {
    fn unix_ms(&self) -> Result<i64, ClockError> {
        self.last.set(self.left.borrow_mut().pop().unwrap_or(self.last.get()));
        Ok(self.last.get())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_answer_to_one_owner_is_the_rules(given in given(), script in script()) {
        // Slots that are taken but not issued may be ahead of the clock, if that is allowed, or end their
        // tick, so that the next tick begins at 0.
        let given = Given { ahead_ms: 0, start: SequenceStart::Zero, ..given };
        let clock = Held(Cell::new(None));
        let mut ids = given.options().build_with_clock(&clock).unwrap().into_local();
        let mut plain = Plain { given: &given, last: (0, 0) };
        clock.to(given.start_ms(given.last_tick() / 2));
        for step in script {
            let count = match step {
                Step::ByMs(ms) => { clock.to(clock.ms() + i128::from(ms)); 0 }
                Step::ByTicks(ticks) => { clock.to(clock.ms() + i128::from(ticks) * given.tick_ms); 0 }
                Step::FromEpoch(tick) => { clock.to(given.start_ms(tick.into())); 0 }
                Step::FromEnd(tick) => { clock.to(given.start_ms(given.last_tick() + i128::from(tick))); 0 }
                Step::Batch(count) => count,
                Step::Take | Step::Wait | Step::ClockFails => 1,
            };
            for _ in 0..count {
                let wanted = plain.take(clock.ms());
                match ids.try_next_id() {
                    Ok(id) => prop_assert_eq!(Ok(id), wanted),
                    // The retry time depends on the slots taken.
                    Err(error) => prop_assert_eq!(
                        core::mem::discriminant(&Refusal::of(&error)),
                        core::mem::discriminant(&wanted.unwrap_err())
                    ),
                }
            }
        }
    }

    /// Two owners of a shared cursor take turns. Sometimes one of them continues as a shared Snowflake would.
    #[test]
    fn owners_by_turns_repeat_nothing_and_go_up(
        ahead_ms in 0..20_u32,
        steps in prop::collection::vec((0..2_usize, 0..5_usize, -3..4_i64), 1..60),
    ) {
        static NODE: AtomicU64 = AtomicU64::new(0);
        let now = Arc::new(AtomicI64::new(1_700_000_000_000));
        let node = NODE.fetch_add(1, Ordering::Relaxed);
        let options = Snowflake::builder().layout("timestamp:42|node:16|sequence:6@0/1ms").node(node);
        let made = || {
            options.clone().max_ahead_ms(ahead_ms).build_on(Moved(Arc::clone(&now)), |clock| clock).unwrap().into_local()
        };
        let mut owners = [made(), made()];
        let mut last = 0;
        for (owner, count, ms) in steps {
            let now_ms = now.fetch_add(ms, Ordering::Relaxed) + ms;
            for _ in 0..count {
                if let Ok(id) = owners[owner].try_next_id() {
                    prop_assert!(id > last);
                    last = id;
                    let lead_ms = i64::try_from(owners[owner].decode(id).unwrap().timestamp_ms()).unwrap() - now_ms;
                    // The clock has stepped back by no more than all its steps combined.
                    prop_assert!(lead_ms <= i64::from(ahead_ms) + 180);
                }
            }
        }
    }

    #[test]
    fn every_answer_is_the_rules(given in given(), script in script()) {
        let clock = Held(Cell::new(None));
        let ids = given.options().build_with_clock(&clock).unwrap();
        // Slot 0 of tick 0 is never issued.
        let mut plain = Plain { given: &given, last: (0, 0) };
        clock.to(given.start_ms(given.last_tick() / 2));
        for step in script {
            match step {
                Step::ByMs(ms) => clock.to(clock.ms() + i128::from(ms)),
                Step::ByTicks(ticks) => clock.to(clock.ms() + i128::from(ticks) * given.tick_ms),
                Step::FromEpoch(tick) => clock.to(given.start_ms(tick.into())),
                Step::FromEnd(tick) => clock.to(given.start_ms(given.last_tick() + i128::from(tick))),
                Step::Take => {
                    let taken = ids.try_next_id().map_err(|error| Refusal::of(&error));
                    prop_assert_eq!(taken, plain.take(clock.ms()));
                }
                Step::Batch(count) => {
                    let mut batch = vec![0; count];
                    let blocked = ids.poll_fill(&mut batch).err();
                    let filled = blocked.map_or(count, |blocked| blocked.filled());
                    for id in &batch[..filled] {
                        prop_assert_eq!(Ok(*id), plain.take(clock.ms()));
                    }
                    prop_assert!(filled == count || plain.take(clock.ms()).is_err());
                }
                Step::Wait => match ids.next_id_with(&mut Pauses(&clock, Duration::ZERO)) {
                    // Taken at the first clock reading at which the rule allows it.
                    Ok(id) => prop_assert_eq!(Ok(id), plain.take(clock.ms())),
                    Err(error) => prop_assert_eq!(Err(Refusal::of(&error)), plain.take(clock.ms())),
                },
                Step::ClockFails => {
                    let now = clock.0.take();
                    prop_assert_eq!(ids.next_id().unwrap_err().code(), ErrorCode::ClockFailed);
                    clock.0.set(now);
                }
            }
            let stats = ids.stats().unwrap();
            if plain.last == (0, 0) {
                prop_assert_eq!((stats.last_issued_ms, stats.lead_ms), (None, 0));
            } else {
                let start_ms = given.start_ms(plain.last.0);
                prop_assert_eq!(stats.last_issued_ms.map(i128::from), Some(start_ms));
                prop_assert_eq!(i128::from(stats.lead_ms), 0.max(start_ms - clock.ms()));
            }
        }
    }

    #[test]
    fn a_clock_that_jumps_with_every_reading_repeats_nothing(
        given in given(),
        readings in prop::collection::vec(-8..=8_i128, 1..60),
        batches in prop::collection::vec(1..=20_usize, 1..30),
    ) {
        let middle = given.last_tick() / 2;
        let at = |ticks: i128| {
            let tick = (middle + ticks).clamp(0, given.last_tick());
            i64::try_from(given.start_ms(tick)).unwrap()
        };
        let left = readings.into_iter().map(at).collect();
        let clock = Readings { left: RefCell::new(left), last: Cell::new(at(0)) };
        let ids = given.options().build_with_clock(&clock).unwrap();
        let mut last = (0, 0);
        for count in batches {
            let mut batch = vec![0; count];
            // A single ID has the time of the last reading. A batch reads the clock once per run.
            let filled = ids.poll_fill(&mut batch).map_or_else(|blocked| blocked.filled(), |()| count);
            for id in &batch[..filled] {
                let decoded = ids.decode(*id).unwrap();
                let slot = (decoded.ticks(), decoded.sequence());
                prop_assert!(slot > last, "{slot:?} after {last:?}");
                last = slot;
            }
            if let Ok(id) = ids.try_next_id() {
                let tick = ids.decode(id).unwrap().ticks();
                let now = (i128::from(clock.last.get()) - given.epoch_ms) / given.tick_ms;
                let most = i128::from(given.ahead_ms) + i128::from(given.backward_ms) + given.tick_ms;
                prop_assert!((0..=most / given.tick_ms).contains(&(i128::from(tick) - now)));
                let slot = (tick, ids.decode(id).unwrap().sequence());
                prop_assert!(slot > last, "{slot:?} after {last:?}");
                last = slot;
            }
        }
    }
}
