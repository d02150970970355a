//! `polyflake decode`: decodes IDs: a few, or a whole file.

mod lines;
mod rounded;

use std::path::PathBuf;

use clap::Args;
use polyflake::{Format, Layout};

use super::{LayoutArg, TextArg};
use crate::failure::Failure;
use crate::output::{self, Lines};
use crate::picture;
use crate::reading::{bare, read_id};
use crate::source::{Sink as _, Source, delimiter};
use crate::when::{self, Zone, ZoneArg};
use lines::Writer;

/// Decode IDs: show their time, node and sequence
#[derive(Debug, Args)]
#[command(after_help = "\
IDs that are given are drawn, bit by bit. Without any, or with `-`, they are read from standard input, one a line, and a \
line is printed for each: the ID, its time, its node fields and its sequence. Values that are not IDs are reported \
on standard error, decoding continues, and the exit code is 15. In JSON, IDs are texts, since JavaScript rounds them; a \
warning is printed if the input IDs look rounded.

A first line of CSV whose column is an ID is data, where --column is a number. It has names, and is passed over, where the \
column's text has no digits and is not an ID; anything else is reported as an error. With a name in --column the first line \
has names; with --no-header it is data.

  polyflake decode 1541815603606036480
  polyflake decode --layout discord --json < ids.txt
  polyflake decode --column id --input orders.csv
  psql -At -F, -c 'SELECT id, total FROM orders' | polyflake decode --column 1
  polyflake decode --key user.id < events.jsonl")]
pub(crate) struct Decode {
    /// The IDs
    #[arg(value_name = "ID", allow_negative_numbers = true)]
    ids: Vec<String>,
    #[command(flatten)]
    layout: LayoutArg,
    #[command(flatten)]
    text: TextArg,
    #[command(flatten)]
    zone: ZoneArg,
    /// Print JSON, one line per ID
    #[arg(long, conflicts_with = "lines")]
    json: bool,
    /// Print one line per ID, even for IDs given as arguments
    #[arg(long)]
    lines: bool,
    /// Read IDs from a file instead of standard input
    #[arg(long, short, value_name = "FILE", conflicts_with = "ids")]
    input: Option<PathBuf>,
    /// Read IDs from a CSV column: its name in the first line, or its number from 1. A number is never a name
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["ids", "key"])]
    column: Option<String>,
    /// Treat the first line of the CSV as data, whatever it contains
    #[arg(long, requires = "column")]
    no_header: bool,
    /// The character between CSV columns
    #[arg(long, value_name = "CHARACTER", default_value = ",", requires = "column")]
    delimiter: String,
    /// Read IDs from a key of JSON lines: a name, or names joined by dots
    #[arg(long, value_name = "KEY", conflicts_with = "ids")]
    key: Option<String>,
}

impl Decode {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let layout = self.layout.layout()?;
        let format = self.text.format()?;
        let zone = self.zone.zone()?;
        if self.ids.is_empty() || self.ids == ["-"] {
            return self.stream(&layout, format, zone);
        }
        if self.json || self.lines {
            let mut writer = Writer::new(Lines::new(), &layout, format, self.json, zone);
            for (n, id) in (1..).zip(&self.ids) {
                writer.write(bare(id), "ID", n)?;
            }
            return writer.end();
        }
        let now_ms = when::now_ms();
        for (n, id) in self.ids.iter().enumerate() {
            let decoded = layout.decode(read_id(bare(id), format)?)?;
            let space = if n == 0 { "" } else { "\n" };
            output::print(&format!("{space}{}", picture::of(&decoded, now_ms, &zone)))?;
        }
        Ok(())
    }

    fn stream(&self, layout: &Layout, format: Format, zone: Zone) -> Result<(), Failure> {
        let mut writer = Writer::new(Lines::new(), layout, format, self.json, zone);
        let source = Source::open(self.input.as_deref())?;
        let read = if let Some(column) = &self.column {
            source.csv(column, !self.no_header, delimiter(&self.delimiter)?, &mut writer)
        } else if let Some(key) = &self.key {
            source.json(key, &mut writer)
        } else {
            source.lines(&mut writer)
        };
        // Print everything before the error first.
        if read.is_err() {
            writer.flush()?;
            return read;
        }
        writer.end()
    }
}
