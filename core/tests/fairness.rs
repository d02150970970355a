//! However many threads ask for more than a layout can give, no call fails and no thread starves.
#![cfg(all(not(loom), not(miri)))]

use std::thread;
use std::time::{Duration, Instant};

use polyflake::Snowflake;

const THREADS: usize = 32;

/// How many IDs each thread got, asking for `batch` at a time for so long; and whether they asked for all that there were.
/// On a busy machine threads that are not running ask for nothing.
fn ask(node: u64, layout: &str, batch: usize, lasts: Duration) -> (Vec<usize>, bool) {
    let ids = Snowflake::builder().layout(layout).node(node).build().unwrap();
    let start = Instant::now();
    let end = start + lasts;
    let got: Vec<usize> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let (mut got, mut ids_of_call) = (0, vec![0; batch]);
                    while got == 0 || Instant::now() < end {
                        if batch == 1 {
                            ids.next_id().unwrap();
                        } else {
                            ids.fill(&mut ids_of_call).unwrap();
                        }
                        got += batch;
                    }
                    got
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let ticks = start.elapsed().as_millis() / u128::from(ids.layout().tick_ms());
    let there_were = ticks * u128::from(ids.layout().ids_per_tick());
    let all_were_asked_for = got.iter().sum::<usize>() as u128 * 10 >= there_were * 9;
    (got, all_were_asked_for)
}

/// For a thousand ticks at least: whoever runs first in a tick gets most of it, which evens out over many.
fn over_ask(seconds: u64) {
    for (node, layout, at_least) in [(60, "twitter", 1), (61, "sonyflake", 10), (62, "yitter", 1)] {
        for batch in [1, 100] {
            let (got, over_asked) = ask(node, layout, batch, Duration::from_secs(seconds.max(at_least)));
            let even = got.iter().sum::<usize>() / THREADS;
            let (least, most) = (got.iter().min().unwrap(), got.iter().max().unwrap());
            println!("{layout}, {batch} a call: {even} IDs a thread, from {least} to {most}");
            assert!(!over_asked || least * 4 >= even, "{layout}: {got:?}");
        }
    }
}

#[test]
fn no_thread_starves() {
    over_ask(1);
}

#[test]
#[ignore = "long: `make soak` runs it"]
fn no_thread_starves_in_ten_seconds() {
    over_ask(10);
}
