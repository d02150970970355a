//! Standard output: much of it fast, or a little of it in colour.

use std::io::{self, IsTerminal as _, Write};

use crate::failure::Failure;

/// A pipe holds as much on Linux: larger blocks would only wait.
const BLOCK: usize = 64 * 1024;

/// Lines for a pipe: collected, and written a block at a time. To a terminal each is written at once.
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

    /// Where the next line is put together. Call [`done`](Self::done) after it.
    pub(crate) const fn line(&mut self) -> &mut Vec<u8> {
        &mut self.block
    }

    /// A line was added.
    #[inline]
    pub(crate) fn done(&mut self) -> Result<(), Failure> {
        if self.block.len() >= self.full { self.flush() } else { Ok(()) }
    }

    /// Writes what is there.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        let mut to = self.stdout.lock();
        let written = to.write_all(&self.block).and_then(|()| to.flush());
        self.block.clear();
        written.map_err(|error| failure(&error))
    }
}

/// Prints a text, with its colours where they are wanted.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut to = anstream::stdout().lock();
    to.write_all(text.as_bytes()).and_then(|()| to.flush()).map_err(|error| failure(&error))
}

/// Prints a value as one line of JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string(value).map_err(|error| Failure::Io(error.to_string()))?;
    text.push('\n');
    let mut to = io::stdout().lock();
    to.write_all(text.as_bytes()).and_then(|()| to.flush()).map_err(|error| failure(&error))
}

fn failure(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        Failure::Closed
    } else {
        Failure::io("standard output", error)
    }
}
