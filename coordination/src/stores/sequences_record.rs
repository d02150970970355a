//! A record of sequences as JSON, which all stores keep as it is.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::store::{FORMAT, LAST_NUMBER, SequencesRecord};

/// Numbers are texts: many tools have no whole numbers above 2^53.
#[derive(Serialize, Deserialize)]
struct Json {
    format: u32,
    version: String,
    hash: String,
    sections: usize,
    /// One after the other, with a space between.
    bounds: String,
}

/// What is to be kept is not sound: a record of no sections or too many, or of numbers that do not fit.
pub(super) const NOT_TO_KEEP: &str = "such a record of sequences cannot be kept";

fn is_sound(record: &SequencesRecord) -> bool {
    (1..=SequencesRecord::MAX_SECTIONS).contains(&(record.bounds.len() as u64))
        && record.version <= LAST_NUMBER
        && record.bounds.iter().all(|&bound| bound <= LAST_NUMBER)
}

pub(super) fn write(record: &SequencesRecord) -> Option<String> {
    let bounds: Vec<_> = record.bounds.iter().map(u64::to_string).collect();
    serde_json::to_string(&Json {
        format: FORMAT,
        version: record.version.to_string(),
        hash: record.hash.clone(),
        sections: record.bounds.len(),
        bounds: bounds.join(" "),
    })
    .ok()
    .filter(|_| is_sound(record))
}

/// Or what a person can do about what is at `place`.
pub(super) fn read(text: &str, place: &str) -> Result<SequencesRecord, String> {
    let unreadable = || {
        format!(
            "{place} is not readable as a record of sequences: put back what was there, with higher bounds"
        )
    };
    let value: Value = serde_json::from_str(text).map_err(|_| unreadable())?;
    match value.get("format") {
        Some(format) if *format == FORMAT => {}
        Some(format) => {
            return Err(format!("{place} has version {format} of its form, and this program knows {FORMAT}"));
        }
        None => return Err(unreadable()),
    }
    let parsed = || {
        let it: Json = serde_json::from_value(value).ok()?;
        let bounds: Vec<u64> = it.bounds.split(' ').map(|it| it.parse().ok()).collect::<Option<_>>()?;
        let record = SequencesRecord { version: it.version.parse().ok()?, hash: it.hash, bounds };
        (record.bounds.len() == it.sections && is_sound(&record)).then_some(record)
    };
    parsed().ok_or_else(unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_sound_is_written_and_read() {
        let sound = SequencesRecord { version: 7, hash: "h".into(), bounds: vec![0, LAST_NUMBER, 30] };
        let text = write(&sound).unwrap();
        assert_eq!(
            text,
            r#"{"format":1,"version":"7","hash":"h","sections":3,"bounds":"0 9223372036854775807 30"}"#
        );
        assert_eq!(read(&text, "k").unwrap(), sound);
        for unsound in [
            SequencesRecord { bounds: vec![LAST_NUMBER + 1], ..sound.clone() },
            SequencesRecord { bounds: vec![], ..sound.clone() },
            SequencesRecord { bounds: vec![0; 16_385], ..sound.clone() },
            SequencesRecord { version: LAST_NUMBER + 1, ..sound.clone() },
        ] {
            assert_eq!(write(&unsound), None);
        }
        for (old, new) in
            [("0 9", "0  9"), ("0 9", "09"), ("5807", "5808"), ("\"7\"", "\"-7\""), ("hash", "h")]
        {
            let why = read(&text.replace(old, new), "k").unwrap_err();
            assert!(why.starts_with("k is not readable"), "{old} {new}: {why}");
        }
        let why = read(&text.replace(":1,", ":2,"), "k").unwrap_err();
        assert_eq!(why, "k has version 2 of its form, and this program knows 1");
        assert!(read("{}", "k").is_err() && read("", "k").is_err());
    }
}
