//! Layouts, IDs and their texts. A layout is passed as its text.

use alloc::string::String;

use js_sys::{Array, BigUint64Array};
use polyflake::{Error, Format, Layout, Node, Number, PRESETS, UnixTime};
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

use crate::host::{self, settle};

#[wasm_bindgen]
pub fn presets() -> Array {
    PRESETS.iter().map(|preset| JsValue::from_str(preset.name)).collect()
}

#[wasm_bindgen]
pub fn layout(text: &str) -> JsValue {
    settle(Layout::parse(text).map(|layout| parts(&layout)))
}

/// `fields`: each field's name followed by its width.
#[wasm_bindgen(js_name = layoutOf)]
pub fn layout_of(fields: &Array, epoch_ms: &str, tick_ms: &str) -> JsValue {
    let fields = pairs(fields).map(|(name, bits)| (name, Number::parse(&bits)));
    let layout = Layout::from_fields(fields, Number::parse(epoch_ms), Number::parse(tick_ms));
    settle(layout.map(|layout| parts(&layout)))
}

/// Writes the parts of an ID into `values`, in the order of `js/backend.ts`.
#[wasm_bindgen]
pub fn decode(layout: &str, id: &str, values: &BigUint64Array) {
    settle(Layout::parse(layout).and_then(|layout| layout.decode(Number::parse(id))).map(|decoded| {
        let parts =
            [decoded.id(), decoded.timestamp_ms(), decoded.ticks(), decoded.node(), decoded.sequence()];
        host::store(values, 0, &parts);
        for ((_, value), at) in decoded.fields().zip(5..) {
            values.set_index(at, value);
        }
    }));
}

#[wasm_bindgen]
pub fn compose(layout: &str, time_ms: &str, node: &JsValue, sequence: &str) -> u64 {
    let time = UnixTime::from_ms(Number::parse(time_ms));
    settle(
        Layout::parse(layout).and_then(|layout| layout.compose(time, node_of(node), Number::parse(sequence))),
    )
}

#[wasm_bindgen(js_name = minId)]
pub fn min_id(layout: &str, time_ms: &str) -> u64 {
    bound(layout, time_ms, Layout::min_id)
}

#[wasm_bindgen(js_name = maxId)]
pub fn max_id(layout: &str, time_ms: &str) -> u64 {
    bound(layout, time_ms, Layout::max_id)
}

fn bound(layout: &str, time_ms: &str, of: fn(&Layout, UnixTime) -> Result<u64, Error>) -> u64 {
    settle(Layout::parse(layout).and_then(|layout| of(&layout, UnixTime::from_ms(Number::parse(time_ms)))))
}

#[wasm_bindgen(js_name = formatId)]
pub fn format_id(id: &str, format: &str) -> JsValue {
    let text = Number::parse(id).to_id().and_then(|id| Ok(format.parse::<Format>()?.write(id)));
    settle(text.map(|text| JsValue::from_str(&text)))
}

#[wasm_bindgen(js_name = parseId)]
pub fn parse_id(text: &str, format: &str) -> u64 {
    settle(format.parse::<Format>().and_then(|format| format.read(text)))
}

#[wasm_bindgen(js_name = batchSize)]
pub fn batch_size(n: &str) -> usize {
    settle(polyflake::batch_size(Number::parse(n)))
}

/// A whole node, or each node field's name followed by its value.
pub(crate) fn node_of(node: &JsValue) -> Node {
    match node.as_string() {
        Some(whole) => Node::parse(&whole),
        None => pairs(node.unchecked_ref())
            .fold(Node::NO_FIELDS, |node, (name, value)| node.with_field(&name, Number::parse(&value))),
    }
}

/// Texts, two by two.
pub(crate) fn pairs(texts: &Array) -> impl Iterator<Item = (String, String)> {
    (0..texts.length())
        .step_by(2)
        .filter_map(|at| Some((texts.get(at).as_string()?, texts.get(at + 1).as_string()?)))
}

pub(crate) fn text_of(layout: &Layout) -> JsValue {
    host::text(&mut |out| layout.write_text(out))
}

fn parts(layout: &Layout) -> JsValue {
    let parts = host::layout(
        &text_of(layout),
        layout.epoch_ms(),
        layout.tick_ms(),
        layout.ends_at_ms(),
        host::number(layout.ids_per_tick()),
        host::number(layout.nodes()),
        layout.total_bits(),
        layout.node_bits(),
    );
    for field in layout.fields() {
        host::add_field(&parts, field.name(), field.bits(), field.shift(), field.mask());
    }
    parts
}
