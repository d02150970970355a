//! Lists the names of rows.

use rusqlite::TransactionBehavior;

use super::{Fault, SqliteStore};
use crate::store::StoreError;

impl SqliteStore {
    /// Returns the strings that a statement selects, or an empty list if its table does not exist.
    pub(super) async fn texts(&mut self, statement: &str) -> Result<Vec<String>, StoreError> {
        self.transact(TransactionBehavior::Deferred, async |transaction, _| {
            let mut query = match transaction.prepare(statement) {
                Err(error) if error.to_string().contains("no such table") => return Ok(Vec::new()),
                query => query?,
            };
            let rows = query.query_map([], |row| row.get(0))?;
            rows.collect::<Result<_, _>>().map_err(Fault::from)
        })
        .await
    }
}
