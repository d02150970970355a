//! The keeper's work for sequences: holding their lease, and moving each section's bound before the section
//! reaches it. The lease and the bounds are records in one group.

use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use polyflake::ErrorCode;
use tokio::time::timeout;

use super::holder::{Holder, Whose, code_of, is_final};
use super::pace::Pace;
use super::{Keeper, stores};
use crate::event::Kind;
use crate::lease::{self, Held, Nodes, Renewed, Terms, Time as _};
use crate::local::{Clocks, random};
use crate::records::{self, Group, Kind as Records};
use crate::sequences::hash;
use crate::sequences::protocol::{self, Bounds, Owner, go};
use crate::sequences::shared::Shared;
use crate::space::Space;
use crate::store::StoreError;
use crate::url::Address;
use crate::watched::Trouble;

/// The period over which a section's moves are added up.
const MINUTE: Duration = Duration::from_secs(60);

/// The task for a set of sequences.
pub(super) struct Task {
    keeper: &'static Keeper,
    shared: Arc<Shared>,
    store: stores::Connected,
    holder: Holder,
    held: Option<Held>,
    /// This process is the only owner until this time, as measured by [`Clocks::elapsed_ms`].
    until_ms: u64,
    /// The bounds under the last lease, and whether that lease is still held.
    bounds: Option<Bounds>,
    is_owner: bool,
    /// The version and the fence of the head that guarded the bounds.
    head: (u64, u64),
    /// Whether the store has this process's bounds, as far as the process knows.
    is_loaded: bool,
    /// Whether the store has lost bounds. If so, this process writes all bounds again after the next renewal.
    has_lost: bool,
    /// For each section: the start of the current minute, and how far the bound has moved since.
    moved: Vec<(Instant, u64)>,
    /// Decides when to send the next request for bounds.
    bounds_pace: Pace,
    /// The last problem with the bounds that was logged, if the store answered.
    told: Option<Kind>,
}

/// The reason the bounds could not be read or moved.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    Store(StoreError),
    Protocol(protocol::Refusal),
}

/// Returns the lease's terms. A group of sequences has one node, and the node's holder owns the sequences.
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
    pub(super) fn new(keeper: &'static Keeper, shared: Arc<Shared>, store: stores::Connected) -> Self {
        let terms = terms(&shared.address, &shared.name);
        let bounds_pace = Pace::new(terms.ttl_ms);
        let whose = Whose::Sequences(shared.name.clone());
        Self {
            keeper,
            holder: Holder::new(whose, &shared.address, terms, Rc::clone(&store)),
            moved: vec![(Instant::now(), 0); shared.section_count()],
            shared,
            store,
            held: None,
            until_ms: 0,
            bounds: None,
            is_owner: false,
            head: (0, 0),
            is_loaded: false,
            has_lost: false,
            bounds_pace,
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
            // Keep trying, since another process may release its lease within `wait`. Give up if a fence
            // lasts longer than that.
            match trouble {
                Some((trouble, is_hopeless))
                    if is_hopeless
                        || self.holder.is_fenced_past(deadline)
                        || Instant::now() >= deadline
                        || self.shared.users.are_gone() =>
                {
                    break Err(trouble.error);
                }
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
                // Timers stop while the machine sleeps, so check the time after a pause.
                if !self.holder.pace.has_failed() && Clocks.elapsed_ms() >= self.until_ms {
                    self.holder.pace.now();
                }
                self.tend().await;
            }
        }
        self.give_back().await;
        self.shared.users.end();
    }

    /// Waits until a request is due, a call wakes the task, or the sequences must be released.
    async fn pause(&self, deadline: Option<Instant>) {
        let next = self.holder.pace.next();
        let next = if self.wants_bounds() { next.min(self.bounds_pace.next()) } else { next };
        let next = deadline.map_or(next, |deadline| next.min(deadline));
        let until = next.saturating_duration_since(Instant::now());
        let pause = self.shared.users.kept_for().map_or(until, |kept| kept.min(until));
        let _ = timeout(pause.max(Duration::from_millis(1)), self.shared.wake.notified()).await;
    }

    fn wants_bounds(&self) -> bool {
        // After a renewal whose outcome is unknown, the process does not know the version of the record that
        // guards a move.
        let is_clear = self.held.as_ref().is_some_and(|held| held.version().is_some());
        is_clear && !self.has_lost && (!self.is_loaded || self.shared.wants_more())
    }

    /// Sends the requests that are due. If one of them fails, returns the reason, and whether a retry is
    /// pointless.
    async fn tend(&mut self) -> Option<(Trouble, bool)> {
        if self.holder.pace.is_due() {
            if let Err(refusal) = self.keep_lease().await {
                return Some((self.refused(&refusal), is_final(&refusal)));
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
                self.told = None;
                self.holder.reached();
                None
            }
            Err(refusal) => {
                let trouble = self.lacks_bounds(&refusal);
                Some((trouble, trouble.is_final))
            }
        }
    }

    /// Acquires or renews the lease.
    async fn keep_lease(&mut self) -> Result<(), lease::Refusal> {
        let mut sent_ms = Clocks.elapsed_ms();
        if let Some(mut held) = self.held.take() {
            match self.holder.renew(&mut held).await {
                Ok(Renewed::Extended { .. }) => {
                    self.hold(held, sent_ms);
                    return Ok(());
                }
                Ok(Renewed::Lost) => {
                    (self.is_owner, self.until_ms) = (false, 0);
                    self.unload();
                    let what = "its lease is lost: another process has it, or the store has lost its record";
                    self.holder.tell(Kind::Lost, None, what);
                }
                Err(refusal) => {
                    self.held = Some(held);
                    return Err(refusal);
                }
            }
            sent_ms = Clocks.elapsed_ms();
        }
        let held = self.holder.acquire(&|_| false).await?;
        self.hold(held, sent_ms);
        let what = format!("its lease is acquired from {}", self.shared.address);
        self.holder.tell(Kind::Acquired, None, &what);
        Ok(())
    }

    /// Stops issuing numbers until the bounds are in the store again.
    fn unload(&mut self) {
        self.is_loaded = false;
        self.shared.hold_until(0);
    }

    /// Sets the current lease. The process is the only owner for a period that began when the store wrote the
    /// lease. That happened after `sent_ms`, so counting from `sent_ms` is safe.
    fn hold(&mut self, held: Held, sent_ms: u64) {
        self.own(&held);
        self.until_ms = sent_ms.saturating_add(held.is_alone_for_ms());
        if self.is_loaded {
            self.shared.hold_until(self.until_ms);
        }
        self.held = Some(held);
    }

    /// Uses this lease to guard the bounds from now on.
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
                let (group, sections) = (self.holder.terms.group.clone(), self.shared.section_count());
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
                "{} may have lost writes: this process writes all bounds again, above every number it has handed out",
                self.shared.address
            );
            self.holder.tell(Kind::WritesLost, None, &what);
        }
    }

    /// Reads the bounds if this process does not know them, and moves the bounds that sections have
    /// requested.
    async fn move_bounds(&mut self) -> Result<(), Refusal> {
        let Self { bounds, shared, store, moved, .. } = self;
        let Some(bounds) = bounds else { return Ok(()) };
        let attempt = async |store: &mut dyn records::Store| {
            // Send pending writes first.
            go::<Refusal>(store, bounds, &[], &mut random).await?;
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
            go::<Refusal>(store, bounds, &wanted, &mut random).await
        };
        let result = stores::limited(&shared.address, store, attempt).await;
        // Even if the attempt failed, use the bounds that it wrote before it failed.
        shared.extend(|section| bounds.range(section));
        result
    }

    /// Logs why a request for the lease was refused, and returns the error that calls will report.
    fn refused(&mut self, refusal: &lease::Refusal) -> Trouble {
        self.holder.refused(refusal, None);
        let code = match refusal {
            lease::Refusal::Store(_) if self.held.is_some() => ErrorCode::LeaseLost,
            _ => code_of(refusal),
        };
        // A call does not wait for another process's lease to end, but opening the sequences does.
        let is_final = is_final(refusal) || matches!(refusal, lease::Refusal::NoneFree { .. });
        let trouble = Trouble { error: self.shared.error(code, &self.holder.text_of(refusal)), is_final };
        // Calls return this error once the lease has expired.
        self.shared.has_no_lease(trouble);
        trouble
    }

    /// Logs why the bounds could not be moved, and returns the error that calls will report.
    fn lacks_bounds(&mut self, refusal: &Refusal) -> Trouble {
        self.bounds_pace.failed();
        let address = &self.shared.address;
        let unavailable = ErrorCode::CounterUnavailable;
        match refusal {
            Refusal::Store(error) => {
                let (why, is_final) = (stores::text_of(error), matches!(error, StoreError::Refused(_)));
                self.trouble(Kind::StoreUnreachable, unavailable, is_final, &why)
            }
            Refusal::Protocol(protocol::Refusal::NotOwner | protocol::Refusal::Lost) => {
                // The next renewal shows whether the lease is lost or this process can rejoin.
                self.has_lost = *refusal == Refusal::Protocol(protocol::Refusal::Lost);
                self.holder.pace.now();
                let why = format!("{address} has lost writes, or another process has the lease");
                self.trouble(Kind::StoreUnreachable, unavailable, false, &why)
            }
            Refusal::Protocol(protocol::Refusal::Contended) => {
                let why = format!("every attempt at {address} conflicted with another process");
                self.trouble(Kind::StoreUnreachable, unavailable, false, &why)
            }
            Refusal::Protocol(protocol::Refusal::OtherSections { found }) => {
                let why = format!(
                    "{address} has {found} sections of it, and {} are asked for: their number cannot be changed",
                    self.shared.section_count()
                );
                self.trouble(Kind::CounterStopped, ErrorCode::InvalidOption, true, &why)
            }
            Refusal::Protocol(protocol::Refusal::OtherHash { found }) => {
                let why = format!(
                    "{address} has its keys by the hash {found:?}, and this program knows {:?} only",
                    hash::HASH
                );
                self.trouble(Kind::CounterStopped, ErrorCode::InvalidOption, true, &why)
            }
            Refusal::Protocol(protocol::Refusal::End) => {
                let why = format!("{address} has a section of it whose numbers reach the end: none is left");
                self.trouble(Kind::CounterStopped, unavailable, true, &why)
            }
            Refusal::Protocol(protocol::Refusal::Unreadable { name, why }) => {
                let why = format!("the record {name:?} of it in {address} cannot be read: {why}");
                self.trouble(Kind::CounterStopped, unavailable, true, &why)
            }
        }
    }

    fn trouble(&mut self, kind: Kind, code: ErrorCode, is_final: bool, why: &str) -> Trouble {
        if kind == Kind::StoreUnreachable {
            self.holder.warn(kind, None, why);
        } else if self.told.replace(kind) != Some(kind) {
            self.holder.tell(kind, None, why);
        }
        let trouble = Trouble { error: self.shared.error(code, why), is_final };
        self.shared.has_no_bounds(trouble);
        trouble
    }

    /// Writes how far each section has counted, and releases the lease. If the store does not receive these
    /// writes, the next owner skips numbers, and the lease is left to expire.
    async fn give_back(&mut self) {
        let given = self.shared.end();
        let held = self.held.take();
        let has_version = held.as_ref().is_some_and(|held| held.version().is_some());
        if let Some(bounds) = self.bounds.as_mut().filter(|_| self.is_loaded && has_version) {
            bounds.give_back(&given, &mut random);
            let _ = stores::until_answered(&self.shared.address, &self.store, async |store| {
                go::<Refusal>(store, bounds, &[], &mut random).await
            })
            .await;
        }
        self.holder.give_back(held, None).await;
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<protocol::Refusal> for Refusal {
    fn from(refusal: protocol::Refusal) -> Self {
        Self::Protocol(refusal)
    }
}

impl stores::AttemptError for Refusal {
    fn is_the_stores(&self) -> bool {
        matches!(self, Self::Store(_))
    }

    fn is_temporary(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unreachable(_)) | Self::Protocol(protocol::Refusal::Contended))
    }
}
