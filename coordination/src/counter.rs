//! Counters: numbers from 1 up, which processes fetch from a store in segments.
//!
//! How a number is issued: [`Counter::next_id`] → the fetched segments ([`segments`]) → the number. If the
//! fetched segments are used up, the call waits for the keeper ([`crate::keeper`]), which asks the store for
//! another segment. [`step`] chooses the size of that segment.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex};

use polyflake::{Error, ErrorCode, IdGenerator, Number, ThreadWait, Wait, batch_size};

use crate::keeper::Keeper;
use crate::store::{LAST_NUMBER, Reserve, Schema};
use crate::watched::{Awaiting, Blocking, LOOK_EVERY, Waiting, block_on, lock};

mod options;
pub(crate) mod protocol;
pub(crate) mod segments;
pub(crate) mod shared;
pub(crate) mod step;

pub use options::CounterOptions;
use options::invalid;
use segments::Run;
use shared::{Answer, Counts, Pending, Shared, Source, What, unavailable};

/// A counter that issues each number once: 1, 2, 3 and so on. Use it to number orders, or to generate a
/// table's keys. The counter fetches numbers from a store in segments, so most calls need no round trip.
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
/// - No number is issued twice, by any process, as long as the store does not lose a write it has
///   acknowledged.
/// - With one store, each number is greater than every number this process had received before the call
///   began.
/// - A process that exits without [`close`](Self::close) leaves a gap. It loses the numbers it had fetched
///   but not issued, which are at most two segments of one [step](CounterOptions::step) each, and the numbers
///   for any calls in progress.
///
/// All Counters in a process with the same store and name share the numbers they have fetched. After a fork,
/// the child fetches its own numbers.
pub struct Counter {
    shared: Arc<Shared>,
    options: CounterOptions,
    is_closed: AtomicBool,
    /// The counter that replaces this one in a forked child.
    of_child: AtomicPtr<Counter>,
}

/// Statistics for monitoring, returned by [`Counter::stats`]. They cover all of this process's Counters with
/// this name, from the time the first was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CounterStats {
    /// How many fetched numbers have not been issued yet.
    pub in_hand: u64,
    /// The size of the next segment.
    pub step: u64,
    /// How many times the store has returned numbers.
    pub segments: u64,
    /// How many numbers were skipped to keep blocks consecutive and to keep numbers increasing. If threads
    /// were delayed, the true count may be lower.
    pub skipped: u64,
    /// How many calls found no fetched numbers, and waited or gave up.
    pub waits: u64,
}

impl Counter {
    /// Opens the counter with this name in a store, with the default options.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`CounterOptions::open`].
    pub fn open(name: &str, store: &str) -> Result<Self, Error> {
        CounterOptions::new(name).store(store).open()
    }

    /// Returns the next number.
    ///
    /// # Errors
    ///
    /// - `counter_unavailable` if no fetched numbers are left and the store returns none within
    ///   `max_wait_ms`. The call fails at once if waiting would not help: the store refuses the request, the
    ///   counter has been removed, or it has reached 2^63-1.
    /// - `closed` after [`close`](Self::close).
    #[inline]
    pub fn next_id(&self) -> Result<u64, Error> {
        match self.number_in_hand() {
            Some(number) => Ok(number),
            None => self.wait_for_next(&mut ThreadWait::new()),
        }
    }

    /// Like [`next_id`](Self::next_id), but waits with the caller's `wait`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`next_id`](Self::next_id), or the error that interrupted the wait.
    #[inline]
    pub fn next_id_with<W: Wait>(&self, wait: &mut W) -> Result<u64, W::Error> {
        match self.number_in_hand() {
            Some(number) => Ok(number),
            None => self.wait_for_next(wait),
        }
    }

    /// Like [`next_id`](Self::next_id), but awaited in a Tokio runtime with timers. A waiting call does not
    /// block a thread.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`next_id`](Self::next_id).
    pub async fn next_id_async(&self) -> Result<u64, Error> {
        match self.number_in_hand() {
            Some(number) => Ok(number),
            None => self.next_id_later(&mut Awaiting::new()).await,
        }
    }

    /// Returns the next number if any fetched numbers are left. Does not wait for the store.
    ///
    /// # Errors
    ///
    /// Returns `counter_unavailable` if no fetched numbers are left. The keeper then asks the store for more.
    /// With a step of 1, the call always fails this way. Returns `closed` after [`close`](Self::close).
    pub fn try_next_id(&self) -> Result<u64, Error> {
        match self.number_in_hand() {
            Some(number) => Ok(number),
            None => self.try_next_id_here(),
        }
    }

    /// Returns `n` numbers (1 to 16,777,216). They increase, but there may be gaps between them.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`next_id`](Self::next_id), and `invalid_option` if `n` is out of range. If
    /// the call fails, any numbers it had already taken are lost and will never be issued.
    pub fn next_ids(&self, n: impl Into<Number>) -> Result<Vec<u64>, Error> {
        let mut numbers = vec![0; batch_size(n)?];
        self.fill(&mut numbers)?;
        Ok(numbers)
    }

    /// Fills `numbers` with the next numbers.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`next_id`](Self::next_id). If the call fails, any numbers it had already
    /// taken are lost and will never be issued.
    #[inline]
    pub fn fill(&self, numbers: &mut [u64]) -> Result<(), Error> {
        self.fill_with(numbers, &mut ThreadWait::new())
    }

    /// Like [`fill`](Self::fill), but waits with the caller's `wait`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`fill`](Self::fill), or the error that interrupted the wait.
    #[inline]
    pub fn fill_with<W: Wait>(&self, numbers: &mut [u64], wait: &mut W) -> Result<(), W::Error> {
        let counter = self.here()?;
        match counter.fill_in_hand(numbers) {
            [] => Ok(()),
            rest => block_on(counter.fill_later(rest, &mut Blocking(wait))),
        }
    }

    /// Like [`fill`](Self::fill), but async, with the same requirements as
    /// [`next_id_async`](Self::next_id_async).
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`fill`](Self::fill).
    pub async fn fill_async(&self, numbers: &mut [u64]) -> Result<(), Error> {
        let counter = self.here()?;
        match counter.fill_in_hand(numbers) {
            [] => Ok(()),
            rest => counter.fill_later(rest, &mut Awaiting::new()).await,
        }
    }

    /// Fills `numbers` if enough fetched numbers are left. Otherwise, takes none. Does not wait for the
    /// store.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`try_next_id`](Self::try_next_id). If the call fails because another
    /// thread takes numbers at the same time, any numbers the call had already taken are lost and will never
    /// be issued.
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

    /// Returns the first of `n` consecutive numbers (1 to 16,777,216). The caller may use this number and the
    /// next `n` - 1 numbers. If fewer than `n` fetched numbers are left, skips them and asks the store for
    /// more.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`next_id`](Self::next_id), and `invalid_option` if `n` is out of range or
    /// the counter has several stores, because their numbers are not consecutive.
    pub fn next_block(&self, n: impl Into<Number>) -> Result<u64, Error> {
        self.next_block_with(n, &mut ThreadWait::new())
    }

    /// Like [`next_block`](Self::next_block), but waits with the caller's `wait`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`next_block`](Self::next_block), or the error that interrupted the wait.
    pub fn next_block_with<W: Wait>(&self, n: impl Into<Number>, wait: &mut W) -> Result<u64, W::Error> {
        block_on(self.next_block_in(batch_size(n)? as u64, &mut Blocking(wait)))
    }

    /// Like [`next_block`](Self::next_block), but async, with the same requirements as
    /// [`next_id_async`](Self::next_id_async).
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`next_block`](Self::next_block).
    pub async fn next_block_async(&self, n: impl Into<Number>) -> Result<u64, Error> {
        self.next_block_in(batch_size(n)? as u64, &mut Awaiting::new()).await
    }

    async fn next_block_in<W: Waiting>(&self, wanted: u64, wait: &mut W) -> Result<u64, W::Error> {
        let shared = &self.here()?.shared;
        let [source] = &*shared.sources else {
            return Err(invalid(
                "a block is one run of numbers, which a counter on several stores cannot give",
            )
            .into());
        };
        if let Some(first) = shared.take_block(source, wanted) {
            return Ok(first);
        }
        shared.counts.waits.fetch_add(1, Ordering::Relaxed);
        match self.here()?.ask(What::Run(wanted), wait).await? {
            Answer::Run(run) => Ok(run.first),
            Answer::Last(_) | Answer::Done(_) => Err(other_answer().into()),
        }
    }

    /// Like [`next_block`](Self::next_block), but returns `None` if the process has not fetched `n`
    /// consecutive numbers. Neither waits for the store nor sends a request to it.
    #[doc(hidden)]
    pub fn try_next_block(&self, n: impl Into<Number>) -> Result<Option<u64>, Error> {
        let wanted = batch_size(n)? as u64;
        let shared = &self.here()?.shared;
        match &*shared.sources {
            [source] => Ok(shared.take_block(source, wanted)),
            _ => Ok(None),
        }
    }

    /// Returns an iterator over the counter's numbers. Each item is a number or an error.
    pub const fn iter(&self) -> CounterIter<'_> {
        CounterIter(self)
    }

    /// Returns the counter's name.
    pub fn name(&self) -> &str {
        self.options.name()
    }

    /// Returns statistics for monitoring.
    ///
    /// # Errors
    ///
    /// Returns `closed` after [`close`](Self::close).
    pub fn stats(&self) -> Result<CounterStats, Error> {
        let shared = &self.here()?.shared;
        let Counts { segments, skipped: _, step, waits } = &shared.counts;
        Ok(CounterStats {
            in_hand: shared.in_hand(),
            step: step.load(Ordering::Relaxed),
            segments: segments.load(Ordering::Relaxed),
            skipped: shared.skipped(),
            waits: waits.load(Ordering::Relaxed),
        })
    }

    /// Queries the store for the highest number in any segment that a process has fetched. Returns 0 if no
    /// segment has been fetched yet.
    ///
    /// # Errors
    ///
    /// Returns `counter_unavailable` if the store cannot be reached within `max_wait_ms` or has no such
    /// counter, and `closed` after [`close`](Self::close).
    pub fn peek(&self) -> Result<u64, Error> {
        self.peek_with(&mut ThreadWait::new())
    }

    /// Like [`peek`](Self::peek), but waits with the caller's `wait`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`peek`](Self::peek), or the error that interrupted the wait.
    pub fn peek_with<W: Wait>(&self, wait: &mut W) -> Result<u64, W::Error> {
        block_on(self.peek_in(&mut Blocking(wait)))
    }

    /// Like [`peek`](Self::peek), but async, with the same requirements as
    /// [`next_id_async`](Self::next_id_async).
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`peek`](Self::peek).
    pub async fn peek_async(&self) -> Result<u64, Error> {
        self.peek_in(&mut Awaiting::new()).await
    }

    async fn peek_in<W: Waiting>(&self, wait: &mut W) -> Result<u64, W::Error> {
        let mut highest = None;
        for answer in self.here()?.ask_all(What::Peek, wait).await? {
            if let Answer::Last(last) = answer {
                highest = highest.max(last);
            }
        }
        let none = || unavailable(&format!("the store has no counter {}", self.name()));
        highest.ok_or_else(|| none().into())
    }

    /// Moves the counter above `number`, so that all segments fetched from then on are above it. This process
    /// drops the numbers it has already fetched; other processes still issue theirs. If the counter is
    /// already higher, its record does not change.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`peek`](Self::peek), and `invalid_option` if the number is not between 1
    /// and 2^63-1.
    pub fn raise(&self, number: impl Into<Number>) -> Result<(), Error> {
        self.raise_with(number, &mut ThreadWait::new())
    }

    /// Like [`raise`](Self::raise), but waits with the caller's `wait`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`raise`](Self::raise), or the error that interrupted the wait.
    pub fn raise_with<W: Wait>(&self, number: impl Into<Number>, wait: &mut W) -> Result<(), W::Error> {
        block_on(self.raise_in(number.into(), &mut Blocking(wait)))
    }

    /// Like [`raise`](Self::raise), but async, with the same requirements as
    /// [`next_id_async`](Self::next_id_async).
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`raise`](Self::raise).
    pub async fn raise_async(&self, number: impl Into<Number>) -> Result<(), Error> {
        self.raise_in(number.into(), &mut Awaiting::new()).await
    }

    async fn raise_in<W: Waiting>(&self, number: Number, wait: &mut W) -> Result<(), W::Error> {
        let number = number.in_range("number", 1, LAST_NUMBER)?;
        self.here()?.ask_for_all(What::Raise(number), wait).await?;
        Ok(())
    }

    /// Deletes the counter from the store. Afterwards, this process's Counters with this name issue no more
    /// numbers. If a process opens the counter again, it starts over from its start number, and numbers
    /// repeat. Returns true if the counter existed.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`peek`](Self::peek). Always fails for another system's table.
    pub fn remove(&self) -> Result<bool, Error> {
        self.remove_with(&mut ThreadWait::new())
    }

    /// Like [`remove`](Self::remove), but waits with the caller's `wait`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`remove`](Self::remove), or the error that interrupted the wait.
    pub fn remove_with<W: Wait>(&self, wait: &mut W) -> Result<bool, W::Error> {
        block_on(self.remove_in(&mut Blocking(wait)))
    }

    /// Like [`remove`](Self::remove), but async, with the same requirements as
    /// [`next_id_async`](Self::next_id_async).
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`remove`](Self::remove).
    pub async fn remove_async(&self) -> Result<bool, Error> {
        self.remove_in(&mut Awaiting::new()).await
    }

    async fn remove_in<W: Waiting>(&self, wait: &mut W) -> Result<bool, W::Error> {
        let answers = self.here()?.ask_for_all(What::Remove, wait).await?;
        Ok(answers.iter().any(|answer| matches!(answer, Answer::Done(true))))
    }

    /// Closes the counter. Later calls fail with `closed`, and so do calls that are already waiting. Closing
    /// the process's last Counter with a given name also returns the unused numbers of its last segment to
    /// the store, and waits for the store to confirm, but no longer than one attempt takes.
    pub fn close(&self) {
        if let Some(give_back) = self.close_later() {
            give_back.run();
        }
    }

    /// Like [`close`](Self::close), but does not wait. Returns a value that another thread can use to wait
    /// for the store. The caller may drop this value.
    #[doc(hidden)]
    pub fn close_later(&self) -> Option<CounterGiveBack> {
        if let Some(child) = self.child() {
            return child.close_later();
        }
        let is_first = !self.is_closed.swap(true, Ordering::AcqRel) && self.shared.process.is_alive();
        is_first.then(|| {
            self.shared.left(true);
            self.shared.tell_waiting();
            CounterGiveBack(Arc::clone(&self.shared))
        })
    }

    /// Takes a fetched number. Returns `None` if none is left, if the counter is closed, or in a forked
    /// child.
    #[inline]
    fn number_in_hand(&self) -> Option<u64> {
        if self.is_closed.load(Ordering::Relaxed) || !self.shared.process.is_alive() {
            return None;
        }
        self.take_one()
    }

    #[cold]
    #[inline(never)]
    fn try_next_id_here(&self) -> Result<u64, Error> {
        let counter = self.here()?;
        counter.take_one().ok_or_else(|| counter.shared.none_in_hand())
    }

    /// This is separate from [`next_id`](Self::next_id) so that `next_id` can be inlined cheaply.
    #[cold]
    #[inline(never)]
    fn wait_for_next<W: Wait>(&self, wait: &mut W) -> Result<u64, W::Error> {
        block_on(self.next_id_later(&mut Blocking(wait)))
    }

    #[cold]
    async fn next_id_later<W: Waiting>(&self, wait: &mut W) -> Result<u64, W::Error> {
        let counter = self.here()?;
        match counter.take_one() {
            Some(number) => Ok(number),
            None => Ok(counter.run_later(1, wait).await?.first),
        }
    }

    /// Fills `numbers` from the fetched numbers. When those are used up, returns the rest of the slice.
    #[inline]
    fn fill_in_hand<'a>(&self, mut numbers: &'a mut [u64]) -> &'a mut [u64] {
        while !numbers.is_empty() {
            let Some(run) = self.take(numbers.len() as u64) else { break };
            numbers = write_to(run, numbers);
        }
        numbers
    }

    #[cold]
    async fn fill_later<W: Waiting>(&self, mut numbers: &mut [u64], wait: &mut W) -> Result<(), W::Error> {
        while !numbers.is_empty() {
            let run = self.run_later(numbers.len() as u64, wait).await?;
            numbers = self.fill_in_hand(write_to(run, numbers));
        }
        Ok(())
    }

    /// Takes one fetched number.
    #[inline]
    fn take_one(&self) -> Option<u64> {
        match &*self.shared.sources {
            [source] => source.take_one(),
            sources => self.shared.in_turn(sources, Source::take_one),
        }
    }

    /// Takes up to `wanted` consecutive fetched numbers.
    #[inline]
    fn take(&self, wanted: u64) -> Option<Run> {
        match &*self.shared.sources {
            [source] => source.take(wanted),
            sources => self.shared.in_turn(sources, |source| source.take(wanted)),
        }
    }

    /// Like [`take`](Self::take), but waits for the store.
    #[cold]
    async fn run_later<W: Waiting>(&self, wanted: u64, wait: &mut W) -> Result<Run, W::Error> {
        self.shared.counts.waits.fetch_add(1, Ordering::Relaxed);
        if self.shared.step.is_none() {
            return match self.ask(What::Run(wanted.min(Reserve::MAX_COUNT)), wait).await? {
                Answer::Run(run) => Ok(run),
                Answer::Last(_) | Answer::Done(_) => Err(other_answer().into()),
            };
        }
        self.wait_for(wait, |shared| {
            if let Some(run) = self.take(wanted) {
                return Some(Ok(run));
            }
            shared.wake();
            shared.trouble(true).map(Err)
        })
        .await
    }

    /// Sends a request to one store and returns its answer. If that store does not answer, asks another.
    async fn ask<W: Waiting>(&self, what: What, wait: &mut W) -> Result<Answer, W::Error> {
        let shared = &self.shared;
        let mut pending: Option<Pending> = None;
        let last_trouble = Mutex::new(None);
        // If one store refuses the request, another may still return numbers.
        let is_last_word = |shared: &Shared| {
            !matches!(what, What::Run(_)) || shared.sources.len() == 1 || shared.trouble(true).is_some()
        };
        let look = |shared: &Shared| {
            if let Some(answer) = pending.as_ref().and_then(Pending::answer) {
                match answer {
                    Ok(answer) => return Some(Ok(answer)),
                    Err(trouble) if trouble.is_final && is_last_word(shared) => {
                        return Some(Err(trouble.error));
                    }
                    Err(trouble) => {
                        *lock(&last_trouble) = Some(trouble.error);
                        pending = None;
                    }
                }
            }
            pending.get_or_insert_with(|| shared.ask(None, what));
            None
        };
        let too_late = || lock(&last_trouble).unwrap_or_else(|| shared.too_late());
        self.wait_until(wait, look, too_late).await
    }

    /// Sends a request to all stores. If the stores share one Polyflake counter, sends the request through
    /// any one of them.
    async fn ask_for_all<W: Waiting>(&self, what: What, wait: &mut W) -> Result<Vec<Answer>, W::Error> {
        let is_one = self.shared.sources.iter().all(|source| source.counter.schema == Schema::Polyflake);
        if is_one { Ok(vec![self.ask(what, wait).await?]) } else { self.ask_all(what, wait).await }
    }

    /// Asks all stores, one after another, and returns their answers.
    async fn ask_all<W: Waiting>(&self, what: What, wait: &mut W) -> Result<Vec<Answer>, W::Error> {
        let mut answers = Vec::new();
        for at in 0..self.shared.sources.len() {
            let mut pending: Option<Pending> = None;
            let answer = self.wait_for(wait, |shared| {
                match pending.as_ref().and_then(Pending::answer) {
                    Some(Ok(answer)) => return Some(Ok(answer)),
                    Some(Err(trouble)) if trouble.is_final => return Some(Err(trouble.error)),
                    Some(Err(_)) => pending = None,
                    None => {}
                }
                pending.get_or_insert_with(|| shared.ask(Some(at), what));
                None
            });
            answers.push(answer.await?);
        }
        Ok(answers)
    }

    /// Calls `look` after every change until it returns a result, for at most `max_wait_ms`.
    async fn wait_for<T, W: Waiting>(
        &self,
        wait: &mut W,
        look: impl FnMut(&Shared) -> Option<Result<T, Error>>,
    ) -> Result<T, W::Error> {
        self.wait_until(wait, look, || self.shared.too_late()).await
    }

    async fn wait_until<T, W: Waiting>(
        &self,
        wait: &mut W,
        mut look: impl FnMut(&Shared) -> Option<Result<T, Error>>,
        too_late: impl FnOnce() -> Error,
    ) -> Result<T, W::Error> {
        let shared = &self.shared;
        let longest = Duration::from_millis(self.options.longest_wait_ms().into());
        let is_closed = || self.is_closed.load(Ordering::Relaxed);
        let look = || {
            let failed = || shared.failure().map(Err);
            look(shared).or_else(failed).or_else(|| is_closed().then(|| Err(closed())))
        };
        shared.wait_for(wait, longest, look, too_late).await
    }

    /// Returns this counter, or its replacement in a forked child.
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
        // The parent's locks may be held forever, and the fetched numbers belong to the parent.
        let made = Box::into_raw(Box::new(self.options.join()?));
        let kept = match self.of_child.compare_exchange(
            core::ptr::null_mut(),
            made,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => made,
            Err(other) => {
                // SAFETY: the exchange failed, so no other code has this pointer.
                #[allow(unsafe_code)]
                drop(unsafe { Box::from_raw(made) });
                other
            }
        };
        // SAFETY: a stored value is never changed, and lives as long as `self`.
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

impl CounterOptions {
    /// Opens the counter. Creates the counter if the store does not have it, and waits until it can issue a
    /// number.
    ///
    /// # Errors
    ///
    /// - `invalid_option` if an option is invalid, if no store is given, if the number or the order of the
    ///   stores has changed since the counter was created, or if this process already uses the counter with a
    ///   different start or step.
    /// - `counter_unavailable` if the store cannot be reached within `max_wait_ms`, or refuses to return
    ///   numbers.
    pub fn open(&self) -> Result<Counter, Error> {
        self.open_with(&mut ThreadWait::new())
    }

    /// Like [`open`](Self::open), but waits with the caller's `wait`.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`open`](Self::open), or the error that interrupted the wait.
    pub fn open_with<W: Wait>(&self, wait: &mut W) -> Result<Counter, W::Error> {
        block_on(self.open_in(&mut Blocking(wait)))
    }

    /// Like [`open`](Self::open), but async, with the same requirements as [`Counter::next_id_async`].
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`open`](Self::open).
    pub async fn open_async(&self) -> Result<Counter, Error> {
        self.open_in(&mut Awaiting::new()).await
    }

    async fn open_in<W: Waiting>(&self, wait: &mut W) -> Result<Counter, W::Error> {
        let counter = self.join()?;
        match counter.wait_for(wait, Shared::opened).await {
            Ok(()) => Ok(counter),
            Err(error) => {
                // Do not keep the state, since the next attempt may use different options.
                drop(counter.close_later());
                Err(error)
            }
        }
    }

    /// Like [`open`](Self::open), but does not wait for the store. The counter's calls wait instead.
    fn join(&self) -> Result<Counter, Error> {
        self.check()?;
        let shared = Keeper::of_this_process().counter(Shared::new(self)?)?;
        Ok(Counter {
            shared,
            options: self.clone(),
            is_closed: false.into(),
            of_child: core::ptr::null_mut::<Counter>().into(),
        })
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
            // SAFETY: the pointer comes from `Box::into_raw`, and nothing else refers to it any more.
            #[allow(unsafe_code)]
            drop(unsafe { Box::from_raw(child) });
        }
        if !*self.is_closed.get_mut() && self.shared.process.is_alive() {
            self.shared.left(false);
        }
    }
}

/// The part of [`Counter::close`] that waits for the store.
#[doc(hidden)]
#[derive(Debug)]
pub struct CounterGiveBack(Arc<Shared>);

impl CounterGiveBack {
    /// Waits until the store has taken back the unused numbers, but no longer than one attempt takes.
    pub fn run(self) {
        let attempts = self.0.sources.iter().map(|source| source.address.attempt());
        self.0.users.wait_until_over(attempts.max().unwrap_or_default() + LOOK_EVERY);
    }
}

/// An iterator over a counter's numbers, returned by [`Counter::iter`].
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

/// Writes as much of the run into `numbers` as fits. Returns the rest of the slice.
#[inline]
fn write_to(run: Run, numbers: &mut [u64]) -> &mut [u64] {
    let count = usize::try_from(run.count).unwrap_or(usize::MAX).min(numbers.len());
    let (these, rest) = numbers.split_at_mut(count);
    run.write(these);
    rest
}

fn closed() -> Error {
    Error::from_outside(ErrorCode::Closed, "the counter is closed")
}

fn other_answer() -> Error {
    Error::from_outside(ErrorCode::Internal, "a reply does not match its request")
}
