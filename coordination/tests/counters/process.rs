//! Events within a process and its children. Each test runs in its own process.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use polyflake::ErrorCode;
use polyflake_coordination::Counter;

use crate::backend::Backend;
use crate::journals::{Journal, Journals};
use crate::taken_numbers::TakenNumbers;
use crate::taker::{options, settings, start, stream};

const LAST: u64 = i64::MAX as u64;

/// Waits for another process to do something.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Forks. The child runs `child` and exits, with a status that says whether it succeeded.
pub(crate) fn fork(child: impl FnOnce() + std::panic::UnwindSafe) -> libc::pid_t {
    // SAFETY: the child uses no lock that another thread of this process may hold. Such locks are the keeper's and the
    // counter's, which the child leaves alone, and the heap's, which the C library takes care of.
    #[allow(unsafe_code)]
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0);
    if pid == 0 {
        let result = std::panic::catch_unwind(child);
        // SAFETY: the parent's program does not continue in the child.
        #[allow(unsafe_code)]
        unsafe {
            libc::_exit(i32::from(result.is_err()));
        }
    }
    pid
}

/// Waits for a child to exit, and checks that it succeeded.
pub(crate) fn join(pid: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` outlives the call.
    #[allow(unsafe_code)]
    unsafe {
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
    }
    assert_eq!(status, 0);
}

/// Takes numbers, and writes them to the child's own file, since a thread of the parent may hold the journal's lock.
fn take_into(folder: &Path, child: u64, counter: &Counter, count: u64) {
    let numbers = counter.next_ids(count).unwrap();
    let words: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    let path = folder.join(format!("child-{child}.journal"));
    let mut file = File::options().create(true).append(true).open(path).unwrap();
    file.write_all(format!("numbers {child} {}\n", words.join(" ")).as_bytes()).unwrap();
}

pub(crate) fn forked_processes_take_their_own(store: &impl Backend) {
    let journals = Journals::new();
    let folder = format!("folder={}", journals.folder().display());
    for (name, step) in [("forked", "step=50"), ("forked-by-ones", "step=1")] {
        let settings = settings(name, &[&store.url()], &[step]);
        journals.run(&format!("{folder}\n{settings}"), "process::forked");
        let taken = TakenNumbers::of(&journals);
        taken.unique(700).increasing();
        // Both counters begin at 1.
        for entry in journals.folder().read_dir().unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
    }
}

#[test]
#[ignore = "the other tests start it"]
fn forked() {
    let Some((journal, settings)) = Journal::of_this_process() else { return };
    let (folder, settings) = settings.split_once('\n').unwrap();
    let folder = Path::new(folder.strip_prefix("folder=").unwrap());
    let counter = options(settings).open().unwrap();
    journal.numbers(0, &counter.next_ids(10_u64).unwrap());
    let is_over = AtomicBool::new(false);
    // The standard library locks its data about threads while a thread starts or exits. A child that is
    // forked at that moment cannot start any threads.
    let (begins, has_begun) = channel();
    thread::scope(|scope| {
        // A fork may happen at any point in this loop.
        let takes = scope.spawn(|| {
            begins.send(()).unwrap();
            while !is_over.load(Ordering::Relaxed) {
                journal.numbers(1, &[counter.next_id().unwrap()]);
                thread::sleep(Duration::from_micros(200));
            }
        });
        has_begun.recv().unwrap();
        let children: Vec<_> = (10..14)
            .map(|child| {
                let of_child = std::panic::AssertUnwindSafe(&counter);
                let pid = fork(move || {
                    let counter = of_child;
                    take_into(folder, child, &counter, 60);
                    // The grandchild receives different numbers, too.
                    let pid = fork({
                        let counter = std::panic::AssertUnwindSafe(*counter);
                        move || take_into(folder, child + 10, &counter, 60)
                    });
                    take_into(folder, child, &counter, 10);
                    join(pid);
                    counter.close();
                    assert_eq!(counter.next_id().unwrap_err().code(), ErrorCode::Closed);
                });
                journal.numbers(0, &counter.next_ids(20_u64).unwrap());
                pid
            })
            .collect();
        children.into_iter().for_each(join);
        // The children closed only their own Counters.
        journal.numbers(0, &counter.next_ids(60_u64).unwrap());
        is_over.store(true, Ordering::Relaxed);
        // The scope alone does not wait for the thread to exit.
        takes.join().unwrap();
    });
    // A child that is running when the parent closes its counter, with and without numbers in hand.
    let (begun, closed) = (folder.join("begun"), folder.join("closed"));
    let child = {
        let counter = std::panic::AssertUnwindSafe(&counter);
        let (begun, closed) = (begun.clone(), closed.clone());
        fork(move || {
            take_into(folder, 30, &counter, 5);
            File::create(begun).unwrap();
            wait_until("the parent closes", || closed.exists());
            take_into(folder, 30, &counter, 100);
            counter.close();
        })
    };
    wait_until("the child begins", || begun.exists());
    counter.close();
    assert_eq!(counter.next_id().unwrap_err().code(), ErrorCode::Closed);
    File::create(closed).unwrap();
    join(child);
}

pub(crate) fn closed_amid_calls<B: Backend>() {
    let store = B::begin();
    let journals = Journals::new();
    let settings = settings("closed", &[&store.url()], &["step=40"]);
    journals.run(&settings, "process::closes");
    // The next process continues where they stopped.
    let last = *TakenNumbers::of(&journals).unique(100).increasing().all().last().unwrap();
    let mut next = start(&journals, &settings);
    assert_eq!(next.take(1), [last + 1]);
    next.finish();
    assert_eq!(TakenNumbers::of(&journals).missing(last + 1), (0, 0));
}

#[test]
#[ignore = "the other tests start it"]
fn closes() {
    let Some((journal, settings)) = Journal::of_this_process() else { return };
    for round in 0..15 {
        let counter = options(&settings).open().unwrap();
        let other = options(&settings).open().unwrap();
        thread::scope(|scope| {
            // Whichever of these methods is used, a call that fails loses no numbers.
            for way in [0, 3, 4, 7] {
                let (counter, journal) = (&counter, &journal);
                scope.spawn(move || stream(counter, journal, way, Duration::ZERO));
            }
            // Another Counter with that name stays open.
            other.next_id().map(|number| journal.numbers(99, &[number])).unwrap();
            thread::sleep(Duration::from_millis(round % 5));
            counter.close();
            other.next_id().map(|number| journal.numbers(99, &[number])).unwrap();
            other.close();
        });
        for code in [counter.next_id(), counter.try_next_id(), other.next_block(2_u64), other.peek()] {
            assert_eq!(code.unwrap_err().code(), ErrorCode::Closed);
        }
    }
}

/// The store is asked once for all waiting calls, and no number is lost.
pub(crate) fn threads_share_questions_with_a_step_of_1(store: &impl Backend) {
    const THREADS: u64 = 8;
    let counter = options(&settings("shared", &[&store.url()], &["step=1"])).open().unwrap();
    let (all, highest, calls) = (Mutex::new(Vec::new()), AtomicU64::new(0), AtomicU64::new(0));
    let take = |thread: u64| {
        for call in 0..6 {
            let before = highest.load(Ordering::SeqCst);
            let taken = match (thread + call) % 3 {
                0 => vec![counter.next_id().unwrap()],
                1 => counter.next_ids(3_u64).unwrap(),
                _ => counter.next_block(5_u64).map(|first| (first..first + 5).collect()).unwrap(),
            };
            assert!(taken[0] > before && taken.is_sorted_by(|a, b| a < b), "{taken:?} after {before}");
            highest.fetch_max(*taken.last().unwrap(), Ordering::SeqCst);
            calls.fetch_add(1, Ordering::Relaxed);
            all.lock().unwrap().extend(taken);
        }
    };
    // How many calls wait at a time is a matter of chance. In some rounds, there may be none.
    for round in 0.. {
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let take = &take;
                scope.spawn(move || take(thread));
            }
        });
        if counter.stats().unwrap().segments < calls.load(Ordering::Relaxed) {
            break;
        }
        assert!(round < 1_000, "{:?}", counter.stats());
    }
    let mut all = all.into_inner().unwrap();
    all.sort_unstable();
    assert!(all.iter().copied().eq(1..=all.len() as u64), "{all:?}");

    // If fewer numbers are left than the waiting calls want, some of the calls get them.
    let first = LAST - 20;
    let start = format!("start={first}");
    let counter = options(&settings("shared-end", &[&store.url()], &["step=1", &start])).open().unwrap();
    let take = || {
        let mut taken = Vec::new();
        let error = loop {
            match counter.next_id() {
                Ok(number) => taken.push(number),
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains("it has reached its end"), "{error}");
        taken
    };
    let mut all: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(take)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    all.sort_unstable();
    assert!(all.iter().copied().eq(first..=LAST), "{all:?}");
}

pub(crate) fn the_end_of_all_numbers(store: &impl Backend) {
    let first = LAST - 24;
    for step in ["auto", "10", "1"] {
        let (name, start) = (format!("end-{step}"), format!("start={first}"));
        let settings = settings(&name, &[&store.url()], &[&format!("step={step}"), &start]);
        let counter = options(&settings).open().unwrap();
        let refused = |result: Result<u64, polyflake::Error>| {
            let error = result.unwrap_err();
            assert_eq!(error.code(), ErrorCode::CounterUnavailable, "{error}");
            let text = error.to_string();
            assert!(text.contains("it has reached its end, 9223372036854775807"), "{text}");
            assert!(text.contains(&name), "{text}");
        };
        // The failed call takes no numbers.
        refused(counter.next_block(26_u64));
        let all: Vec<_> = (0..25).map(|_| counter.next_id().unwrap()).collect();
        assert!(all.iter().copied().eq(first..=LAST), "{all:?}");
        for _ in 0..2 {
            refused(counter.next_id());
            refused(counter.next_ids(2_u64).map(|numbers| numbers[0]));
            refused(counter.next_block(1_u64));
        }
        assert_eq!(counter.try_next_id().unwrap_err().code(), ErrorCode::CounterUnavailable);
        assert_eq!(counter.peek(), Ok(LAST));
        counter.raise(LAST).unwrap();
        counter.close();
        // The counter stays exhausted.
        match options(&settings).open() {
            Ok(counter) => refused(counter.next_id()),
            Err(error) => refused(Err(error)),
        }
    }
    // A counter that starts at the last number.
    let start = format!("start={LAST}");
    let counter = options(&settings("end-at-once", &[&store.url()], &[&start])).open().unwrap();
    assert_eq!(counter.next_id(), Ok(LAST));
    assert_eq!(counter.next_id().unwrap_err().code(), ErrorCode::CounterUnavailable);
    assert_eq!(counter.remove(), Ok(true));
}
