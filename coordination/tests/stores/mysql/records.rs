//! Records.

use std::thread;
use std::time::Duration;

use mysql_async::Conn;
use mysql_async::prelude::Queryable as _;
use polyflake_coordination::records::{
    Answer, Group, Kind, Named, Outcome, Record, Store, Write, conformance,
};
use polyflake_coordination::stores::{MysqlStore, schema};
use polyflake_coordination::{Address, Scheme, StoreError};

use crate::servers::mariadb::MariaDb;
use crate::support::block;

fn open(url: &str) -> Box<dyn Store> {
    Box::new(MysqlStore::of(&Address::parse(url).unwrap()).unwrap())
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
    let server = MariaDb::new();
    // These settings must not make a difference.
    server.sql("SET GLOBAL time_zone = '+05:30', sql_mode = '', tx_isolation = 'READ-UNCOMMITTED'");
    server.sql("ALTER DATABASE test CHARACTER SET latin1 COLLATE latin1_swedish_ci");
    conformance(&|| open(&server.url()));
    let comment =
        "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_NAME = 'polyflake_records'";
    assert_eq!(server.sql(comment), "Polyflake: leases of nodes, counters and sequences");
}

/// A change to the guard begins before a write under that guard, and commits after the write has begun.
#[test]
fn a_guard_that_is_being_changed_is_waited_for() {
    let server = MariaDb::new();
    let mut store = open(&server.url());
    block(async {
        assert_eq!(store.write(&write("head", None, 1)).await.unwrap().value, Outcome::Written);
        let mut node = write("1", None, 10);
        node.guard = Some(("head".into(), 1));
        assert_eq!(store.write(&node).await.unwrap().value, Outcome::Written);
        let mut other = Conn::from_url(server.url()).await.unwrap();
        for (name, expected, version) in [("2", None, 1), ("1", Some(10), 2)] {
            other.query_drop("BEGIN").await.unwrap();
            let change = "UPDATE polyflake_records SET version = version + 1 WHERE name = 'head'";
            other.query_drop(change).await.unwrap();
            let mut node = write(name, expected, 20);
            node.guard = Some(("head".into(), version));
            let committing = tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(200)).await;
                other.query_drop("COMMIT").await.unwrap();
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
            assert_eq!(found.unwrap().value, Outcome::Found { record: expected.map(record), guard });
        }
    });
}

#[test]
fn a_restart_is_a_loss_only_where_the_server_can_forget() {
    // With a binary log that is not synced to disk, commits may be lost. Without a binary log, they are not.
    for (option, can_forget) in
        [("--sync-binlog=0", true), ("--sync-binlog=1", false), ("--skip-log-bin", false)]
    {
        let mut server = MariaDb::with(&[option]);
        let mut store = open(&server.url());
        assert!(store.facts().can_forget);
        let before = put(&mut *store, &write("head", None, 1)).unwrap();
        assert_eq!(store.facts().can_forget, can_forget, "{option}");
        let again = read(&mut *store).unwrap();
        assert!(store.has_kept_all(&before.incarnation, &again.incarnation));
        server.server.stop();
        // The start time is in whole seconds.
        thread::sleep(Duration::from_secs(2));
        server.server.start_again();
        store.disconnect();
        let after = read(&mut *store).unwrap();
        assert_ne!(before.incarnation, after.incarnation);
        assert_eq!(store.has_kept_all(&before.incarnation, &after.incarnation), !can_forget, "{option}");
        // The write succeeds, and its answer carries this server's new incarnation.
        let written = put(&mut *store, &write("head", Some(1), 2)).unwrap();
        assert_eq!((written.value, written.incarnation), (Outcome::Written, after.incarnation));
    }
}

/// MariaDB's own server identifier, `server_uid`, is the same for both servers. As a result, the first server's leases
/// were once assumed to exist on its replica.
#[test]
fn two_servers_with_one_port_and_one_network_card_are_two() {
    let first = MariaDb::new();
    let port = format!("--port={}", first.server.port());
    // With asynchronous replication, the other server has a different ID.
    let second = MariaDb::with(&[&port, "--bind-address=127.0.0.2", "--server-id=2"]);
    let uid = "SELECT @@server_uid";
    assert_eq!(first.sql(uid), second.sql(uid));
    let mut store = open(&first.url());
    let before = put(&mut *store, &write("head", None, 1)).unwrap();
    let elsewhere = first.url().replace("127.0.0.1", "127.0.0.2");
    let after = put(&mut *open(&elsewhere), &write("head", None, 1)).unwrap();
    assert!(!store.has_kept_all(&before.incarnation, &after.incarnation), "{before:?} {after:?}");
}

/// This happens if a proxy switches to another server.
#[test]
fn a_server_that_changed_below_a_connection_is_noticed() {
    let server = MariaDb::new();
    let mut store = open(&server.url());
    block(async {
        let before = store.write(&write("head", None, 1)).await.unwrap();
        server.sql("SET GLOBAL server_id = 2");
        let after = store.write(&write("head", Some(1), 2)).await.unwrap();
        assert_eq!(after.value, Outcome::Written);
        assert!(!store.has_kept_all(&before.incarnation, &after.incarnation), "{after:?}");
        assert!(after.incarnation.contains(" id 2 since "), "{after:?}");
    });
}

#[test]
fn only_one_that_takes_writes_answers() {
    let server = MariaDb::new();
    block(async {
        let mut store = open(&server.url());
        store.write(&write("head", None, 1)).await.unwrap();
        server.sql("SET GLOBAL read_only = 1");
        for right in ["GRANT USAGE", "GRANT READ ONLY ADMIN"] {
            server.sql(&format!("{right} ON *.* TO polyflake@'%'"));
            for disconnects in [false, true] {
                if disconnects {
                    store.disconnect();
                }
                for result in [
                    store.read(&group(), None).await.map(drop),
                    store.write(&write("head", Some(1), 2)).await.map(drop),
                    store.write(&write("other", None, 2)).await.map(drop),
                ] {
                    let Err(StoreError::Unreachable(text)) = result else { panic!("{result:?}") };
                    assert!(text.contains("in recovery, read-only or not ready"), "{text}");
                }
            }
        }
        server.sql("SET GLOBAL read_only = 0");
        assert_eq!(store.write(&write("head", Some(1), 2)).await.unwrap().value, Outcome::Written);
    });
}

#[test]
fn an_account_with_few_rights() {
    let server = MariaDb::new();
    server.sql("CREATE DATABASE empty; GRANT SELECT, INSERT, UPDATE ON empty.* TO polyflake@'%'");
    let url = server.url().replace("/test", "/empty");
    let mut store = open(&url);
    assert_eq!(read(&mut *store).unwrap().value, []);
    let text = refused(put(&mut *store, &write("head", None, 1)));
    assert!(
        text.contains("no table polyflake_records") && text.contains("`polyflake schema mysql`"),
        "{text}"
    );
    server.sql("REVOKE SELECT, INSERT, UPDATE ON empty.* FROM polyflake@'%'");
    let (table, grants) = schema(Scheme::Mysql, None).unwrap();
    server.sql(&format!("USE empty; {table} {grants}"));
    block(async {
        let mut store = open(&url);
        assert_eq!(store.write(&write("head", None, 1)).await.unwrap().value, Outcome::Written);
        let mut node = write("1", None, 2);
        node.guard = Some(("head".into(), 1));
        assert_eq!(store.write(&node).await.unwrap().value, Outcome::Written);
        assert_eq!(store.write(&node).await.unwrap().value, Outcome::Written);
        assert_eq!(store.groups("default", Kind::Space).await.unwrap(), ["a space"]);
    });
}

#[test]
fn settings_and_tables_that_do_not_fit_are_refused() {
    let server = MariaDb::new();
    server.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
    let text = refused(read(&mut *open(&server.url())));
    assert!(text.contains("innodb_flush_log_at_trx_commit is 2") && text.contains("set it to 1"), "{text}");
    assert!(text.contains("durability=none"), "{text}");
    let mut store = open(&format!("{}?durability=none", server.url()));
    read(&mut *store).unwrap();
    assert!(store.facts().can_forget);
    server.sql(
        "SET GLOBAL innodb_flush_log_at_trx_commit = 1; CREATE TABLE test.polyflake_nodes (node BIGINT)",
    );
    let text = refused(read(&mut *open(&server.url())));
    assert!(text.contains("the table polyflake_nodes is from an earlier version"), "{text}");
}

/// This holds whatever session defaults an administrator has set.
#[test]
fn it_does_so_whatever_the_defaults_of_sessions_are() {
    let server = MariaDb::with(&["--skip-character-set-client-handshake", "--character-set-server=latin1"]);
    server.sql(
        "SET GLOBAL sql_safe_updates = 1, completion_type = 'CHAIN', autocommit = 0, sql_auto_is_null = 1, \
         sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,PAD_CHAR_TO_FULL_LENGTH,PIPES_AS_CONCAT', \
         tx_read_only = 1, default_storage_engine = 'MyISAM', tx_isolation = 'SERIALIZABLE', sql_select_limit = 1, \
         init_connect = 'BEGIN', sql_big_selects = 0, max_join_size = 1, optimizer_switch = 'derived_merge=off'",
    );
    conformance(&|| open(&server.url()));
    let engine = "SET sql_big_selects = 1; SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_NAME = 'polyflake_records'";
    assert_eq!(server.sql(engine), "InnoDB");
}

/// A short session timeout would turn each pause between two renewals into an outage.
#[test]
fn the_server_does_not_end_a_session_between_two_renewals() {
    let server = MariaDb::new();
    server.sql("SET GLOBAL wait_timeout = 1");
    let mut store = open(&server.url());
    block(async {
        store.read(&group(), None).await.unwrap();
        // This is longer than the server's timeout of one second.
        tokio::time::sleep(Duration::from_secs(3)).await;
        store.read(&group(), None).await.unwrap();
    });
}

/// With triggers, the server does not return the number that a change produces.
#[test]
fn a_table_with_triggers() {
    let server = MariaDb::new();
    let url = server.url();
    put(&mut *open(&url), &write("head", None, 1)).unwrap();
    server.sql("CREATE TABLE test.seen (at BIGINT AUTO_INCREMENT PRIMARY KEY, version BIGINT)");
    for event in ["INSERT", "UPDATE"] {
        server.sql(&format!(
            "CREATE TRIGGER test.seen_{event} AFTER {event} ON test.polyflake_records FOR EACH ROW \
             INSERT INTO test.seen (version) VALUES (NEW.version)"
        ));
    }
    conformance(&|| open(&url));
}

/// A write was once acknowledged but never committed, because the `ROLLBACK` before it had begun a new transaction.
#[test]
fn a_write_after_a_conflict_is_committed() {
    let server = MariaDb::new();
    server.sql("SET GLOBAL completion_type = 'CHAIN'");
    let mut store = open(&server.url());
    block(async {
        store.write(&write("head", None, 1)).await.unwrap();
        server.sql(
            "DELIMITER //\nCREATE TRIGGER test.once BEFORE UPDATE ON test.polyflake_records FOR EACH ROW \
             IF @did IS NULL THEN SET @did = 1; SIGNAL SQLSTATE '40001'; END IF//",
        );
        let written = store.write(&write("head", Some(1), 2)).await.unwrap();
        assert_eq!(written.value, Outcome::Written);
        assert_eq!(server.sql("SELECT version FROM test.polyflake_records"), "2");
    });
}

#[test]
fn another_engine_is_refused() {
    let server = MariaDb::with(&["--enforce-storage-engine=Aria"]);
    let text = refused(put(&mut *open(&server.url()), &write("head", None, 1)));
    assert!(text.contains("NO_ENGINE_SUBSTITUTION") && !text.contains("replica"), "{text}");
    server.sql("SET GLOBAL enforce_storage_engine = NULL");
    put(&mut *open(&server.url()), &write("head", None, 1)).unwrap();
    server.sql("ALTER TABLE test.polyflake_records ENGINE=Aria");
    // No parameter makes this acceptable.
    for url in [server.url(), format!("{}?durability=none", server.url())] {
        let text = refused(read(&mut *open(&url)));
        assert!(
            text.contains("the engine of polyflake_records is Aria") && text.contains("ENGINE=InnoDB"),
            "{text}"
        );
    }
}
