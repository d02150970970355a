//! Finds IDs in arbitrary bytes.

use polyflake::Layout;

/// How far back to look for something that digits are part of, such as the colour `\u{1b}[38;2;255;255;255m`.
pub(super) const CONTEXT: usize = 32;
/// The most bytes that may have to wait for more input: the digits of an ID, and two bytes after them.
pub(super) const LONGEST: usize = MOST_DIGITS + 2;
/// The most digits that a 64-bit number can have.
const MOST_DIGITS: usize = 20;

/// Finds the IDs of a layout whose time is in a window.
pub(super) struct Scanner {
    shift: u32,
    bits: u32,
    total_bits: u32,
    /// The first tick, and the one after the last.
    ticks: (u64, u64),
    /// Every ID has at least this many digits.
    fewest_digits: usize,
}

/// A part of an ID.
pub(super) const fn field(id: u64, shift: u32, bits: u32) -> u64 {
    id >> shift & u64::MAX >> (64 - bits)
}

impl Scanner {
    pub(super) fn new(layout: &Layout, ticks: (u64, u64)) -> Self {
        let shift = layout.timestamp_shift();
        let lowest = u128::from(ticks.0) << shift;
        let digits = lowest.checked_ilog10().map_or(1, |log| log as usize + 1);
        Self {
            shift,
            bits: layout.timestamp_bits(),
            total_bits: layout.total_bits(),
            ticks,
            fewest_digits: digits.min(MOST_DIGITS),
        }
    }

    /// Copies the text from a position onward, adding a note after each ID. Returns the position reached: any
    /// text after it cannot be judged without more input.
    pub(super) fn copy(
        &self,
        text: &[u8],
        from: usize,
        is_end: bool,
        to: &mut Vec<u8>,
        mut note: impl FnMut(u64, &mut Vec<u8>),
    ) -> usize {
        let end = if is_end { text.len() } else { waits_from(text).max(from) };
        let mut copied = from;
        // The scan samples the text at this interval: no run with that many digits fits between two samples.
        let mut at = from + self.fewest_digits - 1;
        while let Some(byte) = text.get(at) {
            if !byte.is_ascii_digit() {
                at += self.fewest_digits;
                continue;
            }
            let run = run_at(text, at);
            if run.0 >= end {
                break;
            }
            at = run.1 + self.fewest_digits;
            let Some((id, after)) = self.id(text, run) else { continue };
            to.extend_from_slice(text.get(copied..after).unwrap_or_default());
            note(id, to);
            copied = after;
        }
        to.extend_from_slice(text.get(copied..end).unwrap_or_default());
        end
    }

    /// The ID in a run of digits, and where it ends.
    fn id(&self, text: &[u8], (begin, end): (usize, usize)) -> Option<(u64, usize)> {
        let digits = text.get(begin..end)?;
        if digits.len() < self.fewest_digits || digits.len() > MOST_DIGITS || digits.starts_with(b"0") {
            return None;
        }
        let id = digits
            .iter()
            .try_fold(0_u64, |id, digit| id.checked_mul(10)?.checked_add(u64::from(digit - b'0')))?;
        let ticks = field(id, self.shift, self.bits);
        let fits = self.total_bits == 64 || id >> self.total_bits == 0;
        if !fits || ticks < self.ticks.0 || ticks >= self.ticks.1 || !is_begin(text.get(..begin)?) {
            return None;
        }
        length_after(text.get(end..)?).map(|length| (id, end + length))
    }
}

/// The run of digits around a digit.
fn run_at(text: &[u8], at: usize) -> (usize, usize) {
    let is_other = |byte: &u8| !byte.is_ascii_digit();
    let (before, after) = text.split_at(at);
    let begin = before.iter().rposition(is_other).map_or(0, |other| other + 1);
    let end = after.iter().position(is_other).map_or(text.len(), |length| at + length);
    (begin, end)
}

/// The start of trailing digits that more text might continue or make part of something else; the text's end
/// if there are none.
fn waits_from(text: &[u8]) -> usize {
    let digits_end = match text {
        [.., b'0'..=b'9', b'.' | b'n'] => text.len() - 1,
        _ => text.len(),
    };
    let digits = text.iter().take(digits_end).rev().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits > MOST_DIGITS { text.len() } else { digits_end - digits }
}

const fn is_word(byte: u8) -> bool {
    // Non-ASCII bytes do not count as letters, because Chinese is written without spaces.
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a number can begin after these bytes.
fn is_begin(before: &[u8]) -> bool {
    match before {
        // A line break inside JSON.
        [] | [.., b'\\', b'n' | b'r' | b't'] => true,
        // A negative number, or a fraction.
        [b'-'] | [.., b'0'..=b'9', b'.'] => false,
        // After a word, the minus sign is a hyphen.
        [.., byte, b'-'] => is_word(*byte) || !byte.is_ascii(),
        [rest @ .., b'm' | b'K'] => is_sequence(rest),
        [.., byte] => !is_word(*byte),
    }
}

/// Whether this is a terminal colour, or the code that `grep --color` adds after it, up to its last letter.
fn is_sequence(before: &[u8]) -> bool {
    let other = before.iter().rposition(|byte| !byte.is_ascii_digit() && !matches!(byte, b';' | b':'));
    other.and_then(|other| before.get(..=other)).is_some_and(|start| start.ends_with(b"\x1b["))
}

/// How many of the following bytes belong to an ID; `None` if they make the digits part of something else.
fn length_after(after: &[u8]) -> Option<usize> {
    match after {
        [b'.', b'0'..=b'9', ..] => None,
        // A JavaScript bigint.
        [b'n'] => Some(1),
        [b'n', byte, ..] => (!is_word(*byte)).then_some(1),
        [byte, ..] => (!is_word(*byte)).then_some(0),
        [] => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "1541815603606036480";

    /// Returns the text with `<>` after each ID, reading it in pieces of this size.
    fn noted(text: &[u8], size: usize) -> Vec<u8> {
        let scanner = Scanner::new(&Layout::default(), (604_800_000, 500_000_000_000));
        let mut to = Vec::new();
        let mut written = 0;
        let ends = (0..text.len()).step_by(size).chain([text.len()]);
        for end in ends {
            let start = written.max(CONTEXT) - CONTEXT;
            let seen = text.get(start..end).unwrap();
            assert!(seen.len() <= CONTEXT + LONGEST + size);
            let note = |_, to: &mut Vec<u8>| to.extend_from_slice(b"<>");
            written = start + scanner.copy(seen, written - start, false, &mut to, note);
        }
        let start = written.max(CONTEXT) - CONTEXT;
        let note = |_, to: &mut Vec<u8>| to.extend_from_slice(b"<>");
        scanner.copy(text.get(start..).unwrap(), written - start, true, &mut to, note);
        to
    }

    #[test]
    fn what_is_an_id() {
        for (text, is) in [
            ("#", "#<>"),
            ("#\n", "#<>\n"),
            ("a #, # b.", "a #<>, #<> b."),
            ("{\"id\":#,\"x\":\"#\"}", "{\"id\":#<>,\"x\":\"#<>\"}"),
            ("order-#-7/#?id=#&", "order-#<>-7/#<>?id=#<>&"),
            ("订单#号", "订单#<>号"),
            ("#n #n, #nx", "#n<> #n<>, #nx"),
            ("\u{1b}[32m#\u{1b}[0m", "\u{1b}[32m#<>\u{1b}[0m"),
            ("\u{1b}[38;2;255;255;255m\u{1b}[K#", "\u{1b}[38;2;255;255;255m\u{1b}[K#<>"),
            ("\"ids:\\n#\"", "\"ids:\\n#<>\""),
            ("#\0#", "#<>\0#<>"),
            ("#.", "#<>."),
            ("...# #..", "...#<> #<>.."),
        ] {
            let (text, is) = (text.replace('#', ID), is.replace('#', ID));
            for size in [1, 2, 3, 7, 19, 20, 64, 1000] {
                assert_eq!(String::from_utf8(noted(text.as_bytes(), size)).unwrap(), is, "{size}");
            }
        }
    }

    #[test]
    fn what_is_none() {
        for text in [
            "",
            "x#",
            "_#",
            "#x",
            "#_",
            "0#",
            "#0",
            "#############",
            "0.#",
            "#.5",
            "-#",
            "x=-#",
            "m#",
            "[32m#",
            // Small numbers, and times: in s, ms and microseconds.
            "7 1767225600 1767225600000 1767225600000000",
            // Later times, and numbers over 64 bits.
            "9154181560360603648 99999999999999999999 123456789012345678901",
            "550e8400-e29b-41d4-a716-446655440000",
        ] {
            let text = text.replace('#', ID);
            for size in [1, 2, 19, 1000] {
                assert_eq!(String::from_utf8(noted(text.as_bytes(), size)).unwrap(), text, "{size}");
            }
        }
    }

    /// For any text, removing the notes restores it.
    #[test]
    fn nothing_else_changes() {
        let mut state = 7_u64;
        let mut next = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from((state >> 33) % n).unwrap()
        };
        let pieces: [&[u8]; 14] = [
            ID.as_bytes(),
            b"15",
            b"4181560360603648",
            b"0",
            b"9999999999",
            b".",
            b"n",
            b"-",
            b" ",
            b"\n",
            b"\r\n",
            b"\xff\xfe",
            b"\x1b[1m",
            b"x",
        ];
        for _ in 0..2000 {
            let text: Vec<u8> = (0..12).flat_map(|_| pieces.get(next(14)).unwrap().to_vec()).collect();
            let whole = noted(&text, 10_000);
            assert_eq!(noted(&text, 1 + next(30)), whole, "{}", text.escape_ascii());
            let mut rest = &*whole;
            let mut without = Vec::new();
            while let Some((first, after)) = rest.split_first() {
                rest = after;
                if rest.starts_with(b">") && *first == b'<' {
                    rest = after.get(1..).unwrap();
                } else {
                    without.push(*first);
                }
            }
            assert_eq!(without, text);
        }
    }
}
