//! Releases a lease by writing a record without a token and without an expiry. The record's bound is the tick
//! after the last tick that the holder used.

use super::{Head, Held, MAX_REQUESTS, Next, Node, Random, Received, Refusal, Reply, Request, Terms, draw};

/// A release in progress.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Release {
    pub(super) under: Head,
    pub(super) new: Node,
    pub(super) requests: u32,
}

impl Release {
    /// Begins a release, and returns it with its first request.
    pub(crate) fn begin(
        terms: &Terms,
        held: &Held,
        issued_until: u64,
        random: Random<'_>,
    ) -> (Self, Request) {
        let new = Node {
            version: draw(random),
            token: 0,
            expires_ms: 0,
            reserved_until: held.start.max(issued_until),
            label: terms.label.clone(),
            since_ms: held.since_ms,
        };
        let release = Self { under: held.known.head.clone(), new, requests: 1 };
        let request = release.put(held, held.version);
        (release, request)
    }

    pub(crate) fn step(
        &mut self,
        held: &Held,
        received: &Received,
        random: Random<'_>,
    ) -> Result<Next<()>, Refusal> {
        let (head, record) = match &received.reply {
            Reply::Written | Reply::Head(_) => return Ok(Next::Done(())),
            Reply::Records { head, nodes } => {
                let record = nodes.iter().find(|(node, _)| *node == held.node).map(|(_, record)| record);
                (head.as_ref(), record)
            }
            Reply::Found { head, record } => (head.as_ref(), record.as_ref()),
        };
        match (head, record) {
            (Some(head), Some(record)) if received.is_of(head) && record.token == held.token => {
                self.under = head.clone();
                self.new.version = draw(random);
                self.requests += 1;
                if self.requests > MAX_REQUESTS {
                    return Err(Refusal::Contended);
                }
                Ok(Next::Ask(self.put(held, record.version)))
            }
            // Either another process has the node by now, or the store lost writes and nobody has written a
            // fence yet. In the second case, the lease simply expires.
            _ => Ok(Next::Done(())),
        }
    }

    fn put(&self, held: &Held, expected: u64) -> Request {
        let (under, new) = (self.under.clone(), self.new.clone());
        Request::PutNode { under, node: held.node, expected: Some(expected), new }
    }
}
