//! Reads IDs from strings.

use polyflake::{Error, Format, Number, Shown};

use crate::secret::redacted;

/// Reads an ID in one of the core's formats.
#[inline]
pub(crate) fn read_id(text: &str, format: Format) -> Result<u64, Error> {
    if format == Format::Decimal {
        // Accepts the same strings, except those with leading zeros, but is faster.
        if let Some(id) = Number::parse(text).to_u64() {
            return Ok(id);
        }
    }
    format.read(text)
}

/// Removes anything that a console, a log, JSON or an editor adds around an ID, including a byte order mark.
pub(crate) fn bare(text: &str) -> &str {
    let inner = text.trim_matches(|c: char| c.is_whitespace() || "\"'`,;\u{feff}".contains(c));
    // A JavaScript bigint.
    match inner.strip_suffix('n') {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => digits,
        _ => inner,
    }
}

/// Whether a string in the first line that is not an ID must be a column name. A string with digits may be a
/// mistyped ID, and `NULL` stands for a missing ID.
pub(crate) fn can_be_name(text: &str) -> bool {
    !is_none(text) && !text.contains(char::is_numeric)
}

/// Whether a string stands for a missing ID: the empty string, or a database's `NULL`.
pub(crate) fn is_none(text: &str) -> bool {
    text.is_empty() || text.eq_ignore_ascii_case("null") || text == "\\N"
}

/// Makes text from a store, a file or another source safe to print. All untrusted text goes through here or
/// through [`as_json`](crate::output::as_json).
pub(crate) fn shown(text: &str) -> String {
    Shown(text).to_string()
}

/// Makes a message safe to print: it may contain untrusted text, and an address with a password.
pub(crate) fn told(message: &str) -> String {
    shown(&redacted(message))
}

/// The part of an arbitrary, possibly long string that a message shows.
pub(crate) fn shortened(text: &str) -> String {
    const MAX: usize = 60;
    let text = redacted(text);
    let cut: String = text.chars().take(MAX).collect();
    let mut shown = shown(&cut);
    if text.chars().nth(MAX).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_around_an_id_is_taken_off() {
        for (text, is) in [
            (" \"123\",", "123"),
            ("123n", "123"),
            ("n", "n"),
            ("abn", "abn"),
            ("`x`;", "x"),
            ("\u{feff}\"1", "1"),
        ] {
            assert_eq!(bare(text), is);
        }
    }

    #[test]
    fn a_name_has_no_digits() {
        for (text, is) in
            [("id", true), ("номер", true), ("#id", true), ("id2", false), ("", false), ("Null", false)]
        {
            assert_eq!(can_be_name(text), is, "{text}");
        }
    }

    #[test]
    fn decimal_reads_leading_zeros_and_names_positions() {
        assert_eq!(read_id("007", Format::Decimal).unwrap(), 7);
        assert_eq!(read_id("18446744073709551615", Format::Decimal).unwrap(), u64::MAX);
        assert!(read_id("12x", Format::Decimal).unwrap_err().to_string().contains("position 3"));
        assert!(read_id("-1", Format::Decimal).unwrap_err().to_string().contains("position 1"));
    }

    #[test]
    fn long_and_strange_texts_are_cut() {
        assert_eq!(shortened("a\u{1b}[31m"), "a\\u{1b}[31m");
        assert_eq!(shortened(&"x".repeat(100)).chars().count(), 61);
    }
}
