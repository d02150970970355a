//! The layouts of the field, by name.

use crate::error::{Error, unknown_layout};
use crate::layout::{Layout, same};

/// A layout of the field and the name it goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Preset {
    /// The name that [`Layout::parse`] takes.
    pub name: &'static str,
    /// The layout.
    pub layout: Layout,
}

// A preset that does not parse fails the build.
#[expect(clippy::panic, reason = "evaluated by the compiler only")]
const fn preset(name: &'static str, text: &'static str) -> Preset {
    match Layout::parse_text(text.as_bytes()) {
        Ok(layout) => Preset { name, layout },
        Err(_) => panic!("a preset's text is no layout"),
    }
}

const DEFAULT: Preset = preset("twitter", "timestamp:41|datacenter:5|worker:5|sequence:12@1288834974657/1ms");
pub(crate) const TWITTER: Layout = DEFAULT.layout;

/// Every preset, the default first.
///
/// ```
/// assert_eq!(polyflake::PRESETS[0].name, "twitter");
/// for preset in &polyflake::PRESETS {
///     println!("{} {}", preset.name, preset.layout);
/// }
/// ```
pub static PRESETS: [Preset; 18] = [
    DEFAULT,
    preset("discord", "timestamp:42|worker:5|process:5|sequence:12@1420070400000/1ms"),
    preset("leaf", "timestamp:41|worker:10|sequence:12@1288834974657/1ms"),
    preset("shardingsphere", "timestamp:41|worker:10|sequence:12@1477929600000/1ms"),
    preset("baidu", "timestamp:28|worker:22|sequence:13@1463673600000/1s"),
    preset("sonyflake", "timestamp:39|sequence:8|machine:16@1409529600000/10ms"),
    preset("sonyflake2", "timestamp:39|sequence:8|machine:16@1735689600000/10ms"),
    preset("easyswoole", "timestamp:41|datacenter:5|worker:5|sequence:12@1508945092000/1ms"),
    preset("instagram", "timestamp:41|shard:13|sequence:10@1314220021721/1ms"),
    preset("mastodon", "timestamp:48|sequence:16@0/1ms"),
    preset("tsid", "timestamp:42|node:10|sequence:12@1577836800000/1ms"),
    preset("yitter", "timestamp:41|worker:6|sequence:6@1582136402000/1ms"),
    preset("cosid", "timestamp:41|machine:10|sequence:12@1577203200000/1ms"),
    preset("cosid-second", "timestamp:31|machine:10|sequence:22@1577203200000/1s"),
    preset("pgedge", "timestamp:41|node:10|sequence:12@1672531200000/1ms"),
    preset("seata", "worker:10|timestamp:41|sequence:12@1588435200000/1ms"),
    preset("business", "timestamp:41|idc:6|business:6|sequence:10@1288834974657/1ms"),
    preset("js-safe", "timestamp:41|worker:4|sequence:8@1735689600000/1ms"),
];

pub(crate) const fn find(name: &str) -> Result<Layout, Error> {
    let mut presets: &[Preset] = &PRESETS;
    while let Some((preset, rest)) = presets.split_first() {
        if same(preset.name.as_bytes(), name.as_bytes()) {
            return Ok(preset.layout);
        }
        presets = rest;
    }
    Err(unknown_layout(name))
}

/// The presets' names that a reader could have meant by `name`.
pub(crate) fn near(name: &[u8]) -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|preset| preset.name).filter(move |preset| {
        let preset = preset.as_bytes();
        let starts_alike = name.len() >= 3
            && (preset.len() >= name.len()
                && preset.iter().zip(name).all(|(a, b)| a.eq_ignore_ascii_case(b)));
        starts_alike || edits(preset, name) <= 2
    })
}

/// How many letters must be changed, added or left out to make one word of the other (Levenshtein), the case
/// apart; many where `b` is longer than any preset.
fn edits(a: &[u8], b: &[u8]) -> usize {
    const LONGEST: usize = 24;
    if b.len() > LONGEST {
        return LONGEST;
    }
    let mut row: [usize; LONGEST + 1] = core::array::from_fn(|n| n);
    for (n, x) in a.iter().enumerate() {
        let mut diagonal = n;
        let mut left = n + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, y) in row.iter_mut().skip(1).zip(b) {
            let changed = diagonal + usize::from(!x.eq_ignore_ascii_case(y));
            diagonal = *cell;
            left = changed.min(left + 1).min(*cell + 1);
            *cell = left;
        }
    }
    row.get(b.len()).copied().unwrap_or(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn near_names_are_listed() {
        for (name, says) in [
            ("Twitter", "did you mean twitter, yitter?"),
            ("sonyflak", "did you mean sonyflake, sonyflake2?"),
            ("cosid_second", "did you mean cosid-second?"),
            ("shard", "did you mean shardingsphere?"),
            ("", "there are twitter, discord, "),
            ("nothing-like-any-preset-at-all", "there are twitter, discord, "),
        ] {
            let message = Layout::parse(name).unwrap_err().to_string();
            assert!(message.contains(says), "{message}");
        }
        assert_eq!(edits(b"kitten", b"sitting"), 3);
        assert_eq!(edits(b"abc", b""), 3);
    }
}
