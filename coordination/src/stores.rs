//! The stores that Polyflake comes with.

mod mysql;
mod postgres;
mod sql;
#[cfg(unix)]
mod sqlite;
mod tls;

pub use mysql::MysqlStore;
pub use postgres::PostgresStore;
#[cfg(unix)]
pub use sqlite::SqliteStore;
