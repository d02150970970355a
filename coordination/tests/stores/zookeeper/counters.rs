//! Counters in ZooKeeper.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polyflake_coordination::{
    CounterName, CounterRecord, LAST_NUMBER, Numbers, Place, Reserve, Reserved, Schema, Store, StoreError,
};

use super::super::counters as common;
use super::super::servers::free_port;
use super::super::servers::zookeeper::Zookeeper;
use super::super::suite::{block, open, retry};
use super::way;

const ALL: &str = "/polyflake/default/counters";

fn named(name: &str) -> CounterName {
    CounterName { namespace: "default".into(), name: name.into(), schema: Schema::Polyflake }
}

fn record(last: u64, version: u64) -> CounterRecord {
    CounterRecord { last, version: Some(version), place: Place::ONLY }
}

fn ask(count: u64, seen: u64) -> Reserve {
    Reserve { count, place: Place::ONLY, seen }
}

fn numbers(first: u64, count: u64, version: u64) -> Reserved {
    Reserved::Numbers(Numbers { first, stride: 1, count, version: Some(version) })
}

fn refused<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Refused(said)) => said,
        other => panic!("{other:?}"),
    }
}

/// Eight clients at once, and names of all kinds, among them.
#[test]
fn every_history() {
    let zookeeper = Zookeeper::new();
    common::all(&|| open(&zookeeper.url()));
}

#[test]
fn it_reads_well_and_what_is_no_record_is_refused() {
    let zookeeper = Zookeeper::new();
    let (name, path) = (named("orders {eu}/1"), format!("{ALL}/orders%20{{eu}}%2F1"));
    block(async {
        let mut store = open(&zookeeper.url());
        // Asking leaves nothing.
        assert_eq!(store.counter(&name).await.unwrap(), None);
        assert_eq!(store.reserve(&name, &ask(1, 0)).await.unwrap(), Reserved::Found(None));
        assert!(!store.remove_counter(&name).await.unwrap());
        assert_eq!(zookeeper.cli(&["ls /"]), "[zookeeper]");

        assert!(store.put_counter(&name, None, &record(7, 40)).await.unwrap());
        assert_eq!(store.reserve(&name, &ask(2, 0)).await.unwrap(), numbers(8, 2, 41));
        let sound = r#"{"format":1,"last":"9","version":"41","index":"0","count":"1"}"#;
        assert_eq!(
            zookeeper.cli(&["ls -R /polyflake", &format!("get {path}")]),
            format!("/polyflake\n/polyflake/default\n{ALL}\n{path}\n{sound}")
        );

        // As the shell takes them: without spaces, in quotes.
        for (old, new) in [(sound, "?"), ("\"9\"", "9"), ("\"0\"", "\"1\"")] {
            let broken = sound.replace(old, new);
            zookeeper.cli(&[&format!("set {path} '{broken}'")]);
            assert_eq!(zookeeper.cli(&[&format!("get {path}")]), broken);
            for said in [
                refused(store.reserve(&name, &ask(1, 0)).await),
                refused(store.counter(&name).await),
                refused(store.put_counter(&name, None, &record(1, 1)).await),
                refused(store.put_counter(&name, Some(&record(9, 41)), &record(20, 42)).await),
            ] {
                assert!(said.contains(&path) && said.contains("not readable as a counter"), "{said}");
            }
        }
        assert!(store.remove_counter(&name).await.unwrap());
        assert!(!store.remove_counter(&name).await.unwrap());
        assert_eq!(store.reserve(&name, &ask(1, 9)).await.unwrap(), Reserved::Found(None));

        let other = sound.replace(":1,", ":2,");
        zookeeper.cli(&[&format!("create {path} '{other}'")]);
        for said in [
            refused(store.reserve(&name, &ask(1, 0)).await),
            refused(store.counter(&name).await),
            refused(store.put_counter(&name, None, &record(1, 1)).await),
            refused(store.remove_counter(&name).await),
        ] {
            assert!(said.contains("version 2 of its form") && said.contains(&path), "{said}");
        }
        zookeeper.cli(&[&format!("set {path} '{sound}'"), &format!("create {path}/more")]);
        assert!(refused(store.remove_counter(&name).await).contains("NotEmpty"));
        assert_eq!(store.reserve(&name, &ask(1, 9)).await.unwrap(), numbers(10, 1, 42));
    });
}

#[test]
fn what_cannot_be_is_neither_asked_for_nor_kept() {
    let zookeeper = Zookeeper::new();
    let name = named("orders");
    block(async {
        let mut store = open(&zookeeper.url());
        for (count, index, of) in [(0, 0, 1), ((1 << 32) + 1, 0, 1), (1, 0, 0), (1, 1, 1), (1, 0, 1_025)] {
            let reserve = Reserve { count, place: Place { index, count: of }, seen: 0 };
            refused(store.reserve(&name, &reserve).await);
        }
        for new in [
            record(LAST_NUMBER + 1, 1),
            record(1, u64::MAX),
            CounterRecord { version: None, ..record(1, 1) },
            CounterRecord { place: Place { index: 0, count: 0 }, ..record(1, 1) },
        ] {
            refused(store.put_counter(&name, None, &new).await);
        }
        assert_eq!(store.counter(&name).await.unwrap(), None);
        // The last version: nothing is taken, since no other could follow.
        assert!(store.put_counter(&name, None, &record(1, LAST_NUMBER)).await.unwrap());
        let said = refused(store.reserve(&name, &ask(1, 0)).await);
        assert!(said.contains("the last version"), "{said}");
        assert_eq!(store.counter(&name).await.unwrap(), Some(record(1, LAST_NUMBER)));
    });
}

/// Names that are none of a znode, or look like another one's escaped.
#[test]
fn names_that_are_escaped() {
    let zookeeper = Zookeeper::new();
    let names = [
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("...", "..."),
        ("%2E", "%252E"),
        ("%2e", "%252e"),
        ("/", "%2F"),
        ("//", "%2F%2F"),
        ("a/b", "a%2Fb"),
        ("a%2Fb", "a%252Fb"),
        ("../orders", "..%2Forders"),
        ("./a", ".%2Fa"),
        ("%", "%25"),
        ("é", "%C3%A9"),
        ("e\u{301}", "e%CC%81"),
        ("\u{fffd}", "%EF%BF%BD"),
        ("\u{e000}", "%EE%80%80"),
        ("\u{10ffff}", "%F4%8F%BF%BF"),
        ("zookeeper", "zookeeper"),
        ("counters", "counters"),
    ];
    block(async {
        let mut store = open(&zookeeper.url());
        for (at, (name, _)) in (1..).zip(names) {
            assert!(store.put_counter(&named(name), None, &record(1_000 * at, 1)).await.unwrap(), "{name}");
        }
        for (at, (name, _)) in (1..).zip(names) {
            let asked = store.reserve(&named(name), &ask(at, 0)).await.unwrap();
            assert_eq!(asked, numbers(1_000 * at + 1, at, 2), "{name}");
        }
        for (at, (name, _)) in (1..).zip(names) {
            let there = store.counter(&named(name)).await.unwrap();
            assert_eq!(there, Some(record(1_001 * at, 2)), "{name}");
        }
        let mut shown = names.map(|(_, it)| it);
        shown.sort_unstable();
        assert_eq!(zookeeper.cli(&[&format!("ls {ALL}")]), format!("[{}]", shown.join(", ")));
        // Namespaces too.
        for namespace in [".", ".."] {
            let name = CounterName { namespace: namespace.into(), ..named("orders") };
            assert!(store.put_counter(&name, None, &record(0, 1)).await.unwrap());
            assert_eq!(store.reserve(&name, &ask(1, 0)).await.unwrap(), numbers(1, 1, 2));
        }
        assert_eq!(zookeeper.cli(&["ls /polyflake"]), "[%2E, %2E%2E, default]");
        for (name, _) in names {
            assert!(store.remove_counter(&named(name)).await.unwrap(), "{name}");
        }
        assert_eq!(zookeeper.cli(&[&format!("ls {ALL}")]), "[]");
    });
}

#[test]
fn what_others_changed_is_found_and_a_restart_keeps_all() {
    let mut zookeeper = Zookeeper::new();
    let name = named("orders");
    block(async {
        let (mut one, mut two) = (open(&zookeeper.url()), open(&zookeeper.url()));
        assert!(one.put_counter(&name, None, &record(0, 1)).await.unwrap());
        assert_eq!(two.reserve(&name, &ask(10, 0)).await.unwrap(), numbers(1, 10, 2));
        assert_eq!(one.reserve(&name, &ask(10, 0)).await.unwrap(), numbers(11, 10, 3));
        assert_eq!(two.reserve(&name, &ask(10, 20)).await.unwrap(), numbers(21, 10, 4));
        assert!(!one.put_counter(&name, Some(&record(20, 3)), &record(99, 9)).await.unwrap());
        assert!(one.put_counter(&name, Some(&record(30, 4)), &record(15, 5)).await.unwrap());
        let found = two.reserve(&name, &ask(1, 30)).await.unwrap();
        assert_eq!(found, Reserved::Found(Some(record(15, 5))));
        assert!(one.remove_counter(&name).await.unwrap());
        assert_eq!(two.reserve(&name, &ask(1, 0)).await.unwrap(), Reserved::Found(None));
        assert!(!two.put_counter(&name, Some(&record(15, 5)), &record(99, 9)).await.unwrap());
        assert!(two.put_counter(&name, None, &record(30, 9)).await.unwrap());
        assert!(!one.put_counter(&name, None, &record(30, 9)).await.unwrap());

        zookeeper.server.kill();
        common::unreachable(&mut one, &name).await;
        zookeeper.server.start_again();
        let again = retry(&mut one, async |store| store.reserve(&name, &ask(5, 30)).await).await;
        assert_eq!(again, numbers(31, 5, 10));
    });
}

/// Lets `held` begin while no answer comes back, then the rest happen, and the answers come.
async fn overtaken<T>(is_held: &AtomicBool, held: impl Future<Output = T>, rest: impl Future) -> T {
    is_held.store(true, Ordering::Relaxed);
    let mut held = pin!(held);
    assert!(tokio::time::timeout(Duration::from_millis(300), held.as_mut()).await.is_err());
    rest.await;
    is_held.store(false, Ordering::Relaxed);
    held.await
}

/// The znode has the version again that was read.
#[test]
fn made_again_while_another_reads() {
    let zookeeper = Zookeeper::new();
    let is_held = Arc::new(AtomicBool::new(false));
    let slow = format!("zookeeper://127.0.0.1:{}", way(zookeeper.port(), &is_held));
    let name = named("orders");
    block(async {
        let (mut slow, mut fast) = (open(&slow), open(&zookeeper.url()));
        for by_hand in [false, true] {
            assert!(slow.put_counter(&name, None, &record(0, 1)).await.unwrap());
            assert_eq!(slow.reserve(&name, &ask(1, 0)).await.unwrap(), numbers(1, 1, 2));
            let path = format!("{ALL}/orders");
            let again = async |store: &mut Box<dyn Store>, last| {
                if by_hand {
                    zookeeper.cli(&[&format!("delete {path}")]);
                } else {
                    assert!(store.remove_counter(&name).await.unwrap());
                }
                assert!(store.put_counter(&name, None, &record(last, 70)).await.unwrap());
                assert_eq!(store.reserve(&name, &ask(50, 0)).await.unwrap(), numbers(last + 1, 50, 71));
                assert!(zookeeper.cli(&[&format!("stat {path}")]).contains("dataVersion = 1\n"));
            };
            let reserve = ask(10, 0);
            let asked = slow.reserve(&name, &reserve);
            let asked = overtaken(&is_held, asked, again(&mut fast, 100)).await;
            assert_eq!(asked.unwrap(), numbers(151, 10, 72));

            // The same for what is given back, where the record would be another one.
            let version = async |store: &mut Box<dyn Store>| {
                assert!(store.remove_counter(&name).await.unwrap());
                assert!(store.put_counter(&name, None, &record(0, 1)).await.unwrap());
                assert_eq!(store.reserve(&name, &ask(10, 0)).await.unwrap(), numbers(1, 10, 2));
            };
            version(&mut fast).await;
            let (held, back) = (record(10, 2), record(5, 900));
            let given = slow.put_counter(&name, Some(&held), &back);
            let given = overtaken(&is_held, given, again(&mut fast, 0)).await;
            assert_eq!((given, fast.counter(&name).await), (Ok(false), Ok(Some(record(50, 71)))));
            assert!(fast.remove_counter(&name).await.unwrap());
        }
    });
}

#[test]
fn nobody_is_told_what_is_old() {
    let is_held = Arc::new(AtomicBool::new(false));
    let all = Zookeeper::ensemble(|port| way(port, &is_held));
    let name = named("orders");
    block(async {
        // The first server does not hear what the two others decide.
        let (mut store, mut behind) = (open(&all[1].url()), open(&all[0].url()));
        assert!(retry(&mut store, async |store| store.put_counter(&name, None, &record(0, 1)).await).await);
        let there = retry(&mut behind, async |store| store.counter(&name).await).await;
        assert_eq!(there, Some(record(0, 1)));
        let ten = async |store: &mut Box<dyn Store>, first, version| {
            let taken = store.reserve(&name, &ask(10, 0)).await.unwrap();
            assert_eq!(taken, numbers(first, 10, version));
        };
        let before = ten(&mut store, 1, 2);
        is_held.store(true, Ordering::Relaxed);
        before.await;
        let look = overtaken(&is_held, behind.counter(&name), async {}).await;
        assert_eq!(look.unwrap(), Some(record(10, 2)));

        is_held.store(true, Ordering::Relaxed);
        ten(&mut store, 11, 3).await;
        // Below what was seen, as that server has it.
        let asked = overtaken(&is_held, behind.reserve(&name, &ask(1, 20)), async {}).await;
        assert_eq!(asked.unwrap(), numbers(21, 1, 4));

        is_held.store(true, Ordering::Relaxed);
        ten(&mut store, 22, 5).await;
        let asked = overtaken(&is_held, behind.reserve(&name, &ask(1, 0)), async {}).await;
        assert_eq!(asked.unwrap(), numbers(32, 1, 6));

        is_held.store(true, Ordering::Relaxed);
        ten(&mut store, 33, 7).await;
        let (held, back) = (record(42, 7), record(40, 90));
        let given = overtaken(&is_held, behind.put_counter(&name, Some(&held), &back), async {}).await;
        assert_eq!((given, store.counter(&name).await), (Ok(true), Ok(Some(back))));
    });
}

#[test]
fn users_and_rights() {
    let zookeeper = Zookeeper::new();
    let (port, secret) = (zookeeper.port(), "secret-of-polyflake");
    let url = |user: &str, password: &str| format!("zookeeper://{user}:{password}@127.0.0.1:{port}");
    let (name, at) = (named("orders"), format!("127.0.0.1:{port}"));
    block(async {
        let mut store = open(&url("counters", secret));
        assert!(store.put_counter(&name, None, &record(0, 1)).await.unwrap());
        store.disconnect();
        assert_eq!(store.reserve(&name, &ask(5, 0)).await.unwrap(), numbers(1, 5, 2));
        let rights = zookeeper.cli(&[
            &format!("addauth digest counters:{secret}"),
            &format!("getAcl {ALL}"),
            &format!("getAcl {ALL}/orders"),
        ]);
        assert_eq!(rights.matches("'digest,'counters:").count(), 2, "{rights}");
        assert_eq!(rights.matches(": cdrwa").count(), 2, "{rights}");
        for url in [url("counters", "secret-of-another"), url("nobody", secret), zookeeper.url()] {
            common::refused(&mut open(&url), &name, &at).await;
            common::refused(&mut open(&url), &name, "NoAuth").await;
        }
        assert_eq!(store.counter(&name).await.unwrap(), Some(record(5, 2)));
        assert!(store.remove_counter(&name).await.unwrap());
        let url = format!("zookeeper://counters:{secret}@127.0.0.1:{}", free_port());
        common::unreachable(&mut open(&url), &name).await;
        let nowhere = format!("{}/nowhere", zookeeper.url());
        for said in [
            refused(open(&nowhere).counter(&name).await),
            refused(open(&nowhere).reserve(&name, &ask(1, 0)).await),
            refused(open(&nowhere).remove_counter(&name).await),
        ] {
            assert!(said.contains("`create /nowhere`"), "{said}");
        }
    });
}
