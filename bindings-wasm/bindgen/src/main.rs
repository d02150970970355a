//! `polyflake-bindgen MODULE FOLDER [--keep-debug]` writes the JavaScript glue of a WebAssembly module, as the command
//! `wasm-bindgen` does. That command's crate takes far longer to build.

use std::env::args;
use std::process::ExitCode;

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
    ExitCode::SUCCESS
}
