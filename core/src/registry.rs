//! One cursor per node and process: Snowflakes with the same epoch, tick, places of timestamp and sequence, and node bits
//! find the same one.

use core::ptr;
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
use crate::rule::{Bounds, Rule};
use crate::system::{Process, StateFile};

/// Aligned to two cache lines, because processors fetch them in pairs: cursors of two nodes do not slow each other down.
#[repr(align(128))]
struct Entry {
    key: Key,
    claim: Claim,
    /// The entry made before this one.
    next: AtomicPtr<Entry>,
}

/// Where a key's cursor is: one place for as long as the process lives.
enum Claim {
    Process { cursor: Cursor, bounds: Bounds, made_in: &'static Process },
    Host(StateFile),
}

/// The newest entry of a list that only grows: a cursor lives as long as the process. It has no lock, so that a
/// `fork` in the middle of anything leaves the child a whole list.
#[cfg(not(loom))]
static NEWEST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());
// A list for each interleaving.
#[cfg(loom)]
loom::lazy_static! { static ref NEWEST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut()); }

/// The entries from `newest` on.
fn entries(newest: *const Entry) -> impl Iterator<Item = &'static Entry> {
    // SAFETY: an entry is leaked before it is put into the list, whole, with Release ordering, and read from it
    // with Acquire ordering; nothing takes it out, frees it or changes it but through its atomics.
    #[allow(unsafe_code)]
    let entry = |pointer: *const Entry| unsafe { pointer.as_ref::<'static>() };
    core::iter::successors(entry(newest), move |last| entry(last.next.load(Ordering::Acquire)))
}

/// The cursor of a key, made if this process has none yet.
pub(crate) fn process_cursor(
    key: &Key,
    bounds: Bounds,
    rule: &Rule,
    clock: &impl Clock,
) -> Result<&'static Cursor, Error> {
    let make = || {
        let cursor = Cursor::new(rule.used_up_to(clock.unix_ms_uncached()?));
        Ok(Claim::Process { cursor, bounds, made_in: Process::current() })
    };
    match claim(key, make)? {
        Claim::Process { cursor, bounds: first, .. } => {
            bounds.check_same(*first)?;
            Ok(cursor)
        }
        Claim::Host(file) => Err(file.is_other()),
    }
}

/// The state file of a key, opened if this process has not opened it yet.
#[cfg(feature = "std")]
pub(crate) fn state_file(
    key: &Key,
    bounds: Bounds,
    path: &std::path::Path,
    rule: &Rule,
    clock: &impl Clock,
) -> Result<&'static StateFile, Error> {
    // It is claimed only once it is open: another file may be named next.
    let make = || {
        let mut file = StateFile::open(path, key, bounds, rule, clock)?;
        file.begin(rule, clock)?;
        Ok(Claim::Host(file))
    };
    match claim(key, make)? {
        Claim::Process { .. } => Err(crate::error::error!(
            InvalidOption,
            "state is given, but this process already issues IDs for this layout and node without one: one node has one \
             cursor; give every Snowflake of this node the same state file, from the first on"
        )),
        Claim::Host(file) if file.is_at(path)? => {
            file.check_bounds(bounds)?;
            file.check_lead(rule, clock.unix_ms_uncached()?)?;
            Ok(file)
        }
        Claim::Host(file) => Err(file.is_other()),
    }
}

/// The claim on a key: the earlier one, if there is one, or the `first`.
fn claim(key: &Key, first: impl FnOnce() -> Result<Claim, Error>) -> Result<&'static Claim, Error> {
    let mut newest = NEWEST.load(Ordering::Acquire);
    if let Some(entry) = entries(newest).find(|entry| entry.holds(key)) {
        return entry.claim();
    }
    let made = Box::into_raw(Box::new(Entry { key: *key, claim: first()?, next: AtomicPtr::new(newest) }));
    // SAFETY: leaked just now, and freed below only where no other thread has seen it.
    #[allow(unsafe_code)]
    let entry: &'static Entry = unsafe { &*made };
    while let Err(now) = NEWEST.compare_exchange(newest, made, Ordering::AcqRel, Ordering::Acquire) {
        // Another thread was faster, and may have made what is wanted here.
        if let Some(theirs) = entries(now).find(|theirs| theirs.holds(key)) {
            // SAFETY: the exchange has never succeeded, so only this function knows the entry.
            #[allow(unsafe_code)]
            drop(unsafe { Box::from_raw(made) });
            return theirs.claim();
        }
        entry.next.store(now, Ordering::Release);
        newest = now;
    }
    Ok(&entry.claim)
}

impl Entry {
    /// Whether it is the one for a key: the newest, or the only one that may still issue.
    fn holds(&self, key: &Key) -> bool {
        let is_over = match &self.claim {
            Claim::Process { .. } => false,
            Claim::Host(file) => self.key == *key && file.was_reset(),
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

    /// Where the node's cursor is.
    fn cursor(node: u64) -> Result<usize, Error> {
        let layout = Layout::parse("leaf")?;
        let bounds = Bounds { max_backward_ms: 0, max_ahead_ms: 0 };
        let rule = Rule::new(&layout, node, bounds, SequenceStart::Zero);
        process_cursor(&Key::of(&layout, node), bounds, &rule, &|| Ok(1_700_000_000_000))
            .map(|cursor| ptr::from_ref(cursor).addr())
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
