//! A line for each ID.

use std::io::Write as _;

use polyflake::{Decoded, ErrorCode, Format, Layout};

use crate::failure::{Failure, complain, message_of};
use crate::output::Lines;
use crate::reading::read_id;
use crate::when;

/// How many texts that are no IDs are named: a file of something else would fill the screen.
const MOST_NAMED: u64 = 10;

/// Writes IDs that come as texts, and counts what is none.
pub(super) struct Writer<'a> {
    lines: Lines,
    layout: &'a Layout,
    format: Format,
    is_json: bool,
    refused: u64,
    number: itoa::Buffer,
    /// The second that was printed last, and its text: IDs that follow each other share it.
    second: (u64, Vec<u8>),
}

impl<'a> Writer<'a> {
    pub(super) fn new(lines: Lines, layout: &'a Layout, format: Format, is_json: bool) -> Self {
        let second = (u64::MAX, Vec::new());
        Self { lines, layout, format, is_json, refused: 0, number: itoa::Buffer::new(), second }
    }

    /// The ID that a text is, or its complaint, with where it is: `line 7`.
    pub(super) fn write(&mut self, text: &str, place: &str, number: u64) -> Result<(), Failure> {
        let decoded = read_id(text, self.format).and_then(|id| self.layout.decode(id));
        match decoded {
            Ok(decoded) if self.is_json => self.write_json(&decoded),
            Ok(decoded) => self.write_plain(&decoded),
            Err(error) => {
                self.refuse(place, number, &message_of(&error));
                return Ok(());
            }
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
        if self.refused > 0 { Err(Failure::Said(ErrorCode::InvalidId)) } else { Ok(()) }
    }

    fn write_plain(&mut self, decoded: &Decoded) {
        self.number(decoded.id());
        self.push(b" ");
        if !self.time(decoded.timestamp_ms()) {
            self.number(decoded.timestamp_ms());
        }
        for (name, value) in decoded.fields() {
            self.push(b" ");
            self.push(name.as_bytes());
            self.push(b"=");
            self.number(value);
        }
        self.push(b" sequence=");
        self.number(decoded.sequence());
        self.push(b"\n");
    }

    /// Names of fields need no escapes.
    fn write_json(&mut self, decoded: &Decoded) {
        self.push(b"{\"id\":\"");
        self.number(decoded.id());
        self.push(b"\",\"time\":");
        let start = self.lines.line().len();
        self.push(b"\"");
        if self.time(decoded.timestamp_ms()) {
            self.push(b"\"");
        } else {
            self.lines.line().truncate(start);
            self.push(b"null");
        }
        self.push(b",\"timestamp_ms\":");
        self.number(decoded.timestamp_ms());
        self.push(b",\"ticks\":");
        self.number(decoded.ticks());
        self.push(b",\"node\":");
        self.number(decoded.node());
        self.push(b",\"fields\":{");
        for (n, (name, value)) in decoded.fields().enumerate() {
            let _ = write!(self.lines.line(), "{}\"{name}\":", if n == 0 { "" } else { "," });
            self.number(value);
        }
        self.push(b"},\"sequence\":");
        self.number(decoded.sequence());
        self.push(b"}\n");
    }

    #[inline]
    fn push(&mut self, text: &[u8]) {
        self.lines.line().extend_from_slice(text);
    }

    #[inline]
    fn number(&mut self, number: u64) {
        self.lines.line().extend_from_slice(self.number.format(number).as_bytes());
    }

    /// Whether there is such a text.
    fn time(&mut self, unix_ms: u64) -> bool {
        let (second, ms) = (unix_ms / 1000, unix_ms % 1000);
        if self.second.0 != second {
            self.second.0 = u64::MAX;
            self.second.1.clear();
            if !when::push_utc(&mut self.second.1, second * 1000) {
                return false;
            }
            // Without `000Z`.
            let length = self.second.1.len().saturating_sub(4);
            self.second.1.truncate(length);
            self.second.0 = second;
        }
        let line = self.lines.line();
        line.extend_from_slice(&self.second.1);
        let digit = |of: u64| b'0' + u8::try_from(of % 10).unwrap_or(0);
        line.extend_from_slice(&[digit(ms / 100), digit(ms / 10), digit(ms), b'Z']);
        true
    }
}
