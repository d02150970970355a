//! `polyflake-bindgen MODULE FOLDER [--keep-debug]` writes the JavaScript glue of a WebAssembly module, as the command
//! `wasm-bindgen` does. That command's crate takes far longer to build.

use std::env::args;
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let arguments: Vec<String> = args().skip(1).collect();
    let (module, folder, keeps_debug) = match arguments.as_slice() {
        [module, folder] => (module, folder, false),
        [module, folder, option] if option == "--keep-debug" => (module, folder, true),
        _ => {
            eprintln!("usage: polyflake-bindgen MODULE FOLDER [--keep-debug]");
            return ExitCode::from(2);
        }
    };
    let mut bindgen = Bindgen::new();
    let written = bindgen.web(true).and_then(|bindgen| {
        bindgen
            .input_path(module)
            .omit_default_module_path(true)
            .typescript(true)
            .keep_debug(keeps_debug)
            .out_name("polyflake")
            .generate(folder)
    });
    if let Err(error) = written {
        eprintln!("{error:?}");
        return ExitCode::FAILURE;
    }
    if let Err(error) = number_imports(Path::new(folder)) {
        eprintln!("{folder}: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Replaces the 16-digit hash that wasm-bindgen puts at the end of each import's name with a number: hashes do not
/// compress, and together they add 260 bytes to what browsers download. The names keep their length, so that nothing
/// else moves.
fn number_imports(folder: &Path) -> io::Result<()> {
    let (script, module) = (folder.join("polyflake.js"), folder.join("polyflake_bg.wasm"));
    let (mut text, mut bytes) = (fs::read_to_string(&script)?, fs::read(&module)?);
    for (number, name) in hashed(&text).into_iter().enumerate() {
        let (kept, _) = name.split_at(name.len() - DIGITS);
        let numbered = format!("{kept}{number:0DIGITS$}");
        text = text.replace(&name, &numbered);
        let names = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(name.as_bytes()));
        for at in names.collect::<Vec<_>>() {
            bytes[at..at + name.len()].copy_from_slice(numbered.as_bytes());
        }
    }
    fs::write(script, text)?;
    fs::write(module, bytes)
}

const DIGITS: usize = 16;

/// The names in the glue that end with a hash.
fn hashed(glue: &str) -> Vec<String> {
    let names = glue.split(|character: char| character != '_' && !character.is_ascii_alphanumeric());
    let is_hashed = |name: &&str| {
        let (_, hash) = name.rsplit_once('_').unwrap_or_default();
        name.starts_with("__wbg_")
            && hash.len() == DIGITS
            && hash.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    names.filter(is_hashed).map(String::from).collect()
}
