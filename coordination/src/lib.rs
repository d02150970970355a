//! What several machines must agree on: which process has which node, and which numbers of a counter are handed out.

mod admin;
mod counter;
mod event;
mod keeper;
mod lease;
mod local;
mod space;
mod store;
pub mod stores;
mod url;

pub use admin::Admin;
pub use counter::{Counter, CounterGiveBack, CounterIter, CounterOptions, CounterStats};
pub use event::{Event, Kind, set_listener};
pub use keeper::{Leased, lease, open};
pub use space::Space;
pub use store::{
    Claim, CounterName, CounterRecord, FORMAT, LAST_NUMBER, Listing, NodeRecord, Numbers, Outcome, Place,
    Put, Reserve, Reserved, Schema, SpaceRecord, Store, StoreError,
};
pub use url::{Address, Scheme};
