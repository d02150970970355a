//! A program with its own kind of generator: `examples/custom-generator`.

use std::path::PathBuf;
use std::process::Command;

use super::super::has;
use super::Server;
use super::server::of;

/// Builds the program, and returns its path.
fn program() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-q", "--locked", "-p", "polyflake-cli", "--example", "custom-generator"]);
    // Cargo sets these variables for this test, and `ring`'s build script depends on them. If they were passed on, cargo
    // would rebuild `ring` and everything that uses it, now and again for the next command.
    let is_set_by_cargo = |name: &str| {
        name == "OUT_DIR" || ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|it| name.starts_with(it))
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_set_by_cargo)) {
        cargo.env_remove(name);
    }
    assert!(cargo.status().unwrap().success());
    let folder = PathBuf::from(assert_cmd::cargo::cargo_bin!("polyflake"));
    folder.parent().unwrap().join("examples/custom-generator")
}

#[test]
fn a_kind_of_ones_own() {
    let (program, folder) = (program(), tempfile::tempdir().unwrap());
    let config = folder.path().join("config.toml");
    let write = |prefix: &str| {
        let text = format!("[generators.orders]\nkind = \"prefixed\"\nprefix = \"{prefix}\"\n");
        std::fs::write(&config, text).unwrap();
    };
    write("DE-");
    let mut command = of(&program);
    command.args(["--http", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--config"]).arg(&config);
    let server = Server::start(&mut command);
    assert_eq!(server.ok("/v1/ids/orders?n=2&format=text"), "DE-17\nDE-24\n");
    let answer = Server::raw(server.resp.unwrap(), b"PF.NEXT orders\r\nINCR orders\r\nQUIT\r\n");
    has(&String::from_utf8(answer).unwrap(), &["$5\r\nDE-31\r\n", "-ERR", "not integers", "+OK"]);
    write("much too long");
    let output = of(&program).arg("--config").arg(&config).output().unwrap();
    assert_eq!(output.status.code(), Some(14));
    has(&super::super::stderr(&output), &["line 3: generators.orders.prefix: it takes at most 8"]);
}
