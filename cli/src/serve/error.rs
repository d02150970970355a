//! Why a generator issued no IDs, or a request received none.

use std::borrow::Cow;
use std::fmt;

use polyflake::ErrorCode;

use crate::failure::message_of;
use crate::reading::told;

/// Why a request receives no IDs: a name, and a message for the client, without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    name: Cow<'static, str>,
    message: String,
    option: Option<String>,
    code: ErrorCode,
}

/// The requested generator does not exist.
pub(crate) const UNKNOWN_GENERATOR: &str = "unknown_generator";
/// The server does not issue IDs yet, or a generator cannot issue any at the moment.
pub(crate) const NOT_READY: &str = "not_ready";

impl Error {
    /// An error from your own generator, such as `Error::new("quota_used_up", "..")`. Clients may retry: over
    /// HTTP, it has status 503.
    pub fn new(name: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::of(ErrorCode::CounterUnavailable, message) }
    }

    /// A generator's option is missing, or its value is not accepted. The message says what is accepted.
    pub fn option(option: &str, message: impl Into<String>) -> Self {
        Self { option: Some(option.into()), ..Self::invalid(message) }
    }

    /// An invalid request.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::of(ErrorCode::InvalidOption, message)
    }

    pub(crate) fn of(code: ErrorCode, message: impl Into<String>) -> Self {
        // The message contains untrusted names and keys, and goes to clients and to the log.
        Self { name: code.name().into(), message: told(&message.into()), option: None, code }
    }

    pub(crate) fn unknown_generator(message: impl Into<String>) -> Self {
        Self { name: UNKNOWN_GENERATOR.into(), ..Self::invalid(message) }
    }

    /// The error for clients, without the store's address, which is not their concern, or the store's reply,
    /// which may contain it.
    pub(crate) fn for_clients(self) -> Self {
        Self { message: without_stores(self.message), ..self }
    }

    /// Adds the option that caused the error.
    pub(crate) fn about_option(self, option: &str) -> Self {
        Self { option: Some(option.into()), ..self }
    }

    /// The error's name, such as `lease_lost`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What is wrong, and what would be valid.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The generator's option that the error is about.
    pub(crate) fn about(&self) -> Option<&str> {
        self.option.as_deref()
    }

    /// The code that determines the exit code.
    pub(crate) const fn code(&self) -> ErrorCode {
        self.code
    }
}

/// Cuts off a store's address and the text after it, which comes from the store or the system.
pub(crate) fn without_stores(message: String) -> String {
    let Some(at) = message.find("://") else { return message };
    let before = message.get(..at).unwrap_or_default();
    let word = before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '-').map_or(0, |at| at + 1);
    let said = before.get(..word).unwrap_or_default().trim_end_matches(|c: char| !c.is_alphanumeric());
    format!("{said}; the server's log has more")
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.message)
    }
}

impl std::error::Error for Error {}

impl From<polyflake::Error> for Error {
    fn from(error: polyflake::Error) -> Self {
        Self::of(error.code(), message_of(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_do_not_learn_where_stores_are() {
        for (message, shown) in [
            (
                "the store cannot be reached: redis-cluster://db.internal:1/0: 10.0.0.7:1 refused",
                "the store cannot be reached; the server's log has more",
            ),
            ("leased by 10.0.0.7:8080, for 3 s", "leased by 10.0.0.7:8080, for 3 s"),
        ] {
            assert_eq!(without_stores(message.into()), shown);
        }
    }
}
