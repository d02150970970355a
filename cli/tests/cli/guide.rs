//! docs/command.md: its examples run, and print the output that the page shows.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn page() -> String {
    read("../docs/command.md")
}

/// Reads a file, given by its path from this crate's folder.
pub(super) fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Returns the commands in a page's `console` blocks, each with the lines that it prints.
pub(super) fn examples(page: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut is_block = false;
    for line in page.lines() {
        match line.strip_prefix("$ ") {
            _ if line.starts_with("```") => is_block = line == "```console",
            Some(command) if is_block => found.push((command.into(), String::new())),
            None if is_block => {
                if let Some((_, printed)) = found.last_mut() {
                    printed.push_str(line);
                    printed.push('\n');
                }
            }
            _ => {}
        }
    }
    found
}

pub(super) fn run(command: &str, folder: &Path) -> Output {
    let program = Path::new(assert_cmd::cargo::cargo_bin!("polyflake")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = [program.to_owned()].into_iter().chain(std::env::split_paths(&path));
    Command::new("sh")
        .args(["-c", &command.replace("/var/lib/app", folder.to_str().unwrap())])
        .current_dir(folder)
        .env("PATH", std::env::join_paths(paths).unwrap())
        .env_remove("CLICOLOR_FORCE")
        .output()
        .unwrap()
}

/// On the page, `[..]` stands for anything on its line.
fn is_like(printed: &str, said: &str) -> bool {
    let mut pieces = said.split("[..]");
    let Some(mut rest) = pieces.next().and_then(|first| printed.strip_prefix(first)) else { return false };
    let mut is_open = false;
    for piece in pieces {
        is_open = piece.is_empty();
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    is_open || rest.is_empty()
}

/// A line that contains only `...` stands for the rest of the output.
pub(super) fn are_like(printed: &str, said: &str) -> bool {
    let mut printed = printed.lines();
    for said in said.lines() {
        if said == "..." {
            return true;
        }
        if !printed.next().is_some_and(|line| is_like(line.trim_end(), said)) {
            return false;
        }
    }
    printed.next().is_none()
}

#[test]
fn the_examples_print_what_the_page_says() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("orders.csv"), "id,total\n1541815603606036480,10\n").unwrap();
    fs::write(folder.path().join("rows.csv"), "1541815603606036480,10\n1541815603606036481,20\n").unwrap();
    fs::write(folder.path().join("events.jsonl"), "{\"user\":{\"id\":\"1541815603606036480\"}}\n").unwrap();
    fs::write(folder.path().join("app.log"), "12:00:07 order 1541815603606036480 paid\n").unwrap();
    fs::write(folder.path().join("ids.txt"), "1541815603606036480\n").unwrap();
    let keys = folder.path().join("keys");
    fs::write(&keys, "pfk_10kvEGTqNtUTXFUlMnM4wIa\npfk_05tGsbz35qmkGBZiVPCD6A7\n").unwrap();
    fs::set_permissions(&keys, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let examples = examples(&page());
    assert!(examples.len() > 10);
    for (command, said) in examples {
        let output = run(&command, folder.path());
        let printed = super::stdout(&output) + &super::stderr(&output);
        let printed = printed.replace(folder.path().to_str().unwrap(), "/var/lib/app");
        assert!(are_like(&printed, &said), "$ {command}\n{printed}\nand the page says\n{said}");
    }
}

#[test]
fn every_command_and_exit_code_is_on_the_page() {
    let page = page();
    for command in super::shell::COMMANDS {
        assert!(page.contains(&format!("`polyflake {command}")), "{command}");
    }
    let help = super::prints(&["--help"]);
    let (_, codes) = help.split_once("Exit codes:").unwrap();
    for code in codes.split([',', ':', '\n']).filter_map(|it| it.split_whitespace().nth(1)) {
        if code.contains('_') {
            assert!(page.contains(&format!("`{code}`")), "{code}");
        }
    }
}
