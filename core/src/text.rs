//! IDs as text, in several widely used formats.

use core::fmt;
use core::ops::Deref;
use core::str::FromStr;

use crate::error::{Error, ErrorCode, Value, error};
use crate::word::{OwnedWord, at};

/// A format for writing an ID as text.
///
/// | format | digits | written | reads |
/// |---|---|---|---|
/// | `decimal` | 0-9 | 1 to 20 digits | the same |
/// | `hex` | 0-9a-f | 1 to 16 digits | both cases |
/// | `base32` | Crockford: 0-9A-Z without I L O U | always 13 digits: sorts as the IDs do | both cases, I and L as 1, O as 0 |
/// | `base36` | 0-9a-z | 1 to 13 digits | both cases |
/// | `base58` | Bitcoin: 1-9A-Za-z without I O l | 1 to 11 digits | the same |
/// | `base62` | 0-9A-Za-z | always 11 digits: sorts as the IDs do | the same |
/// | `uuid` | 0-9a-f | a version 8 UUID, always 36 characters: sorts as the IDs do | both cases |
/// | `bwmarrin-base32` | ybndrfg8ejkmcpqxot1uwisza345h769 | 1 to 13 digits | the same |
/// | `bwmarrin-base58` | 1-9a-zA-Z without l I O | 1 to 11 digits | the same |
///
/// Reading also accepts fewer digits (except for `uuid`), and leading zeros up to the format's maximum
/// length.
///
/// A `uuid` stores the ID in the highest bits that version 8 of [RFC
/// 9562](https://www.rfc-editor.org/rfc/rfc9562#name-uuid-version-8) leaves free, and 0 in the other 58.
/// Reading rejects all other UUIDs.
///
/// The last two are the formats of `Base32()` and `Base58()` in the Go package
/// [`bwmarrin/snowflake`](https://github.com/bwmarrin/snowflake). A string does not reveal which alphabet it
/// uses: `base58` reads a `bwmarrin-base58` string as a different ID, without an error.
///
/// ```
/// use polyflake::Format;
/// assert_eq!(Format::Base32.write(38358284406638839).as_str(), "01226N0640J7Q");
/// assert_eq!(Format::Base32.read("o1226n0640j7q")?, 38358284406638839);
/// assert_eq!(Format::Uuid.write(38358284406638839).as_str(), "008846a8-0c40-848f-9c00-000000000000");
/// assert_eq!(Format::BwmarrinBase58.read("5W3VRzXSrFo")?, 2124685436520722960);
/// assert!(Format::Hex.read("12g4").unwrap_err().to_string().contains("position 3"));
/// # Ok::<(), polyflake::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Format {
    /// Digits 0-9.
    #[default]
    Decimal,
    /// Lower-case hexadecimal.
    Hex,
    /// Crockford's base 32, always 13 digits.
    Base32,
    /// Digits 0-9a-z.
    Base36,
    /// Bitcoin's base 58.
    Base58,
    /// Digits 0-9A-Za-z, always 11 of them.
    Base62,
    /// A version 8 UUID.
    Uuid,
    /// Base 32 with the digits of the Go package `bwmarrin/snowflake`.
    BwmarrinBase32,
    /// Base 58 with the digits of the Go package `bwmarrin/snowflake`.
    BwmarrinBase58,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 9] = [
        Self::Decimal,
        Self::Hex,
        Self::Base32,
        Self::Base36,
        Self::Base58,
        Self::Base62,
        Self::Uuid,
        Self::BwmarrinBase32,
        Self::BwmarrinBase58,
    ];

    /// The format's name, such as `base32`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decimal => "decimal",
            Self::Hex => "hex",
            Self::Base32 => "base32",
            Self::Base36 => "base36",
            Self::Base58 => "base58",
            Self::Base62 => "base62",
            Self::Uuid => "uuid",
            Self::BwmarrinBase32 => "bwmarrin-base32",
            Self::BwmarrinBase58 => "bwmarrin-base58",
        }
    }

    /// The digits, in order of value.
    pub const fn alphabet(self) -> &'static str {
        match self {
            Self::Decimal => "0123456789",
            Self::Hex | Self::Uuid => "0123456789abcdef",
            // https://www.crockford.com/base32.html
            Self::Base32 => "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
            Self::Base36 => "0123456789abcdefghijklmnopqrstuvwxyz",
            // https://datatracker.ietf.org/doc/html/draft-msporny-base58-03
            Self::Base58 => "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
            Self::Base62 => "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            // https://github.com/bwmarrin/snowflake/blob/v0.3.0/snowflake.go
            Self::BwmarrinBase32 => "ybndrfg8ejkmcpqxot1uwisza345h769",
            Self::BwmarrinBase58 => "123456789abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ",
        }
    }

    /// The maximum length, in characters.
    pub const fn max_len(self) -> usize {
        match self {
            Self::Decimal => 20,
            Self::Hex => 16,
            Self::Base32 | Self::Base36 | Self::BwmarrinBase32 => 13,
            Self::Base58 | Self::Base62 | Self::BwmarrinBase58 => 11,
            Self::Uuid => UUID.len(),
        }
    }

    /// Returns true if every ID is written with `max_len` characters, so that the strings sort as their IDs
    /// do.
    pub const fn sorts(self) -> bool {
        matches!(self, Self::Base32 | Self::Base62 | Self::Uuid)
    }

    /// Writes `id`. Never fails, never allocates.
    pub fn write(self, mut id: u64) -> Text {
        let shortest = if self.sorts() { self.max_len() } else { 1 };
        let mut text = Text { bytes: [0; LONGEST], start: LONGEST };
        while LONGEST - text.start < shortest || id > 0 {
            let Some(start) = text.start.checked_sub(1) else { break };
            let digits = self.digits_at(start).as_bytes();
            let (above, digit) = self.split(id, digits.len() as u64);
            let digit = usize::try_from(digit).ok().and_then(|digit| digits.get(digit));
            if let (Some(place), Some(digit)) = (text.bytes.get_mut(start), digit) {
                *place = *digit;
            }
            text.start = start;
            id = above;
        }
        text
    }

    /// Splits off the last digit, and returns the rest and that digit. The divisors are constants, so each
    /// division compiles to a multiplication: on some processors, a division takes ten times as long.
    const fn split(self, id: u64, base: u64) -> (u64, u64) {
        match self {
            Self::Decimal => (id / 10, id % 10),
            Self::Hex => (id / 16, id % 16),
            // A power of two.
            Self::Uuid => (id >> base.trailing_zeros(), id & (base - 1)),
            Self::Base32 | Self::BwmarrinBase32 => (id / 32, id % 32),
            Self::Base36 => (id / 36, id % 36),
            Self::Base58 | Self::BwmarrinBase58 => (id / 58, id % 58),
            Self::Base62 => (id / 62, id % 62),
        }
    }

    /// Reads an ID.
    ///
    /// # Errors
    ///
    /// `invalid_id`, with the position (counted from 1) of the first character that is not a digit, is one
    /// too many, makes the number exceed 64 bits, or cannot occur there in any ID's `uuid`.
    pub fn read(self, text: &str) -> Result<u64, Error> {
        let mut id = 0_u64;
        let mut length = 0;
        for character in text.chars() {
            let digits = self.digits_at(length);
            length += 1;
            let Some(digit) = self.digit(digits, character) else {
                return Err(self.foreign(character, length));
            };
            if length > self.max_len() {
                return Err(self.too_long(length));
            }
            let next = id.checked_mul(digits.len() as u64).and_then(|id| id.checked_add(digit));
            id = next.ok_or_else(|| self.overflow(length))?;
        }
        if text.is_empty() {
            return Err(error!(InvalidId, "an empty string is not a % ID", Text(self.name())));
        }
        if self == Self::Uuid && length < UUID.len() {
            return Err(error!(
                InvalidId,
                "a % ID has % characters; this string has %",
                Text(self.name()),
                Number(UUID.len() as u64),
                Number(length as u64)
            ));
        }
        Ok(id)
    }

    /// The digits that are valid at `index`, in order of value. Their count is the base at that position.
    #[doc(hidden)]
    pub const fn digits_at(self, index: usize) -> &'static str {
        match self {
            Self::Uuid => uuid_digits(at(UUID, index)),
            _ => self.alphabet(),
        }
    }

    #[cold]
    fn foreign(self, character: char, position: usize) -> Error {
        const OF_UUID: &str = "`%` at position % is not the % of an ID's UUID; it takes %";
        let digits = self.digits_at(position - 1);
        let (template, part) = match digits {
            "-" => (OF_UUID, "hyphen"),
            "8" => (OF_UUID, "version"),
            "89ab" => (OF_UUID, "variant"),
            "0" | "048c" => (OF_UUID, "end"),
            _ => ("`%` at position % is not a % digit; the digits are %", self.name()),
        };
        let values = [
            Value::Given(OwnedWord::escaped(character)),
            Value::Number(position as u64),
            Value::Text(part),
            Value::Text(digits),
        ];
        Error::new(ErrorCode::InvalidId, template, &values)
    }

    #[cold]
    fn too_long(self, position: usize) -> Error {
        error!(
            InvalidId,
            "a % ID has at most % characters; there is another at position %",
            Text(self.name()),
            Number(self.max_len() as u64),
            Number(position as u64)
        )
    }

    #[cold]
    fn overflow(self, position: usize) -> Error {
        error!(
            InvalidId,
            "the % ID exceeds 64 bits (18446744073709551615) at position %",
            Text(self.name()),
            Number(position as u64)
        )
    }

    /// Returns the character that `character` is read as.
    #[doc(hidden)]
    pub const fn plain(self, character: char) -> char {
        match self {
            Self::Hex | Self::Base36 | Self::Uuid => character.to_ascii_lowercase(),
            Self::Base32 => match character.to_ascii_uppercase() {
                'I' | 'L' => '1',
                'O' => '0',
                other => other,
            },
            _ => character,
        }
    }

    fn digit(self, digits: &str, character: char) -> Option<u64> {
        let character = self.plain(character);
        digits.bytes().position(|digit| u32::from(digit) == u32::from(character)).map(|digit| digit as u64)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    /// Parses the format's name. Any other name returns `invalid_option`.
    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            error!(
                InvalidOption,
                "format is `%`; it takes decimal, hex, base32, base36, base58, base62, uuid, bwmarrin-base32 or \
                 bwmarrin-base58",
                Bytes(name.as_bytes())
            )
        })
    }
}

/// The characters of an ID's UUID. `x`, `v` and `r` hold the bits of the ID, from the highest down (see
/// [`uuid_digits`]), so that these UUIDs sort as the IDs do. The other 58 bits are 0, which is enough to tell
/// them from other UUIDs: few of those end this way.
const UUID: &[u8; LONGEST] = b"xxxxxxxx-xxxx-8xxx-vr00-000000000000";

/// The digits that are valid for this character of [`UUID`], in order of value. A character with only one
/// valid digit holds no bits of the ID.
const fn uuid_digits(place: Option<u8>) -> &'static str {
    match place {
        Some(b'-') => "-",
        Some(b'8') => "8",
        Some(b'0') => "0",
        // The two bits of the variant, which are 10, and two bits of the ID.
        Some(b'v') => "89ab",
        // The last two bits of the ID, and two zero bits.
        Some(b'r') => "048c",
        _ => Format::Hex.alphabet(),
    }
}

const LONGEST: usize = 36;

/// An ID written by [`Format::write`], stored without allocating. It derefs to `str`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Text {
    bytes: [u8; LONGEST],
    start: usize,
}

impl Text {
    /// The text.
    pub fn as_str(&self) -> &str {
        self.bytes.get(self.start..).and_then(|bytes| core::str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        self
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn texts_of_bwmarrins_snowflake() {
        // Written by v0.3.0 of that package.
        for (id, base32, base58) in [
            (0, "y", "1"),
            (31, "9", "x"),
            (32, "by", "y"),
            (57, "b3", "Z"),
            (58, "b4", "21"),
            (175_928_847_299_117_063, "rhegmmyoryy8", "pFLuuKMHer"),
            (1_541_815_603_606_036_480, "bk3pbd7tbxeyy", "4zzv4rZaYpj"),
            (2_124_685_436_520_722_960, "b49dgrs9wghoo", "5W3VRzXSrFo"),
            (9_223_372_036_854_775_807, "8999999999999", "npL6MjP8Qfc"),
        ] {
            assert_eq!(Format::BwmarrinBase32.write(id).as_str(), base32);
            assert_eq!(Format::BwmarrinBase58.write(id).as_str(), base58);
            assert_eq!(Format::BwmarrinBase32.read(base32), Ok(id));
            assert_eq!(Format::BwmarrinBase58.read(base58), Ok(id));
        }
        // These formats exist because another alphabet reads the same string as a different ID.
        assert_eq!(Format::Base58.read("5W3VRzXSrFo"), Ok(1_938_937_832_172_948_902));
        assert_eq!(Format::Base32.read("b49dgrs9wghoo"), Ok(12_836_860_678_745_113_600));
    }

    #[test]
    fn every_formats_name_is_in_the_error_that_lists_them() {
        let error = "base64".parse::<Format>().unwrap_err().to_string();
        let (_, listed) = error.split_once("it takes ").unwrap();
        assert_eq!(listed.replace(" or ", ", "), Format::ALL.map(Format::name).join(", "));
    }

    #[test]
    fn what_is_no_ids_uuid_is_refused_with_the_reason() {
        let digits = "is not a uuid digit; the digits are 0123456789abcdef";
        for (text, why) in [
            ("", "an empty string is not a uuid ID"),
            ("1565a11f-6217", "a uuid ID has 36 characters; this string has 13"),
            (
                "1565a11f-6217-8a00-8000-0000000000000",
                "a uuid ID has at most 36 characters; there is another at position 37",
            ),
            (
                "919108f7-52d1-4320-9bac-f847db4148a8",
                "`4` at position 15 is not the version of an ID's UUID; it takes 8",
            ),
            (
                "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
                "`7` at position 15 is not the version of an ID's UUID; it takes 8",
            ),
            (
                "1565a11f-6217-8a00-C000-000000000000",
                "`C` at position 20 is not the variant of an ID's UUID; it takes 89ab",
            ),
            (
                "1565a11f-6217-8a00-8d00-000000000000",
                "`d` at position 21 is not the end of an ID's UUID; it takes 048c",
            ),
            (
                "1565a11f-6217-8a00-8000-00000000000B",
                "`B` at position 36 is not the end of an ID's UUID; it takes 0",
            ),
            (
                "1565a11f62178a008000000000000000",
                "`6` at position 9 is not the hyphen of an ID's UUID; it takes -",
            ),
            ("{1565a11f-6217-8a00-8000-000000000000}", &std::format!("`{{` at position 1 {digits}")),
        ] {
            let error = Format::Uuid.read(text).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidId);
            assert_eq!(error.to_string(), std::format!("invalid_id: {why}"));
        }
    }
}
