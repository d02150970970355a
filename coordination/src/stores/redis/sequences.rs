//! Sequences in Redis: a hash for each, `polyflake:{NAMESPACE/sequences:NAME}`, with the record as JSON and its version.

use super::RedisStore;
use crate::store::{SequencesName, SequencesRecord, StoreError};
use crate::stores::sequences_record::{self, NOT_TO_KEEP};

/// Before each script.
macro_rules! script {
    ($body:literal) => {
        concat!(
            "
    local info = redis.call('INFO', 'replication')
    if string.match(info, 'role:(%a+)') ~= 'master' then return {'replica'} end
    local is_there = redis.call('EXISTS', KEYS[1]) == 1
    local found = redis.call('HMGET', KEYS[1], 'version', 'record')
",
            $body
        )
    };
}

const READ: &str = script!(
    "
    if not is_there then return {'none'} end
    return {'there', found[2] or ''}"
);

/// Arguments: the new version and record, whether to confirm what is found, and the expected version where there is one. What is
/// found may be what the caller wrote itself in an attempt that no replica confirmed: see the script for a node's record.
const PUT: &str = script!(
    "
    local fits = not is_there
    if ARGV[4] then fits = found[1] == ARGV[4] end
    if fits then
      local time = redis.call('TIME')
      local ms = string.format('%s%03d', time[1], math.floor(time[2] / 1000))
      redis.call('HSET', KEYS[1], 'updated_ms', ms, 'version', ARGV[1], 'record', ARGV[2])
      return {'written'}
    end
    if not found[1] or ARGV[3] ~= '1' then return {'none'} end
    redis.call('HSET', KEYS[1], 'version', found[1])
    return {'no'}"
);

fn key(name: &SequencesName) -> String {
    format!("polyflake:{{{}/sequences:{}}}", name.namespace, name.name)
}

impl RedisStore {
    pub(super) async fn read_sequences(
        &mut self,
        name: &SequencesName,
    ) -> Result<Option<SequencesRecord>, StoreError> {
        let key = key(name);
        let reply = self.run(std::slice::from_ref(&key), READ, &[], false).await?;
        let text = reply.texts.first().filter(|_| reply.status == "there");
        text.map(|text| sequences_record::read(text, &key).map_err(|why| self.refused(&why))).transpose()
    }

    pub(super) async fn write_sequences(
        &mut self,
        name: &SequencesName,
        expected: Option<u64>,
        new: &SequencesRecord,
    ) -> Result<bool, StoreError> {
        let text = sequences_record::write(new).ok_or_else(|| self.refused(NOT_TO_KEEP))?;
        let is_confirmed = u8::from(self.address.replicas > 0).to_string();
        let mut arguments = vec![new.version.to_string(), text, is_confirmed];
        arguments.extend(expected.map(|version| version.to_string()));
        Ok(self.run(&[key(name)], PUT, &arguments, true).await?.status == "written")
    }
}
