//! The kinds of generators, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Generator;
use crate::serve::error::Error;
use crate::serve::state;

/// What a generator is called where nobody gave it a name.
pub(crate) const SNOWFLAKE: &str = "snowflake";

type Make = Box<dyn Fn(&Options) -> Result<Made, Error> + Send + Sync>;

/// The kinds of generators that a server has: `snowflake`, `counter`, `sequences`, `uuid` and `object-id`, and those that a program
/// [adds](Self::add).
pub struct Registry(BTreeMap<String, Make>);

/// A generator that was checked, and is still to be opened: that may wait for a store.
pub struct Made(Box<dyn FnOnce() -> Result<Box<dyn Generator>, Error> + Send>);

/// What a generator is called, and its options, as texts.
#[derive(Clone)]
pub struct Options {
    pub(crate) name: String,
    pub(crate) values: BTreeMap<String, Vec<String>>,
    pub(crate) store: Arc<CommonStore>,
}

/// Where generators keep what they must agree on with others, if they do not say.
pub(crate) struct CommonStore {
    /// The address; else it is the file in the user's state folder.
    given: Option<String>,
    is_used: AtomicBool,
}

impl CommonStore {
    pub(crate) const fn new(given: Option<String>) -> Self {
        Self { given, is_used: AtomicBool::new(false) }
    }

    /// The address, if anybody has asked for it since the last call; of the file in the user's state folder only the beginning.
    pub(crate) fn take_used(&self) -> Option<&str> {
        self.is_used.swap(false, Ordering::Relaxed).then(|| self.given.as_deref().unwrap_or("sqlite://"))
    }

    fn address(&self) -> Result<String, Error> {
        self.is_used.store(true, Ordering::Relaxed);
        self.given.clone().map_or_else(state::store, Ok)
    }
}

impl Registry {
    pub(crate) const EMPTY: Self = Self(BTreeMap::new());

    /// Adds a kind: `make` checks the options, and says how it is opened.
    pub fn add(
        &mut self,
        kind: &str,
        make: impl Fn(&Options) -> Result<Made, Error> + Send + Sync + 'static,
    ) {
        self.0.insert(kind.into(), Box::new(make));
    }

    /// `None` if there is no such kind.
    pub(crate) fn make(&self, kind: &str, options: &Options) -> Option<Result<Made, Error>> {
        self.0.get(kind).map(|make| make(options))
    }

    pub(crate) fn kinds(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry").field(&self.kinds()).finish()
    }
}

impl Made {
    /// How it is opened. It may wait for a store, and is called once.
    pub fn new(open: impl FnOnce() -> Result<Box<dyn Generator>, Error> + Send + 'static) -> Self {
        Self(Box::new(open))
    }

    pub(crate) fn open(self) -> Result<Box<dyn Generator>, Error> {
        (self.0)()
    }
}

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Made").finish_non_exhaustive()
    }
}

impl Options {
    /// What the generator is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The options and their values, as texts: more than one where the option has a list.
    pub fn all(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.values.iter().map(|(name, values)| (name.as_str(), values.as_slice()))
    }

    /// The value of an option that has one.
    ///
    /// # Errors
    ///
    /// If it has several.
    pub fn get(&self, name: &str) -> Result<Option<&str>, Error> {
        match self.values.get(name).map(Vec::as_slice) {
            None | Some([]) => Ok(None),
            Some([value]) => Ok(Some(value)),
            Some(_) => Err(Error::option(name, "it takes one value")),
        }
    }

    /// The address of the store that the server uses where a generator names none. It may have a password.
    ///
    /// # Errors
    ///
    /// If there is no place for one.
    pub fn store(&self) -> Result<String, Error> {
        self.store.address()
    }
}

/// Without values: a store's address may have a password.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.values.keys().collect();
        f.debug_struct("Options").field("name", &self.name).field("values", &names).finish_non_exhaustive()
    }
}
