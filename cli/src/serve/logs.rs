//! The log, on standard error: events from the server, its leases and its counters. It contains no requests
//! and no secrets.

use std::io::{self, Write};

use serde::Deserialize;
use tracing::level_filters::LevelFilter;

use crate::output::as_json;
use crate::reading::shown;

/// The style of the log.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Style {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object per line.
    Json,
}

/// Starts the log.
pub(crate) fn begin(style: Style) {
    let log = tracing_subscriber::fmt().with_writer(move || Line(style)).with_max_level(LevelFilter::INFO);
    // A program that embeds this server may have its own log already.
    let _ = match style {
        Style::Text => log.with_ansi(false).with_target(false).try_init(),
        Style::Json => log.json().flatten_event(true).with_target(false).try_init(),
    };
}

/// Writes an event as one line, no matter what its strings contain.
struct Line(Style);

impl Write for Line {
    /// Called once with the whole event.
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event.trim_ascii_end());
        let line = match self.0 {
            Style::Text => shown(&text),
            Style::Json => as_json(&text),
        };
        io::stderr().lock().write_all((line + "\n").as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
