//! Standard output: large amounts quickly, or small amounts in colour.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write};

use polyflake::is_hidden;

use crate::failure::Failure;

/// A pipe on Linux holds this much, so larger blocks would only wait.
pub(crate) const BLOCK: usize = 64 * 1024;

/// Collects lines for a pipe and writes them in blocks. On a terminal, each line is written at once.
#[derive(Debug)]
pub(crate) struct Lines {
    block: Vec<u8>,
    stdout: io::Stdout,
    full: usize,
}

impl Lines {
    pub(crate) fn new() -> Self {
        let stdout = io::stdout();
        let full = if stdout.is_terminal() { 0 } else { BLOCK };
        Self { block: Vec::with_capacity(2 * BLOCK), stdout, full }
    }

    /// The buffer for the next line. Call [`done`](Self::done) after it.
    pub(crate) const fn line(&mut self) -> &mut Vec<u8> {
        &mut self.block
    }

    /// Call this after adding a line.
    #[inline]
    pub(crate) fn done(&mut self) -> Result<(), Failure> {
        if self.block.len() >= self.full { self.flush() } else { Ok(()) }
    }

    /// Writes everything that is buffered.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        let mut to = self.stdout.lock();
        let written = to.write_all(&self.block).and_then(|()| to.flush());
        self.block.clear();
        written.map_err(|error| failure(&error))
    }
}

/// Prints a string, with its colours if they are wanted.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut to = anstream::stdout().lock();
    to.write_all(text.as_bytes()).and_then(|()| to.flush()).map_err(|error| failure(&error))
}

/// Prints a value as one line of JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::Io(error.to_string()))?;
    let text = as_json(&text) + "\n";
    let mut to = io::stdout().lock();
    to.write_all(text.as_bytes()).and_then(|()| to.flush()).map_err(|error| failure(&error))
}

/// One line of JSON. It also escapes characters that JSON allows but a terminal would interpret.
pub(crate) fn as_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if is_hidden(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(character);
        }
    }
    text
}

/// Turns an error on standard output into a failure.
pub(crate) fn failure(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Failure::Closed
    } else {
        Failure::io("standard output", error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_same_texts_and_nothing_hidden() {
        let text = "\u{1b}[2J\u{7f}\u{9b}\u{202e}\u{e0041}\"\\é👍\n";
        let json = as_json(&serde_json::to_string(text).unwrap());
        assert_eq!(json, r#""\u001b[2J\u007f\u009b\u202e\udb40\udc41\"\\é👍\n""#);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
