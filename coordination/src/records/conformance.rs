//! Tests that every store must pass, both Polyflake's stores and your own.

use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::runtime::{self, Runtime};

use super::{Add, Added, Answer, Facts, Group, Kind, Named, Outcome, Record, Store, Write};
use crate::local::random;
use crate::store::StoreError;

/// Opens another client for the same store.
type Open<'a> = &'a (dyn Fn() -> Box<dyn Store> + Sync);

/// Tests a store. `open` opens another client for the same store. The tests do not touch other data in the
/// store. They leave their own records there, in namespaces that begin with `conformance-`.
///
/// # Panics
///
/// Panics if the store does not behave as [`Store`] specifies.
pub fn conformance(open: Open<'_>) {
    let histories: [fn(Open<'_>, &str); 14] = [
        nothing_is_there,
        a_record_is_compared_and_set,
        a_write_can_be_repeated,
        a_guard_must_fit,
        a_repeated_write_is_guarded_too,
        numbers_are_added,
        an_add_can_be_repeated,
        records_are_read_by_name,
        several_are_asked_for_at_once,
        groups_are_apart,
        the_ends_of_the_ranges,
        one_of_many_writes,
        all_of_many_add,
        a_call_is_dropped,
    ];
    for history in histories {
        history(open, &format!("conformance-{:016x}", random()));
    }
}

/// A client that retries while the store is busy, as the keeper does. Its runtime drives the store's connection.
struct Client(Box<dyn Store>, Runtime);

impl Client {
    fn new(open: Open<'_>) -> Self {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        Self(open(), runtime.unwrap_or_else(|error| panic!("no runtime: {error}")))
    }

    fn ask<T>(&mut self, mut ask: impl AsyncFnMut(&mut dyn Store) -> Result<Answer<T>, StoreError>) -> T {
        for _ in 0..600 {
            match self.1.block_on(ask(&mut *self.0)) {
                Ok(answer) => {
                    check(&answer, self.0.facts());
                    return answer.value;
                }
                Err(StoreError::Unreachable(_)) => {
                    self.0.disconnect();
                    thread::sleep(Duration::from_millis(20));
                }
                Err(error) => panic!("{error}"),
            }
        }
        panic!("the store cannot be reached for too long");
    }

    fn read(&mut self, group: &Group, names: Option<&[&str]>) -> Named {
        let mut found = self.ask(async |store| store.read(group, names).await);
        found.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        found
    }

    fn record(&mut self, group: &Group, name: &str) -> Option<Record> {
        let found = self.read(group, Some(&[name]));
        assert!(found.iter().all(|(other, _)| other == name), "{found:?}");
        found.into_iter().next().map(|(_, record)| record)
    }

    fn write(&mut self, write: &Write) -> Outcome {
        self.ask(async |store| store.write(write).await)
    }

    fn put(&mut self, group: &Group, name: &str, expected: Option<u64>, new: &Record) -> Outcome {
        self.write(&Write {
            group: group.clone(),
            name: name.into(),
            expected,
            guard: None,
            new: new.clone(),
        })
    }

    fn add(&mut self, add: &Add) -> Added {
        self.ask(async |store| store.add(add).await)
    }

    fn groups(&mut self, namespace: &str, kind: Kind) -> BTreeSet<String> {
        let names = self.ask(async |store| {
            let value = store.groups(namespace, kind).await?;
            // This reply contains neither the time nor the incarnation, but the reply to a read contains
            // both.
            let group = Group { namespace: namespace.into(), kind, name: "none".into() };
            Ok(store.read(&group, Some(&["none"])).await?.map(|_| value))
        });
        let count = names.len();
        let names: BTreeSet<_> = names.into_iter().collect();
        assert_eq!(names.len(), count, "a group is named twice");
        names
    }
}

/// Checks the facts and the incarnation, and that the server's clock is within a day of this machine's clock.
fn check<T>(answer: &Answer<T>, facts: Facts) {
    assert!(!answer.incarnation.is_empty());
    assert!((1..=10_000).contains(&facts.granularity_ms), "{facts:?}");
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    assert!(
        now_ms.abs_diff(answer.now_ms.into()) < 86_400_000,
        "the store says {}, here it is {now_ms}",
        answer.now_ms
    );
}

fn group(namespace: &str, kind: Kind, name: &str) -> Group {
    Group { namespace: namespace.into(), kind, name: name.into() }
}

fn space(namespace: &str) -> Group {
    group(namespace, Kind::Space, "timestamp:41<<22|sequence:12<<0@1288834974657/1ms")
}

fn record(version: u64, number: u64, text: &str) -> Record {
    Record { version, number, text: text.into() }
}

fn found(record: &Record) -> Outcome {
    Outcome::Found { record: Some(record.clone()), guard: None }
}

const NOTHING: Outcome = Outcome::Found { record: None, guard: None };

fn nothing_is_there(open: Open<'_>, namespace: &str) {
    let mut client = Client::new(open);
    let group = space(namespace);
    for _ in 0..2 {
        assert_eq!(client.read(&group, None), []);
        assert_eq!(client.read(&group, Some(&["head", "17"])), []);
        assert_eq!(client.put(&group, "head", Some(5), &record(6, 1, "{}")), NOTHING);
        let add = Add {
            group: group.clone(),
            name: "head".into(),
            text: "{}".into(),
            floor: 0,
            count: 1,
            limit: 9,
            version: 5,
        };
        assert_eq!(client.add(&add), Added::Found(None));
        let guard = Some(("head".to_owned(), 5));
        let new = record(7, 1, "{}");
        let write = Write { group: group.clone(), name: "17".into(), expected: None, guard, new };
        assert_eq!(client.write(&write), NOTHING);
        for kind in Kind::ALL {
            assert_eq!(client.groups(namespace, kind), BTreeSet::new());
        }
    }
}

fn a_record_is_compared_and_set(open: Open<'_>, namespace: &str) {
    let (mut one, mut other) = (Client::new(open), Client::new(open));
    let group = space(namespace);
    let (first, second, third) =
        (record(11, 5, "{\"a\":1}"), record(9, 3, "{}"), record(12, 3, "{\"b\":[]}"));
    assert_eq!(one.put(&group, "head", None, &first), Outcome::Written);
    assert_eq!(other.record(&group, "head").as_ref(), Some(&first));
    assert_eq!(other.put(&group, "head", None, &second), found(&first));
    assert_eq!(other.put(&group, "head", Some(10), &second), found(&first));
    assert_eq!(other.put(&group, "17", Some(11), &second), NOTHING);
    assert_eq!(other.put(&group, "head", Some(11), &second), Outcome::Written);
    // Both the number and the version decrease here. A store compares versions only for equality.
    assert_eq!(one.record(&group, "head").as_ref(), Some(&second));
    assert_eq!(one.put(&group, "head", Some(11), &third), found(&second));
    assert_eq!(one.put(&group, "head", Some(9), &third), Outcome::Written);
    assert_eq!(other.read(&group, None), [("head".to_owned(), third)]);
}

fn a_write_can_be_repeated(open: Open<'_>, namespace: &str) {
    let (mut one, mut other) = (Client::new(open), Client::new(open));
    let group = space(namespace);
    let (first, second) = (record(11, 5, "{}"), record(12, 6, "{}"));
    for _ in 0..3 {
        assert_eq!(one.put(&group, "head", None, &first), Outcome::Written);
    }
    for _ in 0..3 {
        assert_eq!(one.put(&group, "head", Some(11), &second), Outcome::Written);
    }
    assert_eq!(other.record(&group, "head").as_ref(), Some(&second));
    // A repeated write does not replace a later write by another client.
    let third = record(13, 7, "{}");
    assert_eq!(other.put(&group, "head", Some(12), &third), Outcome::Written);
    assert_eq!(one.put(&group, "head", Some(11), &second), found(&third));
    assert_eq!(one.put(&group, "head", None, &first), found(&third));
}

fn a_guard_must_fit(open: Open<'_>, namespace: &str) {
    let mut client = Client::new(open);
    let group = space(namespace);
    let (head, first, second) = (record(20, 5, "{\"head\":1}"), record(21, 900, "{}"), record(22, 901, "{}"));
    let write = |expected, version, new: &Record| Write {
        group: group.clone(),
        name: "17".into(),
        expected,
        guard: Some(("head".into(), version)),
        new: new.clone(),
    };
    assert_eq!(client.put(&group, "head", None, &head), Outcome::Written);
    let not = |record: Option<&Record>| Outcome::Found { record: record.cloned(), guard: Some(head.clone()) };
    assert_eq!(client.write(&write(None, 19, &first)), not(None));
    assert_eq!(client.write(&write(Some(3), 20, &first)), not(None));
    assert_eq!(client.write(&write(None, 20, &first)), Outcome::Written);
    assert_eq!(client.write(&write(None, 20, &second)), not(Some(&first)));
    assert_eq!(client.write(&write(Some(21), 21, &second)), not(Some(&first)));
    assert_eq!(client.write(&write(Some(21), 20, &second)), Outcome::Written);
    assert_eq!(client.record(&group, "17"), Some(second));
    // The guard must be in the same group.
    let elsewhere = Group { name: "timestamp:40<<22|sequence:12<<0@0/1ms".into(), ..group.clone() };
    let other = Write { group: elsewhere, ..write(None, 20, &first) };
    assert_eq!(client.write(&other), NOTHING);
}

fn a_repeated_write_is_guarded_too(open: Open<'_>, namespace: &str) {
    let mut client = Client::new(open);
    let group = space(namespace);
    let (head, node, next) = (record(20, 5, "{}"), record(21, 900, "{}"), record(23, 6, "{}"));
    let guard = Some(("head".to_owned(), 20));
    let write = Write { group: group.clone(), name: "17".into(), expected: None, guard, new: node.clone() };
    assert_eq!(client.put(&group, "head", None, &head), Outcome::Written);
    assert_eq!(client.write(&write), Outcome::Written);
    assert_eq!(client.write(&write), Outcome::Written);
    assert_eq!(client.put(&group, "head", Some(20), &next), Outcome::Written);
    assert_eq!(client.write(&write), Outcome::Found { record: Some(node), guard: Some(next) });
}

fn counter(namespace: &str) -> Add {
    let group = group(namespace, Kind::Counter, "orders");
    let text = "{\"incarnation\":\"a\"}".to_owned();
    Add { group, name: "last".into(), text, floor: 0, count: 10, limit: 1_000, version: 31 }
}

fn numbers_are_added(open: Open<'_>, namespace: &str) {
    let mut client = Client::new(open);
    let add = counter(namespace);
    let mut there = record(30, 100, &add.text);
    assert_eq!(client.put(&add.group, "last", None, &there), Outcome::Written);
    for wrong in [
        Add { text: "{\"incarnation\":\"b\"}".into(), ..add.clone() },
        Add { text: "{\"incarnation\":\"A\"}".into(), ..add.clone() },
        Add { text: format!("{} ", add.text), ..add.clone() },
        Add { floor: 101, ..add.clone() },
        Add { limit: 109, ..add.clone() },
        Add { count: Record::LAST_NUMBER, limit: Record::LAST_NUMBER, ..add.clone() },
    ] {
        assert_eq!(client.add(&wrong), Added::Found(Some(there.clone())), "{wrong:?}");
    }
    assert_eq!(client.add(&Add { floor: 100, limit: 110, ..add.clone() }), Added::To(110));
    (there.version, there.number) = (31, 110);
    assert_eq!(client.record(&add.group, "last"), Some(there));
    assert_eq!(client.add(&Add { version: 32, count: 890, ..add.clone() }), Added::To(1_000));
    assert_eq!(
        client.put(&add.group, "last", Some(31), &record(33, 0, "{}")),
        found(&record(32, 1_000, &add.text))
    );
}

fn an_add_can_be_repeated(open: Open<'_>, namespace: &str) {
    let mut client = Client::new(open);
    let add = counter(namespace);
    assert_eq!(client.put(&add.group, "last", None, &record(30, 100, &add.text)), Outcome::Written);
    for _ in 0..3 {
        assert_eq!(client.add(&add), Added::To(110));
    }
    // The repeated add succeeds even if the limit leaves no room for a second addition.
    let last = Add { version: 32, count: 500, limit: 610, ..add };
    for _ in 0..3 {
        assert_eq!(client.add(&last), Added::To(610));
    }
    assert_eq!(client.record(&last.group, "last").map(|record| record.number), Some(610));
}

fn records_are_read_by_name(open: Open<'_>, namespace: &str) {
    let mut client = Client::new(open);
    let group = space(namespace);
    for node in 0..300 {
        let outcome = client.put(&group, &node.to_string(), None, &record(1 + node, 1_000 + node, "{}"));
        assert_eq!(outcome, Outcome::Written);
    }
    let names: Vec<String> = (290..290 + Record::MAX_NAMES).map(|node| node.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let there = client.read(&group, Some(&names));
    let expected: Named =
        (290..300).map(|node| (node.to_string(), record(1 + node, 1_000 + node, "{}"))).collect();
    assert_eq!(there, expected);
    assert_eq!(client.read(&group, Some(&[])), []);
    let mut all: Vec<u64> = client.read(&group, None).iter().map(|(_, record)| record.number).collect();
    all.sort_unstable();
    assert_eq!(all, (1_000..1_300).collect::<Vec<_>>());
}

fn several_are_asked_for_at_once(open: Open<'_>, namespace: &str) {
    let mut client = Client::new(open);
    let of = |at: u64| group(namespace, Kind::Counter, &format!("it is {at}"));
    let each = |client: &mut Client, groups: &[Group]| -> Vec<Option<Record>> {
        client.ask(async |store| Ok(all_of(store.read_each(groups, "last").await?)))
    };
    let write_each = |client: &mut Client, writes: &[Write]| -> Vec<Outcome> {
        client.ask(async |store| Ok(all_of(store.write_each(writes).await?)))
    };
    let write = |at: u64, expected, version| {
        let new = record(version, at, "{}");
        Write { group: of(at), name: "last".into(), expected, guard: None, new }
    };
    let groups: Vec<_> = (1..=150).map(of).collect();
    assert_eq!(each(&mut client, &groups), vec![None; 150]);
    let writes: Vec<_> = (1..=150).filter(|at| at % 2 == 0).map(|at| write(at, None, at)).collect();
    for _ in 0..2 {
        assert_eq!(write_each(&mut client, &writes), vec![Outcome::Written; 75]);
    }
    let there = |at: u64| (at % 2 == 0).then(|| record(at, at, "{}"));
    assert_eq!(each(&mut client, &groups), (1..=150).map(there).collect::<Vec<_>>());
    // Each write whose expected version matches takes effect in its own group, regardless of the other
    // writes.
    let outcomes =
        write_each(&mut client, &[write(2, Some(7), 900), write(3, None, 901), write(4, Some(4), 902)]);
    assert_eq!(outcomes, [found(&record(2, 2, "{}")), Outcome::Written, Outcome::Written]);
    let others = [of(4), group(namespace, Kind::Sequences, "it is 3"), of(3), of(1), of(2)];
    let (third, fourth) = (record(901, 3, "{}"), record(902, 4, "{}"));
    assert_eq!(each(&mut client, &others), [Some(fourth), None, Some(third), None, there(2)]);
    // Several records in a group share one guard.
    let guarded = |name: &str, version| {
        let (name, guard, new) = (name.into(), Some(("last".into(), version)), record(1, 0, ""));
        Write { group: of(3), name, expected: None, guard, new }
    };
    let outcomes = write_each(&mut client, &[guarded("a", 901), guarded("b", 7), guarded("c", 901)]);
    assert_eq!(outcomes[0], Outcome::Written);
    assert!(matches!(&outcomes[1], Outcome::Found { record: None, guard: Some(_) }), "{outcomes:?}");
    assert_eq!(outcomes[2], Outcome::Written);
    assert_eq!(client.record(&of(3), "b"), None);
}

fn all_of<T>(answers: Vec<Answer<T>>) -> Answer<Vec<T>> {
    // If the groups are on several servers, each server reports its own time and incarnation.
    let first = answers.first().map(|it| (it.now_ms, it.incarnation.clone()));
    let (now_ms, incarnation) = first.unwrap_or_else(|| panic!("no answer"));
    assert!(answers.iter().all(|answer| !answer.incarnation.is_empty()));
    let value = answers.into_iter().map(|answer| answer.value).collect();
    Answer { now_ms, incarnation, value }
}

fn groups_are_apart(open: Open<'_>, namespace: &str) {
    let mut client = Client::new(open);
    let long = "\u{1F980}".repeat(100);
    let names = [
        "a",
        "A",
        "b",
        "a ",
        " a",
        "a/b",
        "a//b",
        "a%2Fb",
        "a%",
        "a_b",
        "a\\b",
        "a'b",
        "a\"b",
        "a`b",
        "a{b}",
        "{a}",
        "a}b",
        "*",
        "?",
        "[a]",
        "$1",
        ".",
        "..",
        "a.b",
        "\u{e9}",
        "e\u{301}",
        "\u{df}",
        "ss",
        "\u{131}",
        "i",
        "I",
        "\u{5bf6}",
        &long,
        "polyflake_records",
        "head",
        "a\u{feff}",
        "\u{202e}a",
    ];
    let mut version = 40;
    for namespace in
        [namespace.to_owned(), format!("{namespace}.x"), format!("{namespace}_x"), namespace.to_uppercase()]
    {
        for kind in Kind::ALL {
            for name in names {
                version += 1;
                let group = group(&namespace, kind, name);
                assert_eq!(client.read(&group, None), [], "{group:?}");
                assert_eq!(
                    client.put(&group, "head", None, &record(version, version, "{}")),
                    Outcome::Written,
                    "{group:?}"
                );
                assert_eq!(
                    client.read(&group, None),
                    [("head".to_owned(), record(version, version, "{}"))],
                    "{group:?}"
                );
            }
            assert_eq!(client.groups(&namespace, kind), names.iter().map(ToString::to_string).collect());
        }
    }
    // The list contains neither the names of records nor the groups of other namespaces.
    assert_eq!(client.groups(&format!("{namespace}.y"), Kind::Space), BTreeSet::new());
}

fn the_ends_of_the_ranges(open: Open<'_>, namespace: &str) {
    let mut client = Client::new(open);
    let last = Record::LAST_NUMBER;
    let text = "{\"label\":\"\\\"\\\\ \u{1F980} \u{e9} '$1' %s ${x} ?\"}";
    let padded = format!("\"{}\"", "\u{e9}".repeat(Record::MAX_TEXT / 2 - 1));
    for (name, first, second) in [
        ("0", record(1, 0, ""), record(last, last, text)),
        ("z9-z9-z9-z9-z9-z9-z9-z9-z9-z9-z9", record(last, last, &padded), record(last - 1, last - 1, text)),
        ("1", record((1 << 53) + 1, (1 << 53) + 1, text), record((1 << 53) + 2, (1 << 53) + 3, "{}")),
    ] {
        let group = space(namespace);
        assert_eq!(client.put(&group, name, None, &first), Outcome::Written);
        assert_eq!(client.record(&group, name).as_ref(), Some(&first));
        assert_eq!(client.put(&group, name, Some(first.version - 1), &second), found(&first));
        assert_eq!(client.put(&group, name, Some(first.version), &second), Outcome::Written);
        assert_eq!(client.record(&group, name).as_ref(), Some(&second));
    }
    let add = Add { limit: last, count: 1, ..counter(namespace) };
    let there = record(last, last - 1, &add.text);
    assert_eq!(client.put(&add.group, "last", None, &there), Outcome::Written);
    assert_eq!(client.add(&Add { floor: last, ..add.clone() }), Added::Found(Some(there)));
    assert_eq!(client.add(&Add { floor: last - 1, version: last - 1, ..add.clone() }), Added::To(last));
    let there = record(last - 1, last, &add.text);
    assert_eq!(client.add(&Add { version: 8, ..add.clone() }), Added::Found(Some(there)));
    assert_eq!(
        client.add(&Add { version: 8, count: last, ..add }),
        Added::Found(Some(record(last - 1, last, "{\"incarnation\":\"a\"}")))
    );
}

/// Runs `run` in several threads at the same time, each with its own client.
fn at_once<T: Send>(open: Open<'_>, run: impl Fn(&mut Client, u64) -> T + Sync) -> Vec<T> {
    const THREADS: u64 = 4;
    let start = Barrier::new(4);
    let (run, start) = (&run, &start);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|at| {
                scope.spawn(move || {
                    let mut client = Client::new(open);
                    start.wait();
                    run(&mut client, at)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| panic!("a thread failed")))
            .collect()
    })
}

fn one_of_many_writes(open: Open<'_>, namespace: &str) {
    let group = space(namespace);
    for round in 0..8 {
        let name = round.to_string();
        for (expected, versions) in [(None, 100), (Some(1), 200)] {
            let outcomes = at_once(open, |client, at| {
                client.put(&group, &name, expected, &record(versions + at, at, "{}"))
            });
            let there = Client::new(open).record(&group, &name);
            let written: Vec<u64> = (versions..)
                .zip(&outcomes)
                .filter(|(_, it)| **it == Outcome::Written)
                .map(|(version, _)| version)
                .collect();
            assert_eq!(written, [there.as_ref().map_or(0, |record| record.version)], "{outcomes:?}");
            let others = outcomes.iter().filter(|it| **it != Outcome::Written);
            others.for_each(|it| assert_eq!(*it, Outcome::Found { record: there.clone(), guard: None }));
            let again = Some(written.first().copied().unwrap_or_default());
            assert_eq!(Client::new(open).put(&group, &name, again, &record(1, 1, "{}")), Outcome::Written);
        }
    }
}

fn all_of_many_add(open: Open<'_>, namespace: &str) {
    const ADDS: u64 = 25;
    let add = Add { limit: Record::LAST_NUMBER, ..counter(namespace) };
    assert_eq!(Client::new(open).put(&add.group, "last", None, &record(1, 7, &add.text)), Outcome::Written);
    let given = at_once(open, |client, at| {
        let mut given = Vec::new();
        for round in 0..ADDS {
            let add = Add { count: 1 + at + round % 3, version: 100 + at * ADDS + round, ..add.clone() };
            match client.add(&add) {
                Added::To(last) => given.extend(last - add.count + 1..=last),
                Added::Found(found) => panic!("{add:?} found {found:?}"),
            }
        }
        assert!(given.is_sorted());
        given
    });
    let mut given = given.concat();
    given.sort_unstable();
    let last = Client::new(open).record(&add.group, "last").map_or(0, |record| record.number);
    assert_eq!(given, (8..=last).collect::<Vec<_>>());
}

/// A dropped call may or may not take effect, but does not harm the next call.
fn a_call_is_dropped(open: Open<'_>, namespace: &str) {
    let mut client = Client::new(open);
    let group = space(namespace);
    for round in 0..40_u64 {
        let name = round.to_string();
        let new = record(500 + round, round, "{}");
        let write =
            Write { group: group.clone(), name: name.clone(), expected: None, guard: None, new: new.clone() };
        client.1.block_on(async {
            let pause = Duration::from_micros(round * round * 4);
            let _ = tokio::time::timeout(pause, client.0.write(&write)).await;
        });
        client.0.disconnect();
        assert_eq!(client.write(&write), Outcome::Written);
        assert_eq!(client.record(&group, &name), Some(new));
    }
}
