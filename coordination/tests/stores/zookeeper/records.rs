//! Records in ZooKeeper.

use std::time::Duration;

use polyflake_coordination::records::{Add, Added, Group, Kind, Outcome, Record, Store, Write, conformance};
use polyflake_coordination::stores::ZookeeperStore;
use polyflake_coordination::{Address, StoreError};

use crate::records::{self, Patient, SPACE, ask, head, read, record, refused, silent, space, write};
use crate::relay::Relay;
use crate::servers::free_port;
use crate::servers::zookeeper::Zookeeper;
use crate::support::block;

/// Opens a store that fails at once if the server does not answer.
fn impatient(url: &str) -> Box<dyn Store> {
    Box::new(ZookeeperStore::new(&Address::parse(url).unwrap()).unwrap())
}

fn open(url: &str) -> Box<dyn Store> {
    Box::new(Patient(impatient(url)))
}

#[test]
fn it_does_what_a_store_must() {
    let zookeeper = Zookeeper::new();
    conformance(&|| open(&zookeeper.url()));
}

#[test]
fn it_does_so_below_a_chroot_and_for_a_user() {
    let zookeeper = Zookeeper::new();
    zookeeper.cli(&["create /apps", "create \"/apps/the shop\""]);
    let (port, secret) = (zookeeper.port(), "secret-of-polyflake");
    let url =
        |user: &str, secret: &str| format!("zookeeper://{user}:{secret}@127.0.0.1:{port}/apps/the%20shop");
    conformance(&|| open(&url("ids", secret)));
    block(async {
        let mut store = open(&url("ids", secret));
        assert_eq!(write(&mut *store, &head(None, &record(11, 1, ""))).await.value, Outcome::Written);
        let (above, group) = ("/apps/the shop/polyflake", SPACE.replace('/', "%2F"));
        let rights = zookeeper.cli(&[
            &format!("addauth digest ids:{secret}"),
            "ls /",
            &format!("getAcl \"{above}\""),
            &format!("getAcl \"{above}/default/space/{group}/head\""),
        ]);
        assert!(rights.contains("[apps, zookeeper]"), "{rights}");
        assert_eq!(rights.matches("'digest,'ids:").count(), 2, "{rights}");
        assert_eq!(rights.matches(": cdrwa").count(), 2, "{rights}");
        let nobody = format!("zookeeper://127.0.0.1:{port}/apps/the%20shop");
        for url in [url("ids", "of-another"), url("nobody", secret), nobody] {
            let mut store = open(&url);
            for said in [
                refused(store.read(&space("default"), None).await),
                refused(store.read(&space("default"), Some(&["head"])).await),
                refused(store.write(&head(Some(11), &record(12, 1, ""))).await),
                refused(store.groups("default", Kind::Space).await),
            ] {
                assert!(said.contains("NoAuth") && said.contains(&format!("127.0.0.1:{port}")), "{said}");
                assert!(!said.contains(secret) && !said.contains("of-another"), "{said}");
            }
        }
        assert_eq!(read(&mut *store, "head").await, Some(record(11, 1, "")));
        for (chroot, advice) in [
            ("nowhere", "with `create /nowhere`"),
            ("apps/else", "`create /apps`, `create /apps/else`"),
            ("a/b%20c/d", "`create /a`, `create \"/a/b c\"`, `create \"/a/b c/d\"`"),
        ] {
            let mut store = open(&format!("{}/{chroot}", zookeeper.url()));
            for said in [
                refused(store.read(&space("default"), None).await),
                refused(store.write(&head(None, &record(11, 1, ""))).await),
                refused(store.groups("default", Kind::Space).await),
            ] {
                assert!(said.contains(advice), "{said}");
            }
        }
    });
}

#[test]
fn it_reads_well_and_what_is_no_record_is_refused() {
    let zookeeper = Zookeeper::new();
    let group = Group { kind: Kind::Counter, name: "orders {eu}/1".into(), ..space("default") };
    let (all, path) = ("/polyflake/default/counter", "/polyflake/default/counter/orders%20{eu}%2F1/last");
    block(async {
        let mut store = open(&zookeeper.url());
        // Reading creates nothing.
        assert_eq!(store.read(&group, None).await.unwrap().value, []);
        assert_eq!(store.groups("default", Kind::Counter).await.unwrap(), [""; 0]);
        assert_eq!(zookeeper.cli(&["ls /"]), "[zookeeper]");
        let new = record(7, 40, "{\"skip\":\"0\"}");
        let write = Write { group: group.clone(), name: "last".into(), expected: None, guard: None, new };
        assert_eq!(store.write(&write).await.unwrap().value, Outcome::Written);
        assert_eq!(
            zookeeper.cli(&["ls -R /polyflake", &format!("get {path}")]),
            format!(
                "/polyflake\n/polyflake/default\n{all}\n{all}/orders%20{{eu}}%2F1\n{path}\n7 40 {{\"skip\":\"0\"}}"
            )
        );
        let text = write.new.text.clone();
        let add = Add {
            group: group.clone(),
            name: "last".into(),
            text,
            floor: 0,
            count: 1,
            limit: 99,
            version: 8,
        };
        for broken in ["?", "0 40 {}"] {
            zookeeper.cli(&[&format!("set {path} '{broken}'")]);
            for said in [
                refused(store.read(&group, None).await),
                refused(store.read(&group, Some(&["last"])).await),
                refused(store.write(&write).await),
                refused(store.add(&add).await),
            ] {
                assert!(said.contains(path) && said.contains("VERSION NUMBER TEXT"), "{said}");
            }
            assert_eq!(zookeeper.cli(&[&format!("get {path}")]), broken);
        }
        zookeeper.cli(&[&format!("set {path} '9 41 {{\"skip\":\"0\"}}'")]);
        assert_eq!(store.add(&add).await.unwrap().value, Added::To(42));
        zookeeper.cli(&["deleteall /polyflake"]);
        assert_eq!(store.add(&add).await.unwrap().value, Added::Found(None));
        assert_eq!(store.write(&write).await.unwrap().value, Outcome::Written);
    });
}

#[test]
fn many_records_of_a_group() {
    let zookeeper = Zookeeper::new();
    block(async {
        let mut store = open(&zookeeper.url());
        for node in 0..1_024 {
            let new = record(1 + node, node, "{\"label\":\"host\"}");
            let write = Write { name: node.to_string(), ..head(None, &new) };
            ask(&mut *store, async |store| store.write(&write).await).await;
        }
        let mut all = store.read(&space("default"), None).await.unwrap().value;
        all.sort_by_key(|(_, record)| record.number);
        assert_eq!(all.len(), 1_024);
        assert!(all.iter().zip(0..).all(|((name, record), node)| *name == node.to_string()
            && record.number == node
            && record.version == node + 1));
    });
}

#[test]
fn what_the_former_version_made_is_refused() {
    let zookeeper = Zookeeper::new();
    block(async {
        let mut store = open(&zookeeper.url());
        let group = SPACE.replace('/', "%2F");
        for (kind, name, path) in [
            (Kind::Space, SPACE, format!("/polyflake/default/{group}/space")),
            (Kind::Counter, "orders", "/polyflake/default/counters/orders".into()),
            (Kind::Sequences, "inbox", "/polyflake/default/sequences/inbox".into()),
        ] {
            let group = Group { namespace: "default".into(), kind, name: name.into() };
            let write = Write { group: group.clone(), ..head(None, &record(5, 1, "{}")) };
            let parts: Vec<_> =
                path.match_indices('/').skip(1).map(|(at, _)| format!("create {}", &path[..at])).collect();
            let mut commands: Vec<_> = parts.iter().map(String::as_str).collect();
            let last = format!("create {path} {{}}");
            commands.push(&last);
            zookeeper.cli(&commands);
            let said = refused(store.write(&write).await);
            assert!(said.contains(&path) && said.contains("earlier version"), "{said}");
            assert_eq!(store.read(&group, None).await.unwrap().value, []);
            zookeeper.cli(&[&format!("delete {path}")]);
            assert_eq!(store.write(&write).await.unwrap().value, Outcome::Written);
        }
    });
}

#[test]
fn who_answered_and_when() {
    let mut zookeeper = Zookeeper::new();
    block(async {
        let mut store = impatient(&zookeeper.url());
        let new = record(11, 1, "{}");
        let answers = [
            // First without a record, and then with one.
            store.read(&space("default"), None).await.unwrap().map(|_| ()),
            store.write(&head(None, &new)).await.unwrap().map(|_| ()),
            store.write(&head(None, &new)).await.unwrap().map(|_| ()),
            store.write(&head(Some(5), &record(12, 1, ""))).await.unwrap().map(|_| ()),
            store.read(&space("default"), None).await.unwrap().map(|_| ()),
        ];
        assert!(answers.iter().all(|it| it.incarnation == answers[0].incarnation));
        assert!(answers.is_sorted_by_key(|it| it.now_ms));
        let facts = store.facts();
        assert_eq!((facts.granularity_ms, facts.can_forget, facts.asynchronous_replicas), (1, false, 0));
        // Everything survives a restart.
        zookeeper.server.kill();
        assert!(matches!(store.write(&head(Some(11), &new)).await, Err(StoreError::Unreachable(_))));
        zookeeper.server.start_again();
        assert_eq!(read(&mut *store, "head").await, Some(new));
    });
}

#[test]
fn a_silent_host_before_one_that_answers() {
    let zookeeper = Zookeeper::new();
    let (_listener, quiet) = silent();
    let (none, port) = (free_port(), zookeeper.port());
    block(async {
        let mut store =
            impatient(&format!("zookeeper://127.0.0.1:{quiet},127.0.0.1:{none},127.0.0.1:{port}"));
        for at in 0..4 {
            let new = record(20 + at, at, "{}");
            let expected = (at > 0).then_some(19 + at);
            assert_eq!(write(&mut *store, &head(expected, &new)).await.value, Outcome::Written);
            store.disconnect();
        }
        // The error names each host, with its answer.
        let mut store = impatient(&format!("zookeeper://127.0.0.1:{quiet},127.0.0.1:{none}?ttl=3s"));
        let Err(StoreError::Unreachable(said)) = store.read(&space("default"), None).await else { panic!() };
        assert!(
            said.contains(&format!("127.0.0.1:{quiet}: no answer in time; 127.0.0.1:{none}: ")),
            "{said}"
        );
    });
}

#[test]
fn a_write_whose_answer_is_lost() {
    let zookeeper = Zookeeper::new();
    let relay = Relay::new(zookeeper.port());
    let url = format!("zookeeper://127.0.0.1:{}", relay.port());
    block(async {
        let (mut store, mut other) = (impatient(&url), impatient(&zookeeper.url()));
        let mut there: Option<Record> = None;
        for at in 0..3 {
            let new = record(11 + at, at, "{\"lost\":1}");
            let lost = head(there.map(|it| it.version), &new);
            // Only the write sends this string, and reads return it.
            relay.lose_the_answer_to("\"lost\"");
            let answer = store.write(&lost).await;
            assert!(matches!(answer, Err(StoreError::Unreachable(_))) && relay.has_lost(), "{answer:?}");
            assert_eq!(read(&mut *other, "head").await.as_ref(), Some(&new));
            assert_eq!(write(&mut *store, &lost).await.value, Outcome::Written);
            assert_eq!(read(&mut *other, "head").await.as_ref(), Some(&new));
            there = Some(new);
        }
        // If another write followed, that one stands.
        let (lost, after) = (head(Some(13), &record(14, 9, "{\"lost\":1}")), record(15, 10, "{}"));
        relay.lose_the_answer_to("\"lost\"");
        store.write(&lost).await.unwrap_err();
        assert_eq!(write(&mut *other, &head(Some(14), &after)).await.value, Outcome::Written);
        let found = Outcome::Found { record: Some(after), guard: None };
        assert_eq!(write(&mut *store, &lost).await.value, found);
    });
}

#[test]
fn a_write_that_is_dropped() {
    let zookeeper = Zookeeper::new();
    let relay = Relay::new(zookeeper.port());
    let mut store = impatient(&format!("zookeeper://127.0.0.1:{}", relay.port()));
    records::a_write_that_is_dropped(&mut *store, |is_held| relay.hold(is_held));
}

/// This keeps a server that lags behind from serving older data.
#[test]
fn each_session_begins_with_what_was_seen() {
    let zookeeper = Zookeeper::new();
    let relay = Relay::new(zookeeper.port());
    let mut store = impatient(&format!("zookeeper://127.0.0.1:{}", relay.port()));
    block(async {
        for at in 0..3 {
            let new = record(20 + at, at, "{}");
            let expected = (at > 0).then_some(19 + at);
            assert_eq!(write(&mut *store, &head(expected, &new)).await.value, Outcome::Written);
            store.disconnect();
        }
    });
    // The last zxid seen, which follows the length and the protocol version.
    let seen =
        relay.begun().iter().map(|it| i64::from_be_bytes(it[8..16].try_into().unwrap())).collect::<Vec<_>>();
    assert_eq!((seen.len(), seen[0]), (3, 0), "{seen:?}");
    assert!(seen.is_sorted_by(|one, other| one < other), "{seen:?}");
}

/// A writer reads first, perhaps from a server that lags behind. The store notices, and does not return a wrong answer.
#[test]
fn nobody_is_told_what_is_old() {
    let ways = std::sync::Mutex::new(Vec::new());
    let all = Zookeeper::ensemble(|port| {
        let relay = Relay::new(port);
        ways.lock().unwrap().push(relay.clone());
        relay.port()
    });
    let hold = |is_held| ways.lock().unwrap().iter().for_each(|relay| relay.hold(is_held));
    block(async {
        // The first server does not learn of the other two servers' decisions.
        let (mut store, mut behind) = (impatient(&all[1].url()), impatient(&all[0].url()));
        let group = space("default");
        let at = |version| record(version, version, "{}");
        assert_eq!(write(&mut *store, &head(None, &at(1))).await.value, Outcome::Written);
        assert_eq!(read(&mut *behind, "head").await, Some(at(1)));
        let add = |version| Add {
            group: group.clone(),
            name: "head".into(),
            text: "{}".into(),
            floor: 0,
            count: 1,
            limit: 99,
            version,
        };
        for (round, version) in (0..5).zip([1, 11, 21, 31, 41]) {
            let (next, other) = (at(version + 1), at(version + 9));
            hold(true);
            assert_eq!(write(&mut *store, &head(Some(version), &next)).await.value, Outcome::Written);
            let there = {
                let mut asked = std::pin::pin!(async {
                    match round {
                        0 => behind.read(&group, None).await.unwrap().value.pop().map(|(_, it)| it),
                        1 => {
                            behind.read(&group, Some(&["head"])).await.unwrap().value.pop().map(|(_, it)| it)
                        }
                        // That server still has the expected version.
                        2 => match behind.write(&head(Some(version), &other)).await.unwrap().value {
                            Outcome::Found { record, guard: None } => record,
                            outcome => panic!("{outcome:?}"),
                        },
                        3 => match behind.write(&head(None, &other)).await.unwrap().value {
                            Outcome::Found { record, guard: None } => record,
                            outcome => panic!("{outcome:?}"),
                        },
                        _ => match behind.add(&add(version + 1)).await.unwrap().value {
                            // The record already has this version.
                            Added::To(number) => Some(at(number)),
                            added @ Added::Found(_) => panic!("{added:?}"),
                        },
                    }
                });
                let early = tokio::time::timeout(Duration::from_millis(300), asked.as_mut()).await;
                assert!(early.is_err(), "{early:?}");
                hold(false);
                asked.await
            };
            assert_eq!(there.as_ref(), Some(&next));
            let back = at(version + 10);
            assert_eq!(write(&mut *store, &head(Some(version + 1), &back)).await.value, Outcome::Written);
        }
    });
}

#[test]
fn a_guard_that_changes_meanwhile() {
    let zookeeper = Zookeeper::new();
    let relay = Relay::new(zookeeper.port());
    let (mut store, mut other) =
        (impatient(&format!("zookeeper://127.0.0.1:{}", relay.port())), impatient(&zookeeper.url()));
    records::a_guard_that_changes_meanwhile(&mut *store, &mut *other, |is_held| relay.hold(is_held));
}
