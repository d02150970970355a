use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use polyflake::{Layout, UnixTime};

use super::{ID, fails, has, polyflake, prints, prints_of, stdout};

const NOTE: &str = " [2022-06-28T16:07:40.105Z node 378]";

/// Returns the output for these bytes.
fn annotated(arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let output = polyflake(&[&["annotate"], arguments].concat()).write_stdin(input).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    output.stdout
}

#[test]
fn time_and_node_stand_beside_each_id() {
    let log = format!(
        "2022-06-28 16:07:41 INFO order {ID} paid\r\n{{\"id\":\"{ID}\",\"n\":42}}\n\ttook 1656432461105 us, x{ID}\n{ID}"
    );
    let is = format!(
        "2022-06-28 16:07:41 INFO order {ID}{NOTE} paid\r\n{{\"id\":\"{ID}{NOTE}\",\"n\":42}}\n\ttook 1656432461105 us, \
         x{ID}\n{ID}{NOTE}"
    );
    assert_eq!(prints_of(&["annotate"], &log), is);
    assert_eq!(prints_of(&["annotate", "-"], &log), is);
    assert_eq!(prints_of(&["annotate"], ""), "");
    let note = format!("{ID} [2022-06-28T21:37:40.105+05:30 node 378]");
    assert_eq!(prints_of(&["annotate", "--tz", "Asia/Kolkata"], ID), note);
    let discord = "175928847299117063";
    let note = " [2016-04-30T11:18:25.796Z node 32]";
    assert_eq!(prints_of(&["annotate", "-l", "discord"], discord), format!("{discord}{note}"));
}

#[test]
fn what_is_no_text_passes_through() {
    let mut bytes: Vec<u8> = (0..=255).cycle().take(700_000).collect();
    assert_eq!(annotated(&[], &bytes), bytes);
    bytes.extend(format!("\n{ID}\n").bytes());
    let mut is = bytes.clone();
    is.truncate(bytes.len() - 1);
    is.extend(format!("{NOTE}\n").bytes());
    assert_eq!(annotated(&[], &bytes), is);
}

/// It does not matter where one block of input ends and the next begins.
#[test]
fn a_long_log() {
    let (mut log, mut is) = (String::new(), String::new());
    for n in 0..30_000 {
        let filler = "x1.".repeat(n % 13);
        let _ = writeln!(log, "{n} {filler}{n}: {ID}");
        let _ = writeln!(is, "{n} {filler}{n}: {ID}{NOTE}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    std::fs::write(&path, &log).unwrap();
    let path = path.to_str().unwrap();
    assert!(prints(&["annotate", path]) == is);
    // Several logs, one after the other.
    assert!(prints_of(&["annotate", path, "-", path], "x") == format!("{is}x{is}"));
    has(&fails(&["annotate", "/none/x.log"], 1), &["polyflake: io: /none/x.log: "]);
}

/// Finds every layout's IDs, even if the node is in higher bits than the time.
#[test]
fn every_layout() {
    for preset in &polyflake::PRESETS {
        let layout = &preset.layout;
        let at = if preset.name == "baidu" { 1_700_000_000_000_u64 } else { 1_767_225_600_000 };
        let id = layout.compose(UnixTime::from_ms(at), layout.nodes() - 1, 1).unwrap();
        let node = layout.decode(id).unwrap().node();
        let time =
            if preset.name == "baidu" { "2023-11-14T22:13:20.000Z" } else { "2026-01-01T00:00:00.000Z" };
        let node = if layout.node_bits() == 0 { String::new() } else { format!(" node {node}") };
        let is = format!("a {id} [{time}{node}] b");
        assert_eq!(prints_of(&["annotate", "--layout", preset.name], &format!("a {id} b")), is);
    }
}

#[test]
fn the_times_that_ids_have() {
    let layout = Layout::default();
    let id = |ms: u64| layout.compose(UnixTime::from_ms(ms), 378, 0).unwrap().to_string();
    let week_ms = 7 * 86_400_000;
    for (ms, is_id) in [
        (layout.epoch_ms() + week_ms - 1, false),
        (layout.epoch_ms() + week_ms, true),
        // A time that is still in the future when the tests run.
        (4_102_444_800_000, false),
    ] {
        let id = id(ms.min(layout.ends_at_ms()));
        assert_eq!(prints_of(&["annotate"], &id) != id, is_id, "{id}");
    }
    // A time in ns looks like an ID with an earlier time.
    let ns = "1767225600000000000";
    has(&prints_of(&["annotate"], ns), &[ns, " [2024-"]);
    assert_eq!(prints_of(&["annotate", "--since", "2026-01-01"], ns), ns);
    let window = ["annotate", "--since", "2022-06-28", "--until", "2022-06-28"];
    assert_eq!(prints_of(&window, ID), format!("{ID}{NOTE}"));
    for window in
        [["--since", "2022-06-29"], ["--until", "2022-06-27"], ["--since", "2022-06-28T16:07:40.106Z"]]
    {
        assert_eq!(prints_of(&[&["annotate"], &window[..]].concat(), ID), ID, "{window:?}");
    }
    let early = id(layout.epoch_ms() + 5);
    assert!(prints_of(&["annotate", "--since", "2010-11-04T01:42:54.657Z"], &early).len() > early.len());
    assert!(prints_of(&["annotate", "--until", "2079-01-01"], &id(3_000_000_000_000)).contains("2065-"));
    has(&fails(&["annotate", "--since", "soon"], 14), &["since is `soon`"]);
    has(&fails(&["annotate", "--since", "2001-01-01"], 16), &["time_out_of_range"]);
    has(&fails(&["annotate", "--tz", "Mars"], 14), &["Mars", "Europe/Berlin"]);
}

#[test]
fn colour_is_only_around_the_note() {
    let coloured = prints_of(&["annotate", "--color", "always"], &format!("\u{1b}[1m{ID}\u{1b}[0m"));
    let note = NOTE.trim_start();
    assert_eq!(coloured, format!("\u{1b}[1m{ID} \u{1b}[36m{note}\u{1b}[39m\u{1b}[0m"));
    let plain =
        polyflake(&["annotate"]).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1").write_stdin(ID).output();
    assert_eq!(stdout(&plain.unwrap()), format!("{ID}{NOTE}"));
}

/// Each line arrives only after the previous one was read, as in `tail -f app.log | polyflake annotate`.
#[test]
fn each_line_is_written_when_it_is_there() {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("polyflake"))
        .arg("annotate")
        .env_remove("POLYFLAKE_LAYOUT")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for _ in 0..3 {
        input.write_all(format!("a {ID}\n").as_bytes()).unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, format!("a {ID}{NOTE}\n"));
    }
    drop(input);
    assert!(child.wait().unwrap().success());
}

/// `polyflake annotate | head -n 1`
#[test]
fn a_reader_that_has_had_enough_is_no_error() {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("polyflake"))
        .arg("annotate")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    // The command may exit before everything has been written.
    let _ = input.write_all(&vec![b'x'; 1 << 20]);
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}
