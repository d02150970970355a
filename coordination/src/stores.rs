//! The stores that Polyflake comes with.

mod etcd;
mod postgres;
mod record;
mod redis;
mod sql;
#[cfg(unix)]
mod sqlite;
mod tls;

pub use etcd::EtcdStore;
pub use postgres::PostgresStore;
pub use redis::RedisStore;
#[cfg(unix)]
pub use sqlite::SqliteStore;

use crate::store::{Store, StoreError};
use crate::url::{Address, Scheme};

/// The store at an address. Nothing is sent before its first use.
///
/// # Errors
///
/// [`StoreError::Refused`] where the address asks for what the store's client does not have.
pub fn open(address: &Address) -> Result<Box<dyn Store>, StoreError> {
    match address.scheme() {
        Scheme::Redis | Scheme::RedisSentinel | Scheme::RedisCluster => {
            Ok(Box::new(RedisStore::new(address)?))
        }
        Scheme::Etcd => Ok(Box::new(EtcdStore::new(address)?)),
        Scheme::Postgres => Ok(Box::new(PostgresStore::new(&address.driver_url())?)),
        #[cfg(unix)]
        Scheme::Sqlite => Ok(Box::new(SqliteStore::new(address.path().into()))),
        _ => Err(StoreError::Refused(format!("{address}: this kind of store is not built in"))),
    }
}
