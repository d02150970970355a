//! Redis.

mod records;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use polyflake_coordination::records::{Answer, Named, Outcome, Store as _};
use polyflake_coordination::stores::RedisStore;
use polyflake_coordination::{Address, StoreError};

use super::records::{head, look, record, space, write};
use super::servers::redis::{Redis, Sentinel};
use super::servers::{certificates, folder, free_port, run};
use super::support::block;

fn open(url: &str) -> Result<RedisStore, StoreError> {
    RedisStore::new(&Address::parse(url).unwrap())
}

fn ask(url: &str) -> Result<Answer<Named>, StoreError> {
    look(open(url).unwrap())
}

fn unreachable(url: &str) -> String {
    match ask(url) {
        Err(StoreError::Unreachable(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_full_server_is_told() {
    let redis = Redis::new();
    let mut store = open(&redis.url()).unwrap();
    block(async {
        assert_eq!(write(&mut store, &head(None, &record(11, 1, "{}"))).await.value, Outcome::Written);
        redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
        let next = head(Some(11), &record(12, 2, "{}"));
        let full = store.write(&next).await;
        assert!(matches!(&full, Err(StoreError::Unreachable(said)) if said.contains("OOM")), "{full:?}");
        redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
        assert_eq!(write(&mut store, &next).await.value, Outcome::Written);
    });
}

#[test]
fn a_replica_is_refused_and_has_another_incarnation_once_promoted() {
    let master = Redis::new();
    let replica = Redis::replica_of(&master);
    let mut store = open(&format!("{}?replicas=1", master.url())).unwrap();
    block(async {
        let first = record(11, 1, "{}");
        let before = write(&mut store, &head(None, &first)).await;
        assert_eq!(before.value, Outcome::Written);
        let asked = open(&replica.url()).unwrap().read(&space("default"), None).await;
        assert!(matches!(&asked, Err(StoreError::Refused(said)) if said.contains("replica")), "{asked:?}");

        replica.cli(&["REPLICAOF", "NO", "ONE"]);
        let mut promoted = open(&replica.url()).unwrap();
        let now = promoted.read(&space("default"), None).await.unwrap();
        assert_eq!(now.value, [("head".to_owned(), first)]);
        assert!(!promoted.has_kept_all(&before.incarnation, &now.incarnation), "{before:?} {now:?}");

        // The holder's master becomes a replica. This is reported as a failover at first, and is then refused.
        master.cli(&["REPLICAOF", "127.0.0.1", &replica.port().to_string()]);
        let asked = store.read(&space("default"), None).await;
        assert!(matches!(asked, Err(StoreError::Unreachable(_))), "{asked:?}");
        store.disconnect();
        let asked = store.read(&space("default"), None).await;
        assert!(matches!(&asked, Err(StoreError::Refused(said)) if said.contains("replica")), "{asked:?}");
    });
}

#[test]
fn a_sentinel_names_the_new_master() {
    let mut master = Redis::new();
    let replica = Redis::replica_of(&master);
    let sentinel = Sentinel::new(master.port());
    let url =
        format!("redis-sentinel://127.0.0.1:1,127.0.0.1:{}/mymaster?replicas=1", sentinel.server.port());
    let mut store = open(&url).unwrap();
    block(async {
        let first = record(11, 1, "{}");
        let before = write(&mut store, &head(None, &first)).await;
        assert_eq!(before.value, Outcome::Written);
        heard_of(&sentinel, &replica);
        replica.wait_for("master_link_status:up");
        master.server.kill();
        let all = space("default");
        let now = super::records::ask(&mut store, async |store| store.read(&all, None).await).await;
        assert_eq!(now.value, [("head".to_owned(), first)]);
        assert!(!store.has_kept_all(&before.incarnation, &now.incarnation), "{before:?} {now:?}");
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
    // A user for leases, without CONFIG, as on managed services.
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
    ask(&url("leases", password)).unwrap();
    let wrong = "another-of-polyflake";
    for (url, part) in [
        (url("leases", wrong), ""),
        (url("nobody", password), ""),
        (redis.url(), "NOAUTH"),
        (url("bare", password), "NOPERM"),
        (url("leases", password).replace("/0", "/99"), ""),
        (format!("redis-cluster://leases:{wrong}@127.0.0.1:{port}"), ""),
    ] {
        let error = ask(&url).unwrap_err();
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
    let said = match ask(&url) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("an authority that nobody knows"),
    };
    assert!(said.contains("certificate") || said.contains("TLS") || said.contains("reset"), "{said}");
    let whole = format!("{url}?ssl_ca_certs={ca}&ssl_certfile={mine}&ssl_keyfile={my_key}");
    ask(&whole).unwrap();
    let error = open(&format!("{url}?ssl_ca_certs={}", path("none"))).unwrap_err();
    assert!(error.to_string().contains("ssl_ca_certs"), "{error}");
}

#[test]
fn tls_where_there_is_none() {
    let redis = Redis::with(&["--appendonly", "yes"]);
    let Err(error) = ask(&format!("{}?ttl=3s", redis.url().replace("redis://", "rediss://"))) else {
        panic!("it spoke TLS")
    };
    assert!(error.to_string().contains("the address asks for TLS: does this port speak it?"), "{error}");
}
