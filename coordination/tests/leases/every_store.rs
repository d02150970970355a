//! Tests that leases must pass in any store.

use std::collections::{HashMap, HashSet};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use crate::backend::Backend;
use crate::holder::MAX_WAIT_MS;
use crate::journals::{Holder, Journals, node_of};

pub(crate) fn forty_processes_fight_for_32_nodes(store: &impl Backend) {
    let journals = Journals::new();
    // No holder renews before the other eight are refused.
    let address = |i| {
        let terms = "namespace=forty&nodes=0-31&ttl=20m&wait=15s";
        store.address(&format!("{terms}&label=holder-{i}"))
    };
    let mut all: Vec<_> = (0..40).map(|i| journals.start(&address(i))).collect();
    let outcomes: Vec<_> = all.iter_mut().map(Holder::outcome).collect();

    let mut holders = HashMap::new();
    for (i, outcome) in outcomes.iter().enumerate() {
        if let Ok((node, bound)) = outcome {
            assert!(*node < 32 && holders.insert(*node, (i, *bound)).is_none(), "{outcomes:?}");
        }
    }
    assert_eq!(holders.len(), 32, "{outcomes:?}");
    let mut complete = 0;
    for text in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert!(text.starts_with("lease_unavailable "), "{text}");
        // On a busy machine, the last attempt may receive no answer.
        if text.contains(": no answer within ") {
            continue;
        }
        let rest = text.split("all 32 that may be leased from ").nth(1).expect(text);
        let rest = rest.split("are in use; node ").nth(1).expect(text);
        let (node, rest) = rest.split_once(", held by `holder-").expect(text);
        let (label, rest) = rest.split_once("`, becomes free first, in ").expect(text);
        assert!(rest.split(' ').next().unwrap().parse::<u64>().is_ok(), "{text}");
        // The holder whose node becomes free first may have renewed its lease since then.
        let (holder, _) = holders[&node.parse().unwrap()];
        assert_eq!(label, holder.to_string(), "{text}");
        complete += 1;
    }
    assert!(complete > 0, "{outcomes:?}");
    for (holder, outcome) in all.iter_mut().zip(&outcomes) {
        if outcome.is_ok() {
            holder.tell("issue 50");
        }
    }
    for (holder, outcome) in all.iter_mut().zip(&outcomes) {
        if let Ok((node, _)) = outcome {
            let ids = holder.wait_for_ids(Holder::start(), 50);
            assert!(ids.iter().all(|&id| node_of(id) == *node));
        }
    }
    journals.assert_unique(32 * 50);
}

pub(crate) fn a_holder_that_stood_still_past_its_ttl(store: &impl Backend) {
    let journals = Journals::new();
    let terms = "namespace=stood&ttl=3s&wait=60s";
    let mut old = journals.start(&store.address(&format!("{terms}&nodes=0-1")));
    let node = old.node();
    old.tell("stream");
    old.wait_for_ids(Holder::start(), 100);
    old.signal(Signal::STOP);
    let mark = old.mark();

    let mut successor = journals.start(&store.address(&format!("{terms}&nodes={node}-{node}")));
    assert_eq!(successor.node(), node);
    successor.tell("stream");
    successor.wait_for_ids(Holder::start(), 200);
    old.signal(Signal::CONT);

    let (event, _) = old.wait_for(mark, "event lost");
    assert!(event.starts_with(&format!("{node} the lease of node {node} ")), "{event}");
    let (event, after) = old.wait_for(mark, "event replaced");
    assert!(event.starts_with(&format!("{} node {} is leased from ", 1 - node, 1 - node)), "{event}");
    let ids = old.wait_for_ids(after, 100);
    assert!(ids[10..].iter().all(|&id| node_of(id) == 1 - node));
    // The holder's calls may or may not have noticed the loss.
    let errors: Vec<_> = old.lines().into_iter().filter(|line| line.starts_with("error ")).collect();
    assert!(errors.iter().all(|line| line.starts_with("error lease_lost ")), "{errors:?}");
    assert!(old.holds() > 0, "{}", old.text());
    let mark = successor.mark();
    successor.wait_for_ids(mark, 100);
    // On a busy machine, the successor may renew its lease too late, but nobody takes it.
    let mut losses = successor.lines().into_iter().filter(|line| line.starts_with("event lost"));
    assert!(
        losses.all(|line| line.contains("it ran out before the store renewed it")),
        "{}",
        successor.text()
    );
    journals.assert_unique(400);
}

/// This happens to a laptop that sleeps, or a function that is frozen between two calls. It costs one round trip, and
/// causes no error.
pub(crate) fn a_holder_that_was_frozen(store: &impl Backend) {
    let journals = Journals::new();
    let address = store.address("namespace=frozen&nodes=0-0&ttl=3s&wait=60s");
    // A busy machine may need more than one attempt.
    let mut holder = journals.start_with(&address, "holder::a_holder", &[(MAX_WAIT_MS, "60000")]);
    assert_eq!(holder.node(), 0);
    holder.tell("issue 10");
    let first = holder.wait_for_ids(Holder::start(), 10);
    holder.signal(Signal::STOP);
    // Sleep past the bound and the expiry.
    sleep(Duration::from_secs(5));
    let mark = holder.mark();
    holder.tell("issue 10");
    holder.signal(Signal::CONT);
    let next = holder.wait_for_ids(mark, 10);
    assert!(next[0] > first[9] && node_of(next[0]) == 0);
    assert!(!holder.lines().iter().any(|line| line.starts_with("error ")), "{}", holder.text());
    journals.assert_unique(20);
}

pub(crate) fn fifty_kills_and_restarts(store: &impl Backend) {
    let journals = Journals::new();
    let address = store.address("namespace=fifty&nodes=0-63&ttl=15s&wait=15s");
    let mut nodes = HashSet::new();
    for _ in 0..50 {
        // Each acquires a node within one TTL.
        let mut holder = journals.start(&address);
        nodes.insert(holder.node());
        holder.tell("stream");
        holder.wait_for_ids(Holder::start(), 10);
        holder.kill();
    }
    assert!(nodes.len() > 1 && nodes.iter().all(|&node| node < 64));
    journals.assert_unique(500);
}

/// Each update adds one more pod, as a Deployment does by default, and there are nodes for all pods but that one.
pub(crate) fn as_many_pods_as_nodes(store: &impl Backend) {
    let journals = Journals::new();
    let address = store.address("namespace=pods&nodes=0-3&ttl=20m&wait=60s");
    let mut pods: Vec<_> = (0..4).map(|_| journals.start(&address)).collect();
    for pod in &mut pods {
        pod.node();
        pod.tell("stream");
    }
    for round in 0..12 {
        let old = &mut pods[round % 4];
        old.wait_for_ids(Holder::start(), 20);
        let node = old.node();
        let mut new = journals.start(&address);
        old.signal(Signal::TERM);
        assert!(old.wait().success(), "{}", old.text());
        old.wait_for(Holder::start(), "event released");
        assert_eq!(new.node(), node);
        new.tell("stream");
        pods[round % 4] = new;
    }
    for pod in &mut pods {
        let mark = pod.mark();
        pod.wait_for_ids(mark, 50);
        assert_eq!(pod.holds(), 0);
    }
    journals.assert_unique(16 * 20);
}

/// A process that asks for a longer TTL does not make later processes wait, whether it starts before or after the
/// processes with a shorter TTL.
pub(crate) fn a_longer_ttl_than_others(store: &impl Backend) {
    let journals = Journals::new();
    let start = |namespace: &str, ttl: &str| {
        let address = store.address(&format!("namespace={namespace}&nodes=0-0&ttl={ttl}&wait=90s"));
        // A busy machine may need more than one attempt.
        journals.start_with(&address, "holder::a_holder", &[(MAX_WAIT_MS, "60000")])
    };
    for (namespace, ttls) in [("long-first", ["1h", "3s"]), ("long-later", ["3s", "1h"])] {
        let mut first = start(namespace, ttls[0]);
        first.node();
        first.tell("close");
        // A slow machine may not give the node back within a sixth of 3 s. In that case, the lease soon expires.
        first.wait_for(Holder::start(), "closed");
        let mut second = start(namespace, ttls[1]);
        second.node();
        assert_eq!(second.text().contains("event lead_differs"), ttls[1] == "1h", "{}", second.text());
        second.tell("issue 10");
        second.wait_for_ids(Holder::start(), 10);
        second.kill();
        // The node becomes free after 3 s, not after an hour.
        let mut third = start(namespace, "3s");
        third.node();
        third.tell("issue 10");
        third.wait_for_ids(Holder::start(), 10);
    }
    journals.assert_unique(40);
}

/// Each change in a store's state is reported once, no matter how often the store is asked.
fn is_told_once(holder: &Holder) {
    let of_store =
        |line: &String| line.strip_prefix("event store_").map(|rest| rest.starts_with("unreachable"));
    let told: Vec<bool> = holder.lines().iter().filter_map(of_store).collect();
    assert!(told.windows(2).all(|pair| pair[0] != pair[1]), "{}", holder.text());
}

pub(crate) fn a_store_that_stops_and_one_that_dies<B: Backend>() {
    let mut store = B::begin();
    let journals = Journals::new();
    let address = store.address("nodes=0-3&ttl=3s&wait=60s");
    let mut holders: Vec<_> = (0..2).map(|_| journals.start(&address)).collect();
    for holder in &mut holders {
        holder.node();
        holder.tell("stream");
        holder.wait_for_ids(Holder::start(), 50);
    }
    let mut long = journals.start(&store.address("namespace=long&nodes=8-8&ttl=20m&wait=60s"));
    long.node();
    long.tell("stream");
    let mut losses = 0;
    for is_killed in [false, true] {
        let marks: Vec<_> = holders.iter().map(Holder::mark).collect();
        if !is_killed {
            store.pause();
        } else if !store.kill() {
            break;
        }
        // Until its bound, a holder continues.
        let stopped = long.mark();
        long.wait_for_ids(stopped, 20);
        for (holder, &mark) in holders.iter_mut().zip(&marks) {
            holder.wait_for_outage();
            let (error, _) = holder.wait_for(mark, "error ");
            assert!(error.starts_with("lease_lost "), "{error}");
            assert!(error.contains("the next attempt is in"), "{error}");
            holder.wait_for(mark, "event lost");
        }
        if is_killed {
            store.start_again();
        } else {
            store.resume();
        }
        losses += 1;
        for (holder, &mark) in holders.iter_mut().zip(&marks) {
            let (_, answers) = holder.wait_for(mark, "event store_reachable");
            holder.wait_for_ids(answers, 100);
            assert!(holder.holds() >= losses, "{}", holder.text());
        }
    }
    holders.iter().for_each(is_told_once);
    // A lease outlasts a store that does not answer for longer than the time between two renewals.
    let mut holder = journals.start(&store.address("namespace=short&nodes=9-9&ttl=12s&wait=60s"));
    holder.node();
    holder.tell("stream");
    let mark = holder.mark();
    store.pause();
    holder.wait_for_outage();
    store.resume();
    let (_, answers) = holder.wait_for(mark, "event store_reachable");
    holder.wait_for_ids(answers, 100);
    assert_eq!(holder.state().1, 0, "{}", holder.text());
    journals.assert_unique(500);
}
