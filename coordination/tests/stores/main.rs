//! Tests each store's own features, and runs the histories for records against each store. SQL stores also run the
//! histories for other systems' rows.

use polyflake_test_support::servers;

mod admin;
#[cfg(unix)]
mod connections;
mod records;
mod relay;
mod support;

mod etcd;
mod leaf_tinyid_cosid;
mod mysql;
mod postgres;
mod redis;
#[cfg(unix)]
mod sqlite;
mod zookeeper;
