//! Sequences: a count for each of many keys, by one process at a time.
//!
//! A number's path: [`Sequences::next_id`] → the key's hash ([`key`]) → its section ([`section`]) → the number, if the lease still
//! holds. Where a section has come to its bound, the call waits for the keeper, which moves it ([`crate::keeper`]).

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex};

use polyflake::{Error, ErrorCode, ThisProcess, ThreadWait, Wait};
use tokio::sync::Notify;

use crate::counter::Trouble;
use crate::keeper::{LOOK_EVERY, Users, lock};
use crate::lease::Time as _;
use crate::local::{Clocks, random};
use crate::store::{LAST_NUMBER, SequencesName, SequencesRecord};
use crate::url::Address;
use crate::watched::Watched;

pub(crate) mod key;
mod options;
mod section;

pub use key::SequenceKey;
pub use options::SequencesOptions;
use section::{Given, Section};

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
/// - One process at a time gives numbers: whoever has the lease. It checks with each number that the lease still holds, by a clock
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

/// So that threads seldom wait for each other, and a batch takes few locks.
const MAX_SHARDS: usize = 32;

/// How many keys of a batch are taken together.
const MAX_TOGETHER: usize = 4_096;

/// What the Sequences of one name share with the task that keeps them.
pub(crate) struct Shared {
    /// The store, the namespace and the name.
    pub(crate) key: String,
    pub(crate) address: Address,
    pub(crate) name: SequencesName,
    pub(crate) step: u64,
    max_keys: u64,
    /// How many keys a section keeps.
    most: usize,
    /// The sections, so many under each lock.
    shards: Box<[Mutex<Box<[Section]>>]>,
    section_count: usize,
    per_shard: usize,
    secret: u64,
    process: ThisProcess,
    pub(crate) users: Users,
    pub(crate) wake: Notify,
    /// Until when it may give numbers, by [`Clocks::elapsed_ms`].
    until_ms: AtomicU64,
    state: Watched<State>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct State {
    /// Why there is no lease, and why no later bound, when the store was last asked.
    lease: Option<Trouble>,
    bounds: Option<Trouble>,
    has_opened: bool,
    failed: Option<Error>,
}

impl State {
    fn trouble(&self, lacks: &Lacks) -> Option<Trouble> {
        if matches!(lacks, Lacks::Lease) { self.lease.or(self.bounds) } else { self.bounds }
    }
}

#[derive(Debug, Default)]
struct Counts {
    evicted: AtomicU64,
    waits: AtomicU64,
    pub(crate) moves: AtomicU64,
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

/// Why a call has no number yet.
enum Lacks {
    /// The lease: it is another's, or was not renewed.
    Lease,
    /// The section's bound.
    Bound,
    /// There are no higher numbers.
    End,
}

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
            Err(_) => self.next_later(hash, wait),
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
    /// Those of [`next_id`](Self::next_id). An error loses the numbers of the keys before: they are not given again.
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
        self.check()?;
        let hashes: Vec<u64> = keys.into_iter().map(|key| key.into().hash()).collect();
        let mut numbers = vec![0; hashes.len()];
        for (hashes, numbers) in hashes.chunks(MAX_TOGETHER).zip(numbers.chunks_mut(MAX_TOGETHER)) {
            // 0 is no number: those sections have come to their bounds.
            while !self.shared.next_together(hashes, numbers) {
                self.wait_for(wait, self.options.longest_wait(), |shared| match shared.lacks() {
                    Lacks::Bound | Lacks::End => Some(Ok(())),
                    lacks @ Lacks::Lease => shared.trouble_of(&lacks).map(Err),
                })?;
            }
            for (&hash, number) in hashes.iter().zip(numbers).filter(|(_, number)| **number == 0) {
                *number = self.next_later(hash, wait)?;
            }
        }
        Ok(numbers)
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
        for (hashes, numbers) in hashes.chunks(MAX_TOGETHER).zip(numbers.chunks_mut(MAX_TOGETHER)) {
            if !self.shared.next_together(hashes, numbers) {
                return Err(self.shared.why(&Lacks::Lease));
            }
            if let Some((&hash, _)) = hashes.iter().zip(numbers).find(|(_, number)| **number == 0) {
                let lacks = self.shared.next(hash).err().unwrap_or(Lacks::Bound);
                return Err(self.shared.why(&lacks));
            }
        }
        Ok(numbers)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared.name.name
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
            SequencesGiveBack(Arc::clone(&self.shared))
        })
    }

    #[inline]
    fn check(&self) -> Result<(), Error> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(closed());
        }
        // The locks of a child's may be held for ever, and the lease is its parent's.
        if self.shared.process.is_alive() { Ok(()) } else { Err(forked()) }
    }

    #[cold]
    fn next_later<W: Wait>(&self, hash: u64, wait: &mut W) -> Result<u64, W::Error> {
        self.shared.counts.waits.fetch_add(1, Ordering::Relaxed);
        self.wait_for(wait, self.options.longest_wait(), |shared| match shared.next(hash) {
            Ok(number) => Some(Ok(number)),
            Err(lacks) => shared.trouble_of(&lacks).map(Err),
        })
    }

    /// Looks whenever something has changed, for at most `longest`.
    fn wait_for<T, W: Wait>(
        &self,
        wait: &mut W,
        longest: Duration,
        mut look: impl FnMut(&Shared) -> Option<Result<T, Error>>,
    ) -> Result<T, W::Error> {
        let shared = &self.shared;
        let is_closed = || self.is_closed.load(Ordering::Relaxed);
        let look = || look(shared).or_else(|| is_closed().then(|| Err(closed())));
        shared.state.wait_for(wait, longest, look, || shared.why(&shared.lacks()))
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

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("name", &self.name)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Not yet known to the keeper.
    fn new(options: &SequencesOptions, address: &Address) -> Self {
        let name = SequencesName { namespace: address.namespace.clone(), name: options.name().into() };
        let sections = options.section_count();
        let section_count = usize::try_from(sections).unwrap_or(usize::MAX);
        let per_shard = section_count.div_ceil(MAX_SHARDS);
        Self {
            key: format!("{} {} {}", address.key(), name.namespace, name.name),
            address: address.clone(),
            name,
            step: options.first_step(),
            max_keys: options.most_keys(),
            most: usize::try_from(options.most_keys().div_ceil(sections)).unwrap_or(usize::MAX),
            shards: (0..section_count.div_ceil(per_shard))
                .map(|at| {
                    let count = per_shard.min(section_count - at * per_shard);
                    Mutex::new((0..count).map(|_| Section::default()).collect())
                })
                .collect(),
            section_count,
            per_shard,
            secret: random(),
            process: ThisProcess::now(),
            users: Users::new(Duration::from_millis(address.ttl_ms)),
            wake: Notify::new(),
            until_ms: AtomicU64::new(0),
            state: Watched::default(),
            counts: Counts::default(),
        }
    }

    /// Two with other options cannot be one.
    pub(crate) fn check_same(&self, other: &Self) -> Result<(), Error> {
        let of = |it: &Self| (it.section_count, it.step, it.max_keys, it.address.ttl_ms);
        if of(self) == of(other) {
            return Ok(());
        }
        let text = |it: &Self| {
            let (sections, step, max_keys, ttl_ms) = of(it);
            format!("sections={sections}, step={step}, max_keys={max_keys} and a ttl of {ttl_ms} ms")
        };
        Err(invalid(&format!(
            "this process uses the sequences with {} already, not with {}",
            text(self),
            text(other)
        )))
    }

    /// The next number of the key with that hash, if the lease holds and the bound allows it.
    #[inline]
    fn next(&self, hash: u64) -> Result<u64, Lacks> {
        if self.until_ms.load(Ordering::Relaxed) == 0 {
            return Err(Lacks::Lease);
        }
        let (shard, section) = self.place_of(hash);
        let given = self.shards.get(shard).ok_or(Lacks::Bound);
        let number = given.and_then(|shard| self.next_in(&mut lock(shard), section, hash))?;
        // After the number was taken: whatever is given later is above it.
        if self.is_held() { Ok(number) } else { Err(Lacks::Lease) }
    }

    /// The next numbers of the keys with those hashes, 0 where the bound does not allow one. `false`: the lease does not hold, and
    /// these are not to be used. A lock is taken once for all of its keys, and no clock is read in between, so that a processor can
    /// look for several of them at a time.
    fn next_together(&self, hashes: &[u64], numbers: &mut [u64]) -> bool {
        if self.until_ms.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let mut by_shard: [Vec<(usize, usize)>; MAX_SHARDS] = Default::default();
        for (at, &hash) in hashes.iter().enumerate() {
            let (shard, section) = self.place_of(hash);
            if let Some(keys) = by_shard.get_mut(shard) {
                keys.push((at, section));
            }
        }
        for (shard, keys) in self.shards.iter().zip(&by_shard).filter(|(_, keys)| !keys.is_empty()) {
            let mut sections = lock(shard);
            for &(at, section) in keys {
                if let (Some(&hash), Some(number)) = (hashes.get(at), numbers.get_mut(at)) {
                    *number = self.next_in(&mut sections, section, hash).unwrap_or(0);
                }
            }
        }
        self.is_held()
    }

    #[inline]
    fn next_in(&self, sections: &mut [Section], section: usize, hash: u64) -> Result<u64, Lacks> {
        let section = sections.get_mut(section).ok_or(Lacks::Bound)?;
        let given = section.next(hash, self.secret, self.most);
        if !section.is_asked && given.is_none_or(|given| given.left < self.step) {
            if section.bound() < LAST_NUMBER {
                section.is_asked = true;
                self.wake.notify_one();
            } else if given.is_none() {
                return Err(Lacks::End);
            }
        }
        let Given { number, evicted, .. } = given.ok_or(Lacks::Bound)?;
        if evicted > 0 {
            self.counts.evicted.fetch_add(evicted as u64, Ordering::Relaxed);
        }
        Ok(number)
    }

    /// The shard, and the section in it.
    #[inline]
    fn place_of(&self, hash: u64) -> (usize, usize) {
        let section = key::section_of(hash, self.section_count);
        (section / self.per_shard, section % self.per_shard)
    }

    fn is_held(&self) -> bool {
        Clocks.elapsed_ms() < self.until_ms.load(Ordering::Acquire)
    }

    /// Over all sections.
    fn sum(&self, of: impl Fn(&Section) -> usize) -> u64 {
        self.shards
            .iter()
            .map(|shard| lock(shard).iter().map(|section| of(section) as u64).sum::<u64>())
            .sum()
    }

    fn left(&self, is_closed: bool) {
        if self.users.leave(is_closed) {
            self.wake.notify_one();
        }
    }

    fn lacks(&self) -> Lacks {
        if self.is_held() { Lacks::Bound } else { Lacks::Lease }
    }

    /// What a call is told at once: waiting does not help.
    fn trouble_of(&self, lacks: &Lacks) -> Option<Error> {
        match lacks {
            Lacks::Lease => self.wake.notify_one(),
            Lacks::Bound => {}
            Lacks::End => return Some(self.why(lacks)),
        }
        let state = self.state.get();
        state.failed.or(state.trouble(lacks).filter(|trouble| trouble.is_final).map(|trouble| trouble.error))
    }

    /// Why a call that does not wait any more has no number.
    fn why(&self, lacks: &Lacks) -> Error {
        if matches!(lacks, Lacks::End) {
            let why = format!("the section of this key has reached its end, {LAST_NUMBER}");
            return self.error(ErrorCode::CounterUnavailable, &why);
        }
        let state = self.state.get();
        if let Some(error) = state.failed.or(state.trouble(lacks).map(|trouble| trouble.error)) {
            return error;
        }
        drop(state);
        self.wake.notify_one();
        let (code, why) = match lacks {
            Lacks::Lease => {
                (ErrorCode::LeaseLost, "its lease has run out, and the store has not answered yet")
            }
            Lacks::Bound | Lacks::End => (
                ErrorCode::CounterUnavailable,
                "its section has come to its bound, and the store has not moved it yet",
            ),
        };
        self.error(code, why)
    }

    /// With the name.
    pub(crate) fn error(&self, code: ErrorCode, why: &str) -> Error {
        Error::from_outside(code, &format!("sequences {:?}: {why}", self.name.name))
    }

    /// Whether it has been opened, or cannot be.
    fn opened(&self) -> Option<Result<(), Error>> {
        let state = self.state.get();
        match state.failed {
            Some(error) => Some(Err(error)),
            None => state.has_opened.then_some(Ok(())),
        }
    }

    /// For the task: it may give numbers until then; 0: not any more.
    pub(crate) fn hold_until(&self, elapsed_ms: u64) {
        self.until_ms.store(elapsed_ms, Ordering::Release);
        self.state.change(|state| {
            if elapsed_ms > 0 {
                state.has_opened = true;
                state.lease = None;
            }
        });
    }

    /// For the task: why there is no lease, or will be none.
    pub(crate) fn has_no_lease(&self, trouble: Trouble) {
        self.state.change(|state| state.lease = Some(trouble));
    }

    /// For the task: why there are no later bounds.
    pub(crate) fn has_no_bounds(&self, trouble: Trouble) {
        self.state.change(|state| state.bounds = Some(trouble));
    }

    pub(crate) fn fail(&self, error: Error) {
        self.state.change(|state| state.failed = Some(error));
    }

    pub(crate) fn section_count(&self) -> usize {
        self.section_count
    }

    /// For the task: whether a section is so near to its bound that the store is to be asked.
    pub(crate) fn wants_more(&self) -> bool {
        self.shards.iter().any(|shard| lock(shard).iter().any(|section| section.is_asked))
    }

    /// For the task: the bounds after `found`. All that have less than one and a half steps left move, so that the next statement
    /// is not for the next of them.
    pub(crate) fn wanted(&self, found: &[u64]) -> Vec<u64> {
        let (ahead, enough) = (self.step.saturating_mul(2), self.step.saturating_add(self.step / 2));
        let wanted_of = |(section, &found): (&Section, &u64)| {
            let has_enough = section.bound() == found && section.left() >= enough;
            if has_enough { found } else { section.wanted(found, ahead) }
        };
        let of_shard = |(shard, found): (&Mutex<Box<[Section]>>, &[u64])| -> Vec<u64> {
            lock(shard).iter().zip(found).map(wanted_of).collect()
        };
        self.shards.iter().zip(found.chunks(self.per_shard)).flat_map(of_shard).collect()
    }

    /// For the task: the store has these bounds, and had those before.
    pub(crate) fn extend(&self, before: &SequencesRecord, now: &SequencesRecord) {
        let (before, now) = (before.bounds.chunks(self.per_shard), now.bounds.chunks(self.per_shard));
        for (shard, (before, now)) in self.shards.iter().zip(before.zip(now)) {
            for (section, (&before, &now)) in lock(shard).iter_mut().zip(before.iter().zip(now)) {
                section.extend(before, now);
            }
        }
        self.counts.moves.fetch_add(1, Ordering::Relaxed);
        self.state.change(|state| state.bounds = None);
    }

    /// For the task: no more numbers; how far each section counted.
    pub(crate) fn end(&self) -> Vec<u64> {
        self.hold_until(0);
        let of_shard = |shard: &Mutex<Box<[Section]>>| -> Vec<u64> {
            lock(shard).iter_mut().map(Section::end).collect()
        };
        self.shards.iter().flat_map(of_shard).collect()
    }
}

fn invalid(message: &str) -> Error {
    Error::from_outside(ErrorCode::InvalidOption, message)
}

fn forked() -> Error {
    Error::from_outside(
        ErrorCode::Forked,
        "the sequences are the parent's: open them in the process that is to have them",
    )
}

fn closed() -> Error {
    Error::from_outside(ErrorCode::Closed, "the sequences are closed")
}
