//! For operators: what a store has of a namespace, and the changes that people make by hand.
//!
//! It has no part in the keeper: each call asks the store itself, from the calling thread, and no ID or number waits for it.

use core::future::Future;

use polyflake::{Error, ErrorCode, Layout, Number};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::lease::bound;
use crate::local::random;
use crate::space::Space;
use crate::store::{
    CounterName, CounterRecord, LAST_NUMBER, Listing, NodeRecord, Outcome, Place, Schema, SpaceRecord, Store,
    StoreError,
};
use crate::stores;
use crate::url::Address;

/// How often a change is tried while others change the same record, and a store is asked that does not answer.
const TRIES: u32 = 8;
const TRIES_UNREACHABLE: u32 = 2;

/// A store, as an operator sees it.
///
/// ```no_run
/// use polyflake_coordination::Admin;
/// let mut store = Admin::open("redis://host/0")?;
/// for (space, listing) in store.leases()? {
///     println!("{space}: {} nodes were leased", listing.nodes.len());
/// }
/// # Ok::<(), polyflake::Error>(())
/// ```
#[derive(Debug)]
pub struct Admin {
    address: Address,
    store: Box<dyn Store>,
    runtime: Runtime,
}

/// Why a change was not made.
enum Refusal {
    Store(StoreError),
    /// Others changed the record each time.
    Contended,
    /// As things stand it would do harm, or nothing.
    No(String),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Admin {
    /// Nothing is sent before the first call.
    ///
    /// # Errors
    ///
    /// `invalid_option` for an address that is none.
    pub fn open(address: &str) -> Result<Self, Error> {
        let invalid = |why: &str| Error::from_outside(ErrorCode::InvalidOption, why);
        let address =
            Address::parse(address).map_err(|why| invalid(&format!("the store's address: {why}")))?;
        let store = stores::open(&address).map_err(|error| invalid(error.text()))?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
        let runtime = runtime.map_err(|error| {
            Error::from_outside(ErrorCode::Internal, &format!("no runtime can be started: {error}"))
        })?;
        Ok(Self { address, store, runtime })
    }

    /// Its address.
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// Every space of the namespace, with all that the store has of it.
    ///
    /// # Errors
    ///
    /// `lease_unavailable` if the store cannot be reached, or cannot list.
    pub fn leases(&mut self) -> Result<Vec<(Space, Listing)>, Error> {
        let namespace = self.address.namespace.clone();
        self.ask(ErrorCode::LeaseUnavailable, &async |store| {
            let mut all = Vec::new();
            for space in store.spaces(&namespace).await? {
                let listing = store.list(&space).await?;
                all.push((space, listing));
            }
            all.sort_by_key(|(space, _)| space.to_string());
            Ok(all)
        })
    }

    /// Vouches that nobody has leased a node of this layout before, so that nobody waits. Returns whether that changed anything.
    ///
    /// # Errors
    ///
    /// `lease_unavailable` if nodes were leased, or the store cannot be reached.
    pub fn init(&mut self, layout: &Layout, max_ahead_ms: u32) -> Result<bool, Error> {
        let space = Space::of(&self.address.namespace, layout);
        let lead_ms = self.lead_ms(max_ahead_ms);
        self.ask(ErrorCode::LeaseUnavailable, &async |store| {
            for _ in 0..TRIES {
                let listing = store.list(&space).await?;
                if !listing.nodes.is_empty() {
                    return Err(Refusal::No(format!(
                        "{} nodes of this space were leased already: that nobody was there before is not so. After a \
                         restore there is the fence",
                        listing.nodes.len()
                    )));
                }
                let found = listing.space;
                let is_done = |it: &SpaceRecord| it.fence == 0 && it.incarnation == listing.incarnation;
                if found.as_ref().is_some_and(is_done) {
                    return Ok(false);
                }
                let lead_ms = found.as_ref().map_or(0, |found| found.lead_ms).max(lead_ms);
                let new = SpaceRecord { incarnation: listing.incarnation, lead_ms, fence: 0 };
                if store.put_space(&space, found.as_ref(), &new).await? {
                    return Ok(true);
                }
            }
            Err(Refusal::Contended)
        })
    }

    /// After a restore: no lease that is acquired from now on issues a tick that a holder before it may have issued. Until that
    /// has passed, only those that have a node go on. Returns when that is, in Unix ms.
    ///
    /// # Errors
    ///
    /// `lease_unavailable` if the store cannot be reached.
    pub fn fence(&mut self, layout: &Layout, max_ahead_ms: u32) -> Result<u64, Error> {
        let space = Space::of(&self.address.namespace, layout);
        let lead_ms = self.lead_ms(max_ahead_ms);
        let difference_ms = self.address.clock_difference_ms;
        self.ask(ErrorCode::LeaseUnavailable, &async |store| {
            for _ in 0..TRIES {
                let listing = store.list(&space).await?;
                let found = listing.space;
                let lead_ms = found.as_ref().map_or(0, |found| found.lead_ms).max(lead_ms);
                let margin_ms = difference_ms.saturating_mul(2).saturating_add(store.granularity_ms());
                let fence = bound(&space, listing.now_ms.saturating_add(margin_ms), lead_ms);
                let fence = found.as_ref().map_or(0, |found| found.fence).max(fence);
                let new = SpaceRecord { incarnation: listing.incarnation, lead_ms, fence };
                if store.put_space(&space, found.as_ref(), &new).await? {
                    return Ok(space.start_ms(fence));
                }
            }
            Err(Refusal::Contended)
        })
    }

    /// Takes a node from whoever had it, and sets its bound to the store's now plus the lead: for one whose bound a wrong clock
    /// has moved far ahead. Refused while its lease has not expired, unless forced: whoever holds it may issue up to the bound that
    /// it has. Returns from when on it can be used, in Unix ms.
    ///
    /// # Errors
    ///
    /// `lease_unavailable` if the node was never leased or its lease has not expired, or the store cannot be reached.
    pub fn reset(&mut self, layout: &Layout, node: u64, is_forced: bool) -> Result<u64, Error> {
        let space = Space::of(&self.address.namespace, layout);
        let difference_ms = self.address.clock_difference_ms;
        self.ask(ErrorCode::LeaseUnavailable, &async |store| {
            for _ in 0..TRIES {
                let Listing { now_ms, space: under, nodes, incarnation, .. } = store.list(&space).await?;
                let Some(under) = under.filter(|under| under.incarnation == incarnation) else {
                    return Err(Refusal::No(
                        "the store has no such space, or has lost writes since: the next lease sets a fence".into(),
                    ));
                };
                let Some(found) = nodes.into_iter().find(|found| found.node == node) else {
                    return Err(Refusal::No(format!("node {node} was never leased: there is nothing to reset")));
                };
                if found.is_held(now_ms, difference_ms) && !is_forced {
                    return Err(Refusal::No(format!(
                        "node {node} is leased by {} until {} (Unix ms, by the store's clock): it is reset once that \
                         has passed, or by force",
                        found.label, found.expires_ms
                    )));
                }
                let reserved_until = bound(&space, now_ms, under.lead_ms);
                let new = NodeRecord { token: String::new(), expires_ms: 0, reserved_until, ..found.clone() };
                if store.put_node(&space, &under, Some(&found.claim()), &new).await?.outcome == Outcome::Written {
                    return Ok(space.start_ms(reserved_until));
                }
            }
            Err(Refusal::Contended)
        })
    }

    /// Every counter of the namespace, or every row where the address names a schema of others.
    ///
    /// # Errors
    ///
    /// `counter_unavailable` if the store cannot be reached, or cannot list.
    pub fn counters(&mut self) -> Result<Vec<(String, CounterRecord)>, Error> {
        let (namespace, schema) = (self.address.namespace.clone(), self.address.schema);
        let mut names = self.ask(ErrorCode::CounterUnavailable, &async |store| {
            Ok(store.counter_names(&namespace, schema).await?)
        })?;
        names.sort();
        let mut all = Vec::with_capacity(names.len());
        // Each by itself: together they might take longer than one answer may.
        for name in names {
            let counter = CounterName { namespace: namespace.clone(), name, schema };
            let found =
                self.ask(ErrorCode::CounterUnavailable, &async |store| Ok(store.counter(&counter).await?))?;
            if let Some(found) = found {
                all.push((counter.name, found));
            }
        }
        Ok(all)
    }

    /// A counter's record, if there is one.
    ///
    /// # Errors
    ///
    /// `counter_unavailable` if the store cannot be reached, `invalid_option` for a name that cannot be.
    pub fn counter(&mut self, name: &str) -> Result<Option<CounterRecord>, Error> {
        let counter = self.counter_name(name)?;
        self.ask(ErrorCode::CounterUnavailable, &async |store| Ok(store.counter(&counter).await?))
    }

    /// Lets no number up to `number` be handed out any more. A counter that is gone is made again, above it; `place` is which of
    /// the numbers are this store's then. What processes have in hand they still give: raise it above that. Returns whether it
    /// was below.
    ///
    /// # Errors
    ///
    /// `counter_unavailable` if the store cannot be reached, or a table of others has no such row; `invalid_option` for a number
    /// that is not 1 to 2^63-1.
    pub fn raise(&mut self, name: &str, number: impl Into<Number>, place: Place) -> Result<bool, Error> {
        let number = number.into().in_range("number", 1, LAST_NUMBER)?;
        let counter = self.counter_name(name)?;
        self.ask(ErrorCode::CounterUnavailable, &async |store| {
            for _ in 0..TRIES {
                let found = store.counter(&counter).await?;
                let new = match found {
                    Some(found) if found.last >= number => return Ok(false),
                    Some(found) => {
                        let version = found.version.map(|version| version.saturating_add(1));
                        CounterRecord { last: number, version, place: found.place }
                    }
                    None if counter.schema != Schema::Polyflake => {
                        return Err(Refusal::No(
                            "the table has no such row: make it as its own software does".into(),
                        ));
                    }
                    // Unlike that of a counter of this name which was removed.
                    None => CounterRecord { last: number, version: Some(random() >> 12), place },
                };
                if store.put_counter(&counter, found.as_ref(), &new).await? {
                    return Ok(true);
                }
            }
            Err(Refusal::Contended)
        })
    }

    /// Deletes a counter. Whoever opens it later begins at its start again, and numbers repeat. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// `counter_unavailable` if the store cannot be reached, and for tables of others.
    pub fn remove(&mut self, name: &str) -> Result<bool, Error> {
        let counter = self.counter_name(name)?;
        self.ask(ErrorCode::CounterUnavailable, &async |store| Ok(store.remove_counter(&counter).await?))
    }

    fn counter_name(&self, name: &str) -> Result<CounterName, Error> {
        if !CounterName::is_name(name) {
            return Err(Error::from_outside(
                ErrorCode::InvalidOption,
                &format!(
                    "the counter's name has {} characters; it takes 1 to {}, none of them a control character",
                    name.chars().count(),
                    CounterName::MAX_NAME
                ),
            ));
        }
        let (namespace, schema) = (self.address.namespace.clone(), self.address.schema);
        Ok(CounterName { namespace, name: name.into(), schema })
    }

    fn lead_ms(&self, max_ahead_ms: u32) -> u64 {
        self.address.ttl_ms.saturating_add(max_ahead_ms.into())
    }

    /// Asks the store, once more where it did not answer, for as long as an attempt may take.
    fn ask<T>(
        &mut self,
        code: ErrorCode,
        ask: &impl AsyncFn(&mut dyn Store) -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        let longest = self.address.attempt();
        let store = &mut self.store;
        let mut attempts = 0;
        let answer = loop {
            attempts += 1;
            let answer = self.runtime.block_on(within(longest, ask(&mut **store)));
            let is_unreachable = matches!(answer, Err(Refusal::Store(StoreError::Unreachable(_))));
            if answer.is_err() {
                store.disconnect();
            }
            if !is_unreachable || attempts == TRIES_UNREACHABLE {
                break answer;
            }
        };
        answer.map_err(|refusal| {
            let why = match refusal {
                Refusal::Store(StoreError::Unreachable(why)) => format!("the store cannot be reached: {why}"),
                Refusal::Store(StoreError::Refused(why)) => format!("the store cannot be used: {why}"),
                Refusal::Contended => format!("others were faster each time at {}", self.address),
                Refusal::No(why) => why,
            };
            Error::from_outside(code, &why)
        })
    }
}

async fn within<T>(
    longest: core::time::Duration,
    ask: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, Refusal> {
    timeout(longest, ask).await.unwrap_or_else(|_| {
        Err(StoreError::Unreachable(format!("no answer within {} ms", longest.as_millis())).into())
    })
}
