//! Prints the facts that a program needs to read IDs without the core, as JSON: the presets, the text formats and the
//! errors' numbers. `bindings-node/build.sh` builds the entry point `polyflake/decode` from this output.

use std::collections::BTreeMap;

use polyflake::{ErrorCode, Format, Layout, PRESETS};
use serde_json::{Value, json};

fn main() {
    let presets: Vec<_> = PRESETS.iter().map(|preset| layout(preset.name, &preset.layout)).collect();
    let formats: Vec<_> = Format::ALL.into_iter().map(format).collect();
    let errors: BTreeMap<_, _> = ErrorCode::ALL.iter().map(|code| (code.name(), code.number())).collect();
    println!("{:#}", json!({ "presets": presets, "formats": formats, "errors": errors }));
}

/// `fields`: pairs, from the highest bit down to bit 0.
fn layout(name: &str, layout: &Layout) -> Value {
    let fields: Vec<_> = layout.fields().iter().map(|field| (field.name(), field.bits())).collect();
    let (epoch_ms, tick_ms) = (layout.epoch_ms(), layout.tick_ms());
    json!({ "name": name, "text": layout.to_string(), "fields": fields, "epochMs": epoch_ms, "tickMs": tick_ms })
}

/// `digits`: the digits allowed at each position. `same`: characters, and the digit that each is read as.
fn format(format: Format) -> Value {
    let digits: Vec<_> = (0..format.max_len()).map(|place| format.digits_at(place)).collect();
    let same: BTreeMap<_, _> = ('0'..='z')
        .map(|character| (character, format.plain(character)))
        .filter(|(character, plain)| character != plain && format.alphabet().contains(*plain))
        .collect();
    json!({ "name": format.name(), "digits": digits, "sorts": format.sorts(), "same": same })
}
