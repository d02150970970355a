//! A real server for the bindings' tests: `store_server redis` (or `postgres`, `mariadb`, `etcd`, `zookeeper`).
//!
//! Prints the server's address on one line. The line `kill` on standard input stops the server as a crash would, and
//! `start` starts it again on the same port with the same data. Each command is echoed when it is done. The server
//! stops when standard input is closed.

use std::io::{self, BufRead};

use polyflake_test_support::servers::Server;
use polyflake_test_support::servers::etcd::Etcd;
use polyflake_test_support::servers::mariadb::MariaDb;
use polyflake_test_support::servers::postgres::Postgres;
use polyflake_test_support::servers::redis::Redis;
use polyflake_test_support::servers::zookeeper::Zookeeper;

/// The same as the password of the servers' own users, so that a test can look for it in any address.
const PASSWORD: &str = "secret-of-polyflake";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    match std::env::args().nth(1).as_deref() {
        Some("redis") => {
            let mut redis = Redis::with(&["--appendonly", "yes", "--requirepass", PASSWORD]);
            let address = format!("redis://:{PASSWORD}@127.0.0.1:{}/0", redis.port());
            serve(&mut redis.server, &address)?;
        }
        Some("postgres") => {
            let mut postgres = Postgres::new();
            let address = postgres.url();
            serve(&mut postgres.server, &address)?;
        }
        Some("mariadb") => {
            let mut maria = MariaDb::new();
            let address = maria.url();
            serve(&mut maria.server, &address)?;
        }
        Some("etcd") => {
            let mut etcd = Etcd::new();
            let user = format!("root:{PASSWORD}");
            etcd.ctl(&["user", "add", &user]);
            etcd.ctl(&["user", "grant-role", "root", "root"]);
            etcd.ctl(&["auth", "enable"]);
            let address = format!("etcd://{user}@127.0.0.1:{}", etcd.port());
            serve(&mut etcd.server, &address)?;
        }
        Some("zookeeper") => {
            let mut zookeeper = Zookeeper::new();
            let address = format!("zookeeper://leases:{PASSWORD}@127.0.0.1:{}/leases", zookeeper.port());
            // No other user has any rights there.
            let user = format!("addauth digest leases:{PASSWORD}");
            zookeeper.cli(&["create /leases", &user, "setAcl /leases auth::cdrwa"]);
            serve(&mut zookeeper.server, &address)?;
        }
        _ => return Err("give one of redis, postgres, mariadb, etcd, zookeeper".into()),
    }
    Ok(())
}

/// Carries out the commands from standard input until it is closed.
fn serve(server: &mut Server, address: &str) -> io::Result<()> {
    println!("{address}");
    for line in io::stdin().lock().lines() {
        let line = line?;
        match &*line {
            "kill" => server.kill(),
            "start" => server.start_again(),
            _ => return Err(io::Error::other(format!("{line}: neither `kill` nor `start`"))),
        }
        println!("{line}");
    }
    Ok(())
}
