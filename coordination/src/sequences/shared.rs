//! The state that Sequences with the same name share with the task that maintains their lease.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Mutex;

use polyflake::{Error, ErrorCode, ThisProcess};
use tokio::sync::Notify;

use super::hash;
use super::options::{SequencesOptions, invalid};
use super::protocol::{Range, SECTIONS};
use super::section::{Given, Section};
use crate::lease::Time as _;
use crate::local::{Clocks, random};
use crate::store::LAST_NUMBER;
use crate::url::Address;
use crate::users::Users;
use crate::watched::{Trouble, Waiting, Watched, lock};

/// The maximum number of shards, each with its own lock. It is high enough that threads seldom wait for each
/// other, and low enough that a batch takes few locks.
const MAX_SHARDS: usize = 32;

/// The state that Sequences with the same name share with the task that maintains their lease.
pub(crate) struct Shared {
    /// The store, the namespace and the name, in one string.
    pub(crate) key: String,
    pub(crate) address: Address,
    pub(crate) name: String,
    pub(crate) step: u64,
    max_keys: u64,
    /// The maximum number of keys in a section.
    most: usize,
    /// The sections, grouped into shards. All sections in a shard share a lock.
    shards: Box<[Mutex<Box<[Section]>>]>,
    section_count: usize,
    per_shard: usize,
    secret: u64,
    pub(super) process: ThisProcess,
    pub(crate) users: Users,
    pub(crate) wake: Notify,
    /// Numbers may be issued until this time, by [`Clocks::elapsed_ms`].
    pub(super) until_ms: AtomicU64,
    state: Watched<State>,
    pub(super) counts: Counts,
}

#[derive(Debug, Default)]
struct State {
    /// Why the last requests for the lease and for bounds failed.
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
pub(super) struct Counts {
    pub(super) evicted: AtomicU64,
    pub(super) waits: AtomicU64,
    pub(super) moves: AtomicU64,
}

/// Why a call has no number yet.
pub(super) enum Lacks {
    /// The lease belongs to another process, or was not renewed.
    Lease,
    /// The section has reached its bound.
    Bound,
    /// No higher numbers exist.
    End,
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
    /// Creates the state. The keeper does not know about it yet.
    pub(super) fn new(options: &SequencesOptions) -> Result<Self, Error> {
        let address = options.address()?;
        let name = options.name().to_owned();
        let sections = options.section_count();
        let section_count = usize::try_from(sections).unwrap_or(usize::MAX);
        let per_shard = section_count.div_ceil(MAX_SHARDS);
        Ok(Self {
            key: format!("{} {} {name}", address.key(), address.namespace),
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
            state: Watched::new(State::default()),
            counts: Counts::default(),
        })
    }

    /// Checks that the options are the same. Sequences with different options cannot share this state.
    pub(crate) fn check_same(&self, other: &Self) -> Result<(), Error> {
        if let Some(differ) = self.address.other_promises(&other.address) {
            return Err(invalid(&format!("this process uses the sequences {differ}")));
        }
        let of = |it: &Self| (it.section_count, it.step, it.max_keys);
        if of(self) == of(other) {
            return Ok(());
        }
        let text = |it: &Self| {
            let (sections, step, max_keys) = of(it);
            format!("sections={sections}, step={step}, max_keys={max_keys}")
        };
        Err(invalid(&format!(
            "this process uses the sequences with {} already, not with {}",
            text(self),
            text(other)
        )))
    }

    /// Returns the next number for the key with this hash, if the lease is held and the section has not
    /// reached its bound.
    #[inline]
    pub(super) fn next(&self, hash: u64) -> Result<u64, Lacks> {
        if self.until_ms.load(Ordering::Relaxed) == 0 {
            return Err(Lacks::Lease);
        }
        let (shard, section) = self.place_of(hash);
        let given = self.shards.get(shard).ok_or(Lacks::Bound);
        let number = given.and_then(|shard| self.next_in(&mut lock(shard), section, hash))?;
        // Check the lease after taking the number. If it is held now, a later owner's numbers are above this
        // one.
        if self.is_held() {
            return Ok(number);
        }
        self.take_back(&[hash], &[number]);
        Err(Lacks::Lease)
    }

    /// Takes back a failed call's numbers, unless another call has received a later number for the same key.
    #[cold]
    pub(super) fn take_back(&self, hashes: &[u64], numbers: &[u64]) {
        if !self.process.is_alive() {
            return; // The locks may be held forever.
        }
        // Take back a key's last number first.
        for (&hash, &number) in hashes.iter().zip(numbers).filter(|(_, number)| **number > 0).rev() {
            let (shard, section) = self.place_of(hash);
            let Some(shard) = self.shards.get(shard) else { continue };
            if let Some(section) = lock(shard).get_mut(section) {
                section.take_back(hash, number, self.secret);
            }
        }
    }

    /// Takes the next numbers for the keys with these hashes. A key is given 0 if its section has reached its
    /// bound. If the lease is not held, takes the numbers back and returns false. Takes each lock once for
    /// all of its keys, and does not read a clock in between, so that the processor can look up several keys
    /// at a time.
    pub(super) fn next_together(&self, hashes: &[u64], numbers: &mut [u64]) -> bool {
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
        let is_held = self.is_held();
        if !is_held {
            self.take_back(hashes, numbers);
            numbers.fill(0);
        }
        is_held
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

    /// Returns the shard that contains a key's section, and the section's position in that shard.
    #[inline]
    fn place_of(&self, hash: u64) -> (usize, usize) {
        let section = hash::section_of(hash, self.section_count);
        (section / self.per_shard, section % self.per_shard)
    }

    fn is_held(&self) -> bool {
        Clocks.elapsed_ms() < self.until_ms.load(Ordering::Acquire)
    }

    /// Returns the sum of `of` over all sections.
    pub(super) fn sum(&self, of: impl Fn(&Section) -> usize) -> u64 {
        self.shards
            .iter()
            .map(|shard| lock(shard).iter().map(|section| of(section) as u64).sum::<u64>())
            .sum()
    }

    pub(super) fn left(&self, is_closed: bool) {
        if self.users.leave(is_closed) {
            self.wake.notify_one();
        }
    }

    pub(super) fn lacks(&self) -> Lacks {
        if self.is_held() { Lacks::Bound } else { Lacks::Lease }
    }

    /// Returns the error for a waiting call, if waiting would not help.
    pub(super) fn trouble_of(&self, lacks: &Lacks) -> Option<Error> {
        match lacks {
            Lacks::Lease => self.wake.notify_one(),
            Lacks::Bound => {}
            Lacks::End => return Some(self.why(lacks)),
        }
        let state = self.state.get();
        state.failed.or(state.trouble(lacks).filter(|trouble| trouble.is_final).map(|trouble| trouble.error))
    }

    /// Returns the error for a call that received no number and gives up waiting.
    pub(super) fn why(&self, lacks: &Lacks) -> Error {
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
                "its section has reached its bound, and the store has not moved it yet",
            ),
        };
        self.error(code, &format!("{why}: {}", self.address))
    }

    /// Creates an error whose message includes the name of the sequences.
    pub(crate) fn error(&self, code: ErrorCode, why: &str) -> Error {
        Error::from_outside(code, &format!("sequences {:?}: {why}", self.name))
    }

    /// Calls `look` after every change until it returns a result, for at most `longest`.
    pub(super) async fn wait_for<T, W: Waiting>(
        &self,
        wait: &mut W,
        longest: Duration,
        look: impl FnMut() -> Option<Result<T, Error>>,
    ) -> Result<T, W::Error> {
        self.state.wait_for(wait, longest, look, || self.why(&self.lacks())).await
    }

    pub(super) async fn wait_until_open<W: Waiting>(&self, wait: &mut W) -> Result<(), W::Error> {
        self.state.wait_until_open(wait, &self.address, || self.opened()).await
    }

    /// Returns a result once the sequences are open or have failed to open, and `None` before that.
    fn opened(&self) -> Option<Result<(), Error>> {
        let state = self.state.get();
        match state.failed {
            Some(error) => Some(Err(error)),
            None => state.has_opened.then_some(Ok(())),
        }
    }

    /// For the task: allows numbers to be issued until this time. 0 stops them at once.
    pub(crate) fn hold_until(&self, elapsed_ms: u64) {
        self.until_ms.store(elapsed_ms, Ordering::Release);
        self.state.change(|state| {
            if elapsed_ms > 0 {
                state.has_opened = true;
                state.lease = None;
            }
        });
    }

    /// For the task: records why a request for the lease failed.
    pub(crate) fn has_no_lease(&self, trouble: Trouble) {
        self.state.change(|state| state.lease = Some(trouble));
    }

    /// For the task: records why the bounds could not be moved.
    pub(crate) fn has_no_bounds(&self, trouble: Trouble) {
        self.state.change(|state| state.bounds = Some(trouble));
    }

    /// Wakes the waiting calls, so that they notice if their Sequences were closed.
    pub(super) fn tell_waiting(&self) {
        self.state.change(|_| {});
    }

    pub(crate) fn fail(&self, error: Error) {
        self.state.change(|state| state.failed = Some(error));
    }

    pub(crate) fn section_count(&self) -> usize {
        self.section_count
    }

    /// For the task: returns true if a section needs a higher bound.
    pub(crate) fn wants_more(&self) -> bool {
        self.shards.iter().any(|shard| lock(shard).iter().any(|section| section.is_asked))
    }

    /// For the task: returns the sections whose bounds must move, and their new bounds. To save writes, if
    /// one section in a record needs a higher bound, the result includes all sections in that record that
    /// have less than one and a half steps left.
    pub(crate) fn wanted(&self) -> Vec<(usize, u64)> {
        let (ahead, enough) = (self.step.saturating_mul(2), self.step.saturating_add(self.step / 2));
        let mut all = Vec::with_capacity(self.section_count);
        for shard in &self.shards {
            all.extend(lock(shard).iter_mut().map(|section| {
                let asks = core::mem::take(&mut section.is_asked) || section.left() == 0;
                let wanted =
                    Some(section.wanted(ahead)).filter(|&it| section.left() < enough && it > section.bound());
                (asks, wanted)
            }));
        }
        let of_record = |(at, record): (usize, &[(bool, Option<u64>)])| -> Vec<(usize, u64)> {
            if !record.iter().any(|(asks, _)| *asks) {
                return Vec::new();
            }
            (at * SECTIONS..).zip(record).filter_map(|(at, (_, wanted))| Some((at, (*wanted)?))).collect()
        };
        all.chunks(SECTIONS).enumerate().flat_map(of_record).collect()
    }

    /// For the task: passes the store's bounds to the sections.
    pub(crate) fn extend(&self, range_of: impl Fn(usize) -> Option<Range>) {
        for (shard, first) in self.shards.iter().zip((0..).step_by(self.per_shard)) {
            for (section, at) in lock(shard).iter_mut().zip(first..) {
                if let Some(Range { above, bound }) = range_of(at) {
                    section.extend(above, bound);
                }
            }
        }
    }

    /// For the task: counts a move of bounds.
    pub(crate) fn moved(&self) {
        self.counts.moves.fetch_add(1, Ordering::Relaxed);
    }

    /// For the task: records that the store has all bounds that calls need.
    pub(crate) fn has_bounds(&self) {
        self.state.change(|state| state.bounds = None);
    }

    /// For the task: stops issuing numbers. Returns the highest number that each section issued.
    pub(crate) fn end(&self) -> Vec<u64> {
        self.hold_until(0);
        let of_shard = |shard: &Mutex<Box<[Section]>>| -> Vec<u64> {
            lock(shard).iter_mut().map(Section::end).collect()
        };
        self.shards.iter().flat_map(of_shard).collect()
    }
}
