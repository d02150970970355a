//! What a namespace has.

use serde_json::json;

use super::{EtcdStore, PREFIX, range};
use crate::store::StoreError;

impl EtcdStore {
    /// The rests of the keys that start with this, below the namespace.
    pub(super) async fn rests(&mut self, namespace: &str, start: &str) -> Result<Vec<String>, StoreError> {
        let prefix = format!("{PREFIX}{namespace}/{start}");
        let all = range(&prefix, Some(&prefix), &json!({ "keys_only": true }));
        let reply = self.txn(&json!({ "success": [all] })).await?;
        let pairs = reply.responses.into_iter().filter_map(|it| it.response_range).flat_map(|it| it.kvs);
        let mut rests = Vec::new();
        for pair in pairs {
            let (key, _) = self.decode(pair)?;
            rests.extend(key.strip_prefix(&prefix).map(ToOwned::to_owned));
        }
        Ok(rests)
    }
}
