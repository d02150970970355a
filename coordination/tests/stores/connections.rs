//! How SQL stores connect, what they wait for, and what they retry.
//!
//! A call that must finish has a minute to do so. Some tests cancel attempts after a short time, and count the
//! statements that are left.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::future::{Either, join_all, select};
use polyflake::{ErrorCode, Snowflake};
use polyflake_coordination::records::Store;
use polyflake_coordination::{
    Address, Counter, CounterName, CounterOptions, LAST_NUMBER, Reserved, Schema, StoreError, stores,
};
use rustix::process::Signal;
use tokio::time::timeout;

use super::leaf_tinyid_cosid::{listed, only, rows, take};
use super::records::{head, read, record, space, write};
use super::relay::Relay;
use super::servers::free_port;
use super::servers::mariadb::MariaDb;
use super::servers::pgbouncer::PgBouncer;
use super::servers::postgres::Postgres;
use super::support::{block, retry};

const LONG: Duration = Duration::from_secs(60);

/// Opens a store as the keeper does.
fn open(url: &str) -> Box<dyn Store> {
    stores::open(&Address::parse(url).unwrap()).unwrap()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A session of the server's own client, which lasts until this value is dropped.
struct Session {
    end: Option<mpsc::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Session {
    /// Runs a statement in a transaction that stays open.
    fn of_postgres(server: &Postgres, statement: &str) -> Self {
        let (url, statement) = (server.url(), format!("BEGIN; {statement}"));
        Self::begin(move |ready, end| {
            block(async {
                let (client, connection) =
                    tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
                tokio::spawn(connection);
                client.batch_execute(&statement).await.unwrap();
                ready.send(()).unwrap();
                tokio::task::spawn_blocking(move || end.recv()).await.unwrap().unwrap_err();
            });
        })
    }

    fn of_maria(server: &MariaDb, statements: &'static [&str]) -> Self {
        use mysql_async::prelude::Queryable as _;
        let url = server.url();
        Self::begin(move |ready, end| {
            block(async {
                let mut client = mysql_async::Conn::from_url(&url).await.unwrap();
                for statement in statements {
                    client.query_drop(*statement).await.unwrap();
                }
                ready.send(()).unwrap();
                tokio::task::spawn_blocking(move || end.recv()).await.unwrap().unwrap_err();
                client.disconnect().await.unwrap();
            });
        })
    }

    fn begin(run: impl FnOnce(mpsc::Sender<()>, mpsc::Receiver<()>) + Send + 'static) -> Self {
        let (ready, is_ready) = mpsc::channel();
        let (end, ends) = mpsc::channel();
        let thread = thread::spawn(move || run(ready, ends));
        is_ready.recv().unwrap();
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Passes on the first part of the data that clients send, and nothing after that. Its connections to the server stay
/// open.
struct Cut {
    port: u16,
    /// The number of connections accepted so far.
    count: Arc<AtomicUsize>,
    /// Connections numbered below this pass on nothing more.
    muted: Arc<AtomicUsize>,
    open: Arc<std::sync::Mutex<Vec<TcpStream>>>,
}

impl Cut {
    /// Each connection passes on as many pieces as its entry in the list says. Connections beyond the end of the list
    /// pass on everything.
    fn new(to: u16, pieces: Vec<usize>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (count, open) = (Arc::new(AtomicUsize::new(0)), Arc::new(std::sync::Mutex::new(Vec::new())));
        let (counted, held) = (Arc::clone(&count), Arc::downgrade(&open));
        let muted = Arc::new(AtomicUsize::new(0));
        let mute = Arc::clone(&muted);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Some(held) = held.upgrade() else { return };
                let server = TcpStream::connect(("127.0.0.1", to)).unwrap();
                held.lock().unwrap().extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
                let at = counted.fetch_add(1, Ordering::SeqCst);
                let mut left = pieces.get(at).copied().unwrap_or(usize::MAX);
                let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let mute = Arc::clone(&mute);
                thread::spawn(move || {
                    let mut buffer = [0; 8192];
                    while let Ok(length @ 1..) = from.read(&mut buffer) {
                        if at < mute.load(Ordering::SeqCst) {
                            left = 0;
                        }
                        if left > 0 && to.write_all(&buffer[..length]).is_err() {
                            return;
                        }
                        left = left.saturating_sub(1);
                    }
                    if left > 0 {
                        let _ = to.shutdown(Shutdown::Both);
                    }
                });
                let (mut from, mut to) = (server, client);
                thread::spawn(move || std::io::copy(&mut from, &mut to));
            }
        });
        Self { port, count, muted, open }
    }
}

impl Drop for Cut {
    fn drop(&mut self) {
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// A host that accepts connections but never answers.
fn silent() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).unwrap()
}

/// A host that drops attempts to connect, since its queue of waiting connections is full.
fn dropping() -> (TcpListener, Vec<TcpStream>) {
    let listener = silent();
    // SAFETY: the socket is open.
    #[allow(unsafe_code)]
    let result = unsafe { libc::listen(listener.as_raw_fd(), 0) };
    assert_eq!(result, 0);
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        waiting.push(stream);
    }
    (listener, waiting)
}

fn port(listener: &TcpListener) -> u16 {
    listener.local_addr().unwrap().port()
}

#[test]
fn a_dead_host_is_passed_over() {
    let server = Postgres::new();
    let standby = server.standby();
    let (silent, (dropping, _waiting)) = (silent(), dropping());
    let alive = server.server.port();
    for dead in [port(&silent), port(&dropping), free_port(), standby.server.port()] {
        let hosts = format!("127.0.0.1:{dead},127.0.0.1:{alive}");
        let url = server.url().replace(&format!("127.0.0.1:{alive}"), &hosts);
        block(async {
            // A busy machine may need more than one attempt.
            let mut store = open(&url);
            let listed = retry(&mut store, async |store| store.read(&space("default"), None).await);
            assert!(timeout(LONG, listed).await.is_ok(), "{dead} of {hosts}");
        });
    }
    // If no host can be used, the error names each of them, with its answer.
    let (silent, refusing) = (port(&silent), free_port());
    let url = format!("postgres://u:secret@127.0.0.1:{silent},127.0.0.1:{refusing}/test?ttl=3s");
    let listed = block(async { timeout(LONG, open(&url).read(&space("default"), None)).await });
    let Ok(Err(StoreError::Unreachable(text))) = listed else { panic!("{listed:?}") };
    assert!(text.contains(&format!("127.0.0.1:{silent}: no answer")), "{text}");
    assert!(text.contains(&format!("127.0.0.1:{refusing}: Connection refused")), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

/// The host that a process is connected to dies without closing the connection.
#[test]
fn a_host_that_dies_is_left() {
    let server = Postgres::new();
    let alive = server.server.port();
    let first = Cut::new(alive, vec![usize::MAX]);
    let hosts = format!("127.0.0.1:{},127.0.0.1:{alive}", first.port);
    let url = server.url().replace(&format!("127.0.0.1:{alive}"), &hosts);
    block(async {
        let mut store = open(&url);
        store.read(&space("default"), None).await.unwrap();
        assert_eq!(first.count.load(Ordering::SeqCst), 1);
        let silent = silent();
        let hosts = format!("127.0.0.1:{},127.0.0.1:{alive}", port(&silent));
        let mut store = open(&url.replace(&format!("127.0.0.1:{},127.0.0.1:{alive}", first.port), &hosts));
        // As the keeper does, cancel an attempt that takes too long, and open a new connection.
        for _ in 0..20 {
            let attempt = timeout(Duration::from_secs(1), store.read(&space("default"), None)).await;
            if matches!(attempt, Ok(Ok(_))) {
                return;
            }
            store.disconnect();
        }
        panic!("it never got to the second host");
    });
}

const LEAF: &str = "CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL PRIMARY KEY, max_id bigint NOT NULL, \
                    step int NOT NULL, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP)";
const ROW: &str = "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 1)";
const HOLD: &str = "UPDATE leaf_alloc SET step = step";

fn orders() -> CounterName {
    super::leaf_tinyid_cosid::counter(Schema::Leaf, "orders")
}

fn postgres() -> Postgres {
    let server = Postgres::new();
    server.sql("test", &format!("{LEAF}; ALTER TABLE leaf_alloc OWNER TO polyflake; {ROW}"));
    server
}

fn maria() -> MariaDb {
    let server = MariaDb::new();
    server.sql(&format!("USE test; {LEAF}; {ROW}"));
    server
}

/// The server waits only a limited time for another client's lock, and the limit does not remain set in a session.
#[test]
fn postgres_waits_for_a_lock_for_a_bounded_time() {
    let server = postgres();
    let pooler = PgBouncer::new(server.server.port());
    for url in [server.url(), pooler.url()] {
        block(async {
            let mut store = open(&url);
            let first = rows(&mut store).counter(&orders()).await.unwrap().unwrap();
            let _held = Session::of_postgres(&server, HOLD);
            for is_reserve in [true, false] {
                let (rows, orders) = (rows(&mut store), orders());
                let ended = if is_reserve {
                    timeout(LONG, rows.reserve(&orders, &only(1))).await.map(|it| it.map(drop))
                } else {
                    timeout(LONG, rows.put_counter(&orders, &first, &first)).await.map(|it| it.map(drop))
                };
                let Ok(Err(StoreError::Unreachable(text))) = &ended else { panic!("{ended:?}") };
                assert!(text.contains("lock timeout"), "{text}");
            }
        });
    }
    // The pooler has few connections, all of which were used.
    let shown = block(async {
        let (client, connection) =
            tokio_postgres::connect(&pooler.url(), tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let mut shown = HashSet::new();
        for _ in 0..20 {
            for message in client.simple_query("SHOW lock_timeout").await.unwrap() {
                if let tokio_postgres::SimpleQueryMessage::Row(row) = message {
                    shown.insert(row.get(0).unwrap().to_owned());
                }
            }
        }
        shown
    });
    assert_eq!(shown, HashSet::from(["0".to_owned()]));
}

#[test]
fn mariadb_waits_for_a_lock_for_a_bounded_time() {
    let server = maria();
    block(async {
        let mut store = open(&server.url());
        for locked in [&["BEGIN", HOLD][..], &["LOCK TABLES leaf_alloc WRITE"]] {
            let _held = Session::of_maria(&server, locked);
            let ended = timeout(LONG, rows(&mut store).reserve(&orders(), &only(1))).await;
            let Ok(Err(StoreError::Unreachable(text))) = &ended else { panic!("{locked:?}: {ended:?}") };
            assert!(text.contains("Lock wait timeout exceeded"), "{text}");
        }
        assert_eq!(listed(&take(&mut store, &orders(), &only(2)).await), [1, 2]);
    });
}

/// Cancels twelve attempts. After each, waits until the server runs no more statements.
async fn cancelled_attempts(server: &Postgres, store: &mut Box<dyn Store>, locked: &str) {
    const BUSY: &str =
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'polyflake' AND state = 'active'";
    for _ in 0..12 {
        let ended = timeout(Duration::from_millis(300), rows(store).reserve(&orders(), &only(1))).await;
        assert!(!matches!(ended, Ok(Ok(_))), "{ended:?}");
        store.disconnect();
        eventually(locked, || server.sql("test", BUSY) == "0").await;
    }
}

/// Waits in this runtime, since shutting it down would also cancel the request to stop the statement.
async fn eventually(what: &str, is_done: impl Fn() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_done() {
        assert!(Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Cancelled attempts leave no statement on the server, and take no numbers later.
#[test]
fn attempts_that_are_ended_leave_nothing_behind() {
    let server = postgres();
    let mut store = open(&format!("{}?ttl=3s", server.url()));
    // A statement waits for a table's lock before it can set any limit, so the server is asked to stop it.
    for locked in [HOLD, "LOCK TABLE leaf_alloc IN ACCESS EXCLUSIVE MODE"] {
        let held = Session::of_postgres(&server, locked);
        block(cancelled_attempts(&server, &mut store, locked));
        drop(held);
    }
    assert_eq!(listed(&block(take(&mut store, &orders(), &only(1)))), [1]);
}

/// Cancelled attempts also leave no statement on the server if commits wait for standbys and none is connected. The
/// server sets no limit on waiting for a table's lock or for a standby.
#[test]
fn what_waits_for_a_standby_leaves_nothing_behind() {
    let server = postgres();
    server.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    server.sql("postgres", "SELECT pg_reload_conf()");
    wait_until("the setting", || server.sql("test", "SHOW synchronous_standby_names") == "nobody");
    let mut store = open(&format!("{}?ttl=3s", server.url()));
    for locked in ["LOCK TABLE leaf_alloc IN ACCESS EXCLUSIVE MODE", "SELECT"] {
        let held = Session::of_postgres(&server, locked);
        block(cancelled_attempts(&server, &mut store, locked));
        drop(held);
    }
    server.sql("postgres", "ALTER SYSTEM RESET synchronous_standby_names");
    server.sql("postgres", "SELECT pg_reload_conf()");
    wait_until("the setting", || server.sql("test", "SHOW synchronous_standby_names").is_empty());
    // The cancelled statements may have taken some numbers.
    assert!(block(take(&mut store, &orders(), &only(1))).first <= 13);
}

/// The server ignores a request to stop a statement that it has not received yet, so the store repeats the request.
#[test]
fn a_request_to_stop_that_comes_too_early() {
    let server = postgres();
    let relay = Relay::new(server.server.port());
    let url = server.url().replace(&server.server.port().to_string(), &relay.port().to_string());
    let mut store = open(&url);
    let connections =
        || server.sql("test", "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'polyflake'");
    block(async {
        take(&mut store, &orders(), &only(1)).await;
        // From now on, a commit waits for a standby until somebody stops it.
        server.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
        server.sql("postgres", "SELECT pg_reload_conf()");
        eventually("the setting", || server.sql("test", "SHOW synchronous_standby_names") == "nobody").await;
        relay.hold_requests(Some("UPDATE"));
        {
            let held = eventually("the statement", || relay.is_holding());
            let (rows, orders, only) = (rows(&mut store), orders(), only(1));
            let attempt = rows.reserve(&orders, &only);
            if let Either::Left((ended, _)) = select(pin!(attempt), pin!(held)).await {
                panic!("{ended:?}");
            }
        }
        let before = relay.begun().len();
        store.disconnect();
        eventually("the first request", || relay.begun().len() > before && relay.open() == 1).await;
        relay.hold_requests(None);
        eventually("the end of the statement", || connections() == "0").await;
    });
}

/// A pooler drops a request to stop a statement if its client has disconnected, and this role has no limit either.
#[test]
fn a_locked_table_behind_a_pooler() {
    let (server, name) = (postgres(), orders());
    let pooler = PgBouncer::new(server.server.port());
    let waiting = || -> usize {
        let waiting =
            "SELECT count(*) FROM pg_stat_activity WHERE usename = 'polyflake' AND wait_event_type = 'Lock'";
        server.sql("test", waiting).parse().unwrap()
    };
    let mut store = open(&format!("{}?ttl=3s&durability=none", pooler.url()));
    let first = head(None, &record(1, 1, "{}"));
    let pause = || tokio::time::sleep(Duration::from_millis(50));
    // Use one runtime. Shutting it down would cut off the requests to stop statements, and PgBouncer 1.18 does not
    // survive that.
    block(async {
        retry(&mut store, async |store| store.write(&first).await).await;
        for table in ["polyflake_records", "leaf_alloc"] {
            let held = Session::of_postgres(&server, &format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"));
            let mut ask = async |longest| {
                let ended = if table == "leaf_alloc" {
                    timeout(longest, rows(&mut store).counter(&name)).await.map(|it| it.map(drop))
                } else {
                    let group = space("default");
                    timeout(longest, store.read(&group, None)).await.map(|it| it.map(drop))
                };
                store.disconnect();
                matches!(ended, Ok(Ok(())))
            };
            let mut most = 0;
            for _ in 0..30 {
                assert!(!ask(Duration::from_millis(300)).await);
                pause().await;
                most = most.max(waiting());
            }
            // One statement that was not expected to wait, and those that wait for a second: about four, or more if
            // the server is slow. Without the limit of a second, all 30 would wait.
            assert!(most <= 12, "{table}: {most} at once");
            let deadline = Instant::now() + LONG;
            while waiting() > 1 {
                assert!(Instant::now() < deadline, "not only the first waits");
                pause().await;
            }
            drop(held);
            while waiting() > 0 || !ask(LONG).await {
                assert!(Instant::now() < deadline, "statements wait");
                pause().await;
            }
        }
    });
}

/// PgBouncer 1.18 exits if a client hangs up before the server has accepted its request to stop a statement. A busy
/// server can take several seconds to accept it.
#[test]
fn a_pooler_outlives_a_request_to_stop_that_takes_long() {
    let (server, name) = (postgres(), orders());
    let pooler = PgBouncer::new(server.server.port());
    let mut store = open(&format!("{}?ttl=3s&durability=none", pooler.url()));
    block(async {
        assert_eq!(listed(&take(&mut store, &name, &only(1)).await), [1]);
        let held = Session::of_postgres(&server, "LOCK TABLE leaf_alloc IN ACCESS EXCLUSIVE MODE");
        let ended = timeout(Duration::from_millis(300), rows(&mut store).counter(&name)).await;
        assert!(ended.is_err(), "{ended:?}");
        // New connections wait for the stopped process; open ones carry on without it.
        server.server.signal(Signal::STOP);
        store.disconnect();
        tokio::time::sleep(Duration::from_millis(2500)).await;
        server.server.signal(Signal::CONT);
        drop(held);
        assert_eq!(listed(&take(&mut store, &name, &only(1)).await), [2]);
    });
}

/// A request to stop a statement keeps its connection open until the server accepts it, so a store sends at most two at a
/// time.
#[test]
fn requests_to_stop_do_not_pile_up_behind_a_pooler() {
    const OPEN: usize = 12;
    let (server, name) = (postgres(), orders());
    let pooler = PgBouncer::with(server.server.port(), 20);
    let mut store = open(&format!("{}?ttl=3s&durability=none", pooler.url()));
    let sleep = async || {
        let (client, connection) =
            tokio_postgres::connect(&pooler.url(), tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute("SELECT pg_sleep(1)").await.unwrap();
    };
    let idle = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'polyflake' AND state = 'idle'";
    block(async {
        assert_eq!(listed(&take(&mut store, &name, &only(1)).await), [1]);
        // The pooler keeps its connections to the server after these clients have left.
        let deadline = Instant::now() + LONG;
        while server.sql("test", idle).parse::<usize>().unwrap() < OPEN {
            assert!(Instant::now() < deadline, "the pooler has fewer connections");
            join_all((0..OPEN).map(|_| sleep())).await;
        }
        let held = Session::of_postgres(&server, "LOCK TABLE leaf_alloc IN ACCESS EXCLUSIVE MODE");
        server.server.signal(Signal::STOP);
        let mut most = 0;
        for _ in 0..16 {
            let ended = timeout(Duration::from_millis(600), rows(&mut store).counter(&name)).await;
            assert!(!matches!(ended, Ok(Ok(_))), "{ended:?}");
            store.disconnect();
            most = most.max(pooler.clients());
        }
        server.server.signal(Signal::CONT);
        drop(held);
        assert!(most < OPEN, "{most} connections to the pooler");
    });
}

/// No matter where a client is cut off, others can use the row.
fn a_client_that_is_cut_off(url: &str, port: u16, is_free: impl Fn() -> bool) {
    let orders = orders();
    for pieces in 1..20 {
        let cut = Cut::new(port, vec![pieces]);
        let through = url.replace(&format!(":{port}/"), &format!(":{}/", cut.port));
        let reserved = block(async {
            let mut store = open(&through);
            timeout(Duration::from_secs(1), rows(&mut store).reserve(&orders, &only(3))).await
        });
        drop(reserved);
        wait_until(&format!("cut off after {pieces} pieces"), &is_free);
    }
    let taken = block(async { timeout(LONG, rows(&mut open(url)).reserve(&orders, &only(3))).await });
    assert!(matches!(taken, Ok(Ok(Reserved::Numbers(_)))), "{taken:?}");
}

#[test]
fn a_client_that_is_cut_off_has_no_lock_on_postgres() {
    let server = postgres();
    let is_free = || !server.sql("test", "SELECT step FROM leaf_alloc FOR UPDATE SKIP LOCKED").is_empty();
    a_client_that_is_cut_off(&server.url(), server.server.port(), is_free);
}

#[test]
fn a_client_that_is_cut_off_has_no_lock_on_mariadb() {
    let server = maria();
    let is_free = || !server.sql("SELECT step FROM test.leaf_alloc FOR UPDATE SKIP LOCKED").is_empty();
    a_client_that_is_cut_off(&server.url(), server.server.port(), is_free);
}

/// Leases have one connection, and everything else shares another. A call that waits for a row delays others by no more
/// than the limit on waiting for a lock.
#[test]
fn a_locked_row_does_not_starve_other_counters() {
    let server = Postgres::new();
    let url = format!("{}?namespace=rows", server.url());
    let ids = polyflake_coordination::open(&Snowflake::builder().lease(url.as_str())).unwrap();
    let one =
        |name: &str| CounterOptions::new(name).store(&url).step(1_u64).max_wait_ms(8_000_u64).open().unwrap();
    let (stuck, free): (Counter, Counter) = (one("stuck"), one("free"));
    assert_eq!((stuck.next_id(), free.next_id()), (Ok(1), Ok(1)));
    let connections = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'polyflake'";
    assert_eq!(server.sql("test", connections), "2");
    let held =
        Session::of_postgres(&server, "UPDATE polyflake_records SET text = text WHERE group_name = 'stuck'");
    thread::scope(|scope| {
        let waits = scope.spawn(|| stuck.next_id());
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        wait_until("it waits", || server.sql("test", waiting) != "0");
        for number in 2..5 {
            assert_eq!(free.next_id(), Ok(number));
        }
        drop(held);
        let stuck = waits.join().unwrap();
        assert!(
            stuck.is_ok_and(|number| number >= 2)
                || stuck.is_err_and(|it| it.code() == ErrorCode::CounterUnavailable)
        );
    });
    ids.close();
    stuck.close();
    free.close();
}

/// Here, the server's default isolation level turns each conflict into an error.
#[test]
fn conflicts_are_tried_again() {
    let (server, name) = (postgres(), orders());
    for (isolation, first) in [("repeatable read", 1), ("serializable", 401)] {
        server.sql(
            "postgres",
            &format!("ALTER DATABASE test SET default_transaction_isolation = '{isolation}'"),
        );
        let mut all = Vec::new();
        // A call fails if each of its 50 tries meets a conflict, which is rare.
        let failures = AtomicUsize::new(0);
        thread::scope(|scope| {
            let takers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        block(async {
                            let (mut store, mut numbers) = (open(&server.url()), Vec::new());
                            while numbers.len() < 100 {
                                // Besides, a call may fail only if another one stood still while it held the row.
                                match rows(&mut store).reserve(&name, &only(1)).await {
                                    Ok(Reserved::Numbers(one)) => numbers.extend(listed(&one)),
                                    Err(error) if error.to_string().contains("lock timeout") => {}
                                    Err(error) if error.to_string().contains("could not serialize") => {
                                        failures.fetch_add(1, Ordering::Relaxed);
                                    }
                                    other => panic!("{other:?}"),
                                }
                            }
                            numbers
                        })
                    })
                })
                .collect();
            for taker in takers {
                all.extend(taker.join().unwrap());
            }
        });
        assert!(failures.into_inner() < 4);
        all.sort_unstable();
        assert_eq!(all, (first..first + 400).collect::<Vec<u64>>());
    }
}

/// A trigger raises MariaDB's deadlock error.
#[test]
fn deadlocks_are_tried_again() {
    let (server, name) = (maria(), orders());
    block(async {
        let mut store = open(&server.url());
        server.sql(
            "USE test; CREATE TABLE deadlocks (n INT) ENGINE=MyISAM; INSERT INTO deadlocks VALUES (5);\nDELIMITER //\n\
             CREATE TRIGGER dead BEFORE UPDATE ON leaf_alloc FOR EACH ROW BEGIN \
             UPDATE deadlocks SET n = n - 1 WHERE n > 0; \
             IF ROW_COUNT() > 0 THEN SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock'; END IF; END//\n",
        );
        let rows = rows(&mut store);
        let first = rows.counter(&name).await.unwrap().unwrap();
        assert_eq!(rows.put_counter(&name, &first, &first).await, Ok(true));
        assert_eq!(server.sql("SELECT n FROM test.deadlocks"), "0");
    });
}

/// With triggers, the server does not return the number that a change produces.
#[test]
fn a_row_with_triggers() {
    let (server, name) = (maria(), orders());
    server.sql("CREATE TABLE test.seen (at BIGINT AUTO_INCREMENT PRIMARY KEY, max_id BIGINT)");
    for when in ["BEFORE", "AFTER"] {
        server.sql(&format!(
            "CREATE TRIGGER test.seen_{when} {when} UPDATE ON test.leaf_alloc FOR EACH ROW \
             INSERT INTO test.seen (max_id) VALUES (NEW.max_id)"
        ));
    }
    block(async {
        let mut store = open(&server.url());
        for first in [1, 3, 5] {
            let reserved = rows(&mut store).reserve(&name, &only(2)).await;
            let Ok(Reserved::Numbers(numbers)) = &reserved else { panic!("{reserved:?}") };
            assert_eq!(listed(numbers), [first, first + 1]);
        }
    });
}

/// A connection dies while no one is using it.
fn an_idle_connection(url: &str, at: u16) {
    let cut = Cut::new(at, Vec::new());
    let through = format!("{}?ttl=3s", url.replace(&format!(":{at}/"), &format!(":{}/", cut.port)));
    block(async {
        let (mut store, name) = (open(&through), orders());
        assert!(rows(&mut store).counter(&name).await.unwrap().is_some());
        // This is longer than the time between two renewals of a lease.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        cut.muted.store(cut.count.load(Ordering::SeqCst), Ordering::SeqCst);
        // On a busy machine, connecting may take longer than an attempt.
        let found = timeout(LONG, async {
            loop {
                match rows(&mut store).counter(&name).await {
                    Err(StoreError::Unreachable(_)) => {}
                    found => break found,
                }
            }
        });
        let found = found.await;
        assert!(matches!(found, Ok(Ok(Some(_)))), "{found:?}");
        assert!(cut.count.load(Ordering::SeqCst) >= 2);
    });
}

#[test]
fn an_idle_connection_of_postgres() {
    let server = postgres();
    an_idle_connection(&server.url(), server.server.port());
}

#[test]
fn an_idle_connection_of_mariadb() {
    let server = maria();
    an_idle_connection(&server.url(), server.server.port());
}

/// An attempt was cancelled while connecting to a host that did not answer at the time, but has since recovered.
fn an_attempt_of_long_ago(url: &str, at: u16) {
    let silent = silent();
    let through = format!("{}?ttl=3s", url.replace(&format!(":{at}/"), &format!(":{}/", port(&silent))));
    block(async {
        let mut store = open(&through);
        let ended = timeout(Duration::from_millis(100), store.read(&space("default"), None)).await;
        assert!(ended.is_err(), "{ended:?}");
        store.disconnect();
        // This is longer than connecting may take, and longer than the time between two renewals of a lease.
        tokio::time::sleep(Duration::from_secs(4)).await;
        silent.set_nonblocking(true).unwrap();
        let listener = tokio::net::TcpListener::from_std(silent).unwrap();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut server = tokio::net::TcpStream::connect(("127.0.0.1", at)).await.unwrap();
                tokio::spawn(
                    async move { tokio::io::copy_bidirectional(&mut client, &mut server).await.ok() },
                );
            }
        });
        // On a busy machine, connecting may take longer than an attempt.
        let found = timeout(LONG, async {
            loop {
                match store.read(&space("default"), None).await {
                    Err(StoreError::Unreachable(_)) => {}
                    found => break found,
                }
            }
        });
        let found = found.await;
        assert!(matches!(found, Ok(Ok(_))), "{found:?}");
    });
}

#[test]
fn an_attempt_of_long_ago_on_postgres() {
    let server = Postgres::new();
    an_attempt_of_long_ago(&server.url(), server.server.port());
}

#[test]
fn an_attempt_of_long_ago_on_mariadb() {
    let server = MariaDb::new();
    an_attempt_of_long_ago(&server.url(), server.server.port());
}

/// Checks that connections on which an answer stalled halfway are closed.
#[test]
fn an_answer_that_stalls_leaves_no_connection() {
    let server = MariaDb::new();
    let relay = Relay::new(server.server.port());
    let at = |port: u16| format!(":{port}/");
    let url = server.url().replace(&at(server.server.port()), &at(relay.port()));
    let closed = async || {
        let closed = async {
            while relay.open() > 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        assert!(timeout(LONG, closed).await.is_ok(), "{} of {} are open", relay.open(), relay.begun().len());
    };
    block(async {
        // While the client is connecting: the server's settings take a few hundred bytes.
        relay.stall(Some(300));
        let mut store = stores::MysqlStore::new(&url).unwrap().within(Duration::from_millis(300));
        let stalled = async {
            while relay.begun().len() < 6 {
                let ended = timeout(Duration::from_millis(300), store.read(&space("default"), None)).await;
                assert!(!matches!(ended, Ok(Ok(_))), "{ended:?}");
                store.disconnect();
            }
        };
        assert!(timeout(LONG, stalled).await.is_ok(), "{} connections", relay.begun().len());
        closed().await;
        relay.stall(None);
        let mut store = open(&url);
        let new = record(11, 1, &format!("{{\"label\":\"{}\"}}", "x".repeat(4_000)));
        write(&mut *store, &head(None, &new)).await;
        for _ in 0..2 {
            relay.stall(None);
            assert_eq!(read(&mut *store, "head").await.as_ref(), Some(&new));
            relay.stall(Some(3_000));
            let ended = timeout(Duration::from_millis(500), store.read(&space("default"), None)).await;
            assert!(ended.is_err(), "{ended:?}");
            store.disconnect();
            closed().await;
        }
    });
}

/// Another process locks the file for a while.
#[test]
fn a_file_that_is_in_use_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counters.db");
    let url = format!("sqlite://{}", path.display());
    let name = orders();
    rusqlite::Connection::open(&path).unwrap().execute_batch(&format!("{LEAF}; {ROW}")).unwrap();
    block(async {
        let mut store = open(&url);
        let (begun, has_begun) = mpsc::channel();
        let other = thread::spawn(move || {
            let connection = rusqlite::Connection::open(path).unwrap();
            connection.execute_batch(&format!("BEGIN IMMEDIATE; {HOLD}")).unwrap();
            begun.send(()).unwrap();
            thread::sleep(Duration::from_millis(700));
            connection.execute_batch("COMMIT").unwrap();
        });
        has_begun.recv().unwrap();
        let reserved = rows(&mut store).reserve(&name, &only(1)).await;
        assert!(matches!(reserved, Ok(Reserved::Numbers(_))), "{reserved:?}");
        other.join().unwrap();
    });
}

#[test]
fn tables_of_others_in_a_list() {
    let folder = tempfile::tempdir().unwrap();
    let url =
        |name: &str, schema: &str| format!("sqlite://{}?schema={schema}", folder.path().join(name).display());
    let why = |stores: &[String]| {
        let options = stores.iter().fold(CounterOptions::new("orders"), |options, url| options.store(url));
        options
            .open()
            .map(|counter| counter.next_ids(4_u64).unwrap())
            .map_err(|error| (error.code(), error.to_string()))
    };
    for schema in ["leaf", "cosid"] {
        let Err((ErrorCode::InvalidOption, text)) = why(&[url("a", schema), url("b", schema)]) else {
            panic!()
        };
        assert!(text.contains(&format!("schema={schema}")), "{text}");
    }
    for (file, delta, remainder) in [("a", 2, 0), ("b", 2, 1), ("c", 3, 0), ("d", 2, 0)] {
        let connection = rusqlite::Connection::open(folder.path().join(file)).unwrap();
        connection.execute_batch(super::leaf_tinyid_cosid::TABLES[1]).unwrap();
        let row = format!(
            "INSERT INTO tiny_id_info (id, biz_type, step, delta, remainder) VALUES (1, 'orders', 10, {delta}, {remainder})"
        );
        connection.execute_batch(&row).unwrap();
    }
    // Each row is wrong for its position, since a correct one would return numbers even next to a wrong one.
    for wrong in [["c", "d"], ["b", "c"], ["b", "a"]] {
        let Err((code, text)) = why(&wrong.map(|file| url(file, "tinyid"))) else { panic!("{wrong:?}") };
        assert!(text.contains("delta") && text.contains("remainder"), "{code:?} {text}");
    }
    let numbers = why(&["a", "b"].map(|file| url(file, "tinyid"))).unwrap();
    assert_eq!(numbers.iter().collect::<HashSet<_>>().len(), 4);
}

/// With a step of 1, the row advances by the count of numbers taken, not by its own step.
#[test]
fn a_row_of_leaf_with_a_step_of_1() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counters.db");
    let row = "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 2000)";
    rusqlite::Connection::open(&path).unwrap().execute_batch(&format!("{LEAF}; {row}")).unwrap();
    let url = format!("sqlite://{}?schema=leaf", path.display());
    let orders = CounterOptions::new("orders").store(&url).step(1_u64).open().unwrap();
    let taken = [1, 2, 3].map(|_| orders.next_id().unwrap());
    assert_eq!((taken, orders.next_block(5_u64).unwrap(), orders.peek().unwrap()), ([1, 2, 3], 4, 8));
    orders.close();
}

/// Leaf's segments do not include their upper end, so Leaf never hands out 2^63-1.
#[test]
fn a_row_of_leaf_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counters.db");
    let row =
        format!("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', {}, 1)", LAST_NUMBER - 3);
    rusqlite::Connection::open(&path).unwrap().execute_batch(&format!("{LEAF}; {row}")).unwrap();
    let url = format!("sqlite://{}?schema=leaf", path.display());
    for step in ["auto", "1"] {
        let options = CounterOptions::new("orders").store(&url);
        let options = if step == "1" { options.step(1_u64) } else { options };
        let orders = options.open().unwrap();
        let ends = |failed: Result<u64, polyflake::Error>| {
            let text = failed.unwrap_err().to_string();
            assert!(text.contains("has reached its end"), "{text}");
        };
        if step == "auto" {
            ends(orders.next_block(4_u64));
            let taken = [1, 2, 3].map(|_| orders.next_id().unwrap());
            assert_eq!(taken, [3, 2, 1].map(|below| LAST_NUMBER - below));
        }
        ends(orders.next_id());
        ends(orders.next_block(1_u64));
        assert_eq!(orders.peek().unwrap(), LAST_NUMBER - 1);
        orders.close();
    }
}
