//! What the keeper does for one lease.

use core::sync::atomic::Ordering;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

use polyflake::{Error, ErrorCode, Lease};
use tokio::time::{sleep, timeout};

use super::pace::Pace;
use super::{Keeper, Shared, Stage, stores};
use crate::event::{Event, Kind, tell};
use crate::lease::{
    Acquisition, ClockDiffers, Held, Refusal, Renewed, Time as _, Why, acquire, release, renew,
};
use crate::local::{Clocks, random};
use crate::store::StoreError;

/// Why a lease is lost whose bound has come.
const RAN_OUT: &str = "it ran out before the store renewed it";

/// A lease and its store.
pub(super) struct Task {
    keeper: &'static Keeper,
    shared: Arc<Shared>,
    lease: &'static Lease,
    store: stores::Shared,
    acquisition: Acquisition,
    held: Option<Holding>,
    pace: Pace,
    /// Whether calls fail, which was counted.
    is_lost: bool,
    had_node: bool,
    last_warning: Option<Kind>,
    /// Why the last attempt failed, if it did.
    refusal: Option<Refusal>,
}

/// A node of this process.
struct Holding {
    held: Held,
    /// Whether IDs are issued with it: its first tick has come.
    is_live: bool,
}

impl Task {
    pub(super) fn new(
        keeper: &'static Keeper,
        shared: Arc<Shared>,
        lease: &'static Lease,
        store: stores::Shared,
    ) -> Self {
        let ttl_ms = shared.terms.ttl_ms;
        Self {
            keeper,
            shared,
            lease,
            store,
            acquisition: Acquisition::new(None, &mut random),
            held: None,
            pace: Pace::new(ttl_ms),
            is_lost: false,
            had_node: false,
            last_warning: None,
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
        let lacks = "leases, which is noticed, and nobody can lease a node for a while then";
        stores::tell_of_replicas(&self.shared.address, &self.store, lacks).await;
        while !(self.shared.users.are_gone() && self.keeper.forget(&self.shared, false)) {
            self.pause().await;
            self.tend().await;
        }
        self.give_back().await;
        self.shared.enter(Stage::Over);
    }

    /// Gets the first node, within `wait`.
    async fn open(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + Duration::from_millis(self.shared.address.wait_ms);
        loop {
            self.tend().await;
            if self.held.as_ref().is_some_and(|holding| holding.is_live) {
                return Ok(());
            }
            if let Some(refusal) = self.refusal.as_ref().filter(|refusal| is_final(refusal)) {
                return Err(self.error_of(refusal));
            }
            // A first try that fails is not the last, even if it took all the time there is.
            let now = Instant::now();
            if now >= deadline || self.shared.users.are_gone() {
                return Err(match &self.refusal {
                    Some(refusal) => self.error_of(refusal),
                    None => self.not_begun(),
                });
            }
            sleep(self.until_next().min(deadline - now)).await;
        }
    }

    /// Does what is due: asks the store, and changes nodes.
    async fn tend(&mut self) {
        if self.pace.is_due() {
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
        match asked {
            Ok(()) => self.answered(),
            Err(refusal) => {
                self.refused(&refusal);
                self.refusal = Some(refusal);
            }
        }
    }

    async fn acquire(&mut self) -> Result<(), Refusal> {
        let (terms, lease) = (&self.shared.terms, self.lease);
        let is_used = |node| lease.is_used(node);
        let acquisition = &mut self.acquisition;
        let attempt = async {
            let mut store = self.store.lock().await;
            acquire(&mut **store, terms, acquisition, &Clocks, &mut random, &is_used).await
        };
        let held = stores::limited(&self.shared.address, &self.store, attempt).await?;
        if let Some(lead_ms) = held.smaller_lead_ms(terms) {
            let what = format!(
                "ttl and max_ahead_ms are {} ms together, but the leases of this layout in {} count with {lead_ms} ms, and so \
                 does this one: give no more than that, or raise it for all with `polyflake leases --fence` on this address",
                terms.lead_ms, self.shared.name
            );
            self.tell(Kind::LeadDiffers, Some(held.node), what);
        }
        self.held = Some(Holding { held, is_live: false });
        Ok(())
    }

    async fn renew(&mut self, mut holding: Holding) -> Result<(), Refusal> {
        let terms = &self.shared.terms;
        let (node, bound) = (holding.held.node, terms.space.start_ms(holding.held.reserved_until));
        let attempt = async {
            let mut store = self.store.lock().await;
            renew(&mut **store, terms, &mut holding.held, &Clocks, &mut random).await
        };
        let renewed = stores::limited(&self.shared.address, &self.store, attempt).await;
        if holding.is_live {
            if ms_until(bound).is_zero() {
                // While the store was asked: calls have failed since.
                self.lose(RAN_OUT, node);
            }
            // It may have come down, whatever became of the renewal.
            self.lease.extend(holding.held.reserved_until);
            self.lease.shorten(holding.held.reserved_until);
        }
        match renewed {
            Ok(Renewed::Extended { clock }) => {
                self.held = Some(holding);
                if let Some(clock) = clock {
                    self.warn(Kind::ClockDiffers, &self.clock_differs(&clock));
                }
                Ok(())
            }
            Ok(Renewed::Lost) => {
                if holding.is_live {
                    self.lose(
                        "another process has taken it, or the store has lost its record",
                        holding.held.node,
                    );
                }
                let known = Some(holding.held.known);
                self.acquisition = Acquisition::new(known, &mut random);
                self.acquire().await
            }
            Err(refusal) => {
                self.held = Some(holding);
                Err(refusal)
            }
        }
    }

    /// Issues with the node that it has, once its first tick has come.
    fn begin(&mut self) {
        let Some(holding) = self.held.as_mut().filter(|holding| !holding.is_live) else { return };
        let Held { node, start, reserved_until, .. } = holding.held;
        if !ms_until(self.shared.terms.space.start_ms(start)).is_zero() {
            return;
        }
        self.lease.end();
        if !self.lease.hold(node, start, reserved_until) {
            // Somebody made a Snowflake with this very node meanwhile: another one, then. This one expires.
            self.held = None;
            self.pace.now();
            return;
        }
        holding.is_live = true;
        let kind = if self.had_node { Kind::Replaced } else { Kind::Acquired };
        let ttl_ms = self.shared.terms.ttl_ms;
        (self.is_lost, self.had_node) = (false, true);
        self.tell(
            kind,
            Some(node),
            format!("node {node} is leased from {}, for {ttl_ms} ms at a time", self.shared.name),
        );
    }

    /// Counts a lease whose bound has come.
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
            self.tell(
                Kind::Lost,
                Some(node),
                format!("the lease of node {node} from {} is lost: {why}", self.shared.name),
            );
        }
    }

    /// The store answered, whatever it said.
    fn reached(&self) {
        if !self.shared.is_reachable.swap(true, Ordering::Relaxed) {
            self.tell(Kind::StoreReachable, self.node(), format!("{} answers again", self.shared.name));
        }
    }

    fn answered(&mut self) {
        self.reached();
        (self.refusal, self.last_warning) = (None, None);
        let terms = &self.shared.terms;
        let ttl_ms = self.held.as_ref().map_or(terms.ttl_ms, |holding| holding.held.ttl_ms(terms));
        self.pace.renewed(ttl_ms);
    }

    fn refused(&mut self, refusal: &Refusal) {
        if matches!(refusal, Refusal::Store(_) | Refusal::Unreadable(_)) {
            if self.shared.is_reachable.swap(false, Ordering::Relaxed) {
                self.warn(Kind::StoreUnreachable, &self.text_of(refusal));
            }
        } else {
            self.reached();
        }
        match refusal {
            Refusal::Fenced { in_ms, .. } => {
                self.warn(Kind::Waiting, &self.text_of(refusal));
                self.pace.failed_for(Duration::from_millis(in_ms.saturating_add(1)));
            }
            Refusal::NoneFree { first: Some(first), .. } => {
                self.pace.failed_for(Duration::from_millis(first.in_ms.saturating_add(1)));
            }
            Refusal::ClockDiffers(clock) => {
                self.warn(Kind::ClockDiffers, &self.clock_differs(clock));
                self.pace.failed();
            }
            Refusal::Contended => self.pace.contended(),
            _ => self.pace.failed(),
        }
    }

    /// Until there is something to do, or a call finds no slot.
    async fn pause(&mut self) {
        let pause = self
            .shared
            .users
            .kept_for()
            .map_or_else(|| self.until_next(), |kept| kept.min(self.until_next()));
        let retry_after_ms = u64::try_from(self.until_next().as_millis()).unwrap_or(u64::MAX);
        self.shared.retry_after_ms.store(retry_after_ms, Ordering::Relaxed);
        let is_woken = timeout(pause, self.shared.wake.notified()).await.is_ok();
        // After an attempt that failed, a call does not make the next come earlier.
        if is_woken && !self.pace.has_failed() && self.is_at_bound() {
            self.pace.now();
        }
    }

    /// A call that found no slot may have waited for the clock meanwhile.
    fn is_at_bound(&self) -> bool {
        let space = &self.shared.terms.space;
        let live = self.held.as_ref().filter(|holding| holding.is_live);
        live.is_some_and(|holding| {
            ms_until(space.start_ms(holding.held.reserved_until.saturating_sub(1))).is_zero()
        })
    }

    /// Until the store is asked, a node can be used or its bound comes.
    fn until_next(&self) -> Duration {
        let next = self.pace.next().saturating_duration_since(Instant::now());
        let space = &self.shared.terms.space;
        match &self.held {
            Some(Holding { held, is_live: false }) => next.min(ms_until(space.start_ms(held.start))),
            Some(Holding { held, is_live: true }) if !self.is_lost => {
                next.min(ms_until(space.start_ms(held.reserved_until)).max(Duration::from_millis(1)))
            }
            _ => next,
        }
    }

    /// Ends issuing, and gives back what it has.
    async fn give_back(&mut self) {
        let issued_until = self.lease.end();
        // A write of unknown outcome gave no lease: give it back, since another process may want the node.
        let held = self.held.take().map(|holding| holding.held).or_else(|| self.acquisition.unclear());
        let Some(held) = held else { return };
        let (node, name) = (held.node, &self.shared.name);
        let released = stores::until_answered(&self.shared.address, &self.store, async |store| {
            release(store, &self.shared.terms, &held, issued_until, &Clocks, &mut random).await
        });
        let Err(refusal) = released.await else {
            return self.tell(Kind::Released, Some(node), format!("node {node} is given back to {name}"));
        };
        let what = format!("node {node} is not given back, and is free when its lease ends: ");
        self.warn(Kind::StoreUnreachable, &(what + &self.text_of(&refusal)));
    }

    fn node(&self) -> Option<u64> {
        self.held.as_ref().map(|holding| holding.held.node)
    }

    fn warn(&mut self, kind: Kind, what: &str) {
        // Once, until the store answers.
        if self.last_warning.replace(kind) != Some(kind) {
            self.tell(kind, self.node(), what.into());
        }
    }

    fn tell(&self, kind: Kind, node: Option<u64>, message: String) {
        tell(&Event { kind, node, store: self.shared.name.clone(), message });
    }

    fn error_of(&self, refusal: &Refusal) -> Error {
        let code = match refusal {
            Refusal::DifferenceTooLarge { .. } => ErrorCode::InvalidOption,
            _ => ErrorCode::LeaseUnavailable,
        };
        Error::from_outside(code, &self.text_of(refusal))
    }

    fn text_of(&self, refusal: &Refusal) -> String {
        let name = &self.shared.name;
        match refusal {
            Refusal::Store(error) => stores::text_of(error),
            Refusal::Unreadable(why) => format!("the store cannot be used: {name}: {why}"),
            Refusal::NoneFree { nodes: 0, .. } => {
                "no node can be leased: none has the given fields and is in the address's `nodes`".into()
            }
            Refusal::NoneFree { nodes, first: Some(first) } => {
                let label: String = first.label.chars().take(100).collect();
                format!(
                    "no node is free: all {nodes} that may be leased from {name} are in use; node {} of `{label}` frees \
                     first, in {} ms unless it is renewed",
                    first.node, first.in_ms
                )
            }
            Refusal::NoneFree { nodes, first: None } => {
                format!("no node is free: this process uses all {nodes} that may be leased from {name}")
            }
            Refusal::Fenced { in_ms, why: Why::First } => format!(
                "{name} is new, or has lost all records of leases: nobody can lease a node for {in_ms} ms, in which earlier leases \
                 may go on. Where there were none, `polyflake leases --init` ends the wait"
            ),
            Refusal::Fenced { in_ms, why: Why::Loss } => format!(
                "{name} has lost records of leases: nobody can lease a node for {in_ms} ms, in which earlier leases may go on"
            ),
            Refusal::ClockDiffers(clock) => self.clock_differs(clock),
            Refusal::DifferenceTooLarge { difference_ms, of_space_ms } => format!(
                "clock_difference is {difference_ms} ms, but the leases of this layout in {name} count with {of_space_ms} ms: give \
                 no more than that, or raise it for all with `polyflake leases --fence` on this address"
            ),
            Refusal::Contended => format!("no node is free: other processes were faster each time at {name}"),
        }
    }

    fn clock_differs(&self, clock: &ClockDiffers) -> String {
        let ClockDiffers { store_ms, local_ms, by_ms } = clock;
        format!(
            "the clock of this machine is {by_ms} ms from that of {}, which is more than clock_difference: it is {local_ms} \
             here and {store_ms} there (Unix ms)",
            self.shared.name
        )
    }

    /// The error where a node is leased, but cannot be used yet.
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

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl stores::Failure for Refusal {
    fn is_the_stores(&self) -> bool {
        matches!(self, Self::Store(_))
    }

    fn is_temporary(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unreachable(_)) | Self::Contended)
    }
}

/// Whether waiting does not help.
fn is_final(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Store(StoreError::Refused(_))
            | Refusal::Unreadable(_)
            | Refusal::DifferenceTooLarge { .. }
            | Refusal::ClockDiffers(_)
            | Refusal::NoneFree { first: None, .. }
    )
}

/// From now on, by the local clock.
fn ms_until(unix_ms: u64) -> Duration {
    let now_ms = u64::try_from(Clocks.wall_ms()).unwrap_or(0);
    Duration::from_millis(unix_ms.saturating_sub(now_ms))
}
