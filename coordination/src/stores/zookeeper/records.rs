//! Records in ZooKeeper. Each record has a znode, `/polyflake/NAMESPACE/KIND/GROUP/RECORD`. A record is never
//! deleted, so a znode's version stands for the value that was read. The first record of a group creates the
//! znodes above it.

use async_trait::async_trait;

use super::client::Conflict;
use super::jute::{Answer as Reply, Op};
use super::{Fresh, INCARNATION, ZookeeperStore, found};
use crate::records::{Add, Added, Answer, Facts, Group, Kind, Named, Outcome, Record, Store, Write};
use crate::store::StoreError;
use crate::stores::keyed::{self, Changed, Next, ROUNDS, escaped};

/// A record and the version of its znode.
type There = Option<(Record, i32)>;

fn answer<T>(now_ms: u64, value: T) -> Answer<T> {
    Answer { now_ms, incarnation: INCARNATION.into(), value }
}

impl ZookeeperStore {
    fn kind(&self, namespace: &str, kind: Kind) -> String {
        format!("{}/{}/{kind}", self.top(), escaped(namespace))
    }

    fn base(&self, group: &Group) -> String {
        format!("{}/{}", self.kind(&group.namespace, group.kind), escaped(&group.name))
    }

    /// Returns the znode that an earlier version of Polyflake used for this group. For sequences, this is the
    /// same znode, but with data.
    fn former(&self, group: &Group) -> String {
        let (namespace, name) =
            (format!("{}/{}", self.top(), escaped(&group.namespace)), escaped(&group.name));
        match group.kind {
            Kind::Space => format!("{namespace}/{name}/space"),
            Kind::Counter => format!("{namespace}/counters/{name}"),
            Kind::Sequences => format!("{namespace}/sequences/{name}"),
        }
    }

    /// Reads a znode's record from the next answer.
    fn record_at(
        &self,
        path: &str,
        answers: &mut impl Iterator<Item = Result<Reply, Conflict>>,
    ) -> Result<There, StoreError> {
        let Some((data, version)) = found(answers) else { return Ok(None) };
        let record = keyed::read(path, &String::from_utf8_lossy(&data));
        let record = record.map_err(|why| self.client.refused(&why))?;
        if version == -1 {
            let why =
                format!("the version of {path} is -1, which stands for any: set it once by hand as it is");
            return Err(self.client.refused(&why));
        }
        Ok(Some((record, version)))
    }

    /// Returns requests that create the missing znodes above a group's records.
    async fn above(&mut self, group: &Group) -> Result<Vec<Op>, StoreError> {
        let base = self.base(group);
        let all = base.match_indices('/').map(|(at, _)| at).chain([base.len()]);
        let all = all.filter_map(|at| base.get(..at)).filter(|it| it.len() >= self.top().len());
        let all: Vec<_> = all.map(ToOwned::to_owned).collect();
        let former = self.former(group);
        let reads: Vec<_> = [&former].into_iter().chain(&all).cloned().map(Op::Get).collect();
        let mut answers = self.client.calls(&reads).await?.into_iter();
        if found(&mut answers).is_some_and(|(data, _)| !data.is_empty()) {
            return Err(self.client.refused(&keyed::former(&former)));
        }
        let missing = all.iter().zip(answers).filter(|(_, it)| it.is_err());
        Ok(missing.map(|(path, _)| self.create(path, "")).collect())
    }

    /// Computes a record's new contents with `next`, and writes them unless the record or its guard changes
    /// first.
    async fn alter(
        &mut self,
        group: &Group,
        name: &str,
        guard: Option<&str>,
        next: Next<'_>,
    ) -> Result<Answer<Changed>, StoreError> {
        let base = self.base(group);
        let (path, guard_path) = (format!("{base}/{name}"), guard.map(|it| format!("{base}/{it}")));
        let reads: Vec<_> =
            [Some(&path), guard_path.as_ref()].into_iter().flatten().cloned().map(Op::Get).collect();
        let mut is_fresh = false;
        for round in 0..ROUNDS {
            // The first read may return stale data. Stale data is good enough for a change that checks it,
            // but for nothing else.
            let (now_ms, answers) = if is_fresh {
                let Fresh { now_ms, answers, .. } = self.read(&reads).await?;
                (Some(now_ms), answers)
            } else {
                (None, self.client.calls(&reads).await?)
            };
            let mut answers = answers.into_iter();
            let record = self.record_at(&path, &mut answers)?;
            let guard =
                guard_path.as_ref().map(|path| self.record_at(path, &mut answers)).transpose()?.flatten();
            let record_of = |it: &There| it.as_ref().map(|(record, _)| record.clone());
            let (there, guarded) = (record_of(&record), record_of(&guard));
            let Some(new) = next(there.as_ref(), guarded.as_ref()) else {
                if let Some(now_ms) = now_ms {
                    return Ok(answer(now_ms, Changed::Found(there, guarded)));
                }
                is_fresh = true;
                continue;
            };
            let text = keyed::write(&new);
            let mut ops = Vec::new();
            ops.extend(guard_path.clone().zip(guard).map(|(path, (_, version))| Op::Check(path, version)));
            // Creating a znode returns no time, but setting its data does.
            let version = if let Some((_, version)) = record {
                version
            } else {
                ops.extend(self.above(group).await?);
                ops.push(self.create(&path, ""));
                0
            };
            ops.extend(set(&path, &text, version));
            if let Ok([.., Reply::Stat(stat)]) = self.client.multi(&ops).await?.as_deref() {
                return Ok(answer(stat.mtime_ms, Changed::To(new)));
            }
            // By now, this server has seen the znodes that caused the conflict. If the chroot does not exist,
            // no znode can be created.
            is_fresh = there.is_none();
            keyed::pause(round).await;
        }
        Err(self.client.unreachable(&keyed::contended(&path)))
    }
}

/// Returns requests that set a znode with this version. Versions wrap around, and -1 would mean any version,
/// so -1 is skipped.
pub(super) fn set(path: &str, text: &str, version: i32) -> Vec<Op> {
    let set = |version| Op::Set(path.into(), text.into(), version);
    if version == -2 { vec![set(Some(version)), set(None)] } else { vec![set(Some(version))] }
}

#[async_trait(?Send)]
impl Store for ZookeeperStore {
    async fn read(&mut self, group: &Group, names: Option<&[&str]>) -> Result<Answer<Named>, StoreError> {
        let base = self.base(group);
        let gets = |names: &[String]| -> Vec<_> {
            names.iter().map(|name| Op::Get(format!("{base}/{name}"))).collect()
        };
        let (now_ms, names, answers) = if let Some(names) = names {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            let Fresh { now_ms, answers, .. } = self.read(&gets(&names)).await?;
            (now_ms, names, answers)
        } else {
            let Fresh { now_ms, mut answers, .. } = self.read(&[Op::Children(base.clone())]).await?;
            let Some(Ok(Reply::Names(names))) = answers.pop() else { return Ok(answer(now_ms, Vec::new())) };
            let answers = self.client.calls(&gets(&names)).await?;
            (now_ms, names, answers)
        };
        let mut answers = answers.into_iter();
        let mut records = Vec::with_capacity(names.len());
        for name in names {
            let there = self.record_at(&format!("{base}/{name}"), &mut answers)?;
            records.extend(there.map(|(record, _)| (name, record)));
        }
        Ok(answer(now_ms, records))
    }

    async fn read_each(
        &mut self,
        groups: &[Group],
        name: &str,
    ) -> Result<Vec<Answer<Option<Record>>>, StoreError> {
        let mut all = Vec::with_capacity(groups.len());
        for groups in groups.chunks(Record::MAX_NAMES) {
            let paths: Vec<_> = groups.iter().map(|group| format!("{}/{name}", self.base(group))).collect();
            let gets: Vec<_> = paths.iter().cloned().map(Op::Get).collect();
            let Fresh { now_ms, answers, .. } = self.read(&gets).await?;
            let mut answers = answers.into_iter();
            for path in paths {
                let there = self.record_at(&path, &mut answers)?;
                all.push(answer(now_ms, there.map(|(record, _)| record)));
            }
        }
        Ok(all)
    }

    async fn write(&mut self, write: &Write) -> Result<Answer<Outcome>, StoreError> {
        let guard = write.guard.as_ref().map(|(name, _)| &**name);
        let next = |record: Option<&_>, guard: Option<&_>| keyed::written(write, record, guard);
        Ok(self.alter(&write.group, &write.name, guard, &next).await?.map(keyed::outcome))
    }

    async fn add(&mut self, add: &Add) -> Result<Answer<Added>, StoreError> {
        let next = |record: Option<&_>, _: Option<&_>| keyed::sum(add, record);
        Ok(self.alter(&add.group, &add.name, None, &next).await?.map(|it| keyed::added(add, it)))
    }

    async fn groups(&mut self, namespace: &str, kind: Kind) -> Result<Vec<String>, StoreError> {
        let Fresh { mut answers, .. } = self.read(&[Op::Children(self.kind(namespace, kind))]).await?;
        let Some(Ok(Reply::Names(names))) = answers.pop() else { return Ok(Vec::new()) };
        Ok(names.iter().filter_map(|it| keyed::unescaped(it)).collect())
    }

    fn facts(&self) -> Facts {
        Facts { granularity_ms: 1, can_forget: false, asynchronous_replicas: 0 }
    }

    fn disconnect(&mut self) {
        self.client.disconnect();
    }
}
