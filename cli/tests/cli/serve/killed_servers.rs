//! For a minute, servers and their store are killed while clients keep sending requests.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, RedisError, cmd};
use rustix::process::Signal;

use super::super::servers::free_port;
use super::super::servers::redis::Redis;
use super::super::{json, prints};
use super::Server;
use super::server::command;

const SECONDS: u64 = 60;
/// The environment variable that overrides the number of seconds.
const VARIABLE: &str = "POLYFLAKE_SERVICE_SECONDS";
const CLIENTS: usize = 10;
/// The pause between two events, so that clients can settle.
const PAUSE: Duration = Duration::from_millis(500);
/// After this long, a client considers a request lost.
const PATIENCE: Duration = Duration::from_secs(20);
/// After this long, the test is considered stuck. A server that starts after a restart of Redis waits for a TTL.
const STUCK: Duration = Duration::from_secs(120);
const OPTIONS: &str = "ttl=10s&wait=60s";
/// More requests than all clients together can have in progress when something happens.
const SOME: u64 = 100;

const SNOWFLAKE: usize = 0;
const ORDERS: usize = 1;
const NAMES: [&str; 2] = ["snowflake", "orders"];

/// Two servers on one Redis, which flushes before it acknowledges: otherwise, its own crash would lose leases and
/// segments.
#[test]
#[ignore = "it takes a minute"]
fn nothing_twice_in_a_minute_of_kills() {
    let seconds = std::env::var(VARIABLE).map_or(SECONDS, |text| text.parse().unwrap());
    let mut store = Redis::new();
    assert!(store.cli(&["CONFIG", "GET", "appendfsync"]).contains("always"));
    // The store is declared new here, so that no server waits because it is the first.
    let lease = format!("{}?{OPTIONS}", store.url());
    prints(&["leases", &lease, "--init", "--yes"]);
    let places = [(); 2].map(|()| Place { http: free_port(), resp: free_port(), lease: lease.clone() });
    let field = Field { places: &places, served: Default::default(), ends: AtomicBool::new(false) };

    let (mut times, mut logs) = (BTreeMap::new(), Vec::new());
    let mut happened = |what: &'static str| *times.entry(what).or_insert(0) += 1;
    let tallies = thread::scope(|scope| {
        // If this fails, the clients stop too.
        let _end = EndAtDrop(&field.ends);
        let mut servers = [0, 1].map(|n| Some(places[n].begin()));
        let field = &field;
        let clients: Vec<_> =
            (0..CLIENTS).map(|n| scope.spawn(move || Client::new(field, n).run())).collect();
        let mut tallies = Vec::new();
        let end = Instant::now() + Duration::from_secs(seconds);
        // Every event happens at least once.
        loop {
            for (signal, what) in [(Signal::KILL, "servers killed"), (Signal::TERM, "servers terminated")] {
                for n in [0, 1] {
                    let server = servers[n].take().unwrap();
                    server.signal(signal);
                    // The other server answers all requests.
                    field.more(1 - n, SNOWFLAKE);
                    field.more(1 - n, ORDERS);
                    thread::sleep(PAUSE);
                    let (status, log) = server.ended();
                    assert_eq!(status.success(), signal == Signal::TERM, "{log}");
                    logs.push(log);
                    happened(what);
                    servers[n] = Some(places[n].begin());
                    field.more(n, SNOWFLAKE);
                    field.more(n, ORDERS);
                    thread::sleep(PAUSE);
                }
            }
            store.server.kill();
            happened("the store killed");
            // A lease stays usable for a while without its store. The clients will soon be waiting for numbers, so a
            // separate client sends the requests.
            let mut another = Client::new(field, CLIENTS);
            for n in [0, 1] {
                assert!(another.ask(n, SNOWFLAKE, Request::Ids(1), 0), "{:?}", another.tally.failed);
            }
            tallies.push(another.tally);
            thread::sleep(PAUSE);
            store.server.start_again();
            for n in [0, 1] {
                field.more(n, SNOWFLAKE);
                field.more(n, ORDERS);
            }
            thread::sleep(PAUSE);
            if Instant::now() > end {
                break;
            }
        }
        field.ends.store(true, Ordering::Relaxed);
        tallies.extend(clients.into_iter().map(|client| client.join().unwrap()));
        for server in servers.into_iter().flatten() {
            let (status, log) = server.terminate();
            assert!(status.success(), "{log}");
            logs.push(log);
        }
        tallies
    });

    let mut failed = BTreeMap::new();
    for (why, count) in tallies.iter().flat_map(|tally| &tally.failed) {
        *failed.entry(why.as_str()).or_insert(0) += count;
    }
    let answered: u64 = tallies.iter().map(|tally| tally.answered).sum();
    let all_failed: u64 = failed.values().sum();
    println!("{seconds} s: {times:?}; requests: {answered} answered, {all_failed} failed: {failed:?}");
    for (generator, name) in NAMES.iter().enumerate() {
        let runs = tallies.iter().flat_map(|tally| &tally.runs[generator]).copied().collect();
        let (given, twice) = count(runs);
        let by = [0, 1].map(|n| field.served[n][generator].load(Ordering::Relaxed));
        println!("{name}: {given} given, {twice} twice; {} and {} requests by each server", by[0], by[1]);
        assert_eq!(twice, 0);
        assert!(by[0] > 0 && by[1] > 0);
    }
    for why in failed.keys() {
        assert!(!why.contains("internal") && !why.contains("unknown_generator"), "{why}");
    }
    for log in &logs {
        assert!(!log.contains("panicked"), "{log}");
    }
}

/// Counts the numbers in runs, which may be in any order, and how many of them are repeats.
fn count(mut runs: Vec<(u64, u64)>) -> (u64, u64) {
    runs.sort_unstable();
    let (mut given, mut twice, mut next) = (0, 0, 0);
    for (first, last) in runs {
        given += last - first + 1;
        twice += (last + 1).min(next).saturating_sub(first);
        next = next.max(last + 1);
    }
    (given, twice)
}

#[test]
fn what_comes_twice_is_counted() {
    assert_eq!(count(vec![(5, 5), (1, 3), (4, 4), (6, 9)]), (9, 0));
    assert_eq!(count(vec![(1, 10), (3, 4), (10, 12), (12, 12)]), (16, 4));
}

/// A server's addresses, which stay the same across restarts.
struct Place {
    http: u16,
    resp: u16,
    lease: String,
}

impl Place {
    fn begin(&self) -> Server {
        let [http, resp] = [self.http, self.resp].map(|port| format!("127.0.0.1:{port}"));
        let lease = ["--lease", &self.lease, "--counter", "orders"];
        Server::start(command().args(["--http", &http, "--resp", &resp]).args(lease))
    }
}

/// State shared by the clients.
struct Field<'a> {
    places: &'a [Place; 2],
    /// Requests that were answered, by server and generator.
    served: [[AtomicU64; 2]; 2],
    ends: AtomicBool,
}

impl Field<'_> {
    /// Waits until a server has answered some more requests.
    fn more(&self, server: usize, generator: usize) {
        let answered = || self.served[server][generator].load(Ordering::Relaxed);
        let (enough, start) = (answered() + SOME, Instant::now());
        while answered() < enough {
            assert!(start.elapsed() < STUCK, "server {server} gives nothing of {}", NAMES[generator]);
            thread::sleep(Duration::from_millis(5));
        }
    }
}

struct EndAtDrop<'a>(&'a AtomicBool);

impl Drop for EndAtDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Everything that a client received.
#[derive(Default)]
struct Tally {
    answered: u64,
    failed: BTreeMap<String, u64>,
    /// The first and last number of each run, by generator.
    runs: [Vec<(u64, u64)>; 2],
}

#[derive(Clone, Copy)]
enum Request {
    /// The given number of IDs in one request.
    Ids(u64),
    /// Single IDs, all requested at once.
    Pipeline(usize),
    /// Consecutive numbers.
    Block(u64),
}

struct Client<'a> {
    field: &'a Field<'a>,
    home: usize,
    http: Option<ureq::Agent>,
    resp: [Option<Connection>; 2],
    tally: Tally,
}

impl<'a> Client<'a> {
    fn new(field: &'a Field<'a>, n: usize) -> Self {
        let http = ureq::Agent::config_builder().http_status_as_error(false).timeout_global(Some(PATIENCE));
        // For both protocols, each server is home to some of the clients.
        let http = (n < CLIENTS / 2).then(|| http.build().new_agent());
        Self { field, home: n % 2, http, resp: [None, None], tally: Tally::default() }
    }

    /// Asks the client's own server, and the other one if that fails.
    fn run(mut self) -> Tally {
        let ids = [Request::Ids(1), Request::Ids(20), Request::Ids(1), Request::Ids(150)];
        let of_resp = [Request::Pipeline(16), Request::Block(1), Request::Block(30), Request::Block(500)];
        let requests = if self.http.is_some() { ids.to_vec() } else { [ids, of_resp].concat() };
        for (n, request) in requests.iter().cycle().enumerate() {
            if self.field.ends.load(Ordering::Relaxed) {
                break;
            }
            // Goes through all requests for one generator, then for the other.
            let generator = n / requests.len() % 2;
            if generator == SNOWFLAKE && matches!(request, Request::Block(_)) {
                continue;
            }
            let is_served =
                [self.home, 1 - self.home].into_iter().any(|server| self.ask(server, generator, *request, n));
            if !is_served {
                thread::sleep(Duration::from_millis(10));
            }
        }
        self.tally
    }

    /// Sends a request, and returns whether it was answered.
    fn ask(&mut self, server: usize, generator: usize, request: Request, n: usize) -> bool {
        let (name, place) = (NAMES[generator], &self.field.places[server]);
        let answer = match (&self.http, request) {
            (Some(agent), Request::Ids(count)) => over_http(agent, place, name, count, n),
            _ => over_resp(&mut self.resp[server], place, name, request),
        };
        match answer {
            Ok(runs) => {
                self.tally.runs[generator].extend(runs);
                self.tally.answered += 1;
                self.field.served[server][generator].fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(why) => {
                *self.tally.failed.entry(why).or_default() += 1;
                false
            }
        }
    }
}

/// The runs, or the reason why there are none.
type Answer = Result<Vec<(u64, u64)>, String>;

/// Uses each of the three formats in turn.
fn over_http(agent: &ureq::Agent, place: &Place, name: &str, count: u64, n: usize) -> Answer {
    let form = ["json", "text", "bytes"][n % 3];
    let url = format!("http://127.0.0.1:{}/v1/ids/{name}?n={count}&format={form}", place.http);
    let failed = |error: ureq::Error| match error {
        ureq::Error::Io(error) => format!("http: {}", error.kind()),
        ureq::Error::Timeout(_) => "http: timed out".into(),
        other => format!("http: {other}"),
    };
    let mut response = agent.get(url).call().map_err(failed)?;
    let body = response.body_mut().read_to_vec().map_err(failed)?;
    let text = || String::from_utf8(body.clone()).unwrap();
    if response.status() != 200 {
        return Err(format!("http: {} {}", response.status().as_u16(), json(&text())["error"]));
    }
    let ids: Vec<u64> = match form {
        "json" => {
            let ids = json(&text())["ids"].clone();
            ids.as_array().unwrap().iter().map(|id| id.as_str().unwrap().parse().unwrap()).collect()
        }
        "text" => text().lines().map(|line| line.parse().unwrap()).collect(),
        _ => body.chunks(8).map(|id| u64::from_be_bytes(id.try_into().unwrap())).collect(),
    };
    assert_eq!(ids.len() as u64, count);
    Ok(ids.into_iter().map(|id| (id, id)).collect())
}

fn over_resp(connection: &mut Option<Connection>, place: &Place, name: &str, request: Request) -> Answer {
    let answer = ask_resp(connection, place, name, request);
    answer.map_err(|error| {
        // On this connection, the next answer could belong to this request.
        *connection = None;
        match error.detail().and_then(|detail| detail.split_once(':')) {
            Some((name, _)) if error.kind() == redis::ServerErrorKind::ResponseError.into() => {
                format!("resp: {name}")
            }
            _ if error.is_timeout() => "resp: timed out".into(),
            _ if error.is_connection_refusal() => "resp: connection refused".into(),
            _ if error.is_connection_dropped() => "resp: connection dropped".into(),
            _ => format!("resp: {error}"),
        }
    })
}

fn ask_resp(
    connection: &mut Option<Connection>,
    place: &Place,
    name: &str,
    request: Request,
) -> Result<Vec<(u64, u64)>, RedisError> {
    let connection = if let Some(connection) = connection {
        connection
    } else {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", place.resp))?;
        let new = client.get_connection_with_timeout(PATIENCE)?;
        new.set_read_timeout(Some(PATIENCE))?;
        connection.insert(new)
    };
    let ids: Vec<u64> = match request {
        Request::Ids(1) => vec![cmd("INCR").arg(name).query(connection)?],
        Request::Ids(count) => cmd("PF.NEXT").arg(name).arg(count).query(connection)?,
        Request::Pipeline(count) => {
            let mut pipe = redis::pipe();
            for _ in 0..count {
                pipe.cmd("INCR").arg(name);
            }
            pipe.query(connection)?
        }
        Request::Block(count) => {
            let last: u64 = cmd("INCRBY").arg(name).arg(count).query(connection)?;
            return Ok(vec![(last + 1 - count, last)]);
        }
    };
    Ok(ids.into_iter().map(|id| (id, id)).collect())
}
