//! Runs tests/vectors.json through the public API.

use std::cell::Cell;

use polyflake::{Clock, ClockError, Error, ErrorCode, Format, Layout, Node, Number, Options, UnixTime};
use serde_json::{Map, Value};

type Runner = fn(&Value);

const SECTIONS: [(&str, Runner); 14] = [
    ("errors", error),
    ("layouts", layout),
    ("layouts_refused", layout_refused),
    ("decode", decode),
    ("decode_refused", decode_refused),
    ("compose", compose),
    ("compose_refused", compose_refused),
    ("bounds", bounds),
    ("texts", text),
    ("texts_read", text_read),
    ("texts_refused", text_refused),
    ("options", options),
    ("options_refused", options_refused),
    ("scripts", script),
];

#[test]
fn every_vector() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/vectors.json");
    let vectors: Map<String, Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let known: Vec<&str> = SECTIONS.iter().map(|(name, _)| *name).collect();
    let sections: Vec<&str> = vectors.keys().map(String::as_str).filter(|name| *name != "about").collect();
    assert!(sections.iter().all(|name| known.contains(name)), "unknown sections in {sections:?}");
    let mut count = 0;
    for (name, run) in SECTIONS {
        let cases = vectors[name].as_array().unwrap();
        assert!(!cases.is_empty(), "{name} is empty");
        for case in cases {
            // Shown only when the case fails.
            println!("{name}: {case}");
            run(case);
            count += 1;
        }
    }
    assert!(count > 1000, "only {count} vectors");
}

fn s<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_else(|| panic!("{key} is not a string"))
}

fn n(case: &Value, key: &str) -> Number {
    Number::parse(s(case, key))
}

fn u(case: &Value, key: &str) -> u64 {
    n(case, key).to_u64().unwrap()
}

fn layout_of(case: &Value) -> Layout {
    Layout::parse(s(case, "layout")).unwrap()
}

fn node_of(value: &Value) -> Node {
    match value {
        Value::Null => Node::NO_FIELDS,
        Value::String(whole) => Number::parse(whole).into(),
        Value::Object(fields) => fields.iter().fold(Node::NO_FIELDS, |node, (name, value)| {
            node.with_field(name, Number::parse(value.as_str().unwrap()))
        }),
        other => panic!("{other} is not a node"),
    }
}

fn assert_refused<T: std::fmt::Debug>(result: Result<T, Error>, case: &Value) -> Error {
    let error = result.expect_err("must be refused");
    assert_eq!(error.code().name(), s(case, "error"));
    assert!(error.to_string().starts_with(s(case, "error")));
    error
}

fn error(case: &Value) {
    let number = case["number"].as_i64().unwrap();
    let code = ErrorCode::ALL.into_iter().find(|code| i64::from(code.number()) == number).unwrap();
    assert_eq!(code.name(), s(case, "name"));
}

fn layout(case: &Value) {
    let layout = Layout::parse(s(case, "given")).unwrap();
    assert_eq!(layout.to_string(), s(case, "text"));
    assert_eq!(Layout::parse(s(case, "text")), Ok(layout));
    assert_eq!(layout.epoch_ms(), u(case, "epoch_ms"));
    assert_eq!(layout.tick_ms(), u(case, "tick_ms"));
    assert_eq!(layout.ids_per_tick(), u(case, "ids_per_tick"));
    assert_eq!(layout.nodes(), u(case, "nodes"));
    assert_eq!(layout.ends_at_ms(), u(case, "ends_at_ms"));
    for (key, value) in [
        ("total_bits", layout.total_bits()),
        ("timestamp_bits", layout.timestamp_bits()),
        ("timestamp_shift", layout.timestamp_shift()),
        ("sequence_bits", layout.sequence_bits()),
        ("sequence_shift", layout.sequence_shift()),
        ("node_bits", layout.node_bits()),
    ] {
        assert_eq!(case[key], value, "{key}");
    }
    let fields = case["fields"].as_array().unwrap();
    assert_eq!(fields.len(), layout.fields().len());
    for (expected, field) in fields.iter().zip(layout.fields()) {
        assert_eq!(field.name(), s(expected, "name"));
        assert_eq!(expected["bits"], field.bits());
        assert_eq!(expected["shift"], field.shift());
        assert_eq!(field.mask(), u(expected, "mask"));
    }
    let parts = layout.fields().iter().map(|field| (field.name(), field.bits().into()));
    assert_eq!(Layout::from_fields(parts, layout.epoch_ms(), layout.tick_ms()), Ok(layout));
}

fn layout_refused(case: &Value) {
    assert_refused(Layout::parse(s(case, "given")), case);
}

fn decode(case: &Value) {
    let layout = layout_of(case);
    let decoded = layout.decode(u(case, "id")).unwrap();
    assert_eq!(decoded.id(), u(case, "id"));
    assert_eq!(decoded.timestamp_ms(), u(case, "timestamp_ms"));
    assert_eq!(decoded.ticks(), u(case, "ticks"));
    assert_eq!(decoded.node(), u(case, "node"));
    assert_eq!(decoded.sequence(), u(case, "sequence"));
    let fields = case["fields"].as_object().unwrap();
    assert_eq!(decoded.fields().count(), fields.len());
    for (name, value) in decoded.fields() {
        assert_eq!(value.to_string(), fields[name].as_str().unwrap());
        assert_eq!(decoded.field(name), Some(value));
    }
    let ids = [0, decoded.id()];
    let all = layout.decode_all(&ids).unwrap();
    assert_eq!(all.ids(), ids);
    assert_eq!(all.layout(), &layout);
    assert_eq!(all.timestamps_ms().collect::<Vec<_>>(), [layout.epoch_ms(), decoded.timestamp_ms()]);
    assert_eq!(all.ticks().collect::<Vec<_>>(), [0, decoded.ticks()]);
    assert_eq!(all.nodes().collect::<Vec<_>>(), [0, decoded.node()]);
    assert_eq!(all.sequences().collect::<Vec<_>>(), [0, decoded.sequence()]);
    for (name, value) in decoded.fields() {
        assert_eq!(all.field(name).unwrap().collect::<Vec<_>>(), [0, value]);
    }
    assert!(all.field("sequence").is_none());
    let time = UnixTime::from_ms(decoded.timestamp_ms());
    assert_eq!(layout.compose(time, decoded.node(), decoded.sequence()), Ok(decoded.id()));
}

fn decode_refused(case: &Value) {
    let error = assert_refused(layout_of(case).decode(n(case, "id")), case);
    if let Some(id) = n(case, "id").to_u64() {
        assert_eq!(layout_of(case).decode_all(&[0, id, u64::MAX]).unwrap_err(), error);
    }
}

fn composed(case: &Value) -> Result<u64, Error> {
    let time = UnixTime::from_ms(n(case, "time_ms"));
    layout_of(case).compose(time, node_of(&case["node"]), n(case, "sequence"))
}

fn compose(case: &Value) {
    assert_eq!(composed(case), Ok(u(case, "id")));
}

fn compose_refused(case: &Value) {
    assert_refused(composed(case), case);
}

fn bounds(case: &Value) {
    let (layout, time) = (layout_of(case), UnixTime::from_ms(n(case, "time_ms")));
    for (key, id) in [("min_id", layout.min_id(time)), ("max_id", layout.max_id(time))] {
        if case[key].is_object() {
            assert_refused(id, &case[key]);
        } else {
            assert_eq!(id, Ok(u(case, key)), "{key}");
        }
    }
}

fn text(case: &Value) {
    for format in Format::ALL {
        let text = s(case, format.name());
        assert_eq!(format.write(u(case, "id")).as_str(), text);
        assert_eq!(format.read(text), Ok(u(case, "id")));
    }
}

fn text_read(case: &Value) {
    let format: Format = s(case, "format").parse().unwrap();
    assert_eq!(format.read(s(case, "text")), Ok(u(case, "id")));
}

fn text_refused(case: &Value) {
    let read = s(case, "format").parse().and_then(|format: Format| format.read(s(case, "text")));
    let message = assert_refused(read, case).to_string();
    if let Some(position) = case["position"].as_u64() {
        let words = format!("position {position}");
        assert!(
            message.split(';').any(|part| part.ends_with(&words) || part.contains(&(words.clone() + " ")))
        );
    }
}

fn options_of(case: &Value) -> Result<Options, Error> {
    let mut options = Options::default();
    for (name, value) in case["options"].as_object().unwrap() {
        match (name.as_str(), value) {
            ("node_text", value) => options.set("node", value.as_str().unwrap())?,
            ("node", Value::Object(_)) => options = options.node(node_of(value)),
            (name, value) => options.set(name, value.as_str().unwrap())?,
        }
    }
    Ok(options)
}

fn options(case: &Value) {
    let ids = options_of(case).unwrap().build_with_clock(|| Ok(0)).unwrap();
    assert_eq!(ids.layout().to_string(), s(case, "layout"));
    assert_eq!(ids.node(), u(case, "node"));
}

fn options_refused(case: &Value) {
    assert_refused(options_of(case).and_then(|options| options.build_with_clock(|| Ok(0))), case);
}

/// A clock that stands still at `next`, or advances by `advance` per reading until it reaches `until`.
#[derive(Default)]
struct ScriptClock {
    next: Cell<i64>,
    advance: Cell<i64>,
    until: Cell<i64>,
}

impl ScriptClock {
    fn read(&self) -> i64 {
        let now = self.next.get();
        if self.advance.get() > 0 {
            self.next.set((now + self.advance.get()).min(self.until.get()));
        }
        now
    }
}

impl Clock for &ScriptClock {
    fn unix_ms(&self) -> Result<i64, ClockError> {
        Ok(self.read())
    }
}

fn script(case: &Value) {
    let clock = ScriptClock::default();
    let ids = options_of(case).unwrap().build_with_clock(&clock).unwrap();
    for step in case["steps"].as_array().unwrap() {
        println!("  {step}");
        if step["clock"].is_string() {
            let number = |key: &str| n(step, key).to_i64().unwrap();
            let moves = step["advance"].is_string();
            clock.next.set(number("clock"));
            clock.advance.set(if moves { number("advance") } else { 0 });
            clock.until.set(if moves { number("until") } else { 0 });
        }
        let issued = match s(step, "call") {
            "next_id" => ids.next_id().map(|id| vec![id]),
            "try_next_id" => ids.try_next_id().map(|id| vec![id]),
            "next_ids" => ids.next_ids(n(step, "n")),
            call => panic!("unknown call {call}"),
        };
        if step["error"].is_string() {
            let error = assert_refused(issued, step);
            for (key, carried) in
                [("behind_ms", error.behind_ms()), ("retry_after_ms", error.retry_after_ms())]
            {
                assert_eq!(carried, step[key].is_string().then(|| u(step, key)), "{key}");
            }
            continue;
        }
        let issued = issued.unwrap();
        if step["run"].is_object() {
            let run = &step["run"];
            assert!(issued.is_sorted_by(|a, b| a < b));
            assert_eq!(issued.len() as u64, u(run, "count"));
            assert_eq!((issued[0], issued[issued.len() - 1]), (u(run, "first"), u(run, "last")));
        } else if step["ids"].is_array() {
            let expected: Vec<&str> =
                step["ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
            let issued: Vec<String> = issued.iter().map(u64::to_string).collect();
            assert_eq!(issued, expected);
        } else {
            assert_eq!(issued, [u(step, "id")]);
        }
    }
}
