//! etcd.

mod counters;
mod records;

use polyflake_coordination::{Address, Listing, Outcome, SpaceRecord, Store, StoreError, stores};

use super::servers::etcd::Etcd;
use super::servers::{certificates, folder, free_port};
use super::suite::{self, Kind, block, node, prepare, retry, space};

fn open(url: &str) -> Box<dyn Store> {
    stores::open(&Address::parse(url).unwrap()).unwrap()
}

fn list(url: &str) -> Result<Listing, StoreError> {
    block(async { open(url).list(&space("default")).await })
}

#[test]
fn every_history() {
    let etcd = Etcd::new();
    suite::all(&|| open(&etcd.url()), Kind { is_new: true });
}

#[test]
fn it_reads_well() {
    let etcd = Etcd::new();
    let incarnation = block(async {
        let mut prepared = prepare(&|| open(&etcd.url()), space("default")).await;
        assert_eq!(prepared.put(None, &node(3, 1, 500)).await, Outcome::Written);
        prepared.record.incarnation
    });
    let base = "polyflake/default/timestamp:41<<22|sequence:12<<0@1288834974657/1ms";
    assert_eq!(
        etcd.ctl(&["get", "--prefix", "polyflake/"]),
        format!(
            "{base}/nodes/3\n{{\"token\":\"00000000000000000000000000000001\",\"expires_ms\":\"1790000000001\",\
             \"reserved_until\":\"500\",\"label\":\"host-1/1234\",\"since_ms\":\"1780000000001\"}}\n\
             {base}/space\n{{\"version\":1,\"incarnation\":\"{incarnation}\",\"lead_ms\":\"60000\",\"fence\":\"77\"}}"
        )
    );
    etcd.ctl(&["put", &format!("{base}/space"), "{\"version\":2}"]);
    let error = list(&etcd.url()).unwrap_err();
    assert!(matches!(&error, StoreError::Refused(said) if said.contains("version 2")), "{error:?}");
    etcd.ctl(&["put", &format!("{base}/space"), "?"]);
    assert!(matches!(list(&etcd.url()), Err(StoreError::Refused(_))));
}

#[test]
fn a_restart_keeps_all() {
    let mut etcd = Etcd::new();
    block(async {
        let mut prepared = prepare(&|| open(&etcd.url()), space("default")).await;
        let [first, second, third] = [node(1, 1, 500), node(1, 1, 900), node(1, 1, 1_300)];
        assert_eq!(prepared.put(None, &first).await, Outcome::Written);
        etcd.server.kill();
        let error = prepared.store.list(&prepared.space).await.unwrap_err();
        assert!(matches!(error, StoreError::Unreachable(_)), "{error:?}");
        etcd.server.start_again();
        let listing = retry(&mut prepared.store, async |store| store.list(&prepared.space).await).await;
        assert_eq!(listing.space.as_ref(), Some(&prepared.record));
        assert_eq!((listing.is_new, listing.nodes), (false, vec![first.clone()]));
        assert_eq!(prepared.put(Some(&first), &second).await, Outcome::Written);

        // What somebody else wrote since is found, not what this store remembers.
        let mut other = open(&etcd.url());
        let claim = second.claim();
        let put = other.put_node(&prepared.space, &prepared.record, Some(&claim), &third).await.unwrap();
        assert_eq!(put.outcome, Outcome::Written);
        assert_eq!(prepared.put(Some(&second), &first).await, Outcome::Found(Some(third.clone())));
        etcd.ctl(&["del", "--prefix", "polyflake/"]);
        assert_eq!(prepared.put(Some(&third), &first).await, Outcome::OtherSpace);
        assert!(prepared.list().await.is_new);
    });
}

#[test]
fn another_cluster_at_the_same_address() {
    let (one, two) = (Etcd::new(), Etcd::new());
    block(async {
        let mut prepared = prepare(&|| open(&one.url()), space("default")).await;
        // All of it, in a cluster of another name.
        let mut copy = prepare(&|| open(&two.url()), space("default")).await;
        assert_ne!(prepared.record.incarnation, copy.record.incarnation);
        let base = "polyflake/default/timestamp:41<<22|sequence:12<<0@1288834974657/1ms";
        two.ctl(&[
            "put",
            &format!("{base}/space"),
            &one.ctl(&["get", "--print-value-only", &format!("{base}/space")]),
        ]);
        copy.record = prepared.record.clone();
        assert_eq!(copy.list().await.space.as_ref(), Some(&prepared.record));
        assert_eq!(copy.put(None, &node(1, 1, 5)).await, Outcome::OtherSpace);
        assert_eq!(prepared.put(None, &node(1, 1, 5)).await, Outcome::Written);
        let SpaceRecord { incarnation, .. } = prepared.record;
        assert_ne!(copy.list().await.incarnation, incarnation);
    });
}

#[test]
fn hosts_are_tried_in_turn() {
    let etcd = Etcd::new();
    let (none, also_none) = (free_port(), free_port());
    let port = etcd.port();
    // A host that takes the connection and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let quiet = silent.local_addr().unwrap().port();
    let url =
        format!("etcd://127.0.0.1:{none},127.0.0.1:{quiet},127.0.0.1:{port},127.0.0.1:{also_none}?ttl=12s");
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
    let error = list(&format!("etcd://127.0.0.1:{none},127.0.0.1:{also_none}")).unwrap_err();
    assert!(matches!(&error, StoreError::Unreachable(said) if said.contains("127.0.0.1")), "{error:?}");
    assert!(matches!(stores::open(&Address::parse("etcd://h?dial=5").unwrap()), Err(StoreError::Refused(_))));
}

#[test]
fn users_and_rights() {
    let etcd = Etcd::with("http", &["--auth-token-ttl", "2"]);
    let (port, password) = (etcd.port(), "hunter2-of-polyflake");
    let url = |user: &str, password: &str| format!("etcd://{user}:{password}@127.0.0.1:{port}");
    // A user where none is asked for.
    list(&url("leases", password)).unwrap();
    for command in [
        &["user", "add", "root:root"][..],
        &["user", "grant-role", "root", "root"],
        &["role", "add", "leases"],
        &["role", "grant-permission", "leases", "--prefix=true", "readwrite", "polyflake/default/"],
        &["user", "add", &format!("leases:{password}")],
        &["user", "grant-role", "leases", "leases"],
        &["user", "add", &format!("bare:{password}")],
        &["auth", "enable"],
    ] {
        etcd.ctl(command);
    }
    block(async {
        let mut prepared = prepare(&|| open(&url("leases", password)), space("default")).await;
        assert_eq!(prepared.put(None, &node(1, 1, 500)).await, Outcome::Written);
        // The token has ended by then.
        tokio::time::sleep(std::time::Duration::from_secs(6)).await;
        assert_eq!(prepared.put(Some(&node(1, 1, 500)), &node(1, 1, 900)).await, Outcome::Written);
    });
    let wrong = "another-of-polyflake";
    for url in [url("leases", wrong), url("nobody", password), url("bare", password), etcd.url()] {
        let error = list(&url).unwrap_err();
        let text = format!("{error:?} {error} {:?}", open(&url));
        assert!(matches!(error, StoreError::Refused(_)), "{text}");
        assert!(text.contains(&format!("127.0.0.1:{port}")), "{text}");
        assert!(!text.contains(password) && !text.contains(wrong), "{text}");
    }
    let listing = block(async { open(&url("root", "root")).list(&space("other")).await }).unwrap();
    assert_eq!((listing.space, listing.is_new), (None, false));
}

#[test]
fn tls_with_an_authority_of_its_own() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    certificates::make(folder.path());
    let [ca, cert, key] = ["authority.pem", "server.pem", "server.key"].map(path);
    let [mine, my_key] = ["client.pem", "client.key"].map(path);
    let options = ["--cert-file", &cert, "--key-file", &key, "--trusted-ca-file", &ca];
    let etcd = Etcd::with("https", &options);
    let url = format!("etcds://localhost:{}", etcd.port());
    let error = list(&url).unwrap_err();
    assert!(matches!(&error, StoreError::Refused(said) if said.contains("certificate")), "{error:?}");
    let whole = format!("{url}?cacert={ca}&cert={mine}&key={my_key}");
    assert!(list(&whole).unwrap().is_new);
    let plain = format!("etcd://localhost:{}", etcd.port());
    list(&plain).unwrap_err();
}
