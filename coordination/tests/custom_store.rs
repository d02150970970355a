//! A custom store, under a name that the program registers.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use polyflake::{ErrorCode, Snowflake};
use polyflake_coordination::records::{
    Answer, Facts, Group, Kind, MemoryStore, Named, Outcome, Store, Write, conformance,
};
use polyflake_coordination::{
    Address, Admin, Counter, CounterOptions, Kind as EventKind, Sequences, SequencesOptions, StoreError,
    open, open_async, set_listener, stores,
};

/// Registers a store in memory. Returns the number of times it has been opened.
fn register(name: &str) -> Arc<AtomicUsize> {
    let (records, count) = (MemoryStore::default(), Arc::new(AtomicUsize::new(0)));
    let opened = Arc::clone(&count);
    let open = move |_: &Address| -> Result<Box<dyn Store>, StoreError> {
        opened.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(records.clone()))
    };
    stores::register(name, open).unwrap();
    count
}

#[test]
fn snowflakes_counters_and_sequences_share_a_store_and_a_lease() {
    let opened = register("shared");
    let address = "shared://here/there?ttl=10s&namespace=shop";
    let (one, two) = thread::scope(|scope| {
        let ids = || open(&Snowflake::builder().lease(address)).unwrap();
        let one = scope.spawn(ids);
        (ids(), one.join().unwrap())
    });
    let node = |ids: &Snowflake| ids.decode(ids.next_id().unwrap()).unwrap().node();
    assert_eq!(node(&one), node(&two));
    assert_eq!(opened.load(Ordering::Relaxed), 1);

    let (orders, same) =
        (Counter::open("orders", address).unwrap(), Counter::open("orders", address).unwrap());
    assert_eq!((orders.next_id().unwrap(), same.next_id().unwrap()), (1, 2));
    let inbox = Sequences::open("inbox", address).unwrap();
    assert_eq!((inbox.next_id("alice").unwrap(), inbox.next_id("alice").unwrap()), (1, 2));
    assert_eq!(inbox.next_id("bob").unwrap(), 1);
    assert_eq!(opened.load(Ordering::Relaxed), 2);

    let mut admin = Admin::open(address).unwrap();
    let held: Vec<_> = admin.leases().unwrap().into_iter().map(|(_, listing)| listing.nodes.len()).collect();
    assert_eq!(held, [1, 1], "one node, and the owner of the sequences");
    assert_eq!(admin.counters().unwrap().len(), 1);

    for it in [&one, &two] {
        it.close();
    }
    for it in [&orders, &same] {
        it.close();
    }
    inbox.close();
    // Numbers that were given back are available to the next Counter.
    let orders = Counter::open("orders", address).unwrap();
    assert_eq!(orders.next_id().unwrap(), 3);
    orders.close();
}

#[test]
fn another_promise_is_refused() {
    register("promises");
    let [ten, twenty, exact] = ["ttl=10s", "ttl=20s", "ttl=10s&clock_difference=10ms"];
    // Whichever of the two is opened first, the other is refused.
    for (one, other) in [(ten, twenty), (twenty, ten), (ten, exact), (exact, ten)] {
        let [one, other] = [one, other].map(|terms| format!("promises://?{terms}"));
        let ids = open(&Snowflake::builder().lease(&one)).unwrap();
        let orders = Counter::open("orders", &one).unwrap();
        let inbox = Sequences::open("inbox", &one).unwrap();
        for error in [
            open(&Snowflake::builder().lease(&other)).unwrap_err(),
            Counter::open("orders", &other).unwrap_err(),
            Sequences::open("inbox", &other).unwrap_err(),
        ] {
            assert_eq!(error.code(), ErrorCode::InvalidOption);
            assert!(error.to_string().contains(" already, not with "), "{error}");
        }
        ids.close();
        orders.close();
        inbox.close();
    }
}

#[test]
fn it_does_what_a_store_must() {
    register("suite");
    let address = Address::parse("suite://").unwrap();
    conformance(&|| stores::open(&address).unwrap());
}

/// A store that does not answer.
#[derive(Debug)]
struct Down(Address);

impl Down {
    fn error<T>(&self) -> Result<T, StoreError> {
        Err(StoreError::Unreachable(format!("{}: no quorum", self.0)))
    }
}

#[async_trait(?Send)]
impl Store for Down {
    async fn read(&mut self, _: &Group, _: Option<&[&str]>) -> Result<Answer<Named>, StoreError> {
        self.error()
    }

    async fn write(&mut self, _: &Write) -> Result<Answer<Outcome>, StoreError> {
        self.error()
    }

    async fn groups(&mut self, _: &str, _: Kind) -> Result<Vec<String>, StoreError> {
        self.error()
    }

    fn facts(&self) -> Facts {
        Facts { granularity_ms: 1, can_forget: true, asynchronous_replicas: 0 }
    }

    fn disconnect(&mut self) {}
}

/// Returns the errors from trying to open and use each of the three types.
fn errors(address: &str) -> [polyflake::Error; 3] {
    let counter = CounterOptions::new("orders").store(address).max_wait_ms(5_000).open();
    let sequences = SequencesOptions::new("inbox").store(address).max_wait_ms(5_000).open();
    [
        open(&Snowflake::builder().lease(address)).unwrap_err(),
        counter.and_then(|it| it.next_id()).unwrap_err(),
        sequences.and_then(|it| it.next_id("alice")).unwrap_err(),
    ]
}

#[test]
fn errors_name_the_store_and_show_no_secret() {
    stores::register("down", |address| Ok(Box::new(Down(address.clone())))).unwrap();
    for error in errors("down://ids:hunter2@a,b:7/x?wait=500ms&token=hunter2") {
        let said = error.to_string();
        assert!(said.contains("down://a,b:7/x: no quorum") && !said.contains("hunter2"), "{said}");
    }
}

#[test]
fn an_open_that_is_awaited_blocks_no_thread() {
    stores::register("away", |address| Ok(Box::new(Down(address.clone())))).unwrap();
    register("here");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let options = |lease: &str| Snowflake::builder().lease(lease).clone();
        let waiting = tokio::spawn(async move { open_async(&options("away://?wait=60s")).await.map(drop) });
        // This runs on the same thread, while the other call is waiting.
        let ids = open_async(&options("here://")).await.unwrap();
        assert!(ids.next_id().unwrap() > 0 && !waiting.is_finished());
        ids.close();
        waiting.abort();
        assert!(waiting.await.unwrap_err().is_cancelled());
    });
}

#[test]
fn a_store_that_cannot_be_made_says_why() {
    stores::register("without", |address| match address.parameter("token") {
        Some(_) => panic!("a token"),
        None => Err(StoreError::Refused("token is missing".into())),
    })
    .unwrap();
    for error in errors("without://h") {
        assert!(error.to_string().contains("without://h: token is missing"), "{error}");
    }
    for error in errors("without://h?token=1") {
        assert!(error.to_string().contains("panicked"), "{error}");
    }
}

/// A store in memory that panics for as long as it is told to.
#[derive(Debug, Clone)]
struct Panics(MemoryStore, Arc<AtomicBool>);

impl Panics {
    fn check(&self) {
        assert!(!self.1.load(Ordering::SeqCst), "on purpose");
    }
}

#[async_trait(?Send)]
impl Store for Panics {
    async fn read(&mut self, group: &Group, names: Option<&[&str]>) -> Result<Answer<Named>, StoreError> {
        self.check();
        self.0.read(group, names).await
    }

    async fn write(&mut self, write: &Write) -> Result<Answer<Outcome>, StoreError> {
        self.check();
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

/// Waits while `is_so` returns true.
fn wait_while(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while is_so() {
        assert!(Instant::now() < deadline, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Everything that depends on the store fails and says why, the listener is told, and reopening starts over.
#[test]
fn a_store_that_panics() {
    let (records, is_ill) = (MemoryStore::default(), Arc::new(AtomicBool::new(false)));
    let store = Panics(records, Arc::clone(&is_ill));
    stores::register("panics", move |_| Ok(Box::new(store.clone()))).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let tells = Arc::clone(&told);
    set_listener(Some(Box::new(move |event| {
        if event.store.starts_with("panics:") {
            tells.lock().unwrap().push((event.kind, event.message.clone()));
        }
    })));
    let address = "panics://here?ttl=3s&wait=30s";
    let open_ids = || open(&Snowflake::builder().lease(address).max_wait_ms(100)).unwrap();
    let open_orders = || CounterOptions::new("orders").store(address).step(1_u64).open().unwrap();
    let open_inbox = || SequencesOptions::new("inbox").store(address).open().unwrap();
    let (ids, orders, inbox) = (open_ids(), open_orders(), open_inbox());
    ids.next_id().unwrap();
    assert_eq!((orders.next_id().unwrap(), inbox.next_id("alice").unwrap()), (1, 1));
    is_ill.store(true, Ordering::SeqCst);
    let says = |kind: EventKind, of: &str| {
        let told = told.lock().unwrap();
        told.iter().any(|(it, text)| *it == kind && text.contains(of) && text.contains("panicked"))
    };
    let error = orders.next_id().unwrap_err();
    assert_eq!(error.code(), ErrorCode::CounterUnavailable);
    assert!(error.to_string().contains("panicked"), "{error}");
    wait_while("nothing is told of the counter", || !says(EventKind::CounterStopped, "\"orders\""));
    wait_while("nothing is told of the node", || !says(EventKind::Lost, &format!("node {}", ids.node())));
    wait_while("nothing is told of the sequences", || !says(EventKind::Lost, "\"inbox\""));
    wait_while("IDs are issued", || ids.next_id().is_ok());
    let error = ids.next_id().unwrap_err();
    assert_eq!((error.code(), error.retry_after_ms()), (ErrorCode::LeaseLost, None));
    assert!(error.to_string().contains("panicked"), "{error}");
    wait_while("numbers are given", || inbox.next_id("alice").is_ok());
    let error = inbox.next_id("alice").unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
    is_ill.store(false, Ordering::SeqCst);
    // The ones that failed close immediately.
    ids.close();
    orders.close();
    inbox.close();
    let (ids, orders, inbox) = (open_ids(), open_orders(), open_inbox());
    ids.next_id().unwrap();
    assert!(orders.next_id().unwrap() > 1 && inbox.next_id("alice").unwrap() > 1);
    set_listener(None);
}

/// A store that looks up its host name, and waits until a test lets the lookup finish.
#[derive(Debug)]
struct LooksUp(MemoryStore, Arc<AtomicUsize>, Arc<Mutex<mpsc::Receiver<()>>>);

impl LooksUp {
    /// Runs on one of the runtime's threads, as a real lookup does.
    async fn look_up(&self) {
        let (begun, ends) = (Arc::clone(&self.1), Arc::clone(&self.2));
        let look_up = move || {
            begun.fetch_add(1, Ordering::SeqCst);
            let _ = ends.lock().unwrap().recv();
        };
        tokio::task::spawn_blocking(look_up).await.unwrap();
    }
}

#[async_trait(?Send)]
impl Store for LooksUp {
    async fn read(&mut self, group: &Group, names: Option<&[&str]>) -> Result<Answer<Named>, StoreError> {
        self.look_up().await;
        self.0.read(group, names).await
    }

    async fn write(&mut self, write: &Write) -> Result<Answer<Outcome>, StoreError> {
        self.look_up().await;
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

/// Looking up a host name may take half a minute, and cannot be cancelled. With a short TTL, each attempt starts
/// another lookup.
#[test]
fn a_name_that_is_looked_up_for_ever_delays_no_other_store() {
    let looks_up = |name: &str| {
        let (ends, end) = mpsc::channel();
        let (records, begun, end) =
            (MemoryStore::default(), Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(end)));
        let counts = Arc::clone(&begun);
        let open = move |_: &Address| -> Result<Box<dyn Store>, StoreError> {
            Ok(Box::new(LooksUp(records.clone(), Arc::clone(&counts), Arc::clone(&end))))
        };
        stores::register(name, open).unwrap();
        (begun, ends)
    };
    let (begun, hangs) = looks_up("hangs");
    drop(looks_up("answers"));
    let waits = thread::spawn(|| open(&Snowflake::builder().lease("hangs://?ttl=3s&wait=60s")).unwrap());
    wait_while("there are too few look-ups", || begun.load(Ordering::SeqCst) < 8);
    let ids = open(&Snowflake::builder().lease("answers://?ttl=3s&wait=10s")).unwrap();
    ids.next_id().unwrap();
    ids.close();
    drop(hangs);
    waits.join().unwrap().close();
}

/// Services forward calls to the owner's label, so it must be complete.
#[test]
fn the_label_of_the_owner_is_whole() {
    let records = MemoryStore::default();
    for name in ["label-one", "label-two"] {
        let records = records.clone();
        stores::register(name, move |_| Ok(Box::new(records.clone()))).unwrap();
    }
    let label = "x".repeat(128);
    let open = |store: &str| SequencesOptions::new("inbox").store(store).open();
    let owner = open(&format!("label-one://?label={label}")).unwrap();
    let error = open("label-two://?wait=0s").unwrap_err().to_string();
    assert!(error.contains(&format!("`{label}` holds its lease")), "{error}");
    owner.close();
}

#[test]
fn a_name_is_registered_once() {
    let refused = |name: &str| {
        let error = stores::register(name, |_| Err(StoreError::Refused(String::new()))).expect_err(name);
        assert_eq!(error.code(), ErrorCode::InvalidOption);
        error.to_string()
    };
    assert!(Address::parse("once://").unwrap_err().contains("no such kind of store"));
    register("once");
    assert!(Address::parse("ONCE://").is_ok());
    assert!(refused("once").contains("registered already"));
    for ours in ["redis", "postgresql", "mariadb", "etcds", "sqlite"] {
        assert!(refused(ours).contains("another name"), "{ours}");
    }
    for bad in ["", "1st", "My", "a_b", "a/b", "a:", "é", &"a".repeat(33)] {
        assert!(refused(bad).contains("lowercase"), "{bad}");
    }
}

#[test]
fn of_threads_that_register_one_name_one_does() {
    let done = thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|at| {
                scope.spawn(move || {
                    register(&format!("thread-{at}"));
                    let made = |_: &Address| Err(StoreError::Refused("none".into()));
                    stores::register("contended", made).is_ok()
                })
            })
            .collect();
        threads.into_iter().map(|it| usize::from(it.join().unwrap())).sum::<usize>()
    });
    assert_eq!(done, 1);
    for at in 0..8 {
        assert!(Address::parse(&format!("thread-{at}://h")).is_ok());
    }
}
