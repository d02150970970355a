//! Events within a process. Each test runs in its own process.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::TryRecvError;
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use polyflake::ErrorCode;
use polyflake_coordination::{CounterOptions, Kind, SequencesOptions, open, set_listener};

use crate::backend::{Backend, Sqlite};
use crate::holder::{MAX_WAIT_MS, options};
use crate::journals::{Holder, Journal, Journals, node_of};

/// Waits while `is_so` returns true.
fn wait_while(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

pub(crate) fn two_share_a_lease_and_close_amid_batches(store: &impl Backend) {
    let journals = Journals::new();
    let address = store.address("namespace=two&nodes=6-6&ttl=20m&wait=60s");
    journals.run(&address, "process::two_and_batches");
    // The node is free at once.
    let mut successor = journals.start(&address);
    assert_eq!(successor.node(), 6);
    successor.tell("issue 5000");
    successor.wait_for_ids(Holder::start(), 5000);
    journals.assert_unique(6000);
}

#[test]
#[ignore = "the other tests start it"]
fn two_and_batches() {
    let Some((journal, address)) = Journal::of_this_process() else { return };
    let first = open(&options(&address)).unwrap();
    let second = open(&options(&address)).unwrap();
    assert_eq!((first.node(), second.node()), (6, 6));
    for _ in 0..100 {
        journal.ids(&[first.next_id().unwrap(), second.next_id().unwrap()]);
    }
    // The other Snowflake continues.
    first.close();
    assert_eq!(first.next_id().unwrap_err().code(), ErrorCode::Closed);
    journal.ids(&second.next_ids(100_u64).unwrap());
    for _ in 0..5 {
        let ids = open(&options(&address).max_wait_ms(600_000)).unwrap();
        second.close();
        let begun = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    journal.ids(&ids.next_ids(100_u64).unwrap());
                    begun.wait();
                    loop {
                        match ids.next_ids(1000_u64) {
                            Ok(issued) => journal.ids(&issued),
                            Err(error) => {
                                assert_eq!(error.code(), ErrorCode::Closed, "{error}");
                                return;
                            }
                        }
                    }
                });
            }
            begun.wait();
            thread::sleep(Duration::from_millis(20));
            ids.close();
            // Open another Snowflake while the other threads are in the middle of their calls.
            let successor = open(&options(&address)).unwrap();
            assert_eq!(successor.node(), 6);
            journal.ids(&successor.next_ids(100_u64).unwrap());
            successor.close();
        });
    }
}

pub(crate) fn what_is_dropped_is_kept_for_a_ttl(store: &impl Backend) {
    let journals = Journals::new();
    journals.run(&store.address("namespace=dropped&nodes=0-63&ttl=3s&wait=60s"), "process::dropped");
    journals.assert_unique(5);
}

#[test]
#[ignore = "the other tests start it"]
fn dropped() {
    let Some((journal, address)) = Journal::of_this_process() else { return };
    let before = threads();
    let mut dropped = None;
    for _ in 0..5 {
        let ids = open(&options(&address)).unwrap();
        // On a busy machine, the node may have been given back first.
        let is_kept =
            |(node, since): (u64, Instant)| node == ids.node() || since.elapsed() > Duration::from_secs(1);
        assert!(dropped.is_none_or(is_kept));
        journal.ids(&[ids.next_id().unwrap()]);
        dropped = Some((ids.node(), Instant::now()));
    }
    assert_eq!(threads(), before + 1);
    // After that, the node is given back.
    wait_while("the thread goes on", || threads() > before);
    let ids = open(&options(&address)).unwrap();
    journal.ids(&[ids.next_id().unwrap()]);
    ids.close();
}

pub(crate) fn no_thread_is_left(store: &impl Backend) {
    let journals = Journals::new();
    journals.run(&store.address("namespace=threads&nodes=0-63&ttl=20m&wait=60s"), "process::no_thread");
    journals.assert_unique(30);
}

#[test]
#[ignore = "the other tests start it"]
fn no_thread() {
    let Some((journal, address)) = Journal::of_this_process() else { return };
    let before = threads();
    for _ in 0..10 {
        let ids = [(); 3].map(|()| open(&options(&address)).unwrap());
        assert_eq!(threads(), before + 1);
        for ids in &ids {
            journal.ids(&[ids.next_id().unwrap()]);
        }
        for ids in &ids {
            ids.close();
        }
        // A thread that has exited is still listed for an instant.
        wait_while("a thread is left", || threads() > before);
    }
}

pub(crate) fn a_forked_child_leases_another_node(store: &impl Backend) {
    let journals = Journals::new();
    journals.run(&store.address("namespace=fork&nodes=0-63&ttl=3s&wait=60s"), "process::forked");
    journals.assert_unique(200);
}

#[test]
#[ignore = "the other tests start it"]
fn forked() {
    let Some((journal, address)) = Journal::of_this_process() else { return };
    let ids = open(&options(&address)).unwrap();
    let node = ids.node();
    journal.ids(&ids.next_ids(100_u64).unwrap());
    // SAFETY: the child uses no lock that another thread of this process may hold. Such locks are the keeper's, which
    // the child leaves alone, and the heap's, which the C library takes care of.
    #[allow(unsafe_code)]
    let child = unsafe { libc::fork() };
    if child == 0 {
        let result = std::panic::catch_unwind(|| {
            assert_eq!(ids.next_id().unwrap_err().code(), ErrorCode::Forked);
            assert_eq!(ids.try_next_id().unwrap_err().code(), ErrorCode::Forked);
            // This closes nothing that belongs to the parent.
            ids.close();
            let own = open(&options(&address)).unwrap();
            assert_ne!(own.node(), node);
            let issued = own.next_ids(100_u64).unwrap();
            assert!(issued.iter().all(|&id| node_of(id) == own.node()));
            journal.ids(&issued);
            own.close();
            journal.write("child closed");
        });
        // SAFETY: the parent's program does not continue in the child.
        #[allow(unsafe_code)]
        unsafe {
            libc::_exit(i32::from(result.is_err()));
        }
    }
    let mut status = 0;
    let bound_ms = || ids.lease().unwrap().unwrap().bound_ms;
    let first_ms = bound_ms();
    // On a busy machine, the store may not answer for a whole TTL.
    let issue = || match ids.next_ids(10_u64) {
        Ok(issued) => journal.ids(&issued),
        Err(error) => assert_eq!(error.code(), ErrorCode::LeaseLost),
    };
    // SAFETY: `status` outlives the call.
    #[allow(unsafe_code)]
    while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
        issue();
        thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(status, 0);
    // The parent keeps renewing the lease.
    wait_while("the lease is not renewed", || {
        issue();
        bound_ms() < first_ms + 3_000
    });
    ids.close();
}

/// The program exits, whether or not the store answers.
pub(crate) fn a_program_that_ends_without_close<B: Backend>() {
    let mut store = B::begin();
    let journals = Journals::new();
    let address = store.address("nodes=0-63&ttl=3s&wait=60s");
    // A busy machine may need more than one attempt.
    let start = || journals.start_with(&address, "holder::a_holder", &[(MAX_WAIT_MS, "60000")]);
    let mut holders: Vec<_> = (0..3).map(|_| start()).collect();
    for holder in &mut holders {
        holder.node();
        holder.tell("issue 10");
        holder.wait_for_ids(Holder::start(), 10);
    }
    holders[0].tell("exit");
    assert!(holders[0].wait().success());
    let mark = holders[2].mark();
    store.pause();
    holders[1].tell("exit");
    assert!(holders[1].wait().success());
    // So does a program that closes its Snowflake after noticing that the store does not answer.
    holders[2].wait_for_outage();
    holders[2].tell("close");
    holders[2].wait_for(mark, "closed");
    holders[2].tell("exit");
    assert!(holders[2].wait().success());
    store.resume();
    journals.assert_unique(30);
}

/// If no thread can be started, calls say so, and the next call tries again.
#[cfg(target_os = "linux")]
#[test]
fn without_a_thread() {
    let (store, journals) = (Sqlite::begin(), Journals::new());
    journals.run(&store.address("nodes=0-3&ttl=20m&wait=60s"), "process::no_thread_at_first");
    journals.assert_unique(10);
}

#[cfg(target_os = "linux")]
#[test]
#[ignore = "the other tests start it"]
fn no_thread_at_first() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Some((journal, address)) = Journal::of_this_process() else { return };
    let unlimited = getrlimit(Resource::As);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let kib = status.lines().find_map(|line| line.strip_prefix("VmSize:")?.split_whitespace().next());
    // Allow some memory, but not enough for a thread's stack.
    let now = (kib.unwrap().parse::<u64>().unwrap() + 1024) << 10;
    setrlimit(Resource::As, Rlimit { current: Some(now), ..unlimited }).unwrap();
    for _ in 0..2 {
        let error = open(&options(&address)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::LeaseUnavailable);
        assert!(error.to_string().contains("no thread to ask stores can be started"), "{error}");
        let counters = CounterOptions::new("orders").store(&address);
        assert_eq!(counters.open().unwrap_err().code(), ErrorCode::CounterUnavailable);
        let sequences = SequencesOptions::new("inbox").store(&address);
        assert_eq!(sequences.open().unwrap_err().code(), ErrorCode::LeaseUnavailable);
    }
    setrlimit(Resource::As, unlimited).unwrap();
    journal.ids(&open(&options(&address)).unwrap().next_ids(10_u64).unwrap());
    CounterOptions::new("orders").store(&address).open().unwrap().next_id().unwrap();
    SequencesOptions::new("inbox").store(&address).open().unwrap().next_id("alice").unwrap();
}

/// Only the event is lost: leases are still acquired, renewed and given back.
#[test]
fn a_listener_that_panics() {
    let (store, journals) = (Sqlite::begin(), Journals::new());
    journals.run(&store.address("nodes=0-3&ttl=20m&wait=60s"), "process::panics_each_time");
    journals.assert_unique(30);
}

#[test]
#[ignore = "the other tests start it"]
fn panics_each_time() {
    let Some((journal, address)) = Journal::of_this_process() else { return };
    let (sender, told) = mpsc::channel();
    set_listener(Some(Box::new(move |event| {
        sender.send(event.kind).unwrap();
        panic!("on purpose");
    })));
    let ids = open(&options(&address)).unwrap();
    journal.ids(&ids.next_ids(10_u64).unwrap());
    let orders = CounterOptions::new("orders").store(&address).open().unwrap();
    // The same thread maintains this lease.
    let other = open(&options(&address.replace("nodes=0-3", "nodes=1-3"))).unwrap();
    journal.ids(&other.next_ids(10_u64).unwrap());
    other.close();
    journal.ids(&ids.next_ids(10_u64).unwrap());
    assert_eq!((orders.next_id().unwrap(), orders.next_id().unwrap()), (1, 2));
    ids.close();
    orders.close();
    let told: Vec<_> = told.try_iter().filter(|kind| *kind != Kind::InitAlways).collect();
    assert_eq!(told, [Kind::Acquired, Kind::Acquired, Kind::Released, Kind::Released]);
}

/// The listener removes itself, without waiting for its own call to return.
#[test]
fn a_listener_that_hears_one_event() {
    let (store, journals) = (Sqlite::begin(), Journals::new());
    journals.run(&store.address("nodes=0-3&ttl=20m&wait=60s"), "process::hears_one");
    journals.assert_unique(10);
}

#[test]
#[ignore = "the other tests start it"]
fn hears_one() {
    let Some((journal, address)) = Journal::of_this_process() else { return };
    let (sender, told) = mpsc::channel();
    set_listener(Some(Box::new(move |event| {
        set_listener(None);
        sender.send(event.kind).unwrap();
    })));
    let (opened, ids) = mpsc::channel();
    thread::spawn(move || opened.send(open(&options(&address)).unwrap()).unwrap());
    let ids = ids.recv_timeout(Duration::from_secs(60)).expect("the listener waits for itself");
    journal.ids(&ids.next_ids(10_u64).unwrap());
    ids.close();
    assert_eq!(told.iter().collect::<Vec<_>>(), [Kind::InitAlways]);
}

/// A listener that was replaced may be freed, along with everything it uses.
#[test]
fn a_listener_that_is_replaced() {
    let (store, journals) = (Sqlite::begin(), Journals::new());
    journals.run(&store.address("nodes=0-3&ttl=20m&wait=60s"), "process::is_replaced");
    journals.assert_unique(10);
}

#[test]
#[ignore = "the other tests start it"]
fn is_replaced() {
    let Some((journal, address)) = Journal::of_this_process() else { return };
    let (begun, has_begun) = mpsc::channel();
    let is_amid = Arc::new(AtomicBool::new(false));
    let amid = Arc::clone(&is_amid);
    set_listener(Some(Box::new(move |_| {
        amid.store(true, Ordering::SeqCst);
        begun.send(()).unwrap();
        thread::sleep(Duration::from_millis(500));
        amid.store(false, Ordering::SeqCst);
    })));
    let opens = thread::spawn(move || open(&options(&address)).unwrap());
    has_begun.recv().unwrap();
    set_listener(None);
    assert!(!is_amid.load(Ordering::SeqCst));
    // The listener may have heard more events before it was replaced.
    while has_begun.try_recv().is_ok() {}
    assert_eq!(has_begun.try_recv(), Err(TryRecvError::Disconnected), "it is still there");
    journal.ids(&opens.join().unwrap().next_ids(10_u64).unwrap());
}

/// A listener of the parent is running when the process forks. The child neither waits for it nor loses it.
/// A child may inherit the standard library's lock on standard error.
#[test]
fn a_warning_needs_no_lock() {
    let (store, journals) = (Sqlite::begin(), Journals::new());
    journals.run(&store.address("nodes=0-3&ttl=20m&wait=60s"), "process::warns");
    journals.assert_unique(1);
}

#[test]
#[ignore = "the other tests start it"]
fn warns() {
    let Some((journal, address)) = Journal::of_this_process() else { return };
    let _locked = std::io::stderr().lock();
    let ids = open(&options(&address)).unwrap();
    journal.ids(&[ids.next_id().unwrap()]);
    ids.close();
}

#[test]
fn a_fork_amid_a_listener() {
    let (store, journals) = (Sqlite::begin(), Journals::new());
    journals.run(&store.address("nodes=0-3&ttl=20m&wait=60s"), "process::forks_amid_a_listener");
    journals.assert_unique(30);
}

#[test]
#[ignore = "the other tests start it"]
fn forks_amid_a_listener() {
    let Some((journal, address)) = Journal::of_this_process() else { return };
    let parent = std::process::id();
    let (begun, has_begun) = mpsc::channel();
    let (release, is_released) = mpsc::channel::<()>();
    let is_released = std::sync::Mutex::new(is_released);
    let heard = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&heard);
    set_listener(Some(Box::new(move |_| {
        if std::process::id() == parent {
            begun.send(()).unwrap();
            let _ = is_released.lock().unwrap().recv();
        } else {
            counts.fetch_add(1, Ordering::SeqCst);
        }
    })));
    let own = address.clone();
    let opens = thread::spawn(move || open(&options(&own)).unwrap());
    has_begun.recv().unwrap();
    let mut ends = None;
    for is_inherited in [true, false] {
        if !is_inherited {
            // This thread waits for the call to return.
            ends = Some(thread::spawn(|| set_listener(None)));
        }
        // SAFETY: the child uses no lock that another thread of this process may hold. Such locks are the keeper's,
        // which the child leaves alone, and the heap's, which the C library takes care of.
        #[allow(unsafe_code)]
        let child = unsafe { libc::fork() };
        if child == 0 {
            let result = std::panic::catch_unwind(|| {
                let own = Arc::new(AtomicUsize::new(0));
                let counts = Arc::clone(&own);
                let set = || {
                    set_listener(Some(Box::new(move |_| _ = counts.fetch_add(1, Ordering::SeqCst))));
                };
                // `init=always` causes an event too.
                if is_inherited {
                    let ids = open(&options(&address)).unwrap();
                    journal.ids(&ids.next_ids(10_u64).unwrap());
                    set();
                    ids.close();
                    assert_eq!((heard.load(Ordering::SeqCst), own.load(Ordering::SeqCst)), (2, 1));
                } else {
                    set();
                    let ids = open(&options(&address)).unwrap();
                    journal.ids(&ids.next_ids(10_u64).unwrap());
                    ids.close();
                    assert_eq!((heard.load(Ordering::SeqCst), own.load(Ordering::SeqCst)), (0, 3));
                }
            });
            // SAFETY: the parent's program does not continue in the child.
            #[allow(unsafe_code)]
            unsafe {
                libc::_exit(i32::from(result.is_err()));
            }
        }
        let (mut status, deadline) = (0, Instant::now() + Duration::from_secs(60));
        // SAFETY: `status` outlives the call.
        #[allow(unsafe_code)]
        while unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } == 0 {
            if Instant::now() > deadline {
                // SAFETY: the child has not been waited for yet.
                #[allow(unsafe_code)]
                unsafe {
                    libc::kill(child, libc::SIGKILL);
                }
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(status, 0, "the child waits for the parent's listener, or fails");
    }
    drop(release);
    journal.ids(&opens.join().unwrap().next_ids(10_u64).unwrap());
    ends.unwrap().join().unwrap();
}

/// Two Snowflakes with different promises cannot share a lease, and cannot have separate leases in the same space.
#[test]
fn two_on_other_terms() {
    let (store, journals) = (Sqlite::begin(), Journals::new());
    journals.run(&store.address("nodes=0-3&ttl=20m&wait=60s"), "process::on_other_terms");
    journals.assert_unique(20);
}

#[test]
#[ignore = "the other tests start it"]
fn on_other_terms() {
    let Some((journal, address)) = Journal::of_this_process() else { return };
    let first = open(&options(&address)).unwrap();
    let other = address.replace("ttl=20m", "ttl=10m");
    let error = open(&options(&other)).unwrap_err();
    assert_eq!(error.code(), ErrorCode::InvalidOption);
    assert!(error.to_string().contains("ttl=20m, clock_difference=1s, replicas=0 already, not with ttl=10m"));
    journal.ids(&first.next_ids(10_u64).unwrap());
    // The rest of the address does not matter here.
    assert_ne!(open(&options(&address.replace("nodes=0-3", "nodes=1-3"))).unwrap().node(), first.node());
    first.close();
    journal.ids(&open(&options(&address)).unwrap().next_ids(10_u64).unwrap());
}
