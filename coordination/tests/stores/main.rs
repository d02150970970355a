//! Each store against the histories of records, SQL stores against those of rows of others, and what is particular to each.

mod admin;
#[cfg(unix)]
mod connections;
mod records;
mod relay;
#[path = "../servers/mod.rs"]
mod servers;
mod support;

mod etcd;
mod leaf_tinyid_cosid;
mod mysql;
mod postgres;
mod redis;
#[cfg(unix)]
mod sqlite;
mod zookeeper;
