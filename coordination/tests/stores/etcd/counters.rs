//! Counters in etcd.

use polyflake_coordination::{
    CounterName, CounterRecord, LAST_NUMBER, Numbers, Place, Reserve, Reserved, Schema, StoreError,
};

use super::super::counters as common;
use super::super::servers::etcd::Etcd;
use super::super::servers::free_port;
use super::super::suite::{block, open, retry};

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

#[test]
fn it_reads_well_and_what_is_no_record_is_refused() {
    let etcd = Etcd::new();
    let (name, key) = (named("orders {eu}/1"), "polyflake/default/counters/orders {eu}/1");
    block(async {
        let mut store = open(&etcd.url());
        assert!(store.put_counter(&name, None, &record(7, 40)).await.unwrap());
        assert_eq!(store.reserve(&name, &ask(2, 0)).await.unwrap(), numbers(8, 2, 41));
        let sound = r#"{"format":1,"last":"9","version":"41","index":"0","count":"1"}"#;
        assert_eq!(etcd.ctl(&["get", "--prefix", "polyflake/"]), format!("{key}\n{sound}"));

        for (old, new) in [
            (sound, "?"),
            (sound, "{}"),
            ("\"9\"", "\"many\""),
            ("\"9\"", "9"),
            ("\"9\"", "\"9223372036854775808\""),
            ("\"41\"", "\"-1\""),
            ("\"0\"", "\"1\""),
            ("\"1\"", "\"1025\""),
        ] {
            let broken = sound.replace(old, new);
            etcd.ctl(&["put", key, &broken]);
            for said in [
                refused(store.reserve(&name, &ask(1, 0)).await),
                refused(store.counter(&name).await),
                refused(store.put_counter(&name, None, &record(1, 1)).await),
                refused(store.put_counter(&name, Some(&record(9, 41)), &record(20, 42)).await),
            ] {
                assert!(said.contains(key) && said.contains("not readable as a counter"), "{said}");
            }
            assert_eq!(etcd.ctl(&["get", "--print-value-only", key]), broken);
        }
        assert!(store.remove_counter(&name).await.unwrap());
        assert!(!store.remove_counter(&name).await.unwrap());
        assert_eq!(store.reserve(&name, &ask(1, 9)).await.unwrap(), Reserved::Found(None));

        etcd.ctl(&["put", key, &sound.replace(":1,", ":2,")]);
        for said in [
            refused(store.reserve(&name, &ask(1, 0)).await),
            refused(store.counter(&name).await),
            refused(store.put_counter(&name, None, &record(1, 1)).await),
            refused(store.remove_counter(&name).await),
        ] {
            assert!(said.contains("version 2 of its form") && said.contains(key), "{said}");
        }
    });
}

#[test]
fn what_cannot_be_is_neither_asked_for_nor_kept() {
    let etcd = Etcd::new();
    let name = named("orders");
    block(async {
        let mut store = open(&etcd.url());
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

/// What a store remembers is never what it answers with.
#[test]
fn what_others_changed_is_found() {
    let mut etcd = Etcd::new();
    let name = named("orders");
    block(async {
        let (mut one, mut two) = (open(&etcd.url()), open(&etcd.url()));
        assert!(one.put_counter(&name, None, &record(0, 1)).await.unwrap());
        assert_eq!(two.reserve(&name, &ask(10, 0)).await.unwrap(), numbers(1, 10, 2));
        assert_eq!(one.reserve(&name, &ask(10, 0)).await.unwrap(), numbers(11, 10, 3));
        // Two remembers 10: below what was seen, and it asks again.
        assert_eq!(two.reserve(&name, &ask(10, 20)).await.unwrap(), numbers(21, 10, 4));
        assert!(!one.put_counter(&name, Some(&record(20, 3)), &record(99, 9)).await.unwrap());
        assert!(one.put_counter(&name, Some(&record(30, 4)), &record(15, 5)).await.unwrap());
        assert_eq!(two.counter(&name).await.unwrap(), Some(record(15, 5)));
        let found = two.reserve(&name, &ask(1, 30)).await.unwrap();
        assert_eq!(found, Reserved::Found(Some(record(15, 5))));
        assert!(one.remove_counter(&name).await.unwrap());
        assert_eq!(two.reserve(&name, &ask(1, 0)).await.unwrap(), Reserved::Found(None));
        assert!(!two.put_counter(&name, Some(&record(15, 5)), &record(99, 9)).await.unwrap());
        assert!(two.put_counter(&name, None, &record(30, 9)).await.unwrap());
        assert!(!one.put_counter(&name, None, &record(30, 9)).await.unwrap());

        etcd.server.kill();
        let down = one.reserve(&name, &ask(1, 0)).await;
        assert!(matches!(down, Err(StoreError::Unreachable(_))), "{down:?}");
        etcd.server.start_again();
        let again = retry(&mut one, async |store| store.reserve(&name, &ask(5, 30)).await).await;
        assert_eq!(again, numbers(31, 5, 10));
        etcd.ctl(&["del", "--prefix", "polyflake/"]);
        assert_eq!(one.reserve(&name, &ask(5, 35)).await.unwrap(), Reserved::Found(None));
    });
}

#[test]
fn every_history() {
    let etcd = Etcd::new();
    common::all(&|| open(&etcd.url()));
}

#[test]
fn users_and_rights() {
    let etcd = Etcd::new();
    let (port, secret) = (etcd.port(), "secret-of-polyflake");
    for command in [
        &["user", "add", "root:root"][..],
        &["user", "grant-role", "root", "root"],
        &["role", "add", "counters"],
        &["role", "grant-permission", "counters", "--prefix=true", "readwrite", "polyflake/default/"],
        &["user", "add", &format!("counters:{secret}")],
        &["user", "grant-role", "counters", "counters"],
        &["user", "add", &format!("bare:{secret}")],
        &["auth", "enable"],
    ] {
        etcd.ctl(command);
    }
    let url = |user: &str, password: &str| format!("etcd://{user}:{password}@127.0.0.1:{port}");
    let (name, at) = (named("orders"), format!("127.0.0.1:{port}"));
    block(async {
        let mut store = open(&url("counters", secret));
        assert!(store.put_counter(&name, None, &record(0, 1)).await.unwrap());
        assert_eq!(store.reserve(&name, &ask(5, 0)).await.unwrap(), numbers(1, 5, 2));
        assert!(store.remove_counter(&name).await.unwrap());
        for url in [url("counters", "secret-of-another"), url("bare", secret), etcd.url()] {
            common::refused(&mut open(&url), &name, &at).await;
        }
        let url = format!("etcd://counters:{secret}@127.0.0.1:{}", free_port());
        common::unreachable(&mut open(&url), &name).await;
    });
}
