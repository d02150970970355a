//! Records.

use std::thread::sleep;
use std::time::{Duration, Instant};

use polyflake_coordination::records::{
    Add, Added, Answer, Group, Kind, Named, Outcome, Record, Store, Write, conformance,
};
use polyflake_coordination::stores::{PostgresStore, schema};
use polyflake_coordination::{Address, Scheme, StoreError};

use crate::servers::pgbouncer::PgBouncer;
use crate::servers::postgres::Postgres;
use crate::support::block;

/// These tests' servers do not wait for the disk.
fn open(url: &str) -> Box<dyn Store> {
    open_with(&format!("{url}?durability=none"))
}

fn open_with(url: &str) -> Box<dyn Store> {
    Box::new(PostgresStore::of(&Address::parse(url).unwrap()).unwrap())
}

fn group() -> Group {
    Group { namespace: "default".into(), kind: Kind::Space, name: "a space".into() }
}

fn record(version: u64) -> Record {
    Record { version, number: version, text: "{}".into() }
}

fn write(name: &str, expected: Option<u64>, version: u64) -> Write {
    Write { group: group(), name: name.into(), expected, guard: None, new: record(version) }
}

/// Reads on a new connection, since a connection cannot outlive its runtime.
fn read(store: &mut dyn Store) -> Result<Answer<Named>, StoreError> {
    store.disconnect();
    block(async { store.read(&group(), None).await })
}

fn put(store: &mut dyn Store, write: &Write) -> Result<Answer<Outcome>, StoreError> {
    store.disconnect();
    block(async { store.write(write).await })
}

fn refused<T: std::fmt::Debug>(result: Result<T, StoreError>) -> String {
    let Err(StoreError::Refused(text)) = result else { panic!("{result:?}") };
    assert!(!text.contains("secret"), "{text}");
    text
}

#[test]
fn it_does_what_a_store_must() {
    let server = Postgres::new();
    conformance(&|| open(&server.url()));
    let comment = server.sql("test", "SELECT obj_description('public.polyflake_records'::regclass)");
    assert_eq!(comment, "Polyflake: leases of nodes, counters and sequences");
}

#[test]
fn it_does_so_through_a_pooler() {
    let server = Postgres::new();
    server.sql("test", "ALTER ROLE polyflake SET synchronous_commit = off");
    let pooler = PgBouncer::new(server.server.port());
    conformance(&|| open(&pooler.url()));
    // No setting outlasted its transaction.
    let mut command = crate::servers::unprivileged("psql", server.server.folder());
    command.args(["-X", "-q", "-A", "-t", &pooler.url(), "-c"]);
    command.arg("SELECT current_setting('synchronous_commit'), current_setting('lock_timeout')");
    assert_eq!(crate::servers::run(command), "off|0");
}

/// The server keeps the prepared statement for `add`, unless a pooler could give the connection to another client.
#[test]
fn a_statement_is_kept_by_the_server_only_without_a_pooler() {
    let server = Postgres::with(&[
        "-c",
        "log_statement=mod",
        "-c",
        "logging_collector=on",
        "-c",
        "log_directory=.",
        "-c",
        "log_filename=statements.log",
    ]);
    let pooler = PgBouncer::new(server.server.port());
    for (url, is_kept) in [(server.url(), true), (pooler.url(), false)] {
        server.sql("test", "DROP TABLE IF EXISTS public.polyflake_records");
        let mut store = open(&url);
        block(async {
            store.write(&write("1", None, 10)).await.unwrap();
            for version in 11..14 {
                let add = Add {
                    group: group(),
                    name: "1".into(),
                    text: "{}".into(),
                    floor: 0,
                    count: 5,
                    limit: 1_000,
                    version,
                };
                let sum = 5 * (version - 10) + 10;
                assert_eq!(store.add(&add).await.unwrap().value, Added::To(sum));
            }
        });
        let log = server.server.folder().join("data/statements.log");
        let deadline = Instant::now() + Duration::from_secs(60);
        let lines = loop {
            let log = std::fs::read_to_string(&log).unwrap();
            let adds: Vec<String> =
                log.lines().filter(|line| line.contains("number = number +")).map(Into::into).collect();
            if adds.len() >= 3 {
                break adds;
            }
            assert!(Instant::now() < deadline, "{log}");
            sleep(Duration::from_millis(50));
        };
        assert!(lines.iter().all(|line| line.contains("execute <unnamed>") != is_kept), "{lines:?}");
        std::fs::write(&log, "").unwrap();
    }
}

#[test]
fn it_does_so_for_a_role_with_another_isolation() {
    let server = Postgres::new();
    for isolation in ["repeatable read", "serializable"] {
        server
            .sql("test", &format!("ALTER ROLE polyflake SET default_transaction_isolation = '{isolation}'"));
        conformance(&|| open(&server.url()));
    }
}

/// A change to the guard begins before a write under that guard, and commits after the write has begun.
#[test]
fn a_guard_that_is_being_changed_is_waited_for() {
    let server = Postgres::new();
    for isolation in ["read committed", "repeatable read", "serializable"] {
        server.sql(
            "test",
            &format!(
                "ALTER ROLE polyflake SET default_transaction_isolation = '{isolation}'; \
                 DROP TABLE IF EXISTS public.polyflake_records"
            ),
        );
        let mut store = open(&server.url());
        block(async {
            assert_eq!(store.write(&write("head", None, 1)).await.unwrap().value, Outcome::Written);
            let mut node = write("1", None, 10);
            node.guard = Some(("head".into(), 1));
            assert_eq!(store.write(&node).await.unwrap().value, Outcome::Written);
            let (mut other, connection) =
                tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
            let connection = tokio::spawn(connection);
            for (name, expected, version) in [("2", None, 1), ("1", Some(10), 2)] {
                let change = "BEGIN; UPDATE polyflake_records SET version = version + 1 WHERE name = 'head'";
                other.batch_execute(change).await.unwrap();
                let mut node = write(name, expected, 20);
                node.guard = Some(("head".into(), version));
                let committing = tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    other.batch_execute("COMMIT").await.unwrap();
                    other
                });
                let first = store.write(&node).await;
                other = committing.await.unwrap();
                let found = match first {
                    // The commit came after the one-second wait for the lock.
                    Err(StoreError::Unreachable(_)) => store.write(&node).await,
                    found => found,
                };
                let guard = Some(Record { number: 1, ..record(version + 1) });
                let record = expected.map(record);
                assert_eq!(found.unwrap().value, Outcome::Found { record, guard }, "{isolation}");
            }
            drop(other);
            connection.await.unwrap().unwrap();
        });
    }
}

#[test]
fn a_row_that_somebody_locked_is_not_waited_for_without_end() {
    let server = Postgres::new();
    block(async {
        let mut store = open(&server.url());
        store.write(&write("head", None, 1)).await.unwrap();
        let runtime = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls).await.unwrap();
        let (other, connection) = runtime;
        let connection = tokio::spawn(connection);
        other.batch_execute("BEGIN; SELECT FROM polyflake_records FOR UPDATE").await.unwrap();
        let locked = store.write(&write("head", Some(1), 2)).await;
        let Err(StoreError::Unreachable(text)) = locked else { panic!("{locked:?}") };
        assert!(text.contains("lock timeout"), "{text}");
        other.batch_execute("ROLLBACK").await.unwrap();
        assert_eq!(store.write(&write("head", Some(1), 2)).await.unwrap().value, Outcome::Written);
        drop(other);
        connection.await.unwrap().unwrap();
    });
}

/// Two roles that each had their own schema once had separate tables, and so two sets of leases in one database.
#[test]
fn two_roles_with_schemas_have_one_table() {
    let server = Postgres::new();
    for role in ["one", "two"] {
        server.sql(
            "test",
            &format!("CREATE ROLE {role} LOGIN PASSWORD 'secret'; CREATE SCHEMA {role} AUTHORIZATION {role}"),
        );
        server.sql("test", &format!("GRANT CREATE ON SCHEMA public TO {role}"));
    }
    let url = |role: &str| server.url().replace("polyflake:secret-of-polyflake", &format!("{role}:secret"));
    block(async {
        let mut one = open(&url("one"));
        assert_eq!(one.write(&write("head", None, 1)).await.unwrap().value, Outcome::Written);
        server.sql("test", "GRANT SELECT, INSERT, UPDATE ON public.polyflake_records TO two");
        let mut two = open(&url("two"));
        let found = two.write(&write("head", None, 2)).await.unwrap().value;
        assert_eq!(found, Outcome::Found { record: Some(record(1)), guard: None });
    });
    // If a second table exists nevertheless, it is not mistaken for the first.
    server.sql("test", "CREATE TABLE two.polyflake_records AS TABLE public.polyflake_records");
    for (more, says) in [
        (
            "",
            "two.polyflake_records is on the role's search_path, but this address uses public.polyflake_records",
        ),
        (
            "&schema_name=two",
            "public.polyflake_records is on the role's search_path, but this address uses two.",
        ),
    ] {
        let text = refused(read(&mut *open_with(&format!("{}?durability=none{more}", url("two")))));
        assert!(text.contains(says), "{text}");
    }
    // The second table is not on the other role's search path.
    assert_eq!(read(&mut *open(&url("one"))).unwrap().value.len(), 1);
    server.sql("test", "ALTER ROLE two SET search_path = two; DROP TABLE two.polyflake_records");
    let mut two = open_with(&format!("{}?durability=none&schema_name=two", url("two")));
    assert_eq!(read(&mut *two).unwrap().value, []);
    put(&mut *two, &write("head", None, 3)).unwrap();
    assert_eq!(server.sql("test", "SELECT version FROM two.polyflake_records"), "3");
    server.sql("test", "DROP TABLE two.polyflake_records");
    let text = refused(block(async {
        open_with(&format!("{}?durability=none&schema_name=none", url("two")))
            .write(&write("head", None, 1))
            .await
    }));
    assert!(text.contains("schema \"none\" does not exist"), "{text}");
}

#[test]
fn tables_of_a_former_version_are_refused() {
    let server = Postgres::new();
    server.sql("test", "CREATE TABLE public.polyflake_nodes (node bigint)");
    let text = refused(read(&mut *open(&server.url())));
    assert!(text.contains("the table public.polyflake_nodes is from an earlier version"), "{text}");
}

#[test]
fn a_role_with_few_rights() {
    let server = Postgres::new();
    server.sql("test", "REVOKE CREATE ON SCHEMA public FROM PUBLIC; ALTER SCHEMA public OWNER TO postgres");
    let mut store = open(&server.url());
    assert_eq!(read(&mut *store).unwrap().value, []);
    let text = refused(put(&mut *store, &write("head", None, 1)));
    assert!(text.contains("no table \"public\".polyflake_records"), "{text}");
    assert!(text.contains("`polyflake schema postgres`"), "{text}");
    let (table, grants) = schema(Scheme::Postgres, None).unwrap();
    server.sql("test", &format!("BEGIN; {table} {grants} COMMIT"));
    works_with_few_rights(&mut *open(&server.url()));
}

/// The command named in the message creates what the address asks for.
#[test]
fn a_role_with_few_rights_in_a_schema() {
    let server = Postgres::new();
    server.sql("test", "CREATE SCHEMA \"App\"; GRANT USAGE ON SCHEMA \"App\" TO polyflake");
    let url = format!("{}?durability=none&schema_name=App", server.url());
    let text = refused(put(&mut *open_with(&url), &write("head", None, 1)));
    assert!(text.contains("no table \"App\".polyflake_records"), "{text}");
    assert!(text.contains("`polyflake schema postgres --schema-name App`"), "{text}");
    server.sql("test", "REVOKE USAGE ON SCHEMA \"App\" FROM polyflake");
    let (table, grants) = schema(Scheme::Postgres, Some("App")).unwrap();
    server.sql("test", &format!("BEGIN; {table} {grants} COMMIT"));
    works_with_few_rights(&mut *open_with(&url));
    let tables = "SELECT schemaname FROM pg_tables WHERE tablename = 'polyflake_records'";
    assert_eq!(server.sql("test", tables), "App");
}

fn works_with_few_rights(store: &mut dyn Store) {
    block(async {
        assert_eq!(store.write(&write("head", None, 1)).await.unwrap().value, Outcome::Written);
        let mut node = write("1", None, 2);
        node.guard = Some(("head".into(), 1));
        assert_eq!(store.write(&node).await.unwrap().value, Outcome::Written);
        assert_eq!(store.write(&node).await.unwrap().value, Outcome::Written);
        assert_eq!(store.groups("default", Kind::Space).await.unwrap(), ["a space"]);
    });
}

#[test]
fn a_server_that_does_not_wait_for_the_disk_is_refused() {
    let server = Postgres::with(&["-c", "fsync=off"]);
    let text = refused(read(&mut *open_with(&server.url())));
    assert!(text.contains("fsync is off") && text.contains("set it to on"), "{text}");
    assert!(text.contains("durability=none"), "{text}");
    let mut store = open(&server.url());
    read(&mut *store).unwrap();
    assert!(store.facts().can_forget);
    let server = Postgres::new();
    let mut store = open_with(&server.url());
    assert!(store.facts().can_forget);
    read(&mut *store).unwrap();
    assert!(!store.facts().can_forget);
}

/// A deferred trigger records the setting that applies when each change commits.
#[test]
fn synchronous_commit_is_never_less_than_on() {
    let server = Postgres::new();
    let mut store = open(&server.url());
    put(&mut *store, &write("first", None, 1)).unwrap();
    server.sql(
        "test",
        "CREATE TABLE seen (name text, setting text); GRANT ALL ON seen TO polyflake; \
         CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         INSERT INTO seen VALUES (NEW.name, current_setting('synchronous_commit')); RETURN NULL; END $$; \
         CREATE CONSTRAINT TRIGGER see AFTER INSERT OR UPDATE ON public.polyflake_records \
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION see()",
    );
    for (given, seen) in
        [("off", "on"), ("local", "on"), ("remote_write", "on"), ("remote_apply", "remote_apply")]
    {
        server.sql(
            "test",
            &format!(
                "ALTER ROLE polyflake SET synchronous_commit = {given}; \
                 TRUNCATE public.polyflake_records, seen"
            ),
        );
        store.disconnect();
        block(async {
            store.write(&write("head", None, 1)).await.unwrap();
            store.write(&write("head", Some(1), 2)).await.unwrap();
            let mut node = write("node", None, 3);
            node.guard = Some(("head".into(), 2));
            store.write(&node).await.unwrap();
            let add = Add {
                group: group(),
                name: "node".into(),
                text: "{}".into(),
                floor: 0,
                count: 1,
                limit: 9,
                version: 4,
            };
            assert_eq!(store.add(&add).await.unwrap().value, Added::To(4));
        });
        let shown = server.sql("test", "SELECT string_agg(name || '=' || setting, ' ') FROM seen");
        assert_eq!(shown, format!("head={seen} head={seen} node={seen} node={seen}"));
    }
}

#[test]
fn a_table_that_a_crash_empties_is_refused() {
    let server = Postgres::new();
    let mut store = open(&server.url());
    put(&mut *store, &write("head", None, 1)).unwrap();
    server.sql("test", "ALTER TABLE public.polyflake_records SET UNLOGGED");
    let text = refused(read(&mut *store));
    assert!(text.contains("the table public.polyflake_records is unlogged"), "{text}");
    server.sql("test", "ALTER TABLE public.polyflake_records SET LOGGED");
    assert_eq!(read(&mut *store).unwrap().value.len(), 1);
}

/// An answer's rows arrive before the result of its commit.
#[test]
fn a_commit_that_fails_is_no_answer() {
    let server = Postgres::new();
    block(async {
        let mut store = open(&server.url());
        store.write(&write("head", None, 1)).await.unwrap();
        server.sql(
            "test",
            "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no'; END $$; \
             CREATE CONSTRAINT TRIGGER no AFTER INSERT OR UPDATE ON public.polyflake_records \
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION no()",
        );
        let write = store.write(&write("head", Some(1), 2)).await;
        let Err(StoreError::Unreachable(_)) = write else { panic!("{write:?}") };
    });
}

#[test]
fn only_one_that_takes_writes_answers() {
    let mut primary = Postgres::with(&["-c", "fsync=on"]);
    let url = primary.url();
    block(async {
        let mut store = open_with(&url);
        let before = store.write(&write("head", None, 1)).await.unwrap();
        assert!(!store.facts().can_forget);
        let is_unreachable = |result: Result<Answer<Named>, StoreError>| {
            let Err(StoreError::Unreachable(text)) = result else { panic!("{result:?}") };
            assert!(text.contains("in recovery, read-only or not ready"), "{text}");
        };
        let cannot_write = |result: Result<Answer<Outcome>, StoreError>| {
            is_unreachable(result.map(|answer| answer.map(|_| Named::new())));
        };
        // This also applies if the server became read-only while a connection was open.
        for disconnects in [false, true] {
            primary.sql("test", "ALTER SYSTEM SET default_transaction_read_only = on");
            primary.sql("test", "SELECT pg_reload_conf()");
            if disconnects {
                store.disconnect();
            }
            while primary.sql("test", "SHOW transaction_read_only") != "on" {}
            is_unreachable(
                eventually(async || {
                    let answer = store.read(&group(), None).await;
                    answer.is_err().then_some(answer)
                })
                .await,
            );
            cannot_write(store.write(&write("head", Some(1), 2)).await);
            cannot_write(store.write(&write("other", None, 2)).await);
            primary.sql("test", "ALTER SYSTEM RESET default_transaction_read_only");
            primary.sql("test", "SELECT pg_reload_conf()");
            eventually(async || store.read(&group(), None).await.ok()).await;
        }

        let standby = primary.standby();
        store.disconnect();
        eventually(async || {
            store.disconnect();
            store.read(&group(), None).await.unwrap();
            (store.facts().asynchronous_replicas == 1).then_some(())
        })
        .await;
        assert!(store.facts().can_forget);
        let mut store = open(&standby.url());
        is_unreachable(store.read(&group(), None).await);
        cannot_write(store.write(&write("head", Some(1), 2)).await);
        primary.server.kill();
        standby.promote();
        let after = eventually(async || store.read(&group(), None).await.ok()).await;
        assert_eq!(after.value, [("head".to_owned(), record(1))]);
        assert!(!store.has_kept_all(&before.incarnation, &after.incarnation), "{after:?}");
        assert!(store.facts().can_forget);
        let written = store.write(&write("head", Some(1), 2)).await.unwrap();
        assert_eq!((written.value, written.incarnation), (Outcome::Written, after.incarnation));
    });
}

async fn eventually<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..3000 {
        if let Some(answer) = ask().await {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it does not come to that");
}
