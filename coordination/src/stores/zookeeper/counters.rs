//! Counters in ZooKeeper: a znode for each, `/polyflake/NAMESPACE/counters/NAME`, with JSON.
//!
//! A change is a transaction that compares the znode's version. A znode that is deleted and made again counts its versions
//! from 0 again, so an old version may come back. So whoever makes or deletes a counter also sets the znode above it, and
//! each change compares the version of that one too.

use super::client::Conflict;
use super::jute::{Answer, Op};
use super::{Found, ZookeeperStore, found, name};
use crate::store::{CounterName, CounterRecord, Reserve, Reserved, StoreError};
use crate::stores::counter_record::{
    self, NOT_TO_ASK, NOT_TO_KEEP, ROUNDS, Unreadable, can_ask, contended, ended, pause, take,
};

/// The znodes of a counter or of sequences.
pub(super) struct Paths {
    /// All above it, from the top.
    above: [String; 3],
    pub(super) record: String,
}

/// What is at such a path.
pub(super) struct There {
    /// Those above it that are missing.
    missing: Vec<String>,
    /// The version of the one right above it, if it is there.
    above: Option<i32>,
    pub(super) found: Option<Found>,
    /// From after the call began, for sure.
    is_fresh: bool,
}

pub(super) enum Change {
    Write(String),
    Delete,
}

impl There {
    fn record(&self) -> Result<Option<CounterRecord>, Unreadable> {
        let Some((data, _)) = &self.found else { return Ok(None) };
        counter_record::read(&String::from_utf8_lossy(data)).map(Some)
    }
}

impl ZookeeperStore {
    fn counter_paths(&self, counter: &CounterName) -> Paths {
        self.record_paths(&counter.namespace, "counters", &name(&counter.name))
    }

    pub(super) fn record_paths(&self, namespace: &str, kind: &str, record: &str) -> Paths {
        let top = self.top();
        let namespace = format!("{top}/{}", name(namespace));
        let all = format!("{namespace}/{kind}");
        let record = format!("{all}/{record}");
        Paths { above: [top, namespace, all], record }
    }

    /// What this server has: it may be old by now. Good enough for a change that compares it, and no ground for a refusal.
    async fn there(&mut self, paths: &Paths) -> Result<There, StoreError> {
        let answers = self.client.calls(&reads(paths)).await?;
        Ok(there(paths, answers, false))
    }

    pub(super) async fn there_now(&mut self, paths: &Paths) -> Result<There, StoreError> {
        let answers = self.read(&reads(paths)).await?.answers;
        Ok(there(paths, answers, true))
    }

    /// Whether it succeeded: not where others changed what was there.
    pub(super) async fn change_record(
        &mut self,
        paths: &Paths,
        there: There,
        change: Change,
    ) -> Result<bool, StoreError> {
        let Paths { above: [.., above], record } = paths;
        let mut ops = Vec::new();
        match (there.above, there.found, change) {
            // To ZooKeeper -1 is any version, so nobody writes where it is reached.
            (Some(-1), ..) => return Err(self.client.refused(&ended(above))),
            (_, Some((_, -1)), Change::Write(_)) => return Err(self.client.refused(&ended(record))),
            (Some(all), Some((_, version)), Change::Write(text)) => {
                ops.push(Op::Check(above.clone(), all));
                ops.push(Op::Set(record.clone(), text, Some(version)));
            }
            (Some(all), Some((_, version)), Change::Delete) => {
                ops.push(Op::Set(above.clone(), String::new(), Some(all)));
                ops.push(Op::Delete(record.clone(), Some(version)));
            }
            (_, None, Change::Write(text)) => {
                ops.extend(there.missing.iter().map(|it| self.create(it, "")));
                ops.push(Op::Set(above.clone(), String::new(), None));
                ops.push(self.create(record, &text));
            }
            // It was made while it was read.
            _ => return Ok(false),
        }
        Ok(self.client.multi(&ops).await?.is_ok())
    }

    fn unreadable(&self, paths: &Paths, why: &Unreadable) -> StoreError {
        self.client.refused(&why.text(&paths.record))
    }

    fn contended(&self, paths: &Paths) -> StoreError {
        self.client.unreachable(&contended(&paths.record))
    }

    pub(super) async fn take(
        &mut self,
        counter: &CounterName,
        reserve: &Reserve,
    ) -> Result<Reserved, StoreError> {
        if !can_ask(reserve) {
            return Err(self.client.refused(NOT_TO_ASK));
        }
        let paths = self.counter_paths(counter);
        let mut there = self.there(&paths).await?;
        for round in 0..ROUNDS {
            let record = there.record();
            let taken = record.as_ref().ok().and_then(Option::as_ref).and_then(|it| take(it, reserve));
            if let Some((numbers, new)) = taken {
                let text =
                    counter_record::write(&new).ok_or_else(|| self.client.refused(&ended(&paths.record)))?;
                if self.change_record(&paths, there, Change::Write(text)).await? {
                    return Ok(Reserved::Numbers(numbers));
                }
                pause(round).await;
            } else if there.is_fresh {
                return record.map(Reserved::Found).map_err(|e| self.unreadable(&paths, &e));
            }
            there = self.there_now(&paths).await?;
        }
        Err(self.contended(&paths))
    }

    pub(super) async fn look(&mut self, counter: &CounterName) -> Result<Option<CounterRecord>, StoreError> {
        let paths = self.counter_paths(counter);
        self.there_now(&paths).await?.record().map_err(|e| self.unreadable(&paths, &e))
    }

    pub(super) async fn put(
        &mut self,
        counter: &CounterName,
        expected: Option<&CounterRecord>,
        new: &CounterRecord,
    ) -> Result<bool, StoreError> {
        let paths = self.counter_paths(counter);
        let text = counter_record::write(new).ok_or_else(|| self.client.refused(NOT_TO_KEEP))?;
        let version = expected.map(|it| it.version);
        let mut there = self.there(&paths).await?;
        for round in 0..ROUNDS {
            let record = there.record();
            if matches!(&record, Ok(it) if it.map(|it| it.version) == version) {
                if self.change_record(&paths, there, Change::Write(text.clone())).await? {
                    return Ok(true);
                }
                pause(round).await;
            } else if there.is_fresh {
                return record.map(|_| false).map_err(|e| self.unreadable(&paths, &e));
            }
            there = self.there_now(&paths).await?;
        }
        Err(self.contended(&paths))
    }

    /// What is broken can be deleted. The znodes above stay: a version of theirs that comes back would compare as equal.
    pub(super) async fn remove(&mut self, counter: &CounterName) -> Result<bool, StoreError> {
        let paths = self.counter_paths(counter);
        for round in 0..ROUNDS {
            let there = self.there_now(&paths).await?;
            match there.record() {
                Ok(None) => return Ok(false),
                Err(e @ Unreadable::Format(_)) => return Err(self.unreadable(&paths, &e)),
                _ => {}
            }
            if self.change_record(&paths, there, Change::Delete).await? {
                return Ok(true);
            }
            pause(round).await;
        }
        Err(self.contended(&paths))
    }
}

/// From the top: what is above a counter is as old as what it has, or older, so that the comparison of both finds
/// whatever came between.
fn reads(paths: &Paths) -> Vec<Op> {
    paths.above.iter().chain([&paths.record]).cloned().map(Op::Get).collect()
}

fn there(paths: &Paths, answers: Vec<Result<Answer, Conflict>>, is_fresh: bool) -> There {
    let mut answers = answers.into_iter();
    let (mut missing, mut above) = (Vec::new(), None);
    for path in &paths.above {
        above = found(&mut answers).map(|(_, version)| version);
        if above.is_none() {
            missing.push(path.clone());
        }
    }
    There { missing, above, found: found(&mut answers), is_fresh }
}
