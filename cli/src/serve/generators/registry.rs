//! The kinds of generators, by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Generator;
use crate::serve::error::Error;
use crate::serve::state;

/// The name of a generator that was not given one.
pub(crate) const SNOWFLAKE: &str = "snowflake";

type Make = Box<dyn Fn(&Options) -> Result<Made, Error> + Send + Sync>;

/// The kinds of generators that a server has: the [default](Self::default) kinds, and those that a program
/// [adds](Self::add).
pub struct Registry(BTreeMap<String, Make>);

/// A checked generator that has not been opened yet. Opening it may wait for a store.
pub struct Made {
    open: Box<dyn FnOnce() -> Result<Box<dyn Generator>, Error> + Send>,
    gives_snowflakes: bool,
    why_alone: Option<String>,
}

/// A generator's name, and its options as strings.
#[derive(Clone)]
pub struct Options {
    pub(crate) name: String,
    pub(crate) values: BTreeMap<String, Vec<String>>,
    pub(crate) store: Arc<CommonStore>,
}

/// Where generators keep their shared state, unless their options say otherwise.
pub(crate) struct CommonStore {
    /// The address; if there is none, the file in the user's state folder.
    given: Option<String>,
    is_used: AtomicBool,
}

impl CommonStore {
    pub(crate) const fn new(given: Option<String>) -> Self {
        Self { given, is_used: AtomicBool::new(false) }
    }

    /// The address, if something has asked for it since the last call; for the file in the user's state folder, only
    /// the beginning of the address.
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

    /// Adds a kind: `make` checks the options, and returns the function that opens the generator.
    pub fn add(
        &mut self,
        kind: &str,
        make: impl Fn(&Options) -> Result<Made, Error> + Send + Sync + 'static,
    ) {
        self.0.insert(kind.into(), Box::new(make));
    }

    /// Checks the options of a generator. Returns `None` if there is no such kind.
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
    /// Takes the function that opens the generator. The function may wait for a store, and is called once.
    pub fn new(open: impl FnOnce() -> Result<Box<dyn Generator>, Error> + Send + 'static) -> Self {
        Self { open: Box::new(open), gives_snowflakes: false, why_alone: None }
    }

    /// Marks the generator's IDs as Snowflakes. If a server on another host cannot know about them, `why_alone` says
    /// why.
    pub(super) fn snowflakes(self, why_alone: Option<String>) -> Self {
        Self { gives_snowflakes: true, why_alone, ..self }
    }

    pub(crate) const fn gives_snowflakes(&self) -> bool {
        self.gives_snowflakes
    }

    pub(crate) fn why_alone(&self) -> Option<&str> {
        self.why_alone.as_deref()
    }

    pub(crate) fn open(self) -> Result<Box<dyn Generator>, Error> {
        (self.open)()
    }
}

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Made").finish_non_exhaustive()
    }
}

impl Options {
    /// The generator's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The options and their values, as strings. An option with a list has several values.
    pub fn all(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.values.iter().map(|(name, values)| (name.as_str(), values.as_slice()))
    }

    /// The value of an option that takes one value.
    ///
    /// # Errors
    ///
    /// If the option was given several values.
    pub fn get(&self, name: &str) -> Result<Option<&str>, Error> {
        match self.values.get(name).map(Vec::as_slice) {
            None | Some([]) => Ok(None),
            Some([value]) => Ok(Some(value)),
            Some(_) => Err(Error::option(name, "it takes one value")),
        }
    }

    /// The address of the store that the server uses for generators that do not name one. It may contain a password.
    ///
    /// # Errors
    ///
    /// If the state folder cannot be found or created.
    pub fn store(&self) -> Result<String, Error> {
        self.store.address()
    }
}

/// Omits the values, since a store's address may contain a password.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.values.keys().collect();
        f.debug_struct("Options").field("name", &self.name).field("values", &names).finish_non_exhaustive()
    }
}
