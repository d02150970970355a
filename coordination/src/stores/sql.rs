//! What the SQL stores have in common.
//!
//! Two tables hold everything: `polyflake_spaces` has a row for each space, `polyflake_nodes` one for each node that was ever
//! leased. Each row of `polyflake_spaces` says in which form it is, so that the statement that compares a space's record
//! sees that too.

use crate::store::{FORMAT, StoreError};

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
        "the tables polyflake_spaces and polyflake_nodes have {found}, and this version of Polyflake knows format {FORMAT}"
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
