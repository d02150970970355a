//! Stores that cannot be used: an error within `wait` says why, and no message contains a secret.

use std::net::TcpListener;

use rusqlite::Connection;

use crate::backend::{Backend as _, Sqlite};
use crate::journals::{Holder, Journals};
use crate::servers::etcd::Etcd;
use crate::servers::free_port;
use crate::servers::mariadb::MariaDb;
use crate::servers::postgres::Postgres;
use crate::servers::redis::Redis;
use crate::servers::zookeeper::Zookeeper;

const SECRET: &str = "secret-of-this-test";

/// Addresses, each with the strings that the error must contain.
type Cases<'a> = &'a [(String, &'a [&'a str])];

fn all_are_refused(cases: Cases<'_>) {
    let journals = Journals::new();
    let start = |(url, _): &(String, &[&str])| {
        let separator = if url.contains('?') { '&' } else { '?' };
        // An attempt may take a sixth of the TTL. On a busy machine, a server may take a while to hash a password.
        journals.start(&format!("{url}{separator}ttl=30s&wait=2s&init=always"))
    };
    let mut holders: Vec<_> = cases.iter().map(&start).collect();
    for (holder, case) in holders.iter_mut().zip(cases) {
        let (url, says) = case;
        let mut error = holder.refused();
        // On a busy machine, the only attempt may get no answer. In that case, start another process.
        for _ in 0..20 {
            if !error.contains(": no answer within ") || says.contains(&"no answer ") {
                break;
            }
            *holder = start(case);
            error = holder.refused();
        }
        assert!(error.starts_with("lease_unavailable lease_unavailable: "), "{url}: {error}");
        for text in *says {
            assert!(error.contains(text), "{url}: {error}");
        }
        assert!(holder.wait().success(), "{url}");
        // The secret must not be in the message, in `Debug` or in an event, and the message must name the store.
        assert!(!holder.text().contains(SECRET), "{url}: {}", holder.text());
        let place =
            url.split(['@', '?', '/']).find(|part| part.starts_with("127.0.0.1:")).unwrap_or_default();
        assert!(error.contains(place), "{url}: {error}");
    }
}

/// A host that accepts connections but never answers.
struct Silent(TcpListener);

impl Silent {
    fn new() -> Self {
        Self(TcpListener::bind(("127.0.0.1", 0)).unwrap())
    }

    fn port(&self) -> u16 {
        self.0.local_addr().unwrap().port()
    }
}

/// Returns addresses where no server answers.
fn nobody_there(scheme: &str, path: &str, silent: &Silent) -> Vec<(String, &'static [&'static str])> {
    let user = format!("{scheme}://somebody:{SECRET}");
    vec![
        (
            format!("{user}@no-such-host.invalid/{path}"),
            &["the store cannot be reached", "no-such-host.invalid"],
        ),
        (format!("{user}@127.0.0.1:{}/{path}", free_port()), &["the store cannot be reached", "refused"]),
        (
            format!("{user}@127.0.0.1:{}/{path}", silent.port()),
            &["the store cannot be reached", "no answer "],
        ),
    ]
}

#[test]
fn by_redis() {
    let locked = Redis::with(&["--appendonly", "yes", "--requirepass", "the-password"]);
    let master = Redis::new();
    let replica = Redis::replica_of(&master);
    let silent = Silent::new();
    let mut cases = nobody_there("redis", "0", &silent);
    let at = |port: u16| format!("127.0.0.1:{port}");
    cases.extend([
        (format!("redis://:{SECRET}@{}/0", at(locked.port())), &["Password authentication failed"][..]),
        (format!("redis://{}/0", at(locked.port())), &["NOAUTH"]),
        (format!("redis://:{SECRET}@{}/99", at(master.port())), &[]),
        (replica.url(), &["it is a replica: connect to its master"]),
        (
            format!("redis://{}/0?namespace=later", at(master.port())),
            &["has format 99", "this program knows 1"],
        ),
    ]);
    // A space in a later format.
    let journals = Journals::new();
    let mut holder = journals.start(&master.address("namespace=later&ttl=3s&wait=60s"));
    holder.node();
    let key = master.cli(&["--scan", "--pattern", "polyflake:{later/space/*"]);
    let text = master.cli(&["HGET", &key, "head/text"]);
    let later = text.replace("\"format\":1", "\"format\":99");
    assert_ne!(text, later);
    master.cli(&["HSET", &key, "head/text", &later, "head/version", "99"]);
    all_are_refused(&cases);
    // A process that has a lease continues up to the bound, and then says why it stops.
    holder.tell("stream");
    let (error, _) = holder.wait_for(Holder::start(), "error ");
    assert!(error.starts_with("lease_lost "), "{error}");
    let (said, _) = holder.wait_for(Holder::start(), "event store_unreachable");
    // On a busy machine, an earlier attempt may have timed out.
    assert!(said.contains("has format 99") || said.contains("no answer within"), "{said}");
    master.cli(&["HSET", &key, "head/text", &text]);
    let mark = holder.mark();
    holder.wait_for_ids(mark, 50);
    // The server is out of memory, but may have some later.
    master.cli(&["CONFIG", "SET", "maxmemory", "1"]);
    all_are_refused(&[(format!("{}?namespace=full", master.url()), &["the store cannot be reached", "OOM"])]);
}

#[test]
fn by_etcd() {
    let etcd = Etcd::new();
    let silent = Silent::new();
    let mut cases = nobody_there("etcd", "", &silent);
    for (user, password) in [("root", "the-password"), ("guest", "another")] {
        etcd.ctl(&["user", "add", &format!("{user}:{password}")]);
    }
    etcd.ctl(&["user", "grant-role", "root", "root"]);
    etcd.ctl(&["auth", "enable"]);
    let at = format!("127.0.0.1:{}", etcd.port());
    cases.extend([
        (format!("etcd://root:{SECRET}@{at}"), &["authentication failed"][..]),
        (format!("etcd://guest:another@{at}"), &["permission denied"]),
        (format!("etcd://{at}"), &[]),
    ]);
    all_are_refused(&cases);
}

#[test]
fn by_zookeeper() {
    let zookeeper = Zookeeper::new();
    let silent = Silent::new();
    let at = format!("127.0.0.1:{}", zookeeper.port());
    zookeeper.cli(&["create /locked", "addauth digest leases:the-password", "setAcl /locked auth::cdrwa"]);
    let mut cases = nobody_there("zookeeper", "", &silent);
    cases.extend([
        (format!("zookeeper://leases:{SECRET}@{at}/locked"), &["NoAuth: the password is wrong"][..]),
        (format!("zookeeper://{at}/locked"), &["NoAuth", "give user:password@"]),
        (format!("zookeeper://{at}/another"), &["there is no /another: make it"]),
    ]);
    all_are_refused(&cases);
}

/// Gives the records a later format.
const LATER: &str = "UPDATE polyflake_records SET text = replace(text, '\"format\":1', '\"format\":99')";

#[test]
fn by_postgres() {
    let postgres = Postgres::new();
    let replica = postgres.standby();
    let silent = Silent::new();
    let at = format!("127.0.0.1:{}", postgres.port());
    let journals = Journals::new();
    let mut holder = journals.start(&postgres.address("ttl=3s&wait=60s"));
    holder.node();
    postgres.sql("test", LATER);
    let mut cases = nobody_there("postgres", "test", &silent);
    cases.extend([
        (format!("postgres://polyflake:{SECRET}@{at}/test"), &["password authentication failed"][..]),
        (format!("postgres://polyflake@{at}/test"), &["password missing"]),
        (postgres.url().replace("/test", "/another"), &["\"another\" does not exist"]),
        (replica.url(), &["in recovery, read-only"]),
        (postgres.url(), &["99"]),
    ]);
    all_are_refused(&cases);
}

#[test]
fn by_mysql() {
    let maria = MariaDb::new();
    let silent = Silent::new();
    let at = format!("127.0.0.1:{}", maria.port());
    let journals = Journals::new();
    let mut holder = journals.start(&maria.address("ttl=3s&wait=60s"));
    holder.node();
    maria.sql(&LATER.replace("polyflake_records", "test.polyflake_records"));
    let mut cases = nobody_there("mysql", "test", &silent);
    cases.extend([
        (format!("mysql://polyflake:{SECRET}@{at}/test"), &["Access denied for user"][..]),
        (maria.url().replace("/test", "/another"), &["another"]),
        (maria.url(), &["99"]),
    ]);
    all_are_refused(&cases);
    maria.sql("SET GLOBAL read_only = 1");
    all_are_refused(&[(format!("{}?namespace=read-only", maria.url()), &["read-only"])]);
}

#[test]
fn by_sqlite() {
    let sqlite = Sqlite::begin();
    let journals = Journals::new();
    let mut holder = journals.start(&sqlite.address("ttl=3s&wait=60s"));
    holder.node();
    let connection = Connection::open(sqlite.path()).unwrap();
    connection.execute(LATER, []).unwrap();
    let text = journals.folder().join("text.db");
    std::fs::write(&text, "This is no database, whatever its name says. ".repeat(50)).unwrap();
    let folder = journals.folder().display();
    all_are_refused(&[
        (sqlite.url(), &["99"]),
        (format!("sqlite://{}", text.display()), &["the store cannot be used", "not a database"]),
        (format!("sqlite://{folder}/no/such/folder.db"), &["No such file"]),
        ("sqlite:///proc/leases.db".into(), &["a file system of type 0x9fa0"]),
    ]);
}

/// Waiting would not help, since the fence is reached only after the wait is over.
#[test]
fn a_fence_that_is_later_than_the_wait() {
    let (redis, journals) = (Redis::new(), Journals::new());
    let mut holder = journals.start(&format!("{}?ttl=1h&wait=30m", redis.url()));
    let error = holder.refused();
    assert!(error.starts_with("lease_unavailable "), "{error}");
    assert!(
        error.contains("is new, or has lost all records of leases: no node can be leased for "),
        "{error}"
    );
}
