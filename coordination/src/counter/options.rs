//! What a Counter is made from.

use core::sync::atomic::Ordering;

use polyflake::{Error, Number, ThreadWait, Wait};

use super::step::Step;
use super::{Counter, Shared, invalid};
use crate::keeper::Keeper;
use crate::store::{CounterName, LAST_NUMBER, Place};
use crate::url::Address;

/// The largest step: more would not last longer than any outage, and each loss of a process would lose them.
const MAX_STEP: u64 = 1_000_000_000;
const MAX_WAIT_MS: u32 = 10_000;

/// What a [`Counter`] is made from.
///
/// | option | default | meaning |
/// |---|---|---|
/// | `store` | none: it must be given | the address of a store; several of them share the numbers out |
/// | `start` | 1 | the first number, where the store has no such counter yet: 1 to 2^63-1 |
/// | `step` | `auto` | how many numbers a segment has: 1 to 1,000,000,000 |
/// | `max_wait_ms` | 10000 | the longest a call waits for the store: 0 to 4294967295 |
///
/// With `auto`, the first segment has 100 numbers, the next at most twice as many as the one before: what lasts ten minutes at the
/// present rate, and at most 1,000,000. With 1, the store is asked for each number, and numbers increase over all processes.
///
/// With several stores, each gives every so many-th number: of two, one the odd numbers and one the even. Calls go to each in turn,
/// and to the others while one is down, so that numbers are unique, but not ordered. Every process must name them in the same
/// order. A new counter begins once all of them answer.
///
/// ```no_run
/// use polyflake_coordination::CounterOptions;
/// let invoices = CounterOptions::new("invoices")
///     .store("postgres://host/shop")
///     .start(1_000)
///     .max_wait_ms(2_000)
///     .open()?;
/// assert_eq!(invoices.name(), "invoices");
/// # Ok::<(), polyflake::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "options do nothing until they are opened"]
pub struct CounterOptions {
    name: String,
    stores: Vec<Address>,
    start: u64,
    step: Option<Step>,
    max_wait_ms: u32,
    /// The first thing that was wrong.
    error: Option<Error>,
}

impl CounterOptions {
    /// For a counter of that name: 1 to 100 characters, none of them a control character.
    pub fn new(name: &str) -> Self {
        let mut options = Self {
            name: name.into(),
            stores: Vec::new(),
            start: 1,
            step: Some(Step::AUTO),
            max_wait_ms: MAX_WAIT_MS,
            error: None,
        };
        if let Err(why) = check_name(name) {
            options.keep(invalid(&format!("the counter's name {why}")));
        }
        options
    }

    /// A store's address, such as `postgres://host/shop`. Each call adds one.
    pub fn store(mut self, address: &str) -> Self {
        match Address::parse(address) {
            Ok(address) => self.stores.push(address),
            Err(why) => self.keep(invalid(&format!("store: {why}"))),
        }
        self
    }

    /// The first number, where the store has no such counter yet.
    pub fn start(mut self, start: impl Into<Number>) -> Self {
        match start.into().in_range("start", 1, LAST_NUMBER) {
            Ok(start) => self.start = start,
            Err(error) => self.keep(error),
        }
        self
    }

    /// How many numbers a segment has.
    pub fn step(mut self, step: impl Into<Number>) -> Self {
        match step.into().in_range("step", 1, MAX_STEP) {
            Ok(1) => self.step = None,
            Ok(step) => self.step = Some(Step::Fixed(step)),
            Err(error) => self.keep(error),
        }
        self
    }

    /// As many numbers a segment as last ten minutes.
    pub fn auto_step(mut self) -> Self {
        self.step = Some(Step::AUTO);
        self
    }

    /// The longest a call waits for the store.
    pub fn max_wait_ms(mut self, ms: impl Into<Number>) -> Self {
        match ms.into().in_range("max_wait_ms", 0, u32::MAX.into()) {
            Ok(ms) => self.max_wait_ms = u32::try_from(ms).unwrap_or(u32::MAX),
            Err(error) => self.keep(error),
        }
        self
    }

    /// Sets an option by its name, for languages that have them as texts.
    pub fn set(self, name: &str, value: &str) -> Self {
        self.set_one(name, value, "max_wait_ms")
    }

    /// The first thing that was wrong with what was set so far.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Error> {
        self.error.map_or(Ok(()), Err)
    }

    /// [`set`](Self::set) with the option's name in camelCase: `maxWaitMs`.
    #[doc(hidden)]
    pub fn set_camel_case(self, name: &str, value: &str) -> Self {
        self.set_one(name, value, "maxWaitMs")
    }

    fn set_one(self, name: &str, value: &str, max_wait_ms: &str) -> Self {
        match name {
            "store" => self.store(value),
            "start" => self.start(Number::parse(value)),
            "step" if value == "auto" => self.auto_step(),
            "step" => self.step(Number::parse(value)),
            _ if name == max_wait_ms => self.max_wait_ms(Number::parse(value)),
            _ => {
                let mut options = self;
                let name: String = name.chars().take(100).collect();
                options.keep(invalid(&format!(
                    "no option is called {name:?}; there are store, start, step and {max_wait_ms}"
                )));
                options
            }
        }
    }

    /// Opens the counter: makes it where the store has none, and waits until it can give a number.
    ///
    /// # Errors
    ///
    /// - `invalid_option` for an option that cannot be, without a store, where the stores are in another order or number than
    ///   the counter began with, and where this process uses the counter with another start or step.
    /// - `counter_unavailable` if the store cannot be reached within `max_wait_ms`, or will not give numbers.
    pub fn open(&self) -> Result<Counter, Error> {
        self.open_with(&mut ThreadWait::new())
    }

    /// [`open`](Self::open), waiting in the caller's way.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open), or what interrupted the wait.
    pub fn open_with<W: Wait>(&self, wait: &mut W) -> Result<Counter, W::Error> {
        let counter = self.join()?;
        match counter.wait_for(wait, Shared::opened) {
            Ok(()) => Ok(counter),
            Err(error) => {
                // The next try may be with other options.
                counter.is_closed.store(true, Ordering::Release);
                counter.shared.left(true);
                Err(error)
            }
        }
    }

    /// As [`open`](Self::open), without waiting: calls wait.
    pub(super) fn join(&self) -> Result<Counter, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let shared = Keeper::of_this_process().counter(Shared::new(self)?)?;
        Ok(Counter {
            shared,
            options: self.clone(),
            is_closed: false.into(),
            of_child: core::ptr::null_mut::<Counter>().into(),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn start_number(&self) -> u64 {
        self.start
    }

    pub(super) const fn first_step(&self) -> Option<Step> {
        self.step
    }

    pub(super) const fn longest_wait_ms(&self) -> u32 {
        self.max_wait_ms
    }

    pub(super) fn addresses(&self) -> Result<Vec<Address>, Error> {
        if self.stores.is_empty() {
            return Err(invalid(
                "store is missing; it takes the address of a store, such as postgres://host/shop",
            ));
        }
        if self.stores.len() as u64 > Place::MAX_COUNT {
            return Err(invalid(&format!(
                "store has {} addresses; at most {}",
                self.stores.len(),
                Place::MAX_COUNT
            )));
        }
        Ok(self.stores.clone())
    }

    fn keep(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}

/// What is wrong with a name.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let count = name.chars().count();
    if !(1..=CounterName::MAX_NAME).contains(&count) {
        return Err(format!("has {count} characters; it takes 1 to {}", CounterName::MAX_NAME));
    }
    if name.chars().any(char::is_control) { Err("has a control character".into()) } else { Ok(()) }
}
