//! Sequences: a count for each of many keys, kept by one process at a time.
//!
//! The path of a number: [`Sequences::next_id`] → the key's hash ([`key`]) → its section ([`section`]) → the
//! number, if the lease still holds. If a section has reached its bound, the call waits for the keeper, which
//! moves the bound ([`crate::keeper`]).

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

/// The largest number of sections.
const MAX_SECTIONS: u64 = 16_384;

pub use key::{OwnedKey, SequenceKey};
pub use options::SequencesOptions;
use section::Section;
use shared::{Counts, Lacks, Shared};

/// A count for each of many keys: 1, 2, 3 and so on for `"alice"`, and the same for `"bob"`. Use it for the
/// messages of an inbox, or the versions of a document.
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
/// - The numbers of a key increase, and none is given twice, by any process, as long as the store loses no
///   write that it acknowledged.
/// - Numbers are skipped: by a key that left memory and came back, by a new key if others left, and by all
///   keys of a section when a process ended without [`close`](Self::close). In the last case at most two
///   [steps](SequencesOptions::step) are skipped.
/// - One process at a time gives numbers: the process that has the lease. It checks with each number that the
///   lease still holds, by a clock that counts the time that the machine sleeps. The other processes get
///   `lease_unavailable`, whose text names the label of the process that has the lease.
///
/// A key takes at most 40 bytes of memory, however long it is, since 64 bits of its hash stand for it. Two
/// keys with the same hash would share a count, and skip numbers. Among ten million keys that is unlikely (1
/// in 370,000).
///
/// All Sequences in a process with the same store and name share their counts. They do not work in a forked
/// child, which gets `forked`.
pub struct Sequences {
    shared: Arc<Shared>,
    options: SequencesOptions,
    is_closed: AtomicBool,
}

/// Values for an operator to graph, from [`Sequences::stats`]. They count since the first Sequences with this
/// name were opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SequencesStats {
    /// How many keys are in memory.
    pub keys: u64,
    /// How many keys left memory to make room for others.
    pub evicted: u64,
    /// How many times bounds were moved in the store.
    pub moves: u64,
    /// How many times a call waited or gave up.
    pub waits: u64,
    /// How long numbers may still be given if the lease is not renewed, in ms; 0 if another process has the
    /// lease.
    pub time_left_ms: u64,
}

/// How many keys of a batch are handled together.
const MAX_TOGETHER: usize = 4_096;

impl Sequences {
    /// Opens the sequences with this name in a store, with the default options.
    ///
    /// # Errors
    ///
    /// Those of [`SequencesOptions::open`].
    pub fn open(name: &str, store: &str) -> Result<Self, Error> {
        SequencesOptions::new(name).store(store).open()
    }

    /// Returns the key's next number.
    ///
    /// # Errors
    ///
    /// - `lease_unavailable` if another process gives the numbers by now. The text names that process.
    /// - `lease_lost` if the lease could not be renewed, and is not recovered within `max_wait_ms`.
    /// - `counter_unavailable` if the store does not move the section's bound within `max_wait_ms`; at once
    ///   if waiting does not help: the store refuses, has lost writes, or the section has reached 2^63-1.
    /// - `closed` after [`close`](Self::close), and `forked` in a forked child of the process that opened the
    ///   sequences.
    #[inline]
    pub fn next_id<'a>(&self, key: impl Into<SequenceKey<'a>>) -> Result<u64, Error> {
        self.next_id_with(key, &mut ThreadWait::new())
    }

    /// Like [`next_id`](Self::next_id), but waits in the caller's way.
    ///
    /// # Errors
    ///
    /// Those of [`next_id`](Self::next_id), or the error that interrupted the wait.
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

    /// Like [`next_id`](Self::next_id), but awaited in a Tokio runtime with timers. A waiting call needs no
    /// thread.
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

    /// Returns the key's next number, without waiting for the store.
    ///
    /// # Errors
    ///
    /// Those of [`next_id`](Self::next_id), at once.
    pub fn try_next_id<'a>(&self, key: impl Into<SequenceKey<'a>>) -> Result<u64, Error> {
        self.check()?;
        self.shared.next(key.into().hash()).map_err(|lacks| self.shared.why(&lacks))
    }

    /// Returns a number for each of the keys, in their order. A key that occurs twice gets two numbers.
    ///
    /// # Errors
    ///
    /// Those of [`next_id`](Self::next_id). A call that fails uses no number, unless another call got a later
    /// number of the same key meanwhile.
    pub fn next_ids<'a, K: Into<SequenceKey<'a>>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<u64>, Error> {
        self.next_ids_with(keys, &mut ThreadWait::new())
    }

    /// Like [`next_ids`](Self::next_ids), but waits in the caller's way.
    ///
    /// # Errors
    ///
    /// Those of [`next_ids`](Self::next_ids), or the error that interrupted the wait.
    pub fn next_ids_with<'a, K: Into<SequenceKey<'a>>, W: Wait>(
        &self,
        keys: impl IntoIterator<Item = K>,
        wait: &mut W,
    ) -> Result<Vec<u64>, W::Error> {
        let hashes = keys.into_iter().map(|key| key.into().hash()).collect();
        block_on(self.next_of_all(hashes, &mut Blocking(wait)))
    }

    /// Like [`next_ids`](Self::next_ids), but awaited as [`next_id_async`](Self::next_id_async) is.
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
            // A number of 0 means that the key's section has reached its bound.
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

    /// Like [`next_ids`](Self::next_ids), but does not wait for the store.
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

    /// Returns the name of the sequences.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Returns values for an operator to graph.
    ///
    /// # Errors
    ///
    /// `closed` after [`close`](Self::close), and `forked` in a forked child of the process that opened the
    /// sequences.
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

    /// Closes the sequences: calls fail with `closed`, even those that are waiting. The last Sequences with a
    /// name in this process write how far the keys of each section counted, give the lease back, and wait
    /// until that is done, but no longer than two attempts take.
    pub fn close(&self) {
        if let Some(give_back) = self.close_later() {
            give_back.run();
        }
    }

    /// Like [`close`](Self::close), but does not wait. Returns the part that waits for the store, for another
    /// thread. This part may be dropped.
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
        // In a forked child, the locks may be held forever, and the lease is the parent's.
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

    /// Checks after every change, for at most `longest`.
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
    /// Opens the sequences. Creates them if the store has none, and waits for the lease, at most as long as
    /// the `wait` in the address.
    ///
    /// # Errors
    ///
    /// - `invalid_option` for an invalid option, without a store, if the sequences began with another number
    ///   of sections, and if this process uses them with other options.
    /// - `lease_unavailable` if another process has the lease, which the text names, or the store cannot be
    ///   reached.
    pub fn open(&self) -> Result<Sequences, Error> {
        self.open_with(&mut ThreadWait::new())
    }

    /// Like [`open`](Self::open), but waits in the caller's way.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open), or the error that interrupted the wait.
    pub fn open_with<W: Wait>(&self, wait: &mut W) -> Result<Sequences, W::Error> {
        block_on(self.open_in(&mut Blocking(wait)))
    }

    /// Like [`open`](Self::open), but awaited as [`Sequences::next_id_async`] is.
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
                // The next attempt may have other options.
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

/// The part of [`Sequences::close_later`] that waits.
#[doc(hidden)]
#[derive(Debug)]
pub struct SequencesGiveBack(Arc<Shared>);

impl SequencesGiveBack {
    /// Waits until the store has the numbers that were given, but no longer than two attempts take.
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
