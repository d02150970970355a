//! Takes the inspector into the program, if it was built before (`make inspector`): `POLYFLAKE_INSPECTOR` names its folder.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-env-changed=POLYFLAKE_INSPECTOR");
    let site = env::var_os("POLYFLAKE_INSPECTOR").map(PathBuf::from);
    let mut text = String::from("const FILES: &[(&str, &[u8])] = &[\n");
    if let Some(site) = site {
        println!("cargo::rerun-if-changed={}", site.display());
        let mut files: Vec<_> = fs::read_dir(&site)?.collect::<Result<_, _>>()?;
        files.sort_by_key(fs::DirEntry::file_name);
        for file in files {
            if file.file_type()?.is_file() {
                let path = file.path().canonicalize()?;
                let (name, path) = (file.file_name(), path.to_string_lossy());
                let name = name.to_string_lossy();
                let _ = writeln!(text, "({name:?}, include_bytes!({path:?})),");
            }
        }
    }
    text.push_str("];\n");
    let out = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    fs::write(out.join("inspector.rs"), text)
}
