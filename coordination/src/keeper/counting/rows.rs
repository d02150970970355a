//! A counter's row in another system's table. Leaf, tinyid or `CosId` may use the same row through its own
//! servers.

use super::{Refusal, stores};
use crate::counter::segments::{Rest, Run};
use crate::counter::shared::Source;
use crate::store::Rows as Table;
use crate::store::{CounterRecord, LAST_NUMBER, Numbers, Place, Reserve, Reserved, Schema};

/// The maximum number of requests in one attempt, in case other processes keep changing the row.
const MAX_REQUESTS: u32 = 8;

/// A counter's row.
#[derive(Debug)]
pub(super) struct Rows {
    store: stores::Connected,
    /// The highest number that the store returned.
    seen: u64,
    /// The last numbers that the store returned.
    newest: Option<Numbers>,
    /// Whether to ignore the step in the row.
    is_exact: bool,
}

impl Rows {
    pub(super) const fn new(store: stores::Connected, is_exact: bool) -> Self {
        Self { store, seen: 0, newest: None, is_exact }
    }

    /// Checks that the row exists and belongs to this store.
    pub(super) async fn look(&self, source: &Source) -> Result<(), Refusal> {
        let look = async |store: &mut dyn Table| match store.counter(&source.counter).await? {
            Some(found) => check(source, &found, 0),
            None => Err(Refusal::NoRow),
        };
        self.limited(source, look).await
    }

    /// Reserves `count` numbers for this process. If fewer are left before the counter's end, reserves the
    /// rest, provided that at least `least` numbers remain.
    pub(super) async fn reserve(&mut self, source: &Source, count: u64, least: u64) -> Result<Run, Refusal> {
        let wanted = Reserve { count, place: source.place, seen: self.seen, is_exact: self.is_exact };
        let attempt = async |store: &mut dyn Table| reserve(store, source, wanted, least).await;
        let numbers = self.limited(source, attempt).await?;
        let run = run_of(&numbers);
        self.seen = self.seen.max(run.last());
        self.newest = Some(numbers);
        Ok(run)
    }

    pub(super) async fn peek(&self, source: &Source) -> Result<Option<u64>, Refusal> {
        let peek = async |store: &mut dyn Table| Ok(store.counter(&source.counter).await?);
        Ok(self.limited(source, peek).await?.map(|record| record.last))
    }

    /// Raises the row to this number. Returns true if the row was lower.
    pub(super) async fn raise(&self, source: &Source, number: u64) -> Result<bool, Refusal> {
        self.limited(source, async |store: &mut dyn Table| raise(store, source, number).await).await
    }

    /// Gives back the last segment's unused numbers. If the table has no versions, sends the request only
    /// once, since the store could not tell a repeated request from the first.
    pub(super) async fn give_back(&self, source: &Source, rest: &Rest) {
        let Some(numbers) = self.newest else { return };
        let Some((expected, new)) = given_back(rest, &numbers) else { return };
        let give = async |store: &mut dyn Table| -> Result<bool, Refusal> {
            Ok(store.put_counter(&source.counter, &expected, &new).await?)
        };
        let _ = if expected.version.is_some() {
            stores::until_answered(&source.address, &self.store, async |store| give(store.rows()?).await)
                .await
        } else {
            self.limited(source, give).await
        };
    }

    /// Makes one attempt to use the store, within the time limit for an attempt.
    async fn limited<T>(
        &self,
        source: &Source,
        attempt: impl AsyncFnOnce(&mut dyn Table) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        stores::limited(&source.address, &self.store, async |store| attempt(store.rows()?).await).await
    }
}

/// Makes one attempt to reserve numbers. The future may be dropped at any time. If a reply is lost, its
/// numbers are lost too.
async fn reserve(
    store: &mut dyn Table,
    source: &Source,
    mut wanted: Reserve,
    least: u64,
) -> Result<Numbers, Refusal> {
    for _ in 0..MAX_REQUESTS {
        match store.reserve(&source.counter, &wanted).await? {
            Reserved::Numbers(numbers) => return Ok(numbers),
            Reserved::Found(None) => return Err(Refusal::NoRow),
            Reserved::Found(Some(found)) => {
                check(source, &found, wanted.seen)?;
                let left = left_above(&found, last_of(source.counter.schema));
                if left < least {
                    return Err(Refusal::End);
                }
                wanted.count = wanted.count.min(left);
            }
        }
    }
    Err(Refusal::Contended)
}

fn check(source: &Source, found: &CounterRecord, seen: u64) -> Result<(), Refusal> {
    let is_placed = match source.counter.schema {
        // If the counter has only one store, its row may have any remainder, since tinyid's own servers may
        // use the other remainders.
        Schema::Tinyid => source.place.count > 1,
        Schema::Leaf | Schema::Cosid | Schema::Polyflake => false,
    };
    if is_placed && found.place != source.place {
        return Err(Refusal::OtherRow { found: found.place });
    }
    if found.last < seen {
        return Err(Refusal::Behind { last: found.last, seen });
    }
    Ok(())
}

async fn raise(store: &mut dyn Table, source: &Source, number: u64) -> Result<bool, Refusal> {
    for _ in 0..MAX_REQUESTS {
        let found = store.counter(&source.counter).await?.ok_or(Refusal::NoRow)?;
        check(source, &found, 0)?;
        if found.last >= number {
            return Ok(false);
        }
        let version = found.version.map(|version| version + 1);
        let new = CounterRecord { last: number, version, place: found.place };
        if store.put_counter(&source.counter, &found, &new).await? {
            return Ok(true);
        }
    }
    Err(Refusal::Contended)
}

/// Returns the highest number that a row can reach. In Leaf, a segment's upper end is exclusive and must also
/// fit in the column.
const fn last_of(schema: Schema) -> u64 {
    match schema {
        Schema::Leaf => LAST_NUMBER - 1,
        Schema::Tinyid | Schema::Cosid | Schema::Polyflake => LAST_NUMBER,
    }
}

/// Returns how many numbers are left above the row's number.
fn left_above(found: &CounterRecord, last: u64) -> u64 {
    let Place { index, count } = found.place;
    let Some(above) = found.last.checked_add(1).filter(|&above| above <= last) else { return 0 };
    // `first` is the lowest number not below `above` that equals `index` modulo `count`.
    let first = above + (index + count - above % count) % count;
    if first > last { 0 } else { (last - first) / count + 1 }
}

const fn run_of(numbers: &Numbers) -> Run {
    Run { first: numbers.first, stride: numbers.stride, count: numbers.count }
}

/// Returns the record's current and new contents, or `None` if there are no numbers to give back. The new
/// number is the last number that was taken. If the last two segments are consecutive, this number may be in
/// the earlier segment.
fn given_back(rest: &Rest, newest: &Numbers) -> Option<(CounterRecord, CounterRecord)> {
    let reserved = run_of(newest);
    // The last reservation may have been for a block, which is not in the segments.
    if rest.newest.count == 0 || rest.newest.last() != reserved.last() || rest.taken == rest.newest.count {
        return None;
    }
    let taken_of =
        |run: &Run, taken: u64| run.first - 1 + if taken == 0 { 0 } else { (taken - 1) * run.stride + 1 };
    let last = match &rest.before {
        Some((before, left)) if before.last() + before.stride == rest.newest.first => {
            taken_of(before, before.count - left)
        }
        _ => taken_of(&rest.newest, rest.taken),
    };
    let place = Place { index: reserved.first % reserved.stride, count: reserved.stride };
    let expected = CounterRecord { last: reserved.last(), version: newest.version, place };
    Some((expected, CounterRecord { last, version: newest.version.map(|version| version + 1), place }))
}
