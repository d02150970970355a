//! The histories, as scripts of steps.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use polyflake_coordination::CounterOptions;
use rustix::process::Signal;

use crate::backend::Backend;
use crate::checker::{Process, Promise, check};
use crate::faketime;
use crate::journals::{Holder, Journals};
use crate::proxy::{Conduct, Proxy};
use crate::recorder::{AT_A_TIME, STEP, got_since, read};
use crate::servers::postgres::Postgres;

/// How long a test waits before it fails.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than the TTL, which is 3 s.
const PAST_TTL_MS: u64 = 4_500;
const PROCESSES: usize = 3;

/// One event in a history.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Each process receives IDs and numbers, and one receives numbers for keys.
    All,
    /// The network behaves in the given way for a while, and then recovers, with new connections.
    Network(Conduct, u64),
    /// The network holds everything back for a while, and then lets it through.
    Held(u64),
    /// All connections are cut every few milliseconds, the given number of times.
    Cuts(u64),
    /// The clock of a process's machine is moved by the given number of seconds.
    Clock(usize, i32),
    /// A process is stopped for a while.
    Stop(usize, u64),
    /// A process is killed, and another starts.
    Kill(usize),
}

use Step::{All, Clock, Cuts, Held, Kill, Network, Stop};

/// A history's processes, and the proxies to their stores. The first store keeps everything. The second, if
/// there is one, keeps only the counter.
struct Run<'a> {
    name: String,
    proxies: Vec<Proxy>,
    addresses: Vec<String>,
    direct: Vec<String>,
    journals: &'a Journals,
    running: Vec<Holder>,
    killed: Vec<Process>,
    has_clocks: bool,
}

impl<'a> Run<'a> {
    fn new(name: &str, stores: &[&dyn Port], seed: u64, journals: &'a Journals) -> Self {
        Self::with("3s", false, name, stores, seed, journals)
    }

    fn with(
        ttl: &str,
        has_clocks: bool,
        name: &str,
        stores: &[&dyn Port],
        seed: u64,
        journals: &'a Journals,
    ) -> Self {
        let mut run = Self {
            name: name.into(),
            proxies: Vec::new(),
            addresses: Vec::new(),
            direct: Vec::new(),
            journals,
            running: Vec::new(),
            killed: Vec::new(),
            has_clocks,
        };
        for store in stores {
            let url = format!("{}?namespace={name}&ttl={ttl}&wait=2s&init=always", store.url_of());
            run.direct.push(url.clone());
            // A file needs no network.
            if store.port_of() == 0 {
                run.addresses.push(url);
            } else {
                let proxy = Proxy::new(store.port_of(), seed);
                let (from, to) = (format!(":{}", store.port_of()), format!(":{}", proxy.port()));
                run.addresses.push(url.replace(&from, &to));
                run.proxies.push(proxy);
            }
        }
        run.running = (0..PROCESSES).map(|at| run.start(at)).collect();
        run
    }

    fn start(&self, at: usize) -> Holder {
        // One node more than there are processes.
        let leases = format!("{}&nodes=0-{PROCESSES}", self.addresses[0]);
        let settings = [leases, self.addresses[0].clone()].into_iter().chain(self.addresses.iter().cloned());
        let settings = settings.collect::<Vec<_>>().join("\n");
        if self.has_clocks {
            let clock = self.clock(at);
            return faketime::start_with(self.journals, &settings, "recorder::a_process", &clock);
        }
        self.journals.start_with(&settings, "recorder::a_process", &[])
    }

    /// Returns the file that sets a process's clock.
    fn clock(&self, at: usize) -> PathBuf {
        self.journals.folder().join(format!("{at}.clock"))
    }

    fn step(&mut self, step: Step) {
        println!("{}: {step:?}", self.name);
        match step {
            All => self.all(),
            Network(conduct, ms) => {
                for proxy in &self.proxies {
                    proxy.behave(conduct);
                }
                sleep(Duration::from_millis(ms));
                for proxy in &self.proxies {
                    proxy.behave(Conduct::Good);
                    proxy.cut();
                }
            }
            Held(ms) => {
                for proxy in &self.proxies {
                    proxy.behave(Conduct::Frozen);
                }
                sleep(Duration::from_millis(ms));
                for proxy in &self.proxies {
                    proxy.behave(Conduct::Good);
                }
            }
            Cuts(count) => {
                for round in 0..count {
                    sleep(Duration::from_millis(2 + round % 7));
                    for proxy in &self.proxies {
                        proxy.cut();
                    }
                }
            }
            Clock(at, by_s) => faketime::set(&self.clock(at), by_s),
            Stop(at, ms) => {
                self.running[at].signal(Signal::STOP);
                sleep(Duration::from_millis(ms));
                self.running[at].signal(Signal::CONT);
            }
            Kill(at) => {
                self.running[at].kill();
                self.killed.push(read(&self.running[at].lines(), true));
                self.running[at] = self.start(at);
            }
        }
    }

    fn all(&self) {
        let marks: Vec<_> = self.running.iter().map(|holder| holder.mark().line()).collect();
        let deadline = Instant::now() + PATIENCE;
        let got = |at: usize, kind| got_since(&self.running[at], marks[at], kind);
        let each = |kind| (0..PROCESSES).all(|at| got(at, kind));
        while !(each("ids") && each("numbers") && (0..PROCESSES).any(|at| got(at, "keys"))) {
            if Instant::now() > deadline {
                let missing: Vec<_> =
                    (0..PROCESSES).map(|at| (got(at, "ids"), got(at, "numbers"), got(at, "keys"))).collect();
                let texts: Vec<_> = self.running.iter().map(tail).collect();
                panic!("{}: no more of all, only {missing:?}:\n{}", self.name, texts.join("\n---\n"));
            }
            sleep(Duration::from_millis(50));
        }
    }

    /// Closes and stops all processes, and judges the history. For each process, `skipped_by_each`
    /// additional numbers may be missing.
    fn end(mut self, skipped_by_each: Option<u64>) {
        for holder in &mut self.running {
            holder.tell("close");
        }
        for holder in &mut self.running {
            holder.wait_for(Holder::start(), "closed");
            assert!(holder.wait().success());
        }
        let mut all: Vec<_> = self.running.iter().map(|holder| read(&holder.lines(), false)).collect();
        all.append(&mut self.killed);
        let skipped = skipped_by_each.map(|more| {
            let counter =
                CounterOptions::new("numbers").store(&self.direct[0]).step(1_u64).max_wait_ms(60_000_u64);
            let last = counter.open().unwrap().peek().unwrap();
            (last, all.len() as u64 * (2 * STEP + AT_A_TIME + more))
        });
        let counts = check(&all, Promise { skipped, is_unordered: self.addresses.len() > 1 }).unwrap_or_else(
            |fault| {
                let texts: Vec<_> = self.running.iter().map(tail).collect();
                panic!("{}: {fault}\n{}", self.name, texts.join("\n---\n"))
            },
        );
        println!("{}: {counts:?}, last and most that may be missing {skipped:?}", self.name);
        assert!(counts.ids > 0 && counts.numbers > 0 && counts.keys > 0, "{counts:?}");
    }
}

/// Returns the last lines of a process's journal, without the IDs and numbers it received.
fn tail(holder: &Holder) -> String {
    let lines = holder.lines();
    let said = |line: &&String| {
        !line.starts_with("asked ") && !line.contains(" ids ") && !line.contains(" numbers ")
    };
    let said: Vec<_> = lines.iter().filter(said).filter(|line| !line.contains(" keys ")).cloned().collect();
    said[said.len().saturating_sub(40)..].join("\n")
}

/// The parts of a store that a history needs.
trait Port {
    fn url_of(&self) -> String;
    fn port_of(&self) -> u16;
}

impl<B: Backend> Port for B {
    fn url_of(&self) -> String {
        self.url()
    }

    fn port_of(&self) -> u16 {
        self.port()
    }
}

fn run(name: &str, store: &impl Backend, steps: &[Step], skipped_by_each: Option<u64>) {
    let journals = Journals::new();
    let mut run = Run::new(name, &[store], 1, &journals);
    run.step(All);
    for &step in steps {
        run.step(step);
    }
    run.step(All);
    run.end(skipped_by_each);
}

/// Requests are carried out, but the replies are lost. Each time, a process may lose the numbers from one reservation.
pub(crate) fn replies_are_cut(store: &impl Backend) {
    run("replies", store, &[Network(Conduct::Mute, 700), All, Network(Conduct::Mute, 1_500)], None);
}

/// Requests get through only once other processes have the nodes.
pub(crate) fn all_is_frozen(store: &impl Backend) {
    run("frozen", store, &[Held(PAST_TTL_MS)], None);
}

/// Data is delayed or lost, and connections are cut, at random. In the middle of this, a process dies.
pub(crate) fn the_network_is_bad(store: &impl Backend) {
    let journals = Journals::new();
    let mut run = Run::with("9s", false, "bad", &[store], 1, &journals);
    run.proxies[0].behave(Conduct::Bad);
    run.step(All);
    assert!(run.proxies[0].harms() > 0);
    // Cut all connections at once.
    run.proxies[0].cut();
    run.step(Kill(0));
    run.step(All);
    run.proxies[0].behave(Conduct::Good);
    run.step(All);
    run.end(None);
}

pub(crate) fn connections_are_dropped(store: &impl Backend) {
    run("dropped", store, &[Cuts(300)], None);
}

pub(crate) fn a_process_is_stopped(store: &impl Backend) {
    run("stopped", store, &[Stop(0, PAST_TTL_MS), All, Stop(1, 500)], None);
}

pub(crate) fn a_process_is_killed(store: &impl Backend) {
    run("killed", store, &[Kill(0), All, Kill(1), Kill(2)], Some(0));
}

pub(crate) fn all_is_slow(store: &impl Backend) {
    let journals = Journals::new();
    // An attempt, which may need several round trips, may take a sixth of the TTL.
    let mut run = Run::with("30s", false, "slow", &[store], 1, &journals);
    run.step(All);
    for proxy in &run.proxies {
        proxy.behave(Conduct::Late);
    }
    for _ in 0..3 {
        run.step(All);
    }
    run.end(None);
}

/// While a clock is wrong, its process receives no IDs, but it still receives numbers. The other processes notice
/// nothing. With a file, the store's clock is that of the process that writes to it.
pub(crate) fn clocks_differ(store: &impl Backend) {
    let journals = Journals::new();
    let mut run = Run::with("3s", true, "clocks", &[store], 1, &journals);
    run.step(All);
    for (at, by_s) in [(0, 3_600), (1, -3_600)] {
        let mark = run.running[at].mark();
        run.step(Clock(at, by_s));
        run.running[at].wait_for(mark, "event clock_differs");
        run.step(Clock(at, 0));
        run.step(All);
    }
    run.end(None);
}

pub(crate) fn the_store_is_killed<B: Backend>(store: &mut B) {
    let journals = Journals::new();
    let mut run = Run::new("restarted", &[&*store], 1, &journals);
    run.step(All);
    if store.kill() {
        sleep(Duration::from_secs(1));
        store.start_again();
    }
    run.step(All);
    run.end(None);
}

/// One of the counter's two stores is cut off. The other one holds the leases.
pub(crate) fn one_of_two_stores_is_cut_off<B: Backend>(store: &B) {
    let second = B::begin();
    let journals = Journals::new();
    let mut run = Run::new("two", &[store, &second], 1, &journals);
    run.step(All);
    run.proxies[1].behave(Conduct::Silent);
    // The processes continue with the other store. On a busy machine, a process may have found the second store
    // unreachable earlier, and reports that only once.
    let of_second = format!(":{}", run.proxies[1].port());
    for holder in &mut run.running {
        holder.wait_until(Holder::start(), "event store_unreachable", |lines| {
            // Before the counter exists, the report about the second store may name only the first.
            let is_of_second =
                |line: &str| line.contains(&of_second) || line.contains("none of its stores has it yet");
            let is_told = |line: &&String| line.starts_with("event store_") && is_of_second(line);
            let last = lines.iter().rfind(is_told)?;
            last.starts_with("event store_unreachable").then_some(())
        });
    }
    run.step(All);
    run.proxies[1].behave(Conduct::Good);
    run.proxies[1].cut();
    run.step(All);
    run.end(None);
}

/// While a process is stopped, a PostgreSQL standby takes over without the last writes that the primary
/// acknowledged.
#[test]
fn a_standby_takes_over_without_the_last_writes() {
    let mut primary = Postgres::new();
    let standby = primary.standby();
    let replication = Proxy::new(primary.port(), 1);
    let way = format!("host=127.0.0.1 port={} user=postgres", replication.port());
    standby.sql("postgres", &format!("ALTER SYSTEM SET primary_conninfo = '{way}'"));
    standby.sql("postgres", "SELECT pg_reload_conf()");
    let deadline = Instant::now() + PATIENCE;
    let of_proxy =
        format!("SELECT count(*) FROM pg_stat_wal_receiver WHERE sender_port = {}", replication.port());
    while standby.sql("postgres", &of_proxy) != "1" {
        assert!(Instant::now() < deadline, "the standby does not follow");
        sleep(Duration::from_millis(50));
    }
    let journals = Journals::new();
    let mut run = Run::new("failover", &[&primary], 1, &journals);
    run.step(All);
    replication.behave(Conduct::Silent);
    // While the standby is cut off, leases are renewed and numbers are taken.
    for _ in 0..3 {
        sleep(Duration::from_secs(1));
        run.step(All);
    }
    run.running[1].signal(Signal::STOP);
    let last = primary.sql("postgres", "SELECT pg_current_wal_lsn()");
    primary.server.kill();
    let lacks = format!("SELECT pg_last_wal_replay_lsn() < '{last}'");
    assert_eq!(standby.sql("postgres", &lacks), "t");
    standby.promote();
    run.proxies[0].lead_to(standby.server.port());
    sleep(Duration::from_secs(2));
    run.running[1].signal(Signal::CONT);
    run.step(All);
    run.step(Kill(2));
    run.step(All);
    run.end(None);
}

/// Random numbers, generated by SplitMix64.
struct Random(u64);

impl Random {
    const fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

/// Runs random steps, generated from a seed that is printed.
fn mixture(name: &str, store: &impl Backend, count: u64, more: u64) {
    let seed = std::env::var("POLYFLAKE_SEED")
        .map_or_else(|_| u64::from(std::process::id()) * 1_000 + more, |seed| seed.parse().unwrap());
    println!("POLYFLAKE_SEED={seed}");
    let mut random = Random(seed);
    let journals = Journals::new();
    let mut run = Run::new(&format!("{name}-{seed}"), &[store], seed, &journals);
    for _ in 0..count {
        let at = usize::try_from(random.below(PROCESSES as u64)).unwrap();
        let step = match random.below(8) {
            0 => Network(Conduct::Mute, 200 + random.below(2_000)),
            1 => Network(Conduct::Bad, 500 + random.below(2_000)),
            2 => Network(Conduct::Silent, 200 + random.below(4_000)),
            3 => Held(200 + random.below(4_500)),
            4 => Cuts(20 + random.below(200)),
            5 => Stop(at, 200 + random.below(4_500)),
            6 => Kill(at),
            _ => All,
        };
        run.step(step);
    }
    run.step(All);
    run.end(None);
}

pub(crate) fn a_mixture(store: &impl Backend) {
    mixture("mixture", store, 5, 0);
}

pub(crate) fn longer_mixtures(store: &impl Backend) {
    for more in 1..=3 {
        mixture("longer", store, 12, more);
    }
}
