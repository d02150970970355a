//! Layouts, IDs, and their text forms. A layout crosses the boundary as a layout string.

use napi::bindgen_prelude::*;
use napi_derive::napi;
use polyflake::{Format, Layout, Node, Number, PRESETS, UnixTime};

use crate::errors::{CoreError, number, run};

/// A node as text: one number for all node bits, or each node field's name followed by its value.
pub(crate) type NodeTexts = Either<String, Vec<String>>;

#[napi(object, object_from_js = false)]
pub(crate) struct LayoutParts {
    pub text: String,
    pub epoch_ms: u64,
    pub tick_ms: u64,
    pub ends_at_ms: u64,
    pub ids_per_tick: f64,
    pub nodes: f64,
    pub total_bits: u32,
    pub node_bits: u32,
    pub fields: Vec<FieldParts>,
}

#[napi(object, object_from_js = false)]
pub(crate) struct FieldParts {
    pub name: String,
    pub bits: u32,
    pub shift: u32,
    pub mask: u64,
}

#[napi]
pub(crate) fn presets() -> Vec<&'static str> {
    PRESETS.iter().map(|preset| preset.name).collect()
}

#[napi]
pub(crate) fn layout(env: &Env, core_error: CoreError<'_>, text: String) -> Result<LayoutParts> {
    run(env, &core_error, || Layout::parse(&text).map(|layout| parts(&layout)))
}

#[napi]
pub(crate) fn layout_of(
    env: &Env,
    core_error: CoreError<'_>,
    fields: Vec<String>,
    epoch_ms: String,
    tick_ms: String,
) -> Result<LayoutParts> {
    run(env, &core_error, || {
        let fields = pairs(&fields).map(|(name, bits)| (name, Number::parse(bits)));
        let layout = Layout::from_fields(fields, Number::parse(&epoch_ms), Number::parse(&tick_ms))?;
        Ok(parts(&layout))
    })
}

/// Parses an ID of this layout.
#[napi]
pub(crate) fn id_of(env: &Env, core_error: CoreError<'_>, layout: String, id: String) -> Result<u64> {
    run(env, &core_error, || Ok(Layout::parse(&layout)?.decode(Number::parse(&id))?.id()))
}

/// The number of IDs decoded at a time. They are copied first, because another thread may write to shared memory while
/// they are decoded.
const CHUNK: usize = 1024;

/// Decodes every ID, and writes the values of `column` (see `Backend` in `bindings-wasm/js/backend.ts`) into `wide` or
/// `narrow`. The other array may be empty.
#[napi]
#[allow(clippy::too_many_arguments, reason = "napi's two, and an array for each width")]
pub(crate) fn decode_all(
    env: &Env,
    core_error: CoreError<'_>,
    layout: String,
    ids: BigUint64ArraySlice<'_>,
    column: String,
    field: String,
    mut wide: BigUint64ArraySlice<'_>,
    mut narrow: Uint32ArraySlice<'_>,
) -> Result<()> {
    // SAFETY: `js/layout.ts` has just created these arrays, and no JavaScript runs while they are in use.
    let (wide, narrow) = unsafe { (wide.as_mut(), narrow.as_mut()) };
    let (first, length) = (ids.as_ptr(), ids.len());
    run(env, &core_error, || {
        let layout = Layout::parse(&layout)?;
        let mut chunk = [0; CHUNK];
        for at in (0..length).step_by(CHUNK) {
            let chunk = &mut chunk[..CHUNK.min(length - at)];
            // SAFETY: the array has `length` words, and does not overlap `chunk`.
            unsafe { chunk.as_mut_ptr().copy_from_nonoverlapping(first.add(at), chunk.len()) };
            let decoded = layout.decode_all(chunk)?;
            let wide = wide.get_mut(at..).unwrap_or_default();
            let narrow = narrow.get_mut(at..).unwrap_or_default();
            match column.as_str() {
                "timestampsMs" => put(wide, decoded.timestamps_ms()),
                "ticks" => put(wide, decoded.ticks()),
                "nodes" => put(narrow, decoded.nodes().map(narrowed)),
                "sequences" => put(narrow, decoded.sequences().map(narrowed)),
                _ => {
                    if let Some(values) = decoded.field(&field) {
                        put(narrow, values.map(narrowed));
                    }
                }
            }
        }
        Ok(())
    })
}

fn put<T>(places: &mut [T], values: impl Iterator<Item = T>) {
    places.iter_mut().zip(values).for_each(|(place, value)| *place = value);
}

#[expect(clippy::cast_possible_truncation, reason = "nodes and sequences have at most 32 bits")]
fn narrowed(value: u64) -> u32 {
    value as u32
}

#[napi]
pub(crate) fn compose(
    env: &Env,
    core_error: CoreError<'_>,
    layout: String,
    time_ms: String,
    node: NodeTexts,
    sequence: String,
) -> Result<u64> {
    run(env, &core_error, || {
        let time = UnixTime::from_ms(Number::parse(&time_ms));
        Layout::parse(&layout)?.compose(time, node_of(&node), Number::parse(&sequence))
    })
}

#[napi]
pub(crate) fn min_id(env: &Env, core_error: CoreError<'_>, layout: String, time_ms: String) -> Result<u64> {
    run(env, &core_error, || Layout::parse(&layout)?.min_id(UnixTime::from_ms(Number::parse(&time_ms))))
}

#[napi]
pub(crate) fn max_id(env: &Env, core_error: CoreError<'_>, layout: String, time_ms: String) -> Result<u64> {
    run(env, &core_error, || Layout::parse(&layout)?.max_id(UnixTime::from_ms(Number::parse(&time_ms))))
}

/// Returns the names of the formats. Everywhere else, a format is passed as its position in this list.
#[napi]
pub(crate) fn formats() -> Vec<&'static str> {
    Format::ALL.map(Format::name).to_vec()
}

#[napi]
pub(crate) fn format_id(env: &Env, core_error: CoreError<'_>, id: String, format: String) -> Result<String> {
    run(env, &core_error, || {
        let id = Number::parse(&id).to_id()?;
        Ok(format.parse::<Format>()?.write(id).to_string())
    })
}

#[napi]
pub(crate) fn parse_id(env: &Env, core_error: CoreError<'_>, text: String, format: String) -> Result<u64> {
    run(env, &core_error, || format.parse::<Format>()?.read(&text))
}

/// Groups strings into pairs.
pub(crate) fn pairs(texts: &[String]) -> impl Iterator<Item = (&str, &str)> {
    texts.chunks_exact(2).map(|pair| (pair[0].as_str(), pair[1].as_str()))
}

pub(crate) fn node_of(node: &NodeTexts) -> Node {
    match node {
        Either::A(whole) => Node::parse(whole),
        Either::B(fields) => pairs(fields)
            .fold(Node::NO_FIELDS, |node, (name, value)| node.with_field(name, Number::parse(value))),
    }
}

fn parts(layout: &Layout) -> LayoutParts {
    let field = |field: &polyflake::Field| FieldParts {
        name: field.name().to_owned(),
        bits: field.bits(),
        shift: field.shift(),
        mask: field.mask(),
    };
    LayoutParts {
        text: layout.to_string(),
        epoch_ms: layout.epoch_ms(),
        tick_ms: layout.tick_ms(),
        ends_at_ms: layout.ends_at_ms(),
        ids_per_tick: number(layout.ids_per_tick()),
        nodes: number(layout.nodes()),
        total_bits: layout.total_bits(),
        node_bits: layout.node_bits(),
        fields: layout.fields().iter().map(field).collect(),
    }
}
