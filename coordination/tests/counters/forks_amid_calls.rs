//! Forks while a call waits, as a signal handler can in Python, where it runs between two steps of the wait. Both
//! processes then continue the call, which belongs to the parent.

use std::cell::Cell;
use std::thread;
use std::time::Duration;

use polyflake::{Error, ErrorCode, Snowflake, ThreadWait, Wait};
use polyflake_coordination::{CounterOptions, SequencesOptions};

use crate::backend::{Backend as _, Sqlite};
use crate::journals::{Journal, Journals};
use crate::process::join;

/// Forks in its first pause.
struct Forks<'a> {
    thread: ThreadWait,
    /// Waits until the call could return if there were no fork.
    answer: &'a dyn Fn(),
    child: Option<libc::pid_t>,
}

impl Wait for Forks<'_> {
    type Error = Error;

    fn elapsed(&mut self) -> Duration {
        self.thread.elapsed()
    }

    fn pause(&mut self, pause: Duration) -> Result<(), Error> {
        if self.child.is_none() {
            (self.answer)();
            // SAFETY: the child only ends the call, and then exits.
            #[allow(unsafe_code)]
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: `alarm` only sets a timer, which ends a child that hangs on a lock.
                #[allow(unsafe_code)]
                unsafe {
                    libc::alarm(30);
                }
            }
            self.child = Some(child);
        }
        self.thread.pause(pause)
    }
}

/// Repeats a call until it has to wait, and then forks. In the child, the call must fail.
fn fails_in_the_child<T>(answer: &dyn Fn(), mut call: impl FnMut(&mut Forks<'_>) -> Result<T, Error>) {
    let mut wait = Forks { thread: ThreadWait::new(), answer, child: None };
    let child = loop {
        let result = call(&mut wait);
        if wait.child == Some(0) {
            let is_right = result.is_err_and(|error| error.code() == ErrorCode::Forked);
            // SAFETY: the parent's program does not continue in the child.
            #[allow(unsafe_code)]
            unsafe {
                libc::_exit(i32::from(!is_right));
            }
        }
        result.unwrap();
        if let Some(child) = wait.child {
            break child;
        }
    };
    join(child);
}

#[test]
fn the_call_is_the_parents() {
    let (journals, store) = (Journals::new(), Sqlite::begin());
    journals.run(&store.address("namespace=amid&ttl=60s&wait=60s"), "forks_amid_calls::forks");
}

#[test]
#[ignore = "the other test starts it"]
fn forks() {
    let Some((_, address)) = Journal::of_this_process() else { return };
    // The answer has usually arrived by then.
    let after_a_while = || thread::sleep(Duration::from_millis(200));
    // A second object with the same name would open at once.
    let names = Cell::new(0);
    let new_name = || {
        names.set(names.get() + 1);
        format!("opened-{}", names.get())
    };

    let options =
        |name: &str, step: u64| CounterOptions::new(name).store(&address).step(step).max_wait_ms(60_000);
    fails_in_the_child(&after_a_while, |wait| options(&new_name(), 10).open_with(wait));
    let by_ones = options("by-ones", 1).open().unwrap();
    fails_in_the_child(&after_a_while, |wait| by_ones.next_id_with(wait));
    fails_in_the_child(&after_a_while, |wait| by_ones.fill_with(&mut [0; 2], wait));
    fails_in_the_child(&after_a_while, |wait| by_ones.next_block_with(3_u64, wait));
    fails_in_the_child(&after_a_while, |wait| by_ones.peek_with(wait));
    fails_in_the_child(&after_a_while, |wait| by_ones.raise_with(1_000_u64, wait));
    let by_segments = options("by-segments", 4).open().unwrap();
    let once_fetched = || {
        while by_segments.stats().unwrap().in_hand == 0 {
            thread::sleep(Duration::from_millis(1));
        }
    };
    fails_in_the_child(&once_fetched, |wait| {
        while by_segments.try_next_id().is_ok() {}
        by_segments.next_id_with(wait)
    });

    let options = |name: &str| {
        SequencesOptions::new(name).store(&address).sections(1_u64).step(1_u64).max_wait_ms(60_000_u64)
    };
    fails_in_the_child(&after_a_while, |wait| options(&new_name()).open_with(wait));
    let inbox = options("inbox").open().unwrap();
    fails_in_the_child(&after_a_while, |wait| inbox.next_id_with("alice", wait));
    fails_in_the_child(&after_a_while, |wait| inbox.next_ids_with(["alice", "bob", "carol", "dave"], wait));

    fails_in_the_child(&after_a_while, |wait| {
        let address = address.replace("namespace=amid", &format!("namespace={}", new_name()));
        polyflake_coordination::lease(&Snowflake::builder().lease(&address), wait)
    });
}
