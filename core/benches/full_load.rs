//! How much of a layout's capacity full load reaches, and what an ID costs where nothing is used up.

use std::hint::black_box;
use std::time::Instant;

use polyflake::{Error, Snowflake};

const ROUNDS: usize = 9;
const TICKS: u32 = 500;
const IDS: u32 = 4_000_000;

fn main() -> Result<(), Error> {
    let twitter = Snowflake::builder().node(1).build()?;
    let wide = "timestamp:40|worker:2|sequence:22@1735689600000/1ms";
    let wide = Snowflake::builder().layout(wide).node(1).build()?;
    let mut share = Vec::new();
    let mut single = Vec::new();
    let mut batch = Vec::new();
    let mut buffer = vec![0; 1024];
    for _ in 0..ROUNDS {
        twitter.next_id()?;
        let start = Instant::now();
        for _ in 0..4096 * TICKS {
            black_box(twitter.next_id()?);
        }
        share.push(f64::from(TICKS) / start.elapsed().as_secs_f64() / 10.0);

        let start = Instant::now();
        for _ in 0..IDS {
            black_box(wide.next_id()?);
        }
        single.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(IDS));
        let start = Instant::now();
        for _ in 0..IDS / 1024 {
            wide.fill(black_box(&mut buffer))?;
        }
        batch.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(IDS));
    }
    println!("Rust, medians of {ROUNDS} interleaved rounds");
    println!("  full load on twitter     {:8.2} % of 4096 IDs a ms", median(share));
    println!("  next_id, 22-bit sequence {:8.2} ns an ID", median(single));
    println!("  fill of 1024             {:8.2} ns an ID", median(batch));
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
