//! Code shared by the tests of records.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use polyflake_coordination::StoreError;
use polyflake_coordination::records::{
    Add, Added, Answer, Facts, Group, Kind, Named, Outcome, Record, Store, Write,
};

use super::servers::Server;
use super::support::block;

pub(crate) const SPACE: &str = "timestamp:41<<22|sequence:12<<0@1288834974657/1ms";

pub(crate) fn space(namespace: &str) -> Group {
    Group { namespace: namespace.into(), kind: Kind::Space, name: SPACE.into() }
}

pub(crate) fn record(version: u64, number: u64, text: &str) -> Record {
    Record { version, number, text: text.into() }
}

pub(crate) fn head(expected: Option<u64>, new: &Record) -> Write {
    Write { group: space("default"), name: "head".into(), expected, guard: None, new: new.clone() }
}

pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    match answer {
        Err(StoreError::Refused(said)) => said,
        other => panic!("{other:?}"),
    }
}

/// Repeats a request, as the keeper does, until there is an answer.
pub(crate) async fn ask<T>(
    store: &mut dyn Store,
    ask: impl AsyncFnMut(&mut dyn Store) -> Result<T, StoreError>,
) -> T {
    patiently(store, ask).await.unwrap_or_else(|error| panic!("{error:?}"))
}

async fn patiently<T>(
    store: &mut dyn Store,
    mut ask: impl AsyncFnMut(&mut dyn Store) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(120) {
        match ask(store).await {
            Err(StoreError::Unreachable(_)) => {
                store.disconnect();
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            answer => return answer,
        }
    }
    panic!("unreachable for too long");
}

/// A store that repeats each request until it is answered, so that no test fails on a slow machine.
#[derive(Debug)]
pub(crate) struct Patient(pub(crate) Box<dyn Store>);

#[async_trait(?Send)]
impl Store for Patient {
    async fn read(&mut self, group: &Group, names: Option<&[&str]>) -> Result<Answer<Named>, StoreError> {
        patiently(&mut *self.0, async |store| store.read(group, names).await).await
    }

    async fn write(&mut self, write: &Write) -> Result<Answer<Outcome>, StoreError> {
        patiently(&mut *self.0, async |store| store.write(write).await).await
    }

    async fn add(&mut self, add: &Add) -> Result<Answer<Added>, StoreError> {
        patiently(&mut *self.0, async |store| store.add(add).await).await
    }

    async fn groups(&mut self, namespace: &str, kind: Kind) -> Result<Vec<String>, StoreError> {
        patiently(&mut *self.0, async |store| store.groups(namespace, kind).await).await
    }

    fn facts(&self) -> Facts {
        self.0.facts()
    }

    fn has_kept_all(&self, before: &str, now: &str) -> bool {
        self.0.has_kept_all(before, now)
    }

    fn disconnect(&mut self) {
        self.0.disconnect();
    }
}

pub(crate) async fn write(store: &mut dyn Store, write: &Write) -> Answer<Outcome> {
    ask(store, async |store| store.write(write).await).await
}

/// Returns the record with this name in the space of the namespace `default`.
pub(crate) async fn read(store: &mut dyn Store, name: &str) -> Option<Record> {
    let read = async |store: &mut dyn Store| store.read(&space("default"), Some(&[name])).await;
    ask(store, read).await.value.pop().map(|(_, record)| record)
}

/// A host that accepts connections but never answers.
pub(crate) fn silent() -> (TcpListener, u16) {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    (silent, port)
}

/// A write that is dropped while it is in progress may or may not take effect. Either way, it can be repeated.
pub(crate) fn a_write_that_is_dropped(store: &mut dyn Store, hold: impl Fn(bool)) {
    block(async {
        let (first, second) = (record(11, 1, "{}"), record(12, 2, "{}"));
        assert_eq!(write(store, &head(None, &first)).await.value, Outcome::Written);
        hold(true);
        let repeated = head(Some(11), &second);
        tokio::time::timeout(Duration::from_millis(200), store.write(&repeated)).await.unwrap_err();
        store.disconnect();
        hold(false);
        assert_eq!(write(store, &repeated).await.value, Outcome::Written);
        assert_eq!(read(store, "head").await, Some(second));
    });
}

/// Another client changes the guard between the read and the write.
pub(crate) fn a_guard_that_changes_meanwhile(
    store: &mut dyn Store,
    other: &mut dyn Store,
    hold: impl Fn(bool),
) {
    block(async {
        let (first, second, node) = (record(11, 1, "{}"), record(12, 2, "{}"), record(21, 3, "{}"));
        assert_eq!(write(other, &head(None, &first)).await.value, Outcome::Written);
        // From here on, the store has a connection.
        assert_eq!(read(store, "17").await, None);
        let guarded = |version, expected, new: &Record| Write {
            name: "17".into(),
            guard: Some(("head".into(), version)),
            ..head(expected, new)
        };
        let answer = {
            hold(true);
            let guarded = guarded(11, None, &node);
            let mut asked = std::pin::pin!(store.write(&guarded));
            tokio::time::timeout(Duration::from_millis(300), asked.as_mut()).await.unwrap_err();
            assert_eq!(write(other, &head(Some(11), &second)).await.value, Outcome::Written);
            hold(false);
            asked.await.unwrap()
        };
        assert_eq!(answer.value, Outcome::Found { record: None, guard: Some(second) });
        // The same applies if the store knows both records from its own writes.
        assert_eq!(write(store, &guarded(12, None, &node)).await.value, Outcome::Written);
        let third = record(13, 3, "{}");
        assert_eq!(write(other, &head(Some(12), &third)).await.value, Outcome::Written);
        let found = Outcome::Found { record: Some(node), guard: Some(third) };
        assert_eq!(write(store, &guarded(12, Some(21), &record(22, 4, "{}"))).await.value, found);
    });
}

/// A server keeps its connections open but does not answer. The keeper cancels the call, and the next call succeeds.
/// The cancelled request may still take effect.
pub(crate) fn paused(store: &mut dyn Store, server: &Server) {
    block(async {
        assert_eq!(write(store, &head(None, &record(11, 11, "{}"))).await.value, Outcome::Written);
        for (connected, version) in [(true, 12), (false, 13)] {
            if !connected {
                store.disconnect();
            }
            server.pause();
            let next = head(Some(version - 1), &record(version, version, "{}"));
            let ended = tokio::time::timeout(Duration::from_millis(300), store.write(&next)).await;
            // An open connection may have its own server process, which was not paused.
            assert!(connected || ended.is_err(), "{ended:?}");
            store.disconnect();
            server.resume();
            assert_eq!(write(store, &next).await.value, Outcome::Written);
            assert_eq!(read(store, "head").await, Some(next.new));
        }
    });
}

/// A server that crashed or was stopped keeps its records. Errors name its address.
pub(crate) fn killed(store: &mut dyn Store, server: &mut Server) {
    let at = format!("127.0.0.1:{}: ", server.port());
    block(async {
        let mut last = record(11, 1, "{}");
        assert_eq!(write(store, &head(None, &last)).await.value, Outcome::Written);
        for crash in [true, false] {
            if crash {
                server.kill();
            } else {
                server.stop();
            }
            // One of the server's processes may still answer.
            while store.read(&space("default"), None).await.is_ok() {}
            for _ in 0..2 {
                let answer = store.read(&space("default"), None).await;
                let Err(StoreError::Unreachable(said)) = answer else { panic!("{answer:?}") };
                assert!(said.starts_with(&at), "{said}");
                store.disconnect();
            }
            server.start_again();
            assert_eq!(read(store, "head").await.as_ref(), Some(&last));
            let next = record(last.version + 1, 2, "{}");
            assert_eq!(write(store, &head(Some(last.version), &next)).await.value, Outcome::Written);
            last = next;
        }
    });
}

/// Reads once, on a new connection.
pub(crate) fn look(mut store: impl Store) -> Result<Answer<Named>, StoreError> {
    block(store.read(&space("default"), None))
}
