//! The keeper: one thread a process, which acquires, renews and gives back the leases of all Snowflakes. It starts with the
//! first lease and ends with the last.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use polyflake::{
    Error, ErrorCode, Lease, LeaseKeeper, LeaseTerms, Options, Snowflake, StdTime, ThisProcess, ThreadWait,
    Wait,
};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::lease::{Nodes, Terms};
use crate::space::Space;
use crate::url::Address;

mod stores;
mod task;

/// How long a call that waits for the keeper does not look whether it was interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A Snowflake whose node is leased from the store that [`Options::lease`] names. It waits for one, for at most the address's
/// `wait`.
///
/// All Snowflakes of a process with the same address and layout share one lease. After the last of them was closed the node
/// is free at once; after the last was dropped, the lease is kept for a TTL more.
///
/// # Errors
///
/// - `lease_unavailable` if no node is free or the store cannot be reached, within `wait`.
/// - `invalid_option` for an address that is none, for options without a lease, and those of [`Options::build`].
pub fn open(options: &Options) -> Result<Snowflake, Error> {
    let leased = lease(options, &mut ThreadWait::new())?;
    options.build_on_lease(leased.lease(), StdTime, |clock| clock)
}

/// The lease for such options, for callers that have clocks or ways to wait of their own: then [`Options::build_on_lease`].
///
/// # Errors
///
/// As for [`open`], or what interrupted the wait.
pub fn lease<W: Wait>(options: &Options, wait: &mut W) -> Result<Leased, W::Error> {
    let Some(terms) = options.lease_terms()? else {
        return Err(
            invalid("lease is missing; it takes the address of a store, such as redis://host/0").into()
        );
    };
    let leased = Keeper::of_this_process().lease(options, &terms)?;
    loop {
        let mut outcome = None;
        wait.block_on(&mut || outcome = leased.shared.wait_for_node(LOOK_EVERY));
        match outcome {
            Some(Ok(())) => return Ok(leased),
            Some(Err(error)) => return Err(error.into()),
            None => wait.pause(Duration::ZERO)?,
        }
    }
}

fn invalid(message: &str) -> Error {
    Error::from_outside(ErrorCode::InvalidOption, message)
}

/// A lease that has a node: as long as this is there, it is kept.
#[derive(Debug)]
pub struct Leased {
    shared: Arc<Shared>,
    lease: &'static Lease,
}

impl Leased {
    /// The lease.
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

/// The keeper of a process.
#[derive(Debug)]
struct Keeper {
    process: ThisProcess,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    leases: Vec<(Arc<Shared>, &'static Lease)>,
    thread: Option<(UnboundedSender<New>, JoinHandle<()>)>,
}

/// A lease for the thread to keep.
type New = (Arc<Shared>, &'static Lease);

/// This process's, or what a child inherited of its parent's: it is left alone, since its lock may be held for ever.
static KEEPER: AtomicPtr<Keeper> = AtomicPtr::new(ptr::null_mut());

impl Keeper {
    fn of_this_process() -> &'static Self {
        let mut newest = KEEPER.load(Ordering::Acquire);
        loop {
            // SAFETY: only what was leaked below is ever stored there.
            #[allow(unsafe_code)]
            if let Some(keeper) = unsafe { newest.as_ref() }.filter(|keeper| keeper.process.is_alive()) {
                return keeper;
            }
            let made = Self { process: ThisProcess::now(), state: Mutex::default() };
            let made = ptr::from_ref(Box::leak(Box::new(made))).cast_mut();
            match KEEPER.compare_exchange(newest, made, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => newest = made,
                // Another thread was faster; what was made here is lost, once in a process.
                Err(other) => newest = other,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The lease for these options: one that is there, or a new one.
    fn lease(&'static self, options: &Options, wanted: &LeaseTerms) -> Result<Leased, Error> {
        let address = Address::parse(&wanted.address).map_err(|why| invalid(&format!("lease: {why}")))?;
        let terms = terms(&address, wanted);
        let key = format!("{} {address:?} {terms:?}", address.key());
        let mut state = self.state();
        if let Some((shared, lease)) = state.leases.iter().find(|(shared, _)| shared.key == key) {
            shared.join();
            return Ok(Leased { shared: Arc::clone(shared), lease });
        }
        let shared = Arc::new(Shared::new(key, address, terms));
        let lease = options.new_lease(Box::new(OfLease(Arc::clone(&shared))))?;
        shared.join();
        let new = (Arc::clone(&shared), lease);
        state.leases.push(new.clone());
        let sent = match &state.thread {
            Some((sender, _)) => sender.send(new),
            None => Err(tokio::sync::mpsc::error::SendError(new)),
        };
        if let Err(unsent) = sent {
            // There is none, or it is ending.
            let (sender, receiver) = unbounded_channel();
            let _ = sender.send(unsent.0);
            state.thread = Some((sender, start(self, receiver)?));
        }
        Ok(Leased { shared, lease })
    }

    /// Takes out a lease that nobody uses, so that nobody joins it any more. `is_failed`: whoever waits for it gets an error.
    fn forget(&self, shared: &Arc<Shared>, is_failed: bool) -> bool {
        let mut state = self.state();
        let may_go = is_failed || lock(&shared.uses).count == 0;
        if may_go {
            state.leases.retain(|(other, _)| !Arc::ptr_eq(other, shared));
            if state.leases.is_empty() {
                // The thread ends once it has given back what it has.
                let thread = state.thread.take();
                drop(state);
                *lock(&shared.thread) = thread.map(|(_, thread)| thread);
            }
        }
        may_go
    }
}

/// No invariant is open when a panic could come.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn terms(address: &Address, wanted: &LeaseTerms) -> Terms {
    let layout = &wanted.layout;
    let (fixed_mask, fixed_value) = wanted.fixed;
    Terms {
        space: Space {
            namespace: address.namespace.clone(),
            epoch_ms: layout.epoch_ms(),
            tick_ms: layout.tick_ms(),
            timestamp_bits: layout.timestamp_bits(),
            timestamp_shift: layout.timestamp_shift(),
            sequence_bits: layout.sequence_bits(),
            sequence_shift: layout.sequence_shift(),
        },
        nodes: Nodes { bits: layout.node_bits(), fixed_mask, fixed_value, range: address.nodes.clone() },
        ttl_ms: address.ttl_ms,
        lead_ms: address.ttl_ms.saturating_add(wanted.max_ahead_ms.into()),
        clock_difference_ms: address.clock_difference_ms,
        label: address.label(),
        is_init: address.is_init,
    }
}

/// Starts the thread. It takes no signals: those are for the program's own threads.
fn start(keeper: &'static Keeper, receiver: UnboundedReceiver<New>) -> Result<JoinHandle<()>, Error> {
    #[cfg(unix)]
    let before = {
        use nix::sys::signal::{SigSet, SigmaskHow};
        SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK)
    };
    let thread = std::thread::Builder::new().name("polyflake-keeper".into());
    let thread = thread.spawn(move || run(keeper, receiver));
    #[cfg(unix)]
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
    thread.map_err(|error| {
        Error::from_outside(
            ErrorCode::LeaseUnavailable,
            &format!("no thread for leases can be started: {error}"),
        )
    })
}

/// The thread: a task for each lease, until there is none and nobody can send one.
fn run(keeper: &'static Keeper, mut receiver: UnboundedReceiver<New>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    let Ok(runtime) = runtime else {
        while let Some((shared, _)) = receiver.blocking_recv() {
            let error = "no runtime for leases can be started";
            shared.fail(keeper, Error::from_outside(ErrorCode::LeaseUnavailable, error));
        }
        return;
    };
    let tasks = tokio::task::LocalSet::new();
    runtime.block_on(tasks.run_until(async {
        let mut stores = stores::Stores::default();
        while let Some((shared, lease)) = receiver.recv().await {
            let store = match stores.get(&shared.address) {
                Ok(store) => store,
                Err(error) => {
                    let text = format!("{}: {error}", shared.address);
                    shared.fail(keeper, Error::from_outside(ErrorCode::LeaseUnavailable, &text));
                    continue;
                }
            };
            tokio::task::spawn_local(task::Task::new(keeper, shared, lease, store).run());
        }
    }));
    // Those that are giving their nodes back.
    runtime.block_on(tasks);
    // A look-up of a host's name may hang.
    runtime.shutdown_background();
}

/// What the Snowflakes of a lease share with the task that keeps it.
#[derive(Debug)]
struct Shared {
    key: String,
    address: Address,
    name: String,
    terms: Terms,
    uses: Mutex<Uses>,
    stage: Mutex<Stage>,
    changed: Condvar,
    wake: Notify,
    is_reachable: AtomicBool,
    retry_after_ms: AtomicU64,
    /// Where it was the last lease: the thread, which ends.
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Who uses a lease.
#[derive(Debug)]
struct Uses {
    count: u64,
    /// Whether the last one closed it, and did not just go.
    is_closed: bool,
    /// Since when there are none.
    since: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Opening,
    Open,
    Failed(Error),
    /// Given back, or left to expire.
    Over,
}

impl Shared {
    fn new(key: String, address: Address, terms: Terms) -> Self {
        let name = address.to_string();
        Self {
            key,
            address,
            name,
            terms,
            uses: Mutex::new(Uses { count: 0, is_closed: false, since: Instant::now() }),
            stage: Mutex::new(Stage::Opening),
            changed: Condvar::new(),
            wake: Notify::new(),
            is_reachable: AtomicBool::new(true),
            retry_after_ms: AtomicU64::new(0),
            thread: Mutex::new(None),
        }
    }

    /// How long one attempt may take.
    fn attempt(&self) -> Duration {
        Duration::from_millis((self.terms.ttl_ms / 6).min(5000))
    }

    fn join(&self) {
        let mut uses = lock(&self.uses);
        uses.count += 1;
        uses.is_closed = false;
    }

    fn left(&self, is_closed: bool) {
        let mut uses = lock(&self.uses);
        uses.count = uses.count.saturating_sub(1);
        if uses.count > 0 {
            return;
        }
        uses.is_closed = is_closed;
        uses.since = Instant::now();
        drop(uses);
        self.wake.notify_one();
        if is_closed {
            self.wait_until_over();
        }
    }

    /// Waits until the node is given back, or it is clear that the store does not answer.
    fn wait_until_over(&self) {
        let deadline = Instant::now() + self.attempt() + LOOK_EVERY;
        let mut stage = lock(&self.stage);
        while !matches!(*stage, Stage::Over | Stage::Failed(_)) {
            let left = deadline.saturating_duration_since(Instant::now());
            // Somebody may have joined it again.
            if left.is_zero() || lock(&self.uses).count > 0 {
                return;
            }
            let waited = self.changed.wait_timeout(stage, left.min(LOOK_EVERY));
            stage = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(stage);
        if let Some(thread) = lock(&self.thread).take() {
            let _ = thread.join();
        }
    }

    /// Waits for a while until it has had a node, or cannot have one.
    fn wait_for_node(&self, longest: Duration) -> Option<Result<(), Error>> {
        let mut stage = lock(&self.stage);
        if *stage == Stage::Opening {
            let waited = self.changed.wait_timeout(stage, longest);
            stage = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        match *stage {
            Stage::Opening => None,
            Stage::Open | Stage::Over => Some(Ok(())),
            Stage::Failed(error) => Some(Err(error)),
        }
    }

    fn enter(&self, stage: Stage) {
        *lock(&self.stage) = stage;
        self.changed.notify_all();
    }

    fn fail(self: &Arc<Self>, keeper: &Keeper, error: Error) {
        keeper.forget(self, true);
        self.enter(Stage::Failed(error));
    }

    /// Whether the lease is to be given back: nobody uses it, and the last closed it or went a TTL ago.
    fn is_over(&self) -> bool {
        let uses = lock(&self.uses);
        uses.count == 0 && (uses.is_closed || self.idle_left(&uses).is_zero())
    }

    fn idle_left(&self, uses: &Uses) -> Duration {
        Duration::from_millis(self.terms.ttl_ms).saturating_sub(uses.since.elapsed())
    }

    /// How long it is kept, where nobody uses it.
    fn kept_for(&self) -> Option<Duration> {
        let uses = lock(&self.uses);
        (uses.count == 0).then(|| if uses.is_closed { Duration::ZERO } else { self.idle_left(&uses) })
    }
}

/// What the core knows of it.
#[derive(Debug)]
struct OfLease(Arc<Shared>);

impl LeaseKeeper for OfLease {
    fn wake(&self) {
        self.0.wake.notify_one();
    }

    fn joined(&self) {
        self.0.join();
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
}
