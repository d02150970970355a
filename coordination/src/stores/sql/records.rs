//! Records in SQL stores. One table holds all of them.
//!
//! Statements have the placeholders `?1`, `?2` and so on for values.

use std::collections::BTreeMap;

use super::counters::Value;
use super::{bigint, read_only, whole};
use crate::records::{Add, Added, Answer, Facts, Group, Kind, Named, Outcome, Record, Write};
use crate::store::StoreError;

/// The name of the table that holds the records.
pub(in crate::engine::stores) const TABLE: &str = "polyflake_records";

/// The tables of an earlier version of Polyflake.
pub(in crate::engine::stores) const FORMER: [&str; 4] =
    ["polyflake_spaces", "polyflake_nodes", "polyflake_sequences", "polyflake_counters"];

/// The maximum number of times a call is attempted while other processes keep changing the records.
const MAX_TRIES: u32 = 16;

/// The facts that a store assumes until the server first answers.
pub(in crate::engine::stores) const WORST: Facts =
    Facts { granularity_ms: 1, can_forget: true, asynchronous_replicas: 0 };

/// Returns the error for a setting that may make a server silently lose writes.
pub(in crate::engine::stores) fn refused_setting(name: &str, value: &str, fits: &str) -> StoreError {
    StoreError::Refused(format!(
        "{name} is {value}, so a crash could lose acknowledged writes unnoticed: set it to {fits}, or accept that with \
         durability=none in the address"
    ))
}

/// Returns the error for a table of an earlier version. Nobody may acquire a lease while other processes
/// still use that table.
pub(in crate::engine::stores) fn former_table(name: &str) -> String {
    format!(
        "the table {name} is from an earlier version of Polyflake: stop the processes that use it, wait until their leases have \
         expired, and drop it"
    )
}

/// The SQL dialect of a particular database.
pub(in crate::engine::stores) struct Dialect {
    /// The name of [`TABLE`] in statements.
    pub(in crate::engine::stores) table: String,
    /// The time in Unix ms.
    pub(in crate::engine::stores) now: String,
    /// The server's identity, or NULL if the server accepts no changes.
    pub(in crate::engine::stores) incarnation: String,
    /// A condition that holds if this server accepts changes.
    pub(in crate::engine::stores) writable: String,
    /// An additional condition for a change.
    pub(in crate::engine::stores) unchanged: String,
    /// The clause in front of a change.
    pub(in crate::engine::stores) with: &'static str,
    /// A table with one row, which must be read before any row is locked.
    pub(in crate::engine::stores) setup: &'static str,
    /// True if an `UPDATE` names the tables that it reads before its `SET`.
    pub(in crate::engine::stores) reads_first: bool,
    /// The clause after a statement that reads the guard `g`. It locks the guard, so that the guard stays
    /// unchanged until the commit.
    pub(in crate::engine::stores) share: &'static str,
    /// The clause after an inserted row, which keeps an existing row from causing an error.
    pub(in crate::engine::stores) unless_there: &'static str,
    /// The SQL before and after a written version, and before and after a sum, for databases in which a
    /// change returns only a number.
    pub(in crate::engine::stores) version: [String; 2],
    pub(in crate::engine::stores) sum: [&'static str; 2],
    /// True if a change returns its row.
    pub(in crate::engine::stores) returns: bool,
    /// The command that prints the statements that create the table.
    pub(in crate::engine::stores) schema: String,
}

/// A row in an answer. If the row has no record, only the first two columns have values.
#[derive(Debug)]
pub(in crate::engine::stores) struct Row {
    pub(in crate::engine::stores) now_ms: i64,
    pub(in crate::engine::stores) incarnation: Option<String>,
    pub(in crate::engine::stores) name: Option<String>,
    pub(in crate::engine::stores) version: Option<i64>,
    pub(in crate::engine::stores) number: Option<i64>,
    pub(in crate::engine::stores) text: Option<String>,
}

impl Row {
    pub(in crate::engine::stores) fn answer<T>(self, value: T) -> Result<Answer<T>, StoreError> {
        let incarnation = self.incarnation.ok_or_else(read_only)?;
        Ok(Answer { now_ms: whole(self.now_ms)?, incarnation, value })
    }
}

/// The kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::stores) enum Class {
    /// The table does not exist.
    Absent,
    /// This role has no privilege on the table.
    Denied,
    /// The server accepts no changes.
    ReadOnly,
    Other,
}

/// A connection to a database.
pub(in crate::engine::stores) trait Client {
    type Fault: From<StoreError>;

    fn dialect(&self) -> Dialect;

    fn class(fault: &Self::Fault) -> Class;

    async fn rows(&mut self, statement: &str, values: &[Value<'_>]) -> Result<Vec<Row>, Self::Fault>;

    /// Changes at most one row. Returns the time and the server. If `is_sum`, also returns the row's number.
    async fn change(
        &mut self,
        statement: &str,
        values: &[Value<'_>],
        is_sum: bool,
    ) -> Result<Option<Row>, Self::Fault>;

    /// Creates the table if it does not exist.
    async fn make(&mut self) -> Result<(), Self::Fault>;

    /// Notes the time and the server reported in an answer to [`rows`](Self::rows).
    fn saw(&mut self, now_ms: i64, incarnation: &str) {
        let _ = (now_ms, incarnation);
    }
}

/// The values for a statement's placeholders.
#[derive(Default)]
pub(in crate::engine::stores) struct Values<'a>(pub(in crate::engine::stores) Vec<Value<'a>>);

impl<'a> Values<'a> {
    /// Adds a string, and returns its placeholder.
    fn text(&mut self, text: &'a str) -> String {
        self.0.push(Value::Text(text));
        format!("?{}", self.0.len())
    }

    /// Adds a number, and returns its placeholder.
    fn number(&mut self, number: u64) -> Result<String, StoreError> {
        self.0.push(Value::Number(bigint(number)?));
        Ok(format!("?{}", self.0.len()))
    }

    /// Returns a condition that selects the rows in a group.
    fn group(&mut self, of: &str, group: &'a Group) -> String {
        let (namespace, kind) = (self.text(&group.namespace), self.text(group.kind.name()));
        format!(
            "{of}namespace = {namespace} AND {of}kind = {kind} AND {of}group_name = {}",
            self.text(&group.name)
        )
    }
}

/// Makes a request. A server that accepts no changes counts as unreachable.
async fn ask<C: Client, T>(
    client: &mut C,
    run: impl AsyncFnOnce(&mut C) -> Result<T, C::Fault>,
) -> Result<T, C::Fault> {
    match run(client).await {
        Err(fault) if C::class(&fault) == Class::ReadOnly => Err(read_only().into()),
        done => done,
    }
}

fn others_were_faster() -> StoreError {
    StoreError::Unreachable("every attempt to change the record conflicted with another process".into())
}

/// Selects the time and the server, with the columns from `joined`. If the table does not exist, selects only
/// the time and the server.
async fn select<C: Client>(
    client: &mut C,
    columns: &str,
    joined: &str,
    values: &Values<'_>,
) -> Result<Vec<Row>, C::Fault> {
    let Dialect { now, incarnation, writable, .. } = client.dialect();
    let present = format!(
        "(SELECT {now} AS now_ms, CASE WHEN {writable} THEN {incarnation} END AS incarnation) present"
    );
    let statement =
        format!("SELECT present.now_ms, present.incarnation, {columns} FROM {present} LEFT JOIN {joined}");
    let rows = match client.rows(&statement, &values.0).await {
        Err(fault) if C::class(&fault) == Class::Absent => {
            let statement = format!("SELECT present.now_ms, present.incarnation FROM {present}");
            client.rows(&statement, &[]).await?
        }
        rows => rows?,
    };
    if let Some(Row { now_ms, incarnation: Some(incarnation), .. }) = rows.first() {
        client.saw(*now_ms, incarnation);
    }
    Ok(rows)
}

/// Gathers the values of the rows in one answer.
fn gather<T>(
    rows: Vec<Row>,
    take: impl Fn(&mut Row) -> Result<Option<T>, StoreError>,
) -> Result<Answer<Vec<T>>, StoreError> {
    let mut all = Vec::new();
    let mut last = None;
    for mut row in rows {
        all.extend(take(&mut row)?);
        last = Some(row);
    }
    last.ok_or_else(|| StoreError::Unreachable("an empty answer".into()))?.answer(all)
}

async fn read_once<C: Client>(
    client: &mut C,
    group: &Group,
    names: Option<&[&str]>,
) -> Result<Answer<Named>, C::Fault> {
    let mut values = Values::default();
    let of_group = values.group("r.", group);
    let chosen = match names {
        None => String::new(),
        Some([]) => " AND 1 = 0".into(),
        Some(names) => {
            let names: Vec<_> = names.iter().map(|name| values.text(name)).collect();
            format!(" AND r.name IN ({})", names.join(", "))
        }
    };
    let joined = format!("{} r ON {of_group}{chosen}", client.dialect().table);
    let rows = select(client, "r.name, r.version, r.number, r.text", &joined, &values).await?;
    Ok(gather(rows, record)?)
}

/// Returns a row's record with its name.
fn record(row: &mut Row) -> Result<Option<(String, Record)>, StoreError> {
    let Some(name) = row.name.take() else { return Ok(None) };
    let (Some(version), Some(number), Some(text)) = (row.version, row.number, row.text.take()) else {
        return Err(StoreError::Refused(format!("a column of {TABLE} is empty: {name}")));
    };
    Ok(Some((name, Record { version: whole(version)?, number: whole(number)?, text })))
}

/// See [`Store::read`](crate::records::Store::read).
pub(in crate::engine::stores) async fn read<C: Client>(
    client: &mut C,
    group: &Group,
    names: Option<&[&str]>,
) -> Result<Answer<Named>, C::Fault> {
    ask(client, async |client: &mut C| read_once(client, group, names).await).await
}

/// See [`Store::read_each`](crate::records::Store::read_each). Groups of the same namespace and kind are read
/// together.
pub(in crate::engine::stores) async fn read_each<C: Client>(
    client: &mut C,
    groups: &[Group],
    name: &str,
) -> Result<Vec<Answer<Option<Record>>>, C::Fault> {
    ask(client, async |client: &mut C| {
        let mut answers = Vec::with_capacity(groups.len());
        let are_alike = |one: &Group, other: &Group| (&one.namespace, one.kind) == (&other.namespace, other.kind);
        for alike in groups.chunk_by(are_alike) {
            for some in alike.chunks(Record::MAX_NAMES) {
                let Some(first) = some.first() else { continue };
                let mut values = Values::default();
                let (namespace, kind) = (values.text(&first.namespace), values.text(first.kind.name()));
                let names: Vec<_> = some.iter().map(|group| values.text(&group.name)).collect();
                let joined = format!(
                    "{} r ON r.namespace = {namespace} AND r.kind = {kind} AND r.group_name IN ({}) AND r.name = {}",
                    client.dialect().table,
                    names.join(", "),
                    values.text(name)
                );
                let rows = select(client, "r.group_name, r.version, r.number, r.text", &joined, &values).await?;
                let Answer { now_ms, incarnation, value } = gather(rows, record)?;
                let mut found: BTreeMap<_, _> = value.into_iter().collect();
                answers.extend(some.iter().map(|group| Answer {
                    now_ms,
                    incarnation: incarnation.clone(),
                    value: found.remove(&group.name),
                }));
            }
        }
        Ok(answers)
    })
    .await
}

/// See [`Store::groups`](crate::records::Store::groups).
pub(in crate::engine::stores) async fn groups<C: Client>(
    client: &mut C,
    namespace: &str,
    kind: Kind,
) -> Result<Vec<String>, C::Fault> {
    ask(client, async |client: &mut C| {
        let mut values = Values::default();
        let (namespace, kind) = (values.text(namespace), values.text(kind.name()));
        let joined = format!(
            "(SELECT DISTINCT group_name FROM {} WHERE namespace = {namespace} AND kind = {kind}) r ON 1 = 1",
            client.dialect().table
        );
        let rows = select(client, "r.group_name", &joined, &values).await?;
        Ok(gather(rows, |row| Ok(row.name.take()))?.value)
    })
    .await
}

impl Dialect {
    /// Returns a statement that changes one row. The statement reads and locks the guard before the row.
    fn update(&self, set: &str, from: &str, when: &str) -> String {
        let Self { table, with, writable, unchanged, .. } = self;
        let (first, later) = if with.is_empty() && from == self.setup {
            // With only one table, MySQL does not create a temporary table.
            (String::new(), String::new())
        } else if self.reads_first {
            (format!(", {from}"), String::new())
        } else {
            (String::new(), format!(" FROM {from}"))
        };
        format!(
            "{with}UPDATE {table}{first} SET {set}, updated_at = CURRENT_TIMESTAMP{later} WHERE {when} AND {writable}{unchanged}{}",
            self.returning()
        )
    }

    fn returning(&self) -> String {
        let Self { now, incarnation, .. } = self;
        if self.returns {
            format!(" RETURNING {now}, {incarnation}, name, version, number, text")
        } else {
            String::new()
        }
    }
}

/// Returns the statement for a [`Write`], and its values.
pub(in crate::engine::stores) fn statement<'a>(
    dialect: &Dialect,
    write: &'a Write,
    expected: Option<u64>,
) -> Result<(String, Values<'a>), StoreError> {
    let Dialect {
        table,
        with,
        setup,
        share,
        version: [before, after],
        writable,
        unchanged,
        unless_there,
        ..
    } = dialect;
    let mut values = Values::default();
    let from = match &write.guard {
        None => (*setup).to_owned(),
        Some((name, version)) => {
            let (group, name) = (values.group("g.", &write.group), values.text(name));
            let version = values.number(*version)?;
            format!(
                "(SELECT 1 AS kept FROM {setup}, {table} g \
                 WHERE {group} AND g.name = {name} AND g.version = {version} LIMIT 1{share}) guard"
            )
        }
    };
    let Record { version, number, text } = &write.new;
    let (new, number, text) = (values.number(*version)?, values.number(*number)?, values.text(text));
    let statement = if let Some(expected) = expected {
        let (group, name) = (values.group("", &write.group), values.text(&write.name));
        let when = format!(
            "{group} AND name = {name} AND version IN ({}, {})",
            values.number(expected)?,
            values.number(*version)?
        );
        let set = format!("version = {before}{new}{after}, number = {number}, text = {text}");
        dialect.update(&set, &from, &when)
    } else {
        let Group { namespace, kind, name: group } = &write.group;
        let [namespace, kind, group, name] =
            [namespace, kind.name(), group, &*write.name].map(|text| values.text(text));
        format!(
            "{with}INSERT INTO {table} (namespace, kind, group_name, name, version, number, text, updated_at) \
             SELECT {namespace}, {kind}, {group}, {name}, {before}{new}{after}, {number}, {text}, CURRENT_TIMESTAMP \
             FROM {from} WHERE {writable}{unchanged}{unless_there}{}",
            dialect.returning()
        )
    };
    Ok((statement, values))
}

/// See [`Store::write`](crate::records::Store::write).
pub(in crate::engine::stores) async fn write<C: Client>(
    client: &mut C,
    write: &Write,
) -> Result<Answer<Outcome>, C::Fault> {
    ask(client, async |client: &mut C| {
        let mut expected = write.expected;
        for _ in 0..MAX_TRIES {
            let dialect = client.dialect();
            let (statement, values) = statement(&dialect, write, expected)?;
            match client.change(&statement, &values.0, false).await {
                Ok(Some(row)) => return Ok(row.answer(Outcome::Written)?),
                Ok(None) => {}
                Err(fault) if C::class(&fault) != Class::Absent => return Err(fault),
                Err(_) if expected.is_some() || write.guard.is_some() => {}
                Err(_) => {
                    match client.make().await {
                        Err(fault) if C::class(&fault) == Class::Denied => {
                            return Err(denied(&dialect).into());
                        }
                        made => made?,
                    }
                    continue;
                }
            }
            let names: Vec<&str> = [Some(&*write.name), write.guard.as_ref().map(|(name, _)| &**name)]
                .into_iter()
                .flatten()
                .collect();
            let answer = read_once(client, &write.group, Some(&names)).await?;
            let of = |name: &str| {
                let found = answer.value.iter().find(|(found, _)| found == name);
                found.map(|(_, record)| record.clone())
            };
            let (record, guard) = (of(&write.name), write.guard.as_ref().and_then(|(name, _)| of(name)));
            let found = record.as_ref().map(|record| record.version);
            let is_guarded =
                write.guard.as_ref().map(|(_, version)| *version) == guard.as_ref().map(|it| it.version);
            if !is_guarded || (found != write.expected && found != Some(write.new.version)) {
                return Ok(answer.map(|_| Outcome::Found { record, guard }));
            }
            expected = found;
        }
        Err(others_were_faster().into())
    })
    .await
}

fn denied(dialect: &Dialect) -> StoreError {
    let Dialect { table, schema, .. } = dialect;
    StoreError::Refused(format!(
        "there is no table {table}, and this role may not create it: ask an administrator to run \
         what `{schema}` prints"
    ))
}

/// See [`Store::add`](crate::records::Store::add).
pub(in crate::engine::stores) async fn add<C: Client>(
    client: &mut C,
    add: &Add,
) -> Result<Answer<Added>, C::Fault> {
    ask(client, async |client: &mut C| {
        for _ in 0..MAX_TRIES {
            if let Some(last) = add.limit.min(Record::LAST_NUMBER).checked_sub(add.count) {
                let dialect = client.dialect();
                let mut values = Values::default();
                let [before, after] = dialect.sum;
                let version = values.number(add.version)?;
                let set = format!(
                    "number = {before}number + {}{after}, version = {version}",
                    values.number(add.count)?
                );
                let when = format!(
                    "{} AND name = {} AND version <> {} AND text = {} AND number >= {} AND number <= {}",
                    values.group("", &add.group),
                    values.text(&add.name),
                    values.number(add.version)?,
                    values.text(&add.text),
                    values.number(add.floor.min(Record::LAST_NUMBER))?,
                    values.number(last)?
                );
                match client.change(&dialect.update(&set, dialect.setup, &when), &values.0, true).await {
                    Ok(Some(row)) => {
                        let number = row.number.map(whole).transpose()?;
                        let number = number
                            .ok_or_else(|| StoreError::Unreachable("a reply without a number".into()))?;
                        return Ok(row.answer(Added::To(number))?);
                    }
                    Err(fault) if C::class(&fault) != Class::Absent => return Err(fault),
                    Ok(None) | Err(_) => {}
                }
            }
            let answer = read_once(client, &add.group, Some(&[&*add.name])).await?;
            let found = answer.value.first().map(|(_, record)| record.clone());
            match &found {
                Some(record) if record.version == add.version => {
                    let number = record.number;
                    return Ok(answer.map(|_| Added::To(number)));
                }
                Some(record) if add.sum(record).is_some() => {}
                _ => return Ok(answer.map(|_| Added::Found(found))),
            }
        }
        Err(others_were_faster().into())
    })
    .await
}
