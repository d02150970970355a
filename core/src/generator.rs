//! The interface that Snowflakes, counters and a program's own generators share.

use core::error;

use crate::clock::Clock;
use crate::error::Error;
use crate::snowflake::Snowflake;

/// A generator of unique 64-bit IDs: a [`Snowflake`], a counter from the crate `polyflake-coordination`, or
/// your own. Code that is generic over this trait accepts all of them.
///
/// ```
/// use std::cell::Cell;
/// use polyflake::{Error, IdGenerator, Snowflake};
///
/// /// For tests: 1, 2, 3 and so on.
/// struct Fixed(Cell<u64>);
///
/// impl IdGenerator for Fixed {
///     type Error = std::convert::Infallible;
///
///     fn next_id(&self) -> Result<u64, Self::Error> {
///         self.0.set(self.0.get() + 1);
///         Ok(self.0.get())
///     }
/// }
///
/// fn insert<G: IdGenerator>(ids: &G) -> Result<u64, G::Error> {
///     ids.next_id()
/// }
///
/// assert_eq!(insert(&Fixed(Cell::new(41)))?, 42);
/// assert!(insert(&Snowflake::builder().node(7).build()?)? > 0);
/// # Ok::<(), Error>(())
/// ```
pub trait IdGenerator {
    /// The error that a call returns.
    type Error: error::Error + Send + Sync + 'static;

    /// Returns the next ID.
    ///
    /// # Errors
    ///
    /// Any error from the generator.
    fn next_id(&self) -> Result<u64, Self::Error>;

    /// Fills `ids`. If a call fails, the IDs already written are lost: they are not issued again.
    ///
    /// # Errors
    ///
    /// Any error from the generator.
    fn fill(&self, ids: &mut [u64]) -> Result<(), Self::Error> {
        for id in ids {
            *id = self.next_id()?;
        }
        Ok(())
    }

    /// Returns `n` IDs.
    ///
    /// # Errors
    ///
    /// Any error from the generator.
    fn next_ids(&self, n: usize) -> Result<std::vec::Vec<u64>, Self::Error> {
        let mut ids = std::vec![0; n];
        self.fill(&mut ids)?;
        Ok(ids)
    }
}

impl<C: Clock> IdGenerator for Snowflake<C> {
    type Error = Error;

    fn next_id(&self) -> Result<u64, Error> {
        Self::next_id(self)
    }

    fn fill(&self, ids: &mut [u64]) -> Result<(), Error> {
        Self::fill(self, ids)
    }
}

impl<G: IdGenerator + ?Sized> IdGenerator for &G {
    type Error = G::Error;

    fn next_id(&self) -> Result<u64, Self::Error> {
        (**self).next_id()
    }

    fn fill(&self, ids: &mut [u64]) -> Result<(), Self::Error> {
        (**self).fill(ids)
    }
}
