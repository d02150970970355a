//! Records in Redis.

use std::io::{Read, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use polyflake_coordination::records::{
    Add, Added, Answer, Group, Kind, Outcome, Record, Store, Write, conformance,
};
use polyflake_coordination::{Address, StoreError, stores};

use super::super::servers::redis::{Redis, Sentinel};
use super::super::support::block;

fn open(url: &str) -> Box<dyn Store> {
    Box::new(stores::RedisStore::new(&Address::parse(url).unwrap()).unwrap())
}

fn group(kind: Kind, name: &str) -> Group {
    Group { namespace: "default".into(), kind, name: name.into() }
}

fn orders() -> Group {
    group(Kind::Counter, "orders")
}

fn record(version: u64, number: u64) -> Record {
    Record { version, number, text: "{}".into() }
}

fn write(group: &Group, expected: Option<u64>, new: &Record) -> Write {
    Write { group: group.clone(), name: "last".into(), expected, guard: None, new: new.clone() }
}

fn add(count: u64, version: u64) -> Add {
    let limit = Record::LAST_NUMBER;
    Add { group: orders(), name: "last".into(), text: "{}".into(), floor: 0, count, limit, version }
}

async fn put(store: &mut dyn Store, group: &Group, expected: Option<u64>, new: &Record) {
    assert_eq!(store.write(&write(group, expected, new)).await.unwrap().value, Outcome::Written);
}

async fn last(store: &mut dyn Store, group: &Group) -> Option<Record> {
    store.read(group, Some(&["last"])).await.unwrap().value.into_iter().next().map(|(_, record)| record)
}

async fn incarnation(store: &mut dyn Store) -> String {
    store.read(&orders(), None).await.unwrap().incarnation
}

/// Repeats a request as the keeper does: each attempt has a time limit, and after a failure, the next attempt opens a
/// new connection.
async fn within<T>(
    url: &str,
    attempts: u32,
    store: &mut dyn Store,
    mut ask: impl AsyncFnMut(&mut dyn Store) -> Result<Answer<T>, StoreError>,
) -> T {
    let attempt = Address::parse(url).unwrap().attempt();
    let mut said = Vec::new();
    for _ in 0..attempts {
        match tokio::time::timeout(attempt, ask(store)).await {
            Ok(Ok(answer)) => return answer.value,
            Ok(Err(error)) => said.push(error.to_string()),
            Err(_) => said.push("too late".into()),
        }
        store.disconnect();
    }
    panic!("{said:?}")
}

fn refused<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Refused(said)) => said,
        other => panic!("{other:?}"),
    }
}

fn unreachable<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Unreachable(said)) => said,
        other => panic!("{other:?}"),
    }
}

/// Checks that a write never succeeds, and that its error says why once the server has answered in time.
async fn unconfirmed(store: &mut dyn Store, write: &Write) {
    for _ in 0..60 {
        let said = unreachable(store.write(write).await);
        store.disconnect();
        if said.contains("0 of 1 replicas") {
            return;
        }
    }
    panic!("it says something else");
}

/// A host that accepts connections but never answers.
fn silent() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn port(listener: &TcpListener) -> u16 {
    listener.local_addr().unwrap().port()
}

#[test]
fn it_conforms() {
    let redis = Redis::new();
    conformance(&|| open(&redis.url()));
}

#[test]
fn it_conforms_behind_a_sentinel() {
    let redis = Redis::new();
    let sentinel = Sentinel::new(redis.port());
    let url = format!("redis-sentinel://127.0.0.1:{}/mymaster/2", sentinel.server.port());
    conformance(&|| open(&url));
    assert!(redis.cli(&["-n", "2", "DBSIZE"]).parse::<u32>().unwrap() > 20);
    let said = unreachable(block(open(&url.replace("mymaster", "other")).read(&orders(), None)));
    assert!(said.contains("knows no master"), "{said}");
}

#[test]
fn it_conforms_in_a_cluster_of_three() {
    let all = Redis::cluster(3);
    let url = format!("redis-cluster://127.0.0.1:1,127.0.0.1:{}", all[0].port());
    conformance(&|| open(&url));
    for redis in &all {
        assert!(redis.cli(&["DBSIZE"]).parse::<u32>().unwrap() > 20);
    }
}

#[test]
fn it_conforms_with_a_replica() {
    let master = Redis::new();
    let _replica = Redis::replica_of(&master);
    conformance(&|| open(&format!("{}?replicas=1", master.url())));
}

#[test]
fn it_reads_well() {
    let redis = Redis::new();
    let name = "orders of 2026 {eu}";
    let all = group(Kind::Counter, name);
    block(async {
        let mut store = open(&redis.url());
        put(&mut *store, &all, None, &Record { version: 40, number: 7, text: "{\"start\":1}".into() }).await;
        let shown = redis.cli(&["HGETALL", "polyflake:{default/counter/orders of 2026 {eu}}"]);
        assert_eq!(shown, "last/version\n40\nlast/number\n7\nlast/text\n{\"start\":1}");
        // Other programs' fields do not matter, but records that were changed by hand do.
        let key = format!("polyflake:{{default/counter/{name}}}");
        redis.cli(&["HSET", &key, "note", "ours", "x/number", "5"]);
        assert_eq!(store.read(&all, None).await.unwrap().value.len(), 1);
        for (field, value) in
            [("version", "?"), ("number", "-1"), ("number", "9223372036854775808"), ("number", "1.5")]
        {
            redis.cli(&["HSET", &key, "last/version", "40", "last/number", "7"]);
            redis.cli(&["HSET", &key, &format!("last/{field}"), value]);
            for said in [
                refused(store.read(&all, None).await),
                refused(store.read(&all, Some(&["last"])).await),
                refused(store.write(&write(&all, None, &record(41, 1))).await),
                refused(store.add(&Add { group: all.clone(), floor: 8, ..add(1, 41) }).await),
            ] {
                assert!(said.contains(&key) && said.contains("not readable"), "{said}");
            }
        }
    });
}

#[test]
fn keys_of_the_former_edition_are_refused() {
    let redis = Redis::new();
    block(async {
        let mut store = open(&redis.url());
        for (group, former) in [
            (group(Kind::Space, "a@0/1ms"), "polyflake:{default/a@0/1ms}:space"),
            (orders(), "polyflake:{default/counter:orders}"),
            (group(Kind::Sequences, "inbox"), "polyflake:{default/sequences:inbox}"),
        ] {
            redis.cli(&["HSET", former, "version", "1"]);
            for names in [None, Some(&["head", "17"][..])] {
                let said = refused(store.read(&group, names).await);
                assert!(said.contains(former) && said.contains("earlier version"), "{said}");
            }
            redis.cli(&["DEL", former]);
            assert_eq!(store.read(&group, None).await.unwrap().value, []);
        }
    });
}

#[test]
fn a_write_counts_once_a_replica_has_it_and_not_before() {
    let master = Redis::new();
    let url = format!("{}?replicas=1&ttl=3s", master.url());
    block(async {
        let mut store = open(&url);
        for group in [group(Kind::Space, "a@0/1ms"), group(Kind::Sequences, "inbox"), orders()] {
            // A store that only compares versions would consider the first repeat done.
            for _ in 0..4 {
                unconfirmed(&mut *store, &write(&group, None, &record(11, 100))).await;
            }
            assert_eq!(last(&mut *open(&master.url()), &group).await, Some(record(11, 100)));
        }
        for _ in 0..4 {
            unreachable(store.add(&add(10, 12)).await);
        }

        let replica = Redis::replica_of(&master);
        for group in [group(Kind::Space, "a@0/1ms"), group(Kind::Sequences, "inbox")] {
            let write = write(&group, None, &record(11, 100));
            let written = within(&url, 60, &mut *store, async |store| store.write(&write).await).await;
            assert_eq!(written, Outcome::Written);
            let there = open(&master.url()).read(&group, None).await.unwrap().value;
            assert_eq!(there, [("last".into(), record(11, 100))]);
        }
        let sum = within(&url, 60, &mut *store, async |store| store.add(&add(10, 12)).await).await;
        assert_eq!(sum, Added::To(110));
        assert_eq!(store.facts().asynchronous_replicas, 0);

        // A replica that is connected but does not answer.
        replica.server.pause();
        for _ in 0..2 {
            unreachable(store.add(&add(10, 13)).await);
        }
        replica.server.resume();
        let sum = within(&url, 60, &mut *store, async |store| store.add(&add(10, 13)).await).await;
        assert_eq!(sum, Added::To(120));
        replica.cli(&["REPLICAOF", "NO", "ONE"]);
        let mut promoted = open(&replica.url());
        assert_eq!(last(&mut *promoted, &orders()).await, Some(record(13, 120)));
    });
}

#[test]
fn what_is_not_written_needs_no_replica() {
    let master = Redis::new();
    block(async {
        let mut store = open(&master.url());
        put(&mut *store, &orders(), None, &record(11, 100)).await;
        let mut store = open(&format!("{}?replicas=1", master.url()));
        let found = store.write(&write(&orders(), None, &record(12, 1))).await.unwrap().value;
        assert_eq!(found, Outcome::Found { record: Some(record(11, 100)), guard: None });
        let found = store.add(&Add { floor: 101, ..add(1, 13) }).await.unwrap().value;
        assert_eq!(found, Added::Found(Some(record(11, 100))));
    });
}

#[test]
fn replicas_of_a_cluster_confirm() {
    let all = Redis::cluster(1);
    let url = format!("redis-cluster://127.0.0.1:{}?replicas=1&ttl=3s", all[0].port());
    block(unconfirmed(&mut *open(&url), &write(&orders(), None, &record(11, 1))));
}

#[test]
fn counters_need_a_file_and_leases_do_not() {
    let mut redis = Redis::with(&["--appendonly", "no", "--save", "3600 1"]);
    let url = redis.url();
    let none = format!("{url}?durability=none");
    let space = group(Kind::Space, "a@0/1ms");
    block(async {
        let mut store = open(&url);
        for kind in [Kind::Counter, Kind::Sequences] {
            let group = group(kind, "orders");
            for said in [
                refused(store.read(&group, None).await),
                refused(store.write(&write(&group, None, &record(1, 1))).await),
                refused(store.add(&Add { group: group.clone(), ..add(1, 2) }).await),
            ] {
                assert!(said.contains("append-only") && said.contains("durability=none"), "{said}");
            }
            // The same connection is good enough for leases.
            store.read(&space, None).await.unwrap();
        }
        put(&mut *store, &space, None, &record(1, 1)).await;
        let mut forgetful = open(&none);
        put(&mut *forgetful, &orders(), None, &record(1, 0)).await;
        assert_eq!(forgetful.add(&add(1_000, 2)).await.unwrap().value, Added::To(1_000));
    });
    redis.server.kill();
    redis.server.start_again();
    block(async {
        // The reason: numbers 1 to 1000 would be issued again.
        assert_eq!(last(&mut *open(&none), &orders()).await, None);
        redis.cli(&["CONFIG", "SET", "appendonly", "yes"]);
        put(&mut *open(&url), &orders(), None, &record(1, 0)).await;
    });
}

#[test]
fn counters_need_a_server_that_drops_no_keys() {
    let redis = Redis::with(&["--appendonly", "yes", "--maxmemory-policy", "allkeys-lru"]);
    // Managed services refuse CONFIG.
    redis.cli(&["ACL", "SETUSER", "default", "-config"]);
    block(async {
        let mut store = open(&redis.url());
        store.read(&group(Kind::Space, "a@0/1ms"), None).await.unwrap();
        let said = refused(store.read(&orders(), None).await);
        assert!(said.contains("allkeys-lru") && said.contains("durability=none"), "{said}");
        open(&format!("{}?durability=none", redis.url())).read(&orders(), None).await.unwrap();
    });
}

#[test]
fn a_user_with_few_rights_is_enough() {
    let redis = Redis::new();
    let rights = "+@read +@write +@scripting +info +time +wait";
    let mut user = vec!["ACL", "SETUSER", "polyflake", "on", ">hunter2-of-polyflake", "~polyflake:*"];
    user.extend(rights.split(' '));
    redis.cli(&user);
    redis.cli(&["ACL", "SETUSER", "default", "off"]);
    let url = redis.url().replace("//", "//polyflake:hunter2-of-polyflake@");
    block(async {
        let mut store = open(&url);
        put(&mut *store, &orders(), None, &record(1, 100)).await;
        assert_eq!(store.add(&add(10, 2)).await.unwrap().value, Added::To(110));
        assert_eq!(last(&mut *store, &orders()).await, Some(record(2, 110)));
        assert_eq!(store.groups("default", Kind::Counter).await.unwrap(), ["orders"]);
        for (wrong, code) in [
            (url.replace("polyflake@", "another@"), "WRONGPASS"),
            (url.replace("polyflake:hunter2-of-polyflake@", ""), "NOAUTH"),
        ] {
            let said = refused(open(&wrong).read(&orders(), None).await);
            assert!(said.contains("127.0.0.1") && !said.contains("hunter2"), "{code}: {said}");
        }
    });
}

#[test]
fn a_silent_sentinel_is_passed_over() {
    let redis = Redis::new();
    let sentinel = Sentinel::new(redis.port());
    let dead = silent();
    let place = format!("127.0.0.1:{},127.0.0.1:{}/mymaster", port(&dead), sentinel.server.port());
    for (ttl, attempts) in [("30s", 2), ("3s", 40)] {
        let url = format!("redis-sentinel://{place}?ttl={ttl}");
        block(within(&url, attempts, &mut *open(&url), async |store| store.read(&orders(), None).await));
    }
    // A Sentinel that is cut off may name a master that is no longer running.
    let stale = Sentinel::new(port(&dead));
    let url = format!(
        "redis-sentinel://127.0.0.1:{},127.0.0.1:{}/mymaster?ttl=30s",
        stale.server.port(),
        sentinel.server.port()
    );
    block(within(&url, 2, &mut *open(&url), async |store| store.read(&orders(), None).await));
    let alone = format!("redis-sentinel://127.0.0.1:{}/mymaster?ttl=3s", stale.server.port());
    let said = unreachable(block(open(&alone).read(&orders(), None)));
    assert!(said.contains(&format!("the master 127.0.0.1:{}: no answer", port(&dead))), "{said}");
}

#[test]
fn a_silent_seed_of_a_cluster_is_passed_over() {
    let all = Redis::cluster(1);
    let dead = silent();
    for (ttl, attempts) in [("30s", 2), ("3s", 40)] {
        let (first, second) = (port(&dead), all[0].port());
        let url = format!("redis-cluster://127.0.0.1:{first},127.0.0.1:{second}?ttl={ttl}");
        let mut store = open(&url);
        block(within(&url, attempts, &mut *store, async |store| store.read(&orders(), None).await));
        let said = unreachable(block(open(&url.replace(&second.to_string(), "1")).read(&orders(), None)));
        assert!(said.contains(&format!("127.0.0.1:{first}: ")) && said.contains("127.0.0.1:1: "), "{said}");
    }
}

#[test]
fn every_host_that_is_silent_ends_in_an_error() {
    let dead = silent();
    for url in [
        format!("redis://127.0.0.1:{}/0?ttl=3s", port(&dead)),
        format!("redis-sentinel://127.0.0.1:{}/mymaster?ttl=3s", port(&dead)),
        format!("redis-cluster://127.0.0.1:{}?ttl=3s", port(&dead)),
    ] {
        let said = unreachable(block(open(&url).read(&orders(), None)));
        assert!(said.contains("no answer"), "{said}");
    }
}

/// Forwards connections to a port. Connections numbered below `frozen` pass on nothing more.
struct Freezer {
    port: u16,
    frozen: Arc<AtomicUsize>,
    made: Arc<AtomicUsize>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Freezer {
    fn new(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let it = Self {
            port: port(&listener),
            frozen: Arc::default(),
            made: Arc::default(),
            open: Arc::default(),
        };
        let (frozen, made, open) = (Arc::clone(&it.frozen), Arc::clone(&it.made), Arc::downgrade(&it.open));
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Some(open) = open.upgrade() else { return };
                let at = made.fetch_add(1, Ordering::SeqCst);
                let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
                open.lock().unwrap().extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
                let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
                for (mut from, mut to) in [(client, server), back] {
                    let frozen = Arc::clone(&frozen);
                    thread::spawn(move || {
                        let mut buffer = [0; 4096];
                        while let Ok(length @ 1..) = from.read(&mut buffer) {
                            if at >= frozen.load(Ordering::SeqCst) {
                                let _ = to.write_all(&buffer[..length]);
                            }
                        }
                    });
                }
            }
        });
        it
    }

    fn freeze(&self) {
        self.frozen.store(self.made.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.open = Arc::default();
        // This connection wakes the thread, which then exits.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

#[test]
fn a_connection_that_died_while_idle_is_replaced() {
    let redis = Redis::new();
    let freezer = Freezer::new(redis.port());
    let url = format!("redis://127.0.0.1:{}/0?ttl=3s", freezer.port);
    block(async {
        let mut store = open(&url);
        let write = write(&orders(), None, &record(1, 7));
        within(&url, 40, &mut *store, async |store| store.write(&write).await).await;
        freezer.freeze();
        // This is longer than a renewal takes. Only the store itself ends the call.
        thread::sleep(Duration::from_millis(1_200));
        let mut said = Vec::new();
        for _ in 0..40 {
            match tokio::time::timeout(Duration::from_secs(60), store.read(&orders(), None)).await {
                Ok(Ok(answer)) => return assert_eq!(answer.value, [("last".into(), record(1, 7))]),
                Ok(Err(error)) => said.push(error),
                Err(error) => panic!("it waits for a dead connection: {error}"),
            }
        }
        panic!("{said:?}");
    });
}

#[test]
fn only_a_first_replica_is_no_loss() {
    let mut master = Redis::new();
    block(async {
        let mut store = open(&master.url());
        put(&mut *store, &orders(), None, &record(11, 100)).await;
        let first = incarnation(&mut *store).await;
        assert_eq!((store.facts().can_forget, store.facts().asynchronous_replicas), (true, 0));

        let replica = Redis::replica_of(&master);
        let attached = incarnation(&mut *store).await;
        assert_ne!(attached, first);
        assert!(store.has_kept_all(&first, &attached) && store.has_kept_all(&first, &first));
        assert_eq!(store.facts().asynchronous_replicas, 1);

        // A replica is refused. Once promoted, it lacks the writes that had not reached it.
        let mut other = open(&replica.url());
        assert!(refused(other.read(&orders(), None).await).contains("replica"));
        replica.cli(&["REPLICAOF", "NO", "ONE"]);
        let promoted = incarnation(&mut *other).await;
        assert!(!store.has_kept_all(&first, &promoted) && !store.has_kept_all(&attached, &promoted));

        // The same server process, after it copied everything from another server and so lost a write.
        put(&mut *store, &orders(), Some(11), &record(10, 200)).await;
        master.cli(&["REPLICAOF", "127.0.0.1", &replica.port().to_string()]);
        assert!(unreachable(store.read(&orders(), None).await).contains("failover"));
        assert!(refused(store.read(&orders(), None).await).contains("replica"));
        master.wait_for("master_link_status:up");
        master.cli(&["REPLICAOF", "NO", "ONE"]);
        let back = incarnation(&mut *store).await;
        let run = |it: &str| it.split('/').next().map(ToOwned::to_owned);
        assert_eq!(run(&back), run(&first));
        for before in [&first, &attached, &promoted] {
            assert!(!store.has_kept_all(before, &back), "{before} {back}");
        }

        // Redis forgets that it took over once it has had no replica for a while.
        master.cli(&["CONFIG", "SET", "repl-backlog-ttl", "1"]);
        drop(replica);
        master.wait_for("repl_backlog_active:0");
        let alone = incarnation(&mut *store).await;
        let mut replica = Redis::replica_of(&master);
        let followed = incarnation(&mut *store).await;
        assert_eq!(
            [&alone, &followed].map(|it| (run(it), it.split('/').count())),
            [(run(&first), 2), (run(&first), 2)]
        );
        for now in [&alone, &followed] {
            for before in [&first, &attached, &promoted, &back] {
                assert!(!store.has_kept_all(before, now), "{before} {now}");
            }
        }

        // A replica would follow the restarted server, whose replication ID would then change at any time.
        replica.server.kill();
        master.server.kill();
        master.server.start_again();
        unreachable(store.read(&orders(), None).await);
        let restarted = incarnation(&mut *store).await;
        for before in [&first, &attached, &back] {
            assert!(!store.has_kept_all(before, &restarted), "{before} {restarted}");
        }

        // This leaves the incarnation unchanged but deletes the whole group.
        master.cli(&["FLUSHALL"]);
        let answer = store.read(&orders(), None).await.unwrap();
        assert_eq!((answer.incarnation, answer.value), (restarted, vec![]));
        let found = store.write(&write(&orders(), Some(11), &record(12, 1))).await.unwrap().value;
        assert_eq!(found, Outcome::Found { record: None, guard: None });
    });
}

#[test]
fn a_slot_that_moves_is_followed() {
    let all = Redis::cluster(3);
    let url = format!("redis-cluster://127.0.0.1:{}", all[0].port());
    let key = "polyflake:{default/counter/orders}";
    block(async {
        let mut store = open(&url);
        put(&mut *store, &orders(), None, &record(1, 100)).await;
        let slot = &*all[0].cli(&["CLUSTER", "KEYSLOT", key]);
        let at = slot.parse::<usize>().unwrap() / (16_384 / 3);
        let (from, to) = (&all[at], &all[(at + 1) % 3]);
        let ids = [from, to].map(|it| it.cli(&["CLUSTER", "MYID"]));
        to.cli(&["CLUSTER", "SETSLOT", slot, "IMPORTING", &ids[0]]);
        from.cli(&["CLUSTER", "SETSLOT", slot, "MIGRATING", &ids[1]]);
        assert_eq!(store.add(&add(10, 2)).await.unwrap().value, Added::To(110));
        from.cli(&["MIGRATE", "127.0.0.1", &to.port().to_string(), key, "0", "5000"]);
        assert_eq!(from.cli(&["DBSIZE"]), "0");
        assert_eq!(store.add(&add(10, 3)).await.unwrap().value, Added::To(120));
        for redis in [to, from] {
            redis.cli(&["CLUSTER", "SETSLOT", slot, "NODE", &ids[1]]);
        }
        assert_eq!(store.add(&add(10, 4)).await.unwrap().value, Added::To(130));
        assert_eq!(last(&mut *store, &orders()).await, Some(record(4, 130)));
        assert_eq!(store.groups("default", Kind::Counter).await.unwrap(), ["orders"]);
        // The store does not return a list that lacks one server's keys.
        let mut other = open(&url.replace(&all[0].port().to_string(), &from.port().to_string()));
        drop(other.read(&orders(), None).await);
        let mut all = all;
        all[(at + 1) % 3].server.kill();
        unreachable(other.groups("default", Kind::Counter).await);
    });
}

#[test]
fn another_sort_of_server_is_named() {
    let all = Redis::cluster(3);
    let url = format!("redis-cluster://127.0.0.1:{}", all[0].port());
    block(async { put(&mut *open(&url), &orders(), None, &record(1, 100)).await });
    let errors: Vec<_> =
        all.iter().filter_map(|redis| block(open(&redis.url()).read(&orders(), None)).err()).collect();
    assert_eq!(errors.len(), 2);
    for error in errors {
        assert!(
            matches!(&error, StoreError::Refused(said) if said.contains("redis-cluster://")),
            "{error:?}"
        );
    }
}
