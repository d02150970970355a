//! Calls that wait for the store.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use polyflake::ErrorCode;
use polyflake_coordination::{Counter, CounterOptions};

use crate::servers::redis::Redis;
use crate::taker::{options, settings};

/// A segment that arrives while a call is waiting for a block has room for the block.
#[test]
fn a_block_takes_of_the_segment_that_comes() {
    let redis = Redis::new();
    let counter = options(&settings("orders", &[&redis.url()], &["step=100"])).open().unwrap();
    assert_eq!(counter.next_ids(9_u64).unwrap().len(), 9);
    redis.server.pause();
    // The next segment is requested now, but does not arrive.
    counter.next_ids(86_u64).unwrap();
    thread::scope(|scope| {
        let block = scope.spawn(|| counter.next_block(20_u64).unwrap());
        let deadline = Instant::now() + Duration::from_secs(60);
        while counter.stats().unwrap().waits == 0 {
            assert!(Instant::now() < deadline);
            thread::sleep(Duration::from_millis(5));
        }
        redis.server.resume();
        // Only the five remaining numbers are skipped.
        assert_eq!(block.join().unwrap(), 101);
    });
    assert_eq!(counter.stats().unwrap().skipped, 5);
    assert_eq!(counter.next_id(), Ok(121));
    counter.close();
}

/// A reservation whose reply was lost is found by a call that needs more numbers than were reserved.
#[test]
fn a_lost_reply_has_fewer_than_are_wanted_next() {
    for (step, first) in [("step=1", 1_u64), ("step=100", 20)] {
        let redis = Redis::new();
        // An attempt takes at most half a second.
        let url = format!("{}?ttl=3s", redis.url());
        let counter = options(&settings("orders", &[&url], &[step])).open().unwrap();
        let mut all = vec![counter.next_id().unwrap()];
        redis.server.pause();
        thread::scope(|scope| {
            // Redis carries out the request, but no one is listening any more.
            let one = scope.spawn(|| counter.next_ids(first).unwrap());
            thread::sleep(Duration::from_millis(800));
            let many = scope.spawn(|| counter.next_ids(300_u64).unwrap());
            let block = scope.spawn(|| counter.next_block(500_u64).unwrap());
            thread::sleep(Duration::from_millis(100));
            redis.server.resume();
            all.extend(one.join().unwrap());
            all.extend(many.join().unwrap());
            let first = block.join().unwrap();
            all.extend(first..first + 500);
        });
        all.extend(counter.next_ids(50_u64).unwrap());
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "{step}");
        // The store has handed out all of these numbers.
        assert!(all.last() <= Some(&counter.peek().unwrap()), "{step}: {:?}", counter.stats());
        assert!(counter.stats().unwrap().in_hand <= 10_000, "{step}: {:?}", counter.stats());
        counter.close();
    }
}

/// Even if a store starts refusing requests, callers still receive the numbers that this process has in hand.
#[test]
fn it_opens_while_numbers_are_in_hand() {
    let redis = Redis::new();
    let options = options(&settings("orders", &[&redis.url()], &["step=100"]));
    let counter = options.open().unwrap();
    assert_eq!(counter.next_ids(5_u64).unwrap().len(), 5);
    // The store is asked again, on a new connection, once a tenth of the numbers has been taken.
    redis.cli(&["CONFIG", "SET", "appendonly", "no"]);
    redis.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
    let left = usize::try_from(counter.stats().unwrap().in_hand).unwrap() - 2;
    assert_eq!(counter.next_ids(left).unwrap().len(), left);
    let error = counter.next_block(50_u64).unwrap_err();
    assert!(error.to_string().contains("append-only"), "{error}");
    let another = options.open().unwrap();
    assert_eq!(another.next_ids(2_u64).unwrap().len(), 2);
    assert_eq!(options.open().unwrap_err().code(), ErrorCode::CounterUnavailable);
    counter.close();
    another.close();
}

/// A waiting call finds out that its Counter was closed.
#[test]
fn a_close_amid_a_wait() {
    for step in ["step=1", "step=10", "step=auto"] {
        let redis = Redis::new();
        let url = format!("{}?ttl=3s", redis.url());
        let counter = options(&settings("orders", &[&url], &[step, "max_wait_ms=600000"])).open().unwrap();
        counter.next_id().unwrap();
        redis.server.pause();
        let before = counter.stats().unwrap().waits;
        thread::scope(|scope| {
            let waiting = [0, 1, 2, 3].map(|way| {
                let counter = &counter;
                scope.spawn(move || {
                    loop {
                        let result = match way {
                            0 => counter.next_id().map(drop),
                            1 => counter.next_ids(100_u64).map(drop),
                            2 => counter.next_block(100_u64).map(drop),
                            _ => counter.peek().map(drop),
                        };
                        if let Err(error) = result {
                            return error.code();
                        }
                    }
                })
            });
            let deadline = Instant::now() + Duration::from_secs(60);
            while counter.stats().unwrap().waits < before + 3 {
                assert!(Instant::now() < deadline);
                thread::sleep(Duration::from_millis(5));
            }
            counter.close();
            assert!(waiting.map(|thread| thread.join().unwrap()) == [ErrorCode::Closed; 4]);
        });
    }
}

/// This holds no matter how many calls wait, or what for.
#[test]
fn a_store_that_is_down_is_not_asked_all_the_time() {
    for step in ["step=1", "step=10"] {
        let mut redis = Redis::new();
        let options = options(&settings("orders", &[&redis.url()], &[step]));
        let patient = options.open().unwrap();
        // This opens at once, because the other is open.
        let counter = options.max_wait_ms(3_000_u64).open().unwrap();
        redis.server.kill();
        let listener = TcpListener::bind(("127.0.0.1", redis.port())).unwrap();
        let asked = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&asked);
        // This thread runs until the test program exits.
        thread::spawn(move || {
            for connection in listener.incoming() {
                drop(connection);
                seen.fetch_add(1, Ordering::Relaxed);
            }
        });
        thread::scope(|scope| {
            for way in 0..3 {
                let counter = &counter;
                scope.spawn(move || {
                    // The first calls use up the numbers in hand.
                    let result = (0..=30).try_for_each(|_| match way {
                        0 => counter.next_id().map(drop),
                        1 => counter.next_block(30_u64).map(drop),
                        _ => counter.peek().map(drop),
                    });
                    assert_eq!(result.unwrap_err().code(), ErrorCode::CounterUnavailable);
                });
            }
        });
        // No two attempts are less than a twentieth of a second apart. On a busy machine, there may be only one.
        let asked = asked.load(Ordering::Relaxed);
        assert!((1..=60).contains(&asked), "{asked} times");
        counter.close();
        patient.close();
    }
}

/// All calls share one thread, whatever they wait for.
#[test]
fn calls_that_are_awaited() {
    let redis = Redis::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let options = options(&settings("orders", &[&redis.url()], &["step=1"]));
        let counter = Arc::new(options.open_async().await.unwrap());
        redis.server.pause();
        let waiting: Vec<_> = (0..500)
            .map(|way| {
                let counter = Arc::clone(&counter);
                tokio::spawn(async move {
                    match way % 4 {
                        0 => vec![counter.next_id_async().await.unwrap()],
                        1 => {
                            let mut numbers = vec![0; 3];
                            counter.fill_async(&mut numbers).await.unwrap();
                            numbers
                        }
                        2 => {
                            let first = counter.next_block_async(5_u64).await.unwrap();
                            (first..first + 5).collect()
                        }
                        _ => {
                            counter.peek_async().await.unwrap();
                            Vec::new()
                        }
                    }
                })
            })
            .collect();
        wait_for_waits(&counter, 375).await;
        redis.server.resume();
        let mut numbers = Vec::new();
        for call in waiting {
            numbers.extend(call.await.unwrap());
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=125 * 9).collect::<Vec<u64>>());
        counter.raise_async(5_000_u64).await.unwrap();
        assert_eq!(counter.next_id_async().await, Ok(5_001));
        // Waiting calls return when the Counter is closed, or after the maximum wait.
        redis.server.pause();
        let closing = Arc::clone(&counter);
        let waits = tokio::spawn(async move { closing.next_id_async().await });
        wait_for_waits(&counter, 377).await;
        let other = options.open_async().await.unwrap();
        counter.close_later();
        assert_eq!(waits.await.unwrap().unwrap_err().code(), ErrorCode::Closed);
        redis.server.resume();
        // The other Counter's calls continue.
        assert!(other.next_id_async().await.unwrap() > 5_001);
        let short = CounterOptions::new("orders").store("redis://127.0.0.1:1/0").max_wait_ms(50_u64);
        assert_eq!(short.open_async().await.unwrap_err().code(), ErrorCode::CounterUnavailable);
        // No one uses that Counter, but it may still be asking the store. Another one is not refused for having
        // different options.
        let another = short.step(7_u64).open_async().await;
        assert_eq!(another.unwrap_err().code(), ErrorCode::CounterUnavailable);
    });
}

async fn wait_for_waits(counter: &Counter, waits: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while counter.stats().unwrap().waits < waits {
        assert!(Instant::now() < deadline, "{:?}", counter.stats());
        tokio::task::yield_now().await;
    }
}
