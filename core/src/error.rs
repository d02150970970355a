//! Every refusal: a permanent code, and a message that names the value and what would fit.

use core::fmt;

use crate::clock::ClockError;
use crate::message::{self, Naming};
use crate::number::{Number, Shown, display};
use crate::text::Format;

/// The permanent number and name of an error, the same in every language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(i32)]
pub enum ErrorCode {
    /// A layout that cannot work.
    InvalidLayout = 1,
    /// No preset of that name.
    UnknownLayout = 2,
    /// A node field missing, unknown or out of range.
    InvalidNode = 3,
    /// Any other option's value or name.
    InvalidOption = 4,
    /// An ID outside its layout, or a text that is no ID.
    InvalidId = 5,
    /// Before the epoch or past the layout's end.
    TimeOutOfRange = 6,
    /// The clock stands further back than `max_backward_ms` allows.
    ClockMovedBackwards = 7,
    /// No slot came free within the time the call may wait.
    SequenceExhausted = 8,
    /// Used in a child of the process that made it.
    Forked = 9,
    /// The caller's clock raised or returned no time.
    ClockFailed = 10,
    /// The state file cannot be opened, or belongs to another layout or node.
    StateFile = 11,
    /// No free worker, or the store cannot be reached.
    LeaseUnavailable = 12,
    /// The lease ran out; nothing more is issued on it.
    LeaseLost = 13,
    /// Used after `close`.
    Closed = 14,
    /// A caught panic: a bug in Polyflake.
    Internal = 99,
}

impl ErrorCode {
    /// Every code, in the order of its number.
    pub const ALL: [Self; 15] = [
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
        Self::Internal,
    ];

    /// The number that stands for this error everywhere.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The name that stands for this error everywhere, such as `invalid_layout`.
    pub const fn name(self) -> &'static str {
        self.texts().0
    }

    /// What the error means, in one sentence that names no value.
    pub const fn message(self) -> &'static str {
        self.texts().1
    }

    const fn texts(self) -> (&'static str, &'static str) {
        match self {
            Self::InvalidLayout => ("invalid_layout", "the layout cannot work"),
            Self::UnknownLayout => ("unknown_layout", "no preset has that name"),
            Self::InvalidNode => ("invalid_node", "a node field is missing, unknown or out of range"),
            Self::InvalidOption => ("invalid_option", "an option's name or value is not valid"),
            Self::InvalidId => ("invalid_id", "the ID lies outside its layout, or the text is no ID"),
            Self::TimeOutOfRange => {
                ("time_out_of_range", "the time lies before the epoch or past the layout's end")
            }
            Self::ClockMovedBackwards => {
                ("clock_moved_backwards", "the clock has moved back by more than is tolerated")
            }
            Self::SequenceExhausted => {
                ("sequence_exhausted", "the sequence is used up and waiting longer is not allowed")
            }
            Self::Forked => ("forked", "used in a child of the process that made it"),
            Self::ClockFailed => ("clock_failed", "the caller's clock failed or returned no time"),
            Self::StateFile => {
                ("state_file", "the state file cannot be opened, or belongs to another layout or node")
            }
            Self::LeaseUnavailable => {
                ("lease_unavailable", "no worker is free, or the lease's store cannot be reached")
            }
            Self::LeaseLost => ("lease_lost", "the lease ran out; nothing more is issued on it"),
            Self::Closed => ("closed", "used after close"),
            Self::Internal => ("internal", "a bug in Polyflake: please report it"),
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A refusal. [`code`](Self::code) says which, its `Display` names the value and what would fit.
///
/// ```
/// use polyflake::{ErrorCode, Layout};
/// let refused = Layout::parse("timestamp:37|worker:20|sequence:16@0/1ms").unwrap_err();
/// assert_eq!(refused.code(), ErrorCode::InvalidLayout);
/// assert_eq!(refused.to_string(), "invalid_layout: the fields take 73 bits, 9 too many: an ID has 64");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error(Detail);

impl Error {
    /// The permanent code.
    pub const fn code(&self) -> ErrorCode {
        match self.0 {
            Detail::Layout(_) => ErrorCode::InvalidLayout,
            Detail::UnknownLayout { .. } => ErrorCode::UnknownLayout,
            Detail::Node(_) => ErrorCode::InvalidNode,
            Detail::Option { .. } | Detail::OptionRange { .. } | Detail::UnknownOption { .. } => {
                ErrorCode::InvalidOption
            }
            #[cfg(feature = "alloc")]
            Detail::OtherBound { .. } => ErrorCode::InvalidOption,
            #[cfg(feature = "std")]
            Detail::OtherClaim { .. } => ErrorCode::InvalidOption,
            #[cfg(feature = "std")]
            Detail::State { .. } => ErrorCode::StateFile,
            Detail::Closed => ErrorCode::Closed,
            Detail::IdTooWide { .. } | Detail::Text(_) => ErrorCode::InvalidId,
            Detail::Time { .. } | Detail::NoTickAfter { .. } | Detail::LayoutEnded { .. } => {
                ErrorCode::TimeOutOfRange
            }
            Detail::Backwards { .. } => ErrorCode::ClockMovedBackwards,
            Detail::Exhausted { .. } => ErrorCode::SequenceExhausted,
            Detail::Clock(_) => ErrorCode::ClockFailed,
            Detail::Forked => ErrorCode::Forked,
        }
    }

    /// The message with the names of options in camelCase, for JavaScript.
    ///
    /// ```
    /// use polyflake::Snowflake;
    /// let refused = Snowflake::builder().node(7).max_wait_ms(-1).build().unwrap_err();
    /// let message = refused.camel_case().to_string();
    /// assert!(message.starts_with("invalid_option: maxWaitMs is -1;"), "{message}");
    /// ```
    pub const fn camel_case(&self) -> CamelCase<'_> {
        CamelCase(self)
    }

    /// [`camel_case`](Self::camel_case) in pieces, for programs that are too small for `core::fmt`.
    pub fn write_camel_case(&self, out: &mut dyn FnMut(&str)) {
        message::write(out, self.code(), &self.0, Naming::Camel);
    }

    /// By how many milliseconds the clock stands behind the last ID issued, with `clock_moved_backwards`.
    pub const fn behind_ms(&self) -> Option<u64> {
        match self.0 {
            Detail::Backwards { behind_ms, .. } => Some(behind_ms),
            _ => None,
        }
    }

    /// After how many milliseconds of the clock the next ID can come, with `clock_moved_backwards` and
    /// `sequence_exhausted`.
    pub const fn retry_after_ms(&self) -> Option<u64> {
        match self.0 {
            Detail::Backwards { retry_after_ms, .. } | Detail::Exhausted { retry_after_ms } => {
                Some(retry_after_ms)
            }
            _ => None,
        }
    }
}

#[cfg(feature = "std")]
impl Error {
    pub(crate) fn state(path: &std::path::Path, fault: StateFault) -> Self {
        Self(Detail::State { path: path_word(path), fault })
    }
}

#[cfg(feature = "std")]
pub(crate) fn path_word(path: &std::path::Path) -> PathWord {
    PathWord::new(path.as_os_str().as_encoded_bytes())
}

impl core::error::Error for Error {}

impl From<core::convert::Infallible> for Error {
    fn from(never: core::convert::Infallible) -> Self {
        match never {}
    }
}

impl From<Detail> for Error {
    fn from(detail: Detail) -> Self {
        Self(detail)
    }
}

/// `Err(fault)` in `const fn`, where `into` cannot be called.
pub(crate) const fn refuse<T>(fault: LayoutFault) -> Result<T, Error> {
    Err(Error(Detail::Layout(fault)))
}

pub(crate) const fn unknown_layout(name: &str) -> Error {
    Error(Detail::UnknownLayout { name: Word::new(name.as_bytes()) })
}

/// As much of a caller's word as an error shows.
pub(crate) type Word = Shown<40>;
/// The names of a layout's node fields, as an error lists them.
pub(crate) type FieldNames = Shown<72>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Layout(LayoutFault),
    UnknownLayout {
        name: Word,
    },
    Node(NodeFault),
    Option {
        option: &'static str,
        value: Word,
        fits: &'static str,
    },
    OptionRange {
        option: &'static str,
        value: Number,
        max: u64,
        min: u64,
    },
    UnknownOption {
        name: Word,
    },
    #[cfg(feature = "alloc")]
    OtherBound {
        option: &'static str,
        value: u32,
        first: u32,
    },
    IdTooWide {
        id: Number,
        bits: u32,
    },
    Text(TextFault),
    Time {
        unix_ms: Number,
        epoch_ms: u64,
        ends_at_ms: u64,
    },
    NoTickAfter {
        unix_ms: Number,
        last_ms: u64,
    },
    LayoutEnded {
        ends_at_ms: u64,
    },
    Backwards {
        behind_ms: u64,
        retry_after_ms: u64,
        max_backward_ms: u32,
    },
    Exhausted {
        retry_after_ms: u64,
    },
    Clock(ClockError),
    Forked,
    /// The cursor stands elsewhere: in this state file, or in none.
    #[cfg(feature = "std")]
    OtherClaim {
        file: Option<PathWord>,
    },
    #[cfg(feature = "std")]
    State {
        path: PathWord,
        fault: StateFault,
    },
    Closed,
}

/// As much of a path as an error shows.
#[cfg(feature = "std")]
pub(crate) type PathWord = Shown<72>;

#[cfg(feature = "std")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(dead_code, reason = "one platform has state files, the other none")]
pub(crate) enum StateFault {
    NoPlatform,
    /// What the operating system said to `action`.
    Os {
        action: &'static str,
        errno: i32,
    },
    NoFile,
    FileSystem {
        kind: u64,
    },
    Size {
        len: u64,
    },
    Foreign,
    ByteOrder,
    Version {
        version: u32,
    },
    Damaged,
    OtherKey {
        epoch_ms: u64,
        tick_ms: u64,
        placed_node: u64,
    },
    FarAhead {
        lead_ms: u64,
    },
    Gone,
}

#[cfg(feature = "std")]
impl StateFault {
    pub(crate) fn os(action: &'static str, error: &std::io::Error) -> Self {
        // What has no number, the standard library refuses itself: a path with a NUL.
        Self::Os { action, errno: error.raw_os_error().unwrap_or(0) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LayoutFault {
    Expected { what: &'static str, found: Word },
    Bits { field: Word, bits: Word },
    FieldName { name: Word },
    Doubled { name: Word },
    Missing { name: &'static str },
    SequenceAboveTimestamp,
    TooManyNodeFields,
    TooManyBits { bits: u32 },
    SequenceTooWide { bits: u32 },
    NodeTooWide { bits: u32 },
    Epoch { epoch: Word },
    Tick { tick: Word },
    EndsTooLate,
    NodeAboveTimestamp { field: Word },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeFault {
    Required { names: FieldNames, max: u64 },
    Whole { value: Number, max: u64 },
    Field { name: Word, value: Number, max: u64 },
    UnknownField { name: Word, names: FieldNames },
    MissingField { name: Word, names: FieldNames },
    Twice { name: Word },
    TooManyFields,
    NoPair { text: Word },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFault {
    Empty { format: Format },
    Foreign { character: char, position: usize, format: Format },
    TooLong { position: usize, format: Format },
    Overflow { position: usize, format: Format },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        display(f, |out| message::write(out, self.code(), &self.0, Naming::Snake))
    }
}

/// An [`Error`]'s message with the names of options as JavaScript writes them, from [`Error::camel_case`].
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

    #[test]
    fn numbers_and_names_are_permanent() {
        let mut names = std::collections::BTreeSet::new();
        for (n, code) in ErrorCode::ALL.into_iter().enumerate() {
            let expected = if code == ErrorCode::Internal { 99 } else { i32::try_from(n).unwrap() + 1 };
            assert_eq!(code.number(), expected);
            assert!(names.insert(code.name()));
        }
        // A `Result<u64, Error>` crosses every call: keep the refusal small.
        assert!(size_of::<Error>() <= 136, "{}", size_of::<Error>());
    }
}
