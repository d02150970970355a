//! IDs as texts.

use polyflake::{Error, Format, Number};

/// Reads an ID in a format of the core.
#[inline]
pub(crate) fn read_id(text: &str, format: Format) -> Result<u64, Error> {
    if format == Format::Decimal {
        // The same texts but those with leading zeros, faster.
        if let Some(id) = Number::parse(text).to_u64() {
            return Ok(id);
        }
    }
    format.read(text)
}

/// Without what a console, a log or JSON puts around an ID.
pub(crate) fn bare(text: &str) -> &str {
    let inner = text.trim_matches(|c: char| c.is_whitespace() || "\"'`,;".contains(c));
    // A bigint of JavaScript.
    match inner.strip_suffix('n') {
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => digits,
        _ => inner,
    }
}

/// What a message shows of a text that may be anything.
pub(crate) fn shortened(text: &str) -> String {
    const MAX: usize = 60;
    let mut shown: String = text.chars().take(MAX).flat_map(char::escape_debug).collect();
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
        for (text, is) in [(" \"123\",", "123"), ("123n", "123"), ("n", "n"), ("abn", "abn"), ("`x`;", "x")] {
            assert_eq!(bare(text), is);
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
