//! `tests/public_ids.json` through the public API, and random texts.

#![cfg(feature = "public-ids")]

use polyflake::{ErrorCode, PublicIdKey, PublicIds};
use proptest::prelude::*;
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
    let sections: Vec<&str> = vectors.keys().map(String::as_str).filter(|name| *name != "about").collect();
    assert_eq!(sections, SECTIONS.map(|(name, _)| name));
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

fn ids(case: &Value) -> PublicIds {
    PublicIds::from_texts(&keys(case), s(case, "prefix")).unwrap()
}

fn id(case: &Value) -> u64 {
    s(case, "id").parse().unwrap()
}

fn encoded(case: &Value) {
    let text = ids(case).encode(id(case));
    assert_eq!(text.as_str(), s(case, "text"));
    assert_eq!(ids(case).decode(&text), Ok(id(case)));
}

fn read(case: &Value) {
    let ids = ids(case);
    assert_eq!(ids.decode(s(case, "text")), Ok(id(case)));
    assert_ne!(ids.encode(id(case)).as_str(), s(case, "text"));
}

fn refused(case: &Value) {
    let error = ids(case).decode(s(case, "text")).unwrap_err();
    assert_eq!(error.code().name(), s(case, "error"));
    let message = error.to_string();
    match case["position"].as_u64() {
        Some(position) => assert!(message.contains(&format!("position {position} ")), "{message}"),
        None => assert!(!message.contains("position"), "{message}"),
    }
}

fn keys_refused(case: &Value) {
    let error = PublicIds::from_texts(&keys(case), s(case, "prefix")).unwrap_err();
    assert_eq!(error.code().name(), s(case, "error"));
    let message = error.to_string();
    for key in keys(case).iter().flat_map(|key| key.split_whitespace()).filter(|key| key.len() == 27) {
        for at in 5..=23 {
            assert!(!message.contains(&key[at..at + 4]), "{message}");
        }
    }
}

fn orders() -> PublicIds {
    PublicIds::new(&[PublicIdKey::new(1, *b"sixteen bytes, 1").unwrap()], "order").unwrap()
}

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

proptest! {
    #[test]
    fn an_id_comes_back(id: u64, bytes: [u8; 16], number in 0_u8..=61, prefix in "[a-z][a-z0-9]{0,11}(_[a-z0-9]{1,11})?") {
        prop_assume!(bytes != [0; 16] && !prefix.starts_with("pfk"));
        let ids = PublicIds::new(&[PublicIdKey::new(number, bytes).unwrap()], &prefix).unwrap();
        let text = ids.encode(id);
        prop_assert_eq!(text.len(), prefix.len() + 24);
        prop_assert_eq!(ids.decode(&text), Ok(id));
    }

    #[test]
    fn a_text_with_another_character_is_refused(id: u64, at in 0_usize..29, byte in 0_u8..128) {
        let mut text = orders().encode(id).as_bytes().to_vec();
        prop_assume!(text[at] != byte);
        text[at] = byte;
        let error = orders().decode(std::str::from_utf8(&text).unwrap()).unwrap_err();
        prop_assert_eq!(error.code(), ErrorCode::InvalidId);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*", digits in proptest::collection::vec(0_usize..62, 22)) {
        prop_assert!(orders().decode(&text).is_err());
        let digits: String = digits.iter().map(|digit| char::from(ALPHABET[*digit])).collect();
        prop_assert!(orders().decode(&(String::from("order_1") + &digits)).is_err());
    }
}

/// Splitmix64: the same texts in every run.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// 4 million tries against 2^64: a sound build fails this once in 4.6 × 10^12 runs.
#[test]
#[ignore = "slow without optimisation: make soak runs it"]
fn of_millions_of_texts_none_decodes() {
    let (ids, mut state) = (orders(), 1);
    let other_key = PublicIds::new(&[PublicIdKey::new(1, *b"sixteen bytes, 2").unwrap()], "order").unwrap();
    let other_prefix = PublicIds::new(&[PublicIdKey::new(1, *b"sixteen bytes, 1").unwrap()], "item").unwrap();
    for _ in 0..1_000_000 {
        let mut text = *b"order_10000000000000000000000";
        for place in &mut text[7..] {
            *place = ALPHABET[(random(&mut state) % 62) as usize];
        }
        assert!(ids.decode(std::str::from_utf8(&text).unwrap()).is_err());

        let real = ids.encode(random(&mut state));
        let mut changed = real.as_bytes().to_vec();
        let at = 7 + (random(&mut state) % 22) as usize;
        let step = 1 + (random(&mut state) % 61) as usize;
        let value = ALPHABET.iter().position(|digit| *digit == changed[at]).unwrap();
        changed[at] = ALPHABET[(value + step) % 62];
        assert!(ids.decode(std::str::from_utf8(&changed).unwrap()).is_err());

        assert!(other_key.decode(&real).is_err());
        assert!(other_prefix.decode(&real.replace("order", "item")).is_err());
    }
}
