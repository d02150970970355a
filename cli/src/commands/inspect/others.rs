//! IDs that are not Snowflakes: their kinds and contents.

use serde::{Serialize, Serializer};
use ulid::Ulid;
use uuid::{Uuid, Variant};

use crate::when::Zone;

/// An ID of another kind.
#[derive(Debug, Serialize)]
pub(super) struct Other {
    /// Such as `UUID version 7`.
    pub(super) kind: String,
    /// How such an ID is generated, or why the text looks like one.
    pub(super) why: &'static str,
    pub(super) time: Option<String>,
    pub(super) timestamp_ms: Option<u64>,
    /// The remaining parts, by name.
    #[serde(serialize_with = "as_object")]
    pub(super) holds: Vec<(&'static str, String)>,
}

/// Serializes pairs as an object, in their order.
pub(super) fn as_object<N: Serialize, V: Serialize, S: Serializer>(
    pairs: &[(N, V)],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(pairs.iter().map(|(name, value)| (name, value)))
}

impl Other {
    fn new(kind: impl Into<String>, why: &'static str) -> Self {
        Self { kind: kind.into(), why, time: None, timestamp_ms: None, holds: Vec::new() }
    }

    fn at(self, ms: u64) -> Self {
        Self { timestamp_ms: Some(ms), ..self }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.holds.push((name, value.into()));
        self
    }
}

/// The kinds of ID that a string can be.
pub(super) fn of(text: &str, zone: &Zone) -> Vec<Other> {
    let found = [uuid(text), ulid(text), object_id(text), ksuid(text)].into_iter().flatten();
    found.map(|it| Other { time: it.timestamp_ms.and_then(|ms| zone.text(ms)), ..it }).collect()
}

/// RFC 9562, in every common form: with and without hyphens, in braces, as a URN.
fn uuid(text: &str) -> Option<Other> {
    let uuid = Uuid::try_parse(text).ok()?;
    let found = match (uuid.is_nil(), uuid.is_max(), uuid.get_variant(), uuid.get_version_num()) {
        (true, ..) => Other::new("UUID, nil", "all bits are 0"),
        (_, true, ..) => Other::new("UUID, max", "all bits are 1"),
        (_, _, Variant::RFC4122, version) => of_version(&uuid, version),
        (_, _, Variant::Microsoft, _) => Other::new("GUID of old Microsoft software", "its variant says so"),
        (_, _, Variant::NCS, _) => Other::new("UUID of Apollo's NCS", "its variant says so"),
        _ => Other::new("UUID of an unknown variant", "32 hex digits"),
    };
    Some(found.with("uuid", uuid.hyphenated().to_string()))
}

fn of_version(uuid: &Uuid, version: usize) -> Other {
    let why = match version {
        1 => "time and the address of a network card",
        2 => "DCE security: an ID of a user or a group, and rough time",
        3 => "MD5 of a name",
        4 => "122 random bits",
        5 => "SHA-1 of a name",
        6 => "version 1 with its time first, so that it sorts",
        7 => "Unix time in ms, then random bits: sorts by time",
        8 => "its bits mean what its maker chose",
        _ => "a version that RFC 9562 does not know",
    };
    let mut found = Other::new(format!("UUID version {version}"), why);
    if let Some(time) = uuid.get_timestamp() {
        let (seconds, ns) = time.to_unix();
        found = found.at(seconds.saturating_mul(1000).saturating_add(u64::from(ns / 1_000_000)));
    }
    if let (1 | 6, Some(node)) = (version, uuid.get_node_id()) {
        found = found.with("node", hex(&node, ":"));
        let (.., [high, low, _, _, _, _, _, _]) = uuid.as_fields();
        // Leaves out the variant.
        let clock = u16::from_be_bytes([high & 0x3f, *low]);
        found = found.with("clock sequence", clock.to_string());
    }
    found
}

/// 26 digits of Crockford's base 32: 48 bits of Unix ms, 80 random.
fn ulid(text: &str) -> Option<Other> {
    // 26 digits have 130 bits: those above 128 must be 0.
    if text.len() != 26 || text > "8" {
        return None;
    }
    let ulid = Ulid::from_string(text).ok()?;
    let found = Other::new("ULID", "26 digits of base 32: Unix time in ms, then 80 random bits");
    Some(found.at(ulid.timestamp_ms()).with("random", format!("{:020x}", ulid.random())))
}

/// 12 bytes as hex: 4 for the Unix time in seconds, 5 random ones for the process, and 3 for a count.
fn object_id(text: &str) -> Option<Other> {
    if text.len() != 24 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let seconds = u32::from_str_radix(text.get(..8)?, 16).ok()?;
    let counter = u32::from_str_radix(text.get(18..)?, 16).ok()?;
    let why = "24 hex digits: Unix seconds, 5 bytes of the process, a counter";
    let found = Other::new("ObjectId of MongoDB", why).at(u64::from(seconds) * 1000);
    Some(found.with("process", text.get(8..18)?.to_ascii_lowercase()).with("counter", counter.to_string()))
}

/// 27 digits of base 62: 4 bytes of seconds since 2014-05-13, and 16 random bytes.
fn ksuid(text: &str) -> Option<Other> {
    const EPOCH_S: u64 = 1_400_000_000;
    if text.len() != 27 {
        return None;
    }
    let mut bytes = [0_u8; 20];
    for digit in text.bytes() {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'A'..=b'Z' => digit - b'A' + 10,
            b'a'..=b'z' => digit - b'a' + 36,
            _ => return None,
        };
        // The number so far times 62, plus the digit.
        let mut carry = u16::from(digit);
        for byte in bytes.iter_mut().rev() {
            carry += u16::from(*byte) * 62;
            let [high, low] = carry.to_be_bytes();
            (*byte, carry) = (low, u16::from(high));
        }
        if carry > 0 {
            return None;
        }
    }
    let (seconds, random) = bytes.split_first_chunk::<4>()?;
    let why = "27 digits of base 62: seconds since May 2014, then 128 random bits";
    let seconds = u64::from(u32::from_be_bytes(*seconds)) + EPOCH_S;
    Some(Other::new("KSUID", why).at(seconds * 1000).with("random", hex(random, "")))
}

fn hex(bytes: &[u8], between: &str) -> String {
    let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Other {
        let mut found = of(text, &Zone::UTC);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        found.remove(0)
    }

    fn holds(found: &Other, name: &str) -> String {
        found.holds.iter().find(|(other, _)| *other == name).map(|(_, value)| value.clone()).unwrap()
    }

    #[test]
    fn uuids_of_each_version() {
        // RFC 9562's own examples.
        for (text, version, time) in [
            ("C232AB00-9414-11EC-B3C8-9F6BDECED846", 1, Some("2022-02-22T19:22:22.000Z")),
            ("000003e8-9414-21ec-b300-9f6bdeced846", 2, None),
            ("5df41881-3aed-3515-88a7-2f4a814cf09e", 3, None),
            ("919108f7-52d1-4320-9bac-f847db4148a8", 4, None),
            ("2ed6657d-e927-568b-95e1-2665a8aea6a2", 5, None),
            ("1EC9414C-232A-6B00-B3C8-9F6BDECED846", 6, Some("2022-02-22T19:22:22.000Z")),
            ("017F22E2-79B0-7CC3-98C4-DC0C0C07398F", 7, Some("2022-02-22T19:22:22.000Z")),
            ("2489E9AD-2EE2-8E00-8EC9-32D5F69181C0", 8, None),
        ] {
            let found = one(text);
            assert_eq!(found.kind, format!("UUID version {version}"));
            assert_eq!(found.time.as_deref(), time, "{text}");
            assert_eq!(holds(&found, "uuid"), text.to_ascii_lowercase());
        }
        let first = one("{c232ab00-9414-11ec-b3c8-9f6bdeced846}");
        assert_eq!(holds(&first, "node"), "9f:6b:de:ce:d8:46");
        assert_eq!(holds(&first, "clock sequence"), 0x33c8.to_string());
        assert_eq!(one("00000000-0000-0000-0000-000000000000").kind, "UUID, nil");
        assert_eq!(one("ffffffffffffffffffffffffffffffff").kind, "UUID, max");
    }

    #[test]
    fn others_of_the_field() {
        let ulid = one("01ARZ3NDEKTSV4RRFFQ69G5FAV");
        assert_eq!((&*ulid.kind, ulid.time.as_deref()), ("ULID", Some("2016-07-30T23:54:10.259Z")));
        let object = one("507f1f77bcf86cd799439011");
        assert_eq!(object.time.as_deref(), Some("2012-10-17T21:13:27.000Z"));
        assert_eq!((&*holds(&object, "process"), &*holds(&object, "counter")), ("bcf86cd799", "4427793"));
        // From the README of segmentio/ksuid.
        let ksuid = one("0ujtsYcgvSTl8PAuAdqWYSMnLOv");
        assert_eq!(ksuid.time.as_deref(), Some("2017-10-10T04:00:47.000Z"));
        assert_eq!(holds(&ksuid, "random"), "b5a1cd34b5f99d1154fb6853345c9735");
        assert_eq!(one("aWgEPTl1tmebfsQzFP4bxwgy80V").time.as_deref(), Some("2150-06-19T23:21:35.000Z"));
    }

    #[test]
    fn what_is_none_of_them() {
        for text in [
            "",
            "1541815603606036480",
            "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
            "507f1f77bcf86cd79943901g",
            "zzzzzzzzzzzzzzzzzzzzzzzzzzz",
            "äöüäöüäöüäöüä",
        ] {
            assert!(of(text, &Zone::UTC).is_empty(), "{text}");
        }
    }
}
