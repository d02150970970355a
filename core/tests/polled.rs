//! Polled calls alongside calls that wait in threads.
#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::time::Duration;

use polyflake::{ClockError, Polled, Snowflake, Waiting};

/// A leading batch has included a call that leaves before slots are available, so the run is longer than the
/// batch.
#[test]
fn a_batch_whose_follower_leaves_is_filled() {
    let now = Cell::new(1_800_000_000_000_i64);
    let waiting = RefCell::new(Waiting::default());
    let (readings, reading) = (Cell::new(0), Cell::new(i32::MAX));
    let clock = || {
        readings.set(readings.get() + 1);
        if readings.get() == reading.get() {
            // The event loop's call is dropped (because the caller timed out) while the leader reads the
            // clock.
            *waiting.borrow_mut() = Waiting::default();
            now.set(now.get() + 1000);
        }
        Ok::<_, ClockError>(now.get())
    };
    // A tick has two slots.
    let ids =
        Snowflake::builder().layout("timestamp:35|worker:10|sequence:1@0/1s").node(1).build_with_clock(clock);
    let ids = ids.unwrap();
    while ids.try_next_id().is_ok() {}
    let mut one = [0; 1];
    assert!(matches!(ids.poll_waiting(&mut waiting.borrow_mut(), &mut one, None), Ok(Polled::Pause(_))));
    let mut batch = [0; 1];
    // One reading to find the tick used up, and one to confirm it. The third is the leader's, after it has
    // gathered the others.
    readings.set(0);
    reading.set(3);
    ids.fill(&mut batch).unwrap();
    assert!(batch[0] != 0, "fill returned Ok and wrote nothing");
}

/// A caller that has timed out uses the same `Waiting` for its next call.
#[test]
fn a_new_call_is_not_given_what_was_taken_for_the_last() {
    let now = Cell::new(1_800_000_000_000_i64);
    let options = Snowflake::builder().layout("timestamp:35|worker:10|sequence:1@0/1s").node(5);
    let ids = options.build_with_clock(|| Ok::<_, ClockError>(now.get())).unwrap();
    while ids.try_next_id().is_ok() {}
    let (mut waiting, mut other, mut id) = (Waiting::default(), Waiting::default(), [0]);
    for waiting in [&mut waiting, &mut other] {
        assert!(matches!(ids.poll_waiting(waiting, &mut id, None), Ok(Polled::Pause(_))));
    }
    now.set(now.get() + 1000);
    assert!(matches!(
        ids.poll_waiting(&mut other, &mut id, Some(Duration::from_secs(1))),
        Ok(Polled::Filled(1))
    ));
    now.set(now.get() + 100_000);
    let before = ids.next_id().unwrap();
    assert!(matches!(ids.poll_waiting(&mut waiting, &mut id, None), Ok(Polled::Filled(1))));
    assert!(id[0] > before, "{} after {before} had returned", id[0]);
}
