//! Counters in Redis.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use polyflake_coordination::{
    CounterName, CounterRecord, LAST_NUMBER, Numbers, Place, Reserve, Reserved, Schema, StoreError,
};

use super::super::counters::{self as common, listed, take};
use super::super::servers::free_port;
use super::super::servers::redis::{Redis, Sentinel};
use super::super::suite::{block, open, retry};
use super::heard_of;

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

fn last_of(numbers: &Numbers) -> u64 {
    numbers.first + (numbers.count - 1) * numbers.stride
}

fn unconfirmed<T: std::fmt::Debug>(result: &Result<T, StoreError>) {
    assert!(
        matches!(result, Err(StoreError::Unreachable(said)) if said.contains("0 of 1 replicas")),
        "{result:?}"
    );
}

fn refused<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    match result {
        Err(StoreError::Refused(said)) => said,
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_reads_well() {
    let redis = Redis::new();
    let name = named("orders of 2026 {eu}");
    block(async {
        let mut store = open(&redis.url());
        let new = CounterRecord { last: 7, version: Some(40), place: Place { index: 1, count: 2 } };
        assert!(store.put_counter(&name, None, &new).await.unwrap());
        let reserve = Reserve { count: 2, place: new.place, seen: 0 };
        let Reserved::Numbers(it) = store.reserve(&name, &reserve).await.unwrap() else { panic!() };
        assert_eq!(it, Numbers { first: 9, stride: 2, count: 2, version: Some(41) });
    });
    let key = "polyflake:{default/counter:orders of 2026 {eu}}";
    assert_eq!(redis.cli(&["KEYS", "*"]), key);
    let shown = redis.cli(&["HMGET", key, "format", "last", "version", "index", "count"]);
    assert_eq!(shown, "1\n11\n41\n1\n2");
    let updated: u64 = redis.cli(&["HGET", key, "updated_ms"]).parse().unwrap();
    let now: u64 = redis.cli(&["TIME"]).lines().next().unwrap().parse().unwrap();
    assert!(updated.abs_diff(now * 1_000) < 120_000, "{updated} {now}");
}

#[test]
fn what_is_no_record_is_refused() {
    let redis = Redis::new();
    let name = named("orders");
    let key = "polyflake:{default/counter:orders}";
    let sound = ["HSET", key, "format", "1", "last", "100", "version", "5", "index", "0", "count", "1"];
    let secret = "hunter2-of-polyflake";
    redis.cli(&["CONFIG", "SET", "requirepass", secret]);
    let cli = |arguments: &[&str]| {
        let mut all = vec!["-a", secret];
        all.extend(arguments);
        redis.cli(&all)
    };
    let url = redis.url().replace("//", &format!("//:{secret}@"));
    block(async {
        let mut store = open(&url);
        for (field, value) in [
            ("last", "many"),
            ("last", ""),
            ("last", "-1"),
            ("last", "1.5"),
            ("last", "1e3"),
            ("last", "0x10"),
            ("last", "9223372036854775808"),
            ("last", "10000000000000000000"),
            ("version", "?"),
            ("version", "18446744073709551615"),
            ("index", "1"),
            ("index", "-1"),
            ("count", "0"),
            ("count", "1025"),
            ("count", "1000000000000000001"),
        ] {
            cli(&["DEL", key]);
            cli(&sound);
            cli(&["HSET", key, field, value]);
            let before = cli(&["HGETALL", key]);
            for said in [
                refused(store.reserve(&name, &ask(1, 0)).await),
                refused(store.counter(&name).await),
                refused(store.put_counter(&name, None, &record(1, 1)).await),
                refused(store.put_counter(&name, Some(&record(100, 5)), &record(200, 6)).await),
            ] {
                assert!(said.contains(key) && said.contains("not readable as a counter"), "{field}: {said}");
                assert!(!said.contains(secret), "{said}");
            }
            assert_eq!(cli(&["HGETALL", key]), before);
        }
        for field in ["format", "last", "version", "index", "count"] {
            cli(&["DEL", key]);
            cli(&sound);
            cli(&["HDEL", key, field]);
            refused(store.reserve(&name, &ask(1, 0)).await);
        }
        // What is broken can be removed, and made again.
        assert!(store.remove_counter(&name).await.unwrap());
        assert!(store.put_counter(&name, None, &record(100, 9)).await.unwrap());
        assert_eq!(store.reserve(&name, &ask(1, 100)).await.unwrap(), numbers(101, 1, 10));

        cli(&["HSET", key, "format", "2"]);
        for said in [
            refused(store.reserve(&name, &ask(1, 0)).await),
            refused(store.counter(&name).await),
            refused(store.put_counter(&name, None, &record(1, 1)).await),
            refused(store.remove_counter(&name).await),
        ] {
            assert!(said.contains("version 2 of its form") && said.contains(key), "{said}");
        }
        cli(&["DEL", key]);
        cli(&["SET", key, "5"]);
        let said = refused(store.reserve(&name, &ask(1, 0)).await);
        assert!(said.contains("WRONGTYPE"), "{said}");
    });
}

#[test]
fn what_cannot_be_is_neither_asked_for_nor_kept() {
    let redis = Redis::new();
    let name = named("orders");
    block(async {
        let mut store = open(&redis.url());
        let wrong = [(0, 0, 1), ((1 << 32) + 1, 0, 1), (1, 0, 0), (1, 1, 1), (1, 0, 1_025)];
        for (count, index, of) in wrong {
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
        assert!(store.put_counter(&name, Some(&record(1, LAST_NUMBER)), &record(1, 3)).await.unwrap());
    });
}

/// Lua's numbers are exact to 2^53 only: all that the script counts is compared with what 128 bits say.
#[test]
fn numbers_are_exact_to_the_end() {
    let redis = Redis::with(&["--appendonly", "no"]);
    let url = format!("{}?durability=none", redis.url());
    let name = named("exact");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    // One of the first so many.
    let pick = |random: u64, of: usize| usize::try_from(random & 0xffff_ffff).unwrap() % of;
    let edges = [
        0,
        1,
        999_999_999_999_999,
        1_000_000_000_000_000,
        1_000_000_000_000_001,
        (1 << 53) - 1,
        1 << 53,
        (1 << 53) + 1,
        9_222_999_999_999_999_999,
        9_223_000_000_000_000_000,
        LAST_NUMBER - (1 << 42),
        LAST_NUMBER - 1_024,
        LAST_NUMBER - 2,
        LAST_NUMBER - 1,
        LAST_NUMBER,
    ];
    block(async {
        let mut store = open(&url);
        let mut old: Option<CounterRecord> = None;
        let (mut taken, mut ended) = (0, 0);
        for round in 0..3_000_usize {
            let last = match round % 3 {
                0 => edges[round / 3 % edges.len()],
                1 => (random() % 3_000_000_000_000_000) & LAST_NUMBER,
                _ => random() & LAST_NUMBER,
            };
            let count = [1, 2, 3, 7, 10, 1_000, 1_023, 1_024][round % 8];
            let place = Place { index: random() % count, count };
            let version = Some(edges[pick(random(), 13)] + random() % 2);
            let new = CounterRecord { last, version, place };
            assert!(store.put_counter(&name, old.as_ref(), &new).await.unwrap());
            assert_eq!(store.counter(&name).await.unwrap(), Some(new));
            let how_many = [1, 2, 100, 4_097, 1 << 32, 1 + random() % (1 << 32)][pick(random(), 6)];
            let seen = [0, last, last.saturating_sub(1)][pick(random(), 3)];
            let reserved = store.reserve(&name, &Reserve { count: how_many, place, seen }).await.unwrap();

            let [wide, stride] = [last, count].map(u128::from);
            let first = (wide + 1..=wide + stride).find(|it| it % stride == u128::from(place.index)).unwrap();
            let end = first + (u128::from(how_many) - 1) * stride;
            if end > u128::from(LAST_NUMBER) {
                assert_eq!(reserved, Reserved::Found(Some(new)), "{how_many}");
                old = Some(new);
                ended += 1;
                continue;
            }
            let [first, end] = [first, end].map(|it| u64::try_from(it).unwrap());
            let next = CounterRecord { last: end, version: version.map(|it| it + 1), place };
            let expected = Numbers { first, stride: count, count: how_many, version: next.version };
            assert_eq!(reserved, Reserved::Numbers(expected), "{new:?}");
            assert_eq!(store.counter(&name).await.unwrap(), Some(next));
            if end < LAST_NUMBER {
                // What was seen stands above it by one.
                let seen = end + 1;
                let reserved = store.reserve(&name, &Reserve { count: 1, place, seen }).await.unwrap();
                assert_eq!(reserved, Reserved::Found(Some(next)));
            }
            old = Some(next);
            taken += 1;
        }
        assert!(taken > 1_000 && ended > 100, "{taken} {ended}");

        // Number by number to the last one, and none after it.
        let start = CounterRecord { last: LAST_NUMBER - 3, version: Some(1), place: Place::ONLY };
        assert!(store.put_counter(&name, old.as_ref(), &start).await.unwrap());
        assert!(
            matches!(store.reserve(&name, &ask(4, 0)).await.unwrap(), Reserved::Found(Some(it)) if it == start)
        );
        assert_eq!(store.reserve(&name, &ask(1, 0)).await.unwrap(), numbers(LAST_NUMBER - 2, 1, 2));
        assert_eq!(store.reserve(&name, &ask(2, 0)).await.unwrap(), numbers(LAST_NUMBER - 1, 2, 3));
        let end = Reserved::Found(Some(record(LAST_NUMBER, 3)));
        for seen in [0, LAST_NUMBER, u64::MAX] {
            assert_eq!(store.reserve(&name, &ask(1, seen)).await.unwrap(), end);
        }
    });
}

#[test]
fn a_store_that_was_emptied_is_found_without_a_record() {
    let redis = Redis::new();
    let name = named("orders");
    block(async {
        let mut store = open(&redis.url());
        assert!(store.put_counter(&name, None, &record(0, 1)).await.unwrap());
        assert_eq!(store.reserve(&name, &ask(100, 0)).await.unwrap(), numbers(1, 100, 2));
        redis.cli(&["FLUSHALL"]);
        assert_eq!(store.reserve(&name, &ask(100, 100)).await.unwrap(), Reserved::Found(None));
        assert_eq!(store.counter(&name).await.unwrap(), None);
        assert!(!store.remove_counter(&name).await.unwrap());
        assert!(!store.put_counter(&name, Some(&record(100, 2)), &record(200, 3)).await.unwrap());
        // Raised by a person, above what was handed out.
        assert!(store.put_counter(&name, None, &record(100, 77)).await.unwrap());
        assert_eq!(store.reserve(&name, &ask(1, 100)).await.unwrap(), numbers(101, 1, 78));
    });
}

#[test]
fn a_restart_keeps_what_was_acknowledged() {
    let mut redis = Redis::new();
    let name = named("orders");
    block(async {
        let mut store = open(&redis.url());
        assert!(store.put_counter(&name, None, &record(0, 1)).await.unwrap());
        assert_eq!(store.reserve(&name, &ask(100, 0)).await.unwrap(), numbers(1, 100, 2));
        redis.server.kill();
        let down = store.reserve(&name, &ask(100, 100)).await;
        assert!(matches!(down, Err(StoreError::Unreachable(_))), "{down:?}");
        redis.server.start_again();
        let again = retry(&mut store, async |store| store.reserve(&name, &ask(100, 100)).await).await;
        assert_eq!(again, numbers(101, 100, 3));
    });
}

/// Waits until the replica has a counter that stands there.
fn has(replica: &Redis, last: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while replica.cli(&["HGET", "polyflake:{default/counter:orders}", "last"]) != last {
        assert!(Instant::now() < deadline, "the replica does not follow");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Two processes, and a replica that takes over without the last reserve.
#[test]
fn a_promoted_replica_that_lacks_the_last_reserve() {
    let master = Redis::new();
    let replica = Redis::replica_of(&master);
    let name = named("orders");
    block(async {
        let mut before = open(&master.url());
        assert!(before.put_counter(&name, None, &record(0, 1)).await.unwrap());
        assert_eq!(before.reserve(&name, &ask(100, 0)).await.unwrap(), numbers(1, 100, 2));
        has(&replica, "100");

        // It is cut off, and takes over later.
        replica.cli(&["REPLICAOF", "NO", "ONE"]);
        assert_eq!(before.reserve(&name, &ask(100, 100)).await.unwrap(), numbers(101, 100, 3));
        let mut after = open(&replica.url());
        // The process that has numbers up to 200 sees that they are lost, however often it asks.
        for _ in 0..2 {
            let found = after.reserve(&name, &ask(100, 200)).await.unwrap();
            assert_eq!(found, Reserved::Found(Some(record(100, 2))));
        }
        // A process that never saw them cannot know: it is given them again.
        let mut newcomer = open(&replica.url());
        assert_eq!(newcomer.reserve(&name, &ask(100, 0)).await.unwrap(), numbers(101, 100, 3));
    });
}

#[test]
fn a_promoted_replica_gives_nothing_twice_where_it_had_to_confirm() {
    let master = Redis::new();
    let replica = Redis::replica_of(&master);
    let name = named("orders");
    let url = |redis: &Redis| format!("{}?replicas=1", redis.url());
    block(async {
        assert!(open(&master.url()).put_counter(&name, None, &record(0, 1)).await.unwrap());
        let mut store = open(&url(&master));
        let first = take(&mut store, &name, &ask(100, 0)).await;
        let seen = last_of(&first);

        replica.cli(&["REPLICAOF", "NO", "ONE"]);
        // Each of these moves the old master on, and gives nobody anything.
        for seen in [seen, 0] {
            unconfirmed(&store.reserve(&name, &ask(100, seen)).await);
        }
        let Some(there) = store.counter(&name).await.unwrap() else { panic!() };
        assert_eq!(there.last, seen + 200);
        let put = CounterRecord { last: seen + 900, version: Some(50), ..there };
        unconfirmed(&store.put_counter(&name, Some(&there), &put).await);
        // The second time it finds what it wrote: no replica has that yet either.
        unconfirmed(&store.put_counter(&name, Some(&there), &put).await);
        assert_eq!(store.counter(&name).await.unwrap(), Some(put));
        // What cannot be reserved needs nobody to confirm it.
        let found = store.reserve(&name, &ask(1, put.last + 1)).await.unwrap();
        assert_eq!(found, Reserved::Found(Some(put)));

        // Whoever comes to the new master: with the highest number that it had, or with none.
        let second = Redis::replica_of(&replica);
        let mut given = BTreeSet::from_iter(listed(&first));
        for seen in [seen, 0] {
            let next = take(&mut open(&url(&replica)), &name, &ask(100, seen)).await;
            assert!(listed(&next).into_iter().all(|it| given.insert(it)), "{next:?}");
        }
        assert_eq!(given.len(), 300);
        drop(second);
    });
}

#[test]
fn a_master_that_became_a_replica() {
    let master = Redis::new();
    let replica = Redis::replica_of(&master);
    let name = named("orders");
    for replicas in [0, 1] {
        let url = format!("{}?replicas={replicas}", master.url());
        block(async {
            master.cli(&["REPLICAOF", "NO", "ONE"]);
            let mut store = open(&url);
            store.counter(&name).await.unwrap();
            master.cli(&["REPLICAOF", "127.0.0.1", &replica.port().to_string()]);
            // A failover first, and refused where it is found so.
            let late = store.reserve(&name, &ask(100, 100)).await;
            assert!(
                matches!(&late, Err(StoreError::Unreachable(said)) if said.contains("failover")),
                "{late:?}"
            );
            common::refused(&mut store, &name, "leases and counters are kept in its master").await;
        });
    }
}

#[test]
fn a_replica_that_is_back_confirms() {
    let master = Redis::new();
    let replica = Redis::replica_of(&master);
    let name = named("orders");
    block(async {
        let mut store = open(&format!("{}?replicas=1", master.url()));
        assert!(open(&master.url()).put_counter(&name, None, &record(0, 1)).await.unwrap());
        replica.server.pause();
        unconfirmed(&store.reserve(&name, &ask(100, 0)).await);
        let there = store.counter(&name).await.unwrap();
        for _ in 0..2 {
            // The second time it finds what it wrote, which the replica does not have yet either.
            unconfirmed(&store.put_counter(&name, there.as_ref(), &record(150, 9)).await);
        }
        replica.server.resume();
        let next = take(&mut store, &name, &ask(100, 0)).await;
        // Those before are nobody's.
        assert!(next.first > 150, "{next:?}");
        let key = "polyflake:{default/counter:orders}";
        let there: u64 = replica.cli(&["HGET", key, "last"]).parse().unwrap();
        assert_eq!(there, last_of(&next));
    });
}

#[test]
fn a_sentinel_names_the_new_master() {
    let mut master = Redis::new();
    let replica = Redis::replica_of(&master);
    let sentinel = Sentinel::new(master.port());
    let at = sentinel.server.port();
    let url = |replicas| format!("redis-sentinel://127.0.0.1:{at}/mymaster?replicas={replicas}");
    let name = named("orders");
    block(async {
        let mut other = open(&url(0));
        assert!(other.put_counter(&name, None, &record(0, 1)).await.unwrap());
        let mut store = open(&url(1));
        let first = take(&mut store, &name, &ask(100, 0)).await;
        heard_of(&sentinel, &replica);
        replica.wait_for("master_link_status:up");
        master.server.kill();
        // It has no replica of its own: what reads and what finds is answered, what changes is not.
        let there = retry(&mut store, async |store| store.counter(&name).await).await;
        assert_eq!(there.map(|it| it.last), Some(last_of(&first)));
        unconfirmed(&store.reserve(&name, &ask(100, last_of(&first))).await);
        let next = take(&mut other, &name, &ask(100, 0)).await;
        assert!(next.first > last_of(&first), "{next:?}");
    });
    replica.wait_for("role:master");
}

#[test]
fn names_in_a_cluster_of_three() {
    let all = Redis::cluster(3);
    let url = format!("redis-cluster://127.0.0.1:{}", all[0].port());
    let long = "ü".repeat(CounterName::MAX_NAME);
    let names = [
        "orders",
        "a b",
        "{",
        "}",
        "{}",
        "}{",
        "{}{a}",
        "}x{",
        "{{a}}",
        "a}:space",
        "'",
        "\"",
        "\\",
        "*",
        "?[a]",
        "%s",
        "$1",
        "🦆 ducks",
        "日本",
        "-",
        ".",
        "/",
        "a/counter:b",
        &long,
    ];
    block(async {
        let mut store = open(&url);
        for (at, name) in (0..).zip(names) {
            let name = named(name);
            assert!(store.put_counter(&name, None, &record(at * 1_000, 1)).await.unwrap(), "{name:?}");
        }
        for (at, name) in (0..).zip(names) {
            let counter = named(name);
            let reserved = store.reserve(&counter, &ask(2, 0)).await.unwrap();
            assert_eq!(reserved, numbers(at * 1_000 + 1, 2, 2), "{name}");
            let elsewhere = CounterName { namespace: "other".into(), ..counter.clone() };
            assert_eq!(store.counter(&elsewhere).await.unwrap(), None);
        }
        let keys = || all.iter().map(|it| it.cli(&["DBSIZE"]).parse::<usize>().unwrap());
        assert_eq!(keys().sum::<usize>(), names.len());
        assert!(keys().all(|it| it > 0), "{:?}", keys().collect::<Vec<_>>());
        for name in names {
            assert!(store.remove_counter(&named(name)).await.unwrap(), "{name}");
        }
        assert_eq!(keys().sum::<usize>(), 0);
    });
}

#[test]
fn a_cluster_without_its_replicas_confirms_nothing() {
    let all = Redis::cluster(1);
    let name = named("orders");
    block(async {
        let at = format!("redis-cluster://127.0.0.1:{}", all[0].port());
        assert!(open(&at).put_counter(&name, None, &record(0, 1)).await.unwrap());
        let mut store = open(&format!("{at}?replicas=1"));
        unconfirmed(&store.reserve(&name, &ask(5, 0)).await);
        assert_eq!(open(&at).reserve(&name, &ask(5, 0)).await.unwrap(), numbers(6, 5, 3));
    });
}

#[test]
fn every_history() {
    let redis = Redis::new();
    common::all(&|| open(&redis.url()));
}

#[test]
fn every_history_with_a_replica() {
    let redis = Redis::new();
    let replica = Redis::replica_of(&redis);
    let url = format!("{}?replicas=1", redis.url());
    common::all(&|| open(&url));
    drop(replica);
}

#[test]
fn every_history_in_a_cluster_of_three() {
    let all = Redis::cluster(3);
    let url = format!("redis-cluster://127.0.0.1:1,127.0.0.1:{}", all[0].port());
    common::all(&|| open(&url));
}

#[test]
fn every_history_behind_a_sentinel() {
    let master = Redis::new();
    let sentinel = Sentinel::new(master.port());
    let url = format!("redis-sentinel://127.0.0.1:{}/mymaster", sentinel.server.port());
    common::all(&|| open(&url));
}

#[test]
fn every_history_as_a_user_with_few_rights() {
    let redis = Redis::new();
    let (port, secret) = (redis.port(), "secret-of-polyflake");
    let password = format!(">{secret}");
    let rights = "+@read +@write +@scripting +@connection +info +time +wait";
    let mut user = vec!["ACL", "SETUSER", "counters", "on", &password, "~polyflake:*"];
    user.extend(rights.split(' '));
    redis.cli(&user);
    redis.cli(&["ACL", "SETUSER", "bare", "on", &password, "~polyflake:*", "+@read"]);
    redis.cli(&["ACL", "SETUSER", "default", "off"]);
    let url = |user: &str, password: &str| format!("redis://{user}:{password}@127.0.0.1:{port}/0");
    common::all(&|| open(&url("counters", secret)));
    block(async {
        let at = format!("127.0.0.1:{port}");
        for url in [url("counters", "secret-of-another"), url("bare", secret), redis.url()] {
            common::refused(&mut open(&url), &named("orders"), &at).await;
        }
        let url = format!("redis://counters:{secret}@127.0.0.1:{}", free_port());
        common::unreachable(&mut open(&url), &named("orders")).await;
    });
}

#[test]
fn a_server_that_may_lose_it_all_is_refused() {
    let redis = Redis::with(&["--appendonly", "no"]);
    let name = named("orders");
    block(async {
        let said = refused(open(&redis.url()).reserve(&name, &ask(1, 0)).await);
        assert!(said.contains("keeps nothing on disk") && said.contains("durability=none"), "{said}");
        let mut store = open(&format!("{}?durability=none", redis.url()));
        assert_eq!(store.reserve(&name, &ask(1, 0)).await.unwrap(), Reserved::Found(None));
        assert!(store.put_counter(&name, None, &record(0, 1)).await.unwrap());
        redis.cli(&["CONFIG", "SET", "maxmemory", "1"]);
        let full = store.reserve(&name, &ask(1, 0)).await;
        assert!(matches!(&full, Err(StoreError::Unreachable(said)) if said.contains("OOM")), "{full:?}");
        redis.cli(&["CONFIG", "SET", "maxmemory", "0"]);
        assert_eq!(store.reserve(&name, &ask(1, 0)).await.unwrap(), numbers(1, 1, 2));
    });
}
