//! The pieces of text in a message: a caller's words, truncated if they are long, and numbers.

use core::fmt;

/// A string from outside, made safe to show anywhere: each [hidden](is_hidden) character is replaced by its
/// code point, such as `\u{1b}`.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(f, |out| write_shown(out, self.0))
    }
}

/// Returns true for characters that a terminal or a browser acts on instead of showing, and for invisible
/// ones: control characters, characters that change the writing direction, line separators, and those that
/// Unicode calls default ignorable. The variation selectors U+FE00 to U+FE0F are not hidden, since the red
/// heart emoji needs one.
pub const fn is_hidden(character: char) -> bool {
    matches!(
        character,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn write_shown(out: &mut Out<'_>, text: &str) {
    for character in text.chars() {
        if is_hidden(character) {
            character.escape_unicode().for_each(|letter| write_character(out, letter));
        } else {
            write_character(out, character);
        }
    }
}

/// A piece of text. If it was truncated, it is shown with a `…` at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    bytes: &'a [u8],
    is_cut: bool,
}

impl<'a> Word<'a> {
    /// The maximum number of bytes in a caller's word in a message.
    pub(crate) const MAX: usize = 40;
    /// The maximum number of bytes in a path.
    #[cfg(feature = "std")]
    const MAX_PATH: usize = 68;

    /// Creates a word from a caller's string. An address is truncated after its `//`, since a password may
    /// follow: the caller may have set the wrong option, or swapped an option's name and value.
    pub(crate) const fn new(text: &'a [u8]) -> Self {
        let end = end_of_slashes(text);
        Self::cut(text, if end < Self::MAX { end } else { Self::MAX })
    }

    /// Creates a word from a store's address that contains no secrets.
    #[cfg(feature = "std")]
    pub(crate) const fn address(text: &'a str) -> Self {
        Self::cut(text.as_bytes(), Self::MAX)
    }

    /// Creates a word from one of Polyflake's own strings, of any length.
    pub(crate) const fn whole(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), is_cut: false }
    }

    /// Creates a word from a path. An address passed in its place is truncated too, even after Java has
    /// turned `redis://` into `redis:/`. `C:/` is a path.
    #[cfg(feature = "std")]
    pub(crate) fn path(path: &'a std::path::Path) -> Self {
        let path = path.as_os_str().as_encoded_bytes();
        let end = match path.iter().position(|byte| *byte == b'/') {
            Some(slash @ 3..) if path.get(slash - 1) == Some(&b':') => {
                slash + if path.get(slash + 1) == Some(&b'/') { 2 } else { 1 }
            }
            _ => Self::MAX_PATH,
        };
        Self::cut(path, end.min(Self::MAX_PATH))
    }

    const fn cut(text: &'a [u8], max: usize) -> Self {
        match text.split_at_checked(max) {
            Some((bytes, rest)) => Self { bytes, is_cut: !rest.is_empty() },
            None => Self { bytes: text, is_cut: false },
        }
    }

    pub(crate) const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Creates a word from bytes that have already been truncated.
    pub(crate) const fn piece(bytes: &'a [u8], is_cut: bool) -> Self {
        Self { bytes, is_cut }
    }

    /// Writes the word as text, with U+FFFD for invalid UTF-8 and code points for [hidden](is_hidden)
    /// characters.
    pub(crate) fn write_to(&self, out: &mut Out<'_>) {
        let mut rest = self.bytes;
        while !rest.is_empty() {
            let (valid, length) = match core::str::from_utf8(rest) {
                Ok(text) => (text, rest.len()),
                Err(error) => {
                    let (valid, _) = rest.split_at_checked(error.valid_up_to()).unwrap_or_default();
                    let text = core::str::from_utf8(valid).unwrap_or_default();
                    (text, error.error_len().map_or(rest.len(), |invalid| valid.len() + invalid))
                }
            };
            write_shown(out, valid);
            let has_invalid = length > valid.len();
            rest = rest.get(length..).unwrap_or_default();
            // A character that was cut in two at the end is part of what `…` replaces.
            if has_invalid && !(self.is_cut && rest.is_empty()) {
                write_character(out, char::REPLACEMENT_CHARACTER);
            }
        }
        if self.is_cut {
            out("…");
        }
    }
}

/// Returns the length of a string up to the end of the first `//`, or its whole length.
const fn end_of_slashes(text: &[u8]) -> usize {
    let mut rest = text;
    while let Some((_, after)) = rest.split_first() {
        if let [b'/', b'/', after @ ..] = rest {
            return text.len() - after.len();
        }
        rest = after;
    }
    text.len()
}

/// A word of at most `N` bytes that outlives the caller's string.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OwnedWord<const N: usize = { Word::MAX }> {
    bytes: [u8; N],
    len: u8,
    is_cut: bool,
}

impl<const N: usize> OwnedWord<N> {
    pub(crate) const EMPTY: Self = Self { bytes: [0; N], len: 0, is_cut: false };

    /// Creates a word from a caller's string, as [`Word::new`] does.
    pub(crate) const fn new(text: &[u8]) -> Self {
        let text = Word::new(text);
        let mut word = Self::EMPTY;
        word.push(text.bytes);
        word.is_cut |= text.is_cut;
        word
    }

    pub(crate) const fn push(&mut self, text: &[u8]) {
        let (len, is_cut) = copy(&mut self.bytes, self.len as usize, text);
        self.len = narrow(len);
        self.is_cut |= is_cut;
    }

    pub(crate) const fn word(&self) -> Word<'_> {
        match self.bytes.split_at_checked(self.len as usize) {
            Some((bytes, _)) => Word { bytes, is_cut: self.is_cut },
            None => Word { bytes: &[], is_cut: false },
        }
    }

    /// Returns true if the word is exactly this string, and was not truncated.
    pub(crate) fn is(&self, text: &[u8]) -> bool {
        self.word() == Word { bytes: text, is_cut: false }
    }
}

impl OwnedWord {
    /// Returns printable ASCII unchanged, and any other character as its code point, such as `\u{200b}`.
    pub(crate) fn escaped(character: char) -> Self {
        let mut escaped = Self::EMPTY;
        if character.is_ascii_graphic() || character == ' ' {
            escaped.push(character.encode_utf8(&mut [0; 4]).as_bytes());
        } else {
            character
                .escape_unicode()
                .for_each(|letter| escaped.push(letter.encode_utf8(&mut [0; 4]).as_bytes()));
        }
        escaped
    }
}

impl<const N: usize> fmt::Write for OwnedWord<N> {
    /// Truncates anything that does not fit. Never fails.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

impl<const N: usize> fmt::Debug for OwnedWord<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(f, |out| self.word().write_to(out))
    }
}

/// A number in decimal digits, for `const fn`.
pub(crate) struct Digits {
    bytes: [u8; Self::MAX],
    start: usize,
}

impl Digits {
    const MAX: usize = 20;

    pub(crate) const fn of(mut number: u64) -> Self {
        let mut digits = Self { bytes: [0; Self::MAX], start: Self::MAX };
        while digits.start == Self::MAX || number > 0 {
            digits.start -= 1;
            put(&mut digits.bytes, digits.start, b'0' + (number % 10) as u8);
            number /= 10;
        }
        digits
    }

    /// Returns the digits, preceded by `sign`.
    pub(crate) const fn owned(&self, sign: &str) -> OwnedWord {
        let mut word = OwnedWord::new(sign.as_bytes());
        word.push(self.word().bytes);
        word
    }

    const fn word(&self) -> Word<'_> {
        match self.bytes.split_at_checked(self.start) {
            Some((_, bytes)) => Word { bytes, is_cut: false },
            None => Word { bytes: &[], is_cut: false },
        }
    }
}

/// A sink that receives pieces of text in order.
pub(crate) type Out<'a> = dyn FnMut(&str) + 'a;

/// Implements `Display` from pieces of text.
pub(crate) fn display(f: &mut fmt::Formatter<'_>, write: impl FnOnce(&mut Out<'_>)) -> fmt::Result {
    let mut outcome = Ok(());
    write(&mut |piece| {
        if outcome.is_ok() {
            outcome = f.write_str(piece);
        }
    });
    outcome
}

pub(crate) fn write_character(out: &mut Out<'_>, character: char) {
    out(character.encode_utf8(&mut [0; 4]));
}

pub(crate) fn write_u64(out: &mut Out<'_>, number: u64) {
    Digits::of(number).word().write_to(out);
}

/// Writes a string, with the option names in it (`max_wait_ms`) as JavaScript spells them (`maxWaitMs`).
pub(crate) fn write_camel_case(out: &mut Out<'_>, text: &str) {
    camel_case(text).for_each(|letter| write_character(out, letter));
}

/// Returns the characters of a string, with `max_wait_ms` as `maxWaitMs`.
pub(crate) fn camel_case(text: &str) -> impl Iterator<Item = char> {
    let mut last = ' ';
    text.char_indices().filter_map(move |(at, character)| {
        let before = core::mem::replace(&mut last, character);
        match (before, character) {
            ('_', _) => Some(character.to_ascii_uppercase()),
            // An underscore is dropped only between two words of a name, not at the end of `pfk_`.
            (_, '_') if before.is_ascii_lowercase() && is_lowercase(text, at + 1) => None,
            _ => Some(character),
        }
    })
}

fn is_lowercase(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_some_and(u8::is_ascii_lowercase)
}

/// Copies as much of the text as fits into `bytes`, beginning at `start`. Returns the end of the copy, and
/// whether the text was truncated.
pub(crate) const fn copy(bytes: &mut [u8], start: usize, mut text: &[u8]) -> (usize, bool) {
    let mut end = start;
    while let Some((byte, rest)) = text.split_first() {
        if end == bytes.len() {
            return (end, true);
        }
        put(bytes, end, *byte);
        end += 1;
        text = rest;
    }
    (end, false)
}

/// Converts a length within an array of fewer than 256 bytes.
#[expect(clippy::cast_possible_truncation, reason = "the arrays are shorter")]
pub(crate) const fn narrow(length: usize) -> u8 {
    length as u8
}

/// `slots[index] = value`, for `const fn`, where `get_mut` cannot be called yet. Does nothing if `index` is
/// past the end.
pub(crate) const fn put<T: Copy>(slots: &mut [T], index: usize, value: T) {
    if let Some((_, rest)) = slots.split_at_mut_checked(index) {
        if let Some(slot) = rest.first_mut() {
            *slot = value;
        }
    }
}

/// `slots[index]`, for `const fn`.
pub(crate) const fn at<T: Copy>(slots: &[T], index: usize) -> Option<T> {
    match slots.split_at_checked(index) {
        Some((_, rest)) => rest.first().copied(),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    fn shown(word: Word<'_>) -> String {
        let mut text = String::new();
        word.write_to(&mut |piece| text.push_str(piece));
        text
    }

    #[test]
    fn what_is_hidden_is_shown_as_its_number() {
        let of = |text: &str| std::format!("{}", Shown(text));
        for (text, is) in [
            ("\u{1b}[2J\r\n\t\0", "\\u{1b}[2J\\u{d}\\u{a}\\u{9}\\u{0}"),
            ("\u{7f}\u{80}\u{9b}\u{9f}\u{ad}", "\\u{7f}\\u{80}\\u{9b}\\u{9f}\\u{ad}"),
            ("\u{202a}\u{202e}\u{2066}\u{2069}", "\\u{202a}\\u{202e}\\u{2066}\\u{2069}"),
            ("\u{2028}\u{2029}\u{200b}\u{200f}\u{feff}", "\\u{2028}\\u{2029}\\u{200b}\\u{200f}\\u{feff}"),
            // Readable characters are kept, including combining accents.
            (
                "web-1 \"é\" e\u{301} 名 नि نام\u{a0}👍\u{fe0f} \\u{1b}",
                "web-1 \"é\" e\u{301} 名 नि نام\u{a0}👍\u{fe0f} \\u{1b}",
            ),
        ] {
            assert_eq!(of(text), is);
            assert_eq!(of(is), is);
            assert_eq!(shown(Word::whole(text)), is);
        }
        assert!((0..=0x10_ffff).filter_map(char::from_u32).all(|c| is_hidden(c) || !c.is_control()));
    }

    #[test]
    fn long_words_are_cut_and_say_so() {
        assert_eq!(shown(Word::cut("aaaaéb".as_bytes(), 5)), "aaaa…");
        assert_eq!(shown(Word::cut(b"aaaaa", 5)), "aaaaa");
        assert_eq!(shown(Word::new(b"a\xffb")), "a\u{fffd}b");
        assert_eq!(shown(Word::new(b"a\nb")), "a\\u{a}b");
        for (text, is) in [
            ("redis://user:secret@host/0", "redis://…"),
            ("redis://", "redis://"),
            ("//user:secret//", "//…"),
            ("redis:/ /:/", "redis:/ /:/"),
            (
                "a-scheme-that-is-longer-than-a-word-in-a-message://x",
                "a-scheme-that-is-longer-than-a-word-in-a…",
            ),
        ] {
            assert_eq!(shown(Word::new(text.as_bytes())), is);
            assert_eq!(shown(<OwnedWord>::new(text.as_bytes()).word()), is);
        }
        let long = "x".repeat(100);
        assert_eq!(shown(<OwnedWord>::new(long.as_bytes()).word()), shown(Word::new(long.as_bytes())));
    }

    #[test]
    fn an_address_in_place_of_a_path_is_cut() {
        for (path, is) in [
            ("redis://user:secret@host/0", "redis://…"),
            ("redis:/user:secret@host/0", "redis:/…"),
            ("/var//lib:/x", "/var//lib:/x"),
            ("C:/ids", "C:/ids"),
            ("ids", "ids"),
        ] {
            assert_eq!(shown(Word::path(std::path::Path::new(path))), is);
        }
    }

    #[test]
    fn names_of_options_are_in_camel_case() {
        let camel_case = |text| camel_case(text).collect::<String>();
        assert_eq!(camel_case("max_wait_ms, node"), "maxWaitMs, node");
        assert_eq!(camel_case("a-z, 0-9, _ and -"), "a-z, 0-9, _ and -");
        assert_eq!(camel_case("`pfk_` and digits"), "`pfk_` and digits");
    }

    #[test]
    fn numbers_have_all_their_digits() {
        for number in [0, 7, 10, 1_000_000, u64::MAX] {
            assert_eq!(shown(Digits::of(number).word()), std::format!("{number}"));
        }
    }
}
