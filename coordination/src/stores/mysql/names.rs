//! Lists the names of rows.

use mysql_async::prelude::Queryable as _;
use mysql_async::{Error, Params, Row, ServerError};

use super::{ABSENT, MysqlStore, column};
use crate::store::StoreError;

impl MysqlStore {
    /// Returns the strings that a statement selects, or an empty list if its table does not exist.
    pub(super) async fn texts(&mut self, statement: &str) -> Result<Vec<String>, StoreError> {
        self.call(async |open| {
            let rows: Result<Vec<Row>, _> = open.connection.exec(statement, Params::Empty).await;
            match rows {
                Ok(rows) => rows.iter().map(|row| column(row, 0)).collect(),
                Err(Error::Server(ServerError { code: ABSENT, .. })) => Ok(Vec::new()),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }
}
