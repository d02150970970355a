//! PostgreSQL: on its own, behind PgBouncer, and as a primary and a standby.

mod records;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use polyflake::Snowflake;
use polyflake_coordination::records::Store;
use polyflake_coordination::stores::PostgresStore;
use polyflake_coordination::{
    Address, Counter, CounterRecord, Kind as EventKind, Schema, Sequences, StoreError, set_listener,
};
use tokio_postgres::SimpleQueryMessage;

use super::leaf_tinyid_cosid::{self, Database, Run, TABLES};
use super::records::{killed, look, paused};
use super::servers::free_port;
use super::servers::pgbouncer::PgBouncer;
use super::servers::postgres::Postgres;
use super::support::{asynchronous_replicas, block, until};

fn open(url: &str) -> Box<dyn Store> {
    Box::new(PostgresStore::new(url).unwrap())
}

/// These tests' servers do not wait for the disk.
fn of(url: &str) -> PostgresStore {
    let durability = if url.contains('?') { "&durability=none" } else { "?durability=none" };
    PostgresStore::of(&Address::parse(&format!("{url}{durability}")).unwrap()).unwrap()
}

fn refused(url: &str) -> String {
    let answer = look(of(url));
    let Err(StoreError::Refused(text)) = answer else { panic!("{url}: {answer:?}") };
    assert!(!text.contains("secret"), "{text}");
    text
}

#[test]
fn a_server_that_was_killed_is_back() {
    let mut server = Postgres::new();
    killed(&mut of(&server.url()), &mut server.server);
}

#[test]
fn a_server_that_does_not_answer() {
    let server = Postgres::new();
    paused(&mut of(&server.url()), &server.server);
}

/// Another program's client.
fn theirs(url: &str) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (client, connection) = runtime.block_on(tokio_postgres::connect(url, tokio_postgres::NoTls)).unwrap();
    runtime.spawn(connection);
    Box::new(move |statement| {
        let (mut rows, mut changed) = (Vec::new(), 0);
        for message in runtime.block_on(client.simple_query(statement)).unwrap() {
            match message {
                SimpleQueryMessage::Row(row) => {
                    rows.push((0..row.len()).map(|at| row.get(at).unwrap().parse().unwrap()).collect());
                }
                SimpleQueryMessage::CommandComplete(rows) => changed = rows,
                _ => {}
            }
        }
        (rows, changed)
    })
}

const SECONDS: &str = "extract(epoch FROM now())::bigint";

/// Connects directly, and through a pooler that gives each transaction a different connection.
#[test]
fn counters_in_tables_of_others() {
    for is_pooled in [false, true] {
        let server = Postgres::new();
        let pooler = is_pooled.then(|| PgBouncer::new(server.server.port()));
        let url = server.url();
        let connect = || {
            let url = url.clone();
            leaf_tinyid_cosid::on_a_thread(move || theirs(&url))
        };
        let database = Database { connect: &connect, begin: "BEGIN", now: "now()", seconds: SECONDS };
        let ours = pooler.as_ref().map_or_else(|| server.url(), PgBouncer::url);
        leaf_tinyid_cosid::all(&|| open(&ours), &database, &TABLES);
    }
}

/// Starts a server with one of Leaf's rows, which the user may change.
fn with_leaf() -> Postgres {
    let server = Postgres::new();
    server.sql("test", &format!("{}; GRANT ALL ON leaf_alloc TO polyflake", TABLES[0]));
    server.sql("test", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 1)");
    server
}

#[test]
fn rows_that_cannot_be_used() {
    let server = with_leaf();
    let (url, orders) = (server.url(), leaf_tinyid_cosid::counter(Schema::Leaf, "orders"));
    block(async {
        let wrong = &mut open(&url.replace("secret-of-polyflake", "wrong-secret"));
        leaf_tinyid_cosid::refused(wrong, &orders, "password authentication failed").await;
        let nobody = &mut open(&format!("postgres://a:secret@127.0.0.1:{}/test", free_port()));
        leaf_tinyid_cosid::unreachable(nobody, &orders, "Connection refused").await;
        let mut store = open(&url);
        server.sql("test", "ALTER DATABASE test SET default_transaction_read_only = on");
        leaf_tinyid_cosid::unreachable(&mut store, &orders, "in recovery, read-only or not ready").await;
        server.sql("postgres", "ALTER DATABASE test RESET default_transaction_read_only");
        store.disconnect();
        let standby = server.standby();
        leaf_tinyid_cosid::unreachable(
            &mut open(&standby.url()),
            &orders,
            "in recovery, read-only or not ready",
        )
        .await;
        assert_eq!(leaf_tinyid_cosid::take(&mut store, &orders, &leaf_tinyid_cosid::only(1)).await.first, 1);
    });
}

/// Checks that opening leases, opening a counter and opening sequences each report the replicas in an event.
fn whoever_opens_it_is_told_of_replicas(url: &str) {
    let (sender, told) = mpsc::channel();
    set_listener(Some(Box::new(move |event| {
        if event.kind == EventKind::AsynchronousReplicas {
            let _ = sender.send(event.message.clone());
        }
    })));
    let is_told = |of: &str| {
        let text = told.recv().unwrap();
        assert!(
            text.contains(&format!("has asynchronous replicas (1): one that takes over may lack {of}")),
            "{text}"
        );
        assert!(!text.contains("secret"), "{text}");
    };
    let store = format!("{url}?namespace=replicas&init=always");
    let ids = polyflake_coordination::open(&Snowflake::builder().lease(store.as_str())).unwrap();
    is_told("leases");
    let counter = Counter::open("orders", &store).unwrap();
    is_told("numbers that were given: those that run pass over them");
    let sequences = Sequences::open("inbox", &store).unwrap();
    is_told("numbers that were given: the process that has the lease");
    set_listener(None);
    ids.close();
    counter.close();
    sequences.close();
}

#[test]
fn an_asynchronous_replica_is_told() {
    let primary = Postgres::new();
    block(async {
        let mut store = open(&primary.url());
        assert_eq!(asynchronous_replicas(&mut store).await, 0);
        let _standby = primary.standby();
        // The standby may take a while to connect.
        while asynchronous_replicas(&mut store).await != 1 {
            thread::sleep(Duration::from_millis(20));
        }
        whoever_opens_it_is_told_of_replicas(&primary.url());
        // This role sees that there is a standby, but not its state. The superuser sees both.
        primary.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
        primary.sql("postgres", "SELECT pg_reload_conf()");
        let state = "SELECT sync_state FROM pg_stat_replication";
        while primary.sql("postgres", state) != "sync" {
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(asynchronous_replicas(&mut store).await, 0);
    });
}

#[test]
fn what_cannot_work_is_refused() {
    let server = Postgres::new();
    let (url, port) = (server.url(), server.server.port());
    let at = format!("127.0.0.1:{port}: ");
    let text = refused(&url.replace("secret-of-polyflake", "wrong-secret"));
    assert_eq!(text, format!("{at}password authentication failed for user \"polyflake\""));
    let text = refused(&url.replace(":secret-of-polyflake", ""));
    assert!(text.contains("password missing"), "{text}");
    assert_eq!(refused(&url.replace("/test", "/none")), format!("{at}database \"none\" does not exist"));
    let text = refused(&format!("{url}?sslmode=require"));
    assert_eq!(text, format!("{at}server does not support TLS"));

    let pooler = PgBouncer::new(port);
    let through = pooler.url();
    let text = refused(&through.replace("secret-of-polyflake", "wrong-secret"));
    assert!(text.contains("password authentication failed"), "{text}");
    let text = refused(&through.replace("/test", "/none"));
    assert!(text.contains("no such database") || text.contains("does not exist"), "{text}");

    let nobody = format!("postgres://a:secret@127.0.0.1:{}/test", free_port());
    let answer = look(of(&nobody));
    let Err(StoreError::Unreachable(text)) = answer else { panic!("{answer:?}") };
    assert!(text.contains("Connection refused") && !text.contains("secret"), "{text}");
}

/// This also applies to other systems' tables. A deferred trigger records the setting that applies when each
/// change commits.
#[test]
fn synchronous_commit_is_never_less_than_on() {
    let server = with_leaf();
    server.sql(
        "test",
        "CREATE TABLE seen (setting text); GRANT ALL ON seen TO polyflake; \
         CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$; \
         CREATE CONSTRAINT TRIGGER see AFTER INSERT OR UPDATE OR DELETE ON leaf_alloc \
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION see()",
    );
    for (given, seen) in
        [("off", "on"), ("local", "on"), ("remote_write", "on"), ("remote_apply", "remote_apply")]
    {
        server.sql("test", &format!("ALTER ROLE polyflake SET synchronous_commit = {given}; TRUNCATE seen"));
        block(async {
            let (mut store, orders) =
                (open(&server.url()), leaf_tinyid_cosid::counter(Schema::Leaf, "orders"));
            leaf_tinyid_cosid::take(&mut store, &orders, &leaf_tinyid_cosid::only(1)).await;
            let rows = leaf_tinyid_cosid::rows(&mut store);
            let now = rows.counter(&orders).await.unwrap().unwrap();
            let raised = CounterRecord { last: now.last + 9, ..now };
            assert!(rows.put_counter(&orders, &now, &raised).await.unwrap());
        });
        let shown = server.sql("test", "SELECT string_agg(setting, ' ') FROM seen");
        assert_eq!(shown, format!("{seen} {seen}"), "{given}");
    }
}

#[test]
fn certificates_are_checked_as_told() {
    let server = Postgres::new();
    server.only_tls(false);
    let (url, port, folder) = (server.url(), server.server.port(), server.server.folder().display());
    let works = |url: &str| look(of(url)).unwrap().value.is_empty();
    let named = url.replace("127.0.0.1", "localhost");
    let (ours, other) =
        (format!("sslrootcert={folder}/authority.pem"), format!("sslrootcert={folder}/other.pem"));
    assert!(works(&url) && works(&format!("{url}?sslmode=require")));
    assert!(works(&format!("{url}?sslmode=verify-ca&{ours}")));
    assert!(works(&format!("{named}?sslmode=verify-full&{ours}")));
    let text = refused(&format!("{url}?sslmode=disable"));
    assert!(text.starts_with(&format!("127.0.0.1:{port}: no pg_hba.conf entry")), "{text}");
    for (url, says) in [
        (format!("{url}?sslmode=verify-full&{ours}"), "not valid for name"),
        (format!("{url}?sslmode=require&{other}"), "UnknownIssuer"),
        (format!("{url}?sslmode=verify-ca&{other}"), "UnknownIssuer"),
        (format!("{named}?sslmode=verify-full&{other}"), "UnknownIssuer"),
        (format!("{named}?sslmode=verify-full"), "UnknownIssuer"),
    ] {
        let text = refused(&url);
        assert!(text.contains(says), "{url}: {text}");
    }

    server.only_tls(true);
    let named = named.replace(":secret-of-polyflake", "");
    let client = format!("sslcert={folder}/client.pem&sslkey={folder}/client.key");
    until(|| look(of(&format!("{named}?sslmode=require&{ours}&{client}"))));
    let text = refused(&format!("{named}?sslmode=require&{ours}"));
    assert!(text.contains("certificate"), "{text}");
}

#[test]
fn an_address_that_is_none_is_refused_without_its_secret() {
    for (url, says) in [
        ("postgres://u:secret@host:port/db", "invalid"),
        ("postgres://u:secret?@host/db", "%3F"),
        ("postgres://u:secret@host/db?sslmode=perhaps", "sslmode=perhaps is unknown"),
        ("postgres://u:secret@host/db?color=red", "color"),
        ("postgres://u:secret@host/db?sslrootcert=/no/such.pem", "/no/such.pem"),
        ("postgres://u:secret@host/db?sslcert=/no/such.pem", "go together"),
        ("postgres:///db", "no host"),
    ] {
        let refused = PostgresStore::new(url);
        let Err(StoreError::Refused(text)) = refused else { panic!("{url}") };
        assert!(text.contains(says) && !text.contains("secret"), "{text}");
    }
    let shown = format!("{:?}", open("postgres://u:secret@[::1]:5/db,?application_name=a%20b"));
    assert!(shown.contains("::1") && !shown.contains("secret"), "{shown}");
}
