//! What a store must be able to do: keep two kinds of records, change each by compare-and-set, and tell its time.
//!
//! The protocol of leases is in `lease.rs`, once for all stores. A store of your own implements [`Store`].

use core::fmt;

use async_trait::async_trait;

use crate::space::Space;

/// The version of the records' form, which stores keep beside them. Another version is refused.
pub const FORMAT: u32 = 1;

/// The record that a space has once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SpaceRecord {
    /// Which life of the store wrote it: a store that lost acknowledged writes has another by then.
    pub incarnation: String,
    /// How far past the store's time a bound may lie: the time to live of its leases, plus `max_ahead_ms`.
    pub lead_ms: u64,
    /// No lease that is acquired issues below this tick.
    pub fence: u64,
}

/// The record of a node that was leased at least once. It is never deleted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeRecord {
    /// All node fields joined, from the highest to the lowest.
    pub node: u64,
    /// 32 hex digits, new for each acquisition; empty once the lease was given back.
    pub token: String,
    /// When the lease ends, by the store's clock (Unix ms); 0 once it was given back.
    pub expires_ms: u64,
    /// The tick up to and without which the holder may issue, and from which the next one may.
    pub reserved_until: u64,
    /// Who holds it: for people.
    pub label: String,
    /// When it was acquired, by the store's clock (Unix ms).
    pub since_ms: u64,
}

impl NodeRecord {
    /// What a change of this record must find.
    #[must_use]
    pub fn claim(&self) -> Claim {
        Claim { token: self.token.clone(), reserved_until: self.reserved_until }
    }
}

/// What a change of a node's record must find.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    /// The token there.
    pub token: String,
    /// The bound there.
    pub reserved_until: u64,
}

/// All that a store has of a space, at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Listing {
    /// The store's time (Unix ms).
    pub now_ms: u64,
    /// The store's present incarnation.
    pub incarnation: String,
    /// The space's record, if there is one.
    pub space: Option<SpaceRecord>,
    /// Whether nothing of Polyflake was ever in this store: only for stores that cannot forget.
    pub is_new: bool,
    /// The records of the space's nodes, in any order.
    pub nodes: Vec<NodeRecord>,
}

/// What became of a change of a node's record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Put {
    /// The store's time (Unix ms), at the change.
    pub now_ms: u64,
    /// What became of it.
    pub outcome: Outcome,
}

/// See [`Put`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It is written, and is as safe as the store makes what it acknowledges.
    Written,
    /// Nothing is written: this is there (`None`: no record).
    Found(Option<NodeRecord>),
    /// Nothing is written: the space's record or the store's incarnation is another than the one given.
    OtherSpace,
}

/// A store of leases. Each call is one attempt: the keeper ends it when it takes too long, calls
/// [`disconnect`](Self::disconnect) after one that failed or was ended, and tries again.
///
/// A call that was ended may still take effect later. So every change is a compare-and-set.
#[async_trait(?Send)]
pub trait Store: Send + fmt::Debug {
    /// Everything of a space, read at one instant. Writes nothing, and makes no tables.
    async fn list(&mut self, space: &Space) -> Result<Listing, StoreError>;

    /// Writes the space's record if `expected` is there (`None`: if there is none), and makes the store's tables where
    /// they are absent, in one step with the first record where the store can. Returns whether it was written. The new record
    /// has the store's incarnation of the listing: where the store has another by now, nothing is written.
    async fn put_space(
        &mut self,
        space: &Space,
        expected: Option<&SpaceRecord>,
        new: &SpaceRecord,
    ) -> Result<bool, StoreError>;

    /// Writes a node's record, in one atomic step, if the space's record is `under`, the store's incarnation is the one in
    /// it, and the node's record has `expected` (`None`: if there is none).
    async fn put_node(
        &mut self,
        space: &Space,
        under: &SpaceRecord,
        expected: Option<&Claim>,
        new: &NodeRecord,
    ) -> Result<Put, StoreError>;

    /// Drops the connection: the next call opens a new one.
    fn disconnect(&mut self);

    /// By how much `now_ms` can be too low because the store's clock counts in larger steps.
    fn granularity_ms(&self) -> u64 {
        1
    }
}

/// Why a store did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// It may answer later: no connection, a time-out, a server that is starting or has no leader.
    Unreachable(String),
    /// It will not, as it is set up: a wrong password, no such database, a read-only replica, tables of another version.
    Refused(String),
}

impl StoreError {
    /// What a person can do something with; no passwords.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Unreachable(text) | Self::Refused(text) => text,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for StoreError {}
