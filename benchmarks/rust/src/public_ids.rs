//! Public IDs, compared with Sqids, Hashids, and UUIDs as text.

use std::hint::black_box;

use polyflake::{PublicIds, PublicText};

use crate::ids_to_decode;
use crate::measure::BATCH;
use crate::suite::{DECODE_PUBLIC, ENCODE_PUBLIC, Suite};

/// Returns a call that encodes the next ID.
fn to_texts<T: AsRef<[u8]>>(text_of: impl Fn(u64) -> T) -> impl FnMut() -> u64 {
    let ids = ids_to_decode();
    let mut n = 0;
    move || {
        n = (n + 1) % BATCH;
        black_box(text_of(black_box(ids[n]))).as_ref().len() as u64
    }
}

/// Returns a call that decodes the text of the next ID.
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

pub fn add(suite: &mut Suite) {
    let encode = "polyflake PublicIds::encode";
    suite.singles(ENCODE_PUBLIC, encode, || {
        let orders = orders();
        to_texts(move |id| Bytes(orders.encode(id)))
    });
    let decode = "polyflake PublicIds::decode";
    suite.singles(DECODE_PUBLIC, decode, || {
        let (orders, of) = (orders(), orders());
        from_texts(move |id| of.encode(id), move |text| orders.decode(text).expect("its text"))
    });

    #[cfg(feature = "sqids")]
    {
        let sqids = "sqids";
        suite.singles(ENCODE_PUBLIC, sqids, || {
            let sqids = sqids::Sqids::default();
            to_texts(move |id| sqids.encode(&[id]).expect("a text"))
        });
        suite.singles(DECODE_PUBLIC, sqids, || {
            let (sqids, of) = (sqids::Sqids::default(), sqids::Sqids::default());
            from_texts(move |id| of.encode(&[id]).expect("a text"), move |text| sqids.decode(text)[0])
        });
    }
    #[cfg(feature = "harsh")]
    {
        fn new() -> harsh::Harsh {
            harsh::Harsh::builder().salt("salt").build().expect("a salt")
        }
        let hashids = "harsh (Hashids)";
        suite.singles(ENCODE_PUBLIC, hashids, || {
            let hashids = new();
            to_texts(move |id| hashids.encode(&[id]))
        });
        suite.singles(DECODE_PUBLIC, hashids, || {
            let (hashids, of) = (new(), new());
            from_texts(move |id| of.encode(&[id]), move |text| hashids.decode(text).expect("its text")[0])
        });
    }
    #[cfg(feature = "uuid")]
    {
        let uuid = "uuid, 16 bytes written and read";
        fn text_of(id: u64) -> [u8; 36] {
            let mut text = [0; 36];
            uuid::Uuid::from_u64_pair(id, !id).hyphenated().encode_lower(&mut text);
            text
        }
        suite.singles(ENCODE_PUBLIC, uuid, || to_texts(text_of));
        suite.singles(DECODE_PUBLIC, uuid, || {
            from_texts(text_of, |text| uuid::Uuid::try_parse_ascii(text).expect("its text").as_u64_pair().0)
        });
    }
}

/// The bytes of a public ID, which is a `str`.
struct Bytes(PublicText);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}
