//! The counter protocol, shared by all stores. It decides which requests to send to a store, and interprets
//! the answers. It does no I/O.
//!
//! A counter has one record in each of its stores, called [`NAME`]. The record's number is the highest that
//! any process has reserved. To reserve numbers, a process adds to the record's number, and is given the
//! numbers in between. If there are several stores, each has a place, and returns only the numbers that
//! belong to that place. In that case, a record's number is a multiple of the number of stores, and no number
//! above it has been issued.
//!
//! - [`Procedure`] opens, raises and removes a counter on all of its stores.
//! - [`Source`] handles one of these stores: it reserves numbers, checks for losses every [`LOOK_EVERY_MS`],
//!   and gives numbers back.
//! - [`Text`] holds the other parts of the record.
//!
//! Each `add` and each `write` that reserves numbers is sent once. If the reply is lost and a later answer
//! shows the request's version, the process writes the record again, unchanged, so that the replicas can
//! confirm it. Only then may the process issue the numbers. The process does not send the `add` a second
//! time, since an `add` does not compare versions. If a delayed duplicate arrived, the store would add the
//! numbers again under the same version. A process that gives numbers back under that version would then give
//! back numbers that belong to another process.

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
/// The interval at which the keeper checks the record.
pub(crate) const LOOK_EVERY_MS: u64 = 3_000;
/// The maximum time for a check, including the raise.
pub(crate) const LOOK_TAKES_MS: u64 = 2_000;
/// The pause between a failed check and the next one.
pub(crate) const LOOK_AGAIN_MS: u64 = 1_000;
/// How long a process that detects a loss must wait before it rolls the record over to the new incarnation.
/// During that time, the other processes check the record twice and raise it.
pub(crate) const TURN_OVER_AFTER_MS: u64 = LOOK_EVERY_MS + LOOK_TAKES_MS + LOOK_AGAIN_MS + LOOK_TAKES_MS;
/// The maximum count in a reservation if the outcome of the previous one is unknown.
pub(crate) const AFTER_UNKNOWN: u64 = 100;
/// The number of requests after which an attempt gives up.
const MAX_REQUESTS: u32 = 12;

/// A source of random numbers.
pub(crate) type Random<'a> = &'a mut dyn FnMut() -> u64;

/// A closure that calls [`Store::has_kept_all`].
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
    /// Whether the request was a write or an add that took effect.
    pub(crate) is_done: bool,
    /// The record after the request.
    pub(crate) record: Option<Record>,
    pub(crate) incarnation: String,
    /// When the answer was received, by a monotonic clock in this process.
    pub(crate) elapsed_ms: u64,
}

/// Why a store returns no numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The counter was removed.
    Removed,
    /// The store's place in the list is `wanted`, but its record has `found`.
    OtherPlace { at: usize, found: Place, wanted: Place },
    /// The stores have records of different counters.
    OtherId { at: usize, found: String, wanted: String },
    /// The counter is incomplete, and this store has lost its record, but may have returned numbers before
    /// that. An operator must raise or remove the counter.
    LostRecord { at: usize },
    /// These stores could not be reached, and the procedure needs their answers.
    Unreachable { at: Vec<usize> },
    /// The counter does not exist, so it cannot be raised or removed.
    NotThere,
    /// The store lost writes. This process may roll the record over after `in_ms` milliseconds.
    Lost { in_ms: u64 },
    /// The store lost writes, and the address does not let the counter continue automatically. An operator
    /// must raise the counter.
    RefusedAfterLoss,
    /// Too few numbers are left before the counter's end.
    End,
    /// Other processes changed the record during every attempt.
    Contended,
    /// The record cannot be read, or has a format that this program does not know.
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

/// Sends one request. If the future is dropped, the request's outcome is unknown.
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

/// Returns the last number that was reserved from a record, or 0.
pub(crate) const fn last_of(record: &Record, text: &Text) -> u64 {
    let Place { index, count } = text.place();
    match record.number.checked_sub(count) {
        // This is the highest of this place's numbers that does not exceed the record's number.
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

/// Returns the highest number that the record for this place can hold.
const fn limit(place: Place) -> u64 {
    Record::LAST_NUMBER - Record::LAST_NUMBER % place.count
}

/// Rounds `number` up to one that the record for this place can hold. Returns `None` if that would be too
/// high.
fn rounded_up(number: u64, place: Place) -> Option<u64> {
    number.checked_next_multiple_of(place.count).filter(|&it| it <= limit(place))
}

/// A rule that the tests can turn off. Without the rule, some history must break a promise.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    /// A request that took effect counts only if its answer carries the record's incarnation.
    CountsUnderItsIncarnation,
    WaitsToTurnOver,
    RaisesAtOnce,
    DropsWhenLate,
    /// If a lower number is the only trace of a loss, the process removes the record's incarnation.
    MarksALossWithoutATrace,
    OnlyCompleteGive,
    AdoptsTheId,
    /// If a record is missing while another store's record is complete, it is not created again.
    AbsentIsLost,
    /// A record is marked as complete only if it existed when the first record was marked.
    MarksWhatStood,
    /// If another record is found to be complete, a missing record is read again.
    ReadsAbsentAgain,
    /// If a request's reply was lost, the request is recognised by its version.
    FindsItsVersion,
    /// An add is sent only once.
    SendsOnce,
    /// Recovered numbers are skipped if there are too few for the current call.
    PassesOverTooFew,
    GivesBackOnVersion,
}
