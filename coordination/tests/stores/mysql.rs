//! MariaDB, which Debian ships in place of MySQL.

mod records;

use std::thread;
use std::time::Duration;

use mysql_async::Row;
use mysql_async::prelude::Queryable;
use polyflake_coordination::records::Store;
use polyflake_coordination::stores::MysqlStore;
use polyflake_coordination::{Address, Schema, StoreError};

use super::leaf_tinyid_cosid::{self, Database, Run, TABLES_OF_MYSQL};
use super::records::{killed, look, paused, read, space};
use super::servers::mariadb::MariaDb;
use super::servers::{free_port, unprivileged};
use super::support::{asynchronous_replicas, block};

fn open(url: &str) -> Box<dyn Store> {
    Box::new(MysqlStore::new(url).unwrap())
}

fn refused(url: &str) -> String {
    let answer = look(MysqlStore::new(url).unwrap());
    let Err(StoreError::Refused(text)) = answer else { panic!("{url}: {answer:?}") };
    assert!(!text.contains("secret"), "{text}");
    text
}

#[test]
fn a_server_that_was_killed_is_back() {
    let mut server = MariaDb::new();
    killed(&mut MysqlStore::new(&server.url()).unwrap(), &mut server.server);
}

#[test]
fn a_server_that_does_not_answer() {
    let server = MariaDb::new();
    paused(&mut MysqlStore::new(&server.url()).unwrap(), &server.server);
}

/// Another program's client.
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
fn counters_in_tables_of_others() {
    let server = MariaDb::new();
    server.sql("SET GLOBAL sql_mode = '', tx_isolation = 'READ-UNCOMMITTED'");
    let url = server.url();
    let connect = || {
        let url = url.clone();
        leaf_tinyid_cosid::on_a_thread(move || theirs(&url))
    };
    let database = Database { connect: &connect, begin: "BEGIN", now: "now()", seconds: "unix_timestamp()" };
    leaf_tinyid_cosid::all(&|| open(&server.url()), &database, &TABLES_OF_MYSQL);
}

#[test]
fn rows_that_cannot_be_used() {
    let server = MariaDb::new();
    let (url, orders) = (server.url(), leaf_tinyid_cosid::counter(Schema::Leaf, "orders"));
    server.sql(&format!(
        "USE test; {}; INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 1)",
        TABLES_OF_MYSQL[0]
    ));
    block(async {
        let wrong = &mut open(&url.replace("secret-of-polyflake", "wrong-secret"));
        leaf_tinyid_cosid::refused(wrong, &orders, "Access denied").await;
        let nobody = &mut open(&format!("mysql://a:secret@127.0.0.1:{}/test", free_port()));
        leaf_tinyid_cosid::unreachable(nobody, &orders, "Connection refused").await;

        // A read-only replica, with a user that `read_only` restricts and one that it does not.
        server.sql("SET GLOBAL read_only = 1");
        let mut store = open(&url);
        for right in ["GRANT USAGE", "GRANT READ ONLY ADMIN"] {
            server.sql(&format!("{right} ON *.* TO polyflake@'%'"));
            store.disconnect();
            leaf_tinyid_cosid::unreachable(&mut store, &orders, "in recovery, read-only or not ready").await;
        }
        server.sql("SET GLOBAL read_only = 0");
        assert_eq!(leaf_tinyid_cosid::take(&mut store, &orders, &leaf_tinyid_cosid::only(1)).await.first, 1);
    });
}

/// A read-only replica would replay the statement, but the statement's condition is false there.
#[test]
fn a_log_of_statements_is_refused() {
    let server = MariaDb::new();
    let (url, orders) = (server.url(), leaf_tinyid_cosid::counter(Schema::Leaf, "orders"));
    server.sql(&format!(
        "USE test; {}; INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 1)",
        TABLES_OF_MYSQL[0]
    ));
    block(async {
        let mut store = open(&url);
        for (format, first) in [("ROW", 1), ("MIXED", 2)] {
            server.sql(&format!("SET GLOBAL binlog_format = '{format}'; FLUSH BINARY LOGS"));
            store.disconnect();
            assert_eq!(
                leaf_tinyid_cosid::take(&mut store, &orders, &leaf_tinyid_cosid::only(1)).await.first,
                first
            );
            let logs = server.sql("SHOW BINARY LOGS");
            let last = logs.lines().last().and_then(|line| line.split_whitespace().next()).unwrap();
            let events = server.sql(&format!("SHOW BINLOG EVENTS IN '{last}'"));
            assert!(events.contains("Update_rows"), "{format}: {events}");
        }
        server.sql("SET GLOBAL binlog_format = 'STATEMENT'");
        store.disconnect();
        leaf_tinyid_cosid::refused(&mut store, &orders, "binlog_format is STATEMENT").await;
        let answer = open(&url).read(&space("default"), None).await;
        let Err(StoreError::Refused(records)) = answer else { panic!("{answer:?}") };
        let Err(error) = leaf_tinyid_cosid::rows(&mut store).counter(&orders).await else {
            panic!("it is taken")
        };
        assert_eq!(error.text(), records);
        let risked = Address::parse(&format!("{url}?durability=none")).unwrap();
        let mut store: Box<dyn Store> = Box::new(MysqlStore::of(&risked).unwrap());
        assert_eq!(leaf_tinyid_cosid::take(&mut store, &orders, &leaf_tinyid_cosid::only(1)).await.first, 3);
    });
}

/// Other clients of the server may need fewer prepared statements later.
#[test]
fn a_server_with_too_many_statements_may_have_fewer_later() {
    let server = MariaDb::new();
    server.sql("SET GLOBAL max_prepared_stmt_count = 0");
    let mut store = open(&server.url());
    block(async {
        let answer = store.read(&space("default"), None).await;
        let Err(StoreError::Unreachable(text)) = answer else { panic!("{answer:?}") };
        assert!(text.contains("max_prepared_stmt_count"), "{text}");
        server.sql("SET GLOBAL max_prepared_stmt_count = 100");
        assert_eq!(read(&mut *store, "head").await, None);
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
    let nobody = format!("mysql://a:secret@127.0.0.1:{}/test", free_port());
    let answer = look(MysqlStore::new(&nobody).unwrap());
    let Err(StoreError::Unreachable(text)) = answer else { panic!("{answer:?}") };
    assert!(text.contains("Connection refused") && !text.contains("secret"), "{text}");
    server.sql("SET GLOBAL innodb_flush_log_at_trx_commit = 0");
    assert!(refused(&url).contains("innodb_flush_log_at_trx_commit is 0"));
}

#[test]
fn certificates_are_checked_as_told() {
    let server = MariaDb::new();
    server.sql("ALTER USER polyflake@'%' REQUIRE SSL");
    let (url, folder) = (server.url(), server.server.folder().display());
    let works = |url: &str| look(MysqlStore::new(url).unwrap()).unwrap().value.is_empty();
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
    // This client reads the binary log, as a replica would.
    replica.args(["--no-defaults", &socket, "--user=root", "--read-from-remote-server", "--raw"]);
    replica.args(["--stop-never", "--stop-never-slave-server-id=2"]);
    let first = server.sql("SHOW BINARY LOGS");
    let first = first.split_whitespace().next().unwrap();
    replica.args([first]);
    let mut replica = replica.spawn().unwrap();
    block(async {
        assert_eq!(asynchronous_replicas(&mut open(&server.url())).await, 0);
        server.sql("GRANT PROCESS ON *.* TO polyflake@'%'");
        let mut store = open(&server.url());
        // The client may take a while to connect.
        while asynchronous_replicas(&mut store).await != 1 {
            assert_eq!(replica.try_wait().unwrap(), None);
            thread::sleep(Duration::from_millis(20));
        }
    });
    replica.kill().unwrap();
    replica.wait().unwrap();
}
