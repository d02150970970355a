//! The keeper's work for one of a counter's stores: fetching segments before they are needed, and answering
//! calls.

mod records;
mod refusal;
mod rows;

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use tokio::time::timeout;

use self::records::{Records, drop_all};
use self::refusal::Refusal;
use self::rows::Rows;
use super::pace::Pace;
use super::{Keeper, looks, stores};
use crate::counter::protocol;
use crate::counter::segments::Run;
use crate::counter::shared::{Answer, Request, Shared, Source, What};
use crate::counter::step::Step;
use crate::event::{Event, Kind, tell};
use crate::store::{Reserve, Schema, StoreError};
use crate::watched::Trouble;

/// How long to wait when nothing is due.
const IDLE: Duration = Duration::from_secs(3600);

/// The task for one of a counter's stores.
pub(super) struct Task {
    keeper: &'static Keeper,
    shared: Arc<Shared>,
    at: usize,
    store: stores::Connected,
    numbers: Numbers,
    step: Option<Step>,
    /// The time at which the last segment was fetched, how many numbers had been used by then, and how many
    /// numbers all segments have held in total.
    since: Instant,
    used_before: u64,
    installed: u64,
    /// The pace of attempts, which slows down while attempts fail.
    pace: Pace,
    last_warning: Option<Kind>,
    /// Whether the last check for losses failed.
    is_silent: bool,
}

/// The records or rows that numbers come from.
#[derive(Debug)]
enum Numbers {
    Records(Box<Records>),
    Rows(Rows),
}

impl Task {
    pub(super) fn new(
        keeper: &'static Keeper,
        shared: Arc<Shared>,
        at: usize,
        stores: Rc<[stores::Connected]>,
    ) -> Option<Self> {
        let (step, store) = (shared.step, Rc::clone(stores.get(at)?));
        let Source { counter, address, .. } = shared.sources.get(at)?;
        let ttl_ms = address.ttl_ms;
        let numbers = match counter.schema {
            Schema::Polyflake => Numbers::Records(Box::new(Records::new(Arc::clone(&shared), stores, at))),
            Schema::Leaf | Schema::Tinyid | Schema::Cosid => {
                Numbers::Rows(Rows::new(Rc::clone(&store), step.is_none()))
            }
        };
        Some(Self {
            keeper,
            shared,
            at,
            store,
            numbers,
            step,
            since: Instant::now(),
            used_before: 0,
            installed: 0,
            pace: Pace::new(ttl_ms),
            last_warning: None,
            is_silent: false,
        })
    }

    pub(super) async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let Some(source) = shared.sources.get(self.at) else { return };
        if !self.may_begin(source).await {
            return shared.end(self.at);
        }
        // Open the counter even with a step of 1, so that a problem with the store is reported when the
        // program opens the counter.
        while self.open(source).await.is_err() && !self.is_over() {
            self.pause(source, true).await;
        }
        if !self.is_over() {
            let lacks = "numbers that were given: those that run pass over them, and others may repeat some";
            stores::tell_of_replicas(&source.address, &self.store, lacks).await;
        }
        while !self.is_over() {
            let wants_more = self.step.is_some() && source.segments.wants_more();
            let is_look_due = self.next_look().is_some_and(|next| Instant::now() >= next);
            if !self.pace.is_due() && is_look_due {
                // Other processes depend on this check, so make it even if attempts have been failing for a
                // long time.
                self.look(source).await;
            } else if !self.pace.is_due() {
                // A refused call repeats its request at once, so wait until the pace allows another attempt.
                self.pause(source, wants_more || shared.has_request(self.at)).await;
            } else if let Some(request) = shared.next_request(self.at) {
                self.answer(source, request).await;
            } else if wants_more {
                let _ = self.fetch(source).await;
            } else if is_look_due {
                self.look(source).await;
            } else {
                self.pause(source, false).await;
            }
        }
        self.give_back(source).await;
        shared.end(self.at);
    }

    /// Returns true if the task must end, because the counter has failed or no longer has any users.
    fn is_over(&self) -> bool {
        self.shared.has_failed()
            || (self.shared.users.are_gone() && self.keeper.forget_counter(&self.shared, false))
    }

    /// Waits until a call wakes the task, a request is due, or the counter must be released.
    async fn pause(&self, source: &Source, wants_more: bool) {
        let next = self.next_look().into_iter().chain(wants_more.then(|| self.pace.next())).min();
        let next = next.map_or(IDLE, |next| next.saturating_duration_since(Instant::now()));
        let pause = self.shared.users.kept_for().map_or(next, |kept| kept.min(next));
        let _ = timeout(pause.max(Duration::from_millis(1)), source.wake.notified()).await;
    }

    /// If numbers come from rows in several stores, waits until all rows have been checked. Until then, the
    /// stores must not return numbers, since a row may belong to another counter. Returns false if the
    /// counter fails or loses its last user first.
    async fn may_begin(&mut self, source: &Source) -> bool {
        while let Numbers::Rows(rows) = &self.numbers {
            if source.place.count == 1 {
                break;
            }
            if !self.shared.is_seen(self.at) {
                match rows.look(source).await {
                    Ok(()) => self.shared.saw(self.at),
                    Err(refusal) => drop(self.gave(source, Err(refusal))),
                }
            }
            if self.shared.are_all_seen() {
                break;
            }
            if self.is_over() {
                return false;
            }
            // The other tasks wake this task after they have checked their rows.
            self.pause(source, !self.shared.is_seen(self.at)).await;
        }
        true
    }

    /// Fetches the counter's first segment. Creates the counter if the store does not have it.
    async fn open(&mut self, source: &Source) -> Result<(), ()> {
        if !self.pace.is_due() {
            return Err(());
        }
        if self.step.is_some() {
            return self.fetch(source).await;
        }
        let opened = match &mut self.numbers {
            Numbers::Records(records) => records.open().await,
            Numbers::Rows(rows) => rows.look(source).await,
        };
        self.gave(source, opened)
    }

    fn next_look(&self) -> Option<Instant> {
        match &self.numbers {
            Numbers::Records(records) => records.next_look(),
            Numbers::Rows(_) => None,
        }
    }

    /// Checks whether the store has lost writes. The check may also yield numbers from an earlier reservation
    /// whose reply was lost.
    async fn look(&mut self, source: &Source) {
        let Numbers::Records(records) = &mut self.numbers else { return };
        let looked = records.look().await;
        if let Ok(Some(run)) = looked {
            if self.step.is_some() && source.segments.wants_more() {
                self.install(source, run);
            } else {
                self.shared.counts.skipped.fetch_add(run.count, Ordering::Relaxed);
            }
        }
        let was_silent = core::mem::replace(&mut self.is_silent, looked.is_err());
        // A successful check does not mean that the counter is working again. If the counter has lost writes,
        // was removed or has reached its end, it stays stopped. If another transaction has locked the
        // counter's row, the check does not notice the lock.
        let is_stopped = self.last_warning == Some(Kind::CounterStopped);
        let gives_nothing = self.last_warning.is_some() && !was_silent && !matches!(looked, Ok(Some(_)));
        if looked.is_err() || !(is_stopped || gives_nothing || self.has_lost()) {
            let _ = self.gave(source, looked.map(drop));
        }
    }

    fn has_lost(&self) -> bool {
        matches!(&self.numbers, Numbers::Records(records) if records.has_lost())
    }

    /// Fetches another segment.
    async fn fetch(&mut self, source: &Source) -> Result<(), ()> {
        let Some(step) = self.step else { return Ok(()) };
        let used = self.installed - source.segments.left();
        let step =
            if self.installed > 0 { step.after(used - self.used_before, self.since.elapsed()) } else { step };
        let reserved = self.reserve(source, step.present(), 1).await;
        let given = reserved.map(|run| {
            (self.since, self.used_before, self.step) = (Instant::now(), used, Some(step));
            self.shared.counts.step.store(step.present(), Ordering::Relaxed);
            self.install(source, run);
        });
        self.gave(source, given)
    }

    fn install(&mut self, source: &Source, segment: Run) {
        self.installed += segment.count;
        source.segments.install(segment);
    }

    /// Reserves `count` numbers for this process. If fewer are left before the counter's end, reserves the
    /// rest, provided that at least `least` numbers remain.
    async fn reserve(&mut self, source: &Source, count: u64, least: u64) -> Result<Run, Refusal> {
        let run = match &mut self.numbers {
            Numbers::Records(records) => records.reserve(count, least).await?,
            Numbers::Rows(rows) => rows.reserve(source, count, least).await?,
        };
        self.shared.counts.segments.fetch_add(1, Ordering::Relaxed);
        Ok(run)
    }

    async fn answer(&mut self, source: &Source, request: Request) {
        match request.what {
            What::Run(wanted) if self.step.is_none() => self.answer_together(source, request, wanted).await,
            _ => self.answer_one(source, request).await,
        }
    }

    /// With a step of 1, sends one request for all waiting calls, so that a call does not wait for other
    /// calls' round trips.
    async fn answer_together(&mut self, source: &Source, request: Request, wanted: u64) {
        let (mut requests, mut count) = (vec![(request, wanted)], wanted);
        while let Some((request, wanted)) = self.shared.next_run_of(self.at, Reserve::MAX_COUNT - count) {
            requests.push((request, wanted));
            count += wanted;
        }
        let reserved = self.reserve(source, count, count).await;
        if requests.len() > 1 && reserved.as_ref().is_err_and(Refusal::is_end) {
            // There may still be enough numbers for some of the calls.
            for (request, _) in requests {
                self.answer_one(source, request).await;
            }
            return;
        }
        let _ = self.gave(source, reserved.as_ref().map(drop).map_err(Refusal::clone));
        let mut reserved = reserved.map_err(|refusal| self.trouble(source, &refusal));
        self.shared.answer(requests.into_iter().map(|(request, wanted)| {
            let answer = match &mut reserved {
                // There are enough numbers, since `least` was `count`.
                Ok(left) => left
                    .split_off(wanted)
                    .map(Answer::Run)
                    .ok_or_else(|| self.trouble(source, &Refusal::Contended)),
                Err(trouble) => Err(*trouble),
            };
            (request, answer)
        }));
    }

    async fn answer_one(&mut self, source: &Source, request: Request) {
        if let What::Run(wanted) = request.what {
            // A segment may have arrived since the call found too few numbers.
            if let Some((run, skipped)) = source.segments.take_run(wanted) {
                self.shared.counts.skipped.fetch_add(skipped, Ordering::Relaxed);
                return self.shared.answer([(request, Ok(Answer::Run(run)))]);
            }
        }
        let answer = match request.what {
            What::Run(wanted) => self.run_of(source, wanted).await.map(Answer::Run),
            What::Peek => match &self.numbers {
                Numbers::Records(records) => records.peek().await,
                Numbers::Rows(rows) => rows.peek(source).await,
            }
            .map(Answer::Last),
            What::Raise(number) => {
                let raised = match &mut self.numbers {
                    Numbers::Records(records) => records.raise(number).await,
                    Numbers::Rows(rows) => rows.raise(source, number).await,
                };
                // Drop the numbers even if the raise failed: it may have taken effect even though its reply
                // was lost.
                self.drop_in_hand(source);
                raised.map(Answer::Done)
            }
            What::Remove => {
                let removed = match &mut self.numbers {
                    Numbers::Records(records) => records.remove().await,
                    Numbers::Rows(_) => Err(Refusal::NotOurs),
                };
                self.drop_in_hand(source);
                removed.map(Answer::Done)
            }
        };
        if matches!(answer, Ok(Answer::Done(_))) && !request.is_waited_for() {
            // The call has timed out and will not receive this answer. If the program repeats the call, the
            // repeated call must write again.
            self.shared.is_unsure.store(true, Ordering::Relaxed);
        }
        // Even if too few numbers are left for a block, there may be enough for the next segment.
        if self.step.is_none() || !answer.as_ref().is_err_and(Refusal::is_end) {
            let _ = self.gave(source, answer.as_ref().map(drop).map_err(Refusal::clone));
        }
        let answer = answer.map_err(|refusal| self.trouble(source, &refusal));
        self.shared.answer([(request, answer)]);
    }

    /// Returns consecutive numbers above all previously issued numbers. Drops the numbers already fetched.
    async fn run_of(&mut self, source: &Source, wanted: u64) -> Result<Run, Refusal> {
        let count = self.step.map_or(wanted, |step| step.present().max(wanted));
        let mut left = self.reserve(source, count, wanted).await?;
        let run = left.split_off(wanted).ok_or(Refusal::Contended)?;
        drop_all(&self.shared, source);
        if self.step.is_some() && left.count > 0 {
            self.install(source, left);
        }
        Ok(run)
    }

    /// Drops the numbers fetched from this store, or from all of the counter's stores if it is a Polyflake
    /// counter.
    fn drop_in_hand(&self, source: &Source) {
        match self.numbers {
            Numbers::Records(_) => self.shared.sources.iter().for_each(|it| drop_all(&self.shared, it)),
            Numbers::Rows(_) => drop_all(&self.shared, source),
        }
    }

    /// Gives the last segment's unused numbers back to the store.
    async fn give_back(&mut self, source: &Source) {
        let rest = source.segments.end();
        match &self.numbers {
            Numbers::Records(records) => records.give_back(&rest).await,
            Numbers::Rows(rows) => rows.give_back(source, &rest).await,
        }
    }

    /// Passes the result of a request to the waiting calls, and logs any change in the counter's state.
    fn gave(&mut self, source: &Source, given: Result<(), Refusal>) -> Result<(), ()> {
        match given {
            Ok(()) => {
                if !self.is_silent && self.last_warning.take().is_some() {
                    tell_of(
                        source,
                        Kind::StoreReachable,
                        format!("counter {}: {} answers again", self.name(), source.address),
                    );
                }
                self.pace.succeeded();
                self.shared.gave(self.at, Ok(()));
                Ok(())
            }
            Err(refusal) => {
                let kind = match refusal {
                    // The loss has already been logged.
                    Refusal::Protocol(protocol::Refusal::Lost { .. }) => None,
                    Refusal::Store(StoreError::Unreachable(_))
                    | Refusal::Others(..)
                    | Refusal::Contended
                    | Refusal::Protocol(protocol::Refusal::Contended) => Some(Kind::StoreUnreachable),
                    _ => Some(Kind::CounterStopped),
                };
                let trouble = self.trouble(source, &refusal);
                if let Some(kind) = kind.filter(|&kind| self.last_warning.replace(kind) != Some(kind)) {
                    tell_of(source, kind, trouble.error.to_string());
                }
                match refusal {
                    Refusal::Protocol(protocol::Refusal::Lost { in_ms }) => {
                        self.pace.failed_for(Duration::from_millis(in_ms.saturating_add(1)));
                    }
                    _ => self.pace.failed(),
                }
                self.shared.gave(self.at, Err(trouble));
                Err(())
            }
        }
    }

    fn trouble(&self, source: &Source, refusal: &Refusal) -> Trouble {
        refusal.trouble(source, &self.shared.sources)
    }

    fn name(&self) -> &str {
        self.shared.sources.first().map_or("", |source| &source.counter.name)
    }
}

fn tell_of(source: &Source, kind: Kind, message: String) {
    tell(&Event { kind, node: None, store: source.address.to_string(), message });
}
