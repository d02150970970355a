//! A store in memory, for the tests, the model and the simulation: what a store must do, in its plainest form.

use std::collections::BTreeMap;

use super::{Reply, Request};
use crate::store::{Listing, NodeRecord, Outcome, Put, SpaceRecord};

/// What a store keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Memory {
    pub(crate) incarnation: String,
    pub(crate) space: Option<SpaceRecord>,
    pub(crate) nodes: BTreeMap<u64, NodeRecord>,
    /// Whether it cannot forget: an empty one is a new one.
    pub(crate) cannot_forget: bool,
}

impl Memory {
    /// Answers a request at a time.
    pub(crate) fn answer(&mut self, request: &Request, now_ms: u64) -> Reply {
        match request {
            Request::List => Reply::Listing(Listing {
                now_ms,
                incarnation: self.incarnation.clone(),
                space: self.space.clone(),
                is_new: self.cannot_forget && self.space.is_none() && self.nodes.is_empty(),
                nodes: self.nodes.values().cloned().collect(),
            }),
            Request::PutSpace { expected, new } => {
                let is_written = self.space == *expected && self.incarnation == new.incarnation;
                if is_written {
                    self.space = Some(new.clone());
                }
                Reply::Space(is_written)
            }
            Request::PutNode { under, expected, new } => {
                let found = self.nodes.get(&new.node);
                let outcome = if self.space.as_ref() != Some(under) || self.incarnation != under.incarnation {
                    Outcome::OtherSpace
                } else if found.map(NodeRecord::claim) == *expected {
                    self.nodes.insert(new.node, new.clone());
                    Outcome::Written
                } else {
                    Outcome::Found(found.cloned())
                };
                Reply::Node(Put { now_ms, outcome })
            }
        }
    }

    /// As [`answer`](Self::answer), by a store that does not look at tokens, to a holder that does not either.
    pub(crate) fn answer_without_tokens(&mut self, request: &Request, now_ms: u64) -> Reply {
        let Request::PutNode { under, expected: Some(expected), new } = request else {
            return self.answer(request, now_ms);
        };
        let found = self.nodes.get(&new.node).map(NodeRecord::claim);
        let is_same = found.as_ref().is_some_and(|found| found.reserved_until == expected.reserved_until);
        let of_bound = if is_same { found } else { None };
        let request = Request::PutNode { under: under.clone(), expected: of_bound, new: new.clone() };
        let mut reply = self.answer(&request, now_ms);
        if let Reply::Node(Put { outcome: Outcome::Found(Some(found)), .. }) = &mut reply {
            if !expected.token.is_empty() {
                found.token.clone_from(&expected.token);
            }
        }
        reply
    }
}
