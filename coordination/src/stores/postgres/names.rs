//! What a namespace has.

use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use super::{Fault, Parameter, PostgresStore};
use crate::store::StoreError;
use crate::stores::lists::Query;

impl PostgresStore {
    /// The texts that a statement reads; none where its table is absent.
    pub(super) async fn texts(&mut self, query: Query, namespace: &str) -> Result<Vec<String>, StoreError> {
        let statement = query.statement.replace('?', "$1");
        let parameters: &[Parameter<'_>] = &[(&namespace, Type::TEXT)];
        let parameters = if query.has_namespace { parameters } else { &[] };
        self.call(async |open| match open.query(&statement, parameters).await {
            Ok(rows) => rows.iter().map(|row| row.try_get(0).map_err(Fault::from)).collect(),
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        })
        .await
    }
}
