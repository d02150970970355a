//! Where a server keeps state that it must not lose, if no store is named.

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy as _;

use super::error::Error;

/// The address of an SQLite file in the user's state folder, which is created if needed.
pub(crate) fn store() -> Result<String, Error> {
    let folder = folder()?;
    let failed = |error: std::io::Error| Error::new("io", format!("{}: {error}", folder.display()));
    make(&folder).map_err(failed)?;
    let path = folder.join("serve.db");
    let Some(path) = path.to_str().filter(|path| !path.contains(['?', '#', '%'])) else {
        return Err(Error::invalid(format!("{} cannot be in an address: name a store", path.display())));
    };
    let path = path.replace('\\', "/");
    let slash = if path.starts_with('/') { "" } else { "/" };
    Ok(format!("sqlite://{slash}{path}").replace(' ', "%20"))
}

/// The folder named by systemd; otherwise the desktop's.
fn folder() -> Result<PathBuf, Error> {
    if let Some(folder) = std::env::var_os("STATE_DIRECTORY").filter(|folder| !folder.is_empty()) {
        let first = std::env::split_paths(&folder).next();
        return Ok(first.unwrap_or_else(|| folder.into()));
    }
    let no_home = |_| Error::invalid("there is no home folder to keep a store in: name one with --lease");
    let base = etcetera::choose_base_strategy().map_err(no_home)?;
    Ok(base.state_dir().unwrap_or_else(|| base.data_dir()).join("polyflake"))
}

fn make(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
