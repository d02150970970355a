//! Help, completions, man pages, and what is wrong with a command line.

use super::{fails, has, polyflake, prints};

const COMMANDS: [&str; 9] =
    ["next", "decode", "inspect", "range", "layouts", "layout", "leases", "counters", "completions"];

#[test]
fn help_says_what_there_is() {
    let help = prints(&["--help"]);
    has(&help, &COMMANDS);
    has(&help, &["Exit codes:", "invalid_layout", "130"]);
    assert!(!help.contains('\u{1b}'));
    for command in COMMANDS {
        has(&prints(&[command, "--help"]), &["Usage: polyflake", command]);
    }
    has(&prints(&["--version"]), &["polyflake 0."]);
    let coloured = prints(&["--color", "always", "--help"]);
    assert!(coloured.contains('\u{1b}'));
}

#[test]
fn completions_for_each_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        has(&prints(&["completions", shell]), &["polyflake"]);
    }
    has(&fails(&["completions", "tcsh"], 2), &["tcsh", "bash"]);
    // A shell takes it.
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
        has(&page(&format!("polyflake-{command}.1")), &[".TH"]);
    }
    assert!(!pages.join("polyflake-man.1").exists());
    has(&fails(&["man", "/dev/null/x"], 1), &["polyflake: io: /dev/null/x"]);
}

#[test]
fn a_wrong_command_line_is_2() {
    for arguments in [&[][..], &["nxt"], &["decode", "--what"], &["--color", "blue", "layouts"]] {
        let output = polyflake(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}
