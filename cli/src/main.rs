//! The `polyflake` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    polyflake_cli::main()
}
