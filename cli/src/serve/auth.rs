//! Access control: only clients with the token may ask for IDs.

use std::path::Path;
use std::sync::{PoisonError, RwLock};

use subtle::{Choice, ConstantTimeEq as _};

use crate::secret::warning_of_open;

/// The tokens, any of which admits a client. There are two while one replaces the other. If there are none,
/// everyone is admitted.
pub(crate) struct Token(Option<RwLock<Vec<Vec<u8>>>>);

impl Token {
    pub(crate) fn new(tokens: Option<Vec<Vec<u8>>>) -> Self {
        Self(tokens.map(RwLock::new))
    }

    pub(crate) const fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// From now on, accepts only these tokens. Clients that were already admitted stay connected.
    pub(crate) fn replace(&self, tokens: Vec<Vec<u8>>) {
        if let Some(present) = &self.0 {
            *present.write().unwrap_or_else(PoisonError::into_inner) = tokens;
        }
    }

    /// Takes the same time for all tokens of the same length.
    pub(crate) fn admits(&self, given: &[u8]) -> bool {
        self.0.as_ref().is_none_or(|tokens| {
            let tokens = tokens.read().unwrap_or_else(PoisonError::into_inner);
            let none = Choice::from(0);
            tokens.iter().fold(none, |found, token| found | token.as_slice().ct_eq(given)).into()
        })
    }

    /// Checks the token in the HTTP header `Authorization`.
    pub(crate) fn admits_header(&self, header: Option<&[u8]>) -> bool {
        if !self.is_wanted() {
            return true;
        }
        let given = header.and_then(|header| header.split_at_checked(7));
        given.is_some_and(|(scheme, token)| {
            scheme.eq_ignore_ascii_case(b"bearer ") && self.admits(token.trim_ascii())
        })
    }
}

/// Warns if other users can read a file with a secret.
pub(crate) fn warn_if_open(path: &Path) {
    if let Some(warning) = warning_of_open(path) {
        tracing::warn!("{warning}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_without_the_token() {
        let token = Token::new(Some(vec![b"hunter2".to_vec(), b"hunter3".to_vec()]));
        assert!(token.admits(b"hunter3"));
        assert!(token.admits(b"hunter2") && token.admits_header(Some(b"Bearer hunter2")));
        assert!(token.admits_header(Some(b"bearer  hunter2 ")));
        for wrong in [&b""[..], b"hunter", b"hunter22", b"Hunter2", b"\0"] {
            assert!(!token.admits(wrong));
        }
        for wrong in [None, Some(&b""[..]), Some(b"hunter2"), Some(b"Bearer "), Some(b"Basic hunter2")] {
            assert!(!token.admits_header(wrong));
        }
        token.replace(vec![b"hunter3".to_vec()]);
        assert!(token.admits(b"hunter3") && !token.admits(b"hunter2"));
        let open = Token::new(None);
        assert!(open.admits(b"") && open.admits_header(None));
    }
}
