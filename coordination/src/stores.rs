//! The stores that come with Polyflake. Each has a feature of the same name.

pub(crate) mod custom;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod hosts;
#[cfg(any(feature = "etcd", feature = "zookeeper"))]
mod keyed;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
#[cfg(any(feature = "mysql", feature = "postgres", all(unix, feature = "sqlite")))]
#[cfg_attr(
    not(all(unix, feature = "mysql", feature = "postgres", feature = "sqlite")),
    allow(dead_code, reason = "some of it is for two of the three")
)]
mod sql;
#[cfg(all(unix, feature = "sqlite"))]
mod sqlite;
#[cfg(any(feature = "etcd", feature = "mysql", feature = "postgres"))]
#[cfg_attr(
    not(any(feature = "mysql", feature = "postgres")),
    allow(dead_code, reason = "etcd checks certificates in one way")
)]
mod tls;
#[cfg(feature = "zookeeper")]
mod zookeeper;

pub use custom::register;
#[cfg(feature = "etcd")]
pub use etcd::EtcdStore;
#[cfg(feature = "mysql")]
pub use mysql::MysqlStore;
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
#[cfg(feature = "redis")]
pub use redis::RedisStore;
#[cfg(all(unix, feature = "sqlite"))]
pub use sqlite::SqliteStore;
#[cfg(feature = "zookeeper")]
pub use zookeeper::ZookeeperStore;

use crate::records;
use crate::store::StoreError;
use crate::url::{Address, Scheme};

/// Opens the store at an address. Nothing is sent until the store is first used.
///
/// # Errors
///
/// Returns [`StoreError::Refused`] if the address asks for something that the store's client does not
/// support, or if the store's feature is off. The message names the address.
pub fn open(address: &Address) -> Result<Box<dyn records::Store>, StoreError> {
    let name = address.to_string();
    make(address).map_err(|error| match error {
        StoreError::Refused(text) if !text.contains(&name) => StoreError::Refused(format!("{name}: {text}")),
        other => other,
    })
}

fn make(address: &Address) -> Result<Box<dyn records::Store>, StoreError> {
    match address.scheme() {
        #[cfg(feature = "redis")]
        Scheme::Redis | Scheme::RedisSentinel | Scheme::RedisCluster => {
            Ok(Box::new(RedisStore::new(address)?))
        }
        #[cfg(feature = "etcd")]
        Scheme::Etcd => Ok(Box::new(EtcdStore::new(address)?)),
        #[cfg(feature = "zookeeper")]
        Scheme::Zookeeper => Ok(Box::new(ZookeeperStore::new(address)?)),
        #[cfg(feature = "mysql")]
        Scheme::Mysql => Ok(Box::new(MysqlStore::of(address)?)),
        #[cfg(feature = "postgres")]
        Scheme::Postgres => Ok(Box::new(PostgresStore::of(address)?)),
        #[cfg(all(unix, feature = "sqlite"))]
        Scheme::Sqlite => Ok(Box::new(SqliteStore::new(address.path().into()).within(address.attempt()))),
        #[cfg(not(unix))]
        Scheme::Sqlite => Err(StoreError::Refused("SQLite is for Unix only".into())),
        Scheme::Custom(name) => custom::open(name, address),
        #[allow(unreachable_patterns, reason = "where every store is built in")]
        missing => {
            let (store, feature) = missing.feature();
            Err(StoreError::Refused(format!(
                "this build has no {store}: build it with `{feature}` in POLYFLAKE_STORES, or in Rust with that feature of \
                 polyflake-coordination"
            )))
        }
    }
}

/// Returns the statements that create an SQL store's table, and the statements that grant a role `polyflake`
/// only the privileges it needs. In PostgreSQL, the table is in the schema `schema_name`, or in `public` by
/// default.
///
/// # Errors
///
/// Returns the reason if there are no statements: the store has no tables, the store is not built in, or no
/// address accepts this schema name.
pub fn schema(scheme: Scheme, schema_name: Option<&str>) -> Result<(String, String), String> {
    let name = schema_name.map(crate::url::schema_name).transpose()?;
    match (scheme, name) {
        #[cfg(feature = "postgres")]
        (Scheme::Postgres, name) => Ok(postgres::records::schema(name.as_deref().unwrap_or("public"))),
        (_, Some(_)) => Err("schema_name is for PostgreSQL".into()),
        #[cfg(feature = "mysql")]
        (Scheme::Mysql, None) => Ok((mysql::records::DDL.into(), mysql::records::GRANTS.into())),
        #[cfg(all(unix, feature = "sqlite"))]
        (Scheme::Sqlite, None) => Ok((sqlite::records::DDL.into(), String::new())),
        _ => Err(format!("{} has no tables, or is not built in", scheme.feature().0)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_kind_of_address_opens_without_a_secret_shown() {
        let mut tried = BTreeSet::new();
        for (url, is_built, kind) in [
            ("redis://u:hunter2@h/0", cfg!(feature = "redis"), "RedisStore"),
            ("rediss-cluster://u:hunter2@h,[::1]:7", cfg!(feature = "redis"), "RedisStore"),
            (
                "redis-sentinel://u:hunter2@h/mymaster?sentinel_password=hunter2",
                cfg!(feature = "redis"),
                "RedisStore",
            ),
            ("postgres://u:hunter2@h/d?ttl=5s", cfg!(feature = "postgres"), "PostgresStore"),
            (
                "postgresql://u:hunter2@h,[::1]:7/d?sslmode=require",
                cfg!(feature = "postgres"),
                "PostgresStore",
            ),
            ("mysql://u:hunter2@h/d?ttl=5s", cfg!(feature = "mysql"), "MysqlStore"),
            ("mariadb://u:hunter2@[::1]:7/d", cfg!(feature = "mysql"), "MysqlStore"),
            ("etcds://u:hunter2@h,i", cfg!(feature = "etcd"), "EtcdStore"),
            ("zookeeper://u:hunter2@h,[::1]:7/app?ttl=5s", cfg!(feature = "zookeeper"), "ZookeeperStore"),
            #[cfg(unix)]
            ("sqlite:///var/lib/app/leases.db?ttl=5s", cfg!(feature = "sqlite"), "SqliteStore"),
        ] {
            let address = Address::parse(url).unwrap();
            tried.insert(address.scheme().feature().1);
            let shown = match open(&address) {
                Ok(store) => format!("{store:?}"),
                Err(error) if is_built => panic!("{url}: {error}"),
                Err(error) => {
                    let (store, feature) = address.scheme().feature();
                    let said = format!(
                        "this build has no {store}: build it with `{feature}` in POLYFLAKE_STORES, or in Rust with that \
                         feature of polyflake-coordination"
                    );
                    assert_eq!(error.text(), format!("{address}: {said}"));
                    continue;
                }
            };
            assert!(is_built && shown.contains(kind) && !shown.contains("hunter2"), "{shown}");
        }
        let (_, features) = include_str!("../Cargo.toml").split_once("\ndefault = [").unwrap();
        let (features, _) = features.split_once(']').unwrap();
        let stores = features.split('"').skip(1).step_by(2).filter(|&store| cfg!(unix) || store != "sqlite");
        assert_eq!(tried, stores.collect());
    }

    #[cfg(all(feature = "zookeeper", feature = "postgres"))]
    #[test]
    fn an_error_names_the_address_once() {
        for url in ["zookeeper://a%3Ab:hunter2@h", "postgres://u:hunter2@h/d?sslmode=perhaps"] {
            let address = Address::parse(url).unwrap();
            let Err(StoreError::Refused(text)) = open(&address) else { panic!("{url}") };
            assert_eq!(text.matches(&address.to_string()).count(), 1, "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}
