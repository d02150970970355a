//! The `serde` feature: layouts as text, IDs as strings.
#![cfg(feature = "serde")]

use polyflake::Layout;

#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Config {
    layout: Layout,
    #[serde(with = "polyflake::serde_id")]
    first_id: u64,
}

#[test]
fn layouts_and_ids_are_texts() {
    let config = Config { layout: Layout::parse("sonyflake2").unwrap(), first_id: u64::MAX };
    let json = serde_json::to_value(&config).unwrap();
    assert_eq!(json["layout"], "timestamp:39|sequence:8|machine:16@1735689600000/10ms");
    assert_eq!(json["first_id"], "18446744073709551615");
    assert_eq!(serde_json::from_value::<Config>(json).unwrap(), config);
    let named = serde_json::json!({ "layout": "sonyflake2", "first_id": "18446744073709551615" });
    assert_eq!(serde_json::from_value::<Config>(named).unwrap(), config);
}

#[test]
fn what_is_none_is_refused_with_the_reason() {
    for (json, says) in [
        (r#"{"layout":"sonyflak","first_id":"1"}"#, "did you mean sonyflake"),
        (r#"{"layout":7,"first_id":"1"}"#, "expected a layout string or a preset's name"),
        (r#"{"layout":"twitter","first_id":1}"#, "expected an ID as a decimal string"),
        (r#"{"layout":"twitter","first_id":"-1"}"#, "position 1"),
    ] {
        let error = serde_json::from_str::<Config>(json).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}
