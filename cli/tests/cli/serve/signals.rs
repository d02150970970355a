//! The effects of signals.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use rustix::process::Signal;

use super::super::json;
use super::super::servers::{self, certificates};
use super::{Server, eventually, http};

#[test]
fn a_token_is_replaced_without_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "alpha\n").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
    let server = Server::in_folder(folder.path(), &["--token-file", file.to_str().unwrap()]);
    let status = |token: &str| {
        let request = http().get(server.url("/v1/ids/snowflake"));
        request.header("Authorization", format!("Bearer {token}")).call().unwrap().status().as_u16()
    };
    let mut admitted = TcpStream::connect(server.resp.unwrap()).unwrap();
    admitted.write_all(b"AUTH alpha\r\n").unwrap();
    admitted.read_exact(&mut [0; 5]).unwrap();
    assert_eq!([status("alpha"), status("bravo")], [200, 401]);
    let missing = server.get("/v1/ids/snowflake").1;
    assert!(missing.contains("a token is needed"), "{missing}");
    let wrong = http().get(server.url("/v1/ids/snowflake")).header("Authorization", "Bearer x").call();
    let wrong = wrong.unwrap().body_mut().read_to_string().unwrap();
    assert!(wrong.contains("the token is wrong"), "{wrong}");
    std::fs::write(&file, "bravo\nalpha\n").unwrap();
    server.signal(Signal::HUP);
    eventually(|| status("bravo") == 200);
    assert_eq!(status("alpha"), 200);
    std::fs::write(&file, "bravo\n").unwrap();
    server.signal(Signal::HUP);
    eventually(|| status("alpha") == 401);
    // An unusable file changes nothing, and clients stay connected.
    std::fs::write(&file, "\n").unwrap();
    server.signal(Signal::HUP);
    admitted.write_all(b"PING\r\n").unwrap();
    admitted.read_exact(&mut [0; 7]).unwrap();
    assert_eq!(status("bravo"), 200);
    server.signal(Signal::QUIT);
    let (status, log) = server.ended();
    assert!(status.success() && log.contains("\"ended\""), "{log}");
    assert!(log.contains("other users can read"), "{log}");
    assert!(!log.contains("alpha") && !log.contains("bravo"), "{log}");
    assert!(!log.contains("no Snowflakes"), "{log}");
}

#[test]
fn a_certificate_is_renewed_without_an_end() {
    let folder = servers::folder();
    certificates::make(folder.path());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let other = servers::folder();
    certificates::make_others(other.path());
    let tls = ["--tls-cert", &path("server.pem"), "--tls-key", &path("server.key"), "--uuid", "ids=7"];
    let server = Server::new(&tls);
    let port = server.http.unwrap().port();
    let trusts = |folder: &std::path::Path| {
        let mut curl = Command::new("curl");
        curl.arg("-sS").arg("--cacert").arg(folder.join("authority.pem"));
        curl.args([
            &format!("https://localhost:{port}/healthz"),
            "--resolve",
            &format!("localhost:{port}:127.0.0.1"),
        ]);
        curl.output().unwrap().status.success()
    };
    assert!(trusts(folder.path()) && !trusts(other.path()));
    for name in ["server.pem", "server.key"] {
        std::fs::copy(other.path().join(name), folder.path().join(name)).unwrap();
    }
    server.signal(Signal::HUP);
    eventually(|| trusts(other.path()));
    assert!(!trusts(folder.path()));
}

/// Load balancers see that the server is not ready while it still answers.
#[test]
fn a_lame_duck() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_folder(folder.path(), &["--counter", "orders", "--lame-duck", "600s"]);
    assert_eq!(server.get("/readyz").0, 200);
    server.signal(Signal::TERM);
    eventually(|| server.get("/readyz").0 == 503);
    assert_eq!(json(&server.get("/readyz").1)["error"], "not_ready");
    assert_eq!(server.get("/healthz").0, 200);
    assert_eq!(server.ids("/v1/ids/orders?format=text"), [1]);
    let answer = Server::raw(server.resp.unwrap(), b"INCR orders\r\nQUIT\r\n");
    assert_eq!(String::from_utf8(answer).unwrap(), ":2\r\n+OK\r\n");
    // A load balancer that kept the connection might use it just as it is closed.
    assert_eq!(http().get(server.url("/healthz")).call().unwrap().headers()["connection"], "close");
    // Another signal ends the wait, and the server gives back what it holds.
    let (status, log) = server.terminate();
    assert!(status.success(), "{log}");
    let next = Server::in_folder(folder.path(), &["--counter", "orders"]);
    assert_eq!(next.ids("/v1/ids/orders?format=text"), [3]);
}

/// No other server can issue numbers while the owner has the sequences, so load balancers keep sending
/// requests to it.
#[test]
fn a_lame_duck_that_owns_sequences() {
    let folder = tempfile::tempdir().unwrap();
    let begin = || Server::in_folder(folder.path(), &["--sequences", "inbox", "--lame-duck", "600s"]);
    let (first, second) = (begin(), begin());
    first.signal(Signal::TERM);
    eventually(|| first.get("/readyz").0 == 503);
    assert_eq!([first.get("/readyz/inbox").0, first.get("/readyz/snowflake").0], [200, 503]);
    assert_eq!(first.of_admin("/readyz/inbox").0, 200);
    assert_eq!(first.ids("/v1/ids/inbox?key=alice&format=text"), [1]);
    // A standby server is never ready for them.
    second.signal(Signal::TERM);
    eventually(|| second.get("/readyz").0 == 503);
    assert_eq!(second.get("/readyz/inbox").0, 503);
    let (status, log) = first.terminate();
    assert!(status.success(), "{log}");
    eventually(|| second.get("/readyz/inbox").0 == 200);
}

/// A request that arrived before the shutdown is answered, no matter where it was waiting.
#[test]
fn what_came_is_answered() {
    let server = Server::new(&["--uuid", "ids=7", "--lame-duck", "0s"]);
    let request = "GET /v1/ids/ids HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let begin = |(address, request, answer)| {
        let mut client = TcpStream::connect::<SocketAddr>(address).unwrap();
        client.write_all(str::as_bytes(request)).unwrap();
        (client, answer)
    };
    let of_http = (server.http.unwrap(), request, "HTTP/1.1 200 ");
    let of_resp = (server.resp.unwrap(), "PF.NEXT ids\r\n", "$36\r\n");
    let clients: Vec<_> = (0..100).flat_map(|_| [of_http, of_resp]).map(begin).collect();
    server.signal(Signal::TERM);
    for (mut client, begins) in clients {
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(begins), "{answer}");
    }
    let (status, log) = server.ended();
    assert!(status.success() && log.contains("no Snowflakes are served: --lease"), "{log}");
}
