//! Tests each decision on its own.

use super::memory::{Local, Memory};
use super::*;

const NOW: u64 = 1_000_000;

pub(super) fn terms() -> Terms {
    let space = Space {
        namespace: "default".to_owned(),
        epoch_ms: 0,
        tick_ms: 1,
        timestamp_bits: 41,
        timestamp_shift: 22,
        sequence_bits: 12,
        sequence_shift: 0,
    };
    Terms {
        group: group(&space),
        space,
        nodes: Nodes { bits: 2, fixed_mask: 0, fixed_value: 0, range: None },
        ttl_ms: 30_000,
        lead_ms: 31_000,
        clock_difference_ms: 1000,
        is_difference_default: false,
        label: "here".to_owned(),
        is_init: false,
    }
}

/// A store, a machine, and their clock errors.
struct Bench {
    store: Memory,
    terms: Terms,
    drawn: u64,
    /// How far ahead of `now_ms` the two clocks are.
    store_ahead_ms: i64,
    local_ahead_ms: i64,
    granularity_ms: u64,
}

impl Bench {
    fn new() -> Self {
        let store = Memory { incarnation: "1".to_owned(), ..Memory::default() };
        Self { store, terms: terms(), drawn: 0, store_ahead_ms: 0, local_ahead_ms: 0, granularity_ms: 1 }
    }

    fn that_forgets() -> Self {
        let mut bench = Self::new();
        bench.store.can_forget = true;
        bench
    }

    /// Limits the space to one node.
    fn of_one(mut self) -> Self {
        self.terms.nodes.bits = 0;
        self
    }

    fn random(&mut self) -> u64 {
        self.drawn += 2;
        self.drawn
    }

    fn local(&self, now_ms: u64) -> Local {
        Local { wall_ms: now_ms.saturating_add_signed(self.local_ahead_ms), elapsed_ms: now_ms }
    }

    fn send(&mut self, request: &Request, now_ms: u64) -> Received {
        let store_ms = now_ms.saturating_add_signed(self.store_ahead_ms);
        let local = self.local(now_ms);
        self.store.receive(request, store_ms, self.granularity_ms, local)
    }

    fn acquisition(&mut self, known: Option<Known>) -> Acquisition {
        Acquisition::new(known, &mut || self.random())
    }

    fn acquire(&mut self, now_ms: u64) -> Result<Held, Refusal> {
        let mut acquisition = self.acquisition(None);
        self.go(&mut acquisition, now_ms)
    }

    fn acquire_unless(&mut self, now_ms: u64, is_used: &dyn Fn(u64) -> bool) -> Result<Held, Refusal> {
        let mut acquisition = self.acquisition(None);
        self.go_unless(&mut acquisition, now_ms, is_used)
    }

    fn go(&mut self, acquisition: &mut Acquisition, now_ms: u64) -> Result<Held, Refusal> {
        self.go_unless(acquisition, now_ms, &|_| false)
    }

    fn go_unless(
        &mut self,
        acquisition: &mut Acquisition,
        now_ms: u64,
        is_used: &dyn Fn(u64) -> bool,
    ) -> Result<Held, Refusal> {
        let terms = self.terms.clone();
        let mut request = acquisition.begin(&terms, &mut || self.random());
        loop {
            let received = self.send(&request, now_ms);
            match acquisition.step(&terms, &received, &mut || self.random(), is_used)? {
                Next::Ask(next) => request = next,
                Next::Done(held) => return Ok(held),
            }
        }
    }

    /// Continues up to the first write to a node's record, and returns that write without sending it.
    fn go_to_write(&mut self, acquisition: &mut Acquisition, now_ms: u64) -> Request {
        let terms = self.terms.clone();
        let mut request = acquisition.begin(&terms, &mut || self.random());
        while !matches!(request, Request::PutNode { .. }) {
            let received = self.send(&request, now_ms);
            let next = acquisition.step(&terms, &received, &mut || self.random(), &|_| false).unwrap();
            let Next::Ask(next) = next else { panic!("{next:?}") };
            request = next;
        }
        request
    }

    fn begin(&mut self, held: &mut Held, now_ms: u64) -> (Renewal, Request) {
        let (terms, local) = (self.terms.clone(), self.local(now_ms));
        Renewal::begin(&terms, held, &local, &mut || self.random())
    }

    fn renew(&mut self, held: &mut Held, now_ms: u64) -> Result<Renewed, Refusal> {
        let (mut renewal, mut request) = self.begin(held, now_ms);
        let terms = self.terms.clone();
        loop {
            let received = self.send(&request, now_ms);
            match renewal.step(&terms, held, &received, &mut || self.random())? {
                Next::Ask(next) => request = next,
                Next::Done(renewed) => return Ok(renewed),
            }
        }
    }

    fn release(&mut self, held: &Held, issued_until: u64, now_ms: u64) {
        let terms = self.terms.clone();
        let (mut release, mut request) = Release::begin(&terms, held, issued_until, &mut || self.random());
        loop {
            let received = self.send(&request, now_ms);
            match release.step(held, &received, &mut || self.random()).unwrap() {
                Next::Ask(next) => request = next,
                Next::Done(()) => return,
            }
        }
    }

    fn head(&self) -> &Head {
        self.store.head.as_ref().unwrap()
    }

    /// Makes another store with these records take over.
    fn take_over(&mut self, store: &Memory) {
        self.store = Memory { incarnation: format!("{}'", self.store.incarnation), ..store.clone() };
    }
}

const EXTENDED: Result<Renewed, Refusal> = Ok(Renewed::Extended { clock: None });

fn fenced<T>(result: &Result<T, Refusal>) -> Option<u64> {
    match result {
        Err(Refusal::Fenced { in_ms, .. }) => Some(*in_ms),
        _ => None,
    }
}

#[test]
fn a_bound_is_the_tick_after_the_first_that_starts_past_the_lead() {
    let space = Space { epoch_ms: 1000, tick_ms: 10, ..terms().space };
    assert_eq!(bound(&space, 1000, 10), 2);
    assert_eq!(bound(&space, 1000, 11), 3);
    assert_eq!(bound(&space, 0, 10), 1, "before the epoch");
    let space = Space { tick_ms: 1, ..space };
    assert_eq!(bound(&space, u64::MAX, 10), Record::LAST_NUMBER);
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
fn a_sample_has_other_nodes_each_time_and_each_once() {
    let nodes = Nodes { bits: 10, fixed_mask: 1, fixed_value: 1, range: Some(100..=900) };
    let mut drawn = 7_u64;
    let mut random = || {
        drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        drawn >> 33
    };
    let (one, other) = (nodes.sample(16, &mut random), nodes.sample(16, &mut random));
    assert!(one.len() == 16 && one.iter().all(|&node| nodes.contains(node)));
    let distinct: std::collections::BTreeSet<_> = one.iter().collect();
    assert_eq!(distinct.len(), 16);
    assert_ne!(one, other);
    let few = Nodes { range: Some(100..=108), ..nodes };
    assert_eq!(few.sample(16, &mut random), [101, 103, 105, 107]);
    assert_eq!(few.sample(4, &mut || 0), [101, 103, 105, 107]);
    assert_eq!(few.sample(2, &mut || 0), [101]);
}

#[test]
fn in_a_new_store_nobody_waits() {
    let mut bench = Bench::new();
    let held = bench.acquire(NOW).unwrap();
    assert_eq!((held.start, held.reserved_until), (0, NOW + 31_001));
    assert_eq!((held.expires_ms, held.since_ms), (NOW + 30_000, NOW));
    let record = &bench.store.nodes[&held.node];
    assert_eq!((record.token, &*record.label), (held.token, "here"));
    let head = bench.head();
    assert_eq!((&*head.incarnation, head.fence, head.why), ("1", 0, Why::First));
    assert_eq!((head.lead_ms, head.difference_ms, head.granularity_ms), (31_000, 1000, 1));
}

#[test]
fn nodes_without_a_head_are_no_new_space() {
    let mut bench = Bench::new();
    bench.acquire(NOW).unwrap();
    bench.store.head = None;
    assert_eq!(fenced(&bench.acquire(NOW)), Some(34_002));
    assert_eq!(bench.head().why, Why::Loss);
}

#[test]
fn a_store_that_can_forget_is_waited_for_unless_somebody_vouches() {
    let mut bench = Bench::that_forgets();
    // The fence is ahead of the clock by the lead, three times the clock difference, the store's granularity
    // and one tick.
    let fence = NOW + 31_000 + 3000 + 1 + 1;
    assert_eq!(bench.acquire(NOW), Err(Refusal::Fenced { in_ms: fence - NOW, why: Why::First }));
    assert_eq!(fenced(&bench.acquire(fence - 1)), Some(1));
    // Declaring the store new works even after an attempt that had to wait.
    bench.terms.is_init = true;
    assert_eq!(bench.acquire(NOW + 1).unwrap().start, 0);
    assert_eq!((bench.head().fence, bench.head().why), (0, Why::First));

    let mut bench = Bench::that_forgets();
    bench.acquire(NOW).unwrap_err();
    assert_eq!(bench.acquire(fence).unwrap().start, fence);
}

#[test]
fn nobody_vouches_after_a_loss_or_where_a_node_was_leased() {
    let mut bench = Bench::that_forgets();
    bench.terms.is_init = true;
    bench.acquire(NOW).unwrap();
    let before = bench.store.clone();
    bench.take_over(&before);
    assert!(fenced(&bench.acquire(NOW)).is_some());
    assert_eq!(bench.head().why, Why::Loss);

    let mut bench = Bench { store: before, ..bench };
    bench.store.head.as_mut().unwrap().fence = NOW + 9;
    assert_eq!(fenced(&bench.acquire(NOW)), Some(9));
    assert_eq!(bench.head().fence, NOW + 9);
}

#[test]
fn a_process_that_was_there_does_not_take_an_empty_store_for_new() {
    let mut bench = Bench::new();
    bench.terms.lead_ms = 90_000;
    let known = bench.acquire(NOW).unwrap().known;
    bench.store = Memory { incarnation: "1".to_owned(), ..Memory::default() };
    bench.terms = Terms { is_init: true, ..terms() };
    let mut acquisition = bench.acquisition(Some(known));
    assert_eq!(fenced(&bench.go(&mut acquisition, NOW)), Some(93_002));
    assert_eq!((bench.head().lead_ms, bench.head().why), (90_000, Why::Loss));
}

#[test]
fn a_fence_never_moves_back() {
    let mut bench = Bench::new();
    bench.acquire(NOW).unwrap();
    bench.store.head.as_mut().unwrap().fence = NOW * 2;
    let before = bench.store.clone();
    bench.take_over(&before);
    assert_eq!(fenced(&bench.acquire(NOW)), Some(NOW + 1));
    assert_eq!(bench.head().incarnation, "1'");
}

#[test]
fn a_holder_with_a_larger_lead_uses_the_spaces_and_says_so() {
    let mut bench = Bench::new();
    bench.acquire(NOW).unwrap();
    bench.terms.lead_ms = 40_000;
    bench.terms.ttl_ms = 39_000;
    let held = bench.acquire(NOW).unwrap();
    assert_eq!((held.reserved_until, held.expires_ms), (NOW + 31_001, NOW + 31_000));
    assert_eq!(held.smaller_lead_ms(&bench.terms), Some(31_000));
    assert_eq!(held.ttl_ms(&bench.terms), 31_000);
    assert_eq!(bench.head().lead_ms, 31_000);
}

/// Once a process had used a space with ttl=1h, every later holder with a TTL of 3 s used to reserve an hour
/// as well.
#[test]
fn a_holder_with_a_smaller_lead_uses_its_own() {
    let mut bench = Bench::new();
    bench.terms.lead_ms = 3_600_000;
    bench.acquire(NOW).unwrap();
    bench.terms = Terms { ttl_ms: 3000, lead_ms: 4000, ..bench.terms };
    let mut held = bench.acquire(NOW).unwrap();
    assert_eq!((held.reserved_until, held.expires_ms), (NOW + 4001, NOW + 3000));
    assert_eq!(held.smaller_lead_ms(&bench.terms), None);
    assert_eq!(bench.renew(&mut held, NOW + 1000), EXTENDED);
    assert_eq!(held.reserved_until, NOW + 5001);
}

#[test]
fn a_larger_difference_than_the_spaces_is_refused() {
    let mut bench = Bench::new();
    bench.acquire(NOW).unwrap();
    bench.terms.clock_difference_ms = 1001;
    let refusal = Refusal::DifferenceTooLarge { difference_ms: 1001, of_space_ms: 1000 };
    assert_eq!(bench.acquire(NOW), Err(refusal));
    // The address sets no difference, so the space's difference applies, even when the clocks are compared.
    bench.terms.is_difference_default = true;
    bench.acquire(NOW).unwrap();
    bench.local_ahead_ms = 1001;
    let differs = ClockDiffers { store_ms: NOW, local_ms: 1_001_001, by_ms: 1001 };
    assert_eq!(bench.acquire(NOW), Err(Refusal::ClockDiffers(differs)));
    (bench.local_ahead_ms, bench.terms.is_difference_default) = (0, false);
    bench.terms.clock_difference_ms = 10;
    bench.acquire(NOW).unwrap();
    // The space's difference applies, so the lease has expired at 30 000.
    assert_eq!(bench.head().difference_ms, 1000);
}

#[test]
fn nodes_are_handed_out_once_and_the_next_is_told_who_frees_first() {
    let mut bench = Bench::new();
    let mut nodes: Vec<u64> = (0..4).map(|i| bench.acquire(NOW + i).unwrap().node).collect();
    let first = nodes[0];
    nodes.sort_unstable();
    assert_eq!(nodes, [0, 1, 2, 3]);
    // The node is free only once more than the clock difference has passed since the expiry.
    for now in [NOW + 10, NOW + 31_000] {
        let at_ms = NOW + 31_001;
        let first = Some(FreesFirst { node: first, label: "here".to_owned(), at_ms, in_ms: at_ms - now });
        assert_eq!(bench.acquire(now), Err(Refusal::NoneFree { nodes: 4, first }));
    }
    // The lease must have expired according to both clocks.
    bench.local_ahead_ms = -1;
    assert!(bench.acquire(NOW + 31_001).is_err());
    (bench.local_ahead_ms, bench.store_ahead_ms) = (0, -1);
    assert!(bench.acquire(NOW + 31_001).is_err());
    bench.store_ahead_ms = 0;
    let held = bench.acquire(NOW + 31_001).unwrap();
    assert_eq!((held.node, held.start, held.reserved_until), (first, NOW + 31_001, NOW + 62_002));
}

#[test]
fn a_node_used_here_is_passed_over() {
    let mut bench = Bench::new();
    for _ in 0..3 {
        assert_ne!(bench.acquire_unless(NOW, &|node| node == 2).unwrap().node, 2);
    }
    let refusal = bench.acquire_unless(NOW, &|_| true).unwrap_err();
    assert_eq!(refusal, Refusal::NoneFree { nodes: 4, first: None });
    assert_eq!(bench.acquire(NOW).unwrap().node, 2);
}

#[test]
fn a_passed_bound_comes_before_a_new_node_and_that_before_a_bound_ahead() {
    let mut bench = Bench::new();
    let all = bench.terms.nodes.clone();
    bench.terms.nodes.range = Some(0..=1);
    let first = bench.acquire(NOW).unwrap();
    bench.release(&first, NOW + 500, NOW);
    // The acquisition picks the node that was never used, because the first node's bound is in the future.
    let second = bench.acquire(NOW).unwrap();
    assert_ne!(second.node, first.node);
    bench.release(&second, NOW + 400, NOW);
    // Both bounds are in the future. The lease is on the node whose bound comes first, and starts at that
    // bound.
    let third = bench.acquire(NOW).unwrap();
    assert_eq!((third.node, third.start), (second.node, NOW + 400));
    bench.release(&third, 0, NOW);
    assert_eq!(
        bench.store.nodes[&third.node].reserved_until,
        NOW + 400,
        "nothing was issued: as it was found"
    );
    // A node whose bound has passed is preferred to a node that was never used.
    bench.terms.nodes = all;
    let wide = bench.acquire(NOW + 450).unwrap();
    assert_eq!((wide.node, wide.start), (second.node, NOW + 400));
}

#[test]
fn sixteen_nodes_are_looked_at_and_all_only_where_none_of_them_is_free() {
    let mut bench = Bench::new();
    bench.terms.nodes.bits = 10;
    let mut acquisition = bench.acquisition(None);
    let request = bench.go_to_write(&mut acquisition, NOW);
    assert!(matches!(request, Request::PutNode { .. }));
    // Lease all nodes but the last.
    for node in 0..1023 {
        let held = Node {
            version: node + 5000,
            token: 9,
            expires_ms: NOW + 9,
            reserved_until: NOW + 9,
            label: "there".to_owned(),
            since_ms: 1,
        };
        bench.store.nodes.insert(node, held);
    }
    assert_eq!(bench.acquire(NOW).unwrap().node, 1023);
    let Err(Refusal::NoneFree { nodes: 1024, first: Some(first) }) = bench.acquire(NOW) else { panic!() };
    assert_eq!((first.node, first.in_ms), (0, 1010));
}

#[test]
fn a_lost_race_goes_on_with_another_node() {
    let mut bench = Bench::new();
    bench.acquire(NOW).unwrap();
    let mut acquisition = bench.acquisition(None);
    let put = bench.go_to_write(&mut acquisition, NOW);
    let Request::PutNode { node, .. } = put else { panic!() };
    let all = bench.terms.nodes.clone();
    bench.terms.nodes = Nodes { fixed_mask: 3, fixed_value: node, ..all.clone() };
    bench.acquire(NOW).unwrap();
    bench.terms.nodes = all;
    assert_ne!(bench.go(&mut acquisition, NOW).unwrap().node, node);
}

#[test]
fn an_unclear_acquisition_is_written_once_more() {
    let mut bench = Bench::new();
    for was_written in [true, false] {
        let mut acquisition = bench.acquisition(None);
        let put = bench.go_to_write(&mut acquisition, NOW);
        if was_written {
            bench.send(&put, NOW);
        }
        // The acquisition sends the same write again. A store may have the write without having confirmed it,
        // and a read confirms nothing.
        assert_eq!(acquisition.begin(&terms(), &mut || 1), put);
        let Request::PutNode { node, new, .. } = put else { panic!() };
        let held = bench.go(&mut acquisition, NOW + 9).unwrap();
        assert_eq!((held.node, held.token, held.reserved_until), (node, new.token, new.reserved_until));
        // From here on, the acquisition is for another lease.
        let next = bench.go(&mut acquisition, NOW + 9).unwrap();
        assert!(next.node != held.node && next.token != held.token);
    }
}

#[test]
fn an_acquisition_that_is_given_up_is_given_back() {
    let mut bench = Bench::new().of_one();
    let mut acquisition = bench.acquisition(None);
    assert_eq!(acquisition.unclear(), None);
    let put = bench.go_to_write(&mut acquisition, NOW);
    bench.send(&put, NOW);
    let held = acquisition.unclear().unwrap();
    bench.release(&held, held.start, NOW);
    assert!(bench.store.nodes[&0].is_given_back());
    assert_eq!(bench.acquire(NOW).unwrap().start, 0);
}

#[test]
fn an_acquisition_that_another_store_acknowledged_gives_nothing() {
    let mut bench = Bench::that_forgets().of_one();
    bench.terms.is_init = true;
    bench.acquire(NOW).unwrap();
    let mut store = bench.store.clone();
    store.nodes.clear();
    bench.store = store.clone();
    let mut acquisition = bench.acquisition(None);
    let put = bench.go_to_write(&mut acquisition, NOW);
    bench.take_over(&store);
    bench.send(&put, NOW);
    let fence = NOW + 34_002;
    assert_eq!(fenced(&bench.go(&mut acquisition, NOW)), Some(fence - NOW));
    // This lease is free although it has not expired, since nobody has issued IDs under it.
    bench.store.head.as_mut().unwrap().fence = NOW + 1;
    let held = bench.go(&mut acquisition, NOW + 1).unwrap();
    assert_eq!(held.start, NOW + 1);
}

#[test]
fn a_store_that_kept_all_is_the_same_and_its_head_says_so() {
    let mut bench = Bench::that_forgets().of_one();
    bench.terms.is_init = true;
    let mut held = bench.acquire(NOW).unwrap();
    let mut other = held.clone();
    bench.store.incarnation = "1*".to_owned();
    assert_eq!(bench.renew(&mut held, NOW + 40_000), EXTENDED);
    assert_eq!((&*bench.head().incarnation, bench.head().fence, bench.head().why), ("1*", 0, Why::First));
    assert_eq!((held.reserved_until, &held.known.head), (NOW + 71_001, bench.head()));

    // Another holder finds its own record under another head with the same fence. Its renewal does not lower
    // the bound, regardless of the time.
    let record = bench.store.nodes[&0].clone();
    bench.store.nodes.insert(0, Node { version: other.version, ..record });
    assert_eq!(bench.renew(&mut other, NOW + 90_000), EXTENDED);
    assert_eq!(other.reserved_until, NOW + 121_001);

    bench.release(&other, 0, NOW);
    bench.store.incarnation = "1**".to_owned();
    assert_eq!(bench.acquire(NOW + 90_000).unwrap().start, 0);
    assert_eq!((&*bench.head().incarnation, bench.head().fence), ("1**", 0));
}

#[test]
fn a_renewal_moves_bound_and_expiry() {
    let mut bench = Bench::new();
    let mut held = bench.acquire(NOW).unwrap();
    assert_eq!(bench.renew(&mut held, NOW + 10_000), EXTENDED);
    assert_eq!((held.start, held.reserved_until, held.expires_ms), (0, NOW + 41_001, NOW + 40_000));
    assert_eq!(bench.store.nodes[&held.node].version, held.version);
    // The clocks have gone back, but the bound has not.
    assert_eq!(bench.renew(&mut held, NOW + 9000), EXTENDED);
    assert_eq!(held.reserved_until, NOW + 41_001);
}

/// A holder relies on the last expiry that it read. A renewal once moved the expiry back, which let another
/// process acquire the node too early.
#[test]
fn a_renewal_never_moves_the_expiry_back() {
    let mut bench = Bench::new().of_one();
    let mut held = bench.acquire(NOW).unwrap();
    bench.local_ahead_ms = -600_000;
    assert!(matches!(bench.renew(&mut held, NOW + 1000), Err(Refusal::ClockDiffers(_))));
    bench.local_ahead_ms = 0;
    assert_eq!(bench.store.nodes[&0].expires_ms, NOW + 30_000);
    assert!(matches!(bench.acquire(NOW + 31_000), Err(Refusal::NoneFree { .. })));
    // Nor does the expiry move back if the store's clock is behind.
    bench.store_ahead_ms = -1500;
    assert!(matches!(bench.renew(&mut held, NOW + 1200), Ok(Renewed::Extended { .. })));
    assert_eq!((held.expires_ms, held.is_alone_for_ms()), (NOW + 30_000, 27_800));
}

/// A master's clock was once ahead by less than a third of the TTL. Holders wrote bounds above its replica's
/// fence, and 18 020 numbers were issued twice.
#[test]
fn bounds_count_from_the_lower_clock_and_fences_from_the_higher() {
    let mut bench = Bench::that_forgets().of_one();
    bench.terms =
        Terms { ttl_ms: 12_000, lead_ms: 13_000, clock_difference_ms: 200, is_init: true, ..bench.terms };
    let mut held = bench.acquire(NOW).unwrap();
    let replica = bench.store.clone();
    bench.store_ahead_ms = 3800;
    assert!(matches!(bench.renew(&mut held, NOW + 3000), Ok(Renewed::Extended { clock: Some(_) })));
    assert!(matches!(bench.renew(&mut held, NOW + 6000), Ok(Renewed::Extended { clock: Some(_) })));
    assert_eq!((held.reserved_until, held.expires_ms), (NOW + 6200 + 13_001, NOW + 6200 + 12_000));
    bench.take_over(&replica);
    bench.store_ahead_ms = 0;
    assert!(fenced(&bench.acquire(NOW + 6001)).is_some());
    assert!(bench.head().fence > held.reserved_until, "{:?}", bench.head());

    // The same holds if this machine's clock is ahead.
    let ahead = Bench { local_ahead_ms: 3800, store: replica.clone(), ..bench };
    let mut bench = ahead;
    let mut held = Bench::renewed_from(&replica);
    assert!(matches!(bench.renew(&mut held, NOW + 3000), Ok(Renewed::Extended { clock: Some(_) })));
    assert_eq!((held.reserved_until, held.expires_ms), (NOW + 3000 + 13_001, NOW + 3000 + 12_000));
    bench.take_over(&replica);
    // The fence is ahead of this clock by the lead, three times the difference, the granularity and one tick.
    assert!(matches!(bench.renew(&mut held, NOW + 4000), Ok(Renewed::Extended { .. })));
    assert_eq!(bench.head().fence, NOW + 4000 + 3800 + 13_000 + 600 + 1 + 1);
}

impl Bench {
    /// Returns the lease in the only record, after a renewal.
    fn renewed_from(store: &Memory) -> Held {
        let (head, record) = (store.head.clone().unwrap(), store.nodes[&0].clone());
        Held {
            node: 0,
            token: record.token,
            start: 0,
            reserved_until: record.reserved_until,
            expires_ms: record.expires_ms,
            since_ms: record.since_ms,
            store_time: StoreTime { now_ms: record.since_ms, received_ms: record.since_ms },
            known: Known::new(head),
            high_ms: record.since_ms,
            version: record.version,
            written_until: record.reserved_until,
            replaced: None,
            sent: None,
        }
    }
}

#[test]
fn an_unclear_renewal_is_written_once_more_and_then_again() {
    let mut bench = Bench::new();
    for was_written in [true, false] {
        let mut held = bench.acquire(NOW).unwrap();
        let (_, request) = bench.begin(&mut held, NOW + 10_000);
        if was_written {
            bench.send(&request, NOW + 10_000);
        }
        let was = held.clone();
        assert_eq!(bench.begin(&mut held, NOW + 12_000).1, request);
        assert_eq!(held, was, "what did not count is not used");
        assert_eq!(bench.renew(&mut held, NOW + 12_000), EXTENDED);
        assert_eq!(held.reserved_until, NOW + 43_001);
        assert_eq!(bench.store.nodes[&held.node].version, held.version);
    }
}

#[test]
fn an_unclear_renewal_that_was_written_is_no_loss_under_another_head() {
    let mut bench = Bench::that_forgets().of_one();
    bench.terms.is_init = true;
    let mut held = bench.acquire(NOW).unwrap();
    let (_, request) = bench.begin(&mut held, NOW + 10_000);
    bench.send(&request, NOW + 10_000);
    bench.store.head.as_mut().unwrap().version = 77;
    assert_eq!(bench.renew(&mut held, NOW + 12_000), EXTENDED);
    assert_eq!((bench.head().version, bench.head().why), (77, Why::First));
    assert_eq!(held.reserved_until, NOW + 43_001);
}

#[test]
fn a_freeze_that_the_clock_did_not_count_is_one_more_write() {
    let mut bench = Bench::new();
    let mut held = bench.acquire(NOW).unwrap();
    let (frozen, counted) = (NOW + 3_600_000, NOW + 10_000);
    let (mut renewal, mut request) = bench.begin(&mut held, counted);
    let terms = bench.terms.clone();
    while let Next::Ask(next) = {
        let received = bench.send(&request, frozen);
        renewal.step(&terms, &mut held, &received, &mut || bench.random()).unwrap()
    } {
        request = next;
    }
    assert_eq!((held.reserved_until, held.expires_ms), (frozen + 31_001, frozen + 30_000));
}

#[test]
fn what_another_has_is_lost() {
    let mut bench = Bench::new().of_one();
    let mut held = bench.acquire(NOW).unwrap();
    let other = bench.acquire(NOW + 40_000).unwrap();
    assert_eq!((other.node, other.start), (held.node, held.reserved_until));
    let was = held.reserved_until;
    assert_eq!(bench.renew(&mut held, NOW + 40_000), Ok(Renewed::Lost));
    assert_eq!(held.reserved_until, was, "what was reserved may be issued");
    // Nor does a release give back another process's lease.
    bench.release(&held, NOW, NOW + 40_000);
    assert_eq!(bench.store.nodes[&held.node].version, other.version);
    // The lease is lost even if the other process has given the node back.
    bench.release(&other, 0, NOW + 40_000);
    assert_eq!(bench.renew(&mut held, NOW + 40_000), Ok(Renewed::Lost));
    assert_eq!(bench.head().why, Why::First, "nothing was lost");
}

#[test]
fn after_a_loss_only_those_who_surely_have_not_expired_renew() {
    // This is thirty seconds, minus twice the clock difference and the granularity.
    let last = 27_998;
    let was_leased = || {
        let mut bench = Bench::new().of_one();
        let held = bench.acquire(NOW).unwrap();
        let store = bench.store.clone();
        bench.take_over(&store);
        (bench, held)
    };
    let (mut bench, mut held) = was_leased();
    assert_eq!(bench.renew(&mut held, NOW + last), EXTENDED);
    assert_eq!((&*bench.head().incarnation, bench.head().fence), ("1'", NOW + last + 34_002));
    assert_eq!((held.reserved_until, &held.known.head), (NOW + last + 31_001, bench.head()));
    assert_eq!(fenced(&bench.acquire(NOW + last)), Some(34_002));

    let (mut bench, mut held) = was_leased();
    let was = held.reserved_until;
    assert_eq!(bench.renew(&mut held, NOW + last + 1), Ok(Renewed::Lost));
    assert_eq!(held.reserved_until, was);
    assert_eq!(bench.head().incarnation, "1'", "the fence is there all the same");

    // Whichever clock is ahead is the one that counts.
    for (store_ahead_ms, local_ahead_ms) in [(1, 0), (0, 1)] {
        let (bench, mut held) = was_leased();
        let mut bench = Bench { store_ahead_ms, local_ahead_ms, ..bench };
        assert_eq!(bench.renew(&mut held, NOW + last), Ok(Renewed::Lost));
    }
}

/// Holders were once able to renew an expired lease after the store had lost writes, because its clock
/// counted only whole seconds.
#[test]
fn a_coarse_clock_is_allowed_for() {
    let mut bench = Bench::new().of_one();
    (bench.granularity_ms, bench.terms.clock_difference_ms) = (1000, 10);
    let mut held = bench.acquire(NOW + 999).unwrap();
    assert_eq!(held.expires_ms, NOW + 30_000);
    let store = bench.store.clone();
    bench.take_over(&store);
    // The lease expired 500 ms ago, but the clock is as far behind as allowed and still reads 30 000.
    bench.local_ahead_ms = -520;
    assert_eq!(bench.renew(&mut held, NOW + 30_500), Ok(Renewed::Lost));
    assert_eq!(bench.head().fence, NOW + 30_000 + 31_000 + 30 + 1000 + 1);
}

/// A store evicted the nodes but kept the head.
#[test]
fn a_head_without_ones_own_record_is_a_loss() {
    let mut bench = Bench::that_forgets();
    bench.terms.is_init = true;
    let mut held = bench.acquire(NOW).unwrap();
    let mut other = bench.acquire(NOW).unwrap();
    bench.store.nodes.clear();
    assert_eq!(bench.renew(&mut held, NOW + 10_000), EXTENDED);
    let fence = NOW + 10_000 + 34_002;
    assert_eq!((bench.head().fence, bench.head().why), (fence, Why::Loss));
    assert_eq!(fenced(&bench.acquire(NOW + 10_000)), Some(34_002));
    // The next renewal leaves that fence unchanged.
    assert_eq!(bench.renew(&mut other, NOW + 11_000), EXTENDED);
    assert_eq!(bench.head().fence, fence);
    assert_eq!(bench.store.nodes.len(), 2);
}

#[test]
fn a_record_or_a_head_that_was_replaced_is_a_loss() {
    // Only the process's own record is out of date.
    let mut bench = Bench::new().of_one();
    let before_all = bench.store.clone();
    let mut held = bench.acquire(NOW).unwrap();
    let older = bench.store.clone();
    bench.renew(&mut held, NOW + 10_000).unwrap();
    let newer = held.clone();
    bench.store = older.clone();
    assert_eq!(bench.renew(&mut held, NOW + 11_000), EXTENDED);
    assert_eq!((bench.head().why, held.reserved_until), (Why::Loss, NOW + 42_001));
    // The store has lost the whole space.
    let (mut bench, mut held) = (Bench { store: before_all, ..bench }, newer);
    assert_eq!(bench.renew(&mut held, NOW + 11_000), EXTENDED);
    assert_eq!(bench.head().why, Why::Loss);

    // Test the record that the acquisition replaced, and a record from before that.
    for mut older in [true, false] {
        let mut bench = Bench::new().of_one();
        let one = bench.acquire(NOW).unwrap();
        bench.release(&one, NOW, NOW);
        let mut store = bench.store.clone();
        let mut held = bench.acquire(NOW + 1).unwrap();
        if core::mem::take(&mut older) {
            store.nodes.get_mut(&0).unwrap().version = 99;
        }
        bench.store = store;
        assert_eq!(bench.renew(&mut held, NOW + 10_000), EXTENDED);
        assert_eq!(bench.head().why, Why::Loss);
    }

    // The store shows an older head, which this process has already seen replaced.
    let mut bench = Bench::new();
    let mut held = bench.acquire(NOW).unwrap();
    let old = bench.store.head.clone();
    bench.store.head.as_mut().unwrap().version = 77;
    bench.renew(&mut held, NOW + 1).unwrap();
    bench.store.head = old;
    assert_eq!(bench.renew(&mut held, NOW + 2), EXTENDED);
    assert_eq!(bench.head().why, Why::Loss);
}

#[test]
fn a_renewal_that_another_store_acknowledged_gives_nothing() {
    let mut bench = Bench::new().of_one();
    let mut held = bench.acquire(NOW).unwrap();
    let replica = bench.store.clone();
    bench.take_over(&replica);
    // The process renews too late to rejoin.
    let was = held.clone();
    assert_eq!(bench.renew(&mut held, NOW + 28_000), Ok(Renewed::Lost));
    assert_eq!((held.reserved_until, held.expires_ms), (was.reserved_until, was.expires_ms));
}

#[test]
fn a_bound_comes_down_to_a_fence_below_it() {
    let mut bench = Bench::new().of_one();
    let mut held = bench.acquire(NOW).unwrap();
    bench.store.head = bench.store.head.clone().map(|head| Head { version: 77, fence: NOW + 5, ..head });
    let held_then = held.clone();
    // The renewal lowers the bound even before the next request is answered.
    let (mut renewal, request) = bench.begin(&mut held, NOW + 2);
    let received = bench.send(&request, NOW + 2);
    let terms = bench.terms.clone();
    let next = renewal.step(&terms, &mut held, &received, &mut || 9).unwrap();
    assert!(matches!(next, Next::Ask(Request::PutNode { .. })));
    assert_eq!(held.reserved_until, NOW + 5);
    // If another process has since held the node, the holder does not take the lease back.
    let mut held = held_then;
    bench.store.nodes.get_mut(&0).unwrap().token = 3;
    bench.store.nodes.get_mut(&0).unwrap().version = 3;
    bench.store.nodes.get_mut(&0).unwrap().since_ms += 1;
    assert_eq!(bench.renew(&mut held, NOW + 2), Ok(Renewed::Lost));
    assert_eq!(held.reserved_until, NOW + 5);
}

#[test]
fn a_release_frees_at_once_and_takes_back_what_was_not_issued() {
    let mut bench = Bench::new().of_one();
    let mut held = bench.acquire(NOW).unwrap();
    bench.renew(&mut held, NOW + 10_000).unwrap();
    // The release works even if the reply to the last renewal was lost.
    let (_, request) = bench.begin(&mut held, NOW + 11_000);
    bench.send(&request, NOW + 11_000);
    bench.release(&held, NOW + 12_000, NOW + 12_000);
    bench.release(&held, NOW + 12_000, NOW + 12_000);
    let record = &bench.store.nodes[&0];
    assert_eq!((record.token, record.expires_ms, record.reserved_until), (0, 0, NOW + 12_000));
    assert_eq!(bench.acquire(NOW + 12_000).unwrap().start, NOW + 12_000);
}

#[test]
fn a_release_finds_its_record_in_another_life_of_the_store() {
    let mut bench = Bench::new();
    let held = bench.acquire(NOW).unwrap();
    let mut other = bench.acquire(NOW).unwrap();
    bench.renew(&mut other, NOW + 1).unwrap();
    let mut lost = bench.store.clone();
    lost.head.as_mut().unwrap().version = 77;
    bench.take_over(&lost);
    bench.release(&held, NOW + 5, NOW + 5);
    assert_eq!(bench.store.nodes[&held.node].token, held.token, "nobody wrote the fence yet: it expires");
    bench.renew(&mut other, NOW + 5).unwrap();
    bench.release(&held, NOW + 5, NOW + 5);
    let record = &bench.store.nodes[&held.node];
    assert_eq!((record.token, record.reserved_until), (0, NOW + 5));
}

#[test]
fn the_clock_is_compared_over_the_span_from_sending_to_receiving() {
    let at = |now_ms, wall_sent_ms, wall_received_ms, granularity_ms| {
        let received = Received {
            reply: Reply::Written,
            now_ms,
            incarnation: String::new(),
            has_kept_all: true,
            facts: Facts { granularity_ms, can_forget: true, asynchronous_replicas: 0 },
            wall_sent_ms,
            wall_received_ms,
            elapsed_ms: 0,
        };
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
    let mut bench = Bench::new();
    bench.local_ahead_ms = 1001;
    let differs = ClockDiffers { store_ms: NOW, local_ms: 1_001_001, by_ms: 1001 };
    assert_eq!(bench.acquire(NOW), Err(Refusal::ClockDiffers(differs)));
    bench.local_ahead_ms = 1000;
    let mut held = bench.acquire(NOW).unwrap();

    bench.local_ahead_ms = 10_000;
    let clock = Some(ClockDiffers { store_ms: NOW + 1, local_ms: 1_010_001, by_ms: 10_000 });
    assert_eq!(bench.renew(&mut held, NOW + 1), Ok(Renewed::Extended { clock }));
    let was = held.reserved_until;
    bench.local_ahead_ms = 10_001;
    assert!(matches!(bench.renew(&mut held, NOW + 2), Err(Refusal::ClockDiffers(_))));
    assert_eq!(held.reserved_until, was);
}

#[test]
fn nobody_else_has_the_node_for_what_is_left() {
    let mut bench = Bench::new().of_one();
    let held = bench.acquire(NOW).unwrap();
    assert_eq!(held.is_alone_for_ms(), 29_000);
    // The store's clock is behind. By that clock, a lease seems to last longer than by this machine's clock.
    let mut bench = Bench { store_ahead_ms: -600, ..Bench::new().of_one() };
    assert_eq!(bench.acquire(NOW).unwrap().is_alone_for_ms(), 28_400);
    let mut bench = Bench { granularity_ms: 1000, ..Bench::new().of_one() };
    assert_eq!(bench.acquire(NOW).unwrap().is_alone_for_ms(), 28_001);
}

#[test]
fn changing_records_end_a_go() {
    let mut bench = Bench::new();
    let mut acquisition = bench.acquisition(None);
    let terms = bench.terms.clone();
    acquisition.begin(&terms, &mut || 1);
    let mut asked = 1;
    let mut received = bench.send(&Request::Read(None), NOW);
    received.reply = Reply::Head(false);
    while acquisition.step(&terms, &received, &mut || 1, &|_| false).is_ok() {
        asked += 1;
    }
    assert_eq!(asked, MAX_REQUESTS);
}

/// The driver keeps a lease in a store's records.
#[test]
fn a_lease_goes_through_a_store() {
    let mut store = crate::records::MemoryStore::default();
    let (terms, time) = (terms(), crate::local::Clocks);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let random: Random<'_> = &mut crate::local::random;
        let mut acquisition = Acquisition::new(None, random);
        let mut held =
            acquire(&mut store, &terms, &mut acquisition, &time, random, &|_| false).await.unwrap();
        let was = held.clone();
        assert_eq!(renew(&mut store, &terms, &mut held, &time, random).await, EXTENDED);
        assert!(held.reserved_until >= was.reserved_until && held.version != was.version);
        release(&mut store, &terms, &held, 5, &time, random).await.unwrap();
        let read = store.read(&terms.group.clone(), None).await.unwrap().value;
        assert_eq!(read.len(), 2);
        let (_, record) = read.iter().find(|(name, _)| *name == held.node.to_string()).unwrap();
        let node = Node::read(held.node, record).unwrap();
        assert!(node.is_given_back() && node.reserved_until == 5 && node.label == "here");

        // Another program wrote this record.
        let group = terms.group.clone();
        let new = Record { version: 1, number: 1, text: "{}".into() };
        let expected = Some(record.version);
        let write = Write { group, name: held.node.to_string(), expected, guard: None, new };
        store.write(&write).await.unwrap();
        let refusal = acquire(&mut store, &terms, &mut acquisition, &time, random, &|_| false).await;
        let Err(Refusal::Unreadable(why)) = refusal else { panic!("{refusal:?}") };
        assert!(why.contains("names no format"), "{why}");
    });
}
