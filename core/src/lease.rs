//! A leased node. Like the time, it is supplied from outside.
//!
//! A lease uses one cursor for all the nodes it holds in succession, so that IDs keep increasing. Although
//! the hot path takes no lock, the node, cursor and limit appear to change together, because both sides
//! follow a fixed order:
//!
//! - [`Lease::end`] stores 0 in the node's limit and then advances the cursor. A call that loads the cursor
//!   afterwards sees the 0, and a call that loaded it earlier fails to advance it. The cursor's old value is
//!   the last slot issued.
//! - [`Lease::shorten`] lowers the limit and then advances the cursor by one slot, for the same reason.
//! - [`Lease::hold`] advances the cursor to where the next node begins and then sets that node's limit, in a
//!   separate word.
//! - The hot path loads the cursor, the limit and the node, in that order, and then advances the cursor. A
//!   Snowflake stores the new node (`permit_by_lease`) before it follows that node's limit, so the node it
//!   loads matches the limit.

use core::fmt;
use core::panic::{RefUnwindSafe, UnwindSafe};

#[cfg(loom)]
use loom::sync::Mutex;
use portable_atomic::{AtomicBool, AtomicU64, Ordering};
use std::boxed::Box;
use std::string::String;
#[cfg(not(loom))]
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::cursor::Cursor;
use crate::error::{Error, error};
use crate::layout::{Key, Layout, ones};
use crate::registry::{self, LeasedNode};
use crate::rule::{Rule, Tolerance};
use crate::system::Process;
use crate::word::Word;

/// The owner of a lease: it talks to the store on a separate thread and reports to the [`Lease`].
pub trait LeaseKeeper: Send + Sync + UnwindSafe + RefUnwindSafe + fmt::Debug {
    /// A call has no slots left, so the lease must be renewed or another node found at once. This must return
    /// immediately.
    fn wake(&self);

    /// A Snowflake was built on the lease.
    fn joined(&self);

    /// A Snowflake on the lease was dropped or closed. After the last `close` the node may be given back,
    /// which can take as long as a request to the store.
    fn left(&self, is_closed: bool);

    /// The store's address, without secrets.
    fn store(&self) -> &str;

    /// While no lease is held, the ms until the next request to the store.
    fn retry_after_ms(&self) -> u64;

    /// Returns true if the store answered the last request.
    fn is_reachable(&self) -> bool;

    /// Returns true if the thread that talks to the store has panicked, so nothing renews the lease any more.
    fn has_panicked(&self) -> bool {
        false
    }
}

/// Distinguishes the process that created this value from its children.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct ThisProcess(&'static Process);

impl ThisProcess {
    /// Returns the current process.
    pub fn now() -> Self {
        Self(Process::current())
    }

    /// Returns true in the process that created this value, and false in its children.
    pub fn is_alive(self) -> bool {
        self.0.is_alive()
    }
}

/// A lease for a [`Snowflake`](crate::Snowflake): it supplies nodes from outside, each with the tick at which
/// it begins and a bound that advances. A lease lives as long as the process.
#[doc(hidden)]
#[derive(Debug)]
pub struct Lease {
    cursor: Cursor,
    layout: Layout,
    tolerance: Tolerance,
    made_in: &'static Process,
    /// The current node, or the last one. It changes only under the lock, but is read without it in a child process,
    /// where the lock may never be released.
    node: AtomicU64,
    present: Mutex<Option<Present>>,
    losses: AtomicU64,
    keeper: Box<dyn LeaseKeeper>,
}

/// The value of `Lease::node` until the lease gets its first node.
const NO_NODE: u64 = u64::MAX;

/// The state of the lease's current node, or of its last one.
#[derive(Debug, Clone, Copy)]
struct Present {
    limit: &'static AtomicU64,
    claim: &'static LeasedNode,
    /// The first tick in which nothing may be issued, or `None` after [`Lease::end`].
    bound: Option<u64>,
}

impl Lease {
    /// Creates a lease that has no node yet.
    pub(crate) fn new(layout: &Layout, tolerance: Tolerance, keeper: Box<dyn LeaseKeeper>) -> &'static Self {
        Box::leak(Box::new(Self {
            cursor: Cursor::new(0),
            layout: *layout,
            tolerance,
            made_in: Process::current(),
            node: AtomicU64::new(NO_NODE),
            present: Mutex::new(None),
            losses: AtomicU64::new(0),
            keeper,
        }))
    }

    /// Returns true if this process uses the node some other way: without a lease, or with a different lease.
    /// A node that this lease holds or has lost does not count, because this lease may get it again.
    pub fn is_used(&self, node: u64) -> bool {
        registry::is_used(&Key::of(&self.layout, node), self.address())
    }

    /// The layout of the lease.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Switches to a node: IDs are issued from the start of `first_tick` up to, but not including, `bound`.
    /// For the previous node, [`end`](Self::end) must have been called. Returns `false` if this process uses
    /// the node some other way.
    pub fn hold(&self, node: u64, first_tick: u64, bound: u64) -> bool {
        let Some(claim) = registry::lease(&Key::of(&self.layout, node), self.address()) else { return false };
        let Some(limit) = self.made_in.new_limit() else { return false };
        let bits = self.layout.sequence_bits();
        let before = slot(first_tick, bits).map_or(u64::MAX, |first| first.saturating_sub(1));
        let mut present = self.lock();
        self.node.store(node, Ordering::Relaxed);
        *present = Some(Present { limit, claim, bound: Some(bound) });
        let last = self.cursor.slot.fetch_max(before, Ordering::AcqRel).max(before);
        // The node begins at the sequence number of a fresh tick.
        self.cursor.first.store(last, Ordering::Release);
        limit.store(self.last_before(bound), Ordering::Release);
        true
    }

    /// Moves the bound forward.
    pub fn extend(&self, bound: u64) {
        let mut present = self.lock();
        if let Some(Present { limit, bound: Some(before), .. }) = present.as_mut() {
            *before = bound.max(*before);
            limit.fetch_max(self.last_before(bound), Ordering::AcqRel);
        }
    }

    /// Moves the bound back to the tick at which another process begins to use the node.
    pub fn shorten(&self, bound: u64) {
        let mut present = self.lock();
        let is_later = |before: u64| bound < before;
        let Some(present) = present.as_mut().filter(|present| present.bound.is_some_and(is_later)) else {
            return;
        };
        present.bound = Some(bound);
        present.limit.fetch_min(self.last_before(bound), Ordering::AcqRel);
        // Moves the cursor to another slot, so that a call that saw the old limit and has not advanced the
        // cursor yet fails to advance it.
        let past = |last: u64| last.checked_add(1);
        let last = self.cursor.slot.fetch_update(Ordering::AcqRel, Ordering::Acquire, past);
        if let Some(last) = last.ok().filter(|last| self.cursor.began_at(*last)) {
            // No slot has been taken yet.
            self.cursor.first.store(last + 1, Ordering::Release);
        }
    }

    /// Stops issuing IDs with the current node, and returns the tick after the last one in which the node was
    /// used.
    pub fn end(&self) -> u64 {
        let mut present = self.lock();
        let bits = self.layout.sequence_bits();
        if let Some(present) = present.as_mut().filter(|present| present.bound.is_some()) {
            present.limit.store(0, Ordering::Release);
            present.bound = None;
            // Always moves the cursor to another slot, so that a call that has not advanced the cursor yet
            // fails to advance it.
            let past = |last: u64| Some(last.saturating_add(1) | ones(bits));
            let last = self.cursor.slot.fetch_update(Ordering::AcqRel, Ordering::Acquire, past);
            present.claim.free(self.address());
            let last = last.unwrap_or(u64::MAX);
            return if self.cursor.began_at(last) { 0 } else { (last >> bits).saturating_add(1) };
        }
        0
    }

    /// The current node, or the last one.
    pub fn node(&self) -> Option<u64> {
        Some(self.node.load(Ordering::Relaxed)).filter(|&node| node != NO_NODE)
    }

    /// Counts a lost lease: one that expired, or whose node another process has.
    pub fn count_loss(&self) {
        self.losses.fetch_add(1, Ordering::Relaxed);
    }

    /// The owner of the lease.
    pub fn keeper(&self) -> &dyn LeaseKeeper {
        &*self.keeper
    }

    /// Returns true in the process that created the lease, and false in its children.
    pub fn is_alive(&self) -> bool {
        self.made_in.is_alive()
    }

    /// Returns the last slot of the tick before a bound.
    fn last_before(&self, bound: u64) -> u64 {
        let last = ones(self.layout.slot_bits());
        slot(bound, self.layout.sequence_bits()).map_or(last, |slot| slot.saturating_sub(1).min(last))
    }

    fn lock(&self) -> impl core::ops::DerefMut<Target = Option<Present>> + '_ {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }
}

/// Returns the first slot of a tick, or `None` if it does not fit.
fn slot(tick: u64, sequence_bits: u32) -> Option<u64> {
    tick.checked_mul(1_u64.checked_shl(sequence_bits)?)
}

/// A Snowflake's share of a lease, until the Snowflake is closed or dropped.
#[derive(Debug)]
pub(crate) struct LeaseUse {
    lease: &'static Lease,
    is_over: AtomicBool,
}

impl LeaseUse {
    /// Joins a lease. The tolerance must be the same for all Snowflakes on it.
    pub(crate) fn new(lease: &'static Lease, tolerance: Tolerance) -> Result<Self, Error> {
        tolerance.check_same(lease.tolerance)?;
        lease.keeper.joined();
        Ok(Self { lease, is_over: AtomicBool::new(false) })
    }

    pub(crate) fn cursor(&self) -> &'static Cursor {
        &self.lease.cursor
    }

    /// Passes the node and the word that holds its limit to `follow`. Nothing can change them until `follow`
    /// has stored them.
    pub(crate) fn look(&self, follow: impl FnOnce(u64, &'static AtomicU64)) {
        if let Some(Present { limit, .. }) = *self.lease.lock() {
            follow(self.lease.node.load(Ordering::Relaxed), limit);
        }
    }

    /// Returns true if the lease has no node now.
    pub(crate) fn has_ended(&self) -> bool {
        self.lease.lock().is_none_or(|present| present.bound.is_none())
    }

    /// The current node, or the last one.
    pub(crate) fn node(&self) -> Option<u64> {
        self.lease.node()
    }

    pub(crate) fn wake(&self) {
        self.lease.keeper.wake();
    }

    pub(crate) fn losses(&self) -> u64 {
        self.lease.losses.load(Ordering::Relaxed)
    }

    /// Returns true if nothing renews the lease any more.
    pub(crate) fn has_panicked(&self) -> bool {
        self.lease.keeper.has_panicked()
    }

    /// The error for a call after the lease has expired.
    pub(crate) fn lost(&self) -> Error {
        let keeper = &self.lease.keeper;
        if keeper.has_panicked() {
            return error!(
                LeaseLost,
                "the lease on node % is over: the task that renews it at % panicked; create a new Snowflake",
                Number(self.node().unwrap_or_default()),
                Word(Word::address(keeper.store())),
            );
        }
        // `retry_after_ms` reads the last value.
        error!(
            LeaseLost,
            "the lease on node % has expired, and % has not renewed it; the next attempt is in % ms",
            Number(self.node().unwrap_or_default()),
            Word(Word::address(keeper.store())),
            Number(keeper.retry_after_ms())
        )
    }

    /// Describes the lease, for [`Snowflake::lease`](crate::Snowflake::lease).
    pub(crate) fn info(&self, rule: &Rule, now_ms: i64) -> LeaseInfo {
        let (present, node) = {
            let present = self.lease.lock();
            (*present, self.node().unwrap_or_default())
        };
        let keeper = &self.lease.keeper;
        let bound = present.and_then(|present| present.bound);
        let bound_ms = bound.map_or(0, |bound| rule.start_ms(bound));
        let left_ms = crate::rule::ms_until(now_ms, bound_ms);
        let state = match (left_ms, keeper.is_reachable()) {
            _ if self.is_over.load(Ordering::Acquire) => LeaseState::Closed,
            (0, _) => LeaseState::Lost,
            (_, false) => LeaseState::Unreachable,
            _ => LeaseState::Held,
        };
        LeaseInfo { node, bound_ms, left_ms, store: keeper.store().into(), state }
    }

    pub(crate) fn close(&self) {
        if let Some(give_back) = self.leave() {
            give_back.run();
        }
    }

    pub(crate) fn leave(&self) -> Option<GiveBack> {
        // The parent process keeps its leases.
        let is_first = !self.is_over.swap(true, Ordering::AcqRel) && self.lease.is_alive();
        // `GiveBack` is created only in this case, because dropping one also notifies the keeper.
        is_first.then(|| GiveBack(Some(self.lease)))
    }
}

impl Drop for LeaseUse {
    fn drop(&mut self) {
        drop(self.leave());
    }
}

/// The pending return of a leased node, from [`Snowflake::close_later`](crate::Snowflake::close_later). Call
/// [`run`](Self::run) on a thread that may wait for the store. If this is dropped instead, the lease lasts
/// until its TTL expires.
#[doc(hidden)]
#[derive(Debug)]
pub struct GiveBack(Option<&'static Lease>);

impl GiveBack {
    /// Gives the node back, unless another Snowflake is still using it.
    pub fn run(mut self) {
        if let Some(lease) = self.0.take() {
            lease.keeper.left(true);
        }
    }
}

impl Drop for GiveBack {
    fn drop(&mut self) {
        if let Some(lease) = self.0.take() {
            lease.keeper.left(false);
        }
    }
}

/// A Snowflake's lease, from [`Snowflake::lease`](crate::Snowflake::lease).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseInfo {
    /// The lease's current node, or its last one.
    pub node: u64,
    /// The time, in Unix ms, until which IDs may be issued without an answer from the store; 0 if the lease
    /// has no node now.
    pub bound_ms: u64,
    /// The time left until `bound_ms`, in ms.
    pub left_ms: u64,
    /// The store's address, without secrets.
    pub store: String,
    /// The state of the lease.
    pub state: LeaseState,
}

/// The state of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaseState {
    /// The lease has a node, and the store answers.
    Held,
    /// The lease has a node, but the store did not answer the last request. IDs are issued until the bound.
    Unreachable,
    /// The lease expired: no IDs are issued until the store has renewed it or assigned another node.
    Lost,
    /// This Snowflake was closed.
    Closed,
}

impl LeaseState {
    /// `held`, `unreachable`, `lost` or `closed`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Unreachable => "unreachable",
            Self::Lost => "lost",
            Self::Closed => "closed",
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use crate::{BuiltinClock, Snowflake, TimeSource};
    use loom::thread;
    use std::sync::Arc;

    const TICK: u64 = 1_000;

    /// A clock that stands still.
    struct Stands;

    impl TimeSource for Stands {
        fn wall_ns(&self) -> i64 {
            1_000_000_000
        }

        fn monotonic_ns(&self) -> i64 {
            0
        }
    }

    #[derive(Debug)]
    struct NoStore;

    impl LeaseKeeper for NoStore {
        fn wake(&self) {}

        fn joined(&self) {}

        fn left(&self, _: bool) {}

        fn store(&self) -> &'static str {
            ""
        }

        fn retry_after_ms(&self) -> u64 {
            0
        }

        fn is_reachable(&self) -> bool {
            true
        }
    }

    #[test]
    fn nothing_is_issued_past_a_bound_that_has_moved_back() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let options = Snowflake::builder().layout("timestamp:40|worker:4|sequence:8@0/1ms");
            let options = options.lease("redis://host").max_wait_ms(0);
            let lease = options.new_lease(Box::new(NoStore)).unwrap();
            assert!(lease.hold(1, TICK - 10, TICK + 1000));
            let ids: Snowflake<BuiltinClock<Stands>> =
                options.build_on_lease(lease, Stands, |clock| clock).unwrap();
            // IDs after this one are taken on the hot path.
            ids.try_next_id().unwrap();
            let ids = Arc::new(ids);
            let theirs = Arc::clone(&ids);
            let taking = thread::spawn(move || [theirs.try_next_id(), theirs.try_next_id()]);
            lease.shorten(TICK);
            let last = lease.cursor.load();
            for id in taking.join().unwrap().into_iter().flatten() {
                let id = ids.decode(id).unwrap();
                assert!(
                    id.ticks() << 8 | id.sequence() <= last,
                    "an ID was taken after the bound had moved back"
                );
            }
            assert!(ids.try_next_id().is_err());
        });
    }
}
