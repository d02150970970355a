//! Widely used layouts, by name.

use core::str::FromStr;

use crate::error::{Error, error};
use crate::layout::{Layout, same, split};
use crate::word::{OwnedWord, at, put};

/// A widely used layout and its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Preset {
    /// The name, as accepted by [`Layout::parse`].
    pub name: &'static str,
    /// The layout.
    pub layout: Layout,
}

/// Defines the presets and the list of their names from the same table.
macro_rules! presets {
    ($default:literal => $default_text:literal, $($name:literal => $text:literal,)*) => {
        const DEFAULT: Preset = preset($default, $default_text);

        /// All presets, the default first.
        ///
        /// ```
        /// assert_eq!(polyflake::PRESETS[0].name, "twitter");
        /// for preset in &polyflake::PRESETS {
        ///     println!("{} {}", preset.name, preset.layout);
        /// }
        /// ```
        pub static PRESETS: [Preset; 1 + [$($name),*].len()] = [DEFAULT, $(preset($name, $text)),*];

        /// The message if `%` resembles no preset's name.
        const UNKNOWN: &str = concat!("no preset is called `%`; the presets are ", $default, $(", ", $name),*);
    };
}

// A preset that does not parse fails the build.
#[expect(clippy::panic, reason = "evaluated by the compiler only")]
const fn preset(name: &'static str, text: &'static str) -> Preset {
    match Layout::parse_text(text.as_bytes()) {
        Ok(layout) => Preset { name, layout },
        Err(_) => panic!("a preset's text is not a layout"),
    }
}

presets! {
    "twitter" => "timestamp:41|datacenter:5|worker:5|sequence:12@1288834974657/1ms",
    "discord" => "timestamp:42|worker:5|process:5|sequence:12@1420070400000/1ms",
    "leaf" => "timestamp:41|worker:10|sequence:12@1288834974657/1ms",
    "shardingsphere" => "timestamp:41|worker:10|sequence:12@1477929600000/1ms",
    "baidu" => "timestamp:28|worker:22|sequence:13@1463673600000/1s",
    "sonyflake" => "timestamp:39|sequence:8|machine:16@1409529600000/10ms",
    "sonyflake2" => "timestamp:39|sequence:8|machine:16@1735689600000/10ms",
    "easyswoole" => "timestamp:41|datacenter:5|worker:5|sequence:12@1508945092000/1ms",
    "instagram" => "timestamp:41|shard:13|sequence:10@1314220021721/1ms",
    "mastodon" => "timestamp:48|sequence:16@0/1ms",
    "tsid" => "timestamp:42|node:10|sequence:12@1577836800000/1ms",
    "yitter" => "timestamp:41|worker:6|sequence:6@1582136402000/1ms",
    "cosid" => "timestamp:41|machine:10|sequence:12@1577203200000/1ms",
    "cosid-second" => "timestamp:31|machine:10|sequence:22@1577203200000/1s",
    "pgedge" => "timestamp:41|node:10|sequence:12@1672531200000/1ms",
    "seata" => "worker:10|timestamp:41|sequence:12@1588435200000/1ms",
    "business" => "timestamp:41|idc:6|business:6|sequence:10@1288834974657/1ms",
    "clickhouse" => "timestamp:41|machine:10|sequence:12@0/1ms",
    "js-safe" => "timestamp:41|worker:4|sequence:8@1735689600000/1ms",
}

impl Layout {
    /// Creates a layout from the name of a preset (see [`PRESETS`](crate::PRESETS)) or from a layout string of
    /// the form `FIELD:BITS|FIELD:BITS@EPOCH/TICK`.
    ///
    /// EPOCH is in Unix ms, TICK is `Nms` or `Ns`. A string that contains any of `:|@/` is a layout string. Any
    /// other string is the name of a preset.
    ///
    /// # Errors
    ///
    /// `invalid_layout` or `unknown_layout`.
    ///
    /// ```
    /// use polyflake::Layout;
    /// let layout = Layout::parse("timestamp:41|shard:13|sequence:10@1314220021721/1ms")?;
    /// assert_eq!(layout, Layout::parse("instagram")?);
    /// # Ok::<(), polyflake::Error>(())
    /// ```
    pub const fn parse(text: &str) -> Result<Self, Error> {
        let (_, stop, _) = split(text.as_bytes(), b":|@/");
        if stop.is_none() { find(text) } else { Self::parse_text(text.as_bytes()) }
    }
}

impl Default for Layout {
    /// The `twitter` preset.
    fn default() -> Self {
        DEFAULT.layout
    }
}

impl FromStr for Layout {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl TryFrom<&str> for Layout {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

const fn find(name: &str) -> Result<Layout, Error> {
    let mut presets: &[Preset] = &PRESETS;
    while let Some((preset, rest)) = presets.split_first() {
        if same(preset.name.as_bytes(), name.as_bytes()) {
            return Ok(preset.layout);
        }
        presets = rest;
    }
    let name = name.as_bytes();
    if let Some(names) = near(name) {
        let names = names.word();
        return Err(error!(
            UnknownLayout,
            "no preset is called `%`; did you mean %?",
            Bytes(name),
            Word(names)
        ));
    }
    Err(error!(UnknownLayout, UNKNOWN, Bytes(name)))
}

/// Returns the names of the presets that the user may have meant by `name`.
const fn near(name: &[u8]) -> Option<OwnedWord<52>> {
    let mut names = OwnedWord::EMPTY;
    let mut any = false;
    let mut presets: &[Preset] = &PRESETS;
    while let Some((preset, rest)) = presets.split_first() {
        let preset = preset.name.as_bytes();
        if starts_with(preset, name) || edits(preset, name) <= 2 {
            names.push(if any { b", " } else { b"" });
            names.push(preset);
            any = true;
        }
        presets = rest;
    }
    if any { Some(names) } else { None }
}

/// Returns true if a preset's name starts with `name`, which must have at least three letters. Case is
/// ignored.
const fn starts_with(preset: &[u8], name: &[u8]) -> bool {
    match preset.split_at_checked(name.len()) {
        Some((start, _)) => name.len() >= 3 && edits(start, name) == 0,
        None => false,
    }
}

/// Returns how many letters must be changed, added or removed to turn one word into the other (Levenshtein
/// distance). Case is ignored. If `b` is longer than any preset's name, the result is a large number.
const fn edits(a: &[u8], b: &[u8]) -> usize {
    const LONGEST: usize = 24;
    if b.len() > LONGEST {
        return LONGEST;
    }
    // The distances between the part of `a` seen so far and each prefix of `b`.
    let mut row = [0; LONGEST + 1];
    let mut length = 0;
    while length <= LONGEST {
        put(&mut row, length, length);
        length += 1;
    }
    let mut m = 0;
    while let Some(x) = at(a, m) {
        let mut diagonal = m;
        m += 1;
        put(&mut row, 0, m);
        let mut left = m;
        let mut n = 0;
        while let (Some(y), Some(above)) = (at(b, n), at(&row, n + 1)) {
            n += 1;
            left = min(diagonal + !x.eq_ignore_ascii_case(&y) as usize, min(left, above) + 1);
            diagonal = above;
            put(&mut row, n, left);
        }
    }
    match at(&row, b.len()) {
        Some(edits) => edits,
        None => LONGEST,
    }
}

/// `usize::min`, for `const fn`.
const fn min(a: usize, b: usize) -> usize {
    if a < b { a } else { b }
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
            ("", "the presets are twitter, discord, "),
            ("nothing-like-any-preset-at-all", "the presets are twitter, discord, "),
        ] {
            let message = Layout::parse(name).unwrap_err().to_string();
            assert!(message.contains(says), "{message}");
        }
        assert_eq!(edits(b"kitten", b"sitting"), 3);
        assert_eq!(edits(b"abc", b""), 3);
    }
}
