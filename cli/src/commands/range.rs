//! `polyflake range`: prints the IDs that bound a time span, for queries.

use clap::Args;
use polyflake::{Decoded, Layout};
use serde::Serialize;

use super::LayoutArg;
use crate::failure::Failure;
use crate::output;
use crate::picture::{BOLD, DIM};
use crate::reading::shown;
use crate::when::{self, End, Zone, ZoneArg};

/// Print the first and the last ID of a time span, and the SQL that selects it
#[derive(Debug, Args)]
#[command(after_help = "\
Times: 2026-01-31 (a whole day: --from its first instant, --to its last), 2026-01-31T12:30:00Z, `2026-01-31 12:30`, today, \
yesterday, tomorrow, now, `2 hours ago`, `in 3 days`, 1767225600000 (Unix ms), @1767225600 (Unix seconds). Those without a \
zone are in UTC, or in that of --tz.")]
pub(crate) struct Range {
    #[command(flatten)]
    layout: LayoutArg,
    /// When the time span begins
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: String,
    /// When it ends; the span includes this instant
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "now")]
    to: String,
    #[command(flatten)]
    zone: ZoneArg,
    /// The column for the SQL
    #[arg(long, value_name = "NAME", default_value = "id")]
    column: String,
    /// Print only the SQL
    #[arg(long, conflicts_with = "json")]
    sql: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Json<'a> {
    layout: String,
    first: Edge,
    last: Edge,
    sql: &'a str,
}

#[derive(Serialize)]
struct Edge {
    id: String,
    timestamp_ms: u64,
    time: Option<String>,
}

impl Edge {
    fn of(decoded: &Decoded, zone: &Zone) -> Self {
        let timestamp_ms = decoded.timestamp_ms();
        Self { id: decoded.id().to_string(), timestamp_ms, time: zone.text(timestamp_ms) }
    }
}

impl Range {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let layout: Layout = self.layout.layout()?;
        let zone = self.zone.zone()?;
        let first = layout.min_id(when::parse("from", &self.from, End::First, &zone)?)?;
        let last = layout.max_id(when::parse("to", &self.to, End::Last, &zone)?)?;
        if first > last {
            return Err(Failure::option(
                "from is after to, or no tick begins between them: there are no such IDs",
            ));
        }
        let sql = format!("{} BETWEEN {first} AND {last}", self.column);
        let (first, last) = (layout.decode(first)?, layout.decode(last)?);
        if self.json {
            let layout = layout.to_string();
            return output::json(&Json {
                layout,
                first: Edge::of(&first, &zone),
                last: Edge::of(&last, &zone),
                sql: &sql,
            });
        }
        if self.sql {
            return output::print(&format!("{}\n", shown(&sql)));
        }
        let sql = shown(&sql);
        let line = |name: &str, end: &Decoded| {
            let time = zone.shown(end.timestamp_ms());
            format!("{DIM}{name:5}{DIM:#}  {BOLD}{:<20}{BOLD:#}  {DIM}{time}{DIM:#}\n", end.id())
        };
        output::print(&format!("{}{}{DIM}sql  {DIM:#}  {sql}\n", line("first", &first), line("last", &last)))
    }
}
