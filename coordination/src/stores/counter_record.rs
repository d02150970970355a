//! A counter's record as JSON, for stores of keys and values, and the arithmetic and the tries of a reserve, for those that
//! have none.

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(super) use super::keyed::{ROUNDS, pause};
use crate::store::{CounterRecord, FORMAT, LAST_NUMBER, Numbers, Place, Reserve};

/// Numbers are texts: many tools have no whole numbers above 2^53.
#[derive(Serialize, Deserialize)]
struct Json {
    format: u32,
    last: String,
    version: String,
    index: String,
    count: String,
}

/// Why a record cannot be used.
pub(super) enum Unreadable {
    /// Of another form than this program knows: which.
    Format(String),
    /// It is none, or its numbers cannot be.
    Broken,
}

impl Unreadable {
    /// What a person can do about what is at `key`.
    pub(super) fn text(&self, key: &str) -> String {
        match self {
            Self::Format(format) => {
                format!("{key} has version {format} of its form, and this program knows {FORMAT}")
            }
            Self::Broken => format!(
                "{key} is not readable as a counter: remove it, and make it again above all numbers that it gave"
            ),
        }
    }
}

/// Of a [`Reserve`] for which [`can_ask`] says no.
pub(super) const NOT_TO_ASK: &str = "so many numbers, or those of such a place, cannot be reserved";

/// Of a record that is not [sound](is_sound).
pub(super) const NOT_TO_KEEP: &str = "such a record of a counter cannot be kept";

/// Of a record whose version cannot be counted up.
pub(super) fn ended(key: &str) -> String {
    format!("{key} has had the last version that there is")
}

/// Where all tries are used up.
pub(super) fn contended(key: &str) -> String {
    format!("others were faster with {key}, {ROUNDS} times")
}

/// What can be kept and counted on. Both numbers fit a signed 64-bit integer, as in every other store.
pub(super) fn is_sound(record: &CounterRecord) -> bool {
    let CounterRecord { last, version, place: Place { index, count } } = *record;
    last <= LAST_NUMBER
        && version.is_some_and(|it| it <= LAST_NUMBER)
        && (1..=Place::MAX_COUNT).contains(&count)
        && index < count
}

/// What a store can be asked for.
pub(super) fn can_ask(reserve: &Reserve) -> bool {
    let Place { index, count } = reserve.place;
    (1..=Reserve::MAX_COUNT).contains(&reserve.count)
        && (1..=Place::MAX_COUNT).contains(&count)
        && index < count
}

/// The numbers that a sound record gives, and the record after that; `None` where it gives none.
pub(super) fn take(record: &CounterRecord, reserve: &Reserve) -> Option<(Numbers, CounterRecord)> {
    let Place { index, count: stride } = reserve.place;
    if record.place != reserve.place || record.last < reserve.seen {
        return None;
    }
    // No overflow: `last` and the rest are below 2^63 and 2^43.
    let above = (index + stride - record.last % stride) % stride;
    let first = record.last + if above == 0 { stride } else { above };
    let last = first + (reserve.count - 1) * stride;
    if last > LAST_NUMBER {
        return None;
    }
    let version = record.version?.checked_add(1);
    let numbers = Numbers { first, stride, count: reserve.count, version };
    Some((numbers, CounterRecord { last, version, place: record.place }))
}

pub(super) fn write(record: &CounterRecord) -> Option<String> {
    let version = record.version.filter(|_| is_sound(record))?;
    serde_json::to_string(&Json {
        format: FORMAT,
        last: record.last.to_string(),
        version: version.to_string(),
        index: record.place.index.to_string(),
        count: record.place.count.to_string(),
    })
    .ok()
}

pub(super) fn read(text: &str) -> Result<CounterRecord, Unreadable> {
    let value: Value = serde_json::from_str(text).map_err(|_| Unreadable::Broken)?;
    match value.get("format") {
        Some(format) if *format == FORMAT => {}
        Some(format) => return Err(Unreadable::Format(format.to_string())),
        None => return Err(Unreadable::Broken),
    }
    let parsed = || {
        let it: Json = serde_json::from_value(value).ok()?;
        let place = Place { index: it.index.parse().ok()?, count: it.count.parse().ok()? };
        let version = Some(it.version.parse().ok()?);
        Some(CounterRecord { last: it.last.parse().ok()?, version, place })
    };
    parsed().filter(is_sound).ok_or(Unreadable::Broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(last: u64, index: u64, count: u64) -> CounterRecord {
        CounterRecord { last, version: Some(7), place: Place { index, count } }
    }

    #[test]
    fn the_lowest_numbers_of_the_place_above_the_last() {
        for stride in [1, 2, 3, 5, 1_024] {
            for index in [0, 1, stride / 2, stride - 1].into_iter().filter(|it| *it < stride) {
                for last in [0, 1, 2, 4, 1_023, 1_024, 1_025, LAST_NUMBER - 5_000] {
                    let reserve = Reserve { count: 3, place: Place { index, count: stride }, seen: last };
                    let Some((numbers, new)) = take(&record(last, index, stride), &reserve) else { panic!() };
                    let first = (last + 1..=last + stride).find(|it| it % stride == index);
                    assert_eq!(Some(numbers.first), first, "{last} {index} {stride}");
                    assert_eq!((numbers.stride, numbers.count, numbers.version), (stride, 3, Some(8)));
                    assert_eq!((new.last, new.version), (numbers.first + 2 * stride, Some(8)));
                }
            }
        }
    }

    #[test]
    fn none_where_there_are_too_few_or_they_are_for_another() {
        let asks = |count, place, seen| Reserve { count, place, seen };
        let end = record(LAST_NUMBER - 2, 0, 1);
        assert_eq!(take(&end, &asks(2, Place::ONLY, 0)).map(|it| it.1.last), Some(LAST_NUMBER));
        for (found, reserve) in [
            (end, asks(3, Place::ONLY, 0)),
            (end, asks(Reserve::MAX_COUNT, Place::ONLY, 0)),
            (record(LAST_NUMBER, 0, 1), asks(1, Place::ONLY, 0)),
            (record(LAST_NUMBER, 1_023, 1_024), asks(1 << 32, Place { index: 1_023, count: 1_024 }, 0)),
            (record(9, 0, 1), asks(1, Place::ONLY, 10)),
            (record(9, 0, 2), asks(1, Place { index: 1, count: 2 }, 0)),
        ] {
            assert_eq!(take(&found, &reserve), None, "{found:?} {reserve:?}");
        }
    }

    #[test]
    fn only_what_is_sound_is_written_and_read() {
        let sound = record(LAST_NUMBER, 1_023, 1_024);
        let text = write(&sound).unwrap();
        assert_eq!(
            text,
            r#"{"format":1,"last":"9223372036854775807","version":"7","index":"1023","count":"1024"}"#
        );
        assert!(matches!(read(&text), Ok(it) if it == sound));
        for unsound in [
            record(LAST_NUMBER + 1, 0, 1),
            record(1, 1, 1),
            record(1, 0, 0),
            record(1, 0, 1_025),
            CounterRecord { version: None, ..sound },
            CounterRecord { version: Some(u64::MAX), ..sound },
        ] {
            assert_eq!(write(&unsound), None, "{unsound:?}");
        }
        for (old, new) in
            [("\"7\"", "\"-7\""), ("\"7\"", "7"), ("5807", "5808"), ("1024", "1023"), ("last", "l")]
        {
            assert!(matches!(read(&text.replace(old, new)), Err(Unreadable::Broken)), "{old} {new}");
        }
        assert!(matches!(read("{}"), Err(Unreadable::Broken)));
        let other = text.replace(":1,", ":2,");
        assert!(matches!(read(&other), Err(Unreadable::Format(it)) if it == "2"));
    }
}
