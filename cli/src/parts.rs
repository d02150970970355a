//! The parts of an ID as one line of text.

use std::io::Write as _;

use polyflake::Decoded;

use crate::when::{Times, Zone};

/// Appends lines to a buffer, quickly if consecutive IDs are close in time.
#[derive(Default)]
pub(crate) struct Printer {
    number: itoa::Buffer,
    times: Times,
}

impl Printer {
    pub(crate) fn new(zone: Zone) -> Self {
        Self { times: Times::new(zone), ..Self::default() }
    }

    /// `1541815603606036480 2022-06-28T16:07:40.105Z datacenter=11 worker=26 sequence=0`
    pub(crate) fn plain(&mut self, decoded: &Decoded, line: &mut Vec<u8>) {
        self.push(decoded.id(), line);
        line.push(b' ');
        if !self.times.push(decoded.timestamp_ms(), line) {
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

    /// A JSON object. Field names need no escapes.
    pub(crate) fn json(&mut self, decoded: &Decoded, line: &mut Vec<u8>) {
        line.extend_from_slice(b"{\"id\":\"");
        self.push(decoded.id(), line);
        line.extend_from_slice(b"\",\"time\":\"");
        if self.times.push(decoded.timestamp_ms(), line) {
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
