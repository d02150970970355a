//! Events of leases and counters, for logs. They are sent to `tracing` and to a program's listener. Without
//! either, warnings go to standard error.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};
use core::{fmt, mem};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError, TryLockError};

use polyflake::Shown;
use tracing::subscriber::NoSubscriber;

use crate::process::PerProcess;
use crate::watched::lock;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A node was leased.
    Acquired,
    /// The lease ran out, or another process has its node.
    Lost,
    /// The process leased another node in place of a lost one.
    Replaced,
    /// The node was given back.
    Released,
    /// The store did not answer. IDs are issued up to the bound.
    StoreUnreachable,
    /// The store answers again.
    StoreReachable,
    /// The local clock is further from the store's than `clock_difference`.
    ClockDiffers,
    /// The store has replicas that may lack acknowledged changes. If one of them takes over, leases wait.
    AsynchronousReplicas,
    /// A store gives no numbers for a counter: it has lost writes or refuses, or the counter has reached its end.
    CounterStopped,
    /// A store lost the record of numbers that this process had received, and gave them to others. The
    /// process dropped its numbers in hand.
    NumbersMayRepeat,
    /// The store lost a counter's numbers or the bounds of sequences. The counter is moved above the numbers
    /// that processes know, and the owner of the sequences writes the bounds again.
    WritesLost,
    /// The leases of this space are shorter than the address asks for.
    LeadDiffers,
    /// Nobody can lease a node for a while: all nodes are in use, or the store may have lost records.
    Waiting,
    /// The address contains `init=always`, which is for development and tests.
    InitAlways,
}

impl Kind {
    /// Returns the kind's name, such as `store_unreachable`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acquired => "acquired",
            Self::Lost => "lost",
            Self::Replaced => "replaced",
            Self::Released => "released",
            Self::StoreUnreachable => "store_unreachable",
            Self::StoreReachable => "store_reachable",
            Self::ClockDiffers => "clock_differs",
            Self::AsynchronousReplicas => "asynchronous_replicas",
            Self::CounterStopped => "counter_stopped",
            Self::NumbersMayRepeat => "numbers_may_repeat",
            Self::WritesLost => "writes_lost",
            Self::LeadDiffers => "lead_differs",
            Self::Waiting => "waiting",
            Self::InitAlways => "init_always",
        }
    }

    /// Returns true if somebody should look at the event.
    #[must_use]
    pub const fn is_warning(self) -> bool {
        !matches!(self, Self::Acquired | Self::Replaced | Self::Released | Self::StoreReachable)
    }
}

/// An event of a lease or a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The kind.
    pub kind: Kind,
    /// The node that the event concerns, if there is one.
    pub node: Option<u64>,
    /// The store's address, without secrets.
    pub store: String,
    /// The whole event as a sentence, without secrets.
    pub message: String,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

type Listener = dyn Fn(&Event) + Send + Sync;

/// The listener of a process. The lock is held for an instant, and never while the listener runs.
struct Place(Mutex<Option<Listening>>);

/// A listener, and how many calls to it are running in this process.
#[derive(Clone)]
struct Listening {
    listener: Arc<Listener>,
    calls: Arc<Calls>,
}

#[derive(Default)]
struct Calls {
    count: Mutex<usize>,
    ended: Condvar,
}

static PLACE: PerProcess<Place> = PerProcess::new();

/// Whether the program chose what receives events, if anything does.
static IS_CHOSEN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How many nested listener calls this thread is in.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// From now on, calls `listener` with every event in this process. The calls run on the keeper's thread, so
/// the listener must not block. `None` removes the listener.
///
/// This waits until a running call to the previous listener has returned, and nothing calls that listener
/// afterwards. Therefore, do not hold a lock that the previous listener needs. A listener may replace or
/// remove itself: then this does not wait, and the running call finishes. A listener that panics misses the
/// rest of that event, but receives the next one.
///
/// A forked child has its parent's listener until it sets its own. The exception is if another thread was
/// just setting or calling a listener at the instant of the fork: then the child has none.
///
/// If a program never calls this and has no `tracing` subscriber, warnings go to standard error, so that
/// anyone who waits for half a minute sees why.
pub fn set_listener(listener: Option<Box<Listener>>) {
    replace_listener(listener).wait();
}

/// Does what [`set_listener`] does in two steps, for bindings that hold a lock: they release the lock before
/// the second step, which waits.
#[doc(hidden)]
pub fn replace_listener(listener: Option<Box<Listener>>) -> Replaced {
    IS_CHOSEN.store(true, Ordering::Relaxed);
    let listening = listener.map(|it| Listening { listener: it.into(), calls: Arc::default() });
    Replaced(mem::replace(&mut *lock(&Place::of_this_process().0), listening))
}

/// The previous listener, which may still be running.
#[doc(hidden)]
#[must_use]
pub struct Replaced(Option<Listening>);

impl fmt::Debug for Replaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Replaced").finish_non_exhaustive()
    }
}

impl Replaced {
    /// Waits until no other thread is calling the listener.
    pub fn wait(self) {
        let Some(Listening { calls, .. }) = &self.0 else { return };
        // A listener in such a call could be waiting for this thread.
        if DEPTH.get() > 0 {
            return;
        }
        let mut count = lock(&calls.count);
        while *count > 0 {
            count = calls.ended.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Place {
    fn of_this_process() -> &'static Self {
        PLACE.get(|parents| {
            let listening = parents.and_then(|it| match it.0.try_lock() {
                Ok(listening) => listening.clone(),
                Err(TryLockError::Poisoned(listening)) => listening.into_inner().clone(),
                // A thread that no longer exists would hold the lock forever.
                Err(TryLockError::WouldBlock) => None,
            });
            // The running calls belong to the parent.
            Self(Mutex::new(listening.map(|it| Listening { calls: Arc::default(), ..it })))
        })
    }

    /// Begins a call to the present listener, if there is one.
    fn begin(&self) -> Option<Call> {
        let place = lock(&self.0);
        let Listening { listener, calls } = place.as_ref()?.clone();
        *lock(&calls.count) += 1;
        DEPTH.set(DEPTH.get() + 1);
        Some(Call { listener: Some(listener), calls })
    }
}

/// A running call to a listener.
struct Call {
    listener: Option<Arc<Listener>>,
    calls: Arc<Calls>,
}

impl Drop for Call {
    fn drop(&mut self) {
        // This comes first, so that the thread that waits for the end drops the listener.
        self.listener = None;
        DEPTH.set(DEPTH.get().saturating_sub(1));
        *lock(&self.calls.count) -= 1;
        self.calls.ended.notify_all();
    }
}

/// Sends an event. Messages contain texts that others put into a store, which must not affect a terminal or a
/// log.
pub(crate) fn tell(event: &Event) {
    let shown = |text: &str| Shown(text).to_string();
    let event = &Event { store: shown(&event.store), message: shown(&event.message), ..*event };
    let Event { kind, node, store, message } = event;
    let log = || {
        if kind.is_warning() {
            tracing::warn!(target: "polyflake", kind = kind.name(), node, store, "{message}");
        } else {
            tracing::info!(target: "polyflake", kind = kind.name(), node, store, "{message}");
        }
    };
    let call = || {
        if let Some(listener) = Place::of_this_process().begin().as_ref().and_then(|it| it.listener.as_ref())
        {
            listener(event);
        }
    };
    // Both belong to the program. A panic in them does not end the lease or the counter that the event
    // concerns.
    let _ = catch_unwind(AssertUnwindSafe(log));
    let _ = catch_unwind(AssertUnwindSafe(call));
    let is_heard = || {
        IS_CHOSEN.load(Ordering::Relaxed)
            || !tracing::dispatcher::get_default(tracing::Dispatch::is::<NoSubscriber>)
    };
    if kind.is_warning() && !is_heard() {
        let _ = writeln!(std::io::stderr(), "polyflake: {message}");
    }
}
