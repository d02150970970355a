//! Searches every history of two processes with one record, in a store that loses acknowledged writes. Among
//! processes that reach the store within 8 s of a loss, no number is given out twice.
//!
//! This is a breadth-first search over all states, in which processes run the code of the protocol. Numbers
//! count as used as soon as a process has fetched them. The store may carry out a request at any time after
//! the process decides to send it, even if the process has given up on the request or has exited. If a
//! process was cut off for too long, or has exited, other processes may be given its numbers too. But once
//! such a process receives an answer, it must drop these numbers, unless a second loss removes the rollover
//! that would tell it to.
//!
//! If a rule is removed, the search must find a history that breaks a promise.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::time::Instant;

use super::*;

/// The number of events of each kind that may happen in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Left {
    /// Time steps of 4 s each.
    ticks: u8,
    reserves: u8,
    losses: u8,
    /// Requests that a process may give up on. The store then carries them out without a reply, late, or not
    /// at all.
    timeouts: u8,
    /// Processes that may be cut off from the store.
    cuts: u8,
    /// Processes that may exit and restart.
    crashes: u8,
    /// Processes that may give back their unused numbers.
    closes: u8,
    /// Whether every other reservation asks for a single number.
    has_small_ones: bool,
}

const TICK_MS: u64 = TURN_OVER_AFTER_MS / 2;
const STEP: u64 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    now_ms: u64,
    incarnation: u64,
    record: Record,
    /// The record that the store reverts to after a loss.
    replica: Record,
    /// The time when the store last lost writes, or `None` once the processes that are cut off count as late.
    lost_ms: Option<u64>,
    processes: [Process; 2],
    /// Requests that no process is waiting for any more.
    late: Vec<Sent>,
    /// The numbers given to processes that have exited.
    gone: u128,
    versions: u64,
    left: Left,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Process {
    source: Source,
    request: Option<Request>,
    /// The numbers given to the process, one bit per number.
    given: u128,
    in_hand: u128,
    /// Numbers that other processes may be given too.
    exempt: u128,
    is_cut_off: bool,
    /// Whether the process has finished an attempt since the last loss.
    has_looked: bool,
    is_late: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Sent {
    request: Request,
    /// The record's number and the store's incarnation, if the request gives numbers back. The process sends
    /// such a request after a check, on the same connection, so another server instance cannot carry it out.
    given_back_from: Option<(u64, u64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Tick,
    Look(usize),
    Reserve(usize),
    /// The store carries out the process's request, and the process receives the reply.
    Exchange(usize),
    /// The store carries out the process's request, and the reply is lost.
    LoseReply(usize),
    /// The process gives up on its request. The store may still carry it out later.
    GiveUp(usize),
    Late(usize),
    CutOff(usize),
    Reconnect(usize),
    Crash(usize),
    /// The process gives back the given number of numbers, and then exits.
    Close(usize, u64),
    Replicate,
    Lose,
}

fn group() -> Group {
    Group { namespace: "n".into(), kind: crate::records::Kind::Counter, name: "c".into() }
}

fn bits(run: &crate::counter::segments::Run) -> u128 {
    (0..run.count).map(|at| 1 << (run.first + at * run.stride)).sum()
}

struct Model {
    left: Left,
    skip: u64,
    without: Option<Rule>,
}

impl Model {
    fn source(&self, record: &Record) -> Source {
        let text = Text::read(&record.text).unwrap();
        let mut source = Source::new(group(), record, text, false);
        source.without = self.without;
        source
    }

    fn process(&self, record: &Record) -> Process {
        Process {
            source: self.source(record),
            request: None,
            given: 0,
            in_hand: 0,
            exempt: 0,
            is_cut_off: false,
            has_looked: true,
            is_late: false,
        }
    }

    fn start(&self) -> World {
        let mut text = Text::new("id".into(), Place::ONLY, "0".into());
        (text.complete, text.skip) = (true, self.skip);
        let record = Record { version: 1, number: 0, text: text.write() };
        World {
            now_ms: 0,
            incarnation: 0,
            replica: record.clone(),
            lost_ms: None,
            processes: [self.process(&record), self.process(&record)],
            record,
            late: Vec::new(),
            gone: 0,
            versions: 1,
            left: self.left,
        }
    }

    fn actions(world: &World) -> Vec<Action> {
        let (mut actions, left) = (Vec::new(), world.left);
        for (at, process) in world.processes.iter().enumerate() {
            if process.is_cut_off {
                actions.push(Action::Reconnect(at));
                continue;
            }
            if process.request.is_some() {
                actions.push(Action::Exchange(at));
                if left.timeouts > 0 {
                    actions.extend([Action::LoseReply(at), Action::GiveUp(at)]);
                }
                continue;
            }
            actions.push(Action::Look(at));
            if left.reserves > 0 {
                actions.push(Action::Reserve(at));
            }
            if left.closes > 0 {
                actions.extend([Action::Close(at, 1), Action::Close(at, STEP)]);
            }
            if left.crashes > 0 && process.given != 0 {
                actions.push(Action::Crash(at));
            }
            if left.cuts > 0 {
                actions.push(Action::CutOff(at));
            }
        }
        actions.extend((0..world.late.len()).map(Action::Late));
        if left.losses > 0 {
            actions.push(Action::Lose);
            if world.replica != world.record {
                actions.push(Action::Replicate);
            }
        }
        if left.ticks > 0 && world.may_tick() {
            actions.push(Action::Tick);
        }
        actions
    }

    /// Returns the state after an action, or an error that says which promise the action breaks.
    fn after(&self, world: &World, action: Action) -> Result<World, &'static str> {
        let mut world = world.clone();
        match action {
            Action::Tick => {
                world.left.ticks -= 1;
                world.now_ms += TICK_MS;
                if world.lost_ms.is_some_and(|lost_ms| world.now_ms >= lost_ms + TURN_OVER_AFTER_MS) {
                    world.lost_ms = None;
                    for process in &mut world.processes {
                        process.is_late |= process.is_cut_off && !process.has_looked && process.exempt == 0;
                    }
                }
            }
            Action::Look(at) => {
                world.begin(at, Want::Look);
                self.exchange(&mut world, at, true)?;
            }
            Action::Reserve(at) => {
                world.left.reserves -= 1;
                let is_small = world.left.has_small_ones && world.left.reserves % 2 == 1;
                let count = if is_small { 1 } else { STEP };
                world.begin(at, Want::Reserve { count, least: count });
                self.exchange(&mut world, at, true)?;
            }
            Action::Exchange(at) => self.exchange(&mut world, at, false)?,
            Action::LoseReply(at) => {
                world.left.timeouts -= 1;
                if let Some(request) = world.processes[at].request.take() {
                    self.carry_out(&mut world, &Sent { request, given_back_from: None });
                }
            }
            Action::GiveUp(at) => {
                world.left.timeouts -= 1;
                if let Some(request) = world.processes[at].request.take() {
                    world.late.push(Sent { request, given_back_from: None });
                }
            }
            Action::Late(place) => {
                let sent = world.late.remove(place);
                if sent.given_back_from.is_none_or(|(_, incarnation)| incarnation == world.incarnation) {
                    self.carry_out(&mut world, &sent);
                }
            }
            Action::CutOff(at) => {
                world.left.cuts -= 1;
                world.processes[at].is_cut_off = true;
            }
            Action::Reconnect(at) => world.processes[at].is_cut_off = false,
            Action::Crash(at) => {
                world.left.crashes -= 1;
                self.end(&mut world, at);
            }
            Action::Close(at, unused) => {
                world.left.closes -= 1;
                let process = &mut world.processes[at];
                let mut version = world.versions;
                let request = process.source.give_back(unused, &mut next(&mut version));
                let number = process.source.highest;
                if let Some(request) = request {
                    let freed = (0..unused).map(|at| 1_u128 << (number - at)).sum::<u128>();
                    if process.in_hand & freed == freed {
                        world.versions = version;
                        process.given &= !freed;
                        // The reply may be lost, so the request may be sent twice.
                        let sent = Sent { request, given_back_from: Some((number, world.incarnation)) };
                        world.late.extend([sent.clone(), sent]);
                    }
                }
                self.end(&mut world, at);
            }
            Action::Replicate => world.replica = world.record.clone(),
            Action::Lose => {
                world.left.losses -= 1;
                world.incarnation += 1;
                world.record = world.replica.clone();
                world.lost_ms = Some(world.now_ms);
                for process in &mut world.processes {
                    process.has_looked = false;
                    // A second loss removes the rollover that would tell the process that it is late.
                    process.is_late &= process.exempt == 0;
                }
            }
        }
        world.check()?;
        world.forget_what_is_not_read();
        Ok(world)
    }

    /// Exchanges a process's requests and answers. Reads are answered at once: a later read would only show a
    /// later state, which the search also reaches.
    fn exchange(&self, world: &mut World, at: usize, only_reads: bool) -> Result<(), &'static str> {
        let mut may_ask = !only_reads;
        while let Some(request) = world.processes[at]
            .request
            .take_if(|request| core::mem::take(&mut may_ask) || matches!(request, Request::Read(_)))
        {
            let received = self.carry_out(world, &Sent { request, given_back_from: None });
            world.receive(at, &received)?;
        }
        Ok(())
    }

    /// Stops a process, and starts a new one in its place.
    fn end(&self, world: &mut World, at: usize) {
        let process = &world.processes[at];
        world.gone |= process.given & !process.exempt;
        let has_looked = process.has_looked;
        world.processes[at] = Process { has_looked, ..self.process(&world.record) };
    }

    fn carry_out(&self, world: &mut World, sent: &Sent) -> Received {
        let mut is_done = false;
        match &sent.request {
            Request::Read(_) => {}
            Request::Write(write) => {
                let mut expected = write.expected;
                if let (Some((from, _)), Some(Rule::GivesBackOnVersion)) =
                    (sent.given_back_from, self.without)
                {
                    expected = Some(world.record.version).filter(|_| world.record.number == from);
                }
                let found = Some(world.record.version);
                if found == expected || found == Some(write.new.version) {
                    is_done = true;
                    world.turned_over(&write.new.text);
                    world.record = write.new.clone();
                }
            }
            Request::Add(add) => {
                if world.record.version == add.version {
                    is_done = true;
                } else if let Some(number) = add.sum(&world.record) {
                    is_done = true;
                    (world.record.version, world.record.number) = (add.version, number);
                }
            }
        }
        Received {
            is_done,
            record: Some(world.record.clone()),
            incarnation: world.incarnation.to_string(),
            elapsed_ms: world.now_ms,
        }
    }
}

fn next(version: &mut u64) -> impl FnMut() -> u64 + '_ {
    move || {
        *version += 1;
        *version << 1
    }
}

impl World {
    /// Returns true if time may pass. All processes that are not cut off must check the record within 8 s of
    /// a loss.
    fn may_tick(&self) -> bool {
        let is_due =
            self.lost_ms.is_some_and(|lost_ms| self.now_ms + TICK_MS >= lost_ms + TURN_OVER_AFTER_MS);
        !is_due || self.processes.iter().all(|process| process.has_looked || process.is_cut_off)
    }

    fn begin(&mut self, at: usize, want: Want) {
        let request = self.processes[at].source.begin(want, &mut next(&mut self.versions));
        self.processes[at].request = Some(request);
    }

    fn receive(&mut self, at: usize, received: &Received) -> Result<(), &'static str> {
        let process = &mut self.processes[at];
        let stepped =
            process.source.step(received, &|before, now| before == now, &mut next(&mut self.versions));
        if process.source.has_dropped() {
            process.in_hand = 0;
        }
        match stepped {
            Ok(Next::Ask(request)) => {
                process.request = Some(request);
                return Ok(());
            }
            Ok(Next::Done(Some(run))) => {
                let bits = bits(&run);
                if run.count < process.source.least() {
                    return Err("a call is given fewer than it needs");
                }
                if process.given >= bits & bits.wrapping_neg() {
                    return Err("the numbers of a process decrease");
                }
                if run.last() > self.record.number {
                    return Err("a number lies beyond the record's");
                }
                process.given |= bits;
                process.in_hand |= bits;
            }
            Ok(Next::Done(None)) | Err(Refusal::Lost { .. }) => {}
            Err(_) => return Err("a process is refused"),
        }
        process.has_looked = true;
        if process.is_late {
            // From now on, the process must not issue numbers that other processes may have been given.
            process.is_late = false;
            process.exempt &= !process.in_hand;
        }
        Ok(())
    }

    /// Merges states that differ only in parts that decisions do not depend on. Versions are renumbered,
    /// since decisions only compare them.
    fn forget_what_is_not_read(&mut self) {
        let mut names = Vec::new();
        let mut rename = |version: &mut u64| {
            let at = names.iter().position(|it| it == version).unwrap_or_else(|| {
                names.push(*version);
                names.len() - 1
            });
            *version = at as u64 + 1;
        };
        let rename_all = |request: &mut Request, rename: &mut dyn FnMut(&mut u64)| match request {
            Request::Read(_) => {}
            Request::Write(write) => {
                write.expected.iter_mut().for_each(&mut *rename);
                rename(&mut write.new.version);
            }
            Request::Add(add) => rename(&mut add.version),
        };
        if self.left.losses == 0 {
            self.replica = self.record.clone();
        }
        rename(&mut self.record.version);
        rename(&mut self.replica.version);
        for process in &mut self.processes {
            process.source.forget_what_is_not_read(self.left.closes > 0, &mut rename, &rename_all);
            process.request.iter_mut().for_each(|request| rename_all(request, &mut rename));
        }
        self.late.iter_mut().for_each(|sent| rename_all(&mut sent.request, &mut rename));
        self.versions = names.len() as u64;
    }

    /// Handles a rollover. Afterwards, other processes may be given the numbers of processes that did not
    /// reach the store in time.
    fn turned_over(&mut self, text: &str) {
        let turn_overs = |text: &str| Text::read(text).map(|text| text.turn_overs).unwrap_or_default();
        if text == self.record.text || turn_overs(text) == turn_overs(&self.record.text) {
            return;
        }
        self.gone = 0;
        for process in &mut self.processes {
            if process.is_late {
                process.exempt |= process.given;
            }
        }
    }

    fn check(&self) -> Result<(), &'static str> {
        let [one, other] = &self.processes;
        let (one, other) = (one.given & !one.exempt, other.given & !other.exempt);
        if one & other != 0 || (one | other) & self.gone != 0 {
            return Err("a number is given twice");
        }
        Ok(())
    }
}

/// A fast hash of states. In unoptimised builds, the standard library's hash takes most of the time.
#[derive(Default)]
struct Fingerprint(u64);

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.write_u64(u64::from_le_bytes(chunk.try_into().unwrap()));
        }
        let mut rest = bytes.len() as u64;
        for byte in chunks.remainder() {
            rest = rest << 8 | u64::from(*byte);
        }
        self.write_u64(rest);
    }

    #[allow(clippy::cast_possible_truncation, reason = "both halves count")]
    fn write_u64(&mut self, it: u64) {
        let product = u128::from(self.0 ^ it ^ 0x9E37_79B9_7F4A_7C15) * 0xD6E8_FEB8_6659_FD93_u128;
        self.0 = (product >> 64) as u64 ^ (product as u64).rotate_left(29);
    }

    fn write_u8(&mut self, it: u8) {
        self.write_u64(u64::from(it));
    }

    fn write_usize(&mut self, it: usize) {
        self.write_u64(it as u64);
    }
}

fn fingerprint(world: &World) -> u64 {
    let mut hasher = Fingerprint::default();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Returns the number of states, and the shortest history that breaks a promise, if there is one.
fn search(left: Left, skip: u64, without: Option<Rule>) -> (usize, Option<(&'static str, Vec<Action>)>) {
    let model = Model { left, skip, without };
    let start = model.start();
    let mut seen: HashMap<u64, Option<(u64, Action)>> = HashMap::from([(fingerprint(&start), None)]);
    let mut queue = VecDeque::from([(fingerprint(&start), start)]);
    while let Some((print, world)) = queue.pop_front() {
        for action in Model::actions(&world) {
            match model.after(&world, action) {
                Ok(after) => {
                    let print_after = fingerprint(&after);
                    if let Entry::Vacant(vacant) = seen.entry(print_after) {
                        vacant.insert(Some((print, action)));
                        queue.push_back((print_after, after));
                    }
                }
                Err(broken) => {
                    let (mut history, mut at) = (vec![action], print);
                    while let Some((before, action)) = seen[&at] {
                        history.push(action);
                        at = before;
                    }
                    history.reverse();
                    return (seen.len(), Some((broken, history)));
                }
            }
        }
    }
    (seen.len(), None)
}

fn finds_nothing(left: Left, skip: u64) {
    let start = Instant::now();
    let (states, history) = search(left, skip, None);
    println!("{left:?}: {states} states in {:?}", start.elapsed());
    assert_eq!(history, None);
}

fn finds_a_fault(left: Left, without: Rule) {
    let (states, history) = search(left, 0, Some(without));
    println!("without {without:?}, after {states} states: {history:?}");
    assert!(history.is_some(), "{states} states");
}

/// `[ticks, reserves, losses, timeouts, cuts, crashes, closes]`
const fn left(of: [u8; 7]) -> Left {
    let [ticks, reserves, losses, timeouts, cuts, crashes, closes] = of;
    Left { ticks, reserves, losses, timeouts, cuts, crashes, closes, has_small_ones: false }
}

const fn with_small_ones(left: Left) -> Left {
    Left { has_small_ones: true, ..left }
}

/// With these limits, the search catches the mutants.
const LOSS: Left = left([2, 2, 1, 0, 0, 0, 0]);

const SMALL: [Left; 4] =
    [LOSS, left([2, 2, 1, 0, 1, 0, 0]), left([0, 3, 0, 1, 0, 0, 1]), left([0, 2, 1, 1, 0, 0, 1])];

const LARGER: [Left; 6] = [
    left([2, 3, 1, 1, 0, 0, 0]),
    left([3, 3, 1, 0, 1, 0, 1]),
    left([2, 3, 1, 0, 0, 1, 1]),
    left([4, 3, 2, 0, 1, 0, 0]),
    left([0, 4, 0, 2, 0, 1, 1]),
    left([0, 4, 0, 1, 0, 0, 1]),
];

#[test]
fn no_number_is_given_twice() {
    for left in SMALL {
        finds_nothing(left, 0);
    }
    finds_nothing(with_small_ones(left([0, 3, 0, 1, 0, 0, 1])), 0);
    finds_nothing(with_small_ones(left([0, 2, 1, 1, 0, 0, 1])), 0);
}

#[test]
#[ignore = "long"]
fn no_number_is_given_twice_in_the_larger_models() {
    for left in LARGER {
        finds_nothing(left, 1);
    }
    finds_nothing(with_small_ones(left([2, 3, 1, 1, 0, 0, 0])), 1);
    finds_nothing(with_small_ones(left([0, 4, 0, 2, 0, 1, 1])), 1);
}

#[test]
fn without_the_incarnation_of_the_record_some_are() {
    finds_a_fault(LOSS, Rule::CountsUnderItsIncarnation);
}

#[test]
fn where_what_is_found_is_always_given_it_may_be_too_few() {
    finds_a_fault(with_small_ones(left([0, 2, 0, 1, 0, 0, 0])), Rule::PassesOverTooFew);
}

#[test]
fn without_the_wait_some_are() {
    finds_a_fault(LOSS, Rule::WaitsToTurnOver);
}

#[test]
fn without_the_raise_some_are() {
    finds_a_fault(LOSS, Rule::RaisesAtOnce);
}

/// Checks that a history breaks a promise without a rule, and does not break one with the rule. This is for
/// histories that the search would take a long time to reach.
fn breaks(history: &[Action], without: Rule) {
    let replay = |without| {
        let model = Model { left: left([9; 7]), skip: 0, without };
        history.iter().try_fold(model.start(), |world, &action| {
            assert!(Model::actions(&world).contains(&action), "{action:?}");
            model.after(&world, action)
        })
    };
    assert_eq!(replay(None).err(), None);
    assert_eq!(replay(Some(without)).err(), Some("a number is given twice"));
}

#[test]
fn without_dropping_some_are() {
    use Action::{CutOff, Exchange, Look, Lose, Reconnect, Reserve, Tick};
    breaks(
        &[
            Reserve(0),
            Exchange(0),
            CutOff(0),
            Lose,
            Look(1),
            Tick,
            Tick,
            Reserve(1),
            Exchange(1),
            Reconnect(0),
            Look(0),
        ],
        Rule::DropsWhenLate,
    );
}

#[test]
fn without_the_version_of_what_is_given_back_some_are() {
    use Action::{Close, Exchange, Late, Reserve};
    breaks(
        &[
            Reserve(0),
            Exchange(0),
            Close(0, 2),
            Late(0),
            Reserve(1),
            Exchange(1),
            Late(0),
            Reserve(0),
            Exchange(0),
        ],
        Rule::GivesBackOnVersion,
    );
}

/// An add does not compare versions. If a delayed duplicate of the add arrives, the store adds again under
/// the same version. The process that sent the add then gives back numbers that belong to another process.
#[test]
fn with_an_add_that_is_sent_again_some_are() {
    use Action::{Close, Exchange, GiveUp, Late, Reserve};
    breaks(
        &[
            Reserve(0),
            GiveUp(0),
            Reserve(0),
            Exchange(0),
            Close(0, 1),
            Reserve(0),
            Exchange(0),
            Reserve(1),
            Late(0),
            Late(0),
            Exchange(1),
        ],
        Rule::SendsOnce,
    );
}
