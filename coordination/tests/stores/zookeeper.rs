//! ZooKeeper.

mod counters;
mod records;

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::pin::pin;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use polyflake_coordination::{Address, Listing, Outcome, Store, StoreError, stores};

use super::servers::free_port;
use super::servers::zookeeper::Zookeeper;
use super::suite::{self, Kind, block, node, paused, prepare, retry, space};

const BASE: &str = "/polyflake/default/timestamp:41<<22|sequence:12<<0@1288834974657%2F1ms";

fn open(url: &str) -> Box<dyn Store> {
    stores::open(&Address::parse(url).unwrap()).unwrap()
}

fn list(url: &str) -> Result<Listing, StoreError> {
    block(async { open(url).list(&space("default")).await })
}

#[test]
fn every_history() {
    let zookeeper = Zookeeper::new();
    suite::all(&|| open(&zookeeper.url()), Kind { is_new: true });
}

#[test]
fn it_reads_well() {
    let zookeeper = Zookeeper::new();
    block(async {
        // Asking leaves nothing.
        open(&zookeeper.url()).list(&space("default")).await.unwrap();
        assert_eq!(zookeeper.cli(&["ls /"]), "[zookeeper]");
        let mut prepared = prepare(&|| open(&zookeeper.url()), space("default")).await;
        assert_eq!(prepared.put(None, &node(3, 1, 500)).await, Outcome::Written);
    });
    let (record, holder) = (format!("{BASE}/space"), format!("{BASE}/nodes/3"));
    assert_eq!(
        zookeeper.cli(&["ls -R /polyflake", &format!("get {record}"), &format!("get {holder}")]),
        format!(
            "/polyflake\n/polyflake/default\n{BASE}\n{BASE}/nodes\n{BASE}/space\n{BASE}/nodes/3\n\
             {{\"version\":1,\"incarnation\":\"zookeeper\",\"lead_ms\":\"60000\",\"fence\":\"77\"}}\n\
             {{\"token\":\"00000000000000000000000000000001\",\"expires_ms\":\"1790000000001\",\
             \"reserved_until\":\"500\",\"label\":\"host-1/1234\",\"since_ms\":\"1780000000001\"}}"
        )
    );
    zookeeper.cli(&[&format!("set {record} {{\"version\":2}}")]);
    let error = list(&zookeeper.url()).unwrap_err();
    assert!(matches!(&error, StoreError::Refused(said) if said.contains("version 2")), "{error:?}");
    zookeeper.cli(&[&format!("set {record} ?")]);
    assert!(matches!(list(&zookeeper.url()), Err(StoreError::Refused(_))));
    // A space whose record was deleted is none that is new.
    zookeeper.cli(&[&format!("delete {record}")]);
    let listing = list(&zookeeper.url()).unwrap();
    assert_eq!((listing.space, listing.is_new, listing.nodes), (None, false, vec![node(3, 1, 500)]));
    zookeeper.cli(&["deleteall /polyflake"]);
    assert!(list(&zookeeper.url()).unwrap().is_new);
}

#[test]
fn a_restart_keeps_all() {
    let mut zookeeper = Zookeeper::new();
    block(async {
        let mut prepared = prepare(&|| open(&zookeeper.url()), space("default")).await;
        let [first, second, third] = [node(1, 1, 500), node(1, 1, 900), node(1, 1, 1_300)];
        assert_eq!(prepared.put(None, &first).await, Outcome::Written);
        zookeeper.server.kill();
        for _ in 0..2 {
            let error = prepared.store.list(&prepared.space).await.unwrap_err();
            assert!(matches!(error, StoreError::Unreachable(_)), "{error:?}");
        }
        zookeeper.server.start_again();
        let listing = retry(&mut prepared.store, async |store| store.list(&prepared.space).await).await;
        assert_eq!(listing.space.as_ref(), Some(&prepared.record));
        assert_eq!((listing.is_new, &*listing.nodes), (false, from_ref(&first)));
        assert_eq!(prepared.put(Some(&first), &second).await, Outcome::Written);
        zookeeper.server.stop();
        zookeeper.server.start_again();
        prepared.store.disconnect();
        assert_eq!(prepared.put(Some(&first), &third).await, Outcome::Found(Some(second.clone())));
        assert_eq!(prepared.put(Some(&second), &third).await, Outcome::Written);
        paused(&mut prepared_at(&zookeeper, "paused").await, &zookeeper.server).await;
    });
}

async fn prepared_at(zookeeper: &Zookeeper, namespace: &str) -> suite::Prepared {
    prepare(&|| open(&zookeeper.url()), space(namespace)).await
}

#[test]
fn an_idle_session_is_left() {
    // Sessions of at most a second, of which nothing is seen.
    let zookeeper = Zookeeper::with(&["minSessionTimeout=1000", "maxSessionTimeout=1000"]);
    block(async {
        let mut prepared = prepared_at(&zookeeper, "default").await;
        assert_eq!(prepared.put(None, &node(1, 1, 1)).await, Outcome::Written);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(prepared.put(Some(&node(1, 1, 1)), &node(1, 2, 2)).await, Outcome::Written);
    });
}

#[test]
fn a_chroot() {
    let zookeeper = Zookeeper::new();
    let url = format!("{}/apps/the%20shop", zookeeper.url());
    let error = list(&url).unwrap_err();
    assert!(
        matches!(&error, StoreError::Refused(said) if said.contains("`create \"/apps/the shop\"`")),
        "{error:?}"
    );
    assert_eq!(zookeeper.cli(&["create /apps", "create \"/apps/the shop\"", "ls /"]), "[apps, zookeeper]");
    assert!(list(&url).unwrap().is_new);
    block(async {
        let mut prepared = prepare(&|| open(&url), space("default")).await;
        assert_eq!(prepared.put(None, &node(1, 1, 5)).await, Outcome::Written);
        assert_eq!(prepared.list().await.nodes, [node(1, 1, 5)]);
        // Namespaces that are no names of znodes.
        for namespace in [".", ".."] {
            let mut prepared = prepare(&|| open(&url), space(namespace)).await;
            assert_eq!(prepared.put(None, &node(1, 1, 5)).await, Outcome::Written);
            assert_eq!(prepared.list().await.nodes, [node(1, 1, 5)]);
        }
    });
    assert!(list(&zookeeper.url()).unwrap().is_new);
    assert_eq!(zookeeper.cli(&["ls \"/apps/the shop/polyflake\""]), "[%2E, %2E%2E, default]");
}

#[test]
fn users_and_rights() {
    let zookeeper = Zookeeper::new();
    let (port, password) = (zookeeper.port(), "hunter2-of-polyflake");
    let url = |user: &str, password: &str| format!("zookeeper://{user}:{password}@127.0.0.1:{port}");
    block(async {
        let mut prepared = prepare(&|| open(&url("leases", password)), space("default")).await;
        assert_eq!(prepared.put(None, &node(1, 1, 500)).await, Outcome::Written);
        prepared.store.disconnect();
        assert_eq!(prepared.put(Some(&node(1, 1, 500)), &node(1, 1, 900)).await, Outcome::Written);
    });
    let rights = zookeeper.cli(&[
        &format!("addauth digest leases:{password}"),
        "getAcl /polyflake",
        &format!("getAcl {BASE}/nodes/1"),
    ]);
    assert_eq!(rights.matches("'digest,'leases:").count(), 2, "{rights}");
    assert_eq!(rights.matches(": cdrwa").count(), 2, "{rights}");
    let wrong = "another-of-polyflake";
    for url in [url("leases", wrong), url("nobody", password), zookeeper.url()] {
        let error = list(&url).unwrap_err();
        let text = format!("{error:?} {error} {:?}", open(&url));
        assert!(matches!(error, StoreError::Refused(_)) && text.contains("NoAuth"), "{text}");
        assert!(text.contains(&format!("127.0.0.1:{port}")), "{text}");
        assert!(!text.contains(password) && !text.contains(wrong), "{text}");
    }
    for url in ["zookeeper://a%3Ab:c@h", "zookeeper://h?timeout=5"] {
        assert!(matches!(stores::open(&Address::parse(url).unwrap()), Err(StoreError::Refused(_))), "{url}");
    }
}

#[test]
fn hosts_are_tried_in_turn() {
    let zookeeper = Zookeeper::new();
    let (none, also_none) = (free_port(), free_port());
    let port = zookeeper.port();
    // A host that takes the connection and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let quiet = silent.local_addr().unwrap().port();
    let url =
        format!("zookeeper://127.0.0.1:{none},127.0.0.1:{quiet},127.0.0.1:{port},127.0.0.1:{also_none}");
    let url = format!("{url}/?ttl=12s");
    for _ in 0..2 {
        assert!(list(&url).unwrap().is_new);
    }
    block(async {
        let mut store = open(&url);
        for _ in 0..6 {
            store.list(&space("default")).await.unwrap();
            store.disconnect();
        }
    });
    let error = list(&format!("zookeeper://127.0.0.1:{none},127.0.0.1:{also_none}")).unwrap_err();
    assert!(matches!(&error, StoreError::Unreachable(said) if said.contains("refused")), "{error:?}");
}

/// A server that ends a connection, and one that speaks something else.
#[test]
fn others_than_zookeeper() {
    for (said, part) in
        [(&b""[..], "closed the connection"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "something else")]
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let other = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1_000]).unwrap();
            stream.write_all(said).unwrap();
        });
        let error = list(&format!("zookeeper://127.0.0.1:{port}")).unwrap_err();
        assert!(error.text().contains(part), "{error:?}");
        assert_eq!(matches!(error, StoreError::Refused(_)), !said.is_empty(), "{error:?}");
        other.join().unwrap();
    }
}

/// A way to a port, on which what comes back may be held.
fn way(to: u16, is_held: &Arc<AtomicBool>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let is_held = Arc::clone(is_held);
    let pass = |mut from: TcpStream, mut to: TcpStream, is_held: Option<Arc<AtomicBool>>| {
        let mut bytes = [0; 4_096];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            while is_held.as_ref().is_some_and(|it| it.load(Ordering::Relaxed)) {
                thread::sleep(Duration::from_millis(1));
            }
            if to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    };
    thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok) {
            let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else { continue };
            let (near_too, far_too) = (near.try_clone().unwrap(), far.try_clone().unwrap());
            let is_held = Some(Arc::clone(&is_held));
            thread::spawn(move || pass(near, far, None));
            thread::spawn(move || pass(far_too, near_too, is_held));
        }
    });
    port
}

#[test]
fn nobody_is_told_what_is_old() {
    let is_held = Arc::new(AtomicBool::new(false));
    let all = Zookeeper::ensemble(|port| way(port, &is_held));
    block(async {
        let (url, behind) = (all[1].url(), all[0].url());
        let mut prepared = prepare(&|| open(&url), space("default")).await;
        let (mut last, other) = (node(1, 0, 500), node(1, 99, 99));
        assert_eq!(prepared.put(None, &last).await, Outcome::Written);
        let mut reader = open(&behind);
        retry(&mut reader, async |store| store.list(&prepared.space).await).await;
        for round in 1..=4 {
            // The first server does not hear what the two others decide.
            is_held.store(true, Ordering::Relaxed);
            let next = node(1, round, 500 + round);
            assert_eq!(prepared.put(Some(&last), &next).await, Outcome::Written);
            let found = {
                let mut ask = pin!(async {
                    if round % 2 == 0 {
                        return reader.list(&prepared.space).await.unwrap().nodes.pop();
                    }
                    let put = reader.put_node(&prepared.space, &prepared.record, None, &other).await.unwrap();
                    let Outcome::Found(found) = put.outcome else { panic!("{put:?}") };
                    found
                });
                let answer = tokio::time::timeout(Duration::from_millis(300), ask.as_mut()).await;
                assert!(answer.is_err(), "{answer:?}");
                is_held.store(false, Ordering::Relaxed);
                ask.await
            };
            assert_eq!(found.as_ref(), Some(&next));
            last = next;
        }
    });
}

#[test]
fn an_ensemble_that_loses_its_leader() {
    let mut all = Zookeeper::ensemble(|port| port);
    let hosts: Vec<_> = all.iter().map(|it| format!("127.0.0.1:{}", it.port())).collect();
    let url = format!("zookeeper://{}", hosts.join(","));
    block(async {
        let mut prepared = prepare(&|| open(&url), space("default")).await;
        let [first, second, third] = [node(1, 1, 500), node(1, 1, 900), node(1, 1, 1_300)];
        assert_eq!(prepared.put(None, &first).await, Outcome::Written);
        let leader = all.iter().position(Zookeeper::is_leader).unwrap();
        all[leader].server.kill();
        let others = [&all[(leader + 1) % 3], &all[(leader + 2) % 3]];
        Zookeeper::wait_for_a_leader(&others);
        let listing = retry(&mut prepared.store, async |store| store.list(&prepared.space).await).await;
        assert_eq!((listing.space.as_ref(), &*listing.nodes), (Some(&prepared.record), from_ref(&first)));
        assert_eq!(prepared.put(Some(&first), &second).await, Outcome::Written);
        // One of three is no majority.
        let follower = (leader + 1) % 3;
        all[follower].server.kill();
        let alone = format!("zookeeper://{}", hosts[(leader + 2) % 3]);
        let mut alone = open(&alone);
        let error = loop {
            // It notices in its own time.
            match alone.list(&prepared.space).await {
                Ok(_) => alone.disconnect(),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, StoreError::Unreachable(_)), "{error:?}");
        all[follower].server.start_again();
        Zookeeper::wait_for_a_leader(&[&all[follower]]);
        prepared.store.disconnect();
        let put = retry(&mut prepared.store, async |store| {
            store.put_node(&prepared.space, &prepared.record, Some(&second.claim()), &third).await
        })
        .await;
        assert!([Outcome::Written, Outcome::Found(Some(third.clone()))].contains(&put.outcome), "{put:?}");
    });
}
