//! Tests histories in which one owner follows another.

use super::*;

#[derive(Debug)]
struct Fake {
    owner: u64,
    incarnation: &'static str,
    records: Vec<(String, Record)>,
    versions: u64,
}

fn group() -> Group {
    Group { namespace: "n".into(), kind: crate::records::Kind::Sequences, name: "inbox".into() }
}

impl Fake {
    fn new() -> Self {
        Self { owner: 1, incarnation: "a", records: Vec::new(), versions: 0 }
    }

    fn owner(&mut self) -> Owner {
        self.owner += 1;
        Owner { name: "owner".into(), version: self.owner, incarnation: self.incarnation.into() }
    }

    fn bounds(&mut self, sections: usize) -> Bounds {
        Bounds::new(group(), sections, self.owner())
    }

    fn version(&mut self) -> u64 {
        self.versions += 2;
        self.versions
    }

    fn carry_out(&mut self, request: &Request) -> Received {
        let reply = match request {
            Request::Read(_, names) => {
                assert!(names.len() <= Record::MAX_NAMES);
                Reply::Read(self.records.iter().filter(|it| names.contains(&it.0)).cloned().collect())
            }
            Request::Write(write) => {
                let found = self.records.iter().find(|it| it.0 == write.name).map(|it| it.1.clone());
                let version = found.as_ref().map(|it| it.version);
                let is_guarded = write.guard.as_ref().is_none_or(|guard| guard.1 == self.owner);
                if is_guarded && (version == write.expected || version == Some(write.new.version)) {
                    self.records.retain(|it| it.0 != write.name);
                    self.records.push((write.name.clone(), write.new.clone()));
                    Reply::Write(Outcome::Written)
                } else {
                    let guard = Record { version: self.owner, number: 0, text: String::new() };
                    Reply::Write(Outcome::Found { record: found, guard: Some(guard) })
                }
            }
        };
        Received { reply, incarnation: self.incarnation.into() }
    }

    fn go(&mut self, bounds: &mut Bounds, wanted: &[(usize, u64)]) -> Result<(), Refusal> {
        let mut next = bounds.begin(wanted, &mut || self.version())?;
        while let Next::Ask(request) = next {
            let received = self.carry_out(&request);
            next = bounds.step(&received, wanted, &|before, now| before == now, &mut || self.version())?;
        }
        Ok(())
    }

    /// Starts a move whose reply is lost. The store carries out the request only if `lands` is true.
    fn lost(&mut self, bounds: &mut Bounds, wanted: &[(usize, u64)], lands: bool) {
        let Ok(Next::Ask(request)) = bounds.begin(wanted, &mut || self.version()) else { panic!() };
        if lands {
            self.carry_out(&request);
        }
    }
}

#[allow(clippy::unnecessary_wraps, reason = "it is compared with what is one")]
fn range(above: u64, bound: u64) -> Option<Range> {
    Some(Range { above, bound })
}

#[test]
fn a_set_of_many_sections() {
    let mut store = Fake::new();
    let mut first = store.bounds(16_384);
    assert_eq!(first.range(0), None);
    store.go(&mut first, &[(0, 100), (63, 50), (64, 70), (16_383, 9)]).unwrap();
    assert_eq!([0, 63, 64, 16_383, 1].map(|at| first.range(at)), [100, 50, 70, 9, 0].map(|it| range(0, it)));
    assert_eq!((first.range(16_384), store.records.len()), (None, 3));
    let mut second = store.bounds(16_384);
    store.go(&mut second, &[]).unwrap();
    assert_eq!(second.range(64), range(70, 70));
    // The first owner has lost its lease, so its writes do not take effect.
    assert_eq!(store.go(&mut first, &[(0, 200)]), Err(Refusal::NotOwner));
    assert_eq!(store.go(&mut second, &[(0, 200)]), Ok(()));
    assert_eq!(second.range(0), range(100, 200));
    let mut other = store.bounds(100);
    assert_eq!(store.go(&mut other, &[]), Err(Refusal::OtherSections { found: 16_384 }));
}

/// A single lost reply once caused two steps to be skipped.
#[test]
fn a_move_whose_reply_was_lost_is_recognised() {
    for lands in [true, false] {
        let mut store = Fake::new();
        let mut owner = store.bounds(1);
        store.go(&mut owner, &[(0, 10)]).unwrap();
        store.lost(&mut owner, &[(0, 20)], lands);
        assert_eq!(owner.range(0), range(0, 10));
        // The lease was renewed in between.
        owner.renewed(store.owner().version);
        store.go(&mut owner, &[(0, 20)]).unwrap();
        assert_eq!(owner.range(0), range(0, 20));
        owner.without = Some(Rule::KeepsItsVersion);
        store.lost(&mut owner, &[(0, 30)], lands);
        assert_eq!(store.go(&mut owner, &[(0, 30)]).is_err(), lands);
    }
}

#[test]
fn an_owner_that_rejoins_writes_its_bounds_first() {
    for without in [None, Some(Rule::RewritesAfterLoss)] {
        let mut store = Fake::new();
        let mut owner = store.bounds(2);
        store.go(&mut owner, &[(0, 10)]).unwrap();
        let before = store.records.clone();
        store.go(&mut owner, &[(0, 20), (1, 5)]).unwrap();
        (store.records, store.incarnation) = (before, "b");
        assert_eq!(store.go(&mut owner, &[(0, 30)]), Err(Refusal::Lost));
        owner.without = without;
        owner.rejoined(store.owner());
        if without.is_some() {
            // The owner issues numbers, although the store has not recorded the bound.
            assert_eq!(owner.range(0), range(0, 20));
            assert!(store.records[0].1.text.contains("\"10 0\""));
            continue;
        }
        assert_eq!(owner.range(0), None);
        store.go(&mut owner, &[]).unwrap();
        assert_eq!([owner.range(0), owner.range(1)], [range(0, 20), range(0, 5)]);
        assert!(store.records[0].1.text.contains("\"20 5\""));
    }
}

#[test]
fn what_lands_after_a_loss_does_not_count() {
    let mut store = Fake::new();
    let mut owner = store.bounds(1);
    store.go(&mut owner, &[(0, 10)]).unwrap();
    store.incarnation = "b";
    assert_eq!(store.go(&mut owner, &[(0, 20)]), Err(Refusal::Lost));
    assert_eq!(owner.range(0), range(0, 10));
    owner.without = Some(Rule::CountsUnderItsIncarnation);
    store.go(&mut owner, &[(0, 20)]).unwrap();
    assert_eq!(owner.range(0), range(0, 20));
}

#[test]
fn a_new_owner_passes_over_what_may_be_lost() {
    let mut store = Fake::new();
    let mut owner = store.bounds(1);
    owner.advances(0, 50);
    store.go(&mut owner, &[(0, 10)]).unwrap();
    store.incarnation = "b";
    let mut next = store.bounds(1);
    store.go(&mut next, &[(0, 112)]).unwrap();
    assert_eq!(next.range(0), range(110, 112));
    // The second new owner does not skip numbers again.
    let mut last = store.bounds(1);
    store.go(&mut last, &[]).unwrap();
    assert_eq!(last.range(0), range(112, 112));
}

#[test]
fn what_is_given_back_is_given_again() {
    let mut store = Fake::new();
    let mut owner = store.bounds(2);
    store.go(&mut owner, &[(0, 100), (1, 7)]).unwrap();
    owner.give_back(&[31, 9], &mut || store.version());
    assert_eq!(owner.range(0), None);
    store.go(&mut owner, &[(0, 300)]).unwrap();
    assert_eq!(owner.range(0), None);
    let mut next = store.bounds(2);
    store.go(&mut next, &[]).unwrap();
    assert_eq!([next.range(0), next.range(1)], [range(31, 31), range(7, 7)]);
}

#[test]
fn a_text_that_is_not_known_is_refused() {
    let mut store = Fake::new();
    let mut owner = store.bounds(2);
    store.go(&mut owner, &[(0, Record::LAST_NUMBER)]).unwrap();
    assert_eq!(store.go(&mut owner, &[(0, u64::MAX)]), Err(Refusal::End));
    let good = store.records[0].1.text.clone();
    for (old, new) in
        [(":1,", ":2,"), ("5807 0", "5808 0"), ("5807 0", "5807  0"), ("{", ""), ("xxh3-64", "md5")]
    {
        store.records[0].1.text = good.replacen(old, new, 1);
        let mut next = store.bounds(2);
        assert!(store.go(&mut next, &[]).is_err(), "{old}");
    }
}

/// Even if a store loses a process's lease and everything else, the process still knows the numbers it
/// issued.
#[test]
fn the_next_lease_of_a_process_begins_above_its_former_one() {
    let mut store = Fake::new();
    let mut former = store.bounds(70);
    store.go(&mut former, &[(1, 100), (69, 40)]).unwrap();
    (store.records, store.incarnation) = (Vec::new(), "b");
    let mut next = store.bounds(70).above(&former);
    store.go(&mut next, &[]).unwrap();
    assert_eq!((next.range(0), next.range(1), next.range(69)), (range(0, 0), range(100, 100), range(40, 40)));
    // If another process's bounds are higher, the next lease begins above them.
    let mut other = store.bounds(70);
    store.go(&mut other, &[(1, 300)]).unwrap();
    let mut next = store.bounds(70).above(&next);
    store.go(&mut next, &[]).unwrap();
    assert_eq!((next.range(1), next.range(69)), (range(300, 300), range(40, 40)));
}
