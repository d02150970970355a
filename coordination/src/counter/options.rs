//! A Counter's options.

use polyflake::{Error, ErrorCode, Number};

use super::step::Step;
use crate::store::{CounterName, LAST_NUMBER, Place, Schema};
use crate::url::Address;

/// The largest step. A segment of this size outlasts any outage, but a process that crashes loses all of its
/// numbers.
const MAX_STEP: u64 = 1_000_000_000;
const MAX_WAIT_MS: u32 = 10_000;

/// Options for a [`Counter`](crate::Counter).
///
/// | option | default | meaning |
/// |---|---|---|
/// | `store` | none (required) | the address of a store; several stores divide the numbers |
/// | `start` | 1 | the first number, if the store has no such counter yet: 1 to 2^63-1 |
/// | `step` | `auto` | how many numbers are in a segment: 1 to 1,000,000,000 |
/// | `max_wait_ms` | 10000 | the maximum time a call waits for the store: 0 to 4294967295 |
///
/// With `auto`, the first segment has 100 numbers. Each later segment is sized to last ten minutes at the
/// current rate, but has at most twice as many numbers as the one before it, and at most 1,000,000. With a
/// step of 1, each call fetches its number from the store, and numbers increase across all processes.
///
/// Several stores divide the numbers between them: with two stores, one returns the odd numbers and the other
/// the even numbers. Calls use the stores in turn, skipping any that are down, so numbers are unique but not
/// ordered. Every process must name the stores in the same order. A new counter issues its first number once
/// all of its stores have answered.
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
    /// The first error in the options.
    error: Option<Error>,
}

impl CounterOptions {
    /// Creates the options for a counter with this name: 1 to 100 characters, none of them control
    /// characters.
    pub fn new(name: &str) -> Self {
        let mut options = Self {
            name: name.into(),
            stores: Vec::new(),
            start: 1,
            step: Some(Step::AUTO),
            max_wait_ms: MAX_WAIT_MS,
            error: None,
        };
        if let Err(why) = CounterName::check(name) {
            options.keep(invalid(&format!("the counter's name {why}")));
        }
        options
    }

    /// Adds a store's address, such as `postgres://host/shop`. Call this once per store.
    pub fn store(mut self, address: &str) -> Self {
        match Address::parse(address) {
            Ok(address) => self.stores.push(address),
            Err(why) => self.keep(invalid(&format!("store: {why}"))),
        }
        self
    }

    /// Sets the counter's first number. It has no effect if the store already has the counter.
    pub fn start(mut self, start: impl Into<Number>) -> Self {
        match start.into().in_range("start", 1, LAST_NUMBER) {
            Ok(start) => self.start = start,
            Err(error) => self.keep(error),
        }
        self
    }

    /// Sets the size of the segments.
    pub fn step(mut self, step: impl Into<Number>) -> Self {
        match step.into().in_range("step", 1, MAX_STEP) {
            Ok(1) => self.step = None,
            Ok(step) => self.step = Some(Step::Fixed(step)),
            Err(error) => self.keep(error),
        }
        self
    }

    /// Sizes each segment to last ten minutes at the current rate.
    pub fn auto_step(mut self) -> Self {
        self.step = Some(Step::AUTO);
        self
    }

    /// Sets the maximum time a call waits for the store.
    pub fn max_wait_ms(mut self, ms: impl Into<Number>) -> Self {
        match ms.into().in_range("max_wait_ms", 0, u32::MAX.into()) {
            Ok(ms) => self.max_wait_ms = u32::try_from(ms).unwrap_or(u32::MAX),
            Err(error) => self.keep(error),
        }
        self
    }

    /// Sets an option by name, for languages that pass options as strings.
    pub fn set(self, name: &str, value: &str) -> Self {
        self.set_one(name, value, "max_wait_ms")
    }

    /// Returns the first error in the options set so far.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Error> {
        self.error.map_or(Ok(()), Err)
    }

    /// Like [`set`](Self::set), but takes names in camelCase, such as `maxWaitMs`.
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
                options.keep(Error::unknown_option(
                    "there is no option `%`; the options are store, start, step and max_wait_ms",
                    name,
                ));
                options
            }
        }
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
        if self.stores.len() > 1 {
            let alone = self.stores.iter().find_map(|store| match store.schema {
                Schema::Leaf => Some("leaf"),
                Schema::Cosid => Some("cosid"),
                Schema::Polyflake | Schema::Tinyid => None,
            });
            if let Some(schema) = alone {
                // All of the rows would start with the same number.
                return Err(invalid(&format!(
                    "store has {} addresses, one of them with schema={schema}, whose rows cannot share numbers out: \
                     give it as the only one",
                    self.stores.len()
                )));
            }
        }
        Ok(self.stores.clone())
    }

    fn keep(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}

pub(super) fn invalid(message: &str) -> Error {
    Error::from_outside(ErrorCode::InvalidOption, message)
}
