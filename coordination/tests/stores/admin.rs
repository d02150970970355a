//! An operator's view of each store, and the changes an operator can make.

use std::sync::{Mutex, PoisonError};

use polyflake::{ErrorCode, Layout, Snowflake};
use polyflake_coordination::{
    Admin, CounterName, CounterOptions, LAST_NUMBER, LeasesOf, Place, Schema, Sequences, Space, Target,
};

use super::servers::etcd::Etcd;
use super::servers::mariadb::MariaDb;
use super::servers::postgres::Postgres;
use super::servers::redis::Redis;
use super::servers::zookeeper::Zookeeper;

fn of(url: &str, namespace: &str) -> String {
    let mark = if url.contains('?') { '&' } else { '?' };
    format!("{url}{mark}namespace={namespace}&label=one")
}

fn admin(url: &str, namespace: &str) -> Admin {
    Admin::open(&of(url, namespace)).unwrap()
}

fn layout(text: &str) -> Layout {
    Layout::parse(text).unwrap()
}

fn all(url: &str) {
    leases(url);
    sequences(url);
    counters(url);
}

/// A process can lease a given node only once, whatever the store, so the other stores' tests wait.
static NODE_77: Mutex<()> = Mutex::new(());

fn leases(url: &str) {
    let mut store = admin(url, "shop");
    let twitter = layout("twitter");
    assert_eq!(store.leases().unwrap(), []);
    let nothing = store.reset(&twitter, 3, true).unwrap_err();
    assert!(nothing.to_string().contains("no such space"), "{nothing}");

    assert!(store.init(&twitter, 0).unwrap());
    assert!(!store.init(&twitter, 0).unwrap());
    assert!(store.init(&layout("sonyflake"), 0).unwrap());
    // Namespaces whose names begin the same way are separate.
    assert!(admin(url, "shop2").init(&twitter, 0).unwrap());
    assert!(admin(url, "shop.a").init(&twitter, 0).unwrap());
    let mut spaces = ["twitter", "sonyflake"].map(|name| LeasesOf::Layout(Space::of("shop", &layout(name))));
    spaces.sort_by_key(LeasesOf::to_string);
    let found: Vec<_> = store.leases().unwrap().into_iter().map(|(of, _)| of).collect();
    assert_eq!(found, spaces);

    // The process does not have to wait, and the holder is shown.
    let alone = NODE_77.lock().unwrap_or_else(PoisonError::into_inner);
    let ids = polyflake_coordination::open(&Snowflake::builder().lease(&of(url, "shop")).node(77)).unwrap();
    let id = ids.next_id().unwrap();
    let record = |store: &mut Admin| {
        let all = store.leases().unwrap();
        let (_, listing) =
            all.into_iter().find(|(of, _)| *of.space() == Space::of("shop", &twitter)).unwrap();
        let [node] = &*listing.nodes else { panic!("{listing:?}") };
        (node.clone(), listing.now_ms, listing.space.unwrap())
    };
    let (held, now_ms, _) = record(&mut store);
    assert_eq!((held.node, &*held.label, held.is_held(now_ms, 0)), (77, "one", true));
    let refused = store.reset(&twitter, 77, false).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::LeaseUnavailable);
    assert!(refused.to_string().contains("leased by one"), "{refused}");
    assert!(store.reset(&twitter, 78, true).unwrap_err().to_string().contains("never leased"));
    assert!(store.init(&twitter, 0).unwrap_err().to_string().contains("leased already"));

    // After a forced reset, the node becomes usable at the store's current time plus the lead.
    let from_ms = store.reset(&twitter, 77, true).unwrap();
    let (free, ..) = record(&mut store);
    assert!(free.token.is_empty() && from_ms > now_ms + 29_000, "{free:?} {from_ms} {now_ms}");
    assert!(free.reserved_until > twitter.decode(id).unwrap().ticks());
    ids.close();
    drop(alone);
    assert_eq!(record(&mut store).0, free);

    let until_ms = store.fence(&twitter, 5_000).unwrap();
    let (_, now_ms, space) = record(&mut store);
    assert_eq!(space.lead_ms, 35_000);
    assert!(until_ms > now_ms + 30_000, "{until_ms} {now_ms}");
    // The fence never moves back.
    assert!(store.fence(&twitter, 0).unwrap() >= until_ms);
    // The allowed clock difference is raised as well, and the fence allows for three times that difference.
    let mut coarse = Admin::open(&format!("{}&ttl=40s&clock_difference=10s", of(url, "shop"))).unwrap();
    let until_ms = coarse.fence(&twitter, 0).unwrap();
    let (_, now_ms, space) = record(&mut store);
    assert_eq!(space.lead_ms, 40_000);
    assert!(until_ms > now_ms + 60_000, "{until_ms} {now_ms}");
}

fn sequences(url: &str) {
    let mut store = admin(url, "inboxes");
    let inbox = Target::Sequences("inbox");
    assert!(store.init(inbox, 0).unwrap());
    assert!(!store.init(inbox, 0).unwrap());
    let lead_ms = |store: &mut Admin| {
        let [(of, listing)] = &*store.leases().unwrap() else { panic!("one set of sequences") };
        assert_eq!(of.to_string(), "sequences \"inbox\"");
        (listing.space.as_ref().unwrap().lead_ms, listing.now_ms)
    };
    // The owner does not have to wait.
    let owner = Sequences::open("inbox", &of(url, "inboxes")).unwrap();
    assert_eq!(owner.next_id("alice"), Ok(1));
    assert!(store.init(inbox, 0).unwrap_err().to_string().contains("leased already"));

    // The TTL that the first owner set is raised for all owners.
    let mut longer = Admin::open(&format!("{}&ttl=40s", of(url, "inboxes"))).unwrap();
    let until_ms = longer.fence(inbox, 0).unwrap();
    let (lead_ms, now_ms) = lead_ms(&mut store);
    assert_eq!(lead_ms, 40_000);
    assert!(until_ms > now_ms + 30_000, "{until_ms} {now_ms}");
    assert!(owner.next_id("alice").unwrap() > 1);
    owner.close();
}

fn counters(url: &str) {
    let mut store = admin(url, "shop");
    assert_eq!(store.counters().unwrap(), []);
    let odd = "über/space }:x %2F*";
    let names = [("shop", odd), ("shop2", "others")];
    for (namespace, name) in names {
        let counter = polyflake_coordination::Counter::open(name, &of(url, namespace)).unwrap();
        assert_eq!(counter.next_id().unwrap(), 1);
        counter.close();
    }
    // A counter that does not exist is created.
    assert!(store.raise("orders", 500).unwrap());
    assert!(!store.raise("orders", 499).unwrap());
    assert!(store.raise(odd, LAST_NUMBER).unwrap());
    let found = store.counters().unwrap();
    let found: Vec<_> = found.iter().map(|(name, record)| (&**name, record.last, record.place)).collect();
    assert_eq!(found, [("orders", 500, Place::ONLY), (odd, LAST_NUMBER, Place::ONLY)]);

    assert!(store.raise("orders", 600).unwrap());
    let record = store.counter("orders").unwrap().unwrap();
    assert_eq!((record.last, record.place), (600, Place::ONLY));
    let orders = polyflake_coordination::Counter::open("orders", &of(url, "shop")).unwrap();
    assert_eq!(orders.next_id().unwrap(), 601);
    orders.close();
    assert!(store.remove(odd).unwrap());
    assert!(!store.remove(odd).unwrap());
    assert_eq!(store.counter(odd).unwrap(), None);
    for name in ["", "a\nb", &"x".repeat(CounterName::MAX_NAME + 1)] {
        assert_eq!(store.counter(name).unwrap_err().code(), ErrorCode::InvalidOption);
    }
    for number in [0, LAST_NUMBER + 1] {
        assert_eq!(store.raise("orders", number).unwrap_err().code(), ErrorCode::InvalidOption);
    }
}

#[cfg(unix)]
#[test]
fn of_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leases.db");
    all(&format!("sqlite://{}", path.display()));

    // In other systems' tables, each row is a counter.
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute_batch(
        "CREATE TABLE leaf_alloc (biz_tag TEXT, max_id INTEGER, step INTEGER, update_time TEXT);
         INSERT INTO leaf_alloc VALUES ('b', 101, 10, ''), ('a', 1, 10, '');
         CREATE TABLE cosid (name TEXT, last_max_id INTEGER, last_fetch_time INTEGER);
         INSERT INTO cosid VALUES ('shop.x', 7, 0), ('shop2.y', 8, 0);",
    )
    .unwrap();
    let of_schema = |schema: &str| {
        let url = format!("sqlite://{}?namespace=shop&schema={schema}", path.display());
        Admin::open(&url)
            .unwrap()
            .counters()
            .map(|all| all.into_iter().map(|(name, record)| (name, record.last)).collect::<Vec<_>>())
    };
    assert_eq!(of_schema("leaf").unwrap(), [("a".into(), 0), ("b".into(), 100)]);
    assert_eq!(of_schema("cosid").unwrap(), [("x".into(), 7)]);
    assert_eq!(of_schema("tinyid").unwrap(), []);
    let missing = Admin::open(&format!("sqlite://{}?schema=leaf", path.display()));
    let missing = missing.unwrap().raise("c", 5).unwrap_err();
    assert!(missing.to_string().contains("no such row"), "{missing}");
    assert_eq!(Schema::default(), Schema::Polyflake);
}

/// A process crashed while creating a counter on two stores. An operator who names only one of them would turn it into
/// a counter on one store.
#[cfg(unix)]
#[test]
fn of_one_store_of_several() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a.db", "b.db"].map(|name| folder.path().join(name));
    let urls = paths.each_ref().map(|path| format!("sqlite://{}", path.display()));
    let options = || urls.iter().fold(CounterOptions::new("orders"), |options, url| options.store(url));
    options().open().unwrap().close();
    for is_complete in [true, false] {
        for (path, url) in paths.iter().zip(&urls) {
            if !is_complete {
                let change = "UPDATE polyflake_records SET text = replace(text, '\"complete\":true', '\"complete\":false')";
                assert_eq!(rusqlite::Connection::open(path).unwrap().execute(change, []), Ok(1));
            }
            let mut store = Admin::open(url).unwrap();
            let before = store.counter("orders").unwrap();
            assert!(before.is_some());
            for error in [store.raise("orders", 1_000).unwrap_err(), store.remove("orders").unwrap_err()] {
                assert_eq!(error.code(), ErrorCode::CounterUnavailable);
                assert!(
                    error.to_string().contains("of 2 of the counter: a program that names all"),
                    "{error}"
                );
            }
            assert_eq!(store.counter("orders").unwrap(), before);
        }
    }
    let orders = options().open().unwrap();
    orders.raise(1_000_u64).unwrap();
    assert!(orders.next_id().unwrap() > 1_000);
    orders.close();
}

#[test]
fn of_redis() {
    let redis = Redis::new();
    all(&redis.url());
    // More keys than one reply holds, and other programs' keys.
    for n in 0..30 {
        let keys: Vec<_> =
            (0..100).flat_map(|m| [format!("polyflake:{{shop/{n}.{m}}}"), "x".into()]).collect();
        let keys: Vec<_> = ["MSET"].into_iter().chain(keys.iter().map(|key| &**key)).collect();
        redis.cli(&keys);
    }
    let mut store = admin(&redis.url(), "shop");
    assert_eq!((store.leases().unwrap().len(), store.counters().unwrap().len()), (2, 1));
}

#[test]
fn of_a_cluster_of_three() {
    let servers = Redis::cluster(3);
    all(&format!("redis-cluster://127.0.0.1:{}", servers[0].port()));
}

#[test]
fn of_postgres() {
    let server = Postgres::new();
    all(&server.url());
}

#[test]
fn of_mariadb() {
    let server = MariaDb::new();
    all(&server.url());
}

#[test]
fn of_etcd() {
    let server = Etcd::new();
    all(&server.url());
}

#[test]
fn of_zookeeper() {
    let server = Zookeeper::new();
    all(&server.url());
}

#[test]
fn of_none() {
    let error = Admin::open("redis://127.0.0.1:1/0?ttl=x").unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidOption);
    let mut nobody = Admin::open("redis://user:secret@127.0.0.1:1/0?ttl=3s").unwrap();
    for error in [nobody.leases().unwrap_err(), nobody.counters().unwrap_err()] {
        let text = error.to_string();
        assert!(text.contains("cannot be reached") && !text.contains("secret"), "{text}");
    }
}
