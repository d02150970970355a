//! Sequences in ZooKeeper: a znode for each, `/polyflake/NAMESPACE/sequences/NAME`, with the record as JSON.

use super::counters::{Change, Paths, There};
use super::{ZookeeperStore, name};
use crate::store::{SequencesName, SequencesRecord, StoreError};
use crate::stores::counter_record::{ROUNDS, contended, pause};
use crate::stores::sequences_record::{self, NOT_TO_KEEP};

impl ZookeeperStore {
    fn sequences_paths(&self, of: &SequencesName) -> Paths {
        self.record_paths(&of.namespace, "sequences", &name(&of.name))
    }

    async fn sequences_at(&mut self, paths: &Paths) -> Result<(There, Option<SequencesRecord>), StoreError> {
        let there = self.there_now(paths).await?;
        let text = there.found.as_ref().map(|(data, _)| String::from_utf8_lossy(data));
        let record = text.map(|text| sequences_record::read(&text, &paths.record)).transpose();
        Ok((there, record.map_err(|why| self.client.refused(&why))?))
    }

    pub(super) async fn read_sequences(
        &mut self,
        name: &SequencesName,
    ) -> Result<Option<SequencesRecord>, StoreError> {
        let paths = self.sequences_paths(name);
        Ok(self.sequences_at(&paths).await?.1)
    }

    pub(super) async fn write_sequences(
        &mut self,
        name: &SequencesName,
        expected: Option<u64>,
        new: &SequencesRecord,
    ) -> Result<bool, StoreError> {
        let text = sequences_record::write(new).ok_or_else(|| self.client.refused(NOT_TO_KEEP))?;
        let paths = self.sequences_paths(name);
        // Others may make the znodes above it, too.
        for round in 0..ROUNDS {
            let (there, record) = self.sequences_at(&paths).await?;
            if record.map(|record| record.version) != expected {
                return Ok(false);
            }
            if self.change_record(&paths, there, Change::Write(text.clone())).await? {
                return Ok(true);
            }
            pause(round).await;
        }
        Err(self.client.unreachable(&contended(&paths.record)))
    }
}
