//! Acquires a lease in four steps: reads the records, writes the space's head if it is missing or belongs to
//! another store, chooses a node, and writes the node's record.

use std::collections::HashSet;

use super::{
    FreesFirst, Head, Held, Known, Look, MAX_REQUESTS, Next, Node, Random, Received, Refusal, Reply, Request,
    Sent, Terms, Why, bound, draw,
};

/// The number of nodes that an acquisition reads first. If none of them is free, it reads all nodes.
const SAMPLE: usize = 16;

/// The maximum number of never-used nodes, lowest first, from which an acquisition chooses at random, so that
/// processes starting at the same time do not all choose the same node.
const NEVER_USED: usize = 64;

/// An acquisition in progress. It may take several attempts, since a write whose outcome is unknown is
/// repeated until the outcome is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Acquisition {
    pub(super) token: u64,
    pub(super) known: Option<Known>,
    /// The nodes requested in the last read, or `None` if it read all nodes.
    pub(super) asked: Option<Vec<u64>>,
    /// A write that may have taken effect.
    pub(super) sent: Option<Sent>,
    /// A write that took effect but did not count. Nobody has issued IDs under it.
    pub(super) void: Option<Sent>,
    pub(super) requests: u32,
}

/// A node that can be leased.
struct Free<'a> {
    node: u64,
    record: Option<&'a Node>,
    /// The first tick of the node's next lease, unless the fence is higher.
    start: u64,
}

impl Acquisition {
    /// Starts an acquisition. `known` is what the process remembers of the space from an earlier lease. A
    /// process that remembers a space never treats it as new.
    pub(crate) fn new(known: Option<Known>, random: Random<'_>) -> Self {
        Self { token: draw(random), known, asked: None, sent: None, void: None, requests: 0 }
    }

    /// Returns the first request of an attempt.
    pub(crate) fn begin(&mut self, terms: &Terms, random: Random<'_>) -> Request {
        self.requests = 1;
        match &self.sent {
            Some(sent) => sent.request(),
            None => self.look(terms, random),
        }
    }

    /// If a write may have taken effect, returns the lease that it would grant. A process that gives up must
    /// release this lease.
    pub(crate) fn unclear(&self) -> Option<Held> {
        self.sent.as_ref().or(self.void.as_ref()).map(|sent| {
            let mut held = held(sent, self.known.as_ref());
            held.reserved_until = held.start;
            held
        })
    }

    pub(crate) fn step(
        &mut self,
        terms: &Terms,
        received: &Received,
        random: Random<'_>,
        is_used: &dyn Fn(u64) -> bool,
    ) -> Result<Next<Held>, Refusal> {
        // Even if this check fails, the outcome of a write is not lost, since the next attempt repeats the
        // write.
        let known = self.known.as_ref();
        received
            .check_clock(known.map_or(terms.clock_difference_ms, |known| terms.difference_ms(&known.head)))?;
        match &received.reply {
            Reply::Records { head, nodes } => {
                self.choose(terms, received, head.as_ref(), nodes, random, is_used)
            }
            Reply::Head(_) => self.look_again(terms, random),
            Reply::Written => match self.sent.take() {
                Some(sent) if received.is_of(&sent.under) => {
                    // From here on, the acquisition is for another lease.
                    self.token = draw(random);
                    self.void = None;
                    let mut held = held(&sent, self.known.as_ref());
                    held.written(&sent, received);
                    held.store_time = received.store_time();
                    Ok(Next::Done(held))
                }
                sent => {
                    self.void = sent;
                    self.look_again(terms, random)
                }
            },
            // Another process got there first, or the head has changed.
            Reply::Found { record, .. } => {
                let sent = self.sent.take();
                let is_there = |sent: &Sent| record.as_ref().is_some_and(|it| it.version == sent.new.version);
                self.void = sent.filter(is_there).or(self.void.take());
                self.look_again(terms, random)
            }
        }
    }

    fn look(&mut self, terms: &Terms, random: Random<'_>) -> Request {
        self.asked = Some(terms.nodes.sample(SAMPLE, random));
        Request::Read(self.asked.clone())
    }

    fn look_again(&mut self, terms: &Terms, random: Random<'_>) -> Result<Next<Held>, Refusal> {
        let request = self.look(terms, random);
        self.ask(request)
    }

    fn look_at_all(&mut self) -> Result<Next<Held>, Refusal> {
        self.asked = None;
        self.ask(Request::Read(None))
    }

    fn ask(&mut self, request: Request) -> Result<Next<Held>, Refusal> {
        self.requests += 1;
        if self.requests > MAX_REQUESTS { Err(Refusal::Contended) } else { Ok(Next::Ask(request)) }
    }

    fn choose(
        &mut self,
        terms: &Terms,
        received: &Received,
        head: Option<&Head>,
        nodes: &[(u64, Node)],
        random: Random<'_>,
        is_used: &dyn Fn(u64) -> bool,
    ) -> Result<Next<Held>, Refusal> {
        let known = self.known.as_ref();
        // The space has nodes but no head, so it is not new.
        let has_lost_records = head.is_none() && !nodes.is_empty();
        let look = Look { terms, received, found: head, known, has_lost_records };
        if let Some(new) = look.head_to_write(random) {
            let expected = head.map(|head| head.version);
            return self.ask(Request::PutHead { expected, new });
        }
        let Some(head) = head else { return self.look_again(terms, random) };
        match &mut self.known {
            Some(known) => known.see(head),
            known => *known = Some(Known::new(head.clone())),
        }
        received.check_clock(terms.difference_ms(head))?;
        if terms.clock_difference_ms > head.difference_ms && !terms.is_difference_default {
            let (difference_ms, of_space_ms) = (terms.clock_difference_ms, head.difference_ms);
            return Err(Refusal::DifferenceTooLarge { difference_ms, of_space_ms });
        }
        let lower_ms = received.lower_ms();
        if head.fence > terms.space.tick_of(lower_ms) {
            if terms.is_init && head.why == Why::First {
                if self.asked.is_some() {
                    return self.look_at_all();
                }
                if nodes.is_empty() {
                    let new = Head { version: draw(random), fence: 0, ..head.clone() };
                    return self.ask(Request::PutHead { expected: Some(head.version), new });
                }
            }
            let in_ms = terms.space.start_ms(head.fence).saturating_sub(lower_ms);
            return Err(Refusal::Fenced { in_ms, why: head.why });
        }
        let Some(Free { node, record, start }) =
            self.pick(terms, received, head, nodes, random, &|node| is_used(node))
        else {
            let has_others = |asked: &Vec<u64>| (asked.len() as u64) < terms.nodes.count();
            if self.asked.as_ref().is_some_and(has_others) {
                return self.look_at_all();
            }
            let first = frees_first(terms, head, nodes, lower_ms, is_used);
            return Err(Refusal::NoneFree { nodes: terms.nodes.count(), first });
        };
        let now_ms = received.low_ms(head);
        let found = record.map_or(0, |record| record.reserved_until);
        let new = Node {
            version: draw(random),
            token: self.token,
            expires_ms: now_ms.saturating_add(terms.ttl_ms(head)),
            reserved_until: bound(&terms.space, now_ms, terms.lead_ms(head)).max(found),
            label: terms.label.clone(),
            since_ms: now_ms,
        };
        let expected = record.map(|record| record.version);
        let start = start.max(head.fence);
        let sent = Sent { under: head.clone(), node, expected, new, start, assumed_ms: now_ms };
        let request = sent.request();
        self.sent = Some(sent);
        self.ask(request)
    }

    /// Picks a random free node whose bound has passed. If there is no such node, picks a node that was never
    /// used, or, failing that, the free node with the lowest bound.
    fn pick<'a>(
        &self,
        terms: &Terms,
        received: &Received,
        head: &Head,
        nodes: &'a [(u64, Node)],
        random: Random<'_>,
        is_used: &dyn Fn(u64) -> bool,
    ) -> Option<Free<'a>> {
        let lower_ms = received.lower_ms();
        let tick = terms.space.tick_of(lower_ms);
        let free = nodes
            .iter()
            .filter(|(node, _)| terms.nodes.contains(*node) && !is_used(*node))
            .filter_map(|(node, record)| {
                let void = self.void.as_ref().filter(|void| void.new.version == record.version);
                let start = void.map_or(record.reserved_until, |void| void.start);
                let has_expired = lower_ms > record.expires_ms.saturating_add(head.difference_ms);
                let is_free = record.is_given_back() || has_expired || void.is_some();
                is_free.then_some(Free { node: *node, record: Some(record), start })
            });
        let (mut passed, ahead): (Vec<_>, Vec<_>) = free.partition(|free| free.start <= tick);
        // Stores may list nodes in any order. Once the nodes are sorted, the same draw picks the same node.
        passed.sort_unstable_by_key(|free| free.node);
        take_one(passed, random)
            .or_else(|| {
                let known: HashSet<u64> = nodes.iter().map(|(node, _)| *node).collect();
                let is_new = |node: &u64| !known.contains(node) && !is_used(*node);
                let never_used: Vec<u64> = match &self.asked {
                    Some(asked) => asked.iter().copied().filter(is_new).collect(),
                    None => terms.nodes.iter().filter(is_new).take(NEVER_USED).collect(),
                };
                take_one(never_used, random).map(|node| Free { node, record: None, start: 0 })
            })
            .or_else(|| ahead.into_iter().min_by_key(|free| (free.start, free.node)))
    }
}

/// Returns the leased node whose lease expires first.
fn frees_first(
    terms: &Terms,
    head: &Head,
    nodes: &[(u64, Node)],
    lower_ms: u64,
    is_used: &dyn Fn(u64) -> bool,
) -> Option<FreesFirst> {
    let leased = nodes
        .iter()
        .filter(|(node, record)| terms.nodes.contains(*node) && !is_used(*node) && !record.is_given_back());
    let (node, record) = leased.min_by_key(|(node, record)| (record.expires_ms, *node))?;
    let at_ms = record.expires_ms.saturating_add(head.difference_ms).saturating_add(1);
    Some(FreesFirst {
        node: *node,
        label: record.label.clone(),
        at_ms,
        in_ms: at_ms.saturating_sub(lower_ms),
    })
}

/// Returns the lease that a write grants if the write counts.
fn held(sent: &Sent, known: Option<&Known>) -> Held {
    let Sent { under, node, expected, new, start, .. } = sent.clone();
    let mut known = known.cloned().unwrap_or_else(|| Known::new(under.clone()));
    known.see(&under);
    Held {
        node,
        token: new.token,
        start,
        reserved_until: new.reserved_until,
        expires_ms: new.expires_ms,
        since_ms: new.since_ms,
        store_time: super::StoreTime { now_ms: 0, received_ms: 0 },
        known,
        high_ms: 0,
        version: new.version,
        written_until: new.reserved_until,
        replaced: expected,
        sent: None,
    }
}

fn take_one<T>(mut of: Vec<T>, random: Random<'_>) -> Option<T> {
    let count = u64::try_from(of.len()).ok()?;
    let at = usize::try_from(random().checked_rem(count)?).ok()?;
    Some(of.swap_remove(at))
}
