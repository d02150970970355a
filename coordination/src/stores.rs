//! The stores that Polyflake comes with.

pub mod etcd;
mod record;
pub mod redis;
mod sql;
#[cfg(unix)]
mod sqlite;
mod tls;

use crate::store::{Store, StoreError};
use crate::url::{Address, Scheme};

#[cfg(unix)]
pub use sqlite::SqliteStore;

/// The store at an address. Nothing is sent before its first use.
///
/// # Errors
///
/// [`StoreError::Refused`] where the address asks for what the store's client does not have.
pub fn open(address: &Address) -> Result<Box<dyn Store>, StoreError> {
    match address.scheme() {
        Scheme::Redis | Scheme::RedisSentinel | Scheme::RedisCluster => {
            Ok(Box::new(redis::RedisStore::new(address)?))
        }
        Scheme::Etcd => Ok(Box::new(etcd::EtcdStore::new(address)?)),
        #[cfg(unix)]
        Scheme::Sqlite => Ok(Box::new(SqliteStore::new(address.path().into()))),
        _ => Err(StoreError::Refused(format!("{address}: this kind of store is not built in"))),
    }
}
