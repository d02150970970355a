//! The interface of a store, which consists of four operations on records. All rules for leases, counters and
//! sequences are built on these operations.
//!
//! A *record* is the unit that a store keeps. A store keeps or loses all the records in a *group* together.
//! Records are never deleted.

mod conformance;
mod memory;

use core::fmt;

use async_trait::async_trait;

use crate::store::{Rows, StoreError};

pub use conformance::conformance;
pub use memory::MemoryStore;

/// Identifies the records of one space, one counter or one set of sequences.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Group {
    /// The namespace in the store's address. It consists of letters, digits, `.`, `_` and `-`.
    pub namespace: String,
    /// The kind of records in the group.
    pub kind: Kind,
    /// The name: 1 to 100 characters, none of them control characters. Stores compare names byte by byte.
    pub name: String,
}

/// The kind of a group of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The leases of a space.
    Space,
    /// The numbers of a counter.
    Counter,
    /// The bounds and the lease of a set of sequences.
    Sequences,
}

impl Kind {
    /// All kinds of groups.
    pub const ALL: [Self; 3] = [Self::Space, Self::Counter, Self::Sequences];

    /// Returns the kind's name in stores: `space`, `counter` or `sequences`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Space => "space",
            Self::Counter => "counter",
            Self::Sequences => "sequences",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The unit that a store keeps under a name. A name consists of 1 to 32 lowercase ASCII letters, digits and
/// hyphens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// The version, from 1 to 2^63-1. The writer draws a random version for each write, so that no version
    /// occurs twice. If a reply is lost, the version tells the writer whether the write took effect.
    pub version: u64,
    /// The number, at most [`Record::LAST_NUMBER`].
    pub number: u64,
    /// The rest of the record, as JSON of at most [`Record::MAX_TEXT`] bytes.
    pub text: String,
}

impl Record {
    /// The highest number. It is no higher because some database tools cannot read unsigned 64-bit integers.
    pub const LAST_NUMBER: u64 = i64::MAX as u64;
    /// The maximum length of the text, in bytes.
    pub const MAX_TEXT: usize = 8192;
    /// The maximum number of names in one [`Store::read`].
    pub const MAX_NAMES: usize = 64;
}

/// A store's answer, with the store's time and incarnation. The store reads all three in one step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Answer<T> {
    /// The store's time in Unix ms, rounded down to [`Facts::granularity_ms`].
    pub now_ms: u64,
    /// The identity of the server instance that holds the data. The incarnation changes if the store may have
    /// lost acknowledged writes.
    pub incarnation: String,
    /// The answer itself.
    pub value: T,
}

/// Names with their records, in any order.
pub type Named = Vec<(String, Record)>;

/// A compare-and-set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Write {
    /// The record's group.
    pub group: Group,
    /// The record's name.
    pub name: String,
    /// The version that the record must have, or `None` if the record must not exist.
    pub expected: Option<u64>,
    /// Another record in the group, with the version that it must have.
    pub guard: Option<(String, u64)>,
    /// The new record.
    pub new: Record,
}

/// The result of a [`Write`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The record was written, and is as durable as any write that the store acknowledges.
    Written,
    /// Nothing was written, because the record or the guard does not have the version that the write
    /// requires.
    Found {
        /// The record, if it exists.
        record: Option<Record>,
        /// The guard, if the write names one and it exists.
        guard: Option<Record>,
    },
}

/// An addition to a record's number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Add {
    /// The record's group.
    pub group: Group,
    /// The record's name.
    pub name: String,
    /// The text that the record must have.
    pub text: String,
    /// The lowest number that the record may have.
    pub floor: u64,
    /// The addend, at least 1.
    pub count: u64,
    /// The highest allowed sum.
    pub limit: u64,
    /// The record's new version.
    pub version: u64,
}

/// The result of an [`Add`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Added {
    /// The record's number after the addition.
    To(u64),
    /// Nothing was added, because the store has this record, which does not meet the conditions of the
    /// [`Add`].
    Found(Option<Record>),
}

/// Facts about a store that the rules depend on. A client collects them when it connects, to the extent that
/// the server reveals them. Until the first answer, the client assumes the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Facts {
    /// The granularity of the store's clock.
    pub granularity_ms: u64,
    /// True if the store may lose an acknowledged write even if its administrator makes no mistake.
    pub can_forget: bool,
    /// The number of replicas that may lack acknowledged writes, as far as this user can tell.
    pub asynchronous_replicas: u64,
}

/// A store of records. Each call is one attempt. The keeper cancels an attempt that takes too long. If an
/// attempt fails or is cancelled, the keeper calls [`disconnect`](Self::disconnect) and tries again.
///
/// A cancelled call may still take effect later, at most once. Only `write` creates tables or other
/// structures in the store.
///
/// Users see the error messages unchanged, so begin each message with the store's address and leave out
/// secrets. To add your own store, use [`stores::register`](crate::stores::register). The methods are async,
/// through the `async-trait` crate, and run on Tokio. Put `#[async_trait(?Send)]` above your implementation.
#[async_trait(?Send)]
pub trait Store: Send + fmt::Debug {
    /// Reads whichever records with these names exist, or all records in the group if `names` is `None`.
    async fn read(&mut self, group: &Group, names: Option<&[&str]>) -> Result<Answer<Named>, StoreError>;

    /// Writes a record in one atomic step if the record has the expected version and the guard has the
    /// version given for it. If the record already has the new version, `write` writes it again under the
    /// same guard, so that the caller can repeat a write whose outcome is unknown. If too few replicas
    /// confirmed a write, the caller repeats it until enough of them have, since a read that shows the write
    /// proves nothing about the replicas.
    async fn write(&mut self, write: &Write) -> Result<Answer<Outcome>, StoreError>;

    /// Reads the record called `name` in each of these groups, if it exists. The default implementation reads
    /// the groups one after another. A store may override it with a faster implementation.
    async fn read_each(
        &mut self,
        groups: &[Group],
        name: &str,
    ) -> Result<Vec<Answer<Option<Record>>>, StoreError> {
        let mut answers = Vec::with_capacity(groups.len());
        for group in groups {
            let found = self.read(group, Some(&[name])).await?;
            answers.push(found.map(|found| found.into_iter().next().map(|(_, record)| record)));
        }
        Ok(answers)
    }

    /// Carries out several independent [`write`](Self::write)s. The default implementation sends them one
    /// after another. A store may override it with a faster implementation. After an error, any of the writes
    /// may have taken effect.
    async fn write_each(&mut self, writes: &[Write]) -> Result<Vec<Answer<Outcome>>, StoreError> {
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            answers.push(self.write(write).await?);
        }
        Ok(answers)
    }

    /// Adds to a record's number in one atomic step if the record has the given text, its number is at least
    /// `floor`, and the sum is at most `limit`. If the record already has this call's version, `add` does not
    /// add again, and reports the earlier addition. The answer may contain the time of an earlier answer,
    /// since no caller uses the time.
    async fn add(&mut self, add: &Add) -> Result<Answer<Added>, StoreError> {
        for _ in 0..MAX_ADDS {
            let Answer { now_ms, incarnation, value } = self.read(&add.group, Some(&[&*add.name])).await?;
            let found = value.into_iter().next().map(|(_, record)| record);
            let answer = |value| Ok(Answer { now_ms, incarnation: incarnation.clone(), value });
            let sum = match &found {
                Some(record) if record.version == add.version => return answer(Added::To(record.number)),
                Some(record) => add.sum(record),
                None => None,
            };
            let (Some(record), Some(number)) = (found.as_ref(), sum) else {
                return answer(Added::Found(found));
            };
            let new = Record { version: add.version, number, text: record.text.clone() };
            let expected = Some(record.version);
            let write =
                Write { group: add.group.clone(), name: add.name.clone(), expected, guard: None, new };
            let written = self.write(&write).await?;
            if written.value == Outcome::Written {
                return Ok(written.map(|_| Added::To(number)));
            }
        }
        Err(StoreError::Unreachable(
            "every attempt to change the record conflicted with another process".into(),
        ))
    }

    /// Lists the names of all groups of this kind in a namespace, in any order. Leaves out groups without
    /// records.
    async fn groups(&mut self, namespace: &str, kind: Kind) -> Result<Vec<String>, StoreError>;

    /// Returns the store's [`Facts`].
    fn facts(&self) -> Facts;

    /// Returns true if the store is known to have kept every acknowledged write even though its incarnation
    /// changed from `before` to `now`.
    fn has_kept_all(&self, before: &str, now: &str) -> bool {
        before == now
    }

    /// Drops the connection. The next call opens a new one.
    fn disconnect(&mut self);

    /// Returns the rows of the Leaf, tinyid and `CosId` tables.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Refused`] if the store has no such tables. Only SQL stores have them.
    fn rows(&mut self) -> Result<&mut dyn Rows, StoreError> {
        Err(StoreError::Refused("only SQL stores have tables of others".into()))
    }
}

/// The maximum number of attempts in the default [`Store::add`].
const MAX_ADDS: u32 = 8;

impl Add {
    /// Returns the sum if this record meets the conditions of the addition.
    #[must_use]
    pub fn sum(&self, record: &Record) -> Option<u64> {
        let sum = record.number.checked_add(self.count).filter(|&sum| sum <= self.limit)?;
        (record.text == self.text && record.number >= self.floor).then_some(sum)
    }
}

impl<T> Answer<T> {
    /// Converts the value, and keeps the time and the incarnation.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        let Self { now_ms, incarnation, value } = self;
        Answer { now_ms, incarnation, value: change(value) }
    }
}
