//! IDs as text, in the formats of the field.

use core::fmt;
use core::ops::Deref;
use core::str::FromStr;

use crate::error::{Error, error};
use crate::word::OwnedWord;

/// A way to write an ID as text.
///
/// | format | digits | written | reads |
/// |---|---|---|---|
/// | `decimal` | 0-9 | 1 to 20 digits | the same |
/// | `hex` | 0-9a-f | 1 to 16 digits | both cases |
/// | `base32` | Crockford: 0-9A-Z without I L O U | always 13 digits: sorts as the IDs do | both cases, I and L as 1, O as 0 |
/// | `base36` | 0-9a-z | 1 to 13 digits | both cases |
/// | `base58` | Bitcoin: 1-9A-Za-z without I O l | 1 to 11 digits | the same |
/// | `base62` | 0-9A-Za-z | always 11 digits: sorts as the IDs do | the same |
///
/// Reading takes fewer digits too, and leading zeros up to the format's longest text.
///
/// ```
/// use polyflake::Format;
/// assert_eq!(Format::Base32.write(38358284406638839).as_str(), "01226N0640J7Q");
/// assert_eq!(Format::Base32.read("o1226n0640j7q")?, 38358284406638839);
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
    /// Crockford's base 32, 13 digits.
    Base32,
    /// Digits 0-9a-z.
    Base36,
    /// Bitcoin's base 58.
    Base58,
    /// Digits 0-9A-Za-z, 11 of them.
    Base62,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 6] =
        [Self::Decimal, Self::Hex, Self::Base32, Self::Base36, Self::Base58, Self::Base62];

    /// The format's name, such as `base32`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decimal => "decimal",
            Self::Hex => "hex",
            Self::Base32 => "base32",
            Self::Base36 => "base36",
            Self::Base58 => "base58",
            Self::Base62 => "base62",
        }
    }

    /// The digits, from 0 up.
    pub const fn alphabet(self) -> &'static str {
        match self {
            Self::Decimal => "0123456789",
            Self::Hex => "0123456789abcdef",
            // https://www.crockford.com/base32.html
            Self::Base32 => "0123456789ABCDEFGHJKMNPQRSTVWXYZ",
            Self::Base36 => "0123456789abcdefghijklmnopqrstuvwxyz",
            // https://datatracker.ietf.org/doc/html/draft-msporny-base58-03
            Self::Base58 => "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
            Self::Base62 => "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        }
    }

    /// How many characters the longest ID takes.
    pub const fn max_len(self) -> usize {
        match self {
            Self::Decimal => 20,
            Self::Hex => 16,
            Self::Base32 | Self::Base36 => 13,
            Self::Base58 | Self::Base62 => 11,
        }
    }

    /// Whether every ID is written with all `max_len` digits, so that texts sort as their IDs do.
    pub const fn sorts(self) -> bool {
        matches!(self, Self::Base32 | Self::Base62)
    }

    /// Writes `id`. Never fails, never allocates.
    pub fn write(self, mut id: u64) -> Text {
        let digits = self.alphabet().as_bytes();
        let shortest = if self.sorts() { self.max_len() } else { 1 };
        let mut text = Text { bytes: [0; LONGEST], start: LONGEST };
        while LONGEST - text.start < shortest || id > 0 {
            let Some(start) = text.start.checked_sub(1) else { break };
            let (above, digit) = self.split(id);
            let digit = usize::try_from(digit).ok().and_then(|digit| digits.get(digit));
            if let (Some(place), Some(digit)) = (text.bytes.get_mut(start), digit) {
                *place = *digit;
            }
            text.start = start;
            id = above;
        }
        text
    }

    /// What is above the last digit, and that digit. By constants, which processors do with a multiplication: a division
    /// takes ten times as long on some.
    const fn split(self, id: u64) -> (u64, u64) {
        match self {
            Self::Decimal => (id / 10, id % 10),
            Self::Hex => (id / 16, id % 16),
            Self::Base32 => (id / 32, id % 32),
            Self::Base36 => (id / 36, id % 36),
            Self::Base58 => (id / 58, id % 58),
            Self::Base62 => (id / 62, id % 62),
        }
    }

    /// Reads an ID.
    ///
    /// # Errors
    ///
    /// `invalid_id`, with the position (counted from 1) of the first character that is not a digit, is one too many,
    /// or takes the number past 64 bits.
    pub fn read(self, text: &str) -> Result<u64, Error> {
        let base = self.alphabet().len() as u64;
        let mut id = 0_u64;
        for (index, character) in text.chars().enumerate() {
            let position = index + 1;
            let Some(digit) = self.digit(character) else { return Err(self.foreign(character, position)) };
            if position > self.max_len() {
                return Err(self.too_long(position));
            }
            let next = id.checked_mul(base).and_then(|id| id.checked_add(digit));
            id = next.ok_or_else(|| self.overflow(position))?;
        }
        if text.is_empty() {
            return Err(error!(InvalidId, "an empty text is not a % ID", Text(self.name())));
        }
        Ok(id)
    }

    #[cold]
    fn foreign(self, character: char, position: usize) -> Error {
        error!(
            InvalidId,
            "`%` at position % is not a % digit; the digits are %",
            Given(escaped(character)),
            Number(position as u64),
            Text(self.name()),
            Text(self.alphabet())
        )
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
            "the % ID passes 64 bits (18446744073709551615) at position %",
            Text(self.name()),
            Number(position as u64)
        )
    }

    fn digit(self, character: char) -> Option<u64> {
        let character = match self {
            Self::Hex | Self::Base36 => character.to_ascii_lowercase(),
            Self::Base32 => match character.to_ascii_uppercase() {
                'I' | 'L' => '1',
                'O' => '0',
                other => other,
            },
            _ => character,
        };
        self.alphabet().chars().position(|digit| digit == character).map(|digit| digit as u64)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    /// Reads the format's name. Any other name is `invalid_option`.
    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            error!(
                InvalidOption,
                "format is `%`; it takes decimal, hex, base32, base36, base58 or base62",
                Bytes(name.as_bytes())
            )
        })
    }
}

/// A character as it is if it can be told from others, else as its number, such as `\u{200b}`.
fn escaped(character: char) -> OwnedWord {
    if character.is_ascii_graphic() || character == ' ' {
        OwnedWord::new(character.encode_utf8(&mut [0; 4]).as_bytes())
    } else {
        let mut escaped = OwnedWord::EMPTY;
        character
            .escape_unicode()
            .for_each(|letter| escaped.push(letter.encode_utf8(&mut [0; 4]).as_bytes()));
        escaped
    }
}

const LONGEST: usize = 20;

/// An ID written by [`Format::write`]: text without an allocation. It derefs to `str`.
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
