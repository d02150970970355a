//! Records in etcd. Each record has a key, `polyflake/NAMESPACE/KIND/GROUP/RECORD`. A change is one
//! transaction that compares the value that was read, byte for byte. Unlike a revision, a version is never
//! reused, not even after a restore.

use std::collections::BTreeMap;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{EtcdStore, PREFIX, Reply, range};
use crate::records::{Add, Added, Answer, Facts, Group, Kind, Named, Outcome, Record, Store, Write};
use crate::store::StoreError;
use crate::stores::keyed::{self, Changed, Next, ROUNDS};

/// The number of keys listed at a time.
const PAGE: usize = 500;

/// The maximum number of values to remember.
const MOST_KNOWN: usize = 512;

fn prefix(group: &Group) -> String {
    format!("{PREFIX}{}/{}/{}/", group.namespace, group.kind, keyed::escaped(&group.name))
}

/// Returns the key that an earlier version of Polyflake used for this group.
fn former(Group { namespace, kind, name }: &Group) -> Option<String> {
    match kind {
        Kind::Space => Some(format!("{PREFIX}{namespace}/{name}/space")),
        Kind::Counter => Some(format!("{PREFIX}{namespace}/counters/{name}")),
        // The earlier version did not escape names, so a name with a slash may be the key of a record.
        Kind::Sequences => (!name.contains('/')).then(|| format!("{PREFIX}{namespace}/sequences/{name}")),
    }
}

/// Returns a comparison that holds if the key has this value, or, for `None`, if the key does not exist.
fn compare(key: &str, value: Option<&String>) -> Value {
    let key = STANDARD.encode(key);
    match value {
        Some(it) => json!({ "key": key, "target": "VALUE", "result": "EQUAL", "value": STANDARD.encode(it) }),
        None => json!({ "key": key, "target": "MOD", "result": "EQUAL", "mod_revision": "0" }),
    }
}

/// Keys and their values.
type Pairs = BTreeMap<String, String>;

impl EtcdStore {
    /// Sends one transaction. Returns whether its comparisons held, and everything that it read.
    async fn ask(&mut self, body: &Value) -> Result<(bool, Answer<Pairs>), StoreError> {
        let Reply { header, succeeded, responses, now_ms } = self.txn(body).await?;
        let pairs = responses.into_iter().filter_map(|it| it.response_range).flat_map(|it| it.kvs);
        let pairs = pairs.map(|it| self.decode(&it));
        let value = pairs.collect::<Result<_, _>>()?;
        Ok((succeeded, Answer { now_ms, incarnation: header.cluster_id, value }))
    }

    /// Remembers these values, so that the next change can skip the read. Skips unreadable values, which may
    /// have been repaired by the time of the next change.
    fn remember(&mut self, pairs: &Pairs) {
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        for (key, value) in pairs.iter().filter(|(key, value)| keyed::read(key, value).is_ok()) {
            self.known.insert(key.clone(), value.clone());
        }
    }

    fn record(&self, key: &str, pairs: &Pairs) -> Result<Option<Record>, StoreError> {
        pairs.get(key).map(|it| keyed::read(key, it).map_err(|why| self.refused(&why))).transpose()
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
        let prefix = prefix(group);
        let (key, guard_key) = (format!("{prefix}{name}"), guard.map(|it| format!("{prefix}{it}")));
        let keys: Vec<_> = [&key].into_iter().chain(&guard_key).collect();
        let reads: Vec<_> = keys.iter().map(|key| range(key, None, &json!({}))).collect();
        // A remembered value may be out of date. It is good enough for a change that compares it, but for
        // nothing else.
        let known = keys.iter().map(|&key| Some((key.clone(), self.known.remove(key)?)));
        let known = known.collect::<Option<_>>();
        let mut there = known.map(|value| (false, Answer { now_ms: 0, incarnation: String::new(), value }));
        for round in 0..ROUNDS {
            let (is_fresh, mut found) = match there.take() {
                Some(it) => it,
                None => (true, self.ask(&json!({ "success": reads })).await?.1),
            };
            let record = self.record(&key, &found.value)?;
            let guard = guard_key.as_ref().map(|key| self.record(key, &found.value)).transpose()?.flatten();
            let Some(new) = next(record.as_ref(), guard.as_ref()) else {
                if !is_fresh {
                    continue;
                }
                self.remember(&found.value);
                return Ok(found.map(|_| Changed::Found(record, guard)));
            };
            let value = keyed::write(&new);
            let mut compares: Vec<_> = keys.iter().map(|key| compare(key, found.value.get(*key))).collect();
            let mut or_reads = reads.clone();
            let former = former(group).filter(|_| record.is_none());
            compares.extend(former.iter().map(|former| compare(former, None)));
            or_reads.extend(former.iter().map(|former| range(former, None, &json!({}))));
            let put = json!({ "key": STANDARD.encode(&key), "value": STANDARD.encode(&value) });
            let put = [json!({ "request_put": put })];
            let txn = json!({ "compare": compares, "success": put, "failure": or_reads });
            let (is_done, reply) = self.ask(&txn).await?;
            if is_done {
                found.value.insert(key, value);
                self.remember(&found.value);
                return Ok(reply.map(|_| Changed::To(new)));
            }
            if let Some(former) = former.filter(|it| reply.value.contains_key(it)) {
                return Err(self.refused(&keyed::former(&former)));
            }
            there = Some((true, reply));
            keyed::pause(round).await;
        }
        Err(self.unreachable(&keyed::contended(&key)))
    }
}

#[async_trait(?Send)]
impl Store for EtcdStore {
    async fn read(&mut self, group: &Group, names: Option<&[&str]>) -> Result<Answer<Named>, StoreError> {
        let prefix = prefix(group);
        let one = |name: &&str| range(&format!("{prefix}{name}"), None, &json!({}));
        let all = || vec![range(&prefix, Some(&prefix), &json!({}))];
        let ranges = names.map_or_else(all, |names| names.iter().map(one).collect());
        let (_, answer) = self.ask(&json!({ "success": ranges })).await?;
        if names.is_some() {
            self.remember(&answer.value);
        }
        let mut records = Vec::with_capacity(answer.value.len());
        for key in answer.value.keys() {
            let found = key.strip_prefix(&prefix).zip(self.record(key, &answer.value)?);
            records.extend(found.map(|(name, record)| (name.to_owned(), record)));
        }
        Ok(answer.map(|_| records))
    }

    async fn read_each(
        &mut self,
        groups: &[Group],
        name: &str,
    ) -> Result<Vec<Answer<Option<Record>>>, StoreError> {
        let mut answers = Vec::with_capacity(groups.len());
        for groups in groups.chunks(Record::MAX_NAMES) {
            let keys: Vec<_> = groups.iter().map(|group| format!("{}{name}", prefix(group))).collect();
            let ranges: Vec<_> = keys.iter().map(|key| range(key, None, &json!({}))).collect();
            let (_, Answer { now_ms, incarnation, value }) = self.ask(&json!({ "success": ranges })).await?;
            self.remember(&value);
            for key in keys {
                let record = self.record(&key, &value)?;
                answers.push(Answer { now_ms, incarnation: incarnation.clone(), value: record });
            }
        }
        Ok(answers)
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
        let prefix = format!("{PREFIX}{namespace}/{kind}/");
        let (mut from, mut groups) = (prefix.clone(), Vec::new());
        loop {
            let page = json!({ "limit": PAGE.to_string(), "keys_only": true });
            let page = range(&from, Some(&prefix), &page);
            let keys = self.ask(&json!({ "success": [page] })).await?.1.value;
            for key in keys.keys() {
                let group = key.strip_prefix(&prefix).and_then(|it| it.split_once('/'));
                from = match group {
                    // Skip the other keys in the group.
                    Some((group, _)) => format!("{prefix}{group}0"),
                    None => format!("{key}\0"),
                };
                groups.extend(group.and_then(|(group, _)| keyed::unescaped(group)));
            }
            groups.dedup();
            if keys.len() < PAGE {
                return Ok(groups);
            }
        }
    }

    fn facts(&self) -> Facts {
        Facts { granularity_ms: 1_000, can_forget: false, asynchronous_replicas: 0 }
    }

    fn disconnect(&mut self) {
        self.connection = None;
        self.hosts.turn();
    }
}
