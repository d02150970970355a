//! Measures how long a process waits for its first ID. Run it with
//! `cargo run --release -p polyflake-coordination --example first_id`.
//!
//! Starts real servers and prints the medians over several new processes, both for a new store and for one that already
//! has the space. Given a store's address, prints only the time that this process waited, in microseconds.

use std::error::Error;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use polyflake::Snowflake;
use polyflake_test_support::servers::etcd::Etcd;
use polyflake_test_support::servers::folder;
use polyflake_test_support::servers::mariadb::MariaDb;
use polyflake_test_support::servers::postgres::Postgres;
use polyflake_test_support::servers::redis::Redis;
use polyflake_test_support::servers::zookeeper::Zookeeper;

const RUNS: usize = 15;

struct Store {
    name: &'static str,
    url: String,
    /// Empties the store, so that it is as good as new.
    clear: Box<dyn Fn()>,
    new: Vec<Duration>,
    known: Vec<Duration>,
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(address) = std::env::args().nth(1) {
        let begun = Instant::now();
        let ids = polyflake_coordination::open(&Snowflake::builder().lease(&address))?;
        ids.next_id()?;
        println!("{}", begun.elapsed().as_micros());
        ids.close();
        return Ok(());
    }
    let folder = folder();
    let file = folder.path().join("leases.db");
    let redis = Redis::new();
    // The tests' own PostgreSQL does not wait for the disk, and neither does their ZooKeeper.
    let postgres = Postgres::with(&["-c", "fsync=on"]);
    let maria = MariaDb::new();
    let etcd = Etcd::new();
    let zookeeper = Zookeeper::with(&["forceSync=yes"]);
    let store = |name, url, clear| Store {
        name,
        url,
        clear,
        new: Vec::with_capacity(RUNS),
        known: Vec::with_capacity(RUNS),
    };
    let sqlite = format!("sqlite://{}", file.display());
    let remove = move || {
        for kind in ["db", "db-wal", "db-shm"] {
            let _ = fs::remove_file(file.with_extension(kind));
        }
    };
    let mut stores = [
        store("SQLite", sqlite, Box::new(remove) as Box<dyn Fn()>),
        store("Redis", redis.url(), Box::new(move || drop(redis.cli(&["FLUSHALL"])))),
        store(
            "PostgreSQL",
            postgres.url(),
            Box::new(move || drop(postgres.sql("test", "DROP OWNED BY polyflake"))),
        ),
        store(
            "MariaDB",
            maria.url(),
            Box::new(move || drop(maria.sql("DROP DATABASE test; CREATE DATABASE test"))),
        ),
        store("etcd", etcd.url(), Box::new(move || drop(etcd.ctl(&["del", "", "--prefix"])))),
        store(
            "ZooKeeper",
            zookeeper.url(),
            Box::new(move || drop(zookeeper.cli(&["create /polyflake", "deleteall /polyflake"]))),
        ),
    ];
    for _ in 0..RUNS {
        for store in &mut stores {
            (store.clear)();
            store.new.push(first_id(&store.url)?);
            store.known.push(first_id(&store.url)?);
        }
    }
    println!("| store | the first ID after | in a new store |\n|---|---|---|");
    for mut store in stores {
        println!("| {} | {} | {} |", store.name, median(&mut store.known), median(&mut store.new));
    }
    Ok(())
}

/// Measures how long a new process waits for its first ID.
fn first_id(url: &str) -> Result<Duration, Box<dyn Error>> {
    // The address vouches that a new Redis really is new, so that the process does not have to wait.
    let output = Command::new(std::env::current_exe()?).arg(format!("{url}?init=always")).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = std::str::from_utf8(&output.stdout)?.trim();
    let micros = text.parse().map_err(|_| format!("{url}: {text} {errors}"))?;
    Ok(Duration::from_micros(micros))
}

/// Returns the median in milliseconds, with the minimum and the maximum.
fn median(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let ms = |at: usize| times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1000.0);
    let last = times.len().saturating_sub(1);
    format!("{:.1} ms ({:.1} to {:.1})", ms(last / 2), ms(0), ms(last))
}
