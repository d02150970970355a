//! ZooKeeper.

mod records;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use polyflake_coordination::records::{Outcome, Store as _};
use polyflake_coordination::stores::ZookeeperStore;
use polyflake_coordination::{Address, StoreError};

use super::records::{head, look, paused, read, record, space, write};
use super::servers::zookeeper::Zookeeper;
use super::support::block;

fn open(url: &str) -> Result<ZookeeperStore, StoreError> {
    ZookeeperStore::new(&Address::parse(url).unwrap())
}

#[test]
fn addresses_that_are_refused() {
    assert!(matches!(open("zookeeper://a%3Ab:c@h"), Err(StoreError::Refused(_))));
}

#[test]
fn a_server_that_does_not_answer() {
    let zookeeper = Zookeeper::new();
    paused(&mut open(&zookeeper.url()).unwrap(), &zookeeper.server);
}

#[test]
fn an_idle_session_is_left() {
    // Sessions last for at most a second, which callers must not notice.
    let zookeeper = Zookeeper::with(&["minSessionTimeout=1000", "maxSessionTimeout=1000"]);
    let mut store = open(&zookeeper.url()).unwrap();
    block(async {
        assert_eq!(write(&mut store, &head(None, &record(11, 1, "{}"))).await.value, Outcome::Written);
        // The server expires the session after a second without a request.
        tokio::time::sleep(Duration::from_secs(5)).await;
        let next = head(Some(11), &record(12, 2, "{}"));
        assert_eq!(store.write(&next).await.unwrap().value, Outcome::Written);
    });
}

/// A session that is abandoned remains on the server for 40 s.
#[test]
fn a_session_is_closed() {
    let zookeeper = Zookeeper::with(&["4lw.commands.whitelist=srvr,mntr"]);
    let mut store = open(&zookeeper.url()).unwrap();
    block(async {
        assert_eq!(write(&mut store, &head(None, &record(11, 1, "{}"))).await.value, Outcome::Written);
        assert_eq!(zookeeper.sessions(), 1);
        store.disconnect();
        assert_eq!(read(&mut store, "head").await, Some(record(11, 1, "{}")));
    });
    drop(store);
    let deadline = Instant::now() + Duration::from_secs(60);
    while zookeeper.sessions() > 0 {
        assert!(Instant::now() < deadline, "{} sessions are left", zookeeper.sessions());
        thread::sleep(Duration::from_millis(50));
    }
}

/// One server closes the connection, and another speaks a different protocol.
#[test]
fn others_than_zookeeper() {
    for (said, part) in
        [(&b""[..], "closed the connection"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not ZooKeeper's")]
    {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let other = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1_000]).unwrap();
            stream.write_all(said).unwrap();
        });
        let error = look(open(&format!("zookeeper://127.0.0.1:{port}")).unwrap()).unwrap_err();
        assert!(error.text().contains(part), "{error:?}");
        assert_eq!(matches!(error, StoreError::Refused(_)), !said.is_empty(), "{error:?}");
        other.join().unwrap();
    }
}

#[test]
fn an_ensemble_that_loses_its_leader() {
    let mut all = Zookeeper::ensemble(|port| port);
    let hosts: Vec<_> = all.iter().map(|it| format!("127.0.0.1:{}", it.port())).collect();
    let url = format!("zookeeper://{}", hosts.join(","));
    block(async {
        let mut store = open(&url).unwrap();
        let all_of = |version| record(version, version, "{}");
        assert_eq!(write(&mut store, &head(None, &all_of(11))).await.value, Outcome::Written);
        let leader = loop {
            // On a busy machine, the leader may not answer at once.
            if let Some(at) = all.iter().position(Zookeeper::is_leader) {
                break at;
            }
        };
        all[leader].server.kill();
        let others = [&all[(leader + 1) % 3], &all[(leader + 2) % 3]];
        Zookeeper::wait_for_a_leader(&others);
        assert_eq!(read(&mut store, "head").await, Some(all_of(11)));
        assert_eq!(write(&mut store, &head(Some(11), &all_of(12))).await.value, Outcome::Written);
        // One server out of three is not a majority.
        let follower = (leader + 1) % 3;
        all[follower].server.kill();
        let mut alone = open(&format!("zookeeper://{}", hosts[(leader + 2) % 3])).unwrap();
        let error = loop {
            // The server may take a while to notice.
            match alone.read(&space("default"), None).await {
                Ok(_) => {
                    alone.disconnect();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => break error,
            }
        };
        assert!(matches!(error, StoreError::Unreachable(_)), "{error:?}");
        all[follower].server.start_again();
        Zookeeper::wait_for_a_leader(&[&all[follower]]);
        store.disconnect();
        assert_eq!(write(&mut store, &head(Some(12), &all_of(13))).await.value, Outcome::Written);
    });
}
