//! The command `polyflake`.

use std::process::ExitCode;

fn main() -> ExitCode {
    polyflake_cli::main()
}
