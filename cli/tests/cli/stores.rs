//! Leases and counters in real stores.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use polyflake_coordination::{Counter, Sequences};
use rustix::process::{Pid, Signal, kill_process};

use super::servers::redis::Redis;
use super::{fails, has, json, polyflake, prints, stderr, stdout};

fn all(url: &str) {
    let with = |more: &str| format!("{url}?namespace=shop{more}");
    let shop = &*with("");

    // Leases.
    has(&prints(&["leases", shop]), &["No node was ever leased in namespace shop"]);
    has(&prints(&["leases", shop, "--init", "--yes"]), &["Done"]);
    has(&prints(&["leases", shop, "--init", "-y"]), &["already"]);
    let ids: HashSet<String> =
        (0..3).flat_map(|_| lines(&prints(&["next", "--lease", shop, "-n", "1000"]))).collect();
    assert_eq!(ids.len(), 3000);
    let mut holder = Holder::new(&with("&label=holder"));
    let found = leases(shop);
    assert_eq!(found["presets"], serde_json::json!(["twitter", "leaf"]));
    let held: Vec<_> = found["nodes"].as_array().unwrap().iter().filter(|it| it["state"] == "held").collect();
    assert_eq!((held.len(), &held[0]["label"]), (1, &"holder".into()));
    let number = held[0]["node"].clone();
    let node = number.to_string();
    has(&prints(&["leases", shop]), &["as twitter, leaf", "1 of ", &format!("node {node}"), "by holder"]);

    // Commands that change something ask first, and without a terminal there is no one to ask.
    for change in [&["--init"][..], &["--fence"], &["--reset", "3"]] {
        has(&fails(&[&["leases", shop], change].concat(), 2), &["polyflake: usage:", "add --yes"]);
    }
    has(&fails(&["leases", shop, "--init", "--yes"], 22), &["lease_unavailable:", "leased already"]);
    let refused = fails(&["leases", shop, "--reset", &node, "--yes"], 22);
    has(&refused, &["polyflake: lease_unavailable:", "leased by holder"]);
    has(&fails(&["leases", shop, "--reset", "9999", "--yes"], 13), &["polyflake: invalid_node:"]);
    has(&fails(&["leases", shop, "--reset", "3", "--fence"], 2), &["cannot be used with"]);

    // The holder stops on Ctrl-C, and gives its node back.
    holder.interrupt();
    let mine = |found: &serde_json::Value| {
        let nodes = found["nodes"].as_array().unwrap();
        nodes.iter().find(|it| it["node"] == number).unwrap().clone()
    };
    assert_eq!(mine(&leases(shop))["state"], "free");
    // Nodes are leased at random.
    let listed = leases(shop);
    let is_listed = |node: u64| listed["nodes"].as_array().unwrap().iter().any(|it| it["node"] == node);
    let never = (0..1_024).find(|&node| !is_listed(node)).unwrap();
    let (fields, why) = (
        format!("datacenter={},worker={}", never / 32, never % 32),
        format!("node {never} was never leased"),
    );
    has(&fails(&["leases", shop, "--reset", &fields, "--yes"], 22), &[&why]);
    has(&prints(&["leases", shop, "--reset", &node, "--yes"]), &["Done: node", "seconds"]);
    has(&prints(&["leases", shop, "--fence", "--yes"]), &["Done: new leases begin at"]);
    assert_eq!(leases(shop)["is_fenced"], true);
    has(&prints(&["leases", shop]), &["fenced: new leases begin at", "Z, in"]);
    has(&prints(&["leases", shop, "--tz", "Asia/Kolkata"]), &["fenced: new leases begin at", "+05:30, in"]);
    let waits = with("&wait=1s");
    let said = fails(&["next", "--lease", &waits], 22);
    has(&said, &["polyflake: waiting: ", "polyflake: lease_unavailable:"]);

    // Counters.
    has(&prints(&["counters", shop]), &["There is no counter in namespace shop"]);
    let orders = Counter::open("orders", shop).unwrap();
    assert_eq!(orders.next_id().unwrap(), 1);
    orders.close();
    has(&prints(&["counters", shop]), &["orders", "handed out"]);
    has(
        &fails(&["counters", shop, "--raise", "orders", "5000"], 2),
        &["polyflake: usage: Raise counter", "--yes"],
    );
    has(&prints(&["counters", shop, "--raise", "orders", "5000", "--yes"]), &["above 5000"]);
    has(&prints(&["counters", shop, "--raise", "orders", "4000"]), &["already at 5000"]);
    let again = Counter::open("orders", shop).unwrap();
    assert_eq!(again.next_id().unwrap(), 5001);
    again.close();
    prints(&["counters", shop, "--raise", "über", "7", "-y"]);
    let found: Vec<_> = prints(&["counters", shop, "--json"]).lines().map(json).collect();
    assert_eq!((found.len(), &found[1]["name"], &found[1]["last"]), (2, &"über".into(), &"7".into()));
    assert_eq!((&found[1]["place_index"], &found[1]["place_count"]), (&0.into(), &1.into()));
    has(&fails(&["counters", shop, "--remove", "über"], 2), &["usage: Remove counter", "numbers repeat"]);
    has(&prints(&["counters", shop, "--remove", "über", "--yes"]), &["Done"]);
    has(&prints(&["counters", shop, "--remove", "über", "--yes"]), &["no such counter"]);

    // Sequences have an owner.
    let inboxes = format!("{url}?namespace=inboxes&label=owner&init=always");
    let inbox = Sequences::open("inbox", &inboxes).unwrap();
    assert_eq!(inbox.next_id("alice").unwrap(), 1);
    let said = prints(&["leases", &inboxes]);
    has(&said, &["sequences \"inbox\"", "owned by owner"]);
    assert!(!said.contains("node"), "{said}");
    assert_eq!(leases(&inboxes)["sequences"], "inbox");
    inbox.close();
    has(&prints(&["leases", &inboxes]), &["free: given back by owner"]);

    for (change, part) in [
        (&["--raise", "orders", "0"][..], "number is 0"),
        (&["--raise", "orders", "-5"], "number is -5"),
        (&["--raise", "", "5"], "name has 0 characters"),
    ] {
        let arguments = [&["counters", shop, "--yes"], change].concat();
        has(&fails(&arguments, 14), &["polyflake: invalid_option:", part]);
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(ToOwned::to_owned).collect()
}

fn leases(url: &str) -> serde_json::Value {
    let text = prints(&["leases", url, "--json"]);
    assert_eq!(text.lines().count(), 1, "{text}");
    json(&text)
}

/// A stream of IDs from a leased node. Only the first ID is read.
struct Holder(std::process::Child);

impl Holder {
    fn new(url: &str) -> Self {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("polyflake"))
            .args(["next", "--forever"])
            // The address is passed where other users cannot see it.
            .env("POLYFLAKE_LEASE", url)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let mut from = BufReader::new(child.stdout.take().unwrap());
        from.read_line(&mut first).unwrap();
        assert!(first.trim().parse::<u64>().unwrap() > 0);
        std::thread::spawn(move || std::io::copy(&mut from, &mut std::io::sink()));
        Self(child)
    }

    fn interrupt(&mut self) {
        kill_process(Pid::from_child(&self.0), Signal::INT).unwrap();
        assert_eq!(self.0.wait().unwrap().code(), Some(130));
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn in_a_file_of_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    all(&format!("sqlite://{}/leases.db", folder.path().display()));
}

#[test]
fn in_redis() {
    let redis = Redis::new();
    all(&redis.url());
}

#[test]
fn a_store_that_is_not_there_and_no_secret() {
    for arguments in [&["leases"][..], &["counters"]] {
        let output = polyflake(arguments)
            .env("POLYFLAKE_STORE", "redis://user:hunter2@127.0.0.1:1/0?ttl=3s")
            .output()
            .unwrap();
        let errors = stderr(&output);
        assert!(matches!(output.status.code(), Some(22 | 25)), "{errors}");
        has(&errors, &["polyflake: ", "_unavailable: the store cannot be reached: redis://127.0.0.1:1/0"]);
        assert!(!errors.contains("hunter2") && stdout(&output).is_empty(), "{errors}");
    }
    has(
        &fails(&["leases", "redis://:hunter2@h:x/0"], 14),
        &["polyflake: invalid_option: the store's address:"],
    );
    has(&fails(&["leases"], 2), &["<URL>"]);
    // Help does not show the environment's values either.
    let help = polyflake(&["leases", "--help"]).env("POLYFLAKE_STORE", "redis://:hunter2@h/0").output();
    assert!(!stdout(&help.unwrap()).contains("hunter2"));
}
