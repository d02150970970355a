//! Leases over a connection that was cut or fell silent. The tests with an unreliable network are in `tests/histories`.

use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use crate::backend::Backend;
use crate::holder::MAX_WAIT_MS;
use crate::journals::{Holder, Journals};
use crate::proxy::{Conduct, Proxy};
use crate::servers::etcd::Etcd;
use crate::servers::postgres::Postgres;
use crate::servers::zookeeper::Zookeeper;

/// A node is free once it is given back, even if the connection was cut beforehand.
pub(crate) fn a_cut_before_close(store: &impl Backend) {
    close_after(store, "cut", Proxy::cut);
}

/// The same, over a connection that has fallen silent.
pub(crate) fn a_silence_before_close(store: &impl Backend) {
    close_after(store, "silent", Proxy::forget);
}

/// Connecting takes longer than an attempt, and the next attempts wait for the same connection. Only connecting is
/// slow, so later requests have the full time of an attempt, even on a busy machine.
pub(crate) fn a_store_far_away(store: &impl Backend) {
    let journals = Journals::new();
    let address = store.address("namespace=far&ttl=18s&wait=120s");
    let mut near = journals.start(&address);
    near.node();
    let proxy = Proxy::new(store.port(), 0);
    proxy.behave(Conduct::SlowToConnect);
    let address = address.replace(&format!(":{}", store.port()), &format!(":{}", proxy.port()));
    let mut holder = journals.start(&address);
    holder.node();
    proxy.behave(Conduct::Good);
    holder.tell("close");
    holder.wait_for(Holder::start(), "closed");
}

/// This happens to a machine that sleeps while a firewall forgets its connections. There is no error, and the node
/// stays the same.
pub(crate) fn a_pause_and_a_connection_that_died(store: &impl Backend) {
    let journals = Journals::new();
    let proxy = Proxy::new(store.port(), 0);
    let address = store.address("namespace=slept&nodes=0-0&ttl=3s&wait=60s");
    let address = address.replace(&format!(":{}", store.port()), &format!(":{}", proxy.port()));
    // A busy machine may need more than one attempt.
    let mut holder = journals.start_with(&address, "holder::a_holder", &[(MAX_WAIT_MS, "60000")]);
    assert_eq!(holder.node(), 0);
    holder.tell("issue 10");
    holder.wait_for_ids(Holder::start(), 10);
    holder.signal(Signal::STOP);
    // Sleep past the bound and the expiry.
    sleep(Duration::from_secs(5));
    proxy.forget();
    let mark = holder.mark();
    holder.tell("issue 10");
    holder.signal(Signal::CONT);
    holder.wait_for_ids(mark, 10);
    assert!(!holder.lines().iter().any(|line| line.starts_with("error ")), "{}", holder.text());
    journals.assert_unique(20);
}

/// When one of the two hosts in its address falls silent, a holder continues with the other, and later switches back.
fn hosts_fall_silent(store: &impl Backend) {
    let journals = Journals::new();
    let hosts = [0, 1].map(|seed| Proxy::new(store.port(), seed));
    let both = hosts.each_ref().map(|host| format!("127.0.0.1:{}", host.port())).join(",");
    let address = store.address("namespace=hosts&nodes=0-0&ttl=9s&wait=120s");
    let address = address.replace(&format!("127.0.0.1:{}", store.port()), &both);
    let mut holder = journals.start(&address);
    holder.node();
    holder.tell("stream");
    for silent in [0, 1, 0] {
        hosts[silent].behave(Conduct::Silent);
        // The first renewal may already have been in transit.
        for _ in 0..2 {
            let bound = holder.bound();
            while holder.bound() == bound {}
        }
        hosts[silent].behave(Conduct::Good);
    }
    let mark = holder.mark();
    holder.wait_for_ids(mark, 100);
    holder.holds();
    journals.assert_unique(100);
}

#[test]
fn hosts_of_postgres_fall_silent() {
    hosts_fall_silent(&Postgres::new());
}

#[test]
fn hosts_of_etcd_fall_silent() {
    hosts_fall_silent(&Etcd::new());
}

#[test]
fn hosts_of_zookeeper_fall_silent() {
    hosts_fall_silent(&Zookeeper::new());
}

/// A close has to reconnect. If a busy store then answers too late, an event says so, and the test tries a new holder.
fn close_after(store: &impl Backend, namespace: &str, harm: impl Fn(&Proxy)) {
    let journals = Journals::new();
    let proxy = Proxy::new(store.port(), 0);
    let (mut released, mut late) = (0, 0);
    while released < 3 {
        assert!(late < 7, "a node was not given back {late} times");
        let address = store.address(&format!("namespace={namespace}{late}&nodes=0-0&ttl=20m&wait=60s"));
        let address = address.replace(&format!(":{}", store.port()), &format!(":{}", proxy.port()));
        let mut holder = journals.start(&address);
        assert_eq!(holder.node(), 0);
        holder.tell("issue 10");
        holder.wait_for_ids(Holder::start(), 10);
        let (connections, mark) = (proxy.connections(), holder.mark());
        harm(&proxy);
        holder.tell("close");
        holder.wait_for(mark, "closed");
        let end = holder.wait_until(mark, "end of the lease", |lines| {
            let ends = |line: &&String| {
                line.starts_with("event released ") || line.starts_with("event store_unreachable ")
            };
            lines.iter().find(ends).cloned()
        });
        let is_released = end.starts_with("event released ");
        let is_late = end.contains("no answer within ") && proxy.wait_for_connection(connections);
        assert!(is_released || is_late, "it did not connect again, or gave up early:\n{}", holder.text());
        *(if is_released { &mut released } else { &mut late }) += 1;
    }
    journals.assert_unique(10 * (released + late));
}
