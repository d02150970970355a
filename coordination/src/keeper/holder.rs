//! Holds one lease, for Snowflakes or for sequences. A [`Holder`] acquires, renews and releases the lease,
//! and logs the reason if one of these fails.

use core::time::Duration;
use std::time::Instant;

use polyflake::{Error, ErrorCode};

use super::pace::Pace;
use super::stores;
use crate::event::{Event, Kind, tell};
use crate::lease::{
    Acquisition, ClockDiffers, FreesFirst, Held, Refusal, Renewed, Terms, Why, acquire, release, renew,
};
use crate::local::{Clocks, random};
use crate::store::StoreError;
use crate::url::Address;

/// The user of a lease: Snowflakes or sequences.
#[derive(Debug)]
pub(super) enum Whose {
    /// Snowflakes, which use one of the space's nodes.
    Snowflakes,
    /// The sequences with this name. Their group has one node, and the node's holder owns the sequences.
    Sequences(String),
}

/// A lease, its store, and the time of the next request.
#[derive(Debug)]
pub(super) struct Holder {
    whose: Whose,
    address: Address,
    /// The address, without secrets.
    name: String,
    store: stores::Connected,
    pub(super) terms: Terms,
    acquisition: Acquisition,
    pub(super) pace: Pace,
    /// The time at which the last fence that prevented an acquisition will have passed, if there was one.
    fenced_until: Option<Instant>,
    /// The problem that was last logged.
    told: Option<Kind>,
}

impl Holder {
    pub(super) fn new(whose: Whose, address: &Address, terms: Terms, store: stores::Connected) -> Self {
        let (name, pace) = (address.to_string(), Pace::new(terms.ttl_ms));
        let acquisition = Acquisition::new(None, &mut random);
        let holder = Self {
            whose,
            address: address.clone(),
            name,
            store,
            terms,
            acquisition,
            pace,
            fenced_until: None,
            told: None,
        };
        if address.is_init {
            let what = format!(
                "init=always is set for {}: if the store loses its records, new leases do not wait for earlier ones, and IDs may \
                 repeat. Use it for development and tests only",
                holder.name
            );
            holder.tell(Kind::InitAlways, None, &what);
        }
        holder
    }

    /// Acquires a lease on a node for which `is_used` returns false.
    pub(super) async fn acquire(&mut self, is_used: &dyn Fn(u64) -> bool) -> Result<Held, Refusal> {
        let Self { address, store, terms, acquisition, .. } = self;
        let held = stores::limited(address, store, async |store| {
            acquire(store, terms, acquisition, &Clocks, &mut random, is_used).await
        })
        .await?;
        if let Some(lead_ms) = held.smaller_lead_ms(&self.terms) {
            let (own_ms, name) = (self.terms.lead_ms, &self.name);
            let what = match self.whose {
                Whose::Snowflakes => format!(
                    "ttl and max_ahead_ms are {own_ms} ms together, but the leases of this layout in {name} use {lead_ms} \
                     ms, and so does this one: give no more than that, or raise it for all with `polyflake leases --fence` on \
                     this address"
                ),
                Whose::Sequences(_) => format!(
                    "ttl is {own_ms} ms, but they were made with {lead_ms} ms in {name}, and this process counts with that: give \
                     no more, or raise it for all with `polyflake leases --fence --sequences` on this address"
                ),
            };
            self.tell(Kind::LeadDiffers, Some(held.node), &what);
        }
        self.renewed(&held, None);
        Ok(held)
    }

    /// Renews a lease. If the lease is lost, prepares the next acquisition.
    pub(super) async fn renew(&mut self, held: &mut Held) -> Result<Renewed, Refusal> {
        let renewed = stores::limited(&self.address, &self.store, async |store| {
            renew(store, &self.terms, held, &Clocks, &mut random).await
        })
        .await?;
        match &renewed {
            Renewed::Extended { clock } => self.renewed(held, clock.as_ref()),
            Renewed::Lost => self.acquisition = Acquisition::new(Some(held.known.clone()), &mut random),
        }
        Ok(renewed)
    }

    fn renewed(&mut self, held: &Held, clock: Option<&ClockDiffers>) {
        self.pace.renewed(held.ttl_ms(&self.terms));
        self.reached();
        match clock {
            Some(clock) => self.warn(Kind::ClockDiffers, Some(held.node), &self.clock_differs(clock)),
            None => self.told = None,
        }
    }

    /// Releases the lease. If `held` is `None` and the outcome of the last acquisition is unknown, frees the
    /// node that the process tried to acquire, since another process may want it. `issued_until` is the tick
    /// up to which the lease was used, or `None` for its first tick.
    pub(super) async fn give_back(&mut self, held: Option<Held>, issued_until: Option<u64>) {
        let Some(held) = held.or_else(|| self.acquisition.unclear()) else { return };
        let (node, issued_until) = (held.node, issued_until.unwrap_or(held.start));
        let released = stores::until_answered(&self.address, &self.store, async |store| {
            release(store, &self.terms, &held, issued_until, &Clocks, &mut random).await
        });
        let (what, end) = match self.whose {
            Whose::Snowflakes => (format!("node {node}"), "its lease expires"),
            Whose::Sequences(_) => ("its lease".into(), "it expires"),
        };
        match released.await {
            Ok(()) => {
                self.tell(Kind::Released, Some(node), &format!("{what} is given back to {}", self.name));
            }
            Err(refusal) => {
                let why = self.text_of(&refusal);
                let what = format!("{what} could not be given back, and stays in use until {end}: {why}");
                self.warn(Kind::StoreUnreachable, Some(node), &what);
            }
        }
    }

    /// Returns true if a fence lasts beyond the deadline, which makes waiting pointless.
    pub(super) fn is_fenced_past(&self, deadline: Instant) -> bool {
        self.fenced_until.is_some_and(|until| until > deadline)
    }

    /// Logs why a request was refused, and sets the time for the next request. `node` is the node still held,
    /// if any.
    pub(super) fn refused(&mut self, refusal: &Refusal, node: Option<u64>) {
        if let Refusal::Fenced { in_ms, .. } = refusal {
            self.fenced_until = Some(Instant::now() + Duration::from_millis(*in_ms));
        }
        match refusal {
            Refusal::Fenced { in_ms, .. }
            | Refusal::NoneFree { first: Some(FreesFirst { in_ms, .. }), .. } => {
                self.pace.failed_for(Duration::from_millis(in_ms.saturating_add(1)));
            }
            Refusal::Contended => self.pace.contended(),
            _ => self.pace.failed(),
        }
        let kind = match refusal {
            Refusal::Store(_) | Refusal::Unreadable(_) => Some(Kind::StoreUnreachable),
            Refusal::Fenced { .. } | Refusal::NoneFree { first: Some(_), .. } => Some(Kind::Waiting),
            Refusal::ClockDiffers(_) => Some(Kind::ClockDiffers),
            Refusal::NoneFree { first: None, .. }
            | Refusal::DifferenceTooLarge { .. }
            | Refusal::Contended => None,
        };
        if kind != Some(Kind::StoreUnreachable) {
            self.reached();
        }
        if let Some(kind) = kind {
            self.warn(kind, node, &self.text_of(refusal));
        }
    }

    /// Returns true if the store answered the last request.
    pub(super) fn is_reachable(&self) -> bool {
        self.told != Some(Kind::StoreUnreachable)
    }

    /// Records that the store answered, whatever the answer was. Logs this if the store had not been
    /// answering.
    pub(super) fn reached(&mut self) {
        if !self.is_reachable() {
            self.told = None;
            self.tell(Kind::StoreReachable, None, &format!("{} answers again", self.name));
        }
    }

    /// Logs a problem, unless it has already been logged and still persists.
    pub(super) fn warn(&mut self, kind: Kind, node: Option<u64>, what: &str) {
        if self.told.replace(kind) != Some(kind) {
            self.tell(kind, node, what);
        }
    }

    pub(super) fn tell(&self, kind: Kind, node: Option<u64>, what: &str) {
        let (node, message) = match &self.whose {
            Whose::Snowflakes => (node, what.to_owned()),
            // Sequences have only one node, so its number is not logged.
            Whose::Sequences(name) => (None, format!("sequences {name:?}: {what}")),
        };
        tell(&Event { kind, node, store: self.name.clone(), message });
    }

    /// Converts a refusal to the error that a Snowflake's calls return.
    pub(super) fn error_of(&self, refusal: &Refusal) -> Error {
        Error::from_outside(code_of(refusal), &self.text_of(refusal))
    }

    pub(super) fn text_of(&self, refusal: &Refusal) -> String {
        use Whose::{Sequences, Snowflakes};
        let name = &self.name;
        match (refusal, &self.whose) {
            (Refusal::Store(error), _) => stores::text_of(error),
            (Refusal::Unreadable(why), _) => format!("the store cannot be used: {name}: {why}"),
            (Refusal::ClockDiffers(clock), _) => self.clock_differs(clock),
            (Refusal::NoneFree { nodes: 0, .. }, _) => {
                "no node can be leased: none has the given fields and is in the address's `nodes`".into()
            }
            (Refusal::NoneFree { first: Some(first), .. }, Sequences(_)) => {
                let (label, in_ms) = (shortened(&first.label), first.in_ms);
                format!(
                    "`{label}` holds its lease in {name} and issues its numbers: for {in_ms} ms, unless the lease is renewed"
                )
            }
            (Refusal::NoneFree { nodes, first: Some(first) }, Snowflakes) => {
                let (label, node, in_ms) = (shortened(&first.label), first.node, first.in_ms);
                format!(
                    "no node is free: all {nodes} that may be leased from {name} are in use; node {node}, held by `{label}`, becomes \
                     free first, in {in_ms} ms unless its lease is renewed"
                )
            }
            (Refusal::NoneFree { nodes, first: None }, _) => {
                format!("no node is free: this process uses all {nodes} that may be leased from {name}")
            }
            (Refusal::Fenced { in_ms, why: Why::First }, Snowflakes) => format!(
                "{name} is new, or has lost all records of leases: no node can be leased for {in_ms} ms, since earlier leases may \
                 still be in use. If there were none, `polyflake leases URL --init` ends the wait"
            ),
            (Refusal::Fenced { in_ms, why: Why::First }, Sequences(_)) => format!(
                "{name} is new, or has lost all records of them: nobody can have the lease for {in_ms} ms, since an earlier one \
                 may still be in use. If there was none, `polyflake leases URL --init --sequences NAME` ends the wait"
            ),
            (Refusal::Fenced { in_ms, why: Why::Loss }, Snowflakes) => format!(
                "{name} has lost records of leases: no node can be leased for {in_ms} ms, since earlier leases may still be in use"
            ),
            (Refusal::Fenced { in_ms, why: Why::Loss }, Sequences(_)) => format!(
                "{name} has lost records of them: nobody can have the lease for {in_ms} ms, since an earlier one may still be in use"
            ),
            (Refusal::DifferenceTooLarge { difference_ms, of_space_ms }, whose) => {
                let (whose, advice) = match whose {
                    Snowflakes => (
                        "the leases of this layout",
                        ", or raise it for all with `polyflake leases --fence` on this address",
                    ),
                    Sequences(_) => (
                        "these sequences",
                        ", or raise it for all with `polyflake leases --fence --sequences` on this address",
                    ),
                };
                format!(
                    "clock_difference is {difference_ms} ms, but {whose} in {name} use {of_space_ms} ms: give no more than \
                     that{advice}"
                )
            }
            (Refusal::Contended, _) => format!("every attempt at {name} conflicted with another process"),
        }
    }

    fn clock_differs(&self, clock: &ClockDiffers) -> String {
        let ClockDiffers { store_ms, local_ms, by_ms } = clock;
        format!(
            "this machine's clock is {by_ms} ms off the clock of {}, which is more than clock_difference: it is {local_ms} \
             here and {store_ms} there (Unix ms)",
            self.name
        )
    }
}

/// Shortens another process's label to the maximum length that an address allows. The label must not be
/// changed in any other way, since services forward calls to the address it contains.
fn shortened(label: &str) -> String {
    label.chars().take(Address::MAX_LABEL).collect()
}

pub(super) const fn code_of(refusal: &Refusal) -> ErrorCode {
    match refusal {
        Refusal::DifferenceTooLarge { .. } => ErrorCode::InvalidOption,
        _ => ErrorCode::LeaseUnavailable,
    }
}

/// Returns true if retrying is pointless.
pub(super) const fn is_final(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::Store(StoreError::Refused(_))
            | Refusal::Unreadable(_)
            | Refusal::DifferenceTooLarge { .. }
            | Refusal::ClockDiffers(_)
            | Refusal::NoneFree { first: None, .. }
    )
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl stores::AttemptError for Refusal {
    fn is_the_stores(&self) -> bool {
        matches!(self, Self::Store(_))
    }

    fn is_temporary(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unreachable(_)) | Self::Contended)
    }
}
