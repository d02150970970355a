//! A holder whose clock is set through libfaketime.

use std::path::Path;

use crate::backend::Backend;
use crate::faketime::{self, set};
use crate::journals::{Holder, Journals};
use crate::servers::etcd::Etcd;

/// Starts a process whose clock is set through a file.
fn start(journals: &Journals, address: &str, clock: &Path) -> Holder {
    faketime::start_with(journals, address, "holder::a_holder", clock)
}

pub(crate) fn a_clock_that_is_set(store: &impl Backend) {
    let journals = Journals::new();
    let address = store.address("namespace=clock&nodes=0-1&ttl=10s&wait=60s");
    let clock = journals.folder().join("clock");
    let mut holder = start(&journals, &address, &clock);
    holder.node();
    let mut other = journals.start(&address);
    other.node();
    for holder in [&mut holder, &mut other] {
        holder.tell("stream");
        holder.wait_for_ids(Holder::start(), 50);
    }
    // On a busy machine, a lease may be lost while many processes start.
    let losses = other.holds();
    for (by_s, error) in [(3600, "lease_lost "), (-3600, "clock_moved_backwards ")] {
        let mark = holder.mark();
        set(&clock, by_s);
        // While its clock is an hour off, the holder issues nothing, renews nothing, and says why.
        let (said, _) = holder.wait_for(mark, "error ");
        assert!(said.starts_with(error), "{said}");
        let (said, differs) = holder.wait_for(mark, "event clock_differs");
        assert!(
            said.contains("this machine's clock is ") && said.contains(" ms off the clock of "),
            "{said}"
        );
        set(&clock, 0);
        // Within its TTL, the holder still has its node. After that, it acquires a new one.
        let ids = holder.wait_for_ids(differs, 100);
        let ms = |id: u64| polyflake::Layout::default().decode(id).unwrap().timestamp_ms();
        assert!(ids.iter().all(|&id| ms(id).abs_diff(ms(ids[0])) < 1_000_000));
        let bound = holder.bound();
        while holder.bound() == bound {}
    }
    // A process that starts with a wrong clock acquires no lease.
    let late = journals.folder().join("late");
    let mut refused = {
        let holder = start(&journals, &store.address("namespace=late&ttl=3s&wait=60s"), &late);
        set(&late, 3600);
        holder
    };
    // The process may have acquired a lease before its clock was set.
    if let Err(error) = refused.outcome() {
        assert!(
            error.starts_with("lease_unavailable lease_unavailable: this machine's clock is "),
            "{error}"
        );
    }
    let mark = other.mark();
    other.wait_for_ids(mark, 50);
    assert_eq!(other.holds(), losses, "{}", other.text());
    journals.assert_unique(300);
}

/// The store reports only whole seconds. A machine with a correct clock is never refused because of the missing
/// fraction.
#[test]
fn a_store_that_tells_whole_seconds() {
    let (etcd, journals) = (Etcd::new(), Journals::new());
    for _ in 0..8 {
        let mut holder = journals.start(&etcd.address("ttl=3s&clock_difference=100ms&wait=60s"));
        holder.node();
        assert!(!holder.text().contains("event clock_differs"), "{}", holder.text());
        holder.tell("close");
        holder.wait_for(Holder::start(), "closed");
    }
}
