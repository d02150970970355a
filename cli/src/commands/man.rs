//! `polyflake man`: writes the man pages, for packages.

use std::path::PathBuf;

use clap::Args;

use crate::failure::Failure;

/// Write the man pages into a folder
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Man {
    /// The folder, created if it does not exist
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let failed = |error| Failure::io(self.folder.display(), &error);
        std::fs::create_dir_all(&self.folder).map_err(failed)?;
        clap_mangen::generate_to(crate::command(), &self.folder).map_err(failed)
    }
}
