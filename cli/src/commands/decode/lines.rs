//! One line per ID.

use polyflake::{Decoded, Error, Format, Layout};

use super::rounded::Rounded;
use crate::failure::{Failure, Refusals, complain, message_of};
use crate::output::Lines;
use crate::parts::Printer;
use crate::reading::{can_be_name, read_id};
use crate::source::Sink;
use crate::when::Zone;

/// Writes IDs that arrive as strings, and counts the strings that are not IDs.
pub(super) struct Writer<'a> {
    lines: Lines,
    layout: &'a Layout,
    format: Format,
    is_json: bool,
    refusals: Refusals,
    rounded: Rounded,
    printer: Printer,
}

impl<'a> Writer<'a> {
    pub(super) fn new(lines: Lines, layout: &'a Layout, format: Format, is_json: bool, zone: Zone) -> Self {
        let (rounded, printer) = (Rounded::default(), Printer::new(zone));
        Self { lines, layout, format, is_json, refusals: Refusals::default(), rounded, printer }
    }

    fn decode(&self, text: &str) -> Result<Decoded, Error> {
        read_id(text, self.format).and_then(|id| self.layout.decode(id))
    }

    /// Writes the rest. Fails if any string was not an ID.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        self.lines.flush()?;
        self.refusals.name_the_rest();
        if let Some(warning) = self.rounded.warning() {
            complain("rounded", &warning);
        }
        self.refusals.end()
    }
}

impl Sink for Writer<'_> {
    fn write(&mut self, text: &str, place: &str, number: u64) -> Result<(), Failure> {
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

    fn refuse(&mut self, place: &str, number: u64, why: &str) {
        self.refusals.refuse(place, number, why);
    }

    fn is_name(&self, text: &str) -> bool {
        can_be_name(text) && read_id(text, self.format).is_err()
    }

    fn complaint(&self, text: &str) -> Option<String> {
        self.decode(text).err().map(|error| message_of(&error))
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.lines.flush()
    }
}
