//! Judges what an answer says about the record: whether the store lost writes, and what this process must
//! then do.
//!
//! A process that finds a loss raises the number to the highest that it knows, and leaves the incarnation as
//! it is, so that no add counts. A process turns the record over only
//! [`TURN_OVER_AFTER_MS`](super::TURN_OVER_AFTER_MS) after it found the loss itself. By then, every process
//! that reaches the store has raised the record. A process that does not reach the store learns later from
//! the turn-over that it missed one.

#[cfg(test)]
use super::Rule;
use super::reserve::{Found, Known, Loss};
use super::{KeptAll, Received, Refusal, Source, Text};

impl Source {
    /// Judges an answer, and remembers what the answer shows.
    pub(super) fn see(&mut self, received: &Received, kept_all: KeptAll<'_>) -> Result<Found, Refusal> {
        let Some(record) = &received.record else { return Ok(self.gone(received)) };
        let text =
            if record.text == self.known.raw { self.known.text.clone() } else { Text::read(&record.text)? };
        if text.has_removed(&self.known.text.id) {
            return Err(Refusal::Removed);
        }
        let wanted = self.known.text.place();
        if text.place() != wanted {
            return Err(Refusal::OtherPlace { at: 0, found: text.place(), wanted });
        }
        let is_late = self.highest > 0 && text.repeats(&self.known.text, self.highest);
        #[cfg(test)]
        let drops = is_late && self.has(Rule::DropsWhenLate);
        #[cfg(not(test))]
        let drops = is_late;
        self.has_dropped |= drops;

        let is_new = text.id != self.known.text.id;
        let is_under = text.complete && text.is_under(&received.incarnation, kept_all);
        let is_behind = record.number < self.highest || (!is_new && self.has_come_back(&text, received));
        // Once others have continued elsewhere, this process's knowledge of their numbers is useless.
        self.reach = if is_late { record.number.max(self.highest) } else { self.reach.max(record.number) };
        let wanted = if is_under || is_late { self.highest } else { self.reach };
        self.known =
            Known { version: Some(record.version), number: record.number, raw: record.text.clone(), text };

        // A late process raises a record that others still use. Otherwise, only this process has noticed the
        // loss.
        let is_unnoticed = is_under && is_behind && (!is_late || is_new);
        #[cfg(test)]
        let is_unnoticed = is_unnoticed && self.has(Rule::MarksALossWithoutATrace);
        let since_ms = self.find(!is_under || is_unnoticed, received);
        if record.number < wanted || is_unnoticed {
            let mut text = Text { complete: true, ..self.known.text.clone() };
            text.raised += 1;
            if is_unnoticed {
                text.incarnation.clear();
            }
            return Ok(Found::Raise { number: record.number.max(wanted), text });
        }
        Ok(since_ms.map_or(Found::Gives, |since_ms| Found::Lost { since_ms }))
    }

    /// Returns true if the store is again the server instance that it was before it became another one, and
    /// nobody has turned the record over since.
    fn has_come_back(&self, text: &Text, received: &Received) -> bool {
        let was_another = self.loss.as_ref().is_some_and(|loss| loss.incarnation != received.incarnation);
        let (known, found) = (&self.known.text.turn_overs, &text.turn_overs);
        let lacks_last = known.last().is_some_and(|it| !found.contains(it));
        (was_another || lacks_last) && found.iter().all(|it| known.contains(it))
    }

    /// Handles a record that is gone altogether. The record is created again, as far as this process knows
    /// it, but nobody may add to it yet.
    fn gone(&mut self, received: &Received) -> Found {
        self.known.version = None;
        self.find(true, received);
        let mut text = self.known.text.clone();
        text.raised += 1;
        text.incarnation.clear();
        Found::Raise { number: self.reach.max(self.highest), text }
    }

    /// Returns the time at which this process found a loss, if there is one.
    fn find(&mut self, is_lost: bool, received: &Received) -> Option<u64> {
        let found = self.loss.take().filter(|loss| loss.incarnation == received.incarnation);
        let found = is_lost.then(|| {
            let (incarnation, since_ms) = (received.incarnation.clone(), received.elapsed_ms);
            found.unwrap_or(Loss { incarnation, since_ms })
        });
        self.loss = found;
        self.loss.as_ref().map(|loss| loss.since_ms)
    }
}
