//! The stores that Polyflake comes with.

mod etcd;
#[cfg(unix)]
mod forks;
mod hosts;
mod keyed;
mod mysql;
mod postgres;
mod redis;
mod sql;
#[cfg(unix)]
mod sqlite;
mod tls;
mod zookeeper;

pub use etcd::EtcdStore;
pub use mysql::MysqlStore;
pub use postgres::PostgresStore;
pub use redis::RedisStore;
#[cfg(unix)]
pub use sqlite::SqliteStore;
pub use zookeeper::ZookeeperStore;

use crate::records;
use crate::store::StoreError;
use crate::url::{Address, Scheme};

/// The store at an address. Nothing is sent before its first use.
///
/// # Errors
///
/// [`StoreError::Refused`] where the address asks for what the store's client does not have.
pub fn open(address: &Address) -> Result<Box<dyn records::Store>, StoreError> {
    match address.scheme() {
        Scheme::Redis | Scheme::RedisSentinel | Scheme::RedisCluster => {
            Ok(Box::new(RedisStore::new(address)?))
        }
        Scheme::Etcd => Ok(Box::new(EtcdStore::new(address)?)),
        Scheme::Zookeeper => Ok(Box::new(ZookeeperStore::new(address)?)),
        Scheme::Mysql => Ok(Box::new(MysqlStore::of(address)?)),
        Scheme::Postgres => Ok(Box::new(PostgresStore::of(address)?)),
        #[cfg(unix)]
        Scheme::Sqlite => Ok(Box::new(SqliteStore::new(address.path().into()).within(address.attempt()))),
        #[cfg(not(unix))]
        Scheme::Sqlite => Err(StoreError::Refused(format!("{address}: SQLite is for Unix only"))),
    }
}

/// The statements that make the table of an SQL store, and those that grant a role `polyflake` what it needs and no more. `None` for
/// a store that has no tables.
pub fn schema(scheme: Scheme) -> Option<(&'static str, &'static str)> {
    match scheme {
        Scheme::Postgres => Some((postgres::records::DDL, postgres::records::GRANTS)),
        Scheme::Mysql => Some((mysql::records::DDL, mysql::records::GRANTS)),
        #[cfg(unix)]
        Scheme::Sqlite => Some((sqlite::records::DDL, "")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_address_opens_without_a_secret_shown() {
        for (url, kind) in [
            ("redis://u:hunter2@h/0", "RedisStore"),
            ("rediss-cluster://u:hunter2@h,[::1]:7", "RedisStore"),
            ("redis-sentinel://u:hunter2@h/mymaster?sentinel_password=hunter2", "RedisStore"),
            ("postgres://u:hunter2@h/d?ttl=5s", "PostgresStore"),
            ("postgresql://u:hunter2@h,[::1]:7/d?sslmode=require", "PostgresStore"),
            ("mysql://u:hunter2@h/d?ttl=5s", "MysqlStore"),
            ("mariadb://u:hunter2@[::1]:7/d", "MysqlStore"),
            ("etcds://u:hunter2@h,i", "EtcdStore"),
            ("zookeeper://u:hunter2@h,[::1]:7/app?ttl=5s", "ZookeeperStore"),
            #[cfg(unix)]
            ("sqlite:///var/lib/app/leases.db?ttl=5s", "SqliteStore"),
        ] {
            let store = open(&Address::parse(url).unwrap()).unwrap_or_else(|e| panic!("{url}: {e}"));
            let shown = format!("{store:?}");
            assert!(shown.contains(kind) && !shown.contains("hunter2"), "{shown}");
        }
    }
}
