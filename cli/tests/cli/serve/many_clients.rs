//! A very large number of clients, and slow ones: the server's memory for them is bounded.

use std::collections::HashSet;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::super::servers::redis::Redis;
use super::{Server, eventually, redis};

const IDLE: usize = 10_000;
/// The most MiB that the server may use, about twice the highest amount observed.
const MOST: u64 = 250;
const GET: &[u8] = b"GET /v1/ids/orders?format=text HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
const INCR: &[u8] = b"INCR orders\r\n";

/// The server's resident memory in MiB, now and at its peak.
fn memory(server: &Server) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
    let mib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim_matches([':', ' ', '\t', 'k', 'B']).parse::<u64>().unwrap() >> 10
    };
    (mib("VmRSS"), mib("VmHWM"))
}

/// Lets this process, and the processes it starts, open `wanted` files.
fn allow_files(wanted: u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= wanted);
    if enough(current) {
        return;
    }
    let maximum = if enough(maximum) { maximum } else { Some(wanted) };
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    raised.unwrap_or_else(|error| panic!("this test opens {wanted} files: raise `ulimit -Hn`: {error}"));
}

/// Reads the number from an answer that arrives in one piece.
fn number(stream: &mut TcpStream) -> u64 {
    let (mut answer, mut part) = (Vec::new(), [0; 1024]);
    loop {
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0, "closed after {:?}", answer.escape_ascii().to_string());
        answer.extend_from_slice(&part[..count]);
        let text = std::str::from_utf8(&answer).unwrap();
        let number = match text.split_once("\r\n\r\n") {
            Some((head, body)) => {
                assert!(head.starts_with("HTTP/1.1 200 "), "{text}");
                body
            }
            None => text.strip_prefix(':').unwrap_or_default(),
        };
        if number.ends_with('\n') {
            return number.trim().parse().unwrap();
        }
    }
}

/// Waits until this is the server's only connection.
fn wait_until_alone(server: &Server) {
    let start = Instant::now();
    loop {
        let text = server.ok("/metrics");
        let open = |protocol: &str| {
            let name = format!("polyflake_{protocol}_connections ");
            let line = text.lines().find_map(|line| line.strip_prefix(&*name));
            line.unwrap().parse::<u64>().unwrap()
        };
        if open("http") <= 1 && open("resp") == 0 {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(120), "{text}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Every number has to come from the store, which is not answering.
#[cfg(target_os = "linux")]
#[test]
fn clients_that_wait_for_a_store_hold_no_thread_each() {
    const WAITING: usize = 200;
    let (store, folder) = (Redis::new(), tempfile::tempdir().unwrap());
    let config = folder.path().join("polyflake.toml");
    let store_and_step = format!("store = \"{}\"\nstep = 1\nmax_wait_ms = 600000\n", store.url());
    std::fs::write(&config, format!("[generators.asked]\nkind = \"counter\"\n{store_and_step}")).unwrap();
    let server = Server::new(&["--config", config.to_str().unwrap()]);
    assert_eq!(server.ids("/v1/ids/asked?format=text"), [1]);
    let threads = || std::fs::read_dir(format!("/proc/{}/task", server.id())).unwrap().count();
    let before = threads();
    store.server.pause();
    let mut waiting: Vec<_> = (0..WAITING)
        .map(|_| {
            let mut stream = TcpStream::connect(server.resp.unwrap()).unwrap();
            stream.write_all(b"INCR asked\r\n").unwrap();
            stream
        })
        .collect();
    while !server.ok("/metrics").contains(&format!("polyflake_resp_connections {WAITING}")) {
        thread::sleep(Duration::from_millis(20));
    }
    let during = threads();
    store.server.resume();
    let given: HashSet<_> = waiting.iter_mut().map(number).collect();
    assert_eq!(given.len(), WAITING);
    assert!(during <= before + 2, "{before} threads, and {during} while {WAITING} clients wait");
}

/// Clients request more than the limit allows, and the memory is free again once they have disconnected.
#[test]
fn answers_that_nobody_reads_have_a_budget() {
    const MIB: u64 = 16;
    const CLIENTS: usize = 240;
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("polyflake.toml");
    std::fs::write(&config, "[generators.orders]\nkind = \"counter\"\nstep = 1000000\n").unwrap();
    let budget = ["--max-output", &MIB.to_string(), "--config", config.to_str().unwrap()];
    let server = Server::in_folder(folder.path(), &budget);
    let (before, _) = memory(&server);
    let next = b"PF.NEXT orders 10000\r\n".repeat(100);
    let get = b"GET /v1/ids/orders?n=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(100);
    let clients: Vec<_> = [(server.resp.unwrap(), next), (server.http.unwrap(), get)]
        .iter()
        .cycle()
        .take(CLIENTS)
        .map(|(address, requests)| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(requests).unwrap();
            stream
        })
        .collect();
    // Some requests are refused as busy, and small ones are still answered.
    eventually(|| server.get("/v1/ids/orders?n=10000").1.contains("\"busy\""));
    assert_eq!(server.ids("/v1/ids/orders?format=text").len(), 1);
    let given: u64 = redis::cmd("INCR").arg("orders").query(&mut redis(&server, "")).unwrap();
    let (during, peak) = memory(&server);
    drop(clients);
    wait_until_alone(&server);
    eventually(|| memory(&server).0 < before + MIB);
    assert_eq!(server.ids("/v1/ids/orders?n=10000&format=text").len(), 10_000);
    println!(
        "{before} MiB before, {during} MiB with them, at most {peak} MiB, {} MiB after, {given} numbers",
        memory(&server).0
    );
    // The kernel buffers little for each client: ten replies are almost a megabyte.
    assert!(given < CLIENTS as u64 * 10 * 10_000, "{given} numbers");
    assert!(peak < before + 3 * MIB, "{peak} MiB");
}

/// Each client has sent as much as it is allowed to.
#[test]
#[ignore = "it opens 7,000 connections"]
fn clients_without_the_token_cost_little() {
    const COUNT: usize = 6_000;
    allow_files(2 * COUNT as u64);
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "hunter2\n").unwrap();
    let token = ["--uuid", "ids=7", "--token-file", token.to_str().unwrap()];
    let server = Server::new(&[&token[..], &["--max-per-address", "10000"]].concat());
    let come = |count: usize| {
        let open = [server.http.unwrap(), server.resp.unwrap()].map(|address| {
            let start = [&b"GET / HTTP/1.1\r\nX: "[..], &b"*2\r\n$4\r\nAUTH\r\n$4000\r\n"[..]];
            let start = if Some(address) == server.http { start[0] } else { start[1] };
            let request = [start, &[b'x'; 4_000]].concat();
            let strangers = (0..count / 2).map(|_| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(&request).unwrap();
                stream
            });
            strangers.collect::<Vec<_>>()
        });
        assert_eq!(server.of_admin("/healthz").0, 200);
        open
    };
    // The first clients also use memory that the server allocates only once.
    let first = come(COUNT / 6);
    let (before, _) = memory(&server);
    let others = come(COUNT);
    let (after, _) = memory(&server);
    drop((first, others));
    let each = after.saturating_sub(before) * 1024 / COUNT as u64;
    println!("{each} KiB each");
    // More than half of this is the data that they sent.
    assert!(each <= 8, "{each} KiB each");
}

#[test]
#[ignore = "it opens 10,000 connections"]
fn ten_thousand_idle_connections() {
    allow_files(IDLE as u64 + 1_000);
    let folder = tempfile::tempdir().unwrap();
    let most = (IDLE + 100).to_string();
    let limits = ["--max-connections", &most, "--max-per-address", &most];
    let server = Server::in_folder(folder.path(), &[&["--counter", "orders"], &limits[..]].concat());
    let kinds = [(server.http.unwrap(), GET), (server.resp.unwrap(), INCR)];
    let (before, _) = memory(&server);
    let mut given = HashSet::new();
    let mut ask = |stream: &mut TcpStream, request: &[u8]| {
        stream.write_all(request).unwrap();
        assert!(given.insert(number(stream)));
    };
    // Each client has been served once, so the server now holds everything it ever will for that client.
    let mut idle: Vec<_> = kinds
        .iter()
        .cycle()
        .take(IDLE)
        .map(|&(address, request)| {
            let mut stream = TcpStream::connect(address).unwrap();
            ask(&mut stream, request);
            (stream, request)
        })
        .collect();
    let (with_all, _) = memory(&server);
    for (address, request) in kinds.iter().cycle().take(50) {
        ask(&mut TcpStream::connect(address).unwrap(), request);
    }
    // Idle clients can still send requests.
    for (stream, request) in &mut idle {
        ask(stream, request);
    }
    drop(idle);
    wait_until_alone(&server);
    let (after, peak) = memory(&server);
    let each = (with_all - before) * 1024 / IDLE as u64;
    println!(
        "{IDLE} idle connections: {before} MiB without them, {with_all} MiB with them ({each} KiB each), at most {peak} MiB, \
         {after} MiB once they are gone"
    );
    assert!(peak < MOST, "{peak} MiB");
}

#[test]
#[ignore = "it takes half a minute"]
fn clients_that_never_read() {
    const EACH: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_folder(folder.path(), &["--counter", "orders", "--idle", "10"]);
    let (before, _) = memory(&server);
    // Replies of about 200 KB each, one for every request that the server would accept.
    let get = b"GET /v1/ids/snowflake?n=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(1_000);
    let next = b"PF.NEXT snowflake 10000\r\n".repeat(1_000);
    let kinds = [(server.http.unwrap(), get), (server.resp.unwrap(), next)];
    let mut clients = Vec::new();
    for (address, requests) in &kinds {
        for _ in 0..EACH {
            let stream = TcpStream::connect(address).unwrap();
            stream.set_nonblocking(true).unwrap();
            clients.push((stream, requests, 0));
        }
    }
    // Continue until no client can send any more. None of the replies is ever read.
    let mut quiet = 0;
    while quiet < 40 {
        quiet += 1;
        for (stream, requests, sent) in &mut clients {
            // After too long a wait, the server closes the connection.
            while let Ok(more) = stream.write(&requests[*sent % requests.len()..]) {
                *sent += more;
                quiet = 0;
                // A server that queued replies would have 200 GB of them by then.
                assert!(*sent < 32 << 20, "it reads without end");
            }
        }
        // Other clients are served.
        redis::cmd("INCR").arg("orders").query::<u64>(&mut redis(&server, "")).unwrap();
        server.ids("/v1/ids/orders?format=text");
        thread::sleep(Duration::from_millis(25));
    }
    let (with_all, _) = memory(&server);
    // The server gives up on these clients, although they have not disconnected.
    wait_until_alone(&server);
    let (after, peak) = memory(&server);
    let sent = clients.iter().map(|(.., sent)| sent).max().unwrap() >> 10;
    println!(
        "{} clients that never read: {before} MiB without them, {with_all} MiB with them, at most {peak} MiB, {after} MiB once \
         it has given them up; one got rid of at most {sent} KiB of requests, mostly into the system's buffers",
        clients.len()
    );
    assert!(peak < MOST, "{peak} MiB");
}

#[test]
#[ignore = "it takes half a minute"]
fn clients_that_write_a_byte_at_a_time() {
    const EACH: usize = 250;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_folder(folder.path(), &["--counter", "orders"]);
    let (before, _) = memory(&server);
    // Some commands and heads are almost as long as allowed, and the server has received all but the end of them; the
    // others are sent from the start.
    let long_get =
        [&GET[..GET.len() - 2], b"X: ", "x".repeat(60_000).as_bytes(), b"\r\nY: yyyyyyyyyyyyyyyy\r\n\r\n"]
            .concat();
    let long_incr = [b" ".repeat(65_000), INCR.to_vec()].concat();
    let (http, resp) = (server.http.unwrap(), server.resp.unwrap());
    let kinds = [(http, GET), (resp, INCR), (http, &long_get), (resp, &long_incr)];
    let mut clients = Vec::new();
    for (address, request) in kinds {
        for _ in 0..EACH {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_nodelay(true).unwrap();
            let at = request.len().saturating_sub(50);
            stream.write_all(&request[..at]).unwrap();
            clients.push((stream, &request[at..]));
        }
    }
    let mut with_all = 0;
    let longest = clients.iter().map(|(_, rest)| rest.len()).max().unwrap();
    for n in 0..longest {
        // The last byte comes later.
        for (stream, rest) in &mut clients {
            if n + 1 < rest.len() {
                stream.write_all(&rest[n..=n]).unwrap();
            }
        }
        server.ids("/v1/ids/orders?format=text");
        with_all = memory(&server).0;
    }
    let mut given = HashSet::new();
    for (stream, rest) in &mut clients {
        stream.set_nonblocking(true).unwrap();
        let early = stream.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(early, Err(ErrorKind::WouldBlock));
        stream.set_nonblocking(false).unwrap();
        stream.write_all(&rest[rest.len() - 1..]).unwrap();
        assert!(given.insert(number(stream)));
    }
    let count = clients.len();
    drop(clients);
    wait_until_alone(&server);
    let (after, peak) = memory(&server);
    println!(
        "{count} clients that write a byte at a time: {before} MiB without them, {with_all} MiB with them, at most {peak} MiB, \
         {after} MiB once they are gone"
    );
    assert!(peak < MOST, "{peak} MiB");
}

/// Each piece that the client sends contains the end of one command and the beginning of the next, so there is always
/// an unfinished command.
#[test]
#[ignore = "it takes a quarter of a minute"]
fn a_client_that_is_always_amid_a_command_is_not_idle() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_folder(folder.path(), &["--counter", "orders", "--idle", "4"]);
    let mut stream = TcpStream::connect(server.resp.unwrap()).unwrap();
    stream.write_all(b"INCR or").unwrap();
    let start = Instant::now();
    let mut last = 0;
    while start.elapsed() < Duration::from_secs(14) {
        stream.write_all(b"ders\r\nINCR or").unwrap();
        let given = number(&mut stream);
        assert!(given > last);
        last = given;
        thread::sleep(Duration::from_millis(50));
    }
}
