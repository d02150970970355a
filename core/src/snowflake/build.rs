//! Builds a Snowflake from its options, and selects its clock and cursor.

#[cfg(loom)]
use loom::sync::atomic::AtomicU64;
#[cfg(not(loom))]
use portable_atomic::AtomicU64;

use crate::clock::Clock;
#[cfg(feature = "alloc")]
use crate::clock::{BuiltinClock, TimeSource};
use crate::cursor::Cursor;
use crate::error::Error;
use crate::layout::ones;
#[cfg(feature = "std")]
use crate::lease::{Lease, LeaseKeeper, LeaseUse};
use crate::limit::Limit;
use crate::options::{Options, Resolved};
use crate::rule::Rule;
use crate::snowflake::Snowflake;
use crate::system::{Process, StateFile};

impl Options {
    /// Builds a Snowflake on the caller's clock, with its own cursor or a state file's.
    ///
    /// # Errors
    ///
    /// `invalid_layout`, `unknown_layout`, `invalid_node` or `invalid_option`. With a state file, also the
    /// errors of `build`, and `clock_failed`.
    pub fn build_with_clock<C: Clock>(&self, clock: C) -> Result<Snowflake<C>, Error> {
        let resolved = self.resolve()?;
        resolved.refuse_lease()?;
        let rule = resolved.rule();
        // Must come before the clock is read, because reading it may fork.
        let made_in = Process::current();
        let file = state_file(&resolved, &rule, &clock)?;
        // A caller's clock may be at any tick, and no tick before it has been used up.
        let limit = if file.is_some() {
            Limit::not_started()
        } else {
            Limit::of(made_in.limit(resolved.layout.slot_bits()))
        };
        Ok(Snowflake::new(&resolved, rule, file.map(StateFile::cursor), file, limit, made_in, clock))
    }

    /// Builds a Snowflake on a built-in clock. It shares its cursor with the Snowflakes in this process that
    /// have the same epoch and tick, the same timestamp and sequence positions and widths, and the same node
    /// bits.
    ///
    /// A new cursor treats the tick in which it is created, and `max_ahead_ms` more, as used up, so that a
    /// process that restarts within a tick does not repeat any IDs. The first ID may therefore have to wait
    /// for the next tick.
    ///
    /// With a state file, this waits until no ID previously issued through the file can repeat. The wait is
    /// at most a second plus a tick if the file is new or was replaced, or after a reboot. Otherwise, there
    /// is no wait.
    ///
    /// # Errors
    ///
    /// - `invalid_layout`, `unknown_layout` or `invalid_node`.
    /// - `invalid_option`, including when `max_ahead_ms` or `max_backward_ms` differs from the value the
    ///   shared cursor was created with, or when that cursor is in another state file, or in none.
    /// - `forked` for a node that the parent used before a fork, without a state file.
    /// - `state_file` if the file cannot be opened or belongs to another layout or node.
    #[cfg(feature = "std")]
    pub fn build(&self) -> Result<Snowflake, Error> {
        self.build_on(crate::system::StdTime, |clock| clock)
    }

    /// Like `build`, but with the time source of a platform without `std`. `wrap` converts the clock to the
    /// caller's type, which may support other kinds of clocks too.
    ///
    /// # Errors
    ///
    /// The same as for `build`.
    #[cfg(feature = "alloc")]
    pub fn build_on<S: TimeSource, C: Clock>(
        &self,
        source: S,
        wrap: impl FnOnce(BuiltinClock<S>) -> C,
    ) -> Result<Snowflake<C>, Error> {
        let resolved = self.resolve()?;
        resolved.refuse_lease()?;
        let rule = resolved.rule();
        let made_in = Process::current();
        let clock = wrap(BuiltinClock::new(resolved.clock, resolved.tolerance.max_backward_ms, source));
        let file = state_file(&resolved, &rule, &clock)?;
        let cursor = match file {
            Some(file) => file.cursor(),
            None => crate::registry::process_cursor(&resolved.key(), resolved.tolerance, &rule, &clock)?,
        };
        Ok(Snowflake::new(&resolved, rule, Some(cursor), file, Limit::not_started(), made_in, clock))
    }

    /// Creates a lease, which has no node yet, for Snowflakes with these options.
    ///
    /// # Errors
    ///
    /// The same as for `build`.
    #[cfg(feature = "std")]
    #[doc(hidden)]
    pub fn new_lease(&self, keeper: alloc::boxed::Box<dyn LeaseKeeper>) -> Result<&'static Lease, Error> {
        let resolved = self.resolve()?;
        Ok(Lease::new(&resolved.layout, resolved.tolerance, keeper))
    }

    /// Like `build_on`, but for a Snowflake whose node comes from a lease.
    ///
    /// # Errors
    ///
    /// The same as for `build`.
    #[cfg(feature = "std")]
    #[doc(hidden)]
    pub fn build_on_lease<S: TimeSource, C: Clock>(
        &self,
        lease: &'static Lease,
        source: S,
        wrap: impl FnOnce(BuiltinClock<S>) -> C,
    ) -> Result<Snowflake<C>, Error> {
        let resolved = self.resolve()?;
        let clock = wrap(BuiltinClock::new(resolved.clock, resolved.tolerance.max_backward_ms, source));
        let lease = LeaseUse::new(lease, resolved.tolerance)?;
        let (cursor, made_in) = (lease.cursor(), Process::current());
        let limit = Limit::not_started();
        let ids = Snowflake::new(&resolved, resolved.rule(), Some(cursor), None, limit, made_in, clock);
        Ok(Snowflake { lease: Some(lease), ..ids })
    }
}

/// Returns the state file if the options name one.
#[cfg(feature = "std")]
fn state_file(
    options: &Resolved,
    rule: &Rule,
    clock: &impl Clock,
) -> Result<Option<&'static StateFile>, Error> {
    let Some(path) = &options.state else { return Ok(None) };
    crate::registry::state_file(&options.key(), options.tolerance, path, rule, clock).map(Some)
}

/// State files need `std`.
#[cfg(not(feature = "std"))]
#[expect(clippy::unnecessary_wraps, reason = "as where there are")]
fn state_file(_: &Resolved, _: &Rule, _: &impl Clock) -> Result<Option<&'static StateFile>, Error> {
    Ok(None)
}

impl<C> Snowflake<C> {
    fn new(
        from: &Resolved,
        rule: Rule,
        shared: Option<&'static Cursor>,
        state_file: Option<&'static StateFile>,
        limit: Limit,
        made_in: &'static Process,
        clock: C,
    ) -> Self {
        let layout = from.layout;
        Self {
            rule,
            placed_node: AtomicU64::new(layout.place_node(from.node)),
            node: AtomicU64::new(from.node),
            timestamp_shift: layout.timestamp_shift(),
            sequence_shift: layout.sequence_shift(),
            sequence_bits: layout.sequence_bits(),
            sequence_mask: ones(layout.sequence_bits()),
            max_wait_ms: from.max_wait_ms,
            max_backward_ms: from.tolerance.max_backward_ms,
            shared,
            own: Cursor::new(0),
            state_file,
            limit,
            made_in,
            clock,
            layout,
            lease: None,
        }
    }
}
