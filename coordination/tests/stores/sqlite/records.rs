//! Records.

use std::fs;
use std::path::Path;

use polyflake_coordination::StoreError;
use polyflake_coordination::records::{Add, Added, Group, Kind, Outcome, Record, Store, Write, conformance};
use polyflake_coordination::stores::SqliteStore;
use rusqlite::Connection;

use super::Fresh;
use crate::support::block;

fn open(path: &Path) -> Box<dyn Store> {
    Box::new(SqliteStore::new(path.into()))
}

fn group() -> Group {
    Group { namespace: "default".into(), kind: Kind::Counter, name: "orders".into() }
}

fn write(expected: Option<u64>, version: u64) -> Write {
    let new = Record { version, number: version, text: "{}".into() };
    Write { group: group(), name: "last".into(), expected, guard: None, new }
}

#[test]
fn it_does_what_a_store_must() {
    let fresh = Fresh::new();
    conformance(&|| open(&fresh.path()));
}

#[test]
fn the_tables_of_a_former_version_are_refused() {
    let fresh = Fresh::new();
    let path = fresh.path();
    Connection::open(&path).unwrap().execute_batch("CREATE TABLE polyflake_nodes (name TEXT)").unwrap();
    let refused = block(async { open(&path).read(&group(), None).await });
    let Err(StoreError::Refused(text)) = refused else { panic!("{refused:?}") };
    assert!(text.contains("the table polyflake_nodes is from an earlier version"), "{text}");
}

#[test]
fn a_file_that_was_replaced_is_another_incarnation() {
    let fresh = Fresh::new();
    let path = fresh.path();
    block(async {
        let mut store = open(&path);
        assert!(!store.facts().can_forget);
        let first = store.write(&write(None, 1)).await.unwrap();
        let copy = path.with_file_name("copy");
        fs::copy(&path, &copy).unwrap();
        let second = store.write(&write(Some(1), 2)).await.unwrap();
        assert_eq!((second.value, &second.incarnation), (Outcome::Written, &first.incarnation));
        fs::rename(&copy, &path).unwrap();
        let read = store.read(&group(), None).await.unwrap();
        assert_eq!(read.value.first().map(|(_, record)| record.version), Some(1));
        assert!(!store.has_kept_all(&first.incarnation, &read.incarnation));
    });
}

#[test]
fn a_locked_database_is_unreachable() {
    let fresh = Fresh::new();
    let path = fresh.path();
    block(async {
        let mut store = open(&path);
        store.write(&write(None, 1)).await.unwrap();
        let other = Connection::open(&path).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let text = format!("{}: the database is locked", path.display());
        assert_eq!(store.write(&write(Some(1), 2)).await, Err(StoreError::Unreachable(text.clone())));
        let add = Add {
            group: group(),
            name: "last".into(),
            text: "{}".into(),
            floor: 0,
            count: 1,
            limit: 9,
            version: 3,
        };
        assert_eq!(store.add(&add).await, Err(StoreError::Unreachable(text)));
        // Readers are not locked out.
        assert_eq!(store.read(&group(), None).await.unwrap().value.len(), 1);
        other.execute_batch("ROLLBACK").unwrap();
        assert_eq!(store.add(&add).await.unwrap().value, Added::To(2));
    });
}
