//! The tables, their subjects, and the rounds in which the subjects take turns.

use std::any::Any;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::measure::{Check, Measured};

pub const ONE: &str = "one number, one thread";
pub const TWO: &str = "one number, two threads";
pub const BATCHES: &str = "batch of 1,024";
pub const KEYS: &str = "one of many keys";
pub const ASKED_BATCHES: &str = "batch of 1,024 from a store";
pub const ASKED_THREADS: &str = "each number from a store, 16 threads";
pub const REDIS: &str = "each number from Redis";
pub const POSTGRES: &str = "each number from PostgreSQL";
pub const MARIADB: &str = "each number from MariaDB";
pub const SQLITE: &str = "each number from SQLite";
pub const ETCD: &str = "each number from etcd";
/// How many keys are counted: as many as fit in a processor's caches, and far more.
pub const FEW: u64 = 1_000;
pub const MANY: u64 = 10_000_000;

const TABLES: [&str; 11] =
    [ONE, TWO, BATCHES, KEYS, ASKED_BATCHES, ASKED_THREADS, REDIS, POSTGRES, MARIADB, SQLITE, ETCD];

/// A subject in a table.
pub struct Row {
    table: &'static str,
    subject: String,
    version: String,
    note: &'static str,
    warm_up: Duration,
    rounds: Vec<f64>,
    check: Option<Check>,
    measured: Box<dyn Measured>,
}

impl Row {
    pub fn note(&mut self, note: &'static str) -> &mut Self {
        self.note = note;
        self
    }

    pub fn warm_up(&mut self, time: Duration) -> &mut Self {
        self.warm_up = time;
        self
    }
}

#[derive(Default)]
pub struct Suite {
    rows: Vec<Row>,
    missing: Vec<Value>,
    /// Dropped after the rows, which use them.
    kept: Vec<Box<dyn Any>>,
}

impl Suite {
    pub fn add(
        &mut self,
        table: &'static str,
        subject: &str,
        version: &str,
        measured: impl Measured + 'static,
    ) -> &mut Row {
        self.rows.push(Row {
            table,
            subject: subject.into(),
            version: version.into(),
            note: "",
            warm_up: Duration::ZERO,
            rounds: Vec::new(),
            check: None,
            measured: Box::new(measured),
        });
        self.rows.last_mut().expect("it was just added")
    }

    pub fn missing(&mut self, subject: &str, why: &str) {
        self.missing.push(json!({
            "kind": "missing", "language": "Counters", "subject": subject, "version": "", "why": why,
        }));
    }

    /// Keeps a server until the end.
    pub fn keep(&mut self, server: impl Any) {
        self.kept.push(Box::new(server));
    }

    /// Measures everything, table by table, each in rounds.
    pub fn run(&mut self, rounds: usize) {
        for table in TABLES {
            let mut rows: Vec<_> = self.rows.iter_mut().filter(|row| row.table == table).collect();
            for row in &mut rows {
                let start = Instant::now();
                row.measured.round();
                while start.elapsed() < row.warm_up {
                    row.measured.round();
                }
            }
            for round in 1..=rounds {
                eprintln!("Counters: {table}, round {round} of {rounds}");
                for row in &mut rows {
                    row.rounds.push(row.measured.round());
                }
            }
            for row in rows {
                row.check = row.measured.check();
            }
        }
    }

    /// Prints one JSON object per line, in the order of the tables.
    pub fn print(&self) {
        for table in TABLES {
            for row in self.rows.iter().filter(|row| row.table == table) {
                println!("{}", self.result(row));
            }
        }
        for missing in &self.missing {
            println!("{missing}");
        }
    }

    fn result(&self, row: &Row) -> Value {
        let mut result = json!({
            "kind": "result", "language": "Counters", "table": row.table, "subject": row.subject,
            "rounds": row.rounds, "repeated": row.check.map(|check| check.repeated),
            "ids": row.check.map(|check| check.numbers),
        });
        // cases.toml has the others.
        for (key, text) in [("version", &*row.version), ("note", row.note)] {
            if !text.is_empty() {
                result[key] = text.into();
            }
        }
        result
    }
}
