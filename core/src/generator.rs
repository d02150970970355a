//! What Snowflakes, counters and generators of a program's own have in common.

use core::error;

use crate::clock::Clock;
use crate::error::Error;
use crate::snowflake::Snowflake;

/// Something that gives unique 64-bit IDs: a [`Snowflake`], a counter of the crate `polyflake-coordination`, or a generator of your
/// own. What takes an ID from any of them takes this.
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
    /// What a call can fail with.
    type Error: error::Error + Send + Sync + 'static;

    /// The next ID.
    ///
    /// # Errors
    ///
    /// The generator's.
    fn next_id(&self) -> Result<u64, Self::Error>;

    /// Fills `ids`. An error loses those that were written already: they are not given again.
    ///
    /// # Errors
    ///
    /// The generator's.
    fn fill(&self, ids: &mut [u64]) -> Result<(), Self::Error> {
        for id in ids {
            *id = self.next_id()?;
        }
        Ok(())
    }

    /// `n` IDs.
    ///
    /// # Errors
    ///
    /// The generator's.
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
