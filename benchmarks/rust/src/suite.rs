//! The tables, their subjects, and the rounds in which the subjects take turns.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::measure::{self, BATCH, Batches, Check};

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

const NS: &str = "ns per ID";
const DECODED: &str = "ns per decoded ID";
const CALL: &str = "ns per call";
const CAPACITY: &str = "% of capacity";
const CPU: &str = "CPU seconds per second";

#[derive(Clone, Copy, PartialEq)]
pub enum Role {
    Ours,
    Peer,
    Floor,
}

/// A subject, as shown in the report.
#[derive(Clone)]
pub struct About {
    pub subject: &'static str,
    /// The crate's name in `Cargo.lock`.
    pub package: &'static str,
    pub role: Role,
    /// Whether every call reads a clock.
    pub reads_clock: bool,
    /// Whether it starts a thread that never ends: then it runs under full load after the others are done, so
    /// that the thread does not slow them down.
    pub ticker: bool,
    /// IDs a millisecond.
    pub capacity: u32,
    /// The time in an ID, in Unix ms.
    pub time_of: fn(u64) -> i64,
    pub note: &'static str,
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
    headings: &'static [(&'static str, &'static str)],
    floor: Option<&'static str>,
    targets: Value,
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
        let (time_of, capacity) = (about.time_of, about.capacity);
        self.singles(SHARED, about, make);
        self.two_threads(about, make);
        self.full_load(about, make);
        let headings = &[(FULL_LOAD_TWO, CAPACITY)];
        let measure = move |next: &mut N| vec![measure::full_load_two_threads(next, capacity)];
        let check = move |next: &mut N| measure::check_two_threads(next, time_of);
        self.add(about, headings, Kind::TwoThreads, make, measure, check);
    }

    /// Adds a subject to the table of single IDs on two threads.
    pub fn two_threads<N: Fn() -> u64 + Sync + 'static>(&mut self, about: &About, make: fn() -> N) {
        let time_of = about.time_of;
        let headings = &[(TWO_THREADS, NS)];
        let measure = |next: &mut N| vec![measure::two_threads(next)];
        let check = move |next: &mut N| measure::check_two_threads(next, time_of);
        self.add(about, headings, Kind::TwoThreads, make, measure, check);
    }

    /// Adds a generator with a single owner to all tables of single IDs on one thread.
    pub fn owned<N: FnMut() -> u64 + 'static>(&mut self, about: &About, make: fn() -> N) {
        self.singles(OWNED, about, make);
        self.full_load(about, make);
    }

    /// Adds a subject to a table of single calls: `SHARED`, `OWNED`, `DECODE`, `ENCODE_PUBLIC` or `DECODE_PUBLIC`.
    pub fn singles<N: FnMut() -> u64 + 'static>(&mut self, table: &str, about: &About, make: fn() -> N) {
        let time_of = about.time_of;
        let headings = match table {
            SHARED => &[(SHARED, NS)],
            OWNED => &[(OWNED, NS)],
            ENCODE_PUBLIC => &[(ENCODE_PUBLIC, CALL)],
            DECODE_PUBLIC => &[(DECODE_PUBLIC, CALL)],
            _ => &[(DECODE, DECODED)],
        };
        let measure = |next: &mut N| vec![measure::singles(next)];
        let check = move |next: &mut N| measure::check(next, time_of);
        self.add(about, headings, Kind::OneThread, make, measure, check);
    }

    fn full_load<N: FnMut() -> u64 + 'static>(&mut self, about: &About, make: fn() -> N) {
        let (time_of, capacity) = (about.time_of, about.capacity);
        let headings = &[(FULL_LOAD, CAPACITY), (PROCESSOR_TIME, CPU)];
        let measure = move |next: &mut N| measure::full_load(next, capacity).to_vec();
        let check = move |next: &mut N| measure::check(next, time_of);
        self.add(about, headings, Kind::OneThread, make, measure, check);
    }

    /// Adds a subject to a table of batches: `BATCHES` or `DECODE_ALL`.
    pub fn batches<F>(&mut self, table: &str, about: &About, plan: Batches, make: fn() -> F)
    where
        F: FnMut(&mut [u64; BATCH]) + 'static,
    {
        let time_of = about.time_of;
        let headings = if table == BATCHES { &[(BATCHES, NS)] } else { &[(DECODE_ALL, DECODED)] };
        let measure = move |fill: &mut F| vec![measure::batches(fill, plan)];
        let check = move |fill: &mut F| measure::check_batches(fill, time_of);
        self.add(about, headings, Kind::Batches, make, measure, check);
    }

    fn add<N: 'static>(
        &mut self,
        about: &About,
        headings: &'static [(&'static str, &'static str)],
        kind: Kind,
        make: fn() -> N,
        measure: impl Fn(&mut N) -> Vec<f64> + 'static,
        check: impl Fn(&mut N) -> Check + 'static,
    ) {
        let generator = Box::new(Generator { made: None, make, measure, check });
        let (about, floor, targets, rounds) = (about.clone(), None, json!([]), Vec::new());
        self.rows.push(Row { about, headings, floor, targets, kind, rounds, generator });
    }

    /// Sets the targets of one of our rows.
    pub fn target(&mut self, table: &str, subject: &str, targets: Value) {
        let mut rows = self.rows.iter_mut();
        let row = rows.find(|row| row.about.subject == subject && row.headings[0].0 == table);
        row.expect("the row of a target is there").targets = targets;
    }

    /// Sets the floor of all our rows in a table.
    pub fn floor(&mut self, table: &str, floor: &'static str) {
        let rows = self.rows.iter_mut().filter(|row| row.about.role == Role::Ours);
        for row in rows.filter(|row| row.headings[0].0 == table) {
            row.floor = Some(floor);
        }
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
        let rows = self.rows.iter_mut().filter(|row| row.headings[0].0 == table && takes_part(&row.about));
        let mut rows: Vec<&mut Row> = rows.collect();
        for round in 1..=rounds {
            eprintln!("Rust: {table}, round {round} of {rounds}");
            for row in &mut rows {
                let figures = row.generator.round();
                row.rounds.push(figures);
            }
        }
        let makes_ids =
            |row: &&mut Row| row.about.role != Role::Floor && ![DECODED, CALL].contains(&row.headings[0].1);
        for row in rows.into_iter().filter(makes_ids) {
            let key = (row.about.subject, row.kind);
            self.checks.entry(key).or_insert_with(|| row.generator.check());
        }
    }

    /// Prints one JSON object per line, in the order of the tables.
    pub fn print(&self) {
        for table in TABLES {
            for row in &self.rows {
                if let Some(column) = row.headings.iter().position(|heading| heading.0 == table) {
                    println!("{}", self.result(row, column));
                }
            }
        }
    }

    fn result(&self, row: &Row, column: usize) -> Value {
        let about = &row.about;
        let (table, unit) = row.headings[column];
        let check = self.checks.get(&(about.subject, row.kind));
        let rounds: Vec<f64> = row.rounds.iter().map(|figures| figures[column]).collect();
        let role = match about.role {
            Role::Ours => "ours",
            Role::Peer => "peer",
            Role::Floor => "floor",
        };
        let mut result = json!({
            "kind": "result", "language": "Rust", "table": table, "subject": about.subject,
            "version": version(about.package), "role": role, "unit": unit, "rounds": rounds,
            "repeated": check.map(|check| check.repeated), "ids": check.map(|check| check.ids),
            "ahead_ms": check.map(|check| check.ahead_ms), "reads_clock": about.reads_clock,
            "note": about.note,
            // A stored UUID is another thing than a text that turns back into the ID.
            "comparable": unit != CALL || about.package != "uuid",
        });
        if about.role == Role::Ours {
            let first = column == 0;
            result["floor"] = json!(row.floor.filter(|_| first).as_slice());
            result["targets"] = if first { row.targets.clone() } else { json!([]) };
        }
        result
    }
}

/// The version of a crate in `Cargo.lock`, or an empty text if it is not there.
fn version(package: &str) -> &'static str {
    let after = include_str!("../Cargo.lock").split_once(&format!("name = \"{package}\"\nversion = \""));
    after.and_then(|(_, rest)| rest.split('"').next()).unwrap_or("")
}
