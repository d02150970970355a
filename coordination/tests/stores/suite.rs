//! What any store must do. `all` runs it on one store that is fresh; a store of your own runs it the same way.

use std::slice::from_ref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use polyflake_coordination::{
    Claim, Listing, NodeRecord, Outcome, Put, Space, SpaceRecord, Store, StoreError,
};

use super::servers::Server;

/// Opens one more client of the same store.
pub(crate) type Open<'a> = &'a (dyn Fn() -> Box<dyn Store> + Sync);

/// What differs between stores.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// Whether an empty store is new: not one that can forget.
    pub(crate) is_new: bool,
}

/// Runs every history.
pub(crate) fn all(open: Open<'_>, kind: Kind) {
    nothing_there(open, kind);
    the_record_of_a_space(open);
    the_record_of_a_node(open);
    another_space_record(open);
    spaces_are_apart(open);
    the_ends_of_the_ranges(open);
    labels(open);
    unusual_namespaces(open);
    many_nodes(open);
    one_of_many_wins(open);
    one_of_many_makes_the_space(open);
    a_fence_ends_what_was_before(open);
    a_call_that_is_dropped(open);
}

/// Runs a call, as the keeper's thread does.
pub(crate) fn block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn space(namespace: &str) -> Space {
    Space {
        namespace: namespace.into(),
        epoch_ms: 1_288_834_974_657,
        tick_ms: 1,
        timestamp_bits: 41,
        timestamp_shift: 22,
        sequence_bits: 12,
        sequence_shift: 0,
    }
}

pub(crate) fn token(digit: u64) -> String {
    format!("{digit:032x}")
}

pub(crate) fn node(node: u64, holder: u64, reserved_until: u64) -> NodeRecord {
    NodeRecord {
        node,
        token: token(holder),
        expires_ms: 1_790_000_000_000 + holder,
        reserved_until,
        label: format!("host-{holder}/1234"),
        since_ms: 1_780_000_000_000 + holder,
    }
}

/// Two clients with a space's record in place.
pub(crate) struct Prepared {
    pub(crate) space: Space,
    pub(crate) record: SpaceRecord,
    pub(crate) store: Box<dyn Store>,
}

/// Writes a space's record.
pub(crate) async fn prepare(open: Open<'_>, space: Space) -> Prepared {
    let mut store = open();
    let listing = retry(&mut store, async |store| store.list(&space).await).await;
    let record = SpaceRecord { incarnation: listing.incarnation, lead_ms: 60_000, fence: 77 };
    assert_eq!(listing.space, None);
    if !retry(&mut store, async |store| store.put_space(&space, None, &record).await).await {
        // It was written by a try that had no answer.
        let there = retry(&mut store, async |store| store.list(&space).await).await.space;
        assert_eq!(there.as_ref(), Some(&record));
    }
    Prepared { space, record, store }
}

impl Prepared {
    pub(crate) async fn put(&mut self, expected: Option<&NodeRecord>, new: &NodeRecord) -> Outcome {
        let claim = expected.map(NodeRecord::claim);
        let put = self.store.put_node(&self.space, &self.record, claim.as_ref(), new).await.unwrap();
        assert_near_now(put.now_ms);
        put.outcome
    }

    pub(crate) async fn list(&mut self) -> Listing {
        let mut listing = self.store.list(&self.space).await.unwrap();
        listing.nodes.sort_by_key(|node| node.node);
        listing
    }
}

/// As the keeper: a store that is busy is asked again.
pub(crate) async fn retry<T>(
    store: &mut Box<dyn Store>,
    mut call: impl AsyncFnMut(&mut Box<dyn Store>) -> Result<T, StoreError>,
) -> T {
    for _ in 0..600 {
        match call(store).await {
            Ok(value) => return value,
            Err(StoreError::Unreachable(_)) => {
                store.disconnect();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    panic!("unreachable for too long");
}

/// The servers have this host's clock; some say only the second.
fn assert_near_now(ms: u64) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    let now = u64::try_from(now).unwrap();
    assert!(ms.abs_diff(now) < 120_000, "the store says {ms}, here it is {now}");
}

fn nothing_there(open: Open<'_>, kind: Kind) {
    block(async {
        let (mut store, space) = (open(), space("nothing-there"));
        let claim = Claim { token: token(1), reserved_until: 5 };
        for _ in 0..2 {
            // Asking makes nothing.
            let listing = store.list(&space).await.unwrap();
            assert_eq!((listing.space, listing.is_new, listing.nodes), (None, kind.is_new, vec![]));
            assert!(!listing.incarnation.is_empty());
            assert_near_now(listing.now_ms);
            let under = SpaceRecord { incarnation: listing.incarnation.clone(), lead_ms: 1, fence: 0 };
            for expected in [None, Some(&claim)] {
                let put = store.put_node(&space, &under, expected, &node(1, 1, 9)).await.unwrap();
                assert_eq!(put.outcome, Outcome::OtherSpace);
            }
            assert!(!store.put_space(&space, Some(&under), &under).await.unwrap());
            let gone = SpaceRecord { incarnation: "another".into(), ..under };
            assert!(!store.put_space(&space, None, &gone).await.unwrap());
        }
        let mut prepared = prepare(open, space).await;
        let listing = prepared.list().await;
        assert_eq!((listing.space.as_ref(), listing.is_new), (Some(&prepared.record), false));
        // What a later space finds.
        let listing = store.list(&self::space("later")).await.unwrap();
        assert_eq!((listing.space, listing.is_new), (None, false));
    });
}

fn the_record_of_a_space(open: Open<'_>) {
    block(async {
        let Prepared { space, record, mut store } = prepare(open, space("space-record")).await;
        let next = SpaceRecord { lead_ms: 90_000, fence: 1_000, ..record.clone() };
        assert!(!store.put_space(&space, None, &next).await.unwrap());
        for wrong in [
            SpaceRecord { incarnation: "another".into(), ..record.clone() },
            SpaceRecord { lead_ms: 60_001, ..record.clone() },
            SpaceRecord { fence: 78, ..record.clone() },
        ] {
            assert!(!store.put_space(&space, Some(&wrong), &next).await.unwrap(), "{wrong:?}");
        }
        let elsewhere = SpaceRecord { incarnation: "another".into(), ..next.clone() };
        assert!(!store.put_space(&space, Some(&record), &elsewhere).await.unwrap());
        assert_eq!(store.list(&space).await.unwrap().space.as_ref(), Some(&record));

        // The same record again is a change like any other.
        assert!(store.put_space(&space, Some(&record), &record).await.unwrap());
        assert!(store.put_space(&space, Some(&record), &next).await.unwrap());
        assert!(!store.put_space(&space, Some(&record), &next).await.unwrap());
        let listing = open().list(&space).await.unwrap();
        assert_eq!(listing.space, Some(next.clone()));
        assert_eq!(listing.incarnation, next.incarnation);
    });
}

fn the_record_of_a_node(open: Open<'_>) {
    block(async {
        let mut prepared = prepare(open, space("node-record")).await;
        let [first, second, third] = [node(3, 1, 500), node(3, 2, 900), node(3, 3, 1_300)];

        assert_eq!(prepared.put(Some(&first), &second).await, Outcome::Found(None));
        assert_eq!(prepared.list().await.nodes, []);
        assert_eq!(prepared.put(None, &first).await, Outcome::Written);
        assert_eq!(prepared.put(None, &second).await, Outcome::Found(Some(first.clone())));
        // A repetition of one that succeeded finds itself.
        assert_eq!(prepared.put(None, &first).await, Outcome::Found(Some(first.clone())));

        let other_token = NodeRecord { token: token(9), ..first.clone() };
        let other_bound = NodeRecord { reserved_until: 501, ..first.clone() };
        for wrong in [other_token, other_bound] {
            assert_eq!(prepared.put(Some(&wrong), &second).await, Outcome::Found(Some(first.clone())));
        }
        // Only token and bound are compared.
        let same = NodeRecord { expires_ms: 1, label: "other".into(), since_ms: 2, ..first.clone() };
        assert_eq!(prepared.put(Some(&same), &second).await, Outcome::Written);
        assert_eq!(prepared.put(Some(&first), &third).await, Outcome::Found(Some(second.clone())));
        // What is there already can be written.
        assert_eq!(prepared.put(Some(&second), &second).await, Outcome::Written);

        // Given back: the bound may be lower, token and expiry are gone.
        let back = NodeRecord { token: String::new(), expires_ms: 0, reserved_until: 700, ..second.clone() };
        assert_eq!(prepared.put(Some(&second), &back).await, Outcome::Written);
        assert_eq!(prepared.put(Some(&second), &third).await, Outcome::Found(Some(back.clone())));
        assert_eq!(prepared.put(None, &third).await, Outcome::Found(Some(back.clone())));
        assert_eq!(prepared.list().await.nodes, from_ref(&back));
        assert_eq!(prepared.put(Some(&back), &third).await, Outcome::Written);
        prepared.store.disconnect();
        assert_eq!(prepared.list().await.nodes, [third]);
    });
}

fn another_space_record(open: Open<'_>) {
    block(async {
        let mut prepared = prepare(open, space("other-space")).await;
        let [first, second] = [node(1, 1, 500), node(1, 2, 900)];
        assert_eq!(prepared.put(None, &first).await, Outcome::Written);
        let record = prepared.record.clone();
        for other in [
            SpaceRecord { incarnation: "another".into(), ..record.clone() },
            SpaceRecord { lead_ms: 1, ..record.clone() },
            SpaceRecord { fence: 0, ..record.clone() },
        ] {
            prepared.record = other;
            for (expected, new) in
                [(Some(&first), &second), (Some(&second), &first), (None, &second), (None, &node(2, 2, 5))]
            {
                assert_eq!(prepared.put(expected, new).await, Outcome::OtherSpace);
            }
        }
        prepared.record = record.clone();
        assert_eq!(prepared.list().await.nodes, from_ref(&first));

        // A fence that another process raised.
        let raised = SpaceRecord { fence: 800, ..record.clone() };
        assert!(open().put_space(&prepared.space, Some(&record), &raised).await.unwrap());
        assert_eq!(prepared.put(Some(&first), &second).await, Outcome::OtherSpace);
        assert_eq!(prepared.put(None, &node(2, 2, 900)).await, Outcome::OtherSpace);
        prepared.record = raised;
        assert_eq!(prepared.put(Some(&first), &second).await, Outcome::Written);
        assert_eq!(prepared.list().await.nodes, [second]);
    });
}

fn spaces_are_apart(open: Open<'_>) {
    block(async {
        let base = space("apart");
        let mut all = Vec::new();
        for space in [
            base.clone(),
            Space { namespace: "apart2".into(), ..base.clone() },
            Space { namespace: "APART".into(), ..base.clone() },
            Space { epoch_ms: 0, ..base.clone() },
            Space { tick_ms: 10, ..base.clone() },
            Space { timestamp_bits: 40, ..base.clone() },
            Space { timestamp_shift: 23, ..base.clone() },
            Space { sequence_bits: 11, ..base.clone() },
            Space { sequence_shift: 10, ..base.clone() },
        ] {
            all.push(prepare(open, space).await);
        }
        for (holder, prepared) in (1..).zip(&mut all) {
            assert_eq!(prepared.put(None, &node(0, holder, 5)).await, Outcome::Written);
        }
        for (holder, prepared) in (1..).zip(&mut all) {
            assert_eq!(prepared.list().await.nodes, [node(0, holder, 5)]);
            let raised = SpaceRecord { fence: 1_000 + holder, ..prepared.record.clone() };
            let Prepared { space, record, store } = prepared;
            assert!(store.put_space(space, Some(record), &raised).await.unwrap());
            *record = raised;
        }
        for prepared in &mut all {
            assert_eq!(prepared.list().await.space.as_ref(), Some(&prepared.record));
        }
    });
}

const MOST: u64 = i64::MAX as u64;

fn the_ends_of_the_ranges(open: Open<'_>) {
    block(async {
        let whole = Space {
            namespace: "ends".into(),
            epoch_ms: MOST,
            tick_ms: u64::from(u32::MAX),
            timestamp_bits: 64,
            timestamp_shift: 0,
            sequence_bits: 0,
            sequence_shift: 64,
        };
        let Prepared { space, record, mut store } = prepare(open, whole).await;
        let most = SpaceRecord { lead_ms: MOST, fence: MOST, ..record.clone() };
        let least = SpaceRecord { lead_ms: 0, fence: 0, ..record.clone() };
        assert!(store.put_space(&space, Some(&record), &least).await.unwrap());
        assert_eq!(store.list(&space).await.unwrap().space.as_ref(), Some(&least));
        assert!(store.put_space(&space, Some(&least), &most).await.unwrap());
        let mut prepared = Prepared { space, record: most, store };

        let numbers = [0, 1, u64::from(u32::MAX) - 1, u64::from(u32::MAX)];
        for number in numbers {
            let low = NodeRecord {
                node: number,
                token: String::new(),
                expires_ms: 0,
                reserved_until: 0,
                label: String::new(),
                since_ms: 0,
            };
            let high = NodeRecord {
                token: "f".repeat(32),
                expires_ms: MOST,
                reserved_until: MOST,
                since_ms: MOST,
                ..low.clone()
            };
            let nearly = NodeRecord { reserved_until: MOST - 1, ..high.clone() };
            assert_eq!(prepared.put(None, &low).await, Outcome::Written);
            assert_eq!(prepared.put(None, &high).await, Outcome::Found(Some(low.clone())));
            assert_eq!(prepared.put(Some(&low), &high).await, Outcome::Written);
            // Numbers that a 64-bit float holds for equal.
            assert_eq!(prepared.put(Some(&nearly), &low).await, Outcome::Found(Some(high.clone())));
        }
        let listing = prepared.list().await;
        assert_eq!(listing.space.as_ref(), Some(&prepared.record));
        assert_eq!(listing.nodes.iter().map(|node| node.node).collect::<Vec<_>>(), numbers);
        assert!(listing.nodes.iter().all(|node| node.reserved_until == MOST && node.since_ms == MOST));
    });
}

fn labels(open: Open<'_>) {
    block(async {
        let mut prepared = prepare(open, space("labels")).await;
        let labels = [
            r#"it's "quoted" `so` \ and \' "#.to_owned(),
            "'); DROP TABLE polyflake_nodes; --".to_owned(),
            "tab\tnewline\ncarriage\rreturn ${x} %s {} ? $1 :a".to_owned(),
            "Grüße, 東京, 🦀, \u{202e}".to_owned(),
            " spaces around ".to_owned(),
            r#"{"json": [1]}"#.to_owned(),
            "long-".repeat(50),
            "🦀".repeat(150),
        ];
        let nodes: Vec<_> =
            (0..).zip(labels).map(|(at, label)| NodeRecord { label, ..node(at, 1, 5) }).collect();
        for node in &nodes {
            assert_eq!(prepared.put(None, node).await, Outcome::Written);
            assert_eq!(prepared.put(None, node).await, Outcome::Found(Some(node.clone())));
        }
        assert_eq!(prepared.list().await.nodes, nodes);
    });
}

/// Addresses allow few letters in a namespace; a store does not rely on that.
fn unusual_namespaces(open: Open<'_>) {
    block(async {
        let mut all = Vec::new();
        for namespace in [
            "quote'd",
            "double\"d",
            "back\\slash",
            "{hash}tag",
            "a:b/c?d*e%f_g",
            "'; DELETE FROM polyflake_spaces; --",
            "naïve-ü",
            "",
            "polyflake_spaces",
        ] {
            all.push(prepare(open, space(namespace)).await);
        }
        for (holder, prepared) in (1..).zip(&mut all) {
            assert_eq!(prepared.put(None, &node(7, holder, 5)).await, Outcome::Written);
        }
        for (holder, prepared) in (1..).zip(&mut all) {
            let listing = prepared.list().await;
            assert_eq!(listing.space.as_ref(), Some(&prepared.record));
            assert_eq!(listing.nodes, [node(7, holder, 5)]);
        }
    });
}

/// As many as the widest classic layout has.
fn many_nodes(open: Open<'_>) {
    block(async {
        let mut prepared = prepare(open, space("many")).await;
        let nodes: Vec<_> = (0..1_024).map(|at| node(at, at, at)).collect();
        for node in &nodes {
            assert_eq!(prepared.put(None, node).await, Outcome::Written);
        }
        assert_eq!(prepared.list().await.nodes, nodes);
    });
}

const THREADS: u64 = 16;

/// In each round all try to follow the same record. A busy store may leave one without an answer: then what is there says
/// who won.
fn one_of_many_wins(open: Open<'_>) {
    let Prepared { space, record, .. } = block(prepare(open, space("fight")));
    let rounds = 8_u64;
    let barrier = Barrier::new(usize::try_from(THREADS).unwrap());
    let mut wins = 0;
    thread::scope(|scope| {
        let threads: Vec<_> = (1..=THREADS)
            .map(|holder| {
                let (space, record, barrier) = (&space, &record, &barrier);
                scope.spawn(move || fight(open, space, record, holder, rounds, barrier))
            })
            .collect();
        for thread in threads {
            wins += thread.join().unwrap();
        }
    });
    assert_eq!(wins, rounds);
}

fn fight(
    open: Open<'_>,
    space: &Space,
    record: &SpaceRecord,
    holder: u64,
    rounds: u64,
    barrier: &Barrier,
) -> u64 {
    block(async {
        let mut store = open();
        let mut wins = 0;
        let mut last: Option<NodeRecord> = None;
        for round in 1..=rounds {
            barrier.wait();
            let mine = NodeRecord { token: token(round << 8 | holder), ..node(5, holder, round) };
            let claim = last.as_ref().map(NodeRecord::claim);
            let put: Put =
                retry(&mut store, async |store| store.put_node(space, record, claim.as_ref(), &mine).await)
                    .await;
            let now = match put.outcome {
                Outcome::Written => mine.clone(),
                Outcome::Found(Some(found)) => found,
                other => panic!("{other:?}"),
            };
            wins += u64::from(now == mine);
            assert_eq!(now.reserved_until, round);
            last = Some(now);
        }
        wins
    })
}

fn one_of_many_makes_the_space(open: Open<'_>) {
    for round in 0..4 {
        let space = space(&format!("race-{round}"));
        let barrier = Barrier::new(usize::try_from(THREADS).unwrap());
        let records: Vec<SpaceRecord> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|fence| {
                    let (space, barrier) = (&space, &barrier);
                    scope.spawn(move || {
                        block(async {
                            let mut store = open();
                            let listing = retry(&mut store, async |store| store.list(space).await).await;
                            let record = SpaceRecord { incarnation: listing.incarnation, lead_ms: 1, fence };
                            barrier.wait();
                            let written =
                                retry(&mut store, async |store| store.put_space(space, None, &record).await)
                                    .await;
                            let there = retry(&mut store, async |store| store.list(space).await).await.space;
                            let there = there.expect("somebody wrote it");
                            assert!(!written || there == record);
                            there
                        })
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(records.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

/// Once a record of the space is written, no call under the one before has an effect any more: what a listing shows then
/// is all there will be.
fn a_fence_ends_what_was_before(open: Open<'_>) {
    let Prepared { space, record, mut store } = block(prepare(open, space("fences")));
    let (now, ended) = (Mutex::new(record.clone()), AtomicBool::new(false));
    let count =
        |nodes: &[NodeRecord], fence| nodes.iter().filter(|node| node.reserved_until == fence).count();
    let mut seen = Vec::new();
    thread::scope(|scope| {
        for writer in 0..6_u64 {
            let (space, now, ended) = (&space, &now, &ended);
            scope.spawn(move || {
                block(async {
                    let mut store = open();
                    for at in 0..2_000 {
                        if ended.load(Ordering::Relaxed) {
                            break;
                        }
                        let under = now.lock().unwrap().clone();
                        let new = node(writer << 16 | at, writer, under.fence);
                        let put = async |store: &mut Box<dyn Store>| {
                            store.put_node(space, &under, None, &new).await
                        };
                        let outcome = retry(&mut store, put).await.outcome;
                        let repeated = Outcome::Found(Some(new.clone()));
                        assert!(
                            [Outcome::Written, Outcome::OtherSpace, repeated].contains(&outcome),
                            "{outcome:?}"
                        );
                    }
                });
            });
        }
        block(async {
            let mut last = record;
            for _ in 0..25 {
                tokio::time::sleep(Duration::from_millis(5)).await;
                let next = SpaceRecord { fence: last.fence + 1, ..last.clone() };
                let written = retry(&mut store, async |store| {
                    // Without an answer, a first attempt may have been the one.
                    Ok(store.put_space(&space, Some(&last), &next).await?
                        || store.list(&space).await?.space.as_ref() == Some(&next))
                })
                .await;
                assert!(written);
                let listing = retry(&mut store, async |store| store.list(&space).await).await;
                seen.push((last.fence, count(&listing.nodes, last.fence)));
                *now.lock().unwrap() = next.clone();
                last = next;
            }
        });
        ended.store(true, Ordering::Relaxed);
    });
    let listing = block(async { retry(&mut open(), async |store| store.list(&space).await).await });
    let there: Vec<_> = seen.iter().map(|(fence, _)| (*fence, count(&listing.nodes, *fence))).collect();
    assert_eq!(there, seen);
    assert!(!listing.nodes.is_empty());
}

/// The keeper ends a call by dropping it, at any of its waits.
fn a_call_that_is_dropped(open: Open<'_>) {
    block(async {
        let mut prepared = prepare(open, space("dropped")).await;
        let mut last = node(1, 0, 0);
        assert_eq!(prepared.put(None, &last).await, Outcome::Written);
        for polls in 0..24 {
            let next = node(1, polls + 1, polls + 1);
            let claim = last.claim();
            {
                let Prepared { space, record, store } = &mut prepared;
                give_up(store.put_node(space, record, Some(&claim), &next), polls).await;
            }
            prepared.store.disconnect();
            let put = retry(&mut prepared.store, async |store| {
                store.put_node(&prepared.space, &prepared.record, Some(&claim), &next).await
            })
            .await;
            match put.outcome {
                Outcome::Written => {}
                Outcome::Found(Some(found)) if found == next => {}
                other => panic!("after {polls} polls: {other:?}"),
            }
            last = next;
        }
        for polls in 0..8 {
            {
                let Prepared { space, store, .. } = &mut prepared;
                give_up(store.list(space), polls).await;
            }
            prepared.store.disconnect();
            let listing = retry(&mut prepared.store, async |store| store.list(&prepared.space).await).await;
            assert_eq!(listing.nodes, from_ref(&last));
        }
    });
}

/// Polls at most this often, and then drops the call.
pub(crate) async fn give_up<T>(call: impl Future<Output = T>, polls: u64) {
    let mut call = std::pin::pin!(call);
    let mut polled = 0;
    let ended = std::future::poll_fn(|context| {
        if polled == polls {
            return std::task::Poll::Ready(());
        }
        polled += 1;
        call.as_mut().poll(context).map(drop)
    });
    // A wait of this length is longer than any that goes on by itself on this host.
    let _ = tokio::time::timeout(Duration::from_secs(2), ended).await;
}

/// A server that keeps its connections and does not answer: the keeper ends the call, and the next one works. What was
/// sent may still take effect.
pub(crate) async fn paused(prepared: &mut Prepared, server: &Server) {
    let (first, second) = (node(1, 1, 1), node(1, 2, 2));
    assert_eq!(prepared.put(None, &first).await, Outcome::Written);
    for connected in [true, false] {
        if !connected {
            prepared.store.disconnect();
        }
        server.pause();
        let claim = first.claim();
        {
            let Prepared { space, record, store } = &mut *prepared;
            let call = store.put_node(space, record, Some(&claim), &second);
            let ended = tokio::time::timeout(Duration::from_millis(300), call).await;
            // A connection that is there may have a process of its own.
            assert!(connected || ended.is_err(), "{ended:?}");
            store.disconnect();
        }
        server.resume();
        let put = prepared.put(Some(&first), &second).await;
        assert!([Outcome::Written, Outcome::Found(Some(second.clone()))].contains(&put), "{put:?}");
        assert_eq!(prepared.list().await.nodes, from_ref(&second));
    }
}

/// Tries until it works: a server takes a new configuration in its own time.
pub(crate) fn until<T>(mut call: impl FnMut() -> Result<T, StoreError>) -> T {
    for _ in 0..200 {
        if let Ok(value) = call() {
            return value;
        }
        thread::sleep(Duration::from_millis(50));
    }
    call().unwrap()
}
