//! Numbers and words as a caller gave them, kept for the message of the error that refuses them.

use core::fmt::{self, Write as _};

use crate::error::{Detail, Error};
use crate::text::Format;

/// A piece of the caller's text, cut (and ending in `…` when shown) past `N` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Shown<const N: usize> {
    bytes: [u8; N],
    len: u8,
    cut: bool,
}

impl<const N: usize> Shown<N> {
    pub(crate) const EMPTY: Self = Self { bytes: [0; N], len: 0, cut: false };

    pub(crate) const fn new(text: &[u8]) -> Self {
        let mut shown = Self::EMPTY;
        shown.push(text);
        shown
    }

    pub(crate) const fn push(&mut self, mut text: &[u8]) {
        while let Some((byte, rest)) = text.split_first() {
            if self.len as usize == N || self.len == u8::MAX {
                self.cut = true;
                return;
            }
            put(&mut self.bytes, self.len as usize, *byte);
            self.len += 1;
            text = rest;
        }
    }

    pub(crate) fn of(value: Number) -> Self {
        let mut shown = Self::EMPTY;
        value.write_to(&mut |piece| shown.push(piece.as_bytes()));
        shown
    }

    pub(crate) fn write_to(&self, out: &mut Out<'_>) {
        write_given(out, self.as_bytes(), self.cut);
    }

    /// Whether it is all of this text.
    pub(crate) fn is(&self, text: &[u8]) -> bool {
        !self.cut && self.as_bytes() == text
    }

    pub(crate) const fn as_bytes(&self) -> &[u8] {
        match self.bytes.split_at_checked(self.len as usize) {
            Some((bytes, _)) => bytes,
            None => &[],
        }
    }
}

impl<const N: usize> fmt::Write for Shown<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

impl<const N: usize> fmt::Display for Shown<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(f, |out| self.write_to(out))
    }
}

/// Where pieces of a text go, one after the other.
pub(crate) type Out<'a> = dyn FnMut(&str) + 'a;

/// A `Display` from pieces of text.
pub(crate) fn display(f: &mut fmt::Formatter<'_>, write: impl FnOnce(&mut Out<'_>)) -> fmt::Result {
    let mut outcome = Ok(());
    write(&mut |piece| {
        if outcome.is_ok() {
            outcome = f.write_str(piece);
        }
    });
    outcome
}

/// A caller's bytes as text. `cut`: there was more, which `…` stands for.
fn write_given(out: &mut Out<'_>, bytes: &[u8], cut: bool) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (valid, length) = match core::str::from_utf8(rest) {
            Ok(text) => (text, rest.len()),
            Err(error) => {
                let (valid, _) = rest.split_at_checked(error.valid_up_to()).unwrap_or_default();
                let text = core::str::from_utf8(valid).unwrap_or_default();
                (text, error.error_len().map_or(rest.len(), |invalid| valid.len() + invalid))
            }
        };
        for character in valid.chars() {
            if character.is_control() {
                character.escape_unicode().for_each(|letter| write_character(out, letter));
            } else {
                write_character(out, character);
            }
        }
        let has_invalid = length > valid.len();
        rest = rest.get(length..).unwrap_or_default();
        // A character cut in two at the end is part of what `…` stands for.
        if has_invalid && !(cut && rest.is_empty()) {
            write_character(out, char::REPLACEMENT_CHARACTER);
        }
    }
    if cut {
        out("…");
    }
}

pub(crate) fn write_character(out: &mut Out<'_>, character: char) {
    out(character.encode_utf8(&mut [0; 4]));
}

pub(crate) fn write_u64(out: &mut Out<'_>, number: u64) {
    out(&Format::Decimal.write(number));
}

impl<const N: usize> fmt::Debug for Shown<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// `slots[index] = value`, for `const fn`, where `get_mut` cannot be called yet. Past the end it does nothing.
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

/// Decimal digits without a sign or a leading zero.
pub(crate) const fn parse_digits(mut digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || (digits.len() > 1 && matches!(digits.first(), Some(b'0'))) {
        return None;
    }
    let mut value: u64 = 0;
    while let Some((digit, rest)) = digits.split_first() {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = match value.checked_mul(10) {
            Some(tens) => match tens.checked_add((*digit - b'0') as u64) {
                Some(sum) => sum,
                None => return None,
            },
            None => return None,
        };
        digits = rest;
    }
    Some(value)
}

/// A whole number as a caller gave it. One that does not fit where it goes, or is no number at all, is kept
/// so that the error can name it.
///
/// Made from any integer type, or by [`Number::parse`] from text; what takes a `Number` refuses one out of its
/// range with the error that names it.
///
/// ```
/// use polyflake::{Layout, Number};
/// let layout = Layout::default();
/// assert!(layout.decode(Number::parse("-1")).unwrap_err().to_string().contains("-1"));
/// assert_eq!(layout.decode(1541815603606036480_u64)?.node(), 378);
/// # Ok::<(), polyflake::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Number(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Unsigned(u64),
    /// Below zero.
    Negative(i64),
    /// No whole number, or one of more than 64 bits.
    Other(Shown<40>),
}

impl Number {
    pub(crate) const ZERO: Self = Self(Kind::Unsigned(0));

    /// Reads decimal digits, with a `-` before them if the number is negative. Never fails: what is no number
    /// is refused, by name, where it is used.
    pub const fn parse(text: &str) -> Self {
        Self::from_bytes(text.as_bytes())
    }

    pub(crate) const fn from_bytes(text: &[u8]) -> Self {
        if let Some(value) = parse_digits(text) {
            return Self(Kind::Unsigned(value));
        }
        if let Some((b'-', digits)) = text.split_first() {
            if let Some(value) = parse_digits(digits) {
                if let Some(value) = 0_i64.checked_sub_unsigned(value) {
                    if value < 0 {
                        return Self(Kind::Negative(value));
                    }
                }
            }
        }
        Self(Kind::Other(Shown::new(text)))
    }

    /// A number of more than 64 bits, kept as its digits.
    pub(crate) fn of(value: i128) -> Self {
        let mut digits = Shown::EMPTY;
        // Writing to `Shown` cuts and never fails.
        let _ = write!(digits, "{value}");
        Self(Kind::Other(digits))
    }

    /// The number, if it lies from 0 to 2^64-1.
    pub const fn to_u64(self) -> Option<u64> {
        match self.0 {
            Kind::Unsigned(value) => Some(value),
            _ => None,
        }
    }

    /// The number as an ID of up to 64 bits. Refuses with `invalid_id`.
    pub fn to_id(self) -> Result<u64, Error> {
        self.to_u64().ok_or_else(|| Detail::IdTooWide { id: self, bits: 64 }.into())
    }

    /// The number as an ID of up to 63 bits, as signed 64-bit integers hold it: a database's `BIGINT`, or PHP's `int`.
    /// Refuses with `invalid_id`.
    pub fn to_signed_id(self) -> Result<i64, Error> {
        self.to_i64().filter(|id| *id >= 0).ok_or_else(|| Detail::IdTooWide { id: self, bits: 63 }.into())
    }

    /// The number, if it lies from -2^63 to 2^63-1.
    pub const fn to_i64(self) -> Option<i64> {
        match self.0 {
            Kind::Unsigned(value) => 0_i64.checked_add_unsigned(value),
            Kind::Negative(value) => Some(value),
            Kind::Other(_) => None,
        }
    }
}

impl Number {
    pub(crate) fn write_to(&self, out: &mut Out<'_>) {
        match &self.0 {
            Kind::Unsigned(value) => write_u64(out, *value),
            Kind::Negative(value) => {
                out("-");
                write_u64(out, value.unsigned_abs());
            }
            Kind::Other(text) => text.write_to(out),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(f, |out| self.write_to(out))
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Self(Kind::Unsigned(value))
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self(u64::try_from(value).map_or(Kind::Negative(value), Kind::Unsigned))
    }
}

macro_rules! from_narrower {
    ($($narrow:ty => $wide:ty),*) => {$(
        impl From<$narrow> for Number {
            fn from(value: $narrow) -> Self {
                Self::from(<$wide>::from(value))
            }
        }
    )*};
}
from_narrower!(u8 => u64, u16 => u64, u32 => u64, i8 => i64, i16 => i64, i32 => i64);

impl From<usize> for Number {
    fn from(value: usize) -> Self {
        // No supported target has a `usize` of more than 64 bits.
        Self::from(value as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn numbers_keep_what_they_were_given() {
        for text in ["0", "7", "-5", "18446744073709551615", "-9223372036854775808", "007", "+7", "1.5", ""] {
            assert_eq!(Number::parse(text).to_string(), text);
        }
        assert_eq!(Number::parse("007").to_u64(), None);
        assert_eq!(Number::parse("-9223372036854775808").to_i64(), Some(i64::MIN));
        assert_eq!(Number::parse("9223372036854775808").to_i64(), None);
        assert_eq!(Number::from(-1_i32).to_u64(), None);
        assert_eq!(Number::from(i64::MAX).to_signed_id(), Ok(i64::MAX));
        for (id, says) in [
            (Number::from(1_u64 << 63), "ID 9223372036854775808 does not fit 63 bits"),
            (Number::from(-1), "ID -1"),
        ] {
            let refused = id.to_signed_id().unwrap_err().to_string();
            assert!(refused.starts_with("invalid_id: ") && refused.contains(says), "{refused}");
        }
    }

    #[test]
    fn long_words_are_cut_and_say_so() {
        let word = Shown::<5>::new("aaaaéb".as_bytes());
        assert_eq!(word.to_string(), "aaaa…");
        assert_eq!(Shown::<5>::new(b"a\xffb").to_string(), "a\u{fffd}b");
        assert_eq!(Shown::<8>::new(b"a\nb").to_string(), "a\\u{a}b");
    }
}
