//! The cost of an ID with Polyflake and with other Snowflake crates. ../harness.py tells this program what to measure.

mod floors;
mod measure;
mod ours;
mod peers;
mod public_ids;
mod rows;
mod suite;

use std::hint::black_box;

use measure::BATCH;

/// Twitter's epoch, in Unix ms. The peers use it too, so that all IDs except those with wide layouts decode
/// in the same way.
const TWITTER_EPOCH_MS: u64 = 1_288_834_974_657;

/// IDs with Twitter's layout.
fn ids_to_decode() -> [u64; BATCH] {
    std::array::from_fn(|n| 1_541_815_603_606_036_480 + (n as u64) * 0x12_3456_7891)
}

/// Decodes these IDs in turn, into the time, the node and the sequence number.
fn some_ids(decode: impl Fn(u64) -> [u64; 3]) -> impl FnMut() -> u64 {
    let ids = ids_to_decode();
    let mut n = 0;
    move || {
        n = (n + 1) % BATCH;
        let [time, node, sequence] = decode(black_box(ids[n]));
        time ^ node ^ sequence
    }
}

fn main() {
    // A peer that panics in one of two threads would leave the other waiting.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::exit(1);
    }));
    let mut suite = suite::Suite(rows::Rows::of_arguments());
    ours::add(&mut suite);
    peers::add(&mut suite);
    floors::add(&mut suite);
    public_ids::add(&mut suite);
}
