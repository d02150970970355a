//! The tables, and how the subjects in each are measured.

use std::thread;

use crate::measure::{self, BATCH, Batches, SHARE};
use crate::rows::{Rows, answer, blocks};

pub const SHARED: &str = "one thread, shared generator";
pub const OWNED: &str = "one thread, single owner";
pub const TWO_THREADS: &str = "two threads, one generator";
pub const BATCHES: &str = "batch of 1,024";
pub const DECODE: &str = "decode";
pub const DECODE_ALL: &str = "decode of 1,024";
pub const FULL_LOAD: &str = "full load, one thread|processor time under full load, one thread";
pub const FULL_LOAD_TWO: &str = "full load, two threads";
pub const ENCODE_PUBLIC: &str = "public ID, encode";
pub const DECODE_PUBLIC: &str = "public ID, decode";

fn take(next: &mut impl FnMut() -> u64, ids: &mut [u64]) {
    ids.fill_with(next);
}

fn of_one_thread<N: FnMut() -> u64>(next: &mut N, ids: usize) -> Vec<u64> {
    blocks(ids, SHARE, |ids| take(next, ids))
}

fn of_two_threads<N: Fn() -> u64 + Sync>(next: &mut N, ids: usize) -> Vec<u64> {
    let next = &*next;
    let work = || blocks(ids / 2, SHARE, |ids| take(&mut || next(), ids));
    let (own, other) = thread::scope(|scope| {
        let other = scope.spawn(work);
        (work(), other.join().expect("the other thread ends"))
    });
    [own, other].concat()
}

/// A row under full load is measured by its IDs.
fn no_round<N>(_: &mut N) -> Vec<f64> {
    Vec::new()
}

pub struct Suite(pub Rows);

impl Suite {
    /// Adds a generator that threads can share to all tables of single IDs except the one for single owners.
    pub fn shared<N: Fn() -> u64 + Sync + 'static>(&mut self, name: &'static str, make: fn() -> N) {
        self.singles(SHARED, name, make);
        self.two_threads(name, make);
        self.full_load(name, make);
        self.add(FULL_LOAD_TWO, name, move || answer(make(), no_round, SHARE, 2, of_two_threads));
    }

    /// Adds a subject to the table of single IDs on two threads.
    pub fn two_threads<N: Fn() -> u64 + Sync + 'static>(&mut self, name: &'static str, make: fn() -> N) {
        self.add(TWO_THREADS, name, move || {
            answer(make(), |next| vec![measure::two_threads(next)], SHARE, 2, of_two_threads);
        });
    }

    /// Adds a generator with a single owner to all tables of single IDs on one thread.
    pub fn owned<N: FnMut() -> u64 + 'static>(&mut self, name: &'static str, make: fn() -> N) {
        self.singles(OWNED, name, make);
        self.full_load(name, make);
    }

    /// Adds a subject to a table of single calls.
    pub fn singles<N: FnMut() -> u64 + 'static>(
        &mut self,
        table: &'static str,
        name: &'static str,
        make: fn() -> N,
    ) {
        let block = if [SHARED, OWNED].contains(&table) { SHARE } else { 0 };
        self.add(table, name, move || {
            answer(make(), |next| vec![measure::singles(next)], block, 1, of_one_thread);
        });
    }

    fn full_load<N: FnMut() -> u64 + 'static>(&mut self, name: &'static str, make: fn() -> N) {
        self.add(FULL_LOAD, name, move || answer(make(), no_round, SHARE, 1, of_one_thread));
    }

    /// Adds a subject to a table of batches: `BATCHES` or `DECODE_ALL`.
    pub fn batches<F>(&mut self, table: &'static str, name: &'static str, plan: Batches, make: fn() -> F)
    where
        F: FnMut(&mut [u64; BATCH]) + 'static,
    {
        let block = if table == BATCHES { BATCH } else { 0 };
        self.add(table, name, move || {
            let round = |fill: &mut F| vec![measure::batches(fill, plan)];
            let ids = |fill: &mut F, ids| {
                blocks(ids, BATCH, |ids| fill(ids.try_into().expect("a block is a batch")))
            };
            answer(make(), round, block, 1, ids);
        });
    }

    fn add(&mut self, table: &'static str, name: &'static str, answer: impl FnOnce() + 'static) {
        self.0.add(table, name, "", answer);
    }
}
