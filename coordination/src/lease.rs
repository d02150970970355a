//! The protocol of leases, once for all stores.
//!
//! A holder issues only ticks from the bound it found, or the fence, up to the bound it wrote, and every record is changed by
//! compare-and-set. So the ticks of successive holders are disjoint, whatever clocks, pauses and the network do, as
//! long as the store loses no write that it acknowledged; the fence is for when it did.
//!
//! [`Acquisition`], [`Renewal`] and [`Release`] decide what to ask of a store and what its reply means, without I/O, so that
//! the model checker and the simulation run the same code as a process does. [`acquire`], [`renew`] and [`release`] send
//! and receive for them.
//!
//! Bounds are computed from the store's time: of the last reply, plus what passed since it was received. That is
//! never too high, and a bound that is too low only ends earlier.

mod acquire;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod model;
mod nodes;
mod release;
mod renew;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use crate::space::Space;
use crate::store::{Claim, Listing, NodeRecord, Put, SpaceRecord, Store, StoreError};

pub(crate) use acquire::Acquisition;
pub(crate) use nodes::Nodes;
pub(crate) use release::Release;
pub(crate) use renew::{Renewal, Renewed};

/// How often one go of acquiring, renewing or releasing asks before it gives up.
const MAX_REQUESTS: u32 = 24;

/// What a process wants of a lease.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) space: Space,
    pub(crate) nodes: Nodes,
    pub(crate) ttl_ms: u64,
    /// How far past the store's time a bound may lie: `ttl_ms` plus `max_ahead_ms`.
    pub(crate) lead_ms: u64,
    pub(crate) clock_difference_ms: u64,
    pub(crate) label: String,
    /// Somebody vouches that nobody was in this store before.
    pub(crate) is_init: bool,
}

/// The clocks of this process.
pub(crate) trait Time {
    /// Unix time.
    fn wall_ms(&self) -> i64;
    /// Since some start. It never goes back, and counts the time that the machine sleeps.
    fn elapsed_ms(&self) -> u64;
}

/// A source of random numbers.
pub(crate) type Random<'a> = &'a mut dyn FnMut() -> u64;

/// A lease of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) node: u64,
    pub(crate) token: String,
    /// The first tick it may issue. It may lie ahead of the clock.
    pub(crate) start: u64,
    /// The tick up to and without which it may issue.
    pub(crate) reserved_until: u64,
    /// By the store's clock, as are the next two.
    pub(crate) expires_ms: u64,
    pub(crate) since_ms: u64,
    pub(crate) store_time: StoreTime,
    /// The space's record under which it was last written.
    pub(crate) under: SpaceRecord,
}

impl Held {
    fn claim(&self) -> Claim {
        Claim { token: self.token.clone(), reserved_until: self.reserved_until }
    }
}

/// The store's time, as of its last reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StoreTime {
    pub(crate) now_ms: u64,
    /// [`Time::elapsed_ms`] when the reply was received.
    pub(crate) received_ms: u64,
}

impl StoreTime {
    /// The store's time, never too high.
    pub(crate) const fn at(&self, elapsed_ms: u64) -> u64 {
        self.now_ms.saturating_add(elapsed_ms.saturating_sub(self.received_ms))
    }
}

/// Why there is no lease, or no longer one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    Store(StoreError),
    /// All of the `nodes` that could be chosen from are leased or used.
    NoneFree {
        nodes: u64,
        first: Option<FreesFirst>,
    },
    /// The store lost writes: nobody can acquire before this has passed.
    Fenced {
        in_ms: u64,
    },
    ClockDiffers(ClockDiffers),
    /// The space's leases have a smaller lead: the options do not fit.
    LeadTooLong {
        lead_ms: u64,
        of_space_ms: u64,
    },
    /// Others were faster each time, or the store changed its mind each time: later again.
    Contended,
}

/// The leased node that frees first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FreesFirst {
    pub(crate) node: u64,
    pub(crate) label: String,
    /// By the store's clock.
    pub(crate) at_ms: u64,
    pub(crate) in_ms: u64,
}

/// The local clock is not within the store's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_field_names, reason = "the unit")]
pub(crate) struct ClockDiffers {
    pub(crate) store_ms: u64,
    pub(crate) local_ms: i64,
    pub(crate) by_ms: u64,
}

/// What is asked of a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Request {
    List,
    PutSpace { expected: Option<SpaceRecord>, new: SpaceRecord },
    PutNode { under: SpaceRecord, expected: Option<Claim>, new: NodeRecord },
}

/// Its reply.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    Listing(Listing),
    Space(bool),
    Node(Put),
}

impl Reply {
    fn now_ms(&self) -> Option<u64> {
        match self {
            Self::Listing(listing) => Some(listing.now_ms),
            Self::Node(put) => Some(put.now_ms),
            Self::Space(_) => None,
        }
    }
}

/// A reply, and what the local clocks said about it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Received {
    pub(crate) reply: Reply,
    pub(crate) granularity_ms: u64,
    pub(crate) wall_sent_ms: i64,
    pub(crate) wall_received_ms: i64,
    /// [`Time::elapsed_ms`] when it was received.
    pub(crate) elapsed_ms: u64,
}

impl Received {
    /// By how much the store's time lies outside of the span from sending to receiving, so that a slow store is not a wrong
    /// clock.
    fn clock_differs(&self) -> Option<ClockDiffers> {
        let store_ms = self.reply.now_ms()?;
        let now = i64::try_from(store_ms).unwrap_or(i64::MAX);
        // A clock that was set back in between gives a span the wrong way round.
        let first = self.wall_sent_ms.min(self.wall_received_ms);
        let last = self.wall_sent_ms.max(self.wall_received_ms);
        let latest = now.saturating_add_unsigned(self.granularity_ms.saturating_sub(1));
        let (by, local_ms) =
            if now > last { (now.saturating_sub(last), last) } else { (first.saturating_sub(latest), first) };
        let by_ms = u64::try_from(by).ok().filter(|&by| by > 0)?;
        Some(ClockDiffers { store_ms, local_ms, by_ms })
    }

    fn store_time(&self) -> Option<StoreTime> {
        self.reply.now_ms().map(|now_ms| StoreTime { now_ms, received_ms: self.elapsed_ms })
    }
}

/// What comes next: one more request, or the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next<T> {
    Ask(Request),
    Done(T),
}

/// The bound to write: it and all ticks from it on are another's.
pub(crate) const fn bound(space: &Space, now_ms: u64, lead_ms: u64) -> u64 {
    space.tick_from(now_ms.saturating_add(lead_ms)).saturating_add(1)
}

/// The space's record to write before anything else: there is none, or the store lost writes since. `known` is what this
/// process last saw there.
///
/// Whoever holds a node may issue up to a bound of the clock before the loss, which may have been ahead by twice
/// `clock_difference_ms` (each of the two clocks differs from the processes' by one of it). From the fence on there is nobody.
fn space_record(
    terms: &Terms,
    listing: &Listing,
    known: Option<&SpaceRecord>,
    granularity_ms: u64,
) -> Option<SpaceRecord> {
    let found = listing.space.as_ref();
    if found.is_some_and(|found| found.incarnation == listing.incarnation) {
        return None;
    }
    let before = || found.into_iter().chain(known);
    let lead_ms = before().map(|record| record.lead_ms).fold(terms.lead_ms, u64::max);
    let fence = if before().next().is_none() && (listing.is_new || terms.is_init) {
        0
    } else {
        let margin_ms = terms.clock_difference_ms.saturating_mul(2).saturating_add(granularity_ms);
        let after_all = bound(&terms.space, listing.now_ms.saturating_add(margin_ms), lead_ms);
        before().map(|record| record.fence).fold(after_all, u64::max)
    };
    Some(SpaceRecord { incarnation: listing.incarnation.clone(), lead_ms, fence })
}

/// One request, and the clocks around it.
async fn ask(
    store: &mut dyn Store,
    space: &Space,
    request: &Request,
    time: &dyn Time,
) -> Result<Received, Refusal> {
    let wall_sent_ms = time.wall_ms();
    let reply = match request {
        Request::List => store.list(space).await.map(Reply::Listing),
        Request::PutSpace { expected, new } => {
            store.put_space(space, expected.as_ref(), new).await.map(Reply::Space)
        }
        Request::PutNode { under, expected, new } => {
            store.put_node(space, under, expected.as_ref(), new).await.map(Reply::Node)
        }
    }
    .map_err(Refusal::Store)?;
    let (wall_received_ms, elapsed_ms) = (time.wall_ms(), time.elapsed_ms());
    let granularity_ms = store.granularity_ms();
    Ok(Received { reply, granularity_ms, wall_sent_ms, wall_received_ms, elapsed_ms })
}

/// One go at a lease. It may be dropped at any time; the next go with the same `acquisition` then finds what this one got.
pub(crate) async fn acquire(
    store: &mut dyn Store,
    terms: &Terms,
    acquisition: &mut Acquisition,
    time: &dyn Time,
    random: Random<'_>,
    is_used: &dyn Fn(u64) -> bool,
) -> Result<Held, Refusal> {
    let mut request = acquisition.begin();
    loop {
        let received = ask(store, &terms.space, &request, time).await?;
        match acquisition.step(terms, &received, random, is_used)? {
            Next::Ask(next) => request = next,
            Next::Done(held) => return Ok(held),
        }
    }
}

/// One go at a renewal. It may be dropped at any time, and begun again.
pub(crate) async fn renew(
    store: &mut dyn Store,
    terms: &Terms,
    held: &mut Held,
    time: &dyn Time,
) -> Result<Renewed, Refusal> {
    let (mut renewal, mut request) = Renewal::begin(terms, held, time.elapsed_ms());
    loop {
        let received = ask(store, &terms.space, &request, time).await?;
        match renewal.step(terms, held, &received)? {
            Next::Ask(next) => request = next,
            Next::Done(renewed) => return Ok(renewed),
        }
    }
}

/// Gives a lease back, so that its node is free at once. `issued_until`: the tick after the last that was issued, read after
/// issuing was stopped for good. It may be dropped at any time, and begun again.
pub(crate) async fn release(
    store: &mut dyn Store,
    terms: &Terms,
    held: &Held,
    issued_until: u64,
    time: &dyn Time,
) -> Result<(), Refusal> {
    let (mut release, mut request) = Release::begin(terms, held, issued_until);
    loop {
        let received = ask(store, &terms.space, &request, time).await?;
        match release.step(held, &received)? {
            Next::Ask(next) => request = next,
            Next::Done(()) => return Ok(()),
        }
    }
}
