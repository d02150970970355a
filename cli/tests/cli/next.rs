use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use polyflake::{Format, Layout};

use super::{ROOM, fails, has, prints};

fn ids(text: &str) -> Vec<u64> {
    text.lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn one_id_and_many() {
    let layout = Layout::default();
    let one = ids(&prints(&["next", "--node", "7"]));
    assert_eq!(one.len(), 1);
    assert_eq!(layout.decode(one[0]).unwrap().node(), 7);
    let many = ids(&prints(&["next", "--node", "datacenter=1,worker=7", "-n", "10000"]));
    assert_eq!(many.len(), 10_000);
    assert!(many.is_sorted_by(|a, b| a < b));
    assert!(many.iter().all(|&id| layout.decode(id).unwrap().node() == 39));
    assert_eq!(prints(&["next", "--node", "7", "-n", "0"]), "");
}

#[test]
fn every_layout_and_format() {
    for format in Format::ALL {
        let text = prints(&["next", "--layout", ROOM, "--node", "3", "-n", "20000", "--text", format.name()]);
        let ids: HashSet<u64> = text.lines().map(|line| format.read(line).unwrap()).collect();
        assert_eq!(ids.len(), 20_000, "{format}");
    }
    for (layout, n) in [("mastodon", "3"), ("js-safe", "3"), ("sonyflake2", "600")] {
        let text = prints(&["next", "-l", layout, "--node", "0", "-n", n]);
        assert_eq!(text.lines().count().to_string(), n);
    }
}

#[test]
fn options_are_the_cores() {
    prints(&[
        "next",
        "--node",
        "1",
        "--max-ahead-ms",
        "5",
        "--max-backward-ms",
        "0",
        "--max-wait-ms",
        "2000",
        "--sequence-start",
        "zero",
        "--clock",
        "steady",
    ]);
    for (arguments, code, parts) in [
        (&["next"][..], 13, &["polyflake: invalid_node: node is missing", "datacenter, worker"][..]),
        (&["next", "--node", "1024"], 13, &["polyflake: invalid_node:", "1024"]),
        (&["next", "--node", "-1"], 13, &["polyflake: invalid_node:", "-1"]),
        (&["next", "--node", "rack=1"], 13, &["polyflake: invalid_node:", "rack"]),
        (&["next", "--node", "1", "-n", "-3"], 14, &["polyflake: invalid_option: number is -3"]),
        (&["next", "--node", "1", "-n", "many"], 14, &["polyflake: invalid_option: number is many"]),
        (&["next", "--node", "1", "--text", "base64"], 14, &["polyflake: invalid_option:", "base64", "hex"]),
        (&["next", "--node", "1", "--clock", "sun"], 14, &["polyflake: invalid_option:", "sun"]),
        (&["next", "--node", "1", "--max-ahead-ms", "-1"], 14, &["max_ahead_ms is -1"]),
        (&["next", "--node", "1", "--layout", "twiter"], 12, &["polyflake: unknown_layout:", "twitter"]),
        (
            &["next", "--node", "1", "--layout", "timestamp:37|worker:20|sequence:16@0/1ms"],
            11,
            &["polyflake: invalid_layout:", "9"],
        ),
        (&["next", "--node", "1", "--layout", "baidu"], 16, &["polyflake: time_out_of_range:"]),
        (&["next", "--lease", "ftp://x"], 14, &["polyflake: invalid_option: lease: no such kind"]),
        (
            &["next", "--lease", "redis://h/0", "--state", "/x"],
            14,
            &["polyflake: invalid_option: state and lease"],
        ),
        (&["next", "--node", "1", "--state", "/no/such/folder/x"], 21, &["polyflake: state_file:"]),
        (&["next", "--nodes", "1"], 2, &["unexpected argument", "--node"]),
    ] {
        has(&fails(arguments, code), parts);
    }
}

#[test]
fn the_layout_can_be_in_the_environment() {
    let mut command = super::polyflake(&["next", "--node", "3"]);
    let output = command.env("POLYFLAKE_LAYOUT", "js-safe").output().unwrap();
    let id = ids(&super::stdout(&output))[0];
    assert!(id < 1 << 53);
    assert_eq!(Layout::parse("js-safe").unwrap().decode(id).unwrap().node(), 3);
}

#[cfg(unix)]
#[test]
fn processes_share_a_state_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("node-7");
    let path = path.to_str().unwrap();
    let all: Vec<u64> = std::thread::scope(|scope| {
        let run = || ids(&prints(&["next", "--node", "7", "--state", path, "-n", "5000"]));
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 20_000);
    has(&fails(&["next", "--node", "8", "--state", path], 21), &["state_file"]);
}

/// `polyflake next --forever | head -3`
#[test]
fn a_closed_pipe_ends_it_quietly() {
    for text in ["decimal", "base62"] {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin!("polyflake"))
            .args(["next", "--forever", "--node", "1", "--layout", ROOM, "--text", text])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for _ in 0..3 {
            assert!(lines.next().unwrap().unwrap().len() >= 10);
        }
        drop(lines);
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!((child.wait().unwrap().code(), &*errors), (Some(0), ""));
    }
}

/// A full disk is not the same as a closed pipe.
#[cfg(target_os = "linux")]
#[test]
fn an_output_that_cannot_be_written_is_an_error() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = Command::new(assert_cmd::cargo::cargo_bin!("polyflake"))
        .args(["next", "--node", "1"])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    has(&super::stderr(&output), &["polyflake: io: standard output:"]);
}
