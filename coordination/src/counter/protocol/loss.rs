//! Detects from an answer that the store lost writes, and decides how this process reacts.
//!
//! A process that detects lost writes raises the record to the highest number it knows of, but leaves the
//! record's incarnation unchanged, so that an add does not count. The process waits for
//! [`TURN_OVER_AFTER_MS`](super::TURN_OVER_AFTER_MS) before rolling the record over to the new incarnation.
//! During that time, every process that reaches the store raises the record. A process that cannot reach the
//! store in time later finds a rollover in the record that it does not recognise.

#[cfg(test)]
use super::Rule;
use super::reserve::{Found, Known, Loss};
use super::{KeptAll, Received, Refusal, Source, Text};

impl Source {
    /// Stores the record from an answer, and returns the next action.
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
        // If this process is late, other processes have already continued with higher numbers, so `reach`
        // starts over from the record.
        self.reach = if is_late { record.number.max(self.highest) } else { self.reach.max(record.number) };
        let wanted = if is_under || is_late { self.highest } else { self.reach };
        self.known =
            Known { version: Some(record.version), number: record.number, raw: record.text.clone(), text };

        // If this process is late, the others have noticed the loss and are using the record again, so only
        // raise the number. Otherwise, only this process has noticed the loss.
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

    /// Returns true if a former server instance is serving the store again, and no process has since rolled
    /// the record over there.
    fn has_come_back(&self, text: &Text, received: &Received) -> bool {
        let was_another = self.loss.as_ref().is_some_and(|loss| loss.incarnation != received.incarnation);
        let (known, found) = (&self.known.text.turn_overs, &text.turn_overs);
        let lacks_last = known.last().is_some_and(|it| !found.contains(it));
        (was_another || lacks_last) && found.iter().all(|it| known.contains(it))
    }

    /// Handles a missing record. Recreates it with the contents known to this process, but without an
    /// incarnation, so that no process can add to it yet.
    fn gone(&mut self, received: &Received) -> Found {
        self.known.version = None;
        self.find(true, received);
        let mut text = self.known.text.clone();
        text.raised += 1;
        text.incarnation.clear();
        Found::Raise { number: self.reach.max(self.highest), text }
    }

    /// Records or clears a loss. If there is a loss, returns the time when this process detected it.
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
