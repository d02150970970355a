//! A node by lease: given from outside, as a clock is.
//!
//! A lease has one cursor for all the nodes that it has one after the other, so that IDs go on growing. Node, cursor and
//! limit change as one, without a lock on the path of an ID, because of the order in which each side goes:
//!
//! - [`Lease::end`] stores 0 to the limit of the node, and then moves the cursor on: a call that loads the cursor after that
//!   finds the 0, and a call that loaded it before fails to move it. What it was before is the last that was issued.
//! - [`Lease::shorten`] lowers the limit, and then moves the cursor on by a slot, for the same reason.
//! - [`Lease::hold`] moves the cursor to where the next node begins, and then gives it a limit in a word of its own.
//! - An ID's path loads the cursor, then the limit, then the node, and then moves the cursor. A Snowflake learns of another
//!   node (`permit_by_lease`) before it follows that one's limit, so the node it loads is the limit's.

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

/// What stands behind a lease: it asks a store, on a thread of its own, and tells the [`Lease`].
pub trait LeaseKeeper: Send + Sync + UnwindSafe + RefUnwindSafe + fmt::Debug {
    /// A call has no slot left: renew the lease, or find another node, now. It must return at once.
    fn wake(&self);

    /// A Snowflake was made on the lease.
    fn joined(&self);

    /// A Snowflake on the lease was dropped, or closed. After the last `close` the node may be given back, which may take as
    /// long as the store does.
    fn left(&self, is_closed: bool);

    /// The store's address, without secrets.
    fn store(&self) -> &str;

    /// In how many ms the store is asked again, where there is no lease now.
    fn retry_after_ms(&self) -> u64;

    /// Whether the store answered when it was last asked.
    fn is_reachable(&self) -> bool;

    /// Whether what asks the store has panicked: nothing renews the lease any more.
    fn has_panicked(&self) -> bool {
        false
    }
}

/// Tells the process that made it from its children.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct ThisProcess(&'static Process);

impl ThisProcess {
    /// The present one.
    pub fn now() -> Self {
        Self(Process::current())
    }

    /// Whether this still is it.
    pub fn is_alive(self) -> bool {
        self.0.is_alive()
    }
}

/// A lease that a [`Snowflake`](crate::Snowflake) issues by: nodes that come from outside, each with a tick at which it
/// begins and a bound that moves on. It lives as long as the process.
#[doc(hidden)]
#[derive(Debug)]
pub struct Lease {
    cursor: Cursor,
    layout: Layout,
    tolerance: Tolerance,
    made_in: &'static Process,
    present: Mutex<Option<Present>>,
    losses: AtomicU64,
    keeper: Box<dyn LeaseKeeper>,
}

/// The node that it has, or had last.
#[derive(Debug, Clone, Copy)]
struct Present {
    node: u64,
    limit: &'static AtomicU64,
    claim: &'static LeasedNode,
    /// The tick that is not issued in any more; `None` once it was ended.
    bound: Option<u64>,
}

impl Lease {
    /// A lease without a node yet.
    pub(crate) fn new(layout: &Layout, tolerance: Tolerance, keeper: Box<dyn LeaseKeeper>) -> &'static Self {
        Box::leak(Box::new(Self {
            cursor: Cursor::new(0),
            layout: *layout,
            tolerance,
            made_in: Process::current(),
            present: Mutex::new(None),
            losses: AtomicU64::new(0),
            keeper,
        }))
    }

    /// Whether this process uses a node in another way: without a lease, or by another one. The node that this lease has
    /// itself, or has lost, it may have again.
    pub fn is_used(&self, node: u64) -> bool {
        registry::is_used(&Key::of(&self.layout, node), self.address())
    }

    /// The layout that it was made for.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Has a node from now on: it issues from the start of `first_tick` on, up to and without `bound`. The one before was
    /// ended. `false` if this process uses the node in another way.
    pub fn hold(&self, node: u64, first_tick: u64, bound: u64) -> bool {
        let Some(claim) = registry::lease(&Key::of(&self.layout, node), self.address()) else { return false };
        let Some(limit) = self.made_in.new_limit() else { return false };
        let bits = self.layout.sequence_bits();
        let before = slot(first_tick, bits).map_or(u64::MAX, |first| first.saturating_sub(1));
        let mut present = self.lock();
        *present = Some(Present { node, limit, claim, bound: Some(bound) });
        let last = self.cursor.slot.fetch_max(before, Ordering::AcqRel).max(before);
        // It begins as a fresh tick does.
        self.cursor.first.store(last, Ordering::Release);
        limit.store(self.last_before(bound), Ordering::Release);
        true
    }

    /// Moves the bound on.
    pub fn extend(&self, bound: u64) {
        let mut present = self.lock();
        if let Some(Present { limit, bound: Some(before), .. }) = present.as_mut() {
            *before = bound.max(*before);
            limit.fetch_max(self.last_before(bound), Ordering::AcqRel);
        }
    }

    /// Moves the bound back: others begin at this tick.
    pub fn shorten(&self, bound: u64) {
        let mut present = self.lock();
        let is_later = |before: u64| bound < before;
        let Some(present) = present.as_mut().filter(|present| present.bound.is_some_and(is_later)) else {
            return;
        };
        present.bound = Some(bound);
        present.limit.fetch_min(self.last_before(bound), Ordering::AcqRel);
        // To another slot, so that every call which has looked at the old limit and not moved the cursor yet fails to.
        let past = |last: u64| last.checked_add(1);
        let last = self.cursor.slot.fetch_update(Ordering::AcqRel, Ordering::Acquire, past);
        if let Some(last) = last.ok().filter(|last| self.cursor.began_at(*last)) {
            // Still nothing was taken.
            self.cursor.first.store(last + 1, Ordering::Release);
        }
    }

    /// Issues nothing more with the node that it has, and returns the tick after the last in which it has issued.
    pub fn end(&self) -> u64 {
        let mut present = self.lock();
        let bits = self.layout.sequence_bits();
        if let Some(present) = present.as_mut().filter(|present| present.bound.is_some()) {
            present.limit.store(0, Ordering::Release);
            present.bound = None;
            // Always to another slot, so that every call which has not moved the cursor yet fails to.
            let past = |last: u64| Some(last.saturating_add(1) | ones(bits));
            let last = self.cursor.slot.fetch_update(Ordering::AcqRel, Ordering::Acquire, past);
            present.claim.free(self.address());
            let last = last.unwrap_or(u64::MAX);
            return if self.cursor.began_at(last) { 0 } else { (last >> bits).saturating_add(1) };
        }
        0
    }

    /// The present node, or the last.
    pub fn node(&self) -> Option<u64> {
        self.lock().map(|present| present.node)
    }

    /// Counts a lease that was lost: it ran out, or another process has the node.
    pub fn count_loss(&self) {
        self.losses.fetch_add(1, Ordering::Relaxed);
    }

    /// What stands behind it.
    pub fn keeper(&self) -> &dyn LeaseKeeper {
        &*self.keeper
    }

    /// Whether this is the process that made it, and not a child.
    pub fn is_alive(&self) -> bool {
        self.made_in.is_alive()
    }

    /// The last slot of the tick before a bound.
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

/// The first slot of a tick, if there is one.
fn slot(tick: u64, sequence_bits: u32) -> Option<u64> {
    tick.checked_mul(1_u64.checked_shl(sequence_bits)?)
}

/// A Snowflake's part of a lease, until it is closed or dropped.
#[derive(Debug)]
pub(crate) struct LeaseUse {
    lease: &'static Lease,
    is_over: AtomicBool,
}

impl LeaseUse {
    /// For a Snowflake with a tolerance, which must be that of the others on this lease.
    pub(crate) fn new(lease: &'static Lease, tolerance: Tolerance) -> Result<Self, Error> {
        tolerance.check_same(lease.tolerance)?;
        lease.keeper.joined();
        Ok(Self { lease, is_over: AtomicBool::new(false) })
    }

    pub(crate) fn cursor(&self) -> &'static Cursor {
        &self.lease.cursor
    }

    /// Shows the node and the word of its limit, and lets nobody else change what they are stored to.
    pub(crate) fn look(&self, follow: impl FnOnce(u64, &'static AtomicU64)) {
        if let Some(Present { node, limit, .. }) = *self.lease.lock() {
            follow(node, limit);
        }
    }

    /// Whether it has no node now.
    pub(crate) fn has_ended(&self) -> bool {
        self.lease.lock().is_none_or(|present| present.bound.is_none())
    }

    /// The present node, or the last. `None` in a child, where the lock may be held forever.
    pub(crate) fn node(&self) -> Option<u64> {
        self.lease.is_alive().then(|| self.lease.node())?
    }

    pub(crate) fn wake(&self) {
        self.lease.keeper.wake();
    }

    pub(crate) fn losses(&self) -> u64 {
        self.lease.losses.load(Ordering::Relaxed)
    }

    /// Whether nothing renews it any more.
    pub(crate) fn has_panicked(&self) -> bool {
        self.lease.keeper.has_panicked()
    }

    /// The error of a call at the end of the lease.
    pub(crate) fn lost(&self) -> Error {
        let keeper = &self.lease.keeper;
        if keeper.has_panicked() {
            return error!(
                LeaseLost,
                "the lease on node % is over: the task that renews it at % panicked; create a new Snowflake",
                Number(self.node().unwrap_or_default()),
                Word(Word::new(keeper.store().as_bytes())),
            );
        }
        // Its `retry_after_ms` is the last value.
        error!(
            LeaseLost,
            "the lease on node % has expired, and % has not renewed it; the next attempt is in % ms",
            Number(self.node().unwrap_or_default()),
            Word(Word::new(keeper.store().as_bytes())),
            Number(keeper.retry_after_ms())
        )
    }

    /// What a program may want to know of it.
    pub(crate) fn info(&self, rule: &Rule, now_ms: i64) -> LeaseInfo {
        let present = *self.lease.lock();
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
        let node = present.map_or(0, |present| present.node);
        LeaseInfo { node, bound_ms, left_ms, store: keeper.store().into(), state }
    }

    pub(crate) fn close(&self) {
        if let Some(give_back) = self.leave() {
            give_back.run();
        }
    }

    pub(crate) fn leave(&self) -> Option<GiveBack> {
        // What the parent has leased stays with it.
        let is_first = !self.is_over.swap(true, Ordering::AcqRel) && self.lease.is_alive();
        // Made only then: one that is dropped counts.
        is_first.then(|| GiveBack(Some(self.lease)))
    }
}

impl Drop for LeaseUse {
    fn drop(&mut self) {
        drop(self.leave());
    }
}

/// A leased node to give back, from [`Snowflake::close_later`](crate::Snowflake::close_later): for a thread that may wait as
/// long as the store takes. If it is dropped instead, the lease is kept for a TTL.
#[doc(hidden)]
#[derive(Debug)]
pub struct GiveBack(Option<&'static Lease>);

impl GiveBack {
    /// Gives it back, if nobody else uses it.
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
    /// The node that it has, or had last.
    pub node: u64,
    /// Up to when it may issue without hearing from the store, in Unix ms; 0 if it has no node now.
    pub bound_ms: u64,
    /// How long that is from now, in ms.
    pub left_ms: u64,
    /// The store's address, without secrets.
    pub store: String,
    /// How it stands.
    pub state: LeaseState,
}

/// How a lease stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaseState {
    /// It has a node, and the store answers.
    Held,
    /// It has a node, and the store did not answer when it was last asked. Issuing goes on up to the bound.
    Unreachable,
    /// It ran out: nothing is issued until the store has renewed it or has given another node.
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

    /// It does not move.
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
            // The next ones are taken as most are.
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
