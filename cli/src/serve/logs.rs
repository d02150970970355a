//! The log, on standard error: what happened to the server, its leases and its counters. No request, and no secret.

use std::io;

use serde::Deserialize;
use tracing::level_filters::LevelFilter;

/// How it is written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Style {
    /// For people.
    #[default]
    Text,
    /// For programs: an object a line.
    Json,
}

/// From now on.
pub(crate) fn begin(style: Style) {
    let log = tracing_subscriber::fmt().with_writer(io::stderr).with_max_level(LevelFilter::INFO);
    // A program of somebody's own, which has this server in it, may have a log already.
    let _ = match style {
        Style::Text => log.with_ansi(false).with_target(false).try_init(),
        Style::Json => log.json().flatten_event(true).with_target(false).try_init(),
    };
}
