//! Who may ask: whoever has the token.

use subtle::ConstantTimeEq as _;

/// What clients must have; everybody may ask where there is none.
#[derive(Clone)]
pub(crate) struct Token(Option<Vec<u8>>);

impl Token {
    pub(crate) const fn new(token: Option<Vec<u8>>) -> Self {
        Self(token)
    }

    pub(crate) const fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// In the same time whatever was given, but for its length.
    pub(crate) fn admits(&self, given: &[u8]) -> bool {
        self.0.as_ref().is_none_or(|token| token.as_slice().ct_eq(given).into())
    }

    /// What HTTP has in the header `Authorization`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_without_the_token() {
        let token = Token::new(Some(b"hunter2".to_vec()));
        assert!(token.admits(b"hunter2") && token.admits_header(Some(b"Bearer hunter2")));
        assert!(token.admits_header(Some(b"bearer  hunter2 ")));
        for wrong in [&b""[..], b"hunter", b"hunter22", b"Hunter2", b"\0"] {
            assert!(!token.admits(wrong));
        }
        for wrong in [None, Some(&b""[..]), Some(b"hunter2"), Some(b"Bearer "), Some(b"Basic hunter2")] {
            assert!(!token.admits_header(wrong));
        }
        let open = Token::new(None);
        assert!(open.admits(b"") && open.admits_header(None));
    }
}
