//! The tables, their subjects, and the rounds in which the subjects take turns.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::measure::{self, BATCH, Batches, Check};
use crate::twitter_time;

pub const SHARED: &str = "one thread, shared generator";
pub const OWNED: &str = "one thread, single owner";
pub const TWO_THREADS: &str = "two threads, one generator";
pub const BATCHES: &str = "batch of 1,024";
pub const DECODE: &str = "decode";
pub const DECODE_ALL: &str = "decode of 1,024";
pub const FULL_LOAD: &str = "full load, one thread";
pub const FULL_LOAD_TWO: &str = "full load, two threads";
pub const ENCODE_PUBLIC: &str = "public ID, encode";
pub const DECODE_PUBLIC: &str = "public ID, decode";
const PROCESSOR_TIME: &str = "processor time under full load, one thread";
const TABLES: [&str; 11] = [
    SHARED,
    OWNED,
    TWO_THREADS,
    BATCHES,
    DECODE,
    DECODE_ALL,
    ENCODE_PUBLIC,
    DECODE_PUBLIC,
    FULL_LOAD,
    FULL_LOAD_TWO,
    PROCESSOR_TIME,
];

/// A subject.
#[derive(Clone, Copy)]
pub struct About {
    pub name: &'static str,
    /// Whether it starts a thread that never ends: then it runs under full load after the others are done, so
    /// that the thread does not slow them down.
    pub ticker: bool,
    /// IDs a millisecond.
    pub capacity: u32,
    /// The time in an ID, in Unix ms; none for a floor, which is not checked for repeats.
    pub time_of: Option<fn(u64) -> i64>,
}

impl About {
    /// A generator of IDs with Twitter's widths and epoch.
    pub fn of(name: &'static str) -> Self {
        Self { name, ticker: false, capacity: 4096, time_of: Some(twitter_time) }
    }

    pub fn floor(name: &'static str) -> Self {
        Self { time_of: None, ..Self::of(name) }
    }

    fn time_of(&self) -> fn(u64) -> i64 {
        self.time_of.unwrap_or(|_| 0)
    }
}

/// Which IDs a check takes. Each subject is checked once in each way.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    OneThread,
    TwoThreads,
    Batches,
}

/// One subject in one table, or in two that are measured together.
struct Row {
    about: About,
    tables: &'static [&'static str],
    kind: Kind,
    rounds: Vec<Vec<f64>>,
    generator: Box<dyn Measured>,
}

/// A generator and what is measured of it. Each dynamic call is a whole round, never a single ID.
trait Measured {
    fn round(&mut self) -> Vec<f64>;
    fn check(&mut self) -> Check;
}

struct Generator<N, M, C> {
    /// Made in its first round, so that a ticker thread does not run earlier.
    made: Option<N>,
    make: fn() -> N,
    measure: M,
    check: C,
}

impl<N, M: Fn(&mut N) -> Vec<f64>, C: Fn(&mut N) -> Check> Measured for Generator<N, M, C> {
    fn round(&mut self) -> Vec<f64> {
        (self.measure)(self.made.get_or_insert_with(self.make))
    }

    fn check(&mut self) -> Check {
        (self.check)(self.made.get_or_insert_with(self.make))
    }
}

#[derive(Default)]
pub struct Suite {
    rows: Vec<Row>,
    checks: HashMap<(&'static str, Kind), Check>,
}

impl Suite {
    /// Adds a generator that threads can share to all tables of single IDs but the one of single owners.
    pub fn shared<N: Fn() -> u64 + Sync + 'static>(&mut self, about: &About, make: fn() -> N) {
        let (time_of, capacity) = (about.time_of(), about.capacity);
        self.singles(SHARED, about, make);
        self.two_threads(about, make);
        self.full_load(about, make);
        let tables = &[FULL_LOAD_TWO];
        let measure = move |next: &mut N| vec![measure::full_load_two_threads(next, capacity)];
        let check = move |next: &mut N| measure::check_two_threads(next, time_of);
        self.add(about, tables, Kind::TwoThreads, make, measure, check);
    }

    /// Adds a subject to the table of single IDs on two threads.
    pub fn two_threads<N: Fn() -> u64 + Sync + 'static>(&mut self, about: &About, make: fn() -> N) {
        let time_of = about.time_of();
        let tables = &[TWO_THREADS];
        let measure = |next: &mut N| vec![measure::two_threads(next)];
        let check = move |next: &mut N| measure::check_two_threads(next, time_of);
        self.add(about, tables, Kind::TwoThreads, make, measure, check);
    }

    /// Adds a generator with a single owner to all tables of single IDs on one thread.
    pub fn owned<N: FnMut() -> u64 + 'static>(&mut self, about: &About, make: fn() -> N) {
        self.singles(OWNED, about, make);
        self.full_load(about, make);
    }

    /// Adds a subject to a table of single calls: `SHARED`, `OWNED`, `DECODE`, `ENCODE_PUBLIC` or `DECODE_PUBLIC`.
    pub fn singles<N: FnMut() -> u64 + 'static>(&mut self, table: &str, about: &About, make: fn() -> N) {
        let time_of = about.time_of();
        let tables = match table {
            SHARED => &[SHARED],
            OWNED => &[OWNED],
            ENCODE_PUBLIC => &[ENCODE_PUBLIC],
            DECODE_PUBLIC => &[DECODE_PUBLIC],
            _ => &[DECODE],
        };
        let measure = |next: &mut N| vec![measure::singles(next)];
        let check = move |next: &mut N| measure::check(next, time_of);
        self.add(about, tables, Kind::OneThread, make, measure, check);
    }

    fn full_load<N: FnMut() -> u64 + 'static>(&mut self, about: &About, make: fn() -> N) {
        let (time_of, capacity) = (about.time_of(), about.capacity);
        let tables = &[FULL_LOAD, PROCESSOR_TIME];
        let measure = move |next: &mut N| measure::full_load(next, capacity).to_vec();
        let check = move |next: &mut N| measure::check(next, time_of);
        self.add(about, tables, Kind::OneThread, make, measure, check);
    }

    /// Adds a subject to a table of batches: `BATCHES` or `DECODE_ALL`.
    pub fn batches<F>(&mut self, table: &str, about: &About, plan: Batches, make: fn() -> F)
    where
        F: FnMut(&mut [u64; BATCH]) + 'static,
    {
        let time_of = about.time_of();
        let tables = if table == BATCHES { &[BATCHES] } else { &[DECODE_ALL] };
        let measure = move |fill: &mut F| vec![measure::batches(fill, plan)];
        let check = move |fill: &mut F| measure::check_batches(fill, time_of);
        self.add(about, tables, Kind::Batches, make, measure, check);
    }

    fn add<N: 'static>(
        &mut self,
        about: &About,
        tables: &'static [&'static str],
        kind: Kind,
        make: fn() -> N,
        measure: impl Fn(&mut N) -> Vec<f64> + 'static,
        check: impl Fn(&mut N) -> Check + 'static,
    ) {
        let generator = Box::new(Generator { made: None, make, measure, check });
        self.rows.push(Row { about: *about, tables, kind, rounds: Vec::new(), generator });
    }

    /// Measures everything, table by table, each in rounds.
    pub fn run(&mut self, rounds: usize) {
        // Full load first, while no ticker thread uses processor time.
        for ticker in [false, true] {
            for table in [FULL_LOAD, FULL_LOAD_TWO] {
                self.run_rows(rounds, table, |about| about.ticker == ticker);
            }
        }
        for table in [SHARED, OWNED, TWO_THREADS, BATCHES, DECODE, DECODE_ALL, ENCODE_PUBLIC, DECODE_PUBLIC] {
            self.run_rows(rounds, table, |_| true);
        }
    }

    fn run_rows(&mut self, rounds: usize, table: &str, takes_part: impl Fn(&About) -> bool) {
        let rows = self.rows.iter_mut().filter(|row| row.tables[0] == table && takes_part(&row.about));
        let mut rows: Vec<&mut Row> = rows.collect();
        for round in 1..=rounds {
            eprintln!("Rust: {table}, round {round} of {rounds}");
            for row in &mut rows {
                let figures = row.generator.round();
                row.rounds.push(figures);
            }
        }
        let makes_no_ids = [DECODE, DECODE_ALL, ENCODE_PUBLIC, DECODE_PUBLIC].contains(&table);
        let makes_ids = |row: &&mut Row| row.about.time_of.is_some() && !makes_no_ids;
        for row in rows.into_iter().filter(makes_ids) {
            let key = (row.about.name, row.kind);
            self.checks.entry(key).or_insert_with(|| row.generator.check());
        }
    }

    /// Prints one JSON object per line, in the order of the tables.
    pub fn print(&self) {
        for table in TABLES {
            for row in &self.rows {
                if let Some(column) = row.tables.iter().position(|its| *its == table) {
                    println!("{}", self.result(row, column));
                }
            }
        }
    }

    fn result(&self, row: &Row, column: usize) -> Value {
        let check = self.checks.get(&(row.about.name, row.kind));
        let rounds: Vec<f64> = row.rounds.iter().map(|figures| figures[column]).collect();
        json!({
            "kind": "result", "language": "Rust", "table": row.tables[column], "subject": row.about.name,
            "rounds": rounds, "repeated": check.map(|check| check.repeated),
            "ids": check.map(|check| check.ids), "ahead_ms": check.map(|check| check.ahead_ms),
        })
    }
}
