//! Passwords and keys in user input. A store's address or a key may be anywhere, even in the wrong argument, and
//! messages show the arguments.

use std::path::Path;

/// Takes the place of a secret.
const HIDDEN: &str = "***";

/// Hides users and passwords in addresses within a text (`redis://***@host/0`), and keys for public IDs (`pfk_***`).
pub(crate) fn redacted(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    // Not `://`, because the core shows a layout's text in pieces.
    while let Some((before, after)) = rest.split_once("//") {
        safe.extend([before, "//"]);
        let (word, next) = after.split_at(after.find(char::is_whitespace).unwrap_or(after.len()));
        safe.push_str(&without_user(word));
        rest = next;
    }
    safe.push_str(rest);
    without_keys(&without_password_parameters(&safe))
}

fn without_keys(text: &str) -> String {
    const START: &str = "pfk_";
    let mut pieces = text.split(START);
    let mut safe = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        let is_key = rest.len() < piece.len();
        safe.extend([START, if is_key { HIDDEN } else { "" }, rest]);
    }
    safe
}

/// Returns a warning if other users can read a file with a secret.
#[cfg(unix)]
pub(crate) fn warning_of_open(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;

    let mode = std::fs::metadata(path).map_or(0, |about| about.permissions().mode());
    let path = path.display();
    (mode & 0o004 != 0)
        .then(|| format!("other users can read {path}, which holds a secret: `chmod o-r {path}`"))
}

#[cfg(not(unix))]
pub(crate) fn warning_of_open(_: &Path) -> Option<String> {
    None
}

/// The text after `//`, up to the next space.
fn without_user(word: &str) -> String {
    // A password may also contain an @.
    if let Some((_, host)) = word.rsplit_once('@') {
        return format!("{HIDDEN}@{host}");
    }
    // The @ may be cut off, as in `//user:passw…`.
    let end = word.find(['`', '"', '\'']).unwrap_or(word.len());
    let (address, quote) = word.split_at(end);
    let authority = address.split(['/', '?']).next().unwrap_or_default();
    let host_end = authority.find(']').unwrap_or(0);
    let after_host = authority.get(host_end..).and_then(|from| from.split_once(':'));
    match after_host {
        Some((_, port)) if !is_port(port) => format!("{HIDDEN}{quote}"),
        _ => word.to_owned(),
    }
}

/// Whether a host's colon is followed by a port, or by nothing, as in `redis://host: refused`.
fn is_port(text: &str) -> bool {
    let after = text.trim_start_matches(|c: char| c.is_ascii_digit());
    after.is_empty() || after.starts_with([',', ';', ':', ')', '.'])
}

/// Hides passwords in parameters, as in `postgres://host/app?password=...` and in libpq's addresses.
fn without_password_parameters(text: &str) -> String {
    const NAME: &str = "password=";
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    // ASCII letters keep their length in lower case.
    while let Some(at) = rest.to_ascii_lowercase().find(NAME) {
        let (before, value) = rest.split_at(at + NAME.len());
        let end = value.find(|c: char| c == '&' || c == '`' || c.is_whitespace()).unwrap_or(value.len());
        safe.push_str(before);
        if end > 0 {
            safe.push_str(HIDDEN);
        }
        rest = value.get(end..).unwrap_or_default();
    }
    safe + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_left() {
        for (text, is) in [
            ("redis://user:pass@h:6379/0", "redis://***@h:6379/0"),
            ("`redis://:p@ss/`w:rd@h` is", "`redis://***@h` is"),
            ("a redis://u:p@h postgres://v:q@i b", "a redis://***@h postgres://***@i b"),
            ("`redis://user:pass…` is", "`redis://***` is"),
            ("has `//user:pass` bits", "has `//***` bits"),
            ("`redis://u:123…`", "`redis://***`"),
            (
                "postgres://h/app?sslmode=require&PassWord=x&y=1",
                "postgres://h/app?sslmode=require&PassWord=***&y=1",
            ),
            ("host=h password=x user=u", "host=h password=*** user=u"),
            ("`pfk_1abc` pfk_2é,pfk_3a-pfk_", "`pfk_***` pfk_***é,pfk_***-pfk_"),
        ] {
            assert_eq!(redacted(text), is);
        }
    }

    #[test]
    fn the_rest_stays() {
        for text in [
            "",
            "redis://127.0.0.1:6379/0",
            "`http://h:80` is",
            "http://[::1]:8080/",
            "redis://a:1,b:2/0",
            "sqlite:///var/lib/app/leases.db",
            "see https://example.com/a:b.",
            "sqlite:///a.db: refused, redis://h:1/0: refused, redis://h: refused",
            "//",
            "a password= b",
        ] {
            assert_eq!(redacted(text), text);
        }
    }
}
