//! Builds layouts from text and from parts, with all checks in one place.

use crate::error::{Error, error};
use crate::layout::{Field, Layout, MAX_FIELDS, MAX_NAME, MAX_NODE_FIELDS, SEQUENCE, TIMESTAMP, find};
use crate::number::{Number, parse_digits};
use crate::word::{Word, at, put};

const MAX_BITS: u32 = 64;
/// The maximum width in bits of the sequence, and of all node fields combined.
const MAX_PART_BITS: u32 = 32;

/// A layout under construction, with its highest field first.
struct Draft {
    fields: [Field; MAX_FIELDS],
    count: usize,
    /// The sum of the widths so far: at most `10 * 64`.
    bits: u32,
}

impl Draft {
    const EMPTY: Self = Self { fields: [Field::NONE; MAX_FIELDS], count: 0, bits: 0 };

    const fn has(&self, name: &[u8]) -> bool {
        find(&self.fields, name).is_some()
    }

    const fn push(mut self, name: &[u8], given: Number) -> Result<Self, Error> {
        if !is_name(name) {
            return Err(error!(
                InvalidLayout,
                "`%` is not a field name: a name is 1 to 24 characters of a-z, 0-9, _ and -, the first a letter",
                Bytes(name)
            ));
        }
        let bits = match given.to_u64() {
            Some(bits @ 1..=64) => narrow(bits),
            _ => {
                return Err(error!(
                    InvalidLayout,
                    "field % has `%` bits; it takes 1 to 64",
                    Bytes(name),
                    Given(given.word())
                ));
            }
        };
        if self.has(name) {
            return Err(error!(InvalidLayout, "duplicate field %", Bytes(name)));
        }
        let mut field = Field { name: [0; MAX_NAME], name_len: narrow(name.len() as u64), bits, shift: 0 };
        let mut index = 0;
        while let Some(byte) = at(name, index) {
            put(&mut field.name, index, byte);
            index += 1;
        }
        let reserved = self.has(TIMESTAMP.as_bytes()) as usize + self.has(SEQUENCE.as_bytes()) as usize;
        if field.is_node() && self.count - reserved == MAX_NODE_FIELDS {
            let max = MAX_NODE_FIELDS as u64;
            return Err(error!(InvalidLayout, "there are more than % node fields", Number(max)));
        }
        put(&mut self.fields, self.count, field);
        self.count += 1;
        self.bits += bits as u32;
        Ok(self)
    }

    const fn finish(mut self, epoch_ms: u64, tick_ms: u64) -> Result<Layout, Error> {
        if !self.has(TIMESTAMP.as_bytes()) {
            return Err(missing(TIMESTAMP));
        }
        if !self.has(SEQUENCE.as_bytes()) {
            return Err(missing(SEQUENCE));
        }
        if self.bits > MAX_BITS {
            return Err(error!(
                InvalidLayout,
                "the fields take % bits, % too many: an ID has 64",
                Number(self.bits as u64),
                Number((self.bits - MAX_BITS) as u64)
            ));
        }
        let mut below = narrow(self.bits as u64);
        let mut index = 0;
        while let Some(mut field) = at(&self.fields, index) {
            if index == self.count {
                break;
            }
            below -= field.bits;
            field.shift = below;
            put(&mut self.fields, index, field);
            index += 1;
        }
        let (Some(timestamp), Some(sequence)) =
            (find(&self.fields, TIMESTAMP.as_bytes()), find(&self.fields, SEQUENCE.as_bytes()))
        else {
            return Err(missing(TIMESTAMP));
        };
        if sequence.shift > timestamp.shift {
            return Err(error!(
                InvalidLayout,
                "the sequence is above the timestamp; IDs would not sort by time"
            ));
        }
        if sequence.bits() > MAX_PART_BITS {
            let bits = sequence.bits() as u64;
            return Err(error!(InvalidLayout, "the sequence has % bits; it takes 1 to 32", Number(bits)));
        }
        let node_bits = self.bits - timestamp.bits() - sequence.bits();
        if node_bits > MAX_PART_BITS {
            return Err(error!(
                InvalidLayout,
                "the node fields have % bits together; they take at most 32",
                Number(node_bits as u64)
            ));
        }
        // The timestamp has at most 63 bits, so the number of ticks fits.
        let end = match (1_u64 << timestamp.bits).checked_mul(tick_ms) {
            Some(span) => span.checked_add(epoch_ms),
            None => None,
        };
        match end {
            Some(end) if end - 1 <= i64::MAX as u64 => Ok(Layout {
                fields: self.fields,
                count: narrow(self.count as u64),
                timestamp,
                sequence,
                epoch_ms,
                tick_ms,
            }),
            _ => Err(error!(
                InvalidLayout,
                "the timestamp reaches past Unix ms 9223372036854775807: take fewer bits, a shorter tick or an \
                 earlier epoch"
            )),
        }
    }
}

impl Layout {
    /// Creates a layout from the names and widths in bits of its fields, highest first, its epoch in Unix ms,
    /// and its tick in ms.
    ///
    /// # Errors
    ///
    /// `invalid_layout`. The message says what is wrong and what would be valid.
    ///
    /// ```
    /// use polyflake::Layout;
    /// let layout = Layout::new(&[("timestamp", 41), ("worker", 10), ("sequence", 12)], 1_288_834_974_657, 1)?;
    /// assert_eq!(layout, Layout::parse("leaf")?);
    /// # Ok::<(), polyflake::Error>(())
    /// ```
    pub const fn new(fields: &[(&str, u32)], epoch_ms: u64, tick_ms: u64) -> Result<Self, Error> {
        let mut draft = Draft::EMPTY;
        let mut fields = fields;
        while let Some(((name, bits), rest)) = fields.split_first() {
            draft = match draft.push(name.as_bytes(), Number::of_u64(*bits as u64)) {
                Ok(draft) => draft,
                Err(error) => return Err(error),
            };
            fields = rest;
        }
        if epoch_ms > i64::MAX as u64 {
            return Err(epoch(Number::of_u64(epoch_ms).word().word()));
        }
        if tick_ms == 0 {
            return Err(tick(Number::of_u64(tick_ms).word().word()));
        }
        draft.finish(epoch_ms, tick_ms)
    }

    /// Like [`Layout::new`], but with numbers as the caller gave them, so that errors can name them.
    ///
    /// # Errors
    ///
    /// `invalid_layout`.
    pub fn from_fields<N: AsRef<str>>(
        fields: impl IntoIterator<Item = (N, Number)>,
        epoch_ms: impl Into<Number>,
        tick_ms: impl Into<Number>,
    ) -> Result<Self, Error> {
        let (given_epoch, given_tick) = (epoch_ms.into(), tick_ms.into());
        let mut draft = Draft::EMPTY;
        for (name, bits) in fields {
            draft = draft.push(name.as_ref().as_bytes(), bits)?;
        }
        let Some(epoch_ms) = given_epoch.to_i64().and_then(|ms| u64::try_from(ms).ok()) else {
            return Err(epoch(given_epoch.word().word()));
        };
        match given_tick.to_u64() {
            None | Some(0) => Err(tick(given_tick.word().word())),
            Some(tick_ms) => draft.finish(epoch_ms, tick_ms),
        }
    }

    pub(crate) const fn parse_text(mut rest: &[u8]) -> Result<Self, Error> {
        let mut draft = Draft::EMPTY;
        loop {
            let (name, stop, after) = split(rest, b":|@/");
            if !matches!(stop, Some(b':')) {
                return Err(expected("FIELD:BITS", rest));
            }
            let (bits, stop, after) = split(after, b"|@");
            draft = match draft.push(name, Number::from_bytes(bits)) {
                Ok(draft) => draft,
                Err(error) => return Err(error),
            };
            rest = after;
            match stop {
                Some(b'|') => {}
                Some(_) => break,
                None => return Err(expected("@EPOCH", rest)),
            }
        }
        let (epoch_text, stop, tick_text) = split(rest, b"/");
        let epoch_ms = match parse_digits(epoch_text) {
            Some(ms) if ms <= i64::MAX as u64 => ms,
            _ => return Err(epoch(Word::new(epoch_text))),
        };
        if stop.is_none() {
            return Err(expected("/TICK", tick_text));
        }
        let tick_ms = match tick_text {
            [number @ .., b'm', b's'] => parse_digits(number),
            [number @ .., b's'] => match parse_digits(number) {
                Some(seconds) => seconds.checked_mul(1000),
                None => None,
            },
            _ => None,
        };
        match tick_ms {
            None | Some(0) => Err(tick(Word::new(tick_text))),
            Some(tick_ms) => draft.finish(epoch_ms, tick_ms),
        }
    }
}

const fn missing(field: &str) -> Error {
    error!(InvalidLayout, "there is no % field; a layout has exactly one", Text(field))
}

const fn epoch(given: Word<'_>) -> Error {
    error!(InvalidLayout, "the epoch is `%`; it takes Unix ms from 0 to 9223372036854775807", Word(given))
}

const fn tick(given: Word<'_>) -> Error {
    error!(
        InvalidLayout,
        "the tick is `%`; it takes a whole number of ms or s from 1, such as 1ms or 10s",
        Word(given)
    )
}

const fn expected(what: &str, found: &[u8]) -> Error {
    error!(
        InvalidLayout,
        "expected %, found `%`; a layout is written FIELD:BITS|FIELD:BITS@EPOCH/TICK, such as \
         timestamp:41|worker:10|sequence:12@1288834974657/1ms",
        Text(what),
        Bytes(found)
    )
}

/// Converts a width, a length or a count of at most 64.
#[expect(clippy::cast_possible_truncation, reason = "callers have checked the range")]
const fn narrow(small: u64) -> u8 {
    small as u8
}

const fn is_name(mut name: &[u8]) -> bool {
    if name.len() > MAX_NAME || !matches!(name.first(), Some(b'a'..=b'z')) {
        return false;
    }
    while let Some((byte, rest)) = name.split_first() {
        if !matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-') {
            return false;
        }
        name = rest;
    }
    true
}

/// Returns the bytes before the first of `stops`, that stop, and the bytes after it.
pub(crate) const fn split<'a>(text: &'a [u8], stops: &[u8]) -> (&'a [u8], Option<u8>, &'a [u8]) {
    let mut length = 0;
    while let Some(byte) = at(text, length) {
        let mut rest_of_stops = stops;
        while let Some((stop, others)) = rest_of_stops.split_first() {
            if byte == *stop {
                let (before, from_stop) = text.split_at(length);
                let (_, after) = from_stop.split_at(1);
                return (before, Some(byte), after);
            }
            rest_of_stops = others;
        }
        length += 1;
    }
    (text, None, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn what_is_wrong_and_what_would_fit() {
        for (text, says) in [
            ("timestamp:37|worker:20|sequence:16@0/1ms", "73 bits, 9 too many"),
            ("timestamp:41|worker:10@0/1ms", "no sequence field"),
            ("worker:10|sequence:12@0/1ms", "no timestamp field"),
            ("timestamp:41|timestamp:2|sequence:12@0/1ms", "duplicate field timestamp"),
            ("sequence:12|timestamp:41@0/1ms", "is above the timestamp"),
            ("timestamp:41|worker:0|sequence:12@0/1ms", "field worker has `0` bits; it takes 1 to 64"),
            ("timestamp:41|Worker:1|sequence:12@0/1ms", "`Worker` is not a field name"),
            ("timestamp:41|sequence:12@0/0ms", "the tick is `0ms`"),
            ("timestamp:41|sequence:12@0", "expected /TICK"),
            ("timestamp:41|sequence:12", "expected @EPOCH"),
            ("timestamp:41|sequence:12|", "expected FIELD:BITS"),
            ("timestamp:41|sequence:12@-1/1ms", "the epoch is `-1`"),
            ("timestamp:63|sequence:1@1/1ms", "reaches past Unix ms 9223372036854775807"),
            ("timestamp:20|sequence:33@0/1ms", "the sequence has 33 bits; it takes 1 to 32"),
            ("timestamp:20|a:17|b:16|sequence:8@0/1ms", "33 bits together"),
        ] {
            let error = Layout::parse(text).unwrap_err().to_string();
            assert!(error.starts_with("invalid_layout: ") && error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn parts_are_checked_like_their_text() {
        let long = "timestamp:41|worker:10|sequence:12@9223372036854775808/1ms";
        let fields = [("timestamp", 41), ("worker", 10), ("sequence", 12)];
        assert_eq!(Layout::new(&fields, 1 << 63, 1), Layout::parse(long));
        assert!(Layout::new(&fields, 0, 0).unwrap_err().to_string().contains("the tick is `0`"));
        assert!(Layout::new(&[("timestamp", 65)], 0, 1).unwrap_err().to_string().contains("`65` bits"));
        let nine: std::vec::Vec<_> = ["a", "b", "c", "d", "e", "f", "g", "h", "i"].map(|n| (n, 1)).into();
        assert!(Layout::new(&nine, 0, 1).unwrap_err().to_string().contains("more than 8 node fields"));
    }
}
