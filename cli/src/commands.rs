//! The subcommands, one file each.

mod annotate;
mod completions;
mod counters;
mod decode;
mod inspect;
mod layouts;
mod leases;
mod man;
mod next;
mod public;
mod range;
mod schema;
mod texts;

use clap::{Args, Subcommand};
use polyflake::{ErrorCode, Format, Layout};

use crate::failure::Failure;
use crate::reading::shortened;
use crate::serve::{Registry, Serve};

/// What the command can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Next(next::Next),
    Decode(decode::Decode),
    Annotate(annotate::Annotate),
    Inspect(inspect::Inspect),
    Range(range::Range),
    Layouts(layouts::Layouts),
    Layout(layouts::One),
    Leases(leases::Leases),
    Counters(counters::Counters),
    Schema(schema::Schema),
    Public(public::Public),
    Uuid(texts::Uuid),
    ObjectId(texts::ObjectId),
    Serve(Serve),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    pub(crate) fn run(self, registry: &Registry) -> Result<(), Failure> {
        match self {
            Self::Next(it) => it.run(),
            Self::Decode(it) => it.run(),
            Self::Annotate(it) => it.run(),
            Self::Inspect(it) => it.run(),
            Self::Range(it) => it.run(),
            Self::Layouts(it) => it.run(),
            Self::Layout(it) => it.run(),
            Self::Leases(it) => it.run(),
            Self::Counters(it) => it.run(),
            Self::Schema(it) => it.run(),
            Self::Public(it) => it.run(),
            Self::Uuid(it) => it.run(),
            Self::ObjectId(it) => it.run(),
            Self::Serve(it) => it.run(registry),
            Self::Completions(it) => it.run(),
            Self::Man(it) => it.run(),
        }
    }
}

/// The layout of the IDs.
#[derive(Debug, Args)]
pub(crate) struct LayoutArg {
    /// The layout: the name of a preset (see `polyflake layouts`), or a layout string such as
    /// `timestamp:41|worker:10|sequence:12@1288834974657/1ms` [default: twitter]
    #[arg(long, short, value_name = "LAYOUT", env = "POLYFLAKE_LAYOUT", hide_env_values = true)]
    layout: Option<String>,
}

impl LayoutArg {
    pub(crate) fn layout(&self) -> Result<Layout, Failure> {
        self.layout.as_deref().map_or_else(|| Ok(Layout::default()), layout_of)
    }
}

/// Parses a layout from the name of a preset or from a layout string.
fn layout_of(text: &str) -> Result<Layout, Failure> {
    if text.contains("//") {
        // The core would split the address and show a password in pieces.
        return Err(Failure::new(
            ErrorCode::InvalidLayout,
            format!(
                "`{}` is an address; it takes a preset's name, or a text FIELD:BITS|FIELD:BITS@EPOCH/TICK",
                shortened(text)
            ),
        ));
    }
    Ok(Layout::parse(text)?)
}

/// How IDs are written.
#[derive(Debug, Args)]
pub(crate) struct TextArg {
    #[arg(long, short, value_name = "FORMAT", default_value = Format::default().name(), help = formats())]
    text: String,
}

impl TextArg {
    pub(crate) fn format(&self) -> Result<Format, Failure> {
        Ok(self.text.parse()?)
    }
}

fn formats() -> String {
    format!("How IDs are written: {}", Format::ALL.map(Format::name).join(", "))
}

/// The store.
#[derive(Debug, Args)]
pub(crate) struct StoreArg {
    /// The store's address, such as `redis://host/0`, `postgres://host/shop` or `sqlite:///var/lib/app/leases.db`. If it
    /// contains a password, put it into the environment, where other users do not see it
    #[arg(value_name = "URL", env = "POLYFLAKE_STORE", hide_env_values = true)]
    url: String,
}

impl StoreArg {
    pub(crate) fn open(&self) -> Result<polyflake_coordination::Admin, Failure> {
        Ok(polyflake_coordination::Admin::open(&self.url)?)
    }
}
