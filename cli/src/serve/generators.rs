//! The generators: a trait, and a file for each kind.

mod counter;
mod object_id;
mod registry;
mod sequences;
mod snowflake;
mod uuid;

pub(crate) use registry::{CommonStore, SNOWFLAKE};
pub use registry::{Made, Options, Registry};

use core::pin::Pin;

use clap::Args;
use polyflake::Layout;

use super::error::Error;

impl Default for Registry {
    fn default() -> Self {
        let mut registry = Self::EMPTY;
        registry.add(SNOWFLAKE, snowflake::make);
        registry.add("counter", counter::make);
        registry.add("sequences", sequences::make);
        registry.add("uuid", uuid::make);
        registry.add("object-id", object_id::make);
        registry
    }
}

/// The flag of each kind that has one.
#[derive(Debug, Args)]
pub(crate) struct KindFlags {
    /// A counter, and its store's address; repeat it with the same name to use several stores
    #[arg(long, value_name = "NAME[=URL]")]
    counter: Vec<String>,
    /// Sequences: a count for each of many keys
    #[arg(long, value_name = "NAME[=URL]")]
    sequences: Vec<String>,
    /// UUIDs of version 4 or 7
    #[arg(long, value_name = "NAME=4|7")]
    uuid: Vec<String>,
    /// `ObjectId`s of `MongoDB`
    #[arg(long, value_name = "NAME")]
    object_id: Vec<String>,
}

impl KindFlags {
    /// For each kind: its name, which is also its flag's name; the option that the flag sets; and the flag's values.
    pub(crate) fn all(&self) -> [(&'static str, &'static str, &[String]); 4] {
        [
            ("counter", "store", &self.counter),
            ("sequences", "store", &self.sequences),
            ("uuid", "version", &self.uuid),
            ("object-id", "", &self.object_id),
        ]
    }
}

/// Longer lists would keep the thread busy long enough to delay others.
const MANY: usize = 256;

/// A call that waits without blocking a thread.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Issues IDs to the clients of `polyflake serve`, under its own name. Implement this for your own kind of generator,
/// and add the kind to a [`Registry`].
///
/// Many threads call a generator at the same time. Methods whose names begin with `try_` are called on the threads that
/// serve connections, and must not wait for anything; the others may wait.
pub trait Generator: Send + Sync + 'static {
    /// Returns `n` IDs, at least one. It may wait.
    ///
    /// # Errors
    ///
    /// The generator's own errors.
    fn ids(&self, n: usize) -> Result<Ids, Error>;

    /// Returns as many of `n` IDs as are available without waiting: [`ids`](Self::ids) is called for the rest. By
    /// default, it returns none.
    ///
    /// # Errors
    ///
    /// The generator's own errors, if waiting does not help.
    fn try_ids(&self, n: usize) -> Result<Ids, Error> {
        let _ = n;
        Ok(Ids::Numbers(Vec::new()))
    }

    /// Like [`ids`](Self::ids), for generators that can wait without blocking a thread, in a Tokio runtime, so that
    /// many calls can wait at the same time. By default, it returns `None`, and `ids` is called on a thread instead.
    fn ids_later(&self, n: usize) -> Option<Later<'_, Ids>> {
        let _ = n;
        None
    }

    /// Returns the last of `n` consecutive numbers. It may wait.
    ///
    /// # Errors
    ///
    /// By default, `invalid_option`, unless `n` is 1.
    fn block(&self, n: usize) -> Result<u64, Error> {
        match (n, self.ids(1)?) {
            (1, Ids::Numbers(numbers)) if numbers.len() == 1 => {
                Ok(numbers.first().copied().unwrap_or_default())
            }
            (_, Ids::Texts(_)) => Err(Error::invalid("these IDs are not integers: use PF.NEXT")),
            _ => Err(Error::invalid("these IDs are not consecutive: use PF.NEXT for several")),
        }
    }

    /// The most numbers that a [`block`](Self::block) may have, if that is more than the server's `--max-n`. The
    /// default is 1, so that `--max-n` is the limit.
    fn longest_run(&self) -> u64 {
        1
    }

    /// Like [`block`](Self::block), but without waiting, if that is possible. By default, it is not.
    ///
    /// # Errors
    ///
    /// The generator's own errors, if waiting does not help.
    fn try_block(&self, n: usize) -> Result<Option<u64>, Error> {
        let _ = n;
        Ok(None)
    }

    /// Like [`ids_later`](Self::ids_later), but for [`block`](Self::block).
    fn block_later(&self, n: usize) -> Option<Later<'_, u64>> {
        let _ = n;
        None
    }

    /// Returns a key's next number, for generators that keep a separate count for each key. It may wait.
    ///
    /// # Errors
    ///
    /// By default, `invalid_option`.
    fn of_key(&self, key: &str) -> Result<u64, Error> {
        let _ = key;
        Err(Error::invalid("this generator takes no key"))
    }

    /// Like [`of_key`](Self::of_key), but without waiting, if that is possible. By default, it is not.
    ///
    /// # Errors
    ///
    /// The generator's own errors, if waiting does not help.
    fn try_of_key(&self, key: &str) -> Result<Option<u64>, Error> {
        let _ = key;
        Ok(None)
    }

    /// Like [`ids_later`](Self::ids_later), but for [`of_key`](Self::of_key).
    fn of_key_later<'a>(&'a self, key: &'a str) -> Option<Later<'a, u64>> {
        let _ = key;
        None
    }

    /// The layout of the generator's IDs, if they are Snowflakes.
    fn layout(&self) -> Option<Layout> {
        None
    }

    /// Why the generator cannot issue IDs now, for the readiness probe. It must not wait.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Whether no other server can issue this generator's IDs until this server has shut down. If so, the generator
    /// stays ready until a server that is shutting down stops listening. It must not wait.
    fn is_only_here(&self) -> bool {
        false
    }

    /// Called about every second, on a thread that may wait, to keep [`trouble`](Self::trouble) up to date while no client asks
    /// for IDs: a load balancer sends no requests to a generator that is not ready. By default, it does nothing.
    fn look(&self) {}

    /// Values for an operator to graph, with names such as `in_hand`. The name of a count that only grows ends in
    /// `_total`. It must not wait.
    fn facts(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Called when no one will ask for IDs any more, to give back what the generator holds. It may wait.
    fn close(&self) {}
}

/// IDs in the order in which they were generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ids {
    /// 64-bit numbers.
    Numbers(Vec<u64>),
    /// IDs that are not numbers, such as UUIDs.
    Texts(Vec<TextId>),
}

/// An ID that is not a 64-bit number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextId {
    /// The ID as text.
    pub text: String,
    /// The ID as bytes. All of a generator's IDs have the same number of bytes.
    pub bytes: Vec<u8>,
}

impl Ids {
    /// The number of IDs.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// Whether there are no IDs.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// These IDs, followed by `more`.
    pub(crate) fn followed_by(self, more: Self) -> Self {
        match (self, more) {
            (Self::Numbers(mut all), Self::Numbers(more)) => {
                all.extend(more);
                Self::Numbers(all)
            }
            (Self::Texts(mut all), Self::Texts(more)) => {
                all.extend(more);
                Self::Texts(all)
            }
            // The IDs that were generated first are lost, and not issued again.
            (_, more) => more,
        }
    }
}
