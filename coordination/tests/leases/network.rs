//! Leases over a network that cuts connections, and that delays and loses what is sent.

use std::thread::sleep;
use std::time::Duration;

use crate::backend::Backend;
use crate::holder::{Holder, Journals};
use crate::proxy::{Conduct, Proxy};

/// What is given back over a connection that was cut meanwhile is free.
pub(crate) fn a_cut_before_close(store: &impl Backend) {
    close_after(store, "cut", Proxy::cut);
}

/// And over one that is silent.
pub(crate) fn a_silence_before_close(store: &impl Backend) {
    close_after(store, "silent", Proxy::forget);
}

fn close_after(store: &impl Backend, namespace: &str, harm: impl Fn(&Proxy)) {
    let journals = Journals::new();
    let proxy = Proxy::new(store.port(), 0);
    let address = store.address(&format!("namespace={namespace}&nodes=0-0&ttl=20m&wait=60s"));
    let address = address.replace(&format!(":{}", store.port()), &format!(":{}", proxy.port()));
    for _ in 0..3 {
        let mut holder = journals.start(&address);
        assert_eq!(holder.node(), 0);
        holder.tell("issue 10");
        holder.wait_for_ids(Holder::start(), 10);
        harm(&proxy);
        holder.tell("close");
        holder.wait_for(Holder::start(), "closed");
        holder.wait_for(Holder::start(), "event released");
    }
    journals.assert_unique(30);
}

pub(crate) fn a_bad_network(store: &impl Backend) {
    let seed = std::env::var("POLYFLAKE_SEED")
        .map_or_else(|_| u64::from(std::process::id()), |seed| seed.parse().unwrap());
    println!("POLYFLAKE_SEED={seed}");
    let journals = Journals::new();
    let proxy = Proxy::new(store.port(), seed);
    let address = store.address("namespace=network&nodes=0-3&ttl=6s&wait=60s");
    let address = address.replace(&format!(":{}", store.port()), &format!(":{}", proxy.port()));
    proxy.behave(Conduct::Bad);
    let mut holders: Vec<_> = (0..3).map(|_| journals.start(&address)).collect();
    for holder in &mut holders {
        holder.node();
        holder.tell("stream");
    }
    for _ in 0..3 {
        sleep(Duration::from_secs(3));
        let marks: Vec<_> = holders.iter().map(Holder::mark).collect();
        for (holder, mark) in holders.iter_mut().zip(marks) {
            holder.wait_for_ids(mark, 20);
        }
        // All at once.
        proxy.cut();
    }
    assert!(proxy.harms() > 0);
    // A successor of one that died, as well.
    holders.pop();
    holders.push(journals.start(&address));
    holders[2].node();
    holders[2].tell("stream");
    proxy.behave(Conduct::Good);
    for holder in &mut holders {
        let mark = holder.mark();
        holder.wait_for_ids(mark, 100);
    }
    journals.assert_unique(400);
}
