//! Converts the reasons a store returned no numbers to errors for the waiting calls.

use polyflake::{Error, ErrorCode};

use super::stores;
use crate::counter::protocol::{self, Purpose};
use crate::counter::shared::Source;
use crate::store::{LAST_NUMBER, Place, StoreError};
use crate::watched::Trouble;

/// The advice that error messages give after a store has lost writes.
const RAISE: &str = "raise the counter above all numbers that are in use";

/// The reason a store returned no numbers.
#[derive(Debug, Clone)]
pub(super) enum Refusal {
    Store(StoreError),
    Protocol(protocol::Refusal),
    /// The purpose requires an answer from all of the counter's stores.
    Others(Purpose, Option<StoreError>),
    /// The store lost its record, but the other stores still have the counter.
    LeftOut,
    /// The other system's table has no row with this name.
    NoRow,
    /// The row belongs to another system, so Polyflake does not remove it.
    NotOurs,
    /// The row in another system's table has the number `last`, although this process has received the higher
    /// number `seen`.
    Behind {
        last: u64,
        seen: u64,
    },
    /// The row in tinyid's table has the wrong delta or remainder.
    OtherRow {
        found: Place,
    },
    End,
    Contended,
}

impl Refusal {
    /// Returns the error for the calls that are waiting for `source`, which is one of the counter's
    /// `sources`.
    pub(super) fn trouble(&self, source: &Source, sources: &[Source]) -> Trouble {
        let why = self.why(source, sources);
        let error = Error::from_outside(self.code(), &format!("counter {:?}: {why}", source.counter.name));
        Trouble { error, is_final: !self.may_pass() }
    }

    /// Returns true if too few numbers are left before the counter's end.
    pub(super) const fn is_end(&self) -> bool {
        matches!(self, Self::End | Self::Protocol(protocol::Refusal::End))
    }

    /// Returns the error's code. Naming the wrong stores counts as an invalid option.
    const fn code(&self) -> ErrorCode {
        use protocol::Refusal as Of;
        match self {
            Self::OtherRow { .. } | Self::Protocol(Of::OtherPlace { .. } | Of::OtherId { .. }) => {
                ErrorCode::InvalidOption
            }
            _ => ErrorCode::CounterUnavailable,
        }
    }

    /// Returns true if a later attempt may obtain numbers without anyone intervening.
    const fn may_pass(&self) -> bool {
        use protocol::Refusal as Of;
        matches!(
            self,
            Self::Store(StoreError::Unreachable(_))
                | Self::Others(..)
                | Self::LeftOut
                | Self::Contended
                | Self::Protocol(Of::Lost { .. } | Of::Contended | Of::Unreachable { .. })
        )
    }

    fn why(&self, source: &Source, sources: &[Source]) -> String {
        let address = &source.address;
        match self {
            Self::Store(error) => stores::text_of(error),
            Self::Others(purpose, error) => {
                let what = match purpose {
                    Purpose::Open { .. } => "none of its stores has it yet; it is created",
                    Purpose::Raise { .. } => "it is raised",
                    Purpose::Remove => "it is removed",
                };
                let why = error.as_ref().map(stores::text_of).unwrap_or_default();
                format!("{what} once all of them answer: {why}")
            }
            Self::LeftOut => {
                format!("{address} has lost its record of it, and is left out until then: {RAISE}")
            }
            Self::NoRow => format!(
                "{address} has no row for it: add one there, since Polyflake adds no rows to another system's table"
            ),
            Self::NotOurs => format!("its row in {address} belongs to other software; remove it there"),
            Self::Behind { last, seen } => format!(
                "{address} has lost writes: it stands at {last}, and this process had numbers up to {seen} from it: {RAISE}"
            ),
            Self::OtherRow { found } => {
                let Place { index, count } = source.place;
                format!(
                    "the row of tiny_id_info at {address} has delta {} and remainder {}, and store {} of {count} must have delta \
                     {count} and remainder {index}: give the stores in the order of their remainders",
                    found.count,
                    found.index,
                    index + 1,
                )
            }
            Self::End => format!("it has reached its end, {LAST_NUMBER}"),
            Self::Contended => format!("every attempt at {address} conflicted with another process"),
            Self::Protocol(refusal) => why_by_protocol(refusal, source, sources),
        }
    }
}

fn why_by_protocol(refusal: &protocol::Refusal, source: &Source, sources: &[Source]) -> String {
    use protocol::Refusal as Of;
    let address = &source.address;
    let address_of = |at: usize| sources.get(at).map(|it| it.address.to_string()).unwrap_or_default();
    match refusal {
        Of::OtherPlace { at, found, wanted } => format!(
            "{} is store {} of {} of it, and is given as store {} of {}: every process must name the same \
             stores in the same order, and their number cannot be changed",
            address_of(*at),
            found.index + 1,
            found.count,
            wanted.index + 1,
            wanted.count
        ),
        Of::OtherId { at, .. } => format!(
            "{} has a counter with this name that was created without the other stores: remove it there, or name \
             the stores that belong together",
            address_of(*at)
        ),
        Of::LostRecord { at } => format!(
            "{} has lost its record of it while the counter was made: {RAISE}, or remove it",
            address_of(*at)
        ),
        Of::Removed => format!("it was removed from {address}"),
        Of::NotThere => format!("{address} has no such counter"),
        Of::Lost { in_ms } => format!(
            "{address} has lost writes: new numbers come in {in_ms} ms, above all that running processes had"
        ),
        Of::RefusedAfterLoss => format!("{address} has lost writes: {RAISE}"),
        Of::Unreadable { why } => format!("its record in {address} cannot be read: {why}"),
        Of::End => Refusal::End.why(source, sources),
        Of::Contended | Of::Unreachable { .. } => Refusal::Contended.why(source, sources),
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<protocol::Refusal> for Refusal {
    fn from(refusal: protocol::Refusal) -> Self {
        Self::Protocol(refusal)
    }
}

impl stores::AttemptError for Refusal {
    fn is_the_stores(&self) -> bool {
        matches!(self, Self::Store(_))
    }

    fn is_temporary(&self) -> bool {
        let is_contended = matches!(self, Self::Contended | Self::Protocol(protocol::Refusal::Contended));
        is_contended || matches!(self, Self::Store(StoreError::Unreachable(_)))
    }
}
