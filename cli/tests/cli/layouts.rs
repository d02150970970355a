use polyflake::{Layout, PRESETS};

use super::{fails, has, json, prints};

#[test]
fn every_preset_is_listed() {
    let text = prints(&["layouts"]);
    assert_eq!(text.lines().count(), 1 + PRESETS.len());
    let lines = prints(&["layouts", "--json"]);
    for ((line, shown), preset) in lines.lines().zip(text.lines().skip(1)).zip(&PRESETS) {
        let found = json(line);
        assert_eq!(found["name"], preset.name);
        assert_eq!(Layout::parse(found["layout"].as_str().unwrap()), Ok(preset.layout));
        has(shown, &[preset.name, &preset.layout.total_bits().to_string()]);
    }
    has(
        &text,
        &["twitter", "2080-07-10", "1,024", "4,096,000", "timestamp:41 datacenter:5 worker:5 sequence:12"],
    );
}

#[test]
fn one_says_what_it_is_good_for() {
    has(
        &prints(&["layout", "twitter"]),
        &[
            "twitter\n",
            "text          timestamp:41|datacenter:5|worker:5|sequence:12@1288834974657/1ms\n",
            "69.6 years",
            "2080-07-10T17:30:30.208Z",
            "1,024",
            "4,096,000",
            "63",
            "over_53_bits",
        ],
    );
    has(&prints(&["layout", "baidu"]), &["ended: its timestamps have run out"]);
    has(&prints(&["layout", "mastodon"]), &["no node field", "over_63_bits"]);
    has(&prints(&["layout", "seata"]), &["not_sorted_by_time"]);
    assert!(!prints(&["layout", "js-safe"]).contains("over_"));
    let now_ms = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap();
    let soon = format!("timestamp:30|sequence:10@{}/1ms", now_ms - 1000);
    let found = json(&prints(&["layout", "--json", &soon]));
    assert_eq!(found["warnings"], serde_json::json!(["ends_soon"]));
    assert_eq!((&found["name"], &found["nodes"]), (&serde_json::Value::Null, &1.into()));
    assert_eq!(found["fields"][0], serde_json::json!({"name": "timestamp", "bits": 30, "shift": 10}));
}

#[test]
fn what_is_none_is_named() {
    has(&fails(&["layout", "twiter"], 12), &["polyflake: unknown_layout:", "twitter"]);
    has(&fails(&["layout", "timestamp:37|worker:20|sequence:16@0/1ms"], 11), &["invalid_layout:", "9"]);
    has(&fails(&["layout"], 2), &["<LAYOUT>"]);
}
