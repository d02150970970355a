//! Malicious clients, and slow ones.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::super::servers::redis::Redis;
use super::super::{has, json};
use super::server::command;
use super::{Server, eventually, http, redis};

#[test]
fn what_is_no_command_ends_only_its_connection() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_folder(folder.path(), &["--counter", "orders"]);
    let resp = server.resp.unwrap();
    let nested = b"*1\r\n".repeat(10_000);
    let endless = vec![b'x'; 100_000];
    let large = [&b"*2\r\n$4\r\nECHO\r\n$70000\r\n"[..], &vec![b'x'; 70_000], b"\r\n"].concat();
    for (bytes, part) in [
        (&b"*x\r\n"[..], "invalid multibulk length"),
        (b"*1000000000\r\n", "at most 64 words"),
        (b"*1\r\n$-5\r\n", "invalid bulk length"),
        (b"*1\r\n$9999999999999999999999\r\n", "invalid bulk length"),
        (b"*1\r\n:1\r\n", "expected '$'"),
        (b"*1\r\n\x00\r\n", "expected '$', got '\\x00'"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nINCR orders\r\n", "not an HTTP server"),
        (b"POST / HTTP/1.1\r\n\r\nINCR orders\r\n", "not an HTTP server"),
        (&nested, "expected '$'"),
        (&endless, "at most 65536 bytes"),
        (&large, "at most 65536 bytes"),
    ] {
        let answer = String::from_utf8(Server::raw(resp, bytes)).unwrap();
        // If the server did not read everything, the system may have discarded the answer.
        assert!(answer.contains(part) || (answer.is_empty() && bytes.len() > 50_000), "{part}: {answer}");
    }
    // Requests that are unusual but valid.
    let typed = Server::raw(resp, b"\r\n  PING  \r\n*0\r\n*1\r\n$4\r\nPING\r\nQUIT\r\nPING\r\n");
    assert_eq!(String::from_utf8(typed).unwrap(), "+PONG\r\n+PONG\r\n+OK\r\n");
    let echoed = Server::raw(resp, b"*2\r\n$4\r\nECHO\r\n$2\r\n\xff\xfe\r\nQUIT\r\n");
    assert_eq!(echoed, b"$2\r\n\xff\xfe\r\n+OK\r\n");
    let not_utf8 = Server::raw(resp, b"*2\r\n$4\r\nINCR\r\n$2\r\n\xff\xfe\r\nQUIT\r\n");
    has(&String::from_utf8(not_utf8).unwrap(), &["-ERR", "UTF-8", "+OK"]);

    for bytes in [
        &b"\r\n\r\n\r\n"[..],
        b"GET /v1/ids/orders\r\n\r\n",
        b"GET /v1/ids/orders HTTP/9.9\r\n\r\n",
        b"GET /v1/ids/orders HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        &[b"GET /v1/ids/orders?n=".to_vec(), vec![b'9'; 200_000], b" HTTP/1.1\r\n\r\n".to_vec()].concat(),
    ] {
        let mut stream = TcpStream::connect(server.http.unwrap()).unwrap();
        let _ = stream.write_all(bytes);
        // The server may have closed the connection already.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        assert!(!answer.contains(" 200 "), "{answer}");
    }
    assert_eq!(server.ids("/v1/ids/orders?format=text"), [1]);
}

#[test]
fn nobody_without_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "hunter2\n").unwrap();
    let server =
        Server::in_folder(folder.path(), &["--counter", "orders", "--token-file", token.to_str().unwrap()]);
    let get = |path: &str, header: Option<&str>| {
        let request = http().get(server.url(path));
        let request = match header {
            Some(header) => request.header("Authorization", header),
            None => request,
        };
        request.call().unwrap()
    };
    for path in [
        "/v1/ids/orders",
        "/v1/ids/other",
        "/v1/decode/1",
        "/api/segment/get/orders",
        "/api/snowflake/get/x",
        "/metrics",
    ] {
        for header in
            [None, Some("Bearer"), Some("Bearer hunter"), Some("Bearer hunter22"), Some("Basic hunter2")]
        {
            let mut response = get(path, header);
            assert_eq!(response.status(), 401, "{path} {header:?}");
            assert_eq!(response.headers()["www-authenticate"], "Bearer");
            let body = response.body_mut().read_to_string().unwrap();
            assert_eq!(json(&body)["error"], "unauthorized");
        }
    }
    for path in ["/healthz", "/readyz", "/"] {
        assert_eq!(get(path, None).status(), 200, "{path}");
    }
    let resp = server.resp.unwrap();
    for commands in [
        "INCR orders",
        "AUTH hunter\r\nINCR orders",
        "AUTH user hunter22\r\nINCR orders",
        "HELLO 3\r\nPF.NEXT orders",
        "HELLO 3 AUTH default wrong\r\nPF.NEXT orders",
        "AUTH hunter2\r\nAUTH wrong\r\nINCR orders",
        "AUTH hunter2\r\nRESET\r\nINCR orders",
        "INFO\r\nCLIENT GETNAME\r\nCOMMAND",
    ] {
        let answer = Server::raw(resp, format!("{commands}\r\nQUIT\r\n").as_bytes());
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.contains("-NOAUTH ") && !answer.contains(':'), "{commands}: {answer}");
    }
    // Clients that have the token.
    let mut given = get("/v1/ids/orders?format=text", Some("Bearer hunter2"));
    assert_eq!(given.body_mut().read_to_string().unwrap(), "1\n");
    let client = ::redis::Client::open(format!("redis://:hunter2@{resp}/?protocol=resp3")).unwrap();
    let second: u64 =
        ::redis::cmd("INCR").arg("orders").query(&mut client.get_connection().unwrap()).unwrap();
    assert_eq!(second, 2);
    let third = Server::raw(resp, b"HELLO 2 AUTH default hunter2 SETNAME x\r\nINCR orders\r\nQUIT\r\n");
    assert!(String::from_utf8(third).unwrap().ends_with(":3\r\n+OK\r\n"));
    let (_, log) = server.terminate();
    assert!(!log.contains("hunter"), "{log}");
}

#[test]
fn more_connections_than_may_be_wait_for_one_to_end() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_folder(folder.path(), &["--max-connections", "2", "--max-per-address", "9"]);
    let address = server.resp.unwrap();
    let ping = |stream: &mut TcpStream| {
        stream.write_all(b"PING\r\n").unwrap();
        let mut answer = [0; 7];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"+PONG\r\n");
    };
    let mut first = TcpStream::connect(address).unwrap();
    let mut second = TcpStream::connect(address).unwrap();
    ping(&mut first);
    ping(&mut second);
    let mut third = TcpStream::connect(address).unwrap();
    third.write_all(b"PING\r\n").unwrap();
    third.set_nonblocking(true).unwrap();
    assert!(third.read(&mut [0; 7]).is_err());
    drop(first);
    third.set_nonblocking(false).unwrap();
    let mut answer = [0; 7];
    third.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG\r\n");
    ping(&mut second);
}

#[test]
fn connections_that_do_nothing_are_closed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_folder(folder.path(), &["--idle", "1"]);
    // This returns once the server closes the connection.
    let (http, resp) = (server.http.unwrap(), server.resp.unwrap());
    for (address, bytes) in [
        (resp, &b""[..]),
        (resp, b"*2\r\n$4\r\nINCR\r\n"),
        (http, b""),
        (http, b"GET /healthz HTTP/1.1\r\n"),
        (http, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"),
    ] {
        Server::raw(address, bytes);
    }
    let mut stream = TcpStream::connect(server.admin.unwrap()).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    // A command that is never complete, although more and more of it arrives.
    let mut slow = TcpStream::connect(resp).unwrap();
    slow.write_all(b"*2\r\n$4\r\nINCR\r\n$50000\r\n").unwrap();
    while slow.write_all(b"x").is_ok() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // On a busy machine, this connection may be closed too.
    let client = ::redis::Client::open(format!("redis://{resp}")).unwrap();
    let incr = ::redis::cmd("INCR").arg("snowflake").to_owned();
    eventually(|| client.get_connection().is_ok_and(|mut it| incr.query::<u64>(&mut it).is_ok()));
}

/// There are more clients than places, on all listeners.
#[test]
fn strangers_are_in_nobodys_way() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "hunter2\n").unwrap();
    let limits = ["--max-connections", "50"];
    let arguments = [&limits[..], &["--token-file", token.to_str().unwrap(), "--counter", "orders"]].concat();
    let server = Server::in_folder(folder.path(), &arguments);
    let (http_at, resp_at, admin) = (server.http.unwrap(), server.resp.unwrap(), server.admin.unwrap());
    let client = ::redis::Client::open(format!("redis://:hunter2@{resp_at}/")).unwrap();
    let mut before = client.get_connection().unwrap();
    let strangers: Vec<_> = [http_at, resp_at, admin]
        .iter()
        .cycle()
        .take(180)
        .map(|&address| {
            let mut stream = TcpStream::connect(address).unwrap();
            // Part of a request.
            let _ = stream.write_all(if address == resp_at { b"*2\r\n$4\r\n" } else { b"GET /healthz HT" });
            stream
        })
        .collect();
    assert_eq!(server.of_admin("/healthz"), (200, "ok\n".into()));
    assert_eq!(server.of_admin("/readyz").0, 200);
    assert!(server.of_admin("/metrics").1.contains("polyflake_ready"));
    assert_eq!(server.of_admin("/v1/ids/orders").0, 404);
    // Admitted clients stay, and a client with the token gets in.
    let incr = |client: &mut ::redis::Connection| ::redis::cmd("INCR").arg("orders").query::<u64>(client);
    assert_eq!(incr(&mut before).unwrap(), 1);
    assert_eq!(incr(&mut client.get_connection().unwrap()).unwrap(), 2);
    let given =
        http().get(server.url("/v1/ids/orders?format=text")).header("Authorization", "Bearer hunter2");
    assert_eq!(given.call().unwrap().body_mut().read_to_string().unwrap(), "3\n");
    // All strangers are disconnected, long before --idle.
    for mut stream in strangers {
        let _ = stream.read_to_end(&mut Vec::new());
    }
    // Strangers may send only a little data.
    for (address, end) in [(http_at, "431 "), (resp_at, "at most 4096 bytes")] {
        let long = [&b"GET / HTTP/1.1\r\nX: "[..], &[b'x'; 5_000]].concat();
        let answer = Server::raw(address, if address == http_at { &long } else { &[b'x'; 5_000] });
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.is_empty() || answer.contains(end), "{answer}");
    }
    assert_eq!(incr(&mut before).unwrap(), 4);
}

/// A head that has begun must be completed in time, although connections may be idle for longer than that.
#[test]
fn an_unfinished_head_is_not_waited_for() {
    let server = Server::new(&["--uuid", "ids=7", "--idle", "600"]);
    // This returns once the server closes the connection.
    Server::raw(server.http.unwrap(), b"GET /healthz HTTP/1.1\r\n");
    assert_eq!(server.get("/healthz").0, 200);
}

#[test]
fn an_address_has_only_so_many_connections() {
    let server = Server::new(&["--uuid", "ids=7", "--max-per-address", "3"]);
    let mut open: Vec<_> = (0..3).map(|_| TcpStream::connect(server.resp.unwrap()).unwrap()).collect();
    for stream in &mut open {
        stream.write_all(b"PING\r\n").unwrap();
        stream.read_exact(&mut [0; 7]).unwrap();
    }
    let mut more = TcpStream::connect(server.resp.unwrap()).unwrap();
    assert!(!matches!(more.read(&mut [0; 1]), Ok(1..)));
    drop(open);
    eventually(|| Server::raw(server.resp.unwrap(), b"QUIT\r\n") == b"+OK\r\n");
    let (_, log) = server.terminate();
    has(&log, &["was not accepted: 127.0.0.1:", "as many connections as one address may have"]);
}

/// The connection to the store is restored even if clients hold as many open files as they can.
#[test]
fn files_are_kept_for_the_store() {
    let mut store = Redis::new();
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("polyflake.toml");
    let text = format!("[generators.asked]\nkind = \"counter\"\nstore = \"{}\"\nstep = 1\n", store.url());
    std::fs::write(&config, text).unwrap();
    let usual = command();
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\""]).arg(usual.get_program()).args(usual.get_args());
    limited
        .args(["--http", "none", "--resp", "127.0.0.1:0", "--max-per-address", "100", "--config"])
        .arg(config);
    let server = Server::start(&mut limited);
    let address = server.resp.unwrap();
    let mut client = redis(&server, "");
    let mut incr = || ::redis::cmd("INCR").arg("asked").query::<u64>(&mut client);
    assert_eq!(incr().unwrap(), 1);
    let idle: Vec<_> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
    store.server.kill();
    assert!(incr().is_err());
    store.server.start_again();
    eventually(|| incr().is_ok());
    assert_eq!(server.of_admin("/healthz").0, 200);
    drop(idle);
    let (_, log) = server.terminate();
    has(&log, &["--max-connections is 10000, but at most ", "the server may open 64 files"]);
    assert!(log.matches("was not accepted").count() < 10, "{log}");
}

/// A client can guess once per second, and only for as long as a stranger may stay.
#[test]
fn a_token_is_not_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "hunter2\n").unwrap();
    let server = Server::new(&["--uuid", "ids=7", "--token-file", token.to_str().unwrap()]);
    let guesses = b"AUTH guess\r\n".repeat(10_000);
    let answer = String::from_utf8(Server::raw(server.resp.unwrap(), &guesses)).unwrap();
    assert!(answer.matches("-WRONGPASS").count() < 50, "{answer}");
    let guess = http().get(server.url("/v1/ids/ids")).header("Authorization", "Bearer guess").call().unwrap();
    assert_eq!(guess.status(), 401);
    let (_, log) = server.terminate();
    has(&log, &["a client gave a wrong token", "\"client\":\"127.0.0.1\""]);
    assert!(!log.contains("guess") && !log.contains("hunter"), "{log}");
}
