//! The counter protocol, shared by all stores: what to request from a store, and what its answer means. It
//! does no I/O.
//!
//! A counter is one record in each of its stores, [`NAME`]. The record's number is the highest that was
//! handed out, so a process that adds to it gets the numbers that it added. If there are several stores, each
//! has a place, and gives only the numbers of that place. A record's number is then a multiple of the number
//! of stores, and covers all numbers up to it: no number above it was issued.
//!
//! - [`Procedure`] opens, raises and removes a counter on all of its stores.
//! - [`Source`] is one of these stores: it reserves numbers, checks for losses every [`LOOK_EVERY_MS`], and
//!   gives numbers back.
//! - [`Text`] is the rest of the record.
//!
//! Each `add` and each `write` that hands out numbers is sent once. If its reply is lost and a later answer
//! shows its version, the record is written again unchanged, for replicas that must confirm it, and only then
//! gives the numbers. The `add` is not sent again, since an `add` compares no version: a copy that arrives
//! late would add a second time under the same version, and numbers given back under that version would then
//! belong to another process.

mod loss;
#[cfg(test)]
mod model;
mod reserve;
#[cfg(test)]
mod sets;
mod several;
mod skip;
#[cfg(test)]
mod tests;
mod text;

use core::fmt;

use crate::records::{Add, Added, Answer, Group, Outcome, Record, Store, Write};
use crate::store::{Place, StoreError};

pub(crate) use reserve::{Next, Source, Want};
pub(crate) use several::{Procedure, Purpose, Standing, Step};
pub(crate) use text::Text;
#[cfg(test)]
pub(crate) use text::TurnOver;

/// The name of a counter's record.
pub(crate) const NAME: &str = "last";
/// How often the keeper checks the record.
pub(crate) const LOOK_EVERY_MS: u64 = 3_000;
/// How long a check may take, including the raise.
pub(crate) const LOOK_TAKES_MS: u64 = 2_000;
/// How soon the keeper checks again after a failed check.
pub(crate) const LOOK_AGAIN_MS: u64 = 1_000;
/// How long after finding a loss a process may turn the record over. By then, the others have checked twice,
/// and have raised the record.
pub(crate) const TURN_OVER_AFTER_MS: u64 = LOOK_EVERY_MS + LOOK_TAKES_MS + LOOK_AGAIN_MS + LOOK_TAKES_MS;
/// The largest count in a reserve that follows one with an unknown outcome.
pub(crate) const AFTER_UNKNOWN: u64 = 100;
/// How many requests an attempt sends before it gives up.
const MAX_REQUESTS: u32 = 12;

/// A source of random numbers.
pub(crate) type Random<'a> = &'a mut dyn FnMut() -> u64;

/// [`Store::has_kept_all`].
pub(crate) type KeptAll<'a> = &'a dyn Fn(&str, &str) -> bool;

/// A request to a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Request {
    Read(Group),
    Write(Write),
    Add(Add),
}

/// A store's answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Received {
    /// Whether the write or the add took effect.
    pub(crate) is_done: bool,
    /// The record afterwards.
    pub(crate) record: Option<Record>,
    pub(crate) incarnation: String,
    /// When the answer was received, by a clock in this process that never goes back.
    pub(crate) elapsed_ms: u64,
}

/// Why a store gives no numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Somebody removed the counter.
    Removed,
    /// The store should have the place `wanted`, but has `found`.
    OtherPlace { at: usize, found: Place, wanted: Place },
    /// The stores have records of different counters, or a store has the record of a counter that it did not
    /// have before.
    OtherId { at: usize, found: String, wanted: String },
    /// The counter is incomplete, and this store has lost the record under which it may have given numbers.
    /// Somebody must raise or remove the counter.
    LostRecord { at: usize },
    /// These stores could not be reached, and nothing can be decided without them.
    Unreachable { at: Vec<usize> },
    /// There is nothing to raise or remove.
    NotThere,
    /// The store lost writes. A process may turn the record over after this many ms.
    Lost { in_ms: u64 },
    /// The store lost writes, and numbers may not continue by themselves. Somebody must raise the counter.
    RefusedAfterLoss,
    /// No numbers, or too few, are left up to the highest number.
    End,
    /// Others changed the record at each attempt.
    Contended,
    /// This program does not know the format of the record.
    Unreadable { why: String },
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read(_) => "read",
            Self::Write(_) => "write",
            Self::Add(_) => "add",
        })
    }
}

/// Sends one request. The future may be dropped: the outcome is then unknown.
pub(crate) async fn ask(
    store: &mut dyn Store,
    request: &Request,
    elapsed_ms: impl Fn() -> u64,
) -> Result<Received, StoreError> {
    Ok(match request {
        Request::Read(group) => {
            let answer = store.read(group, Some(&[NAME])).await?;
            let answer = answer.map(|found| found.into_iter().next().map(|(_, record)| record));
            Received::of_read(answer, elapsed_ms())
        }
        Request::Write(write) => {
            let answer = store.write(write).await?;
            Received::of_write(write, answer, elapsed_ms())
        }
        Request::Add(add) => {
            let answer = store.add(add).await?.map(|added| match added {
                Added::To(number) => {
                    (true, Some(Record { version: add.version, number, text: add.text.clone() }))
                }
                Added::Found(record) => (false, record),
            });
            Received::of(answer, elapsed_ms())
        }
    })
}

impl Received {
    pub(crate) fn of_read(answer: Answer<Option<Record>>, elapsed_ms: u64) -> Self {
        Self::of(answer.map(|record| (false, record)), elapsed_ms)
    }

    pub(crate) fn of_write(write: &Write, answer: Answer<Outcome>, elapsed_ms: u64) -> Self {
        let answer = answer.map(|outcome| match outcome {
            Outcome::Written => (true, Some(write.new.clone())),
            Outcome::Found { record, .. } => (false, record),
        });
        Self::of(answer, elapsed_ms)
    }

    fn of(answer: Answer<(bool, Option<Record>)>, elapsed_ms: u64) -> Self {
        let Answer { incarnation, value: (is_done, record), .. } = answer;
        Self { is_done, record, incarnation, elapsed_ms }
    }
}

/// Returns the last number that a record has handed out, or 0.
pub(crate) const fn last_of(record: &Record, text: &Text) -> u64 {
    let Place { index, count } = text.place();
    match record.number.checked_sub(count) {
        // This is the last number of this place up to the record's number.
        Some(before) if index > 0 => before + index,
        _ => record.number,
    }
}

fn read(group: &Group) -> Request {
    Request::Read(group.clone())
}

fn write(group: &Group, expected: Option<u64>, number: u64, text: &Text, random: Random<'_>) -> Request {
    let new = Record { version: new_version(random), number, text: text.write() };
    Request::Write(Write { group: group.clone(), name: NAME.into(), expected, guard: None, new })
}

fn new_version(random: Random<'_>) -> u64 {
    (random() >> 1).max(1)
}

fn new_id(random: Random<'_>) -> String {
    format!("{:016x}", random())
}

/// Returns the highest number that a record at this place can have.
const fn limit(place: Place) -> u64 {
    Record::LAST_NUMBER - Record::LAST_NUMBER % place.count
}

/// Returns the lowest number not below this one that a record at this place can have, if there is one.
fn rounded_up(number: u64, place: Place) -> Option<u64> {
    number.checked_next_multiple_of(place.count).filter(|&it| it <= limit(place))
}

/// A rule that the tests remove. Some history must then break a promise.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    /// A request that took effect counts only under the incarnation in the record.
    CountsUnderItsIncarnation,
    WaitsToTurnOver,
    RaisesAtOnce,
    DropsWhenLate,
    /// If the only trace of a loss is a lower number, the record's incarnation is removed.
    MarksALossWithoutATrace,
    OnlyCompleteGive,
    AdoptsTheId,
    /// A record that is missing while another store's record is complete is not created again.
    AbsentIsLost,
    /// A record is marked only if it existed when the first one was marked.
    MarksWhatStood,
    /// A missing record is read again after another one was found complete.
    ReadsAbsentAgain,
    /// A request without an answer is recognised by its version.
    FindsItsVersion,
    /// An add is sent once.
    SendsOnce,
    /// Numbers that were recovered are passed over if they are too few for the present call.
    PassesOverTooFew,
    GivesBackOnVersion,
}
