//! `polyflake layouts` and `polyflake layout`: show the properties of layouts.

use std::fmt::Write as _;

use clap::Args;
use polyflake::{Field, Layout, PRESETS, Warning};
use serde::Serialize;

use crate::failure::Failure;
use crate::output;
use crate::picture::{self, BOLD, DIM, WARN};
use crate::when::{self, Zone, ZoneArg};
use crate::words;

/// List the presets: layouts that are in use elsewhere
#[derive(Debug, Args)]
pub(crate) struct Layouts {
    /// Print JSON, one line per preset
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    zone: ZoneArg,
}

/// Show how long a layout lasts, how many nodes and IDs it has, and what is special about it
#[derive(Debug, Args)]
pub(crate) struct One {
    /// The name of a preset, or a layout string such as `timestamp:41|worker:10|sequence:12@1288834974657/1ms`
    layout: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    zone: ZoneArg,
}

impl Layouts {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let now_ms = when::now_ms();
        let zone = self.zone.zone()?;
        if self.json {
            return PRESETS
                .iter()
                .try_for_each(|preset| output::json(&Json::of(&preset.layout, now_ms, &zone)));
        }
        let mut text = format!(
            "{BOLD}{:14}  {:>4}  {:10}  {:>9}  {:>13}  {}{BOLD:#}\n",
            "preset", "bits", "ends", "nodes", "IDs/s a node", "fields"
        );
        for preset in &PRESETS {
            let layout = &preset.layout;
            let ends = zone.shown(layout.ends_at_ms());
            let is_soon = layout
                .warnings(now_ms)
                .any(|it| matches!(it, Warning::Ended | Warning::EndsSoon | Warning::NotBegun));
            let style = if is_soon { WARN } else { anstyle::Style::new() };
            let _ = writeln!(
                text,
                "{:14}  {:>4}  {style}{:10}{style:#}  {:>9}  {:>13}  {DIM}{}{DIM:#}",
                preset.name,
                layout.total_bits(),
                day_of(&ends),
                words::count(layout.nodes()),
                words::count(layout.ids_per_second()),
                fields_of(layout),
            );
        }
        output::print(&text)
    }
}

/// `2080-07-10` for `2080-07-10T17:30:30.208Z`. A time after the year 9999 has no such form, so it is `after
/// 9999`.
fn day_of(time: &str) -> &str {
    time.split_once('T').map_or("after 9999", |(day, _)| day)
}

fn fields_of(layout: &Layout) -> String {
    let fields: Vec<_> =
        layout.fields().iter().map(|field| format!("{}:{}", field.name(), field.bits())).collect();
    fields.join(" ")
}

#[derive(Serialize)]
struct Json {
    name: Option<&'static str>,
    layout: String,
    bits: u32,
    epoch_ms: u64,
    epoch: Option<String>,
    tick_ms: u64,
    ends_at_ms: u64,
    ends_at: Option<String>,
    nodes: u64,
    ids_per_tick: u64,
    ids_per_second: u64,
    fields: Vec<JsonField>,
    warnings: Vec<&'static str>,
}

#[derive(Serialize)]
struct JsonField {
    name: String,
    bits: u32,
    shift: u32,
}

impl Json {
    fn of(layout: &Layout, now_ms: u64, zone: &Zone) -> Self {
        let field = |field: &Field| JsonField {
            name: field.name().to_owned(),
            bits: field.bits(),
            shift: field.shift(),
        };
        Self {
            name: PRESETS.iter().find(|preset| preset.layout == *layout).map(|preset| preset.name),
            layout: layout.to_string(),
            bits: layout.total_bits(),
            epoch_ms: layout.epoch_ms(),
            epoch: zone.text(layout.epoch_ms()),
            tick_ms: layout.tick_ms(),
            ends_at_ms: layout.ends_at_ms(),
            ends_at: zone.text(layout.ends_at_ms()),
            nodes: layout.nodes(),
            ids_per_tick: layout.ids_per_tick(),
            ids_per_second: layout.ids_per_second(),
            fields: layout.fields().iter().map(field).collect(),
            warnings: layout.warnings(now_ms).map(Warning::name).collect(),
        }
    }
}

impl One {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let layout = super::layout_of(&self.layout)?;
        let now_ms = when::now_ms();
        let zone = self.zone.zone()?;
        if self.json {
            return output::json(&Json::of(&layout, now_ms, &zone));
        }
        let epoch_ms = layout.epoch_ms();
        let ends_at_ms = layout.ends_at_ms();
        let mut text = format!("{BOLD}{}{BOLD:#}\n", picture::name_of(&layout));
        let mut fact = |name: &str, value: String, note: String| {
            let _ = write!(text, "  {DIM}{name:13}{DIM:#} {value}");
            let _ = if note.is_empty() { writeln!(text) } else { writeln!(text, "  {DIM}{note}{DIM:#}") };
        };
        fact("text", layout.to_string(), String::new());
        fact("lasts", words::duration(layout.lasts_ms()), format!("from {}", zone.shown(epoch_ms)));
        fact("ends", zone.shown(ends_at_ms), words::from_now(ends_at_ms, now_ms));
        fact("nodes", words::count(layout.nodes()), nodes_of(&layout));
        fact(
            "IDs a second",
            words::count(layout.ids_per_second()),
            format!(
                "of one node: {} in each tick of {} ms",
                words::count(layout.ids_per_tick()),
                layout.tick_ms()
            ),
        );
        fact("bits", layout.total_bits().to_string(), "of 64".into());
        text.push('\n');
        text.push_str(&picture::table(&layout));
        let mut warnings = layout.warnings(now_ms).peekable();
        if warnings.peek().is_some() {
            text.push('\n');
        }
        for warning in warnings {
            let _ = writeln!(text, "  {WARN}{}{WARN:#}: {}", warning.name(), warning.message());
        }
        output::print(&text)
    }
}

fn nodes_of(layout: &Layout) -> String {
    let fields: Vec<_> = layout
        .node_fields()
        .map(|field| format!("{} 0 to {}", field.name(), words::count(field.max())))
        .collect();
    if fields.is_empty() { "no node field".into() } else { fields.join(", ") }
}
