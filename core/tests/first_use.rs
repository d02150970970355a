//! The first use of a clock in a process, while it forks. In a separate file, so that no other test uses a
//! clock first.
#![cfg(all(unix, not(loom), not(miri)))]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::in_child;
use polyflake::{Clock, SteadyClock, SystemClock};

/// The number of seconds after which an alarm kills a hung child. A child that does not hang is never that
/// slow.
const ALARM: u32 = 60;

const ROUNDS: u32 = 1000;

fn read_the_clocks() {
    let steady: SteadyClock = SteadyClock::new(1000);
    assert!(SystemClock::<polyflake::StdTime>::default().unix_ms().is_ok() && steady.unix_ms().is_ok());
}

#[test]
fn a_fork_amid_the_first_use_of_a_clock_hangs_no_child() {
    for round in 0..ROUNDS {
        // A process that has not used a clock yet.
        let [lived] = in_child(|| {
            let (ready, go) = (AtomicBool::new(false), AtomicBool::new(false));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    ready.store(true, Ordering::Release);
                    while !go.load(Ordering::Acquire) {
                        std::hint::spin_loop();
                    }
                    read_the_clocks();
                });
                while !ready.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                go.store(true, Ordering::Release);
                // In some rounds, the fork happens while the other thread is initializing its clock.
                for _ in 0..round % 100 {
                    std::hint::spin_loop();
                }
                // SAFETY: the child only reads clocks, which must not need any lock.
                match unsafe { libc::fork() } {
                    0 => {
                        // SAFETY: a plain system call.
                        unsafe { libc::alarm(ALARM) };
                        read_the_clocks();
                        // SAFETY: this does not return.
                        unsafe { libc::_exit(0) }
                    }
                    pid => {
                        let mut status = 0;
                        // SAFETY: the child belongs to this process.
                        let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
                        [u8::from(waited == pid && status == 0)]
                    }
                }
            })
        });
        assert_eq!(lived, 1, "the child of round {round} was ended by its alarm");
    }
}
