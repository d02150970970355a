//! Writes one line, or one CSV row, for each string.

use std::io;

use polyflake::{Error, Format, PublicIds};

use crate::failure::{Failure, Refusals, message_of};
use crate::output::{self, BLOCK, Lines};
use crate::reading::{can_be_name, is_none, read_id};
use crate::source::Sink;

/// How to convert a string.
#[derive(Debug, Clone, Copy)]
pub(super) enum Turn {
    /// From an ID in this format.
    Encode(Format),
    /// To an ID in this format.
    Decode(Format),
    Rotate,
}

impl Turn {
    /// The kind of string to convert.
    pub(super) const fn what(self) -> &'static str {
        match self {
            Self::Encode(_) => "ID",
            Self::Decode(_) | Self::Rotate => "public ID",
        }
    }
}

/// Writes each converted string, and counts the refused ones.
pub(super) struct Writer {
    ids: PublicIds,
    turn: Turn,
    refusals: Refusals,
    lines: Lines,
    rows: csv::Writer<io::Stdout>,
    row: csv::ByteRecord,
    turned: Vec<u8>,
}

impl Writer {
    pub(super) fn new(ids: PublicIds, turn: Turn, delimiter: u8) -> Self {
        let mut rows = csv::WriterBuilder::new();
        rows.delimiter(delimiter).flexible(true).buffer_capacity(BLOCK);
        Self {
            ids,
            turn,
            refusals: Refusals::default(),
            lines: Lines::new(),
            rows: rows.from_writer(io::stdout()),
            row: csv::ByteRecord::new(),
            turned: Vec::new(),
        }
    }

    /// Appends the converted string to `to`.
    fn turn(&self, text: &str, to: &mut Vec<u8>) -> Result<(), Error> {
        match self.turn {
            Turn::Encode(format) => to.extend(self.ids.encode(read_id(text, format)?).bytes()),
            Turn::Decode(format) => to.extend(format.write(self.ids.decode(text)?).bytes()),
            Turn::Rotate => to.extend(self.ids.encode(self.ids.decode(text)?).bytes()),
        }
        Ok(())
    }

    fn write_record(&mut self, row: &csv::ByteRecord) -> Result<(), Failure> {
        self.rows.write_byte_record(row).map_err(|error| match error.into_kind() {
            csv::ErrorKind::Io(error) => output::failure(&error),
            other => Failure::Io(format!("standard output: {other:?}")),
        })
    }

    /// Writes the rest. Fails if any string could not be converted.
    pub(super) fn end(mut self) -> Result<(), Failure> {
        self.flush()?;
        self.refusals.name_the_rest();
        self.refusals.end()
    }
}

impl Sink for Writer {
    fn write(&mut self, text: &str, place: &str, number: u64) -> Result<(), Failure> {
        let mut line = std::mem::take(&mut self.turned);
        line.clear();
        match self.turn(text, &mut line) {
            Ok(()) => {
                line.push(b'\n');
                self.lines.line().extend_from_slice(&line);
            }
            Err(error) => self.refuse(place, number, &message_of(&error)),
        }
        self.turned = line;
        self.lines.done()
    }

    /// A row without an ID is copied unchanged. A row whose ID is refused is left out, so that no plain ID
    /// ends up among public IDs.
    fn write_row(
        &mut self,
        text: &str,
        line: u64,
        row: &csv::ByteRecord,
        index: usize,
    ) -> Result<(), Failure> {
        if is_none(text) {
            return self.write_record(row);
        }
        let mut turned = std::mem::take(&mut self.turned);
        turned.clear();
        let outcome = self.turn(text, &mut turned);
        let mut changed = std::mem::take(&mut self.row);
        changed.clear();
        for (n, field) in row.iter().enumerate() {
            changed.push_field(if n == index { &turned } else { field });
        }
        let written = match outcome {
            Ok(()) => self.write_record(&changed),
            Err(error) => {
                self.refuse("line", line, &message_of(&error));
                Ok(())
            }
        };
        (self.turned, self.row) = (turned, changed);
        written
    }

    fn write_names(&mut self, row: &csv::ByteRecord) -> Result<(), Failure> {
        self.write_record(row)
    }

    fn refuse(&mut self, place: &str, number: u64, why: &str) {
        self.refusals.refuse(place, number, why);
    }

    fn is_name(&self, text: &str) -> bool {
        can_be_name(text) && self.complaint(text).is_some()
    }

    fn complaint(&self, text: &str) -> Option<String> {
        if is_none(text) {
            return None;
        }
        self.turn(text, &mut Vec::new()).err().map(|error| message_of(&error))
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.lines.flush()?;
        self.rows.flush().map_err(|error| output::failure(&error))
    }
}
