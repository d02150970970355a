//! Layouts, IDs and texts, by the layout's text.

use polyflake::{Error, Format, Layout, Node, Number, PRESETS, UnixTime};
use wasm_bindgen::prelude::*;

use crate::host;

/// `?` for the core's results.
pub(crate) trait OrThrow<T> {
    fn or_throw(self) -> Result<T, JsValue>;
}

impl<T> OrThrow<T> for Result<T, Error> {
    fn or_throw(self) -> Result<T, JsValue> {
        self.map_err(|error| host::error(&error))
    }
}

#[wasm_bindgen]
pub fn presets() -> Vec<String> {
    PRESETS.iter().map(|preset| preset.name.to_owned()).collect()
}

#[wasm_bindgen]
pub fn layout(text: &str) -> Result<JsValue, JsValue> {
    Layout::parse(text).or_throw().map(|layout| parts(&layout))
}

#[wasm_bindgen(js_name = layoutOf)]
pub fn layout_of(fields: Vec<String>, epoch_ms: &str, tick_ms: &str) -> Result<JsValue, JsValue> {
    let fields = pairs(&fields).map(|(name, bits)| (name, Number::parse(bits)));
    let layout = Layout::from_fields(fields, Number::parse(epoch_ms), Number::parse(tick_ms));
    layout.or_throw().map(|layout| parts(&layout))
}

#[wasm_bindgen]
pub fn decode(layout: &str, id: &str) -> Result<JsValue, JsValue> {
    let decoded = Layout::parse(layout).and_then(|layout| layout.decode(Number::parse(id))).or_throw()?;
    let node = host::number(decoded.node());
    let sequence = host::number(decoded.sequence());
    let parts = host::decoded(decoded.id(), decoded.timestamp_ms(), decoded.ticks(), node, sequence);
    for (name, value) in decoded.fields() {
        host::add_value(&parts, name, host::number(value));
    }
    Ok(parts)
}

#[wasm_bindgen]
pub fn compose(
    layout: &str,
    time_ms: &str,
    node: Option<String>,
    node_fields: Vec<String>,
    sequence: &str,
) -> Result<u64, JsValue> {
    let node = node_of(node, &node_fields);
    let layout = Layout::parse(layout).or_throw()?;
    layout.compose(UnixTime::from_ms(Number::parse(time_ms)), node, Number::parse(sequence)).or_throw()
}

#[wasm_bindgen(js_name = minId)]
pub fn min_id(layout: &str, time_ms: &str) -> Result<u64, JsValue> {
    let time = UnixTime::from_ms(Number::parse(time_ms));
    Layout::parse(layout).and_then(|layout| layout.min_id(time)).or_throw()
}

#[wasm_bindgen(js_name = maxId)]
pub fn max_id(layout: &str, time_ms: &str) -> Result<u64, JsValue> {
    let time = UnixTime::from_ms(Number::parse(time_ms));
    Layout::parse(layout).and_then(|layout| layout.max_id(time)).or_throw()
}

#[wasm_bindgen(js_name = formatId)]
pub fn format_id(id: &str, format: Option<String>) -> Result<String, JsValue> {
    let id = Number::parse(id).to_id().or_throw()?;
    Ok(format_of(format.as_deref()).or_throw()?.write(id).to_string())
}

#[wasm_bindgen(js_name = parseId)]
pub fn parse_id(text: &str, format: Option<String>) -> Result<u64, JsValue> {
    format_of(format.as_deref()).and_then(|format| format.read(text)).or_throw()
}

#[wasm_bindgen(js_name = batchSize)]
pub fn batch_size(n: &str) -> Result<u32, JsValue> {
    let n = polyflake::batch_size(Number::parse(n)).or_throw()?;
    Ok(u32::try_from(n).unwrap_or(u32::MAX))
}

fn format_of(format: Option<&str>) -> Result<Format, Error> {
    format.map_or(Ok(Format::Decimal), str::parse)
}

/// Texts that stand in pairs.
pub(crate) fn pairs(texts: &[String]) -> impl Iterator<Item = (&str, &str)> {
    texts.chunks_exact(2).filter_map(|pair| match pair {
        [name, value] => Some((name.as_str(), value.as_str())),
        _ => None,
    })
}

pub(crate) fn node_of(whole: Option<String>, fields: &[String]) -> Node {
    let of_fields = || pairs(fields).fold(Node::NO_FIELDS, |node, (name, value)| node.with_field(name, Number::parse(value)));
    whole.map_or_else(of_fields, |whole| Node::parse(&whole))
}

fn parts(layout: &Layout) -> JsValue {
    let parts = host::layout(
        &layout.to_string(),
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
