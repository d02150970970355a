//! The server's configuration, and mistakes in it.

use std::fs;
use std::path::Path;

use super::super::{fails, has, polyflake, stderr, stdout};
use super::Server;
use super::server::command;

fn write(folder: &Path, text: &str) -> String {
    let path = folder.join("config.toml");
    fs::write(&path, text.replace("FOLDER", folder.to_str().unwrap())).unwrap();
    path.to_str().unwrap().into()
}

#[test]
fn from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = write(
        folder.path(),
        r#"
lease = "sqlite://FOLDER/leases.db"
resp = "none"
http = "127.0.0.1:0"
log = "json"
only_instance = false

[limits]
max_n = 5

[generators.snowflake]
kind = "snowflake"
layout = "js-safe"
max_ahead_ms = 10

[generators.fixed]
kind = "snowflake"
layout = "discord"
node = 7

[generators."two words"]
kind = "counter"
start = 1000
step = 10

[generators.sharded]
kind = "counter"
store = ["sqlite://FOLDER/a.db", "sqlite://FOLDER/b.db"]

[generators.ids]
kind = "uuid"
version = 4
"#,
    );
    let server = Server::start(command().args(["--config", &config, "--counter", "more"]));
    assert!(server.resp.is_none());
    assert!(server.ids("/v1/ids/snowflake?format=text")[0] < 1 << 53);
    let fixed = server.ids("/v1/ids/fixed?format=text")[0];
    has(&server.ok(&format!("/v1/decode/{fixed}?layout=discord")), &["\"node\":7"]);
    assert_eq!(server.ids("/v1/ids/two%20words?format=text"), [1000]);
    assert_eq!(server.ids("/v1/ids/more?format=text"), [1]);
    let mut sharded = server.ids("/v1/ids/sharded?format=text&n=4");
    sharded.extend(server.ids("/v1/ids/sharded?format=text&n=4"));
    sharded.sort_unstable();
    sharded.dedup();
    assert_eq!(sharded.len(), 8);
    has(&server.get("/v1/ids/more?n=6").1, &["from 1 to 5"]);
}

#[test]
fn errors_name_line_and_key_and_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    for (text, parts) in [
        ("htpp = \"x\"", &["line 1: ", "htpp"][..]),
        ("\n\nhttp = 5", &["line 3: http: it takes a string"]),
        ("http = \"nowhere\"", &["line 1: http: ", "nowhere"]),
        ("lease = \"redis://:hunter2@h:x/0\"", &["line 1: lease: "]),
        ("only_instance = \"hunter2\"", &["line 1: only_instance: it takes a boolean"]),
        ("lease = hunter2", &["line 1: lease: "]),
        ("lease = \"redis://:hunter2@h/0", &["line 1: lease: "]),
        ("\n[limits]\nmax_n = \"hunter2\"", &["line 3: max_n: it takes"]),
        ("[limits]\nmax_n = 0", &["max_n is 0; it takes"]),
        (
            "[generators.a]\nkind = \"other\"",
            &["line 2: generators.a.kind: ", "`other`", "the kinds are counter, ", "object-id"],
        ),
        ("[generators.a]\nstep = 5", &["line 1: generators.a: kind is missing"]),
        (
            "[generators.a]\nkind = \"counter\"\nstore = \"redis://:hunter2@h:x/0\"",
            &["line 3: generators.a.store: "],
        ),
        ("[generators.a]\nkind = \"counter\"\nstep = 0", &["line 3: generators.a.step: step is 0; it takes"]),
        ("[generators.a]\nkind = \"counter\"\nstpe = 5", &["line 3: generators.a.stpe: ", "stpe"]),
        (
            "[generators.a]\nkind = \"uuid\"\nversion = 1",
            &["line 3: generators.a.version: ", "4 (random) or 7"],
        ),
        ("[generators.a]\nkind = \"snowflake\"\nlayout = \"none\"", &["line 3: generators.a.layout: "]),
        ("[generators.a]\nkind = \"snowflake\"\nnode = 1.5", &["line 3: generators.a.node: it takes"]),
        ("[generators.a]\nkind = \"object-id\"\nnode = 1", &["line 3: generators.a.node: "]),
        ("[generators.a]\nkind = \"sequences\"\nsections = 0", &["line 3: generators.a.sections: "]),
    ] {
        let config = write(folder.path(), text);
        let output = polyflake(&["serve", "--config", &config]).output().unwrap();
        let said = stderr(&output);
        assert!(!output.status.success() && stdout(&output).is_empty(), "{text}");
        has(&said, parts);
        assert!(!said.contains("hunter2"), "{said}");
    }
    has(&fails(&["serve", "--config", "/nowhere/x.toml"], 1), &["polyflake: io: /nowhere/x.toml"]);
    for (arguments, part) in [
        (&["--uuid", "a=5"][..], "--uuid: "),
        (&["--uuid", "a=4", "--object-id", "a"], "two generators called `a`"),
        (&["--counter", "=redis://h/0"], "name"),
        (&["--counter", "a=redis://:hunter2@h:x/0"], "--counter: "),
        (&["--counter", "redis://:hunter2@h/0"], "--counter takes a generator's name first"),
        (&["--lease", "nowhere"], "--lease: "),
        (&["--layout", "none"], "--layout: "),
        (&["--http", "none", "--resp", "none"], "nothing to listen on"),
        (&["--http", "1.2.3.4"], "--http: "),
        (&["--resp", "redis://:hunter2@h:6379"], "--resp: "),
        (&["--max-n", "0"], "max_n is 0"),
    ] {
        let output = polyflake(&[&["serve"], arguments].concat()).output().unwrap();
        let said = stderr(&output);
        assert!(matches!(output.status.code(), Some(12 | 14)), "{said}");
        assert!(said.contains(part) && !said.contains("hunter2"), "{said}");
    }
}

#[test]
fn alone_it_serves_this_host_only() {
    let folder = tempfile::tempdir().unwrap();
    let alone = |arguments: &[&str]| {
        let mut command = command();
        command.env("XDG_STATE_HOME", folder.path()).args(arguments);
        command
    };
    let open = ["--http", "0.0.0.0:0"];
    let output = alone(&open).output().unwrap();
    assert_eq!(output.status.code(), Some(14));
    has(&stderr(&output), &["0.0.0.0:0 is for other hosts", "--lease", "--only-instance"]);

    let server = Server::start(&mut alone(&["--http", "127.0.0.1:0"]));
    let first = server.ids("/v1/ids/snowflake?format=text")[0];
    assert!(folder.path().join("polyflake/serve.db").is_file());
    let (status, log) = server.terminate();
    assert!(status.success(), "{log}");
    // No one waits for a lease that was given back.
    let mut again = Server::start(&mut alone(&[&open[..], &["--only-instance"]].concat()));
    again.http = Some(([127, 0, 0, 1], again.http.unwrap().port()).into());
    assert!(again.ids("/v1/ids/snowflake?format=text")[0] > first);
    assert!(again.terminate().0.success());

    // As in docs/any-language.md: if a generator needs the file, the server also issues Snowflakes; otherwise it does
    // not.
    let counter = Server::start(&mut alone(&["--http", "127.0.0.1:0", "--counter", "orders"]));
    assert!(counter.ids("/v1/ids/snowflake?format=text")[0] > first);
    assert_eq!(counter.ids("/v1/ids/orders?format=text"), [1]);
    let uuids = Server::start(&mut alone(&["--http", "127.0.0.1:0", "--uuid", "ids=7"]));
    has(&uuids.get("/v1/ids/snowflake").1, &["this server has ids; --lease URL adds it"]);
}

/// Servers with separate files, or with the same node, would issue the same IDs.
#[test]
fn what_is_of_this_host_is_not_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| format!("sqlite://{}/{name}.db?init=always", folder.path().display());
    let (lease, orders, inbox) = (file("a"), format!("orders={}", file("b")), format!("inbox={}", file("c")));
    let state = folder.path().join("state").display().to_string();
    let fixed = "[generators.fixed]\nkind = \"snowflake\"\n";
    let config = |options: &str| write(folder.path(), &format!("{fixed}{options}\n"));
    let (redis, open) = (["--lease", "redis://127.0.0.1:1/0?wait=0s"], ["--http", "0.0.0.0:0"]);
    let refused = |arguments: &[&str], part: &str| {
        let said = fails(&[&["serve"], &open[..], arguments].concat(), 14);
        has(&said, &["0.0.0.0:0 is for other hosts", part, "--lease redis://", "--only-instance"]);
    };
    refused(&["--lease", &lease], "`snowflake` keeps its store in a file");
    refused(&["--lease", &lease.replace("sqlite", "SQLite")], "`snowflake` keeps its store in a file");
    refused(&[&redis[..], &["--counter", &orders]].concat(), "`orders` keeps its store in a file");
    refused(&[&redis[..], &["--sequences", &inbox]].concat(), "`inbox` keeps its store in a file");
    refused(&["--config", &config("node = 7")], "`fixed` has node 7");
    refused(&["--config", &config(&format!("node = 7\nstate = \"{state}\""))], "`fixed` has node 7");
    refused(&["--config", &config("lease = \"sqlite:///x.db\"")], "`fixed` keeps its store in a file");
    let config = config(&format!("store = [\"redis://h/0\", \"{lease}\"]").replace('\n', " "));
    let text = fs::read_to_string(&config).unwrap().replace("snowflake", "counter");
    fs::write(&config, text).unwrap();
    refused(&["--config", &config], "`fixed` keeps its store in a file");
    // Allowed: for programs on this host, with --only-instance, and for generators whose IDs are unique without a
    // store.
    Server::start(command().args(["--http", "127.0.0.1:0", "--lease", &lease]));
    Server::start(command().args(open).args(["--only-instance", "--lease", &lease]));
    Server::start(command().args(open).args(["--uuid", "request=7"]));
}
