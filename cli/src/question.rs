//! Asks the user before changing something.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use clap::Args;

use crate::failure::Failure;
use crate::reading::told;

/// Whether to ask.
#[derive(Debug, Args)]
pub(crate) struct Yes {
    /// Do it without asking
    #[arg(long, short = 'y')]
    yes: bool,
}

impl Yes {
    /// Continues only if the answer is yes.
    pub(crate) fn confirm(&self, question: &str) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        if !io::stdin().is_terminal() {
            return Err(Failure::Usage(format!("{question} There is no terminal to ask on: add --yes")));
        }
        let mut to = anstream::stderr();
        let mut answer = String::new();
        write!(to, "{} [y/N] ", told(question))
            .and_then(|()| to.flush())
            .and_then(|()| io::stdin().lock().read_line(&mut answer).map(drop))
            .map_err(|error| Failure::io("the terminal", &error))?;
        match answer.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Ok(()),
            _ => Err(Failure::Declined),
        }
    }
}
