//! The cost of a number that counts up, with Polyflake's `Counter` and in other ways, in interleaved rounds of one
//! run: JSON Lines on standard output, progress on standard error. The servers are started here and ended here.

mod floors;
mod java;
mod measure;
mod ours;
mod stores;
mod suite;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use polyflake_test_support::servers::etcd::Etcd;
use polyflake_test_support::servers::mariadb::MariaDb;
use polyflake_test_support::servers::postgres::Postgres;
use polyflake_test_support::servers::redis::Redis;
use rustix::fs::statvfs;
use suite::Suite;

/// How many numbers a segment has where the store is not what is measured, of Polyflake and of CosId.
const STEP: u64 = 10_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (mut rounds, mut classes, mut is_right) = (9, None, true);
    for pair in arguments.chunks(2) {
        match pair {
            [option, given] if option == "--rounds" => rounds = given.parse().unwrap_or(0),
            [option, given] if option == "--java" => classes = Some(given.as_str()),
            _ => is_right = false,
        }
    }
    if !is_right || rounds == 0 {
        eprintln!("usage: polyflake-counter-benchmarks [--rounds N] [--java CLASS_PATH]");
        return ExitCode::from(2);
    }
    let mut suite = Suite::default();
    floors::add(&mut suite, in_memory());
    suite.missing("tinyid", "not on Maven Central: its server's statements for a segment are measured");
    suite.missing("Leaf", "not on Maven Central: its server's statements for a segment are measured");

    // All flush what they acknowledge: a counter whose last writes are lost gives numbers twice.
    if let Some(redis) = started(&mut suite, "Redis", "redis-server", Redis::new) {
        let url = redis.url();
        ours::in_hand(&mut suite, &url);
        ours::asked(&mut suite, "Redis", suite::REDIS, &url);
        stores::redis(&mut suite, &url);
        if let Some(classes) = classes {
            java::add(&mut suite, classes, redis.port());
        }
        suite.keep(redis);
    }
    if let Some(postgres) =
        started(&mut suite, "PostgreSQL", "/usr/lib/postgresql", || Postgres::with(&["-c", "fsync=on"]))
    {
        ours::asked(&mut suite, "PostgreSQL", suite::POSTGRES, &postgres.url());
        stores::postgres(&mut suite, &postgres.url());
        suite.keep(postgres);
    }
    if let Some(maria) = started(&mut suite, "MariaDB", "mariadbd", MariaDb::new) {
        let url = maria.url();
        ours::asked(&mut suite, "MariaDB", suite::MARIADB, &url);
        stores::mariadb(&mut suite, &url);
        ours::of_others(&mut suite, &url);
        suite.keep(maria);
    }
    let folder = tempfile::tempdir().expect("a folder for SQLite");
    let file = |name: &str| folder.path().join(name).display().to_string();
    ours::sequences(&mut suite, &format!("sqlite://{}", file("sequences.db")));
    ours::asked(&mut suite, "SQLite", suite::SQLITE, &format!("sqlite://{}", file("ours.db")));
    stores::sqlite(&mut suite, &file("theirs.db"));
    if let Some(etcd) = started(&mut suite, "etcd", "etcd", Etcd::new) {
        ours::asked(&mut suite, "etcd", suite::ETCD, &etcd.url());
        suite.keep(etcd);
    }
    suite.run(rounds);
    suite.print();
    ExitCode::SUCCESS
}

/// Puts the servers' folders in memory if there is room, so that what is measured is the stores and not this machine's disk,
/// whose flushes take many times as long, and each time another. Returns whether it did.
fn in_memory() -> bool {
    let folder = Path::new("/dev/shm");
    let room = statvfs(folder).map_or(0, |it| it.f_bavail.saturating_mul(it.f_frsize));
    room >= 2 << 30 && tempfile::env::override_temp_dir(folder).is_ok()
}

/// A server; where it cannot be had, the document says so.
fn started<T>(suite: &mut Suite, name: &str, file: &str, start: impl FnOnce() -> T) -> Option<T> {
    eprintln!("Counters: starting {name}");
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A whole path is not joined.
    if !std::env::split_paths(&path).any(|folder| folder.join(file).exists()) {
        suite.missing(name, &format!("{file} is not installed"));
        return None;
    }
    match catch_unwind(AssertUnwindSafe(start)) {
        Ok(server) => Some(server),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map_or("", String::as_str);
            suite.missing(name, &format!("does not start: {}", text.lines().next().unwrap_or_default()));
            None
        }
    }
}
