//! A Snowflake as an iterator.

use core::fmt;

use crate::clock::{BuiltinClock, Clock};
use crate::error::Error;
use crate::snowflake::Snowflake;

impl<C: Clock> Snowflake<C> {
    /// Returns an endless iterator over the IDs, each taken with [`next_id`](Self::next_id).
    pub const fn iter(&self) -> Iter<'_, C> {
        Iter { ids: self }
    }
}

impl<'a, C: Clock> IntoIterator for &'a Snowflake<C> {
    type Item = Result<u64, Error>;
    type IntoIter = Iter<'a, C>;

    fn into_iter(self) -> Iter<'a, C> {
        self.iter()
    }
}

/// An endless iterator over the IDs of a Snowflake, from [`Snowflake::iter`].
pub struct Iter<'a, C = BuiltinClock> {
    ids: &'a Snowflake<C>,
}

impl<C: Clock> Iterator for Iter<'_, C> {
    type Item = Result<u64, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.ids.next_id())
    }
}

impl<C> fmt::Debug for Iter<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("ids", self.ids).finish()
    }
}
