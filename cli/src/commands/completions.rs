//! `polyflake completions`: prints the script that a shell needs to complete the command.

use clap::{Args, ValueEnum as _};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output;

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "Such as: polyflake completions bash > /etc/bash_completion.d/polyflake")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_parser = clap::builder::EnumValueParser::<Shell>::new())]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        debug_assert!(Shell::value_variants().contains(&self.shell));
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut crate::command(), "polyflake", &mut text);
        output::print(&String::from_utf8_lossy(&text))
    }
}
