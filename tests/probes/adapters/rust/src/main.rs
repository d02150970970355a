//! Adapts Polyflake for Rust to the duplicate probes.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::process::exit;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use polyflake::{Error, Snowflake};

const DONE: i32 = 0;
const REFUSED: i32 = 3;
const UNSUPPORTED: i32 = 4;

/// The runner's request, and the options for the generator.
struct Probe {
    situation: String,
    n: usize,
    parts: usize,
    behind_ms: u64,
    tick_ms: u64,
    gate: RawFd,
    options: Vec<(String, String)>,
}

impl Probe {
    fn from_arguments() -> Self {
        let mut arguments = std::env::args().skip(1);
        let mut probe = Self {
            situation: arguments.next().unwrap_or_default(),
            n: 1,
            parts: 1,
            behind_ms: 0,
            tick_ms: 1,
            gate: -1,
            options: Vec::new(),
        };
        for argument in arguments {
            let (name, value) = argument.split_once('=').expect("an argument is NAME=VALUE");
            let number = || value.parse::<u64>().expect("a number");
            match name {
                "n" => probe.n = number() as usize,
                "parts" => probe.parts = number() as usize,
                "behind_ms" => probe.behind_ms = number(),
                "tick_ms" => probe.tick_ms = number(),
                "gate" => probe.gate = number() as RawFd,
                _ => probe.options.push((name.to_owned(), value.to_owned())),
            }
        }
        probe
    }

    fn has(&self, option: &str) -> bool {
        self.options.iter().any(|(name, _)| name == option)
    }

    fn build(&self) -> Result<Snowflake, Error> {
        let layout = match (self.situation.as_str(), self.tick_ms) {
            // 64 IDs per tick, so that every language can use them up.
            ("exhaustion", _) => "yitter",
            (_, 1) => "twitter",
            (_, 10) => "sonyflake",
            _ => "cosid-second",
        };
        // On a busy machine, a thread may wait a long time for its turn.
        let mut options = Snowflake::builder().layout(layout).max_wait_ms(60_000);
        if !self.has("lease") {
            options = options.node(7);
        }
        for (name, value) in &self.options {
            options.set(name, value)?;
        }
        if self.has("lease") { polyflake_coordination::open(&options) } else { options.build() }
    }
}

/// The IDs that one thread or process took, and the error that stopped it, if any.
#[derive(Default)]
struct Part {
    ids: Vec<u64>,
    refused: Option<Error>,
}

impl Part {
    fn take(&mut self, ids: &Snowflake, n: usize) {
        for _ in 0..n {
            match ids.next_id() {
                Ok(id) => self.ids.push(id),
                Err(error) => {
                    self.refused = Some(error);
                    return;
                }
            }
        }
    }

    fn take_from(&mut self, ids: Result<Snowflake, Error>, n: usize) {
        match ids {
            Ok(ids) => self.take(&ids, n),
            Err(error) => self.refused = Some(error),
        }
    }

    /// Prints with a single write, like all output here, since other processes may print to the same file.
    fn finish(&self) -> io::Result<i32> {
        let mut text = String::with_capacity(21 * self.ids.len());
        for id in &self.ids {
            let _ = writeln!(text, "{id}");
        }
        io::stdout().write_all(text.as_bytes())?;
        Ok(self.refused.as_ref().map_or(DONE, refuse))
    }
}

/// Prints with a single write, unlike `eprintln!`.
fn say(line: &str) {
    io::stderr().write_all(line.as_bytes()).expect("stderr is a file");
}

fn refuse(error: &Error) -> i32 {
    say(&format!("refused: {}\n", error.code().name()));
    REFUSED
}

fn unsupported(why: &str) -> i32 {
    say(&format!("{why}\n"));
    UNSUPPORTED
}

/// Runs threads that share a generator, or that each have their own, for the same node.
fn threads(probe: &Probe, shared: Option<&Snowflake>) -> io::Result<i32> {
    let together = Arc::new(Barrier::new(probe.parts));
    let parts: Vec<Part> = thread::scope(|scope| {
        let started: Vec<_> = (0..probe.parts)
            .map(|_| {
                let together = Arc::clone(&together);
                scope.spawn(move || {
                    let mut part = Part::default();
                    together.wait();
                    match shared {
                        Some(ids) => part.take(ids, probe.n),
                        None => part.take_from(probe.build(), probe.n),
                    }
                    part
                })
            })
            .collect();
        started.into_iter().map(|thread| thread.join().expect("a thread panicked")).collect()
    });
    let mut status = DONE;
    for part in &parts {
        status = status.max(part.finish()?);
    }
    Ok(status)
}

/// The children use the parent's generator, or build their own for the same node.
fn forked(probe: &Probe, ids: &Snowflake, children_build: bool) -> io::Result<i32> {
    let mut parents = Part::default();
    parents.take(ids, 1);
    for _ in 1..probe.parts {
        // SAFETY: this program has only one thread.
        match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => {
                let mut part = Part::default();
                if children_build {
                    part.take_from(probe.build(), probe.n);
                } else {
                    part.take(ids, probe.n);
                }
                let status = part.finish().unwrap_or(1);
                // SAFETY: this does not return.
                unsafe { libc::_exit(status) }
            }
            _ => {}
        }
    }
    parents.take(ids, probe.n - 1);
    let mut status = DONE;
    for _ in 1..probe.parts {
        let mut ended = 0;
        // SAFETY: the status is written to a local variable.
        unsafe { libc::wait(&raw mut ended) };
        status = status.max(if libc::WIFEXITED(ended) { libc::WEXITSTATUS(ended) } else { 1 });
    }
    Ok(status.max(parents.finish()?))
}

/// libfaketime steps this program's clock through a file.
fn rollback(probe: &Probe, ids: &Snowflake) -> io::Result<i32> {
    let Some(clock) = std::env::var_os("FAKETIME_TIMESTAMP_FILE") else {
        return Ok(unsupported("needs libfaketime, which steps this program's clock"));
    };
    let behind = Duration::from_millis(probe.behind_ms);
    let began = Instant::now();
    let mut part = Part::default();
    part.take(ids, probe.n - 1);
    // Wait, so that the step goes back to the time of the first IDs.
    thread::sleep(behind.saturating_sub(began.elapsed()));
    part.take(ids, 1);
    // Do not truncate it: libfaketime ends the program if a thread reads the empty file.
    let mut clock = std::fs::OpenOptions::new().write(true).open(clock)?;
    clock.write_all(format!("-{}\n", behind.as_secs_f64()).as_bytes())?;
    part.take(ids, probe.n);
    part.finish()
}

/// Starts when the previous process is done, as a restarted program would.
fn restart(probe: &Probe) -> io::Result<i32> {
    println!("ready");
    io::stdin().read_to_end(&mut Vec::new())?;
    let mut part = Part::default();
    part.take_from(probe.build(), probe.n);
    // SAFETY: the runner gave this file descriptor to the program, which uses it nowhere else. Closing it starts the
    // next process.
    drop(unsafe { OwnedFd::from_raw_fd(probe.gate) });
    part.finish()
}

/// Builds a generator for each ID, as a function that handles a single request would.
fn per_call(probe: &Probe) -> io::Result<i32> {
    let mut part = Part::default();
    while part.ids.len() < probe.n && part.refused.is_none() {
        part.take_from(probe.build(), 1);
    }
    part.finish()
}

/// One of several processes that were not given a node. The runner kills it.
fn fleet(probe: &Probe) -> io::Result<i32> {
    if !["lease", "node", "state"].iter().any(|option| probe.has(option)) {
        return Ok(unsupported("processes that have no node of their own need a lease"));
    }
    let mut part = Part::default();
    part.take_from(probe.build(), probe.n);
    let status = part.finish()?;
    if status == DONE {
        io::stdin().read_to_end(&mut Vec::new())?;
    }
    Ok(status)
}

fn run(probe: &Probe) -> io::Result<i32> {
    match probe.situation.as_str() {
        "worker-threads" => return threads(probe, None),
        "restart" => return restart(probe),
        "per-call" => return per_call(probe),
        "fleet" => return fleet(probe),
        "prefork" | "prefork-one-node" => {
            return Ok(unsupported("Rust has no prefork server; fork does what one would"));
        }
        _ => {}
    }
    let ids = match probe.build() {
        Ok(ids) => ids,
        Err(error) => return Ok(refuse(&error)),
    };
    match probe.situation.as_str() {
        "threads" => threads(probe, Some(&ids)),
        "fork" => forked(probe, &ids, false),
        "fork-new" => forked(probe, &ids, true),
        "rollback" => rollback(probe, &ids),
        "exhaustion" => {
            let mut part = Part::default();
            part.take(&ids, probe.n);
            part.finish()
        }
        unknown => Ok(unsupported(&format!("unknown situation: {unknown}"))),
    }
}

fn main() -> io::Result<()> {
    exit(run(&Probe::from_arguments())?)
}
