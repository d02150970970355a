//! A store for one process. It serves as an example for custom stores, and the simulations use it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;

use super::{Answer, Facts, Group, Kind, Named, Outcome, Record, Store, Write};
use crate::store::StoreError;

type Records = BTreeMap<(String, Kind, String), BTreeMap<String, Record>>;

/// Records in memory. All clones of a store share the same records.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Records>>);

fn key(group: &Group) -> (String, Kind, String) {
    (group.namespace.clone(), group.kind, group.name.clone())
}

fn answer<T>(value: T) -> Answer<T> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
    Answer { now_ms, incarnation: "memory".into(), value }
}

#[async_trait(?Send)]
impl Store for MemoryStore {
    async fn read(&mut self, group: &Group, names: Option<&[&str]>) -> Result<Answer<Named>, StoreError> {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let group = records.get(&key(group)).into_iter().flatten();
        let wanted = group.filter(|(name, _)| names.is_none_or(|names| names.contains(&&***name)));
        Ok(answer(wanted.map(|(name, record)| (name.clone(), record.clone())).collect()))
    }

    async fn write(&mut self, write: &Write) -> Result<Answer<Outcome>, StoreError> {
        let mut records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |name: &String| records.get(&key(&write.group)).and_then(|group| group.get(name)).cloned();
        let (record, guard) = (of(&write.name), write.guard.as_ref().and_then(|(name, _)| of(name)));
        let found = record.as_ref().map(|record| record.version);
        let is_guarded =
            write.guard.as_ref().map(|(_, version)| *version) == guard.as_ref().map(|it| it.version);
        if !is_guarded || (found != write.expected && found != Some(write.new.version)) {
            return Ok(answer(Outcome::Found { record, guard }));
        }
        records.entry(key(&write.group)).or_default().insert(write.name.clone(), write.new.clone());
        Ok(answer(Outcome::Written))
    }

    async fn groups(&mut self, namespace: &str, kind: Kind) -> Result<Vec<String>, StoreError> {
        let records = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of = records.keys().filter(|(of, its_kind, _)| of == namespace && *its_kind == kind);
        Ok(of.map(|(_, _, name)| name.clone()).collect())
    }

    fn facts(&self) -> Facts {
        Facts { granularity_ms: 1, can_forget: false, asynchronous_replicas: 0 }
    }

    fn disconnect(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_does_what_a_store_must() {
        let store = MemoryStore::default();
        super::super::conformance(&|| Box::new(store.clone()));
    }
}
