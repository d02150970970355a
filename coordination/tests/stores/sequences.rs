//! What any store must do with sequences. `all` runs it on one store; a store of your own runs it the same way.

use std::sync::Barrier;
use std::thread;

use polyflake_coordination::{LAST_NUMBER, SequencesName, SequencesRecord, Store, StoreError};

use super::counters::{self, version};
use super::suite::{Open, block, give_up, retry};

/// Runs every history.
pub(crate) fn all(open: Open<'_>) {
    no_record(open);
    the_record(open);
    the_largest_record(open);
    names_are_apart(open);
    many_at_once(open);
    one_of_many_makes_it(open);
    a_call_that_is_dropped(open);
}

pub(crate) fn named(name: &str) -> SequencesName {
    SequencesName { namespace: "sequences".into(), name: name.into() }
}

pub(crate) fn record(bounds: &[u64]) -> SequencesRecord {
    SequencesRecord { version: version(), hash: "some-hash".into(), bounds: bounds.into() }
}

/// Writes the first record.
pub(crate) async fn made(open: Open<'_>, name: &SequencesName, record: &SequencesRecord) -> Box<dyn Store> {
    let mut store = open();
    if !retry(&mut store, async |store| store.put_sequences(name, None, record).await).await {
        // It was written by a try that had no answer.
        assert_eq!(there(&mut store, name).await.as_ref(), Some(record));
    }
    store
}

async fn there(store: &mut Box<dyn Store>, name: &SequencesName) -> Option<SequencesRecord> {
    retry(store, async |store| store.sequences(name).await).await
}

/// Each call is refused with this text, and no secret.
pub(crate) async fn refused(store: &mut Box<dyn Store>, name: &SequencesName, says: &str) {
    let new = record(&[1]);
    for refused in [
        store.sequences(name).await.map(drop),
        store.put_sequences(name, None, &new).await.map(drop),
        store.put_sequences(name, Some(7), &new).await.map(drop),
    ] {
        let Err(StoreError::Refused(text)) = refused else { panic!("{refused:?}") };
        assert!(text.contains(says) && !text.contains("secret"), "{text}");
    }
}

fn no_record(open: Open<'_>) {
    block(async {
        let (mut store, name) = (open(), named("nothing-there"));
        for _ in 0..2 {
            // Asking makes nothing.
            assert_eq!(store.sequences(&name).await, Ok(None));
            assert_eq!(store.put_sequences(&name, Some(version()), &record(&[1])).await, Ok(false));
        }
    });
}

fn the_record(open: Open<'_>) {
    block(async {
        let (name, first, second) = (named("record"), record(&[0, 10, LAST_NUMBER]), record(&[5, 4, 3, 2]));
        let mut store = made(open, &name, &first).await;
        let mut other = open();
        for (expected, new) in [(None, &second), (Some(second.version), &second), (Some(0), &second)] {
            assert_eq!(other.put_sequences(&name, expected, new).await, Ok(false), "{expected:?}");
            assert_eq!(there(&mut store, &name).await.as_ref(), Some(&first));
        }
        assert_eq!(other.put_sequences(&name, Some(first.version), &second).await, Ok(true));
        assert_eq!(there(&mut store, &name).await.as_ref(), Some(&second));
        // An answer that was lost, and an attempt that comes late.
        assert_eq!(store.put_sequences(&name, Some(first.version), &record(&[9])).await, Ok(false));
        assert_eq!(there(&mut other, &name).await.as_ref(), Some(&second));
        for unsound in [
            record(&[]),
            record(&[LAST_NUMBER + 1]),
            record(&vec![0; usize::try_from(SequencesRecord::MAX_SECTIONS).unwrap() + 1]),
            SequencesRecord { version: LAST_NUMBER + 1, ..record(&[1]) },
        ] {
            let refused = store.put_sequences(&name, Some(second.version), &unsound).await;
            assert!(matches!(refused, Err(StoreError::Refused(_))), "{refused:?}");
        }
        assert_eq!(there(&mut store, &name).await, Some(second));
    });
}

fn the_largest_record(open: Open<'_>) {
    block(async {
        let most = usize::try_from(SequencesRecord::MAX_SECTIONS).unwrap();
        let bounds: Vec<_> = (0..SequencesRecord::MAX_SECTIONS).map(|at| LAST_NUMBER - at).collect();
        let (name, large) = (named("largest"), record(&bounds));
        let mut store = made(open, &name, &large).await;
        assert_eq!(there(&mut store, &name).await.as_ref(), Some(&large));
        let other = record(&vec![LAST_NUMBER; most]);
        assert!(
            retry(&mut store, async |store| store.put_sequences(&name, Some(large.version), &other).await)
                .await
        );
        assert_eq!(there(&mut open(), &name).await, Some(other));
    });
}

fn names_are_apart(open: Open<'_>) {
    block(async {
        let long = "n".repeat(100);
        let names = [
            "inbox",
            "Inbox",
            "inbox ",
            "in/box",
            "..",
            "{inbox}",
            "ínbox",
            "收件箱 📥",
            "%",
            "'\"\\",
            &long,
        ];
        let mut store = open();
        for (at, name) in (0..).zip(names) {
            made(open, &named(name), &record(&[at])).await;
        }
        // Of another namespace, and a counter.
        let elsewhere = SequencesName { namespace: "elsewhere".into(), name: "inbox".into() };
        made(open, &elsewhere, &record(&[100])).await;
        let counter = polyflake_coordination::CounterName {
            namespace: "sequences".into(),
            ..counters::counter("inbox")
        };
        counters::made(open, &counter, &counters::record(7)).await;
        for (at, name) in (0..).zip(names) {
            assert_eq!(there(&mut store, &named(name)).await.unwrap().bounds, [at], "{name}");
        }
        assert_eq!(there(&mut store, &elsewhere).await.unwrap().bounds, [100]);
        assert_eq!(store.counter(&counter).await.unwrap().unwrap().last, 7);
    });
}

/// Each change is one of those that found what it expected.
fn many_at_once(open: Open<'_>) {
    const THREADS: usize = 6;
    let name = named("many");
    block(made(open, &name, &record(&[0])));
    let barrier = Barrier::new(THREADS);
    let changes: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (name, barrier) = (&name, &barrier);
                scope.spawn(move || {
                    block(async {
                        let (mut store, mut changes) = (open(), 0);
                        barrier.wait();
                        for _ in 0..40 {
                            let found = there(&mut store, name).await.unwrap();
                            let new = record(&[found.bounds[0] + 1]);
                            if store.put_sequences(name, Some(found.version), &new).await == Ok(true) {
                                changes += 1;
                            }
                        }
                        changes
                    })
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let last = block(async { there(&mut open(), &name).await }).unwrap().bounds[0];
    // A change whose answer was an error may have been made.
    assert!(changes >= 1 && last >= changes, "{changes} {last}");
    assert!(last <= 40 * THREADS as u64);
}

/// Also where nothing is there before, not even a table.
pub(crate) fn one_of_many_makes_it(open: Open<'_>) {
    const THREADS: u64 = 8;
    for round in 0..3 {
        let name = named(&format!("race-{round}"));
        let barrier = Barrier::new(usize::try_from(THREADS).unwrap());
        let made: Vec<(bool, u64)> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    let (name, barrier) = (&name, &barrier);
                    scope.spawn(move || {
                        block(async {
                            let (mut store, first) = (open(), record(&[thread]));
                            barrier.wait();
                            let made = retry(&mut store, async |store| {
                                store.put_sequences(name, None, &first).await
                            })
                            .await;
                            (made, there(&mut store, name).await.unwrap().bounds[0])
                        })
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        // None, where the one that did had no answer and tried again.
        assert!(made.iter().filter(|(made, _)| *made).count() <= 1, "{made:?}");
        assert!(made.iter().all(|(_, bound)| *bound == made[0].1), "{made:?}");
    }
}

/// The keeper ends a call by dropping it, at any of its waits. What it asked for may be written.
fn a_call_that_is_dropped(open: Open<'_>) {
    block(async {
        let name = named("dropped");
        let mut known = record(&[0, 0]);
        let mut store = made(open, &name, &known).await;
        for polls in 0..16 {
            let new = record(&[polls, 0]);
            give_up(store.put_sequences(&name, Some(known.version), &new), polls).await;
            store.disconnect();
            let late = record(&[polls, 1]);
            let written =
                retry(&mut store, async |store| store.put_sequences(&name, Some(known.version), &late).await)
                    .await;
            let found = there(&mut store, &name).await.unwrap();
            assert!(found == late || (found == new && !written), "after {polls} polls: {found:?}, {written}");
            known = found;
        }
    });
}
