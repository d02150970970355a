//! After a fork: what the child inherited refuses, and the parent goes on.
#![cfg(unix)]

mod common;

use common::{code, in_child};
use polyflake::{ErrorCode, Snowflake};

const FORKED: u8 = ErrorCode::Forked as u8;

#[test]
fn the_child_refuses_and_the_parent_goes_on() {
    let builtin = Snowflake::builder().node(1).build().unwrap();
    let callers = Snowflake::builder().node(1).build_with_clock(|| Ok(1_700_000_000_000)).unwrap();
    let (first, callers_first) = (builtin.next_id().unwrap(), callers.next_id().unwrap());
    let codes = in_child(|| {
        let mut buffer = [0; 8];
        [
            code(builtin.next_id()),
            code(builtin.try_next_id()),
            code(builtin.next_ids(1000)),
            code(builtin.fill(&mut buffer)),
            code(builtin.stats()),
            code(callers.next_id()),
            code(callers.stats()),
            // By another name, it is still the parent's node.
            code(Snowflake::builder().layout("leaf").node(1).build()),
            // A node of its own.
            code(Snowflake::builder().node(2).build().and_then(|own| own.next_id())),
            // What decodes IDs goes on.
            code(builtin.decode(first)),
        ]
    });
    assert_eq!(codes, [FORKED, FORKED, FORKED, FORKED, FORKED, FORKED, FORKED, FORKED, 0, 0]);
    assert!(builtin.next_id().unwrap() > first);
    assert_eq!(callers.next_id().unwrap(), callers_first + 1);
    assert!(Snowflake::builder().node(1).build().unwrap().next_id().is_ok());
}

#[test]
fn a_child_refuses_what_its_parent_had_taken_for_itself() {
    let mut builtin = Snowflake::builder().node(4).build().unwrap().into_local();
    let callers = Snowflake::builder().node(4).build_with_clock(|| Ok(1_700_000_000_000));
    let mut callers = callers.unwrap().into_local();
    // Taken: 64 slots each.
    let (first, callers_first) = (builtin.next_id().unwrap(), callers.next_id().unwrap());
    let codes = in_child(|| [code(builtin.next_id()), code(callers.next_id())]);
    assert_eq!(codes, [FORKED, FORKED]);
    assert!(builtin.next_id().unwrap() > first);
    assert_eq!(callers.next_id().unwrap(), callers_first + 1);
}

#[test]
fn a_child_refuses_where_the_ticks_are_long() {
    let builder = || Snowflake::builder().layout("timestamp:41|worker:4|sequence:1@0/1s").node(1);
    let builtin = builder().build().unwrap();
    let callers = builder().build_with_clock(|| Ok(1_700_000_000_000)).unwrap();
    let codes = in_child(|| [code(builtin.try_next_id()), code(callers.try_next_id())]);
    assert_eq!(codes, [FORKED, FORKED]);
}

#[test]
fn a_grandchild_refuses_what_the_child_made() {
    let codes = in_child(|| {
        let own = Snowflake::builder().node(3).build().unwrap();
        let mine = code(own.next_id());
        let [grandchild] = in_child(|| [code(own.next_id())]);
        [mine, grandchild, code(own.next_id())]
    });
    assert_eq!(codes, [0, FORKED, 0]);
}

#[test]
fn a_fork_amid_building_leaves_the_child_a_whole_table() {
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for node in (100..1000).cycle() {
                if stop.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                Snowflake::builder().node(node).layout("cosid").build().unwrap();
            }
        });
        for round in 0..100 {
            let [made] = in_child(|| {
                let own = Snowflake::builder().layout("cosid").node(round).build().unwrap();
                [code(own.next_id())]
            });
            assert_eq!(made, 0);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}
