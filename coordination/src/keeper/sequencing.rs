//! What the keeper does for sequences: it holds their lease, and moves the bounds of their sections in time. Lease and bounds are records
//! of one group.

use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use polyflake::ErrorCode;
use tokio::time::timeout;

use super::pace::Pace;
use super::{Keeper, stores};
use crate::event::{Event, Kind, tell};
use crate::lease::{
    Acquisition, FreesFirst, Held, Nodes, Refusal, Renewed, Terms, Time as _, Why, acquire, release, renew,
};
use crate::local::{Clocks, random};
use crate::records::{Group, Kind as Records};
use crate::sequences::key;
use crate::sequences::protocol::{self, Bounds, Owner, go};
use crate::sequences::shared::Shared;
use crate::space::Space;
use crate::store::StoreError;
use crate::url::Address;
use crate::watched::Trouble;

/// For how long the moves of a section are counted.
const MINUTE: Duration = Duration::from_secs(60);

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
    /// Of the lease that was held last, and whether that is held still.
    bounds: Option<Bounds>,
    is_owner: bool,
    /// The version and the fence of the head that guarded them.
    head: (u64, u64),
    /// Whether they are in the store, as far as this process knows.
    is_loaded: bool,
    /// Whether the store has lost some of them. After the next renewal, this process writes all of them again.
    has_lost: bool,
    /// How far each section moved in the present minute, and since when that is counted.
    moved: Vec<(Instant, u64)>,
    /// When the lease is acquired or renewed next, and the bounds may be asked for.
    lease_pace: Pace,
    bounds_pace: Pace,
    /// Why there were no numbers, when the log was last told.
    told: Option<Kind>,
}

/// Why the bounds could not be read or moved.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    Store(StoreError),
    Bounds(protocol::Refusal),
}

/// A group of sequences has one node, and its holder owns them.
fn terms(address: &Address, name: &str) -> Terms {
    let namespace = address.namespace.clone();
    Terms {
        space: Space::of_sequences(&namespace),
        group: Group { namespace, kind: Records::Sequences, name: name.into() },
        nodes: Nodes { bits: 0, fixed_mask: 0, fixed_value: 0, range: None },
        ttl_ms: address.ttl_ms,
        lead_ms: address.ttl_ms,
        clock_difference_ms: address.clock_difference_ms,
        is_difference_default: address.is_clock_difference_default,
        label: address.label(),
        is_init: address.is_init,
    }
}

impl Task {
    pub(super) fn new(keeper: &'static Keeper, shared: Arc<Shared>, store: stores::Shared) -> Self {
        let ttl_ms = shared.address.ttl_ms;
        Self {
            keeper,
            terms: terms(&shared.address, &shared.name),
            moved: vec![(Instant::now(), 0); shared.section_count()],
            shared,
            store,
            acquisition: Acquisition::new(None, &mut random),
            held: None,
            until_ms: 0,
            bounds: None,
            is_owner: false,
            head: (0, 0),
            is_loaded: false,
            has_lost: false,
            lease_pace: Pace::new(ttl_ms),
            bounds_pace: Pace::new(ttl_ms),
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
                if !self.lease_pace.has_failed() && Clocks.elapsed_ms() >= self.until_ms {
                    self.lease_pace.now();
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
        let next = self.lease_pace.next();
        let next = if self.wants_bounds() { next.min(self.bounds_pace.next()) } else { next };
        let next = deadline.map_or(next, |deadline| next.min(deadline));
        let until = next.saturating_duration_since(Instant::now());
        let pause = self.shared.users.kept_for().map_or(until, |kept| kept.min(until));
        let _ = timeout(pause.max(Duration::from_millis(1)), self.shared.wake.notified()).await;
    }

    fn wants_bounds(&self) -> bool {
        // While a renewal may have been written, it is not known which record guards a move.
        let is_clear = self.held.as_ref().is_some_and(|held| held.version().is_some());
        is_clear && !self.has_lost && (!self.is_loaded || self.shared.wants_more())
    }

    /// Does what is due. Returns why there is no lease or no record, if that was found.
    async fn tend(&mut self) -> Option<Trouble> {
        if self.lease_pace.is_due() {
            if let Err(refusal) = self.keep_lease().await {
                return Some(self.refused(&refusal));
            }
        }
        if !self.wants_bounds() || !self.bounds_pace.is_due() {
            return None;
        }
        match self.move_bounds().await {
            Ok(()) => {
                self.is_loaded = true;
                self.bounds_pace.succeeded();
                self.shared.has_bounds();
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
                renew(&mut **store, &self.terms, &mut held, &Clocks, &mut random).await
            };
            match stores::limited(&self.shared.address, &self.store, attempt).await {
                Ok(Renewed::Extended { .. }) => {
                    self.hold(held, sent_ms);
                    return Ok(());
                }
                Ok(Renewed::Lost) => {
                    (self.is_owner, self.until_ms) = (false, 0);
                    self.unload();
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
            acquire(&mut **store, &self.terms, acquisition, &Clocks, &mut random, &|_| false).await
        };
        let held = stores::limited(&self.shared.address, &self.store, attempt).await?;
        if let Some(lead_ms) = held.smaller_lead_ms(&self.terms) {
            let (ttl_ms, address) = (self.terms.ttl_ms, &self.shared.address);
            let what = format!(
                "ttl is {ttl_ms} ms, but they were made with {lead_ms} ms in {address}, and this process counts with that: give \
                 no more"
            );
            self.tell(Kind::LeadDiffers, &what);
        }
        self.hold(held, sent_ms);
        let what = format!("its lease is acquired from {}", self.shared.address);
        self.tell(Kind::Acquired, &what);
        Ok(())
    }

    /// Stops giving numbers until the bounds are in the store.
    fn unload(&mut self) {
        self.is_loaded = false;
        self.shared.hold_until(0);
    }

    /// So much of the lease was left when the store wrote it, which was after it was asked.
    fn hold(&mut self, held: Held, sent_ms: u64) {
        self.own(&held);
        self.until_ms = sent_ms.saturating_add(held.is_alone_for_ms());
        if self.is_loaded {
            self.shared.hold_until(self.until_ms);
        }
        self.lease_pace.renewed(held.ttl_ms(&self.terms));
        self.held = Some(held);
    }

    /// Makes this lease guard the bounds from now on.
    fn own(&mut self, held: &Held) {
        let Some(version) = held.version() else { return };
        let under = &held.known.head;
        let (before, now) = (self.head, (under.version, under.fence));
        self.head = now;
        let owner = Owner { name: held.node.to_string(), version, incarnation: under.incarnation.clone() };
        let has_lost = core::mem::take(&mut self.has_lost) || before.1 != now.1;
        match self.bounds.take() {
            Some(mut bounds) if self.is_owner => {
                if before.0 == now.0 && !has_lost {
                    bounds.renewed(version);
                } else {
                    bounds.rejoined(owner);
                    self.unload();
                    self.bounds_pace.now();
                }
                self.bounds = Some(bounds);
            }
            former => {
                let (group, sections) = (self.terms.group.clone(), self.shared.section_count());
                let bounds = Bounds::new(group, sections, owner);
                self.bounds = Some(match &former {
                    Some(former) => bounds.above(former),
                    None => bounds,
                });
                if former.is_none() {
                    return self.is_owner = true;
                }
            }
        }
        self.is_owner = true;
        if has_lost {
            let what = format!(
                "{} may have lost writes: all bounds are written once more, above all numbers of this process",
                self.shared.address
            );
            self.tell(Kind::WritesLost, &what);
        }
    }

    /// Reads the bounds if this process does not know them, and moves those that sections asked for.
    async fn move_bounds(&mut self) -> Result<(), Fault> {
        let Self { bounds, shared, store, moved, .. } = self;
        let Some(bounds) = bounds else { return Ok(()) };
        let attempt = async {
            let mut store = store.lock().await;
            let store = &mut **store;
            // Send pending writes first.
            go::<Fault>(store, bounds, &[], &mut random).await?;
            shared.extend(|section| bounds.range(section));
            let wanted = shared.wanted();
            if wanted.is_empty() {
                return Ok(());
            }
            for &(section, bound) in &wanted {
                let (Some((since, moved)), Some(range)) = (moved.get_mut(section), bounds.range(section))
                else {
                    continue;
                };
                if since.elapsed() > MINUTE {
                    (*since, *moved) = (Instant::now(), 0);
                }
                *moved = moved.saturating_add(bound.saturating_sub(range.bound));
                bounds.advances(section, *moved);
            }
            shared.moved();
            go::<Fault>(store, bounds, &wanted, &mut random).await
        };
        let result = stores::limited(&shared.address, store, attempt).await;
        // Use the bounds that reached the store before an attempt failed.
        shared.extend(|section| bounds.range(section));
        result
    }

    /// Why there is no lease, for calls and the log.
    fn refused(&mut self, refusal: &Refusal) -> Trouble {
        let address = &self.shared.address;
        match refusal {
            Refusal::NoneFree { first: Some(FreesFirst { in_ms, .. }), .. }
            | Refusal::Fenced { in_ms, .. } => {
                self.lease_pace.failed_for(Duration::from_millis(in_ms.saturating_add(1)));
            }
            Refusal::NoneFree { first: None, .. } | Refusal::Contended => self.lease_pace.contended(),
            _ => self.lease_pace.failed(),
        }
        let (kind, is_final, why) = match refusal {
            Refusal::Store(error) => {
                (Kind::StoreUnreachable, matches!(error, StoreError::Refused(_)), stores::text_of(error))
            }
            Refusal::Unreadable(why) => {
                (Kind::StoreUnreachable, true, format!("the store cannot be used: {address}: {why}"))
            }
            Refusal::NoneFree { first: Some(first), .. } => {
                let label: String = first.label.chars().take(100).collect();
                let in_ms = first.in_ms;
                let why = format!(
                    "`{label}` has the lease of it in {address}, and gives its numbers: for {in_ms} ms unless it is renewed"
                );
                (Kind::Waiting, true, why)
            }
            Refusal::Fenced { in_ms, why } => {
                let what = match why {
                    Why::First => {
                        "is new, or has lost all records of them (for development, `init=always` in the address ends the wait)"
                    }
                    Why::Loss => "has lost records of them",
                };
                let why = format!(
                    "{address} {what}: nobody can have the lease for {in_ms} ms, in which an earlier one may go on"
                );
                (Kind::Waiting, false, why)
            }
            Refusal::ClockDiffers(clock) => (
                Kind::ClockDiffers,
                true,
                format!(
                    "the clock of this machine is {} ms from that of {address}, which is more than clock_difference",
                    clock.by_ms
                ),
            ),
            Refusal::DifferenceTooLarge { difference_ms, of_space_ms } => (
                Kind::Waiting,
                true,
                format!(
                    "clock_difference is {difference_ms} ms, but these sequences in {address} count with {of_space_ms} ms: \
                     give no more than that"
                ),
            ),
            Refusal::NoneFree { first: None, .. } | Refusal::Contended => {
                (Kind::StoreUnreachable, false, format!("others were faster each time at {address}"))
            }
        };
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
        self.bounds_pace.failed();
        let address = &self.shared.address;
        let unavailable = ErrorCode::CounterUnavailable;
        match fault {
            Fault::Store(error) => {
                let (why, is_final) = (stores::text_of(error), matches!(error, StoreError::Refused(_)));
                self.trouble(Kind::StoreUnreachable, unavailable, is_final, &why)
            }
            Fault::Bounds(protocol::Refusal::NotOwner | protocol::Refusal::Lost) => {
                // The lease shows which: lost, or to be rejoined.
                self.has_lost = *fault == Fault::Bounds(protocol::Refusal::Lost);
                self.lease_pace.now();
                let why = format!("{address} has lost writes, or another process has the lease");
                self.trouble(Kind::StoreUnreachable, unavailable, false, &why)
            }
            Fault::Bounds(protocol::Refusal::Contended) => {
                let why = format!("others were faster each time at {address}");
                self.trouble(Kind::StoreUnreachable, unavailable, false, &why)
            }
            Fault::Bounds(protocol::Refusal::OtherSections { found }) => {
                let why = format!(
                    "{address} has {found} sections of it, and {} are asked for: their number cannot be changed",
                    self.shared.section_count()
                );
                self.trouble(Kind::CounterStopped, ErrorCode::InvalidOption, true, &why)
            }
            Fault::Bounds(protocol::Refusal::OtherHash { found }) => {
                let why = format!(
                    "{address} has its keys by the hash {found:?}, and this program knows {:?} only",
                    key::HASH
                );
                self.trouble(Kind::CounterStopped, ErrorCode::InvalidOption, true, &why)
            }
            Fault::Bounds(protocol::Refusal::End) => {
                let why = format!("{address} has a section of it whose numbers reach the end: none is left");
                self.trouble(Kind::CounterStopped, unavailable, true, &why)
            }
            Fault::Bounds(protocol::Refusal::Unreadable { name, why }) => {
                let why = format!("the record {name:?} of it in {address} cannot be read: {why}");
                self.trouble(Kind::CounterStopped, unavailable, true, &why)
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
        let message = format!("sequences {:?}: {what}", self.shared.name);
        tell(&Event { kind, node: None, store: self.shared.address.to_string(), message });
    }

    /// Writes how far the sections counted, and gives the lease back. What does not come to the store is skipped, and expires.
    async fn give_back(&mut self) {
        let given = self.shared.end();
        // A write of unknown outcome gave no lease: give it back, since another process may want it.
        let Some(held) = self.held.take().or_else(|| self.acquisition.unclear()) else { return };
        if let Some(bounds) = self.bounds.as_mut().filter(|_| self.is_loaded && held.version().is_some()) {
            bounds.give_back(&given, &mut random);
            let _ = stores::until_answered(&self.shared.address, &self.store, async |store| {
                go::<Fault>(store, bounds, &[], &mut random).await
            })
            .await;
        }
        let released = stores::until_answered(&self.shared.address, &self.store, async |store| {
            release(store, &self.terms, &held, held.start, &Clocks, &mut random).await
        });
        let (kind, what) = match released.await {
            Ok(()) => (Kind::Released, "its lease is given back"),
            Err(_) => (Kind::StoreUnreachable, "its lease is not given back, and is free when it ends"),
        };
        self.tell(kind, what);
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<protocol::Refusal> for Fault {
    fn from(refusal: protocol::Refusal) -> Self {
        Self::Bounds(refusal)
    }
}

impl stores::Failure for Fault {
    fn is_the_stores(&self) -> bool {
        matches!(self, Self::Store(_))
    }

    fn is_temporary(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unreachable(_)) | Self::Bounds(protocol::Refusal::Contended))
    }
}
