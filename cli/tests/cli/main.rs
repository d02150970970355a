//! The command, as people run it.

mod annotate;
mod decode;
#[cfg(unix)]
mod guide;
mod inspect;
mod layouts;
mod next;
mod public;
mod range;
#[cfg(unix)]
mod serve;
mod shell;
#[cfg(unix)]
mod stores;
#[cfg(unix)]
mod terminal_escapes;
mod texts;

use std::process::Output;
use std::time::Duration;

use assert_cmd::Command;
#[cfg(unix)]
use polyflake_test_support::servers;

/// An ID that Twitter published, and its parts.
const ID: &str = "1541815603606036480";
const TIME: &str = "2022-06-28T16:07:40.105Z";
/// A layout with more IDs per second than any program can print.
const ROOM: &str = "timestamp:40|worker:4|sequence:20@1735689600000/1ms";

/// The command, unaffected by the tests' environment.
fn polyflake(arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("polyflake"));
    for name in [
        "NO_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "POLYFLAKE_LAYOUT",
        "POLYFLAKE_LEASE",
        "POLYFLAKE_PUBLIC_KEYS",
        "POLYFLAKE_STORE",
    ] {
        command.env_remove(name);
    }
    command.args(arguments).timeout(Duration::from_secs(120));
    command
}

/// Returns the command's standard output.
fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Returns the command's output, after checking that it succeeds without complaints.
fn prints(arguments: &[&str]) -> String {
    prints_of(arguments, "")
}

/// Like [`prints`], but with standard input.
fn prints_of(arguments: &[&str], input: &str) -> String {
    let output = polyflake(arguments).write_stdin(input).output().unwrap();
    let errors = stderr(&output);
    assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {} {errors}", output.status);
    stdout(&output)
}

/// Returns the command's complaint, after checking that it fails with this exit code.
fn fails(arguments: &[&str], code: i32) -> String {
    let output = polyflake(arguments).write_stdin("").output().unwrap();
    let errors = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
    assert_eq!(stdout(&output), "", "{arguments:?}");
    errors
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Checks that a string contains these parts, in this order.
fn has(text: &str, parts: &[&str]) {
    let mut rest = text;
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { panic!("no {part:?} there: {text}") };
        rest = after;
    }
}
