//! A store that the program registers, before and after a fork.

use std::env;
use std::panic::AssertUnwindSafe;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use polyflake::{ErrorCode, Snowflake};
use polyflake_coordination::records::{
    Answer, Facts, Group, Kind, MemoryStore, Named, Outcome, Store, Write,
};
use polyflake_coordination::stores::SqliteStore;
use polyflake_coordination::{Counter, CounterOptions, Sequences, StoreError, open, stores};

use crate::process::{fork, join};
use crate::servers::folder;

/// The environment variable that contains the folder of the file used by the program below.
const FOLDER: &str = "POLYFLAKE_TEST_FOLDER";

/// This test runs alone in its process, so that a fork finds no lock held by another test.
#[test]
fn a_forked_child_opens_its_own() {
    let folder = folder();
    let program = env::current_exe().unwrap();
    let test = ["--exact", "--include-ignored", "--nocapture", "custom_store::forked"];
    let ended = Command::new(program).args(test).env(FOLDER, folder.path()).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
}

#[test]
#[ignore = "the other test starts it"]
fn forked() {
    static OPENED: AtomicU32 = AtomicU32::new(0);
    let Ok(folder) = env::var(FOLDER) else { return };
    stores::register("file", |address| {
        OPENED.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(SqliteStore::new(format!("/{}", address.path()).into())))
    })
    .unwrap();
    let address = format!("file://{folder}/records.db?wait=60s");
    let ids = open(&Snowflake::builder().lease(&address)).unwrap();
    let orders = Counter::open("orders", &address).unwrap();
    assert_eq!((orders.next_id().unwrap(), OPENED.load(Ordering::Relaxed)), (1, 2));
    let node = ids.node();
    let of_child = AssertUnwindSafe((&ids, &orders));
    let child = fork(|| {
        let of_child = of_child;
        let (ids, orders) = *of_child;
        assert_eq!(ids.next_id().unwrap_err().code(), ErrorCode::Forked);
        let own = open(&Snowflake::builder().lease(&address)).unwrap();
        assert_eq!(OPENED.load(Ordering::Relaxed), 3);
        assert_eq!(ids.node(), node);
        assert_ne!(own.node(), node);
        assert!(orders.next_id().unwrap() > 1);
        let inbox = Sequences::open("inbox", &address).unwrap();
        assert_eq!((inbox.next_id("alice").unwrap(), OPENED.load(Ordering::Relaxed)), (1, 4));
        inbox.close();
        orders.close();
        own.close();
    });
    join(child);
    assert_eq!((orders.next_id().unwrap(), OPENED.load(Ordering::Relaxed)), (2, 2));
    orders.close();
    ids.close();
}

/// True while the store below does something that a child must not inherit half-done.
static IS_BUSY: AtomicBool = AtomicBool::new(false);

#[derive(Debug, Clone)]
struct Busy(MemoryStore);

impl Busy {
    fn work() {
        IS_BUSY.store(true, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(1));
        IS_BUSY.store(false, Ordering::SeqCst);
    }
}

#[async_trait(?Send)]
impl Store for Busy {
    async fn read(&mut self, group: &Group, names: Option<&[&str]>) -> Result<Answer<Named>, StoreError> {
        Self::work();
        self.0.read(group, names).await
    }

    async fn write(&mut self, write: &Write) -> Result<Answer<Outcome>, StoreError> {
        Self::work();
        self.0.write(write).await
    }

    async fn groups(&mut self, namespace: &str, kind: Kind) -> Result<Vec<String>, StoreError> {
        self.0.groups(namespace, kind).await
    }

    fn facts(&self) -> Facts {
        self.0.facts()
    }

    fn disconnect(&mut self) {}
}

/// The store is asked so often that the thread that asks it is never idle.
#[test]
fn no_fork_happens_while_the_store_works() {
    let store = Busy(MemoryStore::default());
    stores::register("busy", move |_| Ok(Box::new(store.clone()))).unwrap();
    let open = |name: &str| CounterOptions::new(name).store("busy://here").step(1).open().unwrap();
    let counters: Vec<_> = (0..8).map(|name| open(&format!("orders-{name}"))).collect();
    let (is_over, mut children) = (AtomicBool::new(false), Vec::new());
    thread::scope(|scope| {
        for counter in &counters {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    counter.next_id().unwrap();
                }
            });
        }
        for _ in 0..20 {
            let since = Instant::now();
            let child = fork(|| assert!(!IS_BUSY.load(Ordering::SeqCst)));
            // A fork waits for at most a second.
            if since.elapsed() < Duration::from_secs(1) {
                children.push(child);
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(!children.is_empty());
    children.into_iter().for_each(join);
    counters.iter().for_each(Counter::close);
}
