//! Lists the names of rows.

use tokio_postgres::error::SqlState;

use super::{Fault, PostgresStore};
use crate::store::{Schema, StoreError};
use crate::stores::sql::counters;

impl PostgresStore {
    /// Returns the names of all rows, or an empty list if their table does not exist.
    pub(super) async fn texts(&mut self, schema: Schema) -> Result<Vec<String>, StoreError> {
        self.call(schema, async |open| match open.query(counters::names_of(schema), &[]).await {
            Ok(rows) => rows.iter().map(|row| row.try_get(0).map_err(Fault::from)).collect(),
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        })
        .await
    }
}
