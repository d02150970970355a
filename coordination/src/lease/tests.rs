//! The decisions, one by one.

use super::memory::Memory;
use super::*;
use crate::store::Outcome;

const NOW: u64 = 1_000_000;

pub(super) fn terms() -> Terms {
    Terms {
        space: Space {
            namespace: "default".to_owned(),
            epoch_ms: 0,
            tick_ms: 1,
            timestamp_bits: 41,
            timestamp_shift: 22,
            sequence_bits: 12,
            sequence_shift: 0,
        },
        nodes: Nodes { bits: 2, fixed_mask: 0, fixed_value: 0, range: None },
        ttl_ms: 30_000,
        lead_ms: 31_000,
        clock_difference_ms: 1000,
        label: "here".to_owned(),
        is_init: false,
    }
}

fn new_store() -> Memory {
    Memory { incarnation: "1".to_owned(), cannot_forget: true, ..Memory::default() }
}

fn received(reply: Reply, now_ms: u64) -> Received {
    let wall = i64::try_from(now_ms).unwrap();
    Received { reply, granularity_ms: 1, wall_sent_ms: wall, wall_received_ms: wall, elapsed_ms: now_ms }
}

fn acquire_at(store: &mut Memory, terms: &Terms, token: &mut u64, now_ms: u64) -> Result<Held, Refusal> {
    acquire_unless(store, terms, token, now_ms, &|_| false)
}

fn acquire_unless(
    store: &mut Memory,
    terms: &Terms,
    token: &mut u64,
    now_ms: u64,
    is_used: &dyn Fn(u64) -> bool,
) -> Result<Held, Refusal> {
    let mut random = || {
        *token += 1;
        *token
    };
    let mut acquisition = Acquisition::new(None, &mut random);
    go(store, terms, &mut acquisition, &mut random, now_ms, is_used)
}

fn go(
    store: &mut Memory,
    terms: &Terms,
    acquisition: &mut Acquisition,
    random: Random<'_>,
    now_ms: u64,
    is_used: &dyn Fn(u64) -> bool,
) -> Result<Held, Refusal> {
    let mut request = acquisition.begin();
    loop {
        let reply = received(store.answer(&request, now_ms), now_ms);
        match acquisition.step(terms, &reply, random, is_used)? {
            Next::Ask(next) => request = next,
            Next::Done(held) => return Ok(held),
        }
    }
}

fn renew_at(
    store: &mut Memory,
    terms: &Terms,
    held: &mut Held,
    elapsed_ms: u64,
    now_ms: u64,
) -> Result<Renewed, Refusal> {
    let (mut renewal, mut request) = Renewal::begin(terms, held, elapsed_ms);
    loop {
        let reply = received(store.answer(&request, now_ms), now_ms);
        match renewal.step(terms, held, &reply)? {
            Next::Ask(next) => request = next,
            Next::Done(renewed) => return Ok(renewed),
        }
    }
}

fn release_at(store: &mut Memory, terms: &Terms, held: &Held, issued_until: u64, now_ms: u64) {
    let (mut release, mut request) = Release::begin(terms, held, issued_until);
    while let Next::Ask(next) = release.step(held, &received(store.answer(&request, now_ms), now_ms)).unwrap()
    {
        request = next;
    }
}

#[test]
fn a_bound_is_the_tick_after_the_first_that_starts_past_the_lead() {
    let space = Space { epoch_ms: 1000, tick_ms: 10, ..terms().space };
    assert_eq!(bound(&space, 1000, 10), 2);
    assert_eq!(bound(&space, 1000, 11), 3);
    assert_eq!(bound(&space, 0, 10), 1, "before the epoch");
    assert_eq!(bound(&space, u64::MAX, 10), u64::MAX.div_ceil(10) - 100 + 1);
}

#[test]
fn nodes_are_counted_and_listed() {
    let all = Nodes { bits: 10, fixed_mask: 0, fixed_value: 0, range: None };
    assert_eq!((all.count(), all.iter().next(), all.iter().last()), (1024, Some(0), Some(1023)));
    assert!(all.contains(1023) && !all.contains(1024));

    let fixed = Nodes { fixed_mask: 0b11_0000_0001, fixed_value: 0b10_0000_0001, ..all.clone() };
    assert_eq!(fixed.count(), 128);
    assert_eq!(fixed.iter().take(3).collect::<Vec<_>>(), [0b10_0000_0001, 0b10_0000_0011, 0b10_0000_0101]);
    assert!(fixed.iter().all(|node| fixed.contains(node)));
    assert_eq!((0..1024).filter(|&node| fixed.contains(node)).count(), 128);

    for range in [0..=0, 500..=515, 514..=514, 600..=700, 1000..=5000, 700..=800] {
        let some = Nodes { range: Some(range.clone()), ..fixed.clone() };
        let expected: Vec<u64> = fixed.iter().filter(|node| range.contains(node)).collect();
        assert_eq!(some.iter().collect::<Vec<_>>(), expected, "{range:?}");
        assert_eq!(usize::try_from(some.count()).unwrap(), expected.len());
    }
    let widest = Nodes { bits: 63, fixed_mask: 0, fixed_value: 0, range: Some(1 << 62..=(1 << 62) + 9) };
    assert_eq!((widest.count(), widest.iter().next()), (10, Some(1 << 62)));
    let whole = Nodes { bits: 2, fixed_mask: 3, fixed_value: 2, range: None };
    assert_eq!(whole.iter().collect::<Vec<_>>(), [2]);
    let none = Nodes { bits: 0, fixed_mask: 0, fixed_value: 0, range: None };
    assert_eq!(none.iter().collect::<Vec<_>>(), [0]);
}

#[test]
fn in_a_new_store_nobody_waits() {
    let (mut store, mut token) = (new_store(), 0);
    let held = acquire_at(&mut store, &terms(), &mut token, NOW).unwrap();
    assert_eq!((held.start, held.reserved_until), (0, NOW + 31_001));
    assert_eq!((held.expires_ms, held.since_ms), (NOW + 30_000, NOW));
    assert_eq!(held.token.len(), 32);
    let record = &store.nodes[&held.node];
    assert_eq!((&record.token, &*record.label), (&held.token, "here"));
    assert_eq!(store.space, Some(SpaceRecord { incarnation: "1".to_owned(), lead_ms: 31_000, fence: 0 }));
}

#[test]
fn a_store_that_can_forget_is_waited_for_unless_somebody_vouches() {
    let (mut store, mut token) = (Memory { cannot_forget: false, ..new_store() }, 0);
    let mut vouched = store.clone();
    // Lead, twice the difference of clocks, the store's granularity; and a bound's own tick.
    let fence = NOW + 31_000 + 2000 + 1 + 1;
    assert_eq!(
        acquire_at(&mut store, &terms(), &mut token, NOW),
        Err(Refusal::Fenced { in_ms: fence - NOW })
    );
    assert_eq!(acquire_at(&mut store, &terms(), &mut token, fence - 1), Err(Refusal::Fenced { in_ms: 1 }));
    assert_eq!(acquire_at(&mut store, &terms(), &mut token, fence).unwrap().start, fence);

    let vouching = Terms { is_init: true, ..terms() };
    assert_eq!(acquire_at(&mut vouched, &vouching, &mut token, NOW).unwrap().start, 0);
    // It says nothing once there was a record.
    vouched.incarnation = "2".to_owned();
    assert!(matches!(acquire_at(&mut vouched, &vouching, &mut token, NOW), Err(Refusal::Fenced { .. })));
}

#[test]
fn a_process_that_was_there_does_not_take_an_empty_store_for_new() {
    let known = SpaceRecord { incarnation: "1".to_owned(), lead_ms: 90_000, fence: 7 };
    let vouching = Terms { is_init: true, ..terms() };
    let (mut store, mut random) = (new_store(), || 1);
    let mut acquisition = Acquisition::new(Some(known), &mut random);
    let refusal = go(&mut store, &vouching, &mut acquisition, &mut random, NOW, &|_| false).unwrap_err();
    assert_eq!(refusal, Refusal::Fenced { in_ms: 92_002 });
    assert_eq!(store.space.unwrap().lead_ms, 90_000);
}

#[test]
fn the_larger_lead_and_fence_stay() {
    let found = SpaceRecord { incarnation: "0".to_owned(), lead_ms: 60_000, fence: NOW * 2 };
    let mut store = Memory { space: Some(found), ..new_store() };
    let refusal = acquire_at(&mut store, &terms(), &mut 0, NOW).unwrap_err();
    assert_eq!(refusal, Refusal::Fenced { in_ms: NOW });
    let space = store.space.clone().unwrap();
    assert_eq!((space.lead_ms, space.fence, &*space.incarnation), (60_000, NOW * 2, "1"));
    // A shorter lead writes bounds with the space's.
    let held = acquire_at(&mut store, &terms(), &mut 0, NOW * 2).unwrap();
    assert_eq!((held.start, held.reserved_until), (NOW * 2, NOW * 2 + 60_001));
    let longer = Terms { lead_ms: 60_001, ..terms() };
    assert_eq!(
        acquire_at(&mut store, &longer, &mut 0, NOW * 2),
        Err(Refusal::LeadTooLong { lead_ms: 60_001, of_space_ms: 60_000 })
    );
}

#[test]
fn nodes_are_handed_out_once_and_the_next_is_told_who_frees_first() {
    let (mut store, mut token) = (new_store(), 0);
    let mut nodes: Vec<u64> =
        (0..4).map(|i| acquire_at(&mut store, &terms(), &mut token, NOW + i).unwrap().node).collect();
    let first = nodes[0];
    nodes.sort_unstable();
    assert_eq!(nodes, [0, 1, 2, 3]);
    // Free only once more than the difference of clocks has passed since it expired.
    for now in [NOW + 10, NOW + 31_000] {
        let at_ms = NOW + 31_001;
        let first = Some(FreesFirst { node: first, label: "here".to_owned(), at_ms, in_ms: at_ms - now });
        let refusal = acquire_at(&mut store, &terms(), &mut token, now).unwrap_err();
        assert_eq!(refusal, Refusal::NoneFree { nodes: 4, first });
    }
    let held = acquire_at(&mut store, &terms(), &mut token, NOW + 31_001).unwrap();
    assert_eq!((held.node, held.start, held.reserved_until), (first, NOW + 31_001, NOW + 62_002));
}

#[test]
fn a_node_used_here_is_passed_over() {
    let (mut store, mut token) = (new_store(), 0);
    for _ in 0..3 {
        let held = acquire_unless(&mut store, &terms(), &mut token, NOW, &|node| node == 2).unwrap();
        assert_ne!(held.node, 2);
    }
    let refusal = acquire_unless(&mut store, &terms(), &mut token, NOW, &|_| true).unwrap_err();
    assert_eq!(refusal, Refusal::NoneFree { nodes: 4, first: None });
    assert_eq!(acquire_at(&mut store, &terms(), &mut token, NOW).unwrap().node, 2);
}

#[test]
fn a_passed_bound_comes_before_a_new_node_and_that_before_a_bound_ahead() {
    let (mut store, mut token) = (new_store(), 0);
    let one = Terms { nodes: Nodes { range: Some(0..=1), ..terms().nodes }, ..terms() };
    let first = acquire_at(&mut store, &one, &mut token, NOW).unwrap();
    release_at(&mut store, &one, &first, NOW + 500, NOW);
    // The other was never used, and this one's bound is ahead.
    let second = acquire_at(&mut store, &one, &mut token, NOW).unwrap();
    assert_ne!(second.node, first.node);
    release_at(&mut store, &one, &second, NOW + 400, NOW);
    // Both are ahead: the one that comes first, and not before its bound.
    let third = acquire_at(&mut store, &one, &mut token, NOW).unwrap();
    assert_eq!((third.node, third.start), (second.node, NOW + 400));
    release_at(&mut store, &one, &third, 0, NOW);
    assert_eq!(store.nodes[&third.node].reserved_until, NOW + 400, "nothing was issued: as it was found");
    // A passed one before one that was never used.
    let wide = acquire_at(&mut store, &terms(), &mut token, NOW + 450).unwrap();
    assert_eq!((wide.node, wide.start), (second.node, NOW + 400));
}

#[test]
fn a_lost_race_goes_on_with_another_node() {
    let (mut store, mut token) = (new_store(), 0);
    acquire_at(&mut store, &terms(), &mut token, NOW).unwrap();
    let mut acquisition = Acquisition::new(None, &mut || 8);
    let list = received(store.answer(&acquisition.begin(), NOW), NOW);
    let Next::Ask(put) = acquisition.step(&terms(), &list, &mut || 8, &|_| false).unwrap() else { panic!() };
    let Request::PutNode { new, .. } = &put else { panic!() };
    let theirs = Terms { nodes: Nodes { fixed_mask: 3, fixed_value: new.node, ..terms().nodes }, ..terms() };
    acquire_at(&mut store, &theirs, &mut token, NOW).unwrap();
    let found = received(store.answer(&put, NOW), NOW);
    assert_eq!(acquisition.step(&terms(), &found, &mut || 8, &|_| false).unwrap(), Next::Ask(Request::List));
    let held = go(&mut store, &terms(), &mut acquisition, &mut || 8, NOW, &|_| false).unwrap();
    assert_ne!(held.node, new.node);
}

#[test]
fn the_next_go_finds_what_the_one_before_got() {
    let (mut store, mut token) = (new_store(), 0);
    let mut random = || {
        token += 1;
        token
    };
    let mut acquisition = Acquisition::new(None, &mut random);
    let mut request = acquisition.begin();
    while !matches!(request, Request::PutNode { .. }) {
        let reply = received(store.answer(&request, NOW), NOW);
        let Next::Ask(next) = acquisition.step(&terms(), &reply, &mut random, &|_| false).unwrap() else {
            panic!()
        };
        request = next;
    }
    store.answer(&request, NOW);
    let Request::PutNode { new, .. } = request else { panic!() };
    let held = go(&mut store, &terms(), &mut acquisition, &mut random, NOW + 9, &|_| false).unwrap();
    assert_eq!((held.node, &held.token, held.reserved_until), (new.node, &new.token, new.reserved_until));
    assert_eq!(store.nodes.len(), 1);
    // What comes after is another acquisition.
    let next = go(&mut store, &terms(), &mut acquisition, &mut random, NOW + 9, &|_| false).unwrap();
    assert!(next.node != held.node && next.token != held.token);
}

#[test]
fn a_renewal_moves_bound_and_expiry() {
    let (mut store, mut token) = (new_store(), 0);
    let mut held = acquire_at(&mut store, &terms(), &mut token, NOW).unwrap();
    let renewed = renew_at(&mut store, &terms(), &mut held, NOW + 10_000, NOW + 10_000).unwrap();
    assert_eq!(renewed, Renewed::Extended { clock: None });
    assert_eq!((held.start, held.reserved_until, held.expires_ms), (0, NOW + 41_001, NOW + 40_000));
    assert_eq!(store.nodes[&held.node].claim(), held.claim());
    // The store's clock went back: the bound does not.
    let renewed = renew_at(&mut store, &terms(), &mut held, NOW + 9000, NOW + 9000).unwrap();
    assert_eq!((renewed, held.reserved_until), (Renewed::Extended { clock: None }, NOW + 41_001));
}

#[test]
fn a_renewal_finds_its_lost_reply_and_its_lost_write() {
    let (mut store, mut token) = (new_store(), 0);
    let mut held = acquire_at(&mut store, &terms(), &mut token, NOW).unwrap();
    let before = store.clone();
    let (_, request) = Renewal::begin(&terms(), &held, NOW + 10_000);
    store.answer(&request, NOW + 10_000);
    renew_at(&mut store, &terms(), &mut held, NOW + 12_000, NOW + 12_000).unwrap();
    assert_eq!(held.reserved_until, NOW + 43_001);
    store = before;
    renew_at(&mut store, &terms(), &mut held, NOW + 12_000, NOW + 12_000).unwrap();
    assert_eq!((held.reserved_until, store.nodes[&held.node].claim()), (NOW + 43_001, held.claim()));
}

#[test]
fn a_freeze_that_the_clock_did_not_count_is_one_more_write() {
    let (mut store, mut token) = (new_store(), 0);
    let mut held = acquire_at(&mut store, &terms(), &mut token, NOW).unwrap();
    let (frozen, counted) = (NOW + 3_600_000, NOW + 10_000);
    assert_eq!(
        renew_at(&mut store, &terms(), &mut held, counted, frozen),
        Ok(Renewed::Extended { clock: None })
    );
    assert_eq!((held.reserved_until, held.expires_ms), (frozen + 31_001, frozen + 30_000));
}

#[test]
fn what_another_has_is_lost() {
    let (mut store, mut token) = (new_store(), 0);
    let mut held = acquire_at(&mut store, &terms(), &mut token, NOW).unwrap();
    let mine = Nodes { fixed_mask: 3, fixed_value: held.node, ..terms().nodes };
    let late = Terms { nodes: mine, ..terms() };
    let other = acquire_at(&mut store, &late, &mut token, NOW + 40_000).unwrap();
    assert_eq!((other.node, other.start), (held.node, held.reserved_until));
    let was = held.reserved_until;
    assert_eq!(renew_at(&mut store, &terms(), &mut held, NOW + 40_000, NOW + 40_000), Ok(Renewed::Lost));
    assert_eq!(held.reserved_until, was, "what was reserved may be issued");
    // Nor does it give back what is another's.
    release_at(&mut store, &terms(), &held, NOW, NOW + 40_000);
    assert_eq!(store.nodes[&held.node].claim(), other.claim());
}

#[test]
fn after_a_loss_only_those_who_have_not_expired_renew() {
    let (mut store, mut token) = (new_store(), 0);
    let mut held = acquire_at(&mut store, &terms(), &mut token, NOW).unwrap();
    let was = held.clone();
    store.incarnation = "2".to_owned();
    let lost = store.clone();
    // Its expiry, less the difference of clocks.
    let in_time = NOW + 28_999;
    assert_eq!(
        renew_at(&mut store, &terms(), &mut held, in_time, in_time),
        Ok(Renewed::Extended { clock: None })
    );
    assert_eq!((&*held.under.incarnation, held.under.fence), ("2", in_time + 33_002));
    assert_eq!(held.reserved_until, in_time + 31_001);
    assert!(matches!(
        acquire_at(&mut store, &terms(), &mut token, in_time),
        Err(Refusal::Fenced { in_ms: 33_002 })
    ));
    let (mut store, mut held) = (lost, was.clone());
    assert_eq!(renew_at(&mut store, &terms(), &mut held, in_time + 1, in_time + 1), Ok(Renewed::Lost));
    assert_eq!(held.reserved_until, was.reserved_until);
    assert_eq!(store.space.as_ref().unwrap().incarnation, "2", "the fence is there all the same");
}

#[test]
fn a_bound_comes_down_to_a_fence_below_it() {
    let (mut store, mut token) = (new_store(), 0);
    let mut held = acquire_at(&mut store, &terms(), &mut token, NOW).unwrap();
    store = new_store();
    acquire_at(&mut store, &terms(), &mut token, NOW + 1).unwrap();
    store.space.as_mut().unwrap().fence = NOW + 5;
    assert_eq!(renew_at(&mut store, &terms(), &mut held, NOW + 2, NOW + 2), Ok(Renewed::Lost));
    assert_eq!(held.reserved_until, NOW + 5);
}

#[test]
fn a_release_frees_at_once_and_takes_back_what_was_not_issued() {
    let (mut store, mut token) = (new_store(), 0);
    let one = Terms { nodes: Nodes { bits: 0, ..terms().nodes }, ..terms() };
    let mut held = acquire_at(&mut store, &one, &mut token, NOW).unwrap();
    renew_at(&mut store, &one, &mut held, NOW + 10_000, NOW + 10_000).unwrap();
    // Also where the reply to the last renewal was lost.
    let (_, request) = Renewal::begin(&one, &held, NOW + 11_000);
    store.answer(&request, NOW + 11_000);
    release_at(&mut store, &one, &held, NOW + 12_000, NOW + 12_000);
    release_at(&mut store, &one, &held, NOW + 12_000, NOW + 12_000);
    let record = &store.nodes[&0];
    assert_eq!((&*record.token, record.expires_ms, record.reserved_until), ("", 0, NOW + 12_000));
    assert_eq!(acquire_at(&mut store, &one, &mut token, NOW + 12_000).unwrap().start, NOW + 12_000);
}

#[test]
fn a_release_finds_its_record_in_another_life_of_the_store() {
    let (mut store, mut token) = (new_store(), 0);
    let held = acquire_at(&mut store, &terms(), &mut token, NOW).unwrap();
    let other = acquire_at(&mut store, &terms(), &mut token, NOW).unwrap();
    store.incarnation = "2".to_owned();
    release_at(&mut store, &terms(), &held, NOW + 5, NOW + 5);
    assert_eq!(store.nodes[&held.node].token, held.token, "nobody wrote the fence yet: it expires");
    let mut other = other;
    renew_at(&mut store, &terms(), &mut other, NOW + 5, NOW + 5).unwrap();
    release_at(&mut store, &terms(), &held, NOW + 5, NOW + 5);
    assert_eq!(store.nodes[&held.node].claim(), Claim { token: String::new(), reserved_until: NOW + 5 });
}

#[test]
fn the_clock_is_compared_over_the_span_from_sending_to_receiving() {
    let at = |now_ms, wall_sent_ms, wall_received_ms, granularity_ms| {
        let reply = Reply::Node(Put { now_ms, outcome: Outcome::Written });
        let received = Received { reply, granularity_ms, wall_sent_ms, wall_received_ms, elapsed_ms: 0 };
        received.clock_differs().map(|differs| (differs.local_ms, differs.by_ms))
    };
    assert_eq!(at(5000, 5000, 5000, 1), None);
    assert_eq!(at(5000, 1000, 9000, 1), None);
    assert_eq!(at(5000, 6000, 9000, 1), Some((6000, 1000)));
    assert_eq!(at(5000, 6000, 9000, 1000), Some((6000, 1)));
    assert_eq!(at(5000, 1000, 3000, 1000), Some((3000, 2000)));
    assert_eq!(at(5000, 6000, 4000, 1), None, "set back in between");
}

#[test]
fn a_clock_that_differs_is_refused_at_first_and_warned_of_later() {
    let (mut store, mut random) = (new_store(), || 1);
    let mut acquisition = Acquisition::new(None, &mut random);
    let step = |acquisition: &mut Acquisition, store: &mut Memory, ahead: u64| {
        let mut reply = received(store.answer(&acquisition.begin(), NOW), NOW + ahead);
        reply.elapsed_ms = NOW;
        acquisition.step(&terms(), &reply, &mut || 1, &|_| false)
    };
    assert!(step(&mut acquisition, &mut store, 1000).is_ok());
    let differs = ClockDiffers { store_ms: NOW, local_ms: 1_001_001, by_ms: 1001 };
    assert_eq!(step(&mut acquisition, &mut store, 1001), Err(Refusal::ClockDiffers(differs)));

    let mut held = acquire_at(&mut store, &terms(), &mut 0, NOW).unwrap();
    let renew = |store: &mut Memory, held: &mut Held, ahead: u64| {
        let (mut renewal, request) = Renewal::begin(&terms(), held, NOW + 1);
        let mut reply = received(store.answer(&request, NOW + 1), NOW + 1 + ahead);
        reply.elapsed_ms = NOW + 1;
        renewal.step(&terms(), held, &reply)
    };
    let clock = Some(ClockDiffers { store_ms: NOW + 1, local_ms: 1_010_001, by_ms: 10_000 });
    assert_eq!(renew(&mut store, &mut held, 10_000), Ok(Next::Done(Renewed::Extended { clock })));
    let was = held.reserved_until;
    assert!(matches!(renew(&mut store, &mut held, 10_001), Err(Refusal::ClockDiffers(_))));
    assert_eq!(held.reserved_until, was);
}

#[test]
fn changing_records_end_a_go() {
    let mut acquisition = Acquisition::new(None, &mut || 1);
    acquisition.begin();
    let mut asked = 1;
    while acquisition.step(&terms(), &received(Reply::Space(false), NOW), &mut || 1, &|_| false).is_ok() {
        asked += 1;
    }
    assert_eq!(asked, MAX_REQUESTS);
}
