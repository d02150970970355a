//! Lists the rows and answers ../../harness.py, which runs the rounds. `counters` uses this module too.

use std::io::stdin;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

pub fn unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    u64::try_from(since.as_micros()).expect("the time fits 64 bits")
}

/// Lists every row, or measures the row named by the arguments. Other rows create nothing.
pub struct Rows {
    wanted: Vec<String>,
}

impl Rows {
    pub fn of_arguments() -> Self {
        Self { wanted: env::args().skip(1).collect() }
    }

    /// Lists a row, with its `facts`, or answers the requests for it.
    pub fn add(&self, table: &str, subject: &str, facts: &str, answer: impl FnOnce()) {
        match &self.wanted[..] {
            [] => println!("{table}\t{subject}{facts}"),
            [it, name] if it == table && name == subject => answer(),
            _ => (),
        }
    }
}

/// Answers requests until the input ends: prints the figures of a round, or writes IDs in blocks of `block` IDs
/// (0: none).
pub fn answer<N>(
    mut it: N,
    round: impl Fn(&mut N) -> Vec<f64>,
    block: usize,
    threads: usize,
    ids: impl Fn(&mut N, usize) -> Vec<u64>,
) {
    for line in stdin().lines() {
        let line = line.expect("the harness writes text");
        let words: Vec<&str> = line.split(' ').collect();
        if let ["ids", count, file] = words[..] {
            if block == 0 {
                println!("0 1");
            } else {
                let words = ids(&mut it, count.parse().expect("a number"));
                println!("{block} {threads}");
                let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
                fs::write(file, bytes).expect("the file can be written");
                println!();
            }
        } else {
            let figures: Vec<String> = round(&mut it).iter().map(f64::to_string).collect();
            println!("{}", figures.join(" "));
        }
    }
}

/// Takes `ids` IDs as fast as possible, in blocks of `block` IDs, and reads the wall clock after each block.
pub fn blocks(ids: usize, block: usize, mut take: impl FnMut(&mut [u64])) -> Vec<u64> {
    let mut words = vec![0; ids / block * (block + 1)];
    for words in words.chunks_mut(block + 1) {
        take(&mut words[..block]);
        words[block] = unix_us();
    }
    words
}
