//! The keys of sequences.

use core::fmt;

use polyflake::{Error, ErrorCode, Number};

/// A key for [`Sequences`](crate::Sequences): a string, or an integer from -2^63 to 2^64-1. 5 and "5" are
/// different keys.
///
/// ```
/// use polyflake_coordination::SequenceKey;
/// let of = |key: SequenceKey<'static>| key;
/// assert_ne!(of("5".into()), of(5.into()));
/// assert_eq!(of(5_u8.into()), of(5_i64.into()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SequenceKey<'a>(pub(super) Kind<'a>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind<'a> {
    Text(&'a str),
    Integer(i128),
}

/// A key that owns its string, for bindings in which a call may outlive the caller's memory.
#[doc(hidden)]
#[derive(Debug, Clone)]
pub enum OwnedKey {
    Text(String),
    Integer(SequenceKey<'static>),
}

impl<'a> From<&'a OwnedKey> for SequenceKey<'a> {
    fn from(key: &'a OwnedKey) -> Self {
        match key {
            OwnedKey::Text(text) => text.into(),
            OwnedKey::Integer(integer) => *integer,
        }
    }
}

impl<'a> From<&'a str> for SequenceKey<'a> {
    fn from(text: &'a str) -> Self {
        Self(Kind::Text(text))
    }
}

impl<'a> From<&'a String> for SequenceKey<'a> {
    fn from(text: &'a String) -> Self {
        Self(Kind::Text(text))
    }
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        impl From<$integer> for SequenceKey<'_> {
            fn from(integer: $integer) -> Self {
                Self(Kind::Integer(integer.into()))
            }
        }
    )*};
}
integers!(u8 u16 u32 u64 i8 i16 i32 i64);

/// Fails with `invalid_option` for an integer that does not fit in 64 bits.
impl TryFrom<i128> for SequenceKey<'_> {
    type Error = Error;

    fn try_from(integer: i128) -> Result<Self, Error> {
        if (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&integer) {
            return Ok(Self(Kind::Integer(integer)));
        }
        Err(too_wide(&integer))
    }
}

/// Fails with `invalid_option` for an integer that does not fit in 64 bits.
impl TryFrom<Number> for SequenceKey<'_> {
    type Error = Error;

    fn try_from(number: Number) -> Result<Self, Error> {
        let key = number.to_u64().map(Self::from).or_else(|| number.to_i64().map(Self::from));
        key.ok_or_else(|| too_wide(&number))
    }
}

fn too_wide(integer: &dyn fmt::Display) -> Error {
    Error::from_outside(
        ErrorCode::InvalidOption,
        &format!(
            "key is {integer}; an integer is from {} to {}, and any other key is a string",
            i64::MIN,
            u64::MAX
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_has_64_bits() {
        for integer in [i64::MIN.into(), -1, 0, i128::from(u64::MAX)] {
            assert!(SequenceKey::try_from(integer).is_ok(), "{integer}");
        }
        for integer in [i128::from(i64::MIN) - 1, i128::from(u64::MAX) + 1] {
            let text = SequenceKey::try_from(integer).unwrap_err().to_string();
            assert!(text.contains(&integer.to_string()), "{text}");
        }
        // Bindings convert integers this way, and their integers may have any size.
        for integer in [u64::MAX.into(), 5.into(), 0.into(), (-1).into(), i128::from(i64::MIN)] {
            let number = Number::parse(&integer.to_string());
            assert_eq!(SequenceKey::try_from(number), SequenceKey::try_from(integer));
        }
        for integer in ["18446744073709551616", "-9223372036854775809", "1000000000000000000000"] {
            let text = SequenceKey::try_from(Number::parse(integer)).unwrap_err().to_string();
            assert!(text.contains(&format!("key is {integer}; ")), "{text}");
        }
    }
}
