//! TLS, with curl and redis-cli.

use std::process::{Command, Output};

use super::super::servers::{self, certificates};
use super::Server;

#[test]
fn both_protocols() {
    let folder = servers::folder();
    certificates::make(folder.path());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (cert, key, authority, other) =
        (path("server.pem"), path("server.key"), path("authority.pem"), path("other.pem"));
    let tls = ["--tls-cert", &cert, "--tls-key", &key, "--counter", "orders"];
    let server = Server::in_folder(folder.path(), &tls);
    let (http, resp) = (server.http.unwrap().port(), server.resp.unwrap().port().to_string());
    let curl = |authority: &str| {
        let url = format!("https://localhost:{http}/v1/ids/orders?format=text");
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--cacert", authority, &url, "--resolve", &format!("localhost:{http}:127.0.0.1")]);
        curl.output().unwrap()
    };
    let redis_cli = |authority: &str| {
        let mut cli = Command::new("redis-cli");
        cli.args(["-h", "localhost", "-p", &resp, "--tls", "--cacert", authority, "incr", "orders"]);
        cli.output().unwrap()
    };
    let text = |output: &Output| String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(text(&curl(&authority)), "1\n");
    assert_eq!(text(&redis_cli(&authority)).trim(), "2");
    assert!(!curl(&other).status.success());
    assert!(!text(&redis_cli(&other)).contains('3'));
    // A client that does not use TLS receives nothing.
    for address in [server.http, server.resp] {
        let answer = Server::raw(address.unwrap(), b"INCR orders\r\n\r\n");
        assert!(!answer.contains(&b':'), "{}", answer.escape_ascii());
    }
    assert_eq!(text(&curl(&authority)), "3\n");

    let wrong =
        super::super::fails(&["serve", "--http", "127.0.0.1:0", "--tls-cert", &key, "--tls-key", &cert], 1);
    assert!(wrong.contains("server.key: "), "{wrong}");
}
