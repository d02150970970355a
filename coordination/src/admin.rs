//! An operator's view of a store. It lists a namespace's records, and makes the changes the operator
//! requests.
//!
//! These calls do not use the keeper. Each call sends its requests to the store from the calling thread, and
//! does not delay IDs or numbers.

use core::cell::Cell;
use core::fmt;
use core::future::Future;

use polyflake::{Error, ErrorCode, Layout, Number};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::counter::protocol::{self, Procedure, Purpose, Step, Text};
use crate::forks;
use crate::lease::{self, Head, Node, Reply, Request, Time as _, Why, bound, draw};
use crate::local::{Clocks, random};
use crate::records::{self, Group};
use crate::space::Space;
use crate::store::{
    CounterName, CounterRecord, LAST_NUMBER, Listing, NodeRecord, Rows, Schema, SpaceRecord, StoreError,
};
use crate::stores;
use crate::url::Address;

/// How many times to try a change while other processes keep changing the same record, and how many times to
/// query a store that does not respond.
const TRIES: u32 = 8;
const TRIES_UNREACHABLE: u32 = 2;

/// An operator's view of a store.
///
/// ```no_run
/// use polyflake_coordination::Admin;
/// let mut store = Admin::open("redis://host/0")?;
/// for (of, listing) in store.leases()? {
///     println!("{of}: {} nodes were leased", listing.nodes.len());
/// }
/// # Ok::<(), polyflake::Error>(())
/// ```
#[derive(Debug)]
pub struct Admin {
    address: Address,
    store: Box<dyn records::Store>,
    runtime: Runtime,
}

/// Why a change was not made.
enum Refusal {
    Store(StoreError),
    /// A record of the space cannot be read.
    Unreadable(String),
    /// Other processes changed the record during every attempt.
    Contended,
    /// The counter does not exist.
    NotThere,
    /// The change would currently do harm, or would have no effect.
    No(String),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<protocol::Refusal> for Refusal {
    fn from(refusal: protocol::Refusal) -> Self {
        match refusal {
            protocol::Refusal::NotThere => Self::NotThere,
            protocol::Refusal::Unreadable { why } => Self::Unreadable(format!("the counter's record: {why}")),
            protocol::Refusal::OtherPlace { found, .. } => Self::No(format!(
                "this is store {} of {} of the counter: a program that names all of them can raise or remove it",
                found.index + 1,
                found.count
            )),
            protocol::Refusal::End => Self::No(format!("the counter ends at {LAST_NUMBER}")),
            _ => Self::Contended,
        }
    }
}

impl From<lease::Refusal> for Refusal {
    fn from(refusal: lease::Refusal) -> Self {
        match refusal {
            lease::Refusal::Store(error) => Self::Store(error),
            lease::Refusal::Unreadable(why) => Self::Unreadable(why),
            _ => Self::Contended,
        }
    }
}

impl Admin {
    /// Opens a store for an operator. Sends nothing to the store until the first call.
    ///
    /// # Errors
    ///
    /// Returns `invalid_option` if the address is invalid.
    pub fn open(address: &str) -> Result<Self, Error> {
        let invalid = |why: &str| Error::from_outside(ErrorCode::InvalidOption, why);
        let address =
            Address::parse(address).map_err(|why| invalid(&format!("the store's address: {why}")))?;
        let store = stores::open(&address).map_err(|error| invalid(error.text()))?;
        forks::register();
        let runtime = forks::runtime().max_blocking_threads(1).build().map_err(|error| {
            Error::from_outside(ErrorCode::Internal, &format!("cannot start a runtime: {error}"))
        })?;
        Ok(Self { address, store, runtime })
    }

    /// Returns the store's address.
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// Returns all leases in the namespace: the leases on each layout's nodes, and the leases on each set of
    /// sequences.
    ///
    /// # Errors
    ///
    /// Returns `lease_unavailable` if the store cannot be reached, or cannot list its records.
    pub fn leases(&mut self) -> Result<Vec<(LeasesOf, Listing)>, Error> {
        let namespace = self.address.namespace.clone();
        self.ask(ErrorCode::LeaseUnavailable, &async |store| {
            let mut all = Vec::new();
            for name in store.groups(&namespace, records::Kind::Space).await? {
                // If a name does not parse, another version of Polyflake wrote the group.
                if let Some(space) = Space::parse(&namespace, &name) {
                    let found = Found::read(store, &lease::group(&space)).await?;
                    all.push((LeasesOf::Layout(space), found.listing()));
                }
            }
            for name in store.groups(&namespace, records::Kind::Sequences).await? {
                let (space, group) = Target::Sequences(&name).place(&namespace);
                let found = Found::read(store, &group).await?;
                all.push((LeasesOf::Sequences { name, space }, found.listing()));
            }
            all.sort_by_key(|(of, _)| of.to_string());
            Ok(all)
        })
    }

    /// Declares that no process has ever leased a node with this layout, or owned these sequences. New leases
    /// then do not have to wait for earlier ones. Returns true if this changed the store. Pass 0 as
    /// `max_ahead_ms` for sequences.
    ///
    /// # Errors
    ///
    /// Returns `lease_unavailable` if any nodes have been leased, or if the store cannot be reached.
    pub fn init<'a>(&mut self, of: impl Into<Target<'a>>, max_ahead_ms: u32) -> Result<bool, Error> {
        let (space, group) = of.into().place(&self.address.namespace);
        let (lead_ms, difference_ms) = (self.lead_ms(max_ahead_ms), self.address.clock_difference_ms);
        self.ask(ErrorCode::LeaseUnavailable, &async |store| {
            for _ in 0..TRIES {
                let found = Found::read(store, &group).await?;
                if !found.nodes.is_empty() {
                    return Err(Refusal::No(format!(
                        "{} nodes of this space are leased already; after a restore, set a fence instead",
                        found.nodes.len()
                    )));
                }
                let expected = found.head.as_ref().map(|head| head.version);
                let mut new = match found.head {
                    Some(head) if head.why == Why::Loss || head.incarnation != found.incarnation => {
                        return Err(Refusal::No(format!(
                            "the store has lost records of this space: earlier leases may last until {} (Unix ms)",
                            space.start_ms(head.fence)
                        )));
                    }
                    Some(head) if head.fence == 0 => return Ok(false),
                    Some(head) => head,
                    None => found.new_head(lead_ms, difference_ms, Why::First),
                };
                (new.version, new.fence) = (draw(&mut random), 0);
                if write_head(store, &group, expected, new).await? {
                    return Ok(true);
                }
            }
            Err(Refusal::Contended)
        })
    }

    /// Writes a new fence, for use after a restore. Leases acquired from now on start at the fence, after all
    /// ticks in which an earlier holder may have issued IDs. Until the fence has passed, only processes that
    /// already have a node can issue IDs. Returns the fence's time in Unix ms. If the address has a larger
    /// TTL or `clock_difference` than the space, all holders use the larger value from then on. Pass 0 as
    /// `max_ahead_ms` for sequences.
    ///
    /// # Errors
    ///
    /// Returns `lease_unavailable` if the store cannot be reached.
    pub fn fence<'a>(&mut self, of: impl Into<Target<'a>>, max_ahead_ms: u32) -> Result<u64, Error> {
        let (space, group) = of.into().place(&self.address.namespace);
        let (lead_ms, difference_ms) = (self.lead_ms(max_ahead_ms), self.address.clock_difference_ms);
        self.ask(ErrorCode::LeaseUnavailable, &async |store| {
            for _ in 0..TRIES {
                let found = Found::read(store, &group).await?;
                let (incarnation, granularity_ms) = (found.incarnation.clone(), store.facts().granularity_ms);
                let expected = found.head.as_ref().map(|head| head.version);
                let before = found.head.clone();
                let before = before.unwrap_or_else(|| found.new_head(lead_ms, difference_ms, Why::Loss));
                let mut new = Head {
                    version: draw(&mut random),
                    incarnation,
                    lead_ms: before.lead_ms.max(lead_ms),
                    difference_ms: before.difference_ms.max(difference_ms),
                    granularity_ms: before.granularity_ms.max(granularity_ms),
                    fence: 0,
                    why: Why::Loss,
                };
                let wall_ms = u64::try_from(Clocks.wall_ms()).unwrap_or(0);
                let fence = lease::fence(&space, found.now_ms.max(wall_ms), &new);
                // Each fence must differ from the previous one: holders take an equal fence to mean that
                // nothing was lost.
                new.fence = fence.max(before.fence.saturating_add(1));
                let from_ms = space.start_ms(new.fence);
                if write_head(store, &group, expected, new).await? {
                    return Ok(from_ms);
                }
            }
            Err(Refusal::Contended)
        })
    }

    /// Takes a node away from its holder, and sets the node's bound to the store's current time plus the
    /// lead. Use this if a wrong clock has moved the bound too far ahead. Fails unless the node's lease has
    /// expired or `is_forced` is true, because the holder may still issue IDs up to its bound. Returns the
    /// time from which the node can be used, in Unix ms.
    ///
    /// # Errors
    ///
    /// Returns `lease_unavailable` if the node was never leased, if its lease has not expired, or if the
    /// store cannot be reached.
    pub fn reset(&mut self, layout: &Layout, node: u64, is_forced: bool) -> Result<u64, Error> {
        let space = Space::of(&self.address.namespace, layout);
        let difference_ms = self.address.clock_difference_ms;
        self.ask(ErrorCode::LeaseUnavailable, &async |store| {
            for _ in 0..TRIES {
                let found = Found::read(store, &lease::group(&space)).await?;
                let Some(under) = found.head.filter(|under| under.incarnation == found.incarnation) else {
                    return Err(Refusal::No(
                        "the store has no such space, or has lost writes since: the next lease sets a fence".into(),
                    ));
                };
                let Some((_, record)) = found.nodes.into_iter().find(|(found, _)| *found == node) else {
                    return Err(Refusal::No(format!("node {node} was never leased: there is nothing to reset")));
                };
                let difference_ms = under.difference_ms.max(difference_ms);
                let frees_ms = record.expires_ms.saturating_add(difference_ms);
                if !record.is_given_back() && found.now_ms <= frees_ms && !is_forced {
                    return Err(Refusal::No(format!(
                        "node {node} is leased by {} until {} (Unix ms, by the store's clock): it is reset once that \
                         has passed, or by force",
                        record.label, record.expires_ms
                    )));
                }
                let reserved_until = bound(&space, found.now_ms, under.lead_ms);
                let expected = Some(record.version);
                // `since_ms` must be later than before. Otherwise, the former holder would conclude that the
                // store had lost its record.
                let new = Node {
                    version: draw(&mut random),
                    token: 0,
                    expires_ms: 0,
                    reserved_until,
                    label: record.label,
                    since_ms: found.now_ms.max(record.since_ms.saturating_add(1)),
                };
                let put = Request::PutNode { under, node, expected, new };
                let (answer, _) = lease::put(store, &lease::group(&space), &put).await?;
                if answer.value == Reply::Written {
                    return Ok(space.start_ms(reserved_until));
                }
            }
            Err(Refusal::Contended)
        })
    }

    /// Returns all counters in the namespace, or all rows if the address names another system's schema.
    ///
    /// # Errors
    ///
    /// Returns `counter_unavailable` if the store cannot be reached, or cannot list its counters.
    pub fn counters(&mut self) -> Result<Vec<(String, CounterRecord)>, Error> {
        let (namespace, schema) = (self.address.namespace.clone(), self.address.schema);
        let mut names = self.ask(ErrorCode::CounterUnavailable, &async |store| {
            Ok(match schema {
                Schema::Polyflake => store.groups(&namespace, records::Kind::Counter).await?,
                _ => store.rows()?.counter_names(&namespace, schema).await?,
            })
        })?;
        names.sort();
        let mut all = Vec::with_capacity(names.len());
        // Read one counter at a time: reading all of them might take longer than an attempt is allowed to.
        for name in names {
            let counter = CounterName { namespace: namespace.clone(), name, schema };
            let found =
                self.ask(ErrorCode::CounterUnavailable, &async |store| counter_of(store, &counter).await)?;
            if let Some(found) = found {
                all.push((counter.name, found));
            }
        }
        Ok(all)
    }

    /// Returns a counter's record, or `None` if the counter does not exist.
    ///
    /// # Errors
    ///
    /// Returns `counter_unavailable` if the store cannot be reached, and `invalid_option` if the name is
    /// invalid.
    pub fn counter(&mut self, name: &str) -> Result<Option<CounterRecord>, Error> {
        let counter = self.counter_name(name)?;
        self.ask(ErrorCode::CounterUnavailable, &async |store| counter_of(store, &counter).await)
    }

    /// Moves the counter above `number`, so that processes fetch only higher numbers. If the counter does
    /// not exist, creates it above `number`. Processes still issue the numbers they have already fetched, so
    /// pass a number above those. Returns true if the counter was lower, or if the store had lost writes.
    ///
    /// # Errors
    ///
    /// Returns `counter_unavailable` if the store cannot be reached, if it is only one of the counter's
    /// stores, or if another system's table has no such row. Returns `invalid_option` if the number is not
    /// between 1 and 2^63-1.
    pub fn raise(&mut self, name: &str, number: impl Into<Number>) -> Result<bool, Error> {
        let number = number.into().in_range("number", 1, LAST_NUMBER)?;
        let counter = self.counter_name(name)?;
        let is_unsure = Cell::new(false);
        self.ask(ErrorCode::CounterUnavailable, &async |store| {
            if counter.schema != Schema::Polyflake {
                return raise_row(store.rows()?, &counter, number).await;
            }
            match change(store, &counter, Purpose::Raise { number }, &is_unsure).await {
                Err(Refusal::NotThere) => {
                    let start = number.saturating_add(1);
                    change(store, &counter, Purpose::Open { start }, &is_unsure).await?;
                    Ok(true)
                }
                changed => changed,
            }
        })
    }

    /// Deletes a counter. If a process opens the counter again, it starts over from its start number, and
    /// numbers repeat. Returns true if the counter existed.
    ///
    /// # Errors
    ///
    /// Returns `counter_unavailable` if the store cannot be reached, if it is only one of the counter's
    /// stores, or if the table belongs to another system.
    pub fn remove(&mut self, name: &str) -> Result<bool, Error> {
        let counter = self.counter_name(name)?;
        let is_unsure = Cell::new(false);
        self.ask(ErrorCode::CounterUnavailable, &async |store| {
            if counter.schema != Schema::Polyflake {
                return Err(Refusal::No("this row belongs to other software; remove it there".into()));
            }
            match change(store, &counter, Purpose::Remove, &is_unsure).await {
                Err(Refusal::NotThere) => Ok(false),
                changed => changed,
            }
        })
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

    /// Queries the store, but for no longer than an attempt may take. If the store cannot be reached, queries
    /// it a second time.
    fn ask<T>(
        &mut self,
        code: ErrorCode,
        ask: &impl AsyncFn(&mut dyn records::Store) -> Result<T, Refusal>,
    ) -> Result<T, Error> {
        let longest = self.address.attempt();
        let _running = forks::Running::begin();
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
                Refusal::Unreadable(why) => format!("the store cannot be used: {}: {why}", self.address),
                Refusal::Contended => {
                    format!("every attempt at {} conflicted with another process", self.address)
                }
                Refusal::NotThere => format!("{} has no such counter", self.address),
                Refusal::No(why) => why,
            };
            Error::from_outside(code, &why)
        })
    }
}

/// Returns a counter's record, or `None` if the counter does not exist.
async fn counter_of(
    store: &mut dyn records::Store,
    counter: &CounterName,
) -> Result<Option<CounterRecord>, Refusal> {
    if counter.schema != Schema::Polyflake {
        return Ok(store.rows()?.counter(counter).await?);
    }
    let found = store.read(&group_of(counter), Some(&[protocol::NAME])).await?.value;
    let Some((_, record)) = found.into_iter().next() else { return Ok(None) };
    let text = Text::read(&record.text)?;
    let last = protocol::last_of(&record, &text);
    let found = CounterRecord { last, version: Some(record.version), place: text.place() };
    Ok(Some(found).filter(|_| !text.is_tombstone()))
}

fn group_of(counter: &CounterName) -> Group {
    let CounterName { namespace, name, .. } = counter.clone();
    Group { namespace, kind: records::Kind::Counter, name }
}

/// Changes a counter. Returns true if this call wrote a record. `is_unsure` means that an earlier call wrote
/// something and failed. In that case, this call writes a record again even if it already has the desired
/// contents.
async fn change(
    store: &mut dyn records::Store,
    counter: &CounterName,
    purpose: Purpose,
    is_unsure: &Cell<bool>,
) -> Result<bool, Refusal> {
    let mut procedure = Procedure::new(purpose, is_unsure.get(), vec![group_of(counter)], &mut random);
    let mut has_written = false;
    loop {
        match procedure.next(&mut random)? {
            Step::Done => return Ok(has_written),
            Step::Ask(at, request) => {
                is_unsure.set(is_unsure.get() || procedure.has_written());
                let received = protocol::ask(store, &request, || Clocks.elapsed_ms()).await?;
                has_written |= received.is_done;
                procedure.answered(at, Some(&received), &|before, now| store.has_kept_all(before, now))?;
            }
        }
    }
}

/// Raises a row's number. Returns true if it was lower.
async fn raise_row(store: &mut dyn Rows, counter: &CounterName, number: u64) -> Result<bool, Refusal> {
    for _ in 0..TRIES {
        let Some(found) = store.counter(counter).await? else {
            return Err(Refusal::No(
                "the table has no such row: create it as the software that owns the table does".into(),
            ));
        };
        if found.last >= number {
            return Ok(false);
        }
        let version = found.version.map(|version| version.saturating_add(1));
        let new = CounterRecord { last: number, version, place: found.place };
        if store.put_counter(counter, &found, &new).await? {
            return Ok(true);
        }
    }
    Err(Refusal::Contended)
}

/// The group of leases that a change applies to.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// The nodes of a layout.
    Layout(&'a Layout),
    /// The sequences with this name.
    Sequences(&'a str),
}

impl<'a> From<&'a Layout> for Target<'a> {
    fn from(layout: &'a Layout) -> Self {
        Self::Layout(layout)
    }
}

impl Target<'_> {
    fn place(self, namespace: &str) -> (Space, Group) {
        match self {
            Self::Layout(layout) => {
                let space = Space::of(namespace, layout);
                let group = lease::group(&space);
                (space, group)
            }
            Self::Sequences(name) => {
                let (namespace, kind) = (namespace.to_owned(), records::Kind::Sequences);
                (Space::of_sequences(&namespace), Group { namespace, kind, name: name.to_owned() })
            }
        }
    }
}

/// The nodes or the sequences that a group of leases covers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LeasesOf {
    /// The nodes in all layouts whose IDs have this form.
    Layout(Space),
    /// One set of sequences. It has one owner at a time, which is listed as node 0.
    Sequences {
        /// The name of the sequences.
        name: String,
        /// The space, in which bounds and fences are milliseconds since 1970.
        space: Space,
    },
}

impl LeasesOf {
    /// Returns the space, which converts bounds and fences to times.
    #[must_use]
    pub const fn space(&self) -> &Space {
        match self {
            Self::Layout(space) | Self::Sequences { space, .. } => space,
        }
    }
}

impl fmt::Display for LeasesOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layout(space) => space.fmt(f),
            Self::Sequences { name, .. } => write!(f, "sequences {name:?}"),
        }
    }
}

/// All records of a space in a store.
struct Found {
    now_ms: u64,
    incarnation: String,
    granularity_ms: u64,
    head: Option<Head>,
    nodes: Vec<(u64, Node)>,
}

impl Found {
    async fn read(store: &mut dyn records::Store, group: &Group) -> Result<Self, Refusal> {
        let (answer, _) = lease::put(store, group, &Request::Read(None)).await?;
        let records::Answer { now_ms, incarnation, value } = answer;
        let (head, nodes) = match value {
            Reply::Records { head, nodes } => (head, nodes),
            _ => (None, Vec::new()),
        };
        let granularity_ms = store.facts().granularity_ms;
        Ok(Self { now_ms, incarnation, granularity_ms, head, nodes })
    }

    /// Creates a head for a space that has no records.
    fn new_head(&self, lead_ms: u64, difference_ms: u64, why: Why) -> Head {
        let (incarnation, granularity_ms) = (self.incarnation.clone(), self.granularity_ms);
        Head {
            version: draw(&mut random),
            incarnation,
            lead_ms,
            difference_ms,
            granularity_ms,
            fence: 0,
            why,
        }
    }

    fn listing(self) -> Listing {
        let node = |(node, record): (u64, Node)| {
            let token = if record.is_given_back() { String::new() } else { format!("{:016x}", record.token) };
            let Node { expires_ms, reserved_until, label, since_ms, .. } = record;
            NodeRecord { node, token, expires_ms, reserved_until, label, since_ms }
        };
        let space = self.head.map(|head| {
            let Head { incarnation, lead_ms, fence, .. } = head;
            SpaceRecord { incarnation, lead_ms, fence }
        });
        let nodes = self.nodes.into_iter().map(node).collect();
        Listing { now_ms: self.now_ms, incarnation: self.incarnation, space, nodes }
    }
}

async fn write_head(
    store: &mut dyn records::Store,
    group: &Group,
    expected: Option<u64>,
    new: Head,
) -> Result<bool, Refusal> {
    let put = Request::PutHead { expected, new };
    let (answer, _) = lease::put(store, group, &put).await?;
    Ok(answer.value == Reply::Head(true))
}

async fn within<T>(
    longest: core::time::Duration,
    ask: impl Future<Output = Result<T, Refusal>>,
) -> Result<T, Refusal> {
    timeout(longest, ask).await.unwrap_or_else(|_| {
        Err(StoreError::Unreachable(format!("no answer within {} ms", longest.as_millis())).into())
    })
}
