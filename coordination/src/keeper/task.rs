//! The keeper's work for a lease that Snowflakes use.

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use polyflake::{Error, ErrorCode, Lease};
use tokio::time::{sleep, timeout};

use super::holder::{Holder, Whose, is_final};
use super::{Keeper, Shared, Stage, stores};
use crate::event::Kind;
use crate::lease::{Held, Refusal, Renewed, Time as _};
use crate::local::Clocks;

/// The reason logged when a lease is lost because its bound has passed.
const RAN_OUT: &str = "it ran out before the store renewed it";

/// The task for a lease and its store.
pub(super) struct Task {
    keeper: &'static Keeper,
    shared: Arc<Shared>,
    lease: &'static Lease,
    store: stores::Connected,
    holder: Holder,
    held: Option<Holding>,
    /// Whether calls fail because the lease is lost. If so, the loss has been counted.
    is_lost: bool,
    had_node: bool,
    /// The reason the last attempt failed, if it did.
    refusal: Option<Refusal>,
}

/// A node that this process holds.
struct Holding {
    held: Held,
    /// Whether the node's first tick has begun, so that this process is issuing IDs with the node.
    is_live: bool,
}

impl Task {
    pub(super) fn new(
        keeper: &'static Keeper,
        shared: Arc<Shared>,
        lease: &'static Lease,
        store: stores::Connected,
    ) -> Self {
        let holder = Holder::new(Whose::Snowflakes, &shared.address, shared.terms.clone(), Rc::clone(&store));
        Self {
            keeper,
            shared,
            lease,
            store,
            holder,
            held: None,
            is_lost: false,
            had_node: false,
            refusal: None,
        }
    }

    pub(super) async fn run(mut self) {
        if let Err(error) = self.open().await {
            self.give_back().await;
            self.shared.fail(self.keeper, error);
            return;
        }
        self.shared.enter(Stage::Open);
        let lacks = "leases, which is noticed, and no node can be leased for a while then";
        stores::tell_of_replicas(&self.shared.address, &self.store, lacks).await;
        while !(self.shared.users.are_gone() && self.keeper.forget(&self.shared, false)) {
            self.pause().await;
            self.tend().await;
        }
        self.give_back().await;
        self.shared.enter(Stage::Over);
    }

    /// Acquires the first node within `wait`. Fails at once if a fence lasts longer than that.
    async fn open(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + Duration::from_millis(self.shared.address.wait_ms);
        loop {
            self.tend().await;
            if self.held.as_ref().is_some_and(|holding| holding.is_live) {
                return Ok(());
            }
            let is_too_late = self.holder.is_fenced_past(deadline);
            if let Some(refusal) = self.refusal.as_ref().filter(|refusal| is_too_late || is_final(refusal)) {
                return Err(self.holder.error_of(refusal));
            }
            // Read the clock only now, since the attempt may have used up the remaining time.
            let now = Instant::now();
            if now >= deadline || self.shared.users.are_gone() {
                return Err(match &self.refusal {
                    Some(refusal) => self.holder.error_of(refusal),
                    None => self.not_begun(),
                });
            }
            sleep(self.until_next().min(deadline - now)).await;
        }
    }

    /// Sends a request to the store if one is due, starts using a new node, and reports a lost lease.
    async fn tend(&mut self) {
        if self.holder.pace.is_due() {
            self.ask().await;
        }
        self.begin();
        self.look_whether_lost();
    }

    async fn ask(&mut self) {
        let asked = match self.held.take() {
            Some(holding) => self.renew(holding).await,
            None => self.acquire().await,
        };
        self.refusal = asked.err();
        if let Some(refusal) = &self.refusal {
            self.holder.refused(refusal, self.held.as_ref().map(|holding| holding.held.node));
        }
        self.shared.is_reachable.store(self.holder.is_reachable(), Ordering::Relaxed);
    }

    async fn acquire(&mut self) -> Result<(), Refusal> {
        let held = self.holder.acquire(&|node| self.lease.is_used(node)).await?;
        self.held = Some(Holding { held, is_live: false });
        Ok(())
    }

    async fn renew(&mut self, mut holding: Holding) -> Result<(), Refusal> {
        let (node, bound) =
            (holding.held.node, self.shared.terms.space.start_ms(holding.held.reserved_until));
        let renewed = self.holder.renew(&mut holding.held).await;
        if holding.is_live {
            if ms_until(bound).is_zero() {
                // The bound passed during the request, so calls failed.
                self.lose(RAN_OUT, node);
            }
            // The renewal may have lowered the bound, even if it failed.
            self.lease.extend(holding.held.reserved_until);
            self.lease.shorten(holding.held.reserved_until);
        }
        if matches!(renewed, Ok(Renewed::Lost)) {
            if holding.is_live {
                self.lose("another process has taken it, or the store has lost its record", node);
            }
            return self.acquire().await;
        }
        self.held = Some(holding);
        renewed.map(drop)
    }

    /// Starts issuing IDs with the node once its first tick has begun.
    fn begin(&mut self) {
        let Some(holding) = self.held.as_mut().filter(|holding| !holding.is_live) else { return };
        let Held { node, start, reserved_until, .. } = holding.held;
        if !ms_until(self.shared.terms.space.start_ms(start)).is_zero() {
            return;
        }
        self.lease.end();
        if !self.lease.hold(node, start, reserved_until) {
            // The program has since built a Snowflake with the same node, so take another node and let this
            // lease expire.
            self.held = None;
            self.holder.pace.now();
            return;
        }
        holding.is_live = true;
        let kind = if self.had_node { Kind::Replaced } else { Kind::Acquired };
        let ttl_ms = self.shared.terms.ttl_ms;
        (self.is_lost, self.had_node) = (false, true);
        let what = format!("node {node} is leased from {}, for {ttl_ms} ms at a time", self.shared.name);
        self.holder.tell(kind, Some(node), &what);
    }

    /// Reports the lease as lost if its bound has passed.
    fn look_whether_lost(&mut self) {
        let Some(Holding { held, is_live: true }) = &self.held else { return };
        let (node, bound) = (held.node, self.shared.terms.space.start_ms(held.reserved_until));
        if !ms_until(bound).is_zero() {
            self.is_lost = false;
        } else if !self.is_lost {
            self.lose(RAN_OUT, node);
        }
    }

    fn lose(&mut self, why: &str, node: u64) {
        if !self.is_lost {
            self.is_lost = true;
            self.lease.count_loss();
            let what = format!("the lease of node {node} from {} is lost: {why}", self.shared.name);
            self.holder.tell(Kind::Lost, Some(node), &what);
        }
    }

    /// Waits until something is due, or until a call finds no free slot.
    async fn pause(&mut self) {
        let pause = self
            .shared
            .users
            .kept_for()
            .map_or_else(|| self.until_next(), |kept| kept.min(self.until_next()));
        let retry_after_ms = u64::try_from(self.until_next().as_millis()).unwrap_or(u64::MAX);
        self.shared.retry_after_ms.store(retry_after_ms, Ordering::Relaxed);
        let is_woken = timeout(pause, self.shared.wake.notified()).await.is_ok();
        // If the last attempt failed, a call does not bring the next attempt forward.
        if is_woken && !self.holder.pace.has_failed() && self.is_at_bound() {
            self.holder.pace.now();
        }
    }

    /// Returns true if the lease has reached its bound. If not, the call that found no free slot was only
    /// waiting for the clock.
    fn is_at_bound(&self) -> bool {
        let space = &self.shared.terms.space;
        let live = self.held.as_ref().filter(|holding| holding.is_live);
        live.is_some_and(|holding| {
            ms_until(space.start_ms(holding.held.reserved_until.saturating_sub(1))).is_zero()
        })
    }

    /// Returns the time until the next request is due, the node can be used, or the bound is reached,
    /// whichever comes first.
    fn until_next(&self) -> Duration {
        let next = self.holder.pace.next().saturating_duration_since(Instant::now());
        let space = &self.shared.terms.space;
        match &self.held {
            Some(Holding { held, is_live: false }) => next.min(ms_until(space.start_ms(held.start))),
            Some(Holding { held, is_live: true }) if !self.is_lost => {
                next.min(ms_until(space.start_ms(held.reserved_until)).max(Duration::from_millis(1)))
            }
            _ => next,
        }
    }

    /// Stops issuing IDs, and releases the node.
    async fn give_back(&mut self) {
        let issued_until = self.lease.end();
        let held = self.held.take().map(|holding| holding.held);
        self.holder.give_back(held, Some(issued_until)).await;
    }

    /// Returns the error for a leased node whose first tick has not begun yet.
    fn not_begun(&self) -> Error {
        let first = self.held.as_ref().map_or(0, |holding| holding.held.start);
        let in_ms = ms_until(self.shared.terms.space.start_ms(first)).as_millis();
        let text = format!(
            "no node of {} can be used yet: the first one can in {in_ms} ms, when the time of its last holder is over",
            self.shared.name
        );
        Error::from_outside(ErrorCode::LeaseUnavailable, &text)
    }
}

/// Returns the time from now until `unix_ms`, according to the local clock.
fn ms_until(unix_ms: u64) -> Duration {
    let now_ms = u64::try_from(Clocks.wall_ms()).unwrap_or(0);
    Duration::from_millis(unix_ms.saturating_sub(now_ms))
}
