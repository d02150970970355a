//! A space's records in memory, the simplest kind of store. The tests and the model use it.

use std::collections::BTreeMap;

use super::{Facts, Head, Node, Received, Reply, Request, Time};

/// The contents of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Memory {
    /// The incarnation. A change of incarnation that loses nothing appends a `*`.
    pub(crate) incarnation: String,
    pub(crate) head: Option<Head>,
    pub(crate) nodes: BTreeMap<u64, Node>,
    pub(crate) can_forget: bool,
}

/// A machine's clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Local {
    pub(crate) wall_ms: u64,
    pub(crate) elapsed_ms: u64,
}

impl Time for Local {
    fn wall_ms(&self) -> i64 {
        self.wall_ms.try_into().unwrap()
    }

    fn elapsed_ms(&self) -> u64 {
        self.elapsed_ms
    }
}

impl Memory {
    /// Answers a request. Also returns the incarnation of the head that the request concerns, if that head
    /// exists.
    pub(crate) fn answer(&mut self, request: &Request) -> (Reply, Option<String>) {
        let of = |head: &Option<Head>| head.as_ref().map(|head| head.incarnation.clone());
        match request {
            Request::Read(wanted) => {
                let is_wanted = |node: &u64| wanted.as_ref().is_none_or(|wanted| wanted.contains(node));
                let nodes = self.nodes.iter().filter(|(node, _)| is_wanted(node));
                let nodes = nodes.map(|(node, record)| (*node, record.clone())).collect();
                (Reply::Records { head: self.head.clone(), nodes }, of(&self.head))
            }
            Request::PutHead { expected, new } => {
                let found = self.head.as_ref().map(|head| head.version);
                let is_written = found == *expected || found == Some(new.version);
                if is_written {
                    self.head = Some(new.clone());
                }
                (Reply::Head(is_written), Some(new.incarnation.clone()))
            }
            Request::PutNode { under, node, expected, new } => {
                let record = self.nodes.get(node);
                let found = record.map(|record| record.version);
                let is_guarded = self.head.as_ref().is_some_and(|head| head.version == under.version);
                if is_guarded && (found == *expected || found == Some(new.version)) {
                    self.nodes.insert(*node, new.clone());
                    return (Reply::Written, Some(under.incarnation.clone()));
                }
                (Reply::Found { head: self.head.clone(), record: record.cloned() }, of(&self.head))
            }
        }
    }

    /// Answers a request from a machine with these clocks, at a given store time.
    pub(crate) fn receive(
        &mut self,
        request: &Request,
        now_ms: u64,
        granularity_ms: u64,
        local: Local,
    ) -> Received {
        let (reply, before) = self.answer(request);
        let kept = |incarnation: &str| incarnation.trim_end_matches('*').to_owned();
        let has_kept_all = before.is_some_and(|before| kept(&before) == kept(&self.incarnation));
        Received {
            reply,
            now_ms: now_ms / granularity_ms * granularity_ms,
            incarnation: self.incarnation.clone(),
            has_kept_all,
            facts: Facts { granularity_ms, can_forget: self.can_forget, asynchronous_replicas: 0 },
            wall_sent_ms: local.wall_ms(),
            wall_received_ms: local.wall_ms(),
            elapsed_ms: local.elapsed_ms,
        }
    }
}
