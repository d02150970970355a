//! The measuring loops. Each is generic and not inlined, so that it is compiled once per subject, and calls it
//! directly.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::rows::unix_us;

pub const BATCH: usize = 1024;

/// Calls per burst. Twice as many are still fewer than 3,072 IDs, the fewest that a fresh tick has with
/// `spread`.
const BURST: u32 = 1000;
/// Bursts per round.
const BURSTS: u32 = 20;
/// The number of bursts that both threads must start together, and the maximum number to try.
const BURSTS_OF_TWO: usize = 30;
const MOST_BURSTS_OF_TWO: u32 = 150;
/// How far apart the starts of a burst's two threads may be: a few per cent of a burst.
const TOGETHER: Duration = Duration::from_micros(1);
/// How many IDs a thread takes before it reads the clock.
pub const SHARE: usize = 64;

/// Waits for the wall clock's next millisecond.
fn wait_for_turn() {
    let now = unix_us() / 1000;
    while unix_us() / 1000 == now {
        spin_loop();
    }
}

fn ns_each(spent: Duration, ids: u32) -> f64 {
    spent.as_secs_f64() * 1e9 / f64::from(ids)
}

/// ns per ID, in bursts that do not have to wait.
#[inline(never)]
pub fn singles(next: &mut impl FnMut() -> u64) -> f64 {
    let mut spent = Duration::ZERO;
    for _ in 0..BURSTS {
        wait_for_turn();
        let start = Instant::now();
        for _ in 0..BURST {
            black_box(next());
        }
        spent += start.elapsed();
    }
    ns_each(spent, BURSTS * BURST)
}

/// ns per ID if two threads use one generator at once: from the first start to the last finish.
#[inline(never)]
pub fn two_threads(next: &(impl Fn() -> u64 + Sync)) -> f64 {
    const STOP: u32 = 0;
    let go = AtomicU32::new(u32::MAX);
    let (done, spans) = mpsc::channel();
    let burst = || {
        let start = Instant::now();
        for _ in 0..BURST {
            black_box(next());
        }
        (start, Instant::now())
    };
    let go_on = &go;
    let other = move || {
        for n in 1.. {
            loop {
                match go_on.load(Ordering::Acquire) {
                    STOP => return,
                    now if now == n => break,
                    _ => spin_loop(),
                }
            }
            done.send(burst()).expect("the first thread waits for it");
        }
    };
    // On a busy machine, a thread may not be running when its burst should start. The two threads then run
    // one after the other, which measures something else. Only bursts that started together count, if there
    // are any.
    let (mut together, mut apart) = (Vec::new(), Vec::new());
    thread::scope(|scope| {
        scope.spawn(other);
        for n in 1..=MOST_BURSTS_OF_TWO {
            wait_for_turn();
            go.store(n, Ordering::Release);
            let own = burst();
            let other = spans.recv().expect("the other thread has done its burst");
            let (first, second) = (own.0.min(other.0), own.0.max(other.0));
            let kind = if second - first <= TOGETHER { &mut together } else { &mut apart };
            kind.push(own.1.max(other.1) - first);
            if together.len() == BURSTS_OF_TWO {
                break;
            }
        }
        go.store(STOP, Ordering::Release);
    });
    // The median rather than the sum, which would be dominated by a time slice given to another program.
    let mut spent = if together.is_empty() { apart } else { together };
    spent.sort_unstable();
    ns_each(spent[spent.len() / 2], 2 * BURST)
}

/// Batches per burst, and bursts per round.
#[derive(Clone, Copy)]
pub struct Batches {
    pub burst: u32,
    pub bursts: u32,
}

/// ns per ID, in batches that do not have to wait.
#[inline(never)]
pub fn batches(fill: &mut impl FnMut(&mut [u64; BATCH]), plan: Batches) -> f64 {
    let mut ids = [0; BATCH];
    let mut spent = Duration::ZERO;
    for _ in 0..plan.bursts {
        wait_for_turn();
        let start = Instant::now();
        for _ in 0..plan.burst {
            fill(&mut ids);
            black_box(&mut ids);
        }
        spent += start.elapsed();
    }
    ns_each(spent, plan.bursts * plan.burst) / BATCH as f64
}
