//! What the keeper does for sequences: it holds their lease, and moves the bounds of their sections in time.

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use polyflake::ErrorCode;
use tokio::time::timeout;

use super::{Keeper, stores};
use crate::event::{Event, Kind, tell};
use crate::lease::{
    Acquisition, Held, Nodes, Refusal, Renewed, Terms, Time as _, Why, acquire, release, renew,
};
use crate::local::{Clocks, random};
use crate::sequences::key::{self, SequenceKey};
use crate::sequences::shared::Shared;
use crate::space::Space;
use crate::store::{SequencesRecord, StoreError};
use crate::url::Address;
use crate::watched::Trouble;

/// The shortest pause after an attempt that failed, and the longest.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
/// A loss is to be noticed soon: the lease is renewed as often at least.
const LONGEST_WAIT_MS: u64 = 10_000;

/// Until the store is asked for bounds again.
const BOUNDS_AGAIN: Duration = Duration::from_millis(250);

/// All node bits there are. (A database has no unsigned integers.)
const NODE_BITS: u32 = 63;

/// Sequences and their store.
pub(super) struct Task {
    keeper: &'static Keeper,
    shared: Arc<Shared>,
    store: stores::Shared,
    terms: Terms,
    acquisition: Acquisition,
    held: Option<Held>,
    /// Until when this process is the only one, by [`Clocks::elapsed_ms`].
    until_ms: u64,
    /// What the store had when it was last read or written, under any lease of this process.
    known: Option<SequencesRecord>,
    /// Whether it was read or written under this lease.
    is_loaded: bool,
    /// When the lease is acquired or renewed next, and the bounds may be asked for.
    next_lease: Instant,
    next_bounds: Instant,
    failures: u32,
    /// Why there were no numbers, when the log was last told.
    told: Option<Kind>,
}

/// Why there is no record.
enum Fault {
    Store(StoreError),
    OtherSections(usize),
    OtherHash(String),
    /// Others write to it: this process is about to lose its lease, or lost it.
    Contended,
}

/// The lease of some sequences is that of a node: one space for all of a namespace has a node for each name, its hash. Two names
/// with one hash would exclude each other, no more.
fn terms(address: &Address, name: &str) -> Terms {
    let node = SequenceKey::from(name).hash() & node_mask();
    Terms {
        space: Space::of_sequences(&address.namespace),
        nodes: Nodes { bits: NODE_BITS, fixed_mask: node_mask(), fixed_value: node, range: None },
        ttl_ms: address.ttl_ms,
        lead_ms: address.ttl_ms,
        clock_difference_ms: address.clock_difference_ms,
        is_difference_default: address.is_clock_difference_default,
        label: address.label(),
        is_init: address.is_init,
    }
}

const fn node_mask() -> u64 {
    (1 << NODE_BITS) - 1
}

impl Task {
    pub(super) fn new(keeper: &'static Keeper, shared: Arc<Shared>, store: stores::Shared) -> Self {
        Self {
            keeper,
            terms: terms(&shared.address, &shared.name.name),
            shared,
            store,
            acquisition: Acquisition::new(None, &mut random),
            held: None,
            until_ms: 0,
            known: None,
            is_loaded: false,
            next_lease: Instant::now(),
            next_bounds: Instant::now(),
            failures: 0,
            told: None,
        }
    }

    pub(super) async fn run(mut self) {
        let deadline = Instant::now() + Duration::from_millis(self.shared.address.wait_ms);
        let opened = loop {
            let trouble = self.tend().await;
            if self.is_loaded {
                break Ok(());
            }
            match trouble {
                Some(trouble) if self.is_over(deadline, &trouble) => break Err(trouble.error),
                _ => self.pause(Some(deadline)).await,
            }
        };
        if let Err(error) = opened {
            self.keeper.forget_sequences(&self.shared, true);
            self.shared.fail(error);
        } else {
            let lacks = "numbers that were given: the process that has the lease puts them back, and a new one repeats them";
            stores::tell_of_replicas(&self.shared.address, &self.store, lacks).await;
            while !(self.shared.users.are_gone() && self.keeper.forget_sequences(&self.shared, false)) {
                self.pause(None).await;
                // Timers do not count the time that the machine slept.
                if self.failures == 0 && Clocks.elapsed_ms() >= self.until_ms {
                    self.next_lease = Instant::now();
                }
                self.tend().await;
            }
        }
        self.give_back().await;
        self.shared.users.end();
    }

    /// Whether opening has failed. Another process may give its lease back within `wait`.
    fn is_over(&self, deadline: Instant, trouble: &Trouble) -> bool {
        let is_owned = trouble.error.code() == ErrorCode::LeaseUnavailable;
        (trouble.is_final && !is_owned) || Instant::now() >= deadline || self.shared.users.are_gone()
    }

    /// Until there is something to do.
    async fn pause(&self, deadline: Option<Instant>) {
        let next = if self.wants_bounds() { self.next_lease.min(self.next_bounds) } else { self.next_lease };
        let next = deadline.map_or(next, |deadline| next.min(deadline));
        let until = next.saturating_duration_since(Instant::now());
        let pause = self.shared.users.kept_for().map_or(until, |kept| kept.min(until));
        let _ = timeout(pause.max(Duration::from_millis(1)), self.shared.wake.notified()).await;
    }

    fn wants_bounds(&self) -> bool {
        self.held.is_some() && (!self.is_loaded || self.shared.wants_more())
    }

    /// Does what is due. Returns why there is no lease or no record, if that was found.
    async fn tend(&mut self) -> Option<Trouble> {
        if Instant::now() >= self.next_lease {
            if let Err(refusal) = self.keep_lease().await {
                return Some(self.refused(&refusal));
            }
            self.failures = 0;
        }
        if !self.wants_bounds() || Instant::now() < self.next_bounds {
            return None;
        }
        match self.move_bounds().await {
            Ok(()) => {
                self.is_loaded = true;
                self.next_bounds = Instant::now();
                self.shared.hold_until(self.until_ms);
                self.answered();
                None
            }
            Err(fault) => Some(self.faulty(&fault)),
        }
    }

    /// Acquires or renews the lease.
    async fn keep_lease(&mut self) -> Result<(), Refusal> {
        if let Some(mut held) = self.held.take() {
            let sent_ms = Clocks.elapsed_ms();
            let attempt = async {
                let mut store = self.store.lock().await;
                renew(store.records(), &self.terms, &mut held, &Clocks, &mut random).await
            };
            match stores::limited(&self.shared.address, &self.store, attempt).await {
                Ok(Renewed::Extended { .. }) => {
                    self.hold(held, sent_ms);
                    return Ok(());
                }
                Ok(Renewed::Lost) => {
                    (self.is_loaded, self.until_ms) = (false, 0);
                    self.shared.hold_until(0);
                    self.acquisition = Acquisition::new(Some(held.known), &mut random);
                    self.tell(
                        Kind::Lost,
                        "its lease is lost: another process has it, or the store has lost its record",
                    );
                }
                Err(refusal) => {
                    self.held = Some(held);
                    return Err(refusal);
                }
            }
        }
        let sent_ms = Clocks.elapsed_ms();
        let acquisition = &mut self.acquisition;
        let attempt = async {
            let mut store = self.store.lock().await;
            acquire(store.records(), &self.terms, acquisition, &Clocks, &mut random, &|_| false).await
        };
        let held = stores::limited(&self.shared.address, &self.store, attempt).await?;
        self.hold(held, sent_ms);
        let what = format!("its lease is acquired from {}", self.shared.address);
        self.tell(Kind::Acquired, &what);
        Ok(())
    }

    /// So much of the lease was left when the store wrote it, which was after it was asked.
    fn hold(&mut self, held: Held, sent_ms: u64) {
        self.until_ms = sent_ms.saturating_add(held.is_alone_for_ms());
        if self.is_loaded {
            self.shared.hold_until(self.until_ms);
        }
        // With a tenth of it more or less, so that processes that started together do not ask together for ever.
        let third = (held.ttl_ms(&self.terms) / 3).min(LONGEST_WAIT_MS);
        let jitter = random() % (third / 5).max(1);
        self.next_lease = Instant::now() + Duration::from_millis(third - third / 10 + jitter);
        self.held = Some(held);
    }

    /// Moves the bounds of all sections that want it, from what the store has. Numbers are given only from what this process has
    /// moved: whatever others did with the rest, none is given twice.
    async fn move_bounds(&mut self) -> Result<(), Fault> {
        let mut has_lost_writes = false;
        let attempt = async {
            let mut store = self.store.lock().await;
            let store = store.before();
            let name = &self.shared.name;
            // What this process wrote last, where it still may write.
            let mut found = if self.is_loaded { self.known.clone() } else { None };
            for _ in 0..4 {
                let mut before = match found.take() {
                    Some(record) => record,
                    None => store.sequences(name).await?.unwrap_or_else(|| SequencesRecord {
                        version: 0,
                        hash: key::HASH.into(),
                        bounds: vec![0; self.shared.section_count()],
                    }),
                };
                self.check(&before)?;
                if let Some(known) = self.known.as_ref().filter(|known| is_below(&before, known)) {
                    // Whoever gave numbers since: above both is none of theirs and none of this process's.
                    has_lost_writes = true;
                    for (found, &known) in before.bounds.iter_mut().zip(&known.bounds) {
                        *found = known.max(*found);
                    }
                }
                let bounds = self.shared.wanted(&before.bounds);
                let new = SequencesRecord { version: new_version(), bounds, hash: before.hash.clone() };
                let expected = Some(before.version).filter(|&version| version > 0);
                if store.put_sequences(name, expected, &new).await? {
                    return Ok((before, new));
                }
            }
            Err(Fault::Contended)
        };
        let (before, new) = stores::limited(&self.shared.address, &self.store, attempt).await?;
        self.shared.extend(&before, &new);
        self.known = Some(new);
        if has_lost_writes {
            let what = format!(
                "{} had lost writes: its bounds are above all numbers of this process again. Others may have repeated some in \
                 between",
                self.shared.address
            );
            self.tell(Kind::WritesLost, &what);
        }
        Ok(())
    }

    fn check(&self, found: &SequencesRecord) -> Result<(), Fault> {
        if found.bounds.len() != self.shared.section_count() {
            return Err(Fault::OtherSections(found.bounds.len()));
        }
        if found.hash != key::HASH {
            return Err(Fault::OtherHash(found.hash.clone()));
        }
        Ok(())
    }

    /// Why there is no lease, for calls and the log.
    fn refused(&mut self, refusal: &Refusal) -> Trouble {
        self.failures = self.failures.saturating_add(1);
        let backoff = SHORTEST.saturating_mul(1 << self.failures.min(5)).min(LONGEST);
        let jitter = Duration::from_millis(random() % 50);
        let address = &self.shared.address;
        let (kind, is_final, pause, why) = match refusal {
            Refusal::Store(error) => (
                Kind::StoreUnreachable,
                matches!(error, StoreError::Refused(_)),
                backoff / 2 + jitter,
                stores::text_of(error),
            ),
            Refusal::Unreadable(why) => (
                Kind::StoreUnreachable,
                true,
                backoff / 2 + jitter,
                format!("the store cannot be used: {address}: {why}"),
            ),
            Refusal::NoneFree { first: Some(first), .. } => {
                let label: String = first.label.chars().take(100).collect();
                let in_ms = first.in_ms;
                let pause = Duration::from_millis(in_ms.saturating_add(1)).min(LONGEST) + jitter;
                let why = format!(
                    "`{label}` has the lease of it in {address}, and gives its numbers: for {in_ms} ms unless it is renewed"
                );
                (Kind::Waiting, true, pause, why)
            }
            Refusal::Fenced { in_ms, why } => {
                let what = match why {
                    Why::First => {
                        "is new, or has lost all records of leases (`polyflake leases --init` ends the wait where there were none)"
                    }
                    Why::Loss => "has lost records of leases",
                };
                let pause = Duration::from_millis(in_ms.saturating_add(1)).min(LONGEST) + jitter;
                let why = format!(
                    "{address} {what}: nobody can have the lease for {in_ms} ms, in which an earlier one may go on"
                );
                (Kind::Waiting, false, pause, why)
            }
            Refusal::ClockDiffers(clock) => (
                Kind::ClockDiffers,
                true,
                LONGEST,
                format!(
                    "the clock of this machine is {} ms from that of {address}, which is more than clock_difference",
                    clock.by_ms
                ),
            ),
            Refusal::DifferenceTooLarge { difference_ms, of_space_ms } => (
                Kind::Waiting,
                true,
                LONGEST,
                format!(
                    "clock_difference is {difference_ms} ms, but the sequences of this namespace in {address} count with \
                     {of_space_ms} ms: give no more than that"
                ),
            ),
            Refusal::NoneFree { first: None, .. } | Refusal::Contended => {
                (Kind::StoreUnreachable, false, jitter, format!("others were faster each time at {address}"))
            }
        };
        self.next_lease = Instant::now() + pause;
        let code = match refusal {
            Refusal::DifferenceTooLarge { .. } => ErrorCode::InvalidOption,
            Refusal::Store(_) if self.held.is_some() => ErrorCode::LeaseLost,
            _ => ErrorCode::LeaseUnavailable,
        };
        self.warn(kind, &why);
        let trouble = Trouble { error: self.shared.error(code, &why), is_final };
        // Calls are told once it has run out.
        self.shared.has_no_lease(trouble);
        trouble
    }

    /// Why there is no later bound, for calls and the log.
    fn faulty(&mut self, fault: &Fault) -> Trouble {
        self.next_bounds = Instant::now() + BOUNDS_AGAIN + Duration::from_millis(random() % 50);
        let address = &self.shared.address;
        let unavailable = ErrorCode::CounterUnavailable;
        match fault {
            Fault::Store(error) => {
                let (why, is_final) = (stores::text_of(error), matches!(error, StoreError::Refused(_)));
                self.trouble(Kind::StoreUnreachable, unavailable, is_final, &why)
            }
            Fault::Contended => {
                let why = format!("others were faster each time at {address}");
                self.trouble(Kind::StoreUnreachable, unavailable, false, &why)
            }
            Fault::OtherSections(found) => {
                let why = format!(
                    "{address} has {found} sections of it, and {} are asked for: their number cannot be changed",
                    self.shared.section_count()
                );
                self.trouble(Kind::CounterStopped, ErrorCode::InvalidOption, true, &why)
            }
            Fault::OtherHash(found) => {
                let why = format!(
                    "{address} has its keys by the hash {found:?}, and this program knows {:?} only",
                    key::HASH
                );
                self.trouble(Kind::CounterStopped, ErrorCode::InvalidOption, true, &why)
            }
        }
    }

    fn trouble(&mut self, kind: Kind, code: ErrorCode, is_final: bool, why: &str) -> Trouble {
        self.warn(kind, why);
        let trouble = Trouble { error: self.shared.error(code, why), is_final };
        self.shared.has_no_bounds(trouble);
        trouble
    }

    /// Once, until the store answers.
    fn warn(&mut self, kind: Kind, why: &str) {
        if self.told.replace(kind) != Some(kind) {
            self.tell(kind, why);
        }
    }

    fn answered(&mut self) {
        if self.told.take() == Some(Kind::StoreUnreachable) {
            let what = format!("{} answers again", self.shared.address);
            self.tell(Kind::StoreReachable, &what);
        }
    }

    fn tell(&self, kind: Kind, what: &str) {
        let message = format!("sequences {:?}: {what}", self.shared.name.name);
        tell(&Event { kind, node: None, store: self.shared.address.to_string(), message });
    }

    /// Writes how far the sections counted, and gives the lease back. What does not come to the store is skipped, and expires.
    async fn give_back(&mut self) {
        let given = self.shared.end();
        // A write of unknown outcome gave no lease: give it back, since another process may want it.
        let Some(held) = self.held.take().or_else(|| self.acquisition.unclear()) else { return };
        if let Some(known) = self.known.as_ref().filter(|_| self.is_loaded) {
            let new = SequencesRecord { version: new_version(), bounds: given, hash: known.hash.clone() };
            let _ = stores::until_answered(&self.shared.address, &self.store, async |store| {
                store.before().put_sequences(&self.shared.name, Some(known.version), &new).await
            })
            .await;
        }
        let released = stores::until_answered(&self.shared.address, &self.store, async |store| {
            release(store.records(), &self.terms, &held, held.start, &Clocks, &mut random).await
        });
        let (kind, what) = match released.await {
            Ok(()) => (Kind::Released, "its lease is given back"),
            Err(_) => (Kind::StoreUnreachable, "its lease is not given back, and is free when it ends"),
        };
        self.tell(kind, what);
    }
}

/// Unlike any that was there. No record has 0, and databases have no unsigned integers.
fn new_version() -> u64 {
    (random() >> 1).max(1)
}

fn is_below(found: &SequencesRecord, known: &SequencesRecord) -> bool {
    found.bounds.iter().zip(&known.bounds).any(|(found, known)| found < known)
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl stores::Failure for Fault {
    fn is_the_stores(&self) -> bool {
        matches!(self, Self::Store(_))
    }

    fn is_temporary(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unreachable(_)) | Self::Contended)
    }
}
