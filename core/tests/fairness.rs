//! However many threads ask for more than a layout can give, no call fails and no thread starves.
#![cfg(all(not(loom), not(miri)))]

use std::thread;
use std::time::{Duration, Instant};

use polyflake::Snowflake;

const THREADS: usize = 32;

/// How many IDs each thread got, asking for `batch` at a time for so long.
fn ask(node: u64, layout: &str, batch: usize, lasts: Duration) -> Vec<usize> {
    let ids = Snowflake::builder().layout(layout).node(node).build().unwrap();
    let end = Instant::now() + lasts;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    let (mut got, mut ids_of_call) = (0, vec![0; batch]);
                    while Instant::now() < end {
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
    })
}

/// For so many ticks: whoever runs first in a tick gets most of it, which evens out over many.
fn over_ask(ticks: u32) {
    for (node, layout, tick_ms) in [(60, "twitter", 1), (61, "sonyflake", 10), (62, "yitter", 1)] {
        for batch in [1, 100] {
            let got = ask(node, layout, batch, Duration::from_millis(tick_ms) * ticks);
            let even = got.iter().sum::<usize>() / THREADS;
            let (least, most) = (got.iter().min().unwrap(), got.iter().max().unwrap());
            println!("{layout}, {batch} a call: {even} IDs a thread, from {least} to {most}");
            assert!(least * 4 >= even, "{layout}: {got:?}");
        }
    }
}

#[test]
fn no_thread_starves() {
    over_ask(1000);
}

#[test]
#[ignore = "long: `make soak` runs it"]
fn no_thread_starves_in_ten_thousand_ticks() {
    over_ask(10_000);
}
