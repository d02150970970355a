//! Layouts, IDs, and their text forms. A layout crosses the boundary as a layout string.

use alloc::string::String;
use core::cell::Cell;

use js_sys::{Array, BigUint64Array, Uint32Array};
use polyflake::{Error, Format, Layout, Node, Number, PRESETS, UnixTime};
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::*;

use crate::host::{self, settle};

/// The number of IDs decoded at a time.
const CHUNK: u32 = 512;

#[wasm_bindgen]
pub fn presets() -> Array {
    PRESETS.iter().map(|preset| JsValue::from_str(preset.name)).collect()
}

#[wasm_bindgen]
pub fn layout(text: &str) -> JsValue {
    settle(Layout::parse(text).map(|layout| parts(&layout)))
}

/// Creates a layout. `fields` contains each field's name followed by its width.
#[wasm_bindgen(js_name = layoutOf)]
pub fn layout_of(fields: &Array, epoch_ms: &str, tick_ms: &str) -> JsValue {
    let fields = pairs(fields).map(|(name, bits)| (name, Number::parse(&bits)));
    let layout = Layout::from_fields(fields, Number::parse(epoch_ms), Number::parse(tick_ms));
    settle(layout.map(|layout| parts(&layout)))
}

/// Parses an ID of this layout.
#[wasm_bindgen(js_name = idOf)]
pub fn id_of(layout: &str, id: &str) -> u64 {
    settle(
        Layout::parse(layout).and_then(|layout| layout.decode(Number::parse(id))).map(|decoded| decoded.id()),
    )
}

/// Decodes every ID, and writes the values of `column` (see `js/backend.ts`) into `wide` or `narrow`.
#[wasm_bindgen(js_name = decodeAll)]
pub fn decode_all(
    layout: &str,
    ids: &BigUint64Array,
    column: &str,
    field: &str,
    wide: &BigUint64Array,
    narrow: &Uint32Array,
) {
    settle(Layout::parse(layout).and_then(|layout| {
        const SIZE: usize = CHUNK as usize;
        let (mut chunk, mut wides, mut narrows) = ([0; SIZE], [0; SIZE], [0; SIZE]);
        let length = ids.length();
        let mut at = 0;
        while at < length {
            let end = length.min(at.saturating_add(CHUNK));
            let size = (end - at) as usize;
            let chunk = chunk.get_mut(..size).unwrap_or_default();
            ids.subarray(at, end).copy_to(chunk);
            let decoded = layout.decode_all(chunk)?;
            match column {
                "timestampsMs" => put(&mut wides, decoded.timestamps_ms()),
                "ticks" => put(&mut wides, decoded.ticks()),
                "nodes" => put(&mut narrows, decoded.nodes().map(narrowed)),
                "sequences" => put(&mut narrows, decoded.sequences().map(narrowed)),
                _ => put(&mut narrows, decoded.field(field).into_iter().flatten().map(narrowed)),
            }
            host::store(wide, at, wides.get(..size).unwrap_or_default());
            host::store_narrow(narrow, at, narrows.get(..size).unwrap_or_default());
            at = end;
        }
        Ok(())
    }));
}

#[expect(clippy::cast_possible_truncation, reason = "nodes and sequences have at most 32 bits")]
fn narrowed(value: u64) -> u32 {
    value as u32
}

fn put<T>(places: &mut [T], values: impl Iterator<Item = T>) {
    places.iter_mut().zip(values).for_each(|(place, value)| *place = value);
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

/// Returns the names of the formats. Everywhere else, a format is passed as its position in this list.
#[wasm_bindgen]
pub fn formats() -> Array {
    Format::ALL.iter().map(|format| JsValue::from_str(format.name())).collect()
}

/// The last text that `id_text` wrote.
struct LastText(Cell<[u8; 36]>);

// SAFETY: without the `atomics` feature, a module has one thread.
unsafe impl Sync for LastText {}

static LAST_TEXT: LastText = LastText(Cell::new([0; 36]));

/// Returns the address of the text that `id_text` writes. JavaScript reads the text there, because that is faster than
/// passing a string.
#[wasm_bindgen(js_name = textAddress)]
pub fn text_address() -> *const u8 {
    LAST_TEXT.0.as_ptr().cast()
}

/// Writes an ID as text in the given format, and returns the text's length.
#[wasm_bindgen(js_name = idText)]
pub fn id_text(id: u64, format: usize) -> usize {
    let Some(format) = Format::ALL.get(format) else { return 0 };
    let text = format.write(id);
    let places: &Cell<[u8]> = &LAST_TEXT.0;
    places.as_slice_of_cells().iter().zip(text.bytes()).for_each(|(place, byte)| place.set(byte));
    text.len()
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

/// Converts a node: a number for all node bits, or each node field's name followed by its value.
pub(crate) fn node_of(node: &JsValue) -> Node {
    match node.as_string() {
        Some(whole) => Node::parse(&whole),
        None => pairs(node.unchecked_ref())
            .fold(Node::NO_FIELDS, |node, (name, value)| node.with_field(&name, Number::parse(&value))),
    }
}

/// Groups strings into pairs.
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
