//! Records in PostgreSQL, in a table of one schema.

use async_trait::async_trait;
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;

use super::{BOUND, Fault, INCARNATION, LOCK, NOW, Open, PostgresStore, cancel};
use crate::records::{Add, Added, Answer, Facts, Group, Kind, Named, Outcome, Record, Store, Write};
use crate::store::{Rows, Schema, StoreError};
use crate::stores::sql::counters::Value;
use crate::stores::sql::records::{self, Class, Client, Dialect, FORMER, TABLE};
use crate::stores::sql::{read_only, whole};

/// The statements that `polyflake schema postgres` prints.
const DDL: &str = "\
CREATE TABLE IF NOT EXISTS public.polyflake_records (
    namespace text COLLATE \"C\" NOT NULL,
    kind text COLLATE \"C\" NOT NULL,
    group_name text COLLATE \"C\" NOT NULL,
    name text COLLATE \"C\" NOT NULL,
    version bigint NOT NULL,
    number bigint NOT NULL,
    text text NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (namespace, kind, group_name, name)
);
COMMENT ON TABLE public.polyflake_records IS 'Polyflake: leases of nodes, counters and sequences';
COMMENT ON COLUMN public.polyflake_records.namespace IS 'From the store''s address';
COMMENT ON COLUMN public.polyflake_records.kind IS 'The kind of the group: space, counter or sequences';
COMMENT ON COLUMN public.polyflake_records.group_name IS 'The name of the space, counter or set of sequences';
COMMENT ON COLUMN public.polyflake_records.name IS 'The record in its group, such as head, or a node';
COMMENT ON COLUMN public.polyflake_records.version IS 'Random, and different after each change';
COMMENT ON COLUMN public.polyflake_records.number IS 'For a node: its holder issues below this tick. For a counter: no higher number was handed out';
COMMENT ON COLUMN public.polyflake_records.text IS 'The rest, as JSON';
COMMENT ON COLUMN public.polyflake_records.updated_at IS 'For people';
";

/// The privileges that the role needs.
const GRANTS: &str = "\
GRANT USAGE ON SCHEMA public TO polyflake;
GRANT SELECT, INSERT, UPDATE ON public.polyflake_records TO polyflake;
ALTER ROLE polyflake SET lock_timeout = '1s';
";

macro_rules! durable {
    () => {
        "CASE WHEN current_setting('synchronous_commit') <> 'remote_apply' \
         THEN set_config('synchronous_commit', 'on', true) END"
    };
}

/// Ensures that acknowledged writes are on disk, including the disks of synchronous standbys. The setting
/// applies only to this transaction, since a pooler lends the connection to other clients afterwards.
pub(super) const DURABLE: &str = durable!();

/// Like [`DURABLE`], but also limits how long this call waits for a lock that nobody releases.
const SETUP: &str =
    concat!("WITH setup AS MATERIALIZED (SELECT ", durable!(), ", set_config('lock_timeout', '1s', true)) ");

/// Returns [`DDL`] and [`GRANTS`] for a schema.
pub(in crate::engine::stores) fn schema(name: &str) -> (String, String) {
    // Quote the name as statements do. Quoted names are case-sensitive.
    let named = if name == PUBLIC { name.to_owned() } else { format!("\"{name}\"") };
    (DDL.replace(PUBLIC, &named), GRANTS.replace(PUBLIC, &named))
}

const PUBLIC: &str = "public";

/// The facts about the server that the client collected when it connected, and settings from the address.
#[derive(Debug, Clone)]
pub(super) struct Ready {
    schema: String,
    pub(super) facts: Facts,
}

impl PostgresStore {
    async fn ask<T>(&mut self, run: impl AsyncFn(&mut Open) -> Result<T, Fault>) -> Result<T, StoreError> {
        self.has_records = true;
        self.call(Schema::Polyflake, run).await
    }
}

/// Checks that this server is suitable, and returns the facts that it reveals.
pub(super) async fn check(open: &mut Open, schema: &str, is_durability_none: bool) -> Result<Ready, Fault> {
    let former = FORMER.join("', '");
    // A role without privileges can see the replicas, but not their state. An empty
    // `synchronous_standby_names` still shows that no replica is synchronous.
    let statement = format!(
        "SELECT current_setting('fsync'), CASE WHEN pg_is_in_recovery() THEN NULL ELSE \
         substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) <> '00000001' \
         OR EXISTS (SELECT FROM pg_stat_replication) OR EXISTS (SELECT FROM pg_replication_slots) END, \
         (SELECT count(*) FROM pg_stat_replication WHERE sync_state NOT IN ('sync', 'quorum') \
         OR sync_state IS NULL AND current_setting('synchronous_standby_names') = ''), \
         (SELECT min(n.nspname || '.' || c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND (n.nspname = ?1 OR n.nspname = ANY (current_schemas(false))) \
         AND (c.relname IN ('{former}') OR c.relname = '{TABLE}' AND n.nspname <> ?1)), \
         EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = ?1 AND c.relname = '{TABLE}' AND c.relpersistence = 'u'), pg_backend_pid()"
    );
    let rows = open.query_with(&statement, &[Value::Text(schema)]).await?;
    let row = rows.first().ok_or_else(|| StoreError::Unreachable("an empty answer".into()))?;
    let (fsync, can_forget): (String, Option<bool>) = (row.try_get(0)?, row.try_get(1)?);
    let can_forget = can_forget.ok_or_else(read_only)? || is_durability_none;
    if fsync == "off" && !is_durability_none {
        return Err(records::refused_setting("fsync", "off", "on").into());
    }
    if let Some(other) = row.try_get::<_, Option<String>>(3)? {
        return Err(StoreError::Refused(if other.ends_with(TABLE) {
            format!(
                "{other} is on the role's search_path, but this address uses {schema}.{TABLE}: with two tables, IDs \
                 repeat. Keep one, and name its schema in every address: schema_name=..."
            )
        } else {
            records::former_table(&other)
        })
        .into());
    }
    // A crash would silently empty the table.
    if row.try_get(4)? {
        let text = format!("the table {schema}.{TABLE} is unlogged: ALTER TABLE {schema}.{TABLE} SET LOGGED");
        return Err(StoreError::Refused(text).into());
    }
    let facts = Facts { granularity_ms: 1, can_forget, asynchronous_replicas: whole(row.try_get(2)?)? };
    let process: i32 = row.try_get(5)?;
    open.is_direct = cancel::process_of(&open.client.cancel_token()).await == Some(process);
    Ok(Ready { schema: schema.into(), facts })
}

impl Open {
    fn schema(&self) -> &str {
        self.ready.as_ref().map_or(PUBLIC, |ready| &*ready.schema)
    }
}

impl Client for Open {
    type Fault = Fault;

    fn dialect(&self) -> Dialect {
        let schema = self.schema();
        let named = if schema == PUBLIC { String::new() } else { format!(" --schema-name {schema}") };
        Dialect {
            table: format!("\"{schema}\".{TABLE}"),
            now: NOW.into(),
            incarnation: INCARNATION.into(),
            writable: "current_setting('transaction_read_only') = 'off'".into(),
            unchanged: String::new(),
            with: SETUP,
            setup: "setup",
            reads_first: false,
            // A weaker lock would not keep the version from changing.
            share: " FOR SHARE OF g",
            unless_there: " ON CONFLICT DO NOTHING",
            version: Default::default(),
            sum: ["", ""],
            returns: true,
            schema: format!("polyflake schema postgres{named}"),
        }
    }

    fn class(fault: &Fault) -> Class {
        let Fault::Client(error) = fault else { return Class::Other };
        match error.code().map(SqlState::code) {
            Some("42P01") => Class::Absent,
            Some("42501") => Class::Denied,
            Some("25006") => Class::ReadOnly,
            _ => Class::Other,
        }
    }

    async fn rows(&mut self, statement: &str, values: &[Value<'_>]) -> Result<Vec<records::Row>, Fault> {
        self.query_with(statement, values).await?.iter().map(row).collect()
    }

    async fn change(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
        is_sum: bool,
    ) -> Result<Option<records::Row>, Fault> {
        let rows = if is_sum {
            self.query_kept(statement, values).await?
        } else {
            self.query_with(statement, values).await?
        };
        rows.last().map(row).transpose()
    }

    async fn make(&mut self) -> Result<(), Fault> {
        let (table, _) = schema(self.schema());
        let alone = format!("{BOUND}; SELECT pg_advisory_xact_lock({LOCK})");
        Ok(self.run(&format!("BEGIN; {alone}; {table} COMMIT")).await?)
    }
}

fn row(row: &Row) -> Result<records::Row, Fault> {
    Ok(records::Row {
        now_ms: row.try_get(0)?,
        incarnation: row.try_get(1)?,
        name: if row.len() > 2 { row.try_get(2)? } else { None },
        version: if row.len() > 3 { row.try_get(3)? } else { None },
        number: if row.len() > 4 { row.try_get(4)? } else { None },
        text: if row.len() > 5 { row.try_get(5)? } else { None },
    })
}

#[async_trait(?Send)]
impl Store for PostgresStore {
    async fn read(&mut self, group: &Group, names: Option<&[&str]>) -> Result<Answer<Named>, StoreError> {
        self.ask(async |open| records::read(open, group, names).await).await
    }

    async fn write(&mut self, write: &Write) -> Result<Answer<Outcome>, StoreError> {
        self.ask(async |open| records::write(open, write).await).await
    }

    async fn read_each(
        &mut self,
        groups: &[Group],
        name: &str,
    ) -> Result<Vec<Answer<Option<Record>>>, StoreError> {
        self.ask(async |open| records::read_each(open, groups, name).await).await
    }

    /// Sends each write as its own transaction, and sends all of them before reading the first answer.
    async fn write_each(&mut self, writes: &[Write]) -> Result<Vec<Answer<Outcome>>, StoreError> {
        self.ask(async |open| {
            let dialect = open.dialect();
            let statements: Result<Vec<_>, _> =
                writes.iter().map(|write| records::statement(&dialect, write, write.expected)).collect();
            let statements = statements?;
            let sent = statements.iter().map(|(statement, values)| (&**statement, &*values.0));
            let mut answers = Vec::with_capacity(writes.len());
            for (write, changed) in writes.iter().zip(open.query_each(sent).await?) {
                answers.push(match changed.map(|rows| rows.first().map(row)) {
                    Ok(Some(row)) => row?.answer(Outcome::Written)?,
                    // Writing the record on its own reveals the reason.
                    _ => records::write(open, write).await?,
                });
            }
            Ok(answers)
        })
        .await
    }

    async fn add(&mut self, add: &Add) -> Result<Answer<Added>, StoreError> {
        self.ask(async |open| records::add(open, add).await).await
    }

    async fn groups(&mut self, namespace: &str, kind: Kind) -> Result<Vec<String>, StoreError> {
        self.ask(async |open| records::groups(open, namespace, kind).await).await
    }

    fn facts(&self) -> Facts {
        self.facts
    }

    fn disconnect(&mut self) {
        self.give_up();
    }

    fn rows(&mut self) -> Result<&mut dyn Rows, StoreError> {
        Ok(self)
    }
}
