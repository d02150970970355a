//! The cost of a number from a counter, with Polyflake's `Counter` and with other tools. ../harness.py tells this
//! program what to measure.

mod measure;
mod ours;
#[path = "../../rust/src/rows.rs"]
mod rows;
mod stores;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use polyflake_test_support::servers::etcd::Etcd;
use polyflake_test_support::servers::mariadb::MariaDb;
use polyflake_test_support::servers::postgres::Postgres;
use polyflake_test_support::servers::redis::Redis;
use rustix::fs::statvfs;

/// The size of a segment, for both Polyflake and CosId, if the store is not being measured.
const STEP: u64 = 10_000_000;

const ONE: &str = "one number, one thread";
const TWO: &str = "one number, two threads";
const BATCHES: &str = "batch of 1,024";
const KEYS: &str = "one of many keys";
const ASKED: &str = "each number from a store";
/// How many keys are counted: few enough to fit in a processor's caches, or far too many.
const FEW: u64 = 1_000;
const MANY: u64 = 10_000_000;

/// With the argument `servers`, starts the servers, prints their addresses as variables, and stops them when its input
/// ends. With these variables in its environment, the rows that need them are included.
fn main() {
    in_memory();
    if std::env::args().nth(1).as_deref() == Some("servers") {
        return serve();
    }
    let rows = rows::Rows::of_arguments();
    let url = |name| std::env::var(name).ok();
    ours::floors(&rows);
    ours::sequences(&rows);
    if let Some(url) = url("REDIS") {
        ours::in_hand(&rows, &url);
        ours::asked(&rows, "Redis", &url);
        stores::redis(&rows, &url);
    }
    if let Some(url) = url("POSTGRES") {
        ours::asked(&rows, "PostgreSQL", &url);
        stores::postgres(&rows, &url);
    }
    if let Some(url) = url("MARIADB") {
        ours::asked(&rows, "MariaDB", &url);
        ours::asked(&rows, "schema=leaf", &format!("{url}?schema=leaf"));
        ours::asked(&rows, "schema=tinyid", &format!("{url}?schema=tinyid"));
        stores::mariadb(&rows, &url);
    }
    let folder = tempfile::tempdir().expect("a folder for SQLite");
    let file = |name: &str| folder.path().join(name).display().to_string();
    ours::asked(&rows, "SQLite", &format!("sqlite://{}", file("ours.db")));
    stores::sqlite(&rows, &file("theirs.db"));
    if let Some(url) = url("ETCD") {
        ours::asked(&rows, "etcd", &url);
    }
}

/// Starts the servers, which all flush each write before acknowledging it: a counter that loses its last writes repeats
/// numbers.
fn serve() {
    let redis = started("Redis", "redis-server", Redis::new);
    let postgres = started("PostgreSQL", "/usr/lib/postgresql", || Postgres::with(&["-c", "fsync=on"]));
    let maria = started("MariaDB", "mariadbd", MariaDb::new);
    let etcd = started("etcd", "etcd", Etcd::new);
    if let Some(postgres) = &postgres {
        stores::make_sequences(&postgres.url());
    }
    if let Some(maria) = &maria {
        stores::make_tables(&maria.url());
    }
    for (name, url) in [
        ("REDIS", redis.as_ref().map(Redis::url)),
        ("POSTGRES", postgres.as_ref().map(Postgres::url)),
        ("MARIADB", maria.as_ref().map(MariaDb::url)),
        ("ETCD", etcd.as_ref().map(Etcd::url)),
    ] {
        if let Some(url) = url {
            println!("{name}\t{url}");
        }
    }
    println!();
    let _ = std::io::stdin().read_line(&mut String::new());
}

/// Puts the servers' folders in memory if there is room. On a disk, flushes would take up most of the time, and vary in
/// length.
fn in_memory() {
    let folder = Path::new("/dev/shm");
    let room = statvfs(folder).map_or(0, |it| it.f_bavail.saturating_mul(it.f_frsize));
    if room >= 2 << 30 {
        let _ = tempfile::env::override_temp_dir(folder);
    }
}

/// Starts a server, or prints why it could not be started.
fn started<T>(name: &str, file: &str, start: impl FnOnce() -> T) -> Option<T> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // `join` leaves an absolute path unchanged.
    if !std::env::split_paths(&path).any(|folder| folder.join(file).exists()) {
        println!("missing\t{name}\t{file} is not installed");
        return None;
    }
    let server = catch_unwind(AssertUnwindSafe(start));
    if server.is_err() {
        println!("missing\t{name}\tdoes not start");
    }
    server.ok()
}
