//! Draws the bits of an ID, field by field.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Effects, Style};
use polyflake::{Decoded, Field, Layout, PRESETS};

use crate::when::Zone;
use crate::words;

/// Text that is not part of the answer itself.
pub(crate) const DIM: Style = Style::new().effects(Effects::DIMMED);
/// The subject of the output.
pub(crate) const BOLD: Style = Style::new().effects(Effects::BOLD);
/// Text that needs attention.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();

const NODES: [AnsiColor; 4] = [AnsiColor::Green, AnsiColor::Yellow, AnsiColor::Magenta, AnsiColor::Blue];

/// The fields of a layout, each with its colour.
pub(crate) fn fields(layout: &Layout) -> impl Iterator<Item = (&Field, Style)> {
    let mut nodes = NODES.into_iter().cycle();
    layout.fields().iter().map(move |field| {
        let colour = match field.name() {
            "timestamp" => AnsiColor::Cyan,
            "sequence" => AnsiColor::Red,
            _ => nodes.next().unwrap_or(AnsiColor::Green),
        };
        (field, colour.on_default())
    })
}

/// The name of the layout's preset, or the layout string if it is not a preset.
pub(crate) fn name_of(layout: &Layout) -> String {
    let preset = PRESETS.iter().find(|preset| preset.layout == *layout);
    preset.map_or_else(|| layout.to_string(), |preset| preset.name.to_owned())
}

/// The position of a field: `62-22`.
fn place(field: &Field) -> String {
    let (first, last) = (field.shift() + field.bits() - 1, field.shift());
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}

/// The picture of an ID.
pub(crate) fn of(decoded: &Decoded, now_ms: u64, zone: &Zone) -> String {
    let layout = decoded.layout();
    let id = decoded.id();
    let mut text = format!("{BOLD}{id}{BOLD:#} {DIM}as{DIM:#} {}\n\n ", name_of(layout));
    let unused = 64 - layout.total_bits();
    if let Some(width) = usize::try_from(unused).ok().filter(|&width| width > 0) {
        let _ = write!(text, " {DIM}{}{DIM:#}", "0".repeat(width));
    }
    for (field, style) in fields(layout) {
        let width = usize::try_from(field.bits()).unwrap_or(64);
        let _ = write!(text, " {style}{:0width$b}{style:#}", field.value(id));
    }
    text.push_str("\n\n");
    let name_width = names_width(layout);
    for (field, style) in fields(layout) {
        let _ = write!(
            text,
            "  {style}{:name_width$}{style:#}  {DIM}bits {:5}  {:>2}{DIM:#}  {}",
            field.name(),
            place(field),
            field.bits(),
            field.value(id)
        );
        if field.name() == "timestamp" {
            let ms = decoded.timestamp_ms();
            let _ = write!(
                text,
                "  {BOLD}{}{BOLD:#}  {DIM}{}{DIM:#}",
                zone.shown(ms),
                words::from_now(ms, now_ms)
            );
        }
        text.push('\n');
    }
    if layout.node_fields().nth(1).is_some() {
        let _ = writeln!(
            text,
            "  {:name_width$}  {DIM}{:10}  {:>2}{DIM:#}  {}",
            "node",
            "together",
            layout.node_bits(),
            decoded.node()
        );
    }
    text
}

/// The fields of a layout as a table.
pub(crate) fn table(layout: &Layout) -> String {
    let name_width = names_width(layout);
    let mut text = String::new();
    for (field, style) in fields(layout) {
        let _ = writeln!(
            text,
            "  {style}{:name_width$}{style:#}  {DIM}bits {:5}  {:>2}  0 to {}{DIM:#}",
            field.name(),
            place(field),
            field.bits(),
            words::count(field.max())
        );
    }
    text
}

fn names_width(layout: &Layout) -> usize {
    layout.fields().iter().map(|field| field.name().len()).max().unwrap_or(0)
}
