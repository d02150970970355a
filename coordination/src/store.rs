//! Store types that are not in [`records`](crate::records): listings, errors, and rows in other systems'
//! tables.

use core::fmt;

use async_trait::async_trait;

/// The record of a space.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SpaceRecord {
    /// The incarnation of the server instance that wrote this record. If the store has lost acknowledged
    /// writes since then, its current incarnation is different.
    pub incarnation: String,
    /// The limit on how far a bound may be ahead of the store's time: the leases' TTL plus `max_ahead_ms`.
    pub lead_ms: u64,
    /// Holders that acquire their lease from now on never issue IDs below this tick.
    pub fence: u64,
}

/// A node that has been leased at least once. Its record is never deleted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeRecord {
    /// All node fields joined into one number, from the highest field to the lowest.
    pub node: u64,
    /// The token, which has 32 hex digits and is new for each acquisition. It is empty once the lease has
    /// been given back.
    pub token: String,
    /// When the lease expires, by the store's clock (Unix ms), or 0 once it has been given back.
    pub expires_ms: u64,
    /// The holder issues IDs only below this tick, and the next holder starts at this tick.
    pub reserved_until: u64,
    /// The holder's label, for people to read.
    pub label: String,
    /// When the lease was acquired, by the store's clock (Unix ms).
    pub since_ms: u64,
}

impl NodeRecord {
    /// Returns true while the lease keeps other processes from acquiring the node.
    #[must_use]
    pub fn is_held(&self, now_ms: u64, clock_difference_ms: u64) -> bool {
        !self.token.is_empty() && now_ms <= self.expires_ms.saturating_add(clock_difference_ms)
    }
}

/// All of a space's records in a store, read at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Listing {
    /// The store's time (Unix ms).
    pub now_ms: u64,
    /// The store's current incarnation.
    pub incarnation: String,
    /// The space's record, if it exists.
    pub space: Option<SpaceRecord>,
    /// The records of the space's nodes, in any order.
    pub nodes: Vec<NodeRecord>,
}

/// Identifies a counter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CounterName {
    /// The namespace in the store's address. It consists of letters, digits, `.`, `_` and `-`.
    pub namespace: String,
    /// The name: 1 to [`MAX_NAME`](Self::MAX_NAME) characters, none of them control characters.
    pub name: String,
    /// The counter's table. Only SQL stores have other systems' tables.
    pub schema: Schema,
}

impl CounterName {
    /// The maximum length of a counter's name, in characters.
    pub const MAX_NAME: usize = 100;

    /// Returns true if a counter can have this name.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        Self::check(name).is_ok()
    }

    /// Checks a name. If the name is not valid, returns a description of the problem.
    pub(crate) fn check(name: &str) -> Result<(), String> {
        let count = name.chars().count();
        if !(1..=Self::MAX_NAME).contains(&count) {
            return Err(format!("has {count} characters; it takes 1 to {}", Self::MAX_NAME));
        }
        if name.chars().any(char::is_control) { Err("has a control character".into()) } else { Ok(()) }
    }
}

/// The system that the counter's table belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Schema {
    /// Polyflake's records.
    #[default]
    Polyflake,
    /// Leaf's table, `leaf_alloc`.
    Leaf,
    /// tinyid's table, `tiny_id_info`.
    Tinyid,
    /// `CosId`'s table, `cosid`.
    Cosid,
}

/// The highest number that a counter can hand out. It is the largest signed 64-bit integer.
pub const LAST_NUMBER: u64 = i64::MAX as u64;

/// A counter's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CounterRecord {
    /// The counter has handed out no number above this one. It may be 0.
    pub last: u64,
    /// The version, which [`Rows::put_counter`] compares. It changes with each write, and never equals the
    /// version of an earlier record with this name. `None` if the record is in another system's table that
    /// has no versions.
    pub version: Option<u64>,
    /// The numbers that belong to this store.
    pub place: Place,
}

/// The share of a counter's numbers that belongs to one store: the numbers that equal `index` modulo `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The remainder, below `count`.
    pub index: u64,
    /// The number of stores that hold the counter: 1 to [`MAX_COUNT`](Self::MAX_COUNT). In tinyid's table,
    /// this is `delta`.
    pub count: u64,
}

impl Place {
    /// All numbers, for a counter with one store.
    pub const ONLY: Self = Self { index: 0, count: 1 };

    /// The maximum number of stores that a counter can have.
    pub const MAX_COUNT: u64 = 1024;
}

/// A request for numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reserve {
    /// How many numbers to reserve: 1 to [`MAX_COUNT`](Self::MAX_COUNT).
    pub count: u64,
    /// The numbers that belong to this store. A row in another system's table has its own place.
    pub place: Place,
    /// The highest number this process has received from the counter, or 0. A lower number in the record
    /// shows that the store has lost writes.
    pub seen: u64,
    /// True to take at most `count` numbers, even if the row in another system's table has a larger step.
    pub is_exact: bool,
}

impl Reserve {
    /// The maximum count in one request.
    pub const MAX_COUNT: u64 = 1 << 32;
}

/// The result of a [`Reserve`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reserved {
    /// The reserved numbers, which only the caller may issue.
    Numbers(Numbers),
    /// Nothing was reserved, because the record does not exist, has a different place, is below
    /// [`Reserve::seen`], or has fewer numbers left than requested.
    Found(Option<CounterRecord>),
}

/// A run of reserved numbers: `first`, `first + stride`, and so on, `count` numbers in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Numbers {
    /// The lowest number.
    pub first: u64,
    /// The distance between neighbouring numbers: [`Place::count`].
    pub stride: u64,
    /// How many numbers the run has, at least 1. Another system's table may return more numbers than
    /// requested, since its row sets the minimum step.
    pub count: u64,
    /// The record's version after the reservation.
    pub version: Option<u64>,
}

/// A counter's rows in other systems' tables. Each call is one attempt, and the keeper cancels a call that
/// takes too long.
///
/// A cancelled call may still take effect later. Each change is therefore either a compare-and-set, or one
/// that merely skips numbers if it takes effect unnoticed.
#[async_trait(?Send)]
pub trait Rows: Send + fmt::Debug {
    /// Takes numbers from a row in one atomic step. It takes the `count` lowest numbers of the
    /// [`place`](Reserve::place) above the numbers that were already handed out, or more if the row's own
    /// step is larger. It takes no numbers if they would exceed [`LAST_NUMBER`], or in the cases listed at
    /// [`Reserved::Found`].
    async fn reserve(&mut self, counter: &CounterName, reserve: &Reserve) -> Result<Reserved, StoreError>;

    /// Reads a row, if it exists.
    async fn counter(&mut self, counter: &CounterName) -> Result<Option<CounterRecord>, StoreError>;

    /// Writes a row's last number, and its version if it has one, provided that the row is as expected.
    /// Returns true if the row was written.
    async fn put_counter(
        &mut self,
        counter: &CounterName,
        expected: &CounterRecord,
        new: &CounterRecord,
    ) -> Result<bool, StoreError>;

    /// Lists the names of all rows, in any order.
    async fn counter_names(&mut self, namespace: &str, schema: Schema) -> Result<Vec<String>, StoreError>;
}

/// Why a store did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreError {
    /// The store cannot answer at the moment, because there is no connection, the call timed out, or the
    /// server is starting, is read-only or has no leader.
    Unreachable(String),
    /// The store cannot answer until its setup is changed, because the password is wrong, the database does
    /// not exist, or another version created the tables.
    Refused(String),
}

impl StoreError {
    /// Returns a message that helps the user solve the problem. It contains no passwords.
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
