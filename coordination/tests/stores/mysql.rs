//! MariaDB, which Debian has in place of MySQL.

mod records;

use std::slice::from_ref;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use mysql_async::Row;
use mysql_async::prelude::Queryable;
use polyflake_coordination::stores::MysqlStore;
use polyflake_coordination::{NodeRecord, Outcome, SpaceRecord, Store, StoreError};

use super::counters;
use super::others::{self, Database, Run, TABLES_OF_MYSQL};
use super::servers::mariadb::MariaDb;
use super::servers::{free_port, unprivileged};
use super::suite::{self, Kind, block, node, prepare, retry, space};

fn open(url: &str) -> Box<dyn Store> {
    Box::new(MysqlStore::new(url).unwrap())
}

/// The error of a listing.
fn refused(url: &str) -> String {
    let listed = block(async { open(url).list(&space("default")).await });
    let Err(StoreError::Refused(text)) = listed else { panic!("{url}: {listed:?}") };
    assert!(!text.contains("secret"), "{text}");
    text
}

#[test]
fn every_history() {
    let server = MariaDb::new();
    // None of these may matter.
    server.sql("SET GLOBAL time_zone = '+05:30', sql_mode = '', tx_isolation = 'READ-UNCOMMITTED'");
    suite::all(&|| open(&server.url()), Kind { is_new: true });
    let shown = server.sql("SELECT space, node, label FROM test.polyflake_nodes WHERE namespace = 'fight'");
    assert!(shown.starts_with("timestamp:41<<22|sequence:12<<0@1288834974657/1ms\t5\thost-"), "{shown}");
    let comment = "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_NAME = 'polyflake_nodes'";
    assert_eq!(server.sql(comment), "Polyflake: which process has which node");
}

/// A client that is none of ours.
fn theirs(url: &str) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let url = url.to_owned();
    let mut client = runtime.block_on(async { mysql_async::Conn::from_url(&url).await.unwrap() });
    Box::new(move |statement| {
        runtime.block_on(async {
            let rows: Vec<Row> = client.query(statement).await.unwrap();
            let numbers = |row: &Row| (0..row.len()).map(|at| row.get(at).unwrap()).collect();
            (rows.iter().map(numbers).collect(), client.affected_rows())
        })
    })
}

#[test]
fn every_history_of_counters() {
    let server = MariaDb::new();
    // None of these may matter.
    server.sql("SET GLOBAL time_zone = '+05:30', sql_mode = '', tx_isolation = 'READ-UNCOMMITTED'");
    server.sql("ALTER DATABASE test CHARACTER SET latin1 COLLATE latin1_swedish_ci");
    // Where counters are first, leases find a new store all the same.
    let listing = || block(async { open(&server.url()).list(&space("first")).await.unwrap() });
    block(counters::made(&|| open(&server.url()), &counters::counter("first"), &counters::record(7)));
    assert!(listing().is_new);
    counters::all(&|| open(&server.url()));
    crate::sequences::all(&|| open(&server.url()));
    assert!(!listing().is_new);
    let shown = "SELECT namespace, name, last_number, ABS(TIMESTAMPDIFF(MINUTE, updated_at, UTC_TIMESTAMP())) < 60 \
                 FROM test.polyflake_counters WHERE name = 'first'";
    assert_eq!(server.sql(shown), "counters\tfirst\t7\t1");
}

#[test]
fn many_make_the_table_of_counters_at_once() {
    let server = MariaDb::new();
    for _ in 0..5 {
        counters::one_of_many_makes_it(&|| open(&server.url()));
        server.sql("DROP TABLE test.polyflake_counters");
    }
}

#[test]
fn counters_in_tables_of_others() {
    let server = MariaDb::new();
    server.sql("SET GLOBAL sql_mode = '', tx_isolation = 'READ-UNCOMMITTED'");
    let url = server.url();
    let connect = || {
        let url = url.clone();
        others::on_a_thread(move || theirs(&url))
    };
    let database = Database { connect: &connect, begin: "BEGIN", now: "now()", seconds: "unix_timestamp()" };
    others::all(&|| open(&server.url()), &database, &TABLES_OF_MYSQL);
}

#[test]
fn counters_that_cannot_work_are_refused() {
    let server = MariaDb::new();
    let (url, counter) = (server.url(), counters::counter("orders"));
    block(async {
        let wrong = &mut open(&url.replace("secret-of-polyflake", "wrong-secret"));
        counters::refused(wrong, &counter, "Access denied").await;
        let nobody = &mut open(&format!("mysql://a:secret@127.0.0.1:{}/test", free_port()));
        counters::unreachable(nobody, &counter).await;
        server.sql("CREATE DATABASE empty; GRANT SELECT, INSERT ON empty.* TO polyflake@'%'");
        let mut store = open(&url.replace("/test", "/empty"));
        let refused = store.put_counter(&counter, None, &counters::record(0)).await;
        let Err(StoreError::Refused(text)) = refused else { panic!("{refused:?}") };
        assert!(text.contains("CREATE command denied"), "{text}");
        let mut store = counters::made(&|| open(&url), &counter, &counters::record(0)).await;
        let inbox = crate::sequences::named("inbox");
        crate::sequences::made(&|| open(&url), &inbox, &crate::sequences::record(&[0])).await;

        // A replica that is read-only, for whom it is and for whom it is not.
        server.sql("SET GLOBAL read_only = 1");
        for right in ["GRANT USAGE", "GRANT READ ONLY ADMIN"] {
            server.sql(&format!("{right} ON *.* TO polyflake@'%'"));
            store.disconnect();
            counters::refused(&mut store, &counter, "a read-only replica").await;
            crate::sequences::refused(&mut store, &inbox, "a read-only replica").await;
        }
        server.sql("SET GLOBAL read_only = 0");
        assert_eq!(counters::take(&mut store, &counter, &counters::only(1)).await.first, 1);
        for (change, says) in [
            ("UPDATE test.polyflake_counters SET format = 2", "have format 2"),
            ("ALTER TABLE test.polyflake_counters CHANGE COLUMN format form INT", "have other columns"),
        ] {
            server.sql(change);
            counters::refused(&mut store, &counter, says).await;
        }
    });
}

#[test]
fn a_server_that_was_killed_is_back() {
    let mut server = MariaDb::new();
    block(async {
        let mut prepared = prepare(&|| open(&server.url()), space("default")).await;
        let mut last = node(1, 1, 1);
        assert_eq!(prepared.put(None, &last).await, Outcome::Written);
        for crash in [true, false] {
            if crash {
                server.server.kill();
            } else {
                server.server.stop();
            }
            for _ in 0..2 {
                let listed = prepared.store.list(&prepared.space).await;
                let Err(StoreError::Unreachable(text)) = listed else { panic!("{listed:?}") };
                assert!(text.starts_with(&format!("127.0.0.1:{}: ", server.server.port())), "{text}");
                prepared.store.disconnect();
            }
            server.server.start_again();
            let listing = prepared.list().await;
            assert_eq!(listing.nodes, [last.clone()]);
            // Servers without an identity of their own are another after each start.
            let now = SpaceRecord { incarnation: listing.incarnation, ..prepared.record.clone() };
            let (space, record) = (&prepared.space, &prepared.record);
            assert!(prepared.store.put_space(space, Some(record), &now).await.unwrap());
            prepared.record = now;
            let next = node(1, 2, last.reserved_until + 1);
            assert_eq!(prepared.put(Some(&last), &next).await, Outcome::Written);
            last = next;
        }
    });
}

#[test]
fn what_cannot_work_is_refused() {
    let server = MariaDb::new();
    let (url, port) = (server.url(), server.server.port());
    let at = format!("127.0.0.1:{port}: ");
    let denied = format!("{at}Access denied for user 'polyflake'@'127.0.0.1' (using password: ");
    assert_eq!(refused(&url.replace("secret-of-polyflake", "wrong-secret")), format!("{denied}YES)"));
    assert_eq!(refused(&url.replace(":secret-of-polyflake", "")), format!("{denied}NO)"));
    let text = refused(&url.replace("/test", "/none"));
    assert!(text.starts_with(&at) && text.contains("'none'"), "{text}");
    server.sql("CREATE DATABASE empty; GRANT SELECT ON empty.* TO polyflake@'%'");
    let listed = block(async {
        open(&format!("mysql://a:secret@127.0.0.1:{}/test", free_port())).list(&space("default")).await
    });
    let Err(StoreError::Unreachable(text)) = listed else { panic!("{listed:?}") };
    assert!(text.contains("Connection refused") && !text.contains("secret"), "{text}");

    block(async {
        // No right to make tables.
        let mut store = open(&url.replace("/test", "/empty"));
        let listing = store.list(&space("default")).await.unwrap();
        assert!(listing.is_new);
        let record = SpaceRecord { incarnation: listing.incarnation, lead_ms: 1, fence: 0 };
        let put = store.put_space(&space("default"), None, &record).await;
        let Err(StoreError::Refused(text)) = put else { panic!("{put:?}") };
        assert!(text.contains("CREATE command denied"), "{text}");

        // A replica that is read-only, for whom it is and for whom it is not.
        let mut prepared = prepare(&|| open(&url), space("default")).await;
        assert_eq!(prepared.put(None, &node(1, 1, 1)).await, Outcome::Written);
        server.sql("SET GLOBAL read_only = 1");
        for right in ["GRANT USAGE", "GRANT READ ONLY ADMIN"] {
            server.sql(&format!("{right} ON *.* TO polyflake@'%'"));
            prepared.store.disconnect();
            let (space, record) = (&prepared.space, &prepared.record);
            let other = suite::space("other");
            for call in 0..5 {
                let store = &mut prepared.store;
                let refused = match call {
                    0 => store.list(space).await.map(drop),
                    1 => store.put_space(space, Some(record), record).await.map(drop),
                    2 => store.put_space(&other, None, record).await.map(drop),
                    3 => store.put_node(space, record, None, &node(2, 1, 1)).await.map(drop),
                    _ => {
                        let claim = node(1, 1, 1).claim();
                        store.put_node(space, record, Some(&claim), &node(1, 2, 2)).await.map(drop)
                    }
                };
                let Err(StoreError::Refused(text)) = refused else { panic!("{right} {call} {refused:?}") };
                assert!(text.contains("a read-only replica"), "{text}");
            }
        }
        server.sql("SET GLOBAL read_only = 0");
        assert_eq!(prepared.list().await.nodes, [node(1, 1, 1)]);
    });
    server.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 0");
    assert!(refused(&url).contains("what it acknowledges may be lost"));
}

/// A change of the space's record that began before a change of a node's, and ends after it.
#[test]
fn a_fence_that_is_being_raised_is_waited_for() {
    let server = Arc::new(MariaDb::new());
    block(async {
        let mut prepared = prepare(&|| open(&server.url()), space("default")).await;
        let first = node(1, 1, 1);
        assert_eq!(prepared.put(None, &first).await, Outcome::Written);
        for (expected, new) in [(None, node(2, 2, 2)), (Some(&first), node(1, 2, 2))] {
            let other = Arc::clone(&server);
            let raising = thread::spawn(move || {
                other
                    .sql("BEGIN; UPDATE test.polyflake_spaces SET fence = fence + 1; SELECT SLEEP(1); COMMIT")
            });
            let sleeping = || {
                server.sql("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User sleep'")
            };
            while sleeping() != "1" {}
            // Its lock is waited for a second at a time.
            let (space, record, claim) = (&prepared.space, &prepared.record, expected.map(NodeRecord::claim));
            let put = retry(&mut prepared.store, async |store| {
                store.put_node(space, record, claim.as_ref(), &new).await
            });
            assert_eq!(put.await.outcome, Outcome::OtherSpace);
            raising.join().unwrap();
            let listing = prepared.list().await;
            assert_eq!(listing.nodes, from_ref(&first));
            prepared.record = listing.space.unwrap();
        }
    });
}

#[test]
fn another_format_is_refused() {
    let server = MariaDb::new();
    block(async {
        let mut prepared = prepare(&|| open(&server.url()), space("default")).await;
        for (change, says) in [
            ("UPDATE test.polyflake_spaces SET format = 2", "have format 2"),
            ("ALTER TABLE test.polyflake_spaces CHANGE COLUMN format form INT", "have other columns"),
        ] {
            server.sql(change);
            let (space, record) = (&prepared.space, &prepared.record);
            let store = &mut prepared.store;
            for refused in [
                store.list(space).await.map(drop),
                store.put_space(space, None, record).await.map(drop),
                store.put_space(space, Some(record), record).await.map(drop),
                store.put_node(space, record, None, &node(1, 1, 1)).await.map(drop),
            ] {
                let Err(StoreError::Refused(text)) = refused else { panic!("{refused:?}") };
                assert!(text.contains(says), "{text}");
            }
        }
    });
}

#[test]
fn a_table_that_is_gone_is_no_new_store() {
    let server = MariaDb::new();
    block(async {
        let mut prepared = prepare(&|| open(&server.url()), space("default")).await;
        server.sql("DROP TABLE test.polyflake_nodes");
        let (space, record) = (prepared.space.clone(), prepared.record.clone());
        let listing = prepared.store.list(&space).await;
        assert!(matches!(listing, Err(StoreError::Refused(_))), "{listing:?}");
        let put = prepared.store.put_node(&space, &record, None, &node(1, 1, 1)).await;
        assert!(matches!(put, Err(StoreError::Refused(_))), "{put:?}");
        server.sql("DELETE FROM test.polyflake_spaces");
        let listing = prepared.list().await;
        assert_eq!((listing.space, listing.is_new), (None, false));
        assert!(prepared.store.put_space(&space, None, &record).await.unwrap());
        assert_eq!(prepared.put(None, &node(1, 1, 1)).await, Outcome::Written);
        server.sql("DROP TABLE test.polyflake_spaces");
        let listing = prepared.list().await;
        assert_eq!((listing.space, listing.is_new), (None, false));
    });
}

#[test]
fn certificates_are_checked_as_told() {
    let server = MariaDb::new();
    server.sql("ALTER USER polyflake@'%' REQUIRE SSL");
    let (url, folder) = (server.url(), server.server.folder().display());
    let works = |url: &str| block(async { open(url).list(&space("default")).await.unwrap() }).is_new;
    let named = url.replace("127.0.0.1", "localhost");
    let (ours, other) = (format!("ssl-ca={folder}/authority.pem"), format!("ssl-ca={folder}/other.pem"));
    assert!(works(&format!("{url}?ssl-mode=REQUIRED")));
    assert!(works(&format!("{named}?{ours}")) && works(&format!("{named}?ssl-mode=verify_ca&{ours}")));
    assert!(works(&format!("{named}?ssl-mode=VERIFY_IDENTITY&{ours}")));
    for (url, says) in [
        (url.clone(), "Access denied"),
        (format!("{url}?ssl-mode=DISABLED"), "Access denied"),
        (format!("{url}?ssl-mode=VERIFY_IDENTITY&{ours}"), "not valid for name"),
        (format!("{named}?{other}"), "UnknownIssuer"),
        (format!("{named}?ssl-mode=VERIFY_IDENTITY&{other}"), "UnknownIssuer"),
        (format!("{named}?ssl-mode=VERIFY_IDENTITY"), "UnknownIssuer"),
    ] {
        let text = refused(&url);
        assert!(text.contains(says), "{url}: {text}");
    }
    server.sql("ALTER USER polyflake@'%' REQUIRE X509");
    assert!(refused(&format!("{named}?{ours}")).contains("Access denied"));
    assert!(works(&format!("{named}?{ours}&ssl-cert={folder}/client.pem&ssl-key={folder}/client.key")));
}

#[test]
fn a_server_that_does_not_answer() {
    let server = MariaDb::new();
    block(async {
        let mut prepared = prepare(&|| open(&server.url()), space("default")).await;
        suite::paused(&mut prepared, &server.server).await;
    });
}

#[test]
fn an_address_that_is_none_is_refused_without_its_secret() {
    for (url, says) in [
        ("mysql://u:secret@host:port/db", "invalid port"),
        ("mysql://u:secret?@host/db", "%3F"),
        ("mysql://u:secret@host", "no database"),
        ("mysql://u:secret@host/", "no database"),
        ("mysql://u:secret@host/db?ssl-mode=perhaps", "ssl-mode=PERHAPS is unknown"),
        ("mysql://u:secret@host/db?color=red", "color"),
        ("mysql://u:secret@host/db?ssl-ca=/no/such.pem", "/no/such.pem: "),
        ("mysql://u:secret@host/db?ssl-cert=/no/such.pem", "go together"),
    ] {
        let refused = MysqlStore::new(url);
        let Err(StoreError::Refused(text)) = refused else { panic!("{url}") };
        assert!(text.contains(says) && !text.contains("secret"), "{text}");
    }
    let shown = format!("{:?}", open("mysql://u:secret@[::1]:5/db"));
    assert!(shown.contains("::1") && !shown.contains("secret"), "{shown}");
}

#[test]
fn an_asynchronous_replica_is_seen_by_who_may() {
    let server = MariaDb::new();
    let mut replica = unprivileged("mariadb-binlog", server.server.folder());
    let socket = format!("--socket={}", server.server.folder().join("socket").display());
    // It reads what a replica would read.
    replica.args(["--no-defaults", &socket, "--user=root", "--read-from-remote-server", "--raw"]);
    replica.args(["--stop-never", "--stop-never-slave-server-id=2"]);
    let first = server.sql("SHOW BINARY LOGS");
    let first = first.split_whitespace().next().unwrap();
    replica.args([first]);
    let mut replica = replica.spawn().unwrap();
    block(async {
        assert_eq!(open(&server.url()).asynchronous_replicas().await, Ok(0));
        server.sql("GRANT PROCESS ON *.* TO polyflake@'%'");
        let mut store = open(&server.url());
        // It connects on its own time.
        while store.asynchronous_replicas().await != Ok(1) {
            assert_eq!(replica.try_wait().unwrap(), None);
            thread::sleep(Duration::from_millis(20));
        }
    });
    replica.kill().unwrap();
    replica.wait().unwrap();
}
