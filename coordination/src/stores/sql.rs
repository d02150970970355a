//! What the SQL stores have in common.
//!
//! Two tables hold all leases: `polyflake_spaces` has a row for each space, `polyflake_nodes` one for each node that was ever
//! leased. Each row of `polyflake_spaces` says in which form it is, so that the statement that compares a space's record
//! sees that too.
//!
//! Counters are in a table of their own, `polyflake_counters`, which says nothing of leases: a store without those two
//! tables is new to leases also where it has this one. Sequences, whose owners have leases, are in `polyflake_sequences`.

pub(super) mod counters;
pub(super) mod sequences;

use crate::store::{Claim, FORMAT, Listing, NodeRecord, Outcome, Put, SpaceRecord, StoreError};

/// What ends a call early.
pub(super) enum Fault<E> {
    Client(E),
    Store(StoreError),
}

impl<E> From<StoreError> for Fault<E> {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl<E> Fault<E> {
    /// With where it was.
    pub(super) fn explain(self, at: &str, explain: impl FnOnce(&str, &E) -> StoreError) -> StoreError {
        match self {
            Self::Client(error) => explain(at, &error),
            Self::Store(StoreError::Unreachable(text)) => StoreError::Unreachable(format!("{at}: {text}")),
            Self::Store(StoreError::Refused(text)) => StoreError::Refused(format!("{at}: {text}")),
        }
    }
}

/// Why a node's record was not written, by what was there next.
pub(super) fn not_written(
    listing: Listing,
    under: &SpaceRecord,
    expected: Option<&Claim>,
) -> Result<Put, StoreError> {
    let found = listing.nodes.into_iter().next();
    let outcome = if listing.space.as_ref() != Some(under) || listing.incarnation != under.incarnation {
        Outcome::OtherSpace
    } else if found.as_ref().map(NodeRecord::claim).as_ref() == expected {
        // What was in the way is gone again.
        return Err(StoreError::Unreachable("the record changed meanwhile".into()));
    } else {
        Outcome::Found(found)
    };
    Ok(Put { now_ms: listing.now_ms, outcome })
}

pub(super) fn read_only() -> StoreError {
    StoreError::Refused("a read-only replica: the primary is needed".into())
}

/// For a column: databases have no unsigned 64-bit integers that all of their tools read.
pub(super) fn bigint(value: u64) -> Result<i64, StoreError> {
    i64::try_from(value)
        .map_err(|_| StoreError::Refused(format!("{value} is too large for a column of 64 bits")))
}

/// From a column.
pub(super) fn whole(value: i64) -> Result<u64, StoreError> {
    u64::try_from(value)
        .map_err(|_| StoreError::Refused(format!("a column holds {value}, which is negative")))
}

/// An error where a row has another form.
pub(super) fn check_format(found: i64) -> Result<(), StoreError> {
    if found == i64::from(FORMAT) { Ok(()) } else { Err(other_format(&format!("format {found}"))) }
}

pub(super) fn other_format(found: &str) -> StoreError {
    StoreError::Refused(format!(
        "the tables have {found}, and this version of Polyflake knows format {FORMAT}"
    ))
}

/// A space without the table of its nodes: how far they were issued is lost, so nobody may take it for a new one.
pub(super) fn no_nodes() -> StoreError {
    StoreError::Refused(
        "the table polyflake_nodes is gone, and polyflake_spaces is there: delete its rows, and leases begin again \
         once no old one can be in use"
            .into(),
    )
}
