//! The reasons a command can fail, and their messages.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use polyflake::{Error, ErrorCode};

use crate::reading::told;

/// The command line is wrong.
pub(crate) const USAGE: u8 = 2;

/// The user answered no.
const NO: u8 = 3;

/// Why a command did not do everything it was asked to do.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error from the core, or one for which the core has a name.
    Error { code: ErrorCode, message: String },
    /// An I/O error on a file or a stream.
    Io(String),
    /// An error in the command line that clap does not check for.
    Usage(String),
    /// Everything has been printed already; only the exit code is left.
    Said(ErrorCode),
    /// The reader closed the output pipe.
    Closed,
    /// The user answered no.
    Declined,
    /// The command's answer is no, with the reason.
    No(String),
    /// A signal interrupted the command.
    Interrupted,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Error { code, message: message.into() }
    }

    /// A value that an option does not accept.
    pub(crate) fn option(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidOption, message)
    }

    /// An I/O error on a file or a stream, including its name.
    pub(crate) fn io(name: impl Display, error: &io::Error) -> Self {
        Self::Io(format!("{name}: {error}"))
    }

    /// The message, if there is one.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Error { message, .. } | Self::Io(message) | Self::Usage(message) | Self::No(message) => {
                message
            }
            Self::Said(_) | Self::Closed | Self::Declined | Self::Interrupted => "",
        }
    }

    /// Prints the message, and returns the exit code.
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

/// Prints a line on standard error: `polyflake: invalid_id: ...`. The message may contain untrusted text and secrets.
pub(crate) fn complain(name: &str, message: &str) {
    let red = anstyle::AnsiColor::Red.on_default().effects(anstyle::Effects::BOLD);
    anstream::eprintln!("polyflake: {red}{name}{red:#}: {}", told(message));
}

/// Reports strings that are not IDs. Only the first few are named, so that the wrong file does not fill the screen.
#[derive(Debug, Default)]
pub(crate) struct Refusals(u64);

impl Refusals {
    const MOST_NAMED: u64 = 10;

    /// Adds a string, with its position: `line 7`.
    pub(crate) fn refuse(&mut self, place: &str, number: u64, why: &str) {
        self.0 += 1;
        if self.0 <= Self::MOST_NAMED {
            complain(ErrorCode::InvalidId.name(), &format!("{place} {number}: {why}"));
        }
    }

    /// Prints how many strings were not named.
    pub(crate) fn name_the_rest(&self) {
        if self.0 > Self::MOST_NAMED {
            complain(ErrorCode::InvalidId.name(), &format!("{} more", self.0 - Self::MOST_NAMED));
        }
    }

    pub(crate) const fn end(&self) -> Result<(), Failure> {
        if self.0 > 0 { Err(Failure::Said(ErrorCode::InvalidId)) } else { Ok(()) }
    }
}

/// 10 plus the error's number, which is permanent.
pub(crate) fn exit_code(code: ErrorCode) -> u8 {
    u8::try_from(code.number()).map_or(u8::MAX, |number| number.saturating_add(10))
}

/// The message of a core error without its name.
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
