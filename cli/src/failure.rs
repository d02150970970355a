//! Why a command ended, and what it says then.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use polyflake::{Error, ErrorCode};

use crate::reading::told;

/// The command line is wrong.
pub(crate) const USAGE: u8 = 2;

/// The answer to a question is no.
const NO: u8 = 3;

/// Why a command did not do all that it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the core, or one that the core has a name for.
    Error { code: ErrorCode, message: String },
    /// A file or a stream.
    Io(String),
    /// The command line, beyond what clap knows.
    Usage(String),
    /// Everything was said already; only the exit code is left.
    Said(ErrorCode),
    /// The reader has closed the pipe that the output goes to.
    Closed,
    /// The answer of the user was no.
    Declined,
    /// The answer of the command is no, and why.
    No(String),
    /// By a signal.
    Interrupted,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Error { code, message: message.into() }
    }

    /// An option's value that is not one.
    pub(crate) fn option(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidOption, message)
    }

    /// What is wrong with a file or a stream, by its name.
    pub(crate) fn io(name: impl Display, error: &io::Error) -> Self {
        Self::Io(format!("{name}: {error}"))
    }

    /// What it says, where it says anything.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Error { message, .. } | Self::Io(message) | Self::Usage(message) | Self::No(message) => {
                message
            }
            Self::Said(_) | Self::Closed | Self::Declined | Self::Interrupted => "",
        }
    }

    /// Prints it, and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Error { code, message } => {
                complain(code.name(), message);
                ExitCode::from(exit_code(*code))
            }
            Self::Io(message) => {
                complain("io", message);
                ExitCode::from(1)
            }
            Self::Usage(message) => {
                complain("usage", message);
                ExitCode::from(USAGE)
            }
            Self::Said(code) => ExitCode::from(exit_code(*code)),
            Self::Closed => ExitCode::SUCCESS,
            Self::Declined => ExitCode::from(NO),
            Self::No(message) => {
                complain("unknown", message);
                ExitCode::from(NO)
            }
            Self::Interrupted => ExitCode::from(130),
        }
    }
}

/// A line on standard error: `polyflake: invalid_id: ...`. The message may have texts of others in it, and
/// secrets.
pub(crate) fn complain(name: &str, message: &str) {
    let red = anstyle::AnsiColor::Red.on_default().effects(anstyle::Effects::BOLD);
    anstream::eprintln!("polyflake: {red}{name}{red:#}: {}", told(message));
}

/// Texts that are no IDs, among many: the first are named, since a file of something else would fill the screen.
#[derive(Debug, Default)]
pub(crate) struct Refusals(u64);

impl Refusals {
    const MOST_NAMED: u64 = 10;

    /// One more, with where it is: `line 7`.
    pub(crate) fn refuse(&mut self, place: &str, number: u64, why: &str) {
        self.0 += 1;
        if self.0 <= Self::MOST_NAMED {
            complain(ErrorCode::InvalidId.name(), &format!("{place} {number}: {why}"));
        }
    }

    /// How many were not named.
    pub(crate) fn name_the_rest(&self) {
        if self.0 > Self::MOST_NAMED {
            complain(ErrorCode::InvalidId.name(), &format!("{} more", self.0 - Self::MOST_NAMED));
        }
    }

    pub(crate) const fn end(&self) -> Result<(), Failure> {
        if self.0 > 0 { Err(Failure::Said(ErrorCode::InvalidId)) } else { Ok(()) }
    }
}

/// 10 and the error's number, which is permanent.
pub(crate) fn exit_code(code: ErrorCode) -> u8 {
    u8::try_from(code.number()).map_or(u8::MAX, |number| number.saturating_add(10))
}

/// The message of a core's error without its name.
pub(crate) fn message_of(error: &Error) -> String {
    let text = error.to_string();
    match text.split_once(": ") {
        Some((name, message)) if name == error.code().name() => message.to_owned(),
        _ => text,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error { code: error.code(), message: message_of(&error) }
    }
}
