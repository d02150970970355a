//! What several machines must agree on: which process has which node.

#[allow(dead_code, reason = "the keeper will use it")]
mod lease;
mod space;
mod store;
pub mod stores;
mod url;

pub use space::Space;
pub use store::{Claim, FORMAT, Listing, NodeRecord, Outcome, Put, SpaceRecord, Store, StoreError};
pub use url::{Address, Scheme};
