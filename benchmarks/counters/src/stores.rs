//! What a store gives without Polyflake: over one connection each, one call at a time.

use std::process::Command;
use std::sync::Mutex;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{Client, NoTls, Statement};

use crate::measure::{
    ASKED, ASKED_BY_THREADS, ASKED_FOR_KEYS, BATCH, BATCHES_ASKED, Batches, One, Random, Threads,
};
use crate::suite::{
    ASKED_BATCHES, ASKED_THREADS, BATCHES, FEW, KEYS, MARIADB, ONE, POSTGRES, REDIS, SQLITE, Suite,
};

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The first thing in what a program prints of its version that looks like one.
fn version(program: &str) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned()).unwrap_or_default();
    let mut words = text.split(|sign: char| !sign.is_ascii_digit() && sign != '.');
    words.find(|word| word.contains('.') && word.len() > 2).unwrap_or_default().into()
}

/// A row in the table of single numbers, and in that of the store.
fn singles<F: FnMut() -> u64 + 'static>(
    suite: &mut Suite,
    table: &'static str,
    subject: &str,
    version: &str,
    next: impl Fn() -> F,
) {
    for table in [ONE, table] {
        suite.add(table, subject, version, One(next(), ASKED));
    }
}

/// A row in each of the tables of batches.
fn batches<F: FnMut(&mut [u64; BATCH]) + 'static>(
    suite: &mut Suite,
    subject: &str,
    version: &str,
    fill: impl Fn() -> F,
) {
    for table in [BATCHES, ASKED_BATCHES] {
        suite.add(table, subject, version, Batches(fill(), BATCHES_ASKED));
    }
}

/// The numbers up to the last.
fn up_to(last: u64, numbers: &mut [u64; BATCH]) {
    for (number, n) in numbers.iter_mut().zip(last + 1 - BATCH as u64..) {
        *number = n;
    }
}

pub fn redis(suite: &mut Suite, url: &str) {
    let version = version("redis-server");
    let connect = || {
        let client = redis::Client::open(url).expect("the server's address is right");
        client.get_connection().expect("the server takes connections")
    };
    let ask = |connection: &mut redis::Connection, command: &redis::Cmd| -> u64 {
        command.query(connection).expect("Redis answers with a number")
    };
    singles(suite, REDIS, "Redis INCR", &version, || {
        let mut connection = connect();
        let command = redis::cmd("INCR").arg("bench:one").to_owned();
        move || ask(&mut connection, &command)
    });
    let command = redis::cmd("INCR").arg("bench:threads").to_owned();
    let connections: Mutex<Vec<_>> = Mutex::new((0..16).map(|_| connect()).collect());
    let by_threads = move || {
        let mut connection =
            connections.lock().expect("no thread panics").pop().expect("one for each thread");
        let number = ask(&mut connection, &command);
        connections.lock().expect("no thread panics").push(connection);
        number
    };
    let threads = Threads(16, by_threads, ASKED_BY_THREADS);
    suite.add(ASKED_THREADS, "Redis INCR", &version, threads).note("a connection each");
    let (mut connection, mut random) = (connect(), Random::default());
    let of_a_key = move || {
        let key = random.below(FEW);
        ask(&mut connection, redis::cmd("HINCRBY").arg("bench:keys").arg(key).arg(1))
    };
    suite.add(KEYS, "Redis HINCRBY, 1,000 keys", &version, One(of_a_key, ASKED_FOR_KEYS));
    batches(suite, "Redis INCRBY 1024", &version, || {
        let mut connection = connect();
        let command = redis::cmd("INCRBY").arg("bench:block").arg(BATCH).to_owned();
        move |to: &mut [u64; BATCH]| up_to(ask(&mut connection, &command), to)
    });
    batches(suite, "Redis INCR, pipelined", &version, || {
        let mut connection = connect();
        let mut pipeline = redis::pipe();
        for _ in 0..BATCH {
            pipeline.cmd("INCR").arg("bench:pipeline");
        }
        move |to: &mut [u64; BATCH]| {
            let numbers: Vec<u64> = pipeline.query(&mut connection).expect("Redis answers with numbers");
            to.copy_from_slice(&numbers);
        }
    });
}

/// A connection to PostgreSQL, and a statement.
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
            let made = "CREATE SEQUENCE IF NOT EXISTS one; CREATE SEQUENCE IF NOT EXISTS many; \
                CREATE TABLE IF NOT EXISTS tickets (id bigint NOT NULL); \
                INSERT INTO tickets SELECT 0 WHERE NOT EXISTS (SELECT FROM tickets); \
                CREATE SEQUENCE IF NOT EXISTS cached CACHE 1024; CREATE SEQUENCE IF NOT EXISTS stepped INCREMENT 1024";
            client.batch_execute(made).await.expect("PostgreSQL makes sequences");
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

pub fn postgres(suite: &mut Suite, url: &str) {
    let asks = |text: &str| Prepared::new(url, text);
    let shown = asks("SELECT current_setting('server_version_num')::bigint").number();
    let version = format!("{}.{}", shown / 10_000, shown % 10_000);
    for (subject, text) in [
        ("PostgreSQL nextval", "SELECT nextval('one')"),
        ("PostgreSQL nextval, CACHE 1024", "SELECT nextval('cached')"),
    ] {
        singles(suite, POSTGRES, subject, &version, || {
            let prepared = asks(text);
            move || prepared.number()
        });
    }
    let prepared = asks("UPDATE tickets SET id = id + 1 RETURNING id");
    let (subject, next) = ("PostgreSQL UPDATE RETURNING", move || prepared.number());
    suite.add(POSTGRES, subject, &version, One(next, ASKED));
    for (subject, text) in [
        ("PostgreSQL nextval, generate_series", "SELECT nextval('many') FROM generate_series(1, 1024)"),
        (
            "PostgreSQL nextval, generate_series, CACHE 1024",
            "SELECT nextval('cached') FROM generate_series(1, 1024)",
        ),
    ] {
        batches(suite, subject, &version, || {
            let prepared = asks(text);
            move |to: &mut [u64; BATCH]| {
                for (number, each) in to.iter_mut().zip(prepared.numbers()) {
                    *number = each;
                }
            }
        });
    }
    batches(suite, "PostgreSQL nextval, INCREMENT 1024", &version, || {
        let prepared = asks("SELECT nextval('stepped') + 1023");
        move |to: &mut [u64; BATCH]| up_to(prepared.number(), to)
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

    /// The number that a prepared statement sets.
    fn ticket(mut self, text: &str) -> impl FnMut() -> u64 + use<> {
        let prepared = self.runtime.block_on(self.connection.prep(text)).expect("the statement is right");
        move || {
            let Self { runtime, connection } = &mut self;
            runtime.block_on(connection.exec_drop(&prepared, ())).expect("MariaDB takes the statement");
            connection.last_insert_id().expect("the statement sets it")
        }
    }
}

/// As in the scripts of Leaf and of tinyid.
const TABLES: [&str; 6] = [
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
];

pub fn mariadb(suite: &mut Suite, url: &str) {
    let version = version("mariadbd");
    let mut maria = Maria::new(url);
    for text in TABLES {
        maria.run(text);
    }
    maria.run("INSERT INTO tiny_id_info (biz_type, step) VALUES ('ours', 1), ('theirs', 1)");
    for (subject, text) in [
        (
            "MariaDB LAST_INSERT_ID(id + 1)",
            "UPDATE tickets SET id = LAST_INSERT_ID(id + 1) WHERE name = 'one'",
        ),
        ("MariaDB REPLACE INTO (Flickr)", "REPLACE INTO Tickets64 (stub) VALUES ('a')"),
    ] {
        singles(suite, MARIADB, subject, &version, || Maria::new(url).ticket(text));
    }
    let text = "UPDATE tickets SET id = LAST_INSERT_ID(id + 1024) WHERE name = 'many'";
    batches(suite, "MariaDB LAST_INSERT_ID(id + 1024)", &version, || {
        let mut last = Maria::new(url).ticket(text);
        move |to: &mut [u64; BATCH]| up_to(last(), to)
    });
    suite.add(MARIADB, "Leaf's statements", &version, One(leaf(url), ASKED));
    suite.add(MARIADB, "tinyid's statements", &version, One(tinyid(url), ASKED));
}

/// What Leaf's server does for a segment, in one transaction.
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

/// What tinyid's server does for a segment, in one transaction.
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

pub fn sqlite(suite: &mut Suite, file: &str) {
    let connection = rusqlite::Connection::open(file).expect("a file that can be written");
    let made = "CREATE TABLE tickets (id INTEGER NOT NULL); INSERT INTO tickets VALUES (0)";
    connection.execute_batch(made).expect("SQLite makes a table");
    let next = move || {
        let text = "UPDATE tickets SET id = id + 1 RETURNING id";
        let mut statement = connection.prepare_cached(text).expect("the statement is right");
        let number: i64 = statement.query_row([], |row| row.get(0)).expect("SQLite answers with a number");
        number.unsigned_abs()
    };
    let version = rusqlite::version();
    suite.add(SQLITE, "SQLite UPDATE RETURNING", version, One(next, ASKED));
}
