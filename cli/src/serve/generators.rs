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
    /// Each kind, which its flag is named after, the option that the flag sets, and the flag's values.
    pub(crate) fn all(&self) -> [(&'static str, &'static str, &[String]); 4] {
        [
            ("counter", "store", &self.counter),
            ("sequences", "store", &self.sequences),
            ("uuid", "version", &self.uuid),
            ("object-id", "", &self.object_id),
        ]
    }
}

/// Longer lists take long enough that others would wait for the thread.
const MANY: usize = 256;

/// A call that waits without a thread.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Gives IDs to the clients of `polyflake serve`, under its own name. Implement it for your own kind of generator, and add that
/// to a [`Registry`].
///
/// Many threads call it at the same time. Calls that begin with `try_` come from the threads that serve connections, and must
/// not wait for anything; the others may wait.
pub trait Generator: Send + Sync + 'static {
    /// `n` IDs, at least one. It may wait.
    ///
    /// # Errors
    ///
    /// The generator's.
    fn ids(&self, n: usize) -> Result<Ids, Error>;

    /// As many of `n` IDs as it has without waiting: [`ids`](Self::ids) is called for the rest. By default none.
    ///
    /// # Errors
    ///
    /// The generator's, where waiting does not help.
    fn try_ids(&self, n: usize) -> Result<Ids, Error> {
        let _ = n;
        Ok(Ids::Numbers(Vec::new()))
    }

    /// [`ids`](Self::ids) for generators that can wait without a thread, in a Tokio runtime, so that many calls can wait at the
    /// same time. By default `None`: then `ids` is called on a thread.
    fn ids_later(&self, n: usize) -> Option<Later<'_, Ids>> {
        let _ = n;
        None
    }

    /// The last of `n` consecutive numbers. It may wait.
    ///
    /// # Errors
    ///
    /// By default `invalid_option`, unless `n` is 1.
    fn block(&self, n: usize) -> Result<u64, Error> {
        match (n, self.ids(1)?) {
            (1, Ids::Numbers(numbers)) if numbers.len() == 1 => {
                Ok(numbers.first().copied().unwrap_or_default())
            }
            (_, Ids::Texts(_)) => Err(Error::invalid("these IDs are not integers: use PF.NEXT")),
            _ => Err(Error::invalid("these IDs are not consecutive: use PF.NEXT for several")),
        }
    }

    /// How many numbers a [`block`](Self::block) may have, if that is more than the server's `--max-n`. By default 1, so `--max-n` is the
    /// limit.
    fn longest_run(&self) -> u64 {
        1
    }

    /// [`block`](Self::block) without waiting, if that is possible. By default it is not.
    ///
    /// # Errors
    ///
    /// The generator's, where waiting does not help.
    fn try_block(&self, n: usize) -> Result<Option<u64>, Error> {
        let _ = n;
        Ok(None)
    }

    /// [`block`](Self::block), as [`ids_later`](Self::ids_later) is for `ids`.
    fn block_later(&self, n: usize) -> Option<Later<'_, u64>> {
        let _ = n;
        None
    }

    /// A key's next number, for generators that count separately for each key. It may wait.
    ///
    /// # Errors
    ///
    /// By default `invalid_option`.
    fn of_key(&self, key: &str) -> Result<u64, Error> {
        let _ = key;
        Err(Error::invalid("this generator takes no key"))
    }

    /// [`of_key`](Self::of_key) without waiting, if that is possible. By default it is not.
    ///
    /// # Errors
    ///
    /// The generator's, where waiting does not help.
    fn try_of_key(&self, key: &str) -> Result<Option<u64>, Error> {
        let _ = key;
        Ok(None)
    }

    /// [`of_key`](Self::of_key), as [`ids_later`](Self::ids_later) is for `ids`.
    fn of_key_later<'a>(&'a self, key: &'a str) -> Option<Later<'a, u64>> {
        let _ = key;
        None
    }

    /// The layout of its IDs, if they are Snowflakes.
    fn layout(&self) -> Option<Layout> {
        None
    }

    /// Why it gives no IDs now, for readiness. It must not wait.
    fn trouble(&self) -> Option<String> {
        None
    }

    /// Whether no other server gives its IDs before this one has ended. Such a generator stays ready until an ending server
    /// stops listening. It must not wait.
    fn is_only_here(&self) -> bool {
        false
    }

    /// Called about every second, on a thread that may wait, to keep [`trouble`](Self::trouble) up to date while no client asks
    /// for IDs: a load balancer sends no requests to a generator that is not ready. By default it does nothing.
    fn look(&self) {}

    /// Values for an operator to graph, with names such as `in_hand`. If a count only grows, its name ends in `_total`. It must
    /// not wait.
    fn facts(&self) -> Vec<(&'static str, f64)> {
        Vec::new()
    }

    /// Nobody asks any more, so it gives back what it holds. It may wait.
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
    /// The ID as bytes. All of a generator's IDs have the same number of them.
    pub bytes: Vec<u8>,
}

impl Ids {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(numbers) => numbers.len(),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// These IDs, followed by those.
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
            // The IDs that were generated first are lost, and not given again.
            (_, more) => more,
        }
    }
}
