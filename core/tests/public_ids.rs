//! Runs `tests/public_ids.json` through the public API, and checks strings that are not public IDs.
#![cfg(all(feature = "public-ids", not(any(loom, miri))))]

use polyflake::{Error, ErrorCode, PublicIdKey, PublicIds};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};

type Runner = fn(&Value);

const SECTIONS: [(&str, Runner); 4] = [
    ("public_ids", encoded),
    ("public_ids_read", read),
    ("public_ids_refused", refused),
    ("public_keys_refused", keys_refused),
];

#[test]
fn every_vector() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/public_ids.json");
    let vectors: Map<String, Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(vectors.len(), 1 + SECTIONS.len(), "unknown sections in {:?}", vectors.keys());
    for (name, run) in SECTIONS {
        let cases = vectors[name].as_array().unwrap();
        assert!(!cases.is_empty(), "{name} is empty");
        for case in cases {
            // Shown only when the case fails.
            println!("{name}: {case}");
            run(case);
        }
    }
}

fn s<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_else(|| panic!("{key} is not a string"))
}

fn keys(case: &Value) -> Vec<&str> {
    case["keys"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect()
}

fn public_ids(case: &Value) -> Result<PublicIds, Error> {
    PublicIds::from_texts(&keys(case), s(case, "prefix"))
}

fn encoded(case: &Value) {
    let ids = public_ids(case).unwrap();
    let id = s(case, "id").parse().unwrap();
    assert_eq!(ids.encode(id).as_str(), s(case, "text"));
    assert_eq!(ids.decode(s(case, "text")), Ok(id));
}

fn read(case: &Value) {
    let ids = public_ids(case).unwrap();
    let id = s(case, "id").parse().unwrap();
    assert_eq!(ids.decode(s(case, "text")), Ok(id));
    assert_ne!(ids.encode(id).as_str(), s(case, "text"));
}

fn assert_error(error: &Error, case: &Value) -> String {
    assert_eq!(error.code().name(), s(case, "error"));
    error.to_string()
}

fn refused(case: &Value) {
    let error = public_ids(case).unwrap().decode(s(case, "text")).unwrap_err();
    let message = assert_error(&error, case);
    match case["position"].as_u64() {
        Some(position) => assert!(message.contains(&format!("position {position} ")), "{message}"),
        None => assert!(!message.contains("position"), "{message}"),
    }
}

fn keys_refused(case: &Value) {
    let message = assert_error(&public_ids(case).unwrap_err(), case);
    let prefix = s(case, "prefix");
    let keys = keys(case).into_iter().chain((prefix.len() == 27).then_some(prefix));
    for key in keys.filter_map(|text| text.get(5..)) {
        let windows = key.as_bytes().windows(4).filter_map(|window| std::str::from_utf8(window).ok());
        for digits in windows.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_alphanumeric())) {
            assert!(!message.contains(digits), "{digits} of a key is in {message}");
        }
    }
}

/// Returns keys with numbers from 0 up and arbitrary bytes.
fn some_keys(seed: u64, count: u8) -> Vec<PublicIdKey> {
    let mut random = Random(seed);
    (0..count).map(|number| PublicIdKey::new(number, random.next_u128().to_le_bytes()).unwrap()).collect()
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn next_u128(&mut self) -> u128 {
        (u128::from(self.next()) << 64) | u128::from(self.next())
    }
}

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

fn prefixes() -> impl Strategy<Value = String> {
    let joined = "[a-z][a-z0-9]{0,6}(_[a-z0-9]{1,7}){0,2}";
    prop_oneof![Just(String::new()), joined.prop_filter("of keys", |prefix| !prefix.contains("pfk"))]
}

proptest! {
    /// An ID's string decodes to that ID with its key in any position, and with no other prefix.
    #[test]
    fn texts_turn_back_into_their_ids(
        seed: u64, id: u64, prefix in prefixes(), other in prefixes(), count in 1..=16_u8, last in 0..16_u8,
    ) {
        let mut keys = some_keys(seed, count);
        let text = PublicIds::new(&keys, &prefix).unwrap().encode(id);
        prop_assert!(text.len() <= 48 && text.is_ascii());
        prop_assert_eq!(text.len(), prefix.len() + usize::from(!prefix.is_empty()) + 23);
        keys.rotate_left(usize::from(last % count));
        let rotated = PublicIds::new(&keys, &prefix).unwrap();
        prop_assert_eq!(rotated.decode(&text), Ok(id));
        prop_assert_eq!(rotated.decode(&rotated.encode(id)), Ok(id));
        if other != prefix {
            let others = PublicIds::new(&keys, &other).unwrap();
            prop_assert!(others.decode(&text).is_err());
            // Nor does it decode if its prefix is replaced.
            let digits = &text[text.len() - 23..];
            let separator = if other.is_empty() { "" } else { "_" };
            let code = others.decode(&format!("{other}{separator}{digits}")).unwrap_err().code();
            prop_assert_eq!(code, ErrorCode::InvalidId);
        }
        keys.remove(keys.iter().position(|key| key.number() == 0).unwrap());
        if let Ok(without) = PublicIds::new(&keys, &prefix) {
            prop_assert!(without.decode(&text).is_err());
        }
    }

    /// No string causes a panic, and a string that decodes is the one that encoding returns.
    #[test]
    fn other_texts_are_refused(
        text in prop_oneof![".*", "order_[0-1]?[0-9A-Za-z]{20,24}", "[a-z]{0,3}_[0-9A-Za-z_]{20,24}", "order_.{23}"],
        prefix in select(&["", "order", "a"][..]),
    ) {
        let error = PublicIds::new(&some_keys(7, 2), prefix).unwrap().decode(&text).unwrap_err();
        prop_assert_eq!(error.code(), ErrorCode::InvalidId);
    }

    /// A key's text parses back to that key.
    #[test]
    fn keys_turn_back(number in 0..62_u8, bytes: [u8; 16]) {
        prop_assume!(bytes != [0; 16]);
        let key = PublicIdKey::new(number, bytes).unwrap();
        let again = PublicIdKey::parse(key.to_text().as_str()).unwrap();
        prop_assert_eq!(again.number(), number);
        let encode = |key| PublicIds::new(&[key], "a").unwrap().encode(1);
        prop_assert_eq!(encode(key), encode(again));
    }
}

/// A million strings of each kind, none of which is a public ID. If one of them decoded, the tag would be
/// broken.
fn nothing_is_taken_for_an_id(count: u64) {
    let mut tries = 0_u64;
    let mut random = Random(20_261_125);
    let keys = some_keys(1, 3);
    let orders = PublicIds::new(&keys, "order").unwrap();
    let others = PublicIds::new(&some_keys(2, 3), "order").unwrap();
    let users = PublicIds::new(&keys, "user").unwrap();
    let mut refuse = |ids: &PublicIds, text: &[u8]| {
        let text = std::str::from_utf8(text).unwrap();
        assert_eq!(ids.decode(text).map_err(|error| error.code()), Err(ErrorCode::InvalidId), "{text}");
        tries += 1;
    };
    for _ in 0..count {
        // Random digits, usually a number below 2^128, under an existing key.
        let mut text = *b"order_10000000000000000000000";
        text[6] = b'0' + (random.next() % 3) as u8;
        text[7] = b'0' + (random.next() % 8) as u8;
        text[8..].fill_with(|| ALPHABET[(random.next() % 62) as usize]);
        refuse(&orders, &text);

        // A real string with one character changed: one of the digits, the key's number, or the prefix.
        let real = orders.encode(random.next());
        let mut text: [u8; 29] = real.as_bytes().try_into().unwrap();
        let at = (random.next() % 29) as usize;
        text[at] = loop {
            let other = ALPHABET[(random.next() % 62) as usize];
            if other != text[at] {
                break other;
            }
        };
        refuse(&orders, &text);

        // Under different keys with the same numbers, and with the prefix replaced.
        refuse(&others, real.as_bytes());
        refuse(&users, format!("user{}", &real[5..]).as_bytes());
    }
    // The probability is 2^-64 for each string.
    println!("none of {tries} texts decodes; the chance of one was 1 in 2^{}", 63 - tries.ilog2());
}

#[test]
fn nothing_is_taken_for_an_id_that_nobody_encoded() {
    nothing_is_taken_for_an_id(20_000);
}

#[test]
#[ignore = "seconds in release builds, minutes in others: make soak runs it in release"]
fn nothing_of_a_million_of_each_kind_is_taken_for_an_id() {
    nothing_is_taken_for_an_id(1_000_000);
}

/// The strings of neighbouring IDs have no more in common than chance allows: half of their bits differ.
#[test]
fn neighbours_have_nothing_in_common() {
    let ids = PublicIds::new(&some_keys(3, 1), "").unwrap();
    let number = |text: &str| {
        text.bytes().skip(1).fold(0_u128, |number, digit| {
            number * 62 + ALPHABET.iter().position(|each| *each == digit).unwrap() as u128
        })
    };
    let differ: u32 =
        (0..4096).map(|id| (number(&ids.encode(id)) ^ number(&ids.encode(id + 1))).count_ones()).sum();
    // 4096 times 128 bits: the standard deviation is 362.
    assert!(differ.abs_diff(4096 * 64) < 6 * 362, "{differ} bits");
}
