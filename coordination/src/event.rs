//! What happens to leases and counters, for logs: as events of `tracing`, and to a listener where a program has one. Where it has
//! neither, warnings go to standard error.

use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use std::io::Write as _;
use std::sync::RwLock;

use polyflake::Shown;
use tracing::subscriber::NoSubscriber;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// A node was leased.
    Acquired,
    /// The lease ran out, or another process has its node.
    Lost,
    /// Another node came for one that was lost.
    Replaced,
    /// The node was given back.
    Released,
    /// The store did not answer. Issuing goes on up to the bound.
    StoreUnreachable,
    /// The store answers again.
    StoreReachable,
    /// The local clock is further from the store's than `clock_difference`.
    ClockDiffers,
    /// The store has replicas that may lack changes which it acknowledged: leases wait after one of them takes over.
    AsynchronousReplicas,
    /// A store gives no numbers of a counter: it has lost writes, refuses, or the counter has reached its end.
    CounterStopped,
    /// A store had lost numbers of a counter that this process was given, and gave them to others: what was in hand is dropped.
    NumbersMayRepeat,
    /// The store had lost numbers of a counter, which is moved above those that processes know, or bounds of sequences, which their
    /// owner writes once more.
    WritesLost,
    /// The leases of this space last shorter than the address asks for.
    LeadDiffers,
    /// Nobody can lease a node before a while has passed: all are in use, or the store may have lost records.
    Waiting,
    /// `init=always` stands in the address: for development and tests.
    InitAlways,
}

impl Kind {
    /// Its name, such as `store_unreachable`.
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

    /// Whether somebody should look at it.
    #[must_use]
    pub const fn is_warning(self) -> bool {
        !matches!(self, Self::Acquired | Self::Replaced | Self::Released | Self::StoreReachable)
    }
}

/// What happened to a lease or a counter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// What.
    pub kind: Kind,
    /// The node that it is about, if there is one.
    pub node: Option<u64>,
    /// The store's address, without secrets.
    pub store: String,
    /// All of it as a sentence, without secrets.
    pub message: String,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

type Listener = Box<dyn Fn(&Event) + Send + Sync>;

static LISTENER: RwLock<Option<Listener>> = RwLock::new(None);

/// Whether the program chose what hears events, if anything does.
static IS_CHOSEN: AtomicBool = AtomicBool::new(false);

/// Calls `listener` with every event of this process from now on, on the keeper's thread: it must not block. `None` ends that.
///
/// A program that never calls this, and has no subscriber of `tracing`, gets warnings on standard error: somebody who waits for half a
/// minute sees why.
pub fn set_listener(listener: Option<Listener>) {
    IS_CHOSEN.store(true, Ordering::Relaxed);
    if let Ok(mut place) = LISTENER.write() {
        *place = listener;
    }
}

/// What others put into a store is in messages: it must do nothing to a terminal or a log.
pub(crate) fn tell(event: &Event) {
    let shown = |text: &str| Shown(text).to_string();
    let event = &Event { store: shown(&event.store), message: shown(&event.message), ..*event };
    let Event { kind, node, store, message } = event;
    if kind.is_warning() {
        tracing::warn!(target: "polyflake", kind = kind.name(), node, store, "{message}");
    } else {
        tracing::info!(target: "polyflake", kind = kind.name(), node, store, "{message}");
    }
    if let Ok(place) = LISTENER.read() {
        if let Some(listener) = &*place {
            listener(event);
        }
    }
    let is_heard = || {
        IS_CHOSEN.load(Ordering::Relaxed)
            || !tracing::dispatcher::get_default(tracing::Dispatch::is::<NoSubscriber>)
    };
    if kind.is_warning() && !is_heard() {
        let _ = writeln!(std::io::stderr(), "polyflake: {message}");
    }
}
