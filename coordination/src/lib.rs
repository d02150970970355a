//! Coordinates several machines. It leases each node to one process at a time, and hands out the numbers of
//! counters and sequences.
//!
//! Each kind of store has a Cargo feature: `redis`, `postgres`, `mysql` (and MariaDB), `sqlite`, `etcd` and
//! `zookeeper`. All of them are on by default. With `default-features = false` and one of these features,
//! only that store's client is built. If the store in an address is not built in, the error names the missing
//! feature.
//!
//! To use another store, implement [`records::Store`] and register it under a name with [`stores::register`].

// The error types, from the bottom up. A store's client returns a `Fault`, which becomes a `StoreError`. A
// protocol, or the task that drives it, returns a `Refusal`. It holds either a `StoreError` or the reason why
// the protocol grants nothing. The task sends a `Trouble` to the calls that wait for it. A `Trouble` holds
// the `Error` for the user, and tells whether waiting can help.

mod admin;
mod calls;
mod counter;
mod event;
mod keeper;
mod lease;
mod local;
mod process;
pub mod records;
mod sequences;
mod space;
mod store;
pub mod stores;
mod url;
mod users;
mod watched;

pub use admin::{Admin, LeasesOf, Target};
pub use calls::spawn;
pub use counter::{Counter, CounterGiveBack, CounterIter, CounterOptions, CounterStats};
pub use event::{Event, Kind, set_listener};
#[doc(hidden)]
pub use event::{Replaced, replace_listener};
pub use keeper::{Leased, lease, lease_async, open, open_async};
#[doc(hidden)]
pub use process::PerProcess;
#[doc(hidden)]
pub use sequences::OwnedKey;
pub use sequences::{SequenceKey, Sequences, SequencesGiveBack, SequencesOptions, SequencesStats};
pub use space::Space;
pub use store::{
    CounterName, CounterRecord, LAST_NUMBER, Listing, NodeRecord, Numbers, Place, Reserve, Reserved, Rows,
    Schema, SpaceRecord, StoreError,
};
pub use url::{Address, Scheme};
