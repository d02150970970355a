//! The key for public IDs, and its text form.

use core::fmt;

use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::base62;
use crate::error::{Error, error};
use crate::number::Number;

/// The beginning of a key's text, by which people and scanners recognize it as a secret.
const START: &[u8; 4] = b"pfk_";

/// A key for [`PublicIds`](crate::PublicIds): 16 random bytes, and a number from 0 to 61 that identifies the
/// key in public IDs.
///
/// A key is secret, so nothing prints it: `Debug` shows only the number, errors do not show the key, and
/// there is no `Display`. Dropping it wipes it from memory. (Moving a value may leave bytes behind, so keep
/// it where it was created.)
pub struct PublicIdKey {
    bytes: [u8; 16],
    number: u8,
}

impl PublicIdKey {
    /// The highest number that a key can have.
    pub const MAX_NUMBER: u8 = 61;

    /// Creates a key from a number and 16 bytes from a cryptographic random generator.
    ///
    /// # Errors
    ///
    /// `invalid_option` if the number is not in the range 0 to 61, or if all bytes are 0.
    pub fn new(number: impl Into<Number>, bytes: [u8; 16]) -> Result<Self, Error> {
        let bytes = Zeroizing::new(bytes);
        let number = number.into().in_range("number", 0, Self::MAX_NUMBER.into())?;
        Self::checked(crate::word::narrow(usize::try_from(number).unwrap_or_default()), &bytes)
    }

    /// Creates a key with the operating system's random generator.
    ///
    /// # Errors
    ///
    /// `invalid_option` if the number is not in the range 0 to 61, or `internal` if the system cannot provide
    /// random bytes.
    #[cfg(all(feature = "std", any(unix, windows)))]
    pub fn generate(number: impl Into<Number>) -> Result<Self, Error> {
        let mut bytes = Zeroizing::new([0; 16]);
        getrandom::fill(&mut *bytes).map_err(|error| {
            error!(
                Internal,
                "the operating system gave no random bytes: %",
                Os(error.raw_os_error().unwrap_or_default())
            )
        })?;
        Self::new(number, *bytes)
    }

    /// Reads `pfk_`, the number as a base62 digit, and the bytes as 22 base62 digits.
    ///
    /// # Errors
    ///
    /// `invalid_option`. The message says what is wrong, but shows none of the text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::read(text, 1)
    }

    /// Reads one of several keys. `place` is its position, counting from 1.
    pub(super) fn read(text: &str, place: u64) -> Result<Self, Error> {
        let Some(digits) = text.as_bytes().strip_prefix(START) else {
            return Err(error!(
                InvalidOption,
                "keys: string % does not begin with `pfk_`; a key is `pfk_` and 23 base62 digits",
                Number(place)
            ));
        };
        // No branch depends on the digits of a valid key, because the timing would reveal them.
        if let Ok([number, digits @ ..]) = <&[u8; 1 + base62::DIGITS]>::try_from(digits) {
            if let (Some(number), Some(value)) = (base62::value(*number), base62::read(digits)) {
                return Self::checked(number, &Zeroizing::new(value.to_be_bytes()));
            }
        }
        Err(Self::refusal(text, digits.len(), place))
    }

    /// Returns the error for invalid text after `pfk_`.
    #[cold]
    fn refusal(text: &str, digits: usize, place: u64) -> Error {
        let after_start = 1 + START.len() as u64;
        for (character, position) in text.chars().skip(START.len()).zip(after_start..) {
            if !character.is_ascii_alphanumeric() {
                return error!(
                    InvalidOption,
                    "keys: position % of string % is not a base62 digit; a key is `pfk_` and 23 of them",
                    Number(position),
                    Number(place)
                );
            }
        }
        if digits != 1 + base62::DIGITS {
            return error!(
                InvalidOption,
                "keys: string % has % base62 digits; a key is `pfk_` and 23 of them",
                Number(place),
                Number(digits as u64)
            );
        }
        error!(
            InvalidOption,
            "keys: the last 22 digits of string % exceed 128 bits; make a key with `polyflake public key`",
            Number(place)
        )
    }

    fn checked(number: u8, bytes: &[u8; 16]) -> Result<Self, Error> {
        // AES has no weak keys, but all zeros means a broken generator or a placeholder.
        if bool::from(bytes.ct_eq(&[0; 16])) {
            return Err(error!(
                InvalidOption,
                "the bytes of key % are all 0; a key has 16 random bytes",
                Number(number.into())
            ));
        }
        Ok(Self { bytes: *bytes, number })
    }

    /// Checks that the two keys can be told apart.
    pub(super) fn check_beside(&self, before: &Self) -> Result<(), Error> {
        if self.number == before.number {
            return Err(error!(
                InvalidOption,
                "two keys have the number %; a public ID refers to its key by number",
                Number(self.number.into())
            ));
        }
        // Otherwise, each ID would have two strings that decode to it, and one could be derived from the
        // other.
        if bool::from(self.bytes.ct_eq(&before.bytes)) {
            return Err(error!(
                InvalidOption,
                "keys % and % have the same bytes; give each key its own",
                Number(before.number.into()),
                Number(self.number.into())
            ));
        }
        Ok(())
    }

    /// The number.
    pub const fn number(&self) -> u8 {
        self.number
    }

    pub(super) const fn bytes(&self) -> &[u8; 16] {
        &self.bytes
    }

    /// The key's text. Store it as a secret.
    pub fn to_text(&self) -> PublicIdKeyText {
        let mut bytes = [0; PublicIdKeyText::LEN];
        let digits = Zeroizing::new(base62::write(u128::from_be_bytes(self.bytes)));
        let number = [base62::digit(self.number.into())];
        for (place, digit) in bytes.iter_mut().zip(START.iter().chain(&number).chain(&*digits)) {
            *place = *digit;
        }
        PublicIdKeyText(bytes)
    }
}

impl fmt::Debug for PublicIdKey {
    /// Shows only the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicIdKey").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Drop for PublicIdKey {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}

impl ZeroizeOnDrop for PublicIdKey {}

/// The text of a [`PublicIdKey`]. Dropping it wipes it from memory, and `Debug` does not show it.
pub struct PublicIdKeyText([u8; Self::LEN]);

impl PublicIdKeyText {
    /// The number of characters.
    pub const LEN: usize = START.len() + 1 + base62::DIGITS;

    /// The text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Debug for PublicIdKeyText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PublicIdKeyText(..)")
    }
}

impl Drop for PublicIdKeyText {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for PublicIdKeyText {}

/// Splits a string that holds several keys.
pub(super) fn split(texts: &str) -> impl Iterator<Item = &str> {
    texts
        .split(|character: char| character.is_whitespace() || character == ',')
        .filter(|text| !text.is_empty())
}
