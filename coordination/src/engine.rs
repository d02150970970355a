//! The crate as built with the `engine` feature. Without the feature, `no_engine.rs` stands in.

// The error types, from the bottom up. A store's client returns a `Fault`, which becomes a `StoreError`. A
// protocol, or the task that drives it, returns a `Refusal`, which holds either a `StoreError` or the
// protocol's reason for refusing. The task sends a `Trouble` to the calls that are waiting for it. A
// `Trouble` holds the `Error` for the user, and says whether waiting can help.

pub(crate) mod admin;
pub(crate) mod calls;
pub(crate) mod counter;
pub(crate) mod event;
#[cfg(unix)]
pub(crate) mod forks;
#[cfg(not(unix))]
#[path = "no_forks.rs"]
pub(crate) mod forks;
pub(crate) mod keeper;
pub(crate) mod lease;
pub(crate) mod local;
pub(crate) mod process;
pub mod records;
pub(crate) mod sequences;
pub(crate) mod space;
pub(crate) mod store;
pub mod stores;
pub(crate) mod url;
pub(crate) mod users;
pub(crate) mod watched;

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

/// Returns an error in a build without the engine, which cannot lease nodes.
#[doc(hidden)]
pub const fn check_leases() -> Result<(), polyflake::Error> {
    Ok(())
}
