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
#[cfg(feature = "std")]
use crate::error::path_word;
use crate::error::{Detail, Error};
use crate::options::Resolved;
use crate::rule::{Cursor, Rule};
#[cfg(feature = "std")]
use std::path::Path;

use super::Process;
#[cfg(feature = "std")]
use super::StateFile;

/// What shapes the bits of an ID. Layouts that differ in their fields' names only, or in how the node's bits
/// are divided, make equal IDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(super) epoch_ms: u64,
    pub(super) tick_ms: u64,
    pub(super) placed_node: u64,
    /// A byte each, from the lowest: the timestamp's width and shift, and the sequence's.
    pub(super) bits: u64,
}

impl Key {
    fn of(options: &Resolved) -> Self {
        let layout = &options.layout;
        let timestamp = layout.timestamp_bits() | layout.timestamp_shift() << 8;
        let sequence = layout.sequence_bits() | layout.sequence_shift() << 8;
        Self {
            epoch_ms: layout.epoch_ms(),
            tick_ms: layout.tick_ms(),
            placed_node: layout.place_node(options.node),
            bits: u64::from(timestamp | sequence << 16),
        }
    }
}

/// Two cache lines of its own, as processors fetch them by pairs: cursors of two nodes do not slow each other down.
#[repr(align(128))]
struct Entry {
    key: Key,
    claim: Claim,
    /// The entry made before this one.
    next: AtomicPtr<Entry>,
}

/// Where a key's cursor stands: one place for as long as the process lives.
enum Claim {
    Process {
        cursor: Cursor,
        max_backward_ms: u32,
        max_ahead_ms: u32,
        made_in: &'static Process,
    },
    #[cfg(feature = "std")]
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

/// The cursor of these options' IDs, made if this process has none yet.
pub(crate) fn process_cursor(
    options: &Resolved,
    rule: &Rule,
    clock: &impl Clock,
) -> Result<&'static Cursor, Error> {
    let make = || {
        let cursor = Cursor::new(rule.used_up_to(clock.unix_ms_uncached()?));
        let (max_backward_ms, max_ahead_ms) = (options.max_backward_ms, options.max_ahead_ms);
        Ok(Claim::Process { cursor, max_backward_ms, max_ahead_ms, made_in: Process::current() })
    };
    match claim(&Key::of(options), make)? {
        Claim::Process { cursor, max_backward_ms, max_ahead_ms, .. } => {
            options.same_bounds(*max_backward_ms, *max_ahead_ms)?;
            Ok(cursor)
        }
        #[cfg(feature = "std")]
        Claim::Host(file) => Err(Detail::OtherClaim { file: Some(path_word(file.path())) }.into()),
    }
}

/// The state file of these options, opened if this process has not opened it yet.
#[cfg(feature = "std")]
pub(crate) fn host_cursor(
    options: &Resolved,
    path: &Path,
    rule: &Rule,
    clock: &impl Clock,
) -> Result<&'static StateFile, Error> {
    let key = Key::of(options);
    // Refused before it is claimed: it may be another file that is named next.
    let make = || {
        let mut file = StateFile::open(path, &key, options, rule, clock)?;
        file.begin(rule, clock)?;
        Ok(Claim::Host(file))
    };
    match claim(&key, make)? {
        Claim::Process { .. } => Err(Detail::OtherClaim { file: None }.into()),
        Claim::Host(file) if file.is_at(path)? => {
            file.same_bounds(options)?;
            file.check_lead(rule, clock.unix_ms_uncached()?)?;
            Ok(file)
        }
        Claim::Host(file) => Err(Detail::OtherClaim { file: Some(path_word(file.path())) }.into()),
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
        // Another thread was faster, and may have made what is wanted here. (The mutants, here and elsewhere, are
        // there to show that core/tests/models.rs notices.)
        let same_key = |theirs: &&Entry| theirs.holds(key) && !cfg!(mutant = "second_cursor");
        if let Some(theirs) = entries(now).find(same_key) {
            // SAFETY: the exchange has never succeeded, so that this function alone knows the entry.
            #[allow(unsafe_code)]
            drop(unsafe { Box::from_raw(made) });
            return theirs.claim();
        }
        if !cfg!(mutant = "lost_cursor") {
            entry.next.store(now, Ordering::Release);
        }
        newest = now;
    }
    Ok(&entry.claim)
}

impl Entry {
    /// Whether it is the one for a key: the newest, or the only one that may still issue.
    fn holds(&self, key: &Key) -> bool {
        let is_over = match &self.claim {
            Claim::Process { .. } => false,
            #[cfg(feature = "std")]
            Claim::Host(file) => self.key == *key && file.was_reset(),
        };
        self.key == *key && !is_over
    }

    fn claim(&'static self) -> Result<&'static Claim, Error> {
        if matches!(&self.claim, Claim::Process { made_in, .. } if !made_in.is_alive()) {
            return Err(Detail::Forked.into());
        }
        Ok(&self.claim)
    }
}

#[cfg(all(test, unix, feature = "std"))]
mod tests {
    use super::*;
    use crate::Snowflake;
    use std::collections::HashSet;
    use std::thread;
    use std::vec::Vec;

    const THREADS: usize = 4;
    /// Nodes that no other unit test uses.
    const NODES: [u64; 8] = [500, 501, 502, 503, 504, 505, 506, 507];

    /// Where the node's cursor is.
    fn cursor(node: u64) -> Result<usize, Error> {
        let options = Snowflake::builder().layout("leaf").node(node).resolve()?;
        let rule = Rule::new(&options.layout, node, 0, 0, options.sequence_start);
        process_cursor(&options, &rule, &|| Ok(1_700_000_000_000)).map(|cursor| ptr::from_ref(cursor).addr())
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
