//! Simulates one hour per seed. Six processes share four nodes in a store that fails in every possible way,
//! and no ID may occur twice.
//!
//! The simulation polls the same functions that a real process runs. A queue of events, ordered by simulated
//! time, replaces the network, the clocks and the scheduler, so the seed alone determines the history. The
//! simulation assumes that a holder issues IDs in every tick from the start of its lease to the current time
//! on its clock.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;

use super::tests::terms;
use super::*;
use crate::records::Named;

const HOUR_MS: u64 = 3_600_000;
const PROCESSES: usize = 6;
/// The store's time at the start, in ms since the space's epoch.
const START_MS: u64 = 1_000_000_000;

/// The faults that may occur, and the rules that are removed from the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each with each")]
struct Faults {
    /// Requests and replies are lost or delayed, and requests are carried out twice.
    network: bool,
    /// The store cannot be reached for a while.
    outages: bool,
    /// The store comes back as another instance, without its last writes or without any records.
    losses: bool,
    /// Processes pause.
    pauses: bool,
    /// Processes die without warning.
    crashes: bool,
    /// Clocks are set to a wrong time.
    clocks: bool,
    without_fence: bool,
    without_version: bool,
}

const ALL: Faults = Faults {
    network: true,
    outages: true,
    losses: true,
    pauses: true,
    crashes: true,
    clocks: true,
    without_fence: false,
    without_version: false,
};

enum Event {
    Poll(usize),
    Deliver { call: u64, task: usize, request: Sent },
    Reply { call: u64, task: usize, result: Result<Answer<Reply>, StoreError> },
    Fault,
}

#[derive(Debug, Clone)]
enum Sent {
    Read(Option<Vec<String>>),
    Write(Write),
}

#[derive(Debug, Clone)]
enum Reply {
    Records(Named),
    Outcome(Written),
}

/// The contents of a store.
#[derive(Debug, Clone, Default)]
struct Kept {
    incarnation: String,
    records: BTreeMap<String, Record>,
}

#[derive(Default)]
struct Process {
    /// How far ahead of the simulated time the machine's clock is.
    skew_ms: i64,
    /// The elapsed time that the machine's clock failed to count.
    missed_ms: u64,
    still_until: u64,
    leases: Vec<Lease>,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    number: u64,
    node: u64,
    /// The next tick in which the holder may issue IDs.
    cursor: u64,
    bound: u64,
}

/// The ticks that were used under a lease.
#[derive(Debug, Clone, Copy)]
struct Issued {
    lease: u64,
    start: u64,
    end: u64,
}

struct World {
    faults: Faults,
    terms: Terms,
    random: u64,
    now: u64,
    events: BTreeMap<(u64, u64), Event>,
    numbers: u64,
    task: usize,
    store: Kept,
    /// The store's earlier states, for a replica that lags behind.
    past: Vec<(u64, Kept)>,
    store_skew_ms: i64,
    /// True if the store's clock may be far off, and false if the processes' clocks may be. The two are never
    /// both far off during the same write.
    is_store_wrong: bool,
    down_until: u64,
    replies: BTreeMap<u64, Result<Answer<Reply>, StoreError>>,
    processes: Vec<Process>,
    issued: BTreeMap<u64, Vec<Issued>>,
    counts: Counts,
    repeat: Option<(u64, Issued, Issued)>,
    log: Option<Vec<(u64, String)>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    leases: u64,
    renewals: u64,
    lost: u64,
    released: u64,
    refused: u64,
    losses: u64,
}

impl World {
    /// `SplitMix64`.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random() % end
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn around(&mut self, most: i64) -> i64 {
        i64::try_from(self.below(2 * most.unsigned_abs() + 1)).unwrap() - most
    }

    fn log(&mut self, text: impl FnOnce() -> String) {
        let now = self.now;
        if let Some(log) = &mut self.log {
            log.push((now, text()));
        }
    }

    fn push(&mut self, at: u64, event: Event) {
        self.numbers += 1;
        self.events.insert((at, self.numbers), event);
    }

    fn store_now(&self) -> u64 {
        (START_MS + self.now).saturating_add_signed(self.store_skew_ms)
    }

    fn send(&mut self, request: &Sent) -> u64 {
        self.numbers += 1;
        let (call, task, network) = (self.numbers, self.task, self.faults.network);
        let times = match self.below(100) {
            0..3 if network => 0,
            3..6 if network => 2,
            _ => 1,
        };
        for _ in 0..times {
            let longest = if network && self.percent(5) { 20_000 } else { 20 };
            let at = self.now + self.below(longest);
            self.push(at, Event::Deliver { call, task, request: request.clone() });
        }
        call
    }

    fn deliver(&mut self, call: u64, task: usize, request: &Sent) {
        let result = if self.now < self.down_until {
            Err(StoreError::Unreachable("down".to_owned()))
        } else {
            Ok(self.answer(task, request))
        };
        if !(self.faults.network && self.percent(3)) {
            let longest = if self.faults.network && self.percent(3) { 10_000 } else { 20 };
            let at = self.now + self.below(longest);
            self.push(at, Event::Reply { call, task, result });
        }
    }

    fn answer(&mut self, task: usize, request: &Sent) -> Answer<Reply> {
        let value = match request {
            Sent::Read(names) => {
                let is_wanted = |name: &String| names.as_ref().is_none_or(|names| names.contains(name));
                let records = self.store.records.iter().filter(|(name, _)| is_wanted(name));
                Reply::Records(records.map(|(name, record)| (name.clone(), record.clone())).collect())
            }
            Sent::Write(write) => Reply::Outcome(self.write(task, write)),
        };
        Answer { now_ms: self.store_now(), incarnation: self.store.incarnation.clone(), value }
    }

    fn write(&mut self, task: usize, write: &Write) -> Written {
        let of = |name: &String| self.store.records.get(name).cloned();
        let version = |record: &Option<Record>| record.as_ref().map(|record| record.version);
        let (record, guard) = (of(&write.name), write.guard.as_ref().and_then(|(name, _)| of(name)));
        let is_guarded = write.guard.as_ref().map(|(_, version)| *version) == version(&guard);
        let is_expected = version(&record) == write.expected || version(&record) == Some(write.new.version);
        if !is_guarded || !(is_expected || self.faults.without_version) {
            return Written::Found { record, guard };
        }
        let mut new = write.new.clone();
        if self.faults.without_fence && write.name == HEAD {
            new.number = 0;
        }
        self.store.records.insert(write.name.clone(), new.clone());
        let oldest = self.now.saturating_sub(60_000);
        self.past.retain(|(at, _)| *at >= oldest);
        self.past.push((self.now, self.store.clone()));
        let (name, number, text) = (&write.name, new.number, &new.text);
        let found = record.map(|record| (record.version % 10_000, record.number));
        let what =
            format!("process {}: writes node {name}: until {number}, {text}; found {found:?}", task / 2);
        self.log(|| what);
        Written::Written
    }

    /// Issues IDs in every tick that the process may have used by now.
    fn issue(&mut self, process: usize) {
        let wall_ms = START_MS + self.now;
        let tick = self.terms.space.tick_of(wall_ms.saturating_add_signed(self.processes[process].skew_ms));
        let leases = &mut self.processes[process].leases;
        for lease in leases.iter_mut() {
            let end = lease.bound.min(tick + 1);
            if end <= lease.cursor {
                continue;
            }
            let new = Issued { lease: lease.number, start: lease.cursor, end };
            lease.cursor = end;
            let of_node = self.issued.entry(lease.node).or_default();
            let others = of_node
                .iter()
                .find(|old| old.lease != new.lease && old.start < new.end && new.start < old.end);
            if let (Some(&old), None) = (others, &self.repeat) {
                self.repeat = Some((lease.node, old, new));
            }
            match of_node.iter_mut().find(|old| old.lease == new.lease) {
                Some(mine) => mine.end = end,
                None => of_node.push(new),
            }
        }
    }

    fn fault(&mut self) {
        let next = self.now + 1000 + self.below(30_000);
        self.push(next, Event::Fault);
        let process = usize::try_from(self.below(6)).unwrap();
        let faults = self.faults;
        match self.below(100) {
            0..25 if faults.pauses => {
                let longest = [2000, 20_000, 90_000][usize::try_from(self.below(3)).unwrap()];
                let ms = self.below(longest);
                let is_counted = self.percent(70);
                let now = self.now;
                let still = &mut self.processes[process];
                still.still_until = still.still_until.max(now + ms);
                if !is_counted {
                    still.missed_ms += ms;
                }
                self.log(|| format!("process {process}: stands still for {ms} ms, counted: {is_counted}"));
            }
            25..45 if faults.clocks => {
                let at = usize::try_from(self.below(4)).unwrap();
                let most = if self.is_store_wrong { 1000 } else { [1000, 1000, 3000, 3_600_000][at] };
                let skew_ms = self.around(most);
                self.issue(process);
                self.processes[process].skew_ms = skew_ms;
                self.log(|| format!("process {process}: clock set to {skew_ms} ms"));
            }
            45..50 if faults.clocks => {
                self.store_skew_ms = self.store_skew();
                let skew_ms = self.store_skew_ms;
                self.log(|| format!("store: clock set to {skew_ms} ms"));
            }
            50..58 if faults.outages => {
                let longest = [5000, 60_000][usize::try_from(self.below(2)).unwrap()];
                self.down_until = self.down_until.max(self.now + self.below(longest));
                let ms = self.down_until - self.now;
                self.log(|| format!("store: down for {ms} ms"));
            }
            58..66 if faults.losses => self.lose(),
            _ => {}
        }
    }

    fn store_skew(&mut self) -> i64 {
        let most = if self.is_store_wrong && self.percent(40) { 9000 } else { 1000 };
        self.around(most)
    }

    /// Replaces the store with another one that lacks some of the most recent writes or is empty.
    fn lose(&mut self) {
        self.counts.losses += 1;
        let incarnation = self.counts.losses.to_string();
        let what = self.below(10);
        if what == 0 {
            // The same store dropped its keys.
            self.store = Kept { incarnation: self.store.incarnation.clone(), ..Kept::default() };
        } else if what == 1 {
            self.store = Kept { incarnation, ..Kept::default() };
        } else {
            let behind = self.below(20_000);
            let last = self.now.saturating_sub(behind);
            let state = self.past.iter().rev().find(|(at, _)| *at <= last).map(|(_, state)| state.clone());
            self.store = Kept { incarnation, ..state.unwrap_or_default() };
            if self.faults.clocks {
                self.store_skew_ms = self.store_skew();
            }
        }
        self.past = vec![(self.now, self.store.clone())];
        let (incarnation, nodes) = (self.store.incarnation.clone(), self.store.records.len());
        self.log(|| format!("store: now {incarnation}, {nodes} records ({what})"));
    }
}

/// A process's view of the world.
#[derive(Clone)]
struct Handle {
    world: Arc<Mutex<World>>,
    process: usize,
}

impl core::fmt::Debug for Handle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "process {}", self.process)
    }
}

impl Handle {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    async fn call(&self, request: Sent) -> Result<Answer<Reply>, StoreError> {
        let call = self.world().send(&request);
        poll_fn(|_| match self.world().replies.remove(&call) {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        })
        .await
    }

    async fn sleep(&self, ms: u64) {
        self.timeout(ms, core::future::pending::<()>()).await;
    }

    async fn timeout<T>(&self, ms: u64, of: impl Future<Output = T>) -> Option<T> {
        let end = {
            let mut world = self.world();
            let (end, task) = (world.now + ms, world.task);
            world.push(end, Event::Poll(task));
            end
        };
        let mut of = pin!(of);
        poll_fn(|context| match of.as_mut().poll(context) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if self.world().now >= end => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    fn below(&self, end: u64) -> u64 {
        self.world().below(end)
    }
}

impl Time for Handle {
    fn wall_ms(&self) -> i64 {
        let world = self.world();
        i64::try_from(START_MS + world.now).unwrap() + world.processes[self.process].skew_ms
    }

    fn elapsed_ms(&self) -> u64 {
        let world = self.world();
        // The clock stands still from the start of an uncounted pause. Otherwise it might go backwards.
        world.now.saturating_sub(world.processes[self.process].missed_ms)
    }
}

#[async_trait(?Send)]
impl Store for Handle {
    async fn read(&mut self, _: &Group, names: Option<&[&str]>) -> Result<Answer<Named>, StoreError> {
        let names = names.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        let Answer { now_ms, incarnation, value } = self.call(Sent::Read(names)).await?;
        let Reply::Records(value) = value else { panic!("{value:?}") };
        Ok(Answer { now_ms, incarnation, value })
    }

    async fn write(&mut self, write: &Write) -> Result<Answer<Written>, StoreError> {
        let Answer { now_ms, incarnation, value } = self.call(Sent::Write(write.clone())).await?;
        let Reply::Outcome(value) = value else { panic!("{value:?}") };
        Ok(Answer { now_ms, incarnation, value })
    }

    async fn groups(&mut self, _: &str, _: Kind) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn facts(&self) -> Facts {
        Facts { granularity_ms: 1, can_forget: true, asynchronous_replicas: 0 }
    }

    fn disconnect(&mut self) {}
}

/// Issues IDs for a process whenever the process wakes up.
async fn issuing(handle: Handle) {
    loop {
        handle.sleep(1 + handle.below(4000)).await;
        handle.world().issue(handle.process);
    }
}

/// Acquires, renews and releases leases for a process, as a simple keeper would.
async fn keeping(mut handle: Handle) {
    let (time, process) = (handle.clone(), handle.process);
    let terms = handle.world().terms.clone();
    let mut known = None;
    let random_handle = handle.clone();
    let mut random = || random_handle.world().random();
    loop {
        let mut acquisition = Acquisition::new(known.clone(), &mut random);
        let mut held = loop {
            let go = acquire(&mut handle, &terms, &mut acquisition, &time, &mut random, &|_| false);
            if let Some(Ok(held)) = time.timeout(5000, go).await {
                break held;
            }
            handle.world().counts.refused += 1;
            handle.sleep(200 + handle.below(3000)).await;
        };
        let number = {
            let mut world = handle.world();
            world.counts.leases += 1;
            let number = world.counts.leases;
            let (node, cursor, bound) = (held.node, held.start, held.reserved_until);
            world.processes[process].leases.push(Lease { number, node, cursor, bound });
            world.log(|| format!("process {process}: lease {number} of {node}, {cursor} to {bound}"));
            number
        };
        let end = handle.below(900_000) + 5000 + handle.world().now;
        let mut wait = 10_000;
        loop {
            handle.sleep(wait - wait / 10 + handle.below(wait / 5)).await;
            if handle.world().now >= end {
                if handle.below(2) == 0 && handle.world().faults.crashes {
                    handle.world().processes[process].leases.clear();
                    handle.world().log(|| format!("process {process}: crashes"));
                    handle.sleep(handle.below(5000)).await;
                    known = None;
                } else {
                    let swapped = {
                        let mut world = handle.world();
                        let leases = &mut world.processes[process].leases;
                        let at = leases.iter().position(|lease| lease.number == number);
                        at.map_or(held.start, |at| leases.remove(at).cursor)
                    };
                    for _ in 0..3 {
                        let go = release(&mut handle, &terms, &held, swapped, &time, &mut random);
                        if let Some(Ok(())) = time.timeout(5000, go).await {
                            handle.world().counts.released += 1;
                            break;
                        }
                    }
                    known = Some(held.known.clone());
                }
                break;
            }
            let renewed = time.timeout(5000, renew(&mut handle, &terms, &mut held, &time, &mut random)).await;
            let mut world = handle.world();
            if let Some(lease) = world.processes[process].leases.iter_mut().find(|l| l.number == number) {
                lease.bound = held.reserved_until;
            }
            match renewed {
                Some(Ok(Renewed::Extended { .. })) => {
                    world.counts.renewals += 1;
                    wait = 10_000;
                }
                Some(Ok(Renewed::Lost)) => {
                    // The process keeps using the reserved ticks, even after it acquires its next node.
                    world.counts.lost += 1;
                    world.log(|| format!("process {process}: lost lease {number}"));
                    known = Some(held.known.clone());
                    break;
                }
                _ => wait = 1000,
            }
        }
    }
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

fn run(seed: u64, faults: Faults, is_logged: bool) -> World {
    // A tick may be longer than any other duration.
    let tick_ms = if seed % 2 == 0 { 1 } else { 60_000 };
    let terms = Terms { space: Space { tick_ms, ..terms().space }, ..terms() };
    let world = Arc::new(Mutex::new(World {
        faults,
        terms,
        random: seed,
        now: 0,
        events: BTreeMap::new(),
        numbers: 0,
        task: 0,
        store: Kept { incarnation: "0".to_owned(), ..Kept::default() },
        past: Vec::new(),
        store_skew_ms: 0,
        is_store_wrong: seed / 2 % 2 == 1,
        down_until: 0,
        replies: BTreeMap::new(),
        processes: (0..PROCESSES).map(|_| Process::default()).collect(),
        issued: BTreeMap::new(),
        counts: Counts::default(),
        repeat: None,
        log: is_logged.then(Vec::new),
    }));
    let mut tasks: Vec<Task> = Vec::new();
    for process in 0..PROCESSES {
        let handle = Handle { world: world.clone(), process };
        tasks.extend([Box::pin(keeping(handle.clone())) as Task, Box::pin(issuing(handle)) as Task]);
    }
    let lock = || world.lock().unwrap();
    for task in 0..tasks.len() {
        lock().push(0, Event::Poll(task));
    }
    lock().push(0, Event::Fault);
    loop {
        let mut now = lock();
        let Some(((at, _), event)) = now.events.pop_first() else { break };
        if at > HOUR_MS || now.repeat.is_some() {
            break;
        }
        now.now = at;
        let task = match event {
            Event::Poll(task) => task,
            Event::Deliver { call, task, request } => {
                now.deliver(call, task, &request);
                continue;
            }
            Event::Reply { call, task, result } => {
                now.replies.insert(call, result);
                task
            }
            Event::Fault => {
                now.fault();
                continue;
            }
        };
        let still_until = now.processes[task / 2].still_until;
        if still_until > at {
            now.push(still_until, Event::Poll(task));
            continue;
        }
        now.task = task;
        drop(now);
        let is_done = tasks[task].as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        assert!(!is_done);
    }
    drop(tasks);
    Arc::into_inner(world).unwrap().into_inner().unwrap()
}

/// Returns the log for a seed whose history repeats an ID, with only the kinds of faults needed to repeat it.
/// The log contains all entries about the node, and all store and process events since the first of the two
/// leases.
fn story(seed: u64, mut faults: Faults) -> String {
    let without: [fn(&mut Faults); 6] = [
        |f| f.network = false,
        |f| f.outages = false,
        |f| f.losses = false,
        |f| f.pauses = false,
        |f| f.crashes = false,
        |f| f.clocks = false,
    ];
    for take_out in without {
        let mut fewer = faults;
        take_out(&mut fewer);
        if run(seed, fewer, false).repeat.is_some() {
            faults = fewer;
        }
    }
    let world = run(seed, faults, true);
    let mut text = format!("seed {seed}, {faults:?}\n");
    let (Some((node, old, new)), Some(log)) = (world.repeat, world.log) else { return text };
    let lease = format!("lease {} of", old.lease);
    let since =
        log.iter().find(|(_, line)| line.contains(&lease)).map_or(0, |(at, _)| at.saturating_sub(100));
    for (at, line) in log.iter().filter(|(at, _)| *at >= since) {
        let is_of_another = line.contains("writes node") && !line.contains(&format!(" node {node}:"));
        if !is_of_another {
            let _ = writeln!(text, "{at:8} {line}");
        }
    }
    let _ = writeln!(text, "node {node}: {old:?} and {new:?}");
    text
}

fn hours(seeds: core::ops::Range<u64>) {
    let start = std::time::Instant::now();
    let mut all = Counts::default();
    for seed in seeds.clone() {
        let world = run(seed, ALL, false);
        assert!(world.repeat.is_none(), "{}", story(seed, ALL));
        let counts = world.counts;
        // Check that leases were acquired and kept.
        assert!(counts.leases >= 4 && counts.renewals >= 100, "seed {seed}: {counts:?}");
        all.leases += counts.leases;
        all.renewals += counts.renewals;
        all.lost += counts.lost;
        all.released += counts.released;
        all.refused += counts.refused;
        all.losses += counts.losses;
    }
    println!("{seeds:?}: {all:?} in {:?}", start.elapsed());
}

#[test]
fn an_hour_repeats_nothing() {
    hours(0..8);
}

#[test]
#[ignore = "long"]
fn a_thousand_hours_repeat_nothing() {
    hours(0..1000);
}

#[test]
fn a_seed_is_a_history() {
    let (one, other) = (run(7, ALL, true), run(7, ALL, true));
    assert!(one.counts == other.counts && one.log == other.log);
}

fn repeats(faults: Faults) {
    let seed = (0..50).find(|&seed| run(seed, faults, false).repeat.is_some()).unwrap();
    let story = story(seed, faults);
    println!("{story}");
    assert!(story.contains(" and Issued"));
}

#[test]
fn an_hour_without_the_fence_repeats() {
    repeats(Faults { without_fence: true, ..ALL });
}

#[test]
fn an_hour_without_the_version_repeats() {
    repeats(Faults { without_version: true, ..ALL });
}
