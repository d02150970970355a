//! The sequences protocol, shared by all stores. It decides which requests the owner of a set sends to the
//! store, and interprets the answers. It does no I/O.
//!
//! A set's bounds are kept in records with [`SECTIONS`] bounds each, in the same group as the owner's record.
//! The owner's record guards every write, so that only the current owner's writes take effect. A key is given
//! only numbers above the bound that the owner found or created, up to the bound that the owner wrote.
//!
//! If a write's reply is lost, the owner repeats the write, with the same version and the same bounds, until
//! the store answers. The write compares the version that was read before, so it takes effect only once. An
//! owner's moves and renewals must not overlap. After each renewal, pass the new version of the owner's
//! record to [`Bounds::renewed`].
//!
//! If the store lost writes, an owner that rejoins rewrites all bounds from memory before it issues numbers.
//! A new owner waits for the fence to pass, and then moves every bound ahead by `skip`.

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
mod text;

use super::hash;
use crate::lease::SECTION;
use crate::records::{Group, Named, Outcome, Record, Store, Write};
use crate::store::StoreError;

pub(crate) use text::Text;

/// The number of bounds in a record.
pub(crate) const SECTIONS: usize = 64;
/// The number of requests after which an attempt gives up.
const MAX_REQUESTS: u32 = 400;

/// A source of random numbers.
pub(crate) type Random<'a> = &'a mut dyn FnMut() -> u64;

/// A closure that calls [`Store::has_kept_all`](crate::records::Store::has_kept_all).
pub(crate) type KeptAll<'a> = &'a dyn Fn(&str, &str) -> bool;

/// A request to the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Request {
    /// Reads the records with these names. There may be at most [`Record::MAX_NAMES`] names.
    Read(Group, Vec<String>),
    Write(Write),
}

/// The store's reply to a [`Request`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    Read(Named),
    Write(Outcome),
}

/// A reply, with the incarnation of the server that sent it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Received {
    pub(crate) reply: Reply,
    pub(crate) incarnation: String,
}

/// Why bounds could not be read or moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Another process owns the set, or the owner has since renewed its record.
    NotOwner,
    /// The store lost writes. The process must first rejoin or acquire the lease.
    Lost,
    /// The set was created with a different number of sections.
    OtherSections {
        found: usize,
    },
    OtherHash {
        found: String,
    },
    /// A bound has reached the highest possible number.
    End,
    Contended,
    Unreadable {
        name: String,
        why: String,
    },
}

/// The current owner's record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) name: String,
    pub(crate) version: u64,
    /// The incarnation in the head that guards the owner's record.
    pub(crate) incarnation: String,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    Ask(Request),
    /// The attempt is over. Keys may be given numbers up to the bounds.
    Done,
}

/// A section's keys may be given numbers above `above`, up to `bound`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Range {
    pub(crate) above: u64,
    pub(crate) bound: u64,
}

/// An owner's view of the set's bounds. An attempt may be dropped at any time, and started again, but two
/// attempts must not overlap.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    group: Group,
    owner: Owner,
    sections: usize,
    parts: Vec<Part>,
    /// Whether all bounds have been read, and written if necessary, since the lease was acquired or rejoined.
    is_loaded: bool,
    has_ended: bool,
    requests: u32,
    #[cfg(test)]
    pub(super) without: Option<Rule>,
}

/// One record of bounds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Part {
    name: String,
    /// Whether the record has been read since the lease was acquired or rejoined.
    is_read: bool,
    /// The record's version, or `None` if there is no record.
    version: Option<u64>,
    /// The record's bounds, as far as this process knows.
    bounds: Vec<u64>,
    above: Vec<u64>,
    /// Whether this owner has already accepted or written the bounds.
    is_own: bool,
    skip: u64,
    incarnation: String,
    /// A write that must come before other requests. It is repeated until the store answers.
    pending: Option<Pending>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Pending {
    version: u64,
    text: Text,
    above: Vec<u64>,
}

impl Bounds {
    /// Creates the bounds for a newly acquired lease.
    pub(crate) fn new(group: Group, sections: usize, owner: Owner) -> Self {
        let part = |at: usize| {
            let count = sections.saturating_sub(at * SECTIONS).min(SECTIONS);
            Part {
                name: format!("{SECTION}{at}"),
                is_read: false,
                version: None,
                bounds: vec![0; count],
                above: vec![0; count],
                is_own: false,
                skip: 0,
                incarnation: String::new(),
                pending: None,
            }
        };
        let parts = (0..sections.div_ceil(SECTIONS)).map(part).collect();
        Self {
            group,
            owner,
            sections,
            parts,
            is_loaded: false,
            has_ended: false,
            requests: 0,
            #[cfg(test)]
            without: None,
        }
    }

    /// Continues from an earlier lease held by the same process. Keys are given only numbers above the
    /// former lease's bounds, whatever the store contains.
    #[must_use]
    pub(crate) fn above(mut self, former: &Self) -> Self {
        for (part, former) in self.parts.iter_mut().zip(&former.parts) {
            part.bounds.clone_from(&former.bounds);
        }
        self
    }

    /// Continues with the same lease after its record was given a new version.
    pub(crate) fn renewed(&mut self, version: u64) {
        self.owner.version = version;
    }

    /// Continues with the same lease after the store lost writes. All bounds are rewritten before keys are
    /// given more numbers.
    pub(crate) fn rejoined(&mut self, owner: Owner) {
        self.owner = owner;
        #[cfg(test)]
        if self.without == Some(Rule::RewritesAfterLoss) {
            return;
        }
        self.is_loaded = false;
        for part in &mut self.parts {
            (part.is_read, part.pending) = (false, None);
        }
    }

    /// Returns the range of numbers that a section's keys may be given now. The caller must hold the lease.
    pub(crate) fn range(&self, section: usize) -> Option<Range> {
        let part = self.parts.get(section / SECTIONS).filter(|_| self.is_loaded)?;
        let (above, bound) = (part.above.get(section % SECTIONS)?, part.bounds.get(section % SECTIONS)?);
        Some(Range { above: *above, bound: *bound })
    }

    /// Returns the first request of an attempt. `wanted` lists sections and the bounds they need.
    pub(crate) fn begin(&mut self, wanted: &[(usize, u64)], random: Random<'_>) -> Result<Next, Refusal> {
        self.requests = 0;
        #[cfg(test)]
        if self.without == Some(Rule::KeepsItsVersion) {
            let pending = self.parts.iter_mut().filter_map(|part| part.pending.as_mut());
            pending.for_each(|pending| pending.version = random() >> 1);
        }
        self.next(wanted, random)
    }

    pub(crate) fn step(
        &mut self,
        received: &Received,
        wanted: &[(usize, u64)],
        kept_all: KeptAll<'_>,
        random: Random<'_>,
    ) -> Result<Next, Refusal> {
        let is_of_owner = kept_all(&self.owner.incarnation, &received.incarnation);
        #[cfg(test)]
        let is_of_owner = is_of_owner || self.without == Some(Rule::CountsUnderItsIncarnation);
        if !is_of_owner {
            return Err(Refusal::Lost);
        }
        match &received.reply {
            Reply::Read(found) => {
                for at in 0..self.parts.len() {
                    self.read(at, found, kept_all, random)?;
                }
            }
            Reply::Write(outcome) => self.wrote(outcome)?,
        }
        self.next(wanted, random)
    }

    fn next(&mut self, wanted: &[(usize, u64)], random: Random<'_>) -> Result<Next, Refusal> {
        self.requests += 1;
        if self.requests > MAX_REQUESTS {
            return Err(Refusal::Contended);
        }
        // Parts that must be read again do not have a pending write.
        let unread: Vec<_> = self.parts.iter().filter(|part| !part.is_read).collect();
        if !unread.is_empty() {
            let names = unread.iter().take(Record::MAX_NAMES).map(|part| part.name.clone()).collect();
            return Ok(Next::Ask(Request::Read(self.group.clone(), names)));
        }
        if !self.has_ended && self.parts.iter().all(|part| part.pending.is_none()) {
            self.is_loaded = true;
            self.move_ahead(wanted, random)?;
        }
        let write = self.pending().next();
        Ok(write.map_or(Next::Done, |write| Next::Ask(Request::Write(write))))
    }

    /// Returns the pending writes, in the order that [`step`](Self::step) requests them. They do not depend
    /// on each other.
    fn pending(&self) -> impl Iterator<Item = Write> {
        self.parts.iter().filter_map(|part| {
            let (pending, expected) = (part.pending.as_ref()?, part.version);
            let new = Record { version: pending.version, number: 0, text: pending.text.write() };
            let guard = Some((self.owner.name.clone(), self.owner.version));
            #[cfg(test)]
            let guard = guard.filter(|_| self.without != Some(Rule::IsGuarded));
            let (group, name) = (self.group.clone(), part.name.clone());
            Some(Write { group, name, expected, guard, new })
        })
    }

    /// Stores the bounds that a read found. If this owner must write different bounds before keys are given
    /// numbers, prepares that write.
    fn read(
        &mut self,
        at: usize,
        found: &[(String, Record)],
        kept_all: KeptAll<'_>,
        random: Random<'_>,
    ) -> Result<(), Refusal> {
        let (sections, incarnation) = (self.sections, &self.owner.incarnation);
        #[cfg(test)]
        let skips = self.without != Some(Rule::SkipsAfterLoss);
        #[cfg(not(test))]
        let skips = true;
        let asked = self.parts.iter().filter(|part| !part.is_read).take(Record::MAX_NAMES);
        let is_asked =
            asked.map(|part| &part.name).any(|name| Some(name) == self.parts.get(at).map(|it| &it.name));
        let Some(part) = self.parts.get_mut(at).filter(|_| is_asked) else { return Ok(()) };
        let record = found.iter().find(|(name, _)| *name == part.name).map(|(_, record)| record);
        let text = match record {
            Some(record) => Text::read(&part.name, record)?,
            None => Text::new(sections, part.bounds.len(), incarnation.clone()),
        };
        text.check(sections, part.bounds.len())?;
        let kept = record.is_none() || kept_all(&text.incarnation, incarnation);
        let skip = if kept || part.is_own || !skips { 0 } else { text.skip };
        let mut bounds = Vec::with_capacity(text.bounds.len());
        for (there, own) in text.bounds.iter().zip(&part.bounds) {
            let moved =
                there.checked_add(skip).filter(|&it| it <= Record::LAST_NUMBER).ok_or(Refusal::End)?;
            bounds.push(moved.max(*own));
        }
        part.skip = part.skip.max(text.skip);
        part.incarnation.clone_from(incarnation);
        (part.is_read, part.version) = (true, record.map(|record| record.version));
        // This owner has not issued a number above its own bounds, and a bound that the store reverts to
        // after losing writes is no higher than those.
        let above: Vec<_> = if part.is_own { part.above.clone() } else { bounds.clone() };
        if bounds != text.bounds || text.incarnation != *incarnation {
            let text = Text { skip: part.skip, incarnation: incarnation.clone(), bounds, ..text };
            part.pending = Some(Pending { version: (random() >> 1).max(1), text, above });
        } else {
            (part.bounds, part.above, part.pending) = (bounds, above, None);
            part.is_own = true;
        }
        Ok(())
    }

    /// Handles the answer to the first pending write.
    fn wrote(&mut self, outcome: &Outcome) -> Result<(), Refusal> {
        let Some(part) = self.parts.iter_mut().find(|part| part.pending.is_some()) else { return Ok(()) };
        match outcome {
            Outcome::Written => {
                let Some(Pending { version, text, above }) = part.pending.take() else { return Ok(()) };
                (part.version, part.bounds, part.above) = (Some(version), text.bounds, above);
                (part.skip, part.is_own) = (text.skip, true);
                Ok(())
            }
            Outcome::Found { guard, .. }
                if guard.as_ref().map(|it| it.version) != Some(self.owner.version) =>
            {
                Err(Refusal::NotOwner)
            }
            // Other processes cannot write this record, so the store has lost this owner's last write.
            Outcome::Found { .. } => Err(Refusal::Lost),
        }
    }

    fn move_ahead(&mut self, wanted: &[(usize, u64)], random: Random<'_>) -> Result<(), Refusal> {
        for &(section, bound) in wanted {
            let (sections, incarnation) = (self.sections, self.owner.incarnation.clone());
            let Some(part) = self.parts.get_mut(section / SECTIONS) else { continue };
            let Some(&present) = part.bounds.get(section % SECTIONS) else { continue };
            if bound <= present {
                continue;
            }
            if present == Record::LAST_NUMBER {
                return Err(Refusal::End);
            }
            let pending = part.pending.get_or_insert_with(|| Pending {
                version: (random() >> 1).max(1),
                text: Text {
                    skip: part.skip,
                    bounds: part.bounds.clone(),
                    ..Text::new(sections, part.bounds.len(), incarnation)
                },
                above: part.above.clone(),
            });
            if let Some(place) = pending.text.bounds.get_mut(section % SECTIONS) {
                *place = bound.min(Record::LAST_NUMBER);
            }
        }
        Ok(())
    }

    /// Records that a section's bound moved by `within_a_minute` in the current minute. Twice that distance
    /// is stored as `skip` with the next move, unless the stored value is larger. A new owner skips that many
    /// numbers if the store lost writes.
    pub(crate) fn advances(&mut self, section: usize, within_a_minute: u64) {
        if let Some(part) = self.parts.get_mut(section / SECTIONS) {
            part.skip = part.skip.max(within_a_minute.saturating_mul(2));
        }
    }

    /// Prepares the owner's last writes, which set each bound to the highest number in its section.
    /// Afterwards, keys are given no more numbers, and the owner can release its lease.
    pub(crate) fn give_back(&mut self, given: &[u64], random: Random<'_>) {
        self.has_ended = true;
        if !core::mem::take(&mut self.is_loaded) {
            return;
        }
        let (sections, incarnation) = (self.sections, self.owner.incarnation.clone());
        for (part, given) in self.parts.iter_mut().zip(given.chunks(SECTIONS)) {
            // Skip a record with a pending write: that write may have taken effect, with higher bounds.
            if part.pending.is_none() && part.bounds != given && part.bounds.len() == given.len() {
                let bounds = part.bounds.iter().zip(given).map(|(bound, given)| *bound.min(given)).collect();
                let empty = Text::new(sections, part.bounds.len(), incarnation.clone());
                let text = Text { skip: part.skip, bounds, ..empty };
                let above = part.above.clone();
                part.pending = Some(Pending { version: (random() >> 1).max(1), text, above });
            }
        }
    }
}

/// Makes one attempt: sends requests until none are left. The future may be dropped at any time, and the
/// attempt started again.
pub(crate) async fn go<F: From<StoreError> + From<Refusal>>(
    store: &mut dyn Store,
    bounds: &mut Bounds,
    wanted: &[(usize, u64)],
    random: Random<'_>,
) -> Result<(), F> {
    let mut next = bounds.begin(wanted, random)?;
    while let Next::Ask(request) = &next {
        let answers: Vec<_> = match request {
            Request::Read(group, names) => {
                let names: Vec<_> = names.iter().map(String::as_str).collect();
                vec![store.read(group, Some(&names)).await?.map(Reply::Read)]
            }
            // Send all pending writes together, not just this one.
            Request::Write(_) => {
                let writes: Vec<_> = bounds.pending().collect();
                let answers = store.write_each(&writes).await?;
                answers.into_iter().map(|answer| answer.map(Reply::Write)).collect()
            }
        };
        if answers.is_empty() {
            return Err(StoreError::Unreachable("the store gave no answer".into()).into());
        }
        for answer in answers {
            let received = Received { reply: answer.value, incarnation: answer.incarnation };
            next = bounds.step(&received, wanted, &|before, now| store.has_kept_all(before, now), random)?;
        }
    }
    Ok(())
}

/// A rule that the tests can turn off. Without the rule, some history must break a promise.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    CountsUnderItsIncarnation,
    RewritesAfterLoss,
    SkipsAfterLoss,
    /// The owner's record guards each write.
    IsGuarded,
    /// If a move's reply was lost, the move is sent again under the same version.
    KeepsItsVersion,
}
