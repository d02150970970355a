//! Errors: a permanent code, and a message that names the value and says what would be valid.
//!
//! A message is written where the error is created, with [`error!`](crate::error::error): a template with a
//! `%` for each value. An error stores its values and builds the message in pieces, only on demand:
//! `core::fmt` would make the WebAssembly module larger, and `no_std` has no `String`.

use core::fmt;

#[cfg(feature = "std")]
use crate::word::Shown;
use crate::word::{Out, OwnedWord, Word, at, copy, display, narrow, put, write_camel_case, write_u64};

/// The permanent number and name of an error. They are the same in every language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum ErrorCode {
    /// The layout is invalid.
    InvalidLayout = 1,
    /// No preset has this name.
    UnknownLayout = 2,
    /// A node field is missing, unknown or out of range.
    InvalidNode = 3,
    /// The name or value of any other option is invalid.
    InvalidOption = 4,
    /// The ID does not fit its layout, or the string is not an ID.
    InvalidId = 5,
    /// The time is before the epoch or past the layout's end.
    TimeOutOfRange = 6,
    /// The clock stepped back further than `max_backward_ms` allows.
    ClockMovedBackwards = 7,
    /// No slot became available within the time that the call may wait.
    SequenceExhausted = 8,
    /// The Snowflake was used in a child of the process that created it.
    Forked = 9,
    /// The caller's clock failed or returned no time.
    ClockFailed = 10,
    /// The state file cannot be opened, or belongs to another layout or node.
    StateFile = 11,
    /// No worker is free, or the store cannot be reached.
    LeaseUnavailable = 12,
    /// The lease expired, and no more IDs are issued under it.
    LeaseLost = 13,
    /// The Snowflake was used after `close`.
    Closed = 14,
    /// A counter has no numbers left: its store did not provide any in time, or the counter has reached its
    /// end.
    CounterUnavailable = 15,
    /// A panic was caught: this is a bug in Polyflake.
    Internal = 99,
}

impl ErrorCode {
    /// All codes, in numerical order.
    pub const ALL: [Self; 16] = [
        Self::InvalidLayout,
        Self::UnknownLayout,
        Self::InvalidNode,
        Self::InvalidOption,
        Self::InvalidId,
        Self::TimeOutOfRange,
        Self::ClockMovedBackwards,
        Self::SequenceExhausted,
        Self::Forked,
        Self::ClockFailed,
        Self::StateFile,
        Self::LeaseUnavailable,
        Self::LeaseLost,
        Self::Closed,
        Self::CounterUnavailable,
        Self::Internal,
    ];

    /// The error's number, the same in every language.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The error's name, the same in every language, such as `invalid_layout`.
    pub const fn name(self) -> &'static str {
        self.texts().0
    }

    /// The meaning of the error, in one sentence without values.
    pub const fn message(self) -> &'static str {
        self.texts().1
    }

    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::InvalidLayout => ("invalid_layout", "the layout cannot work"),
            Self::UnknownLayout => ("unknown_layout", "no preset has that name"),
            Self::InvalidNode => ("invalid_node", "a node field is missing, unknown or out of range"),
            Self::InvalidOption => ("invalid_option", "an option's name or value is not valid"),
            Self::InvalidId => ("invalid_id", "the ID is outside its layout, or the string is not an ID"),
            Self::TimeOutOfRange => {
                ("time_out_of_range", "the time is before the epoch or past the layout's end")
            }
            Self::ClockMovedBackwards => {
                ("clock_moved_backwards", "the clock moved back further than allowed")
            }
            Self::SequenceExhausted => {
                ("sequence_exhausted", "the sequence is used up and waiting longer is not allowed")
            }
            Self::Forked => ("forked", "used in a child of the process that created it"),
            Self::ClockFailed => ("clock_failed", "the caller's clock failed or returned no time"),
            Self::StateFile => {
                ("state_file", "the state file cannot be opened, or belongs to another layout or node")
            }
            Self::LeaseUnavailable => {
                ("lease_unavailable", "no worker is free, or the lease's store cannot be reached")
            }
            Self::LeaseLost => ("lease_lost", "the lease expired, and no more IDs are issued under it"),
            Self::Closed => ("closed", "used after close"),
            Self::CounterUnavailable => (
                "counter_unavailable",
                "the counter has no numbers left, and its store did not provide any in time",
            ),
            Self::Internal => ("internal", "a bug in Polyflake: please report it"),
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An error. [`code`](Self::code) identifies it, and `Display` names the value and says what would be valid.
///
/// ```
/// use polyflake::{ErrorCode, Layout};
/// let error = Layout::parse("timestamp:37|worker:20|sequence:16@0/1ms").unwrap_err();
/// assert_eq!(error.code(), ErrorCode::InvalidLayout);
/// assert_eq!(error.to_string(), "invalid_layout: the fields take 73 bits, 9 too many: an ID has 64");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error {
    template: &'static str,
    code: ErrorCode,
    values: Values,
}

/// A value that replaces a `%` in a template.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'a> {
    /// A string from the caller.
    Bytes(&'a [u8]),
    /// A copied string from the caller.
    Given(OwnedWord),
    /// A string that is truncated if it is long.
    Word(Word<'a>),
    /// A string from Polyflake.
    Text(&'a str),
    /// The name of an option, shown in camelCase in JavaScript.
    Option(&'a str),
    Number(u64),
    /// An operating system's error number.
    #[cfg(feature = "std")]
    Os(i32),
}

/// `error!(InvalidLayout, "field % has % bits", Bytes(name), Number(bits))`: builds an [`Error`] from its
/// code, its template and the values. It does not compile unless each `%` has a value. It works in `const`.
macro_rules! error {
    ($code:ident, $template:expr $(, $kind:ident($value:expr))* $(,)?) => {{
        const { $crate::error::check($template, &[$(stringify!($kind)),*]) }
        $crate::error::Error::new(
            $crate::error::ErrorCode::$code,
            $template,
            &[$($crate::error::Value::$kind($value)),*],
        )
    }};
}
pub(crate) use error;

/// Fails the build if the number of values differs from the number of `%` in the template.
pub(crate) const fn check(template: &str, values: &[&str]) {
    let mut count = 0;
    let mut rest = template.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        if *byte == b'%' {
            count += 1;
        }
        rest = after;
    }
    assert!(count == values.len(), "a template's `%` and its values differ in number");
}

impl Error {
    pub(crate) const fn new(code: ErrorCode, template: &'static str, mut given: &[Value<'_>]) -> Self {
        let mut values = Values::EMPTY;
        while let Some((value, rest)) = given.split_first() {
            values = values.with(value);
            given = rest;
        }
        Self { template, code, values }
    }

    /// Creates an error whose message comes from outside (from a store, for example) and may be long. Every
    /// language shows the message unchanged, except for [hidden](crate::is_hidden) characters, since other
    /// programs may have written to the store.
    #[cfg(feature = "std")]
    #[doc(hidden)]
    pub fn from_outside(code: ErrorCode, message: &str) -> Self {
        let message = &*std::format!("{}", Shown(message));
        match kept(message) {
            Some(message) => Self { template: message, code, values: Values::VERBATIM },
            None => Self::new(code, "%", &[Value::Bytes(message.as_bytes())]),
        }
    }

    /// Creates the error for an option that does not exist. The template has a `%` for its name.
    #[doc(hidden)]
    pub const fn unknown_option(template: &'static str, name: &str) -> Self {
        Self::new(ErrorCode::InvalidOption, template, &[Value::Bytes(name.as_bytes())])
    }

    /// The permanent code.
    pub const fn code(&self) -> ErrorCode {
        self.code
    }

    /// The message with option names in camelCase, as in JavaScript.
    ///
    /// ```
    /// use polyflake::Snowflake;
    /// let error = Snowflake::builder().node(7).max_wait_ms(-1).build().unwrap_err();
    /// let message = error.camel_case().to_string();
    /// assert!(message.starts_with("invalid_option: maxWaitMs is -1;"), "{message}");
    /// ```
    pub const fn camel_case(&self) -> CamelCase<'_> {
        CamelCase(self)
    }

    /// Writes [`camel_case`](Self::camel_case) in pieces, for programs that are too small to include
    /// `core::fmt`.
    pub fn write_camel_case(&self, out: &mut dyn FnMut(&str)) {
        self.write(out, write_camel_case);
    }

    /// Writes the message. `write_ours` writes the parts that come from Polyflake.
    fn write(&self, out: &mut Out<'_>, write_ours: fn(&mut Out<'_>, &str)) {
        out(self.code.name());
        out(": ");
        #[cfg(feature = "std")]
        if self.values == Values::VERBATIM {
            return out(self.template);
        }
        let mut rest = self.template;
        for value in self.values.iter() {
            let (before, after) = rest.split_once('%').unwrap_or((rest, ""));
            write_ours(out, before);
            match value {
                Stored::Text(word) => word.write_to(out),
                Stored::Option(name) => write_ours(out, name),
                Stored::Number(number) => write_u64(out, number),
                #[cfg(feature = "std")]
                Stored::Os(0) => out("the path is not valid"),
                #[cfg(feature = "std")]
                Stored::Os(errno) => {
                    out(&std::string::ToString::to_string(&std::io::Error::from_raw_os_error(errno)));
                }
            }
            rest = after;
        }
        write_ours(out, rest);
    }

    /// For `clock_moved_backwards`, how many milliseconds the clock is behind the last ID issued, less `max_ahead_ms`.
    pub const fn behind_ms(&self) -> Option<u64> {
        match self.code {
            ErrorCode::ClockMovedBackwards => self.values.number(0),
            _ => None,
        }
    }

    /// For `clock_moved_backwards` and `sequence_exhausted`, how many milliseconds the clock must advance
    /// before the next ID can be issued. For `lease_lost`, the number of milliseconds until the next request
    /// to the store, if another will be made.
    pub const fn retry_after_ms(&self) -> Option<u64> {
        match self.code {
            ErrorCode::ClockMovedBackwards | ErrorCode::LeaseLost => self.values.number(2),
            ErrorCode::SequenceExhausted => self.values.number(0),
            _ => None,
        }
    }
}

/// The values of a message, stored back to back. Kept small, because every call returns a `Result` with room
/// for an error.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Values {
    bytes: [u8; Self::BYTES],
    ends: [u8; Self::MAX],
    kinds: [Kind; Self::MAX],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    None,
    Text,
    CutText,
    Option,
    Number,
    #[cfg(feature = "std")]
    Os,
    /// No value: the template is itself a message from outside.
    #[cfg(feature = "std")]
    Verbatim,
}

/// A value read back from [`Values`].
enum Stored<'a> {
    Text(Word<'a>),
    Option(&'a str),
    Number(u64),
    #[cfg(feature = "std")]
    Os(i32),
}

impl Values {
    /// Enough for a path and three numbers, or for two words.
    const BYTES: usize = 92;
    const MAX: usize = 4;
    const EMPTY: Self =
        Self { bytes: [0; Self::BYTES], ends: [0; Self::MAX], kinds: [Kind::None; Self::MAX] };

    #[cfg(feature = "std")]
    const VERBATIM: Self = Self { kinds: [Kind::Verbatim; Self::MAX], ..Self::EMPTY };

    const fn with(self, value: &Value<'_>) -> Self {
        match value {
            Value::Bytes(text) => self.with_word(Word::new(text)),
            Value::Given(word) => self.with_word(word.word()),
            Value::Word(word) => self.with_word(*word),
            Value::Text(text) => self.with_word(Word::whole(text)),
            Value::Option(name) => self.with_bytes(name.as_bytes(), Kind::Option),
            Value::Number(number) => self.with_bytes(&number.to_ne_bytes(), Kind::Number),
            #[cfg(feature = "std")]
            Value::Os(errno) => self.with_bytes(&errno.to_ne_bytes(), Kind::Os),
        }
    }

    const fn with_word(self, word: Word<'_>) -> Self {
        self.with_bytes(word.bytes(), if word.is_cut() { Kind::CutText } else { Kind::Text })
    }

    /// Adds a value. A string that does not fit is truncated.
    const fn with_bytes(mut self, bytes: &[u8], kind: Kind) -> Self {
        let mut index = 0;
        let mut start = 0;
        while let (Some(before), Some(end)) = (at(&self.kinds, index), at(&self.ends, index)) {
            if matches!(before, Kind::None) {
                break;
            }
            start = end as usize;
            index += 1;
        }
        let (end, is_cut) = copy(&mut self.bytes, start, bytes);
        put(&mut self.kinds, index, if is_cut { Kind::CutText } else { kind });
        put(&mut self.ends, index, narrow(end));
        self
    }

    fn iter(&self) -> impl Iterator<Item = Stored<'_>> {
        let mut start = 0;
        self.kinds.iter().zip(&self.ends).map_while(move |(kind, end)| {
            let bytes = self.bytes.get(start..(*end).into()).unwrap_or_default();
            start = (*end).into();
            let word = |is_cut| Stored::Text(Word::piece(bytes, is_cut));
            match kind {
                Kind::None => None,
                #[cfg(feature = "std")]
                Kind::Verbatim => None,
                Kind::Text => Some(word(false)),
                Kind::CutText => Some(word(true)),
                Kind::Option => core::str::from_utf8(bytes).ok().map(Stored::Option),
                Kind::Number => bytes.try_into().ok().map(u64::from_ne_bytes).map(Stored::Number),
                #[cfg(feature = "std")]
                Kind::Os => bytes.try_into().ok().map(i32::from_ne_bytes).map(Stored::Os),
            }
        })
    }

    /// Returns the value at `index` as a number.
    const fn number(&self, index: usize) -> Option<u64> {
        let start = match index.checked_sub(1) {
            Some(before) => at(&self.ends, before),
            None => Some(0),
        };
        match (at(&self.kinds, index), start) {
            (Some(Kind::Number), Some(start)) => {
                let (_, from) = self.bytes.split_at(start as usize);
                match from.first_chunk() {
                    Some(bytes) => Some(u64::from_ne_bytes(*bytes)),
                    None => None,
                }
            }
            _ => None,
        }
    }
}

/// Returns a copy of the message that lives as long as the process, because errors are `Copy`. At most a few
/// hundred messages are kept.
#[cfg(feature = "std")]
fn kept(text: &str) -> Option<&'static str> {
    use std::sync::{Mutex, TryLockError};

    static TEXTS: Mutex<std::collections::BTreeSet<&'static str>> =
        Mutex::new(std::collections::BTreeSet::new());
    const MAX: usize = 512;
    const MAX_LENGTH: usize = 1024;
    const MAX_TRIES: u32 = 10_000;

    // In a child that was forked while another thread held the lock, the lock is never released.
    let mut tries = 0;
    let mut texts = loop {
        match TEXTS.try_lock() {
            Ok(texts) => break texts,
            Err(TryLockError::Poisoned(texts)) => break texts.into_inner(),
            Err(TryLockError::WouldBlock) if tries == MAX_TRIES => return None,
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
        tries += 1;
    };
    if let Some(text) = texts.get(text) {
        return Some(text);
    }
    if texts.len() == MAX || text.len() > MAX_LENGTH {
        return None;
    }
    let text: &'static str = std::boxed::Box::leak(text.into());
    texts.insert(text);
    Some(text)
}

impl core::error::Error for Error {}

impl From<core::convert::Infallible> for Error {
    fn from(never: core::convert::Infallible) -> Self {
        match never {}
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(f, |out| self.write(out, |out, name| out(name)))
    }
}

/// The message of an [`Error`] with option names as JavaScript spells them, from [`Error::camel_case`].
#[derive(Debug, Clone, Copy)]
pub struct CamelCase<'a>(&'a Error);

impl fmt::Display for CamelCase<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(f, |out| self.0.write_camel_case(out))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn numbers_and_names_are_permanent() {
        let mut names = std::collections::BTreeSet::new();
        for (n, code) in ErrorCode::ALL.into_iter().enumerate() {
            let expected = if code == ErrorCode::Internal { 99 } else { i32::try_from(n).unwrap() + 1 };
            assert_eq!(code.number(), expected);
            assert!(names.insert(code.name()));
        }
        // clippy's `result_large_err` warns callers at 128 bytes and up.
        assert!(size_of::<Error>() <= 120, "{}", size_of::<Error>());
    }

    #[test]
    fn a_message_from_outside_is_shown_as_it_is_and_few_are_kept() {
        let of = |text: &str| Error::from_outside(ErrorCode::LeaseUnavailable, text);
        let long = "100 % of web_1's nodes are leased: ".repeat(10);
        assert_eq!(of(&long).to_string(), std::format!("lease_unavailable: {long}"));
        assert_eq!(of(&long).camel_case().to_string(), std::format!("lease_unavailable: {long}"));
        assert_eq!(of(&long), of(&long));
        let hostile = of("`\u{1b}[2J\u{9b}\n\u{202e}\u{200b}é 名` has it");
        let shown = "lease_unavailable: `\\u{1b}[2J\\u{9b}\\u{a}\\u{202e}\\u{200b}é 名` has it";
        assert_eq!((hostile.to_string(), hostile.camel_case().to_string()), (shown.into(), shown.into()));
        for n in 0..1000 {
            of(&std::format!("{n} nodes"));
        }
        assert_eq!(of("none % left").to_string(), "lease_unavailable: none % left");
    }

    #[test]
    fn values_take_the_places_of_their_template() {
        let error =
            error!(InvalidOption, "% is `%`, not %", Option("max_wait_ms"), Text("a\nb"), Number(u64::MAX));
        assert_eq!(error.to_string(), "invalid_option: max_wait_ms is `a\\u{a}b`, not 18446744073709551615");
        let camel_case = error.camel_case().to_string();
        assert_eq!(camel_case, "invalid_option: maxWaitMs is `a\\u{a}b`, not 18446744073709551615");
        assert_eq!(error!(Closed, "closed").to_string(), "closed: closed");
        let long = "x".repeat(200);
        let cut = error!(InvalidId, "% and %", Bytes(long.as_bytes()), Text(&long)).to_string();
        assert_eq!(cut, std::format!("invalid_id: {}… and {}…", "x".repeat(40), "x".repeat(52)));
    }
}
