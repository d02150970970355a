//! Searches every history of two processes and a store that may lose acknowledged writes. No tick of a node
//! may be used under two leases, and no process may acquire a node while another process reports that it is
//! the node's only holder.
//!
//! This is a breadth-first search over all states. It runs the same decision code as a process. A
//! model-checking library would not make it shorter, because the transitions make up most of the code, and
//! the search itself needs only a queue and a set.
//!
//! The model assumes that a holder uses every tick of its range as soon as it has been given that range. No
//! wrong clock, pause or clock step can make it use more. Only a holder that releases its lease may have used
//! fewer. Each answer arrives with its own clock readings, one of which may be wrong, and one process's
//! elapsed-time clock may stand still. The store may carry out a request at any time after the process
//! decided to send it. By then, the process may have given up on the request or crashed, which models a delay
//! or a pause.
//!
//! Versions and tokens are only compared for equality, so the search treats states that differ only in these
//! values as equal.
//!
//! If any rule is removed, the search must find a history that breaks one of these two promises.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::time::Instant;

use super::memory::{Local, Memory};
use super::tests::terms;
use super::*;

/// The rule to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    /// The store writes a record regardless of its version.
    Version,
    /// The store writes a record regardless of the head.
    Guard,
    /// A holder issues IDs past its bound, as far as its clock allows.
    Bound,
    /// After a loss, the new head has no fence.
    Fence,
    /// A release reads the last used tick before the holder has stopped issuing IDs.
    Swap,
    /// Bounds and expiries are computed from the higher clock.
    LowerClock,
    /// Fences are computed from the lower clock.
    HigherClock,
    /// Fences allow for only twice the clock difference.
    Thrice,
    /// A process uses its own clock difference instead of the space's.
    OneDifference,
    /// A process uses its own lead instead of the space's.
    OneLead,
    /// An acquisition counts regardless of which server acknowledged it.
    CountedAcquisition,
    /// A renewal counts regardless of which server acknowledged it.
    CountedRenewal,
    /// A holder that finds its record after the store has lost writes rejoins, no matter how much later.
    RejoiningInTime,
    /// A holder may rejoin until its lease expires, without a margin.
    RejoiningMargin,
    /// An empty store counts as new.
    First,
    /// A process that declares a store new removes any fence.
    Loss,
    /// If a read finds a write that another replica did not confirm, the write counts as confirmed.
    Confirmation,
    /// A renewal moves the expiry back if the clock was set back.
    Expiry,
}

/// The events that a history may contain.
#[derive(Debug, Clone, Copy)]
struct Setting {
    nodes: u32,
    /// The clock differences of the first process, which created the space, and of the second.
    difference_ms: [u64; 2],
    lead_ms: [u64; 2],
    ttl_ms: u64,
    /// The true times that a history passes through.
    times: &'static [u64],
    /// The clock errors that an answer may have: how far ahead of true time the store's clock and the
    /// process's clock are.
    clocks: &'static [(i64, i64)],
    /// The number of processes that hold a lease at the start.
    holders: usize,
    /// True if a write counts only once a replica has it.
    is_confirmed: bool,
    /// True if the second process declares that the store is new.
    is_init: bool,
    /// True if the store may lose the space's head while no process knows the head.
    is_head_lost: bool,
    left: Left,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Left {
    /// The number of requests that a process may give up on. Such a request is lost, delayed, or carried out
    /// without a reply.
    timeouts: u8,
    repeats: u8,
    crashes: u8,
    releases: u8,
    renewals: u8,
    /// The number of times that a replica may take over.
    failovers: u8,
    /// The number of times that the store may silently drop the space's records.
    evictions: u8,
    /// The number of requests that the old store may carry out after a replica has taken over from it.
    olds: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    /// The true time. All times are in ms, and a tick lasts 1 ms.
    at: usize,
    store: Memory,
    /// The replica's copy of the store.
    replica: Memory,
    /// The store that a replica took over from, if it is still answering.
    old: Option<Memory>,
    processes: [Process; 2],
    /// Requests that no process is waiting for, but that the store may still carry out.
    late: Vec<Request>,
    /// For each node, one bit for each tick that a holder may have used.
    issued: [u64; 2],
    left: Left,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Process {
    doing: Doing,
    /// The request that the process has decided to send. The store has not carried it out yet.
    request: Option<Request>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Doing {
    Acquiring(Acquisition),
    /// `until` is the tick after the last tick that counts as used.
    Holding {
        held: Held,
        until: u64,
        renewal: Option<Renewal>,
        /// The time until which the first process reports that it is the only holder, and the time at which
        /// its current renewal began.
        alone_until: u64,
        since: u64,
    },
    Releasing {
        held: Held,
        issued_until: u64,
        release: Option<Release>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Tick,
    /// The process begins a renewal with its clock this far ahead of true time, or starts its release over.
    Begin(usize, i64),
    /// The store carries out the process's request, and the process receives the reply with these clock
    /// errors.
    Exchange(usize, (i64, i64)),
    /// Like `Exchange`, but the store that a replica took over from carries out the request.
    ExchangeWithOld(usize),
    /// Like `Exchange`, but the store will carry out the request a second time.
    Repeat(usize),
    /// The store carries out the process's request, and the reply is lost.
    LoseReply(usize),
    /// The process gives up on its request. The store may still carry it out later.
    GiveUp(usize),
    Late(usize),
    /// The process releases its lease, having issued IDs only below this tick.
    Release(usize, u64),
    Crash(usize),
    Replicate,
    TakeOver,
    Evict,
}

struct Model {
    terms: [Terms; 2],
    setting: Setting,
    without: Without,
}

const EXACT: (i64, i64) = (0, 0);

impl Model {
    fn new(setting: Setting, without: Without) -> Self {
        let terms = |at: usize| Terms {
            nodes: Nodes { bits: setting.nodes - 1, fixed_mask: 0, fixed_value: 0, range: None },
            ttl_ms: setting.ttl_ms,
            lead_ms: setting.lead_ms[at],
            clock_difference_ms: setting.difference_ms[at],
            label: String::new(),
            is_init: setting.is_init && at == 1,
            ..terms()
        };
        Self { terms: [terms(0), terms(1)], setting, without }
    }

    /// Returns the initial state. If `is_replicated`, the replica already has the space and the first leases.
    fn start(&self, is_replicated: bool) -> World {
        let head = Head {
            version: 1,
            incarnation: "0".to_owned(),
            lead_ms: self.setting.lead_ms[0],
            difference_ms: self.setting.difference_ms[0],
            granularity_ms: 1,
            fence: 0,
            why: Why::First,
        };
        let empty = Memory { incarnation: "0".to_owned(), can_forget: true, ..Memory::default() };
        let store = Memory { head: Some(head), ..empty.clone() };
        let process = |at: usize| {
            let (acquisition, request) = self.asking(at, None, 2 + u64::try_from(at).unwrap());
            Process { doing: Doing::Acquiring(acquisition), request: Some(request) }
        };
        let processes = [process(0), process(1)];
        let left = self.setting.left;
        let replica = empty.clone();
        let mut world =
            World { at: 0, store, replica, old: None, processes, late: Vec::new(), issued: [0; 2], left };
        for at in 0..self.setting.holders {
            world.replica = world.store.clone();
            while let Doing::Acquiring(_) = world.processes[at].doing {
                let request = world.processes[at].request.take().unwrap();
                self.exchange(&mut world, at, &request, EXACT, false);
                world.replica = world.store.clone();
                world.normalise();
            }
        }
        for process in &mut world.processes {
            if let Doing::Holding { held, alone_until, .. } = &mut process.doing {
                *alone_until = held.expires_ms - self.setting.difference_ms[0];
                // In its last answer, the store's clock was ahead of true time.
                let ahead = self.setting.clocks.iter().map(|(store, _)| *store).max().unwrap_or(0);
                held.store_time.now_ms = held.store_time.now_ms.saturating_add_signed(ahead);
            }
        }
        world.replica = if is_replicated { world.store.clone() } else { empty };
        world.normalise();
        world
    }

    fn now(&self, world: &World) -> u64 {
        self.setting.times[world.at]
    }

    fn actions(&self, world: &World) -> Vec<Action> {
        let (mut actions, left) = (Vec::new(), world.left);
        for (at, process) in world.processes.iter().enumerate() {
            if let Some(request) = &process.request {
                // When a head is written, no decision depends on the clocks.
                let is_head = matches!(request, Request::PutHead { .. });
                let clocks = if is_head { &[EXACT] } else { self.setting.clocks };
                actions.extend(clocks.iter().map(|clocks| Action::Exchange(at, *clocks)));
                if world.old.is_some() && left.olds > 0 {
                    actions.push(Action::ExchangeWithOld(at));
                }
                // A read whose reply is lost changes nothing. The model covers this case by sending the read
                // later.
                if !matches!(request, Request::Read(_)) {
                    if left.repeats > 0 {
                        actions.push(Action::Repeat(at));
                    }
                    if left.timeouts > 0 {
                        actions.extend([Action::LoseReply(at), Action::GiveUp(at)]);
                    }
                }
            } else if let Doing::Holding { held, .. } = &process.doing {
                if left.renewals > 0 {
                    let (now, elapsed) = (self.now(world), self.local(world, at, 0).elapsed_ms);
                    let store_ms = held.store_time.at(elapsed);
                    let difference = self.setting.difference_ms[0];
                    // At least one of the two clocks is right.
                    let is_possible = |ahead: &i64| {
                        store_ms <= now + difference || *ahead <= i64::try_from(difference).unwrap()
                    };
                    let mut ahead: Vec<i64> = self.setting.clocks.iter().map(|(_, local)| *local).collect();
                    ahead.sort_unstable();
                    ahead.dedup();
                    actions.extend(ahead.into_iter().filter(is_possible).map(|it| Action::Begin(at, it)));
                }
            } else {
                actions.push(Action::Begin(at, 0));
            }
            match &process.doing {
                Doing::Holding { held, until, renewal: None, .. } if left.releases > 0 => {
                    let ends = [held.start, held.start + 1, *until].into_iter().filter(|end| end <= until);
                    actions.extend(ends.map(|end| Action::Release(at, end)));
                }
                _ => {}
            }
            if left.crashes > 0 && !matches!(process.request, Some(Request::Read(_))) {
                actions.push(Action::Crash(at));
            }
        }
        actions.extend((0..world.late.len()).map(Action::Late));
        if left.failovers > 0 {
            if world.replica != world.store {
                actions.push(Action::Replicate);
            }
            actions.push(Action::TakeOver);
        }
        if left.evictions > 0 {
            actions.push(Action::Evict);
        }
        if world.at + 1 < self.setting.times.len() {
            actions.push(Action::Tick);
        }
        actions
    }

    /// Returns the state after an action. The flag is true if the action broke one of the promises.
    fn after(&self, world: &World, action: Action) -> (World, bool) {
        let mut world = world.clone();
        let mut repeats = false;
        match action {
            Action::Tick => {
                world.at += 1;
                if self.without == Without::Bound {
                    let now = self.now(&world);
                    repeats = [0, 1].into_iter().any(|at| world.issue(at, now));
                }
            }
            Action::Begin(at, ahead) => self.begin(&mut world, at, ahead),
            Action::Exchange(at, clocks) => {
                if let Some(request) = world.processes[at].request.take() {
                    repeats = self.exchange(&mut world, at, &request, clocks, false);
                }
            }
            Action::ExchangeWithOld(at) => {
                world.left.olds -= 1;
                if let Some(request) = world.processes[at].request.take() {
                    repeats = self.exchange(&mut world, at, &request, EXACT, true);
                }
            }
            Action::Repeat(at) => {
                world.left.repeats -= 1;
                if let Some(request) = world.processes[at].request.take() {
                    repeats = self.exchange(&mut world, at, &request, EXACT, false);
                    world.keep(request);
                }
            }
            Action::LoseReply(at) => {
                world.left.timeouts -= 1;
                if let Some(request) = self.give_up(&mut world, at) {
                    self.carry_out(&mut world, &request, false);
                }
            }
            Action::GiveUp(at) => {
                world.left.timeouts -= 1;
                if let Some(request) = self.give_up(&mut world, at) {
                    world.keep(request);
                }
            }
            Action::Late(place) => {
                let request = world.late.remove(place);
                self.carry_out(&mut world, &request, false);
            }
            Action::Release(at, end) => {
                world.left.releases -= 1;
                let process = &mut world.processes[at];
                if let Doing::Holding { held, until, .. } = &process.doing {
                    let node = usize::try_from(held.node).unwrap();
                    world.issued[node] &= !(below(*until) & !below(end));
                    let issued_until = if self.without == Without::Swap { end.max(1) - 1 } else { end };
                    process.doing = Doing::Releasing { held: held.clone(), issued_until, release: None };
                }
                self.begin(&mut world, at, 0);
            }
            Action::Crash(at) => {
                world.left.crashes -= 1;
                if let Some(request) = self.give_up(&mut world, at) {
                    world.keep(request);
                }
                self.ask_again(&mut world, at, None);
            }
            Action::Replicate => world.replica = world.store.clone(),
            Action::TakeOver => {
                world.left.failovers -= 1;
                world.replica.incarnation.push('\'');
                let old = core::mem::replace(&mut world.store, world.replica.clone());
                world.old = self.setting.is_confirmed.then_some(old);
                if world.left.failovers == 0 {
                    world.replica = Memory::default();
                }
            }
            Action::Evict => {
                world.left.evictions -= 1;
                (world.store.head, world.store.nodes) = (None, std::collections::BTreeMap::new());
            }
        }
        world.normalise();
        (world, repeats)
    }

    /// Returns a process's local clocks.
    fn local(&self, world: &World, at: usize, ahead: i64) -> Local {
        let now = self.now(world);
        Local { wall_ms: now.saturating_add_signed(ahead), elapsed_ms: if at == 0 { now } else { 0 } }
    }

    fn begin(&self, world: &mut World, at: usize, ahead: i64) {
        let (terms, local, mut drawn) = (&self.terms[at], self.local(world, at, ahead), world.drawn());
        let random: Random<'_> = &mut || draw_next(&mut drawn);
        let process = &mut world.processes[at];
        let request = match &mut process.doing {
            Doing::Acquiring(acquisition) => acquisition.begin(terms, random),
            Doing::Holding { held, renewal, since, .. } => {
                world.left.renewals -= 1;
                *since = local.elapsed_ms;
                let store_ms = held.store_time.at(local.elapsed_ms);
                let is_new = held.sent.is_none();
                let (begun, mut request) = Renewal::begin(terms, held, &local, random);
                *renewal = Some(begun);
                if let (Without::Expiry, Some(sent), Request::PutNode { new, .. }) =
                    (self.without, &mut held.sent, &mut request)
                {
                    new.expires_ms = sent.assumed_ms + terms.ttl_ms;
                    sent.new = new.clone();
                }
                if is_new && self.without == Without::LowerClock {
                    reserve_from(terms, held.sent.as_mut(), &mut request, store_ms.max(local.wall_ms));
                }
                request
            }
            Doing::Releasing { held, issued_until, release } => {
                let (begun, request) = Release::begin(terms, held, *issued_until, random);
                *release = Some(begun);
                request
            }
        };
        process.request = Some(request);
    }

    /// Carries out a request at the store. Returns `None` if the store needs confirmations and has no
    /// replica.
    fn carry_out(
        &self,
        world: &mut World,
        request: &Request,
        is_old: bool,
    ) -> Option<(Reply, Option<String>)> {
        let (before, is_confirmed) = (world.store.clone(), self.setting.is_confirmed);
        let is_replica_there = world.left.failovers > 0;
        let old = world.old.as_mut().filter(|_| is_old);
        let store = old.unwrap_or(&mut world.store);
        let answer = match (self.without, request) {
            (Without::Version, Request::PutNode { under, node, new, .. }) => {
                let expected = store.nodes.get(node).map(|record| record.version);
                let (under, node, new) = (under.clone(), *node, new.clone());
                store.answer(&Request::PutNode { under, node, expected, new })
            }
            (Without::Guard, Request::PutNode { under, node, expected, new }) => {
                let version = store.head.as_ref().map_or(0, |head| head.version);
                let guard = Head { version, ..under.clone() };
                let (expected, node, new) = (*expected, *node, new.clone());
                store.answer(&Request::PutNode { under: guard, node, expected, new })
            }
            _ => store.answer(request),
        };
        let is_at_replica = match request {
            _ if !is_confirmed => true,
            _ if is_old => false,
            _ if !is_replica_there => true,
            Request::PutNode { node, new, .. } if answer.0 == Reply::Written => {
                world.replica.nodes.get(node).is_some_and(|record| record.version == new.version)
            }
            Request::PutHead { .. } => world.replica.head == world.store.head,
            _ => true,
        };
        let is_found = match request {
            Request::Read(_) => true,
            Request::PutNode { node, new, .. } => {
                let has = |store: &Memory| {
                    store.nodes.get(node).is_some_and(|record| record.version == new.version)
                };
                answer.0 != Reply::Written
                    || (self.without == Without::Confirmation && (is_old || has(&before)))
            }
            Request::PutHead { .. } => false,
        };
        (is_at_replica || is_found).then_some(answer)
    }

    fn exchange(
        &self,
        world: &mut World,
        at: usize,
        request: &Request,
        (store_ahead, ahead): (i64, i64),
        is_old: bool,
    ) -> bool {
        let Some((reply, before)) = self.carry_out(world, request, is_old) else {
            world.processes[at].request = Some(request.clone());
            self.give_up(world, at);
            return false;
        };
        let (terms, now) = (&self.terms[at], self.now(world));
        let incarnation = world.old.as_ref().filter(|_| is_old).unwrap_or(&world.store).incarnation.clone();
        let local = self.local(world, at, ahead);
        let mut received = Received {
            has_kept_all: before.as_ref() == Some(&incarnation),
            reply,
            now_ms: now.saturating_add_signed(store_ahead),
            incarnation,
            facts: Facts { granularity_ms: 1, can_forget: true, asynchronous_replicas: 0 },
            wall_sent_ms: local.wall_ms(),
            wall_received_ms: local.wall_ms(),
            elapsed_ms: local.elapsed_ms,
        };
        let mut drawn = world.drawn();
        let random: Random<'_> = &mut || draw_next(&mut drawn);
        let process = &mut world.processes[at];
        self.show(terms, &process.doing, &mut received);
        let high_ms = received.high_ms();
        let (mut is_gone, mut is_acquired) = (None, None);
        match &mut process.doing {
            Doing::Acquiring(acquisition) => match acquisition.step(terms, &received, random, &|_| false) {
                Ok(Next::Ask(mut next)) => {
                    self.change(terms, &received, &mut next);
                    if self.without == Without::LowerClock {
                        reserve_from(terms, acquisition.sent.as_mut(), &mut next, high_ms);
                    }
                    process.request = Some(next);
                }
                Ok(Next::Done(held)) => {
                    is_acquired = Some(held.node);
                    let until = held.start;
                    process.doing = Doing::Holding { held, until, renewal: None, alone_until: 0, since: 0 };
                }
                Err(_) => process.request = Some(acquisition.begin(terms, random)),
            },
            Doing::Holding { held, renewal, alone_until, since, .. } => {
                let Some(begun) = renewal else { return false };
                let (expires_ms, later_ms) = (held.expires_ms, held.expires_ms + self.longer(held));
                held.expires_ms = later_ms;
                let stepped = begun.step(terms, held, &received, random);
                if held.expires_ms == later_ms {
                    held.expires_ms = expires_ms;
                }
                match stepped {
                    Ok(Next::Ask(mut next)) => {
                        self.change(terms, &received, &mut next);
                        if self.without == Without::LowerClock {
                            reserve_from(terms, held.sent.as_mut(), &mut next, high_ms);
                        }
                        process.request = Some(next);
                    }
                    Ok(Next::Done(Renewed::Lost)) => is_gone = Some(held.known.clone()),
                    Ok(Next::Done(Renewed::Extended { .. })) => {
                        *alone_until = *since + held.is_alone_for_ms();
                        (*renewal, *since) = (None, 0);
                    }
                    Err(_) => (*renewal, *since) = (None, 0),
                }
            }
            Doing::Releasing { held, release, .. } => {
                let Some(begun) = release else { return false };
                match begun.step(held, &received, random) {
                    Ok(Next::Ask(next)) => process.request = Some(next),
                    Ok(Next::Done(())) => is_gone = Some(held.known.clone()),
                    Err(_) => *release = None,
                }
            }
        }
        if is_gone.is_some() {
            self.ask_again(world, at, is_gone);
        }
        world.issue(at, 0) || (at == 1 && is_acquired.is_some_and(|node| world.is_answering(node, now)))
    }

    /// If the process ignores a rule, changes the reply that it sees accordingly.
    fn show(&self, terms: &Terms, doing: &Doing, received: &mut Received) {
        let is_acquiring = matches!(doing, Doing::Acquiring(_));
        if received.reply == Reply::Written {
            received.has_kept_all |= self.without == Without::CountedAcquisition && is_acquiring
                || self.without == Without::CountedRenewal && !is_acquiring;
        }
        received.facts.can_forget = self.without != Without::First;
        let (Reply::Records { head, .. } | Reply::Found { head, .. }) = &mut received.reply else { return };
        let Some(head) = head else { return };
        match self.without {
            Without::OneDifference => head.difference_ms = terms.clock_difference_ms,
            Without::OneLead => head.lead_ms = terms.lead_ms,
            Without::Loss => head.why = Why::First,
            _ => {}
        }
    }

    /// If the process ignores a rule, changes its next request accordingly.
    fn change(&self, terms: &Terms, received: &Received, next: &mut Request) {
        let Request::PutHead { new, .. } = next else { return };
        match self.without {
            Without::Fence => new.fence = 0,
            Without::HigherClock if new.fence > 0 => {
                new.fence = fence(&terms.space, received.lower_ms(), new);
            }
            Without::Thrice => new.fence = new.fence.saturating_sub(new.difference_ms),
            _ => {}
        }
    }

    /// Returns the amount by which the process overestimates its lease's expiry.
    fn longer(&self, held: &Held) -> u64 {
        match self.without {
            Without::RejoiningInTime => 1000,
            Without::RejoiningMargin => 2 * held.known.head.difference_ms + 1,
            _ => 0,
        }
    }

    fn asking(&self, at: usize, known: Option<Known>, mut drawn: u64) -> (Acquisition, Request) {
        let random: Random<'_> = &mut || draw_next(&mut drawn);
        let mut acquisition = Acquisition::new(known, random);
        let request = acquisition.begin(&self.terms[at], random);
        (acquisition, request)
    }

    fn ask_again(&self, world: &mut World, at: usize, known: Option<Known>) {
        let (acquisition, request) = self.asking(at, known, world.drawn());
        world.processes[at] = Process { doing: Doing::Acquiring(acquisition), request: Some(request) };
    }

    fn give_up(&self, world: &mut World, at: usize) -> Option<Request> {
        let mut drawn = world.drawn();
        let process = &mut world.processes[at];
        let request = process.request.take();
        match &mut process.doing {
            Doing::Acquiring(acquisition) => {
                process.request = Some(acquisition.begin(&self.terms[at], &mut || draw_next(&mut drawn)));
            }
            Doing::Holding { renewal, since, .. } => (*renewal, *since) = (None, 0),
            Doing::Releasing { release, .. } => *release = None,
        }
        request
    }
}

/// Returns a number not yet used as a version or token.
fn draw_next(drawn: &mut u64) -> u64 {
    *drawn += 1;
    *drawn << 1
}

/// Recomputes the bound and the expiry in a request, based on another time.
fn reserve_from(terms: &Terms, sent: Option<&mut Sent>, request: &mut Request, now_ms: u64) {
    let (Some(sent), Request::PutNode { new, .. }) = (sent, request) else { return };
    let head = &sent.under;
    let reserved_until = bound(&terms.space, now_ms, terms.lead_ms(head));
    new.reserved_until = new.reserved_until.max(reserved_until);
    new.expires_ms = now_ms + terms.ttl_ms(head);
    sent.new = new.clone();
}

impl World {
    /// Uses every tick up to the holder's bound, or up to `or` if that is higher. Returns true if one of
    /// these ticks has already been used under another lease.
    fn issue(&mut self, at: usize, or: u64) -> bool {
        let Doing::Holding { held, until, .. } = &mut self.processes[at].doing else { return false };
        let issued = &mut self.issued[usize::try_from(held.node).unwrap()];
        let end = held.reserved_until.max(or).max(*until);
        let ticks = below(end) & !below(*until);
        let repeats = *issued & ticks != 0;
        (*issued, *until) = (*issued | ticks, end);
        repeats
    }

    /// Returns true if the first process reports that it is the only holder of the node.
    fn is_answering(&self, node: u64, now: u64) -> bool {
        match &self.processes[0].doing {
            Doing::Holding { held, alone_until, .. } => held.node == node && *alone_until > now,
            _ => false,
        }
    }

    /// Keeps a request that the store may carry out later. Drops a read, which would change nothing.
    fn keep(&mut self, request: Request) {
        if !matches!(request, Request::Read(_)) {
            self.late.push(request);
        }
    }

    /// Returns the highest version or token.
    fn drawn(&mut self) -> u64 {
        let mut most = 0;
        self.visit(&mut |version| most = most.max(*version));
        most
    }

    /// Normalises values on which no decision depends, so that states that differ only in these values become
    /// equal.
    fn normalise(&mut self) {
        let mut numbers: Vec<u64> = Vec::new();
        self.visit(&mut |version| {
            if *version == 0 {
                return;
            }
            let place = numbers.iter().position(|number| number == version).unwrap_or_else(|| {
                numbers.push(*version);
                numbers.len() - 1
            });
            *version = u64::try_from(place).unwrap() + 1;
        });
        for process in &mut self.processes {
            match &mut process.doing {
                Doing::Acquiring(acquisition) => acquisition.requests = 1,
                Doing::Holding { held, renewal, .. } => {
                    held.high_ms = 0;
                    let time = &mut held.store_time;
                    if time.now_ms >= time.received_ms {
                        *time = StoreTime { now_ms: time.now_ms - time.received_ms, received_ms: 0 };
                    }
                    if let Some(renewal) = renewal {
                        renewal.requests = 1;
                    }
                }
                Doing::Releasing { held, release, .. } => {
                    (held.high_ms, held.store_time) = (0, StoreTime { now_ms: 0, received_ms: 0 });
                    if let Some(release) = release {
                        release.requests = 1;
                    }
                }
            }
        }
    }

    /// Visits every version and every token. Also clears the start times of the leases, which matter only for
    /// an operator's reset.
    fn visit(&mut self, visit: &mut dyn FnMut(&mut u64)) {
        for store in [&mut self.store, &mut self.replica].into_iter().chain(self.old.as_mut()) {
            if let Some(head) = &mut store.head {
                visit(&mut head.version);
            }
            store.nodes.values_mut().for_each(|record| visit_node(record, visit));
        }
        for process in &mut self.processes {
            if let Some(request) = &mut process.request {
                visit_request(request, visit);
            }
            match &mut process.doing {
                Doing::Acquiring(acquisition) => {
                    visit(&mut acquisition.token);
                    acquisition.known.iter_mut().for_each(|known| visit_known(known, visit));
                    let sent = acquisition.sent.iter_mut().chain(&mut acquisition.void);
                    sent.for_each(|sent| visit_sent(sent, visit));
                }
                Doing::Holding { held, .. } => visit_held(held, visit),
                Doing::Releasing { held, release, .. } => {
                    visit_held(held, visit);
                    if let Some(release) = release {
                        visit(&mut release.under.version);
                        visit_node(&mut release.new, visit);
                    }
                }
            }
        }
        self.late.iter_mut().for_each(|request| visit_request(request, visit));
    }
}

fn visit_held(held: &mut Held, visit: &mut dyn FnMut(&mut u64)) {
    held.since_ms = 0;
    visit(&mut held.token);
    visit(&mut held.version);
    held.replaced.iter_mut().for_each(&mut *visit);
    visit_known(&mut held.known, visit);
    held.sent.iter_mut().for_each(|sent| visit_sent(sent, visit));
}

fn visit_known(known: &mut Known, visit: &mut dyn FnMut(&mut u64)) {
    visit(&mut known.head.version);
    known.before.iter_mut().for_each(&mut *visit);
}

fn visit_sent(sent: &mut Sent, visit: &mut dyn FnMut(&mut u64)) {
    visit(&mut sent.under.version);
    sent.expected.iter_mut().for_each(&mut *visit);
    visit_node(&mut sent.new, visit);
}

fn visit_node(record: &mut Node, visit: &mut dyn FnMut(&mut u64)) {
    record.since_ms = 0;
    visit(&mut record.version);
    visit(&mut record.token);
}

fn visit_request(request: &mut Request, visit: &mut dyn FnMut(&mut u64)) {
    match request {
        Request::Read(_) => {}
        Request::PutHead { expected, new } => {
            expected.iter_mut().for_each(&mut *visit);
            visit(&mut new.version);
        }
        Request::PutNode { under, expected, new, .. } => {
            visit(&mut under.version);
            expected.iter_mut().for_each(&mut *visit);
            visit_node(new, visit);
        }
    }
}

const fn below(tick: u64) -> u64 {
    if tick >= 64 { panic!("too late a tick") } else { (1 << tick) - 1 }
}

/// Returns a hash that identifies a state. Among a few million states, a collision is less likely than a bit
/// error in memory.
fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Returns the number of states, and the shortest history that breaks one of the two rules.
fn search(setting: Setting, without: Without) -> (usize, Option<Vec<Action>>) {
    let model = Model::new(setting, without);
    let mut seen: HashMap<u64, Option<(u64, Action)>> = HashMap::new();
    let mut next = VecDeque::new();
    let starts = if setting.is_head_lost { &[true, false][..] } else { &[true] };
    for world in starts.iter().map(|is_replicated| model.start(*is_replicated)) {
        let print = fingerprint(&world);
        seen.insert(print, None);
        next.push_back((print, world));
    }
    while let Some((print, world)) = next.pop_front() {
        for action in model.actions(&world) {
            let (after, repeats) = model.after(&world, action);
            if repeats {
                let (mut history, mut at) = (vec![action], print);
                while let Some((before, action)) = seen[&at] {
                    history.push(action);
                    at = before;
                }
                history.reverse();
                return (seen.len(), Some(history));
            }
            let print_after = fingerprint(&after);
            if let Entry::Vacant(vacant) = seen.entry(print_after) {
                vacant.insert(Some((print, action)));
                next.push_back((print_after, after));
            }
        }
    }
    (seen.len(), None)
}

fn finds_nothing(setting: Setting) {
    let start = Instant::now();
    let (states, history) = search(setting, Without::Nothing);
    println!("{setting:?}: {states} states in {:?}", start.elapsed());
    assert_eq!(history, None);
}

fn finds_a_repeat(setting: Setting, without: Without) {
    let (states, history) = search(setting, without);
    println!("without {without:?}, after {states} states: {history:?}");
    assert!(history.is_some(), "without {without:?}");
}

const NONE: Left = Left {
    timeouts: 0,
    repeats: 0,
    crashes: 0,
    releases: 0,
    renewals: 0,
    failovers: 0,
    evictions: 0,
    olds: 0,
};

/// A lease lasts 1 ms, and the clocks are right.
const SHORT: Setting = Setting {
    nodes: 1,
    difference_ms: [0, 0],
    lead_ms: [1, 1],
    ttl_ms: 1,
    times: &[2, 3, 4],
    clocks: &[EXACT],
    holders: 0,
    is_confirmed: false,
    is_init: false,
    is_head_lost: true,
    left: NONE,
};
const RELEASE: Setting = Setting { left: Left { releases: 1, ..NONE }, ..SHORT };
const NETWORK: Setting =
    Setting { times: &[2, 4], left: Left { timeouts: 1, repeats: 1, renewals: 1, ..NONE }, ..SHORT };
const CRASH: Setting = Setting { times: &[2, 4], left: Left { timeouts: 1, crashes: 1, ..NONE }, ..SHORT };
/// A lease expires, and the fence passes.
const FAILOVER: Setting =
    Setting { times: &[2, 4, 7], holders: 1, left: Left { renewals: 1, failovers: 1, ..NONE }, ..SHORT };
/// A write may take effect after the loss.
const LATE: Setting = Setting { left: Left { timeouts: 1, ..FAILOVER.left }, times: &[2, 4, 6], ..FAILOVER };
const EVICTION: Setting = Setting {
    times: &[2, 4, 6],
    holders: 1,
    left: Left { timeouts: 1, renewals: 1, evictions: 1, ..NONE },
    ..SHORT
};
/// Both processes may choose the node that was never used.
const EARLY: Setting = Setting { holders: 0, left: Left { renewals: 1, evictions: 1, ..NONE }, ..EVICTION };
/// The second process always declares that the store is new. This is harmless, because the head has reached
/// the replica.
const VOUCHED: Setting =
    Setting { holders: 0, is_init: true, is_head_lost: false, left: FAILOVER.left, ..FAILOVER };
/// Two holders notice a loss at the same time.
const TWO: Setting = Setting {
    nodes: 2,
    times: &[2, 3],
    holders: 2,
    left: Left { timeouts: 1, renewals: 2, failovers: 1, ..NONE },
    ..SHORT
};
/// There are two masters, and the old master no longer has a replica.
const MASTERS: Setting = Setting {
    times: &[2, 6],
    is_confirmed: true,
    is_head_lost: false,
    left: Left { olds: 2, ..FAILOVER.left },
    ..FAILOVER
};
/// A lease lasts 12 ms. Clocks are up to 2 ms off. One of them may be off by another 4 ms, which a renewal
/// tolerates.
const CLOCKS: Setting = Setting {
    difference_ms: [2, 2],
    lead_ms: [12, 12],
    ttl_ms: 12,
    times: &[8, 30],
    clocks: &[(2, 2), (-2, -2), (6, 2), (-6, -2)],
    is_head_lost: false,
    ..FAILOVER
};
/// The lease has expired, and the fence has not passed.
const REJOINING: Setting = Setting { times: &[8, 21], ..CLOCKS };
/// The other process has a larger lead, or a smaller clock difference, than the space.
const OTHER_LEAD: Setting = Setting { lead_ms: [1, 6], ..FAILOVER };
const OTHER_DIFFERENCE: Setting = Setting { difference_ms: [2, 0], ..CLOCKS };
/// A machine's clock is set back further than a renewal tolerates.
const SET_BACK: Setting = Setting {
    times: &[8, 17],
    clocks: &[EXACT, (0, -8)],
    left: Left { timeouts: 1, renewals: 2, ..NONE },
    ..CLOCKS
};
const TWICE: Setting =
    Setting { left: Left { renewals: 2, ..CLOCKS.left }, clocks: &[(2, 2), (-6, -2)], ..CLOCKS };

/// Allowing all events together would produce too many states, so each of these settings allows only some of
/// them.
const LARGER: [Setting; 6] = [
    Setting { left: Left { timeouts: 1, repeats: 1, crashes: 1, renewals: 1, ..NONE }, ..SHORT },
    Setting { left: Left { repeats: 1, ..LATE.left }, ..LATE },
    Setting { holders: 0, times: &[2, 3, 4, 5, 6, 7, 8], ..FAILOVER },
    Setting { left: Left { renewals: 2, ..MASTERS.left }, ..MASTERS },
    Setting { left: Left { timeouts: 1, ..VOUCHED.left }, ..VOUCHED },
    Setting {
        times: &[8, 12, 21, 30],
        clocks: &[(2, 2), (-2, -2), (6, 2), (-6, -2), (2, 6), (-2, -6)],
        ..TWICE
    },
];

#[test]
fn no_two_leases_have_one_tick() {
    [RELEASE, NETWORK, CRASH].into_iter().for_each(finds_nothing);
}

#[test]
fn no_two_leases_have_one_tick_where_a_replica_takes_over() {
    [FAILOVER, LATE, TWO, MASTERS].into_iter().for_each(finds_nothing);
}

#[test]
fn no_two_leases_have_one_tick_where_all_is_lost_without_a_trace() {
    [EVICTION, EARLY, VOUCHED].into_iter().for_each(finds_nothing);
}

#[test]
fn no_two_leases_have_one_tick_where_a_clock_is_wrong() {
    [CLOCKS, REJOINING, OTHER_LEAD, OTHER_DIFFERENCE, SET_BACK].into_iter().for_each(finds_nothing);
}

#[test]
#[ignore = "long"]
fn no_two_leases_have_one_tick_in_the_larger_models() {
    LARGER.into_iter().for_each(finds_nothing);
}

#[test]
fn without_a_rule_they_do() {
    for (without, setting) in [
        (Without::Version, RELEASE),
        (Without::Guard, EARLY),
        (Without::Bound, FAILOVER),
        (Without::Fence, FAILOVER),
        (Without::Swap, RELEASE),
        (Without::LowerClock, CLOCKS),
        (Without::HigherClock, TWICE),
        (Without::Thrice, CLOCKS),
        (Without::OneDifference, OTHER_DIFFERENCE),
        (Without::OneLead, OTHER_LEAD),
        (Without::CountedAcquisition, LATE),
        (Without::CountedRenewal, LATE),
        (Without::RejoiningInTime, FAILOVER),
        (Without::RejoiningMargin, REJOINING),
        (Without::First, EVICTION),
        (Without::Loss, VOUCHED),
        (Without::Confirmation, MASTERS),
        (Without::Expiry, SET_BACK),
    ] {
        finds_a_repeat(setting, without);
    }
}
