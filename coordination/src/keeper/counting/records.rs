//! A counter's record in one of its stores.

use core::sync::atomic::Ordering::Relaxed;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Refusal, looks, stores};
use crate::counter::protocol::{
    self, LOOK_AGAIN_MS, LOOK_EVERY_MS, NAME, Procedure, Purpose, Standing, Step, Text, Want,
};
use crate::counter::segments::{Rest, Run};
use crate::counter::shared::{Shared, Source};
use crate::event::Kind;
use crate::lease::Time as _;
use crate::local::{Clocks, random};
use crate::records::{self, Group};
use crate::store::StoreError;

/// One of a counter's stores.
#[derive(Debug)]
pub(super) struct Records {
    shared: Arc<Shared>,
    /// All of the counter's stores.
    stores: Rc<[stores::Connected]>,
    at: usize,
    /// The protocol's state, once the record may be used to reserve numbers.
    source: Option<protocol::Source>,
    /// The last run of numbers that the store returned.
    newest: Option<Run>,
    next_look: Instant,
    is_loss_told: bool,
}

impl Records {
    pub(super) fn new(shared: Arc<Shared>, stores: Rc<[stores::Connected]>, at: usize) -> Self {
        Self {
            shared,
            stores,
            at,
            source: None,
            newest: None,
            next_look: Instant::now(),
            is_loss_told: false,
        }
    }

    /// Opens the counter, unless it is already open. Creates the counter if it does not exist.
    pub(super) async fn open(&mut self) -> Result<(), Refusal> {
        if self.source.is_some() {
            return Ok(());
        }
        let procedure = self.all(Purpose::Open { start: self.shared.start }).await?;
        match procedure.standing(self.at) {
            Standing::Gives(record, text) => {
                let refuses =
                    self.shared.sources.get(self.at).is_some_and(|it| it.address.is_refused_after_loss);
                self.source = Some(protocol::Source::new(self.group(self.at), &record, text, refuses));
                self.look_in(LOOK_EVERY_MS);
                Ok(())
            }
            Standing::Lost => Err(Refusal::LeftOut),
            Standing::Down | Standing::None => Err(Refusal::Contended),
        }
    }

    /// Returns the time of the next check, once the counter is open.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.source.as_ref().map(|_| self.next_look)
    }

    fn look_in(&mut self, ms: u64) {
        self.next_look = Instant::now() + Duration::from_millis(ms);
    }

    /// Checks whether the store has lost writes.
    pub(super) async fn look(&mut self) -> Result<Option<Run>, Refusal> {
        self.look_in(LOOK_AGAIN_MS);
        let (all, stores) = (Arc::clone(&self.shared), Rc::clone(&self.stores));
        let (Some(shared), Some(store)) = (all.sources.get(self.at), stores.get(self.at)) else {
            return Ok(None);
        };
        let Some(source) = &mut self.source else { return Ok(None) };
        let mut request = source.begin(Want::Look, &mut random);
        let mut has_dropped = false;
        let looked = loop {
            let received = match looks::ask(&shared.address, store, request).await {
                Ok(received) => received,
                Err(error) => break Err(error.into()),
            };
            let next =
                step(source, &**store.lock().await, &received, &mut has_dropped, || drop_all(&all, shared));
            match next {
                Ok(protocol::Next::Ask(next)) => request = next,
                Ok(protocol::Next::Done(run)) => break Ok(run),
                Err(refusal) => break Err(refusal.into()),
            }
        };
        let run = self.went(looked, has_dropped)?;
        self.look_in(LOOK_EVERY_MS);
        Ok(run)
    }

    /// Returns true if the store has lost writes and cannot return new numbers yet.
    pub(super) fn has_lost(&self) -> bool {
        self.source.as_ref().is_some_and(protocol::Source::has_lost)
    }

    fn tell_of_loss(&mut self) {
        let has_lost = self.has_lost();
        let (was_told, Some(source)) =
            (core::mem::replace(&mut self.is_loss_told, has_lost), self.shared.sources.get(self.at))
        else {
            return;
        };
        if has_lost && !was_told {
            let goes_on = if source.address.is_refused_after_loss {
                "no more numbers until somebody raises the counter above all that are in use"
            } else {
                "new numbers come after a while, above all that running processes had"
            };
            let what =
                format!("counter {:?}: {} has lost writes: {goes_on}", source.counter.name, source.address);
            super::tell_of(source, Kind::WritesLost, what);
        }
    }

    /// Reserves `count` numbers for this process. If fewer are left before the counter's end, reserves the
    /// rest, provided that at least `least` numbers remain.
    pub(super) async fn reserve(&mut self, count: u64, least: u64) -> Result<Run, Refusal> {
        self.open().await?;
        let run = self.go(Want::Reserve { count, least }).await?;
        run.filter(|run| run.count >= least).ok_or(Refusal::Contended)
    }

    async fn go(&mut self, want: Want) -> Result<Option<Run>, Refusal> {
        let (all, stores) = (Arc::clone(&self.shared), Rc::clone(&self.stores));
        let (Some(shared), Some(store)) = (all.sources.get(self.at), stores.get(self.at)) else {
            return Ok(None);
        };
        let Some(source) = &mut self.source else { return Ok(None) };
        let mut has_dropped = false;
        let attempt = async |store: &mut dyn records::Store| {
            let mut request = source.begin(want, &mut random);
            loop {
                let received = protocol::ask(store, &request, || Clocks.elapsed_ms()).await?;
                let next = step(source, store, &received, &mut has_dropped, || drop_all(&all, shared));
                match next? {
                    protocol::Next::Ask(next) => request = next,
                    protocol::Next::Done(run) => return Ok(run),
                }
            }
        };
        let result = stores::limited(&shared.address, store, attempt).await;
        self.went(result, has_dropped)
    }

    /// Handles the result of an attempt.
    fn went(
        &mut self,
        result: Result<Option<Run>, Refusal>,
        has_dropped: bool,
    ) -> Result<Option<Run>, Refusal> {
        let Some(shared) = self.shared.sources.get(self.at) else { return result };
        if has_dropped {
            let what = format!(
                "counter {:?}: {} lost writes, and others may have been given the same numbers as this process: what it had in \
                 hand is dropped",
                shared.counter.name, shared.address
            );
            super::tell_of(shared, Kind::NumbersMayRepeat, what);
        }
        match &result {
            Ok(Some(run)) => self.newest = Some(*run),
            // Another process may create a new counter with this name, and issue the same numbers.
            Err(Refusal::Protocol(protocol::Refusal::Removed)) => drop_all(&self.shared, shared),
            _ => {}
        }
        self.tell_of_loss();
        result
    }

    pub(super) async fn peek(&self) -> Result<Option<u64>, Refusal> {
        let (Some(shared), Some(store)) = (self.shared.sources.get(self.at), self.stores.get(self.at)) else {
            return Ok(None);
        };
        let group = self.group(self.at);
        let attempt = async |store: &mut dyn records::Store| {
            let found = store.read(&group, Some(&[NAME])).await?.value;
            let Some((_, record)) = found.into_iter().next() else { return Ok(None) };
            let text = Text::read(&record.text)?;
            Ok(Some(protocol::last_of(&record, &text)).filter(|_| !text.is_tombstone()))
        };
        stores::limited(&shared.address, store, attempt).await
    }

    /// Moves the counter above `number`.
    pub(super) async fn raise(&mut self, number: u64) -> Result<bool, Refusal> {
        // If the record is missing, this check creates it again with the contents that this process knows.
        let _ = self.look().await;
        self.all(Purpose::Raise { number }).await?;
        Ok(true)
    }

    /// Removes the counter. Returns true if it existed.
    pub(super) async fn remove(&mut self) -> Result<bool, Refusal> {
        match self.all(Purpose::Remove).await {
            Ok(_) => Ok(true),
            Err(Refusal::Protocol(protocol::Refusal::NotThere)) => Ok(false),
            Err(refusal) => Err(refusal),
        }
    }

    /// Gives back the unused numbers, unless a process has reserved numbers since then.
    pub(super) async fn give_back(&self, rest: &Rest) {
        let (Some(source), Some(shared), Some(store)) =
            (&self.source, self.shared.sources.get(self.at), self.stores.get(self.at))
        else {
            return;
        };
        let Some(unused) = self.newest.and_then(|newest| unused(rest, &newest)) else { return };
        let Some(request) = source.give_back(unused, &mut random) else { return };
        let look = protocol::Request::Read(self.group(self.at));
        let _ = stores::until_answered(&shared.address, store, async |store| -> Result<(), StoreError> {
            let received = protocol::ask(store, &look, || Clocks.elapsed_ms()).await?;
            if source.may_give_back(&received, &|before, now| store.has_kept_all(before, now)) {
                protocol::ask(store, &request, || Clocks.elapsed_ms()).await?;
            }
            Ok(())
        })
        .await;
    }

    /// Runs a procedure on all of the counter's stores. If one of the other stores does not answer, treats it
    /// as down.
    async fn all(&self, purpose: Purpose) -> Result<Procedure, Refusal> {
        let groups = (0..self.stores.len()).map(|at| self.group(at)).collect();
        let is_unsure = &self.shared.is_unsure;
        let mut procedure = Procedure::new(purpose, is_unsure.load(Relaxed), groups, &mut random);
        let done = self.all_of(&mut procedure).await;
        if !matches!(purpose, Purpose::Open { .. }) {
            is_unsure.store(done.is_err() && (is_unsure.load(Relaxed) || procedure.has_written()), Relaxed);
        }
        done.map(|()| procedure)
    }

    async fn all_of(&self, procedure: &mut Procedure) -> Result<(), Refusal> {
        let mut last_error = None;
        loop {
            let (at, request) = match procedure.next(&mut random) {
                Ok(Step::Done) => return Ok(()),
                Ok(Step::Ask(at, request)) => (at, request),
                Err(protocol::Refusal::Unreachable { .. }) => {
                    return Err(Refusal::Others(procedure.purpose(), last_error));
                }
                Err(refusal) => return Err(refusal.into()),
            };
            let (Some(shared), Some(store)) = (self.shared.sources.get(at), self.stores.get(at)) else {
                return Err(Refusal::Contended);
            };
            let attempt = async |store: &mut dyn records::Store| {
                let received = protocol::ask(store, &request, || Clocks.elapsed_ms()).await?;
                procedure.answered(at, Some(&received), &|before, now| store.has_kept_all(before, now))?;
                Ok(())
            };
            match stores::limited(&shared.address, store, attempt).await {
                Ok(()) => {}
                Err(Refusal::Store(error)) if at != self.at => {
                    last_error = Some(error);
                    procedure.answered(at, None, &|_, _| false)?;
                }
                Err(refusal) => return Err(refusal),
            }
        }
    }

    fn group(&self, at: usize) -> Group {
        let counter = self.shared.sources.get(at).map(|source| source.counter.clone());
        let (namespace, name) = counter.map(|counter| (counter.namespace, counter.name)).unwrap_or_default();
        Group { namespace, kind: records::Kind::Counter, name }
    }
}

/// Passes an answer to the protocol. If the answer shows that other processes may have been given the same
/// numbers, drops the fetched numbers at once.
fn step(
    source: &mut protocol::Source,
    store: &dyn records::Store,
    received: &protocol::Received,
    has_dropped: &mut bool,
    drop: impl FnOnce(),
) -> Result<protocol::Next, protocol::Refusal> {
    let next = source.step(received, &|before, now| store.has_kept_all(before, now), &mut random);
    if source.has_dropped() {
        *has_dropped = true;
        drop();
    }
    next
}

/// Drops all numbers that were fetched from this store.
pub(super) fn drop_all(shared: &Shared, source: &Source) {
    let Rest { left, .. } = source.segments.end();
    shared.counts.skipped.fetch_add(left, core::sync::atomic::Ordering::Relaxed);
}

/// Returns how many numbers to give back: the rest of the last segment, and the rest of the segment before it
/// if the two are consecutive.
fn unused(rest: &Rest, reserved: &Run) -> Option<u64> {
    // The last reservation may have been for a block, which is not in the segments.
    if rest.newest.count == 0 || rest.newest.last() != reserved.last() {
        return None;
    }
    let of_newest = rest.newest.count - rest.taken;
    Some(match &rest.before {
        Some((before, left)) if before.last() + before.stride == rest.newest.first => of_newest + left,
        _ => of_newest,
    })
}
