//! Coordinates several machines. It leases each node to one process at a time, and hands out the numbers of
//! counters and sequences.
//!
//! Each kind of store has a Cargo feature: `redis`, `postgres`, `mysql` (and MariaDB), `sqlite`, `etcd` and
//! `zookeeper`. All of them are on by default. With `default-features = false` and one of these features,
//! only that store's client is built. If the store in an address is not built in, the error names the missing
//! feature.
//!
//! To use another store, implement [`records::Store`] and register it under a name with [`stores::register`].
//! With `default-features = false`, this needs the feature `engine`, which the features of all stores include.
//! Without it, opening fails, and the crate has only what Polyflake's bindings call.

#[cfg_attr(feature = "engine", path = "engine.rs")]
#[cfg_attr(not(feature = "engine"), path = "no_engine.rs")]
mod engine;

pub use engine::*;
