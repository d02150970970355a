//! The cost of an ID with Polyflake and with other Snowflake crates, in interleaved rounds of one run: JSON
//! Lines on standard output, progress on standard error.

mod floors;
mod measure;
mod ours;
mod peers;
mod public_ids;
mod suite;

use std::hint::black_box;
use std::process::ExitCode;

use measure::BATCH;

/// Twitter's epoch, in Unix ms. The peers use it too, so that all IDs but those of wide layouts decode the
/// same way.
const TWITTER_EPOCH_MS: u64 = 1_288_834_974_657;

/// The Unix ms in an ID with 10 node and 12 sequence bits.
fn twitter_time(id: u64) -> i64 {
    i64::try_from((id >> 22) + TWITTER_EPOCH_MS).expect("at most 42 bits of time")
}

/// IDs of Twitter's layout.
fn ids_to_decode() -> [u64; BATCH] {
    std::array::from_fn(|n| 1_541_815_603_606_036_480 + (n as u64) * 0x12_3456_7891)
}

/// Takes these IDs apart in turn, into the time, the node and the sequence number.
fn some_ids(decode: impl Fn(u64) -> [u64; 3]) -> impl FnMut() -> u64 {
    let ids = ids_to_decode();
    let mut n = 0;
    move || {
        n = (n + 1) % BATCH;
        let [time, node, sequence] = decode(black_box(ids[n]));
        time ^ node ^ sequence
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds = match &arguments[..] {
        [] => Some(9),
        [option, rounds] if option == "--rounds" => rounds.parse().ok().filter(|rounds| *rounds > 0),
        _ => None,
    };
    let Some(rounds) = rounds else {
        eprintln!("usage: polyflake-benchmarks [--rounds N]");
        return ExitCode::from(2);
    };
    // A peer that panics in one thread of two would leave the other waiting.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        std::process::exit(1);
    }));
    let mut suite = suite::Suite::default();
    ours::add(&mut suite);
    peers::add(&mut suite);
    floors::add(&mut suite);
    public_ids::add(&mut suite);
    suite.run(rounds);
    suite.print();
    ExitCode::SUCCESS
}
