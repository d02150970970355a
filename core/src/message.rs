//! What an error says: a template for each refusal, with `%` where a value stands.
//!
//! Templates, and not `write!`, for size: WebAssembly downloads this.

use core::fmt::{self, Write as _};

use crate::error::{Detail, ErrorCode, LayoutFault, NodeFault, TextFault};
use crate::layout::{MAX_NODE_FIELDS, ones};
use crate::number::{Number, write_given, write_u64};
use crate::options;

/// How a language writes the names of options.
#[derive(Clone, Copy)]
pub(crate) enum Naming {
    Snake,
    Camel,
}

/// What stands in the place of a `%`.
#[derive(Clone, Copy)]
enum Value<'a> {
    Text(&'a str),
    /// A piece of the caller's text, and whether it was cut.
    Given(&'a [u8], bool),
    Count(u64),
    Number(&'a Number),
    Character(char),
    Option(&'static str),
    /// The names of all options.
    Options,
    /// The presets whose names are near to this one, or all.
    Presets(&'a [u8]),
}

use Value::{Character, Count, Options, Presets, Text};

pub(crate) fn write(
    f: &mut fmt::Formatter<'_>,
    code: ErrorCode,
    detail: &Detail,
    naming: Naming,
) -> fmt::Result {
    f.write_str(code.name())?;
    f.write_str(": ")?;
    let mut words = Words { f, naming };
    match detail {
        Detail::Layout(fault) => words.of_layout(fault),
        Detail::Node(fault) => words.of_node(fault),
        Detail::Text(fault) => words.of_text(*fault),
        other => words.of_other(other),
    }
}

struct Words<'a, 'b> {
    f: &'a mut fmt::Formatter<'b>,
    naming: Naming,
}

impl Words<'_, '_> {
    /// A template and its values.
    fn say(&mut self, template: &str, values: &[Value<'_>]) -> fmt::Result {
        debug_assert_eq!(template.matches('%').count(), values.len(), "{template}");
        let mut values = values.iter();
        let mut rest = template;
        while let Some(at) = rest.bytes().position(|byte| byte == b'%') {
            let (before, after) = rest.split_at_checked(at).unwrap_or_default();
            self.f.write_str(before)?;
            if let Some(value) = values.next() {
                value.write(self.f, self.naming)?;
            }
            rest = after.get(1..).unwrap_or_default();
        }
        self.f.write_str(rest)
    }

    fn of_other(&mut self, detail: &Detail) -> fmt::Result {
        match detail {
        Detail::UnknownLayout { name } => {
            self.say("no preset is called `%`; %", &[name.value(), Presets(name.as_bytes())])
        }
        Detail::Option { option, value, fits } => {
            self.say("% is `%`; it takes %", &[Value::Option(option), value.value(), Text(fits)])
        }
        Detail::OptionRange { option, value, min, max } => self.say(
            "% is %; it takes a whole number from % to %",
            &[Value::Option(option), Value::Number(value), Count(*min), Count(*max)],
        ),
        Detail::UnknownOption { name } => self.say("there is no option `%`; there are %", &[name.value(), Options]),
        #[cfg(feature = "alloc")]
        Detail::OtherBound { option, value, first } => self.say(
            "% is %, but this process already issues IDs for this layout and node with % %: one node has one cursor, \
             and its bounds are the first's",
            &[
                Value::Option(option),
                Count(u64::from(*value)),
                Value::Option(option),
                Count(u64::from(*first)),
            ],
        ),
        Detail::IdTooWide { id, bits } => self.say(
            "ID % does not fit % bits; it takes 0 to %",
            &[Value::Number(id), Count(u64::from(*bits)), Count(ones(*bits))],
        ),
        Detail::Time { unix_ms, epoch_ms, ends_at_ms } => self.say(
            "% (Unix ms) lies outside the layout's time, from its epoch % to its end %",
            &[Value::Number(unix_ms), Count(*epoch_ms), Count(*ends_at_ms)],
        ),
        Detail::NoTickAfter { unix_ms, last_ms } => self.say(
            "no tick begins at or after % (Unix ms); the layout's last begins at %",
            &[Value::Number(unix_ms), Count(*last_ms)],
        ),
        Detail::LayoutEnded { ends_at_ms } => {
            self.say("the layout's last ID is used up; its time ends at % (Unix ms)", &[Count(*ends_at_ms)])
        }
        Detail::Backwards { behind_ms, retry_after_ms, max_backward_ms } => self.say(
            "the clock stands % ms behind the last ID (% is %); the next ID can come in % ms",
            &[
                Count(*behind_ms),
                Value::Option(options::MAX_BACKWARD_MS),
                Count(u64::from(*max_backward_ms)),
                Count(*retry_after_ms),
            ],
        ),
        Detail::Exhausted { retry_after_ms } => self.say(
            "the sequence of this tick is used up; the next ID can come in % ms",
            &[Count(*retry_after_ms)],
        ),
        Detail::Clock(error) => self.say("%", &[Text(error.reason())]),
        Detail::Forked => self.say(
            "the parent process had this Snowflake, or one for the same IDs, before it forked, and two processes that \
             share a node repeat IDs; build one after the fork, with a node that is this process's own",
            &[],
        ),
        // What has faults of its own.
        _ => self.say("", &[]),
    }
    }

    fn of_layout(&mut self, fault: &LayoutFault) -> fmt::Result {
        match fault {
        LayoutFault::Expected { what, found } => self.say(
            "expected %, found `%`; a layout is written FIELD:BITS|FIELD:BITS@EPOCH/TICK, such as \
             timestamp:41|worker:10|sequence:12@1288834974657/1ms",
            &[Text(what), found.value()],
        ),
        LayoutFault::Bits { field, bits } => {
            self.say("field % has `%` bits; it takes 1 to 64", &[field.value(), bits.value()])
        }
        LayoutFault::FieldName { name } => self.say(
            "`%` is no field name: a name is 1 to 24 characters of a-z, 0-9, _ and -, the first a letter",
            &[name.value()],
        ),
        LayoutFault::Doubled { name } => self.say("field % stands twice; each field stands once", &[name.value()]),
        LayoutFault::Missing { name } => self.say("there is no % field; a layout has exactly one", &[Text(name)]),
        LayoutFault::SequenceAboveTimestamp => {
            self.say("the sequence stands above the timestamp; IDs would not sort by time", &[])
        }
        LayoutFault::TooManyNodeFields => {
            self.say("there are more than % node fields", &[Count(MAX_NODE_FIELDS as u64)])
        }
        LayoutFault::TooManyBits { bits } => self.say(
            "the fields take % bits, % too many: an ID has 64",
            &[Count(u64::from(*bits)), Count(u64::from(bits.saturating_sub(64)))],
        ),
        LayoutFault::SequenceTooWide { bits } => {
            self.say("the sequence has % bits; it takes 1 to 32", &[Count(u64::from(*bits))])
        }
        LayoutFault::NodeTooWide { bits } => {
            self.say("the node fields have % bits together; they take at most 32", &[Count(u64::from(*bits))])
        }
        LayoutFault::Epoch { epoch } => {
            self.say("the epoch is `%`; it takes Unix ms from 0 to 9223372036854775807", &[epoch.value()])
        }
        LayoutFault::Tick { tick } => self.say(
            "the tick is `%`; it takes a whole number of ms or s from 1, such as 1ms or 10s",
            &[tick.value()],
        ),
        LayoutFault::EndsTooLate => self.say(
            "the timestamp reaches past Unix ms 9223372036854775807: take fewer bits, a shorter tick or an earlier epoch",
            &[],
        ),
        LayoutFault::NodeAboveTimestamp { field } => self.say(
            "IDs of this layout do not sort by time, for node field % stands above the timestamp: no range of IDs holds \
             a span of time",
            &[field.value()],
        ),
    }
    }

    fn of_node(&mut self, fault: &NodeFault) -> fmt::Result {
        match fault {
        NodeFault::Required { names, max } => self.say(
            "node is missing; it takes a whole number from 0 to % that no other process uses, or a value for each of %",
            &[Count(*max), names.value()],
        ),
        NodeFault::Whole { value, max } => {
            self.say("node is %; it takes a whole number from 0 to %", &[Value::Number(value), Count(*max)])
        }
        NodeFault::Field { name, value, max } => self.say(
            "node field % is %; it takes a whole number from 0 to %",
            &[name.value(), Value::Number(value), Count(*max)],
        ),
        NodeFault::UnknownField { name, names } if names.as_bytes().is_empty() => {
            self.say("the layout has no node field `%`; it has none", &[name.value()])
        }
        NodeFault::UnknownField { name, names } => {
            self.say("the layout has no node field `%`; it has %", &[name.value(), names.value()])
        }
        NodeFault::MissingField { name, names } => {
            self.say("node field % is missing; the layout has %", &[name.value(), names.value()])
        }
        NodeFault::Twice { name } => self.say("node field % is given twice", &[name.value()]),
        NodeFault::TooManyFields => {
            self.say("more node fields are given than the % a layout may have", &[Count(MAX_NODE_FIELDS as u64)])
        }
        NodeFault::NoPair { text } => self.say(
            "`%` is no node; it takes a number, such as 7, or FIELD=NUMBER pairs joined by commas",
            &[text.value()],
        ),
    }
    }

    fn of_text(&mut self, fault: TextFault) -> fmt::Result {
        match fault {
            TextFault::Empty { format } => self.say("an empty text is no % ID", &[Text(format.name())]),
            TextFault::Foreign { character, position, format } => self.say(
                "`%` at position % is no % digit; the digits are %",
                &[Character(character), Count(position as u64), Text(format.name()), Text(format.alphabet())],
            ),
            TextFault::TooLong { position, format } => self.say(
                "a % ID has at most % characters; there is another at position %",
                &[Text(format.name()), Count(format.max_len() as u64), Count(position as u64)],
            ),
            TextFault::Overflow { position, format } => self.say(
                "the % ID passes 64 bits (18446744073709551615) at position %",
                &[Text(format.name()), Count(position as u64)],
            ),
        }
    }
}

impl<const N: usize> crate::number::Shown<N> {
    const fn value(&self) -> Value<'_> {
        Value::Given(self.as_bytes(), self.is_cut())
    }
}

impl Value<'_> {
    fn write(self, f: &mut fmt::Formatter<'_>, naming: Naming) -> fmt::Result {
        match self {
            Text(text) => f.write_str(text),
            Value::Given(bytes, cut) => write_given(f, bytes, cut),
            Count(count) => write_u64(f, count),
            Value::Number(number) => fmt::Display::fmt(number, f),
            Character(character) => write_character(f, character),
            Value::Option(name) => write_option(f, name, naming),
            Options => list(f, options::NAMES.into_iter(), naming),
            Presets(name) => {
                let mut near = crate::presets::near(name).peekable();
                // No preset's name has a `_`, so that both namings write it alike.
                if near.peek().is_none() {
                    f.write_str("there are ")?;
                    return list(f, crate::presets::PRESETS.iter().map(|preset| preset.name), naming);
                }
                f.write_str("did you mean ")?;
                list(f, near, naming)?;
                f.write_str("?")
            }
        }
    }
}

/// A character as it is, if it is one that can be told from others; else its number, such as `\u{200b}`.
pub(crate) fn write_character(f: &mut fmt::Formatter<'_>, character: char) -> fmt::Result {
    if character.is_ascii_graphic() || character == ' ' {
        f.write_char(character)
    } else {
        character.escape_unicode().try_for_each(|letter| f.write_char(letter))
    }
}

fn write_option(f: &mut fmt::Formatter<'_>, name: &str, naming: Naming) -> fmt::Result {
    match naming {
        Naming::Snake => f.write_str(name),
        Naming::Camel => camel_case(name).try_for_each(|letter| f.write_char(letter)),
    }
}

/// The letters of `max_wait_ms` as `maxWaitMs`.
pub(crate) fn camel_case(name: &str) -> impl Iterator<Item = char> {
    let mut starts_word = false;
    name.chars().filter_map(move |letter| {
        let was_start = core::mem::replace(&mut starts_word, letter == '_');
        (letter != '_').then(|| if was_start { letter.to_ascii_uppercase() } else { letter })
    })
}

fn list<'a>(f: &mut fmt::Formatter<'_>, names: impl Iterator<Item = &'a str>, naming: Naming) -> fmt::Result {
    for (n, name) in names.enumerate() {
        f.write_str(if n == 0 { "" } else { ", " })?;
        write_option(f, name, naming)?;
    }
    Ok(())
}
