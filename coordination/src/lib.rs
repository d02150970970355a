//! Coordinates several machines. Leases each node to one process at a time, and hands out numbers for
//! counters and sequences.
//!
//! Each kind of store has a Cargo feature: `redis`, `postgres`, `mysql` (and MariaDB), `sqlite`, `etcd` and
//! `zookeeper`. All of them are on by default. With `default-features = false` and one of these features,
//! only that store's client is built. If the store in an address is not built in, the error names the missing
//! feature.
//!
//! To use another store, implement [`records::Store`] and register it under a name with [`stores::register`].
//! With `default-features = false`, this requires the `engine` feature, which every store's feature includes.
//! Without `engine`, no store can be opened, and the crate contains only the items that Polyflake's bindings
//! use.

#[cfg_attr(feature = "engine", path = "engine.rs")]
#[cfg_attr(not(feature = "engine"), path = "no_engine.rs")]
mod engine;

pub use engine::*;

/// The error in a child whose parent forked during a call, as a Python signal handler may.
#[doc(hidden)]
#[must_use]
pub fn forked_during_call() -> polyflake::Error {
    polyflake::Error::from_outside(
        polyflake::ErrorCode::Forked,
        "this call began in the parent process, and only the parent waits for the store: call again in the child",
    )
}
