//! The names of custom stores, and the functions that open them.

use core::fmt;
use std::sync::OnceLock;

use polyflake::{Error, ErrorCode};

use crate::records::Store;
use crate::store::StoreError;
use crate::url::{Address, REGISTERED, Scheme};

type Open = dyn Fn(&Address) -> Result<Box<dyn Store>, StoreError> + Send + Sync;

/// A registered name, and a link to the next registration. The registrations form a chain that only grows, so
/// readers need no lock. A forked child could inherit a lock in its held state.
struct Kind {
    name: String,
    open: Box<Open>,
    next: Next,
}

type Next = OnceLock<&'static Kind>;

static FIRST: Next = OnceLock::new();

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kind").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Registers your own store under a name. For addresses that start with `NAME://`, `open` opens the store.
/// Snowflakes, counters, sequences and [`Admin`](crate::Admin) then accept these addresses like any other,
/// with the same parameters.
///
/// Register a name once per process, before you first use such an address. Polyflake calls `open` for each
/// connection. All leases at an address share one connection, and all counters and sequences at the address
/// share another. `open` runs on the thread that talks to stores, so it must not block. Connect on the first
/// call to the store instead. A forked child calls `open` again. These addresses may have hosts, a path, and
/// parameters that [`Address::parameter`] reads. [`Address`] shows neither passwords nor parameters, so begin
/// each error message with the address.
///
/// [`records::Store`](crate::records::Store) describes a store's duties, and
/// [`records::conformance`](crate::records::conformance) tests them.
/// [`records::MemoryStore`](crate::records::MemoryStore) is a short example that keeps records for one
/// process:
///
/// ```
/// use polyflake::Snowflake;
/// use polyflake_coordination::records::{self, MemoryStore};
/// use polyflake_coordination::{CounterOptions, SequencesOptions, open, stores};
///
/// let store = MemoryStore::default();
/// records::conformance(&|| Box::new(store.clone()));
/// stores::register("memory", move |_address| Ok(Box::new(store.clone())))?;
///
/// let ids = open(&Snowflake::builder().lease("memory://?ttl=10s"))?;
/// let orders = CounterOptions::new("orders").store("memory://?ttl=10s").open()?;
/// let inbox = SequencesOptions::new("inbox").store("memory://?ttl=10s").open()?;
/// println!("{}", ids.next_id()?);
/// assert_eq!(orders.next_id()?, 1);
/// assert_eq!(inbox.next_id("alice")?, 1);
/// # Ok::<(), polyflake::Error>(())
/// ```
///
/// # Errors
///
/// Returns `invalid_option` if the name is already registered, belongs to one of Polyflake's stores, or is
/// not a valid name: 1 to 32 lowercase letters, digits and hyphens, beginning with a letter.
pub fn register(
    name: &str,
    open: impl Fn(&Address) -> Result<Box<dyn Store>, StoreError> + Send + Sync + 'static,
) -> Result<(), Error> {
    let invalid = |why: &str| Err(Error::from_outside(ErrorCode::InvalidOption, why));
    let is_fit = name.len() <= 32
        && name.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if !is_fit {
        return invalid(
            "a store's name has 1 to 32 lowercase letters, digits and hyphens, and begins with a letter",
        );
    }
    if Scheme::is_ours(name) {
        return invalid(&format!("Polyflake has a store called {name}: take another name"));
    }
    let taken = format!("a store called {name} is registered already");
    if registered(name).is_some() {
        return invalid(&taken);
    }
    // The entry lives as long as the process, because addresses refer to the name.
    let mut new: &'static Kind =
        Box::leak(Box::new(Kind { name: name.into(), open: Box::new(open), next: Next::new() }));
    let _ = REGISTERED.set(registered);
    let mut place = &FIRST;
    // If another thread gets there first, this entry goes after that thread's entry.
    while let Err(unset) = place.set(new) {
        let Some(kind) = place.get() else { continue };
        if kind.name == name {
            return invalid(&taken);
        }
        (new, place) = (unset, &kind.next);
    }
    Ok(())
}

/// Returns the name, if it is registered.
fn registered(name: &str) -> Option<&'static str> {
    find(name).map(|kind| &*kind.name)
}

pub(super) fn open(name: &str, address: &Address) -> Result<Box<dyn Store>, StoreError> {
    match find(name) {
        Some(kind) => (kind.open)(address),
        None => Err(StoreError::Refused(format!("no store called {name} is registered"))),
    }
}

fn find(name: &str) -> Option<&'static Kind> {
    let mut next = FIRST.get();
    while let Some(kind) = next.filter(|kind| kind.name != name) {
        next = kind.next.get();
    }
    next.copied()
}
