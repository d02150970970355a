use std::collections::HashSet;

use super::{fails, has, json, prints};

fn lines(arguments: &[&str]) -> Vec<String> {
    let lines: Vec<_> = prints(arguments).lines().map(ToOwned::to_owned).collect();
    assert_eq!(lines.iter().collect::<HashSet<_>>().len(), lines.len(), "{arguments:?}");
    lines
}

fn kind(id: &str) -> String {
    json(&prints(&["inspect", "--json", id]))["others"][0]["kind"].as_str().unwrap().into()
}

#[test]
fn uuids_of_version_4_and_7() {
    for (arguments, version) in
        [(&["uuid"][..], 7), (&["uuid", "--version", "7"], 7), (&["uuid", "--version=4"], 4)]
    {
        let ids = lines(arguments);
        assert_eq!((ids.len(), kind(&ids[0])), (1, format!("UUID version {version}")));
    }
    let ids = lines(&["uuid", "-n", "5000"]);
    assert!(ids.len() == 5000 && ids.is_sorted());
    assert_eq!(lines(&["uuid", "-n", "5000", "--version", "4"]).len(), 5000);
    assert_eq!(prints(&["uuid", "-n", "0"]), "");
    has(&fails(&["uuid", "--version", "1"], 2), &["'1'", "4, 7"]);
    has(&fails(&["uuid", "-n", "-1"], 14), &["invalid_option: number is -1"]);
}

#[test]
fn object_ids() {
    has(&prints(&["object-id", "-h"]), &["Generate MongoDB ObjectIds, one per line"]);
    let ids = lines(&["object-id", "-n", "5000"]);
    assert!(ids.len() == 5000 && ids.is_sorted());
    assert_eq!(kind(&ids[0]), "ObjectId of MongoDB");
    assert_eq!(lines(&["object-id"]).len(), 1);
    has(&fails(&["object-id", "-n", "x"], 14), &["invalid_option: number is x"]);
}
