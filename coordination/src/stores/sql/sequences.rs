//! Sequences in SQL stores: a row for each in `polyflake_sequences`, with the record as JSON.

use super::bigint;
use super::counters::{Client, Value, or_absent};
use crate::store::{SequencesName, SequencesRecord, StoreError};
use crate::stores::sequences_record::{self, NOT_TO_KEEP};

/// For statements and texts.
const TABLE: &str = "polyflake_sequences";

/// As [`Store::sequences`](crate::Store::sequences).
pub(in crate::stores) async fn read<C: Client>(
    client: &mut C,
    name: &SequencesName,
) -> Result<Option<SequencesRecord>, C::Fault> {
    // A server that takes no changes has an empty record, whether there is one or not.
    let statement = format!(
        "SELECT CASE WHEN {} THEN s.record ELSE '' END FROM (SELECT 1 AS one) present \
         LEFT JOIN {TABLE} s ON s.namespace = ? AND s.name = ?",
        C::DIALECT.writable
    );
    let values = [Value::Text(&name.namespace), Value::Text(&name.name)];
    match client.text(&statement, &values).await {
        Err(fault) if C::is_absent(&fault) => Ok(None),
        Err(fault) => Err(fault),
        Ok(None) => Ok(None),
        Ok(Some(text)) if text.is_empty() => Err(super::read_only().into()),
        Ok(Some(text)) => {
            let place = format!("the row {:?} of {TABLE}", name.name);
            Ok(Some(sequences_record::read(&text, &place).map_err(StoreError::Refused)?))
        }
    }
}

/// As [`Store::put_sequences`](crate::Store::put_sequences).
pub(in crate::stores) async fn write<C: Client>(
    client: &mut C,
    name: &SequencesName,
    expected: Option<u64>,
    new: &SequencesRecord,
) -> Result<bool, C::Fault> {
    let text = sequences_record::write(new).ok_or_else(|| StoreError::Refused(NOT_TO_KEEP.into()))?;
    let mut values = vec![
        Value::Number(bigint(new.version)?),
        Value::Text(&text),
        Value::Text(&name.namespace),
        Value::Text(&name.name),
    ];
    let (writable, from) = (C::DIALECT.writable, C::DIALECT.from);
    let written = if let Some(expected) = expected {
        let statement = format!(
            "UPDATE {TABLE} SET version = ?, record = ?, updated_at = CURRENT_TIMESTAMP \
             WHERE namespace = ? AND name = ? AND version = ? AND {writable}"
        );
        values.push(Value::Number(bigint(expected)?));
        or_absent::<C>(client.change(&statement, &values).await)?
    } else {
        let statement = format!(
            "INSERT INTO {TABLE} (version, record, namespace, name, updated_at) \
             SELECT ?, ?, ?, ?, CURRENT_TIMESTAMP{from} WHERE {writable}{}",
            C::DIALECT.unless_there
        );
        match client.change(&statement, &values).await {
            Err(fault) if C::is_absent(&fault) => {
                client.make_sequences().await?;
                client.change(&statement, &values).await?
            }
            changed => changed?,
        }
    };
    if !written {
        // For another format, and for a server that takes no changes.
        read(client, name).await?;
    }
    Ok(written)
}
