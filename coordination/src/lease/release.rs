//! Releasing: no token, no expiry, and the tick after what was issued as the bound.

use super::{Held, MAX_REQUESTS, Next, Received, Refusal, Reply, Request, Terms};
use crate::store::{Claim, NodeRecord, Outcome, SpaceRecord};

/// A release under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Release {
    under: SpaceRecord,
    new: NodeRecord,
    requests: u32,
}

impl Release {
    /// With its first request.
    pub(crate) fn begin(terms: &Terms, held: &Held, issued_until: u64) -> (Self, Request) {
        let new = NodeRecord {
            node: held.node,
            token: String::new(),
            expires_ms: 0,
            reserved_until: held.start.max(issued_until),
            label: terms.label.clone(),
            since_ms: held.since_ms,
        };
        let release = Self { under: held.under.clone(), new, requests: 1 };
        let request = release.put(held.claim());
        (release, request)
    }

    pub(crate) fn step(&mut self, held: &Held, received: &Received) -> Result<Next<()>, Refusal> {
        match &received.reply {
            Reply::Listing(listing) => {
                let mine = listing.nodes.iter().find(|record| record.node == held.node);
                match (&listing.space, mine) {
                    (Some(space), Some(record))
                        if space.incarnation == listing.incarnation && record.token == held.token =>
                    {
                        self.under = space.clone();
                        self.ask(self.put(record.claim()))
                    }
                    // Another's by now; or the store lost writes, and nobody wrote a fence yet: it expires.
                    _ => Ok(Next::Done(())),
                }
            }
            Reply::Node(put) => match &put.outcome {
                Outcome::Found(Some(found)) if found.token == held.token => self.ask(self.put(found.claim())),
                Outcome::Written | Outcome::Found(_) => Ok(Next::Done(())),
                Outcome::OtherSpace => self.ask(Request::List),
            },
            Reply::Space(_) => self.ask(Request::List),
        }
    }

    fn put(&self, expected: Claim) -> Request {
        Request::PutNode { under: self.under.clone(), expected: Some(expected), new: self.new.clone() }
    }

    fn ask(&mut self, request: Request) -> Result<Next<()>, Refusal> {
        self.requests += 1;
        if self.requests > MAX_REQUESTS { Err(Refusal::Contended) } else { Ok(Next::Ask(request)) }
    }
}
