//! Help, completions, man pages, and mistakes in the command line.

use super::{fails, has, polyflake, prints};

/// All commands, including those within `public`.
pub(super) const COMMANDS: [&str; 18] = [
    "next",
    "decode",
    "annotate",
    "inspect",
    "range",
    "layouts",
    "layout",
    "leases",
    "counters",
    "schema",
    "public key",
    "public encode",
    "public decode",
    "public rotate",
    "uuid",
    "object-id",
    "serve",
    "completions",
];

#[test]
fn help_says_what_there_is() {
    let help = prints(&["--help"]);
    let mut listed = COMMANDS.map(|it| it.split(' ').next().unwrap()).to_vec();
    listed.dedup();
    has(&help, &listed);
    has(&help, &["Exit codes:", "invalid_layout", "130"]);
    assert!(!help.contains('\u{1b}'));
    for command in COMMANDS {
        let words: Vec<_> = command.split(' ').collect();
        has(&prints(&[&words[..], &["--help"]].concat()), &[&format!("Usage: polyflake {command}")]);
    }
    has(&prints(&["--version"]), &["polyflake 0."]);
    let coloured = prints(&["--color", "always", "--help"]);
    assert!(coloured.contains('\u{1b}'));
}

#[test]
fn the_table_of_each_database() {
    for (kind, grants) in [("postgres", "GRANT USAGE"), ("mysql", "GRANT SELECT"), ("sqlite", "STRICT")] {
        has(&prints(&["schema", kind]), &["CREATE TABLE", "polyflake_records", grants]);
    }
    has(&fails(&["schema", "redis"], 2), &["redis", "postgres"]);
    has(&prints(&["schema", "postgres"]), &["public.polyflake_records", "ON SCHEMA public"]);
    let named = prints(&["schema", "postgres", "--schema-name", "app"]);
    has(&named, &["CREATE TABLE IF NOT EXISTS \"app\".polyflake_records", "USAGE ON SCHEMA \"app\""]);
    assert!(!named.contains("public"), "{named}");
    has(&fails(&["schema", "postgres", "--schema-name", "a.b"], 2), &["letters, digits and underscores"]);
    has(&fails(&["schema", "mysql", "--schema-name", "app"], 2), &["schema_name is for PostgreSQL"]);
}

#[test]
fn completions_for_each_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        has(&prints(&["completions", shell]), &["polyflake"]);
    }
    has(&fails(&["completions", "tcsh"], 2), &["tcsh", "bash"]);
    // A shell accepts the script.
    if let Ok(bash) = std::process::Command::new("bash").arg("--version").output() {
        assert!(bash.status.success());
        let script = format!("{}\ncomplete -p polyflake", prints(&["completions", "bash"]));
        let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{}", super::stderr(&output));
    }
}

#[test]
fn a_man_page_for_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    prints(&["man", pages.to_str().unwrap()]);
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    has(&page("polyflake.1"), &[".TH polyflake 1", "Exit codes", "invalid_layout"]);
    for command in COMMANDS {
        has(&page(&format!("polyflake-{}.1", command.replace(' ', "-"))), &[".TH"]);
    }
    has(&page("polyflake-decode.1"), &["A first line of CSV whose column is an ID is data"]);
    assert!(!pages.join("polyflake-man.1").exists());
    has(&fails(&["man", "/dev/null/x"], 1), &["polyflake: io: /dev/null/x"]);
}

/// Runs the command in a terminal and types this text. Returns the exit code and the terminal's contents.
#[cfg(target_os = "linux")]
fn at_a_terminal(command: &str, typed: &str) -> (Option<i32>, String) {
    let program = assert_cmd::cargo::cargo_bin!("polyflake").display().to_string();
    let output = assert_cmd::Command::new("script")
        .args(["-qec", &format!("{program} {command}"), "/dev/null"])
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env("TERM", "xterm-256color")
        .write_stdin(typed)
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_has_colour_and_answers() {
    let (code, shown) = at_a_terminal(&format!("decode {}", super::ID), "");
    assert!(code == Some(0) && shown.contains('\u{1b}'), "{shown}");
    let (_, shown) = at_a_terminal(&format!("decode {} --color never", super::ID), "");
    assert!(!shown.contains('\u{1b}'), "{shown}");

    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("app.log");
    std::fs::write(&log, super::ID).unwrap();
    let (code, shown) = at_a_terminal(&format!("annotate {}", log.display()), "");
    assert!(code == Some(0) && shown.contains("\u{1b}[36m[2022"), "{shown}");
    let init = format!("leases sqlite://{}/leases.db --init", folder.path().display());
    for (typed, code, part) in
        [("n\n", 3, "[y/N]"), ("\n", 3, "[y/N]"), ("y\n", 0, "Done"), ("yes\n", 0, "already")]
    {
        let (found, shown) = at_a_terminal(&init, typed);
        assert_eq!(found, Some(code), "{shown}");
        has(&shown, &["or has every process that did ended?", part]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_long_file_has_a_bar() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.txt");
    let mut text = format!("{}\n", super::ID);
    while text.len() < 40 << 20 {
        text.push_str(&" ".repeat(1 << 20));
        text.push('\n');
    }
    std::fs::write(&path, text).unwrap();
    let decode = format!("decode --input {0} > {0}.out", path.display());
    let (code, shown) = at_a_terminal(&decode, "");
    assert!(code == Some(0) && shown.contains('%') && shown.contains("MiB"), "{shown}");
    let quiet = format!("decode --input {0} 2> {0}.err > {0}.out", path.display());
    assert_eq!(at_a_terminal(&quiet, ""), (Some(0), String::new()));
    assert_eq!(std::fs::read_to_string(path.with_extension("txt.err")).unwrap(), "");
}

#[test]
fn a_wrong_command_line_is_2() {
    for arguments in [&[][..], &["nxt"], &["decode", "--what"], &["--color", "blue", "layouts"]] {
        let output = polyflake(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
