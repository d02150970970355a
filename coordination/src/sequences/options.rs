//! The options for Sequences.

use core::time::Duration;

use polyflake::{Error, ErrorCode, Number};

use super::MAX_SECTIONS;
use crate::store::{CounterName, Schema};
use crate::url::Address;

const SECTIONS: u64 = 1_024;
const STEP: u64 = 10_000;
/// The larger the step, the more numbers are skipped if a process exits without calling `close`.
const MAX_STEP: u64 = 1_000_000_000;
const MAX_KEYS: u64 = 1_000_000;
/// At this limit, the keys take 40 GB.
const MOST_KEYS: u64 = 1_000_000_000;
const MAX_WAIT_MS: u32 = 10_000;

/// Options for [`Sequences`](crate::Sequences).
///
/// | option | default | meaning |
/// |---|---|---|
/// | `store` | none (required) | the address of a store |
/// | `sections` | 1024 | how many bounds the store keeps: 1 to 16,384. It cannot be changed later |
/// | `step` | 10000 | the size of a step, in numbers: 1 to 1,000,000,000 |
/// | `max_keys` | 1000000 | how many keys stay in memory, at up to 40 bytes each: 1 to 1,000,000,000 |
/// | `max_wait_ms` | 10000 | the maximum time a call waits for the store: 0 to 4294967295 |
///
/// A key's hash determines its section. When a section has less than one step left, its bound moves to two
/// steps above the section's highest number. The store keeps the bounds in records of 64 bounds, with about
/// 10 bytes per bound. A write moves all bounds in the record that need moving.
///
/// ```no_run
/// use polyflake_coordination::SequencesOptions;
/// let inbox = SequencesOptions::new("inbox")
///     .store("postgres://host/chat?label=10.0.0.7:8080")
///     .max_keys(20_000_000)
///     .open()?;
/// assert_eq!(inbox.name(), "inbox");
/// # Ok::<(), polyflake::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "options do nothing until they are opened"]
pub struct SequencesOptions {
    name: String,
    store: Option<Address>,
    sections: u64,
    step: u64,
    max_keys: u64,
    max_wait_ms: u32,
    /// The first error in the options.
    error: Option<Error>,
}

impl SequencesOptions {
    /// Creates the options for sequences with this name: 1 to 100 characters, none of them control
    /// characters.
    pub fn new(name: &str) -> Self {
        let mut options = Self {
            name: name.into(),
            store: None,
            sections: SECTIONS,
            step: STEP,
            max_keys: MAX_KEYS,
            max_wait_ms: MAX_WAIT_MS,
            error: None,
        };
        if let Err(why) = CounterName::check(name) {
            options.keep(invalid(&format!("the name of the sequences {why}")));
        }
        options
    }

    /// Sets the store's address, such as `postgres://host/chat`. While this process holds the lease, other
    /// processes see the `label` in its address.
    pub fn store(mut self, address: &str) -> Self {
        match Address::parse(address) {
            Ok(_) if self.store.is_some() => self.keep(invalid("store is given twice; sequences take one")),
            Ok(address) if address.schema != Schema::Polyflake => {
                self.keep(invalid("store: schema is for counters: nobody else has tables of sequences"));
            }
            Ok(address) => self.store = Some(address),
            Err(why) => self.keep(invalid(&format!("store: {why}"))),
        }
        self
    }

    /// Sets the number of sections. Each section has a bound in the store.
    pub fn sections(mut self, sections: impl Into<Number>) -> Self {
        match sections.into().in_range("sections", 1, MAX_SECTIONS) {
            Ok(sections) => self.sections = sections,
            Err(error) => self.keep(error),
        }
        self
    }

    /// Sets the size of a step. A bound moves to two steps above its section's highest number.
    pub fn step(mut self, step: impl Into<Number>) -> Self {
        match step.into().in_range("step", 1, MAX_STEP) {
            Ok(step) => self.step = step,
            Err(error) => self.keep(error),
        }
        self
    }

    /// Sets the maximum number of keys in memory.
    pub fn max_keys(self, keys: impl Into<Number>) -> Self {
        self.max_keys_named(keys, "max_keys")
    }

    fn max_keys_named(mut self, keys: impl Into<Number>, name: &'static str) -> Self {
        match keys.into().in_range(name, 1, MOST_KEYS) {
            Ok(keys) => self.max_keys = keys,
            Err(error) => self.keep(error),
        }
        self
    }

    /// Sets the maximum time a call waits for the store.
    pub fn max_wait_ms(self, ms: impl Into<Number>) -> Self {
        self.max_wait_ms_named(ms, "max_wait_ms")
    }

    fn max_wait_ms_named(mut self, ms: impl Into<Number>, name: &'static str) -> Self {
        match ms.into().in_range(name, 0, u32::MAX.into()) {
            Ok(ms) => self.max_wait_ms = u32::try_from(ms).unwrap_or(u32::MAX),
            Err(error) => self.keep(error),
        }
        self
    }

    /// Sets an option by name, for languages that pass options as strings.
    pub fn set(self, name: &str, value: &str) -> Self {
        self.set_one(name, value, ["max_keys", "max_wait_ms"])
    }

    /// Returns the first error in the options set so far.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), Error> {
        self.error.map_or(Ok(()), Err)
    }

    /// Like [`set`](Self::set), but takes names in camelCase, such as `maxWaitMs`.
    #[doc(hidden)]
    pub fn set_camel_case(self, name: &str, value: &str) -> Self {
        self.set_one(name, value, ["maxKeys", "maxWaitMs"])
    }

    fn set_one(self, name: &str, value: &str, [max_keys, max_wait_ms]: [&'static str; 2]) -> Self {
        match name {
            "store" => self.store(value),
            "sections" => self.sections(Number::parse(value)),
            "step" => self.step(Number::parse(value)),
            _ if name == max_keys => self.max_keys_named(Number::parse(value), max_keys),
            _ if name == max_wait_ms => self.max_wait_ms_named(Number::parse(value), max_wait_ms),
            _ => {
                let mut options = self;
                options.keep(Error::unknown_option(
                    "there is no option `%`; the options are store, sections, step, max_keys and max_wait_ms",
                    name,
                ));
                options
            }
        }
    }

    pub(super) fn address(&self) -> Result<&Address, Error> {
        let none = "store is missing; it takes the address of a store, such as postgres://host/chat";
        self.store.as_ref().ok_or_else(|| invalid(none))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) const fn section_count(&self) -> u64 {
        self.sections
    }

    pub(super) const fn first_step(&self) -> u64 {
        self.step
    }

    pub(super) const fn most_keys(&self) -> u64 {
        self.max_keys
    }

    pub(super) const fn longest_wait(&self) -> Duration {
        Duration::from_millis(self.max_wait_ms as u64)
    }

    fn keep(&mut self, error: Error) {
        self.error.get_or_insert(error);
    }
}

pub(super) fn invalid(message: &str) -> Error {
    Error::from_outside(ErrorCode::InvalidOption, message)
}
