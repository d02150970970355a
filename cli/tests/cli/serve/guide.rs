//! docs/service.md: its examples print the output that it shows, and it contains the files from `deploy/`.

use super::super::guide::{are_like, examples, read, run};
use super::super::{fails, prints};
use super::Server;

#[test]
fn the_examples_print_what_the_page_says() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::in_folder(folder.path(), &["--counter", "orders", "--sequences", "inbox"]);
    let http = format!("//{}/", server.http.unwrap());
    let resp = format!("-p {} ", server.resp.unwrap().port());
    let examples = examples(&read("../docs/service.md"));
    assert!(examples.len() > 10);
    for (command, said) in examples {
        let here = command.replace("//127.0.0.1:8080/", &http).replace("-p 6380 ", &resp);
        assert_ne!(here, command);
        let output = run(&here, folder.path());
        let printed = super::super::stdout(&output) + &super::super::stderr(&output);
        assert!(are_like(&printed, &said), "$ {command}\n{printed}\nand the page says\n{said}");
    }
}

/// Each row names a flag, which the test below looks up in the help.
#[test]
fn every_kind_of_generator_is_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("polyflake.toml");
    std::fs::write(&config, "[generators.a]\nkind = \"none\"").unwrap();
    let said = fails(&["serve", "--config", config.to_str().unwrap()], 14);
    let (_, kinds) = said.split_once(" are ").unwrap();
    let page = read("../docs/service.md");
    for kind in kinds.trim_end().split(", ") {
        let flag = if kind == "snowflake" { "lease" } else { kind };
        let row = |line: &str| {
            line.starts_with(&format!("| `--{flag} ")) && line.contains(&format!("` | `{kind}` |"))
        };
        assert!(page.lines().any(row), "{kind}");
    }
}

#[test]
fn the_files_to_deploy_are_on_the_page() {
    let page = read("../docs/service.md");
    for file in ["polyflake.toml", "polyflake.service", "Dockerfile", "kubernetes.yaml", "haproxy.cfg"] {
        let text = read(&format!("deploy/{file}"));
        assert!(page.contains(&format!("\n{}\n```\n", text.trim_end())), "{file}");
    }
    // Every flag on the page exists, and every key in the file is right: the only fault is that a file it
    // names is missing here.
    let help = prints(&["serve", "--help"]);
    let (text, _) = page.split_once("## systemd").unwrap();
    for flag in text.split(['`', ' ', '[', ']', ',']).filter(|word| word.starts_with("--")) {
        let flag = flag.split('=').next().unwrap();
        assert!(help.contains(flag) || flag == "--json", "{flag}");
    }
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/polyflake.toml");
    let said = fails(&["serve", "--config", config], 1);
    assert!(said.contains("io: /etc/polyflake/token"), "{said}");
}

/// systemd's exposure score ranges from 0 (best) to 10 (worst).
#[test]
fn the_unit_leaves_little_open() {
    let unit = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/polyflake.service");
    let mut analyze = std::process::Command::new("systemd-analyze");
    let output = analyze.args(["security", "--offline=true", "--threshold=20", unit]).output().unwrap();
    assert!(output.status.success(), "{}", super::super::stdout(&output));
}
