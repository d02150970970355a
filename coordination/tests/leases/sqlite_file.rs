//! A test for SQLite files only: while one process writes, everyone else waits.

use std::thread::sleep;
use std::time::Duration;

use crate::backend::{Backend as _, Sqlite};
use crate::journals::{Holder, Journals};

#[test]
fn a_close_while_another_writes() {
    let mut sqlite = Sqlite::begin();
    let journals = Journals::new();
    let address = sqlite.address("nodes=0-0&ttl=20m&wait=60s");
    for _ in 0..3 {
        let mut holder = journals.start(&address);
        assert_eq!(holder.node(), 0);
        holder.tell("issue 10");
        holder.wait_for_ids(Holder::start(), 10);
        sqlite.pause();
        holder.tell("close");
        sleep(Duration::from_millis(500));
        sqlite.resume();
        holder.wait_for(Holder::start(), "closed");
        holder.wait_for(Holder::start(), "event released");
    }
    journals.assert_unique(30);
}
