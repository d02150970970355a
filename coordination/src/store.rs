//! The parts of stores besides records: errors, and rows in other systems' tables.

use core::fmt;

use async_trait::async_trait;

/// A space's own record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SpaceRecord {
    /// The server instance that wrote this record: a store that has lost acknowledged writes since then has another one.
    pub incarnation: String,
    /// How far past the store's time a bound may lie: the time to live of its leases, plus `max_ahead_ms`.
    pub lead_ms: u64,
    /// No lease acquired from now on issues below this tick.
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
    /// The holder issues below this tick; the next holder issues from it on.
    pub reserved_until: u64,
    /// Who holds it: for people.
    pub label: String,
    /// When it was acquired, by the store's clock (Unix ms).
    pub since_ms: u64,
}

impl NodeRecord {
    /// Whether its lease has not expired: then nobody else gets the node.
    #[must_use]
    pub fn is_held(&self, now_ms: u64, clock_difference_ms: u64) -> bool {
        !self.token.is_empty() && now_ms <= self.expires_ms.saturating_add(clock_difference_ms)
    }
}

/// All of a store's records of a space, at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Listing {
    /// The store's time (Unix ms).
    pub now_ms: u64,
    /// The store's present incarnation.
    pub incarnation: String,
    /// The space's record, if there is one.
    pub space: Option<SpaceRecord>,
    /// The records of the space's nodes, in any order.
    pub nodes: Vec<NodeRecord>,
}

/// Identifies a counter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CounterName {
    /// From the store's address. Letters, digits, `.`, `_` and `-`.
    pub namespace: String,
    /// 1 to [`MAX_NAME`](Self::MAX_NAME) characters, none of them a control character.
    pub name: String,
    /// The table it is in: only SQL stores have other systems' tables.
    pub schema: Schema,
}

impl CounterName {
    /// The longest name of a counter, in characters.
    pub const MAX_NAME: usize = 100;

    /// Checks whether a counter can have this name.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        Self::check(name).is_ok()
    }

    /// The fault in a name.
    pub(crate) fn check(name: &str) -> Result<(), String> {
        let count = name.chars().count();
        if !(1..=Self::MAX_NAME).contains(&count) {
            return Err(format!("has {count} characters; it takes 1 to {}", Self::MAX_NAME));
        }
        if name.chars().any(char::is_control) { Err("has a control character".into()) } else { Ok(()) }
    }
}

/// The system whose table a counter is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Schema {
    /// Records.
    #[default]
    Polyflake,
    /// Leaf: `leaf_alloc`.
    Leaf,
    /// tinyid: `tiny_id_info`.
    Tinyid,
    /// `CosId`: `cosid`.
    Cosid,
}

/// The highest number of a counter: its numbers fit a signed 64-bit integer.
pub const LAST_NUMBER: u64 = i64::MAX as u64;

/// The record of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CounterRecord {
    /// All numbers that were handed out are at most this. It may be 0.
    pub last: u64,
    /// It changes with each write, and never becomes one that an earlier record of this name had: [`Rows::put_counter`]
    /// compares it. `None` if another system's table has none.
    pub version: Option<u64>,
    /// The numbers that belong to this store.
    pub place: Place,
}

/// The numbers of a counter that belong to a store: those that are `index` modulo `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Below `count`.
    pub index: u64,
    /// How many stores the counter has: 1 to [`MAX_COUNT`](Self::MAX_COUNT). In tinyid's table, its `delta`.
    pub count: u64,
}

impl Place {
    /// All numbers: for the only store.
    pub const ONLY: Self = Self { index: 0, count: 1 };

    /// The most stores that a counter can have.
    pub const MAX_COUNT: u64 = 1024;
}

/// A request for numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reserve {
    /// How many: 1 to [`MAX_COUNT`](Self::MAX_COUNT).
    pub count: u64,
    /// The numbers that belong to this store. Another system's table has its own.
    pub place: Place,
    /// The highest number that this process got from the counter; 0 if it got none. A lower record has lost writes.
    pub seen: u64,
    /// Whether to take no more than that, even if the row in another system's table names a larger step.
    pub is_exact: bool,
}

impl Reserve {
    /// The most numbers in one request.
    pub const MAX_COUNT: u64 = 1 << 32;
}

/// The result of a [`Reserve`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reserved {
    /// These numbers belong to the caller alone.
    Numbers(Numbers),
    /// Nothing is reserved: there is no record, or it has another place, is lower than what was seen, or has fewer numbers left
    /// than requested.
    Found(Option<CounterRecord>),
}

/// Reserved numbers: `first`, `first + stride`, and so on, `count` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Numbers {
    /// The lowest.
    pub first: u64,
    /// The distance from each to the next: [`Place::count`].
    pub stride: u64,
    /// At least one. Another system's table may give more than requested: at least its row's step.
    pub count: u64,
    /// The record's version now.
    pub version: Option<u64>,
}

/// A counter's rows in other systems' tables. Each call is one attempt: the keeper ends it when it takes too long.
///
/// A call that was ended may still take effect later. So every change is a compare-and-set, or skips numbers if it lands unseen.
#[async_trait(?Send)]
pub trait Rows: Send + fmt::Debug {
    /// Takes numbers from a row, in one atomic step: the `count` lowest of the [`place`](Reserve::place) above those that were
    /// handed out, or more if the row's own step is larger. It takes none if they would exceed [`LAST_NUMBER`], or if the row
    /// is as described at [`Reserved::Found`].
    async fn reserve(&mut self, counter: &CounterName, reserve: &Reserve) -> Result<Reserved, StoreError>;

    /// A row, if there is one.
    async fn counter(&mut self, counter: &CounterName) -> Result<Option<CounterRecord>, StoreError>;

    /// Writes how far a row is, and its version if it has one, provided the row is as expected. Returns whether it was written.
    async fn put_counter(
        &mut self,
        counter: &CounterName,
        expected: &CounterRecord,
        new: &CounterRecord,
    ) -> Result<bool, StoreError>;

    /// The names of all rows, in any order.
    async fn counter_names(&mut self, namespace: &str, schema: Schema) -> Result<Vec<String>, StoreError>;
}

/// Why a store did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// It may answer later: no connection, a time-out, a server that is starting, is read-only or has no leader.
    Unreachable(String),
    /// It will not answer in its present setup: a wrong password, no such database, tables of another version.
    Refused(String),
}

impl StoreError {
    /// A text that helps a person to act; without passwords.
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
