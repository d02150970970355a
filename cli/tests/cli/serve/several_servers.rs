//! Several servers, and what happens to their leases.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};

use super::super::servers::free_port;
use super::super::servers::redis::Redis;
use super::super::{has, json, prints, stderr};
use super::server::command;
use super::{Server, eventually, http, redis};

#[test]
fn two_servers_give_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    two(&format!("sqlite://{}/shared.db", folder.path().display()));
}

#[test]
fn two_servers_on_a_redis_give_nothing_twice() {
    let store = Redis::new();
    two(&format!("{}?init=always", store.url()));
}

/// Two servers, clients that use both at once, and a server that is killed and restarted.
fn two(lease: &str) {
    let begin = || Server::new(&["--lease", lease, "--counter", "orders"]);
    let servers = [begin(), begin()];
    let mut all = clients(&servers);
    let [first, second] = servers;
    first.signal(Signal::KILL);
    drop(first.ended());
    let servers = [begin(), second];
    for (kind, more) in all.iter_mut().zip(clients(&servers)) {
        kind.extend(more);
    }
    for numbers in all {
        let count = numbers.len();
        assert_eq!(numbers.into_iter().collect::<HashSet<_>>().len(), count);
    }
}

/// The Snowflakes and numbers that ten clients receive.
fn clients(servers: &[Server; 2]) -> [Vec<u64>; 2] {
    let client = |n: usize| {
        let server = &servers[n % 2];
        let mut got = [Vec::new(), Vec::new()];
        let mut connection = redis(server, "");
        for (numbers, name) in got.iter_mut().zip(["snowflake", "orders"]) {
            numbers.extend(server.ids(&format!("/v1/ids/{name}?n=500&format=text")));
            for _ in 0..50 {
                numbers.push(redis::cmd("INCR").arg(name).query::<u64>(&mut connection).unwrap());
            }
        }
        // A block is one run, of which no one else receives any part.
        let last: u64 = redis::cmd("INCRBY").arg("orders").arg(20).query(&mut connection).unwrap();
        got[1].extend(last - 19..=last);
        got
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..10).map(|n| scope.spawn(move || client(n))).collect();
        let mut all = [Vec::new(), Vec::new()];
        for of_client in clients {
            for (kind, numbers) in all.iter_mut().zip(of_client.join().unwrap()) {
                kind.extend(numbers);
            }
        }
        all
    })
}

/// How many nodes of the first space are leased.
fn held(url: &str) -> usize {
    let text = prints(&["leases", url, "--json"]);
    let nodes = json(text.lines().next().unwrap())["nodes"].clone();
    nodes.as_array().unwrap().iter().filter(|node| node["state"] == "held").count()
}

#[test]
fn a_beginning_that_fails_gives_the_lease_back() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/leases.db", folder.path().display());
    let lease = format!("{url}?init=always");
    let begin = |config: &str| {
        let path = folder.path().join("config.toml");
        std::fs::write(&path, format!("http = \"127.0.0.1:0\"\nlease = \"{lease}\"\n{config}")).unwrap();
        let mut command = super::server::command();
        command.arg("--config").arg(path).stderr(std::process::Stdio::piped());
        command
    };
    let second = "[generators.snowflake]\nkind = \"snowflake\"\n[generators.z]\nkind = \"snowflake\"\n";
    let output = begin(&format!("{second}node = 7\nstate = \"/nowhere/x\"\n")).output().unwrap();
    assert!(!output.status.success());
    has(&stderr(&output), &["/nowhere/x"]);
    assert_eq!(held(&url), 0);
    // Or a signal stops the server while a second generator is waiting for its store.
    let waits = format!("{second}lease = \"redis://127.0.0.1:1/0?ttl=1h\"\n");
    let mut child = begin(&waits).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("store_unreachable") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0);
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(held(&url), 0);
}

#[test]
fn the_end_serves_what_came_and_gives_the_lease_back() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_folder(folder.path(), &["--counter", "orders", "--sequences", "inbox"]);
    let url = format!("sqlite://{}/leases.db", folder.path().display());
    assert_eq!(server.ids("/v1/ids/orders?n=3&format=text"), [1, 2, 3]);
    assert_eq!(held(&url), 1);
    // Open connections do not delay the shutdown.
    let mut idle =
        [server.http.unwrap(), server.resp.unwrap()].map(|address| TcpStream::connect(address).unwrap());
    idle[1].write_all(b"PING\r\n").unwrap();
    idle[1].read_exact(&mut [0; 7]).unwrap();
    let (status, log) = server.terminate();
    assert!(status.success(), "{log}");
    assert!(log.contains("ended"), "{log}");
    for stream in &mut idle {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty());
    }
    assert_eq!(held(&url), 0);
    // The numbers in hand were given back.
    let next = Server::in_folder(folder.path(), &["--counter", "orders"]);
    assert_eq!(next.ids("/v1/ids/orders?format=text"), [4]);
}

#[test]
fn a_counter_at_its_end_is_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.toml");
    let text = format!(
        "http = \"127.0.0.1:0\"\n[generators.last]\nkind = \"counter\"\nstart = {}\nstore = \"sqlite://{}/c.db\"\n",
        i64::MAX,
        folder.path().display()
    );
    std::fs::write(&config, text).unwrap();
    let server = Server::start(command().args(["--config", config.to_str().unwrap()]));
    assert_eq!(server.get("/readyz/last").0, 200);
    assert_eq!(server.ids("/v1/ids/last?format=text"), [i64::MAX.cast_unsigned()]);
    assert_eq!(server.get("/v1/ids/last").0, 503);
    eventually(|| server.get("/readyz/last").0 == 503);
    assert!(server.get("/readyz/last").1.contains("reached its end"));
}

#[test]
fn one_of_two_servers_gives_sequences_and_the_other_stands_by() {
    let folder = tempfile::tempdir().unwrap();
    let begin = |label: &str| {
        let lease =
            format!("sqlite://{}/leases.db?init=always&label={label}&wait=1s", folder.path().display());
        Server::new(&["--lease", &lease, "--sequences", "inbox"])
    };
    let first = begin("10.0.0.7:8080");
    assert_eq!(first.ids("/v1/ids/inbox?key=alice&format=text"), [1]);
    let second = begin("10.0.0.8:8080");
    // The second server names the owner once it knows it.
    eventually(|| second.get("/v1/ids/inbox?key=alice").1.contains("10.0.0.7:8080"));
    let (status, body) = second.get("/v1/ids/inbox?key=alice");
    assert_eq!((status, json(&body)["error"].as_str()), (503, Some("lease_unavailable")));
    // It issues everything that does not need that lease, and is ready.
    assert_eq!((second.get("/v1/ids/snowflake").0, second.get("/readyz").0), (200, 200));
    // For the sequences, only the owner is ready.
    assert_eq!((first.get("/readyz/inbox").0, second.get("/readyz/snowflake").0), (200, 200));
    assert_eq!((second.get("/readyz/inbox").0, second.get("/readyz/other").0), (503, 404));
    let metrics = second.of_admin("/metrics").1;
    has(&metrics, &["polyflake_ready{generator=\"inbox\"} 0"]);
    has(&metrics, &["polyflake_ready{generator=\"snowflake\"} 1"]);
    assert!(first.terminate().0.success());
    // The second server takes over although no one sends it requests.
    eventually(|| second.get("/readyz/inbox").0 == 200);
    let number = loop {
        let (status, body) = second.get("/v1/ids/inbox?key=alice&format=text");
        if status == 200 {
            break body.trim().parse::<u64>().unwrap();
        }
    };
    assert!(number > 1);
}

#[test]
fn a_signal_ends_it_while_it_waits_for_a_store() {
    let [address, resp] = [(); 2].map(|()| format!("127.0.0.1:{}", free_port()));
    let mut child = super::server::command()
        .args(["--http", &address, "--resp", &resp, "--lease", "redis://127.0.0.1:1/0?ttl=1h"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("store_unreachable") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0);
    }
    // Clients need not wait for this server: they can try another.
    let get = |path: &str| {
        let mut response = http().get(format!("http://{address}{path}")).call().unwrap();
        (response.status().as_u16(), response.body_mut().read_to_string().unwrap())
    };
    assert_eq!(get("/healthz").0, 200);
    for path in ["/readyz", "/v1/ids/snowflake"] {
        let (status, body) = get(path);
        assert_eq!((status, json(&body)["error"].as_str()), (503, Some("not_ready")));
    }
    let answer = Server::raw(resp.parse().unwrap(), b"INCR snowflake\r\nQUIT\r\n");
    has(&String::from_utf8(answer).unwrap(), &["-LOADING not_ready: ", "+OK"]);
    // No other server can start on the same addresses.
    let second = super::server::command()
        .args(["--http", &address, "--resp", "none", "--uuid", "ids=7"])
        .output()
        .unwrap();
    assert_eq!(second.status.code(), Some(1));
    has(&stderr(&second), &[&*format!("{address} is in use by another program"), "--http"]);
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_port_that_somebody_has_is_an_error_before_any_store_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_folder(folder.path(), &[]);
    let address = server.resp.unwrap().to_string();
    let lease = ["--lease", "redis://127.0.0.1:1/0?ttl=1h"];
    let output = super::server::command().args(["--resp", &address]).args(lease).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    has(&stderr(&output), &[&*address, "in use"]);
}

/// Generators without a store keep working.
#[test]
fn a_counter_whose_store_is_down_is_not_ready() {
    let (mut store, folder) = (Redis::new(), tempfile::tempdir().unwrap());
    let config = folder.path().join("polyflake.toml");
    let counter = format!("kind = \"counter\"\nstore = \"{}\"\nstep = 1\n", store.url());
    std::fs::write(&config, format!("[generators.asked]\n{counter}")).unwrap();
    for when in ["any", "all"] {
        let server =
            Server::new(&["--config", config.to_str().unwrap(), "--uuid", "ids=7", "--ready-when", when]);
        eventually(|| server.get("/readyz").0 == 200);
        store.server.kill();
        eventually(|| server.get("/readyz/asked").0 == 503);
        let (status, body) = server.get("/readyz/asked");
        assert_eq!((status, json(&body)["error"].as_str()), (503, Some("not_ready")));
        let metrics = server.of_admin("/metrics").1;
        has(&metrics, &["polyflake_ready{generator=\"asked\"} 0"]);
        has(&metrics, &["polyflake_ready{generator=\"ids\"} 1"]);
        assert_eq!(server.get("/readyz/ids").0, 200);
        assert_eq!(server.get("/readyz").0, if when == "any" { 200 } else { 503 });
        store.server.start_again();
        eventually(|| server.get("/readyz/asked").0 == 200);
    }
}

#[test]
fn it_is_not_ready_while_its_lease_is_lost() {
    let mut store = Redis::new();
    let lease = format!("{}?init=always&ttl=3s", store.url());
    let server = Server::new(&["--lease", &lease]);
    eventually(|| server.get("/readyz").0 == 200);
    store.server.kill();
    // The server continues up to the bound.
    let mut answer = server.get("/readyz");
    while answer.0 == 200 {
        thread::sleep(std::time::Duration::from_millis(100));
        answer = server.get("/readyz");
    }
    assert_eq!((answer.0, json(&answer.1)["error"].as_str()), (503, Some("not_ready")));
    let (status, body) = server.get("/v1/ids/snowflake");
    assert_eq!((status, json(&body)["error"].as_str()), (503, Some("lease_lost")));
    assert_eq!(server.get("/healthz").0, 200);
    // Requests that do not need the store still succeed.
    assert_eq!(server.get("/v1/decode/1541815603606036480").0, 200);
}
