//! Each store against the histories of records, SQL stores against those of rows of others, and what is particular to each.

mod admin;
#[cfg(unix)]
mod connections;
mod records;
#[path = "../servers/mod.rs"]
mod servers;
mod suite;
mod way;

mod etcd;
mod mysql;
mod others;
mod postgres;
mod redis;
#[cfg(unix)]
mod sqlite;
mod zookeeper;
