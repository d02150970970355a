//! What a namespace has.

use percent_encoding::percent_decode_str;

use super::jute::{Answer, Op};
use super::{ZookeeperStore, name};
use crate::store::StoreError;

impl ZookeeperStore {
    /// The names of the znodes right below the namespace, or below one of those. As new as what this server has.
    pub(super) async fn names(&mut self, namespace: &str, below: &str) -> Result<Vec<String>, StoreError> {
        let path = format!("{}/{}{below}", self.top(), name(namespace));
        let mut answers = self.client.calls(&[Op::Children(path)]).await?;
        let Some(Ok(Answer::Names(names))) = answers.pop() else { return Ok(Vec::new()) };
        let text = |name: String| percent_decode_str(&name).decode_utf8().ok().map(Into::into);
        Ok(names.into_iter().filter_map(text).collect())
    }
}
