//! Each store against the histories of `suite.rs`, and what is particular to it.

#[path = "../servers/mod.rs"]
mod servers;
mod suite;

mod mysql;
mod postgres;
#[cfg(unix)]
mod sqlite;
