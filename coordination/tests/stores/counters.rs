//! What any store must do with counters. `all` runs it on one store; a store of your own runs it the same way.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Barrier;
use std::thread;

use polyflake_coordination::{
    CounterName, CounterRecord, LAST_NUMBER, Numbers, Place, Reserve, Reserved, Schema, Store, StoreError,
};

use super::suite::{Open, block, give_up, retry};

/// Runs every history.
pub(crate) fn all(open: Open<'_>) {
    no_record(open);
    numbers_in_order(open);
    the_record_of_a_counter(open);
    a_place_of_several(open);
    what_was_seen(open);
    the_last_numbers(open);
    given_back_once(open);
    made_again(open);
    names_are_apart(open);
    many_at_once(open);
    one_of_many_makes_it(open);
    a_call_that_is_dropped(open);
}

pub(crate) fn counter(name: &str) -> CounterName {
    CounterName { namespace: "counters".into(), name: name.into(), schema: Schema::Polyflake }
}

/// As a caller makes one: random, and so that adding to it has no end.
pub(crate) fn version() -> u64 {
    RandomState::new().hash_one(()) >> 2
}

pub(crate) fn record(last: u64) -> CounterRecord {
    CounterRecord { last, version: Some(version()), place: Place::ONLY }
}

pub(crate) fn only(count: u64) -> Reserve {
    Reserve { count, place: Place::ONLY, seen: 0 }
}

/// Writes a counter's first record.
pub(crate) async fn made(open: Open<'_>, counter: &CounterName, record: &CounterRecord) -> Box<dyn Store> {
    let mut store = open();
    if !retry(&mut store, async |store| store.put_counter(counter, None, record).await).await {
        // It was written by a try that had no answer.
        let there = retry(&mut store, async |store| store.counter(counter).await).await;
        assert_eq!(there.as_ref(), Some(record));
    }
    store
}

/// Numbers that there must be.
pub(crate) async fn take(store: &mut Box<dyn Store>, counter: &CounterName, reserve: &Reserve) -> Numbers {
    match retry(store, async |store| store.reserve(counter, reserve).await).await {
        Reserved::Numbers(numbers) => numbers,
        other @ Reserved::Found(_) => panic!("{counter:?} {reserve:?}: {other:?}"),
    }
}

/// Asks for numbers that there cannot be: the record is as it was.
async fn found(store: &mut Box<dyn Store>, counter: &CounterName, reserve: &Reserve, record: &CounterRecord) {
    assert_eq!(store.reserve(counter, reserve).await, Ok(Reserved::Found(Some(*record))), "{reserve:?}");
    assert_eq!(store.counter(counter).await, Ok(Some(*record)));
}

pub(crate) fn listed(numbers: &Numbers) -> Vec<u64> {
    (0..numbers.count).map(|at| numbers.first + at * numbers.stride).collect()
}

/// Each call is refused with this text, and no secret.
pub(crate) async fn refused(store: &mut Box<dyn Store>, counter: &CounterName, says: &str) {
    let (old, new) = (record(1), record(2));
    for (call, refused) in [
        store.reserve(counter, &only(1)).await.map(drop),
        store.counter(counter).await.map(drop),
        store.put_counter(counter, None, &new).await.map(drop),
        store.put_counter(counter, Some(&old), &new).await.map(drop),
        store.remove_counter(counter).await.map(drop),
    ]
    .into_iter()
    .enumerate()
    {
        let Err(StoreError::Refused(text)) = refused else { panic!("call {call}: {refused:?}") };
        assert!(text.contains(says) && !text.contains("secret"), "call {call}: {text}");
    }
}

/// A store that cannot be reached says so, and no secret.
pub(crate) async fn unreachable(store: &mut Box<dyn Store>, counter: &CounterName) {
    let (old, new) = (record(1), record(2));
    for call in 0..4 {
        let failed = match call {
            0 => store.reserve(counter, &only(1)).await.map(drop),
            1 => store.counter(counter).await.map(drop),
            2 => store.put_counter(counter, Some(&old), &new).await.map(drop),
            _ => store.remove_counter(counter).await.map(drop),
        };
        let Err(StoreError::Unreachable(text)) = failed else { panic!("call {call}: {failed:?}") };
        assert!(!text.contains("secret"), "call {call}: {text}");
        store.disconnect();
    }
}

fn no_record(open: Open<'_>) {
    block(async {
        let (mut store, counter, first) = (open(), counter("nothing-there"), record(0));
        for _ in 0..2 {
            // Asking makes nothing.
            assert_eq!(store.counter(&counter).await, Ok(None));
            assert_eq!(store.reserve(&counter, &only(5)).await, Ok(Reserved::Found(None)));
            let seen = Reserve { seen: 9, ..only(5) };
            assert_eq!(store.reserve(&counter, &seen).await, Ok(Reserved::Found(None)));
            assert_eq!(store.put_counter(&counter, Some(&first), &record(9)).await, Ok(false));
            assert_eq!(store.remove_counter(&counter).await, Ok(false));
        }
        assert_eq!(store.put_counter(&counter, None, &first).await, Ok(true));
        assert_eq!(store.put_counter(&counter, None, &record(7)).await, Ok(false));
        // A repetition of one that succeeded finds itself.
        assert_eq!(store.put_counter(&counter, None, &first).await, Ok(false));
        assert_eq!(open().counter(&counter).await, Ok(Some(first)));
        store.disconnect();
        assert_eq!(listed(&take(&mut store, &counter, &only(2)).await), [1, 2]);
    });
}

fn numbers_in_order(open: Open<'_>) {
    block(async {
        let (counter, first) = (counter("in-order"), record(0));
        let mut store = made(open, &counter, &first).await;
        let mut versions = HashSet::from([first.version]);
        let mut last = 0;
        for count in [1, 1, 100, 7, 1_000_000, Reserve::MAX_COUNT, 1] {
            let numbers = take(&mut store, &counter, &only(count)).await;
            assert_eq!((numbers.first, numbers.stride, numbers.count), (last + 1, 1, count));
            last += count;
            let now = CounterRecord { last, version: numbers.version, place: Place::ONLY };
            assert_eq!(open().counter(&counter).await, Ok(Some(now)));
            assert!(numbers.version.is_some() && versions.insert(numbers.version), "{versions:?}");
        }
        // One that begins elsewhere.
        let (counter, later) = (self::counter("begins-later"), record(5_000_000_000));
        let mut store = made(open, &counter, &later).await;
        assert_eq!(listed(&take(&mut store, &counter, &only(2)).await), [5_000_000_001, 5_000_000_002]);
    });
}

fn the_record_of_a_counter(open: Open<'_>) {
    block(async {
        let (counter, first) = (counter("record"), record(10));
        let mut store = made(open, &counter, &first).await;
        let raised =
            CounterRecord { last: 500, version: Some(version()), place: Place { index: 3, count: 4 } };
        let wrong = CounterRecord { version: Some(version()), ..first };
        assert_eq!(store.put_counter(&counter, Some(&wrong), &raised).await, Ok(false));
        assert_eq!(store.counter(&counter).await, Ok(Some(first)));
        // Only the version is compared.
        let same = CounterRecord { last: 77, place: Place { index: 1, count: 2 }, ..first };
        assert_eq!(store.put_counter(&counter, Some(&same), &raised).await, Ok(true));
        assert_eq!(open().counter(&counter).await, Ok(Some(raised)));
        assert_eq!(store.put_counter(&counter, Some(&first), &raised).await, Ok(false));
        for record in [
            CounterRecord { last: 0, version: Some(0), place: Place { index: 0, count: 1 } },
            CounterRecord {
                last: 1,
                version: Some(1),
                place: Place { index: 1_023, count: Place::MAX_COUNT },
            },
            CounterRecord { last: LAST_NUMBER, version: Some(LAST_NUMBER), place: Place::ONLY },
            // Numbers that a 64-bit float holds for equal.
            CounterRecord { last: LAST_NUMBER - 1, version: Some(LAST_NUMBER - 1), place: Place::ONLY },
        ] {
            let now = store.counter(&counter).await.unwrap();
            assert_eq!(store.put_counter(&counter, now.as_ref(), &record).await, Ok(true));
            assert_eq!(open().counter(&counter).await, Ok(Some(record)));
            assert_eq!(store.put_counter(&counter, now.as_ref(), &record).await, Ok(false));
        }
    });
}

fn a_place_of_several(open: Open<'_>) {
    block(async {
        for index in 0..3 {
            let (counter, place) = (counter(&format!("place-{index}")), Place { index, count: 3 });
            let first = CounterRecord { place, ..record(0) };
            let mut store = made(open, &counter, &first).await;
            let reserve = |count| Reserve { count, place, seen: 0 };
            // 0 is no number, so the first of place 0 is 3.
            let from = if index == 0 { 3 } else { index };
            let mut at = from;
            for count in [1, 4, 1, 100] {
                let numbers = take(&mut store, &counter, &reserve(count)).await;
                assert_eq!((numbers.first, numbers.stride, numbers.count), (at, 3, count));
                at += 3 * count;
                let now = CounterRecord { last: at - 3, version: numbers.version, place };
                for other in [
                    Place::ONLY,
                    Place { index: (index + 1) % 3, count: 3 },
                    Place { index, count: 4 },
                    Place { index, count: 6 },
                ] {
                    found(&mut store, &counter, &Reserve { place: other, ..reserve(1) }, &now).await;
                }
            }
            // A `last` that is none of its numbers.
            for last in [1_000, 1_001, 1_002, 1_003] {
                let now = store.counter(&counter).await.unwrap();
                let raised = CounterRecord { place, ..record(last) };
                assert_eq!(store.put_counter(&counter, now.as_ref(), &raised).await, Ok(true));
                let lowest = (last + 1..=last + 3).find(|number| number % 3 == index).unwrap();
                let numbers = take(&mut store, &counter, &reserve(2)).await;
                assert_eq!(listed(&numbers), [lowest, lowest + 3]);
                let now = CounterRecord { last: lowest + 3, version: numbers.version, place };
                assert_eq!(store.counter(&counter).await, Ok(Some(now)));
            }
        }
        // As many as there can be.
        let place = Place { index: 1_023, count: Place::MAX_COUNT };
        let counter = counter("place-1023");
        let mut store = made(open, &counter, &CounterRecord { place, ..record(1_023) }).await;
        let numbers =
            take(&mut store, &counter, &Reserve { count: Reserve::MAX_COUNT, place, seen: 0 }).await;
        assert_eq!((numbers.first, numbers.stride, numbers.count), (2_047, 1_024, Reserve::MAX_COUNT));
        let last = store.counter(&counter).await.unwrap().unwrap().last;
        assert_eq!(last, 2_047 + 1_024 * (Reserve::MAX_COUNT - 1));
    });
}

fn what_was_seen(open: Open<'_>) {
    block(async {
        let (counter, first) = (counter("seen"), record(100));
        let mut store = made(open, &counter, &first).await;
        for seen in [101, 1_000, LAST_NUMBER] {
            found(&mut store, &counter, &Reserve { seen, ..only(1) }, &first).await;
        }
        let numbers = take(&mut store, &counter, &Reserve { seen: 100, ..only(1) }).await;
        assert_eq!(numbers.first, 101);
        let numbers = take(&mut store, &counter, &Reserve { seen: 99, ..only(1) }).await;
        assert_eq!(numbers.first, 102);
    });
}

fn the_last_numbers(open: Open<'_>) {
    block(async {
        let (counter, mut now) = (counter("ends"), record(LAST_NUMBER - 10));
        let mut store = made(open, &counter, &now).await;
        for count in [11, 12, 1_000_000, Reserve::MAX_COUNT] {
            found(&mut store, &counter, &only(count), &now).await;
        }
        let numbers = take(&mut store, &counter, &only(3)).await;
        assert_eq!(numbers.first, LAST_NUMBER - 9);
        now = CounterRecord { last: LAST_NUMBER - 7, version: numbers.version, ..now };
        found(&mut store, &counter, &only(8), &now).await;
        let seen = Reserve { seen: LAST_NUMBER - 7, ..only(7) };
        let numbers = take(&mut store, &counter, &seen).await;
        assert_eq!((numbers.first, numbers.count), (LAST_NUMBER - 6, 7));
        assert_eq!(*listed(&numbers).last().unwrap(), LAST_NUMBER);
        now = CounterRecord { last: LAST_NUMBER, version: numbers.version, ..now };
        for count in [1, 2, Reserve::MAX_COUNT] {
            found(&mut store, &counter, &only(count), &now).await;
            found(&mut store, &counter, &Reserve { seen: LAST_NUMBER, ..only(count) }, &now).await;
        }

        // 2^63-1 is 7 modulo 8, and 1 modulo 3: it is that place's last number, and others end below it.
        for (place, most) in [
            (Place { index: 7, count: 8 }, LAST_NUMBER),
            (Place { index: 0, count: 8 }, LAST_NUMBER - 7),
            (Place { index: LAST_NUMBER % 3, count: 3 }, LAST_NUMBER),
            (Place { index: (LAST_NUMBER - 1) % 3, count: 3 }, LAST_NUMBER - 1),
            (Place { index: (LAST_NUMBER - 2) % 3, count: 3 }, LAST_NUMBER - 2),
        ] {
            let counter = self::counter(&format!("ends {place:?}"));
            let Place { index, count } = place;
            let mut now = CounterRecord { place, ..record(most - count) };
            let mut store = made(open, &counter, &now).await;
            let reserve = |count| Reserve { count, place, seen: 0 };
            found(&mut store, &counter, &reserve(2), &now).await;
            found(&mut store, &counter, &reserve(Reserve::MAX_COUNT), &now).await;
            let numbers = take(&mut store, &counter, &reserve(1)).await;
            assert_eq!((numbers.first % count, listed(&numbers)), (index, vec![most]));
            now = CounterRecord { last: most, version: numbers.version, place };
            found(&mut store, &counter, &reserve(1), &now).await;
        }
    });
}

fn given_back_once(open: Open<'_>) {
    block(async {
        let (counter, first) = (counter("back"), record(0));
        let mut store = made(open, &counter, &first).await;
        let numbers = take(&mut store, &counter, &only(100)).await;
        let taken = CounterRecord { last: 100, version: numbers.version, place: Place::ONLY };
        let back = record(40);
        // With an old version, and with the right one twice.
        assert_eq!(store.put_counter(&counter, Some(&first), &back).await, Ok(false));
        assert_eq!(store.put_counter(&counter, Some(&taken), &back).await, Ok(true));
        assert_eq!(store.put_counter(&counter, Some(&taken), &record(30)).await, Ok(false));
        assert_eq!(store.counter(&counter).await, Ok(Some(back)));

        // Another brings `last` to what it was: the old holder gives nothing back.
        let again = take(&mut store, &counter, &only(60)).await;
        assert_eq!((again.first, again.count), (41, 60));
        assert_eq!(store.put_counter(&counter, Some(&taken), &record(40)).await, Ok(false));
        let now = CounterRecord { last: 100, version: again.version, place: Place::ONLY };
        assert_eq!(store.counter(&counter).await, Ok(Some(now)));

        // Nor where another took numbers since.
        let next = take(&mut open(), &counter, &only(1)).await;
        assert_eq!(next.first, 101);
        assert_eq!(store.put_counter(&counter, Some(&now), &record(50)).await, Ok(false));
        assert_eq!(take(&mut store, &counter, &only(1)).await.first, 102);
    });
}

fn made_again(open: Open<'_>) {
    block(async {
        let counter = counter("again");
        let mut versions = HashSet::new();
        let mut old = Vec::new();
        for _ in 0..5 {
            let first = record(0);
            let mut store = made(open, &counter, &first).await;
            let numbers = take(&mut store, &counter, &only(10)).await;
            assert_eq!(numbers.first, 1);
            for record in &old {
                assert_eq!(store.put_counter(&counter, Some(record), &self::record(0)).await, Ok(false));
            }
            for version in [first.version, numbers.version] {
                assert!(versions.insert(version), "{versions:?}");
                old.push(CounterRecord { last: 10, version, place: Place::ONLY });
            }
            assert_eq!(store.remove_counter(&counter).await, Ok(true));
            assert_eq!(store.remove_counter(&counter).await, Ok(false));
            assert_eq!(store.counter(&counter).await, Ok(None));
            assert_eq!(store.reserve(&counter, &only(1)).await, Ok(Reserved::Found(None)));
        }
    });
}

fn names_are_apart(open: Open<'_>) {
    block(async {
        let longest = "n".repeat(CounterName::MAX_NAME);
        let names = [
            "orders",
            "Orders",
            "ORDERS",
            "orders ",
            "orders  ",
            " orders",
            "orders\u{a0}",
            "or ders",
            "it's",
            "it\"s",
            "it`s",
            "back\\slash",
            "'); DROP TABLE polyflake_counters; --",
            "%",
            "_",
            "*",
            "?",
            "$1",
            ":a",
            "{orders}",
            "a/b",
            "a:b",
            "a.b",
            "0",
            "00",
            "naïve",
            "nai\u{308}ve",
            "naive",
            "straße",
            "strasse",
            "🦀",
            "🐙",
            "東京",
            &longest,
            &longest[1..],
            &"🦀".repeat(CounterName::MAX_NAME),
        ];
        let mut all: Vec<_> = names.iter().map(|name| counter(name)).collect();
        for (namespace, name) in
            [("other", "orders"), ("Other", "orders"), ("counters.orders", "x"), ("counters", "orders.x")]
        {
            all.push(CounterName { namespace: namespace.into(), ..counter(name) });
        }
        let mut store = open();
        for counter in &all {
            assert_eq!(store.counter(counter).await, Ok(None), "{counter:?}");
            assert_eq!(store.put_counter(counter, None, &record(0)).await, Ok(true), "{counter:?}");
        }
        for (count, counter) in (1..).zip(&all) {
            let numbers = take(&mut store, counter, &only(count)).await;
            assert_eq!((numbers.first, numbers.count), (1, count), "{counter:?}");
        }
        for (count, counter) in (1..).zip(&all) {
            let now = store.counter(counter).await.unwrap().unwrap();
            assert_eq!(now.last, count, "{counter:?}");
            assert_eq!(store.put_counter(counter, Some(&now), &record(count + 1_000)).await, Ok(true));
        }
        for (count, counter) in (1..).zip(&all) {
            assert_eq!(store.counter(counter).await.unwrap().unwrap().last, count + 1_000, "{counter:?}");
            assert_eq!(store.remove_counter(counter).await, Ok(true), "{counter:?}");
        }
        for counter in &all {
            assert_eq!(store.counter(counter).await, Ok(None), "{counter:?}");
        }
    });
}

/// Nothing twice, and no gap.
fn many_at_once(open: Open<'_>) {
    const THREADS: usize = 8;
    for (place, rounds) in [(Place::ONLY, 200_usize), (Place { index: 1, count: 3 }, 25)] {
        let counter = counter(&format!("at-once-{}", place.count));
        block(made(open, &counter, &CounterRecord { place, ..record(0) }));
        let barrier = Barrier::new(THREADS);
        let mut all = Vec::new();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (counter, barrier) = (&counter, &barrier);
                    scope.spawn(move || {
                        block(async {
                            let (mut store, mut mine, mut seen) = (open(), Vec::new(), 0);
                            barrier.wait();
                            for at in 0..rounds {
                                let count = u64::try_from((at + thread) % 5 + 1).unwrap();
                                let reserve = Reserve { count, place, seen };
                                let numbers = listed(&take(&mut store, counter, &reserve).await);
                                assert!(numbers[0] > seen);
                                seen = *numbers.last().unwrap();
                                mine.extend(numbers);
                            }
                            mine
                        })
                    })
                })
                .collect();
            for thread in threads {
                all.extend(thread.join().unwrap());
            }
        });
        all.sort_unstable();
        let expected: Vec<_> =
            (0..).map(|at| place.index.max(1) + at * place.count).take(all.len()).collect();
        assert_eq!(all, expected);
        assert_eq!(all.len(), THREADS * rounds * 3);
    }
}

/// Also where nothing is there before, not even a table.
pub(crate) fn one_of_many_makes_it(open: Open<'_>) {
    const THREADS: u64 = 8;
    for round in 0..4 {
        let counter = counter(&format!("race-{round}"));
        let barrier = Barrier::new(usize::try_from(THREADS).unwrap());
        let mut firsts: Vec<u64> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    let (counter, barrier) = (&counter, &barrier);
                    scope.spawn(move || {
                        block(async {
                            let (mut store, first) = (open(), record(100));
                            barrier.wait();
                            let made = retry(&mut store, async |store| {
                                store.put_counter(counter, None, &first).await
                            })
                            .await;
                            let numbers = take(&mut store, counter, &only(1)).await;
                            (numbers.first, made)
                        })
                    })
                })
                .collect();
            let all: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            // None, where the one that did had no answer and tried again.
            assert!(all.iter().filter(|(_, made)| *made).count() <= 1);
            all.into_iter().map(|(first, _)| first).collect()
        });
        firsts.sort_unstable();
        assert_eq!(firsts, (101..=100 + THREADS).collect::<Vec<_>>());
    }
}

/// The keeper ends a call by dropping it, at any of its waits. What it asked for may be taken, also later, when a server
/// comes to it: then it is a gap.
fn a_call_that_is_dropped(open: Open<'_>) {
    block(async {
        let counter = counter("dropped");
        let mut store = made(open, &counter, &record(0)).await;
        // Up to where numbers are taken, and how many of the dropped calls have not been seen.
        let (mut last, mut unseen) = (0, 0);
        for polls in 0..24 {
            give_up(store.reserve(&counter, &only(10)), polls).await;
            unseen += 1;
            store.disconnect();
            let numbers = take(&mut store, &counter, &only(10)).await;
            let gap = numbers.first - last - 1;
            assert!(
                gap % 10 == 0 && gap / 10 <= unseen,
                "after {polls} polls: {numbers:?}, {last}, {unseen}"
            );
            unseen -= gap / 10;
            last = numbers.first + 9;
            let now = CounterRecord { last, version: numbers.version, place: Place::ONLY };
            let back = record(last - 5);
            give_up(store.put_counter(&counter, Some(&now), &back), polls).await;
            store.disconnect();
            let written =
                retry(&mut store, async |store| store.put_counter(&counter, Some(&now), &back).await).await;
            let there = retry(&mut store, async |store| store.counter(&counter).await).await.unwrap();
            // Taken only now: before what was put, which then found another version, or after it.
            let gap = if there.last > last && (there.last - last) % 10 == 0 {
                there.last - last
            } else {
                last -= 5;
                there.last - last
            };
            assert!(gap % 10 == 0 && gap / 10 <= unseen, "after {polls} polls: {there:?}, {last}, {written}");
            assert!(gap > 0 || there == back, "after {polls} polls: {there:?} is not {back:?}");
            unseen -= gap / 10;
            last = there.last;
        }
    });
}
