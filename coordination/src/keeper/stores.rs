//! The connections to stores. Each store has one for leases, and at most one more for everything else.

use core::cell::{Cell, RefCell};
use core::time::Duration;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::time::Instant;

use tokio::sync::{Mutex, MutexGuard, oneshot};
use tokio::time::{sleep, timeout};

use crate::counter::protocol::{Received, Request};
use crate::event::{Event, Kind, tell};
use crate::forks;
use crate::records;
use crate::store::StoreError;
use crate::stores;
use crate::url::Address;

/// The pause before the second attempt to give back a lease or numbers.
const SHORTEST: Duration = Duration::from_millis(25);

/// A connection to a store. All leases share one connection, and all counters and sequences share another, so
/// a request that waits for a locked counter row does not delay leases.
pub(super) type Connected = Rc<Connection>;

/// See [`Connected`].
#[derive(Debug)]
pub(super) struct Connection {
    store: Mutex<Box<dyn records::Store>>,
    looks: Looks,
}

impl Connection {
    pub(super) fn of(store: Box<dyn records::Store>) -> Self {
        Self { store: Mutex::new(store), looks: Looks::default() }
    }

    pub(super) async fn lock(&self) -> MutexGuard<'_, Box<dyn records::Store>> {
        self.store.lock().await
    }

    pub(super) const fn looks(&self) -> &Looks {
        &self.looks
    }
}

/// The checks for a store's counters that have not been sent yet. See [`looks`](super::looks).
#[derive(Debug, Default)]
pub(super) struct Looks {
    pub(super) waiting: RefCell<Vec<Look>>,
    pub(super) is_asking: Cell<bool>,
}

#[derive(Debug)]
pub(super) struct Look {
    pub(super) request: Request,
    pub(super) tell: oneshot::Sender<Result<Received, StoreError>>,
}

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Leases,
    Others,
}

/// The connections in use, by purpose and address.
#[derive(Debug, Default)]
pub(super) struct Stores(HashMap<String, Weak<Connection>>);

impl Stores {
    pub(super) fn get(&mut self, address: &Address, is_for: Use) -> Result<Connected, StoreError> {
        // The TTL is part of the key because it limits how long Redis waits for its replicas.
        let Address { replicas, is_durability_none, ttl_ms, .. } = address;
        let key = format!("{is_for:?} {} {replicas} {is_durability_none} {ttl_ms}", address.key());
        if let Some(store) = self.0.get(&key).and_then(Weak::upgrade) {
            return Ok(store);
        }
        let store = Rc::new(Connection::of(stores::open(address)?));
        self.0.retain(|_, store| store.strong_count() > 0);
        self.0.insert(key, Rc::downgrade(&store));
        Ok(store)
    }
}

/// The reason an attempt failed.
pub(super) trait AttemptError: From<StoreError> {
    /// Returns true if the store failed to carry out the request, which may succeed on a new connection.
    fn is_the_stores(&self) -> bool;

    /// Returns true if the same request may succeed a little later.
    fn is_temporary(&self) -> bool;
}

/// Makes one attempt. Its time limit starts only once earlier requests have finished. If the store fails, the
/// next attempt opens a new connection.
pub(super) async fn limited<T, E: AttemptError>(
    address: &Address,
    store: &Connected,
    ask: impl AsyncFnOnce(&mut dyn records::Store) -> Result<T, E>,
) -> Result<T, E> {
    limited_to(address.attempt(), address.attempt(), address, store, ask).await
}

/// Gives back a lease or numbers, and retries for as long as one attempt may take. A dead connection can be
/// recognised only by its silence, so the first try is given a third of that time. The next try is given a
/// new connection and the rest of the time, since connecting takes several round trips.
pub(super) async fn until_answered<T, E: AttemptError>(
    address: &Address,
    store: &Connected,
    mut ask: impl AsyncFnMut(&mut dyn records::Store) -> Result<T, E>,
) -> Result<T, E> {
    let deadline = Instant::now() + address.attempt();
    let mut pause = SHORTEST;
    let mut longest = address.attempt() / 3;
    loop {
        let answer = limited_to(longest, longest, address, store, async |store| ask(store).await).await;
        let left = deadline.saturating_duration_since(Instant::now());
        if !answer.as_ref().is_err_and(AttemptError::is_temporary) || left < 2 * pause {
            return answer;
        }
        sleep(pause).await;
        pause *= 2;
        longest = deadline.saturating_duration_since(Instant::now());
    }
}

/// Like [`limited`], but with separate limits on waiting for earlier requests and on the attempt itself. If
/// both shared one limit, an attempt that got the connection at the last moment would time out in the middle
/// of its request, and all users of the connection would lose it.
pub(super) async fn limited_to<T, E: AttemptError>(
    turn: Duration,
    longest: Duration,
    address: &Address,
    store: &Connected,
    ask: impl AsyncFnOnce(&mut dyn records::Store) -> Result<T, E>,
) -> Result<T, E> {
    let silent = |longest: Duration, why: &str| {
        let why = format!("{address}: no answer within {} ms{why}", longest.as_millis());
        Err(StoreError::Unreachable(why).into())
    };
    let Ok(mut store) = timeout(turn, store.lock()).await else {
        return silent(turn, ", in which requests before this one were not answered either");
    };
    forks::give_way();
    let result = timeout(longest, ask(&mut **store)).await.unwrap_or_else(|_| silent(longest, ""));
    if result.as_ref().is_err_and(AttemptError::is_the_stores) {
        store.disconnect();
    }
    result
}

/// Logs which writes may be lost if a replica takes over. Logs nothing if the store does not report any
/// asynchronous replicas.
pub(super) async fn tell_of_replicas(address: &Address, store: &Connected, lacks: &str) {
    let count = store.lock().await.facts().asynchronous_replicas.saturating_sub(address.replicas.into());
    if count > 0 {
        let message =
            format!("{address} has asynchronous replicas ({count}): one that takes over may lack {lacks}");
        tell(&Event { kind: Kind::AsynchronousReplicas, node: None, store: address.to_string(), message });
    }
}

impl AttemptError for StoreError {
    fn is_the_stores(&self) -> bool {
        true
    }

    fn is_temporary(&self) -> bool {
        matches!(self, Self::Unreachable(_))
    }
}

/// Returns an error's message as users see it. The message already names the store.
pub(super) fn text_of(error: &StoreError) -> String {
    match error {
        StoreError::Unreachable(why) => format!("the store cannot be reached: {why}"),
        StoreError::Refused(why) => format!("the store cannot be used: {why}"),
    }
}
