//! Tests histories on one store and on several, one request at a time.

use super::*;
use crate::counter::segments::Run;
use crate::records::{Kind, MemoryStore};

/// A store that loses writes when a test tells it to.
#[derive(Debug, Clone)]
struct Fake {
    record: Option<Record>,
    incarnation: &'static str,
    elapsed_ms: u64,
    versions: u64,
}

impl Fake {
    fn new() -> Self {
        Self { record: None, incarnation: "a", elapsed_ms: 0, versions: 0 }
    }

    fn carry_out(&mut self, request: &Request) -> Received {
        let found = self.record.as_ref().map(|record| record.version);
        let mut is_done = false;
        match request {
            Request::Write(write) if found == write.expected || found == Some(write.new.version) => {
                is_done = true;
                self.record = Some(write.new.clone());
            }
            Request::Read(_) | Request::Write(_) => {}
            Request::Add(add) => {
                if found == Some(add.version) {
                    is_done = true;
                } else if let Some(record) = &mut self.record {
                    if let Some(number) = add.sum(record) {
                        is_done = true;
                        (record.version, record.number) = (add.version, number);
                    }
                }
            }
        }
        let (record, incarnation) = (self.record.clone(), self.incarnation.to_owned());
        Received { is_done, record, incarnation, elapsed_ms: self.elapsed_ms }
    }

    fn version(&mut self) -> u64 {
        self.versions += 1;
        self.versions << 1
    }

    fn open(&mut self) -> Source {
        all(&mut [self], Purpose::Open { start: 1 }).unwrap().remove(0).unwrap()
    }

    fn go(&mut self, source: &mut Source, want: Want) -> Result<Option<Run>, Refusal> {
        let mut request = source.begin(want, &mut || self.version());
        loop {
            let received = self.carry_out(&request);
            match source.step(&received, &kept_all, &mut || self.version())? {
                Next::Ask(next) => request = next,
                Next::Done(run) => return Ok(run),
            }
        }
    }

    /// Reserves numbers, and returns the first and the last.
    fn reserve(&mut self, source: &mut Source, count: u64) -> Result<(u64, u64), Refusal> {
        let run = self.go(source, Want::Reserve { count, least: 1 })?.unwrap();
        Ok((run.first, run.last()))
    }

    fn number(&self) -> u64 {
        self.record.as_ref().unwrap().number
    }

    fn text(&self) -> Text {
        Text::read(&self.record.as_ref().unwrap().text).unwrap()
    }
}

/// `b` is `a` after its first replica was attached.
fn kept_all(before: &str, now: &str) -> bool {
    before == now || (before, now) == ("a", "b")
}

fn group() -> Group {
    Group { namespace: "n".into(), kind: Kind::Counter, name: "orders".into() }
}

/// Runs a procedure on these stores. A store whose incarnation is "" is down.
fn all(stores: &mut [&mut Fake], purpose: Purpose) -> Result<Vec<Option<Source>>, Refusal> {
    let mut version = stores[0].version() << 8;
    let mut random = || {
        version += 2;
        version
    };
    let mut procedure = Procedure::new(purpose, false, vec![group(); stores.len()], &mut random);
    while let Step::Ask(at, request) = procedure.next(&mut random)? {
        let received = Some(stores[at].carry_out(&request)).filter(|it| !it.incarnation.is_empty());
        procedure.answered(at, received.as_ref(), &kept_all)?;
    }
    stores[0].versions = (version >> 1) + 1;
    let source = |at| match procedure.standing(at) {
        Standing::Gives(record, text) => Some(Source::new(group(), &record, text, false)),
        _ => None,
    };
    Ok((0..stores.len()).map(source).collect())
}

/// Retries a failed attempt and returns the number of writes made.
fn all_again(stores: &mut [&mut Fake], purpose: Purpose) -> Result<usize, Refusal> {
    let mut random = || 1 << 40;
    let mut procedure = Procedure::new(purpose, true, vec![group(); stores.len()], &mut random);
    let mut writes = 0;
    while let Step::Ask(at, request) = procedure.next(&mut random)? {
        let received = stores[at].carry_out(&request);
        writes += usize::from(received.is_done);
        procedure.answered(at, Some(&received), &kept_all)?;
    }
    Ok(writes)
}

const LOOK: Want = Want::Look;

#[test]
fn it_runs_on_a_store() {
    let store = MemoryStore::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ask = |request: &Request| runtime.block_on(ask(&mut store.clone(), request, || 0)).unwrap();
    let mut version = 0;
    let mut random = || {
        version += 2;
        version
    };
    let mut procedure = Procedure::new(Purpose::Open { start: 7 }, false, vec![group()], &mut random);
    while let Step::Ask(at, request) = procedure.next(&mut random).unwrap() {
        procedure.answered(at, Some(&ask(&request)), &kept_all).unwrap();
    }
    let Standing::Gives(record, text) = procedure.standing(0) else { panic!("{procedure:?}") };
    let mut source = Source::new(group(), &record, text, false);
    let mut reserve = |source: &mut Source, count| {
        let request = source.begin(Want::Reserve { count, least: 1 }, &mut random);
        match source.step(&ask(&request), &kept_all, &mut random).unwrap() {
            Next::Done(Some(run)) => (run.first, run.last()),
            next => panic!("{next:?}"),
        }
    };
    assert_eq!(reserve(&mut source, 10), (7, 16));
    assert_eq!(reserve(&mut source, 1), (17, 17));
    let request = source.give_back(1, &mut || 900).unwrap();
    assert!(ask(&request).is_done);
    assert!(!ask(&source.give_back(1, &mut || 902).unwrap()).is_done);
    let mut another = Source::new(group(), &record, Text::read(&record.text).unwrap(), false);
    assert_eq!(reserve(&mut another, 1), (17, 17));
}

#[test]
fn each_store_gives_the_numbers_of_its_place() {
    let (mut first, mut second) = (Fake::new(), Fake::new());
    let mut sources = all(&mut [&mut first, &mut second], Purpose::Open { start: 1 }).unwrap();
    let mut even = sources.remove(0).unwrap();
    let mut odd = sources.remove(0).unwrap();
    assert_eq!(first.reserve(&mut even, 3), Ok((2, 6)));
    assert_eq!(second.reserve(&mut odd, 3), Ok((1, 5)));
    assert_eq!(second.reserve(&mut odd, 1), Ok((7, 7)));
    // Another process finds both records, and does not create them again.
    assert!(
        all(&mut [&mut first, &mut second], Purpose::Open { start: 1 }).unwrap().iter().all(Option::is_some)
    );
    let other = all(&mut [&mut first], Purpose::Open { start: 1 });
    let (found, wanted) = (Place { index: 0, count: 2 }, Place::ONLY);
    assert_eq!(other.err(), Some(Refusal::OtherPlace { at: 0, found, wanted }));
    // A store that is down is not used. A store that lost its record is not used until the counter is raised.
    second.incarnation = "";
    let sources = all(&mut [&mut first, &mut second], Purpose::Open { start: 1 }).unwrap();
    assert!(sources[0].is_some() && sources[1].is_none());
    let raise = Purpose::Raise { number: 99 };
    let raised = all(&mut [&mut first, &mut second], raise);
    assert_eq!(raised.err(), Some(Refusal::Unreachable { at: vec![1] }));
    (second.incarnation, second.record) = ("c", None);
    let sources = all(&mut [&mut first, &mut second], Purpose::Open { start: 1 }).unwrap();
    assert!(sources[0].is_some() && sources[1].is_none());
    let mut sources = all(&mut [&mut first, &mut second], raise).unwrap();
    assert_eq!(second.reserve(sources[1].as_mut().unwrap(), 1), Ok((101, 101)));
    // The process that had numbers up to 7 continues above 101.
    assert_eq!(second.reserve(&mut odd, 1), Ok((103, 103)));
    assert_eq!(first.reserve(&mut even, 1), Ok((102, 102)));
    assert!(!even.has_dropped() && !odd.has_dropped());
}

#[test]
fn a_store_that_is_down_at_first_means_no_numbers() {
    let (mut first, mut second) = (Fake::new(), Fake::new());
    second.incarnation = "";
    let open = Purpose::Open { start: 1 };
    let opened = all(&mut [&mut first, &mut second], open);
    assert_eq!(opened.err(), Some(Refusal::Unreachable { at: vec![1] }));
    second.incarnation = "a";
    assert!(all(&mut [&mut first, &mut second], open).unwrap().iter().all(Option::is_some));
}

/// The first store had already returned numbers, and lost its record before the second record was marked.
#[test]
fn a_record_that_is_lost_while_others_are_incomplete() {
    let (mut first, mut second) = (Fake::new(), Fake::new());
    let text = Text::new("x".into(), Place { index: 1, count: 2 }, "a".into());
    second.record = Some(Record { version: 5, number: 0, text: text.write() });
    let opened = all(&mut [&mut first, &mut second], Purpose::Open { start: 1 });
    assert_eq!(opened.err(), Some(Refusal::LostRecord { at: 0 }));
    let raise = Purpose::Raise { number: 100 };
    let mut sources = all(&mut [&mut first, &mut second], raise).unwrap();
    assert_eq!(first.reserve(sources[0].as_mut().unwrap(), 1), Ok((102, 102)));
    assert_eq!(second.reserve(sources[1].as_mut().unwrap(), 1), Ok((101, 101)));
}

/// A process crashed before it marked the first record. With a different list of stores, a raise would create
/// a different counter.
#[test]
fn an_incomplete_record_is_raised_and_removed_at_its_place() {
    let place = Place { index: 0, count: 2 };
    let mut text = Text::new("x".into(), place, "a".into());
    let incomplete = |text: &Text| Some(Record { version: 5, number: 0, text: text.write() });
    let raise = Purpose::Raise { number: 1_000 };
    for purpose in [raise, Purpose::Remove] {
        let mut first = Fake { record: incomplete(&text), ..Fake::new() };
        let done = all(&mut [&mut first], purpose);
        let refused = Refusal::OtherPlace { at: 0, found: place, wanted: Place::ONLY };
        assert_eq!((done.err(), &first.record), (Some(refused), &incomplete(&text)));
        let mut second = Fake::new();
        all(&mut [&mut first, &mut second], purpose).unwrap();
        assert_ne!(first.record, incomplete(&text));
    }
    // The two records belong to different counters.
    let mut first = Fake { record: incomplete(&text), ..Fake::new() };
    (text.id, text.index) = ("y".into(), 1);
    let mut second = Fake { record: incomplete(&text), ..Fake::new() };
    let done = all(&mut [&mut first, &mut second], raise);
    let refused = Refusal::OtherId { at: 1, found: "y".into(), wanted: "x".into() };
    assert_eq!((done.err(), &second.record), (Some(refused), &incomplete(&text)));
    // Since the first record is complete, the incomplete one is overwritten.
    (text.id, text.index, text.complete) = ("x".into(), 0, true);
    first.record = incomplete(&text);
    let mut sources = all(&mut [&mut first, &mut second], raise).unwrap();
    assert_eq!(second.reserve(sources[1].as_mut().unwrap(), 1), Ok((1_001, 1_001)));
}

#[test]
fn what_is_found_and_too_few_is_passed_over() {
    let mut store = Fake::new();
    let mut source = store.open();
    let request = source.begin(Want::Reserve { count: 1, least: 1 }, &mut || store.version());
    store.carry_out(&request);
    // Another process takes the next numbers.
    let mut another = store.open();
    let all = Want::Reserve { count: 100, least: 100 };
    let run = store.go(&mut source, all).unwrap().unwrap();
    assert_eq!((run.first, run.count), (2, 100));
    assert_eq!(store.reserve(&mut another, 10), Ok((102, 111)));
    // Skipped numbers are not given back either.
    let request = source.begin(Want::Reserve { count: 1, least: 1 }, &mut || store.version());
    store.carry_out(&request);
    let mut request = source.begin(all, &mut || store.version());
    for _ in 0..2 {
        let received = store.carry_out(&request);
        let Ok(Next::Ask(next)) = source.step(&received, &kept_all, &mut || store.version()) else {
            panic!()
        };
        request = next;
    }
    assert_eq!(source.give_back(50, &mut || store.version()), None);
}

#[test]
fn nothing_goes_back_to_another_server_instance() {
    let mut store = Fake::new();
    let mut source = store.open();
    store.reserve(&mut source, 10).unwrap();
    let look = read(&group());
    assert!(source.may_give_back(&store.carry_out(&look), &kept_all));
    store.incarnation = "c";
    assert!(!source.may_give_back(&store.carry_out(&look), &kept_all));
}

#[test]
fn a_lost_reply_skips_nothing() {
    let mut store = Fake::new();
    let mut source = store.open();
    let lost = |store: &mut Fake, source: &mut Source| {
        let request = source.begin(Want::Reserve { count: 1_000, least: 1 }, &mut || store.version());
        store.carry_out(&request)
    };
    lost(&mut store, &mut source);
    assert_eq!(store.reserve(&mut source, 1_000), Ok((1, 1_000)));
    lost(&mut store, &mut source);
    // A check also recovers the numbers.
    assert_eq!(store.go(&mut source, LOOK).unwrap().map(|run| (run.first, run.last())), Some((1_001, 2_000)));
    // If another process's reservation hides the outcome, no numbers are recovered, and the next reservation
    // is small.
    lost(&mut store, &mut source);
    let mut another = store.open();
    assert_eq!(store.reserve(&mut another, 1), Ok((3_001, 3_001)));
    assert_eq!(store.reserve(&mut source, 1_000), Ok((3_002, 3_101)));
    assert_eq!(store.reserve(&mut source, 1_000), Ok((3_102, 4_101)));
    source.without = Some(Rule::FindsItsVersion);
    lost(&mut store, &mut source);
    assert_eq!(store.reserve(&mut source, 1_000), Ok((5_102, 5_201)));
}

/// The store lost one write. A had fetched 201 to 300, and B was given the same numbers.
#[test]
fn one_lost_write_repeats_nothing() {
    let mut store = Fake::new();
    let (mut a, mut b) = (store.open(), store.open());
    assert_eq!(store.reserve(&mut b, 200), Ok((1, 200)));
    let before = store.record.clone();
    assert_eq!(store.reserve(&mut a, 100), Ok((201, 300)));
    (store.record, store.incarnation) = (before, "c");
    assert_eq!(store.go(&mut b, LOOK), Ok(None));
    assert_eq!(store.reserve(&mut b, 100), Err(Refusal::Lost { in_ms: 8_000 }));
    assert_eq!(store.number(), 200);
    store.elapsed_ms = 3_000;
    assert_eq!(store.go(&mut a, LOOK), Ok(None));
    assert_eq!((store.number(), store.text().incarnation.as_str()), (300, "a"));
    store.elapsed_ms = 7_999;
    assert_eq!(store.reserve(&mut b, 100), Err(Refusal::Lost { in_ms: 1 }));
    store.elapsed_ms = 8_000;
    assert_eq!(store.reserve(&mut b, 100), Ok((301, 400)));
    assert_eq!(store.reserve(&mut a, 100), Ok((401, 500)));
    assert!(!a.has_dropped() && !b.has_dropped());
    let turn_overs = store.text().turn_overs;
    assert_eq!(turn_overs, [TurnOver { incarnation: "c".into(), first: 301 }]);
}

#[test]
fn one_that_comes_late_drops_what_it_has() {
    let mut store = Fake::new();
    let (mut a, mut b) = (store.open(), store.open());
    let before = store.record.clone();
    assert_eq!(store.reserve(&mut a, 100), Ok((1, 100)));
    (store.record, store.incarnation) = (before, "c");
    assert_eq!(store.go(&mut b, LOOK), Ok(None));
    store.elapsed_ms = 8_000;
    assert_eq!(store.reserve(&mut b, 10), Ok((1, 10)));
    assert_eq!(store.go(&mut a, LOOK), Ok(None));
    assert!(a.has_dropped() && !a.has_dropped());
    assert_eq!(store.number(), 100);
    assert_eq!(store.reserve(&mut b, 10), Ok((101, 110)));
    assert_eq!(store.reserve(&mut a, 10), Ok((111, 120)));
    assert!(!a.has_dropped() && !b.has_dropped());
}

/// Only a lower number shows the loss, and only a process that had a higher number can notice it. This
/// process marks the record, so that the others notice it too.
#[test]
fn a_loss_without_a_trace() {
    for without in [None, Some(Rule::MarksALossWithoutATrace)] {
        let mut store = Fake::new();
        let (mut a, mut b, mut c) = (store.open(), store.open(), store.open());
        a.without = without;
        let before = store.record.clone();
        assert_eq!(store.reserve(&mut a, 100), Ok((1, 100)));
        assert_eq!(store.reserve(&mut b, 100), Ok((101, 200)));
        store.record = before;
        assert_eq!(store.go(&mut a, LOOK), Ok(None));
        assert_eq!(store.number(), 100);
        let given = store.reserve(&mut c, 100);
        if without.is_some() {
            assert_eq!(given, Ok((101, 200)));
            continue;
        }
        assert_eq!(given, Err(Refusal::Lost { in_ms: 8_000 }));
        assert_eq!(store.go(&mut b, LOOK), Ok(None));
        store.elapsed_ms = 8_000;
        assert_eq!(store.reserve(&mut c, 100), Ok((201, 300)));
        assert_eq!(store.go(&mut b, LOOK), Ok(None));
        assert!(!b.has_dropped());
    }
}

#[test]
fn a_record_that_is_gone_is_made_again_above() {
    let mut store = Fake::new();
    let mut a = store.open();
    assert_eq!(store.reserve(&mut a, 100), Ok((1, 100)));
    store.record = None;
    assert_eq!(store.go(&mut a, LOOK), Ok(None));
    assert_eq!((store.number(), store.text().incarnation.as_str()), (100, ""));
    store.elapsed_ms = 9_000;
    assert_eq!(store.reserve(&mut a, 100), Ok((101, 200)));
    // A new counter has since been created.
    store.record = None;
    let mut b = store.open();
    assert_eq!(store.reserve(&mut b, 50), Ok((1, 50)));
    assert_eq!(store.go(&mut a, LOOK), Ok(None));
    assert!(a.has_dropped());
    assert_eq!(store.reserve(&mut b, 50), Err(Refusal::Lost { in_ms: 8_000 }));
    store.elapsed_ms = 20_000;
    assert_eq!(store.reserve(&mut b, 50), Ok((201, 250)));
    assert_eq!(store.reserve(&mut a, 50), Ok((251, 300)));
}

#[test]
fn an_incarnation_that_kept_all_is_written() {
    let mut store = Fake::new();
    let mut a = store.open();
    store.incarnation = "b";
    assert_eq!(store.reserve(&mut a, 10), Ok((1, 10)));
    assert_eq!(store.go(&mut a, LOOK), Ok(None));
    assert_eq!((store.text().incarnation.as_str(), store.text().turn_overs.len()), ("b", 0));
    assert_eq!(store.reserve(&mut a, 10), Ok((11, 20)));
}

#[test]
fn skip_is_passed_over_after_a_loss() {
    let mut store = Fake::new();
    let mut a = store.open();
    assert_eq!(store.go(&mut a, LOOK), Ok(None));
    store.reserve(&mut a, 40).unwrap();
    store.elapsed_ms = 3_000;
    assert_eq!(store.go(&mut a, LOOK), Ok(None));
    assert_eq!(store.text().skip, 80);
    let before = store.record.clone();
    let mut gone = store.open();
    store.reserve(&mut gone, 40).unwrap();
    (store.record, store.incarnation) = (before, "c");
    assert_eq!(store.go(&mut a, LOOK), Ok(None));
    store.elapsed_ms = 11_000;
    assert_eq!(store.reserve(&mut a, 10), Ok((121, 130)));
}

#[test]
fn numbers_may_be_refused_after_a_loss() {
    let mut store = Fake::new();
    let mut a = store.open();
    let record = store.record.clone().unwrap();
    let mut refusing = Source::new(group(), &record, store.text(), true);
    assert_eq!(store.reserve(&mut refusing, 10), Ok((1, 10)));
    (store.record, store.incarnation) = (Some(record), "c");
    store.go(&mut refusing, LOOK).unwrap();
    store.elapsed_ms = 60_000;
    assert_eq!(store.number(), 10);
    assert_eq!(store.reserve(&mut refusing, 10), Err(Refusal::RefusedAfterLoss));
    all(&mut [&mut store], Purpose::Raise { number: 5 }).unwrap();
    assert_eq!(store.reserve(&mut refusing, 10), Ok((11, 20)));
    assert_eq!(store.reserve(&mut a, 10), Ok((21, 30)));
}

#[test]
fn what_is_removed_ends_those_that_use_it() {
    let (mut first, mut second) = (Fake::new(), Fake::new());
    let mut sources = all(&mut [&mut first, &mut second], Purpose::Open { start: 1 }).unwrap();
    let mut a = sources.remove(0).unwrap();
    first.reserve(&mut a, 10).unwrap();
    all(&mut [&mut first, &mut second], Purpose::Remove).unwrap();
    assert!(first.text().is_tombstone() && second.text().is_tombstone());
    assert_eq!(first.reserve(&mut a, 1), Err(Refusal::Removed));
    let gone = all(&mut [&mut first, &mut second], Purpose::Remove);
    assert_eq!(gone.err(), Some(Refusal::NotThere));
    // If a reply was lost or too few replicas confirmed the write, the record is written again.
    let again = all_again(&mut [&mut first, &mut second], Purpose::Remove);
    assert_eq!(again.unwrap(), 2);
    // Even after a new counter with a different place has been created, the process learns of the removal.
    let mut again = first.open();
    assert_eq!(first.reserve(&mut again, 1), Ok((1, 1)));
    assert_eq!(first.go(&mut a, LOOK), Err(Refusal::Removed));
    // Incomplete records are removed only if no process can have completed them.
    let mut third = Fake { incarnation: "", ..Fake::new() };
    let mut text = Text::new("x".into(), Place { index: 0, count: 2 }, "a".into());
    second.record = Some(Record { version: 5, number: 0, text: text.write() });
    let removed = all(&mut [&mut second, &mut third], Purpose::Remove);
    assert_eq!(removed.err(), Some(Refusal::Unreachable { at: vec![1] }));
    (third.incarnation, text.complete) = ("a", true);
    third.record = Some(Record { version: 6, number: 0, text: text.write() });
    assert!(all(&mut [&mut second, &mut third], Purpose::Remove).is_err());
    third.record = None;
    all(&mut [&mut second, &mut third], Purpose::Remove).unwrap();
}

/// If this process cannot reach a store, other processes may still reach it and would continue there.
#[test]
fn it_is_not_removed_while_a_store_is_down() {
    let (mut first, mut second) = (Fake::new(), Fake::new());
    all(&mut [&mut first, &mut second], Purpose::Open { start: 1 }).unwrap();
    second.incarnation = "";
    let removed = all(&mut [&mut first, &mut second], Purpose::Remove);
    assert_eq!(removed.err(), Some(Refusal::Unreachable { at: vec![1] }));
    assert!(first.text().is_tombstone());
    second.incarnation = "a";
    assert_eq!(all_again(&mut [&mut first, &mut second], Purpose::Remove), Ok(2));
    assert!(second.text().is_tombstone());
    assert_eq!(all(&mut [&mut first, &mut second], Purpose::Remove).err(), Some(Refusal::NotThere));
}

/// Even if a record's number is high enough, the replicas may not have the record.
#[test]
fn a_raise_that_was_not_confirmed_is_written_again() {
    let mut store = Fake::new();
    store.open();
    let raise = Purpose::Raise { number: 1_000 };
    all(&mut [&mut store], raise).unwrap();
    let before = store.record.clone();
    assert_eq!(all_again(&mut [&mut store], raise), Ok(1));
    assert_eq!(store.record, before);
    all(&mut [&mut store], raise).unwrap();
    assert_eq!(store.record, before);
}

/// Two servers take turns. A process that received numbers from the second must notice a loss once the first
/// is back in service.
#[test]
fn a_store_that_comes_back_to_what_it_was() {
    for sees_the_turn_over in [false, true] {
        let mut store = Fake::new();
        let (mut gone, mut p, mut q) = (store.open(), store.open(), store.open());
        assert_eq!(store.reserve(&mut p, 50), Ok((1, 50)));
        let at_a = store.record.clone();
        store.incarnation = "c";
        store.go(&mut gone, LOOK).unwrap();
        store.go(&mut p, LOOK).unwrap();
        store.elapsed_ms = 8_000;
        assert_eq!(store.reserve(&mut gone, 100), Ok((51, 150)));
        if sees_the_turn_over {
            store.go(&mut p, LOOK).unwrap();
        }
        (store.record, store.incarnation) = (at_a, "a");
        let waits = Err(Refusal::Lost { in_ms: 8_000 });
        assert_eq!(store.reserve(&mut p, 100), waits);
        assert_eq!(store.reserve(&mut q, 100), waits);
        assert_eq!(store.go(&mut gone, LOOK), Ok(None));
        store.elapsed_ms = 16_000;
        assert_eq!(store.reserve(&mut q, 100), Ok((151, 250)));
        assert_eq!(store.reserve(&mut p, 100), Ok((251, 350)));
        assert!(!p.has_dropped() && !q.has_dropped());
    }
}

#[test]
fn the_end_of_the_numbers() {
    let mut store = Fake::new();
    let mut a = store.open();
    let last = Record::LAST_NUMBER;
    all(&mut [&mut store], Purpose::Raise { number: last - 5 }).unwrap();
    let block = Want::Reserve { count: 10, least: 10 };
    assert_eq!(store.go(&mut a, block), Err(Refusal::End));
    assert_eq!(store.reserve(&mut a, 10), Ok((last - 4, last)));
    assert_eq!(store.reserve(&mut a, 1), Err(Refusal::End));
    // A raise never lowers the number.
    all(&mut [&mut store], Purpose::Raise { number: 3 }).unwrap();
    assert_eq!(store.number(), last);
}

/// 2^63-1 would belong to the second store, but that store's record would need a higher number.
#[test]
fn the_end_of_the_numbers_of_two_stores() {
    let last = Record::LAST_NUMBER;
    let given = |start: u64, purpose: Option<Purpose>| {
        let (mut first, mut second) = (Fake::new(), Fake::new());
        let mut sources = all(&mut [&mut first, &mut second], Purpose::Open { start }).unwrap();
        if let Some(purpose) = purpose {
            sources = all(&mut [&mut first, &mut second], purpose).unwrap();
        }
        let even = first.reserve(sources[0].as_mut().unwrap(), 9);
        (even, second.reserve(sources[1].as_mut().unwrap(), 9))
    };
    let end = Err(Refusal::End);
    for number in [last - 1, last] {
        assert_eq!(given(1, Some(Purpose::Raise { number })), (end.clone(), end.clone()));
    }
    assert_eq!(given(last, None), (end.clone(), end.clone()));
    assert_eq!(given(last - 1, None), (Ok((last - 1, last - 1)), end));
    assert_eq!(given(last - 2, None), (Ok((last - 1, last - 1)), Ok((last - 2, last - 2))));
    // The first number is the start, whichever store returns it.
    for start in 1..9 {
        let (even, odd) = given(start, None);
        assert_eq!(even.unwrap().0.min(odd.unwrap().0), start);
    }
}

#[test]
fn a_text_that_is_not_known_is_refused() {
    let good = Text::new("id".into(), Place { index: 1, count: 3 }, "a".into());
    assert_eq!(Text::read(&good.write()), Ok(good.clone()));
    for (old, new) in [
        ("\"format\":1", "\"format\":2"),
        ("\"index\":1", "\"index\":3"),
        ("\"skip\":\"0\"", "\"skip\":0"),
        ("id", "ix"),
    ] {
        let text = good.write().replacen(old, new, 1);
        assert!(matches!(Text::read(&text), Err(Refusal::Unreadable { .. })), "{text}");
    }
    assert!(Text::read("").is_err());
    // A record lists only eight rollovers. A process cannot learn about earlier ones.
    let mut late = good.clone();
    (0..8).for_each(|at| late.turn_over("b", 100 + at));
    assert!(!late.repeats(&late.clone(), 500) && late.repeats(&good, 100));
    assert!(late.repeats(&good, 99), "it may have missed others");
    late.turn_over("b", 108);
    assert_eq!(late.turn_overs.len(), 8);
}
