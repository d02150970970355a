//! The stores that Polyflake comes with.

mod sql;
#[cfg(unix)]
mod sqlite;

#[cfg(unix)]
pub use sqlite::SqliteStore;
