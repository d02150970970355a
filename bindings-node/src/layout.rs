//! Layouts, IDs and their texts. A layout is passed as its text.

use napi::bindgen_prelude::*;
use napi_derive::napi;
use polyflake::{Format, Layout, Node, Number, PRESETS, UnixTime};

use crate::errors::{CoreError, number, run};

/// A whole node, or each node field's name followed by its value.
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

/// Writes the parts of an ID into `values`, in the order of `Backend` in `bindings-wasm/js/backend.ts`.
#[napi]
pub(crate) fn decode(
    env: &Env,
    core_error: CoreError<'_>,
    layout: String,
    id: String,
    mut values: BigUint64ArraySlice<'_>,
) -> Result<()> {
    let decoded = run(env, &core_error, || Layout::parse(&layout)?.decode(Number::parse(&id)))?;
    let parts = [decoded.id(), decoded.timestamp_ms(), decoded.ticks(), decoded.node(), decoded.sequence()];
    let all = parts.into_iter().chain(decoded.fields().map(|(_, value)| value));
    // SAFETY: `js/layout.ts` keeps the array to itself, and no JavaScript runs meanwhile.
    unsafe { values.as_mut() }.iter_mut().zip(all).for_each(|(place, value)| *place = value);
    Ok(())
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

/// Texts, two by two.
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
