//! A process that constantly takes IDs, numbers and numbers for keys, and records each call's result and times. A
//! process that was killed may not have finished its last line.

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{sleep, spawn};
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use polyflake::{Error, SequenceStart, Snowflake};
use polyflake_coordination::{CounterOptions, SequencesOptions, open};

use crate::checker::{Call, Got, Process};
use crate::journals::{Holder, Journal};

/// How many numbers a counter fetches at a time.
pub(crate) const STEP: u64 = 50;
/// How many numbers a call takes.
pub(crate) const AT_A_TIME: u64 = 5;
const KEYS: u64 = 7;
const MAX_WAIT_MS: u64 = 1_000;

/// Returns the time on a clock that all processes on this machine share.
fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    now.tv_sec() * 1_000_000_000 + now.tv_nsec()
}

/// One thread, which records each call before and after making it.
struct Recorder {
    journal: Journal,
    thread: u64,
    is_over: Arc<AtomicBool>,
}

impl Recorder {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn record<T>(&self, call: impl FnOnce() -> Result<(T, String), Error>) -> Option<T> {
        let begun = now_ns();
        self.journal.write(&format!("asked {}", self.thread));
        let result = call();
        let (value, got) = match result {
            Ok((value, got)) => (Some(value), got),
            Err(error) => (None, format!("error {}", error.code().name())),
        };
        self.journal.write(&format!("did {} {begun} {} {got}", self.thread, now_ns()));
        value
    }

    /// Calls `open` until it succeeds, and then `call` until everything is over.
    fn run<T>(&self, open: impl Fn() -> Result<T, Error>, call: impl Fn(&T, u64) -> Result<String, Error>) {
        let mut opened = None;
        let mut round = 0;
        while !self.is_over() {
            if let Some(opened) = &opened {
                self.record(|| Ok(((), call(opened, round)?)));
            } else {
                opened = self.record(|| Ok((open()?, "opened".into())));
            }
            round += 1;
            sleep(Duration::from_millis(10));
        }
    }
}

fn joined<T: ToString>(values: impl IntoIterator<Item = T>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(" ")
}

/// Obeys `close` on its standard input, and exits without closing if that input ends. The first line of its settings is
/// the address for leases, the second is the address for sequences, and the others are the addresses of the counter's
/// stores.
#[test]
#[ignore = "the other tests start it"]
fn a_process() {
    let Some((journal, settings)) = Journal::of_this_process() else { return };
    let lines: Vec<String> = settings.lines().map(Into::into).collect();
    let is_over = Arc::new(AtomicBool::new(false));
    let recorder = |thread| Recorder { journal: journal.clone(), thread, is_over: Arc::clone(&is_over) };
    let (ids, keys, counts) = (recorder(0), recorder(1), recorder(2));
    let (leases, sequences, stores) = (lines[0].clone(), lines[1].clone(), lines[2..].to_vec());
    let all = [
        spawn(move || {
            let options = Snowflake::builder().lease(&leases).sequence_start(SequenceStart::Zero);
            let options = options.max_wait_ms(MAX_WAIT_MS);
            ids.run(
                || open(&options),
                |ids, _| {
                    let stands = || {
                        let bound = ids.lease().unwrap().map_or(0, |lease| lease.bound_ms);
                        (bound, ids.stats().unwrap().lease_losses)
                    };
                    let before = stands();
                    let issued = ids.next_ids(AT_A_TIME)?;
                    let after = stands();
                    let stood = joined([before.0, after.0, before.1, after.1]);
                    Ok(format!("ids {stood} {}", joined(issued)))
                },
            );
        }),
        spawn(move || {
            let options = SequencesOptions::new("keys").store(&sequences).sections(4_u64).step(STEP);
            let options = options.max_wait_ms(MAX_WAIT_MS);
            keys.run(
                || options.open(),
                |sequences, round| {
                    let keys = [round % KEYS, (round + 1) % KEYS];
                    let numbers = sequences.next_ids(keys)?;
                    let given = keys.iter().zip(numbers).map(|(key, number)| format!("{key}={number}"));
                    Ok(format!("keys {}", joined(given)))
                },
            );
        }),
        spawn(move || {
            let options = CounterOptions::new("numbers").step(STEP).max_wait_ms(MAX_WAIT_MS);
            let options = stores.iter().fold(options, |options, store| options.store(store));
            counts.run(
                || options.open(),
                |counter, _| Ok(format!("numbers {}", joined(counter.next_ids(AT_A_TIME)?))),
            );
        }),
    ];
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if line == "close" {
            is_over.store(true, Ordering::Relaxed);
            // Each thread closes what it has opened by dropping it.
            for thread in all {
                thread.join().unwrap();
            }
            journal.write("closed");
            return;
        }
    }
}

/// Parses a process's lines.
pub(crate) fn read(lines: &[String], is_killed: bool) -> Process {
    let mut process = Process { is_killed, ..Process::default() };
    let mut asked: BTreeMap<u64, u64> = BTreeMap::new();
    for line in lines {
        if let Some(thread) = line.strip_prefix("asked ") {
            *asked.entry(thread.parse().unwrap()).or_default() += 1;
        } else if let Some(rest) = line.strip_prefix("did ") {
            let words: Vec<_> = rest.split(' ').collect();
            let thread = words[0].parse().unwrap();
            *asked.get_mut(&thread).unwrap() -= 1;
            let values = |from: usize| words[from..].iter().map(|word| word.parse::<u64>().unwrap());
            let got = match words[3] {
                "ids" => {
                    let stood: Vec<_> = values(4).take(4).collect();
                    let ids = values(8).collect();
                    Got::Ids { bounds: (stood[0], stood[1]), losses: (stood[2], stood[3]), ids }
                }
                "numbers" => Got::Numbers(values(4).collect()),
                "keys" => {
                    let pairs = words[4..].iter().map(|word| word.split_once('=').unwrap());
                    Got::Keys(
                        pairs.map(|(key, number)| (key.parse().unwrap(), number.parse().unwrap())).collect(),
                    )
                }
                "error" => Got::Error(words[4].into()),
                "opened" => continue,
                _ => panic!("{line}"),
            };
            let (begun, ended) = (words[1].parse().unwrap(), words[2].parse().unwrap());
            process.calls.push(Call { thread, begun, ended, got });
        }
    }
    process.waiting = asked.into_iter().filter(|&(_, count)| count > 0).map(|(thread, _)| thread).collect();
    process
}

/// Returns true if a process has received anything of this kind (`ids`, `numbers` or `keys`) since the given line.
pub(crate) fn got_since(holder: &Holder, line: usize, kind: &str) -> bool {
    let lines = holder.lines();
    lines[line.min(lines.len())..]
        .iter()
        .any(|line| line.starts_with("did ") && line.split(' ').nth(4) == Some(kind))
}
