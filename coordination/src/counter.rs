//! Counters: numbers from 1 up, which a store hands out in segments.
//!
//! A number's path: [`Counter::next_id`] → the segments in hand ([`segments`]) → the number. Where none is in hand, the call waits
//! for the keeper, which asks the store ([`crate::keeper`]) for as many as [`step`] says.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use polyflake::{Error, ErrorCode, IdGenerator, Number, ThisProcess, ThreadWait, Wait, batch_size};
use tokio::sync::Notify;

use crate::keeper::{LOOK_EVERY, Users, lock};
use crate::store::{CounterName, CounterRecord, LAST_NUMBER, Place, Reserve};
use crate::url::Address;
use crate::watched::Watched;

mod options;
pub(crate) mod segments;
pub(crate) mod step;

pub use options::CounterOptions;
pub(crate) use options::check_name;
use segments::{Run, Segments};
use step::Step;

/// Numbers that count up, each given once: 1, 2, 3 and so on, for order numbers or as the keys of a table. A store hands them out in
/// segments, so that a number costs no round trip.
///
/// ```no_run
/// use polyflake_coordination::Counter;
/// let orders = Counter::open("orders", "postgres://host/shop")?;
/// let number: u64 = orders.next_id()?;
/// # Ok::<(), polyflake::Error>(())
/// ```
///
/// # Guarantees
///
/// - No number is given twice, by whichever process, as long as the store loses no write that it acknowledged.
/// - Each number is greater than every number that this process got before the call began (with one store).
/// - A process that ends without [`close`](Self::close) leaves a gap of at most the numbers that it had in hand: two segments of
///   at most the [step](CounterOptions::step) each.
///
/// All Counters of a process with the same store and name share what is in hand. After a fork, a child's fetches numbers of
/// its own.
pub struct Counter {
    shared: Arc<Shared>,
    options: CounterOptions,
    is_closed: AtomicBool,
    /// What stands for this one in a child that inherited it.
    of_child: AtomicPtr<Counter>,
}

/// What the Counters of one name share with the tasks that fetch their segments.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The stores, the namespace and the name.
    pub(crate) key: String,
    pub(crate) start: u64,
    /// `None` where the store is asked for each number.
    pub(crate) step: Option<Step>,
    process: ThisProcess,
    /// One for each store.
    pub(crate) sources: Box<[Source]>,
    /// Of several stores, whose turn it is.
    turn: AtomicUsize,
    pub(crate) users: Users,
    state: Watched<State>,
    pub(crate) counts: Counts,
}

/// A store of a counter, and what is in hand of its numbers.
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
    failed: Option<Error>,
}

#[derive(Debug, Default)]
struct SourceState {
    requests: VecDeque<Request>,
    /// Why the store gave nothing when it was last asked.
    trouble: Option<Trouble>,
    /// Whether it was looked at, and has nothing of another kind.
    is_seen: bool,
    /// Whether it has given, or would give.
    is_open: bool,
    /// Whether its task has ended.
    is_over: bool,
}

/// Why a store gave no number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trouble {
    pub(crate) error: Error,
    /// Whether waiting does not help.
    pub(crate) is_final: bool,
}

/// Something that a call wants of the store itself.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) what: What,
    answer: Arc<Mutex<Option<Result<Answer, Trouble>>>>,
}

/// See [`Request`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    /// Numbers that follow each other.
    Run(u64),
    Peek,
    Raise(u64),
    Remove,
}

/// See [`Request`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Answer {
    Run(Run),
    Record(Option<CounterRecord>),
    Done(bool),
}

/// For [`CounterStats`].
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) segments: AtomicU64,
    pub(crate) skipped: AtomicU64,
    pub(crate) step: AtomicU64,
    waits: AtomicU64,
}

/// What an operator may want to graph, from [`Counter::stats`]. Counted since the first Counter of that name was made, by all of
/// this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CounterStats {
    /// How many numbers are in hand.
    pub in_hand: u64,
    /// How many numbers the next segment has.
    pub step: u64,
    /// How often the store gave numbers.
    pub segments: u64,
    /// How many numbers were passed over, so that a block is one run and numbers go on increasing.
    pub skipped: u64,
    /// How often a call found no number in hand and waited or gave up.
    pub waits: u64,
}

impl Counter {
    /// The counter of that name in a store, with the default options.
    ///
    /// # Errors
    ///
    /// Those of [`CounterOptions::open`].
    pub fn open(name: &str, store: &str) -> Result<Self, Error> {
        CounterOptions::new(name).store(store).open()
    }

    /// The next number.
    ///
    /// # Errors
    ///
    /// - `counter_unavailable` if no number is in hand and the store gives none within `max_wait_ms`; at once where waiting does
    ///   not help: the store refuses, has lost the counter, or the counter has reached 2^63-1.
    /// - `closed` after [`close`](Self::close).
    #[inline]
    pub fn next_id(&self) -> Result<u64, Error> {
        match self.number_in_hand() {
            Some(number) => Ok(number),
            None => self.next_id_later(&mut ThreadWait::new()),
        }
    }

    /// [`next_id`](Self::next_id), waiting in the caller's way.
    ///
    /// # Errors
    ///
    /// Those of [`next_id`](Self::next_id), or what interrupted the wait.
    #[inline]
    pub fn next_id_with<W: Wait>(&self, wait: &mut W) -> Result<u64, W::Error> {
        match self.number_in_hand() {
            Some(number) => Ok(number),
            None => self.next_id_later(wait),
        }
    }

    /// The next number, if one is in hand: it does not wait for the store.
    ///
    /// # Errors
    ///
    /// `counter_unavailable` if none is in hand: the store is asked for more meanwhile. Always with a step of 1, which keeps none
    /// in hand. `closed` after [`close`](Self::close).
    pub fn try_next_id(&self) -> Result<u64, Error> {
        let counter = self.here()?;
        counter.take(1).map_or_else(|| Err(counter.shared.none_in_hand()), |run| Ok(run.first))
    }

    /// `n` numbers (1 to 16,777,216). They are increasing, and need not follow each other.
    ///
    /// # Errors
    ///
    /// Those of [`next_id`](Self::next_id), and `invalid_option` for another `n`. An error loses the numbers that were taken already:
    /// they are not given again.
    pub fn next_ids(&self, n: impl Into<Number>) -> Result<Vec<u64>, Error> {
        let mut numbers = vec![0; batch_size(n)?];
        self.fill(&mut numbers)?;
        Ok(numbers)
    }

    /// Fills `numbers`.
    ///
    /// # Errors
    ///
    /// Those of [`next_id`](Self::next_id). An error loses the numbers that were taken already: they are not given again.
    #[inline]
    pub fn fill(&self, numbers: &mut [u64]) -> Result<(), Error> {
        self.fill_with(numbers, &mut ThreadWait::new())
    }

    /// [`fill`](Self::fill), waiting in the caller's way.
    ///
    /// # Errors
    ///
    /// Those of [`fill`](Self::fill), or what interrupted the wait.
    #[inline]
    pub fn fill_with<W: Wait>(&self, mut numbers: &mut [u64], wait: &mut W) -> Result<(), W::Error> {
        let counter = self.here()?;
        while !numbers.is_empty() {
            let wanted = numbers.len() as u64;
            let run = match counter.take(wanted) {
                Some(run) => run,
                None => counter.run_later(wanted, wait)?,
            };
            numbers = write_to(run, numbers);
        }
        Ok(())
    }

    /// Fills `numbers` with what is in hand, if that is enough: it does not wait for the store, and takes none otherwise.
    ///
    /// # Errors
    ///
    /// Those of [`try_next_id`](Self::try_next_id). Where another thread takes numbers at the same time, those that were taken already
    /// are lost: they are not given again.
    pub fn try_fill(&self, mut numbers: &mut [u64]) -> Result<(), Error> {
        let counter = self.here()?;
        if counter.shared.in_hand() < numbers.len() as u64 {
            return Err(counter.shared.too_few_in_hand());
        }
        while !numbers.is_empty() {
            let run = counter.take(numbers.len() as u64).ok_or_else(|| counter.shared.none_in_hand())?;
            numbers = write_to(run, numbers);
        }
        Ok(())
    }

    /// The first of `n` numbers that follow each other (1 to 16,777,216): the last is it plus `n` - 1. Where fewer than `n` are left
    /// of what is in hand, those are passed over, and the store is asked.
    ///
    /// # Errors
    ///
    /// Those of [`next_id`](Self::next_id), and `invalid_option` for another `n`, or with several stores, whose numbers do not
    /// follow each other.
    pub fn next_block(&self, n: impl Into<Number>) -> Result<u64, Error> {
        self.next_block_with(n, &mut ThreadWait::new())
    }

    /// [`next_block`](Self::next_block), waiting in the caller's way.
    ///
    /// # Errors
    ///
    /// Those of [`next_block`](Self::next_block), or what interrupted the wait.
    pub fn next_block_with<W: Wait>(&self, n: impl Into<Number>, wait: &mut W) -> Result<u64, W::Error> {
        let wanted = batch_size(n)? as u64;
        let shared = &self.here()?.shared;
        let [source] = &*shared.sources else {
            return Err(
                invalid("a block is one run of numbers, which several stores together do not give").into()
            );
        };
        if let Some(first) = shared.take_block(source, wanted) {
            return Ok(first);
        }
        shared.counts.waits.fetch_add(1, Ordering::Relaxed);
        match self.here()?.ask(What::Run(wanted), wait)? {
            Answer::Run(run) => Ok(run.first),
            Answer::Record(_) | Answer::Done(_) => Err(other_answer().into()),
        }
    }

    /// [`next_block`](Self::next_block), if so many that follow each other are in hand: it neither waits for the store nor asks it.
    #[doc(hidden)]
    pub fn try_next_block(&self, n: impl Into<Number>) -> Result<Option<u64>, Error> {
        let wanted = batch_size(n)? as u64;
        let shared = &self.here()?.shared;
        match &*shared.sources {
            [source] => Ok(shared.take_block(source, wanted)),
            _ => Ok(None),
        }
    }

    /// The counter as an iterator that never ends, but for an error.
    pub const fn iter(&self) -> CounterIter<'_> {
        CounterIter(self)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.options.name()
    }

    /// What an operator may want to graph.
    ///
    /// # Errors
    ///
    /// `closed` after [`close`](Self::close).
    pub fn stats(&self) -> Result<CounterStats, Error> {
        let shared = &self.here()?.shared;
        let Counts { segments, skipped, step, waits } = &shared.counts;
        Ok(CounterStats {
            in_hand: shared.in_hand(),
            step: step.load(Ordering::Relaxed),
            segments: segments.load(Ordering::Relaxed),
            skipped: skipped.load(Ordering::Relaxed),
            waits: waits.load(Ordering::Relaxed),
        })
    }

    /// The highest number that the store has handed out, in segments, to any process; 0 before the first. Asks the store.
    ///
    /// # Errors
    ///
    /// `counter_unavailable` if the store cannot be reached within `max_wait_ms` or has no such counter; `closed`.
    pub fn peek(&self) -> Result<u64, Error> {
        self.peek_with(&mut ThreadWait::new())
    }

    /// [`peek`](Self::peek), waiting in the caller's way.
    ///
    /// # Errors
    ///
    /// Those of [`peek`](Self::peek), or what interrupted the wait.
    pub fn peek_with<W: Wait>(&self, wait: &mut W) -> Result<u64, W::Error> {
        let mut highest = None;
        for answer in self.here()?.ask_all(What::Peek, wait)? {
            if let Answer::Record(Some(record)) = answer {
                highest = highest.max(Some(record.last));
            }
        }
        let none = || unavailable(&format!("the store has no counter {}", self.name()));
        highest.ok_or_else(|| none().into())
    }

    /// Lets no number up to `number` be handed out any more: the next is above it. What is in hand is given up.
    /// It changes nothing where the counter is further already.
    ///
    /// # Errors
    ///
    /// Those of [`peek`](Self::peek), and `invalid_option` for a number that is not 1 to 2^63-1.
    pub fn raise(&self, number: impl Into<Number>) -> Result<(), Error> {
        self.raise_with(number, &mut ThreadWait::new())
    }

    /// [`raise`](Self::raise), waiting in the caller's way.
    ///
    /// # Errors
    ///
    /// Those of [`raise`](Self::raise), or what interrupted the wait.
    pub fn raise_with<W: Wait>(&self, number: impl Into<Number>, wait: &mut W) -> Result<(), W::Error> {
        let number = number.into().in_range("number", 1, LAST_NUMBER)?;
        let counter = self.here()?;
        counter.ask_all(What::Raise(number), wait)?;
        Ok(())
    }

    /// Deletes the counter from the store. Whoever opens it later begins at its start again, and numbers repeat. This process's
    /// Counters of that name give none from then on. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// Those of [`peek`](Self::peek), also in a table of others.
    pub fn remove(&self) -> Result<bool, Error> {
        self.remove_with(&mut ThreadWait::new())
    }

    /// [`remove`](Self::remove), waiting in the caller's way.
    ///
    /// # Errors
    ///
    /// Those of [`remove`](Self::remove), or what interrupted the wait.
    pub fn remove_with<W: Wait>(&self, wait: &mut W) -> Result<bool, W::Error> {
        let answers = self.here()?.ask_all(What::Remove, wait)?;
        Ok(answers.iter().any(|answer| matches!(answer, Answer::Done(true))))
    }

    /// Closes it: calls fail with `closed`, also those that wait. The last one of a name in this process gives back what it has in
    /// hand of its last segment, and waits for the store until that is done, but no longer than one attempt takes.
    pub fn close(&self) {
        if let Some(give_back) = self.close_later() {
            give_back.run();
        }
    }

    /// As [`close`](Self::close), without waiting: what waits for the store is returned, for another thread. Dropping it is fine.
    #[doc(hidden)]
    pub fn close_later(&self) -> Option<CounterGiveBack> {
        if let Some(child) = self.child() {
            return child.close_later();
        }
        let is_first = !self.is_closed.swap(true, Ordering::AcqRel) && self.shared.process.is_alive();
        is_first.then(|| {
            self.shared.left(true);
            CounterGiveBack(Arc::clone(&self.shared))
        })
    }

    /// The first of what is in hand, unless the call must look at more than that.
    #[inline]
    fn number_in_hand(&self) -> Option<u64> {
        if self.is_closed.load(Ordering::Relaxed) || !self.shared.process.is_alive() {
            return None;
        }
        self.take(1).map(|run| run.first)
    }

    #[cold]
    fn next_id_later<W: Wait>(&self, wait: &mut W) -> Result<u64, W::Error> {
        let counter = self.here()?;
        match counter.take(1) {
            Some(run) => Ok(run.first),
            None => Ok(counter.run_later(1, wait)?.first),
        }
    }

    /// Up to `wanted` numbers that follow each other, of what is in hand.
    #[inline]
    fn take(&self, wanted: u64) -> Option<Run> {
        match &*self.shared.sources {
            [source] => source.take(wanted),
            sources => self.shared.take_in_turn(sources, wanted),
        }
    }

    /// As [`take`](Self::take), waiting for the store.
    #[cold]
    fn run_later<W: Wait>(&self, wanted: u64, wait: &mut W) -> Result<Run, W::Error> {
        self.shared.counts.waits.fetch_add(1, Ordering::Relaxed);
        if self.shared.step.is_none() {
            return match self.ask(What::Run(wanted.min(Reserve::MAX_COUNT)), wait)? {
                Answer::Run(run) => Ok(run),
                Answer::Record(_) | Answer::Done(_) => Err(other_answer().into()),
            };
        }
        self.wait_for(wait, |shared| {
            if let Some(run) = self.take(wanted) {
                return Some(Ok(run));
            }
            shared.wake();
            shared.trouble(true).map(Err)
        })
    }

    /// What one of the stores answers: another, where one does not.
    fn ask<W: Wait>(&self, what: What, wait: &mut W) -> Result<Answer, W::Error> {
        let shared = &self.shared;
        let mut at = shared.next_turn();
        let mut pending: Option<Pending> = None;
        self.wait_for(wait, |shared| {
            if let Some(answer) = pending.as_ref().and_then(Pending::answer) {
                match answer {
                    Ok(answer) => return Some(Ok(answer)),
                    Err(trouble) if trouble.is_final => return Some(Err(trouble.error)),
                    Err(_) => {
                        at = (at + 1) % shared.sources.len();
                        pending = None;
                    }
                }
            }
            pending.get_or_insert_with(|| shared.ask(at, what));
            None
        })
    }

    /// What each of the stores answers.
    fn ask_all<W: Wait>(&self, what: What, wait: &mut W) -> Result<Vec<Answer>, W::Error> {
        let mut answers = Vec::new();
        for at in 0..self.shared.sources.len() {
            let mut pending: Option<Pending> = None;
            answers.push(self.wait_for(wait, |shared| {
                match pending.as_ref().and_then(Pending::answer) {
                    Some(Ok(answer)) => return Some(Ok(answer)),
                    Some(Err(trouble)) if trouble.is_final => return Some(Err(trouble.error)),
                    Some(Err(_)) => pending = None,
                    None => {}
                }
                pending.get_or_insert_with(|| shared.ask(at, what));
                None
            })?);
        }
        Ok(answers)
    }

    /// Looks whenever something has changed, for at most `max_wait_ms`.
    fn wait_for<T, W: Wait>(
        &self,
        wait: &mut W,
        mut look: impl FnMut(&Shared) -> Option<Result<T, Error>>,
    ) -> Result<T, W::Error> {
        let shared = &self.shared;
        let longest = Duration::from_millis(self.options.longest_wait_ms().into());
        let is_closed = || self.is_closed.load(Ordering::Relaxed);
        let look = || look(shared).or_else(|| is_closed().then(|| Err(closed())));
        shared.state.wait_for(wait, longest, look, || shared.too_late())
    }

    /// This one, or what stands for it in a child.
    fn here(&self) -> Result<&Self, Error> {
        if let Some(child) = self.child() {
            return child.here();
        }
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(closed());
        }
        if self.shared.process.is_alive() {
            return Ok(self);
        }
        // Its locks may be held for ever, and what is in hand is the parent's.
        let made = Box::into_raw(Box::new(self.options.join()?));
        let kept = match self.of_child.compare_exchange(
            core::ptr::null_mut(),
            made,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => made,
            Err(other) => {
                // SAFETY: the exchange failed, so that nobody else knows it.
                #[allow(unsafe_code)]
                drop(unsafe { Box::from_raw(made) });
                other
            }
        };
        // SAFETY: what is stored there is never changed, and lives as long as this does.
        #[allow(unsafe_code)]
        Ok(unsafe { &*kept })
    }

    fn child(&self) -> Option<&Self> {
        // SAFETY: as above.
        #[allow(unsafe_code)]
        unsafe {
            self.of_child.load(Ordering::Acquire).as_ref()
        }
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counter").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        let child = self.of_child.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if !child.is_null() {
            // SAFETY: it was made by `Box::into_raw`, and nobody else has it any more.
            #[allow(unsafe_code)]
            drop(unsafe { Box::from_raw(child) });
        }
        if !*self.is_closed.get_mut() && self.shared.process.is_alive() {
            self.shared.left(false);
        }
    }
}

/// What is left to wait for after [`Counter::close_later`].
#[doc(hidden)]
#[derive(Debug)]
pub struct CounterGiveBack(Arc<Shared>);

impl CounterGiveBack {
    /// Waits until the store has what was in hand, but no longer than one attempt takes.
    pub fn run(self) {
        let attempts = self.0.sources.iter().map(|source| source.address.attempt());
        self.0.users.wait_until_over(attempts.max().unwrap_or_default() + LOOK_EVERY);
    }
}

/// Numbers of a counter, from [`Counter::iter`].
#[derive(Debug, Clone)]
pub struct CounterIter<'a>(&'a Counter);

impl Iterator for CounterIter<'_> {
    type Item = Result<u64, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next_id())
    }
}

impl IdGenerator for Counter {
    type Error = Error;

    fn next_id(&self) -> Result<u64, Error> {
        Self::next_id(self)
    }

    fn fill(&self, ids: &mut [u64]) -> Result<(), Error> {
        Self::fill(self, ids)
    }
}

impl<'a> IntoIterator for &'a Counter {
    type Item = Result<u64, Error>;
    type IntoIter = CounterIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl Source {
    #[inline]
    fn take(&self, wanted: u64) -> Option<Run> {
        let (run, is_time_to_ask) = self.segments.take(wanted)?;
        if is_time_to_ask {
            self.wake.notify_one();
        }
        Some(run)
    }
}

impl Shared {
    /// Not yet known to the keeper.
    fn new(options: &CounterOptions) -> Result<Self, Error> {
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
        };
        shared.counts.step.store(shared.step.map_or(1, Step::present), Ordering::Relaxed);
        Ok(shared)
    }

    /// Two with other options cannot share what is in hand.
    pub(crate) fn check_same(&self, other: &Self) -> Result<(), Error> {
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
    fn take_in_turn(&self, sources: &[Source], wanted: u64) -> Option<Run> {
        let turn = self.next_turn();
        let (before, after) = sources.split_at_checked(turn)?;
        after.iter().chain(before).find_map(|source| source.take(wanted))
    }

    /// The first of so many numbers that follow each other, if they are in hand.
    fn take_block(&self, source: &Source, wanted: u64) -> Option<u64> {
        let (run, skipped) = source.segments.take_run(wanted)?;
        self.counts.skipped.fetch_add(skipped, Ordering::Relaxed);
        source.wake.notify_one();
        Some(run.first)
    }

    fn next_turn(&self) -> usize {
        self.turn.fetch_add(1, Ordering::Relaxed) % self.sources.len().max(1)
    }

    fn left(&self, is_closed: bool) {
        if self.users.leave(is_closed) {
            self.wake();
        }
    }

    fn wake(&self) {
        self.sources.iter().for_each(|source| source.wake.notify_one());
    }

    fn ask(&self, at: usize, what: What) -> Pending {
        let answer = Arc::new(Mutex::new(None));
        let mut state = self.state.get();
        if let Some(source) = state.sources.get_mut(at) {
            source.requests.push_back(Request { what, answer: Arc::clone(&answer) });
        }
        drop(state);
        if let Some(source) = self.sources.get(at) {
            source.wake.notify_one();
        }
        Pending(answer)
    }

    /// For the task of a store: what a call asks next. Calls that gave up are passed over.
    pub(crate) fn next_request(&self, at: usize) -> Option<Request> {
        let mut state = self.state.get();
        let requests = &mut state.sources.get_mut(at)?.requests;
        while let Some(request) = requests.pop_front() {
            if request.is_waited_for() {
                return Some(request);
            }
        }
        None
    }

    /// For the task of a store: the numbers that the next call wants, if it wants no more than so many and nothing else.
    pub(crate) fn next_run_of(&self, at: usize, most: u64) -> Option<(Request, u64)> {
        let mut state = self.state.get();
        let requests = &mut state.sources.get_mut(at)?.requests;
        loop {
            let request = requests.front()?;
            let What::Run(wanted) = request.what else { return None };
            if wanted > most {
                return None;
            }
            let request = requests.pop_front()?;
            if request.is_waited_for() {
                return Some((request, wanted));
            }
        }
    }

    /// For the task of a store: whether a call asks something.
    pub(crate) fn has_request(&self, at: usize) -> bool {
        self.state.get().sources.get(at).is_some_and(|source| !source.requests.is_empty())
    }

    /// For the task of a store.
    pub(crate) fn answer(&self, answers: impl IntoIterator<Item = (Request, Result<Answer, Trouble>)>) {
        for (request, answer) in answers {
            *lock(&request.answer) = Some(answer);
        }
        self.state.change(|_| {});
    }

    /// For the task of a store: it was looked at, and has nothing of another kind.
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

    /// For the task of a store: it gave numbers, or why not.
    pub(crate) fn gave(&self, at: usize, given: Result<(), Trouble>) {
        self.state.change(|state| {
            if let Some(source) = state.sources.get_mut(at) {
                source.is_open |= given.is_ok();
                source.trouble = given.err();
            }
        });
    }

    /// For the task of a store: it has ended. The last one's end is the counter's.
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

    pub(crate) fn fail(&self, error: Error) {
        self.state.change(|state| state.failed = Some(error));
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.state.get().failed.is_some()
    }

    /// Whether a store has given numbers, or one will not.
    fn opened(&self) -> Option<Result<(), Error>> {
        let state = self.state.get();
        if let Some(error) = state.failed {
            return Some(Err(error));
        }
        let of_final =
            state.sources.iter().filter_map(|source| source.trouble).find(|trouble| trouble.is_final);
        match of_final {
            Some(trouble) => Some(Err(trouble.error)),
            None => state.sources.iter().any(|source| source.is_open).then_some(Ok(())),
        }
    }

    /// Why there are no numbers, where that is so for all stores.
    fn trouble(&self, is_final: bool) -> Option<Error> {
        let state = self.state.get();
        if state.failed.is_some() {
            return state.failed;
        }
        let mut troubles = state.sources.iter().map(|source| source.trouble);
        let first = troubles.next()??;
        let is_so = |trouble: Option<Trouble>| trouble.is_some_and(|it| it.is_final || !is_final);
        (is_so(Some(first)) && troubles.all(is_so)).then_some(first.error)
    }

    /// Why a counter of several stores has not begun.
    fn unseen(&self) -> Option<Error> {
        let state = self.state.get();
        if state.sources.iter().any(|source| source.is_open) {
            return None;
        }
        let trouble = state.sources.iter().find_map(|source| source.trouble.filter(|_| !source.is_seen))?;
        let why = trouble.error.to_string();
        Some(unavailable(&format!(
            "none of its stores has it yet, and it is made once all of them answer: {why}"
        )))
    }

    fn in_hand(&self) -> u64 {
        self.sources.iter().map(|source| source.segments.left()).sum()
    }

    fn too_few_in_hand(&self) -> Error {
        if self.in_hand() == 0 {
            return self.none_in_hand();
        }
        unavailable("fewer numbers are in hand: a call that waits gets so many")
    }

    fn none_in_hand(&self) -> Error {
        self.wake();
        self.trouble(false)
            .unwrap_or_else(|| unavailable("no number is in hand: the store is asked for more"))
    }

    fn too_late(&self) -> Error {
        self.trouble(false).or_else(|| self.unseen()).unwrap_or_else(|| {
            unavailable(
                "the store gave no number in the longest time that a call waits, and has not answered yet",
            )
        })
    }
}

impl Source {
    /// Equal for the same counter.
    fn key(&self) -> String {
        let CounterName { namespace, name, schema } = &self.counter;
        let Place { index, count } = self.place;
        format!("{} {namespace} {schema:?} {index}/{count} {name}", self.address.key())
    }
}

impl Request {
    /// Whether the call has not given up.
    fn is_waited_for(&self) -> bool {
        Arc::strong_count(&self.answer) > 1
    }
}

/// An answer to come.
#[derive(Debug)]
struct Pending(Arc<Mutex<Option<Result<Answer, Trouble>>>>);

impl Pending {
    fn answer(&self) -> Option<Result<Answer, Trouble>> {
        *lock(&self.0)
    }
}

/// Writes no more than were wanted, and returns the places that are left.
#[inline]
fn write_to(run: Run, numbers: &mut [u64]) -> &mut [u64] {
    let count = usize::try_from(run.count).unwrap_or(usize::MAX).min(numbers.len());
    let (these, rest) = numbers.split_at_mut(count);
    run.write(these);
    rest
}

fn invalid(message: &str) -> Error {
    Error::from_outside(ErrorCode::InvalidOption, message)
}

fn unavailable(message: &str) -> Error {
    Error::from_outside(ErrorCode::CounterUnavailable, message)
}

fn closed() -> Error {
    Error::from_outside(ErrorCode::Closed, "the counter is closed")
}

fn other_answer() -> Error {
    Error::from_outside(ErrorCode::Internal, "another answer than was asked for")
}
