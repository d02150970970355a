//! The `polyflake` command: generates 64-bit unique IDs, decodes them, and manages leases and counters.
//!
//! The command parses and prints; the core decides. Each subcommand is a file in `commands`, and the server is in
//! `serve`.

mod commands;
mod failure;
mod object_id;
mod output;
mod parts;
mod picture;
mod question;
mod reading;
mod secret;
pub mod serve;
mod source;
mod when;
mod words;

use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::ContextValue;
use clap::{ColorChoice, CommandFactory as _, FromArgMatches as _, Parser};

use commands::Command;

/// The exit codes, as `--help` and the man page show them.
const EXIT_CODES: &str = "\
Exit codes:
  0    done; also when the reader closed the pipe
  1    a file or a stream cannot be read or written
  2    the command line is wrong, or a question needs a terminal and there is none
  3    you answered no, or `inspect` found no likely layout
  10+n the error with number n: 11 invalid_layout, 12 unknown_layout, 13 invalid_node, 14 invalid_option, 15 invalid_id, \
16 time_out_of_range, 17 clock_moved_backwards, 18 sequence_exhausted, 21 state_file, 22 lease_unavailable, \
23 lease_lost, 25 counter_unavailable
  130  interrupted";

/// Generate and decode 64-bit unique IDs, and manage the leases and counters behind them
#[derive(Debug, Parser)]
#[command(name = "polyflake", version, propagate_version = true, after_help = EXIT_CODES, max_term_width = 100)]
struct Cli {
    /// When to use colour: auto respects `NO_COLOR`, `CLICOLOR_FORCE` and the terminal's abilities
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
    #[command(subcommand)]
    command: Command,
}

/// Runs this process's command line.
#[must_use]
pub fn main() -> ExitCode {
    main_with(serve::Registry::default())
}

/// Like [`main`], but with your own kinds of generators for `polyflake serve`.
#[must_use]
#[allow(clippy::needless_pass_by_value, reason = "as main, it is called once")]
pub fn main_with(registry: serve::Registry) -> ExitCode {
    // clap prints help while it parses, so determine the use of colour from the raw arguments.
    let colour = colour_of(std::env::args_os());
    match colour {
        ColorChoice::Always => anstream::ColorChoice::Always,
        ColorChoice::Never => anstream::ColorChoice::Never,
        ColorChoice::Auto => anstream::ColorChoice::Auto,
    }
    .write_global();
    let parsed = command().color(colour).try_get_matches().and_then(|found| Cli::from_arg_matches(&found));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return complain_of_line(error),
    };
    match cli.command.run(&registry) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

/// Prints an error in the command line, or the help, which clap also returns as an error.
fn complain_of_line(mut error: clap::Error) -> ExitCode {
    let found: Vec<_> = error.context().map(|(kind, value)| (kind, value.clone())).collect();
    for (kind, value) in found {
        error.insert(kind, harmless(value));
    }
    // It does not matter whether printing succeeds.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(failure::USAGE) } else { ExitCode::SUCCESS }
}

/// Removes passwords from the arguments, and anything that a terminal would interpret.
fn harmless(value: ContextValue) -> ContextValue {
    match value {
        ContextValue::String(text) => ContextValue::String(reading::told(&text)),
        ContextValue::Strings(texts) => {
            ContextValue::Strings(texts.iter().map(|text| reading::told(text)).collect())
        }
        ContextValue::StyledStr(text) => ContextValue::StyledStr(harmless_styled(text)),
        ContextValue::StyledStrs(texts) => {
            ContextValue::StyledStrs(texts.into_iter().map(harmless_styled).collect())
        }
        other => other,
    }
}

/// Keeps clap's colours only if nothing was replaced.
fn harmless_styled(text: StyledStr) -> StyledStr {
    let plain = text.to_string();
    let told: Vec<_> = plain.split('\n').map(reading::told).collect();
    let told = told.join("\n");
    if told == plain { text } else { told.into() }
}

/// The whole command, for completions and man pages.
fn command() -> clap::Command {
    Cli::command()
}

/// The value of `--color`, wherever it appears; clap complains if it is invalid.
fn colour_of(arguments: impl Iterator<Item = std::ffi::OsString>) -> ColorChoice {
    use clap::ValueEnum as _;

    let mut colour = ColorChoice::Auto;
    let mut is_next = false;
    for argument in arguments.skip(1) {
        let Some(text) = argument.to_str() else { continue };
        if text == "--" {
            break;
        }
        let value = if is_next { Some(text) } else { text.strip_prefix("--color=") };
        is_next = text == "--color";
        if let Some(value) = value {
            colour = ColorChoice::from_str(value, false).unwrap_or(colour);
        }
    }
    colour
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_exit_code_of_an_error_is_listed() {
        use polyflake::ErrorCode;
        // The command never forks, passes no clock and uses nothing after closing it; `internal` is a bug.
        let unlisted = [ErrorCode::Forked, ErrorCode::ClockFailed, ErrorCode::Closed, ErrorCode::Internal];
        for code in ErrorCode::ALL {
            let listed = format!("{} {}", failure::exit_code(code), code.name());
            assert_eq!(EXIT_CODES.contains(&listed), !unlisted.contains(&code), "{listed}");
        }
    }

    #[test]
    fn next_has_a_flag_for_every_option() {
        let unknown = polyflake::Options::default().set("?", "").unwrap_err().to_string();
        let (_, options) = unknown.split_once(" are ").unwrap();
        let command = command();
        let next = command.find_subcommand("next").unwrap();
        for option in options.split(", ") {
            let flag = option.replace('_', "-");
            assert!(next.get_arguments().any(|it| it.get_long() == Some(&flag)), "--{flag}");
        }
    }
}
