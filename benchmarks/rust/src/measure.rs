//! The loops that measure. Each is generic and not inlined, so that it is compiled once for every subject,
//! with a direct call of the subject.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub const BATCH: usize = 1024;

/// How many IDs a check for repeats takes.
const CHECKED: u32 = 1_000_000;
/// Calls per burst. Twice as many are still fewer than the 3,072 IDs that a fresh tick has at least with
/// `spread`.
const BURST: u32 = 1000;
/// Bursts per round.
const BURSTS: u32 = 20;
/// How many bursts in which two threads begin together are wanted, and how many are tried.
const BURSTS_OF_TWO: usize = 30;
const MOST_BURSTS_OF_TWO: u32 = 150;
/// How far apart the starts of a burst's two threads may be: a few per cent of a burst.
const TOGETHER: Duration = Duration::from_micros(1);
/// For how many ticks of 1 ms a round under full load lasts.
const TICKS: u32 = 100;
/// How many IDs a thread takes before it checks how many are left.
const SHARE: i64 = 64;

pub fn unix_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    i64::try_from(since.as_millis()).expect("the time fits 64 bits")
}

/// Waits for the wall clock's next millisecond.
fn wait_for_turn() {
    let now = unix_ms();
    while unix_ms() == now {
        spin_loop();
    }
}

fn ns_each(spent: Duration, ids: u32) -> f64 {
    spent.as_secs_f64() * 1e9 / f64::from(ids)
}

/// ns per ID, in bursts that need not wait.
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

/// ns per ID if two threads use one generator at once: from the first start to the last end.
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
    // On a busy machine a thread may not be running when its burst should begin: then the two run one after
    // the other, which measures something else. Only bursts that began together count, if there are any.
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
    // The median, not the sum: a time slice for a third program would dominate that.
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

/// ns per ID, in batches that need not wait.
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

/// The share of the capacity that is used, in %, and the processor time, in seconds per second.
#[inline(never)]
pub fn full_load(next: &mut impl FnMut() -> u64, capacity: u32) -> [f64; 2] {
    // It begins in the middle of a tick and ends in the middle of a later one, so the figure is exact.
    for _ in 0..3 * capacity {
        black_box(next());
    }
    let (start, cpu) = (Instant::now(), cpu_time());
    for _ in 0..TICKS * capacity {
        black_box(next());
    }
    let (real, cpu) = (start.elapsed().as_secs_f64(), (cpu_time() - cpu).as_secs_f64());
    [f64::from(TICKS) / 10.0 / real, cpu / real]
}

/// The share of the capacity that two threads use together, in %. Both run until the end, even if one is
/// faster.
#[inline(never)]
pub fn full_load_two_threads(next: &(impl Fn() -> u64 + Sync), capacity: u32) -> f64 {
    let measured = i64::from(TICKS * capacity);
    let left = AtomicI64::new(measured + 3 * i64::from(capacity));
    // As on one thread, the first few ticks do not count.
    let start = OnceLock::new();
    let work = || {
        loop {
            let left = left.fetch_sub(SHARE, Ordering::Relaxed);
            if left <= measured {
                start.get_or_init(|| (Instant::now(), left));
            }
            if left <= 0 {
                break;
            }
            for _ in 0..left.min(SHARE) {
                black_box(next());
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let (start, ids) = start.get().expect("the measured IDs were begun");
    *ids as f64 / f64::from(capacity) / 10.0 / start.elapsed().as_secs_f64()
}

/// The result of checking a subject's IDs under full load.
#[derive(Clone, Copy)]
pub struct Check {
    pub ids: usize,
    pub repeated: usize,
    /// By how many ms the time in an ID was at most ahead of the wall clock.
    pub ahead_ms: i64,
}

/// The IDs of one thread, and how far they were ahead.
struct Taken {
    ids: Vec<u64>,
    ahead_ms: i64,
}

impl Taken {
    fn new() -> Self {
        Self { ids: Vec::with_capacity(CHECKED as usize + BATCH), ahead_ms: 0 }
    }

    fn push(&mut self, id: u64, time_of: fn(u64) -> i64) {
        // Not after each, so that the load stays full.
        if self.ids.len().is_multiple_of(64) {
            self.ahead_ms = self.ahead_ms.max(time_of(id) - unix_ms());
        }
        self.ids.push(id);
    }

    fn check(mut self) -> Check {
        self.ids.sort_unstable();
        let repeated = self.ids.windows(2).filter(|pair| pair[0] == pair[1]).count();
        Check { ids: self.ids.len(), repeated, ahead_ms: self.ahead_ms }
    }
}

pub fn check(next: &mut impl FnMut() -> u64, time_of: fn(u64) -> i64) -> Check {
    let mut taken = Taken::new();
    for _ in 0..CHECKED {
        taken.push(next(), time_of);
    }
    taken.check()
}

pub fn check_two_threads(next: &(impl Fn() -> u64 + Sync), time_of: fn(u64) -> i64) -> Check {
    let work = || {
        let mut taken = Taken::new();
        for _ in 0..CHECKED / 2 {
            taken.push(next(), time_of);
        }
        taken
    };
    let (mut own, other) = thread::scope(|scope| {
        let other = scope.spawn(work);
        (work(), other.join().expect("the other thread ends"))
    });
    own.ids.extend(other.ids);
    own.ahead_ms = own.ahead_ms.max(other.ahead_ms);
    own.check()
}

pub fn check_batches(fill: &mut impl FnMut(&mut [u64; BATCH]), time_of: fn(u64) -> i64) -> Check {
    let mut batch = [0; BATCH];
    let mut taken = Taken::new();
    while taken.ids.len() < CHECKED as usize {
        fill(&mut batch);
        taken.ahead_ms = taken.ahead_ms.max(time_of(batch[BATCH - 1]) - unix_ms());
        taken.ids.extend(batch);
    }
    taken.check()
}

/// The processor time of the whole process, its background threads included.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to `time`, a local timespec.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0, "the process has a clock of its processor time");
    let nanos = u32::try_from(time.tv_nsec).expect("less than a second");
    Duration::new(u64::try_from(time.tv_sec).expect("no negative time"), nanos)
}
