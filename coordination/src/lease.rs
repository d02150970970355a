//! The lease protocol, shared by all stores.
//!
//! A holder's ticks start at the bound in the node's record, or at the fence if that is higher, and end at
//! the bound that the holder wrote. Every change to a record is a compare-and-set. Successive holders
//! therefore never issue IDs in the same tick, regardless of clocks, pauses and the network, as long as the
//! store keeps every write it has acknowledged. If the store loses such a write, the fence keeps the ticks
//! disjoint.
//!
//! [`Acquisition`], [`Renewal`] and [`Release`] decide which requests to send to the store, and interpret its
//! replies. They do no I/O, so the model checker and the simulation run the same code as a real process.
//! [`acquire`], [`renew`] and [`release`] send the requests and receive the replies.
//!
//! The protocol uses two clocks, the store's and this machine's, and either may be wrong. It computes bounds
//! and expiries from the lower clock ([`Received::low_ms`]), and fences and the deadline for rejoining from
//! the higher clock ([`Received::high_ms`]). Between answers, a process estimates the store's time as the
//! time in the last answer plus the time elapsed since then. This estimate is never too high. If it is too
//! low, the bound just expires sooner.

#![allow(clippy::similar_names, reason = "a lease is held, and a space has a head")]

mod acquire;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod model;
mod nodes;
mod records;
mod release;
mod renew;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

use crate::records::{Answer, Facts, Group, Kind, Outcome as Written, Record, Store, Write};
use crate::space::Space;
use crate::store::StoreError;

pub(crate) use acquire::Acquisition;
pub(crate) use nodes::Nodes;
pub(crate) use records::{HEAD, Head, Node, Why};
pub(crate) use release::Release;
pub(crate) use renew::{Renewal, Renewed};

/// The maximum number of requests in one attempt to acquire, renew or release a lease.
const MAX_REQUESTS: u32 = 24;

/// In a group of sequences, the names of all records that are not part of the lease start with this prefix.
pub(crate) const SECTION: &str = "section-";

/// The maximum number of replaced heads that a process remembers.
const MAX_BEFORE: usize = 16;

/// A process's requirements for a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terms {
    /// The group of the lease's records.
    pub(crate) group: Group,
    pub(crate) space: Space,
    pub(crate) nodes: Nodes,
    pub(crate) ttl_ms: u64,
    /// How far into the future a bound may lie: `ttl_ms` plus `max_ahead_ms`.
    pub(crate) lead_ms: u64,
    pub(crate) clock_difference_ms: u64,
    /// True if the address does not set the clock difference. In that case, the space's difference applies if
    /// it is smaller.
    pub(crate) is_difference_default: bool,
    pub(crate) label: String,
    /// True if the user declares that this store has never been used before.
    pub(crate) is_init: bool,
}

impl Terms {
    /// Returns how far into the future a bound in this space may lie.
    fn lead_ms(&self, head: &Head) -> u64 {
        self.lead_ms.min(head.lead_ms)
    }

    /// Returns the largest allowed difference between this machine's clock and the store's clock in this
    /// space.
    fn difference_ms(&self, head: &Head) -> u64 {
        self.clock_difference_ms.min(head.difference_ms)
    }

    /// Returns how far into the future a lease in this space may expire.
    fn ttl_ms(&self, head: &Head) -> u64 {
        self.ttl_ms.min(head.lead_ms)
    }
}

/// Returns the group that holds a space's records.
pub(crate) fn group(space: &Space) -> Group {
    Group { namespace: space.namespace.clone(), kind: Kind::Space, name: space.to_string() }
}

/// The clocks of this process.
pub(crate) trait Time {
    /// Returns the Unix time.
    fn wall_ms(&self) -> i64;
    /// Returns the time elapsed since an arbitrary starting point. This clock never goes backwards, and keeps
    /// running while the machine sleeps.
    fn elapsed_ms(&self) -> u64;
}

/// A source of random numbers.
pub(crate) type Random<'a> = &'a mut dyn FnMut() -> u64;

/// Draws a version or a token: 63 random bits, never 0.
pub(crate) fn draw(random: Random<'_>) -> u64 {
    (random() >> 1).max(1)
}

/// A lease on a node. The store acknowledged the acquisition under the incarnation named in the head, so the
/// acquisition counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Held {
    pub(crate) node: u64,
    pub(crate) token: u64,
    /// The first tick in which the holder may issue IDs. This tick may be ahead of the clock.
    pub(crate) start: u64,
    /// The holder issues IDs only below this tick.
    pub(crate) reserved_until: u64,
    /// The time at which the lease expires, according to the lower clock. `since_ms` uses the same clock.
    pub(crate) expires_ms: u64,
    pub(crate) since_ms: u64,
    pub(crate) store_time: StoreTime,
    /// The space's head when the lease was last written, and earlier heads.
    pub(crate) known: Known,
    /// The reading of the higher clock when the store answered the last write that counted.
    high_ms: u64,
    /// The version and the bound in the last write that counted, and the version that the acquisition
    /// replaced.
    version: u64,
    written_until: u64,
    replaced: Option<u64>,
    /// A renewal that was sent and may have taken effect.
    sent: Option<Sent>,
}

impl Held {
    /// Returns the length of time during which no other process can hold the node, measured from the moment
    /// this process sent its last renewal.
    pub(crate) const fn is_alone_for_ms(&self) -> u64 {
        let from_ms = self.high_ms.saturating_add(self.known.head.difference_ms);
        self.expires_ms.saturating_sub(from_ms)
    }

    /// Returns the space's lead if it is smaller than this process's lead and therefore overrides it.
    pub(crate) fn smaller_lead_ms(&self, terms: &Terms) -> Option<u64> {
        Some(self.known.head.lead_ms).filter(|&lead_ms| lead_ms < terms.lead_ms)
    }

    /// Returns the version of the lease's record, for writes that use this record as their guard. Returns
    /// `None` while it is unknown whether a renewal has taken effect.
    pub(crate) fn version(&self) -> Option<u64> {
        self.sent.is_none().then_some(self.version)
    }

    /// Returns how long a lease in this space lasts. The keeper renews the lease after a third of that time.
    pub(crate) fn ttl_ms(&self, terms: &Terms) -> u64 {
        terms.ttl_ms(&self.known.head)
    }

    /// Updates the lease after a write that counted.
    fn written(&mut self, sent: &Sent, received: &Received) {
        self.version = sent.new.version;
        self.reserved_until = sent.new.reserved_until;
        self.written_until = sent.new.reserved_until;
        self.expires_ms = sent.new.expires_ms;
        // The store rounds its time down.
        let store_ms = received.now_ms.saturating_add(received.facts.granularity_ms.saturating_sub(1));
        self.high_ms = received.high_ms().max(store_ms);
        self.known.see(&sent.under);
    }
}

/// A write to a node's record that was sent and may have taken effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Sent {
    under: Head,
    node: u64,
    expected: Option<u64>,
    new: Node,
    /// The first tick of the lease.
    start: u64,
    /// The current time, as assumed by the write.
    assumed_ms: u64,
}

impl Sent {
    fn request(&self) -> Request {
        let (under, new) = (self.under.clone(), self.new.clone());
        Request::PutNode { under, node: self.node, expected: self.expected, new }
    }
}

/// The part of a space's state that a process remembers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Known {
    pub(crate) head: Head,
    /// The versions of heads that have been replaced. A store that returns one of them has lost writes.
    before: Vec<u64>,
}

impl Known {
    pub(crate) const fn new(head: Head) -> Self {
        Self { head, before: Vec::new() }
    }

    fn see(&mut self, head: &Head) {
        if head.version != self.head.version {
            if self.before.len() == MAX_BEFORE {
                self.before.remove(0);
            }
            self.before.push(self.head.version);
        }
        self.head = head.clone();
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
    /// Estimates the store's time. The estimate is never too high.
    const fn at(&self, elapsed_ms: u64) -> u64 {
        self.now_ms.saturating_add(elapsed_ms.saturating_sub(self.received_ms))
    }
}

/// The reason a process has no lease, or has lost its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    Store(StoreError),
    /// One of the space's records is unreadable because another version of Polyflake or another program wrote
    /// it.
    Unreadable(String),
    /// Every node that the process may choose is leased or in use. `nodes` is the number of these nodes.
    NoneFree {
        nodes: u64,
        first: Option<FreesFirst>,
    },
    /// Nobody can acquire a lease until this much time has passed.
    Fenced {
        in_ms: u64,
        why: Why,
    },
    ClockDiffers(ClockDiffers),
    /// The space's `clock_difference` is smaller than this process's, so the space's fences could be too low
    /// for this process.
    DifferenceTooLarge {
        difference_ms: u64,
        of_space_ms: u64,
    },
    /// Other processes got there first each time, or the store's answers kept changing. The process can try
    /// again later.
    Contended,
}

/// The leased node that will become free first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FreesFirst {
    pub(crate) node: u64,
    pub(crate) label: String,
    pub(crate) at_ms: u64,
    pub(crate) in_ms: u64,
}

/// A difference between the local clock and the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_field_names, reason = "the unit")]
pub(crate) struct ClockDiffers {
    pub(crate) store_ms: u64,
    pub(crate) local_ms: i64,
    pub(crate) by_ms: u64,
}

/// A request to the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Request {
    /// Reads the head and these nodes, or the head and all nodes if `None`.
    Read(Option<Vec<u64>>),
    PutHead {
        expected: Option<u64>,
        new: Head,
    },
    /// Writes a node's record, guarded by the head.
    PutNode {
        under: Head,
        node: u64,
        expected: Option<u64>,
        new: Node,
    },
}

/// The store's reply to a [`Request`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    Records {
        head: Option<Head>,
        nodes: Vec<(u64, Node)>,
    },
    /// True if the head was written.
    Head(bool),
    Written,
    /// Nothing was written, because the store has these records instead of the expected ones.
    Found {
        head: Option<Head>,
        record: Option<Node>,
    },
}

/// A reply, the server that sent it, and the clock readings.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Received {
    pub(crate) reply: Reply,
    pub(crate) now_ms: u64,
    pub(crate) incarnation: String,
    /// True if the store has lost nothing since it received the head that the reply shows or that guarded the
    /// write.
    pub(crate) has_kept_all: bool,
    pub(crate) facts: Facts,
    pub(crate) wall_sent_ms: i64,
    pub(crate) wall_received_ms: i64,
    /// [`Time::elapsed_ms`] when the reply was received.
    pub(crate) elapsed_ms: u64,
}

impl Received {
    /// Returns the time from which bounds and expiries are computed. This time is never ahead of the store's
    /// clock, and never ahead of this machine's clock by more than the allowed difference.
    fn low_ms(&self, head: &Head) -> u64 {
        low_ms(self.now_ms, self.wall_first_ms(), head)
    }

    /// Returns the higher of the two clocks. Fences are computed from it. A process also compares it with the
    /// expiry of its own lease, to decide whether it may rejoin.
    fn high_ms(&self) -> u64 {
        let last = self.wall_sent_ms.max(self.wall_received_ms);
        self.now_ms.max(u64::try_from(last).unwrap_or(0))
    }

    /// Returns the lower of the two clocks. A process compares it with fences and with the expiry of other
    /// processes' leases.
    fn lower_ms(&self) -> u64 {
        self.now_ms.min(self.wall_first_ms())
    }

    fn check_clock(&self, difference_ms: u64) -> Result<(), Refusal> {
        self.clock_differs()
            .filter(|differs| differs.by_ms > difference_ms)
            .map_or(Ok(()), |differs| Err(Refusal::ClockDiffers(differs)))
    }

    fn wall_first_ms(&self) -> u64 {
        u64::try_from(self.wall_sent_ms.min(self.wall_received_ms)).unwrap_or(0)
    }

    /// Returns the granularity of the store's clock, either now or when the head was written, whichever is
    /// larger.
    fn granularity_ms(&self, head: &Head) -> u64 {
        self.facts.granularity_ms.max(head.granularity_ms)
    }

    /// Returns true if the reply comes from the head's store, or from a store that has kept all of that
    /// store's writes.
    fn is_of(&self, head: &Head) -> bool {
        self.incarnation == head.incarnation || self.has_kept_all
    }

    /// Returns how far the store's time lies outside the interval between sending the request and receiving
    /// the reply. Measuring against the interval keeps a slow store from looking like one whose clock is
    /// wrong.
    fn clock_differs(&self) -> Option<ClockDiffers> {
        let store_ms = self.now_ms;
        let now = i64::try_from(store_ms).unwrap_or(i64::MAX);
        // If the clock was set back between the two readings, the interval is reversed.
        let first = self.wall_sent_ms.min(self.wall_received_ms);
        let last = self.wall_sent_ms.max(self.wall_received_ms);
        let latest = now.saturating_add_unsigned(self.facts.granularity_ms.saturating_sub(1));
        let (by, local_ms) =
            if now > last { (now.saturating_sub(last), last) } else { (first.saturating_sub(latest), first) };
        let by_ms = u64::try_from(by).ok().filter(|&by| by > 0)?;
        Some(ClockDiffers { store_ms, local_ms, by_ms })
    }

    fn store_time(&self) -> StoreTime {
        StoreTime { now_ms: self.now_ms, received_ms: self.elapsed_ms }
    }
}

fn low_ms(store_ms: u64, wall_ms: u64, head: &Head) -> u64 {
    store_ms.min(wall_ms.saturating_add(head.difference_ms))
}

/// The next step: another request, or the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next<T> {
    Ask(Request),
    Done(T),
}

/// Returns the bound to write. The holder may issue IDs only below this tick.
pub(crate) fn bound(space: &Space, now_ms: u64, lead_ms: u64) -> u64 {
    space.tick_from(now_ms.saturating_add(lead_ms)).saturating_add(1).min(Record::LAST_NUMBER)
}

/// Returns the fence for a store that has lost writes. The fence is above every bound that was written before
/// the loss. `now_ms` is the higher clock's reading when an answer revealed the loss.
///
/// Each bound was computed from a time that was at most twice the difference ahead of true time. `now_ms` is
/// behind true time by at most one difference plus the granularity of the store's clock.
pub(crate) fn fence(space: &Space, now_ms: u64, head: &Head) -> u64 {
    let margin_ms = head.difference_ms.saturating_mul(3).saturating_add(head.granularity_ms);
    bound(space, now_ms.saturating_add(margin_ms), head.lead_ms)
}

/// The state of a space, as shown by one answer.
struct Look<'a> {
    terms: &'a Terms,
    received: &'a Received,
    found: Option<&'a Head>,
    /// The state that this process last saw.
    known: Option<&'a Known>,
    /// True if the answer shows that the store has lost a record that this process or another process wrote.
    has_lost_records: bool,
}

impl Look<'_> {
    /// Returns a new head if the process must write one before it does anything else. This is the case if the
    /// space has no head, if the head belongs to another store, or if the store has lost writes since the
    /// head was written.
    fn head_to_write(&self, random: Random<'_>) -> Option<Head> {
        let Self { terms, received, found, known, has_lost_records } = *self;
        let has_lost = |found: &Head| {
            let is_replaced = known.is_some_and(|known| known.before.contains(&found.version));
            is_replaced || has_lost_records || !received.is_of(found)
        };
        let incarnation = received.incarnation.clone();
        let granularity_ms = received.facts.granularity_ms;
        match (found, known) {
            (Some(found), _) if !has_lost(found) => (found.incarnation != incarnation).then(|| Head {
                version: draw(random),
                incarnation,
                ..found.clone()
            }),
            (None, None) if !has_lost_records => {
                let mut head = Head {
                    version: draw(random),
                    incarnation,
                    lead_ms: terms.lead_ms,
                    difference_ms: terms.clock_difference_ms,
                    granularity_ms,
                    fence: 0,
                    why: Why::First,
                };
                if received.facts.can_forget && !terms.is_init {
                    head.fence = fence(&terms.space, received.high_ms(), &head);
                }
                Some(head)
            }
            _ => {
                let before = || found.into_iter().chain(known.map(|known| &known.head));
                let most = |of: fn(&Head) -> u64| before().map(of).max();
                let mut head = Head {
                    version: draw(random),
                    incarnation,
                    lead_ms: most(|head| head.lead_ms).unwrap_or(terms.lead_ms),
                    difference_ms: most(|head| head.difference_ms).unwrap_or(terms.clock_difference_ms),
                    granularity_ms: most(|head| head.granularity_ms).unwrap_or(0).max(granularity_ms),
                    fence: 0,
                    why: Why::Loss,
                };
                // Each loss produces a different fence, so an unchanged fence means that the store has lost
                // nothing since.
                let after = most(|head| head.fence).map_or(0, |fence| fence.saturating_add(1));
                head.fence =
                    fence(&terms.space, received.high_ms(), &head).max(after).min(Record::LAST_NUMBER);
                Some(head)
            }
        }
    }
}

/// Sends one request, and reads the clocks before sending it and after receiving the reply.
async fn ask(
    store: &mut dyn Store,
    group: &Group,
    request: &Request,
    time: &dyn Time,
) -> Result<Received, Refusal> {
    let wall_sent_ms = time.wall_ms();
    let (answer, under) = put(store, group, request).await?;
    let (wall_received_ms, elapsed_ms) = (time.wall_ms(), time.elapsed_ms());
    let Answer { now_ms, incarnation, value: reply } = answer;
    let has_kept_all = under.is_some_and(|before| store.has_kept_all(&before, &incarnation));
    let facts = store.facts();
    Ok(Received {
        reply,
        now_ms,
        incarnation,
        has_kept_all,
        facts,
        wall_sent_ms,
        wall_received_ms,
        elapsed_ms,
    })
}

/// Sends one request. Returns the answer, and the incarnation of the head that the answer shows or that
/// guarded the write.
pub(crate) async fn put(
    store: &mut dyn Store,
    group: &Group,
    request: &Request,
) -> Result<(Answer<Reply>, Option<String>), Refusal> {
    let write =
        |name: String, expected, guard, new| Write { group: group.clone(), name, expected, guard, new };
    match request {
        Request::Read(nodes) => {
            let names: Option<Vec<String>> = nodes.as_ref().map(|nodes| {
                let nodes = nodes.iter().map(u64::to_string);
                core::iter::once(HEAD.to_owned()).chain(nodes).collect()
            });
            let names: Option<Vec<&str>> = names.as_ref().map(|names| names.iter().map(|it| &**it).collect());
            let Answer { now_ms, incarnation, value } = store.read(group, names.as_deref()).await?;
            let (mut head, mut nodes) = (None, Vec::with_capacity(value.len()));
            for (name, record) in &value {
                if name == HEAD {
                    head = Some(Head::read(record)?);
                } else if group.kind != Kind::Sequences || !name.starts_with(SECTION) {
                    let node = name.parse().map_err(|_| {
                        Refusal::Unreadable(format!("the space has a record {name:?}, which names no node"))
                    })?;
                    nodes.push((node, Node::read(node, record)?));
                }
            }
            let under = head.as_ref().map(|head| head.incarnation.clone());
            Ok((Answer { now_ms, incarnation, value: Reply::Records { head, nodes } }, under))
        }
        Request::PutHead { expected, new } => {
            let write = write(HEAD.into(), *expected, None, new.write()?);
            let answer = store.write(&write).await?;
            let reply = answer.map(|outcome| Reply::Head(outcome == Written::Written));
            Ok((reply, Some(new.incarnation.clone())))
        }
        Request::PutNode { under, node, expected, new } => {
            let guard = Some((HEAD.to_owned(), under.version));
            let write = write(node.to_string(), *expected, guard, new.write()?);
            let Answer { now_ms, incarnation, value } = store.write(&write).await?;
            let (value, before) = match value {
                Written::Written => (Reply::Written, Some(under.incarnation.clone())),
                Written::Found { record, guard } => {
                    let head = guard.as_ref().map(Head::read).transpose()?;
                    let record = record.as_ref().map(|record| Node::read(*node, record)).transpose()?;
                    let before = head.as_ref().map(|head| head.incarnation.clone());
                    (Reply::Found { head, record }, before)
                }
            };
            Ok((Answer { now_ms, incarnation, value }, before))
        }
    }
}

/// Makes one attempt to acquire a lease. The caller may drop the future at any time. The next attempt with
/// the same `acquisition` then repeats any write whose outcome is unknown.
pub(crate) async fn acquire(
    store: &mut dyn Store,
    terms: &Terms,
    acquisition: &mut Acquisition,
    time: &dyn Time,
    random: Random<'_>,
    is_used: &dyn Fn(u64) -> bool,
) -> Result<Held, Refusal> {
    let mut request = acquisition.begin(terms, random);
    loop {
        let received = ask(store, &terms.group, &request, time).await?;
        match acquisition.step(terms, &received, random, is_used)? {
            Next::Ask(next) => request = next,
            Next::Done(held) => return Ok(held),
        }
    }
}

/// Makes one attempt to renew a lease. The caller may drop the future at any time and start the renewal over.
pub(crate) async fn renew(
    store: &mut dyn Store,
    terms: &Terms,
    held: &mut Held,
    time: &dyn Time,
    random: Random<'_>,
) -> Result<Renewed, Refusal> {
    let (mut renewal, mut request) = Renewal::begin(terms, held, time, random);
    loop {
        let received = ask(store, &terms.group, &request, time).await?;
        match renewal.step(terms, held, &received, random)? {
            Next::Ask(next) => request = next,
            Next::Done(renewed) => return Ok(renewed),
        }
    }
}

/// Releases a lease, so that its node becomes free immediately. `issued_until` is the tick after the last
/// tick in which the holder issued IDs. The caller reads it only after the holder has stopped issuing IDs for
/// good. The caller may drop the future at any time and start the release over.
pub(crate) async fn release(
    store: &mut dyn Store,
    terms: &Terms,
    held: &Held,
    issued_until: u64,
    time: &dyn Time,
    random: Random<'_>,
) -> Result<(), Refusal> {
    let (mut release, mut request) = Release::begin(terms, held, issued_until, random);
    loop {
        let received = ask(store, &terms.group, &request, time).await?;
        match release.step(held, &received, random)? {
            Next::Ask(next) => request = next,
            Next::Done(()) => return Ok(()),
        }
    }
}
