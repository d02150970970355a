//! The parts of an ID as one line of text.

use std::io::Write as _;

use polyflake::Decoded;

use crate::when;

/// Adds lines to a text, fast for IDs that follow each other.
#[derive(Default)]
pub(crate) struct Printer {
    number: itoa::Buffer,
    second: Second,
}

/// The second that was printed last, and its text: IDs that follow each other share it.
#[derive(Default)]
struct Second {
    /// One later than it, or 0.
    after: u64,
    text: Vec<u8>,
}

impl Printer {
    /// `1541815603606036480 2022-06-28T16:07:40.105Z datacenter=11 worker=26 sequence=0`
    pub(crate) fn plain(&mut self, decoded: &Decoded, line: &mut Vec<u8>) {
        self.push(decoded.id(), line);
        line.push(b' ');
        if !self.second.push(decoded.timestamp_ms(), line) {
            self.push(decoded.timestamp_ms(), line);
        }
        for (name, value) in decoded.fields() {
            let _ = write!(line, " {name}=");
            self.push(value, line);
        }
        line.extend_from_slice(b" sequence=");
        self.push(decoded.sequence(), line);
        line.push(b'\n');
    }

    /// An object of JSON. Names of fields need no escapes.
    pub(crate) fn json(&mut self, decoded: &Decoded, line: &mut Vec<u8>) {
        line.extend_from_slice(b"{\"id\":\"");
        self.push(decoded.id(), line);
        line.extend_from_slice(b"\",\"time\":\"");
        if self.second.push(decoded.timestamp_ms(), line) {
            line.push(b'"');
        } else {
            line.pop();
            line.extend_from_slice(b"null");
        }
        line.extend_from_slice(b",\"timestamp_ms\":");
        self.push(decoded.timestamp_ms(), line);
        line.extend_from_slice(b",\"ticks\":");
        self.push(decoded.ticks(), line);
        line.extend_from_slice(b",\"node\":");
        self.push(decoded.node(), line);
        line.extend_from_slice(b",\"fields\":{");
        for (n, (name, value)) in decoded.fields().enumerate() {
            let _ = write!(line, "{}\"{name}\":", if n == 0 { "" } else { "," });
            self.push(value, line);
        }
        line.extend_from_slice(b"},\"sequence\":");
        self.push(decoded.sequence(), line);
        line.extend_from_slice(b"}\n");
    }

    #[inline]
    fn push(&mut self, number: u64, line: &mut Vec<u8>) {
        line.extend_from_slice(self.number.format(number).as_bytes());
    }
}

impl Second {
    /// `2022-06-28T16:07:40.105Z`; nothing, and `false`, after the year 9999.
    fn push(&mut self, unix_ms: u64, line: &mut Vec<u8>) -> bool {
        let (second, ms) = (unix_ms / 1000, unix_ms % 1000);
        if self.after != second + 1 {
            self.after = 0;
            self.text.clear();
            if !when::push_utc(&mut self.text, second * 1000) {
                return false;
            }
            // Without `000Z`.
            self.text.truncate(self.text.len().saturating_sub(4));
            self.after = second + 1;
        }
        line.extend_from_slice(&self.text);
        let digit = |of: u64| b'0' + u8::try_from(of % 10).unwrap_or(0);
        line.extend_from_slice(&[digit(ms / 100), digit(ms / 10), digit(ms), b'Z']);
        true
    }
}
