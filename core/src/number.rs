//! Numbers as the caller gave them, kept so that error messages can name them.

use core::fmt::{self, Write as _};

use crate::error::{Error, error};
use crate::word::{Digits, OwnedWord, display};

/// Parses decimal digits without a sign or a leading zero.
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

/// A whole number as the caller gave it. A number that is out of range where it is used, or a string that is
/// not a number, is kept so that the error can name it.
///
/// Built from any integer type, or from text with [`Number::parse`]. Functions that take a `Number` return an
/// error that names it if it is out of range.
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
    /// Not a whole number, or a number of more than 64 bits.
    Other(OwnedWord),
}

impl Number {
    pub(crate) const ZERO: Self = Self(Kind::Unsigned(0));

    pub(crate) const fn of_u64(value: u64) -> Self {
        Self(Kind::Unsigned(value))
    }

    /// Reads decimal digits, preceded by a `-` if the number is negative. This never fails: a string that is
    /// not a number causes an error where it is used.
    pub const fn parse(text: &str) -> Self {
        Self::from_bytes(text.as_bytes())
    }

    /// Returns `ordinal` or `ip`, which the host replaces with a number. For languages that distinguish
    /// strings from numbers.
    #[doc(hidden)]
    pub fn of_host(text: &str) -> Option<Self> {
        ["ordinal", "ip"].contains(&text).then(|| Self::parse(text))
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
        Self(Kind::Other(OwnedWord::new(text)))
    }

    /// Creates a number of more than 64 bits, stored as its digits.
    pub(crate) fn of(value: i128) -> Self {
        let mut digits = OwnedWord::EMPTY;
        let _ = write!(digits, "{value}");
        Self(Kind::Other(digits))
    }

    /// The number as the caller gave it.
    pub(crate) const fn word(&self) -> OwnedWord {
        match self.0 {
            Kind::Unsigned(value) => Digits::of(value).owned(""),
            Kind::Negative(value) => Digits::of(value.unsigned_abs()).owned("-"),
            Kind::Other(word) => word,
        }
    }

    /// Returns the value of an option whose range is `min` to `max`.
    ///
    /// # Errors
    ///
    /// `invalid_option`; the message names the option, the value and the range.
    #[doc(hidden)]
    pub fn in_range(self, option: &str, min: u64, max: u64) -> Result<u64, Error> {
        self.to_u64().filter(|value| (min..=max).contains(value)).ok_or_else(|| {
            error!(
                InvalidOption,
                "% is %; it takes a whole number from % to %",
                Option(option),
                Given(self.word()),
                Number(min),
                Number(max)
            )
        })
    }

    /// Creates the error for an ID that does not fit in `bits` bits.
    pub(crate) const fn too_wide(&self, bits: u32) -> Error {
        let max = u64::MAX >> (64 - bits);
        error!(
            InvalidId,
            "ID % does not fit % bits; it takes 0 to %",
            Given(self.word()),
            Number(bits as u64),
            Number(max)
        )
    }

    /// The number, if it is in the range 0 to 2^64-1.
    pub const fn to_u64(self) -> Option<u64> {
        match self.0 {
            Kind::Unsigned(value) => Some(value),
            _ => None,
        }
    }

    /// The number as an ID of up to 64 bits.
    ///
    /// # Errors
    ///
    /// `invalid_id` if it is negative, has more than 64 bits, or is not a number.
    pub fn to_id(self) -> Result<u64, Error> {
        self.to_u64().ok_or_else(|| self.too_wide(64))
    }

    /// The number as an ID of up to 63 bits, which fits in a signed 64-bit integer such as a database's
    /// `BIGINT` or PHP's `int`.
    ///
    /// # Errors
    ///
    /// `invalid_id` if it is negative, has more than 63 bits, or is not a number.
    pub fn to_signed_id(self) -> Result<i64, Error> {
        self.to_i64().filter(|id| *id >= 0).ok_or_else(|| self.too_wide(63))
    }

    /// The number, if it is in the range -2^63 to 2^63-1.
    pub const fn to_i64(self) -> Option<i64> {
        match self.0 {
            Kind::Unsigned(value) => 0_i64.checked_add_unsigned(value),
            Kind::Negative(value) => Some(value),
            Kind::Other(_) => None,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(f, |out| self.word().word().write_to(out))
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
}
