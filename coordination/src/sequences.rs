//! Sequences: one count per key, kept by one process at a time.
//!
//! How a number is issued: [`Sequences::next_id`] → the key's hash ([`key`]) → its section ([`section`]) →
//! the number, if the lease is still held. If a section has reached its bound, the call waits for the keeper
//! ([`crate::keeper`]), which moves the bound.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::sync::Arc;

use polyflake::{Error, ErrorCode, ThreadWait, Wait};

use crate::keeper::Keeper;
use crate::lease::Time as _;
use crate::local::Clocks;
use crate::watched::{Awaiting, Blocking, LOOK_EVERY, Waiting, block_on};

pub(crate) mod hash;
mod key;
mod options;
pub(crate) mod protocol;
mod section;
pub(crate) mod shared;

/// The maximum number of sections.
const MAX_SECTIONS: u64 = 16_384;

pub use key::{OwnedKey, SequenceKey};
pub use options::SequencesOptions;
use section::Section;
use shared::{Counts, Lacks, Shared};

/// A set of counters, one for each key: 1, 2, 3 and so on for `"alice"`, and the same for `"bob"`. Use it to
/// number the messages in an inbox, or the versions of a document.
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
/// - A key's numbers increase, and no process issues a number that was already issued for the key, as long as
///   the store does not lose a write it has acknowledged.
/// - Numbers may be skipped. A key skips numbers if it was evicted from memory and is used again, or if it is
///   new and other keys were evicted. After a process exits without [`close`](Self::close), all keys in a
///   section continue above the section's bound, which is at most two [steps](SequencesOptions::step) above
///   its highest number.
/// - Only the process that holds the lease issues numbers. For each number, it checks that it still holds
///   the lease, by a clock that keeps running while the machine sleeps. Other processes get
///   `lease_unavailable`, with a message that includes the label of the process holding the lease.
///
/// A key takes at most 40 bytes of memory, no matter how long it is, since only its 64-bit hash is stored.
/// Two keys with the same hash would share a count, and skip numbers. Among ten million keys, this is
/// unlikely (1 in 370,000).
///
/// All Sequences in a process with the same store and name share their counts. They do not work in a forked
/// child: its calls fail with `forked`.
pub struct Sequences {
    shared: Arc<Shared>,
    options: SequencesOptions,
    is_closed: AtomicBool,
}

/// Statistics for monitoring, returned by [`Sequences::stats`]. They cover all of this process's Sequences
/// with this name, from the time the first was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct SequencesStats {
    /// The number of keys in memory.
    pub keys: u64,
    /// The number of keys evicted from memory to make room for others.
    pub evicted: u64,
    /// The number of times bounds were moved in the store.
    pub moves: u64,
    /// The number of calls that waited or gave up.
    pub waits: u64,
    /// How long this process may keep issuing numbers if the lease is not renewed, in ms. It is 0 if another
    /// process holds the lease.
    pub time_left_ms: u64,
}

/// The maximum number of keys from a batch that are processed together.
const MAX_TOGETHER: usize = 4_096;

impl Sequences {
    /// Opens the sequences with this name in a store, with the default options.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`SequencesOptions::open`].
    pub fn open(name: &str, store: &str) -> Result<Self, Error> {
        SequencesOptions::new(name).store(store).open()
    }

    /// Returns the key's next number.
    ///
    /// # Errors
    ///
    /// - `lease_unavailable` if another process has taken over the sequences. The error message includes that
    ///   process's label.
    /// - `lease_lost` if the lease could not be renewed and is not recovered within `max_wait_ms`.
    /// - `counter_unavailable` if the section's bound cannot be moved within `max_wait_ms`. The call fails at
    ///   once if waiting would not help: the store refuses the request, it has lost writes, or the section
    ///   has reached 2^63-1.
    /// - `closed` after [`close`](Self::close), and `forked` in a forked child of the process that opened the
    ///   sequences.
    #[inline]
    pub fn next_id<'a>(&self, key: impl Into<SequenceKey<'a>>) -> Result<u64, Error> {
        self.next_id_with(key, &mut ThreadWait::new())
    }

    /// Like [`next_id`](Self::next_id), but waits with the caller's `wait`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`next_id`](Self::next_id), or the error that interrupted the wait.
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

    /// Like [`next_id`](Self::next_id), but awaited in a Tokio runtime with timers. A waiting call does not
    /// block a thread.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`next_id`](Self::next_id).
    pub async fn next_id_async(&self, key: SequenceKey<'_>) -> Result<u64, Error> {
        self.check()?;
        let hash = key.hash();
        match self.shared.next(hash) {
            Ok(number) => Ok(number),
            Err(_) => self.next_later(hash, &mut Awaiting::new()).await,
        }
    }

    /// Returns the key's next number. Does not wait for the store.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`next_id`](Self::next_id), but without waiting.
    pub fn try_next_id<'a>(&self, key: impl Into<SequenceKey<'a>>) -> Result<u64, Error> {
        self.check()?;
        self.shared.next(key.into().hash()).map_err(|lacks| self.shared.why(&lacks))
    }

    /// Returns one number for each key, in the order of the keys. If a key occurs twice, it receives two
    /// numbers.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`next_id`](Self::next_id). If the call fails, its numbers are not used up,
    /// except for a number whose key has since been given a later number by another call.
    pub fn next_ids<'a, K: Into<SequenceKey<'a>>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<u64>, Error> {
        self.next_ids_with(keys, &mut ThreadWait::new())
    }

    /// Like [`next_ids`](Self::next_ids), but waits with the caller's `wait`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`next_ids`](Self::next_ids), or the error that interrupted the wait.
    pub fn next_ids_with<'a, K: Into<SequenceKey<'a>>, W: Wait>(
        &self,
        keys: impl IntoIterator<Item = K>,
        wait: &mut W,
    ) -> Result<Vec<u64>, W::Error> {
        let hashes = keys.into_iter().map(|key| key.into().hash()).collect();
        block_on(self.next_of_all(hashes, &mut Blocking(wait)))
    }

    /// Like [`next_ids`](Self::next_ids), but async, with the same requirements as
    /// [`next_id_async`](Self::next_id_async).
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`next_ids`](Self::next_ids).
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
    /// Returns the same errors as [`next_ids`](Self::next_ids), but without waiting.
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

    /// Returns statistics for monitoring.
    ///
    /// # Errors
    ///
    /// Returns `closed` after [`close`](Self::close), and `forked` in a forked child of the process that
    /// opened the sequences.
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

    /// Closes the sequences. Later calls fail with `closed`, and so do calls that are already waiting.
    /// Closing the process's last Sequences with a given name also writes how far each section has counted,
    /// releases the lease, and waits for the store to confirm both, but no longer than two attempts take.
    pub fn close(&self) {
        if let Some(give_back) = self.close_later() {
            give_back.run();
        }
    }

    /// Like [`close`](Self::close), but does not wait. Returns a value that another thread can use to wait
    /// for the store. The caller may drop this value.
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
        // In a forked child, the locks may be held forever, and the lease belongs to the parent.
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

    /// Calls `look` after every change until it returns a result, for at most `longest`.
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
    /// Opens the sequences. Creates them if the store does not have them, and waits for the lease, but no
    /// longer than the `wait` in the address.
    ///
    /// # Errors
    ///
    /// - `invalid_option` if an option is invalid, if no store is given, if the sequences were created with a
    ///   different number of sections, or if this process already uses them with different options.
    /// - `lease_unavailable` if another process holds the lease, or if the store cannot be reached. In the
    ///   first case, the error message includes that process's label.
    pub fn open(&self) -> Result<Sequences, Error> {
        self.open_with(&mut ThreadWait::new())
    }

    /// Like [`open`](Self::open), but waits with the caller's `wait`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`open`](Self::open), or the error that interrupted the wait.
    pub fn open_with<W: Wait>(&self, wait: &mut W) -> Result<Sequences, W::Error> {
        block_on(self.open_in(&mut Blocking(wait)))
    }

    /// Like [`open`](Self::open), but async, with the same requirements as [`Sequences::next_id_async`].
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`open`](Self::open).
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
                // Do not keep the state, since the next attempt may use different options.
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

/// The part of [`Sequences::close`] that waits for the store.
#[doc(hidden)]
#[derive(Debug)]
pub struct SequencesGiveBack(Arc<Shared>);

impl SequencesGiveBack {
    /// Waits until the store knows how far the sections have counted and the lease is released, but no longer
    /// than two attempts take.
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
