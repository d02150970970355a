//! The key of public IDs, and its text.

use core::fmt;

use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::base62;
use crate::error::{Error, error};
use crate::number::Number;

/// What a key's text begins with, so that people and scanners know it for a secret.
const START: &[u8; 4] = b"pfk_";

/// A key of [`PublicIds`](crate::PublicIds): 16 random bytes, and a number from 0 to 61 that texts name it by.
///
/// It is a secret, so nothing prints it: `Debug` shows the number, errors show none of it, and there is no `Display`. It
/// is wiped from memory when it is dropped. (Moving a value may leave bytes where it was: keep it where it is made.)
pub struct PublicIdKey {
    bytes: [u8; 16],
    number: u8,
}

impl PublicIdKey {
    /// The highest number of a key.
    pub const MAX_NUMBER: u8 = 61;

    /// From a number, and bytes from a random generator that is made for secrets.
    ///
    /// # Errors
    ///
    /// `invalid_option` if the number is not from 0 to 61, or all bytes are 0.
    pub fn new(number: impl Into<Number>, bytes: [u8; 16]) -> Result<Self, Error> {
        let bytes = Zeroizing::new(bytes);
        let number = number.into().in_range("number", 0, Self::MAX_NUMBER.into())?;
        Self::checked(crate::word::narrow(usize::try_from(number).unwrap_or_default()), &bytes)
    }

    /// A new key, from the operating system's random generator.
    ///
    /// # Errors
    ///
    /// `invalid_option` if the number is not from 0 to 61; `internal` if the system has no random bytes.
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
    /// `invalid_option`, with what is wrong but nothing of the text.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::read(text, 1)
    }

    /// Reads the text that has this place among others, counted from 1.
    pub(super) fn read(text: &str, place: u64) -> Result<Self, Error> {
        let Some(digits) = text.as_bytes().strip_prefix(START) else {
            return Err(error!(
                InvalidOption,
                "keys: text % does not begin with `pfk_`; a key is `pfk_` and 23 base62 digits",
                Number(place)
            ));
        };
        // No branch depends on the digits of a valid key: its time would reveal them.
        if let Ok([number, digits @ ..]) = <&[u8; 1 + base62::DIGITS]>::try_from(digits) {
            if let (Some(number), Some(value)) = (base62::value(*number), base62::read(digits)) {
                return Self::checked(number, &Zeroizing::new(value.to_be_bytes()));
            }
        }
        Err(Self::refusal(text, digits.len(), place))
    }

    /// What is wrong after `pfk_`.
    #[cold]
    fn refusal(text: &str, digits: usize, place: u64) -> Error {
        let after_start = 1 + START.len() as u64;
        for (character, position) in text.chars().skip(START.len()).zip(after_start..) {
            if !character.is_ascii_alphanumeric() {
                return error!(
                    InvalidOption,
                    "keys: position % of text % is not a base62 digit; a key is `pfk_` and 23 of them",
                    Number(position),
                    Number(place)
                );
            }
        }
        if digits != 1 + base62::DIGITS {
            return error!(
                InvalidOption,
                "keys: text % has % base62 digits; a key is `pfk_` and 23 of them",
                Number(place),
                Number(digits as u64)
            );
        }
        error!(
            InvalidOption,
            "keys: the last 22 digits of text % exceed 128 bits; make a key with `polyflake public key`",
            Number(place)
        )
    }

    fn checked(number: u8, bytes: &[u8; 16]) -> Result<Self, Error> {
        // AES has no weak keys. This one is a generator that failed, or a placeholder.
        if bool::from(bytes.ct_eq(&[0; 16])) {
            return Err(error!(
                InvalidOption,
                "the bytes of key % are all 0; a key has 16 random bytes",
                Number(number.into())
            ));
        }
        Ok(Self { bytes: *bytes, number })
    }

    /// That the two can be told apart.
    pub(super) fn check_beside(&self, before: &Self) -> Result<(), Error> {
        if self.number == before.number {
            return Err(error!(
                InvalidOption,
                "two keys have the number %; a text names its key by the number",
                Number(self.number.into())
            ));
        }
        // Or each ID would have two texts that decode, one made from the other.
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

    /// The text, to be kept where secrets are.
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
    /// The number.
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

/// The text of a [`PublicIdKey`]. It is wiped from memory when it is dropped, and `Debug` does not show it.
pub struct PublicIdKeyText([u8; Self::LEN]);

impl PublicIdKeyText {
    /// How many characters it has.
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

/// The keys in a text that has several.
pub(super) fn split(texts: &str) -> impl Iterator<Item = &str> {
    texts
        .split(|character: char| character.is_whitespace() || character == ',')
        .filter(|text| !text.is_empty())
}
