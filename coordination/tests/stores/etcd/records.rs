//! Records in etcd.

use std::time::Duration;

use polyflake_coordination::records::{Add, Added, Group, Kind, Outcome, Record, Store, Write, conformance};
use polyflake_coordination::stores::EtcdStore;
use polyflake_coordination::{Address, StoreError};

use crate::records::{self, Patient, SPACE, ask, head, look, read, record, refused, silent, space, write};
use crate::relay::Relay;
use crate::servers::etcd::Etcd;
use crate::servers::free_port;
use crate::support::block;

/// Opens a store that fails at once if the server does not answer.
fn impatient(url: &str) -> Box<dyn Store> {
    Box::new(EtcdStore::new(&Address::parse(url).unwrap()).unwrap())
}

fn open(url: &str) -> Box<dyn Store> {
    Box::new(Patient(impatient(url)))
}

#[test]
fn it_does_what_a_store_must() {
    let etcd = Etcd::new();
    conformance(&|| open(&etcd.url()));
}

#[test]
fn it_reads_well_and_what_is_no_record_is_refused() {
    let etcd = Etcd::new();
    let group = Group { kind: Kind::Counter, name: "orders {eu}/1".into(), ..space("default") };
    let key = "polyflake/default/counter/orders%20{eu}%2F1/last";
    block(async {
        let mut store = open(&etcd.url());
        let new = record(7, 40, "{\"skip\":\"0\"}");
        let write = Write { group: group.clone(), name: "last".into(), expected: None, guard: None, new };
        assert_eq!(store.write(&write).await.unwrap().value, Outcome::Written);
        assert_eq!(etcd.ctl(&["get", "--prefix", "polyflake/"]), format!("{key}\n7 40 {{\"skip\":\"0\"}}"));
        let add = Add {
            group: group.clone(),
            name: "last".into(),
            text: write.new.text.clone(),
            floor: 0,
            count: 1,
            limit: 99,
            version: 8,
        };
        for broken in [
            "?",
            "",
            "{}",
            "7",
            "7 40",
            "0 40 {}",
            "7 -1 {}",
            "9223372036854775808 1 {}",
            "7 9223372036854775808 {}",
        ] {
            etcd.ctl(&["put", key, "--", broken]);
            for said in [
                refused(store.read(&group, None).await),
                refused(store.read(&group, Some(&["last"])).await),
                refused(store.write(&write).await),
                refused(store.add(&add).await),
            ] {
                assert!(said.contains(key) && said.contains("VERSION NUMBER TEXT"), "{said}");
            }
            assert_eq!(etcd.ctl(&["get", "--print-value-only", key]), broken);
        }
        // The store compares the value it remembers, but never returns it as an answer.
        etcd.ctl(&["put", key, "9 41 {\"skip\":\"0\"}"]);
        assert_eq!(store.add(&add).await.unwrap().value, Added::To(42));
        etcd.ctl(&["del", key]);
        assert_eq!(store.add(&add).await.unwrap().value, Added::Found(None));
        assert_eq!(etcd.ctl(&["get", "--prefix", "polyflake/"]), "");
    });
}

#[test]
fn groups_are_listed_in_pages() {
    let etcd = Etcd::new();
    block(async {
        let mut store = open(&etcd.url());
        let group = |name: &str| Group { name: name.into(), ..space("default") };
        // More records than a page holds, and just as many groups.
        for node in 0..1_100 {
            let write = Write {
                group: group("many"),
                name: node.to_string(),
                expected: None,
                guard: None,
                new: record(1, node, ""),
            };
            ask(&mut *store, async |store| store.write(&write).await).await;
        }
        for name in 0..600 {
            let write = Write {
                group: group(&format!("n {name}")),
                name: "head".into(),
                ..head(None, &record(1, 1, ""))
            };
            ask(&mut *store, async |store| store.write(&write).await).await;
        }
        // Other programs' keys are ignored.
        for key in ["space/stray", "space/%zz/head", "spaces/x/head", "spac/x/head"] {
            etcd.ctl(&["put", &format!("polyflake/default/{key}"), "?"]);
        }
        let mut groups = store.groups("default", Kind::Space).await.unwrap();
        groups.sort();
        let mut expected: Vec<_> = (0..600).map(|name| format!("n {name}")).chain(["many".into()]).collect();
        expected.sort();
        assert_eq!(groups, expected);
        let mut all: Vec<_> = store.read(&group("many"), None).await.unwrap().value;
        all.sort_by_key(|(_, record)| record.number);
        assert_eq!(all.len(), 1_100);
        assert!(
            all.iter()
                .zip(0..)
                .all(|((name, record), node)| *name == node.to_string() && record.number == node)
        );
    });
}

#[test]
fn what_the_former_version_made_is_refused() {
    let etcd = Etcd::new();
    block(async {
        let mut store = open(&etcd.url());
        for (kind, name, key) in [
            (Kind::Space, SPACE, format!("polyflake/default/{SPACE}/space")),
            (Kind::Counter, "orders/1", "polyflake/default/counters/orders/1".into()),
            (Kind::Sequences, "inbox", "polyflake/default/sequences/inbox".into()),
        ] {
            let group = Group { namespace: "default".into(), kind, name: name.into() };
            let write = Write { group: group.clone(), ..head(None, &record(5, 1, "{}")) };
            etcd.ctl(&["put", &key, "{}"]);
            let said = refused(store.write(&write).await);
            assert!(said.contains(&key) && said.contains("earlier version"), "{said}");
            assert_eq!(store.read(&group, None).await.unwrap().value, []);
            etcd.ctl(&["del", &key]);
            assert_eq!(store.write(&write).await.unwrap().value, Outcome::Written);
            // The store looks for an earlier version's key only when it creates a record.
            etcd.ctl(&["put", &key, "{}"]);
            assert_eq!(store.write(&write).await.unwrap().value, Outcome::Written);
        }
    });
}

#[test]
fn who_answered_and_when() {
    let (mut one, other) = (Etcd::new(), Etcd::new());
    block(async {
        let mut store = impatient(&one.url());
        let new = record(11, 1, "{}");
        let cluster = |etcd: &Etcd| {
            let status = etcd.ctl(&["endpoint", "status", "-w", "json"]);
            let status: serde_json::Value = serde_json::from_str(&status).unwrap();
            status[0]["Status"]["header"]["cluster_id"].as_u64().unwrap().to_string()
        };
        let answers = [
            store.read(&space("default"), None).await.unwrap().map(|_| ()),
            store.write(&head(None, &new)).await.unwrap().map(|_| ()),
            store.write(&head(None, &new)).await.unwrap().map(|_| ()),
            store.write(&head(None, &record(12, 1, ""))).await.unwrap().map(|_| ()),
        ];
        for answer in &answers {
            assert_eq!((&answer.incarnation, answer.now_ms % 1_000), (&cluster(&one), 0));
        }
        assert!(answers.is_sorted_by_key(|it| it.now_ms));
        let facts = store.facts();
        assert_eq!((facts.granularity_ms, facts.can_forget, facts.asynchronous_replicas), (1_000, false, 0));
        let elsewhere = impatient(&other.url()).read(&space("default"), None).await.unwrap();
        assert_eq!(elsewhere.incarnation, cluster(&other));
        assert!(!store.has_kept_all(&answers[0].incarnation, &elsewhere.incarnation));

        // Everything survives a restart, and the store is still recognized as the same one.
        one.server.kill();
        assert!(matches!(store.write(&head(Some(11), &new)).await, Err(StoreError::Unreachable(_))));
        one.server.start_again();
        let read = async |store: &mut dyn Store| store.read(&space("default"), None).await;
        let after = ask(&mut *store, read).await;
        assert_eq!(
            (after.incarnation, after.value),
            (answers[0].incarnation.clone(), vec![("head".into(), new)])
        );
    });
}

#[test]
fn a_silent_host_before_one_that_answers() {
    let etcd = Etcd::new();
    let (_listener, quiet) = silent();
    let (none, port) = (free_port(), etcd.port());
    block(async {
        let mut store = impatient(&format!("etcd://127.0.0.1:{quiet},127.0.0.1:{none},127.0.0.1:{port}"));
        for at in 0..4 {
            let new = record(20 + at, at, "{}");
            let expected = (at > 0).then_some(19 + at);
            assert_eq!(write(&mut *store, &head(expected, &new)).await.value, Outcome::Written);
            store.disconnect();
        }
        // The error names each host, with its answer.
        let mut store = impatient(&format!("etcd://127.0.0.1:{quiet},127.0.0.1:{none}?ttl=3s"));
        let Err(StoreError::Unreachable(said)) = store.read(&space("default"), None).await else { panic!() };
        assert!(
            said.contains(&format!("127.0.0.1:{quiet}: no answer in time; 127.0.0.1:{none}: ")),
            "{said}"
        );
    });
}

/// A member without a majority has no leader, and answers no requests.
#[test]
fn a_member_without_a_leader() {
    let etcd = Etcd::new();
    // A second member is added and never starts, so the first no longer has a majority.
    block(async {
        let mut store = impatient(&etcd.url());
        assert_eq!(write(&mut *store, &head(None, &record(11, 1, "{}"))).await.value, Outcome::Written);
        etcd.ctl(&["member", "add", "two", &format!("--peer-urls=http://127.0.0.1:{}", free_port())]);
        let other = Etcd::new();
        let both = format!("etcd://127.0.0.1:{},127.0.0.1:{}", etcd.port(), other.port());
        // The other server answers instead.
        let mut store = impatient(&both);
        assert_eq!(read(&mut *store, "head").await, None);
        let mut alone = impatient(&format!("{}?ttl=3s", etcd.url()));
        let answer =
            tokio::time::timeout(Duration::from_secs(60), alone.read(&space("default"), Some(&[]))).await;
        assert!(matches!(answer, Ok(Err(StoreError::Unreachable(_)))), "{answer:?}");
    });
}

#[test]
fn a_write_whose_answer_is_lost() {
    let etcd = Etcd::new();
    let relay = Relay::new(etcd.port());
    let url = format!("etcd://127.0.0.1:{}", relay.port());
    block(async {
        let (mut store, mut other) = (impatient(&url), impatient(&etcd.url()));
        let mut there: Option<Record> = None;
        for at in 0..3 {
            let new = record(11 + at, at, "{}");
            let lost = head(there.map(|it| it.version), &new);
            relay.lose_the_answer_to("request_put");
            let answer = store.write(&lost).await;
            assert!(matches!(answer, Err(StoreError::Unreachable(_))) && relay.has_lost(), "{answer:?}");
            assert_eq!(read(&mut *other, "head").await.as_ref(), Some(&new));
            assert_eq!(write(&mut *store, &lost).await.value, Outcome::Written);
            assert_eq!(read(&mut *other, "head").await.as_ref(), Some(&new));
            there = Some(new);
        }
        // If another write followed, that one stands.
        let (lost, after) = (head(Some(13), &record(14, 9, "{}")), record(15, 10, "{}"));
        relay.lose_the_answer_to("request_put");
        store.write(&lost).await.unwrap_err();
        assert_eq!(write(&mut *other, &head(Some(14), &after)).await.value, Outcome::Written);
        let found = Outcome::Found { record: Some(after), guard: None };
        assert_eq!(write(&mut *store, &lost).await.value, found);
    });
}

#[test]
fn a_write_that_is_dropped() {
    let etcd = Etcd::new();
    let relay = Relay::new(etcd.port());
    let mut store = impatient(&format!("etcd://127.0.0.1:{}", relay.port()));
    records::a_write_that_is_dropped(&mut *store, |is_held| relay.hold(is_held));
}

#[test]
fn users_and_rights() {
    let etcd = Etcd::with("http", &["--auth-token-ttl", "2"]);
    let (port, secret) = (etcd.port(), "secret-of-polyflake");
    // A user name is accepted even if the server does not ask for one.
    look(EtcdStore::new(&Address::parse(&format!("etcd://ids:{secret}@127.0.0.1:{port}")).unwrap()).unwrap())
        .unwrap();
    for command in [
        &["user", "add", "root:root"][..],
        &["user", "grant-role", "root", "root"],
        &["role", "add", "ids"],
        &["role", "grant-permission", "ids", "--prefix=true", "readwrite", "polyflake/default/"],
        &["user", "add", &format!("ids:{secret}")],
        &["user", "grant-role", "ids", "ids"],
        &["user", "add", &format!("bare:{secret}")],
        &["auth", "enable"],
    ] {
        etcd.ctl(command);
    }
    let url = |user: &str, password: &str| format!("etcd://{user}:{password}@127.0.0.1:{port}");
    block(async {
        let mut store = open(&url("ids", secret));
        let first = record(11, 1, "{}");
        assert_eq!(write(&mut *store, &head(None, &first)).await.value, Outcome::Written);
        assert_eq!(store.groups("default", Kind::Space).await.unwrap(), [SPACE]);
        for url in [url("ids", "of-another"), url("nobody", secret), url("bare", secret), etcd.url()] {
            let mut store = open(&url);
            for said in [
                refused(store.read(&space("default"), None).await),
                refused(store.write(&head(Some(11), &record(12, 1, ""))).await),
                refused(store.groups("default", Kind::Space).await),
            ] {
                assert!(said.contains(&format!("127.0.0.1:{port}")) && !said.contains(secret), "{said}");
                assert!(!said.contains("of-another"), "{said}");
            }
        }
        // The token has expired by then.
        tokio::time::sleep(Duration::from_secs(6)).await;
        assert_eq!(read(&mut *store, "head").await, Some(first));
    });
}

#[test]
fn a_guard_that_changes_meanwhile() {
    let etcd = Etcd::new();
    let relay = Relay::new(etcd.port());
    let (mut store, mut other) =
        (impatient(&format!("etcd://127.0.0.1:{}", relay.port())), impatient(&etcd.url()));
    records::a_guard_that_changes_meanwhile(&mut *store, &mut *other, |is_held| relay.hold(is_held));
}
