//! One cursor per node and process. Snowflakes with the same epoch, tick, timestamp and sequence positions,
//! and node bits share a cursor.

use core::ptr;
#[cfg(feature = "std")]
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering;

use alloc::boxed::Box;
#[cfg(loom)]
use loom::sync::atomic::AtomicPtr;
#[cfg(not(loom))]
use portable_atomic::AtomicPtr;

use crate::clock::Clock;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::layout::Key;
use crate::limit;
use crate::rule::{Rule, Tolerance};
use crate::system::{Process, StateFile};

/// The number of bits of a key's hash that select the next entry.
const BITS: u32 = 3;
const WAYS: usize = 1 << BITS;

/// Aligned to two cache lines, because processors fetch them in pairs. Otherwise the cursors of two nodes
/// would slow each other down.
#[repr(align(128))]
struct Entry {
    key: Key,
    claim: Claim,
    /// The entries created after this one, indexed by the hash of their key.
    next: [AtomicPtr<Entry>; WAYS],
}

/// The location of a key's cursor, which stays the same for as long as the process lives.
enum Claim {
    Process {
        cursor: Cursor,
        tolerance: Tolerance,
        made_in: &'static Process,
    },
    Host(StateFile),
    /// The cursor belongs to the lease.
    Lease(LeasedNode),
}

/// A leased node, which cannot exist without `std`.
#[cfg(not(feature = "std"))]
#[derive(Debug)]
pub(crate) enum LeasedNode {}

/// A node that this process leases, or has leased.
#[cfg(feature = "std")]
#[derive(Debug)]
pub(crate) struct LeasedNode {
    /// The lease's address, or 0.
    holder: AtomicUsize,
    made_in: &'static Process,
}

#[cfg(feature = "std")]
impl LeasedNode {
    /// Records that the lease no longer has the node.
    pub(crate) fn free(&self, lease: usize) {
        let _ = self.holder.compare_exchange(lease, 0, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// Returns true if this process uses the node in any way except through this lease or one that has ended.
#[cfg(feature = "std")]
pub(crate) fn is_used(key: &Key, lease: usize) -> bool {
    match Way::of(key).find(key).map(|entry| &entry.claim) {
        None => false,
        Some(Claim::Lease(node)) => ![0, lease].contains(&node.holder.load(Ordering::Acquire)),
        Some(Claim::Process { .. } | Claim::Host(_)) => true,
    }
}

/// Claims the node for a lease. Returns `None` if this process uses the node some other way.
#[cfg(feature = "std")]
pub(crate) fn lease(key: &Key, lease: usize) -> Option<&'static LeasedNode> {
    let made =
        || Ok(Claim::Lease(LeasedNode { holder: AtomicUsize::new(lease), made_in: Process::current() }));
    let Ok(Claim::Lease(node)) = claim(key, made) else { return None };
    let before = node.holder.compare_exchange(0, lease, Ordering::AcqRel, Ordering::Acquire);
    (before.is_ok() || before == Err(lease)).then_some(node)
}

/// The error for a node that this process has leased. The node stays leased, since the lease may get it
/// again.
fn is_leased() -> Error {
    crate::error::error!(
        InvalidOption,
        "this process leases this node, or has leased it: give another node, or the same lease"
    )
}

/// The root of a tree that only grows: a cursor lives as long as the process. From here on, a key's hash
/// selects the path, so 65,536 keys are about six entries deep. The tree has no lock, so the child gets a
/// consistent tree no matter when a `fork` happens.
#[cfg(not(loom))]
static FIRST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());
// Each interleaving starts with a new tree.
#[cfg(loom)]
loom::lazy_static! { static ref FIRST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut()); }

/// Returns the cursor of a key, creating it if this process has none yet.
pub(crate) fn process_cursor(
    key: &Key,
    tolerance: Tolerance,
    rule: &Rule,
    clock: &impl Clock,
) -> Result<&'static Cursor, Error> {
    let make = || {
        let cursor = Cursor::new(rule.used_up_to(clock.unix_ms_uncached()?));
        Ok(Claim::Process { cursor, tolerance, made_in: Process::current() })
    };
    match claim(key, make)? {
        Claim::Process { cursor, tolerance: first, .. } => {
            tolerance.check_same(*first)?;
            Ok(cursor)
        }
        Claim::Host(file) => Err(file.is_other()),
        Claim::Lease(_) => Err(is_leased()),
    }
}

/// Returns the state file of a key, opening it if this process has not opened it yet.
#[cfg(feature = "std")]
pub(crate) fn state_file(
    key: &Key,
    tolerance: Tolerance,
    path: &std::path::Path,
    rule: &Rule,
    clock: &impl Clock,
) -> Result<&'static StateFile, Error> {
    // The key is claimed only after the file is open, because the next call may name another file.
    let make = || {
        let mut file = StateFile::open(path, key, tolerance, rule, clock)?;
        file.begin(rule, clock)?;
        Ok(Claim::Host(file))
    };
    match claim(key, make)? {
        Claim::Process { .. } => Err(crate::error::error!(
            InvalidOption,
            "state is given, but this process already issues IDs for this layout and node without one: give every Snowflake \
             of this node the same state file, from the start"
        )),
        Claim::Host(file) if file.is_at(path)? => {
            file.check_tolerance(tolerance)?;
            file.check_lead(rule, clock.unix_ms_uncached()?)?;
            Ok(file)
        }
        Claim::Host(file) => Err(file.is_other()),
        Claim::Lease(_) => Err(is_leased()),
    }
}

/// Returns the claim on a key: the existing one if there is one, otherwise `first`.
fn claim(key: &Key, first: impl FnOnce() -> Result<Claim, Error>) -> Result<&'static Claim, Error> {
    let mut way = Way::of(key);
    if let Some(entry) = way.find(key) {
        return entry.claim();
    }
    let next = core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()));
    let made = Box::into_raw(Box::new(Entry { key: *key, claim: first()?, next }));
    while !way.end_with(made) {
        // Another thread got there first, and may have created the claim for this key.
        if let Some(theirs) = way.find(key) {
            // SAFETY: it was just leaked and is not in the tree, so only this function knows about it.
            #[allow(unsafe_code)]
            drop(unsafe { Box::from_raw(made) });
            return theirs.claim();
        }
    }
    // SAFETY: from here on, it lives as long as the process, and only its atomics change.
    #[allow(unsafe_code)]
    unsafe { &*made }.claim()
}

/// The path to a key's entry.
struct Way {
    place: &'static AtomicPtr<Entry>,
    hash: u64,
}

impl Way {
    fn of(key: &Key) -> Self {
        Self { place: &FIRST, hash: key.hash() }
    }

    /// Follows the path to the key's entry, or to the place where the path ends.
    fn find(&mut self, key: &Key) -> Option<&'static Entry> {
        loop {
            // SAFETY: an entry is complete and leaked before it is stored in the tree with Release ordering,
            // and it is loaded with Acquire ordering. Nothing removes or frees it, and only its atomics
            // change.
            #[allow(unsafe_code)]
            let entry = unsafe { self.place.load(Ordering::Acquire).as_ref::<'static>() }?;
            if entry.holds(key) {
                return Some(entry);
            }
            let [first, ..] = &entry.next;
            let next = usize::try_from(self.hash % WAYS as u64).ok().and_then(|way| entry.next.get(way));
            self.place = next.unwrap_or(first);
            // Entries with the same hash follow one another.
            self.hash = self.hash.rotate_right(BITS);
        }
    }

    /// Puts an entry at the end of the path. Returns `false` if another entry is already there.
    fn end_with(&self, entry: *mut Entry) -> bool {
        let free = ptr::null_mut();
        self.place.compare_exchange(free, entry, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

impl Entry {
    /// Returns true if this is the entry for a key: the only one that may still issue IDs.
    fn holds(&self, key: &Key) -> bool {
        let is_over = match &self.claim {
            Claim::Process { .. } => false,
            Claim::Host(file) => self.key == *key && file.was_reset(),
            // The parent process's lease does not bind its children.
            #[cfg(feature = "std")]
            Claim::Lease(node) => !node.made_in.is_alive(),
            #[cfg(not(feature = "std"))]
            Claim::Lease(node) => match *node {},
        };
        self.key == *key && !is_over
    }

    fn claim(&'static self) -> Result<&'static Claim, Error> {
        if matches!(&self.claim, Claim::Process { made_in, .. } if !made_in.is_alive()) {
            return Err(limit::forked());
        }
        Ok(&self.claim)
    }
}

#[cfg(all(test, unix, feature = "std"))]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::rule::SequenceStart;
    use std::collections::HashSet;
    use std::thread;
    use std::vec::Vec;

    const THREADS: usize = 4;
    /// Nodes that no other unit test uses.
    const NODES: [u64; 8] = [500, 501, 502, 503, 504, 505, 506, 507];

    /// Returns the address of the node's cursor.
    fn cursor(node: u64) -> Result<usize, Error> {
        let layout = Layout::parse("leaf")?;
        let tolerance = Tolerance { max_backward_ms: 0, max_ahead_ms: 0 };
        let rule = Rule::new(&layout, node, tolerance, SequenceStart::Zero);
        process_cursor(&Key::of(&layout, node), tolerance, &rule, &|| Ok(1_700_000_000_000))
            .map(|cursor| ptr::from_ref(cursor).addr())
    }

    /// Counts the entries that a lookup visits, instead of measuring time.
    #[test]
    fn the_ways_to_many_nodes_are_short() {
        let layout = Layout::parse("timestamp:40|machine:16|sequence:8@0/1ms").unwrap();
        let nodes = if cfg!(miri) { 256 } else { 65_536 };
        let tolerance = Tolerance { max_backward_ms: 0, max_ahead_ms: 0 };
        let mut steps = Vec::new();
        for node in 0..nodes {
            let key = Key::of(&layout, node);
            let rule = Rule::new(&layout, node, tolerance, SequenceStart::Zero);
            process_cursor(&key, tolerance, &rule, &|| Ok(1_700_000_000_000)).unwrap();
            let mut way = Way::of(&key);
            way.find(&key).unwrap();
            let mut turned = core::iter::successors(Some(key.hash()), |hash| Some(hash.rotate_right(BITS)));
            steps.push(turned.position(|hash| hash == way.hash).unwrap());
        }
        let all: usize = steps.iter().sum();
        assert!(all <= 8 * steps.len(), "{} steps on average", all / steps.len());
        assert!(steps.iter().all(|steps| *steps <= 16), "{:?} steps", steps.iter().max());
    }

    #[test]
    fn threads_at_once_make_one_cursor_for_each_node() {
        let all = || NODES.iter().map(|node| cursor(*node).unwrap()).collect::<Vec<_>>();
        let found: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(all)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let first = all();
        assert!(found.iter().all(|cursors| *cursors == first));
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), first.len());
    }
}
