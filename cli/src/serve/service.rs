//! The part that both protocols share: IDs from a generator, without blocking the threads that serve connections.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use polyflake::{ErrorCode, Layout, Number};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::auth::Token;
use super::clients::Client;
use super::config::{Limits, Named, ReadyWhen};
use super::error::{Error, NOT_READY, without_stores};
use super::generators::{Generator, Ids, SNOWFLAKE};
use super::memory::{Output, Room};
use super::metrics::Metrics;
use crate::reading::{shortened, shown};

/// How many calls to one generator may wait on threads at the same time.
const WAITING: usize = 16;
/// How long further calls wait for their turn.
const LONGEST_TURN: Duration = Duration::from_secs(10);

/// How often the log reports wrong tokens, and how long a client with a wrong token waits.
const TELL_EVERY: Duration = Duration::from_secs(10);
const AFTER_WRONG_TOKEN: Duration = Duration::from_secs(1);
/// How often each generator checks its own state.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const WAITS: &str = "the server is starting and waits for a store";

/// The state that all connections share.
pub(crate) struct Service {
    /// Empty while the generators wait for their stores.
    opened: OnceLock<Opened>,
    pub(crate) limits: Limits,
    pub(crate) output: Output,
    pub(crate) token: Token,
    /// The names by which clients without a token may address the server.
    pub(crate) hosts: Vec<String>,
    pub(crate) metrics: Arc<Metrics>,
    is_ending: AtomicBool,
    /// When a wrong token was last logged.
    told: Mutex<Option<Instant>>,
}

struct Opened {
    generators: BTreeMap<String, Entry>,
    /// The layout for decoding IDs.
    layout: Layout,
}

struct Entry {
    generator: Arc<dyn Generator>,
    turns: Arc<Semaphore>,
    issued: Counter,
}

impl Service {
    /// The service refuses requests for IDs until its generators are [opened](Self::open).
    pub(crate) fn new(limits: Limits, token: Token, hosts: Vec<String>) -> Self {
        let metrics = Metrics::new();
        let output = Output::new(limits.output_kib);
        Self {
            opened: OnceLock::new(),
            limits,
            output,
            token,
            hosts,
            metrics,
            is_ending: AtomicBool::new(false),
            told: Mutex::default(),
        }
    }

    /// From now on, issues IDs from these generators.
    pub(crate) fn open(&self, generators: Vec<Named>) {
        let generators: BTreeMap<_, _> = generators
            .into_iter()
            .map(|(name, generator)| {
                let issued = self.metrics.issued(&name);
                let turns = Arc::new(Semaphore::new(WAITING));
                (name, Entry { generator: Arc::from(generator), turns, issued })
            })
            .collect();
        let mut in_order = generators.get(SNOWFLAKE).into_iter().chain(generators.values());
        let layout = in_order.find_map(|entry| entry.generator.layout()).unwrap_or_default();
        let _ = self.opened.set(Opened { generators, layout });
    }

    /// The layout for decoding IDs.
    pub(crate) fn layout(&self) -> Layout {
        self.opened.get().map(|opened| opened.layout).unwrap_or_default()
    }

    /// A client sent a wrong token: it has to wait, so that guessing takes a long time, and the log reports it.
    pub(crate) async fn refuse(&self, client: &Client) {
        self.metrics.refuse();
        {
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
                *told = Some(Instant::now());
                let refused = self.metrics.refused();
                tracing::warn!(client = %client.address(), refused, "a client gave a wrong token");
            }
        }
        sleep(AFTER_WRONG_TOKEN).await;
    }

    fn entries(&self) -> impl Iterator<Item = (&str, &Entry)> {
        let all = self.opened.get().map(|opened| &opened.generators);
        all.into_iter().flatten().map(|(name, entry)| (name.as_str(), entry))
    }

    fn find(&self, name: &str) -> Option<&Entry> {
        self.opened.get()?.generators.get(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries().map(|(name, _)| name)
    }

    /// Whether the generator exists and issues Snowflakes.
    pub(crate) fn has_snowflakes(&self, name: &str) -> bool {
        self.find(name).is_some_and(|entry| entry.generator.layout().is_some())
    }

    /// Returns `n` IDs, where `n` is the number as the client wrote it, and the room for the answer until the client
    /// has received it.
    pub(crate) async fn ids(&self, name: &str, n: Number) -> Result<(Ids, Option<Room>), Error> {
        let entry = self.entry(name)?;
        let give = async {
            let n = count(n, self.limits.n)?;
            let room = self.output.room(n).await?;
            Ok((entry.ids(n).await?, room))
        };
        let result = give.await;
        self.counted(entry, name, result, |(ids, _)| ids.len())
    }

    /// Returns the next ID, if no wait is needed and nothing is wrong; otherwise, call [`block`](Self::block).
    pub(crate) fn next_at_once(&self, name: &str) -> Option<u64> {
        let entry = self.find(name)?;
        let id = entry.generator.try_block(1).ok()??;
        entry.issued.inc();
        Some(id)
    }

    /// The last of `n` consecutive numbers.
    pub(crate) async fn block(&self, name: &str, n: Number) -> Result<u64, Error> {
        let entry = self.entry(name)?;
        // The reply is one number, no matter how long the run is.
        let most = entry.generator.longest_run().max(self.limits.n);
        let n = match count(n, most) {
            Ok(n) => n,
            Err(error) => return self.counted(entry, name, Err(error), |_| 0),
        };
        let result = match entry.generator.try_block(n) {
            Ok(Some(last)) => Ok(last),
            Ok(None) => match entry.generator.block_later(n) {
                Some(later) => later.await,
                None => entry.wait(move |generator| generator.block(n)).await,
            },
            Err(error) => Err(error),
        };
        self.counted(entry, name, result, |_| n)
    }

    /// A key's next number.
    pub(crate) async fn of_key(&self, name: &str, key: &str) -> Result<u64, Error> {
        let entry = self.entry(name)?;
        let result = match entry.generator.try_of_key(key) {
            Ok(Some(number)) => Ok(number),
            Ok(None) => {
                if let Some(later) = entry.generator.of_key_later(key) {
                    later.await
                } else {
                    let key = key.to_owned();
                    entry.wait(move |generator| generator.of_key(&key)).await
                }
            }
            Err(error) => Err(error),
        };
        self.counted(entry, name, result, |_| 1)
    }

    /// Why the server is not ready.
    pub(crate) fn trouble(&self) -> Option<String> {
        let all = || self.entries().map(|(name, entry)| entry.trouble(name));
        self.trouble_of_all().or_else(|| match self.limits.ready_when {
            ReadyWhen::All => all().flatten().next(),
            ReadyWhen::Any => all().collect::<Option<Vec<_>>>().map(|each| each.join("; ")),
        })
    }

    /// Why a generator is not ready.
    pub(crate) fn trouble_of(&self, name: &str) -> Result<Option<String>, Error> {
        // A load balancer that stopped sending requests would find no other server: none takes over until this one has
        // shut down.
        let is_kept = self.find(name).is_some_and(|entry| entry.generator.is_only_here());
        if let Some(trouble) = self.trouble_of_all().filter(|_| !is_kept) {
            return Ok(Some(trouble));
        }
        Ok(self.entry(name)?.trouble(name))
    }

    fn trouble_of_all(&self) -> Option<String> {
        if self.is_ending() {
            return Some("the server ends".into());
        }
        self.opened.get().is_none().then(|| WAITS.into())
    }

    /// Checks each generator repeatedly.
    pub(crate) fn watch(&self) {
        for (_, entry) in self.entries() {
            let generator = Arc::clone(&entry.generator);
            tokio::spawn(async move {
                loop {
                    let here = Arc::clone(&generator);
                    // If a generator panics, that becomes visible because its IDs are missing.
                    let _ = tokio::task::spawn_blocking(move || here.look()).await;
                    sleep(LOOK_EVERY).await;
                }
            });
        }
    }

    pub(crate) fn metrics_text(&self) -> String {
        let all = self.entries().map(|(name, entry)| (name, &*entry.generator));
        self.metrics.text(all, self.trouble_of_all().is_none())
    }

    /// Marks the server as shutting down, so that it reports that it is not ready.
    pub(crate) fn end(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Gives back what the generators hold, and waits for their stores.
    pub(crate) fn close(&self) {
        self.entries().for_each(|(_, entry)| entry.generator.close());
    }

    fn entry(&self, name: &str) -> Result<&Entry, Error> {
        self.find(name).ok_or_else(|| {
            if self.opened.get().is_none() {
                return Error::new(NOT_READY, WAITS);
            }
            // Not counted under its name: clients choose these names, so there is no limit to their number.
            self.metrics.failed("", super::error::UNKNOWN_GENERATOR);
            let names: Vec<_> = self.names().collect();
            let name = shortened(name);
            let hint = if name == SNOWFLAKE { "; --lease URL adds it" } else { "" };
            Error::unknown_generator(format!(
                "no generator is called `{name}`; this server has {}{hint}",
                names.join(", ")
            ))
        })
    }

    fn counted<T>(
        &self,
        entry: &Entry,
        name: &str,
        result: Result<T, Error>,
        count: impl FnOnce(&T) -> usize,
    ) -> Result<T, Error> {
        match &result {
            Ok(given) => drop(entry.issued.inc_by(count(given) as u64)),
            Err(error) => self.metrics.failed(name, error.name()),
        }
        result.map_err(Error::for_clients)
    }
}

fn count(n: Number, most: u64) -> Result<usize, Error> {
    let n = n.in_range("n", 1, most)?;
    Ok(usize::try_from(n).unwrap_or(usize::MAX))
}

impl Entry {
    /// Includes the generator's name.
    fn trouble(&self, name: &str) -> Option<String> {
        self.generator.trouble().map(|trouble| shown(&format!("{name}: {}", without_stores(trouble))))
    }

    async fn ids(&self, n: usize) -> Result<Ids, Error> {
        let first = self.generator.try_ids(n)?;
        let Some(more) = n.checked_sub(first.len()).filter(|&more| more > 0) else { return Ok(first) };
        let more = match self.generator.ids_later(more) {
            Some(later) => later.await,
            None => self.wait(move |generator| generator.ids(more)).await,
        }?;
        Ok(first.followed_by(more))
    }

    /// Makes a call that may wait, on a thread that is allowed to block.
    async fn wait<T: Send + 'static>(
        &self,
        call: impl FnOnce(&dyn Generator) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let busy = || Error::of(ErrorCode::CounterUnavailable, "too many requests are waiting for the store");
        let turn = timeout(LONGEST_TURN, Arc::clone(&self.turns).acquire_owned()).await;
        let turn = turn.ok().and_then(Result::ok).ok_or_else(busy)?;
        let generator = Arc::clone(&self.generator);
        let called = tokio::task::spawn_blocking(move || {
            let result = call(&*generator);
            drop(turn);
            result
        });
        called.await.unwrap_or_else(|_| Err(Error::of(ErrorCode::Internal, "the generator panicked")))
    }
}
