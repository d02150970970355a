//! Redis.

mod counters;
mod records;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use polyflake_coordination::{Address, Listing, Outcome, Store, StoreError, stores};

use super::servers::redis::{Redis, Sentinel};
use super::servers::{certificates, folder, free_port, run};
use super::suite::{self, Kind, block, node, prepare, retry, space};

const FORGETS: Kind = Kind { is_new: false };

fn open(url: &str) -> Box<dyn Store> {
    stores::open(&Address::parse(url).unwrap()).unwrap()
}

fn list(url: &str) -> Result<Listing, StoreError> {
    block(async { open(url).list(&space("default")).await })
}

fn refused(url: &str) -> String {
    match list(url) {
        Err(StoreError::Refused(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn unreachable(url: &str) -> String {
    match list(url) {
        Err(StoreError::Unreachable(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_history() {
    let redis = Redis::new();
    suite::all(&|| open(&redis.url()), FORGETS);
}

#[test]
fn every_history_in_a_cluster() {
    let all = Redis::cluster(1);
    let url = format!("redis-cluster://127.0.0.1:{}", all[0].port());
    suite::all(&|| open(&url), FORGETS);
}

#[test]
fn every_history_in_a_cluster_of_three() {
    let mut all = Redis::cluster(3);
    let url = format!("redis-cluster://127.0.0.1:1,127.0.0.1:{}", all[0].port());
    suite::all(&|| open(&url), FORGETS);
    for redis in &all {
        assert!(redis.cli(&["DBSIZE"]).parse::<u32>().unwrap() > 2);
    }
    // One of them alone has not all slots.
    let owner = all.iter().position(|redis| list(&redis.url()).is_ok()).unwrap();
    let errors: Vec<_> = all.iter().filter_map(|redis| list(&redis.url()).err()).collect();
    assert_eq!(errors.len(), 2);
    for error in errors {
        assert!(
            matches!(&error, StoreError::Refused(said) if said.contains("redis-cluster://")),
            "{error:?}"
        );
    }
    // The one that has the slot is killed under a holder, and starts again.
    block(async {
        let mut prepared = prepare(&|| open(&url), space("default")).await;
        let first = node(1, 1, 500);
        assert_eq!(prepared.put(None, &first).await, Outcome::Written);
        all[owner].server.kill();
        let put =
            prepared.store.put_node(&prepared.space, &prepared.record, Some(&first.claim()), &first).await;
        assert!(matches!(&put, Err(StoreError::Unreachable(_))), "{put:?}");
        all[owner].server.start_again();
        let listing = retry(&mut prepared.store, async |store| store.list(&prepared.space).await).await;
        assert_ne!(listing.incarnation, prepared.record.incarnation);
        assert_eq!(listing.nodes, [first]);
    });
}

#[test]
fn every_history_behind_a_sentinel() {
    let redis = Redis::new();
    let sentinel = Sentinel::new(redis.port());
    let url = format!("redis-sentinel://127.0.0.1:{}/mymaster/2", sentinel.server.port());
    suite::all(&|| open(&url), FORGETS);
    assert!(redis.cli(&["-n", "2", "DBSIZE"]).parse::<u32>().unwrap() > 20);
    unreachable(&url.replace("mymaster", "other"));
}

#[test]
fn every_history_with_a_replica() {
    let redis = Redis::new();
    let replica = Redis::replica_of(&redis);
    let url = format!("{}?replicas=1", redis.url());
    suite::all(&|| open(&url), FORGETS);
    drop(replica);
}

#[test]
fn it_reads_well() {
    let redis = Redis::new();
    block(async {
        let mut prepared = prepare(&|| open(&redis.url()), space("default")).await;
        assert_eq!(prepared.put(None, &node(3, 1, 500)).await, Outcome::Written);
    });
    let base = "polyflake:{default/timestamp:41<<22|sequence:12<<0@1288834974657/1ms}";
    let shown = redis.cli(&["HGETALL", &format!("{base}:space")]);
    assert!(shown.starts_with("version\n1\nincarnation\n"), "{shown}");
    let shown = redis.cli(&["HGETALL", &format!("{base}:nodes")]);
    assert_eq!(
        shown,
        "3\n{\"token\":\"00000000000000000000000000000001\",\"expires_ms\":\"1790000000001\",\
         \"reserved_until\":\"500\",\"label\":\"host-1/1234\",\"since_ms\":\"1780000000001\"}"
    );
    redis.cli(&["HSET", &format!("{base}:space"), "version", "2"]);
    let said = refused(&redis.url());
    assert!(said.contains("version 2"), "{said}");
}

#[test]
fn a_store_that_forgot_has_no_space_or_another_incarnation() {
    let mut redis = Redis::new();
    block(async {
        let mut prepared = prepare(&|| open(&redis.url()), space("default")).await;
        let first = node(1, 1, 500);
        assert_eq!(prepared.put(None, &first).await, Outcome::Written);

        // With its file: it remembers, and cannot know whether all of it.
        redis.server.kill();
        redis.server.start_again();
        let Err(StoreError::Unreachable(said)) = prepared.store.list(&prepared.space).await else { panic!() };
        assert!(said.contains("127.0.0.1"), "{said}");
        let listing = prepared.list().await;
        assert_eq!(listing.nodes, std::slice::from_ref(&first));
        assert_ne!(listing.incarnation, prepared.record.incarnation);
        assert_eq!(prepared.put(Some(&first), &node(1, 1, 900)).await, Outcome::OtherSpace);

        let next = polyflake_coordination::SpaceRecord {
            incarnation: listing.incarnation,
            ..prepared.record.clone()
        };
        let Some(old) = listing.space else { panic!() };
        assert!(prepared.store.put_space(&prepared.space, Some(&old), &next).await.unwrap());
        prepared.record = next;
        assert_eq!(prepared.put(Some(&first), &node(1, 1, 900)).await, Outcome::Written);

        redis.cli(&["FLUSHALL"]);
        assert_eq!(prepared.put(Some(&node(1, 1, 900)), &node(1, 1, 1_300)).await, Outcome::OtherSpace);
        let listing = prepared.list().await;
        assert_eq!((listing.space, listing.is_new, listing.nodes), (None, false, vec![]));
        // FLUSHALL alone leaves it as it was.
        assert_eq!(listing.incarnation, prepared.record.incarnation);
    });
}

#[test]
fn a_restart_without_a_file_forgets() {
    let mut redis = Redis::with(&["--appendonly", "no"]);
    let url = format!("{}?durability=none", redis.url());
    let said = refused(&redis.url());
    assert!(said.contains("keeps nothing on disk") && said.contains("durability=none"), "{said}");
    let before = block(async { prepare(&|| open(&url), space("default")).await.record });
    redis.server.stop();
    redis.server.start_again();
    let listing = list(&url).unwrap();
    assert_eq!((listing.space, listing.is_new), (None, false));
    assert_ne!(listing.incarnation, before.incarnation);
}

#[test]
fn a_server_that_may_drop_keys_is_refused() {
    let redis = Redis::with(&["--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"]);
    let said = refused(&redis.url());
    assert!(said.contains("allkeys-lru") && said.contains("durability=none"), "{said}");
    list(&format!("{}?durability=none", redis.url())).unwrap();
    redis.cli(&["CONFIG", "SET", "maxmemory-policy", "volatile-lru"]);
    list(&redis.url()).unwrap();
}

#[test]
fn a_full_server_is_told() {
    let redis = Redis::new();
    block(async {
        let mut prepared = prepare(&|| open(&redis.url()), space("default")).await;
        redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
        let put = prepared.store.put_node(&prepared.space, &prepared.record, None, &node(1, 1, 5)).await;
        assert!(matches!(&put, Err(StoreError::Unreachable(said)) if said.contains("OOM")), "{put:?}");
        redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
        assert_eq!(prepared.put(None, &node(1, 1, 5)).await, Outcome::Written);
    });
}

#[test]
fn a_replica_is_refused_and_has_another_incarnation_once_promoted() {
    let master = Redis::new();
    let replica = Redis::replica_of(&master);
    block(async {
        let mut prepared = prepare(&|| open(&master.url()), space("default")).await;
        assert_eq!(prepared.put(None, &node(1, 1, 500)).await, Outcome::Written);
        let said = refused_in(&mut *open(&replica.url())).await;
        assert!(said.contains("replica"), "{said}");

        replica.cli(&["REPLICAOF", "NO", "ONE"]);
        let mut promoted = open(&replica.url());
        let listing = promoted.list(&prepared.space).await.unwrap();
        assert_ne!(listing.incarnation, prepared.record.incarnation);
        let claim = node(1, 1, 500).claim();
        let put = promoted
            .put_node(&prepared.space, &prepared.record, Some(&claim), &node(1, 1, 900))
            .await
            .unwrap();
        assert_eq!(put.outcome, Outcome::OtherSpace);

        // A master that became a replica under a holder: a failover first, then refused.
        master.cli(&["REPLICAOF", "127.0.0.1", &replica.port().to_string()]);
        let list = prepared.store.list(&prepared.space).await;
        assert!(matches!(list, Err(StoreError::Unreachable(_))), "{list:?}");
        refused_in(&mut *prepared.store).await;
    });
}

async fn refused_in(store: &mut dyn Store) -> String {
    match store.list(&space("default")).await {
        Err(StoreError::Refused(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_change_counts_once_the_replicas_have_it() {
    let master = Redis::new();
    let replica = Redis::replica_of(&master);
    let url = format!("{}?replicas=1&ttl=5s", master.url());
    block(async {
        let mut prepared = prepare(&|| open(&url), space("default")).await;
        let [first, second] = [node(1, 1, 500), node(1, 1, 900)];
        assert_eq!(prepared.put(None, &first).await, Outcome::Written);
        replica.server.pause();
        let claim = first.claim();
        for _ in 0..2 {
            // The second time it finds what it wrote: no replica has that yet either.
            let put = prepared.store.put_node(&prepared.space, &prepared.record, Some(&claim), &second).await;
            let Err(StoreError::Unreachable(said)) = put else { panic!("{put:?}") };
            assert!(said.contains("0 of 1 replicas"), "{said}");
        }
        replica.server.resume();
        let found = retry(&mut prepared.store, async |store| {
            store.put_node(&prepared.space, &prepared.record, Some(&claim), &second).await
        })
        .await;
        assert_eq!(found.outcome, Outcome::Found(Some(second)));
    });
    let said = block(async {
        let mut store = open(&format!("{}?replicas=2&ttl=3s", master.url()));
        let listing = store.list(&space("default")).await.unwrap();
        let record = listing.space.unwrap();
        store.put_space(&space("default"), Some(&record), &record).await.unwrap_err().to_string()
    });
    assert!(said.contains("1 of 2 replicas"), "{said}");
}

#[test]
fn a_cluster_without_its_replicas_confirms_nothing() {
    let all = Redis::cluster(1);
    let url = format!("redis-cluster://127.0.0.1:{}?replicas=1&ttl=3s", all[0].port());
    block(async {
        let mut store = open(&url);
        let incarnation = store.list(&space("default")).await.unwrap().incarnation;
        let record = polyflake_coordination::SpaceRecord { incarnation, lead_ms: 1, fence: 0 };
        let put = store.put_space(&space("default"), None, &record).await;
        assert!(
            matches!(&put, Err(StoreError::Unreachable(said)) if said.contains("0 of 1 replicas")),
            "{put:?}"
        );
    });
}

#[test]
fn a_sentinel_names_the_new_master() {
    let mut master = Redis::new();
    let replica = Redis::replica_of(&master);
    let sentinel = Sentinel::new(master.port());
    let url =
        format!("redis-sentinel://127.0.0.1:1,127.0.0.1:{}/mymaster?replicas=1", sentinel.server.port());
    block(async {
        let mut prepared = prepare(&|| open(&url), space("default")).await;
        let first = node(1, 1, 500);
        assert_eq!(prepared.put(None, &first).await, Outcome::Written);
        heard_of(&sentinel, &replica);
        replica.wait_for("master_link_status:up");
        master.server.kill();
        let listing = retry(&mut prepared.store, async |store| store.list(&prepared.space).await).await;
        assert_ne!(listing.incarnation, prepared.record.incarnation);
        assert_eq!(listing.nodes, [first]);
    });
    replica.wait_for("role:master");
}

/// Waits until the Sentinel has heard of the replica.
fn heard_of(sentinel: &Sentinel, replica: &Redis) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let known = || {
        let mut cli = Command::new("redis-cli");
        cli.args(["-p", &sentinel.server.port().to_string(), "SENTINEL", "replicas", "mymaster"]);
        run(cli).contains(&replica.port().to_string())
    };
    while !known() {
        assert!(Instant::now() < deadline, "the Sentinel knows no replica");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn passwords_and_rights() {
    let redis = Redis::new();
    let (port, password) = (redis.port(), "hunter2-of-polyflake");
    // A user for leases: without CONFIG, as managed services have it.
    redis.cli(&[
        "ACL",
        "SETUSER",
        "leases",
        "on",
        &format!(">{password}"),
        "~polyflake:*",
        "+@read",
        "+@write",
        "+@scripting",
        "+@connection",
        "+info",
        "+time",
        "+wait",
    ]);
    redis.cli(&["ACL", "SETUSER", "bare", "on", &format!(">{password}"), "~polyflake:*", "+@read"]);
    redis.cli(&["ACL", "SETUSER", "default", "off"]);
    let url = |user: &str, password: &str| format!("redis://{user}:{password}@127.0.0.1:{port}/0");
    suite::all(&|| open(&url("leases", password)), FORGETS);
    let wrong = "another-of-polyflake";
    for (url, part) in [
        (url("leases", wrong), ""),
        (url("nobody", password), ""),
        (redis.url(), "NOAUTH"),
        (url("bare", password), "NOPERM"),
        (url("leases", password).replace("/0", "/99"), ""),
        (format!("redis-cluster://leases:{wrong}@127.0.0.1:{port}"), ""),
    ] {
        let error = list(&url).unwrap_err();
        let text = format!("{error:?} {error} {:?}", open(&url));
        assert!(text.contains(part) && text.contains(&format!("127.0.0.1:{port}")), "{text}");
        assert!(!text.contains(password) && !text.contains(wrong), "{text}");
        assert!(matches!(error, StoreError::Refused(_)), "{text}");
    }
}

#[test]
fn nobody_there() {
    let port = free_port();
    for scheme in ["redis", "redis-cluster"] {
        unreachable(&format!("{scheme}://leases:hunter2@127.0.0.1:{port}"));
    }
    unreachable(&format!("redis-sentinel://127.0.0.1:{port}/mymaster"));
    let address = Address::parse("redis://h?sslmode=x").unwrap();
    assert!(matches!(stores::open(&address), Err(StoreError::Refused(_))));
}

#[test]
fn tls_with_an_authority_of_its_own() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    certificates::make(folder.path());
    let [ca, cert, key] = ["authority.pem", "server.pem", "server.key"].map(path);
    let [mine, my_key] = ["client.pem", "client.key"].map(path);
    let port = free_port().to_string();
    let _redis = Redis::with(&[
        "--appendonly",
        "yes",
        "--tls-port",
        &port,
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &ca,
    ]);
    let url = format!("rediss://localhost:{port}");
    let said = match list(&url) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("an authority that nobody knows"),
    };
    assert!(said.contains("certificate") || said.contains("TLS") || said.contains("reset"), "{said}");
    let whole = format!("{url}?ssl_ca_certs={ca}&ssl_certfile={mine}&ssl_keyfile={my_key}");
    list(&whole).unwrap();
    let missing = Address::parse(&format!("{url}?ssl_ca_certs={}", path("none"))).unwrap();
    let error = stores::open(&missing).unwrap_err();
    assert!(error.to_string().contains("ssl_ca_certs"), "{error}");
}
