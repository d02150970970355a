//! Public IDs, beside Sqids, Hashids, and UUIDs as text.

use std::hint::black_box;

use aes::Aes128;
use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use polyflake::{PublicIds, PublicText};

use crate::ids_to_decode;
use crate::measure::BATCH;
use crate::suite::{About, DECODE_PUBLIC, ENCODE_PUBLIC, Suite};

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// 62 to the power of 10.
const TEN: u64 = 839_299_365_868_340_224;

/// A call that encodes the next of these IDs.
fn to_texts<T: AsRef<[u8]>>(text_of: impl Fn(u64) -> T) -> impl FnMut() -> u64 {
    let ids = ids_to_decode();
    let mut n = 0;
    move || {
        n = (n + 1) % BATCH;
        black_box(text_of(black_box(ids[n]))).as_ref().len() as u64
    }
}

/// A call that decodes the text of the next of these IDs.
fn from_texts<T>(text_of: impl Fn(u64) -> T, id_of: impl Fn(&T) -> u64) -> impl FnMut() -> u64 {
    let texts = ids_to_decode().map(text_of);
    let mut n = 0;
    move || {
        n = (n + 1) % BATCH;
        id_of(black_box(&texts[n]))
    }
}

fn orders() -> PublicIds {
    PublicIds::from_texts(&["pfk_10kvEGTqNtUTXFUlMnM4wIa"], "order").expect("a key and a prefix")
}

fn digits(block: u128) -> [u8; 22] {
    let ten = u128::from(TEN);
    let mut text = [0; 22];
    for (digits, mut run) in
        text.chunks_mut(10).zip([block % ten, block / ten % ten, block / ten / ten].map(|run| run as u64))
    {
        for digit in digits {
            *digit = DIGITS[(run % 62) as usize];
            run /= 62;
        }
    }
    text.reverse();
    text
}

fn values() -> [u64; 256] {
    std::array::from_fn(|digit| {
        DIGITS.iter().position(|each| usize::from(*each) == digit).unwrap_or(0) as u64
    })
}

fn number(text: &[u8; 22], values: &[u64; 256]) -> u128 {
    let run = |digits: &[u8]| digits.iter().fold(0, |run, digit| run * 62 + values[usize::from(*digit)]);
    let [high, middle, low] = [&text[..2], &text[2..12], &text[12..]].map(|digits| u128::from(run(digits)));
    (high * u128::from(TEN) + middle) * u128::from(TEN) + low
}

fn encipher(cipher: &Aes128, id: u64) -> u128 {
    let mut block = Array::from((u128::from(id) << 64).to_be_bytes());
    cipher.encrypt_block(&mut block);
    u128::from_be_bytes(block.into())
}

fn decipher(cipher: &Aes128, block: u128) -> u64 {
    let mut block = Array::from(block.to_be_bytes());
    cipher.decrypt_block(&mut block);
    (u128::from_be_bytes(block.into()) >> 64) as u64
}

pub fn add(suite: &mut Suite) {
    let encode = About::of("polyflake PublicIds::encode");
    suite.singles(ENCODE_PUBLIC, &encode, || {
        let orders = orders();
        to_texts(move |id| Bytes(orders.encode(id)))
    });
    let decode = About::of("polyflake PublicIds::decode");
    suite.singles(DECODE_PUBLIC, &decode, || {
        let (orders, of) = (orders(), orders());
        from_texts(move |id| of.encode(id), move |text| orders.decode(text).expect("its text"))
    });

    #[cfg(feature = "sqids")]
    {
        let sqids = About::of("sqids");
        suite.singles(ENCODE_PUBLIC, &sqids, || {
            let sqids = sqids::Sqids::default();
            to_texts(move |id| sqids.encode(&[id]).expect("a text"))
        });
        suite.singles(DECODE_PUBLIC, &sqids, || {
            let (sqids, of) = (sqids::Sqids::default(), sqids::Sqids::default());
            from_texts(move |id| of.encode(&[id]).expect("a text"), move |text| sqids.decode(text)[0])
        });
    }
    #[cfg(feature = "harsh")]
    {
        fn new() -> harsh::Harsh {
            harsh::Harsh::builder().salt("salt").build().expect("a salt")
        }
        let hashids = About::of("harsh (Hashids)");
        suite.singles(ENCODE_PUBLIC, &hashids, || {
            let hashids = new();
            to_texts(move |id| hashids.encode(&[id]))
        });
        suite.singles(DECODE_PUBLIC, &hashids, || {
            let (hashids, of) = (new(), new());
            from_texts(move |id| of.encode(&[id]), move |text| hashids.decode(text).expect("its text")[0])
        });
    }
    #[cfg(feature = "uuid")]
    {
        let uuid = About::of("uuid, 16 bytes written and read");
        fn text_of(id: u64) -> [u8; 36] {
            let mut text = [0; 36];
            uuid::Uuid::from_u64_pair(id, !id).hyphenated().encode_lower(&mut text);
            text
        }
        suite.singles(ENCODE_PUBLIC, &uuid, || to_texts(text_of));
        suite.singles(DECODE_PUBLIC, &uuid, || {
            from_texts(text_of, |text| uuid::Uuid::try_parse_ascii(text).expect("its text").as_u64_pair().0)
        });
    }

    let block = About::of("AES-128 of a block, and 22 digits");
    suite.singles(ENCODE_PUBLIC, &block, || {
        let cipher = Aes128::new(&[7; 16].into());
        to_texts(move |id| digits(encipher(&cipher, id)))
    });
    suite.singles(ENCODE_PUBLIC, &About::of("AES-128 of a block"), || {
        let cipher = Aes128::new(&[7; 16].into());
        to_texts(move |id| encipher(&cipher, id).to_ne_bytes())
    });
    let block = About::of("22 digits, and AES-128 of a block");
    suite.singles(DECODE_PUBLIC, &block, || {
        let (cipher, of) = (Aes128::new(&[7; 16].into()), Aes128::new(&[7; 16].into()));
        let values = values();
        from_texts(move |id| digits(encipher(&of, id)), move |text| decipher(&cipher, number(text, &values)))
    });
}

/// The bytes of a public ID, which is a `str`.
struct Bytes(PublicText);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}
