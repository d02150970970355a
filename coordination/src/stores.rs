//! The stores that Polyflake comes with.

mod postgres;
mod sql;
#[cfg(unix)]
mod sqlite;
mod tls;

pub use postgres::PostgresStore;
#[cfg(unix)]
pub use sqlite::SqliteStore;
