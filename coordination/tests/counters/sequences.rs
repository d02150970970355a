//! Sequences: one owner at a time, no matter how it exits, and keys that are evicted from memory and used
//! again.

use std::collections::HashMap;
use std::fs;
use std::io::BufRead as _;
use std::sync::Arc;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use polyflake::{Error, ErrorCode};
use polyflake_coordination::records::{Group, Kind, Outcome, Record, Write};
use polyflake_coordination::{Address, SequenceKey, Sequences, SequencesOptions, stores};
use rustix::process::Signal;

use crate::ForgetsSequences;
use crate::backend::Backend;
use crate::every_store::Random;
use crate::journals::{Holder, Journal, Journals};
use crate::process::{fork, join};
use crate::servers::redis::Redis;

/// The number of keys that a test's processes use.
const KEYS: u64 = 40;

/// As in [`crate::taker::options`], calls wait for a minute unless a test says otherwise.
fn options(settings: &str) -> SequencesOptions {
    let (name, settings) = settings.split_once('\n').unwrap_or((settings, ""));
    settings.lines().fold(SequencesOptions::new(name).max_wait_ms(60_000_u64), |options, line| {
        let (option, value) = line.split_once('=').unwrap();
        options.set(option, value)
    })
}

/// Returns settings in the form that [`options`] reads.
fn settings(name: &str, address: &str, more: &[&str]) -> String {
    more.iter().fold(format!("{name}\nstore={address}"), |all, setting| format!("{all}\n{setting}"))
}

fn open(name: &str, address: &str, more: &[&str]) -> Result<Sequences, Error> {
    options(&settings(name, address, more)).open()
}

/// Returns the time on a clock that all processes on this machine share.
fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap();
    now.tv_sec() * 1_000_000_000 + now.tv_nsec()
}

/// Alternates between integer and string keys.
fn next(sequences: &Sequences, key: u64) -> Result<u64, Error> {
    if key % 2 == 0 { sequences.next_id(key) } else { sequences.next_id(&format!("key-{key}")) }
}

/// Takes numbers for keys until the sequences are closed. Records those numbers, and when each call began and ended.
fn stream(sequences: &Sequences, journal: &Journal, thread: u64) {
    let mut random = Random::of(u64::from(std::process::id()) * 100 + thread);
    let mut last_error = None;
    loop {
        let keys: Vec<u64> = (0..10).map(|_| random.below(KEYS)).collect();
        let begun = now_ns();
        let result: Result<Vec<u64>, Error> = if thread % 2 == 0 {
            keys.iter().map(|&key| next(sequences, key)).collect()
        } else {
            let texts: Vec<_> = keys.iter().map(|key| format!("key-{key}")).collect();
            let of = |(key, text): (&u64, &'static str)| -> SequenceKey<'static> {
                if key % 2 == 0 { (*key).into() } else { text.into() }
            };
            let texts = texts.into_iter().map(|text| &*text.leak());
            sequences.next_ids(keys.iter().zip(texts).map(of))
        };
        let ended = now_ns();
        match result {
            Ok(numbers) => {
                let given = keys.iter().zip(numbers).map(|(key, number)| format!(" {key}={number}"));
                journal.write(&format!("given {thread} {begun} {ended}{}", given.collect::<String>()));
                last_error = None;
            }
            Err(error) if error.code() == ErrorCode::Closed => return,
            Err(error) => {
                if last_error.replace(error.code()) != Some(error.code()) {
                    journal.error("error", &error);
                }
            }
        }
        sleep(Duration::from_millis(5));
    }
}

/// Opens sequences as soon as no other process has them, and takes numbers in four threads. On `close` from its
/// standard input, closes the sequences and exits. At the end of that input, exits without closing them.
#[test]
#[ignore = "the other tests start it"]
fn a_process() {
    let Some((journal, settings)) = Journal::of_this_process() else { return };
    let sequences = loop {
        match options(&settings).open() {
            Ok(sequences) => break Arc::new(sequences),
            Err(error) if error.code() == ErrorCode::LeaseUnavailable => journal.error("waits", &error),
            Err(error) => return journal.error("refused", &error),
        }
    };
    journal.write("open");
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let (sequences, journal) = (Arc::clone(&sequences), journal.clone());
            thread::spawn(move || stream(&sequences, &journal, thread))
        })
        .collect();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if line == "close" {
            sequences.close();
            for thread in threads {
                thread.join().unwrap();
            }
            journal.write("closed");
            return;
        }
    }
}

/// A number that a key received, and when the call began and ended.
#[derive(Debug, Clone)]
struct Given {
    number: u64,
    begun: i64,
    ended: i64,
    whose: String,
}

/// Returns everything that a test's processes wrote. A process that was killed may not have finished its last line.
fn texts(journals: &Journals) -> Vec<String> {
    let paths = fs::read_dir(journals.folder()).unwrap().map(|entry| entry.unwrap().path());
    let whole = |text: String| text.rfind('\n').map_or(String::new(), |end| text[..end].into());
    paths.map(|path| whole(fs::read_to_string(path).unwrap())).collect()
}

/// Returns all of a test's numbers, by key.
fn given(journals: &Journals) -> HashMap<u64, Vec<Given>> {
    let mut all: HashMap<u64, Vec<Given>> = HashMap::new();
    for (process, text) in texts(journals).iter().enumerate() {
        for line in text.lines().filter_map(|line| line.strip_prefix("given ")) {
            let mut words = line.split(' ');
            let mut next = || words.next().unwrap();
            let (thread, begun, ended) = (next(), next().parse().unwrap(), next().parse().unwrap());
            let whose = format!("process {process}, thread {thread}");
            for (key, number) in words.map(|word| word.split_once('=').unwrap()) {
                let given = Given { number: number.parse().unwrap(), begun, ended, whose: whose.clone() };
                all.entry(key.parse().unwrap()).or_default().push(given);
            }
        }
    }
    all
}

/// Checks that no number was issued twice for a key, and that no later request returned a lower number. Returns how
/// many numbers there are.
pub(crate) fn check(journals: &Journals) -> usize {
    let mut count = 0;
    for (key, mut all) in given(journals) {
        // Each thread's own numbers must be in order.
        let mut before: HashMap<&str, u64> = HashMap::new();
        for given in &all {
            let last = before.insert(&given.whose, given.number);
            assert!(last.is_none_or(|last| last < given.number), "key {key}: {last:?}, then {given:?}");
        }
        all.sort_by_key(|given| given.number);
        for pair in all.windows(2) {
            assert!(pair[0].number < pair[1].number, "key {key}: {pair:?}");
        }
        let mut first_end: Option<&Given> = None;
        for given in all.iter().rev() {
            if let Some(higher) = first_end.filter(|higher| higher.ended < given.begun) {
                panic!("key {key}: {given:?} after {higher:?}");
            }
            if first_end.is_none_or(|first| given.ended < first.ended) {
                first_end = Some(given);
            }
        }
        count += all.len();
    }
    count
}

fn start(journals: &Journals, settings: &str) -> Holder {
    journals.start_with(settings, "sequences::a_process", &[])
}

/// Starts a process that constantly takes numbers and often moves its bounds.
pub(crate) fn start_counting(journals: &Journals, address: &str) -> Holder {
    start(journals, &settings("inbox", address, &["sections=4", "step=50", "max_wait_ms=1000"]))
}

/// Returns the process whose journal is growing.
pub(crate) fn owner(all: &mut [Holder]) -> usize {
    owner_within(all, Duration::from_secs(90)).unwrap_or_else(|| {
        let texts: Vec<_> = all.iter().map(Holder::text).collect();
        panic!("nobody counts:\n{}", texts.join("\n---\n"))
    })
}

fn owner_within(all: &mut [Holder], longest: Duration) -> Option<usize> {
    let deadline = Instant::now() + longest;
    loop {
        let count = |holder: &Holder| holder.lines().iter().filter(|line| line.starts_with("given ")).count();
        let before: Vec<_> = all.iter().map(count).collect();
        sleep(Duration::from_millis(200));
        if let Some(at) = (0..all.len()).find(|&at| count(&all[at]) > before[at] + 1) {
            return Some(at);
        }
        if Instant::now() >= deadline {
            return None;
        }
    }
}

/// Uses its own store, since a process that is stopped in the middle of a write to a file locks everyone else out.
pub(crate) fn owners_come_and_go<B: Backend>() {
    let store = B::begin();
    let journals = Journals::new();
    let begin = |label: usize| {
        let address = store.address(&format!("namespace=come-and-go&ttl=3s&wait=1s&label=process-{label}"));
        // Keys are evicted constantly, and bounds move often.
        start(
            &journals,
            &settings("inbox", &address, &["sections=4", "step=200", "max_keys=16", "max_wait_ms=500"]),
        )
    };
    let mut all: Vec<_> = (0..3).map(begin).collect();
    for round in 0..6 {
        let at = owner(&mut all);
        match round % 3 {
            // When the owner wakes, it does not know that it was stopped.
            0 => {
                all[at].signal(Signal::STOP);
                let mut others = std::mem::take(&mut all);
                let stopped = others.remove(at);
                // With a file, the owner may have been stopped during a write, so that no one else can write.
                if store.url().starts_with("sqlite:") {
                    let _ = owner_within(&mut others, Duration::from_secs(20));
                } else {
                    owner(&mut others);
                }
                stopped.signal(Signal::CONT);
                all = others;
                all.insert(at, stopped);
            }
            1 => {
                all[at].kill();
                all[at] = begin(at + 10 * (round + 1));
            }
            _ => {
                let mark = all[at].mark();
                all[at].tell("close");
                all[at].wait_for(mark, "closed");
                all[at] = begin(at + 10 * (round + 1));
            }
        }
    }
    let last = owner(&mut all);
    all[last].tell("close");
    all[last].wait_for(Holder::start(), "closed");
    drop(all);
    // The other processes were told who the owner is.
    let is_told = |line: &str| line.starts_with("waits ") && line.contains("`process-");
    assert!(texts(&journals).iter().any(|text| text.lines().any(is_told)));
    let count = check(&journals);
    println!("{}: {count} numbers of {KEYS} keys", store.url().split(':').next().unwrap());
    assert!(count > 1_000, "{count}");
}

pub(crate) fn each_key_counts_for_itself(store: &impl Backend) {
    let address = store.address("ttl=60s");
    let take = |sequences: &Sequences, keys: &[&str]| sequences.next_ids(keys.iter().copied()).unwrap();
    let inbox = open("keys", &address, &[]).unwrap();
    assert_eq!(take(&inbox, &["alice", "bob", "alice", "alice", "bob"]), [1, 1, 2, 3, 2]);
    assert_eq!(
        (inbox.next_id("5"), inbox.next_id(5), inbox.next_id("5"), inbox.next_id(-5)),
        (Ok(1), Ok(1), Ok(2), Ok(1))
    );
    // Two Sequences with one name share their state, and one continues when the other is closed.
    let other = open("keys", &address, &[]).unwrap();
    assert_eq!((other.next_id("bob"), inbox.try_next_id("alice"), inbox.name()), (Ok(3), Ok(4), "keys"));
    other.close();
    assert_eq!(other.next_id("bob").unwrap_err().code(), ErrorCode::Closed);
    let stats = inbox.stats().unwrap();
    assert_eq!((stats.keys, stats.evicted, stats.moves, stats.waits), (5, 0, 1, 0));
    assert!((1..=60_000).contains(&stats.time_left_ms), "{stats:?}");
    // Sequences with different options cannot share that state.
    for (more, says) in
        [("sections=7", "sections=1024, step=10000"), ("step=7", "not with sections=1024, step=7")]
    {
        let error = open("keys", &address, &[more]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidOption);
        assert!(error.to_string().contains(says), "{error}");
    }
    inbox.close();
    // They were closed, so nothing is skipped. They cannot be opened with a different number of sections.
    let error = open("keys", &address, &["sections=7"]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidOption);
    assert!(error.to_string().contains("has 1024 sections of it, and 7 are asked for"), "{error}");
    let inbox = open("keys", &address, &["max_keys=100"]).unwrap();
    assert_eq!(take(&inbox, &["alice", "bob", "alice", "bob"]), [5, 4, 6, 5]);
    // Batches with more keys than there is room for, so that keys are evicted and used again.
    let keys: Vec<String> = (0..3_000).map(|key| format!("user-{key}")).collect();
    let mut last = vec![0; keys.len()];
    for _ in 0..3 {
        let numbers = inbox.next_ids(&keys).unwrap();
        assert!(numbers.iter().zip(&last).all(|(now, before)| now > before));
        last = numbers;
    }
    let stats = inbox.stats().unwrap();
    assert!(stats.keys <= 1_024 && stats.evicted > 5_000, "{stats:?}");
    inbox.close();
    // After a restart, a section's keys continue above its highest number.
    let few = open("few", &address, &["sections=1"]).unwrap();
    assert_eq!(take(&few, &["a", "a", "a", "b"]), [1, 2, 3, 1]);
    few.close();
    let few = open("few", &address, &["sections=1"]).unwrap();
    assert_eq!(take(&few, &["b", "a", "b", "c"]), [4, 4, 5, 4]);
    few.close();
}

pub(crate) fn a_key_has_its_last_number(store: &impl Backend) {
    const LAST: u64 = i64::MAX as u64;
    let address = store.address("ttl=60s");
    let put = |name: &str, hash: &str| {
        let bounds = LAST - 3;
        let text = format!(
            r#"{{"format":1,"sections":1,"hash":"{hash}","incarnation":"by hand","skip":"0","bounds":"{bounds}"}}"#
        );
        let group = Group { namespace: "default".into(), kind: Kind::Sequences, name: name.into() };
        let new = Record { version: 7, number: 0, text };
        let write = Write { group, name: "section-0".into(), expected: None, guard: None, new };
        let mut records = stores::open(&Address::parse(&address).unwrap()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            // Other processes use the store too.
            while records.write(&write).await.map(|answer| answer.value) != Ok(Outcome::Written) {
                records.disconnect();
            }
        });
    };
    put("last", "xxh3-64");
    let sequences = open("last", &address, &["sections=1"]).unwrap();
    assert_eq!(
        sequences.next_ids(["a", "b", "a", "a", "a"]).unwrap_err().code(),
        ErrorCode::CounterUnavailable
    );
    // There was no number for the fourth `a`. A call that fails uses up no numbers.
    assert_eq!(
        sequences.try_next_ids(["b", "b", "b", "b"]).unwrap_err().code(),
        ErrorCode::CounterUnavailable
    );
    assert_eq!(sequences.next_ids(["b", "b", "b"]), Ok(vec![LAST - 2, LAST - 1, LAST]));
    assert_eq!(sequences.next_id("a"), Ok(LAST - 2));
    assert_eq!(sequences.next_ids(["a", "a"]), Ok(vec![LAST - 1, LAST]));
    for key in ["b", "a"] {
        let error = sequences.next_id(key).unwrap_err();
        assert_eq!(error.code(), ErrorCode::CounterUnavailable);
        assert!(error.to_string().contains("has reached its end, 9223372036854775807"), "{error}");
    }
    sequences.close();
    let sequences = open("last", &address, &["sections=1"]).unwrap();
    assert_eq!(sequences.try_next_id("a").unwrap_err().code(), ErrorCode::CounterUnavailable);
    sequences.close();
    // As if written by a program with a different hash function.
    put("other-hash", "md5");
    let error = open("other-hash", &address, &["sections=1"]).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidOption);
    assert!(
        error.to_string().contains(r#"by the hash "md5", and this program knows "xxh3-64" only"#),
        "{error}"
    );
}

pub(crate) fn a_store_that_stops_and_one_that_dies<B: Backend>() {
    let mut store = B::begin();
    let address = format!("{}&label=me", store.address("ttl=6s&wait=2m"));
    let inbox = open("inbox", &address, &["step=1000000", "max_wait_ms=300"]).unwrap();
    let mut last = inbox.next_id("alice").unwrap();
    for is_killed in [false, true] {
        if !is_killed {
            store.pause();
        } else if !store.kill() {
            break;
        }
        let stopped = Instant::now();
        // For the rest of the lease, callers notice nothing. Then the owner stops, since another process may have the
        // lease.
        let error = loop {
            match inbox.next_id("alice") {
                Ok(number) => {
                    assert!(number > last);
                    last = number;
                    sleep(Duration::from_millis(10));
                }
                // On a busy machine, the lease may run out before the first attempt has failed.
                Err(error) if error.to_string().contains("has not answered yet") => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.code(), ErrorCode::LeaseLost, "{error}");
        assert!(error.to_string().contains("the store cannot be reached"), "{error}");
        assert!(stopped.elapsed() < Duration::from_secs(60));
        assert_eq!(inbox.try_next_id("alice").unwrap_err().code(), ErrorCode::LeaseLost);
        if is_killed {
            store.start_again();
        } else {
            store.resume();
        }
        // The owner recovers on its own.
        let deadline = Instant::now() + Duration::from_secs(60);
        let number = loop {
            match inbox.next_id("alice") {
                Ok(number) => break number,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
        };
        assert!(number > last);
        last = number;
    }
    inbox.close();
}

pub(crate) fn a_store_that_forgets<B: ForgetsSequences>() {
    let store = B::begin();
    let journals = Journals::new();
    let settings =
        settings("inbox", &store.address("ttl=3s"), &["sections=4", "step=50", "max_wait_ms=1000"]);
    let mut process = start(&journals, &settings);
    for _ in 0..2 {
        owner(std::slice::from_mut(&mut process));
        let mark = process.mark();
        store.forget_sequences();
        process.wait_for(mark, "event writes_lost");
    }
    owner(std::slice::from_mut(&mut process));
    let mark = process.mark();
    process.tell("close");
    process.wait_for(mark, "closed");
    assert!(check(&journals) > 100);
}

/// Waiting would not help, since the fence is reached only after the wait is over.
#[test]
fn a_fence_that_is_later_than_the_wait() {
    let (redis, journals) = (Redis::new(), Journals::new());
    let mut process = start_counting(&journals, &format!("{}?ttl=1h&wait=30m", redis.url()));
    let (error, _) = process.wait_for(Holder::start(), "waits ");
    assert!(error.starts_with("lease_unavailable "), "{error}");
    assert!(error.contains("is new, or has lost all records of them"), "{error}");
}

/// All processes use the TTL that the sequences were created with, and a process that asks for a longer one is told so.
pub(crate) fn a_longer_ttl_is_told(store: &impl Backend) {
    let journals = Journals::new();
    for (ttl, is_told) in [("3s", false), ("6s", true)] {
        let mut process =
            start_counting(&journals, &store.address(&format!("namespace=longer&ttl={ttl}&wait=60s")));
        process.wait_for(Holder::start(), "open");
        process.tell("close");
        process.wait_for(Holder::start(), "closed");
        assert_eq!(process.text().contains("event lead_differs"), is_told, "{}", process.text());
    }
}

pub(crate) fn a_child_has_none(store: &impl Backend) {
    let journals = Journals::new();
    journals.run(
        &settings("forked", &store.address("ttl=60s&label=the-parent&wait=60s"), &[]),
        "sequences::forks",
    );
}

#[test]
#[ignore = "the other tests start it"]
fn forks() {
    let Some((_, settings)) = Journal::of_this_process() else { return };
    let sequences = options(&settings).open().unwrap();
    assert_eq!(sequences.next_id("alice"), Ok(1));
    let of_child = std::panic::AssertUnwindSafe((&sequences, &settings));
    join(fork(move || {
        let (sequences, settings) = *of_child;
        for result in
            [sequences.next_id("alice"), sequences.try_next_id(5), sequences.stats().map(|it| it.keys)]
        {
            assert_eq!(result.unwrap_err().code(), ErrorCode::Forked);
        }
        // The child is a separate process, like any other.
        let error = options(&settings.replace("wait=60s", "wait=0s")).open().unwrap_err();
        assert_eq!(error.code(), ErrorCode::LeaseUnavailable);
        assert!(error.to_string().contains("`the-parent` holds its lease"), "{error}");
        sequences.close();
    }));
    assert_eq!(sequences.next_id("alice"), Ok(2));
    sequences.close();
}

#[test]
fn options_that_cannot_be_are_refused() {
    let new = |name: &str| SequencesOptions::new(name).store("sqlite:///nowhere/x.db");
    for (options, says) in [
        (SequencesOptions::new("a"), "store is missing"),
        (new(""), "the name of the sequences has 0 characters; it takes 1 to 100"),
        (new(&"n".repeat(1_000)), "has 1000 characters"),
        (new("a\nb"), "has a control character"),
        (new("a").store("sqlite:///x"), "store is given twice"),
        (SequencesOptions::new("a").store("mysql://h/d?schema=leaf"), "schema is for counters"),
        (SequencesOptions::new("a").store("nothing"), "store: a store's address is a URL"),
        (new("a").sections(0), "sections is 0; it takes a whole number from 1 to 16384"),
        (new("a").sections(16_385), "sections is 16385"),
        (new("a").step(0), "step is 0"),
        (new("a").set("step", "1099511627776"), "step is 1099511627776"),
        (new("a").set("step", "auto"), "step"),
        (new("a").max_keys(0), "max_keys is 0"),
        (new("a").set_camel_case("maxKeys", "-1"), "maxKeys is -1"),
        (new("a").set("max_wait_ms", "4294967296"), "max_wait_ms is 4294967296"),
        (
            new("a").set("maxKeys", "1"),
            "there is no option `maxKeys`; the options are store, sections, step, max_keys and max_wait_ms",
        ),
        (new("a").set("redis://user:secret@host/0", "store"), "there is no option `redis://…`; "),
        (new("a").set("step", "redis://user:secret@host/0"), "step is redis://…; "),
    ] {
        let error = options.open().unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidOption, "{says}");
        assert!(error.to_string().contains(says), "{error}");
    }
}
