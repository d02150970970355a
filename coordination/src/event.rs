//! Events concerning leases and counters, for logs. Events go to `tracing` and to the program's listener. If
//! the program uses neither, warnings go to standard error.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};
use core::{fmt, mem};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError, TryLockError};

use polyflake::Shown;
use tracing::subscriber::NoSubscriber;

use crate::forks::{aside, write_to_stderr};
use crate::process::PerProcess;
use crate::watched::lock;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A node was leased.
    Acquired,
    /// The lease expired, or another process has its node.
    Lost,
    /// The process leased another node to replace the node it lost.
    Replaced,
    /// The node was released.
    Released,
    /// The store did not answer. The process keeps issuing IDs up to the bound of its lease.
    StoreUnreachable,
    /// The store is answering again.
    StoreReachable,
    /// The local clock differs from the store's clock by more than `clock_difference`.
    ClockDiffers,
    /// The store has replicas that may not have all acknowledged writes. If such a replica takes over, new
    /// leases have to wait.
    AsynchronousReplicas,
    /// A store returns no numbers for a counter, because the store lost writes or refuses requests, or
    /// because the counter has reached its end.
    CounterStopped,
    /// A store lost track of numbers that this process had fetched, so other processes may have fetched them
    /// too. This process dropped the numbers it had not issued yet.
    NumbersMayRepeat,
    /// The store lost writes to a counter or to sequences. Processes move the counter above the numbers they
    /// have fetched. The owner of the sequences rewrites their bounds.
    WritesLost,
    /// This space's leases are shorter than the address requests.
    LeadDiffers,
    /// For now, no process can lease a node, because all nodes are in use or the store may have lost records.
    Waiting,
    /// The address contains `init=always`, which is meant for development and tests.
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

    /// Returns true if the event is a warning.
    #[must_use]
    pub const fn is_warning(self) -> bool {
        !matches!(self, Self::Acquired | Self::Replaced | Self::Released | Self::StoreReachable)
    }
}

/// An event concerning a lease or a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// The event's kind.
    pub kind: Kind,
    /// The node, if the event is about one.
    pub node: Option<u64>,
    /// The store's address, without secrets.
    pub store: String,
    /// The event as a sentence, without secrets.
    pub message: String,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

type Listener = dyn Fn(&Event) + Send + Sync;

/// The process's listener. The lock is held only briefly, and is released before the listener runs.
struct Place(Mutex<Option<Listening>>);

/// A listener, and the number of calls to it that are running in this process.
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

/// Whether the program has set or removed a listener.
static IS_CHOSEN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The number of nested listener calls on this thread.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Sets the listener, which receives every later event in this process. The keeper's thread calls the
/// listener, so it must not block. `None` removes the listener.
///
/// This function waits until running calls to the previous listener have returned. After that, the previous
/// listener is not called again. Do not call this function while you hold a lock that the previous listener
/// needs. A listener may replace or remove itself: in that case, this function does not wait, and the running
/// call finishes. If a listener panics, it still receives the next event.
///
/// A forked child has its parent's listener until it sets its own. However, if another thread was setting or
/// calling a listener at the instant of the fork, the child has no listener.
///
/// If a program never calls this function and has no `tracing` subscriber, warnings go to standard error, so
/// that a user left waiting for half a minute can see the reason.
pub fn set_listener(listener: Option<Box<Listener>>) {
    replace_listener(listener).wait();
}

/// Like [`set_listener`], but in two steps, so that a binding that holds a lock can release it before the
/// second step, [`Replaced::wait`].
#[doc(hidden)]
pub fn replace_listener(listener: Option<Box<Listener>>) -> Replaced {
    IS_CHOSEN.store(true, Ordering::Relaxed);
    let listening = listener.map(|it| Listening { listener: it.into(), calls: Arc::default() });
    Replaced(mem::replace(&mut *lock(&Place::of_this_process().0), listening))
}

/// The previous listener. Calls to it may still be running.
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
        // Do not wait inside a listener: the running calls may include this one, or may wait for this thread.
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
                // The thread that holds the lock does not exist in this child, so the lock will never be
                // released.
                Err(TryLockError::WouldBlock) => None,
            });
            // The running calls are the parent's, so start counting again.
            Self(Mutex::new(listening.map(|it| Listening { calls: Arc::default(), ..it })))
        })
    }

    /// Begins a call to the current listener, if there is one.
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
        // Drop the listener before counting down, so that the thread waiting for this call is the last to
        // drop it.
        self.listener = None;
        DEPTH.set(DEPTH.get().saturating_sub(1));
        *lock(&self.calls.count) -= 1;
        self.calls.ended.notify_all();
    }
}

/// Sends an event. Escapes its strings first, since a message may contain text that another process wrote to
/// the store, and that text must not affect a terminal or a log.
pub(crate) fn tell(event: &Event) {
    // The listener may wait for a lock that a forking thread holds.
    aside(|| tell_now(event));
}

fn tell_now(event: &Event) {
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
    // The program provides the subscriber and the listener. If either panics, the lease or the counter must
    // keep working.
    let _ = catch_unwind(AssertUnwindSafe(log));
    let _ = catch_unwind(AssertUnwindSafe(call));
    let is_heard = || {
        IS_CHOSEN.load(Ordering::Relaxed)
            || !tracing::dispatcher::get_default(tracing::Dispatch::is::<NoSubscriber>)
    };
    if kind.is_warning() && !is_heard() {
        write_to_stderr(&format!("polyflake: {message}\n"));
    }
}
