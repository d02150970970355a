//! A process's view of one of a counter's stores. The process checks for losses, reserves numbers, and gives
//! unused numbers back.

#[cfg(test)]
use super::Rule;
use super::skip::Looks;
use super::{
    AFTER_UNKNOWN, Add, Group, KeptAll, MAX_REQUESTS, NAME, Place, Random, Received, Record, Refusal,
    Request, TURN_OVER_AFTER_MS, Text, Write, limit, new_version, read, rounded_up, write,
};
use crate::counter::segments::Run;

/// The purpose of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Want {
    /// Checks for losses, and measures how fast the counter advances.
    Look,
    /// Reserves `count` of this place's numbers. If fewer are left, reserves the rest, provided that there
    /// are at least `least`.
    Reserve { count: u64, least: u64 },
}

impl Want {
    const fn least(self) -> u64 {
        match self {
            Self::Look => 1,
            Self::Reserve { least, .. } => least,
        }
    }
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    Ask(Request),
    /// The attempt is over. Even a check may return numbers, if they were reserved earlier and the reply was
    /// lost.
    Done(Option<Run>),
}

/// One of a counter's stores. Call [`begin`](Self::begin) to start an attempt, and [`step`](Self::step) for
/// each answer. An attempt may be dropped at any time, but two attempts must not overlap.
///
/// After each step, call [`has_dropped`](Self::has_dropped) before anything else.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    pub(super) group: Group,
    place: Place,
    refuses_after_loss: bool,
    /// The record's last known contents.
    pub(super) known: Known,
    /// The record's number after this process's last reservation.
    pub(super) highest: u64,
    /// The highest number that this process has seen in the record.
    pub(super) reach: u64,
    pub(super) loss: Option<Loss>,
    pub(super) has_dropped: bool,
    want: Want,
    requests: u32,
    sent: Option<Sent>,
    is_after_unknown: bool,
    newest: Option<Newest>,
    pub(super) looks: Looks,
    #[cfg(test)]
    pub(super) without: Option<Rule>,
}

/// A record from which numbers have been or may be reserved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Known {
    /// The version, or `None` if the record is missing.
    pub(super) version: Option<u64>,
    pub(super) number: u64,
    pub(super) raw: String,
    pub(super) text: Text,
}

/// The incarnation under which this process detected a loss, and the time of detection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Loss {
    pub(super) incarnation: String,
    pub(super) since_ms: u64,
}

/// A request that reserves numbers if it takes effect.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Sent {
    version: u64,
    count: u64,
    /// The incarnation in the record after the request.
    incarnation: String,
    /// Whether the next answer is the reply to this request.
    is_next: bool,
    #[cfg(test)]
    request: Request,
}

/// The result of a request that reserves numbers, as shown by an answer.
enum Landed {
    Not,
    Gave(Run),
    /// The request took effect, but the record must be written again.
    Unconfirmed(Record),
}

/// The record after the last reservation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Newest {
    version: u64,
    number: u64,
    raw: String,
}

/// The next action, given the record that was found.
pub(super) enum Found {
    Gives,
    /// The record must first be raised.
    Raise {
        number: u64,
        text: Text,
    },
    Lost {
        since_ms: u64,
    },
}

impl Source {
    /// Creates the state for a complete record. The record is checked before numbers are reserved from it.
    pub(crate) fn new(group: Group, record: &Record, text: Text, refuses_after_loss: bool) -> Self {
        let (version, raw) = (Some(record.version), record.text.clone());
        Self {
            group,
            place: text.place(),
            refuses_after_loss,
            reach: record.number,
            known: Known { version, number: record.number, raw, text },
            highest: 0,
            loss: None,
            has_dropped: false,
            want: Want::Look,
            requests: 0,
            sent: None,
            is_after_unknown: false,
            newest: None,
            looks: Looks::default(),
            #[cfg(test)]
            without: None,
        }
    }

    /// Returns the first request of an attempt.
    pub(crate) fn begin(&mut self, want: Want, random: Random<'_>) -> Request {
        self.want = want;
        self.requests = 1;
        if let Some(sent) = &mut self.sent {
            sent.is_next = false;
        }
        #[cfg(test)]
        if !self.has(Rule::SendsOnce) {
            if let (Want::Reserve { .. }, Some(sent)) = (want, &mut self.sent) {
                sent.is_next = true;
                return sent.request.clone();
            }
        }
        match want {
            Want::Reserve { count, least } if self.sent.is_none() && self.loss.is_none() => {
                self.add(count, least, random).unwrap_or_else(|_| read(&self.group))
            }
            _ => read(&self.group),
        }
    }

    /// Returns true if the store lost writes and cannot return new numbers yet.
    pub(crate) const fn has_lost(&self) -> bool {
        self.loss.is_some()
    }

    /// Returns true if this process must drop the numbers it has fetched from this store, and log
    /// `numbers_may_repeat`, because other processes may have been given the same numbers. This call clears
    /// the flag.
    #[must_use]
    pub(crate) fn has_dropped(&mut self) -> bool {
        core::mem::take(&mut self.has_dropped)
    }

    pub(crate) fn step(
        &mut self,
        received: &Received,
        kept_all: KeptAll<'_>,
        random: Random<'_>,
    ) -> Result<Next, Refusal> {
        let landed = self.take_sent(received, kept_all);
        let found = self.see(received, kept_all)?;
        match landed {
            Landed::Not => {}
            Landed::Gave(run) if self.want.least() <= run.count => return Ok(Next::Done(Some(run))),
            #[cfg(test)]
            Landed::Gave(run) if !self.has(Rule::PassesOverTooFew) => return Ok(Next::Done(Some(run))),
            // There are too few numbers for this attempt. Skip them, and do not give them back.
            Landed::Gave(_) => self.newest = None,
            Landed::Unconfirmed(new) => {
                let (group, name, expected) = (self.group.clone(), NAME.into(), Some(new.version));
                return self.ask(Request::Write(Write { group, name, expected, guard: None, new }));
            }
        }
        if let Found::Raise { number, ref text } = found {
            #[cfg(test)]
            let is_due = self.has(Rule::RaisesAtOnce);
            #[cfg(not(test))]
            let is_due = true;
            if is_due {
                return self.ask(write(&self.group, self.known.version, number, text, random));
            }
        }
        match (self.want, found) {
            (Want::Look, Found::Gives) => self.looked(received, random),
            (Want::Look, _) => Ok(Next::Done(None)),
            (Want::Reserve { count, least }, Found::Gives) => {
                let add = self.add(count, least, random)?;
                self.ask(add)
            }
            (Want::Reserve { count, least }, Found::Lost { since_ms }) => {
                self.turn_over(since_ms, count, least, received, random)
            }
            (Want::Reserve { .. }, Found::Raise { .. }) => Err(Refusal::Lost { in_ms: TURN_OVER_AFTER_MS }),
        }
    }

    /// Returns true if an answer shows that the record has not changed since the last reservation, and the
    /// answer comes from the server instance named in the record.
    pub(crate) fn may_give_back(&self, received: &Received, kept_all: KeptAll<'_>) -> bool {
        let newest = self.newest.as_ref().map(|newest| newest.version);
        let is_newest = received.record.as_ref().is_some_and(|record| Some(record.version) == newest);
        is_newest && self.known.text.is_under(&received.incarnation, kept_all)
    }

    /// Returns the request that gives back the last `unused` of this place's numbers. The request takes
    /// effect only if no process has reserved numbers since then. Send it once the process has stopped taking
    /// numbers, and only if [`may_give_back`](Self::may_give_back) returns true. If the reply is lost, send
    /// the request again, unchanged.
    pub(crate) fn give_back(&self, unused: u64, random: Random<'_>) -> Option<Request> {
        let newest = self.newest.as_ref()?;
        if unused == 0 || self.loss.is_some() || newest.raw != self.known.raw {
            return None;
        }
        let number = newest.number.checked_sub(unused.checked_mul(self.place.count)?)?;
        Some(write(&self.group, Some(newest.version), number, &self.known.text, random))
    }

    /// Determines from an answer whether the last reservation took effect.
    fn take_sent(&mut self, received: &Received, kept_all: KeptAll<'_>) -> Landed {
        let Some(sent) = self.sent.take() else { return Landed::Not };
        let landed = received.record.as_ref().filter(|record| record.version == sent.version);
        #[cfg(test)]
        let landed = landed.filter(|_| sent.is_next || self.has(Rule::FindsItsVersion));
        let Some(record) = landed else {
            self.is_after_unknown = !sent.is_next;
            return Landed::Not;
        };
        self.is_after_unknown = false;
        if record.text != self.known.raw {
            // This process rolled the record over itself, so it has not missed a rollover.
            let Ok(text) = Text::read(&record.text) else { return Landed::Not };
            self.known.text = text;
            self.known.raw.clone_from(&record.text);
        }
        let counts = kept_all(&sent.incarnation, &received.incarnation);
        #[cfg(test)]
        let counts = counts || !self.has(Rule::CountsUnderItsIncarnation);
        if !counts {
            return Landed::Not;
        }
        if !sent.is_next {
            // A read shows the record, but not whether enough replicas have it, so write it again, unchanged.
            self.sent = Some(Sent { is_next: true, ..sent });
            return Landed::Unconfirmed(record.clone());
        }
        self.numbers_of(&sent, record).map_or(Landed::Not, Landed::Gave)
    }

    fn numbers_of(&mut self, sent: &Sent, record: &Record) -> Option<Run> {
        let Place { index, count } = self.place;
        let above = record.number.checked_sub(sent.count.checked_mul(count)?)?;
        self.highest = record.number;
        self.newest =
            Some(Newest { version: record.version, number: record.number, raw: record.text.clone() });
        let first = above.checked_add(if index == 0 { count } else { index })?;
        Some(Run { first, stride: count, count: sent.count })
    }

    fn add(&mut self, count: u64, least: u64, random: Random<'_>) -> Result<Request, Refusal> {
        let count = self.count_above(self.known.number, count, least)?;
        let version = new_version(random);
        let add = Request::Add(Add {
            group: self.group.clone(),
            name: NAME.into(),
            text: self.known.raw.clone(),
            floor: self.highest,
            count: count.saturating_mul(self.place.count),
            limit: limit(self.place),
            version,
        });
        let incarnation = self.known.text.incarnation.clone();
        self.sends(version, count, incarnation, &add);
        Ok(add)
    }

    fn turn_over(
        &mut self,
        since_ms: u64,
        count: u64,
        least: u64,
        received: &Received,
        random: Random<'_>,
    ) -> Result<Next, Refusal> {
        if self.refuses_after_loss {
            return Err(Refusal::RefusedAfterLoss);
        }
        let due_ms = since_ms.saturating_add(TURN_OVER_AFTER_MS);
        #[cfg(test)]
        let due_ms = if self.has(Rule::WaitsToTurnOver) { due_ms } else { since_ms };
        if received.elapsed_ms < due_ms {
            return Err(Refusal::Lost { in_ms: due_ms - received.elapsed_ms });
        }
        let mut text = self.known.text.clone();
        let passed = self.known.number.max(self.highest).saturating_add(text.skip);
        let above = rounded_up(passed, self.place).ok_or(Refusal::End)?;
        let count = self.count_above(above, count, least)?;
        text.turn_over(&received.incarnation, above.saturating_add(1));
        let number = above.saturating_add(count.saturating_mul(self.place.count));
        let request = write(&self.group, self.known.version, number, &text, random);
        if let Request::Write(write) = &request {
            self.sends(write.new.version, count, received.incarnation.clone(), &request);
        }
        self.ask(request)
    }

    fn sends(&mut self, version: u64, count: u64, incarnation: String, request: &Request) {
        #[cfg(not(test))]
        let _ = request;
        self.sent = Some(Sent {
            version,
            count,
            incarnation,
            is_next: true,
            #[cfg(test)]
            request: request.clone(),
        });
    }

    /// Returns how many numbers to request above `number`.
    fn count_above(&self, number: u64, count: u64, least: u64) -> Result<u64, Refusal> {
        let count = if self.is_after_unknown { count.min(AFTER_UNKNOWN) } else { count };
        let left = limit(self.place).saturating_sub(number) / self.place.count.max(1);
        let least = least.max(1);
        if left < least { Err(Refusal::End) } else { Ok(count.max(least).min(left)) }
    }

    /// Finishes a check that found no loss. If the record's `skip` or incarnation must change, writes the
    /// record.
    fn looked(&mut self, received: &Received, random: Random<'_>) -> Result<Next, Refusal> {
        let Known { version, number, ref text, .. } = self.known;
        let skip = self.looks.saw(number, text, received.elapsed_ms);
        if skip.is_none() && text.incarnation == received.incarnation {
            return Ok(Next::Done(None));
        }
        let incarnation = received.incarnation.clone();
        let text = Text { skip: skip.unwrap_or(text.skip), incarnation, ..text.clone() };
        self.ask(write(&self.group, version, number, &text, random))
    }

    fn ask(&mut self, request: Request) -> Result<Next, Refusal> {
        self.requests += 1;
        if self.requests > MAX_REQUESTS { Err(Refusal::Contended) } else { Ok(Next::Ask(request)) }
    }

    #[cfg(test)]
    pub(super) const fn least(&self) -> u64 {
        self.want.least()
    }

    #[cfg(test)]
    pub(super) fn has(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}

/// Renames the versions in a request.
#[cfg(test)]
type RenameAll<'a> = &'a dyn Fn(&mut Request, &mut dyn FnMut(&mut u64));

#[cfg(test)]
impl Source {
    /// Used by the model; see the model's method of the same name.
    pub(super) fn forget_what_is_not_read(
        &mut self,
        gives_back: bool,
        rename: &mut dyn FnMut(&mut u64),
        rename_all: RenameAll<'_>,
    ) {
        (self.is_after_unknown, self.requests) = (false, 0);
        self.looks.clear();
        self.reach = self.highest;
        self.newest.take_if(|_| !gives_back);
        self.known.version.iter_mut().for_each(&mut *rename);
        self.newest.iter_mut().for_each(|newest| rename(&mut newest.version));
        if let Some(sent) = &mut self.sent {
            rename(&mut sent.version);
            rename_all(&mut sent.request, rename);
        }
    }
}
