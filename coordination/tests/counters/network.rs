//! Counters over a network that cuts connections, and delays and loses data.

use std::thread::sleep;
use std::time::Duration;

use crate::backend::Backend;
use crate::every_store::Random;
use crate::journals::{Holder, Journals};
use crate::proxy::{Conduct, Proxy};
use crate::taken_numbers::TakenNumbers;
use crate::taker::{begin, settings};

pub(crate) fn a_bad_network(store: &impl Backend) {
    let journals = Journals::new();
    let proxy = Proxy::new(store.port(), Random::new().below(u64::MAX));
    let address = store.url().replace(&format!(":{}", store.port()), &format!(":{}", proxy.port()));
    // Small steps make each process query the store often. Its calls wait longer than this test waits for progress.
    let more = ["step=50", "max_wait_ms=600000"];
    let settings = settings("network", &[&format!("{address}?ttl=9s")], &more);
    proxy.behave(Conduct::Bad);
    let mut all: Vec<_> = (0..3).map(|_| begin(&journals, &settings)).collect();
    for taker in &mut all {
        taker.tell("threads 4");
        taker.wait_for_numbers(Holder::start(), 100);
    }
    for _ in 0..3 {
        // Give the network time to do harm.
        sleep(Duration::from_secs(2));
        let marks: Vec<_> = all.iter().map(|taker| taker.mark()).collect();
        for (taker, mark) in all.iter_mut().zip(marks) {
            taker.wait_for_numbers(mark, 200);
        }
        // Cut all connections at once.
        proxy.cut();
    }
    assert!(proxy.harms() > 0);
    // The request that gives numbers back may be lost in transit, and so may its answer.
    all[0].finish();
    proxy.behave(Conduct::Good);
    for taker in &mut all[1..] {
        let mark = taker.mark();
        taker.wait_for_numbers(mark, 500);
        taker.finish();
    }
    TakenNumbers::of(&journals).unique(2_000).increasing();
}
