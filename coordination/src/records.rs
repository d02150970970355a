//! The interface of a store: four operations on records. Every rule of leases, counters and sequences builds on them.
//!
//! A *record* is the unit that a store keeps. Records of one *group* are kept or lost together. A record is never deleted.

mod conformance;
mod memory;

use core::fmt;

use async_trait::async_trait;

use crate::store::{Rows, StoreError};

pub use conformance::conformance;
pub use memory::MemoryStore;

/// The records of one space, one counter or one set of sequences.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Group {
    /// From the store's address. Letters, digits, `.`, `_` and `-`.
    pub namespace: String,
    /// The kind of the records.
    pub kind: Kind,
    /// 1 to 100 characters without control characters. Stores compare it byte by byte.
    pub name: String,
}

/// The kind of a group of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The leases of a space.
    Space,
    /// A counter.
    Counter,
    /// A set of sequences.
    Sequences,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Space, Self::Counter, Self::Sequences];

    /// The name in stores: `space`, `counter` or `sequences`.
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

/// A store keeps this under a name. A name has 1 to 32 lowercase ASCII letters, digits and hyphens.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// 1 to 2^63-1. The writer draws it at random for each write, so that it is never used again. If a reply is lost, it tells
    /// the writer whether the write took effect.
    pub version: u64,
    /// At most [`Record::LAST_NUMBER`].
    pub number: u64,
    /// Everything else, as JSON: at most [`Record::MAX_TEXT`] bytes.
    pub text: String,
}

impl Record {
    /// The highest number: not all tools of all databases can read unsigned 64-bit integers.
    pub const LAST_NUMBER: u64 = i64::MAX as u64;
    /// The longest text, in bytes.
    pub const MAX_TEXT: usize = 8192;
    /// The most names in one [`Store::read`].
    pub const MAX_NAMES: usize = 64;
}

/// A store's answer, with the time and the server instance, all three from one step.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Answer<T> {
    /// The store's time in Unix ms, rounded down to [`Facts::granularity_ms`].
    pub now_ms: u64,
    /// Identifies the server instance that holds the data. If a store may have lost writes it acknowledged, it has another one
    /// afterwards.
    pub incarnation: String,
    /// The answer.
    pub value: T,
}

/// Names with their records, in any order.
pub type Named = Vec<(String, Record)>;

/// A compare-and-set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Write {
    /// Where.
    pub group: Group,
    /// Of the record.
    pub name: String,
    /// The version that the record must have; `None` if there must be no record.
    pub expected: Option<u64>,
    /// Another record of the group, and the version that it must have.
    pub guard: Option<(String, u64)>,
    /// The new record.
    pub new: Record,
}

/// The result of a [`Write`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It is written, as safely as the store keeps anything it acknowledges.
    Written,
    /// Nothing is written: the store has these records.
    Found {
        /// The record.
        record: Option<Record>,
        /// The guard, where one was given.
        guard: Option<Record>,
    },
}

/// Adds to the number of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Add {
    /// Where.
    pub group: Group,
    /// Of the record.
    pub name: String,
    /// The text that the record must have.
    pub text: String,
    /// The lowest number that it may have.
    pub floor: u64,
    /// The addend: at least 1.
    pub count: u64,
    /// The number that the sum must not exceed.
    pub limit: u64,
    /// The record's new version.
    pub version: u64,
}

/// The result of an [`Add`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Added {
    /// The number after it.
    To(u64),
    /// Nothing is added: the store has this record.
    Found(Option<Record>),
}

/// Facts about a store that the rules depend on, as far as the server shows them on connecting. Before the first answer: the
/// worst case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Facts {
    /// The step of the store's clock.
    pub granularity_ms: u64,
    /// Whether it may lose a write that it acknowledged, without its administrator making a mistake.
    pub can_forget: bool,
    /// How many replicas may lack acknowledged writes, as far as this user can see them.
    pub asynchronous_replicas: u64,
}

/// A store of records. Each call is one attempt: the keeper ends it when it takes too long, calls
/// [`disconnect`](Self::disconnect) after one that failed or was ended, and tries again.
///
/// A call that was ended may still take effect later, once. Only `write` creates tables or anything else.
///
/// Errors are shown to people unchanged: their texts begin with the store's address, without a secret. To add your own store,
/// use [`stores::register`](crate::stores::register). The methods are asynchronous through the crate `async-trait`, and Tokio
/// runs them: put `#[async_trait(?Send)]` above the implementation.
#[async_trait(?Send)]
pub trait Store: Send + fmt::Debug {
    /// The named records that exist; without names, all records in the group.
    async fn read(&mut self, group: &Group, names: Option<&[&str]>) -> Result<Answer<Named>, StoreError>;

    /// Writes a record in one atomic step if it has the expected version and the guard has the given one. If the record already
    /// has the new version, it is written again, under the same guard, so that a write of unknown outcome can be repeated. If
    /// too few replicas confirmed a write, it is repeated until enough have: a read that shows it says nothing about them.
    async fn write(&mut self, write: &Write) -> Result<Answer<Outcome>, StoreError>;

    /// The record with one name in each of these groups, if it exists. They are read one after the other, unless the store has
    /// a shorter way.
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

    /// Several independent [`write`](Self::write)s, one after the other, unless the store has a shorter way. After an error,
    /// each of them may have taken effect.
    async fn write_each(&mut self, writes: &[Write]) -> Result<Vec<Answer<Outcome>>, StoreError> {
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            answers.push(self.write(write).await?);
        }
        Ok(answers)
    }

    /// Adds to a record's number, in one atomic step, if its text is the given one, its number is at least `floor`, and the sum
    /// is at most `limit`. If the record already has this call's version, nothing is added again, and the answer reports the
    /// addition. The answer's time may be that of an earlier answer: no caller uses it.
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

    /// The names of all groups in a namespace that have a record, in any order.
    async fn groups(&mut self, namespace: &str, kind: Kind) -> Result<Vec<String>, StoreError>;

    /// See [`Facts`].
    fn facts(&self) -> Facts;

    /// Whether a store whose incarnation changed from `before` to `now` is known to have lost nothing that it acknowledged.
    fn has_kept_all(&self, before: &str, now: &str) -> bool {
        before == now
    }

    /// Drops the connection: the next call opens a new one.
    fn disconnect(&mut self);

    /// Leaf's, tinyid's and `CosId`'s tables.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] if the store has none: only SQL stores do.
    fn rows(&mut self) -> Result<&mut dyn Rows, StoreError> {
        Err(StoreError::Refused("only SQL stores have tables of others".into()))
    }
}

/// How often the default [`Store::add`] tries.
const MAX_ADDS: u32 = 8;

impl Add {
    /// The number after the addition, if this record allows it.
    #[must_use]
    pub fn sum(&self, record: &Record) -> Option<u64> {
        let sum = record.number.checked_add(self.count).filter(|&sum| sum <= self.limit)?;
        (record.text == self.text && record.number >= self.floor).then_some(sum)
    }
}

impl<T> Answer<T> {
    /// Another value from the same answer.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        let Self { now_ms, incarnation, value } = self;
        Answer { now_ms, incarnation, value: change(value) }
    }
}
