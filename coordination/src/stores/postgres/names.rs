//! The names of rows.

use tokio_postgres::error::SqlState;

use super::{Fault, PostgresStore};
use crate::store::StoreError;

impl PostgresStore {
    /// The texts that a statement reads; none where its table is absent.
    pub(super) async fn texts(&mut self, statement: &str) -> Result<Vec<String>, StoreError> {
        self.call(async |open| match open.query(statement, &[]).await {
            Ok(rows) => rows.iter().map(|row| row.try_get(0).map_err(Fault::from)).collect(),
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        })
        .await
    }
}
