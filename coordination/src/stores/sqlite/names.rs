//! What a namespace has.

use rusqlite::TransactionBehavior;

use super::{Fault, SqliteStore};
use crate::store::StoreError;
use crate::stores::lists::Query;

impl SqliteStore {
    /// The texts that a statement reads; none where its table is absent.
    pub(super) async fn texts(&mut self, query: Query, namespace: &str) -> Result<Vec<String>, StoreError> {
        self.transact(TransactionBehavior::Deferred, async |transaction, _| {
            let mut statement = match transaction.prepare(query.statement) {
                Err(error) if error.to_string().contains("no such table") => return Ok(Vec::new()),
                statement => statement?,
            };
            let namespace = query.has_namespace.then_some(namespace);
            let rows = statement.query_map(rusqlite::params_from_iter(namespace), |row| row.get(0))?;
            rows.collect::<Result<_, _>>().map_err(Fault::from)
        })
        .await
    }
}
