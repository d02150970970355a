//! The connected clients: how many there may be, and what each must send by its deadline.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// How long a client may take to present its token, and to send the whole head of a request.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest command or request head, in bytes, from a client that has not presented its token.
pub(crate) const SMALL: usize = 4096;

/// The places available to clients.
pub(crate) struct Places {
    free: Arc<Semaphore>,
    count: usize,
    by_address: Mutex<HashMap<IpAddr, usize>>,
    per_address: usize,
    /// Clients that have not presented a token, the oldest first.
    strangers: Mutex<VecDeque<Stranger>>,
}

struct Stranger {
    client: Weak<Client>,
    address: IpAddr,
    task: AbortHandle,
}

impl Stranger {
    fn is_one(&self) -> bool {
        self.client.upgrade().is_some_and(|client| !client.is_admitted())
    }
}

/// Counts as one connection from a client's address for as long as it exists.
pub(crate) struct Seat {
    places: Arc<Places>,
    address: IpAddr,
}

impl Places {
    pub(crate) fn new(count: usize, per_address: usize) -> Arc<Self> {
        let (free, strangers) = (Arc::new(Semaphore::new(count)), Mutex::default());
        Arc::new(Self { free, count, by_address: Mutex::default(), per_address, strangers })
    }

    /// Returns `None` if the address has too many connections and none of them belongs to a stranger that
    /// could be disconnected.
    pub(crate) fn seat(self: &Arc<Self>, address: IpAddr) -> Option<Seat> {
        let address = network(address);
        let mut all = lock(&self.by_address);
        let count = all.entry(address).or_default();
        if *count >= self.per_address && !self.send_away(|stranger| stranger.address == address) {
            return None;
        }
        *count += 1;
        Some(Seat { places: Arc::clone(self), address })
    }

    /// Waits for a place. If none is free, the stranger that connected first is disconnected, so a client that
    /// presents its token at once gets in, no matter how many others do not.
    pub(crate) async fn place(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        if let Some(place) = self.free_place() {
            return Ok(place);
        }
        self.send_away(|_| true);
        Arc::clone(&self.free).acquire_owned().await
    }

    pub(crate) fn free_place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// Closes the connection of the oldest stranger that matches, if there is one.
    fn send_away(&self, which: impl Fn(&Stranger) -> bool) -> bool {
        let mut strangers = lock(&self.strangers);
        let oldest = strangers.iter().position(|stranger| which(stranger) && stranger.is_one());
        let stranger = oldest.and_then(|at| strangers.remove(at));
        stranger.inspect(|stranger| stranger.task.abort()).is_some()
    }

    /// Registers a client that may be disconnected to make room.
    pub(crate) fn watch(&self, client: &Arc<Client>, task: AbortHandle) {
        let mut strangers = lock(&self.strangers);
        if strangers.len() > 2 * self.count {
            strangers.retain(Stranger::is_one);
        }
        strangers.push_back(Stranger {
            client: Arc::downgrade(client),
            address: network(client.address),
            task,
        });
    }

    /// How many places are taken.
    pub(crate) fn taken(&self) -> usize {
        self.count.saturating_sub(self.free.available_permits())
    }

    /// Waits until all clients have left.
    pub(crate) async fn are_left(&self) {
        let all = u32::try_from(self.count).unwrap_or(u32::MAX);
        // Each client holds a permit.
        drop(self.free.acquire_many(all).await);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut all = lock(&self.places.by_address);
        if let Some(count) = all.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.address);
            }
        }
    }
}

/// A client with an IPv6 address usually has all 2^64 addresses in its network, so they count as one.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// A connected client, and the deadline for what it must send.
pub(crate) struct Client {
    address: IpAddr,
    start: Instant,
    /// Milliseconds since the start; `u64::MAX` if there is no deadline.
    deadline_ms: AtomicU64,
    is_admitted: AtomicBool,
    /// Whether the client must send the head of a request next, rather than the rest.
    is_head_due: AtomicBool,
}

impl Client {
    pub(crate) fn new(address: IpAddr, is_admitted: bool) -> Self {
        let client = Self {
            address,
            start: Instant::now(),
            deadline_ms: u64::MAX.into(),
            is_admitted: is_admitted.into(),
            is_head_due: false.into(),
        };
        client.be_patient(!is_admitted);
        client
    }

    pub(crate) const fn address(&self) -> IpAddr {
        self.address
    }

    pub(crate) fn is_admitted(&self) -> bool {
        self.is_admitted.load(Ordering::Relaxed)
    }

    /// Records whether the client has presented the token, or needs none.
    pub(crate) fn admit(&self, is_admitted: bool) {
        if self.is_admitted.swap(is_admitted, Ordering::Relaxed) != is_admitted {
            self.be_patient(!is_admitted);
        }
    }

    /// HTTP: the server is now waiting for the head of a request.
    pub(crate) fn await_head(&self) {
        self.be_patient(!self.is_admitted());
        self.is_head_due.store(true, Ordering::Relaxed);
    }

    /// HTTP: the server has the whole request, and the client is waiting for the answer.
    pub(crate) fn has_head(&self) {
        self.is_head_due.store(false, Ordering::Relaxed);
        self.be_patient(false);
    }

    /// Whether the client's deadline has passed.
    pub(crate) fn is_late(&self) -> bool {
        self.deadline().is_some_and(|at| Instant::now() >= at)
    }

    /// The deadline.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let ms = self.deadline_ms.load(Ordering::Relaxed);
        (ms != u64::MAX).then(|| self.start + Duration::from_millis(ms))
    }

    /// Records that `count` bytes were read.
    pub(super) fn read(&self, count: usize) {
        if count == 0 || !self.is_head_due.load(Ordering::Relaxed) {
            return;
        }
        if self.deadline_ms.load(Ordering::Relaxed) == u64::MAX {
            self.be_patient(true);
        }
    }

    fn be_patient(&self, is_due: bool) {
        let ms = || u64::try_from((self.start.elapsed() + PATIENCE).as_millis()).unwrap_or(u64::MAX);
        self.deadline_ms.store(if is_due { ms() } else { u64::MAX }, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_own_count() {
        let places = Places::new(10, 2);
        let seat = |address: &str| places.seat(address.parse().unwrap());
        let seats = [seat("127.0.0.1"), seat("::ffff:127.0.0.1"), seat("2001:db8::1"), seat("2001:db8::2")];
        assert!(seats.iter().all(Option::is_some));
        assert!(seat("127.0.0.1").is_none() && seat("2001:db8::3").is_none());
        assert!(seat("127.0.0.2").is_some() && seat("2001:db8:0:1::1").is_some());
        drop(seats);
        assert!(seat("127.0.0.1").is_some());
        assert!(lock(&places.by_address).is_empty());
    }
}
