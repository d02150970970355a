//! The state that Counters with the same name share with the tasks that fetch their segments.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use polyflake::{Error, ErrorCode, ThisProcess};
use tokio::sync::Notify;

use super::options::{CounterOptions, invalid};
use super::segments::{Run, Segments};
use super::step::Step;
use crate::store::{CounterName, Place};
use crate::url::Address;
use crate::users::Users;
use crate::watched::{Trouble, Waiting, Watched, lock};

/// The state that Counters with the same name share with the tasks that fetch their segments.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The stores, the namespace and the name, in one string.
    pub(crate) key: String,
    pub(crate) start: u64,
    /// The size of the segments, or `None` for a step of 1, in which case the store is asked for each number.
    pub(crate) step: Option<Step>,
    pub(super) process: ThisProcess,
    /// The counter's stores, in the order of their places.
    pub(crate) sources: Box<[Source]>,
    /// Counts the turns taken by the stores, if there are several.
    turn: AtomicUsize,
    pub(crate) users: Users,
    state: Watched<State>,
    pub(crate) counts: Counts,
    /// Whether a raise or a removal may have written something without its call receiving the result.
    pub(crate) is_unsure: AtomicBool,
}

/// One of a counter's stores, and the numbers that were fetched from it.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) address: Address,
    pub(crate) counter: CounterName,
    pub(crate) place: Place,
    pub(crate) segments: Segments,
    pub(crate) wake: Notify,
}

#[derive(Debug, Default)]
struct State {
    sources: Box<[SourceState]>,
    requests: VecDeque<Request>,
    /// The number of requests made by calls.
    asked: usize,
    /// Whether a call in this process removed the counter.
    is_removed: bool,
    failed: Option<Error>,
}

#[derive(Debug, Default)]
struct SourceState {
    /// Why the last request to the store failed, if it did.
    trouble: Option<Trouble>,
    /// Whether the store's row has been checked and belongs to this counter.
    is_seen: bool,
    /// Whether the store has returned numbers, or is known to be ready to do so.
    is_open: bool,
    /// Whether the store's task has ended.
    is_over: bool,
}

/// A call's request, which a store must answer.
#[derive(Debug)]
pub(crate) struct Request {
    /// The store that must answer, or `None` for any store.
    at: Option<usize>,
    pub(crate) what: What,
    answer: Arc<Mutex<Option<Result<Answer, Trouble>>>>,
}

/// See [`Request`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    /// A run of consecutive numbers, of the given length.
    Run(u64),
    Peek,
    Raise(u64),
    Remove,
}

/// See [`Request`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    Run(Run),
    /// The counter's last reserved number, if the counter exists.
    Last(Option<u64>),
    Done(bool),
}

/// The counts reported in [`CounterStats`](super::CounterStats).
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) segments: AtomicU64,
    pub(crate) skipped: AtomicU64,
    pub(crate) step: AtomicU64,
    pub(super) waits: AtomicU64,
}

impl Source {
    #[inline]
    pub(super) fn take_one(&self) -> Option<u64> {
        self.segments.take_one(|| self.wake.notify_one())
    }

    #[inline]
    pub(super) fn take(&self, wanted: u64) -> Option<Run> {
        let (run, is_time_to_ask) = self.segments.take(wanted)?;
        if is_time_to_ask {
            self.wake.notify_one();
        }
        Some(run)
    }

    /// Returns a key that two sources share if they are for the same counter.
    fn key(&self) -> String {
        let CounterName { namespace, name, schema } = &self.counter;
        let Place { index, count } = self.place;
        format!("{} {namespace} {schema:?} {index}/{count} {name}", self.address.key())
    }
}

impl Shared {
    /// Creates the state. The keeper does not know about it yet.
    pub(super) fn new(options: &CounterOptions) -> Result<Self, Error> {
        let addresses = options.addresses()?;
        let count = addresses.len() as u64;
        let sources: Box<[Source]> = (0..)
            .zip(addresses)
            .map(|(index, address)| Source {
                counter: CounterName {
                    namespace: address.namespace.clone(),
                    name: options.name().into(),
                    schema: address.schema,
                },
                address,
                place: Place { index, count },
                segments: Segments::new(),
                wake: Notify::new(),
            })
            .collect();
        let keys: Vec<_> = sources.iter().map(Source::key).collect();
        let keep = sources.iter().map(|source| source.address.ttl_ms).max().unwrap_or_default();
        let shared = Self {
            key: keys.join(" "),
            start: options.start_number(),
            step: options.first_step(),
            process: ThisProcess::now(),
            turn: AtomicUsize::new(0),
            users: Users::new(Duration::from_millis(keep)),
            state: Watched::new(State {
                sources: sources.iter().map(|_| SourceState::default()).collect(),
                ..State::default()
            }),
            sources,
            counts: Counts::default(),
            is_unsure: AtomicBool::new(false),
        };
        shared.counts.step.store(shared.step.map_or(1, Step::present), Ordering::Relaxed);
        Ok(shared)
    }

    /// Checks that the options are the same. Counters with different options cannot share the numbers they
    /// have fetched.
    pub(crate) fn check_same(&self, other: &Self) -> Result<(), Error> {
        let mut pairs = self.sources.iter().zip(&other.sources);
        if let Some(differ) = pairs.find_map(|(one, other)| one.address.other_promises(&other.address)) {
            return Err(invalid(&format!("this process uses the counter {differ}")));
        }
        if (self.start, self.step) == (other.start, other.step) {
            return Ok(());
        }
        let text = |it: &Self| match it.step {
            None => format!("start={} and step=1", it.start),
            Some(Step::Auto { .. }) => format!("start={} and step=auto", it.start),
            Some(Step::Fixed(step)) => format!("start={} and step={step}", it.start),
        };
        Err(invalid(&format!(
            "this process uses the counter with {} already, not with {}",
            text(self),
            text(other)
        )))
    }

    #[inline(never)]
    pub(super) fn in_turn<T>(&self, sources: &[Source], take: impl FnMut(&Source) -> Option<T>) -> Option<T> {
        let turn = self.next_turn();
        let (before, after) = sources.split_at_checked(turn)?;
        after.iter().chain(before).find_map(take)
    }

    /// Takes `wanted` consecutive numbers, and returns the first. Returns `None` if the process has not
    /// fetched that many.
    pub(super) fn take_block(&self, source: &Source, wanted: u64) -> Option<u64> {
        let (run, skipped) = source.segments.take_run(wanted)?;
        self.counts.skipped.fetch_add(skipped, Ordering::Relaxed);
        source.wake.notify_one();
        Some(run.first)
    }

    fn next_turn(&self) -> usize {
        self.turn.fetch_add(1, Ordering::Relaxed) % self.sources.len().max(1)
    }

    pub(super) fn left(&self, is_closed: bool) {
        if self.users.leave(is_closed) {
            self.wake();
        }
    }

    pub(super) fn wake(&self) {
        self.wake_from(0);
    }

    fn wake_from(&self, first: usize) {
        let (before, after) = self.sources.split_at_checked(first).unwrap_or_default();
        after.iter().chain(before).for_each(|source| source.wake.notify_one());
    }

    /// Queues a request for the store `at`, and wakes the tasks. If `at` is `None`, any store may answer.
    pub(super) fn ask(&self, at: Option<usize>, what: What) -> Pending {
        let answer = Arc::new(Mutex::new(None));
        let mut state = self.state.get();
        // After a failure, no task is left to take the request out of the queue.
        if state.failed.is_none() {
            state.requests.push_back(Request { at, what, answer: Arc::clone(&answer) });
        }
        // Wake a different store first each time, so that all stores are used equally.
        state.asked = state.asked.wrapping_add(1);
        let first = state.asked % self.sources.len().max(1);
        drop(state);
        self.wake_from(first);
        Pending(answer)
    }

    /// For a store's task: takes the next request that this store may answer.
    pub(crate) fn next_request(&self, at: usize) -> Option<Request> {
        let mut state = self.state.get();
        let position = state.next_for(at)?;
        state.requests.remove(position)
    }

    /// For a store's task: takes the next request if it asks for at most `most` numbers. Also returns how
    /// many it asks for.
    pub(crate) fn next_run_of(&self, at: usize, most: u64) -> Option<(Request, u64)> {
        let mut state = self.state.get();
        let position = state.next_for(at)?;
        match state.requests.get(position)?.what {
            What::Run(wanted) if wanted <= most => Some((state.requests.remove(position)?, wanted)),
            _ => None,
        }
    }

    /// For a store's task: returns true if there is a request that this store may answer.
    pub(crate) fn has_request(&self, at: usize) -> bool {
        self.state.get().next_for(at).is_some()
    }

    /// For a store's task: passes the answers to the waiting calls.
    pub(crate) fn answer(&self, answers: impl IntoIterator<Item = (Request, Result<Answer, Trouble>)>) {
        let mut is_removed = false;
        for (request, answer) in answers {
            is_removed |= matches!((request.what, answer), (What::Remove, Ok(Answer::Done(true))));
            *lock(&request.answer) = Some(answer);
        }
        self.state.change(|state| state.is_removed |= is_removed);
    }

    /// For a store's task: records that the store's row has been checked and belongs to this counter.
    pub(crate) fn saw(&self, at: usize) {
        self.state.change(|state| {
            if let Some(source) = state.sources.get_mut(at) {
                source.is_seen = true;
            }
        });
        self.wake();
    }

    pub(crate) fn is_seen(&self, at: usize) -> bool {
        self.state.get().sources.get(at).is_some_and(|source| source.is_seen)
    }

    pub(crate) fn are_all_seen(&self) -> bool {
        self.state.get().sources.iter().all(|source| source.is_seen)
    }

    /// For a store's task: records whether the last request to the store succeeded.
    pub(crate) fn gave(&self, at: usize, given: Result<(), Trouble>) {
        // With a step of 1, the answer itself wakes the calls. If nothing has changed, do not wake them
        // twice.
        let is_known = |of: &SourceState| of.is_open && of.trouble.is_none();
        if self.step.is_none() && given.is_ok() && self.state.get().sources.get(at).is_some_and(is_known) {
            return;
        }
        self.state.change(|state| {
            if let Some(source) = state.sources.get_mut(at) {
                source.is_open |= given.is_ok();
                source.trouble = given.err();
            }
        });
    }

    /// For a store's task: records that the task has ended. When the last task ends, so does the counter.
    pub(crate) fn end(&self, at: usize) {
        self.state.change(|state| {
            if let Some(source) = state.sources.get_mut(at) {
                source.is_over = true;
            }
        });
        if self.state.get().sources.iter().all(|source| source.is_over) {
            self.users.end();
        }
    }

    /// Ends the counter with an error, which its calls return. Wakes the calls and the stores' tasks.
    pub(crate) fn fail(&self, error: Error) {
        self.state.change(|state| {
            state.failed = Some(error);
            state.requests.clear();
        });
        self.wake();
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failure().is_some()
    }

    /// If the counter was removed, returns the error for its calls. The next call that opens a counter with
    /// this name creates a new one.
    pub(crate) fn removed(&self) -> Option<Error> {
        let error = |source: &Source| {
            let (name, address) = (&source.counter.name, &source.address);
            unavailable(&format!("counter {name:?}: it was removed from {address}"))
        };
        let state = self.state.get();
        let mut sources = self.sources.iter().zip(&state.sources);
        // If another process removed the counter, this process still issues the numbers it has fetched.
        let is_removed = state.is_removed
            || (self.in_hand() == 0
                && sources.all(|(source, of)| of.final_trouble().is_some_and(|it| it == error(source))));
        is_removed.then(|| self.sources.first().map(error))?
    }

    pub(super) fn failure(&self) -> Option<Error> {
        self.state.get().failed
    }

    /// Wakes the waiting calls, so that they notice if their Counter was closed.
    pub(super) fn tell_waiting(&self) {
        self.state.change(|_| {});
    }

    /// Returns a result once a store has returned numbers, or once waiting for numbers is pointless, and
    /// `None` before that.
    pub(super) fn opened(&self) -> Option<Result<(), Error>> {
        let state = self.state.get();
        if let Some(error) = state.failed {
            return Some(Err(error));
        }
        // Fetched numbers are issued even if the store now refuses requests.
        if self.in_hand() > 0 {
            return Some(Ok(()));
        }
        let final_troubles = || state.sources.iter().filter_map(SourceState::final_trouble);
        // If one store belongs to another counter, the whole list is wrong, so do not use any store in it.
        if let Some(refused) = final_troubles().find(|error| error.code() == ErrorCode::InvalidOption) {
            return Some(Err(refused));
        }
        // If the rows are in other systems' tables, no store may return numbers until all rows have been
        // checked.
        if state.sources.iter().any(|source| source.is_seen) {
            let mut unseen = state.sources.iter().filter(|source| !source.is_seen);
            if let Some(error) = unseen.find_map(SourceState::final_trouble) {
                return Some(Err(error));
            }
        }
        // Skip a store that refuses requests, just like one that is down. A new counter needs an answer from
        // every store before any of them is open.
        let mut open = state.sources.iter().filter(|source| source.final_trouble().is_none());
        if open.any(|source| source.is_open) {
            return Some(Ok(()));
        }
        let error = final_troubles().next()?;
        (final_troubles().count() == state.sources.len()).then_some(Err(error))
    }

    /// If no store can return numbers, returns the first store's error. If `is_final`, does so only if
    /// waiting would not help with any store.
    pub(super) fn trouble(&self, is_final: bool) -> Option<Error> {
        let state = self.state.get();
        if state.failed.is_some() {
            return state.failed;
        }
        let mut troubles = state.sources.iter().map(|source| source.trouble);
        let first = troubles.next()??;
        let is_so = |trouble: Option<Trouble>| trouble.is_some_and(|it| it.is_final || !is_final);
        (is_so(Some(first)) && troubles.all(is_so)).then_some(first.error)
    }

    /// Returns the reason a counter on several stores has not issued any numbers yet.
    pub(super) fn unseen(&self) -> Option<Error> {
        let state = self.state.get();
        if state.sources.iter().any(|source| source.is_open) {
            return None;
        }
        let trouble = state.sources.iter().find_map(|source| source.trouble.filter(|_| !source.is_seen))?;
        let why = trouble.error.to_string();
        Some(unavailable(&format!(
            "none of its stores has it yet; it is created once all of them answer: {why}"
        )))
    }

    /// Calls `look` after every change until it returns a result, for at most `longest`.
    pub(super) async fn wait_for<T, W: Waiting>(
        &self,
        wait: &mut W,
        longest: Duration,
        look: impl FnMut() -> Option<Result<T, Error>>,
        too_late: impl FnOnce() -> Error,
    ) -> Result<T, W::Error> {
        self.state.wait_for(wait, longest, look, too_late).await
    }

    pub(super) fn skipped(&self) -> u64 {
        let given_up: u64 = self.sources.iter().map(|source| source.segments.given_up()).sum();
        self.counts.skipped.load(Ordering::Relaxed) + given_up
    }

    pub(super) fn in_hand(&self) -> u64 {
        self.sources.iter().map(|source| source.segments.left()).sum()
    }

    pub(super) fn too_few_in_hand(&self) -> Error {
        if self.in_hand() == 0 {
            return self.none_in_hand();
        }
        unavailable("this process has fewer numbers left: a call that waits gets them all")
    }

    pub(super) fn none_in_hand(&self) -> Error {
        self.wake();
        self.trouble(false)
            .unwrap_or_else(|| unavailable("this process has no numbers left, and asks the store for more"))
    }

    pub(super) fn too_late(&self) -> Error {
        self.trouble(false).or_else(|| self.unseen()).unwrap_or_else(|| {
            let stores: Vec<_> = self.sources.iter().map(|source| source.address.to_string()).collect();
            unavailable(&format!("the store gave no number within the longest wait: {}", stores.join(", ")))
        })
    }
}

impl SourceState {
    /// Returns the error if waiting for this store would not help.
    fn final_trouble(&self) -> Option<Error> {
        self.trouble.filter(|trouble| trouble.is_final).map(|trouble| trouble.error)
    }
}

impl State {
    /// Returns the position of the first request that the store `at` may answer. Drops requests whose calls
    /// have given up.
    fn next_for(&mut self, at: usize) -> Option<usize> {
        loop {
            let is_for_it = |request: &Request| request.at.is_none_or(|only| only == at);
            let position = self.requests.iter().position(is_for_it)?;
            if self.requests.get(position)?.is_waited_for() {
                return Some(position);
            }
            self.requests.remove(position);
        }
    }
}

impl Request {
    /// Returns true if the call is still waiting for the answer.
    pub(crate) fn is_waited_for(&self) -> bool {
        Arc::strong_count(&self.answer) > 1
    }
}

/// An answer that a call is waiting for.
#[derive(Debug)]
pub(super) struct Pending(Arc<Mutex<Option<Result<Answer, Trouble>>>>);

impl Pending {
    pub(super) fn answer(&self) -> Option<Result<Answer, Trouble>> {
        *lock(&self.0)
    }
}

pub(super) fn unavailable(message: &str) -> Error {
    Error::from_outside(ErrorCode::CounterUnavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(store: &str) -> Shared {
        Shared::new(&CounterOptions::new("orders").store(store)).unwrap()
    }

    #[test]
    fn it_opens_as_long_as_numbers_are_in_hand() {
        let orders = shared("redis://host");
        assert_eq!(orders.opened(), None);
        orders.sources[0].segments.install(Run { first: 1, stride: 1, count: 2 });
        let error = unavailable("it refuses");
        orders.gave(0, Err(Trouble { error, is_final: true }));
        assert_eq!(orders.opened(), Some(Ok(())));
        assert_eq!(orders.sources[0].take(2).unwrap().count, 2);
        assert_eq!(orders.opened(), Some(Err(error)));
    }

    #[test]
    fn one_store_that_refuses_is_passed_over() {
        let error = unavailable("it refuses");
        let [refuses, is_down] = [true, false].map(|is_final| Trouble { error, is_final });
        for (bad, good) in [(0, 1), (1, 0)] {
            let options = CounterOptions::new("orders").store("redis://one").store("redis://two");
            let orders = Shared::new(&options).unwrap();
            orders.gave(bad, Err(refuses));
            // The other store has not answered yet.
            assert_eq!(orders.opened(), None);
            orders.gave(good, Err(is_down));
            assert_eq!(orders.opened(), None);
            orders.gave(good, Ok(()));
            assert_eq!(orders.opened(), Some(Ok(())));
            orders.gave(good, Err(refuses));
            assert_eq!(orders.opened(), Some(Err(error)));
            // If one store belongs to another list, the whole list is refused.
            orders.gave(good, Ok(()));
            let other = invalid("it is store 1 of 3");
            orders.gave(bad, Err(Trouble { error: other, is_final: true }));
            assert_eq!(orders.opened(), Some(Err(other)));
        }
    }

    /// If the rows are in other systems' tables, no store may return numbers until all rows have been
    /// checked.
    #[test]
    fn one_row_that_cannot_be_had_stops_all() {
        let options = CounterOptions::new("orders")
            .store("mysql://one/shop?schema=tinyid")
            .store("mysql://two/shop?schema=tinyid");
        let orders = Shared::new(&options).unwrap();
        let error = unavailable("it has no such row");
        orders.gave(0, Err(Trouble { error, is_final: true }));
        assert_eq!(orders.opened(), None);
        orders.saw(1);
        assert_eq!(orders.opened(), Some(Err(error)));
    }

    #[test]
    fn after_a_failure_nothing_is_asked() {
        let orders = shared("redis://host");
        let before = orders.ask(None, What::Peek);
        let error = unavailable("its task panicked");
        orders.fail(error);
        let after = orders.ask(None, What::Peek);
        assert_eq!(orders.failure(), Some(error));
        assert!(!orders.has_request(0));
        drop((before, after));
    }

    #[test]
    fn two_share_numbers_only_on_the_same_terms() {
        let orders = shared("redis://host");
        orders.check_same(&shared("redis://host?label=other&clock_difference=1s")).unwrap();
        for (more, says) in [
            ("replicas=1", "replicas=1"),
            ("durability=none", "durability=none"),
            ("ttl=1h", "ttl=30s, clock_difference=1s, replicas=0 already, not with ttl=1h"),
            ("clock_difference=2s", "not with ttl=30s, clock_difference=2s"),
        ] {
            let error = orders.check_same(&shared(&format!("redis://host?{more}"))).unwrap_err();
            assert_eq!(error.code(), ErrorCode::InvalidOption);
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
