//! What counters in any store must do.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Forgets;
use crate::backend::Backend;
use crate::journals::{Holder, Journal, Journals};
use crate::taken_numbers::TakenNumbers;
use crate::taker::{AT_A_TIME, Taker, begin, options, settings, start};

/// Numbers that differ from run to run, of a seed that is shown: by SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Self {
        let seed = std::env::var("POLYFLAKE_SEED")
            .map_or_else(|_| u64::from(std::process::id()), |seed| seed.parse().unwrap());
        println!("POLYFLAKE_SEED={seed}");
        Self(seed)
    }

    pub(crate) const fn of(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) const fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

pub(crate) fn processes_are_killed_for_ten_seconds(store: &impl Backend) {
    processes_are_killed(store, "ten-seconds", Duration::from_secs(10));
}

pub(crate) fn processes_are_killed_for_a_minute(store: &impl Backend) {
    processes_are_killed(store, "a-minute", Duration::from_secs(60));
}

fn processes_are_killed(store: &impl Backend, name: &str, during: Duration) {
    const PROCESSES: u64 = 8;
    const THREADS: u64 = 4;
    const STEP: u64 = 500;
    let (journals, mut random) = (Journals::new(), Random::new());
    let settings = settings(name, &[&store.url()], &[&format!("step={STEP}"), "max_wait_ms=60000"]);
    let start_one = || {
        let mut taker = begin(&journals, &settings);
        taker.tell(&format!("threads {THREADS}"));
        taker
    };
    let mut all: Vec<_> = (0..PROCESSES).map(|_| start_one()).collect();
    for taker in &mut all {
        taker.wait_for_numbers(Holder::start(), 100);
    }
    let (end, mut kills) = (Instant::now() + during, 0);
    while Instant::now() < end {
        sleep(Duration::from_millis(random.below(400)));
        let victim = usize::try_from(random.below(PROCESSES)).unwrap();
        // Wherever it is: some have not opened the counter yet.
        all[victim].kill();
        all[victim] = start_one();
        kills += 1;
    }
    for taker in &mut all {
        taker.wait_for_numbers(Holder::start(), 100);
        assert!(taker.errors().is_empty(), "{}", taker.text());
    }
    let last = {
        all.iter_mut().for_each(Taker::finish);
        let mut last = start(&journals, &settings.replace(&format!("step={STEP}"), "step=1"));
        last.peek()
    };
    let taken = TakenNumbers::of(&journals);
    let (missing, longest) = taken.unique(1_000).increasing().missing(last);
    // What was in hand, or had been taken and was not written down.
    let of_one = 2 * STEP + THREADS * AT_A_TIME;
    let taken = taken.all().len();
    let url = store.url();
    let (scheme, _) = url.split_once(':').unwrap();
    println!(
        "{scheme}: {kills} processes killed: {taken} of {last} numbers taken, {missing} missing ({longest} in a row), at most {} promised",
        (kills + PROCESSES) * of_one
    );
    // Blocks pass over what is left of a segment.
    let passed_over = last / STEP * (AT_A_TIME - 1);
    assert!(missing <= (kills + PROCESSES) * of_one + passed_over, "{missing} of {last} are missing");
}

/// What is given back is taken by the next. A store that has much to do might not answer in time.
pub(crate) fn a_quiet_counter_has_no_gap<B: Backend>() {
    let store = B::begin();
    let journals = Journals::new();
    let mut all = Vec::new();
    // With each step, and where a second segment is in hand as well.
    for (step, count) in
        [("auto", 3), ("100", 7), ("10", 25), ("10", 10), ("10", 1), ("auto", 0), ("1", 3), ("auto", 130)]
    {
        let step = format!("step={step}");
        let mut taker = start(&journals, &settings("quiet", &[&store.url()], &[&step]));
        all.extend(taker.take(count));
        taker.finish();
    }
    let count = all.len() as u64;
    assert!(all.iter().copied().eq(1..=count), "{all:?}");
    let mut last = start(&journals, &settings("quiet", &[&store.url()], &["step=1"]));
    assert_eq!(last.peek(), count);
}

pub(crate) fn two_by_turns_with_a_step_of_1(store: &impl Backend) {
    let journals = Journals::new();
    let settings = settings("turns", &[&store.url()], &["step=1", "start=5"]);
    let mut takers = [start(&journals, &settings), start(&journals, &settings)];
    let mut all = Vec::new();
    for round in 0..20 {
        all.extend(takers[round % 2].take(1 + round % 3));
    }
    assert!(all.iter().copied().eq(5..5 + all.len() as u64), "{all:?}");
}

pub(crate) fn blocks_beside_numbers(store: &impl Backend) {
    let journals = Journals::new();
    journals
        .run(&settings("blocks", &[&store.url()], &["step=50", "max_wait_ms=60000"]), "every_store::blocks");
    TakenNumbers::of(&journals).unique(5_000).increasing();
}

#[test]
#[ignore = "the other tests start it"]
fn blocks() {
    let Some((journal, settings)) = Journal::of_this_process() else { return };
    let counter = options(&settings).open().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (counter, journal) = (&counter, &journal);
            scope.spawn(move || {
                for round in 0..50 {
                    // Some are larger than a segment, and most meet the end of one.
                    let count = 1 + (round * 7 + thread * 13) % 65;
                    let taken: Vec<_> = match thread {
                        0 | 1 => {
                            let first = counter.next_block(count).unwrap();
                            (first..first + count).collect()
                        }
                        2 => counter.next_ids(count).unwrap(),
                        _ => (0..count).map(|_| counter.next_id().unwrap()).collect(),
                    };
                    journal.numbers(thread, &taken);
                }
            });
        }
    });
    // Alone, one run after the other; the last is more than is ever in hand.
    let mut before = counter.next_id().unwrap();
    for count in [1, 49, 50, 51, 1_000] {
        let first = counter.next_block(count).unwrap();
        assert!(first > before);
        before = first + count - 1;
        journal.numbers(9, &(first..=before).collect::<Vec<_>>());
    }
    counter.close();
}

pub(crate) fn give_back_raced_by_others(store: &impl Backend) {
    let journals = Journals::new();
    let settings = settings("raced", &[&store.url()], &["step=20", "max_wait_ms=60000"]);
    let start = || journals.start_with(&settings, "every_store::opens_and_closes", &[]);
    let mut all: Vec<_> = (0..3).map(|_| start()).collect();
    for process in &mut all {
        assert!(process.wait().success(), "{}", process.text());
    }
    TakenNumbers::of(&journals).unique(3 * 40).increasing();
}

#[test]
#[ignore = "the other tests start it"]
fn opens_and_closes() {
    let Some((journal, settings)) = Journal::of_this_process() else { return };
    let mut random = Random::new();
    for _ in 0..40 {
        let counter = options(&settings).open().unwrap();
        // With one segment or two in hand, or at the end of one.
        let count = [1, 2, 3, 19, 20, 21, 25][usize::try_from(random.below(7)).unwrap()];
        journal.numbers(0, &counter.next_ids(count).unwrap());
        counter.close();
    }
}

pub(crate) fn a_store_that_stops_and_one_that_dies<B: Backend>() {
    let mut store = B::begin();
    let journals = Journals::new();
    // The next segment is asked for once 200 numbers are taken.
    let address = format!("{}?ttl=6s", store.url());
    let settings = settings("orders", &[&address], &["step=2000", "max_wait_ms=3000"]);
    let mut taker = start(&journals, &settings);
    for is_killed in [false, true] {
        // To the first number of a segment, which has none behind it.
        let last = taker.take(1)[0];
        taker.take(usize::try_from(2_000 - last % 2_000).unwrap());
        assert_eq!(taker.take(1)[0] % 2_000, 1);
        let mark = taker.mark();
        if !is_killed {
            store.pause();
        } else if !store.kill() {
            break;
        }
        // It has been asked for more in vain, and nobody notices.
        taker.take(500);
        taker.wait_for(mark, "event store_unreachable");
        taker.take(500);
        // Down for longer than what is in hand lasts.
        let error = taker.take_until_refused(10_000);
        assert!(error.starts_with("counter_unavailable "), "{error}");
        assert!(error.contains("the store cannot be reached"), "{error}");
        if is_killed {
            store.start_again();
        } else {
            store.resume();
        }
        // By itself.
        taker.wait_for(mark, "event store_reachable");
        taker.take(5_000);
    }
    taker.finish();
    TakenNumbers::of(&journals).unique(6_000).increasing();
}

/// At a hundred numbers a second. The default step grows until what is in hand lasts longer than the outage.
pub(crate) fn two_minutes_without_the_store<B: Backend>() {
    const PAUSE: Duration = Duration::from_millis(10);
    let mut store = B::begin();
    let counter = options(&settings("steady", &[&store.url()], &[])).open().unwrap();
    let (mut last, mut count) = (0, 0_u64);
    let mut steadily_for = |time: Duration| {
        let (end, mut waits) = (Instant::now() + time, 0);
        while Instant::now() < end {
            // The first segments last for a second: a store that is slow then is no outage.
            match counter.try_next_id() {
                Ok(number) => {
                    assert!(number > last);
                    (last, count) = (number, count + 1);
                }
                Err(_) => waits += 1,
            }
            sleep(PAUSE);
        }
        waits
    };
    steadily_for(Duration::from_secs(150));
    store.pause();
    let waits = steadily_for(Duration::from_secs(120));
    store.resume();
    assert_eq!(waits, 0, "calls without a number, while the store was away");
    // It is asked again before what is in hand ends.
    steadily_for(Duration::from_secs(10));
    let stats = counter.stats().unwrap();
    println!("{}: {count} numbers, {stats:?}", store.url().split(':').next().unwrap());
    assert!(stats.segments < 20, "{stats:?}");
    counter.close();
}

pub(crate) fn a_store_that_forgets<B: Forgets>() {
    let store = B::begin();
    let journals = Journals::new();
    let settings = settings("orders", &[&store.url()], &["step=10", "max_wait_ms=60000"]);
    let mut old = start(&journals, &settings);
    old.take(100);
    let mark = old.mark();
    store.forget();
    // It is noticed whether numbers are needed or not, and the record is made again above them.
    old.wait_for(mark, "event writes_lost");
    old.take(100);
    let mut new = start(&journals, &settings);
    new.take(15);
    old.take(100);
    TakenNumbers::of(&journals).unique(215).increasing();

    // An operator ends the wait.
    let mark = old.mark();
    store.forget();
    old.wait_for(mark, "event writes_lost");
    old.does("raise 5000");
    assert!(old.take(11).into_iter().all(|number| number > 5_000));
    // Beyond what it had in hand.
    new.take(50);
    TakenNumbers::of(&journals).unique(276).increasing();

    // Where somebody removes it, nobody goes on: the next counter of that name has the same numbers.
    new.does("remove");
    for taker in [&mut new, &mut old] {
        let error = taker.take_until_refused(100);
        assert!(error.contains("it was removed from"), "{error}");
    }
    let mut again = start(&journals, &settings);
    assert_eq!(again.take(3), [1, 2, 3]);
    assert!(old.fails("take 1").contains("it was removed from"));

    // Where losses are refused, nobody goes on before somebody raised it.
    let mark = if store.url().contains('?') { '&' } else { '?' };
    let url = format!("{}{mark}after_loss=refuse", store.url());
    let mut refusing = start(&journals, &self::settings("refused", &[&url], &["step=10"]));
    refusing.take(5);
    let mark = refusing.mark();
    store.forget();
    refusing.wait_for(mark, "event writes_lost");
    let error = refusing.take_until_refused(100);
    assert!(error.contains("has lost writes: raise the counter"), "{error}");
    refusing.does("raise 7000");
    assert!(refusing.take(20).into_iter().all(|number| number > 7_000));
}
