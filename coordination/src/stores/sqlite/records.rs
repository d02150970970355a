//! Records in SQLite.

use async_trait::async_trait;
use rusqlite::{ErrorCode, Transaction, TransactionBehavior};

use super::{Fault, SqliteStore, now_ms, parameters};
use crate::records::{Add, Added, Answer, Facts, Group, Kind, Named, Outcome, Record, Store, Write};
use crate::store::{Rows, StoreError};
use crate::stores::sql::counters::Value;
use crate::stores::sql::records::{self, Class, Client, Dialect, FORMER, Row, TABLE};

/// The statements that `polyflake schema sqlite` prints.
pub(in crate::engine::stores) const DDL: &str = "\
-- Polyflake: leases of nodes, counters and sequences
CREATE TABLE IF NOT EXISTS polyflake_records (
    namespace TEXT NOT NULL, -- from the store's address
    kind TEXT NOT NULL, -- the kind of the group: space, counter or sequences
    group_name TEXT NOT NULL, -- the name of the space, counter or set of sequences
    name TEXT NOT NULL, -- the record in its group, such as head, or a node
    version INTEGER NOT NULL, -- random, and different after each change
    number INTEGER NOT NULL, -- for a node: its holder issues below this tick; for a counter: no higher number was handed out
    text TEXT NOT NULL, -- the rest, as JSON
    updated_at TEXT NOT NULL, -- UTC, for people
    PRIMARY KEY (namespace, kind, group_name, name)
) STRICT, WITHOUT ROWID;
";

struct Open<'a> {
    transaction: &'a Transaction<'a>,
    incarnation: &'a str,
}

impl SqliteStore {
    async fn ask<T>(
        &mut self,
        behavior: TransactionBehavior,
        run: impl AsyncFn(&mut Open<'_>) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        self.transact(behavior, async |transaction, incarnation| {
            let former = super::tables(transaction)?.into_iter().find(|name| FORMER.contains(&&**name));
            if let Some(former) = former {
                return Err(StoreError::Refused(records::former_table(&former)).into());
            }
            run(&mut Open { transaction, incarnation }).await
        })
        .await
    }
}

impl Client for Open<'_> {
    type Fault = Fault;

    fn dialect(&self) -> Dialect {
        Dialect {
            table: TABLE.into(),
            // The time comes from the host's clock. The incarnation is the file's identity, as the
            // transaction found it.
            now: now_ms().to_string(),
            incarnation: format!("'{}'", self.incarnation),
            writable: "TRUE".into(),
            unchanged: String::new(),
            with: "",
            setup: "(SELECT 1 AS ready) setup",
            reads_first: false,
            share: "",
            unless_there: " ON CONFLICT DO NOTHING",
            version: Default::default(),
            sum: ["", ""],
            returns: true,
            schema: "polyflake schema sqlite".into(),
        }
    }

    fn class(fault: &Fault) -> Class {
        let Fault::Sqlite(error) = fault else { return Class::Other };
        match error.sqlite_error_code() {
            _ if error.to_string().contains(&format!("no such table: {TABLE}")) => Class::Absent,
            Some(ErrorCode::ReadOnly) => Class::ReadOnly,
            _ => Class::Other,
        }
    }

    async fn rows(&mut self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Fault> {
        let mut statement = self.transaction.prepare(statement)?;
        let columns = statement.column_count();
        let mut rows = statement.query(parameters(values))?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(Row {
                now_ms: row.get(0)?,
                incarnation: row.get(1)?,
                name: if columns > 2 { row.get(2)? } else { None },
                version: if columns > 3 { row.get(3)? } else { None },
                number: if columns > 4 { row.get(4)? } else { None },
                text: if columns > 5 { row.get(5)? } else { None },
            });
        }
        Ok(all)
    }

    async fn change(&mut self, statement: &str, values: &[Value<'_>], _: bool) -> Result<Option<Row>, Fault> {
        Ok(self.rows(statement, values).await?.pop())
    }

    async fn make(&mut self) -> Result<(), Fault> {
        Ok(self.transaction.execute_batch(DDL)?)
    }
}

#[async_trait(?Send)]
impl Store for SqliteStore {
    async fn read(&mut self, group: &Group, names: Option<&[&str]>) -> Result<Answer<Named>, StoreError> {
        self.ask(TransactionBehavior::Deferred, async |open| records::read(open, group, names).await).await
    }

    async fn write(&mut self, write: &Write) -> Result<Answer<Outcome>, StoreError> {
        self.ask(TransactionBehavior::Immediate, async |open| records::write(open, write).await).await
    }

    async fn read_each(
        &mut self,
        groups: &[Group],
        name: &str,
    ) -> Result<Vec<Answer<Option<Record>>>, StoreError> {
        self.ask(TransactionBehavior::Deferred, async |open| records::read_each(open, groups, name).await)
            .await
    }

    /// Carries out all writes in one transaction, since syncing all of them takes no longer than syncing one.
    async fn write_each(&mut self, writes: &[Write]) -> Result<Vec<Answer<Outcome>>, StoreError> {
        self.ask(TransactionBehavior::Immediate, async |open| {
            let mut answers = Vec::with_capacity(writes.len());
            for write in writes {
                answers.push(records::write(open, write).await?);
            }
            Ok(answers)
        })
        .await
    }

    async fn add(&mut self, add: &Add) -> Result<Answer<Added>, StoreError> {
        // The reads before and after the add detect an earlier version's tables.
        self.transact(TransactionBehavior::Immediate, async |transaction, incarnation| {
            records::add(&mut Open { transaction, incarnation }, add).await
        })
        .await
    }

    async fn groups(&mut self, namespace: &str, kind: Kind) -> Result<Vec<String>, StoreError> {
        self.ask(TransactionBehavior::Deferred, async |open| records::groups(open, namespace, kind).await)
            .await
    }

    fn facts(&self) -> Facts {
        Facts { granularity_ms: 1, can_forget: false, asynchronous_replicas: 0 }
    }

    fn disconnect(&mut self) {
        // Between two calls, there is no connection to drop.
    }

    fn rows(&mut self) -> Result<&mut dyn Rows, StoreError> {
        Ok(self)
    }
}
