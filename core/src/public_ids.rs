//! Public strings that hide an ID, and that can be decoded without a lookup table.
//!
//! An ID and a tag derived from its prefix form a 16-byte block, which is encrypted with AES-128. Therefore:
//!
//! - AES is a permutation: for a given key and prefix, an ID has exactly one string, and no two IDs share a
//!   string. The strings of consecutive IDs look unrelated. Equal IDs intentionally have equal strings. A
//!   string reveals only this equality, its prefix and its key's number.
//! - Changing any bit of the string yields a different block, whose tag is correct with a probability of
//!   2^-64, so nobody can alter a string. A single block needs no mode, no nonce and no separate MAC. The
//!   key's number is outside the block. If it is changed, a different key decrypts the block, again yielding
//!   a random block. This is why no two key numbers may have the same key.
//! - The cipher's key and the tag are derived from the caller's key with AES-CMAC, a pseudo-random function,
//!   applied to messages that begin differently. Neither reveals the other, and Polyflake can use the
//!   caller's key for other purposes with other messages.
//! - The prefix affects the tag, not the cipher's key. One key schedule therefore serves all prefixes of a
//!   key, and a string whose prefix was replaced has the wrong tag.
//! - Strings have a fixed width, each digit has one value, and numbers of 2^128 or more are rejected, so
//!   under one key no two strings decode to the same ID.
//!
//! Operations on secrets run in constant time: the cipher (the `aes` crate uses the processor's instructions,
//! or bit-slicing without tables), the digits of a key (arithmetic, no table), and the comparison of tags
//! (`subtle`). All other operations depend only on the strings, which are public.

mod base62;
mod key;

use core::fmt;
use core::ops::Deref;

use aes::Aes128;
use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use cmac::{Cmac, Mac};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::error::{Error, error};
use crate::word::{Digits, OwnedWord};
pub use key::{PublicIdKey, PublicIdKeyText};

/// Turns IDs into public strings, and back.
///
/// `order_15ShV2…` hides when an ID was issued, which node issued it, and how many IDs there are. With the
/// key, the string can be decoded without a lookup table. The string does not authorize anyone, because it
/// can be passed on.
///
/// The string consists of the prefix, `_`, the key's number as a base62 digit, and 22 more base62 digits.
/// Without a prefix, the `_` is omitted.
///
/// ```
/// use polyflake::PublicIds;
/// // Made by `polyflake public key`. Keep yours in a file or a secret store, not in the source.
/// let orders = PublicIds::from_texts(&["pfk_10kvEGTqNtUTXFUlMnM4wIa"], "order")?;
/// let text = orders.encode(1541815603606036480);
/// assert_eq!(text.as_str(), "order_15ShV20Bxc6UJvKSQbDvo0J");
/// assert_eq!(orders.decode(&text)?, 1541815603606036480);
///
/// let refused = orders.decode("user_15ShV20Bxc6UJvKSQbDvo0J").unwrap_err();
/// assert_eq!(refused.to_string(), "invalid_id: the string's prefix is `user`; it takes `order`");
/// # Ok::<(), polyflake::Error>(())
/// ```
///
/// The first key is used for encoding, and every key for decoding. To rotate keys, first append the new key
/// in every process, so that all of them can decode its strings. Then move it to the front:
///
/// ```
/// # use polyflake::{PublicIdKey, PublicIds};
/// let old = PublicIdKey::new(0, *b"sixteen bytes, 0")?;
/// let new = PublicIdKey::new(1, *b"sixteen bytes, 1")?;
/// let text = PublicIds::new(&[old], "order")?.encode(7);
/// # let old = PublicIdKey::new(0, *b"sixteen bytes, 0")?;
/// let orders = PublicIds::new(&[new, old], "order")?;
/// assert_eq!(orders.decode(&text)?, 7);
/// assert_ne!(orders.encode(7), text);
/// # Ok::<(), polyflake::Error>(())
/// ```
///
/// Building and using `PublicIds` does not allocate. A `PublicIds` takes a few KiB, so share it between
/// threads. Dropping it wipes the keys from memory.
pub struct PublicIds {
    /// The beginning of every string: the prefix, `_`, and the first key's number.
    head: PublicText,
    first: Keyed,
    /// The keys used only for decoding.
    rest: [Option<Keyed>; PublicIds::MAX_KEYS - 1],
}

impl PublicIds {
    /// The maximum number of keys. Each takes a few hundred bytes, because its cipher is prepared once and
    /// kept.
    pub const MAX_KEYS: usize = 16;
    /// The maximum number of characters in a prefix.
    pub const MAX_PREFIX: usize = 24;

    /// Creates the encoder. The first key is used for encoding, and every key for decoding. The prefix is
    /// empty, or consists of words made of a-z and 0-9, joined by `_`. The first word begins with a letter.
    ///
    /// # Errors
    ///
    /// `invalid_option` if `keys` is empty or has more than [`MAX_KEYS`](Self::MAX_KEYS) keys, if two keys
    /// have the same number or the same bytes, or if the prefix has any other form or is `pfk`, the prefix of
    /// every key. Errors never show a key.
    pub fn new(keys: &[PublicIdKey], prefix: &str) -> Result<Self, Error> {
        Self::build(&keys.iter(), prefix)
    }

    /// Like [`new`](Self::new), but with keys as strings. A string may hold several keys, separated by
    /// whitespace or commas, as in a file or an environment variable.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new) and [`PublicIdKey::parse`].
    pub fn from_texts<T: AsRef<str>>(texts: &[T], prefix: &str) -> Result<Self, Error> {
        let mut keys = [const { None }; Self::MAX_KEYS];
        let mut places = keys.iter_mut();
        let mut count = 0;
        for text in texts.iter().flat_map(|texts| key::split(texts.as_ref())) {
            count += 1;
            let key = PublicIdKey::read(text, count)?;
            if let Some(place) = places.next() {
                *place = Some(key);
            }
        }
        if count > Self::MAX_KEYS as u64 {
            return Err(too_many_keys(count));
        }
        Self::build(&keys.iter().flatten(), prefix)
    }

    fn build<'a>(
        keys: &(impl Iterator<Item = &'a PublicIdKey> + Clone),
        prefix: &str,
    ) -> Result<Self, Error> {
        for (index, key) in keys.clone().enumerate() {
            keys.clone().take(index).try_for_each(|before| key.check_beside(before))?;
        }
        let count = keys.clone().count();
        if count > Self::MAX_KEYS {
            return Err(too_many_keys(count as u64));
        }
        let mut derived = keys.clone();
        let Some(first) = derived.next() else {
            return Err(error!(
                InvalidOption,
                "keys is empty; it takes 1 to % keys, each `pfk_` and % base62 digits",
                Number(Self::MAX_KEYS as u64),
                Number(PublicText::DIGITS as u64)
            ));
        };
        check_prefix(prefix)?;
        let mut head = PublicText::EMPTY;
        head.push(prefix.as_bytes());
        if !prefix.is_empty() {
            head.push(b"_");
        }
        head.push(&[base62::digit(first.number().into())]);
        let derive = |key| Keyed::derive(key, prefix);
        let mut rest = [const { None }; Self::MAX_KEYS - 1];
        for (place, key) in rest.iter_mut().zip(derived) {
            *place = Some(derive(key));
        }
        Ok(Self { head, first: derive(first), rest })
    }

    /// Returns the public string for an ID, which can be any 64-bit number. Never fails, never allocates.
    pub fn encode(&self, id: u64) -> PublicText {
        let mut text = self.head;
        text.push(&base62::write(self.first.encipher(id)));
        text
    }

    /// Returns the ID that a public string encodes.
    ///
    /// A string that was not made by [`encode`](Self::encode) with this prefix and one of these keys is
    /// accepted with a probability of 2^-64.
    ///
    /// # Errors
    ///
    /// `invalid_id`. The message says what is wrong: a different prefix; a character that is not a base62
    /// digit, with its position; too few or too many digits; an unknown key; more than 128 bits; or just that
    /// the string is not an ID with this prefix under these keys.
    pub fn decode(&self, text: &str) -> Result<u64, Error> {
        let digits = text.as_bytes().strip_prefix(self.start());
        let Some((number, digits)) = digits.and_then(<[u8]>::split_first) else {
            return Err(self.refusal(text));
        };
        let Some(value) = digits.try_into().ok().and_then(base62::read) else {
            return Err(self.refusal(text));
        };
        let key = base62::value(*number).and_then(|number| self.keys().find(|key| key.number == number));
        key.and_then(|key| key.decipher(value)).ok_or_else(|| self.refusal(text))
    }

    /// The prefix.
    pub fn prefix(&self) -> &str {
        let start = self.start();
        let prefix = start.split_last().map_or(start, |(_, prefix)| prefix);
        core::str::from_utf8(prefix).unwrap_or_default()
    }

    /// The keys' numbers. The first key is used for encoding.
    pub fn key_numbers(&self) -> impl Iterator<Item = u8> + '_ {
        self.keys().map(|key| key.number)
    }

    /// The prefix with its `_`.
    fn start(&self) -> &[u8] {
        let head = self.head.bytes();
        head.split_last().map_or(head, |(_, start)| start)
    }

    fn keys(&self) -> impl Iterator<Item = &Keyed> {
        core::iter::once(&self.first).chain(self.rest.iter().map_while(Option::as_ref))
    }

    /// Returns the reason a string is not an ID. The error shows only a prefix or a character, since the
    /// caller may have passed a key by mistake.
    #[cold]
    fn refusal(&self, text: &str) -> Error {
        let prefix = self.prefix();
        let start = core::str::from_utf8(self.start()).unwrap_or_default();
        let given = text.rsplit_once('_').map(|(given, _)| given).filter(|given| is_prefix(given));
        if let Some(given) = given.filter(|given| *given != prefix) {
            if prefix.is_empty() {
                return error!(InvalidId, "the string's prefix is `%`; it takes none", Text(given));
            }
            return error!(InvalidId, "the string's prefix is `%`; it takes `%`", Text(given), Text(prefix));
        }
        let Some(digits) = text.strip_prefix(start) else {
            return error!(InvalidId, "the string does not begin with `%`", Text(start));
        };
        for (character, position) in digits.chars().zip(1_u64..) {
            if !character.is_ascii_alphanumeric() {
                return error!(
                    InvalidId,
                    "`%` at position % is not a base62 digit; the digits are %",
                    Given(OwnedWord::escaped(character)),
                    Number(position + start.len() as u64),
                    Text(crate::text::Format::Base62.alphabet())
                );
            }
        }
        if digits.len() != PublicText::DIGITS {
            return error!(
                InvalidId,
                "a public ID has % digits after its prefix; this string has %",
                Number(PublicText::DIGITS as u64),
                Number(digits.len() as u64)
            );
        }
        let (number, value) = digits.as_bytes().split_first().unwrap_or((&0, &[]));
        let number = base62::value(*number).unwrap_or_default();
        if !self.key_numbers().any(|known| known == number) {
            let mut known = OwnedWord::<{ "00, ".len() * Self::MAX_KEYS }>::EMPTY;
            for (number, separator) in
                self.key_numbers().zip(core::iter::once("").chain(core::iter::repeat(", ")))
            {
                known.push(Digits::of(number.into()).owned(separator).word().bytes());
            }
            return error!(
                InvalidId,
                "the string was encoded with key %, which is not given; the given keys are %",
                Number(number.into()),
                Word(known.word())
            );
        }
        if value.try_into().ok().and_then(base62::read).is_none() {
            return error!(
                InvalidId,
                "the last % digits exceed 128 bits (%)",
                Number(base62::DIGITS as u64),
                Text(base62::HIGHEST)
            );
        }
        if prefix.is_empty() {
            return error!(InvalidId, "the string is not an ID without a prefix under these keys");
        }
        error!(InvalidId, "the string is not an ID with prefix `%` under these keys", Text(prefix))
    }
}

impl fmt::Debug for PublicIds {
    /// Shows the prefix and the keys' numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Numbers<'a>(&'a PublicIds);
        impl fmt::Debug for Numbers<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_list().entries(self.0.key_numbers()).finish()
            }
        }
        f.debug_struct("PublicIds").field("prefix", &self.prefix()).field("keys", &Numbers(self)).finish()
    }
}

impl ZeroizeOnDrop for PublicIds {}

fn too_many_keys(count: u64) -> Error {
    error!(InvalidOption, "keys has %; it takes 1 to %", Number(count), Number(PublicIds::MAX_KEYS as u64))
}

/// An invalid prefix of at least this length may be part of a key.
const SHORTEST_PART_OF_A_KEY: usize = 16;

fn check_prefix(prefix: &str) -> Result<(), Error> {
    // The caller may have swapped the keys and the prefix.
    if prefix.contains("pfk_") || prefix == "pfk" {
        return Err(error!(
            InvalidOption,
            "prefix has `pfk`, which keys begin with; take another, such as `order`"
        ));
    }
    if prefix.is_empty() || is_prefix(prefix) {
        return Ok(());
    }
    if prefix.len() >= SHORTEST_PART_OF_A_KEY {
        return Err(error!(
            InvalidOption,
            "prefix has % bytes; it is not shown here, since it may be a key; it takes at most % characters: words of a-z \
             and 0-9 joined by _, a letter first",
            Number(prefix.len() as u64),
            Number(PublicIds::MAX_PREFIX as u64)
        ));
    }
    Err(error!(
        InvalidOption,
        "prefix is `%`; it takes at most % characters: words of a-z and 0-9 joined by _, a letter first",
        Bytes(prefix.as_bytes()),
        Number(PublicIds::MAX_PREFIX as u64)
    ))
}

fn is_prefix(text: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    text.len() <= PublicIds::MAX_PREFIX
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.split('_').all(is_word)
}

/// The cipher and the tag derived from a key and a prefix.
struct Keyed {
    cipher: Aes128,
    tag: u64,
    number: u8,
}

impl Keyed {
    fn derive(key: &PublicIdKey, prefix: &str) -> Self {
        let cmac = |message: &str, prefix: &str| -> Zeroizing<[u8; 16]> {
            let mut cmac = <Cmac<Aes128> as KeyInit>::new(key.bytes().into());
            cmac.update(message.as_bytes());
            cmac.update(prefix.as_bytes());
            Zeroizing::new(cmac.finalize().into_bytes().into())
        };
        let cipher = Aes128::new((&*cmac("polyflake public id encryption", "")).into());
        let tag = high(u128::from_be_bytes(*cmac("polyflake public id tag ", prefix)));
        Self { cipher, tag, number: key.number() }
    }

    fn encipher(&self, id: u64) -> u128 {
        let block = (u128::from(id) << 64) | u128::from(self.tag);
        let mut block = Array::from(block.to_be_bytes());
        self.cipher.encrypt_block(&mut block);
        u128::from_be_bytes(block.into())
    }

    fn decipher(&self, value: u128) -> Option<u64> {
        let mut block = Array::from(value.to_be_bytes());
        self.cipher.decrypt_block(&mut block);
        let block = u128::from_be_bytes(block.into());
        bool::from(low(block).ct_eq(&self.tag)).then_some(high(block))
    }
}

impl Drop for Keyed {
    fn drop(&mut self) {
        // The cipher wipes itself.
        self.tag.zeroize();
    }
}

const fn high(block: u128) -> u64 {
    (block >> 64) as u64
}

#[expect(clippy::cast_possible_truncation, reason = "only the lower half is wanted")]
const fn low(block: u128) -> u64 {
    block as u64
}

/// A string returned by [`PublicIds::encode`], stored without allocating. It derefs to `str`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicText {
    bytes: [u8; Self::MAX_LEN],
    len: u8,
}

impl PublicText {
    /// The key's number and the block's digits.
    const DIGITS: usize = 1 + base62::DIGITS;
    /// The maximum number of characters in the string.
    pub const MAX_LEN: usize = PublicIds::MAX_PREFIX + "_".len() + Self::DIGITS;
    const EMPTY: Self = Self { bytes: [0; Self::MAX_LEN], len: 0 };

    /// The text.
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(self.bytes()).unwrap_or_default()
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len.into()).unwrap_or_default()
    }

    fn push(&mut self, more: &[u8]) {
        let start = usize::from(self.len);
        if let Some(place) = self.bytes.get_mut(start..start + more.len()) {
            place.copy_from_slice(more);
            self.len = crate::word::narrow(start + more.len());
        }
    }
}

impl Deref for PublicText {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for PublicText {
    fn as_ref(&self) -> &str {
        self
    }
}

impl fmt::Display for PublicText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for PublicText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;
    use std::string::{String, ToString};

    const KEYS: [&str; 2] = ["pfk_10kvEGTqNtUTXFUlMnM4wIa", "pfk_03KxYVLQeEpWyLpNnYpNeDo"];

    fn orders() -> PublicIds {
        PublicIds::from_texts(&KEYS, "order").unwrap()
    }

    fn message<T>(result: Result<T, Error>) -> String {
        result.map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn what_is_no_public_id_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "the string does not begin with `order_`"),
            ("order", "the string does not begin with `order_`"),
            ("15ShV20Bxc6UJvKSQbDvo0J", "the string does not begin with `order_`"),
            ("Order_15ShV20Bxc6UJvKSQbDvo0J", "the string does not begin with `order_`"),
            (" order_15ShV20Bxc6UJvKSQbDvo0J", "the string does not begin with `order_`"),
            ("user_15ShV20Bxc6UJvKSQbDvo0J", "the string's prefix is `user`; it takes `order`"),
            ("order_x_15ShV20Bxc6UJvKSQbDvo0J", "the string's prefix is `order_x`; it takes `order`"),
            ("order_", "a public ID has 23 digits after its prefix; this string has 0"),
            (
                "order_15ShV20Bxc6UJvKSQbDvo0",
                "a public ID has 23 digits after its prefix; this string has 22",
            ),
            (
                "order_15ShV20Bxc6UJvKSQbDvo0J0",
                "a public ID has 23 digits after its prefix; this string has 24",
            ),
            (
                "order_15ShV20Bxc6UJvKSQbDvo0\u{200b}",
                "`\\u{200b}` at position 29 is not a base62 digit; the digits are \
                 0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            ),
            (
                "order_B5ShV20Bxc6UJvKSQbDvo0J",
                "the string was encoded with key 11, which is not given; the given keys are 1, 0",
            ),
            ("order_17n42DGM5Tflk9n8mt7Fhc8", "the last 22 digits exceed 128 bits (7n42DGM5Tflk9n8mt7Fhc7)"),
            ("order_05ShV20Bxc6UJvKSQbDvo0J", "the string is not an ID with prefix `order` under these keys"),
            ("order_15ShV20Bxc6UJvKSQbDvo0K", "the string is not an ID with prefix `order` under these keys"),
        ] {
            assert_eq!(message(orders().decode(text)), format!("invalid_id: {why}"));
        }
        let bare = PublicIds::from_texts(&KEYS, "").unwrap();
        assert_eq!(bare.decode(&bare.encode(7)), Ok(7));
        for (text, why) in [
            (&*orders().encode(7), "the string's prefix is `order`; it takes none"),
            ("15ShV20Bxc6UJvKSQbDvo0J", "the string is not an ID without a prefix under these keys"),
        ] {
            assert_eq!(message(bare.decode(text)), format!("invalid_id: {why}"));
        }
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_reason() {
        let of = |keys: &str, prefix: &str| message(PublicIds::from_texts(&[keys], prefix));
        let many = (0..17).map(|n| PublicIdKey::new(n, [n + 1; 16]).unwrap()).collect::<std::vec::Vec<_>>();
        let texts = many.iter().map(|key| key.to_text().as_str().to_string()).collect::<std::vec::Vec<_>>();
        let takes = "it takes at most 24 characters: words of a-z and 0-9 joined by _, a letter first";
        for (refused, why) in [
            (of(" ,\n", "order"), "keys is empty; it takes 1 to 16 keys, each `pfk_` and 23 base62 digits"),
            (message(PublicIds::new(&many, "order")), "keys has 17; it takes 1 to 16"),
            (message(PublicIds::from_texts(&texts, "order")), "keys has 17; it takes 1 to 16"),
            (
                of("pfk_10kvEGTqNtUTXFUlMnM4wIa pfk_103KxYVLQeEpWyLpNnYpNeD", "order"),
                "two keys have the number 1; a public ID refers to its key by number",
            ),
            (
                of("pfk_10kvEGTqNtUTXFUlMnM4wIa pfk_00kvEGTqNtUTXFUlMnM4wIa", "order"),
                "keys 1 and 0 have the same bytes; give each key its own",
            ),
            (
                of("pfk_50000000000000000000000", "order"),
                "the bytes of key 5 are all 0; a key has 16 random bytes",
            ),
            (
                of("pfk_10kvEGTqNtUTXFUlMnM4wIa,pfx_0", "order"),
                "keys: string 2 does not begin with `pfk_`; a key is `pfk_` and 23 base62 digits",
            ),
            (
                of("pfk_10kvEGTqNtUTXFUlMnM4wI", "order"),
                "keys: string 1 has 22 base62 digits; a key is `pfk_` and 23 of them",
            ),
            (
                of("pfk_10kvEGTqNtUTXFUlMnM4w-é", "order"),
                "keys: position 26 of string 1 is not a base62 digit; a key is `pfk_` and 23 of them",
            ),
            (
                of("pfk_17n42DGM5Tflk9n8mt7Fhc8", "order"),
                "keys: the last 22 digits of string 1 exceed 128 bits; make a key with `polyflake public key`",
            ),
            (message(PublicIdKey::new(62, [1; 16])), "number is 62; it takes a whole number from 0 to 61"),
            (of(KEYS[0], "Order"), &format!("prefix is `Order`; {takes}")),
            (of(KEYS[0], "1order"), &format!("prefix is `1order`; {takes}")),
            (of(KEYS[0], "order_"), &format!("prefix is `order_`; {takes}")),
            (of(KEYS[0], "a__b"), &format!("prefix is `a__b`; {takes}")),
            (
                of(KEYS[0], "a234567890123456789012345"),
                &format!("prefix has 25 bytes; it is not shown here, since it may be a key; {takes}"),
            ),
            (
                of(KEYS[0], &KEYS[1][4..]),
                &format!("prefix has 23 bytes; it is not shown here, since it may be a key; {takes}"),
            ),
            (of(KEYS[0], "pfk"), "prefix has `pfk`, which keys begin with; take another, such as `order`"),
            (of(KEYS[0], KEYS[1]), "prefix has `pfk`, which keys begin with; take another, such as `order`"),
        ] {
            assert_eq!(refused, format!("invalid_option: {why}"));
        }
        for prefix in ["a", "a_1", "order2_item", "a23456789012345678901234"] {
            let ids = PublicIds::from_texts(&KEYS, prefix).unwrap();
            assert_eq!(ids.decode(&ids.encode(7)), Ok(7));
            assert_eq!(ids.prefix(), prefix);
        }
    }

    #[test]
    fn keys_come_from_several_texts_or_from_one() {
        let in_one = PublicIds::from_texts(&[KEYS.join("\r\n")], "order").unwrap();
        assert_eq!(in_one.encode(7), orders().encode(7));
        assert!(in_one.key_numbers().eq([1, 0]));
        let keys = KEYS.map(|text| PublicIdKey::parse(text).unwrap());
        assert_eq!(keys.each_ref().map(|key| key.to_text().as_str().to_string()), KEYS);
        assert_eq!(PublicIds::new(&keys, "order").unwrap().encode(7), in_one.encode(7));
        let made = PublicIdKey::generate(61).unwrap();
        assert_ne!(made.bytes(), PublicIdKey::generate(61).unwrap().bytes());
        assert!(made.to_text().as_str().starts_with("pfk_z"));
    }

    #[test]
    fn nothing_that_is_printed_has_a_part_of_a_key() {
        let key = PublicIdKey::parse(KEYS[0]).unwrap();
        assert_eq!(
            format!("{:?} {key:?} {:?}", orders(), key.to_text()),
            "PublicIds { prefix: \"order\", keys: [1, 0] } \
            PublicIdKey { number: 1, .. } PublicIdKeyText(..)"
        );
        // A key with each kind of mistake, and keys in place of a string or a prefix.
        let text = KEYS[0];
        let mistakes = (0..text.len()).flat_map(|at| {
            [
                format!("{}{}", &text[..at], &text[at + 1..]),
                format!("{}-{}", &text[..at], &text[at..]),
                format!("{}é{}", &text[..at], &text[at + 1..]),
            ]
        });
        for given in mistakes.chain([text.to_string()]) {
            let mut shown = message(orders().decode(&given));
            if let Err(error) = PublicIds::from_texts(&[&given], "order") {
                shown += &error.to_string();
            }
            if given.contains("pfk_") {
                shown += &message(PublicIds::from_texts(&KEYS, &given));
                shown += &message(PublicIds::from_texts(&KEYS, "").unwrap().decode(&given));
            }
            for part in (5..text.len() - 3).map(|at| &text[at..at + 4]) {
                assert!(!shown.contains(part), "{given}: {shown}");
            }
        }
    }
}
