//! Renews a lease by writing a later expiry and a later bound, if the record still has the version that the
//! holder last wrote.

use super::{
    ClockDiffers, Head, Held, Look, MAX_REQUESTS, Next, Node, Random, Received, Refusal, Reply, Request,
    Sent, Terms, Time, bound, draw, low_ms,
};

/// The result of a renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Renewed {
    /// The bound and the expiry have been extended. `clock` is set if the clock difference is larger than
    /// allowed, but not so large that the renewal was refused.
    Extended { clock: Option<ClockDiffers> },
    /// Another process has the node. The holder may still use its reserved ticks up to the bound in `Held`,
    /// which this renewal may have lowered.
    Lost,
}

/// A renewal in progress.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Renewal {
    /// True if the request is as fresh as possible: neither a repeated write nor a write from before a pause.
    is_fresh: bool,
    pub(super) requests: u32,
}

impl Renewal {
    /// Begins a renewal, and returns it with its first request.
    pub(crate) fn begin(
        terms: &Terms,
        held: &mut Held,
        time: &dyn Time,
        random: Random<'_>,
    ) -> (Self, Request) {
        let mut renewal = Self { is_fresh: true, requests: 1 };
        let request = if let Some(sent) = &held.sent {
            renewal.is_fresh = false;
            sent.request()
        } else {
            let wall_ms = u64::try_from(time.wall_ms()).unwrap_or(0);
            let under = held.known.head.clone();
            let now_ms = low_ms(held.store_time.at(time.elapsed_ms()), wall_ms, &under);
            let expected = Some(held.version);
            extend(terms, held, under, expected, now_ms, random)
        };
        (renewal, request)
    }

    pub(crate) fn step(
        &mut self,
        terms: &Terms,
        held: &mut Held,
        received: &Received,
        random: Random<'_>,
    ) -> Result<Next<Renewed>, Refusal> {
        held.store_time = received.store_time();
        let difference_ms = terms.difference_ms(&held.known.head);
        let clock = received.clock_differs().filter(|differs| differs.by_ms > difference_ms);
        if let Some(differs) = clock.filter(|differs| differs.by_ms > terms.ttl_ms / 3) {
            return Err(Refusal::ClockDiffers(differs));
        }
        match &received.reply {
            Reply::Records { head, nodes } => {
                let record = nodes.iter().find(|(node, _)| *node == held.node).map(|(_, record)| record);
                self.look(terms, held, received, head.as_ref(), record, random)
            }
            Reply::Head(_) => self.read(held),
            Reply::Written => match held.sent.take() {
                Some(sent) if received.is_of(&sent.under) => {
                    let (assumed_ms, is_same) =
                        (sent.assumed_ms, sent.under.incarnation == received.incarnation);
                    held.written(&sent, received);
                    let now_ms = received.low_ms(&held.known.head);
                    // The machine paused, and so did the clock that should have counted the pause.
                    let is_late = now_ms.saturating_sub(assumed_ms) > held.ttl_ms(terms) / 3;
                    if !is_same {
                        // The head must name the new incarnation first.
                        self.read(held)
                    } else if is_late && self.requests < 4 || !self.is_fresh {
                        self.is_fresh = true;
                        let (under, expected) = (held.known.head.clone(), Some(held.version));
                        self.put(terms, held, under, expected, now_ms, random)
                    } else {
                        Ok(Next::Done(Renewed::Extended { clock }))
                    }
                }
                // Another server acknowledged the write, so the write does not count.
                _ => self.read(held),
            },
            Reply::Found { head, record } => {
                self.look(terms, held, received, head.as_ref(), record.as_ref(), random)
            }
        }
    }

    /// Continues with the records that the store returned. They differ from the holder's last write under the
    /// known head.
    fn look(
        &mut self,
        terms: &Terms,
        held: &mut Held,
        received: &Received,
        head: Option<&Head>,
        record: Option<&Node>,
        random: Random<'_>,
    ) -> Result<Next<Renewed>, Refusal> {
        // The record shows whether the write whose outcome was unknown took effect. The write counts only if
        // the store confirmed it under the head that the write named.
        let unclear = held.sent.take().map(|sent| sent.new.version);
        let is_as_written =
            record.is_some_and(|record| record.version == held.version || Some(record.version) == unclear);
        let is_mine = record.is_some_and(|record| record.token == held.token);
        let is_another_head = head.is_none_or(|head| head.version != held.known.head.version);
        if let Some(head) = head.filter(|head| {
            let has_same_fence = head.fence == held.known.head.fence;
            is_another_head && !(has_same_fence && is_as_written)
        }) {
            // Other holders start at this head's fence. The fence is below the bound only if somebody wrongly
            // declared the store new, or wrote the fence without knowing this holder's lead.
            held.reserved_until = held.reserved_until.min(head.fence);
        }
        let has_lost_record = !is_as_written && (is_mine || is_older(record, held));
        let is_above_all = head.is_some_and(|head| head.fence >= held.written_until);
        let look = Look {
            terms,
            received,
            found: head,
            known: Some(&held.known),
            // Nobody has issued IDs above such a fence.
            has_lost_records: has_lost_record && !is_above_all,
        };
        if let Some(new) = look.head_to_write(random) {
            let expected = head.map(|head| head.version);
            return self.ask(Request::PutHead { expected, new });
        }
        let Some(head) = head else { return self.read(held) };
        // Either another process has the node, or the store lost the record of another process that had the
        // node after this lease expired.
        let is_taken = !is_as_written && !has_lost_record;
        if is_taken || !may_go_on(held, received, head, is_as_written) {
            held.known.see(head);
            return Ok(Next::Done(Renewed::Lost));
        }
        let expected = record.map(|record| record.version);
        let found = record.map_or(0, |record| record.reserved_until);
        held.written_until = held.written_until.max(found);
        self.is_fresh = true;
        let now_ms = received.low_ms(head);
        self.put(terms, held, head.clone(), expected, now_ms, random)
    }

    fn put(
        &mut self,
        terms: &Terms,
        held: &mut Held,
        under: Head,
        expected: Option<u64>,
        now_ms: u64,
        random: Random<'_>,
    ) -> Result<Next<Renewed>, Refusal> {
        let request = extend(terms, held, under, expected, now_ms, random);
        self.ask(request)
    }

    fn read(&mut self, held: &Held) -> Result<Next<Renewed>, Refusal> {
        self.ask(Request::Read(Some(vec![held.node])))
    }

    fn ask(&mut self, request: Request) -> Result<Next<Renewed>, Refusal> {
        self.requests += 1;
        if self.requests > MAX_REQUESTS { Err(Refusal::Contended) } else { Ok(Next::Ask(request)) }
    }
}

/// Returns true if the lease continues under this head. Either the store has lost nothing since the last
/// write, or the lease had certainly not expired when the store answered. In the second case, no process
/// whose record was lost can have held the node since that write.
fn may_go_on(held: &Held, received: &Received, head: &Head, is_as_written: bool) -> bool {
    let before = &held.known.head;
    if is_as_written && head.fence == before.fence {
        return true;
    }
    let difference_ms = head.difference_ms.max(before.difference_ms);
    let granularity_ms = received.granularity_ms(head).max(before.granularity_ms);
    let margin_ms = difference_ms.saturating_mul(2).saturating_add(granularity_ms);
    received.high_ms().saturating_add(margin_ms) < held.expires_ms
}

/// Returns true if the record is older than this lease. A later holder would have written a bound at or above
/// this lease's bound.
fn is_older(record: Option<&Node>, held: &Held) -> bool {
    record.is_none_or(|record| {
        let is_replaced = held.replaced == Some(record.version);
        is_replaced || (record.reserved_until < held.written_until && record.since_ms <= held.since_ms)
    })
}

/// Returns the renewed record. Its bound is never below the store's bound, and never below a bound that the
/// holder has already reserved. Its expiry never moves back, because the holder relies on the last expiry,
/// and the clock may have been set back.
fn extend(
    terms: &Terms,
    held: &mut Held,
    under: Head,
    expected: Option<u64>,
    now_ms: u64,
    random: Random<'_>,
) -> Request {
    let new = Node {
        version: draw(random),
        token: held.token,
        expires_ms: now_ms.saturating_add(terms.ttl_ms(&under)).max(held.expires_ms),
        reserved_until: bound(&terms.space, now_ms, terms.lead_ms(&under)).max(held.written_until),
        label: terms.label.clone(),
        since_ms: held.since_ms,
    };
    let sent = Sent { under, node: held.node, expected, new, start: held.start, assumed_ms: now_ms };
    let request = sent.request();
    held.sent = Some(sent);
    request
}
