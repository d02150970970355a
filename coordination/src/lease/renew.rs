//! Renewing: a later expiry and a later bound, compared on the token and the bound that are there.

use super::{
    ClockDiffers, Held, MAX_REQUESTS, Next, Received, Refusal, Reply, Request, Terms, bound, space_record,
};
use crate::store::{Claim, Listing, NodeRecord, Outcome, SpaceRecord};

/// What became of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewed {
    /// Bound and expiry are later. The clock differs by more than it should, but not so much that it was refused.
    Extended { clock: Option<ClockDiffers> },
    /// Another has the node. What was reserved may be issued still: up to the bound in `Held`, which may have come down.
    Lost,
}

/// A renewal under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Renewal {
    under: SpaceRecord,
    expected: Claim,
    /// What was sent last, and what the store's time was taken to be.
    new: NodeRecord,
    assumed_ms: u64,
    /// Whether it was written once more already.
    is_again: bool,
    requests: u32,
}

impl Renewal {
    /// With its first request.
    pub(crate) fn begin(terms: &Terms, held: &Held, elapsed_ms: u64) -> (Self, Request) {
        let (under, expected) = (held.under.clone(), held.claim());
        let assumed_ms = held.store_time.at(elapsed_ms);
        let new = extended(terms, held, &under, &expected, assumed_ms);
        let renewal = Self { under, expected, new, assumed_ms, is_again: false, requests: 1 };
        let request = renewal.put();
        (renewal, request)
    }

    pub(crate) fn step(
        &mut self,
        terms: &Terms,
        held: &mut Held,
        received: &Received,
    ) -> Result<Next<Renewed>, Refusal> {
        if let Some(time) = received.store_time() {
            held.store_time = time;
        }
        let clock = received.clock_differs().filter(|differs| differs.by_ms > terms.clock_difference_ms);
        if let Some(differs) = clock {
            if differs.by_ms > (terms.ttl_ms / 3).max(terms.clock_difference_ms) {
                return Err(Refusal::ClockDiffers(differs));
            }
        }
        match &received.reply {
            Reply::Listing(listing) => self.rejoin(terms, held, listing, received.granularity_ms),
            Reply::Space(_) => self.ask(Request::List),
            Reply::Node(put) => match &put.outcome {
                Outcome::Written => {
                    self.written(held);
                    // The machine stood still, and the clock that should count that did not.
                    if put.now_ms.saturating_sub(self.assumed_ms) > terms.ttl_ms / 3 && !self.is_again {
                        self.is_again = true;
                        return self.put_on(terms, held, held.claim(), put.now_ms);
                    }
                    Ok(Next::Done(Renewed::Extended { clock }))
                }
                // A reply was lost, or the store lost what this wrote last.
                Outcome::Found(Some(found)) if found.token == held.token => {
                    self.put_on(terms, held, found.claim(), put.now_ms)
                }
                Outcome::Found(_) => Ok(Next::Done(Renewed::Lost)),
                Outcome::OtherSpace => self.ask(Request::List),
            },
        }
    }

    /// Goes on under another record of the space than the lease was under.
    fn rejoin(
        &mut self,
        terms: &Terms,
        held: &mut Held,
        listing: &Listing,
        granularity_ms: u64,
    ) -> Result<Next<Renewed>, Refusal> {
        if let Some(new) = space_record(terms, listing, Some(&held.under), granularity_ms) {
            return self.ask(Request::PutSpace { expected: listing.space.clone(), new });
        }
        let Some(space) = &listing.space else { return self.ask(Request::List) };
        let mine = listing.nodes.iter().find(|record| record.node == held.node && record.token == held.token);
        // Where this one had expired, the store may have lost a successor. The clock that let it in may have been ahead.
        let is_mine = |record: &&NodeRecord| {
            *space == held.under
                || listing.now_ms.saturating_add(terms.clock_difference_ms) < record.expires_ms
        };
        if let Some(record) = mine.filter(is_mine) {
            self.under = space.clone();
            return self.put_on(terms, held, record.claim(), listing.now_ms);
        }
        if *space != held.under {
            // Others begin at its fence, which is below the bound only where somebody vouched wrongly that nobody was there, or
            // wrote it without knowing of so long a lead.
            held.reserved_until = held.reserved_until.min(space.fence);
        }
        Ok(Next::Done(Renewed::Lost))
    }

    fn put_on(
        &mut self,
        terms: &Terms,
        held: &Held,
        expected: Claim,
        now_ms: u64,
    ) -> Result<Next<Renewed>, Refusal> {
        self.new = extended(terms, held, &self.under, &expected, now_ms);
        (self.expected, self.assumed_ms) = (expected, now_ms);
        let request = self.put();
        self.ask(request)
    }

    fn put(&self) -> Request {
        let (under, expected) = (self.under.clone(), Some(self.expected.clone()));
        Request::PutNode { under, expected, new: self.new.clone() }
    }

    fn ask(&mut self, request: Request) -> Result<Next<Renewed>, Refusal> {
        self.requests += 1;
        if self.requests > MAX_REQUESTS { Err(Refusal::Contended) } else { Ok(Next::Ask(request)) }
    }

    fn written(&self, held: &mut Held) {
        held.under = self.under.clone();
        held.reserved_until = self.new.reserved_until;
        held.expires_ms = self.new.expires_ms;
    }
}

/// The record of a renewal: its bound is never below what is there, or what was reserved before.
fn extended(terms: &Terms, held: &Held, under: &SpaceRecord, expected: &Claim, now_ms: u64) -> NodeRecord {
    let reserved_until = bound(&terms.space, now_ms, under.lead_ms);
    NodeRecord {
        node: held.node,
        token: held.token.clone(),
        expires_ms: now_ms.saturating_add(terms.ttl_ms),
        reserved_until: reserved_until.max(held.reserved_until).max(expected.reserved_until),
        label: terms.label.clone(),
        since_ms: held.since_ms,
    }
}
