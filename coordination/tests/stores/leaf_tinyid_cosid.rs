//! Counters in the tables of Leaf, tinyid and `CosId`, alongside those systems' own servers.

use std::sync::mpsc;
use std::thread;

use polyflake_coordination::records::Store;
use polyflake_coordination::{
    CounterName, CounterRecord, LAST_NUMBER, Numbers, Place, Reserve, Reserved, Rows, Schema, StoreError,
};

use super::support::{block, retry};

/// Opens another client for the same store.
pub(crate) type Open<'a> = &'a (dyn Fn() -> Box<dyn Store> + Sync);

pub(crate) fn only(count: u64) -> Reserve {
    Reserve { count, place: Place::ONLY, seen: 0, is_exact: false }
}

pub(crate) fn rows(store: &mut Box<dyn Store>) -> &mut dyn Rows {
    store.rows().unwrap()
}

/// Takes numbers that must be available.
pub(crate) async fn take(store: &mut Box<dyn Store>, counter: &CounterName, reserve: &Reserve) -> Numbers {
    match retry(store, async |store| rows(store).reserve(counter, reserve).await).await {
        Reserved::Numbers(numbers) => numbers,
        other @ Reserved::Found(_) => panic!("{counter:?} {reserve:?}: {other:?}"),
    }
}

pub(crate) fn listed(numbers: &Numbers) -> Vec<u64> {
    (0..numbers.count).map(|at| numbers.first + at * numbers.stride).collect()
}

/// Tables without versions ignore the version here.
fn any(last: u64) -> CounterRecord {
    CounterRecord { last, version: Some(last), place: Place::ONLY }
}

/// Returns the result of each call that needs a row.
async fn calls(store: &mut Box<dyn Store>, counter: &CounterName) -> [Result<(), StoreError>; 3] {
    let rows = rows(store);
    [
        rows.reserve(counter, &only(1)).await.map(drop),
        rows.counter(counter).await.map(drop),
        rows.put_counter(counter, &any(1), &any(2)).await.map(drop),
    ]
}

/// Checks that each call is refused with this message, which contains no secret.
pub(crate) async fn refused(store: &mut Box<dyn Store>, counter: &CounterName, says: &str) {
    for refused in calls(store, counter).await {
        let Err(StoreError::Refused(text)) = refused else { panic!("{refused:?}") };
        assert!(text.contains(says) && !text.contains("secret"), "{text}");
    }
}

/// Checks that a store that cannot be reached reports this message, which contains no secret.
pub(crate) async fn unreachable(store: &mut Box<dyn Store>, counter: &CounterName, says: &str) {
    for failed in calls(store, counter).await {
        let Err(StoreError::Unreachable(text)) = failed else { panic!("{failed:?}") };
        assert!(text.contains(says) && !text.contains("secret"), "{text}");
    }
}

/// Runs one statement. Returns its rows, which contain only integers, and the number of rows it changed.
pub(crate) type Run = Box<dyn FnMut(&str) -> (Vec<Vec<i64>>, u64)>;

/// Runs a client on a separate thread, since two clients cannot wait on the same one.
pub(crate) fn on_a_thread(connect: impl FnOnce() -> Run + Send + 'static) -> Run {
    let (send, statements) = mpsc::channel::<String>();
    let (answer, answers) = mpsc::channel();
    thread::spawn(move || {
        let mut run = connect();
        for statement in statements {
            answer.send(run(&statement)).unwrap();
        }
    });
    Box::new(move |statement| {
        send.send(statement.into()).unwrap();
        answers.recv().expect("the statement failed")
    })
}

/// A database, as the other systems' servers use it.
pub(crate) struct Database<'a> {
    /// Opens another connection.
    pub(crate) connect: &'a (dyn Fn() -> Run + Sync),
    /// Begins a transaction that sees changes committed by others.
    pub(crate) begin: &'a str,
    /// The SQL for the current time, and for the same time in Unix seconds, since their servers support only MySQL.
    pub(crate) now: &'a str,
    pub(crate) seconds: &'a str,
}

/// The tables from the systems' own scripts, without the parts that only MySQL supports.
pub(crate) const TABLES: [&str; 3] = [
    "CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL DEFAULT '', max_id bigint NOT NULL DEFAULT '1', \
     step int NOT NULL, description varchar(256) DEFAULT NULL, \
     update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag))",
    "CREATE TABLE tiny_id_info (id bigint NOT NULL, biz_type varchar(63) NOT NULL DEFAULT '', \
     begin_id bigint NOT NULL DEFAULT '0', max_id bigint NOT NULL DEFAULT '0', step int DEFAULT '0', \
     delta int NOT NULL DEFAULT '1', remainder int NOT NULL DEFAULT '0', \
     create_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', \
     update_time timestamp NOT NULL DEFAULT '2010-01-01 00:00:00', version bigint NOT NULL DEFAULT '0', \
     PRIMARY KEY (id), UNIQUE (biz_type))",
    "CREATE TABLE cosid (name varchar(100) NOT NULL, last_max_id bigint NOT NULL DEFAULT 0, \
     last_fetch_time bigint NOT NULL DEFAULT 0, PRIMARY KEY (name))",
];

/// The tables from the systems' own scripts.
pub(crate) const TABLES_OF_MYSQL: [&str; 3] = [
    "CREATE TABLE `leaf_alloc` (
      `biz_tag` varchar(128)  NOT NULL DEFAULT '',
      `max_id` bigint(20) NOT NULL DEFAULT '1',
      `step` int(11) NOT NULL,
      `description` varchar(256)  DEFAULT NULL,
      `update_time` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
      PRIMARY KEY (`biz_tag`)
    ) ENGINE=InnoDB",
    "CREATE TABLE `tiny_id_info` (
      `id` bigint(20) NOT NULL AUTO_INCREMENT,
      `biz_type` varchar(63) NOT NULL DEFAULT '',
      `begin_id` bigint(20) NOT NULL DEFAULT '0',
      `max_id` bigint(20) NOT NULL DEFAULT '0',
      `step` int(11) DEFAULT '0',
      `delta` int(11) NOT NULL DEFAULT '1',
      `remainder` int(11) NOT NULL DEFAULT '0',
      `create_time` timestamp NOT NULL DEFAULT '2010-01-01 00:00:00',
      `update_time` timestamp NOT NULL DEFAULT '2010-01-01 00:00:00',
      `version` bigint(20) NOT NULL DEFAULT '0',
      PRIMARY KEY (`id`),
      UNIQUE KEY `uniq_biz_type` (`biz_type`)
    ) ENGINE=InnoDB AUTO_INCREMENT=1 DEFAULT CHARSET=utf8",
    "create table if not exists cosid
    (
        name            varchar(100)    not null comment '{namespace}.{name}',
        last_max_id     bigint unsigned not null default 0,
        last_fetch_time bigint unsigned not null default 0,
        constraint cosid_pk
            primary key (name)
    ) engine = InnoDB",
];

/// Runs every history on a database that has none of the tables yet.
pub(crate) fn all(open: Open<'_>, database: &Database<'_>, tables: &[&str]) {
    let mut run = (database.connect)();
    for (schema, says) in
        [(Schema::Leaf, "leaf_alloc"), (Schema::Tinyid, "tiny_id_info"), (Schema::Cosid, "cosid")]
    {
        block(refused(&mut open(), &counter(schema, "orders"), says));
    }
    for table in tables {
        run(table);
    }
    for schema in [Schema::Leaf, Schema::Tinyid, Schema::Cosid] {
        block(no_row(open, &counter(schema, "orders")));
    }
    block(leaf(open, &mut run));
    block(tinyid(open, &mut run));
    block(cosid(open, &mut run));
    beside_their_servers(open, database, &mut run);
    for (schema, change) in [
        (Schema::Leaf, "ALTER TABLE leaf_alloc RENAME COLUMN step TO stride"),
        (Schema::Tinyid, "ALTER TABLE tiny_id_info RENAME COLUMN version TO revision"),
        (Schema::Cosid, "ALTER TABLE cosid RENAME COLUMN last_max_id TO max_id"),
    ] {
        run(change);
        block(async {
            let mut store = open();
            let refused = rows(&mut store).reserve(&counter(schema, "orders"), &only(1)).await;
            let Err(StoreError::Refused(text)) = refused else { panic!("{refused:?}") };
            assert!(text.contains("other columns"), "{text}");
        });
    }
}

pub(crate) fn counter(schema: Schema, name: &str) -> CounterName {
    CounterName { namespace: "shop".into(), name: name.into(), schema }
}

async fn no_row(open: Open<'_>, counter: &CounterName) {
    let mut store = open();
    for _ in 0..2 {
        let rows = rows(&mut store);
        assert_eq!(rows.reserve(counter, &only(1)).await, Ok(Reserved::Found(None)));
        assert_eq!(rows.counter(counter).await, Ok(None));
        assert_eq!(rows.put_counter(counter, &any(1), &any(2)).await, Ok(false));
    }
}

/// Everything that the store keeps about a counter without a version.
fn at(last: u64) -> CounterRecord {
    CounterRecord { last, version: None, place: Place::ONLY }
}

async fn leaf(open: Open<'_>, run: &mut Run) {
    let (mut store, orders) = (open(), counter(Schema::Leaf, "orders"));
    run("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 10), ('zero', 0, 2)");
    assert_eq!(rows(&mut store).counter(&orders).await, Ok(Some(at(0))));
    // The store takes the row's step, or the requested count if that is larger.
    let numbers = take(&mut store, &orders, &only(3)).await;
    assert_eq!((numbers.first, numbers.stride, numbers.count, numbers.version), (1, 1, 10, None));
    let other_place = Reserve { place: Place { index: 1, count: 3 }, ..only(25) };
    let numbers = take(&mut store, &orders, &other_place).await;
    assert_eq!((numbers.first, numbers.stride, numbers.count), (11, 1, 25));
    assert_eq!(rows(&mut store).counter(&orders).await, Ok(Some(at(35))));
    let exact = Reserve { is_exact: true, ..only(1) };
    let numbers = take(&mut store, &orders, &exact).await;
    assert_eq!((numbers.first, numbers.count), (36, 1));
    assert_eq!(rows(&mut store).put_counter(&orders, &at(36), &at(35)).await, Ok(true));
    let seen = Reserve { seen: 36, ..only(1) };
    assert_eq!(rows(&mut store).reserve(&orders, &seen).await, Ok(Reserved::Found(Some(at(35)))));
    // Numbers can be given back only once.
    assert_eq!(rows(&mut store).put_counter(&orders, &at(34), &at(20)).await, Ok(false));
    assert_eq!(rows(&mut store).put_counter(&orders, &at(35), &at(20)).await, Ok(true));
    assert_eq!(rows(&mut store).put_counter(&orders, &at(35), &at(20)).await, Ok(false));
    let row = "SELECT max_id, step FROM leaf_alloc WHERE biz_tag = 'orders'";
    assert_eq!(run(row).0, [[21, 10]]);
    // Leaf would hand out 0 first from such a row, but Polyflake's numbers start at 1.
    let zero = counter(Schema::Leaf, "zero");
    assert_eq!(rows(&mut store).counter(&zero).await, Ok(Some(at(0))));
    assert_eq!(listed(&take(&mut store, &zero, &only(1)).await), [1, 2]);
    assert_eq!(rows(&mut store).put_counter(&zero, &at(2), &at(0)).await, Ok(true));
    run("UPDATE leaf_alloc SET max_id = 0 WHERE biz_tag = 'zero'");
    assert_eq!(rows(&mut store).put_counter(&zero, &at(0), &at(7)).await, Ok(true));
    assert_eq!(listed(&take(&mut store, &zero, &only(3)).await), [8, 9, 10]);
    // The end of the numbers: Leaf's segments do not include their upper end.
    run(&format!("UPDATE leaf_alloc SET max_id = {} WHERE biz_tag = 'orders'", LAST_NUMBER - 5));
    let left = Ok(Reserved::Found(Some(at(LAST_NUMBER - 6))));
    assert_eq!(rows(&mut store).reserve(&orders, &only(6)).await, left);
    let numbers = take(&mut store, &orders, &only(5)).await;
    assert_eq!((numbers.first, numbers.count), (LAST_NUMBER - 5, 5));
    assert_eq!(
        rows(&mut store).reserve(&orders, &only(1)).await,
        Ok(Reserved::Found(Some(at(LAST_NUMBER - 1))))
    );
    run("UPDATE leaf_alloc SET max_id = -7 WHERE biz_tag = 'orders'");
    let refused = rows(&mut store).reserve(&orders, &only(1)).await;
    assert!(matches!(&refused, Err(StoreError::Refused(text)) if text.contains("-7")), "{refused:?}");
}

async fn tinyid(open: Open<'_>, run: &mut Run) {
    let (mut store, orders) = (open(), counter(Schema::Tinyid, "orders"));
    run("INSERT INTO tiny_id_info (id, biz_type, max_id, step, delta, remainder, version) \
         VALUES (1, 'orders', 0, 10, 3, 1, 5), (2, 'no step', 0, NULL, 2, 0, 0), (3, 'wrong', 0, 10, 2, 2, 0)");
    let place = Place { index: 1, count: 3 };
    let record = |last, version| CounterRecord { last, version: Some(version), place };
    assert_eq!(rows(&mut store).counter(&orders).await, Ok(Some(record(0, 5))));
    let numbers = take(&mut store, &orders, &only(2)).await;
    assert_eq!((listed(&numbers), numbers.version), (vec![1, 4, 7, 10], Some(6)));
    let numbers = take(&mut store, &orders, &only(5)).await;
    assert_eq!((listed(&numbers), numbers.version), (vec![13, 16, 19, 22, 25], Some(7)));
    let numbers = take(&mut store, &orders, &only(1)).await;
    assert_eq!((listed(&numbers), numbers.version), (vec![28, 31, 34], Some(8)));
    assert_eq!(rows(&mut store).counter(&orders).await, Ok(Some(record(35, 8))));
    let seen = Reserve { seen: 36, ..only(1) };
    assert_eq!(rows(&mut store).reserve(&orders, &seen).await, Ok(Reserved::Found(Some(record(35, 8)))));
    // The write compares the version, since the row has one.
    assert_eq!(rows(&mut store).put_counter(&orders, &record(35, 7), &record(28, 9)).await, Ok(false));
    assert_eq!(rows(&mut store).put_counter(&orders, &record(35, 8), &record(28, 9)).await, Ok(true));
    assert_eq!(rows(&mut store).put_counter(&orders, &record(35, 8), &record(1, 10)).await, Ok(false));
    let columns =
        "SELECT max_id, step, delta, remainder, version FROM tiny_id_info WHERE biz_type = 'orders'";
    assert_eq!(run(columns).0, [[28, 10, 3, 1, 9]]);
    // If someone changed the row by hand, its version proves nothing.
    run("UPDATE tiny_id_info SET max_id = 50000 WHERE biz_type = 'orders'");
    assert_eq!(rows(&mut store).put_counter(&orders, &record(28, 9), &record(1, 10)).await, Ok(false));
    run("UPDATE tiny_id_info SET max_id = 28 WHERE biz_type = 'orders'");
    let changed = "SELECT COUNT(*) FROM tiny_id_info WHERE update_time > '2020-01-01 00:00:00'";
    assert_eq!(run(changed).0, [[1]]);
    assert_eq!(listed(&take(&mut store, &orders, &only(1)).await), [31, 34, 37]);

    assert_eq!(listed(&take(&mut store, &counter(Schema::Tinyid, "no step"), &only(3)).await), [2, 4, 6]);
    let refused = rows(&mut store).reserve(&counter(Schema::Tinyid, "wrong"), &only(1)).await;
    let Err(StoreError::Refused(text)) = refused else { panic!("{refused:?}") };
    assert!(text.contains("delta 2 and remainder 2"), "{text}");
    assert_eq!(run("SELECT max_id, version FROM tiny_id_info WHERE id = 3").0, [[0, 0]]);
    run(&format!("UPDATE tiny_id_info SET max_id = {} WHERE id = 1", LAST_NUMBER - 3));
    let numbers = take(&mut store, &orders, &only(1)).await;
    // 2^63-1 is 1 modulo 3.
    assert_eq!(listed(&numbers), [LAST_NUMBER]);
    let found = rows(&mut store).reserve(&orders, &only(1)).await;
    assert!(matches!(found, Ok(Reserved::Found(Some(record))) if record.last == LAST_NUMBER), "{found:?}");
}

async fn cosid(open: Open<'_>, run: &mut Run) {
    let (mut store, orders) = (open(), counter(Schema::Cosid, "orders"));
    run(
        "INSERT INTO cosid (name, last_max_id, last_fetch_time) VALUES ('shop.orders', 0, 0), ('orders', 99, 0)",
    );
    assert_eq!(rows(&mut store).counter(&orders).await, Ok(Some(at(0))));
    let numbers = take(&mut store, &orders, &only(3)).await;
    assert_eq!((numbers.first, numbers.stride, numbers.count, numbers.version), (1, 1, 3, None));
    assert_eq!(listed(&take(&mut store, &orders, &only(2)).await), [4, 5]);
    let seen = Reserve { seen: 6, ..only(1) };
    assert_eq!(rows(&mut store).reserve(&orders, &seen).await, Ok(Reserved::Found(Some(at(5)))));
    assert_eq!(rows(&mut store).put_counter(&orders, &at(4), &at(3)).await, Ok(false));
    assert_eq!(rows(&mut store).put_counter(&orders, &at(5), &at(3)).await, Ok(true));
    assert_eq!(rows(&mut store).put_counter(&orders, &at(5), &at(3)).await, Ok(false));
    let row = "SELECT last_max_id FROM cosid WHERE last_fetch_time > 1700000000 AND name = 'shop.orders'";
    assert_eq!(run(row).0, [[3]]);
    run(&format!("UPDATE cosid SET last_max_id = {} WHERE name = 'shop.orders'", LAST_NUMBER - 2));
    assert_eq!(
        rows(&mut store).reserve(&orders, &only(3)).await,
        Ok(Reserved::Found(Some(at(LAST_NUMBER - 2))))
    );
    assert_eq!(listed(&take(&mut store, &orders, &only(2)).await), [LAST_NUMBER - 1, LAST_NUMBER]);
    assert_eq!(rows(&mut store).reserve(&orders, &only(1)).await, Ok(Reserved::Found(Some(at(LAST_NUMBER)))));
}

const ROUNDS: usize = 100;

/// Two of their servers and two of Polyflake's processes use one row. No number is issued twice, and none is left out.
fn beside_their_servers(open: Open<'_>, database: &Database<'_>, run: &mut Run) {
    run("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('both', 1, 7)");
    run("INSERT INTO tiny_id_info (id, biz_type, begin_id, max_id, step, delta, remainder) \
         VALUES (9, 'both', 1, 1, 10, 3, 2)");
    run("INSERT INTO cosid (name, last_max_id, last_fetch_time) VALUES ('shop.both', 0, 0)");
    for (schema, first, stride, theirs) in [
        (Schema::Leaf, 1, 1, leaf_server as fn(&mut Run, &Database<'_>) -> Vec<u64>),
        (Schema::Tinyid, 2, 3, tinyid_server),
        (Schema::Cosid, 1, 1, cosid_server),
    ] {
        let counter = counter(schema, "both");
        let mut all: Vec<u64> = Vec::new();
        thread::scope(|scope| {
            let mut threads = Vec::new();
            for _ in 0..2 {
                threads.push(scope.spawn(|| {
                    let mut run = (database.connect)();
                    (0..ROUNDS).flat_map(|_| theirs(&mut run, database)).collect::<Vec<_>>()
                }));
                threads.push(scope.spawn(|| {
                    block(async {
                        let (mut store, mut mine) = (open(), Vec::new());
                        for at in 0..ROUNDS {
                            let count = u64::try_from(at % 13 + 1).unwrap();
                            let numbers = take(&mut store, &counter, &only(count)).await;
                            assert!(numbers.count >= count);
                            mine.extend(listed(&numbers));
                        }
                        mine
                    })
                }));
            }
            for thread in threads {
                all.extend(thread.join().unwrap());
            }
        });
        all.sort_unstable();
        let expected: Vec<_> = (0..).map(|at| first + at * stride).take(all.len()).collect();
        assert!(all == expected, "{schema:?}: {all:?}");
        assert!(all.len() > 4 * ROUNDS);
    }
}

fn unsigned(value: i64) -> u64 {
    value.try_into().unwrap()
}

/// `IDAllocMapper.updateMaxId` and `getLeafAlloc`, and the numbers that `SegmentIDGenImpl` then hands out.
fn leaf_server(run: &mut Run, database: &Database<'_>) -> Vec<u64> {
    run(database.begin);
    run("UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'both'");
    let found = run("SELECT max_id, step FROM leaf_alloc WHERE biz_tag = 'both'").0;
    run("COMMIT");
    let (max_id, step) = (found[0][0], found[0][1]);
    (unsigned(max_id - step)..unsigned(max_id)).collect()
}

/// `DbSegmentIdServiceImpl.getNextSegmentId`, and the numbers that `SegmentId` then hands out.
fn tinyid_server(run: &mut Run, database: &Database<'_>) -> Vec<u64> {
    loop {
        let query =
            "select id, max_id, step, delta, remainder, version from tiny_id_info where biz_type = 'both'";
        let row = run(query).0.remove(0);
        let [id, max_id, step, delta, remainder, version] = row[..] else { panic!("{row:?}") };
        let (now, new) = (database.now, max_id + step);
        let update = format!(
            "update tiny_id_info set max_id= {new}, update_time={now}, version=version+1 \
             where id={id} and max_id={max_id} and version={version} and biz_type='both'"
        );
        if run(&update).1 == 1 {
            let all = max_id + 1..=new;
            return all.filter(|number| number % delta == remainder).map(unsigned).collect();
        }
    }
}

/// `JdbcIdSegmentDistributor.nextMaxId`.
fn cosid_server(run: &mut Run, database: &Database<'_>) -> Vec<u64> {
    let (step, seconds) = (10, database.seconds);
    run(database.begin);
    let increment = format!(
        "update cosid set last_max_id=(last_max_id + {step}),last_fetch_time={seconds} where name = 'shop.both';"
    );
    assert_eq!(run(&increment).1, 1);
    let max_id = run("select last_max_id from cosid where name = 'shop.both';").0[0][0];
    run("COMMIT");
    (unsigned(max_id - step) + 1..=unsigned(max_id)).collect()
}
