//! What a namespace has.

use mysql_async::prelude::Queryable as _;
use mysql_async::{Error, Params, Row, ServerError};

use super::{ABSENT, MysqlStore, column};
use crate::store::StoreError;
use crate::stores::lists::Query;

impl MysqlStore {
    /// The texts that a statement reads; none where its table is absent.
    pub(super) async fn texts(&mut self, query: Query, namespace: &str) -> Result<Vec<String>, StoreError> {
        let values =
            if query.has_namespace { Params::Positional(vec![namespace.into()]) } else { Params::Empty };
        self.call(async |open| {
            let rows: Result<Vec<Row>, _> = open.connection.exec(query.statement, values.clone()).await;
            match rows {
                Ok(rows) => rows.iter().map(|row| column(row, 0)).collect(),
                Err(Error::Server(ServerError { code: ABSENT, .. })) => Ok(Vec::new()),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }
}
