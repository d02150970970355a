//! After a fork: what the child inherited refuses, and the parent goes on.
#![cfg(unix)]

use std::os::fd::{FromRawFd, OwnedFd};

use polyflake::{ErrorCode, Snowflake};

/// Runs `child` in a fork and gives the bytes that it returns.
fn in_child<const N: usize>(child: impl FnOnce() -> [u8; N]) -> [u8; N] {
    use std::io::{Read, Write};
    let mut ends = [0; 2];
    // SAFETY: two descriptors are written, and owned from there on.
    let (mut from, mut to) = unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        (
            std::fs::File::from(OwnedFd::from_raw_fd(ends[0])),
            std::fs::File::from(OwnedFd::from_raw_fd(ends[1])),
        )
    };
    // SAFETY: the child calls nothing that another thread of the parent could have left half done: glibc makes
    // its allocator whole again, and it leaves by `_exit`.
    match unsafe { libc::fork() } {
        -1 => panic!("fork failed"),
        0 => {
            let written = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child))
                .is_ok_and(|bytes| to.write_all(&bytes).is_ok());
            // SAFETY: it returns to nobody.
            unsafe { libc::_exit(i32::from(!written)) }
        }
        pid => {
            drop(to);
            let mut bytes = [0; N];
            let read = from.read_exact(&mut bytes);
            let mut status = 0;
            // SAFETY: the child is ours.
            unsafe { assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid) };
            assert_eq!(status, 0, "the child failed");
            read.unwrap();
            bytes
        }
    }
}

fn code<T>(result: Result<T, polyflake::Error>) -> u8 {
    result.map_or_else(|error| u8::try_from(error.code().number()).unwrap(), |_| 0)
}

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
