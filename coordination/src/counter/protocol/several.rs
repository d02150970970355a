//! Opens, raises and removes a counter on all its stores.
//!
//! The first store decides the counter's ID. A process creates a record there, and then in the other stores,
//! in order and with the same ID. At first, all of these records are incomplete. Once all of them exist, the
//! process marks each as complete. So if two processes open the counter with different lists of stores, one
//! of the stores reveals the conflict before either process has numbers. Numbers can be reserved only from
//! complete records, and a complete record shows that all records once existed. If another record is missing,
//! its store has lost it. A record is also lost if it is missing and a record at a later place exists, since
//! processes create and mark records in order. The lost record may have been marked, and numbers reserved
//! from it. A mark lists the versions of all records that existed at the time, so that a record that a slow
//! process creates after a loss is not marked.

#[cfg(test)]
use super::Rule;
use super::{
    Group, KeptAll, MAX_REQUESTS, NAME, Place, Random, Received, Record, Refusal, Request, Text, Write,
    limit, new_id, read, rounded_up, write,
};

/// The purpose of a procedure on all stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// Creates the counter if it does not exist, with `start` as its first number.
    Open { start: u64 },
    /// Moves the counter above `number`. If a store lost writes, recreates lost records and lets the counter
    /// continue.
    Raise { number: u64 },
    /// Removes the counter. This succeeds only if all stores answer, since a store that is down keeps its
    /// record.
    Remove,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send a request to this store.
    Ask(usize, Request),
    Done,
}

/// The state of one store at the end of a procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Numbers can be reserved from the store.
    Gives(Record, Text),
    /// The store lost its record, and is not used until an operator raises the counter.
    Lost,
    /// The store could not be reached. The other stores are still used.
    Down,
    /// The store does not have the counter, or does not have it yet.
    None,
}

/// One attempt at a procedure, on all of a counter's stores. If the attempt fails, start another, which
/// continues where this one stopped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Procedure {
    purpose: Purpose,
    /// Whether an earlier attempt wrote something and received no confirmation. If so, this attempt writes
    /// even those records that already have the desired contents.
    is_again: bool,
    has_written: bool,
    /// The new counter's ID, if this procedure creates the counter.
    id: String,
    stores: Vec<One>,
    /// The number of answers received so far.
    pub(super) answers: u32,
    requests: u32,
    #[cfg(test)]
    pub(super) without: Option<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct One {
    group: Group,
    seen: Seen,
    /// Whether the record was raised or removed.
    is_done: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[allow(clippy::large_enum_variant, reason = "there is one for each store, and most are large")]
enum Seen {
    NotAsked,
    Down,
    There { record: Option<(Record, Text)>, incarnation: String, is_under: bool, answer: u32 },
}

/// A store's contents, interpreted together with the other stores' contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Has<'a> {
    Unknown,
    Down,
    /// The store has no record, or a tombstone.
    None(Option<&'a (Record, Text)>),
    Incomplete(&'a (Record, Text)),
    Complete(&'a (Record, Text)),
}

impl Procedure {
    /// Creates a procedure. `groups` lists the counter's group in each store. `is_again` means that an
    /// earlier attempt [wrote](Self::has_written) something and failed.
    pub(crate) fn new(purpose: Purpose, is_again: bool, groups: Vec<Group>, random: Random<'_>) -> Self {
        let one = |group| One { group, seen: Seen::NotAsked, is_done: false };
        Self {
            purpose,
            is_again,
            has_written: false,
            id: new_id(random),
            stores: groups.into_iter().map(one).collect(),
            answers: 0,
            requests: 0,
            #[cfg(test)]
            without: None,
        }
    }

    /// Handles a store's answer, or `None` if the store could not be reached.
    pub(crate) fn answered(
        &mut self,
        at: usize,
        received: Option<&Received>,
        kept_all: KeptAll<'_>,
    ) -> Result<(), Refusal> {
        self.answers += 1;
        let answer = self.answers;
        let Some(one) = self.stores.get_mut(at) else { return Ok(()) };
        let Some(received) = received else {
            one.seen = Seen::Down;
            return Ok(());
        };
        let record = match &received.record {
            Some(record) => Some((record.clone(), Text::read(&record.text)?)),
            None => None,
        };
        one.is_done |= received.is_done && !matches!(self.purpose, Purpose::Open { .. });
        let incarnation = received.incarnation.clone();
        let is_under = record.as_ref().is_some_and(|(_, text)| text.is_under(&incarnation, kept_all));
        one.seen = Seen::There { record, incarnation, is_under, answer };
        Ok(())
    }

    pub(crate) fn next(&mut self, random: Random<'_>) -> Result<Step, Refusal> {
        self.requests += 1;
        let most = MAX_REQUESTS.saturating_mul(u32::try_from(self.stores.len()).unwrap_or(u32::MAX));
        if self.requests > most {
            return Err(Refusal::Contended);
        }
        if let Some(at) = self.all().position(|(_, has)| has == Has::Unknown) {
            return Ok(self.reads(at));
        }
        let step = match self.purpose {
            Purpose::Open { start } => self.open(start, random),
            Purpose::Raise { number } => self.raise(number, random),
            Purpose::Remove => self.remove(random),
        };
        self.has_written |= matches!(step, Ok(Step::Ask(_, Request::Write(_))));
        step
    }

    pub(crate) const fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// Returns true if the procedure wrote something, or may have.
    pub(crate) const fn has_written(&self) -> bool {
        self.has_written
    }

    /// Returns a store's state.
    pub(crate) fn standing(&self, at: usize) -> Standing {
        let gives = |(record, text): &(Record, Text)| {
            if text.place() == self.place(at) {
                Standing::Gives(record.clone(), text.clone())
            } else {
                Standing::None
            }
        };
        let is_complete = self.complete().is_some();
        match self.all().nth(at).map(|(_, has)| has) {
            Some(Has::Complete(it)) => gives(it),
            #[cfg(test)]
            Some(Has::Incomplete(it)) if self.without == Some(Rule::OnlyCompleteGive) => gives(it),
            Some(Has::Down) => Standing::Down,
            Some(Has::None(_) | Has::Incomplete(_)) if is_complete => Standing::Lost,
            _ => Standing::None,
        }
    }

    fn open(&self, start: u64, random: Random<'_>) -> Result<Step, Refusal> {
        let Some((first, (_, of))) = self.complete() else { return self.make(start, random) };
        let shown = self.shown(first);
        for (at, has) in self.all() {
            match has {
                Has::Complete((_, text)) => self.check(at, text, &of.id)?,
                // Another process is marking the set, and has not marked this record yet.
                Has::Incomplete((record, text)) if text.id == of.id && self.has_stood(at, record, of) => {
                    return Ok(self.mark(at, record, text, of.stood.clone(), random));
                }
                // The record may have been created since the store was read.
                Has::None(_) if self.shown(at) < shown && self.has_rule_to_read_again() => {
                    return Ok(self.reads(at));
                }
                #[cfg(test)]
                Has::None(_) if self.without == Some(Rule::AbsentIsLost) => {
                    return Ok(self.make_one(at, &of.id, start, random));
                }
                Has::None(_) | Has::Incomplete(_) | Has::Down | Has::Unknown => {}
            }
        }
        Ok(Step::Done)
    }

    /// Creates the counter, since there is no complete record.
    fn make(&self, start: u64, random: Random<'_>) -> Result<Step, Refusal> {
        let found = || self.all().filter_map(|(at, has)| has.incomplete().map(|(_, text)| (at, text)));
        let id = found().next().map_or(&self.id, |(_, text)| &text.id);
        #[cfg(test)]
        let id = if self.without == Some(Rule::AdoptsTheId) { &self.id } else { id };
        for (at, text) in found() {
            self.check(at, text, id)?;
        }
        self.check_reachable()?;
        if let Some((at, _)) = self.all().find(|(_, has)| matches!(has, Has::None(_))) {
            let stands = found().map(|(at, _)| at).find(|&later| later > at);
            return match stands.filter(|_| self.takes_absent_for_lost()) {
                None => Ok(self.make_one(at, id, start, random)),
                Some(later) if self.shown(at) < self.shown(later) => Ok(self.reads(at)),
                Some(_) => Err(Refusal::LostRecord { at }),
            };
        }
        let first = self.all().find_map(|(at, has)| has.incomplete().map(|it| (at, it)));
        let Some((at, (record, text))) = first else { return Ok(Step::Done) };
        Ok(self.mark(at, record, text, self.versions(), random))
    }

    fn make_one(&self, at: usize, id: &str, start: u64, random: Random<'_>) -> Step {
        let place = self.place(at);
        let mut text = Text::new(id.to_owned(), place, self.incarnation(at));
        // A single store does not have to wait for others.
        text.complete = place.count == 1;
        let tombstone = self.all().nth(at).and_then(|(_, has)| has.tombstone());
        if let Some((_, before)) = tombstone {
            text.removed.clone_from(&before.removed);
            if !before.is_tombstone() {
                text.remove(&before.id);
            }
        }
        // The store's first number must be the lowest of its place's numbers that is not below the start.
        let lowest = if place.index == 0 { place.count } else { place.index };
        let number = rounded_up(start.saturating_sub(lowest), place).unwrap_or(limit(place));
        self.writes(at, tombstone.map(|(record, _)| record.version), number, &text, random)
    }

    fn mark(&self, at: usize, record: &Record, text: &Text, stood: Vec<String>, random: Random<'_>) -> Step {
        let text = Text { complete: true, stood, ..text.clone() };
        self.writes(at, Some(record.version), record.number, &text, random)
    }

    /// Computes the value of [`Text::stood`] from the records as they were read.
    fn versions(&self) -> Vec<String> {
        let version =
            |(_, has): (usize, Has<'_>)| has.incomplete().map(|(record, _)| record.version.to_string());
        self.all().map(|has| version(has).unwrap_or_default()).collect()
    }

    /// Returns true if this record existed when the record of `marked` was marked as complete.
    #[cfg_attr(not(test), allow(clippy::unused_self))]
    fn has_stood(&self, at: usize, record: &Record, marked: &Text) -> bool {
        #[cfg(test)]
        if self.without == Some(Rule::MarksWhatStood) {
            return true;
        }
        marked.stood.get(at).is_some_and(|version| *version == record.version.to_string())
    }

    fn raise(&self, number: u64, random: Random<'_>) -> Result<Step, Refusal> {
        let incomplete = || self.all().find_map(|(at, has)| Some((at, has.incomplete()?)));
        let Some((_, (_, of))) = self.complete().or_else(incomplete) else {
            self.check_reachable()?;
            return Err(Refusal::NotThere);
        };
        for (at, has) in self.all() {
            match has {
                Has::Complete((_, text)) => self.check(at, text, &of.id)?,
                // If the set is complete, incomplete records are overwritten, whatever their ID.
                Has::Incomplete((_, text)) if !of.complete => self.check(at, text, &of.id)?,
                _ => {}
            }
        }
        self.check_reachable()?;
        for (at, (one, (_, has))) in self.stores.iter().zip(self.all()).enumerate() {
            if one.is_done {
                continue;
            }
            let place = self.place(at);
            // If the highest number is not a multiple of the number of stores, the last numbers cannot be
            // issued.
            let wanted = rounded_up(number, place).unwrap_or(limit(place));
            let incarnation = self.incarnation(at);
            let (expected, number, mut text) = match has {
                Has::Complete((record, text)) => {
                    let is_under = one.is_under();
                    if record.number >= wanted && is_under {
                        if self.is_again {
                            return Ok(self.writes_again(at, record));
                        }
                        continue;
                    }
                    let number = record.number.max(wanted);
                    let mut text = text.clone();
                    if is_under {
                        text.raised += 1;
                    } else {
                        text.turn_over(&incarnation, number.saturating_add(1));
                    }
                    (Some(record.version), number, text)
                }
                other => {
                    let before = other.tombstone().or(other.incomplete());
                    let mut text = Text::new(of.id.clone(), place, incarnation.clone());
                    text.turn_over(&incarnation, wanted.saturating_add(1));
                    text.removed = before.map(|(_, text)| text.removed.clone()).unwrap_or_default();
                    // The incomplete record may have a higher start.
                    let number = other.incomplete().map_or(wanted, |(record, _)| record.number.max(wanted));
                    (before.map(|(record, _)| record.version), number, text)
                }
            };
            text.skip = text.skip.max(of.skip);
            text.stood = if of.complete { of.stood.clone() } else { self.versions() };
            return Ok(self.writes(at, expected, number, &text, random));
        }
        Ok(Step::Done)
    }

    /// Removes the records in order, since a process that marks the set as complete also starts with the
    /// first record.
    fn remove(&self, random: Random<'_>) -> Result<Step, Refusal> {
        // A record may remain in one store although another store has the tombstone for its counter.
        let named =
            self.all().find_map(|(at, has)| Some((at, has.tombstone().filter(|it| !it.1.is_tombstone())?)));
        let complete = self.complete();
        if let Some((_, (_, of))) = complete {
            for (at, has) in self.all() {
                if let Has::Incomplete((_, text)) | Has::Complete((_, text)) = has {
                    self.check(at, text, &of.id)?;
                }
            }
        } else {
            // If a record belongs to another list, the counter may be complete on a store that is not in this
            // list.
            for (at, has) in self.all() {
                if let Has::Incomplete((_, text)) = has {
                    self.check(at, text, &text.id)?;
                }
            }
            if !self.stores.iter().any(|one| one.is_done) {
                // The counter may be complete on a store that cannot be reached.
                self.check_reachable()?;
            }
        }
        let stands = self.all().find_map(|(at, has)| match has {
            Has::Incomplete(it) | Has::Complete(it) => Some((at, it)),
            _ => None,
        });
        let Some((at, (record, text))) = named.or(stands) else { return self.removed() };
        let mut text = text.clone();
        let id = text.id.clone();
        text.remove(&id);
        Ok(self.writes(at, Some(record.version), record.number, &text, random))
    }

    /// Finishes a removal once none of the stores that answered has the counter.
    fn removed(&self) -> Result<Step, Refusal> {
        for (at, (one, (_, has))) in self.stores.iter().zip(self.all()).enumerate() {
            if let (false, true, Some((record, _))) = (one.is_done, self.is_again, has.tombstone()) {
                return Ok(self.writes_again(at, record));
            }
        }
        if !self.stores.iter().any(|one| one.is_done) {
            return Err(Refusal::NotThere);
        }
        // Another process might reach a store that this process cannot, and would continue there.
        self.check_reachable()?;
        Ok(Step::Done)
    }

    fn check(&self, at: usize, text: &Text, id: &str) -> Result<(), Refusal> {
        let (found, wanted) = (text.place(), self.place(at));
        if found != wanted {
            return Err(Refusal::OtherPlace { at, found, wanted });
        }
        if text.id == id {
            Ok(())
        } else {
            Err(Refusal::OtherId { at, found: text.id.clone(), wanted: id.to_owned() })
        }
    }

    fn check_reachable(&self) -> Result<(), Refusal> {
        let at: Vec<_> = self.all().filter(|(_, has)| *has == Has::Down).map(|(at, _)| at).collect();
        if at.is_empty() { Ok(()) } else { Err(Refusal::Unreachable { at }) }
    }

    fn place(&self, at: usize) -> Place {
        Place { index: at as u64, count: self.stores.len() as u64 }
    }

    fn reads(&self, at: usize) -> Step {
        self.stores.get(at).map_or(Step::Done, |one| Step::Ask(at, read(&one.group)))
    }

    fn writes(&self, at: usize, expected: Option<u64>, number: u64, text: &Text, random: Random<'_>) -> Step {
        let write = |one: &One| Step::Ask(at, write(&one.group, expected, number, text, random));
        self.stores.get(at).map_or(Step::Done, write)
    }

    fn writes_again(&self, at: usize, record: &Record) -> Step {
        let write = |one: &One| {
            let (group, name, expected) = (one.group.clone(), NAME.into(), Some(record.version));
            Step::Ask(at, Request::Write(Write { group, name, expected, guard: None, new: record.clone() }))
        };
        self.stores.get(at).map_or(Step::Done, write)
    }

    fn incarnation(&self, at: usize) -> String {
        match self.stores.get(at).map(|one| &one.seen) {
            Some(Seen::There { incarnation, .. }) => incarnation.clone(),
            _ => String::new(),
        }
    }

    /// Returns when a store's contents were read, as the number of answers received by then.
    fn shown(&self, at: usize) -> u32 {
        match self.stores.get(at).map(|one| &one.seen) {
            Some(Seen::There { answer, .. }) => *answer,
            _ => 0,
        }
    }

    /// Returns the complete record that was read first, and its store.
    fn complete(&self) -> Option<(usize, &(Record, Text))> {
        let complete = self.all().filter_map(|(at, has)| match has {
            Has::Complete(it) => Some((at, it)),
            _ => None,
        });
        complete.min_by_key(|(at, _)| self.shown(*at))
    }

    fn all(&self) -> impl Iterator<Item = (usize, Has<'_>)> {
        self.stores.iter().map(|one| self.has(one)).enumerate()
    }

    fn has<'a>(&'a self, one: &'a One) -> Has<'a> {
        match &one.seen {
            Seen::NotAsked => Has::Unknown,
            Seen::Down => Has::Down,
            Seen::There { record: None, .. } => Has::None(None),
            Seen::There { record: Some(it), .. } if self.is_removed(&it.1.id) => Has::None(Some(it)),
            Seen::There { record: Some(it), .. } if it.1.complete => Has::Complete(it),
            Seen::There { record: Some(it), .. } => Has::Incomplete(it),
        }
    }

    /// Returns true if any store has a tombstone for the counter. Such a tombstone removes the counter from
    /// all stores.
    fn is_removed(&self, id: &str) -> bool {
        self.stores.iter().any(|one| match &one.seen {
            Seen::There { record: Some((_, text)), .. } => text.has_removed(id),
            _ => false,
        })
    }

    #[cfg_attr(not(test), allow(clippy::unused_self))]
    const fn takes_absent_for_lost(&self) -> bool {
        #[cfg(test)]
        return !matches!(self.without, Some(Rule::AbsentIsLost));
        #[cfg(not(test))]
        true
    }

    #[cfg_attr(not(test), allow(clippy::unused_self))]
    const fn has_rule_to_read_again(&self) -> bool {
        #[cfg(test)]
        return !matches!(self.without, Some(Rule::ReadsAbsentAgain));
        #[cfg(not(test))]
        true
    }
}

impl One {
    const fn is_under(&self) -> bool {
        matches!(self.seen, Seen::There { is_under: true, .. })
    }
}

impl<'a> Has<'a> {
    const fn incomplete(self) -> Option<&'a (Record, Text)> {
        if let Self::Incomplete(it) = self { Some(it) } else { None }
    }

    const fn tombstone(self) -> Option<&'a (Record, Text)> {
        if let Self::None(it) = self { it } else { None }
    }
}
