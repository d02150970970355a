//! Helpers for records in key-value stores: the text of a record, names in keys, and changes to records.

use core::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use crate::records::{Add, Added, Outcome, Record, Write};

/// The characters to escape. Either a znode's name cannot contain them, or they separate the parts of a key,
/// or shells treat them specially.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'/').add(b'%').add(b' ').add(b'"').add(b'\'').add(b'\\');

/// Escapes a name, so that it can be one part of a key. A part must not be `.` or `..`.
pub(super) fn escaped(name: &str) -> String {
    match name {
        "." | ".." => name.replace('.', "%2E"),
        _ => utf8_percent_encode(name, ESCAPED).to_string(),
    }
}

/// Returns the name that `part` stands for, or `None` if Polyflake would not write a name this way.
pub(super) fn unescaped(part: &str) -> Option<String> {
    let name = percent_decode_str(part).decode_utf8().ok()?;
    (escaped(&name) == part).then(|| name.into())
}

/// Writes a record as `VERSION NUMBER TEXT`.
pub(super) fn write(record: &Record) -> String {
    format!("{} {} {}", record.version, record.number, record.text)
}

/// Parses the record at a key, or returns the reason it cannot be used.
pub(super) fn read(key: &str, value: &str) -> Result<Record, String> {
    let record = || {
        let (version, rest) = value.split_once(' ')?;
        let (number, text) = rest.split_once(' ')?;
        let version = version.parse().ok().filter(|it| (1..=Record::LAST_NUMBER).contains(it))?;
        let number = number.parse().ok().filter(|&it| it <= Record::LAST_NUMBER)?;
        Some(Record { version, number, text: text.into() })
    };
    record().ok_or_else(|| {
        format!(
            "{key} is not a record of this version of Polyflake, which reads `VERSION NUMBER TEXT`: restore that form, or remove it \
             while no process uses it"
        )
    })
}

/// Returns the error to report for a key that an earlier version of Polyflake wrote. Nothing is created
/// alongside such a key.
pub(super) fn former(key: &str) -> String {
    format!(
        "{key} was written by an earlier version of Polyflake, and this version cannot read it: remove it once no process uses it, \
         and start a counter again above all numbers that it issued"
    )
}

/// Computes a record's new contents from the record and its guard, or returns `None` to leave the record
/// unchanged.
pub(super) type Next<'a> = &'a dyn Fn(Option<&Record>, Option<&Record>) -> Option<Record>;

/// The result of a change.
pub(super) enum Changed {
    To(Record),
    /// The record and its guard, which the change left unchanged.
    Found(Option<Record>, Option<Record>),
}

/// The maximum number of times a change is attempted while other processes keep changing the same record. In
/// each round, one of the changes succeeds.
pub(super) const ROUNDS: u64 = 64;

/// Returns the error message for an abandoned change.
pub(super) fn contended(key: &str) -> String {
    format!("every attempt to change {key} conflicted with another process")
}

/// Waits for a random time, so that processes do not all retry at once. With eight processes constantly
/// making requests, this halves the time that each of them waits.
pub(super) async fn pause(round: u64) {
    // The first refusal led to a fresh read, so retry at once.
    if round % 2 == 0 {
        return;
    }
    let most_us = 2_000 * (round + 1).min(16);
    tokio::time::sleep(Duration::from_micros(crate::local::random() % most_us)).await;
}

/// See [`Store::write`](crate::records::Store::write).
pub(super) fn written(write: &Write, record: Option<&Record>, guard: Option<&Record>) -> Option<Record> {
    let version = record.map(|it| it.version);
    let is_guarded = write.guard.as_ref().map(|(_, version)| *version) == guard.map(|it| it.version);
    let is_expected = version == write.expected || version == Some(write.new.version);
    (is_guarded && is_expected).then(|| write.new.clone())
}

pub(super) fn outcome(changed: Changed) -> Outcome {
    match changed {
        Changed::To(_) => Outcome::Written,
        Changed::Found(record, guard) => Outcome::Found { record, guard },
    }
}

/// See [`Store::add`](crate::records::Store::add).
pub(super) fn sum(add: &Add, record: Option<&Record>) -> Option<Record> {
    let record = record.filter(|it| it.version != add.version)?;
    Some(Record { version: add.version, number: add.sum(record)?, text: record.text.clone() })
}

pub(super) fn added(add: &Add, changed: Changed) -> Added {
    match changed {
        Changed::To(record) => Added::To(record.number),
        Changed::Found(Some(record), _) if record.version == add.version => Added::To(record.number),
        Changed::Found(record, _) => Added::Found(record),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_part_of_a_key_each() {
        for (name, part) in [
            ("default", "default"),
            ("sequence:12<<0@1288834974657/1ms", "sequence:12<<0@1288834974657%2F1ms"),
            (".", "%2E"),
            ("..", "%2E%2E"),
            ("a.b", "a.b"),
            ("%2E", "%252E"),
            ("\u{fc} \"'\\\u{1F980}", "%C3%BC%20%22%27%5C%F0%9F%A6%80"),
        ] {
            assert_eq!((&*escaped(name), unescaped(part).as_deref()), (part, Some(name)));
        }
        // Polyflake would write these names differently, so it did not write these keys.
        for part in ["%2e", "%41", "a b", "%FF", "%"] {
            assert_eq!(unescaped(part), None, "{part}");
        }
    }

    #[test]
    fn a_record_is_a_text() {
        for text in ["", " ", "{} ", "{\"label\":\"\u{1F980} 1 2\"}"] {
            let record = Record { version: Record::LAST_NUMBER, number: 0, text: text.into() };
            assert_eq!(read("key", &write(&record)), Ok(record));
        }
        for value in [
            "",
            "1",
            "1 2",
            "0 1 ",
            "1 9223372036854775808 ",
            "9223372036854775808 1 ",
            "-1 1 ",
            "a 1 ",
            "1  2",
        ] {
            let said = read("some/key", value).unwrap_err();
            assert!(said.starts_with("some/key is not a record"), "{value}: {said}");
        }
    }
}
