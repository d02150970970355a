//! The stores that Polyflake comes with.

use crate::store::{Store, StoreError};
use crate::url::Address;

/// The store at an address. Nothing is sent before its first use.
///
/// # Errors
///
/// [`StoreError::Refused`] where the address asks for what the store's client does not have.
pub fn open(address: &Address) -> Result<Box<dyn Store>, StoreError> {
    Err(StoreError::Refused(format!("{address}: this kind of store is not built in")))
}
