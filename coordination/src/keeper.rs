//! The keeper is a thread that acquires, renews and releases the leases for all Snowflakes in a process. It
//! also fetches the segments for all counters, and moves the bounds for all sequences. The thread starts with
//! the first lease, counter or set of sequences, and exits with the last.

use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use polyflake::{
    Error, ErrorCode, Lease, LeaseKeeper, LeaseTerms, Options, Snowflake, StdTime, ThreadWait, Wait,
};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::counter::shared as counter;
use crate::event::{Event, Kind, tell};
use crate::forks;
use crate::lease::{Nodes, Terms, group};
use crate::process::PerProcess;
use crate::sequences::shared as sequences;
use crate::space::Space;
use crate::url::Address;
use crate::users::Users;
use crate::watched::{Awaiting, Blocking, LOOK_EVERY, Waiting, Watched, block_on, lock};
use stores::Use;

mod counting;
mod holder;
mod looks;
mod pace;
mod sequencing;
mod stores;
mod task;

/// Leases a node from the store in [`Options::lease`], and builds a Snowflake on it. Waits for a node, but no
/// longer than the `wait` in the address.
///
/// All Snowflakes in a process with the same address, layout and `node` share one lease. When the last of them is
/// closed, the node is free at once. If the last one is dropped without being closed, the lease is kept for
/// another TTL.
///
/// # Errors
///
/// - `lease_unavailable` if no node becomes free within `wait`, or if the store cannot be reached within that
///   time.
/// - `invalid_option` if the address is invalid or missing, and in the cases listed for [`Options::build`].
pub fn open(options: &Options) -> Result<Snowflake, Error> {
    let leased = lease(options, &mut ThreadWait::new())?;
    options.build_on_lease(leased.lease(), StdTime, |clock| clock)
}

/// Like [`open`], but async. Must be awaited in a Tokio runtime, and does not block a thread.
///
/// # Errors
///
/// Returns the same errors as [`open`].
pub async fn open_async(options: &Options) -> Result<Snowflake, Error> {
    let leased = lease_async(options).await?;
    options.build_on_lease(leased.lease(), StdTime, |clock| clock)
}

/// Acquires the lease for these options, for callers that have their own clock or wait in their own way. Pass
/// the lease to `Options::build_on_lease`.
///
/// # Errors
///
/// Returns the same errors as [`open`], or the error that interrupted the wait.
pub fn lease<W: Wait>(options: &Options, wait: &mut W) -> Result<Leased, W::Error> {
    block_on(lease_in(options, &mut Blocking(wait)))
}

/// Like [`lease`], but async, with the same requirements as [`open_async`].
///
/// # Errors
///
/// Returns the same errors as [`open`].
pub async fn lease_async(options: &Options) -> Result<Leased, Error> {
    lease_in(options, &mut Awaiting::new()).await
}

async fn lease_in<W: Waiting>(options: &Options, wait: &mut W) -> Result<Leased, W::Error> {
    lease_by(Keeper::of_this_process(), options, wait).await
}

async fn lease_by<W: Waiting>(
    keeper: &'static Keeper,
    options: &Options,
    wait: &mut W,
) -> Result<Leased, W::Error> {
    let Some(terms) = options.lease_terms()? else {
        return Err(
            invalid("lease is missing; it takes the address of a store, such as redis://host/0").into()
        );
    };
    let leased = keeper.lease(options, &terms)?;
    let shared = &leased.shared;
    shared.stage.wait_until_open(wait, &shared.address, || shared.opened()).await?;
    Ok(leased)
}

fn invalid(message: &str) -> Error {
    Error::from_outside(ErrorCode::InvalidOption, message)
}

/// A lease on a node. The keeper maintains the lease for as long as this value exists.
#[derive(Debug)]
pub struct Leased {
    shared: Arc<Shared>,
    lease: &'static Lease,
}

impl Leased {
    /// Returns the lease.
    #[must_use]
    pub const fn lease(&self) -> &'static Lease {
        self.lease
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        if self.lease.is_alive() {
            self.shared.left(false);
        }
    }
}

/// A waiting call from a binding.
pub(crate) type Call = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The process's keeper.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    state: Mutex<State>,
    /// Sends calls to the thread that runs waiting calls, once that thread exists.
    pub(crate) calls: Mutex<Option<UnboundedSender<Call>>>,
}

#[derive(Debug, Default)]
struct State {
    leases: Vec<(Arc<Shared>, &'static Lease)>,
    counters: Vec<Arc<counter::Shared>>,
    sequences: Vec<Arc<sequences::Shared>>,
    thread: Option<(UnboundedSender<New>, JoinHandle<()>)>,
}

/// A new lease, counter or set of sequences that the thread must maintain.
#[derive(Debug, Clone)]
enum New {
    Lease(Arc<Shared>, &'static Lease),
    Counter(Arc<counter::Shared>),
    Sequences(Arc<sequences::Shared>),
}

static KEEPER: PerProcess<Keeper> = PerProcess::new();

impl Keeper {
    pub(crate) fn of_this_process() -> &'static Self {
        KEEPER.get(|_| {
            forks::register();
            Self::default()
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Returns the existing lease for these options, or creates one.
    fn lease(&'static self, options: &Options, wanted: &LeaseTerms) -> Result<Leased, Error> {
        let address = Address::parse(&wanted.address).map_err(|why| invalid(&format!("lease: {why}")))?;
        let terms = terms(&address, wanted);
        // Snowflakes share a lease only if they may use the same nodes and set the layout's fields to the
        // same values. All users of a space must also agree on the parameters that affect the lease's
        // guarantees.
        let key = address.key();
        let mut state = self.state();
        let is_of_space = |shared: &Shared| shared.key == key && shared.terms.space == terms.space;
        let of_space = || state.leases.iter().filter(|(shared, _)| is_of_space(shared));
        for (shared, _) in of_space().filter(|(shared, _)| !shared.users.are_none()) {
            if let Some(differ) = shared.address.other_promises(&address) {
                return Err(invalid(&format!("this process leases from {address} {differ}")));
            }
        }
        let is_same =
            |shared: &Shared| shared.address.other_promises(&address).is_none() && shared.terms == terms;
        if let Some((shared, lease)) = of_space().find(|(shared, _)| is_same(shared)) {
            shared.users.join();
            return Ok(Leased { shared: Arc::clone(shared), lease });
        }
        let shared = Arc::new(Shared::new(key, address, terms));
        let lease = options.new_lease(Box::new(OfLease(Arc::clone(&shared))))?;
        shared.users.join();
        self.keep(&mut state, New::Lease(Arc::clone(&shared), lease))?;
        Ok(Leased { shared, lease })
    }

    /// Returns the existing counter that equals `new`. If there is none, keeps and returns `new`.
    pub(crate) fn counter(&'static self, new: counter::Shared) -> Result<Arc<counter::Shared>, Error> {
        let mut state = self.state();
        // A removed counter accepts no new users. Its calls fail from now on, even if a new counter is
        // created in the store with this name.
        state.counters.retain(|shared| {
            let removed = (shared.key == new.key).then(|| shared.removed()).flatten();
            if let Some(error) = removed {
                shared.fail(error);
            }
            removed.is_none()
        });
        for shared in state.counters.iter().filter(|shared| shared.key == new.key) {
            match shared.check_same(&new) {
                Ok(()) => {
                    shared.users.join();
                    return Ok(Arc::clone(shared));
                }
                // The keeper is releasing the counter.
                Err(_) if shared.users.are_none() => {}
                Err(other) => return Err(other),
            }
        }
        let shared = Arc::new(new);
        shared.users.join();
        self.keep(&mut state, New::Counter(Arc::clone(&shared)))?;
        Ok(shared)
    }

    /// Returns the existing sequences that equal `new`. If there are none, keeps and returns `new`.
    pub(crate) fn sequences(&'static self, new: sequences::Shared) -> Result<Arc<sequences::Shared>, Error> {
        let mut state = self.state();
        for shared in state.sequences.iter().filter(|shared| shared.key == new.key) {
            match shared.check_same(&new) {
                Ok(()) => {
                    shared.users.join();
                    return Ok(Arc::clone(shared));
                }
                // The keeper is releasing the sequences.
                Err(_) if shared.users.are_none() => {}
                Err(other) => return Err(other),
            }
        }
        let shared = Arc::new(new);
        shared.users.join();
        self.keep(&mut state, New::Sequences(Arc::clone(&shared)))?;
        Ok(shared)
    }

    /// Sends `new` to the thread, and starts the thread if it is not running. If the thread cannot start,
    /// `new` is not added to the state, so no other users can join it.
    fn keep(&'static self, state: &mut State, new: New) -> Result<(), Error> {
        let sent = match &state.thread {
            Some((sender, _)) => sender.send(new.clone()),
            None => Err(tokio::sync::mpsc::error::SendError(new.clone())),
        };
        if let Err(unsent) = sent {
            // The thread is not running, or is exiting.
            let (sender, receiver) = unbounded_channel();
            let _ = sender.send(unsent.0);
            let thread = start_thread("polyflake-keeper", move || run(self, receiver))
                .map_err(|error| new.error(&format!("no thread to ask stores can be started: {error}")))?;
            state.thread = Some((sender, thread));
        }
        match new {
            New::Lease(shared, lease) => state.leases.push((shared, lease)),
            New::Counter(shared) => state.counters.push(shared),
            New::Sequences(shared) => state.sequences.push(shared),
        }
        Ok(())
    }

    /// Removes a lease if it has no users, so that none can join. If `is_failed`, removes the lease even if
    /// it has users, whose calls then fail. Returns true if the lease was removed.
    fn forget(&self, shared: &Arc<Shared>, is_failed: bool) -> bool {
        let mut state = self.state();
        let may_go = is_failed || shared.users.are_none();
        if may_go {
            state.leases.retain(|(other, _)| !Arc::ptr_eq(other, shared));
            state.end_thread_after(&shared.users);
        }
        may_go
    }

    /// Like [`forget`](Self::forget), but for a counter.
    fn forget_counter(&self, shared: &Arc<counter::Shared>, is_failed: bool) -> bool {
        let mut state = self.state();
        let may_go = is_failed || shared.users.are_none();
        if may_go {
            state.counters.retain(|other| !Arc::ptr_eq(other, shared));
            state.end_thread_after(&shared.users);
        }
        may_go
    }

    /// Like [`forget`](Self::forget), but for sequences.
    fn forget_sequences(&self, shared: &Arc<sequences::Shared>, is_failed: bool) -> bool {
        let mut state = self.state();
        let may_go = is_failed || shared.users.are_none();
        if may_go {
            state.sequences.retain(|other| !Arc::ptr_eq(other, shared));
            state.end_thread_after(&shared.users);
        }
        may_go
    }
}

impl State {
    /// If the keeper has nothing left to maintain, drops the sender, so that the thread exits once it has
    /// released everything. The last user gets the thread's handle, to join the thread.
    fn end_thread_after(&mut self, last: &Users) {
        if self.leases.is_empty() && self.counters.is_empty() && self.sequences.is_empty() {
            if let Some((_, thread)) = self.thread.take() {
                last.keep_thread(Some(thread));
            }
        }
    }
}

fn terms(address: &Address, wanted: &LeaseTerms) -> Terms {
    let layout = &wanted.layout;
    let (fixed_mask, fixed_value) = wanted.fixed;
    let space = Space::of(&address.namespace, layout);
    Terms {
        group: group(&space),
        space,
        nodes: Nodes { bits: layout.node_bits(), fixed_mask, fixed_value, range: address.nodes.clone() },
        ttl_ms: address.ttl_ms,
        lead_ms: address.ttl_ms.saturating_add(wanted.max_ahead_ms.into()),
        clock_difference_ms: address.clock_difference_ms,
        is_difference_default: address.is_clock_difference_default,
        label: address.label(),
        is_init: address.is_init,
    }
}

/// Starts a thread that blocks all signals, so that the program's own threads receive them.
pub(crate) fn start_thread(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    #[cfg(unix)]
    let before = {
        use nix::sys::signal::{SigSet, SigmaskHow};
        SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)
    };
    let thread = std::thread::Builder::new().name(name.into()).spawn(body);
    #[cfg(unix)]
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
    thread
}

/// The number of host names that can be looked up at the same time. Each look-up runs in a thread, which
/// exits after being idle for ten seconds. If a name server does not answer, a look-up takes half a minute
/// and cannot be cancelled. If all threads were busy with such look-ups, the hosts of other stores could not
/// be reached. With the shortest TTL, each connection attempts a look-up about once a second, and a store has
/// two connections.
const LOOK_UPS: usize = 64;

/// Runs the thread. Starts a task for each lease, each set of sequences and each store of a counter. Returns
/// once no tasks are left and the keeper has dropped the sender.
fn run(keeper: &'static Keeper, mut receiver: UnboundedReceiver<New>) {
    let running = forks::Running::begin();
    let runtime = forks::runtime().max_blocking_threads(LOOK_UPS).build();
    let Ok(runtime) = runtime else {
        drop(running);
        while let Some(new) = receiver.blocking_recv() {
            new.fail(keeper, "no runtime to ask stores can be started");
        }
        return;
    };
    let tasks = tokio::task::LocalSet::new();
    runtime.block_on(tasks.run_until(async {
        let mut stores = stores::Stores::default();
        while let Some(new) = receiver.recv().await {
            let begun = catch_unwind(AssertUnwindSafe(|| new.begin(keeper, &mut stores)));
            if let Err(text) = begun.unwrap_or_else(|_| Err("the thread that asks stores panicked".into())) {
                new.fail(keeper, &text);
            }
        }
    }));
    // Wait for the tasks that are still releasing their nodes.
    runtime.block_on(tasks);
    // A host name look-up may hang, so do not wait for it.
    runtime.shutdown_background();
}

impl New {
    /// Starts the tasks, or returns the reason they cannot start.
    fn begin(&self, keeper: &'static Keeper, stores: &mut stores::Stores) -> Result<(), String> {
        let mut get =
            |address: &Address, is_for| stores.get(address, is_for).map_err(|error| error.to_string());
        match self {
            Self::Lease(shared, lease) => {
                let store = get(&shared.address, Use::Leases)?;
                let task = task::Task::new(keeper, Arc::clone(shared), lease, store);
                self.spawn(keeper, &shared.address, task.run());
            }
            Self::Counter(shared) => {
                let stores: Result<Vec<_>, _> =
                    shared.sources.iter().map(|source| get(&source.address, Use::Others)).collect();
                let stores: Rc<[_]> = stores?.into();
                for (at, source) in shared.sources.iter().enumerate() {
                    let task = counting::Task::new(keeper, Arc::clone(shared), at, Rc::clone(&stores));
                    if let Some(task) = task {
                        self.spawn(keeper, &source.address, task.run());
                    }
                }
            }
            Self::Sequences(shared) => {
                let store = get(&shared.address, Use::Others)?;
                let task = sequencing::Task::new(keeper, Arc::clone(shared), store);
                self.spawn(keeper, &shared.address, task.run());
            }
        }
        Ok(())
    }

    /// Starts a task that sends requests to a store.
    fn spawn(&self, keeper: &'static Keeper, address: &Address, task: impl Future<Output = ()> + 'static) {
        let (new, store) = (self.clone(), address.to_string());
        tokio::task::spawn_local(async move {
            if tokio::task::spawn_local(task).await.is_err() {
                new.has_panicked(keeper, store);
            }
        });
    }

    /// Fails the calls that depend on a panicked task, and logs the panic. Opening the lease, counter or
    /// sequences again starts a new task.
    fn has_panicked(&self, keeper: &Keeper, store: String) {
        let why = format!("the task that asks {store} panicked; open it again");
        let (kind, node, what) = match self {
            Self::Lease(shared, lease) => {
                shared.has_panicked.store(true, Ordering::Relaxed);
                let node = lease.node();
                if node.is_some() {
                    // The lease is no longer being renewed, and another of this process's leases may take the
                    // node.
                    lease.end();
                    lease.count_loss();
                }
                (
                    Kind::Lost,
                    node,
                    node.map_or("no node is leased".into(), |node| format!("node {node} is lost")),
                )
            }
            Self::Counter(shared) => {
                let name = shared.sources.first().map_or("", |source| &source.counter.name);
                (Kind::CounterStopped, None, format!("counter {name:?}"))
            }
            Self::Sequences(shared) => (Kind::Lost, None, format!("sequences {:?}", shared.name)),
        };
        self.fail(keeper, &why);
        tell(&Event { kind, node, store, message: format!("{what}: {why}") });
    }

    fn fail(&self, keeper: &Keeper, why: &str) {
        let error = self.error(why);
        match self {
            Self::Lease(shared, _) => shared.fail(keeper, error),
            Self::Counter(shared) => {
                keeper.forget_counter(shared, true);
                shared.fail(error);
                shared.users.end();
            }
            Self::Sequences(shared) => {
                keeper.forget_sequences(shared, true);
                shared.fail(error);
                shared.users.end();
            }
        }
    }

    fn error(&self, why: &str) -> Error {
        let code = match self {
            Self::Lease(..) | Self::Sequences(_) => ErrorCode::LeaseUnavailable,
            Self::Counter(_) => ErrorCode::CounterUnavailable,
        };
        Error::from_outside(code, why)
    }
}

/// The state that the Snowflakes on a lease share with the task that maintains the lease.
#[derive(Debug)]
struct Shared {
    key: String,
    address: Address,
    name: String,
    terms: Terms,
    users: Users,
    stage: Watched<Stage>,
    wake: Notify,
    is_reachable: AtomicBool,
    retry_after_ms: AtomicU64,
    has_panicked: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Opening,
    Open,
    Failed(Error),
    /// The lease was released, or will expire on its own.
    Over,
}

impl Shared {
    fn new(key: String, address: Address, terms: Terms) -> Self {
        let name = address.to_string();
        Self {
            key,
            address,
            name,
            users: Users::new(Duration::from_millis(terms.ttl_ms)),
            terms,
            stage: Watched::new(Stage::Opening),
            wake: Notify::new(),
            is_reachable: AtomicBool::new(true),
            retry_after_ms: AtomicU64::new(0),
            has_panicked: AtomicBool::new(false),
        }
    }

    fn left(&self, is_closed: bool) {
        if self.users.leave(is_closed) {
            self.wake.notify_one();
            if is_closed {
                // If the store does not answer, stop waiting after one attempt.
                self.users.wait_until_over(self.address.attempt() + LOOK_EVERY);
            }
        }
    }

    /// Returns a result once a node has been leased or the attempt to lease one has failed, and `None` before
    /// that.
    fn opened(&self) -> Option<Result<(), Error>> {
        match *self.stage.get() {
            Stage::Opening => None,
            Stage::Open | Stage::Over => Some(Ok(())),
            Stage::Failed(error) => Some(Err(error)),
        }
    }

    fn enter(&self, stage: Stage) {
        self.stage.change(|present| *present = stage);
        if matches!(stage, Stage::Over | Stage::Failed(_)) {
            self.users.end();
        }
    }

    fn fail(self: &Arc<Self>, keeper: &Keeper, error: Error) {
        keeper.forget(self, true);
        self.enter(Stage::Failed(error));
    }
}

/// The core's view of the lease.
#[derive(Debug)]
struct OfLease(Arc<Shared>);

impl LeaseKeeper for OfLease {
    fn wake(&self) {
        self.0.wake.notify_one();
    }

    fn joined(&self) {
        self.0.users.join();
    }

    fn left(&self, is_closed: bool) {
        self.0.left(is_closed);
    }

    fn store(&self) -> &str {
        &self.0.name
    }

    fn retry_after_ms(&self) -> u64 {
        self.0.retry_after_ms.load(Ordering::Relaxed)
    }

    fn is_reachable(&self) -> bool {
        self.0.is_reachable.load(Ordering::Relaxed)
    }

    fn has_panicked(&self) -> bool {
        self.0.has_panicked.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use polyflake::Wait;

    use super::*;
    use crate::sequences::SequencesOptions;

    /// A clock that advances by a minute each time it is read.
    struct Minutes(u64);

    impl Wait for Minutes {
        type Error = Error;

        fn elapsed(&mut self) -> Duration {
            self.0 += 1;
            Duration::from_secs(60 * self.0)
        }

        fn pause(&mut self, _: Duration) -> Result<(), Error> {
            assert!(self.0 < 100, "the wait does not end");
            Ok(())
        }
    }

    /// Returns a keeper whose thread is not running, as in a forked child if the standard library's locks
    /// were held at the time of the fork.
    fn keeper_without_a_thread() -> (&'static Keeper, impl Sized) {
        let keeper: &Keeper = Box::leak(Box::default());
        let (sender, receiver) = unbounded_channel();
        keeper.state().thread = Some((sender, std::thread::spawn(|| {})));
        (keeper, receiver)
    }

    #[test]
    fn opening_ends_where_no_thread_can_run() {
        let (keeper, _unread) = keeper_without_a_thread();
        let options = Options::default().lease("redis://none?wait=5m");
        let mut wait = Minutes(0);
        let error = block_on(lease_by(keeper, &options, &mut Blocking(&mut wait))).unwrap_err();
        assert_eq!(error.code(), ErrorCode::LeaseUnavailable);
        assert!(error.to_string().contains("has not run for 6m"), "{error}");

        let options = SequencesOptions::new("chat").store("redis://none?wait=5m");
        let mut wait = Minutes(0);
        let error = block_on(options.open_by(keeper, &mut Blocking(&mut wait))).unwrap_err();
        assert_eq!(error.code(), ErrorCode::LeaseUnavailable);
        assert!(error.to_string().contains("has not run for 6m"), "{error}");
    }
}
