//! A line for each ID.

use polyflake::{Decoded, Error, ErrorCode, Format, Layout};

use super::rounded::Rounded;
use crate::failure::{Failure, complain, message_of};
use crate::output::Lines;
use crate::parts::Printer;
use crate::reading::read_id;
use crate::when::Zone;

/// How many texts that are no IDs are named: a file of something else would fill the screen.
const MOST_NAMED: u64 = 10;

/// Writes IDs that come as texts, and counts what is none.
pub(super) struct Writer<'a> {
    lines: Lines,
    layout: &'a Layout,
    format: Format,
    is_json: bool,
    refused: u64,
    rounded: Rounded,
    printer: Printer,
}

impl<'a> Writer<'a> {
    pub(super) fn new(lines: Lines, layout: &'a Layout, format: Format, is_json: bool, zone: Zone) -> Self {
        let (rounded, printer) = (Rounded::default(), Printer::new(zone));
        Self { lines, layout, format, is_json, refused: 0, rounded, printer }
    }

    pub(super) const fn format(&self) -> Format {
        self.format
    }

    fn decode(&self, text: &str) -> Result<Decoded, Error> {
        read_id(text, self.format).and_then(|id| self.layout.decode(id))
    }

    /// Why a text is not an ID.
    pub(super) fn complaint(&self, text: &str) -> Option<String> {
        self.decode(text).err().map(|error| message_of(&error))
    }

    /// The ID that a text is, or its complaint, with where it is: `line 7`.
    pub(super) fn write(&mut self, text: &str, place: &str, number: u64) -> Result<(), Failure> {
        let decoded = match self.decode(text) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.refuse(place, number, &message_of(&error));
                return Ok(());
            }
        };
        self.rounded.see(&decoded);
        if self.is_json {
            self.printer.json(&decoded, self.lines.line());
        } else {
            self.printer.plain(&decoded, self.lines.line());
        }
        self.lines.done()
    }

    /// One that is no ID.
    pub(super) fn refuse(&mut self, place: &str, number: u64, why: &str) {
        self.refused += 1;
        if self.refused <= MOST_NAMED {
            complain(ErrorCode::InvalidId.name(), &format!("{place} {number}: {why}"));
        }
    }

    /// Writes what is there.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        self.lines.flush()
    }

    /// Writes what is left. It failed where anything was no ID.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        self.lines.flush()?;
        if self.refused > MOST_NAMED {
            complain(ErrorCode::InvalidId.name(), &format!("{} more", self.refused - MOST_NAMED));
        }
        if let Some(warning) = self.rounded.warning() {
            complain("rounded", &warning);
        }
        if self.refused > 0 { Err(Failure::Said(ErrorCode::InvalidId)) } else { Ok(()) }
    }
}
