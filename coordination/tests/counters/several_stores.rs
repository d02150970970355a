//! Several stores for one counter, like Flickr's ticket servers.

use std::time::{Duration, Instant};

use polyflake::ErrorCode;
use polyflake_coordination::Counter;

use crate::backend::{Backend, Sqlite};
use crate::journals::{Holder, Journals};
use crate::proxy::{Conduct, Proxy};
use crate::servers::redis::Redis;
use crate::taken_numbers::TakenNumbers;
use crate::taker::{Taker, begin, options, settings, start};

/// An attempt takes at most half a second.
fn url(redis: &Redis) -> String {
    format!("{}?ttl=3s", redis.url())
}

fn of(stores: &[&Redis]) -> String {
    let urls: Vec<_> = stores.iter().map(|redis| url(redis)).collect();
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    settings("tickets", &urls, &["step=10"])
}

/// Returns these settings with a wait that ends while a store is down.
fn impatient(settings: &str) -> String {
    format!("{settings}\nmax_wait_ms=3000")
}

/// Returns how many numbers come from the first store, and how many from the second.
fn parts(numbers: &[u64]) -> (usize, usize) {
    let of_first = numbers.iter().filter(|&number| number % 2 == 0).count();
    (of_first, numbers.len() - of_first)
}

/// Takes numbers until both stores have given some.
fn take_from_both(taker: &mut Taker) {
    let (mut of_first, mut of_second) = (0, 0);
    while of_first == 0 || of_second == 0 {
        let more = parts(&taker.take(100));
        (of_first, of_second) = (of_first + more.0, of_second + more.1);
    }
}

#[test]
fn one_is_killed_and_comes_back() {
    let (mut first, second) = (Redis::new(), Redis::new());
    let journals = Journals::new();
    let settings = of(&[&first, &second]);
    let mut takers = [start(&journals, &settings), start(&journals, &settings)];
    for taker in &mut takers {
        take_from_both(taker);
    }
    first.server.kill();
    let marks = takers.each_ref().map(|taker| taker.mark());
    for taker in &mut takers {
        // First come the numbers in hand from the first store, then the other store's numbers.
        let (of_first, of_second) = parts(&taker.take(200));
        assert!(of_first <= 20 && of_second >= 180);
        assert_eq!(parts(&taker.take(100)), (0, 100));
    }
    // A process that starts while one store is down.
    let mut third = start(&journals, &settings);
    assert_eq!(parts(&third.take(100)), (0, 100));
    first.server.start_again();
    for (taker, mark) in takers.iter_mut().zip(marks) {
        taker.wait_for(mark, "event store_reachable");
        take_from_both(taker);
        assert!(taker.errors().is_empty(), "{}", taker.text());
    }
    // A raise applies to both stores.
    third.does("raise 100000");
    assert!(third.take(50).into_iter().all(|number| number > 100_000));
    TakenNumbers::of(&journals).unique(1_150);
    for taker in &mut takers {
        taker.finish();
    }
}

/// Returns the error of a process that gives up, once it says so: on a busy machine, the last attempt may end early.
fn refused_with(journals: &Journals, settings: &str, says: &str) -> String {
    for _ in 0..20 {
        let error = begin(journals, settings).why_refused();
        if error.contains(says) {
            return error;
        }
        assert!(error.contains("no answer") || error.contains("gave no number"), "{error}");
    }
    panic!("no error says {says:?}")
}

/// A store that refuses requests is skipped, just like one that is down, even by a process that has just started.
#[test]
fn one_that_refuses_is_passed_over() {
    let mut stores = [Redis::new(), Redis::new()];
    let steps = ["step=10", "step=1"];
    let journals = steps.map(|_| Journals::new());
    let of = |stores: &[Redis; 2], step: &str, parameters: &str| {
        let [first, second] = stores.each_ref().map(|redis| url(redis) + parameters);
        settings(step, &[&first, &second], &[step])
    };
    let take = |stores: &[Redis; 2], parameters: &str, other: Option<usize>| {
        for (step, journals) in steps.iter().zip(&journals) {
            let mut taker = start(journals, &of(stores, step, parameters));
            let (of_first, of_second) = parts(&taker.take(40));
            assert!(other != Some(0) || of_second == 0, "{}", taker.text());
            assert!(other != Some(1) || of_first == 0, "{}", taker.text());
            taker.finish();
        }
    };
    take(&stores, "", None);
    for other in [1, 0] {
        let refuses = &stores[1 - other];
        refuses.cli(&["CONFIG", "SET", "requirepass", "another"]);
        for _ in 0..3 {
            take(&stores, "", Some(other));
        }
        // A new counter needs all of its stores.
        let settings = of(&stores, "step=10", "").replacen("step=10", "new", 1);
        let error = refused_with(&journals[0], &impatient(&settings), "NOAUTH");
        assert!(error.starts_with("counter_unavailable "), "{error}");
        refuses.cli(&["-a", "another", "CONFIG", "SET", "requirepass", ""]);
    }
    // The first store may have lost writes.
    stores[0].server.kill();
    stores[0].server.start_again();
    for _ in 0..3 {
        take(&stores, "&after_loss=refuse", Some(1));
    }
    for journals in &journals {
        TakenNumbers::of(journals).unique(400);
    }
}

/// This holds whichever process removed it, and whether or not the earlier Counter was closed.
#[test]
fn one_that_was_removed_is_opened_again() {
    let stores = [Sqlite::begin(), Sqlite::begin()];
    let urls = stores.each_ref().map(Backend::url);
    let urls: Vec<_> = urls.iter().map(String::as_str).collect();
    let journals = Journals::new();
    let begun = Instant::now();
    let in_time = || assert!(begun.elapsed() < Duration::from_secs(240));
    let ends = |counter: &Counter| loop {
        in_time();
        match counter.next_id() {
            Ok(number) => assert!(number > 2),
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::CounterUnavailable);
                assert!(error.to_string().contains("it was removed from "), "{error}");
                break;
            }
        }
    };
    for (count, step) in [(1, "step=10"), (2, "step=10"), (1, "step=1"), (2, "step=1")] {
        let settings = settings(&format!("{count} {step}"), &urls[..count], &[step]);
        let by_another = || {
            let mut another = start(&journals, &settings);
            another.does("remove");
        };
        // Takes a first number, which only a new counter returns, and one from the other store, if there are two. If a
        // store's reply comes too late, its first numbers are skipped.
        let begins = |counter: &Counter| {
            let first = counter.next_id().unwrap();
            assert!(first <= 2);
            while counter.next_id().unwrap() % 2 == first % 2 {
                in_time();
            }
        };
        let open = || options(&settings).open().unwrap();
        let old = open();
        begins(&old);
        assert!(old.remove().unwrap());
        let new = open();
        begins(&new);
        ends(&old);
        by_another();
        ends(&new);
        let newer = open();
        begins(&newer);
        by_another();
        // No one uses this Counter any more, so its task has to find out on its own.
        drop(newer);
        let newest = loop {
            in_time();
            match options(&settings).open().and_then(|newest| Ok((newest.next_id()?, newest))) {
                // The task has not found out yet.
                Err(error) => assert!(error.to_string().contains("it was removed from "), "{error}"),
                Ok((number, newest)) if number <= 2 => break newest,
                Ok(_) => {}
            }
        };
        ends(&old);
        ends(&new);
        old.close();
        new.close();
        // The other Counters do not affect it.
        newest.next_ids(40_u64).unwrap();
        newest.close();
    }
}

#[test]
fn both_are_down() {
    let (mut first, mut second) = (Redis::new(), Redis::new());
    let journals = Journals::new();
    let mut taker = start(&journals, &of(&[&first, &second]));
    taker.take(50);
    first.server.kill();
    second.server.kill();
    let error = taker.take_until_timeout(500);
    assert!(error.starts_with("counter_unavailable "), "{error}");
    second.server.start_again();
    taker.take(100);
    first.server.start_again();
    taker.take(100);
    TakenNumbers::of(&journals).unique(250);
}

#[test]
fn others_than_it_began_with_are_refused() {
    let (first, second, third) = (Redis::new(), Redis::new(), Redis::new());
    let journals = Journals::new();
    let mut taker = start(&journals, &of(&[&first, &second]));
    taker.take(100);
    let place = |redis: &Redis, has: u64, of: u64, given: u64, count: u64| {
        let port = redis.port();
        let is = format!(":{port}/0 is store {has} of {of} of it, and is given as store {given} of {count}");
        assert!(of != count || has != given);
        is
    };
    for (stores, says) in [
        (&[&second, &first][..], [place(&first, 1, 2, 2, 2), place(&second, 2, 2, 1, 2)]),
        (&[&first, &second, &third], [place(&first, 1, 2, 1, 3), place(&second, 2, 2, 2, 3)]),
        (&[&third, &first, &second], [place(&first, 1, 2, 2, 3), place(&second, 2, 2, 3, 3)]),
        (&[&first], [place(&first, 1, 2, 1, 1), "-".into()]),
        (&[&second], [place(&second, 2, 2, 1, 1), "-".into()]),
    ] {
        let error = begin(&journals, &of(stores)).why_refused();
        assert!(error.starts_with("invalid_option "), "{error}");
        // Either of the two may have answered first.
        assert!(says.iter().any(|says| error.contains(says)), "{error}, not {says:?}");
        assert!(error.contains("every process must name the same stores in the same order"), "{error}");
        assert_eq!(third.cli(&["DBSIZE"]), "0");
    }
    taker.take(100);
    TakenNumbers::of(&journals).unique(200);
}

/// Programs open different lists of stores, all empty, at the same instant. At most one of them succeeds in creating
/// the counter. If their first store is the same, exactly one does, since that store decides.
#[test]
fn lists_that_differ_are_opened_at_once() {
    let all = [Redis::new(), Redis::new(), Redis::new()];
    let [a, b, c] = all.each_ref();
    for lists in [[&[a, b][..], &[a, b, c]], [&[a, b], &[b, a]], [&[a], &[a, b]]].repeat(4) {
        for redis in &all {
            redis.cli(&["FLUSHALL"]);
        }
        let journals = Journals::new();
        let mut takers = lists.map(|stores| begin(&journals, &of(stores)));
        let mut taken = 0;
        for taker in &mut takers {
            match taker.opened() {
                Ok(()) => taken += taker.take(100).len(),
                Err(error) => assert!(error.starts_with("invalid_option "), "{error}"),
            }
        }
        let has_one_first = lists[0][0].port() == lists[1][0].port();
        assert!(taken == 100 || (taken == 0 && !has_one_first), "{taken}");
        TakenNumbers::of(&journals).unique(taken);
    }
}

/// The other stores may already have handed out the numbers that a store without the counter would hand out.
#[test]
fn a_third_is_not_begun_while_nobody_asked_the_others() {
    let (first, second, third) = (Redis::new(), Redis::new(), Redis::new());
    let journals = Journals::new();
    let mut taker = start(&journals, &of(&[&first, &second]));
    taker.take(100);
    first.server.pause();
    second.server.pause();
    let error = begin(&journals, &impatient(&of(&[&first, &second, &third]))).why_refused();
    assert!(error.starts_with("counter_unavailable "), "{error}");
    assert_eq!(third.cli(&["DBSIZE"]), "0");
    // One store answers, and has a different counter.
    second.server.resume();
    let error = begin(&journals, &of(&[&first, &second, &third])).why_refused();
    assert!(error.starts_with("invalid_option "), "{error}");
    first.server.resume();
    assert_eq!(third.cli(&["DBSIZE"]), "0");
    taker.take(100);
    TakenNumbers::of(&journals).unique(200);
}

/// The counter starts once all of its stores have been reached.
#[test]
fn a_new_counter_waits_for_all_its_stores() {
    let (first, mut second) = (Redis::new(), Redis::new());
    let journals = Journals::new();
    second.server.kill();
    let settings = of(&[&first, &second]);
    let says = "none of its stores has it yet; it is created once all of them answer: ";
    let error = refused_with(&journals, &impatient(&settings), says);
    assert!(error.starts_with("counter_unavailable "), "{error}");
    let mut waits = begin(&journals, &settings);
    waits.wait_for(Holder::start(), "event store_unreachable");
    second.server.start_again();
    waits.wait_for(Holder::start(), "open");
    // One of the stores may start supplying numbers a little later.
    while parts(&waits.take(10)).0 == 0 {}
    while parts(&waits.take(10)).1 == 0 {}
    TakenNumbers::of(&journals).unique(20);
}

/// Other processes might still reach the store that is down here and continue, so the counter is not removed.
#[test]
fn it_is_removed_once_all_its_stores_answer() {
    let (first, second) = (Redis::new(), Redis::new());
    let way = Proxy::new(second.port(), 1);
    let of = |second: &str| options(&settings("tickets", &[&url(&first), second], &["step=10"]));
    let user = of(&url(&second)).open().unwrap();
    user.next_ids(40_u64).unwrap();
    let through_proxy = of(&format!("redis://127.0.0.1:{}/0?ttl=3s", way.port()));
    let _patient = through_proxy.open().unwrap();
    // This opens at once, because the other is open.
    let remover = through_proxy.max_wait_ms(5_000_u64).open().unwrap();
    way.behave(Conduct::Silent);
    let error = remover.remove().unwrap_err();
    assert_eq!(error.code(), ErrorCode::CounterUnavailable, "{error}");
    assert!(parts(&user.next_ids(100_u64).unwrap()).1 > 0);
    way.behave(Conduct::Good);
    let begun = Instant::now();
    let is_removed = loop {
        match remover.remove() {
            Ok(was_there) => break was_there,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(60), "{error}"),
        }
    };
    assert!(is_removed);
    while user.next_id().is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}

/// A store that is down is asked less and less often, and no call waits for it.
#[test]
fn with_a_step_of_1_calls_go_to_the_store_that_answers() {
    let (first, mut second) = (Redis::new(), Redis::new());
    let urls = [first.url(), format!("{}?ttl=60s", second.url())];
    let settings = settings("tickets", &[&urls[0], &urls[1]], &["step=1"]);
    let counter = options(&settings).open().unwrap();
    let mut taken: Vec<_> = (0..20).map(|_| counter.next_id().unwrap()).collect();
    second.server.kill();
    // This is long enough for the pauses between attempts to grow.
    let begun = Instant::now();
    let in_time = || assert!(begun.elapsed() < Duration::from_secs(90));
    // If calls waited for the other store's next attempt, 200 of them would take minutes.
    while begun.elapsed() < Duration::from_secs(8) || taken.len() < 200 {
        taken.push(counter.next_id().unwrap());
        in_time();
    }
    second.server.start_again();
    while parts(&taken[taken.len() - 1..]).0 == 1 {
        taken.push(counter.next_id().unwrap());
        in_time();
    }
    let count = taken.len();
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), count);
}
