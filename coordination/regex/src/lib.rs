//! A replacement for the crate `regex`, built on `regex-lite`. It has only the functions that `mysql_common` uses to
//! read a server's version and public key. `regex` itself has tables for all of Unicode and several engines, which made
//! each of Polyflake's packages 1.2 MB larger. The replacement applies only in this workspace: Rust programs that depend
//! on `polyflake-coordination` use `regex`.

/// Searches bytes, treating each byte as a character.
pub mod bytes {
    pub use regex_lite::Error;

    /// A pattern.
    #[derive(Debug)]
    pub struct Regex(regex_lite::Regex);

    impl Regex {
        /// Compiles a pattern. In it, `\d` is an ASCII digit.
        ///
        /// # Errors
        ///
        /// The pattern is invalid.
        pub fn new(pattern: &str) -> Result<Self, Error> {
            regex_lite::Regex::new(pattern).map(Self)
        }

        /// Returns whether the text matches the pattern.
        pub fn is_match(&self, text: &[u8]) -> bool {
            self.0.is_match(&characters(text))
        }

        /// Returns the first match and its groups.
        pub fn captures<'t>(&self, text: &'t [u8]) -> Option<Captures<'t>> {
            let characters = characters(text);
            let captures = self.0.captures(&characters)?;
            let groups = captures.iter().map(|group| {
                let group = group?;
                let start = characters[..group.start()].chars().count();
                text[start..].get(..group.as_str().chars().count())
            });
            Some(Captures(groups.collect()))
        }
    }

    /// A match and its groups.
    #[derive(Debug)]
    pub struct Captures<'t>(Vec<Option<&'t [u8]>>);

    impl<'t> Captures<'t> {
        /// Returns a group by its number, or the whole match for 0.
        #[must_use]
        pub fn get(&self, group: usize) -> Option<Match<'t>> {
            self.0.get(group).copied().flatten().map(Match)
        }
    }

    /// A group's text.
    #[derive(Debug)]
    pub struct Match<'t>(&'t [u8]);

    impl<'t> Match<'t> {
        /// Returns the text.
        #[must_use]
        pub fn as_bytes(&self) -> &'t [u8] {
            self.0
        }
    }

    fn characters(text: &[u8]) -> String {
        text.iter().map(|&byte| char::from(byte)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::bytes::Regex;

    /// Returns the groups of the first match.
    fn groups<'t>(pattern: &str, text: &'t [u8]) -> Option<Vec<&'t [u8]>> {
        let captures = Regex::new(pattern).unwrap().captures(text)?;
        Some((1..).map_while(|group| Some(captures.get(group)?.as_bytes())).collect())
    }

    // These patterns are copied from mysql_common.

    #[test]
    fn versions() {
        let mysql = r"^(\d{1,2})\.(\d{1,2})\.(\d{1,3})(.*)";
        let mariadb = r"^(?:5.5.5-)?(\d{1,2})\.(\d{1,2})\.(\d{1,3})-MariaDB";
        assert_eq!(groups(mysql, b"8.0.33").unwrap(), [&b"8"[..], b"0", b"33", b""]);
        assert_eq!(
            groups(mysql, b"8.4.0-\xff\xc3\xa9\nx").unwrap(),
            [&b"8"[..], b"4", b"0", b"-\xff\xc3\xa9"]
        );
        assert_eq!(groups(mariadb, b"5.5.5-10.11.6-MariaDB-0+deb12u1").unwrap(), [&b"10"[..], b"11", b"6"]);
        assert_eq!(groups(mariadb, b"11.4.2-MariaDB").unwrap(), [&b"11"[..], b"4", b"2"]);
        assert_eq!(groups(mariadb, b"8.0.33"), None);
        for not_a_version in [&b""[..], b"x8.0.33", b"8.0", b"\xff8.0.33", "٨.0.33".as_bytes()] {
            assert_eq!(groups(mysql, not_a_version), None);
        }
    }

    #[test]
    fn public_keys() {
        let pattern = "-----BEGIN PUBLIC KEY-----([^-]*)-----END PUBLIC KEY-----";
        let key = b"\xff\n-----BEGIN PUBLIC KEY-----\nMIIB\nIjAN\n-----END PUBLIC KEY-----\n";
        assert_eq!(groups(pattern, key).unwrap(), [b"\nMIIB\nIjAN\n"]);
        assert_eq!(groups(pattern, &key[..40]), None);
    }

    #[test]
    fn matches() {
        let date = Regex::new(r"^\d{4}-\d{2}-\d{2}$").unwrap();
        assert!(date.is_match(b"2026-11-28"));
        for not_a_date in [&b"2026-11-28 10:00:00"[..], b"2026-11-28\xff", b"2026-11-2\xb2"] {
            assert!(!date.is_match(not_a_date));
        }
    }
}
