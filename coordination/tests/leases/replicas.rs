//! A Redis that loses acknowledged writes: keys are dropped, restarts keep nothing, and replicas take over.

use std::thread::sleep;
use std::time::{Duration, Instant};

use polyflake_coordination::Admin;
use rustix::process::Signal;

use crate::backend::Backend;
use crate::journals::{Holder, Journals, node_of};
use crate::proxy::{Conduct, Proxy};
use crate::servers::redis::Redis;

const TERMS: &str = "nodes=0-3&ttl=3s&wait=60s";

/// Starts two holders that issue IDs. They do not vouch for an empty store, since it has been used before.
fn two_holders(journals: &Journals, redis: &Redis, url: &str, more: &str) -> Vec<Holder> {
    let mut first = journals.start(&redis.address(&format!("{TERMS}{more}")));
    first.node();
    first.tell("close");
    first.wait_for(Holder::start(), "closed");
    let mut holders: Vec<_> = (0..2).map(|_| journals.start(&format!("{url}?{TERMS}{more}"))).collect();
    for holder in &mut holders {
        holder.node();
        holder.tell("stream");
        holder.wait_for_ids(Holder::start(), 50);
    }
    holders
}

/// Checks that all holders continue, and that a new one can join them.
fn all_go_on(journals: &Journals, mut holders: Vec<Holder>, url: &str, more: &str) {
    let marks: Vec<_> = holders.iter().map(Holder::mark).collect();
    let mut new = journals.start(&format!("{url}?{TERMS}{more}"));
    // No one acquires a node before the earlier leases have expired.
    let (waiting, _) = new.wait_for(Holder::start(), "event waiting");
    assert!(waiting.contains("no node can be leased for "), "{waiting}");
    new.node();
    new.tell("stream");
    new.wait_for_ids(Holder::start(), 100);
    for (holder, mark) in holders.iter_mut().zip(marks) {
        // IDs issued up to the old bound do not show that the holder continues.
        let issued = holder.wait_for_ids(mark, 1).len();
        holder.wait_for_ids(mark, issued + 300);
        holder.holds();
    }
    journals.assert_unique(500);
}

#[test]
fn all_keys_are_dropped() {
    let (redis, journals) = (Redis::new(), Journals::new());
    let holders = two_holders(&journals, &redis, &redis.url(), "");
    // A whole space is one key, so a server that evicts keys drops either all of it or nothing.
    assert_eq!(redis.cli(&["DBSIZE"]), "1");
    redis.cli(&["FLUSHALL"]);
    all_go_on(&journals, holders, &redis.url(), "");
}

/// This happens when the host name determines the node.
#[test]
fn a_node_that_is_the_only_one_comes_back() {
    let (redis, journals) = (Redis::new(), Journals::new());
    let mut holder = journals.start(&redis.address("nodes=7-7&ttl=3s&wait=60s"));
    assert_eq!(holder.node(), 7);
    holder.tell("stream");
    holder.wait_for_ids(Holder::start(), 50);
    // Otherwise, the holder would notice the loss while it was still the only one, and would continue.
    holder.signal(Signal::STOP);
    redis.cli(&["FLUSHALL"]);
    // Wait for one TTL, so that the holder wakes after its lease has expired.
    sleep(Duration::from_secs(3));
    holder.signal(Signal::CONT);
    let (_, lost) = holder.wait_for(Holder::start(), "event lost");
    let (_, replaced) = holder.wait_for(lost, "event replaced 7 ");
    holder.wait_for_ids(replaced, 100);
    // More than one if the process itself stood still for a TTL.
    assert!(holder.holds() >= 1);
    journals.assert_unique(150);
}

#[test]
fn a_restart_that_keeps_nothing() {
    let (mut redis, journals) = (Redis::with(&[]), Journals::new());
    let more = "&durability=none";
    let holders = two_holders(&journals, &redis, &redis.url(), more);
    redis.server.stop();
    // The server has no file to read, and a holder may write to it at once.
    redis.server.start_again();
    all_go_on(&journals, holders, &redis.url(), more);
}

/// A master, its replica behind a proxy, and another proxy that leads to the current master, like a floating address.
struct Pair {
    master: Redis,
    replica: Redis,
    replication: Proxy,
    address: Proxy,
}

impl Pair {
    fn new() -> Self {
        let master = Redis::new();
        let replica = Redis::new();
        let (replication, address) = (Proxy::new(master.port(), 1), Proxy::new(master.port(), 2));
        replica.cli(&["REPLICAOF", "127.0.0.1", &replication.port().to_string()]);
        replica.wait_for("master_link_status:up");
        master.wait_for("state=online");
        Self { master, replica, replication, address }
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.address.port())
    }

    /// From now on, nothing that the master acknowledges reaches the replica.
    fn part(&self) {
        self.replication.behave(Conduct::Silent);
    }

    /// The master dies, and the replica takes its place.
    fn fail_over(&mut self) {
        self.master.server.kill();
        self.promote();
        self.address.lead_to(self.replica.port());
    }

    fn promote(&self) {
        self.replica.cli(&["REPLICAOF", "NO", "ONE"]);
    }
}

#[test]
fn a_replica_takes_over_without_the_last_writes() {
    let (mut pair, journals) = (Pair::new(), Journals::new());
    let mut holders = two_holders(&journals, &pair.master, &pair.url(), "");
    pair.part();
    // Leases are still renewed, and a new one is acquired. The replica knows nothing of this new holder.
    let mut late = journals.start(&format!("{}?{TERMS}", pair.url()));
    late.node();
    late.tell("stream");
    late.wait_for_ids(Holder::start(), 50);
    // This is longer than a third of the TTL, after which each holder renews.
    sleep(Duration::from_secs(2));
    holders.push(late);
    pair.fail_over();
    all_go_on(&journals, holders, &pair.url(), "");
}

#[test]
fn a_replica_takes_over_without_the_record_of_the_space() {
    let (mut pair, journals) = (Pair::new(), Journals::new());
    pair.part();
    let holders = two_holders(&journals, &pair.master, &pair.url(), "");
    assert_eq!(pair.replica.cli(&["DBSIZE"]), "0");
    pair.fail_over();
    all_go_on(&journals, holders, &pair.url(), "");
}

/// After a failover, no process has a lease that only the former master knew of.
#[test]
fn an_acquisition_waits_for_replicas() {
    let (pair, journals) = (Pair::new(), Journals::new());
    let start = |wait: &str| {
        let terms = "nodes=5-5&ttl=3s&init=always&replicas=1";
        journals.start(&format!("{}?{terms}&wait={wait}", pair.master.url()))
    };
    let mut first = start("60s");
    first.node();
    first.tell("close");
    first.wait_for(Holder::start(), "closed");
    pair.part();
    let mut refused = start("3s");
    let error = refused.refused();
    // On a busy machine, the attempt may time out before the master's WAIT returns.
    let says = ["0 of 1 replicas confirmed", "no answer within"];
    assert!(says.iter().any(|says| error.contains(says)), "{error}");
    // The same write succeeds once a replica has it.
    let mut waits = start("60s");
    waits.wait_for(Holder::start(), "event store_unreachable");
    assert!(!waits.text().contains("open "), "{}", waits.text());
    pair.replication.behave(Conduct::Good);
    pair.replication.cut();
    assert_eq!(waits.node(), 5);
    waits.tell("stream");
    let issued = waits.wait_for_ids(Holder::start(), 50);
    // The replica that takes over knows of the lease.
    waits.kill();
    pair.promote();
    let mut next = journals.start(&format!("{}?nodes=5-5&ttl=3s&wait=60s", pair.replica.url()));
    assert_eq!(next.node(), 5);
    next.tell("stream");
    assert!(next.wait_for_ids(Holder::start(), 50)[0] > issued[0]);
    journals.assert_unique(100);
}

/// A process waiting for a node in a new store acquires one once an operator vouches for the store.
#[test]
fn an_operator_ends_the_wait() {
    let (redis, journals) = (Redis::new(), Journals::new());
    let address = format!("{}?ttl=1h&wait=2h", redis.url());
    let mut holder = journals.start(&address);
    holder.wait_for(Holder::start(), "event waiting");
    let init = || Admin::open(&address).unwrap().init(&polyflake::Layout::default(), 0);
    assert_eq!(init(), Ok(true));
    holder.node();
    assert_eq!(holder.text().matches("event waiting").count(), 1);
    // An operator cannot vouch for the store once nodes have been leased.
    assert!(init().unwrap_err().to_string().contains("leased already"));
}

/// The replication ID changes at that point, but nothing is lost.
#[test]
fn the_first_replica_makes_nobody_wait() {
    let (redis, journals) = (Redis::new(), Journals::new());
    let mut holder = journals.start(&redis.address("nodes=0-3&ttl=3s&wait=60s"));
    holder.node();
    holder.tell("stream");
    let _replica = Redis::replica_of(&redis);
    for _ in 0..2 {
        let mut new = journals.start(&format!("{}?nodes=0-3&ttl=3s&wait=60s", redis.url()));
        new.node();
        assert!(!new.text().contains("event waiting"), "{}", new.text());
    }
    let mark = holder.mark();
    holder.wait_for_ids(mark, 100);
    assert!(!holder.text().contains("event waiting"), "{}", holder.text());
    journals.assert_unique(100);
}

#[test]
fn two_masters_repeat_and_do_not_with_a_replica_that_confirms() {
    for more in ["&replicas=1", ""] {
        let (pair, journals) = (Pair::new(), Journals::new());
        let start = |redis: &Redis, more: &str| {
            let terms = "nodes=5-5&ttl=3s&wait=60s&init=always";
            let mut holder = journals.start(&format!("{}?{terms}{more}", redis.url()));
            assert_eq!(holder.node(), 5);
            holder.tell("stream");
            holder.wait_for_ids(Holder::start(), 50);
            holder
        };
        let mut old = start(&pair.master, more);
        // From here on, each holder has its own master.
        let mark = old.mark();
        pair.part();
        pair.promote();
        // The new master has no replica that could confirm a write.
        let mut new = start(&pair.replica, "");
        if more.is_empty() {
            // Both have the same node at the same time. No fence can help, since the old master is unchanged.
            let deadline = Instant::now() + Duration::from_secs(60);
            while journals.repeated().is_empty() {
                assert!(Instant::now() < deadline, "no ID is repeated:\n{}\n{}", old.text(), new.text());
                sleep(Duration::from_millis(100));
            }
            assert!(journals.repeated().into_iter().all(|id| node_of(id) == 5));
        } else {
            // The old holder issues IDs up to the bound that was confirmed.
            let (why, _) = old.wait_for(mark, "event store_unreachable");
            // On a busy machine, the attempt may time out before the master's WAIT returns.
            let says = ["0 of 1 replicas confirmed", "no answer within"];
            assert!(says.iter().any(|says| why.contains(says)), "{why}");
            let (error, after) = old.wait_for(mark, "error ");
            assert!(error.starts_with("lease_lost "), "{error}");
            let mark = new.mark();
            new.wait_for_ids(mark, 500);
            let lines = old.lines();
            assert!(!lines[after.line()..].iter().any(|line| line.starts_with("ids ")), "{}", old.text());
            journals.assert_unique(500);
        }
    }
}
