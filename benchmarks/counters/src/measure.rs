//! The loops that measure. Those of numbers in hand are generic and not inlined, so that each is compiled once for every
//! subject, with a direct call of the subject.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

pub const BATCH: usize = 1024;

/// The shortest round: segments run out in it as often as they do in a steady program.
const ROUND: Duration = Duration::from_millis(60);

/// What is measured of a subject. Each dynamic call is a whole round, never a single number.
pub trait Measured {
    /// ns per number.
    fn round(&mut self) -> f64;

    /// How many of some numbers came twice. `None` if it makes none.
    fn check(&mut self) -> Option<Check>;
}

#[derive(Clone, Copy)]
pub struct Check {
    pub numbers: usize,
    pub repeated: usize,
}

impl Check {
    fn of(mut numbers: Vec<u64>) -> Self {
        numbers.sort_unstable();
        let repeated = numbers.windows(2).filter(|pair| pair[0] == pair[1]).count();
        Self { numbers: numbers.len(), repeated }
    }
}

/// Some number or other, by xorshift: the same ones in each run.
pub struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }
}

impl Random {
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(limit)) >> 64) as u64
    }
}

/// How much is done between two looks at the clock, and how many numbers are checked.
#[derive(Clone, Copy)]
pub struct Plan {
    calls: u32,
    checked: usize,
}

/// Nanoseconds a call.
pub const IN_HAND: Plan = Plan { calls: 1_000_000, checked: 1_000_000 };
pub const BATCHES_IN_HAND: Plan = Plan { calls: 10_000, checked: 1_000_000 };
/// Each key has its own numbers, which may equal another key's.
pub const KEYS_IN_HAND: Plan = Plan { calls: 100_000, checked: 0 };
pub const BATCHES_OF_KEYS: Plan = Plan { calls: 100, checked: 0 };
/// A round trip a call.
pub const ASKED_FOR_KEYS: Plan = Plan { calls: 1, checked: 0 };
pub const ASKED: Plan = Plan { calls: 1, checked: 1_000 };
pub const ASKED_BY_THREADS: Plan = Plan { calls: 20, checked: 1_600 };
pub const BATCHES_ASKED: Plan = Plan { calls: 1, checked: 100 * BATCH };
/// A floor, which makes no numbers that anyone keeps.
pub const FLOOR: Plan = Plan { calls: 1_000_000, checked: 0 };
pub const FLUSH: Plan = Plan { calls: 1, checked: 0 };
pub const FLOOR_OF_BATCHES: Plan = Plan { calls: 10_000, checked: 0 };

/// ns per call.
fn until_the_round_ends(calls: u32, mut some: impl FnMut()) -> f64 {
    let (start, mut done) = (Instant::now(), 0.0);
    loop {
        some();
        done += f64::from(calls);
        let spent = start.elapsed();
        if spent >= ROUND {
            return spent.as_secs_f64() * 1e9 / done;
        }
    }
}

/// Numbers one at a time, on one thread.
pub struct One<F>(pub F, pub Plan);

impl<F: FnMut() -> u64> Measured for One<F> {
    fn round(&mut self) -> f64 {
        let Self(next, plan) = self;
        until_the_round_ends(plan.calls, || some_singles(next, plan.calls))
    }

    fn check(&mut self) -> Option<Check> {
        let Self(next, plan) = self;
        (plan.checked > 0).then(|| Check::of((0..plan.checked).map(|_| next()).collect()))
    }
}

#[inline(never)]
fn some_singles(next: &mut impl FnMut() -> u64, calls: u32) {
    for _ in 0..calls {
        black_box(next());
    }
}

/// Numbers one at a time, on that many threads at once.
pub struct Threads<F>(pub usize, pub F, pub Plan);

impl<F: Fn() -> u64 + Sync> Measured for Threads<F> {
    /// From the first start to the last end.
    fn round(&mut self) -> f64 {
        let Self(threads, next, plan) = self;
        let (calls, ready, next) = (5 * plan.calls, Barrier::new(*threads), &*next);
        let times = together(*threads, &|| {
            ready.wait();
            let start = Instant::now();
            some_singles(&mut || next(), calls);
            (start, Instant::now())
        });
        let (start, end) = (times.iter().map(|it| it.0).min(), times.iter().map(|it| it.1).max());
        let spent = end.zip(start).map_or(0.0, |(end, start)| (end - start).as_secs_f64());
        spent * 1e9 / (f64::from(calls) * *threads as f64)
    }

    fn check(&mut self) -> Option<Check> {
        let Self(threads, next, plan) = self;
        let next = &*next;
        let each = plan.checked / *threads;
        let numbers = together(*threads, &|| (0..each).map(|_| next()).collect::<Vec<_>>());
        (plan.checked > 0).then(|| Check::of(numbers.concat()))
    }
}

fn together<T: Send>(threads: usize, work: &(impl Fn() -> T + Sync)) -> Vec<T> {
    thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        all.into_iter().map(|thread| thread.join().expect("each thread ends")).collect()
    })
}

/// Numbers in batches.
pub struct Batches<F>(pub F, pub Plan);

impl<F: FnMut(&mut [u64; BATCH])> Measured for Batches<F> {
    fn round(&mut self) -> f64 {
        let Self(fill, plan) = self;
        until_the_round_ends(plan.calls, || some_batches(fill, plan.calls)) / BATCH as f64
    }

    fn check(&mut self) -> Option<Check> {
        let Self(fill, plan) = self;
        let (mut batch, mut numbers) = ([0; BATCH], Vec::new());
        while numbers.len() < plan.checked {
            fill(&mut batch);
            numbers.extend(batch);
        }
        (plan.checked > 0).then(|| Check::of(numbers))
    }
}

#[inline(never)]
fn some_batches(fill: &mut impl FnMut(&mut [u64; BATCH]), calls: u32) {
    let mut numbers = [0; BATCH];
    for _ in 0..calls {
        fill(&mut numbers);
        black_box(&mut numbers);
    }
}
