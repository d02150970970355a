//! Searches every history of two processes that own a set in turn. The set has one section, and the store may
//! lose its last writes. No number is given out twice.
//!
//! The model relies on the lease protocol to enforce two rules. An owner stops issuing numbers before another
//! process acquires the lease. If the store loses an owner's record, the owner rejoins or stops. Numbers
//! count as used as soon as the bound allows them.

use std::collections::{HashSet, VecDeque};

use super::*;

const STEP: u64 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Store {
    owner: Record,
    section: Option<Record>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    store: Store,
    replica: Store,
    incarnation: u64,
    owners: [Option<Holder>; 2],
    late: Vec<Request>,
    used: u128,
    versions: u64,
    acquisitions: u8,
    moves: u8,
    losses: u8,
    timeouts: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Holder {
    bounds: Bounds,
    request: Option<Request>,
    wanted: u64,
    used: u128,
    /// Whether the store has lost writes since the owner acquired the lease or rejoined.
    is_stale: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Acquire(usize),
    Renew(usize),
    Rejoin(usize),
    Move(usize),
    Exchange(usize),
    LoseReply(usize),
    GiveUp(usize),
    Late(usize),
    Replicate,
    Lose,
}

fn group() -> Group {
    Group { namespace: "n".into(), kind: crate::records::Kind::Sequences, name: "s".into() }
}

fn below(number: u64) -> u128 {
    (1 << (number + 1)) - 1
}

fn start(acquisitions: u8, moves: u8, losses: u8, timeouts: u8) -> World {
    let owner = Record { version: 1, number: 0, text: String::new() };
    let text = Text { skip: STEP, ..Text::new(1, 1, "0".into()) };
    let section = Some(Record { version: 2, number: 0, text: text.write() });
    let store = Store { owner, section };
    World {
        replica: store.clone(),
        store,
        incarnation: 0,
        owners: [None, None],
        late: Vec::new(),
        used: 0,
        versions: 2,
        acquisitions,
        moves,
        losses,
        timeouts,
    }
}

fn actions(world: &World) -> Vec<Action> {
    let mut actions = Vec::new();
    for (at, holder) in world.owners.iter().enumerate() {
        if world.acquisitions > 0 && holder.is_none() {
            actions.push(Action::Acquire(at));
        }
        let Some(holder) = holder else { continue };
        if holder.request.is_some() {
            actions.push(Action::Exchange(at));
            if world.timeouts > 0 {
                actions.extend([Action::LoseReply(at), Action::GiveUp(at)]);
            }
        } else if holder.is_stale {
            actions.push(Action::Rejoin(at));
        } else {
            actions.push(Action::Move(at));
            if world.acquisitions > 0 {
                actions.push(Action::Renew(at));
            }
        }
    }
    actions.extend((0..world.late.len()).map(Action::Late));
    if world.losses > 0 {
        actions.push(Action::Lose);
        if world.replica != world.store {
            actions.push(Action::Replicate);
        }
    }
    actions
}

fn carry_out(world: &mut World, request: &Request) -> Received {
    let reply = match request {
        Request::Read(..) => {
            Reply::Read(world.store.section.iter().map(|it| ("section-0".into(), it.clone())).collect())
        }
        Request::Write(write) => {
            let found = world.store.section.as_ref().map(|it| it.version);
            let is_guarded =
                write.guard.as_ref().is_none_or(|(_, version)| *version == world.store.owner.version);
            if is_guarded && (found == write.expected || found == Some(write.new.version)) {
                world.store.section = Some(write.new.clone());
                Reply::Write(Outcome::Written)
            } else {
                let guard = write.guard.as_ref().map(|_| world.store.owner.clone());
                Reply::Write(Outcome::Found { record: world.store.section.clone(), guard })
            }
        }
    };
    Received { reply, incarnation: world.incarnation.to_string() }
}

fn new_owner(world: &mut World) -> Owner {
    world.versions += 1;
    world.store.owner.version = world.versions;
    Owner { name: "owner".into(), version: world.versions, incarnation: world.incarnation.to_string() }
}

/// Continues with the next step. Returns false if a number is issued twice, or if an owner sees a loss that
/// did not happen.
fn goes_on(world: &mut World, at: usize, next: Result<Next, Refusal>) -> bool {
    let Some(holder) = &mut world.owners[at] else { return true };
    match next {
        Ok(Next::Ask(request)) => holder.request = Some(request),
        Ok(Next::Done) => {}
        // If the store lost nothing and no other process acquired the lease, the owner must not see a loss.
        Err(_) if world.incarnation == 0 && holder.bounds.owner.version == world.store.owner.version => {
            return false;
        }
        // The owner must rejoin before it can continue.
        Err(Refusal::Lost) => holder.is_stale = true,
        Err(_) => world.owners[at] = None,
    }
    let Some(holder) = &mut world.owners[at] else { return true };
    let Some(range) = holder.bounds.range(0) else { return true };
    let new = below(range.bound) & !below(range.above) & !holder.used;
    let is_free = world.used & new == 0;
    (world.used, holder.used) = (world.used | new, holder.used | new);
    is_free
}

fn after(world: &World, action: Action, without: Option<Rule>) -> Option<World> {
    let mut world = world.clone();
    let kept_all: KeptAll<'_> = &|before, now| before == now;
    let is_right = match action {
        Action::Acquire(at) => {
            world.acquisitions -= 1;
            let owner = new_owner(&mut world);
            let mut bounds = Bounds::new(group(), 1, owner);
            bounds.without = without;
            let before = world.owners[1 - at].take();
            world.late.extend(before.and_then(|holder| holder.request));
            let holder = Holder { bounds, request: None, wanted: 0, used: 0, is_stale: false };
            world.owners[at] = Some(holder);
            begin(&mut world, at)
        }
        Action::Renew(at) => {
            world.acquisitions -= 1;
            let Owner { version, incarnation, .. } = new_owner(&mut world);
            let holder = world.owners[at].as_mut().unwrap();
            // If the store lost writes, the head shows this, and the owner must rejoin.
            if holder.bounds.owner.incarnation == incarnation {
                holder.bounds.renewed(version);
            } else {
                holder.is_stale = true;
            }
            true
        }
        Action::Rejoin(at) => {
            let owner = new_owner(&mut world);
            let holder = world.owners[at].as_mut().unwrap();
            holder.bounds.rejoined(owner);
            holder.is_stale = false;
            begin(&mut world, at)
        }
        Action::Move(at) => {
            let holder = world.owners[at].as_mut().unwrap();
            if let Some(range) = holder.bounds.range(0) {
                if holder.wanted <= range.bound && world.moves > 0 {
                    world.moves -= 1;
                    holder.wanted = range.bound + STEP;
                }
            }
            begin(&mut world, at)
        }
        Action::Exchange(at) => {
            let holder = world.owners[at].as_mut().unwrap();
            let request = holder.request.take().unwrap();
            let received = carry_out(&mut world, &request);
            let mut version = world.versions;
            let holder = world.owners[at].as_mut().unwrap();
            let wanted = [(0, holder.wanted)];
            let next = holder.bounds.step(&received, &wanted, kept_all, &mut || {
                version += 1;
                version << 1
            });
            world.versions = version;
            goes_on(&mut world, at, next)
        }
        Action::LoseReply(at) => {
            world.timeouts -= 1;
            let request = world.owners[at].as_mut().unwrap().request.take().unwrap();
            carry_out(&mut world, &request);
            true
        }
        Action::GiveUp(at) => {
            world.timeouts -= 1;
            let request = world.owners[at].as_mut().unwrap().request.take();
            world.late.extend(request);
            true
        }
        Action::Late(at) => {
            let request = world.late.remove(at);
            carry_out(&mut world, &request);
            true
        }
        Action::Replicate => {
            world.replica = world.store.clone();
            true
        }
        Action::Lose => {
            world.losses -= 1;
            world.incarnation += 1;
            world.store = world.replica.clone();
            true
        }
    };
    is_right.then_some(world)
}

fn begin(world: &mut World, at: usize) -> bool {
    let mut version = world.versions;
    let holder = world.owners[at].as_mut().unwrap();
    let next = holder.bounds.begin(&[(0, holder.wanted)], &mut || {
        version += 1;
        version << 1
    });
    world.versions = version;
    goes_on(world, at, next)
}

fn search(of: [u8; 4], without: Option<Rule>) -> (usize, Option<Vec<Action>>) {
    let [acquisitions, moves, losses, timeouts] = of;
    let mut seen = HashSet::new();
    let mut queue = VecDeque::from([(start(acquisitions, moves, losses, timeouts), Vec::new())]);
    while let Some((world, history)) = queue.pop_front() {
        for action in actions(&world) {
            let mut history = history.clone();
            history.push(action);
            let Some(after) = after(&world, action, without) else { return (seen.len(), Some(history)) };
            if seen.insert(after.clone()) {
                queue.push_back((after, history));
            }
        }
    }
    (seen.len(), None)
}

#[test]
fn no_number_is_given_twice() {
    for of in [[2, 2, 0, 1], [2, 2, 1, 0]] {
        let (states, fault) = search(of, None);
        println!("{of:?}: {states} states");
        assert_eq!(fault, None, "{of:?}");
    }
}

fn finds_a_fault(of: [u8; 4], without: Rule) {
    let (states, fault) = search(of, Some(without));
    println!("without {without:?}, after {states} states: {fault:?}");
    assert!(fault.is_some());
}

#[test]
fn without_the_guard_losses_are_seen() {
    finds_a_fault([3, 3, 0, 1], Rule::IsGuarded);
}

#[test]
fn without_its_version_a_move_is_taken_for_another() {
    finds_a_fault([2, 2, 0, 1], Rule::KeepsItsVersion);
}

#[test]
fn without_the_skip_some_are() {
    finds_a_fault([2, 2, 1, 0], Rule::SkipsAfterLoss);
}
