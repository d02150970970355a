//! Every history of two processes, one node and a store that may lose what it acknowledged: no two leases issue one tick.
//!
//! A breadth-first search over all states, with the decisions that a process makes. A checker from a library would not
//! make it shorter: the transitions are most of it, and the search itself is a queue and a set.
//!
//! No clock of a process appears: a lease counts as having issued every tick of its range as soon as it has it, which is
//! more than any clock, pause or step lets it do, and less only once it is given back. The store's clock goes back when a
//! replica takes over, and one process's count of elapsed time stands still. A request is carried out at any time after it was
//! decided on, and the process may have given up on it or crashed by then: that is a delay or a pause.
//!
//! Where a rule is taken out, the search has to find two leases with one tick.

use std::collections::hash_map::{DefaultHasher, Entry};
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::time::Instant;

use super::memory::Memory;
use super::tests::terms;
use super::*;

/// A rule that is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    /// Changes are compared on the bound alone, and a holder takes any record that it finds for its own.
    Token,
    /// A holder issues past its bound, by its clock.
    Bound,
    /// A store that lost writes gets a record with the fence it had.
    Fence,
    /// A release reads what was issued before issuing has stopped.
    Swap,
}

/// What processes want, and how much may happen in a history.
#[derive(Debug, Clone, Copy)]
struct Limits {
    clock_difference_ms: u64,
    left: Left,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Left {
    time: u64,
    /// Requests that a process gave up on: lost, delayed, or carried out without a reply.
    timeouts: u8,
    repeats: u8,
    crashes: u8,
    releases: u8,
    renewals: u8,
    /// Times that a replica takes over.
    failovers: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    /// True time. All times are in ms, and a tick has one.
    now: u64,
    /// How far the store's clock is behind it.
    behind: u64,
    store: Memory,
    /// What a replica has of it.
    replica: Memory,
    processes: [Process; 2],
    /// Requests that no process waits for, and that may still be carried out.
    late: Vec<Request>,
    /// A bit for each tick that a lease may have issued.
    issued: u64,
    left: Left,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Process {
    doing: Doing,
    /// Decided on, and not carried out yet.
    request: Option<Request>,
    /// How many leases it asked for.
    acquisitions: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Doing {
    Acquiring(Acquisition),
    /// `until`: the tick after the last that counts as issued.
    Holding {
        held: Held,
        until: u64,
        renewal: Option<Renewal>,
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
    /// The process begins a renewal, or its release once more.
    Begin(usize),
    /// Its request is carried out, and the reply received.
    Exchange(usize),
    /// The same, and its request will be carried out once more.
    Repeat(usize),
    /// Its request is carried out, and the reply lost.
    LoseReply(usize),
    /// It gives up on its request, which may be carried out later.
    GiveUp(usize),
    Late(usize),
    /// It gives its lease back, having issued up to and without this tick.
    Release(usize, u64),
    Crash(usize),
    Replicate,
    /// The replica takes over, and its clock is further back by so much.
    TakeOver(u64),
}

struct Model {
    terms: Terms,
    left: Left,
    without: Without,
}

impl Model {
    fn new(limits: Limits, without: Without) -> Self {
        let terms = Terms {
            nodes: Nodes { bits: 0, fixed_mask: 0, fixed_value: 0, range: None },
            ttl_ms: 1,
            lead_ms: 1,
            clock_difference_ms: limits.clock_difference_ms,
            label: String::new(),
            ..terms()
        };
        Self { terms, left: limits.left, without }
    }

    /// `is_replicated`: whether the replica knows of the space.
    fn start(&self, is_replicated: bool) -> World {
        let lead_ms = self.terms.lead_ms;
        let space = SpaceRecord { incarnation: "0".to_owned(), lead_ms, fence: 0 };
        let empty = Memory { incarnation: "0".to_owned(), ..Memory::default() };
        let store = Memory { space: Some(space), ..empty.clone() };
        let replica = if is_replicated { store.clone() } else { empty };
        let process = |at| {
            let (acquisition, request) = asking(at, 0, None);
            Process { doing: Doing::Acquiring(acquisition), request: Some(request), acquisitions: 0 }
        };
        let processes = [process(0), process(1)];
        World { now: 2, behind: 0, store, replica, processes, late: Vec::new(), issued: 0, left: self.left }
    }

    fn actions(&self, world: &World) -> Vec<Action> {
        let (mut actions, left) = (Vec::new(), world.left);
        for (at, process) in world.processes.iter().enumerate() {
            if let Some(request) = &process.request {
                actions.push(Action::Exchange(at));
                // A list that has no reply changes nothing: it may as well be sent later.
                if *request != Request::List {
                    if left.repeats > 0 {
                        actions.push(Action::Repeat(at));
                    }
                    if left.timeouts > 0 {
                        actions.extend([Action::LoseReply(at), Action::GiveUp(at)]);
                    }
                }
            } else if left.renewals > 0 || matches!(process.doing, Doing::Releasing { .. }) {
                actions.push(Action::Begin(at));
            }
            match &process.doing {
                Doing::Holding { held, until, renewal: None } if left.releases > 0 => {
                    let ends = [held.start, held.start + 1, *until].into_iter().filter(|end| end <= until);
                    actions.extend(ends.map(|end| Action::Release(at, end)));
                }
                _ => {}
            }
            if left.crashes > 0 && process.request != Some(Request::List) {
                actions.push(Action::Crash(at));
            }
        }
        actions.extend((0..world.late.len()).map(Action::Late));
        if left.failovers > 0 {
            if world.replica != world.store {
                actions.push(Action::Replicate);
            }
            actions.push(Action::TakeOver(0));
            if self.terms.clock_difference_ms > 0 {
                actions.push(Action::TakeOver(2 * self.terms.clock_difference_ms));
            }
        }
        if left.time > 0 {
            actions.push(Action::Tick);
        }
        actions
    }

    /// What comes of an action, and whether two leases have one tick then.
    fn after(&self, world: &World, action: Action) -> (World, bool) {
        let mut world = world.clone();
        let mut repeats = false;
        match action {
            Action::Tick => {
                world.now += 1;
                world.left.time -= 1;
                if self.without == Without::Bound {
                    let now = world.now;
                    repeats = [0, 1].into_iter().any(|at| world.issue(at, now));
                }
            }
            Action::Begin(at) => self.begin(&mut world, at),
            Action::Exchange(at) => {
                if let Some(request) = world.processes[at].request.take() {
                    repeats = self.exchange(&mut world, at, &request);
                }
            }
            Action::Repeat(at) => {
                world.left.repeats -= 1;
                if let Some(request) = world.processes[at].request.take() {
                    repeats = self.exchange(&mut world, at, &request);
                    world.keep(request);
                }
            }
            Action::LoseReply(at) => {
                world.left.timeouts -= 1;
                if let Some(request) = world.give_up(at) {
                    self.carry_out(&mut world, &request);
                }
            }
            Action::GiveUp(at) => {
                world.left.timeouts -= 1;
                if let Some(request) = world.give_up(at) {
                    world.keep(request);
                }
            }
            Action::Late(place) => {
                let request = world.late.remove(place);
                self.carry_out(&mut world, &request);
            }
            Action::Release(at, end) => {
                world.left.releases -= 1;
                let process = &mut world.processes[at];
                if let Doing::Holding { held, until, .. } = &process.doing {
                    world.issued &= !(below(*until) & !below(end));
                    let issued_until = if self.without == Without::Swap { end.max(1) - 1 } else { end };
                    process.doing = Doing::Releasing { held: held.clone(), issued_until, release: None };
                }
                self.begin(&mut world, at);
            }
            Action::Crash(at) => {
                world.left.crashes -= 1;
                if let Some(request) = world.give_up(at) {
                    world.keep(request);
                }
                world.ask_anew(at, None);
            }
            Action::Replicate => world.replica = world.store.clone(),
            Action::TakeOver(back) => {
                world.left.failovers -= 1;
                world.behind += back;
                world.replica.incarnation.push('\'');
                world.store = world.replica.clone();
                if world.left.failovers == 0 {
                    world.replica = Memory::default();
                }
            }
        }
        (world, repeats)
    }

    fn begin(&self, world: &mut World, at: usize) {
        let elapsed = world.elapsed(at);
        let process = &mut world.processes[at];
        process.request = Some(match &mut process.doing {
            Doing::Acquiring(acquisition) => acquisition.begin(),
            Doing::Holding { held, renewal, .. } => {
                world.left.renewals -= 1;
                let (begun, request) = Renewal::begin(&self.terms, held, elapsed);
                *renewal = Some(begun);
                request
            }
            Doing::Releasing { held, issued_until, release } => {
                let (begun, request) = Release::begin(&self.terms, held, *issued_until);
                *release = Some(begun);
                request
            }
        });
    }

    fn carry_out(&self, world: &mut World, request: &Request) -> Reply {
        let now = world.store_now();
        match (self.without, request) {
            (Without::Token, request) => world.store.answer_without_tokens(request, now),
            (Without::Fence, Request::PutSpace { expected, new }) => {
                let fence = expected.as_ref().map_or(0, |found| found.fence);
                let new = SpaceRecord { fence, ..new.clone() };
                world.store.answer(&Request::PutSpace { expected: expected.clone(), new }, now)
            }
            _ => world.store.answer(request, now),
        }
    }

    fn exchange(&self, world: &mut World, at: usize, request: &Request) -> bool {
        let reply = self.carry_out(world, request);
        let wall = i64::try_from(world.store_now()).unwrap();
        let elapsed_ms = world.elapsed(at);
        let received =
            Received { reply, granularity_ms: 1, wall_sent_ms: wall, wall_received_ms: wall, elapsed_ms };
        let process = &mut world.processes[at];
        let mut is_gone = None;
        match &mut process.doing {
            Doing::Acquiring(acquisition) => {
                match acquisition.step(&self.terms, &received, &mut || 0, &|_| false) {
                    Ok(Next::Ask(next)) => process.request = Some(next),
                    Ok(Next::Done(held)) => {
                        process.doing = Doing::Holding { until: held.start, held, renewal: None };
                    }
                    Err(_) => process.request = Some(acquisition.begin()),
                }
            }
            Doing::Holding { held, renewal, .. } => {
                let Some(begun) = renewal else { return false };
                match begun.step(&self.terms, held, &received) {
                    Ok(Next::Ask(next)) => process.request = Some(next),
                    Ok(Next::Done(Renewed::Lost)) => is_gone = Some(held.under.clone()),
                    Ok(Next::Done(Renewed::Extended { .. })) | Err(_) => *renewal = None,
                }
            }
            Doing::Releasing { held, release, .. } => {
                let Some(begun) = release else { return false };
                match begun.step(held, &received) {
                    Ok(Next::Ask(next)) => process.request = Some(next),
                    Ok(Next::Done(())) => is_gone = Some(held.under.clone()),
                    Err(_) => *release = None,
                }
            }
        }
        if is_gone.is_some() {
            world.ask_anew(at, is_gone);
        }
        world.forget_what_is_not_read(at);
        world.issue(at, 0)
    }
}

impl World {
    fn store_now(&self) -> u64 {
        self.now - self.behind
    }

    fn elapsed(&self, at: usize) -> u64 {
        if at == 0 { self.now } else { 0 }
    }

    /// A holder issues up to its bound, and to `or`. Returns whether another did before.
    fn issue(&mut self, at: usize, or: u64) -> bool {
        let Doing::Holding { held, until, .. } = &mut self.processes[at].doing else { return false };
        let end = held.reserved_until.max(or).max(*until);
        let ticks = below(end) & !below(*until);
        let repeats = self.issued & ticks != 0;
        (self.issued, *until) = (self.issued | ticks, end);
        repeats
    }

    /// Makes states the same that differ in nothing that is decided on.
    fn forget_what_is_not_read(&mut self, at: usize) {
        let process = &mut self.processes[at];
        if let Doing::Holding { held, .. } | Doing::Releasing { held, .. } = &mut process.doing {
            (held.since_ms, held.expires_ms) = (0, 0);
            if held.store_time.now_ms == held.store_time.received_ms {
                held.store_time = StoreTime { now_ms: 0, received_ms: 0 };
            }
        }
        if let Some(Request::PutNode { new, .. }) = &mut process.request {
            new.since_ms = 0;
        }
    }

    fn ask_anew(&mut self, at: usize, known: Option<SpaceRecord>) {
        let process = &mut self.processes[at];
        process.acquisitions += 1;
        let (acquisition, request) = asking(at, process.acquisitions, known);
        (process.doing, process.request) = (Doing::Acquiring(acquisition), Some(request));
    }

    fn give_up(&mut self, at: usize) -> Option<Request> {
        let process = &mut self.processes[at];
        let request = process.request.take();
        match &mut process.doing {
            Doing::Acquiring(acquisition) => process.request = Some(acquisition.begin()),
            Doing::Holding { renewal, .. } => *renewal = None,
            Doing::Releasing { release, .. } => *release = None,
        }
        request
    }

    /// Lets a request be carried out later, if it changes anything.
    fn keep(&mut self, request: Request) {
        if request != Request::List {
            self.late.push(request);
        }
    }
}

const fn below(tick: u64) -> u64 {
    (1 << tick) - 1
}

fn asking(at: usize, acquisitions: u64, known: Option<SpaceRecord>) -> (Acquisition, Request) {
    let number = u64::try_from(at).unwrap() * 16 + acquisitions;
    let mut acquisition = Acquisition::new(known, &mut || number);
    let request = acquisition.begin();
    (acquisition, request)
}

/// Tells states apart; that two of some millions have the same is less likely than a wrong bit in memory.
fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// How many states there are, and the shortest history in which two leases have one tick.
fn search(limits: Limits, without: Without) -> (usize, Option<Vec<Action>>) {
    let model = Model::new(limits, without);
    let mut seen: HashMap<u64, Option<(u64, Action)>> = HashMap::new();
    let mut next = VecDeque::new();
    for world in [model.start(true), model.start(false)] {
        let print = fingerprint(&world);
        seen.insert(print, None);
        next.push_back((print, world));
    }
    let t0 = Instant::now();
    let mut n = 0;
    while let Some((print, world)) = next.pop_front() {
        n += 1;
        if n % 100000 == 0 {
            println!("{n} {} {:?} {:?} {} ", seen.len(), t0.elapsed(), world.left, world.now);
        }
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

fn finds_nothing(limits: Limits) {
    let start = Instant::now();
    let (states, history) = search(limits, Without::Nothing);
    println!("{states} states in {:?}", start.elapsed());
    assert_eq!(history, None, "two leases have one tick");
}

fn finds_a_repeat(without: Without) {
    let (states, history) = search(FAILOVER, without);
    println!("without {without:?}, after {states} states: {history:?}");
    assert!(history.is_some());
}

/// `[time, timeouts, repeats, crashes, releases, renewals, failovers]`
const fn limits(clock_difference_ms: u64, of: [u8; 7]) -> Limits {
    let [time, timeouts, repeats, crashes, releases, renewals, failovers] = of;
    let left = Left { time: time as u64, timeouts, repeats, crashes, releases, renewals, failovers };
    Limits { clock_difference_ms, left }
}

const FAILOVER: Limits = limits(0, [4, 0, 0, 0, 1, 1, 1]);

#[test]
#[ignore]
fn explore() {
    let all: Vec<u8> = std::env::var("L").unwrap().split(',').map(|x| x.parse().unwrap()).collect();
    finds_nothing(limits(u64::from(all[0]), all[1..].try_into().unwrap()));
}

#[test]
fn no_two_leases_have_one_tick() {
    finds_nothing(FAILOVER);
}

#[test]
fn without_the_token_they_do() {
    finds_a_repeat(Without::Token);
}

#[test]
fn without_the_bound_they_do() {
    finds_a_repeat(Without::Bound);
}

#[test]
fn without_the_fence_they_do() {
    finds_a_repeat(Without::Fence);
}

#[test]
fn without_the_swap_they_do() {
    finds_a_repeat(Without::Swap);
}
