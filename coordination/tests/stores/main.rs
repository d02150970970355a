//! Each store against the histories of records, SQL stores against those of rows of others, and what is particular to each.

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
