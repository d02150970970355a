//! The stores without Polyflake, each over one connection, with one call at a time.

use std::process::Command;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, Statement};

use crate::measure::{ASKED, ASKED_FOR_KEYS, BATCH, BATCHES_ASKED, Random, batches, one};
use crate::rows::Rows;
use crate::{ASKED as ASKED_TABLE, BATCHES, FEW, KEYS};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// A row's version, as a fact: the first part of a program's output that looks like a version.
fn version(program: &str) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned()).unwrap_or_default();
    let mut words = text.split(|sign: char| !sign.is_ascii_digit() && sign != '.');
    let found = words.find(|word| word.contains('.') && word.len() > 2);
    format!("\tversion={}", found.unwrap_or_default())
}

/// Fills a batch with the numbers up to and including `last`.
fn up_to(last: u64, numbers: &mut [u64; BATCH]) {
    for (number, n) in numbers.iter_mut().zip(last + 1 - BATCH as u64..) {
        *number = n;
    }
}

pub fn redis(rows: &Rows, url: &str) {
    let version = version("redis-server");
    let connect = || {
        let client = redis::Client::open(url).expect("the server's address is right");
        client.get_connection().expect("the server takes connections")
    };
    let ask = |connection: &mut redis::Connection, command: &redis::Cmd| -> u64 {
        command.query(connection).expect("Redis answers with a number")
    };
    rows.add(ASKED_TABLE, "Redis INCR", &version, || {
        let mut connection = connect();
        let command = redis::cmd("INCR").arg("bench:one").to_owned();
        one(ASKED, || ask(&mut connection, &command));
    });
    rows.add(KEYS, "Redis HINCRBY, 1,000 keys", &version, || {
        let (mut connection, mut random) = (connect(), Random::default());
        one(ASKED_FOR_KEYS, || {
            let key = random.below(FEW);
            ask(&mut connection, redis::cmd("HINCRBY").arg("bench:keys").arg(key).arg(1))
        });
    });
    rows.add(BATCHES, "Redis INCRBY 1024", &version, || {
        let mut connection = connect();
        let command = redis::cmd("INCRBY").arg("bench:block").arg(BATCH).to_owned();
        batches(BATCHES_ASKED, |to| up_to(ask(&mut connection, &command), to));
    });
    rows.add(BATCHES, "Redis INCR, pipelined", &version, || {
        let mut connection = connect();
        let mut pipeline = redis::pipe();
        for _ in 0..BATCH {
            pipeline.cmd("INCR").arg("bench:pipeline");
        }
        batches(BATCHES_ASKED, |to| {
            let numbers: Vec<u64> = pipeline.query(&mut connection).expect("Redis answers with numbers");
            to.copy_from_slice(&numbers);
        });
    });
}

pub fn make_sequences(url: &str) {
    let made = "CREATE SEQUENCE one; CREATE SEQUENCE many; CREATE SEQUENCE stepped INCREMENT 1024; \
        CREATE TABLE tickets (id bigint NOT NULL); INSERT INTO tickets VALUES (0)";
    let asks = Prepared::new(url, "SELECT 1");
    asks.runtime.block_on(asks.client.batch_execute(made)).expect("PostgreSQL makes sequences");
}

/// A connection to PostgreSQL, and a prepared statement.
struct Prepared {
    runtime: Runtime,
    client: Client,
    statement: Statement,
}

impl Prepared {
    fn new(url: &str, text: &str) -> Self {
        let runtime = runtime();
        let (client, statement) = runtime.block_on(async {
            let (client, connection) =
                tokio_postgres::connect(url, NoTls).await.expect("the server takes connections");
            tokio::spawn(connection);
            let statement = client.prepare(text).await.expect("the statement is right");
            (client, statement)
        });
        Self { runtime, client, statement }
    }

    fn numbers(&self) -> impl Iterator<Item = u64> {
        let rows = self.runtime.block_on(self.client.query(&self.statement, &[]));
        let rows = rows.expect("PostgreSQL answers").into_iter();
        rows.map(|row| u64::try_from(row.get::<_, i64>(0)).expect("a number above 0"))
    }

    fn number(&self) -> u64 {
        self.numbers().next().expect("a row")
    }
}

pub fn postgres(rows: &Rows, url: &str) {
    let version = version("psql");
    for (subject, text) in [
        ("PostgreSQL nextval", "SELECT nextval('one')"),
        ("PostgreSQL UPDATE RETURNING", "UPDATE tickets SET id = id + 1 RETURNING id"),
    ] {
        rows.add(ASKED_TABLE, subject, &version, || {
            let prepared = Prepared::new(url, text);
            one(ASKED, || prepared.number());
        });
    }
    rows.add(BATCHES, "PostgreSQL nextval, generate_series", &version, || {
        let prepared = Prepared::new(url, "SELECT nextval('many') FROM generate_series(1, 1024)");
        batches(BATCHES_ASKED, |to| {
            for (number, each) in to.iter_mut().zip(prepared.numbers()) {
                *number = each;
            }
        });
    });
    rows.add(BATCHES, "PostgreSQL nextval, INCREMENT 1024", &version, || {
        let prepared = Prepared::new(url, "SELECT nextval('stepped') + 1023");
        batches(BATCHES_ASKED, |to| up_to(prepared.number(), to));
    });
}

/// A connection to MariaDB.
struct Maria {
    runtime: Runtime,
    connection: Conn,
}

impl Maria {
    fn new(url: &str) -> Self {
        let runtime = runtime();
        let connection = runtime.block_on(Conn::from_url(url)).expect("the server takes connections");
        Self { runtime, connection }
    }

    fn run(&mut self, text: &str) {
        self.runtime.block_on(self.connection.query_drop(text)).expect("the statement is right");
    }

    /// Returns a call that executes a prepared statement and returns the insert ID that it sets.
    fn ticket(mut self, text: &str) -> impl FnMut() -> u64 + use<> {
        let prepared = self.runtime.block_on(self.connection.prep(text)).expect("the statement is right");
        move || {
            let Self { runtime, connection } = &mut self;
            runtime.block_on(connection.exec_drop(&prepared, ())).expect("MariaDB takes the statement");
            connection.last_insert_id().expect("the statement sets it")
        }
    }
}

/// As in Leaf's and tinyid's scripts.
const TABLES: [&str; 7] = [
    "CREATE TABLE tickets (name varchar(10) PRIMARY KEY, id bigint unsigned NOT NULL)",
    "INSERT INTO tickets VALUES ('one', 0), ('many', 0)",
    "CREATE TABLE Tickets64 (id bigint unsigned NOT NULL auto_increment, stub char(1) NOT NULL default '', \
     PRIMARY KEY (id), UNIQUE KEY stub (stub))",
    "CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL DEFAULT '', max_id bigint NOT NULL DEFAULT '1', \
     step int NOT NULL, description varchar(256) DEFAULT NULL, \
     update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag))",
    "CREATE TABLE tiny_id_info (id bigint NOT NULL AUTO_INCREMENT, biz_type varchar(63) NOT NULL DEFAULT '', \
     begin_id bigint NOT NULL DEFAULT '0', max_id bigint NOT NULL DEFAULT '0', step int DEFAULT '0', \
     delta int NOT NULL DEFAULT '1', remainder int NOT NULL DEFAULT '0', \
     create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', \
     update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', version bigint NOT NULL DEFAULT '0', \
     PRIMARY KEY (id), UNIQUE KEY uniq_biz_type (biz_type))",
    "INSERT INTO leaf_alloc (biz_tag, step) VALUES ('ours', 1), ('theirs', 1)",
    "INSERT INTO tiny_id_info (biz_type, step) VALUES ('ours', 1), ('theirs', 1)",
];

pub fn make_tables(url: &str) {
    let mut maria = Maria::new(url);
    for text in TABLES {
        maria.run(text);
    }
}

pub fn mariadb(rows: &Rows, url: &str) {
    let version = version("mariadbd");
    for (subject, text) in [
        (
            "MariaDB LAST_INSERT_ID(id + 1)",
            "UPDATE tickets SET id = LAST_INSERT_ID(id + 1) WHERE name = 'one'",
        ),
        ("MariaDB REPLACE INTO (Flickr)", "REPLACE INTO Tickets64 (stub) VALUES ('a')"),
    ] {
        rows.add(ASKED_TABLE, subject, &version, || one(ASKED, Maria::new(url).ticket(text)));
    }
    rows.add(ASKED_TABLE, "Leaf's statements", &version, || one(ASKED, leaf(url)));
    rows.add(ASKED_TABLE, "tinyid's statements", &version, || one(ASKED, tinyid(url)));
    rows.add(BATCHES, "MariaDB LAST_INSERT_ID(id + 1024)", &version, || {
        let text = "UPDATE tickets SET id = LAST_INSERT_ID(id + 1024) WHERE name = 'many'";
        let mut last = Maria::new(url).ticket(text);
        batches(BATCHES_ASKED, |to| up_to(last(), to));
    });
}

/// The queries that Leaf's server makes for a segment, in one transaction.
fn leaf(url: &str) -> impl FnMut() -> u64 + use<> {
    let Maria { runtime, mut connection } = Maria::new(url);
    let update = "UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = ?";
    let select = "SELECT biz_tag, max_id, step FROM leaf_alloc WHERE biz_tag = ?";
    move || {
        let segment = async {
            connection.query_drop("START TRANSACTION").await?;
            connection.exec_drop(update, ("theirs",)).await?;
            let row: Option<(String, u64, u64)> = connection.exec_first(select, ("theirs",)).await?;
            connection.query_drop("COMMIT").await?;
            Ok::<_, mysql_async::Error>(row)
        };
        let (_, max, step) = runtime.block_on(segment).expect("MariaDB answers").expect("a row");
        max - step
    }
}

/// The queries that tinyid's server makes for a segment, in one transaction.
fn tinyid(url: &str) -> impl FnMut() -> u64 + use<> {
    let Maria { runtime, mut connection } = Maria::new(url);
    let select = "select id, max_id, step, delta, remainder, version from tiny_id_info where biz_type = ?";
    let update = "update tiny_id_info set max_id = ?, update_time = now(), version = version + 1 \
        where id = ? and max_id = ? and version = ? and biz_type = ?";
    move || {
        let segment = async {
            connection.query_drop("START TRANSACTION").await?;
            let row: Option<(u64, u64, u64, u64, u64, u64)> =
                connection.exec_first(select, ("theirs",)).await?;
            let (id, max, step, _, _, version) = row.expect("a row");
            connection.exec_drop(update, (max + step, id, max, version, "theirs")).await?;
            connection.query_drop("COMMIT").await?;
            Ok::<_, mysql_async::Error>(max + step)
        };
        runtime.block_on(segment).expect("MariaDB answers")
    }
}

pub fn sqlite(rows: &Rows, file: &str) {
    let version = format!("\tversion={}", rusqlite::version());
    rows.add(ASKED_TABLE, "SQLite UPDATE RETURNING", &version, || {
        let connection = rusqlite::Connection::open(file).expect("a file that can be written");
        let made = "CREATE TABLE tickets (id INTEGER NOT NULL); INSERT INTO tickets VALUES (0)";
        connection.execute_batch(made).expect("SQLite makes a table");
        one(ASKED, || {
            let text = "UPDATE tickets SET id = id + 1 RETURNING id";
            let mut statement = connection.prepare_cached(text).expect("the statement is right");
            let number: i64 =
                statement.query_row([], |row| row.get(0)).expect("SQLite answers with a number");
            number.unsigned_abs()
        });
    });
}
