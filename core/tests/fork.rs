//! After a fork, everything the child inherited fails, and the parent keeps working.
#![cfg(unix)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use common::{code, in_child, in_child_of};
use polyflake::{Clock, ClockError, Error, ErrorCode, Snowflake, Wait};

const FORKED: u8 = ErrorCode::Forked as u8;

/// True if a call that needs the heap would hang: in a child of a bare `clone`, another thread of the parent
/// may have locked the heap.
static HEAP_IS_LOCKED: AtomicBool = AtomicBool::new(false);

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

// SAFETY: every call goes to the system's allocator.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if HEAP_IS_LOCKED.load(Ordering::Relaxed) {
            std::process::abort();
        }
        // SAFETY: as promised by the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as promised by the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

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
            // Under a different layout name, this is still the parent's node.
            code(Snowflake::builder().layout("leaf").node(1).build()),
            // A different node.
            code(Snowflake::builder().node(2).build().and_then(|own| own.next_id())),
            // Decoding still works.
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
    // Both have taken 64 slots.
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

/// Returns the error code of a call in the child of a fork that happens while the call reads the clock. The
/// parent continues the same call, and both have the same cursor.
fn fork_inside_the_clock<T>(
    fork_now: &Cell<bool>,
    child: &Cell<bool>,
    call: impl FnOnce() -> Result<T, polyflake::Error>,
) -> u8 {
    fork_now.set(true);
    let result = std::cell::RefCell::new(None);
    let [in_child] = in_child_of(
        || {
            *result.borrow_mut() = Some(code(call()));
            if child.get() { 0 } else { FORKED_PID.get() }
        },
        || [result.borrow_mut().take().unwrap()],
    );
    assert_eq!(result.take(), Some(0), "the parent continues");
    in_child
}

std::thread_local! {
    /// The result of the last fork inside a clock, in the parent.
    static FORKED_PID: Cell<libc::pid_t> = const { Cell::new(-1) };
}

/// A clock that stands still, and forks once when told to.
struct Forking<'a> {
    now: &'a Cell<bool>,
    child: &'a Cell<bool>,
}

impl Clock for Forking<'_> {
    fn unix_ms(&self) -> Result<i64, ClockError> {
        if self.now.take() {
            // SAFETY: as in `in_child`.
            match unsafe { libc::fork() } {
                0 => self.child.set(true),
                pid => FORKED_PID.set(pid),
            }
        }
        Ok(1_700_000_000_000)
    }
}

#[test]
fn a_fork_inside_a_callers_clock_gives_the_child_nothing() {
    let (now, child) = (Cell::new(false), Cell::new(false));
    let ids = Snowflake::builder().node(5).build_with_clock(Forking { now: &now, child: &child }).unwrap();
    ids.next_id().unwrap();
    let mut buffer = [0; 3];
    let codes = [
        fork_inside_the_clock(&now, &child, || ids.next_id()),
        fork_inside_the_clock(&now, &child, || ids.try_next_id()),
        fork_inside_the_clock(&now, &child, || ids.fill(&mut buffer)),
    ];
    assert_eq!(codes, [FORKED; 3]);
    let mut own = ids.into_local();
    own.next_id().unwrap();
    assert_eq!(fork_inside_the_clock(&now, &child, || own.next_id()), FORKED);
}

#[test]
#[cfg(target_os = "linux")]
fn children_that_run_no_handler_of_forks_are_noticed() {
    // SAFETY: one page, which is tested and then unmapped.
    let can_wipe = unsafe {
        let (read_write, private) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let page = libc::mmap(std::ptr::null_mut(), 4096, read_write, private, -1, 0);
        let wiped = libc::madvise(page, 4096, libc::MADV_WIPEONFORK) == 0;
        libc::munmap(page, 4096);
        wiped
    };
    if !can_wipe {
        println!("skipped: this kernel wipes no memory in children");
        return;
    }
    // SAFETY: as for `fork`; the child only takes IDs, which needs no lock and no memory.
    let clone = || unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    let clone = || libc::pid_t::try_from(clone()).unwrap();
    let fork = || {
        // SAFETY: the name ends in a NUL, and any function with this name is the one from POSIX.
        unsafe {
            match libc::dlsym(libc::RTLD_DEFAULT, c"_Fork".as_ptr()) {
                none if none.is_null() => libc::fork(),
                found => std::mem::transmute::<*mut libc::c_void, extern "C" fn() -> libc::pid_t>(found)(),
            }
        }
    };
    let builtin = Snowflake::builder().node(6).build().unwrap();
    let callers = Snowflake::builder().node(6).build_with_clock(|| Ok(1_700_000_000_000)).unwrap();
    let unused = Snowflake::builder().node(7).build().unwrap();
    builtin.next_id().unwrap();
    callers.next_id().unwrap();
    let calls = || [code(builtin.next_id()), code(callers.next_id()), code(unused.next_id())];
    let calls_without_heap = || {
        HEAP_IS_LOCKED.store(true, Ordering::Relaxed);
        let codes = calls();
        HEAP_IS_LOCKED.store(false, Ordering::Relaxed);
        codes
    };
    assert_eq!(in_child_of(clone, calls_without_heap), [FORKED; 3]);
    assert_eq!(in_child_of(fork, calls_without_heap), [FORKED; 3]);
    assert_eq!(calls(), [0; 3]);
}

#[test]
fn programs_that_take_one_id_a_run_spread() {
    let layout = "timestamp:41|worker:10|sequence:12@1767225600000/1ms";
    let options = Snowflake::builder().layout(layout).node(8);
    // 64 programs, each of which creates a cursor.
    let sequences = (0..64).map(|_| {
        let taken = in_child(|| {
            let ids = options.build().unwrap();
            ids.decode(ids.next_id().unwrap()).unwrap().sequence().to_ne_bytes()
        });
        u64::from_ne_bytes(taken) % 16
    });
    let residues: HashSet<u64> = sequences.collect();
    // 64 random draws miss more than five of the 16 residues in less than one run in a billion.
    assert!(residues.len() >= 11, "{residues:?}");
}

/// The clock of a call that waits while its process forks.
static NOW: AtomicI64 = AtomicI64::new(1_800_000_000_000);

/// A wait that forks, as a signal handler may, as soon as another call leads.
struct ForksWaiting {
    since: Instant,
    follows: bool,
    child: Option<libc::pid_t>,
}

enum Ended {
    /// No other call leads yet.
    Leads,
    Parent,
    Failed,
}

impl From<Error> for Ended {
    fn from(_: Error) -> Self {
        Self::Failed
    }
}

impl Wait for ForksWaiting {
    type Error = Ended;

    fn elapsed(&mut self) -> Duration {
        self.since.elapsed()
    }

    fn pause(&mut self, _: Duration) -> Result<(), Ended> {
        match self.child {
            Some(0) => return Ok(()),
            None if self.follows => {}
            _ => return Err(Ended::Leads),
        }
        // SAFETY: as in `in_child`.
        let child = unsafe { libc::fork() };
        self.child = Some(child);
        if child != 0 {
            return Err(Ended::Parent);
        }
        // In the child's copy of the memory.
        NOW.fetch_add(1000, Ordering::Relaxed);
        Ok(())
    }

    fn block_on(&mut self, work: &mut (dyn FnMut() + Send)) {
        self.follows = true;
        work();
    }
}

#[test]
fn a_child_of_a_waiting_call_does_not_wait_in_its_parents_queue() {
    let folder = std::env::temp_dir().join(format!("polyflake-fork-waiting-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    // The tick has a slot for the child, although a leader also takes one for a call that has just left.
    let layout = "timestamp:35|worker:10|sequence:2@0/1s";
    let options = Snowflake::builder().layout(layout).node(9).state(folder.join("state")).max_wait_ms(5000);
    let ids = options.build_with_clock(|| Ok(NOW.load(Ordering::Relaxed))).unwrap();
    NOW.fetch_add(10_000, Ordering::Relaxed);
    while ids.try_next_id().is_ok() {}
    std::thread::scope(|scope| {
        // This call leads, and its thread does not exist in the child.
        let leader = scope.spawn(|| while ids.next_id().is_err() {});
        loop {
            let mut wait = ForksWaiting { since: Instant::now(), follows: false, child: None };
            let ended = ids.next_id_with(&mut wait);
            if wait.child == Some(0) {
                // SAFETY: this does not return.
                unsafe { libc::_exit(i32::from(ended.is_err())) }
            }
            let Some(child) = wait.child else { continue };
            assert!(matches!(ended, Err(Ended::Parent)));
            let mut status = 0;
            NOW.fetch_add(1000, Ordering::Relaxed);
            leader.join().unwrap();
            // SAFETY: the child belongs to this process.
            unsafe { assert_eq!(libc::waitpid(child, &raw mut status, 0), child) };
            assert_eq!(status, 0, "the child waited for a leader that it does not have");
            return;
        }
    });
    std::fs::remove_dir_all(folder).unwrap();
}
