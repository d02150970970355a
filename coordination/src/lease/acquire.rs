//! Acquiring: list, write the space's record if it is absent or of another incarnation, choose, write the node's record.

use std::collections::HashSet;

use super::{
    FreesFirst, Held, MAX_REQUESTS, Next, Random, Received, Refusal, Reply, Request, Terms, bound,
    space_record,
};
use crate::store::{Claim, Listing, NodeRecord, Outcome, SpaceRecord};

/// How many of the lowest nodes that were never used one is chosen from, so that processes that start at once do not all want
/// the same one.
const NEVER_USED: usize = 64;

/// How many unanswered writes are remembered.
const MAX_SENT: usize = 64;

/// A lease in the making. It goes over several goes, so that a write whose reply was lost is found by the next.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Acquisition {
    token: String,
    /// The space's record as this process last saw it.
    known: Option<SpaceRecord>,
    /// What was sent with the token.
    sent: Vec<Sent>,
    requests: u32,
}

/// A node's record that was sent, and what the lease would be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Sent {
    under: SpaceRecord,
    new: NodeRecord,
    start: u64,
}

impl Acquisition {
    /// `known`: what the last lease of this process in this space was under. A process that knows of one never takes the
    /// space to be new.
    pub(crate) fn new(known: Option<SpaceRecord>, random: Random<'_>) -> Self {
        Self { token: new_token(random), known, sent: Vec::new(), requests: 0 }
    }

    /// The first request of a go.
    pub(crate) fn begin(&mut self) -> Request {
        self.requests = 1;
        Request::List
    }

    pub(crate) fn step(
        &mut self,
        terms: &Terms,
        received: &Received,
        random: Random<'_>,
        is_used: &dyn Fn(u64) -> bool,
    ) -> Result<Next<Held>, Refusal> {
        if let Some(differs) =
            received.clock_differs().filter(|differs| differs.by_ms > terms.clock_difference_ms)
        {
            // Its clock differs, but its answer to a write holds: the next go finds it.
            return Err(Refusal::ClockDiffers(differs));
        }
        let listing = match &received.reply {
            Reply::Listing(listing) => listing,
            Reply::Node(put) if put.outcome == Outcome::Written => {
                let sent = self.sent.last().cloned();
                return self.done(sent, received, random);
            }
            // Another was faster, or an earlier go of this one: what is there now counts.
            Reply::Node(_) => {
                self.sent.pop();
                return self.ask(Request::List);
            }
            Reply::Space(_) => return self.ask(Request::List),
        };
        if let Some(new) = space_record(terms, listing, self.known.as_ref(), received.granularity_ms) {
            let expected = listing.space.clone();
            return self.ask(Request::PutSpace { expected, new });
        }
        let Some(space) = &listing.space else { return self.ask(Request::List) };
        self.known = Some(space.clone());
        if terms.lead_ms > space.lead_ms {
            return Err(Refusal::LeadTooLong { lead_ms: terms.lead_ms, of_space_ms: space.lead_ms });
        }
        if let Some(sent) = self.find_sent(listing, space) {
            return self.done(Some(sent), received, random);
        }
        let (expected, sent) = choose(terms, listing, space, &self.token, random, is_used)?;
        let request = Request::PutNode { under: space.clone(), expected, new: sent.new.clone() };
        if self.sent.len() == MAX_SENT {
            self.sent.remove(0);
        }
        self.sent.push(sent);
        self.ask(request)
    }

    fn done(
        &mut self,
        sent: Option<Sent>,
        received: &Received,
        random: Random<'_>,
    ) -> Result<Next<Held>, Refusal> {
        let (Some(Sent { under, new, start }), Some(store_time)) = (sent, received.store_time()) else {
            return self.ask(Request::List);
        };
        self.sent.clear();
        // Whatever comes after is another lease.
        let NodeRecord { node, token, expires_ms, reserved_until, since_ms, .. } = new;
        self.token = new_token(random);
        Ok(Next::Done(Held { node, token, start, reserved_until, expires_ms, since_ms, store_time, under }))
    }

    fn ask(&mut self, request: Request) -> Result<Next<Held>, Refusal> {
        self.requests += 1;
        if self.requests > MAX_REQUESTS { Err(Refusal::Contended) } else { Ok(Next::Ask(request)) }
    }

    /// What this process wrote and is there, under the record that was there when it chose. The last of those alike: a bound
    /// that was found never comes down, so what an earlier one expected is gone.
    fn find_sent(&self, listing: &Listing, space: &SpaceRecord) -> Option<Sent> {
        let is_there = |new: &NodeRecord| {
            listing.nodes.iter().any(|record| record.node == new.node && record.claim() == new.claim())
        };
        self.sent.iter().rev().find(|sent| sent.under == *space && is_there(&sent.new)).cloned()
    }
}

fn new_token(random: Random<'_>) -> String {
    format!("{:016x}{:016x}", random(), random())
}

/// Which node to lease: a random one of the free ones whose bound has passed, else one that was never used, else the free one
/// whose bound comes first.
fn choose(
    terms: &Terms,
    listing: &Listing,
    space: &SpaceRecord,
    token: &str,
    random: Random<'_>,
    is_used: &dyn Fn(u64) -> bool,
) -> Result<(Option<Claim>, Sent), Refusal> {
    let (now_ms, tick) = (listing.now_ms, terms.space.tick_of(listing.now_ms));
    if space.fence > tick {
        let in_ms = terms.space.start_ms(space.fence).saturating_sub(now_ms);
        return Err(Refusal::Fenced { in_ms });
    }
    let frees_ms = |record: &NodeRecord| record.expires_ms.saturating_add(terms.clock_difference_ms);
    let is_free = |record: &NodeRecord| record.token.is_empty() || now_ms > frees_ms(record);
    let candidates =
        || listing.nodes.iter().filter(|record| terms.nodes.contains(record.node) && !is_used(record.node));
    let free = || candidates().filter(|record| is_free(record));
    let mut passed: Vec<_> = free().filter(|record| record.reserved_until <= tick).collect();
    // Stores list in any order: a given choice is a given node.
    passed.sort_unstable_by_key(|record| record.node);

    let chosen = if let Some(record) = pick(&passed, random) {
        Some((record.node, Some(*record)))
    } else {
        let known: HashSet<u64> = listing.nodes.iter().map(|record| record.node).collect();
        let never_used = terms.nodes.iter().filter(|&node| !known.contains(&node) && !is_used(node));
        let never_used: Vec<u64> = never_used.take(NEVER_USED).collect();
        let never_used = pick(&never_used, random).map(|&node| (node, None));
        let first_bound = || free().min_by_key(|record| (record.reserved_until, record.node));
        never_used.or_else(|| first_bound().map(|record| (record.node, Some(record))))
    };
    let Some((node, record)) = chosen else {
        let first = candidates().min_by_key(|record| (record.expires_ms, record.node)).map(|record| {
            let at_ms = frees_ms(record).saturating_add(1);
            let in_ms = at_ms.saturating_sub(now_ms);
            FreesFirst { node: record.node, label: record.label.clone(), at_ms, in_ms }
        });
        return Err(Refusal::NoneFree { nodes: terms.nodes.count(), first });
    };
    let found = record.map_or(0, |record| record.reserved_until);
    let new = NodeRecord {
        node,
        token: token.to_owned(),
        expires_ms: now_ms.saturating_add(terms.ttl_ms),
        reserved_until: bound(&terms.space, now_ms, space.lead_ms).max(found),
        label: terms.label.clone(),
        since_ms: now_ms,
    };
    let sent = Sent { under: space.clone(), new, start: found.max(space.fence) };
    Ok((record.map(NodeRecord::claim), sent))
}

fn pick<'a, T>(of: &'a [T], random: Random<'_>) -> Option<&'a T> {
    let count = u64::try_from(of.len()).ok()?;
    of.get(usize::try_from(random().checked_rem(count)?).ok()?)
}
