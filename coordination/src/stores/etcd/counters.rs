//! Counters in etcd: a key for each, `polyflake/NAMESPACE/counters/NAME`, with JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{EtcdStore, Found, PREFIX};
use crate::store::{CounterName, CounterRecord, Reserve, Reserved, StoreError};
use crate::stores::counter_record::{
    self, NOT_TO_ASK, NOT_TO_KEEP, ROUNDS, Unreadable, can_ask, ended, pause, take,
};

fn key(counter: &CounterName) -> String {
    format!("{PREFIX}{}/counters/{}", counter.namespace, counter.name)
}

/// What is at the key of a counter.
struct There {
    found: Option<Found>,
    /// From this call, not from one before.
    is_fresh: bool,
}

impl EtcdStore {
    fn read_counter(&self, key: &str, found: Option<&Found>) -> Result<Option<CounterRecord>, StoreError> {
        let Some(found) = found else { return Ok(None) };
        counter_record::read(&found.value).map(Some).map_err(|e| self.refused(&e.text(key)))
    }

    /// What this store wrote last, where it did: it may be old by now.
    async fn there(&mut self, key: &str) -> Result<There, StoreError> {
        // The first call finds out what is known.
        self.cluster().await?;
        if let Some(it) = self.known.get(key) {
            return Ok(There { found: Some(it.clone()), is_fresh: false });
        }
        self.there_now(key).await
    }

    async fn there_now(&mut self, key: &str) -> Result<There, StoreError> {
        self.known.remove(key);
        Ok(There { found: self.read(&[key]).await?.0.pop().flatten(), is_fresh: true })
    }

    /// `None` if it is written, else what is there.
    async fn change_counter(
        &mut self,
        key: &str,
        there: &There,
        value: String,
    ) -> Result<Option<There>, StoreError> {
        match self.change(&[(key, there.found.as_ref())], key, value).await?.0 {
            Ok(()) => Ok(None),
            Err(mut now) => Ok(Some(There { found: now.pop().flatten(), is_fresh: true })),
        }
    }

    fn contended(&self, key: &str) -> StoreError {
        self.unreachable(&counter_record::contended(key))
    }

    pub(super) async fn take(
        &mut self,
        counter: &CounterName,
        reserve: &Reserve,
    ) -> Result<Reserved, StoreError> {
        if !can_ask(reserve) {
            return Err(self.refused(NOT_TO_ASK));
        }
        let key = key(counter);
        let mut there = self.there(&key).await?;
        for round in 0..ROUNDS {
            let record = self.read_counter(&key, there.found.as_ref())?;
            let Some((numbers, new)) = record.as_ref().and_then(|it| take(it, reserve)) else {
                if there.is_fresh {
                    self.known.remove(&key);
                    return Ok(Reserved::Found(record));
                }
                there = self.there_now(&key).await?;
                continue;
            };
            let value = counter_record::write(&new).ok_or_else(|| self.refused(&ended(&key)))?;
            match self.change_counter(&key, &there, value).await? {
                None => return Ok(Reserved::Numbers(numbers)),
                Some(now) => {
                    there = now;
                    pause(round).await;
                }
            }
        }
        Err(self.contended(&key))
    }

    pub(super) async fn look(&mut self, counter: &CounterName) -> Result<Option<CounterRecord>, StoreError> {
        let key = key(counter);
        let there = self.there_now(&key).await?;
        self.read_counter(&key, there.found.as_ref())
    }

    pub(super) async fn put(
        &mut self,
        counter: &CounterName,
        expected: Option<&CounterRecord>,
        new: &CounterRecord,
    ) -> Result<bool, StoreError> {
        let key = key(counter);
        let value = counter_record::write(new).ok_or_else(|| self.refused(NOT_TO_KEEP))?;
        let version = expected.map(|it| it.version);
        // A record that is not expected is found by the change.
        let nothing = There { found: None, is_fresh: false };
        let mut there = if expected.is_some() { self.there(&key).await? } else { nothing };
        for round in 0..ROUNDS {
            let record = self.read_counter(&key, there.found.as_ref())?;
            if record.map(|it| it.version) != version {
                if there.is_fresh {
                    self.known.remove(&key);
                    return Ok(false);
                }
                there = self.there_now(&key).await?;
                continue;
            }
            match self.change_counter(&key, &there, value.clone()).await? {
                None => return Ok(true),
                Some(now) => {
                    there = now;
                    pause(round).await;
                }
            }
        }
        Err(self.contended(&key))
    }

    /// What is broken can be deleted.
    pub(super) async fn remove(&mut self, counter: &CounterName) -> Result<bool, StoreError> {
        let key = key(counter);
        let encoded = STANDARD.encode(&key);
        let mut there = self.there_now(&key).await?;
        for round in 0..ROUNDS {
            let Some(found) = there.found else { return Ok(false) };
            if let Err(e @ Unreadable::Format(_)) = counter_record::read(&found.value) {
                return Err(self.refused(&e.text(&key)));
            }
            let compare =
                json!({ "key": encoded, "target": "MOD", "result": "EQUAL", "mod_revision": found.revision });
            let delete = json!({ "request_delete_range": { "key": encoded } });
            let range = json!({ "request_range": { "key": encoded } });
            let reply =
                self.txn(&json!({ "compare": [compare], "success": [delete], "failure": [range] })).await?;
            if reply.succeeded {
                return Ok(true);
            }
            there = There { found: self.found(reply)?.pop().flatten(), is_fresh: true };
            pause(round).await;
        }
        Err(self.contended(&key))
    }
}
