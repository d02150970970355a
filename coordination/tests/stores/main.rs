//! Each store against the histories of `suite.rs`, and what is particular to it.

#[path = "../servers/mod.rs"]
mod servers;
mod suite;

mod etcd;
mod mysql;
mod postgres;
mod redis;
#[cfg(unix)]
mod sqlite;
mod zookeeper;
