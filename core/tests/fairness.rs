//! No matter how many threads ask for more IDs than a layout can provide, no call fails and no thread
//! starves.
#![cfg(all(not(loom), not(miri)))]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use polyflake::Snowflake;

const THREADS: usize = 32;
/// How long a thread may go without its full share. A thread that starves never catches up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns true if every thread, asking for `batch` IDs at a time, gets at least a quarter of an even share,
/// after `at_least` or later: on a busy machine, a thread may start late or not run for a while.
fn each_gets_its_share(node: u64, layout: &str, batch: usize, at_least: Duration) -> bool {
    let ids = Snowflake::builder().layout(layout).node(node).max_wait_ms(u32::MAX).build().unwrap();
    let got = [const { AtomicUsize::new(0) }; THREADS];
    let is_over = AtomicBool::new(false);
    let start = Instant::now();
    thread::scope(|scope| {
        for got in &got {
            scope.spawn(|| {
                let mut ids_of_call = vec![0; batch];
                while !is_over.load(Ordering::Relaxed) {
                    if batch == 1 {
                        ids.next_id().unwrap();
                    } else {
                        ids.fill(&mut ids_of_call).unwrap();
                    }
                    got.fetch_add(batch, Ordering::Relaxed);
                }
            });
        }
        loop {
            thread::sleep(Duration::from_millis(100));
            let shares: Vec<_> = got.iter().map(|got| got.load(Ordering::Relaxed)).collect();
            let even = shares.iter().sum::<usize>() / THREADS;
            let least = shares.iter().min().unwrap();
            let is_even = even > 0 && least * 4 >= even;
            if start.elapsed() >= at_least && (is_even || start.elapsed() > at_least + PATIENCE) {
                is_over.store(true, Ordering::Relaxed);
                println!(
                    "{layout}, {batch} a call, {:?}: {even} IDs a thread, least {least}",
                    start.elapsed()
                );
                return is_even;
            }
        }
    })
}

/// Runs for at least a thousand ticks. The thread that runs first in a tick gets most of it, which evens out
/// over many ticks.
fn over_ask(seconds: u64) {
    for (node, layout, at_least) in [(60, "twitter", 1), (61, "sonyflake", 10), (62, "yitter", 1)] {
        for batch in [1, 100] {
            let lasts = Duration::from_secs(seconds.max(at_least));
            assert!(each_gets_its_share(node, layout, batch, lasts), "{layout}, {batch} a call");
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
