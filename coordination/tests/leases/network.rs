//! Leases that are given back over a connection that was cut or fell silent. What a bad network does is in `tests/histories`.

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

/// Connecting takes longer than an attempt: the next attempts wait for the same connection.
pub(crate) fn a_store_far_away(store: &impl Backend) {
    let journals = Journals::new();
    let address = store.address("namespace=far&ttl=18s&wait=120s");
    let mut near = journals.start(&address);
    near.node();
    let proxy = Proxy::new(store.port(), 0);
    proxy.behave(Conduct::Late);
    let address = address.replace(&format!(":{}", store.port()), &format!(":{}", proxy.port()));
    let mut holder = journals.start(&address);
    holder.node();
    proxy.behave(Conduct::Good);
    holder.tell("close");
    holder.wait_for(Holder::start(), "closed");
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
