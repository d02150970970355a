//! Each store against the histories of records and of `counters.rs`, and what is particular to it.

mod admin;
#[cfg(unix)]
mod connections;
mod counters;
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
