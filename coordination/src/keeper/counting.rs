//! What the keeper does for one store of a counter: it fetches segments before they are needed, and answers what calls ask.

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use polyflake::{Error, ErrorCode};
use tokio::time::timeout;

use super::{Keeper, stores};
use crate::counter::segments::{Rest, Run};
use crate::counter::shared::{Answer, Request, Shared, Source, What};
use crate::counter::step::Step;
use crate::event::{Event, Kind, tell};
use crate::local::random;
use crate::store::{
    CounterRecord, LAST_NUMBER, Numbers, Place, Reserve, Reserved, Schema, Store, StoreError,
};
use crate::watched::Trouble;

/// The shortest pause after an attempt that failed, and the longest.
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
/// Where nothing is to be done.
const IDLE: Duration = Duration::from_secs(3600);

/// How often one go asks, where others change the record each time.
const MAX_REQUESTS: u32 = 8;

/// A store of a counter.
pub(super) struct Task {
    keeper: &'static Keeper,
    shared: Arc<Shared>,
    at: usize,
    store: stores::Shared,
    step: Option<Step>,
    /// The highest number that the store gave.
    seen: u64,
    /// What it gave last.
    newest: Option<Numbers>,
    /// When a segment was asked for last, how many numbers were used by then, and how many all segments have had.
    since: Instant,
    used_before: u64,
    installed: u64,
    /// When the store is asked again after an attempt that failed.
    next: Instant,
    failures: u32,
    last_warning: Option<Kind>,
}

/// Why a store gave nothing.
#[derive(Debug, Clone)]
enum Refusal {
    Store(StoreError),
    /// A table of others has no such row.
    NoRow,
    /// The store has lost what this process has seen of the counter, which stands at `last` now, or is gone.
    Behind {
        last: Option<u64>,
        seen: u64,
    },
    OtherPlace {
        found: Place,
    },
    End,
    Contended,
}

impl Task {
    pub(super) fn new(
        keeper: &'static Keeper,
        shared: Arc<Shared>,
        at: usize,
        store: stores::Shared,
    ) -> Self {
        let step = shared.step;
        Self {
            keeper,
            shared,
            at,
            store,
            step,
            seen: 0,
            newest: None,
            since: Instant::now(),
            used_before: 0,
            installed: 0,
            next: Instant::now(),
            failures: 0,
            last_warning: None,
        }
    }

    pub(super) async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let Some(source) = shared.sources.get(self.at) else { return };
        if !self.may_begin(source).await {
            return shared.end(self.at);
        }
        // With a step of 1 too, so that what is wrong with the store is found when it is opened.
        while self.open(source).await.is_err() && !self.is_over() {
            self.pause(source, true).await;
        }
        if !self.is_over() {
            let lacks = "numbers that were given: a process that runs notices, and a new one repeats them";
            stores::tell_of_replicas(&source.address, &self.store, lacks).await;
        }
        while !self.is_over() {
            let wants_more = self.step.is_some() && source.segments.wants_more();
            if Instant::now() < self.next {
                // A call that is told why not asks again at once.
                self.pause(source, wants_more || shared.has_request(self.at)).await;
            } else if let Some(request) = shared.next_request(self.at) {
                self.answer(source, request).await;
            } else if wants_more {
                let _ = self.fetch(source).await;
            } else {
                self.pause(source, false).await;
            }
        }
        self.give_back(source).await;
        shared.end(self.at);
    }

    /// Whether it is to end: nobody uses the counter any more, or it could not be opened.
    fn is_over(&self) -> bool {
        self.shared.has_failed()
            || (self.shared.users.are_gone() && self.keeper.forget_counter(&self.shared, false))
    }

    /// Until a call asks, the store is asked again, or the counter is given back.
    async fn pause(&self, source: &Source, wants_more: bool) {
        let next = if wants_more { self.next.saturating_duration_since(Instant::now()) } else { IDLE };
        let pause = self.shared.users.kept_for().map_or(next, |kept| kept.min(next));
        let _ = timeout(pause.max(Duration::from_millis(1)), source.wake.notified()).await;
    }

    /// Of several stores, none gets a record before all were looked at: where their number was changed, the numbers of a new one
    /// may have been given by the others. Waits for that; `false` where it is over before.
    async fn may_begin(&mut self, source: &Source) -> bool {
        let mut is_there = source.place.count == 1;
        while !is_there && !self.shared.is_seen(self.at) {
            match self.look(source).await {
                Ok(found) => is_there = found,
                Err(()) if self.is_over() => return false,
                Err(()) => self.pause(source, true).await,
            }
        }
        // Each of the others wakes it, once it was looked at.
        while !is_there && !self.shared.are_all_seen() {
            if self.is_over() {
                return false;
            }
            self.pause(source, false).await;
        }
        true
    }

    /// Whether the store has the counter.
    async fn look(&mut self, source: &Source) -> Result<bool, ()> {
        if Instant::now() < self.next {
            return Err(());
        }
        let found = self.limited(source, async |store| {
            let found = store.counter(&source.counter).await?;
            found.map_or(Ok(false), |found| check(source, &found, 0).map(|()| true))
        });
        match found.await {
            Ok(is_there) => {
                self.shared.saw(self.at);
                Ok(is_there)
            }
            Err(refusal) => self.gave(source, Err(refusal)).map(|()| false),
        }
    }

    /// The first segment of the counter, which is made where the store has none.
    async fn open(&mut self, source: &Source) -> Result<(), ()> {
        if Instant::now() < self.next {
            return Err(());
        }
        if self.step.is_some() {
            return self.fetch(source).await;
        }
        let start = self.shared.start;
        let opened = self.limited(source, async |store| ensure(store, source, start).await).await;
        self.gave(source, opened.map(drop))
    }

    /// Puts one more segment in hand.
    async fn fetch(&mut self, source: &Source) -> Result<(), ()> {
        let Some(step) = self.step else { return Ok(()) };
        let used = self.installed - source.segments.left();
        let step =
            if self.installed > 0 { step.after(used - self.used_before, self.since.elapsed()) } else { step };
        let reserved = self.reserve(source, step.present(), true).await;
        let given = reserved.map(|numbers| {
            (self.since, self.used_before, self.step) = (Instant::now(), used, Some(step));
            self.shared.counts.step.store(step.present(), Ordering::Relaxed);
            self.install(source, run_of(&numbers));
        });
        self.gave(source, given)
    }

    fn install(&mut self, source: &Source, segment: Run) {
        self.installed += segment.count;
        source.segments.install(segment);
    }

    /// Numbers that are this process's; where fewer are left before the counter's end, those if it `may_be_less`.
    async fn reserve(&mut self, source: &Source, count: u64, may_be_less: bool) -> Result<Numbers, Refusal> {
        let (seen, start) = (self.seen, self.shared.start);
        let attempt =
            async |store: &mut dyn Store| reserve(store, source, start, seen, count, may_be_less).await;
        let numbers = self.limited(source, attempt).await?;
        self.shared.counts.segments.fetch_add(1, Ordering::Relaxed);
        self.seen = self.seen.max(run_of(&numbers).last());
        self.newest = Some(numbers);
        Ok(numbers)
    }

    async fn answer(&mut self, source: &Source, request: Request) {
        match request.what {
            What::Run(wanted) if self.step.is_none() => self.answer_together(source, request, wanted).await,
            _ => self.answer_one(source, request).await,
        }
    }

    /// Where the store is asked for each number, it is asked once for all calls that wait: of many threads none waits for the
    /// round trips of the others.
    async fn answer_together(&mut self, source: &Source, request: Request, wanted: u64) {
        let (mut requests, mut count) = (vec![(request, wanted)], wanted);
        while let Some((request, wanted)) = self.shared.next_run_of(self.at, Reserve::MAX_COUNT - count) {
            requests.push((request, wanted));
            count += wanted;
        }
        let reserved = self.reserve(source, count, false).await;
        if requests.len() > 1 && matches!(reserved, Err(Refusal::End)) {
            // There may be enough for some of them.
            for (request, _) in requests {
                self.answer_one(source, request).await;
            }
            return;
        }
        let _ = self.gave(source, reserved.as_ref().map(drop).map_err(Refusal::clone));
        let mut reserved =
            reserved.map(|numbers| run_of(&numbers)).map_err(|refusal| trouble(source, &refusal));
        self.shared.answer(requests.into_iter().map(|(request, wanted)| {
            let answer = reserved.as_mut().map(|left| Answer::Run(left.split_off(wanted)));
            (request, answer.map_err(|trouble| *trouble))
        }));
    }

    async fn answer_one(&mut self, source: &Source, request: Request) {
        if let What::Run(wanted) = request.what {
            // A segment may have come since the call found too few.
            if let Some((run, skipped)) = source.segments.take_run(wanted) {
                self.shared.counts.skipped.fetch_add(skipped, Ordering::Relaxed);
                return self.shared.answer([(request, Ok(Answer::Run(run)))]);
            }
        }
        let answer = match request.what {
            What::Run(wanted) => self.run_of(source, wanted).await.map(Answer::Run),
            What::Peek => {
                let record =
                    self.limited(source, async |store| Ok(store.counter(&source.counter).await?)).await;
                record.map(Answer::Record)
            }
            What::Raise(number) => {
                let raised = self.limited(source, async |store| raise(store, source, number).await).await;
                // A reply may be lost, but not what it was for.
                self.skip(source);
                raised.map(Answer::Done)
            }
            What::Remove => {
                let removed =
                    self.limited(source, async |store| Ok(store.remove_counter(&source.counter).await?));
                let removed = removed.await;
                self.skip(source);
                // From now on the record is missed, and not made again.
                self.seen = self.seen.max(1);
                removed.map(Answer::Done)
            }
        };
        // There may be too few for a block, and some for the next segment.
        if self.step.is_none() || !matches!(answer, Err(Refusal::End)) {
            let _ = self.gave(source, answer.as_ref().map(drop).map_err(Refusal::clone));
        }
        self.shared.answer([(request, answer.map_err(|refusal| trouble(source, &refusal)))]);
    }

    /// Numbers that follow each other, above all that were given before: what is in hand is passed over.
    async fn run_of(&mut self, source: &Source, wanted: u64) -> Result<Run, Refusal> {
        let count = self.step.map_or(wanted, |step| step.present().max(wanted));
        let mut left = run_of(&self.reserve(source, count, false).await?);
        let run = left.split_off(wanted);
        self.skip(source);
        if self.step.is_some() && left.count > 0 {
            self.install(source, left);
        }
        Ok(run)
    }

    /// Gives up what is in hand.
    fn skip(&mut self, source: &Source) {
        let Rest { left, .. } = source.segments.end();
        self.shared.counts.skipped.fetch_add(left, Ordering::Relaxed);
    }

    /// Gives back what is left of the last segment. A table that has no versions is told once, since it could not tell a second
    /// time from a first.
    async fn give_back(&mut self, source: &Source) {
        let Some(numbers) = self.newest else { return };
        let Some((expected, new)) = given_back(&source.segments.end(), &numbers) else { return };
        let give = async |store: &mut dyn Store| -> Result<bool, Refusal> {
            Ok(store.put_counter(&source.counter, Some(&expected), &new).await?)
        };
        let _ = if expected.version.is_some() {
            stores::until_answered(&source.address, &self.store, async |store| give(store.before()).await)
                .await
        } else {
            self.limited(source, give).await
        };
    }

    /// One go at the store, within its time.
    async fn limited<T>(
        &self,
        source: &Source,
        attempt: impl AsyncFnOnce(&mut dyn Store) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let attempt = async {
            let mut store = self.store.lock().await;
            attempt(store.before()).await
        };
        stores::limited(&source.address, &self.store, attempt).await
    }

    /// Tells those who wait, and the log.
    fn gave(&mut self, source: &Source, given: Result<(), Refusal>) -> Result<(), ()> {
        match given {
            Ok(()) => {
                if self.last_warning.take().is_some() {
                    tell_of(
                        source,
                        Kind::StoreReachable,
                        format!("counter {}: {} answers again", self.name(), source.address),
                    );
                }
                self.failures = 0;
                self.next = Instant::now();
                self.shared.gave(self.at, Ok(()));
                Ok(())
            }
            Err(refusal) => {
                let kind = match refusal {
                    Refusal::Store(StoreError::Unreachable(_)) | Refusal::Contended => Kind::StoreUnreachable,
                    _ => Kind::CounterStopped,
                };
                let trouble = trouble(source, &refusal);
                if self.last_warning.replace(kind) != Some(kind) {
                    tell_of(source, kind, trouble.error.to_string());
                }
                self.failures = self.failures.saturating_add(1);
                let pause = SHORTEST.saturating_mul(1 << self.failures.min(5)).min(LONGEST);
                self.next = Instant::now() + pause / 2 + Duration::from_millis(random() % 50);
                self.shared.gave(self.at, Err(trouble));
                Err(())
            }
        }
    }

    fn name(&self) -> &str {
        self.shared.sources.first().map_or("", |source| &source.counter.name)
    }
}

fn tell_of(source: &Source, kind: Kind, message: String) {
    tell(&Event { kind, node: None, store: source.address.to_string(), message });
}

fn trouble(source: &Source, refusal: &Refusal) -> Trouble {
    let (name, address) = (&source.counter.name, &source.address);
    let (code, why) = match refusal {
        Refusal::Store(error) => (ErrorCode::CounterUnavailable, stores::text_of(error)),
        Refusal::NoRow => (
            ErrorCode::CounterUnavailable,
            format!("{address} has no row for it: a table of others gets none from here"),
        ),
        Refusal::Behind { last: Some(last), seen } => (
            ErrorCode::CounterUnavailable,
            format!(
                "{address} has lost writes: it stands at {last}, and this process had numbers up to {seen} from it. \
                 Raise the counter above all numbers that are in use"
            ),
        ),
        Refusal::Behind { last: None, seen } => (
            ErrorCode::CounterUnavailable,
            format!(
                "{address} has no such counter any more, and this process had numbers up to {seen} from it. \
                 Raise the counter above all numbers that are in use"
            ),
        ),
        Refusal::OtherPlace { found } if source.counter.schema == Schema::Tinyid => (
            ErrorCode::InvalidOption,
            format!(
                "the row of tiny_id_info at {address} has delta {} and remainder {}, and store {} of {} must have delta {} \
                 and remainder {}: give the stores in the order of their remainders",
                found.count,
                found.index,
                source.place.index + 1,
                source.place.count,
                source.place.count,
                source.place.index
            ),
        ),
        Refusal::OtherPlace { found } => (
            ErrorCode::InvalidOption,
            format!(
                "{address} is store {} of {} of it, and is given as store {} of {}: every process must name the same \
                 stores in the same order, and their number cannot be changed",
                found.index + 1,
                found.count,
                source.place.index + 1,
                source.place.count
            ),
        ),
        Refusal::End => (ErrorCode::CounterUnavailable, format!("it has reached its end, {LAST_NUMBER}")),
        Refusal::Contended => {
            (ErrorCode::CounterUnavailable, format!("others were faster each time at {address}"))
        }
    };
    let is_final = !matches!(refusal, Refusal::Store(StoreError::Unreachable(_)) | Refusal::Contended);
    Trouble { error: Error::from_outside(code, &format!("counter {name:?}: {why}")), is_final }
}

/// One go at numbers. It may be dropped at any time: numbers whose reply is lost are lost.
async fn reserve(
    store: &mut dyn Store,
    source: &Source,
    start: u64,
    seen: u64,
    mut count: u64,
    may_be_less: bool,
) -> Result<Numbers, Refusal> {
    let Source { counter, place, .. } = source;
    for _ in 0..MAX_REQUESTS {
        match store.reserve(counter, &Reserve { count, place: *place, seen }).await? {
            Reserved::Numbers(numbers) => return Ok(numbers),
            Reserved::Found(None) => create(store, source, start, seen).await?,
            Reserved::Found(Some(found)) => {
                check(source, &found, seen)?;
                let left = left_above(found.last, found.place);
                if left == 0 || (left < count && !may_be_less) {
                    return Err(Refusal::End);
                }
                count = count.min(left);
            }
        }
    }
    Err(Refusal::Contended)
}

/// Makes the counter where there is none, and looks at it where there is one.
async fn ensure(store: &mut dyn Store, source: &Source, start: u64) -> Result<CounterRecord, Refusal> {
    for _ in 0..MAX_REQUESTS {
        match store.counter(&source.counter).await? {
            Some(found) => return check(source, &found, 0).map(|()| found),
            None => create(store, source, start, 0).await?,
        }
    }
    Err(Refusal::Contended)
}

/// A process that has had numbers of a counter never takes it for a new one.
async fn create(store: &mut dyn Store, source: &Source, start: u64, seen: u64) -> Result<(), Refusal> {
    if source.counter.schema != Schema::Polyflake {
        return Err(Refusal::NoRow);
    }
    if seen > 0 {
        return Err(Refusal::Behind { last: None, seen });
    }
    // Unlike that of a counter of this name which was removed. It leaves room to count up.
    let version = Some(random() >> 12);
    store
        .put_counter(&source.counter, None, &CounterRecord { last: start - 1, version, place: source.place })
        .await?;
    Ok(())
}

fn check(source: &Source, found: &CounterRecord, seen: u64) -> Result<(), Refusal> {
    let is_placed = match source.counter.schema {
        Schema::Polyflake => true,
        // Alone, its row may have any: then others' servers have the rest.
        Schema::Tinyid => source.place.count > 1,
        Schema::Leaf | Schema::Cosid => false,
    };
    if is_placed && found.place != source.place {
        return Err(Refusal::OtherPlace { found: found.place });
    }
    if found.last < seen {
        return Err(Refusal::Behind { last: Some(found.last), seen });
    }
    Ok(())
}

/// Returns whether it was lower, or absent.
async fn raise(store: &mut dyn Store, source: &Source, number: u64) -> Result<bool, Refusal> {
    for _ in 0..MAX_REQUESTS {
        let found = store.counter(&source.counter).await?;
        let version = match &found {
            Some(found) => {
                check(source, found, 0)?;
                if found.last >= number {
                    return Ok(false);
                }
                found.version.map(|version| version + 1)
            }
            None if source.counter.schema != Schema::Polyflake => return Err(Refusal::NoRow),
            None => Some(random() >> 12),
        };
        let place = found.map_or(source.place, |found| found.place);
        let new = CounterRecord { last: number, version, place };
        if store.put_counter(&source.counter, found.as_ref(), &new).await? {
            return Ok(true);
        }
    }
    Err(Refusal::Contended)
}

/// How many numbers there are above `last`.
fn left_above(last: u64, place: Place) -> u64 {
    let Place { index, count } = place;
    let Some(above) = last.checked_add(1).filter(|&above| above <= LAST_NUMBER) else { return 0 };
    // The lowest from there on that is `index` modulo `count`.
    let first = above + (index + count - above % count) % count;
    if first > LAST_NUMBER { 0 } else { (LAST_NUMBER - first) / count + 1 }
}

const fn run_of(numbers: &Numbers) -> Run {
    Run { first: numbers.first, stride: numbers.stride, count: numbers.count }
}

/// What the record is changed to, and from, where a part of the last segment is left: it goes back to the last number that was
/// taken, of the segment before where the two follow each other.
fn given_back(rest: &Rest, newest: &Numbers) -> Option<(CounterRecord, CounterRecord)> {
    let reserved = run_of(newest);
    // What was reserved last may have been a block.
    if rest.newest.count == 0 || rest.newest.last() != reserved.last() || rest.taken == rest.newest.count {
        return None;
    }
    let taken_of =
        |run: &Run, taken: u64| run.first - 1 + if taken == 0 { 0 } else { (taken - 1) * run.stride + 1 };
    let last = match &rest.before {
        Some((before, left)) if before.last() + before.stride == rest.newest.first => {
            taken_of(before, before.count - left)
        }
        _ => taken_of(&rest.newest, rest.taken),
    };
    let place = Place { index: reserved.first % reserved.stride, count: reserved.stride };
    let expected = CounterRecord { last: reserved.last(), version: newest.version, place };
    Some((expected, CounterRecord { last, version: newest.version.map(|version| version + 1), place }))
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl stores::Failure for Refusal {
    fn is_the_stores(&self) -> bool {
        matches!(self, Self::Store(_))
    }

    fn is_temporary(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unreachable(_)) | Self::Contended)
    }
}
