//! Sequences: a count for each of many keys, by one process at a time.
//!
//! A number's path: [`Sequences::next_id`] → the key's hash ([`key`]) → its section ([`section`]) → the number, if the lease still
//! holds. Where a section has come to its bound, the call waits for the keeper, which moves it ([`crate::keeper`]).

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;

use polyflake::{Error, ErrorCode, ThreadWait, Wait};

use crate::keeper::Keeper;
use crate::lease::Time as _;
use crate::local::Clocks;
use crate::watched::{Awaiting, Blocking, LOOK_EVERY, Waiting, block_on};

pub(crate) mod key;
mod options;
pub(crate) mod protocol;
mod section;
pub(crate) mod shared;

/// The most sections.
const MAX_SECTIONS: u64 = 16_384;

pub use key::{OwnedKey, SequenceKey};
pub use options::SequencesOptions;
use section::Section;
use shared::{Counts, Lacks, Shared};

/// A count for each of many keys: 1, 2, 3 and so on for `"alice"`, and for `"bob"` the same. For the messages of an inbox, or the
/// versions of a document.
///
/// ```no_run
/// use polyflake_coordination::Sequences;
/// let inbox = Sequences::open("inbox", "postgres://host/chat")?;
/// let first: u64 = inbox.next_id("alice")?;
/// # Ok::<(), polyflake::Error>(())
/// ```
///
/// # Guarantees
///
/// - The numbers of a key increase, and none is given twice, by whichever process, as long as the store loses no write that it
///   acknowledged.
/// - Numbers are skipped: by a key that left memory and came back, by a new key where others left, and by all keys of a section,
///   at most two [steps](SequencesOptions::step), when a process ended without [`close`](Self::close).
/// - One process at a time gives numbers: the one that has the lease. It checks with each number that the lease still holds, by a clock
///   that counts the time that a machine sleeps. The others get `lease_unavailable`, whose text names the label of
///   the process that has it.
///
/// A key takes at most 40 bytes of memory, however long it is: 64 bits of its hash stand for it. Two keys with one hash would share
/// a count, and skip numbers; among ten million keys that is unlikely (1 in 370,000).
///
/// All Sequences of a process with the same store and name are one. A child of a process that forked has none: `forked`.
pub struct Sequences {
    shared: Arc<Shared>,
    options: SequencesOptions,
    is_closed: AtomicBool,
}

/// What an operator may want to graph, from [`Sequences::stats`]. Counted since the first of that name was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SequencesStats {
    /// How many keys are in memory.
    pub keys: u64,
    /// How many keys left memory, for others to have room.
    pub evicted: u64,
    /// How often bounds were moved in the store.
    pub moves: u64,
    /// How often a call waited or gave up.
    pub waits: u64,
    /// For how long it may give numbers if the lease is not renewed, in ms; 0 where another process has it.
    pub time_left_ms: u64,
}

/// How many keys of a batch are taken together.
const MAX_TOGETHER: usize = 4_096;

impl Sequences {
    /// The sequences of that name in a store, with the default options.
    ///
    /// # Errors
    ///
    /// Those of [`SequencesOptions::open`].
    pub fn open(name: &str, store: &str) -> Result<Self, Error> {
        SequencesOptions::new(name).store(store).open()
    }

    /// The key's next number.
    ///
    /// # Errors
    ///
    /// - `lease_unavailable` if another process gives the numbers by now: it is named.
    /// - `lease_lost` if the lease could not be renewed, and does not come back within `max_wait_ms`.
    /// - `counter_unavailable` if the store does not move the section's bound within `max_wait_ms`; at once where waiting does not
    ///   help: the store refuses, has lost writes, or the section has reached 2^63-1.
    /// - `closed` after [`close`](Self::close), `forked` in a child of the process that opened it.
    #[inline]
    pub fn next_id<'a>(&self, key: impl Into<SequenceKey<'a>>) -> Result<u64, Error> {
        self.next_id_with(key, &mut ThreadWait::new())
    }

    /// [`next_id`](Self::next_id), waiting in the caller's way.
    ///
    /// # Errors
    ///
    /// Those of [`next_id`](Self::next_id), or what interrupted the wait.
    pub fn next_id_with<'a, W: Wait>(
        &self,
        key: impl Into<SequenceKey<'a>>,
        wait: &mut W,
    ) -> Result<u64, W::Error> {
        self.check()?;
        let hash = key.into().hash();
        match self.shared.next(hash) {
            Ok(number) => Ok(number),
            Err(_) => block_on(self.next_later(hash, &mut Blocking(wait))),
        }
    }

    /// [`next_id`](Self::next_id), awaited in a runtime of Tokio that has timers. A call that waits costs no thread.
    ///
    /// # Errors
    ///
    /// Those of [`next_id`](Self::next_id).
    pub async fn next_id_async(&self, key: SequenceKey<'_>) -> Result<u64, Error> {
        self.check()?;
        let hash = key.hash();
        match self.shared.next(hash) {
            Ok(number) => Ok(number),
            Err(_) => self.next_later(hash, &mut Awaiting::new()).await,
        }
    }

    /// The key's next number, without waiting for the store.
    ///
    /// # Errors
    ///
    /// Those of [`next_id`](Self::next_id), at once.
    pub fn try_next_id<'a>(&self, key: impl Into<SequenceKey<'a>>) -> Result<u64, Error> {
        self.check()?;
        self.shared.next(key.into().hash()).map_err(|lacks| self.shared.why(&lacks))
    }

    /// A number for each of the keys, in their order; a key that is there twice has two.
    ///
    /// # Errors
    ///
    /// Those of [`next_id`](Self::next_id). A call that fails uses no number, unless another call got a later number of the same key meanwhile.
    pub fn next_ids<'a, K: Into<SequenceKey<'a>>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<u64>, Error> {
        self.next_ids_with(keys, &mut ThreadWait::new())
    }

    /// [`next_ids`](Self::next_ids), waiting in the caller's way.
    ///
    /// # Errors
    ///
    /// Those of [`next_ids`](Self::next_ids), or what interrupted the wait.
    pub fn next_ids_with<'a, K: Into<SequenceKey<'a>>, W: Wait>(
        &self,
        keys: impl IntoIterator<Item = K>,
        wait: &mut W,
    ) -> Result<Vec<u64>, W::Error> {
        let hashes = keys.into_iter().map(|key| key.into().hash()).collect();
        block_on(self.next_of_all(hashes, &mut Blocking(wait)))
    }

    /// [`next_ids`](Self::next_ids), awaited as [`next_id_async`](Self::next_id_async) is.
    ///
    /// # Errors
    ///
    /// Those of [`next_ids`](Self::next_ids).
    pub async fn next_ids_async(&self, keys: &[SequenceKey<'_>]) -> Result<Vec<u64>, Error> {
        let hashes = keys.iter().map(|key| key.hash()).collect();
        self.next_of_all(hashes, &mut Awaiting::new()).await
    }

    async fn next_of_all<W: Waiting>(&self, hashes: Vec<u64>, wait: &mut W) -> Result<Vec<u64>, W::Error> {
        self.check()?;
        let mut numbers = vec![0; hashes.len()];
        let taken = self.take_of_all(&hashes, &mut numbers, wait).await;
        if let Err(error) = taken {
            self.shared.take_back(&hashes, &numbers);
            return Err(error);
        }
        Ok(numbers)
    }

    async fn take_of_all<W: Waiting>(
        &self,
        hashes: &[u64],
        numbers: &mut [u64],
        wait: &mut W,
    ) -> Result<(), W::Error> {
        for (hashes, numbers) in hashes.chunks(MAX_TOGETHER).zip(numbers.chunks_mut(MAX_TOGETHER)) {
            // 0 is no number: those sections have come to their bounds.
            while !self.shared.next_together(hashes, numbers) {
                self.wait_for(wait, self.options.longest_wait(), |shared| match shared.lacks() {
                    Lacks::Bound | Lacks::End => Some(Ok(())),
                    lacks @ Lacks::Lease => shared.trouble_of(&lacks).map(Err),
                })
                .await?;
            }
            for (&hash, number) in hashes.iter().zip(numbers).filter(|(_, number)| **number == 0) {
                *number = self.next_later(hash, wait).await?;
            }
        }
        Ok(())
    }

    /// [`next_ids`](Self::next_ids), without waiting for the store.
    ///
    /// # Errors
    ///
    /// Those of [`next_ids`](Self::next_ids), at once.
    pub fn try_next_ids<'a, K: Into<SequenceKey<'a>>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<u64>, Error> {
        self.check()?;
        let hashes: Vec<u64> = keys.into_iter().map(|key| key.into().hash()).collect();
        let mut numbers = vec![0; hashes.len()];
        let mut take = || {
            for (hashes, numbers) in hashes.chunks(MAX_TOGETHER).zip(numbers.chunks_mut(MAX_TOGETHER)) {
                if !self.shared.next_together(hashes, numbers) {
                    return Err(Lacks::Lease);
                }
                for (&hash, number) in hashes.iter().zip(numbers).filter(|(_, number)| **number == 0) {
                    *number = self.shared.next(hash)?;
                }
            }
            Ok(())
        };
        if let Err(lacks) = take() {
            self.shared.take_back(&hashes, &numbers);
            return Err(self.shared.why(&lacks));
        }
        Ok(numbers)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// What an operator may want to graph.
    ///
    /// # Errors
    ///
    /// `closed` after [`close`](Self::close), `forked` in a child of the process that opened it.
    pub fn stats(&self) -> Result<SequencesStats, Error> {
        self.check()?;
        let Counts { evicted, waits, moves } = &self.shared.counts;
        Ok(SequencesStats {
            keys: self.shared.sum(Section::len),
            evicted: evicted.load(Ordering::Relaxed),
            moves: moves.load(Ordering::Relaxed),
            waits: waits.load(Ordering::Relaxed),
            time_left_ms: self.shared.until_ms.load(Ordering::Acquire).saturating_sub(Clocks.elapsed_ms()),
        })
    }

    /// Closes it: calls fail with `closed`, also those that wait. The last one of a name in this process writes how far the keys of
    /// each section counted, gives the lease back, and waits for the store until that is done, but no longer than two attempts take.
    pub fn close(&self) {
        if let Some(give_back) = self.close_later() {
            give_back.run();
        }
    }

    /// As [`close`](Self::close), without waiting: what waits for the store is returned, for another thread. Dropping it is fine.
    #[doc(hidden)]
    pub fn close_later(&self) -> Option<SequencesGiveBack> {
        let is_first = !self.is_closed.swap(true, Ordering::AcqRel) && self.shared.process.is_alive();
        is_first.then(|| {
            self.shared.left(true);
            self.shared.tell_waiting();
            SequencesGiveBack(Arc::clone(&self.shared))
        })
    }

    #[inline]
    fn check(&self) -> Result<(), Error> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(closed());
        }
        // The locks of a child's may be held forever, and the lease is its parent's.
        if self.shared.process.is_alive() { Ok(()) } else { Err(forked()) }
    }

    #[cold]
    async fn next_later<W: Waiting>(&self, hash: u64, wait: &mut W) -> Result<u64, W::Error> {
        self.shared.counts.waits.fetch_add(1, Ordering::Relaxed);
        self.wait_for(wait, self.options.longest_wait(), |shared| match shared.next(hash) {
            Ok(number) => Some(Ok(number)),
            Err(lacks) => shared.trouble_of(&lacks).map(Err),
        })
        .await
    }

    /// Looks whenever something has changed, for at most `longest`.
    async fn wait_for<T, W: Waiting>(
        &self,
        wait: &mut W,
        longest: Duration,
        mut look: impl FnMut(&Shared) -> Option<Result<T, Error>>,
    ) -> Result<T, W::Error> {
        let shared = &self.shared;
        let is_closed = || self.is_closed.load(Ordering::Relaxed);
        let look = || look(shared).or_else(|| is_closed().then(|| Err(closed())));
        shared.wait_for(wait, longest, look).await
    }
}

impl SequencesOptions {
    /// Opens the sequences: makes them where the store has none, and waits for the lease, at most the address's `wait`.
    ///
    /// # Errors
    ///
    /// - `invalid_option` for an option that cannot be, without a store, where the sequences began with another number of sections,
    ///   and where this process uses them with other options.
    /// - `lease_unavailable` if another process has the lease, which it names, or the store cannot be reached.
    pub fn open(&self) -> Result<Sequences, Error> {
        self.open_with(&mut ThreadWait::new())
    }

    /// [`open`](Self::open), waiting in the caller's way.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open), or what interrupted the wait.
    pub fn open_with<W: Wait>(&self, wait: &mut W) -> Result<Sequences, W::Error> {
        block_on(self.open_in(&mut Blocking(wait)))
    }

    /// [`open`](Self::open), awaited as [`Sequences::next_id_async`] is.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub async fn open_async(&self) -> Result<Sequences, Error> {
        self.open_in(&mut Awaiting::new()).await
    }

    async fn open_in<W: Waiting>(&self, wait: &mut W) -> Result<Sequences, W::Error> {
        self.open_by(Keeper::of_this_process(), wait).await
    }

    pub(crate) async fn open_by<W: Waiting>(
        &self,
        keeper: &'static Keeper,
        wait: &mut W,
    ) -> Result<Sequences, W::Error> {
        self.check()?;
        let sequences = Sequences {
            shared: keeper.sequences(Shared::new(self)?)?,
            options: self.clone(),
            is_closed: false.into(),
        };
        match sequences.shared.wait_until_open(wait).await {
            Ok(()) => Ok(sequences),
            Err(error) => {
                // The next try may be with other options.
                drop(sequences.close_later());
                Err(error)
            }
        }
    }
}

impl fmt::Debug for Sequences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequences").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Drop for Sequences {
    fn drop(&mut self) {
        if !*self.is_closed.get_mut() && self.shared.process.is_alive() {
            self.shared.left(false);
        }
    }
}

/// What is left to wait for after [`Sequences::close_later`].
#[doc(hidden)]
#[derive(Debug)]
pub struct SequencesGiveBack(Arc<Shared>);

impl SequencesGiveBack {
    /// Waits until the store has what was given, but no longer than two attempts take.
    pub fn run(self) {
        self.0.users.wait_until_over(2 * self.0.address.attempt() + LOOK_EVERY);
    }
}

fn forked() -> Error {
    Error::from_outside(
        ErrorCode::Forked,
        "these sequences belong to the parent process: open them again after forking",
    )
}

fn closed() -> Error {
    Error::from_outside(ErrorCode::Closed, "the sequences are closed")
}
