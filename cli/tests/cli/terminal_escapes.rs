//! Strings from a store, a file or a client that would affect a terminal: clear it, draw a row, reverse a
//! name.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use polyflake_coordination::{Counter, Sequences};
use redis::Commands as _;

use super::serve::{Server, http};
use super::servers::redis::Redis;
use super::{ID, fails, has, json, polyflake, stderr, stdout};

/// Clears the screen and fakes a row, with C0 and C1 codes; changes the writing direction; contains
/// separators and zero-width characters. The last part must stay readable.
const HOSTILE: &str = "\u{1b}[2J\u{1b}[H  node 7  free\r\n\u{7}\u{7f}\u{9b}2J\u{85}\u{202e}\u{2066}\u{2028}\u{200b}\u{feff}\
                       \u{3164}\u{e0041}\u{e0100}<b>é 名 ن 👍";
const SHOWN: &str = "\\u{1b}[2J\\u{1b}[H  node 7  free\\u{d}\\u{a}\\u{7}\\u{7f}\\u{9b}2J\\u{85}\\u{202e}\\u{2066}\\u{2028}\\u{200b}\
                     \\u{feff}\\u{3164}\\u{e0041}\\u{e0100}<b>é 名 ن 👍";
/// A name that a counter can have.
const NAME: &str = "a\u{202e}\u{2028}\"\\{}é";
/// Still in the future when the tests run.
const YEAR_2100_MS: u64 = 4_102_444_800_000;

fn is_harmless(text: &str) -> bool {
    !text.chars().any(|c| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
            || matches!(c, '\u{3164}' | '\u{e0000}'..='\u{e0fff}')
    })
}

/// Returns the command's exit code, and its output to a terminal on both streams, without colours.
fn says(arguments: &[&str]) -> (Option<i32>, String) {
    says_of(arguments, "")
}

/// Like [`says`], but with standard input.
fn says_of(arguments: &[&str], input: &str) -> (Option<i32>, String) {
    // Otherwise, everything that looks like a colour is removed from the output.
    let arguments = &[&["--color", "always"], arguments].concat();
    let output = polyflake(arguments).write_stdin(input).output().unwrap();
    let said = without_colours(&(stdout(&output) + &stderr(&output)));
    assert!(is_harmless(&said), "{arguments:?}: {said:?}");
    (output.status.code(), said)
}

fn without_colours(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let mut plain = pieces.next().unwrap().to_owned();
    for piece in pieces {
        match piece.split_once('m') {
            Some((digits, rest)) if digits.bytes().all(|b| b.is_ascii_digit() || b == b';') => plain += rest,
            _ => plain.extend(["\u{1b}[", piece]),
        }
    }
    plain
}

fn change(file: &Path, statement: &str, text: &str) {
    let changed = rusqlite::Connection::open(file).unwrap().execute(statement, [text]).unwrap();
    assert!(changed > 0, "{statement}");
}

/// Gives the nodes' records a hostile label and, if a time is given, a lease until that time.
fn label_nodes(file: &Path, held_until_ms: Option<u64>) {
    const NODES: &str = "kind <> 'counter' AND name <> 'head' AND name NOT LIKE 'section-%'";
    let connection = rusqlite::Connection::open(file).unwrap();
    let mut rows = connection.prepare(&format!("SELECT text FROM polyflake_records WHERE {NODES}")).unwrap();
    let texts: Vec<String> = rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(!texts.is_empty());
    for text in texts {
        let mut record = json(&text);
        record["label"] = HOSTILE.into();
        if let Some(expires_ms) = held_until_ms {
            record["token"] = "17".into();
            record["expires_ms"] = expires_ms.into();
        }
        let statement = format!("UPDATE polyflake_records SET text = ? WHERE text = ? AND {NODES}");
        connection.execute(&statement, [record.to_string(), text]).unwrap();
    }
}

#[test]
fn a_label_in_a_file_of_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("leases.db");
    let url = format!("sqlite://{}?nodes=7&init=always&wait=0s", file.display());
    assert_eq!(says(&["next", "--lease", &url]).0, Some(0));
    label_nodes(&file, None);
    has(&says(&["leases", &url]).1, &["given back by ", SHOWN]);
    for (expires_ms, part) in [(1, "the lease of "), (YEAR_2100_MS, "by ")] {
        label_nodes(&file, Some(expires_ms));
        has(&says(&["leases", &url]).1, &[part, SHOWN]);
        let (_, line) = says(&["leases", &url, "--json"]);
        assert_eq!(json(&line)["nodes"][0]["label"], HOSTILE);
    }
    // Errors also contain the label.
    let (code, said) = says(&["leases", &url, "--reset", "7", "--yes"]);
    has(&said, &["lease_unavailable: node 7 is leased by ", SHOWN]);
    assert_eq!(code, Some(22));
    let (code, said) = says(&["next", "--lease", &url]);
    has(&said, &["lease_unavailable: no node is free", SHOWN]);
    assert_eq!(code, Some(22));
}

#[test]
fn a_counter_in_a_file_of_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("leases.db");
    let url = format!("sqlite://{}", file.display());
    Counter::open("orders", &url).unwrap().close();
    Counter::open("a", &url).unwrap().close();
    change(&file, "UPDATE polyflake_records SET group_name = ? WHERE group_name = 'a'", HOSTILE);
    let (_, said) = says(&["counters", &url]);
    assert_eq!(said.lines().count(), 2, "{said}");
    has(&said, &[SHOWN]);
    // The columns are aligned if their widths are known.
    has(&said, &[&format!("orders{}", " ".repeat(SHOWN.chars().count() - "orders".len() + 2))]);
    let (_, lines) = says(&["counters", &url, "--json"]);
    assert!(lines.lines().any(|line| json(line)["name"] == HOSTILE), "{lines}");
    // Questions contain the name.
    for change in [&["--raise", NAME, "7"][..], &["--remove", "orders"]] {
        says(&[&["counters", &url], change].concat());
    }
    change(&file, "UPDATE polyflake_records SET text = '{}' WHERE group_name = ?", HOSTILE);
    assert_eq!(says(&["counters", &url]).0, Some(25));
}

#[test]
fn in_redis() {
    let redis = Redis::new();
    let url = format!("{}?nodes=7&init=always&wait=0s", redis.url());
    assert_eq!(says(&["next", "--lease", &url]).0, Some(0));
    Counter::open("a", &redis.url()).unwrap().close();
    let mut there = redis::Client::open(redis.url()).unwrap().get_connection().unwrap();
    let all: Vec<String> = there.keys("polyflake:*").unwrap();
    let space = all.iter().find(|key| key.contains("/space/")).unwrap();
    let text: String = there.hget(space, "7/text").unwrap();
    let mut text = json(&text);
    text["label"] = HOSTILE.into();
    let _: () = there.hset(space, "7/text", text.to_string()).unwrap();
    let counter = all.iter().find(|key| key.contains("counter/a")).unwrap();
    let _: () = there.rename(counter, counter.replace("counter/a", &format!("counter/{HOSTILE}"))).unwrap();
    has(&says(&["leases", &url]).1, &["given back by ", SHOWN]);
    has(&says(&["counters", &redis.url()]).1, &[SHOWN]);
    let (_, line) = says(&["counters", &redis.url(), "--json"]);
    assert_eq!(json(&line)["name"], HOSTILE);
    // A server's messages are trusted no more than its data.
    let _: () = there.set(format!("polyflake:{{default/counter/{NAME}}}"), "no hash").unwrap();
    says(&["counters", &redis.url()]);
}

#[test]
fn what_is_read_or_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(HOSTILE);
    let path = path.to_str().unwrap();
    for arguments in [
        &["decode", "--input", path][..],
        &["decode", HOSTILE],
        &["decode", "1\u{202e}"],
        &["decode", "--text", NAME, ID],
        &["decode", "--layout", HOSTILE, ID],
        &["decode", "--column", HOSTILE],
        &["decode", "--column", "1", "--no-header", "--delimiter", NAME],
        &["inspect", HOSTILE],
        &["inspect", "\u{202e}", "--json"],
        &["range", "--from", HOSTILE],
        &["range", "--from", "now", "--tz", HOSTILE],
        &["layout", HOSTILE],
        &["leases", HOSTILE],
        &["counters", "sqlite:///x.db", "--raise", HOSTILE, "1", "--yes"],
        &["counters", "sqlite:///x.db", "--raise", "x", HOSTILE, "--yes"],
        &["next", "--node", HOSTILE],
        &["next", "--node", "1", "--state", path, "--clock", HOSTILE],
        &["serve", "--counter", HOSTILE, "--lease", "sqlite:///x.db"],
        &["serve", "--http", HOSTILE],
        &["serve", "--log", HOSTILE],
        &["man", "/dev/null/\u{1b}[2J"],
        &["completions", HOSTILE],
        &[HOSTILE],
        &["nxt\nDone: all is well"],
        &["layouts", "--json=\nDone"],
    ] {
        let (code, said) = says(arguments);
        assert!(code.unwrap() > 0 && !said.is_empty(), "{arguments:?}");
        // The hostile text does not itself start a line.
        assert!(!said.lines().any(|line| line.starts_with("Done")), "{said}");
    }
    for more in [&[][..], &["--sql"], &["--json"]] {
        let (code, said) =
            says(&[&["range", "--from", "today", "--to", "today", "--column", HOSTILE], more].concat());
        assert_eq!(code, Some(0), "{said}");
    }
    let rows = format!("\"a\",id {HOSTILE}\n{ID},\"{HOSTILE}\"\n");
    let objects =
        format!("{{\"id\":\"{NAME}\"}}\n{{\"{HOSTILE}\":1}}\n{HOSTILE}\n").replace("\"\\", "\\\"\\\\");
    for (arguments, input) in [
        (&["decode"][..], &*rows),
        (&["decode", "--column", "2"], &rows),
        (&["decode", "--column", "x"], &rows),
        (&["decode", "--key", "id"], &objects),
        (&["decode", "--key", HOSTILE], &objects),
    ] {
        assert!(says_of(arguments, input).0.unwrap() > 0, "{arguments:?}");
    }
}

/// No password is shown, even if an address is given where none belongs.
#[test]
fn a_password_is_told_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    for url in [
        "redis://user:hunter2@h:x/0",
        "redis://:hunter2@127.0.0.1:1/0?wait=0s&ttl=3s",
        "redis://user:hun/ter2@h/0",
        "redis://user:hunter2-with-more-than-any-message-shows-of-what-it-was-given@h/0",
        "postgres://h/app?password=hunter2&sslmode=maybe",
    ] {
        let argument = &format!("--what={url}");
        for arguments in [
            &[url][..],
            &["decode", url],
            &["decode", argument],
            &["decode", "--layout", url, ID],
            &["decode", "--text", url, ID],
            &["decode", "--input", url],
            &["decode", "--column", url],
            &["decode", "--column", "1", "--delimiter", url],
            &["inspect", url],
            &["inspect", "--layout", url, ID],
            &["layout", url],
            &["layouts", url],
            &["range", "--from", url],
            &["range", "--from", "now", "--tz", url],
            &["next", url],
            &["next", "--node", url],
            &["next", "--node", "1", "-n", url],
            &["next", "--node", "1", "--clock", url],
            &["next", "--node", "1", "--state", url],
            &["next", "--lease", url],
            &["leases", url],
            &["leases", url, url],
            &["leases", "sqlite:///none/x.db", "--reset", url, "--yes"],
            &["leases", "sqlite:///none/x.db", "--sequences", url, "--init"],
            &["counters", "sqlite:///none/x.db", "--remove", url, "--raise"],
            &["counters", "sqlite:///none/x.db", "--raise", url, "1", "--yes"],
            &["counters", "sqlite:///none/x.db", "--raise", "x", url, "--yes"],
            &["schema", url],
            &["schema", "postgres", "--schema-name", url],
            &["completions", url],
            &["man", &format!("/dev/null/{url}")],
            &["serve", url],
            &["serve", "--http", url],
            &["--color", url, "layouts"],
        ] {
            let output = polyflake(arguments).current_dir(&folder).write_stdin("a,b\n").output().unwrap();
            let said = stdout(&output) + &stderr(&output);
            assert!(output.status.code().unwrap() > 0 && !said.is_empty(), "{arguments:?}");
            assert!(!said.contains("hun") && !said.contains("ter2"), "{arguments:?}: {said}");
        }
    }
    has(
        &fails(&["inspect", "redis://user:hunter2@h:6379/0"], 3),
        &["`redis://***@h:6379/0` is not a known kind of ID"],
    );
    has(&fails(&["redis://user:hunter2@h/0"], 2), &["'redis://***@h/0'", "Usage"]);
}

#[test]
fn in_a_file_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    let named = HOSTILE.chars().fold(String::new(), |text, c| text + &format!("\\U{:08x}", u32::from(c)));
    for text in [
        format!("[generators.\"{named}\"]\nversion = 4\n"),
        format!("[generators.\"{named}\"]\nkind = \"counter\"\n"),
        format!("[generators.x]\nkind = \"{named}\"\n"),
        format!("[generators.x]\nkind = \"uuid\"\n\"{named}\" = 4\n"),
        format!("\"{named}\" = 4\n"),
        format!("lease = \"{named}\"\n"),
        format!("http = \"{named}\"\n"),
        format!("log = \"{named}\"\n"),
        "[\u{9b}2J\u{202e}\n".into(),
    ] {
        std::fs::write(&path, &text).unwrap();
        let (code, said) = says(&["serve", "--config", path.to_str().unwrap()]);
        assert_eq!(code, Some(14), "{text}: {said}");
    }
}

/// Checks the server's log, its answers and its metrics.
#[test]
fn of_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("leases.db");
    let url = format!("sqlite://{}?init=always", file.display());
    Sequences::open("inbox", &url).unwrap().close();
    label_nodes(&file, Some(YEAR_2100_MS));
    let inbox = format!("inbox={url}&wait=0s");
    let arguments = ["--sequences", &inbox, "--uuid", &format!("{NAME}=4"), "--lease", &url];

    let server = Server::new(&arguments);
    let (status, body) = server.get("/v1/ids/inbox?key=alice");
    assert_eq!(status, 503, "{body}");
    assert!(is_harmless(&body), "{body:?}");
    has(json(&body)["message"].as_str().unwrap(), &[SHOWN]);
    let (status, body) = server.get("/v1/ids/%E2%80%AE%1B%5B2J");
    assert!(status == 404 && is_harmless(&body), "{body:?}");
    json(&body);
    let answer =
        Server::raw(server.resp.unwrap(), "PF.SEQ inbox alice\r\nINCR \u{202e}\u{9b}\r\nQUIT\r\n".as_bytes());
    let answer = String::from_utf8(answer).unwrap().replace("\r\n", "\n");
    assert!(is_harmless(&answer), "{answer:?}");
    has(&answer, &["-ERR ", SHOWN, "no generator is called `\\u{202e}\\u{9b}`", "+OK"]);
    let metrics = http().get(server.url("/metrics")).call().unwrap().body_mut().read_to_string().unwrap();
    assert!(is_harmless(&metrics), "{metrics:?}");
    // Prometheus' own escapes for a quote and a backslash.
    has(&metrics, &["polyflake_ids_total{generator=\"a\\\\u{202e}\\\\u{2028}\\\"\\\\{}é\"} 0"]);
    let (_, log) = server.terminate();
    assert!(is_harmless(&log), "{log:?}");
    let said: Vec<_> = log.lines().map(json).collect();
    assert!(said.iter().any(|it| it["message"].as_str().unwrap().contains(SHOWN)), "{log}");
    assert!(said.iter().any(|it| it["generators"].as_str().is_some_and(|it| it.contains(NAME))), "{log}");

    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("polyflake"))
        .args(["serve", "--log", "text", "--admin", "none", "--http", "127.0.0.1:0", "--resp", "none"])
        .args(arguments)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        log += &(line.unwrap() + "\n");
        if log.contains(" ready") {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_harmless(&log), "{log:?}");
    has(&log, &["standing_by", " ready"]);
    assert!(log.contains(SHOWN), "{log}");
    assert!(log.lines().all(|line| line.starts_with("20")), "{log}");
}
