//! The parts of a counter's record other than its number.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Refusal;
use crate::store::Place;

/// The version of the text's format.
const FORMAT: u32 = 1;
/// The maximum number of rollovers, and of removed counters, that a record lists.
const MAX_NAMED: usize = 8;

/// The text of a counter's record: everything except the number. Only a `write` changes the text, since an
/// `add` compares it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Text {
    pub(super) format: u32,
    /// A random ID. Each new counter is given a different one, even under the same name.
    pub(crate) id: String,
    pub(super) index: u64,
    pub(super) count: u64,
    /// Whether all of the counter's stores have its record. Until then, numbers cannot be reserved from this
    /// store.
    pub(crate) complete: bool,
    /// The versions that the records in all stores had when the first record was marked as complete. A record
    /// with any other version must not be marked, since it was created after a loss.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) stood: Vec<String>,
    /// Numbers may be reserved while the store has this incarnation. A store's incarnation is never empty, so
    /// an empty value here stops all reservations.
    pub(crate) incarnation: String,
    /// How many numbers to skip after the store has lost writes.
    #[serde(with = "decimal")]
    pub(crate) skip: u64,
    /// How many times the record's number has changed in any way other than by reserving numbers or giving
    /// them back.
    pub(crate) raised: u64,
    /// The most recent rollovers, oldest first.
    pub(crate) turn_overs: Vec<TurnOver>,
    /// The IDs of the most recently removed counters with this name. If they include the record's own ID, the
    /// record is a tombstone.
    pub(crate) removed: Vec<String>,
}

/// A rollover: a change to a new incarnation, under which the counter continues after the store has lost
/// writes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct TurnOver {
    pub(crate) incarnation: String,
    /// The counter continues from `first`. If a process had `first` or a higher number before this rollover,
    /// numbers may repeat.
    #[serde(with = "decimal")]
    pub(crate) first: u64,
}

/// Stores numbers as strings, since many tools cannot represent integers above 2^53.
mod decimal {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
    pub(super) fn serialize<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(number)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<u64, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl Text {
    /// Returns the text of a new counter.
    pub(crate) fn new(id: String, place: Place, incarnation: String) -> Self {
        Self {
            format: FORMAT,
            id,
            index: place.index,
            count: place.count,
            complete: false,
            stood: Vec::new(),
            incarnation,
            skip: 0,
            raised: 0,
            turn_overs: Vec::new(),
            removed: Vec::new(),
        }
    }

    pub(crate) fn write(&self) -> String {
        // Serialization cannot fail for these types.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(crate) fn read(text: &str) -> Result<Self, Refusal> {
        let refused = |why: String| Refusal::Unreadable { why };
        let value: Value = serde_json::from_str(text).map_err(|_| {
            refused("it is not JSON: remove the counter, and create it again above its numbers".into())
        })?;
        match value.get("format") {
            Some(format) if *format == FORMAT => {}
            format => {
                let found = format.map_or_else(|| "no format".into(), |it| format!("format {it}"));
                return Err(refused(format!("it has {found}, and this program knows {FORMAT}")));
            }
        }
        let text: Self = serde_json::from_value(value)
            .map_err(|error| refused(format!("it is not a counter: {error}")))?;
        let Place { index, count } = text.place();
        if (1..=Place::MAX_COUNT).contains(&count) && index < count {
            Ok(text)
        } else {
            Err(refused(format!("it has place {index} of {count}")))
        }
    }

    pub(crate) const fn place(&self) -> Place {
        Place { index: self.index, count: self.count }
    }

    pub(crate) fn is_tombstone(&self) -> bool {
        self.has_removed(&self.id)
    }

    pub(crate) fn has_removed(&self, id: &str) -> bool {
        self.removed.iter().any(|removed| removed == id)
    }

    pub(crate) fn remove(&mut self, id: &str) {
        self.removed.push(id.to_owned());
        keep_last(&mut self.removed);
    }

    /// Returns true if numbers may be reserved while the store has this incarnation.
    pub(crate) fn is_under(&self, incarnation: &str, kept_all: super::KeptAll<'_>) -> bool {
        !self.incarnation.is_empty() && kept_all(&self.incarnation, incarnation)
    }

    /// Continues from `first` under this incarnation.
    pub(crate) fn turn_over(&mut self, incarnation: &str, first: u64) {
        self.complete = true;
        self.raised += 1;
        incarnation.clone_into(&mut self.incarnation);
        self.turn_overs.push(TurnOver { incarnation: incarnation.to_owned(), first });
        keep_last(&mut self.turn_overs);
    }

    /// Returns true if other processes may have been given the numbers of a process that has numbers up to
    /// `highest` and last saw the text `known`. This depends on the first rollover that the process missed.
    pub(crate) fn repeats(&self, known: &Self, highest: u64) -> bool {
        if self.id != known.id {
            return true;
        }
        let missed = self.turn_overs.iter().position(|it| !known.turn_overs.contains(it));
        match missed.and_then(|at| Some((at, self.turn_overs.get(at)?))) {
            None => false,
            // The process may have missed earlier rollovers, which the record no longer lists.
            Some((0, _)) if self.turn_overs.len() == MAX_NAMED => true,
            Some((_, turn_over)) => turn_over.first <= highest,
        }
    }
}

fn keep_last<T>(of: &mut Vec<T>) {
    of.drain(..of.len().saturating_sub(MAX_NAMED));
}
