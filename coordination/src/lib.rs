//! Everything that several machines must agree on: which process has which node, and which numbers of a counter or of a key are
//! handed out.
//!
//! Each kind of store has a feature: `redis`, `postgres`, `mysql` (and MariaDB), `sqlite`, `etcd` and `zookeeper`. All are on
//! by default. With `default-features = false` and one of them, only that store's client is built. An address whose store is
//! not built in causes an error that names the feature.
//!
//! A store of your own implements [`records::Store`], and [`stores::register`] gives it a name in addresses.

// One word for each thing that goes wrong, from below: a store's client has a `Fault`, which leaves the store as a `StoreError`. A protocol,
// or the task that drives it, answers with a `Refusal`, which holds that error or says why the rules give nothing. Calls that wait get the
// task's `Trouble`: the `Error` that the user reads, and whether waiting helps.

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
