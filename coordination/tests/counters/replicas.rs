//! Redis failovers to a replica that lacks the last writes its master acknowledged.

use std::thread::sleep;
use std::time::{Duration, Instant};

use polyflake::ErrorCode;

use crate::backend::Backend as _;
use crate::journals::Journals;
use crate::proxy::{Conduct, Proxy};
use crate::servers::redis::Redis;
use crate::taken_numbers::TakenNumbers;
use crate::taker::{options, settings, start};

/// A master, its replica behind a proxy, and another proxy that leads to the current master, like a floating address.
struct Pair {
    master: Redis,
    replica: Redis,
    replication: Proxy,
    address: Proxy,
}

impl Pair {
    fn new() -> Self {
        let (master, replica) = (Redis::new(), Redis::new());
        let (replication, address) = (Proxy::new(master.port(), 1), Proxy::new(master.port(), 2));
        replica.cli(&["REPLICAOF", "127.0.0.1", &replication.port().to_string()]);
        replica.wait_for("master_link_status:up");
        master.wait_for("state=online");
        Self { master, replica, replication, address }
    }

    fn settings(&self, more: &str) -> String {
        settings("orders", &[&self.url(more)], &["step=10"])
    }

    fn url(&self, more: &str) -> String {
        format!("redis://127.0.0.1:{}/0?ttl=3s{more}", self.address.port())
    }

    /// From now on, nothing that the master acknowledges reaches the replica.
    fn part(&self) {
        self.replication.behave(Conduct::Silent);
    }

    /// The master dies, and the replica takes its place.
    fn fail_over(&mut self) {
        assert!(self.master.kill());
        self.replica.cli(&["REPLICAOF", "NO", "ONE"]);
        self.address.lead_to(self.replica.port());
    }
}

#[test]
fn what_a_replica_confirmed_is_not_repeated() {
    let (mut pair, journals) = (Pair::new(), Journals::new());
    let mut old = start(&journals, &pair.settings("&replicas=1"));
    old.take(100);
    pair.part();
    // The numbers in hand were confirmed, but no more arrive.
    loop {
        let error = old.take_until_timeout(500);
        assert!(error.starts_with("counter_unavailable "), "{error}");
        // On a busy machine, an attempt may time out before the master's WAIT returns.
        if error.contains("0 of 1 replicas confirmed") {
            break;
        }
    }
    pair.fail_over();
    // The new master has no replica that could confirm a write.
    let mut new = start(&journals, &pair.settings(""));
    new.take(100);
    TakenNumbers::of(&journals).unique(200).increasing();
    // The process that was already running continues once there is a replica.
    let another = Redis::replica_of(&pair.replica);
    old.take(100);
    new.take(100);
    TakenNumbers::of(&journals).unique(400).increasing();
    drop(another);
}

#[test]
fn what_nobody_confirmed_is_not_repeated_by_those_that_run() {
    let (mut pair, journals) = (Pair::new(), Journals::new());
    let mut old = start(&journals, &pair.settings(""));
    old.take(100);
    // Replication may take a while, and the replica must have the counter.
    while pair.replica.cli(&["KEYS", "*"]).is_empty() {
        sleep(Duration::from_millis(20));
    }
    pair.part();
    old.take(100);
    let mark = old.mark();
    pair.fail_over();
    old.wait_for(mark, "event writes_lost");
    // A process that starts afterwards waits as well.
    let mut new = start(&journals, &pair.settings(""));
    new.take(100);
    old.take(100);
    TakenNumbers::of(&journals).unique(400).increasing();
}

/// The owner of sequences knows which numbers it issued, whatever the store contains.
#[test]
fn an_owner_of_sequences_goes_on_where_its_last_moves_are_lost() {
    let (mut pair, journals) = (Pair::new(), Journals::new());
    let url = pair.url("&init=always");
    let mut owner = crate::sequences::start_counting(&journals, &url);
    // Replication may take a while, and the replica must have the sequences.
    while pair.replica.cli(&["KEYS", "*"]).is_empty() {
        sleep(Duration::from_millis(20));
    }
    pair.part();
    // The owner's bounds keep moving, but the replica does not learn of it.
    sleep(Duration::from_secs(2));
    crate::sequences::owner(std::slice::from_mut(&mut owner));
    let mark = owner.mark();
    pair.fail_over();
    owner.wait_for(mark, "event writes_lost");
    crate::sequences::owner(std::slice::from_mut(&mut owner));
    let mark = owner.mark();
    owner.tell("close");
    owner.wait_for(mark, "closed");
    // Another process continues above the first owner's numbers.
    let mut next = crate::sequences::start_counting(&journals, &url);
    crate::sequences::owner(std::slice::from_mut(&mut next));
    let mark = next.mark();
    next.tell("close");
    next.wait_for(mark, "closed");
    assert!(crate::sequences::check(&journals) > 200);
}

/// Even if a change is visible on the master, the replica, which may take over, may not have it.
#[test]
fn a_raise_and_a_removal_wait_for_replicas() {
    let pair = Pair::new();
    let names = ["raised", "removed"];
    let options_of = |name: &str| options(&settings(name, &[&pair.url("&replicas=1")], &["step=10"]));
    let patient = names.map(|name| options_of(name).open().unwrap());
    for counter in &patient {
        counter.next_id().unwrap();
    }
    // These open at once, because the others are open.
    let [raised, removed] = names.map(|name| options_of(name).max_wait_ms(3_000_u64).open().unwrap());
    pair.part();
    // Each call asks the store more than once.
    assert_eq!(raised.raise(1_000_000_u64).unwrap_err().code(), ErrorCode::CounterUnavailable);
    assert_eq!(removed.remove().unwrap_err().code(), ErrorCode::CounterUnavailable);
    pair.replication.behave(Conduct::Good);
    pair.replication.cut();
    // This reports the removal that was already made but not confirmed.
    assert_eq!(in_time(|| removed.remove().ok()), Some(true));
    in_time(|| raised.raise(1_000_000_u64).ok()).unwrap();
    let last = pair.replica.cli(&["HGET", "polyflake:{default/counter/raised}", "last/number"]);
    assert!(last.trim().parse::<u64>().unwrap() >= 1_000_000, "{last}");
    assert_eq!(patient[1].remove(), Ok(false));
}

/// Calls `ask` until it returns an answer, for up to a minute.
fn in_time<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        if let Some(answer) = ask() {
            return Some(answer);
        }
    }
    None
}
