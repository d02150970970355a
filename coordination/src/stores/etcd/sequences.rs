//! Sequences in etcd: a key for each, `polyflake/NAMESPACE/sequences/NAME`, with the record as JSON.

use super::{EtcdStore, Found, PREFIX};
use crate::store::{SequencesName, SequencesRecord, StoreError};
use crate::stores::sequences_record::{self, NOT_TO_KEEP};

fn key(name: &SequencesName) -> String {
    format!("{PREFIX}{}/sequences/{}", name.namespace, name.name)
}

impl EtcdStore {
    async fn sequences_at(
        &mut self,
        key: &str,
    ) -> Result<(Option<Found>, Option<SequencesRecord>), StoreError> {
        let found = self.read(&[key]).await?.0.pop().flatten();
        let record = found.as_ref().map(|it| sequences_record::read(&it.value, key));
        Ok((found, record.transpose().map_err(|why| self.refused(&why))?))
    }

    pub(super) async fn read_sequences(
        &mut self,
        name: &SequencesName,
    ) -> Result<Option<SequencesRecord>, StoreError> {
        Ok(self.sequences_at(&key(name)).await?.1)
    }

    /// Compared on the revision of what was read, which no other change leaves as it is.
    pub(super) async fn write_sequences(
        &mut self,
        name: &SequencesName,
        expected: Option<u64>,
        new: &SequencesRecord,
    ) -> Result<bool, StoreError> {
        let text = sequences_record::write(new).ok_or_else(|| self.refused(NOT_TO_KEEP))?;
        let key = key(name);
        let (found, record) = self.sequences_at(&key).await?;
        if record.map(|record| record.version) != expected {
            return Ok(false);
        }
        Ok(self.change(&[(&key, found.as_ref())], &key, text).await?.0.is_ok())
    }
}
