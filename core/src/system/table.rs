//! One cursor per node and process: Snowflakes whose IDs could be equal find the same one.

use core::ptr;
use core::sync::atomic::Ordering;

use alloc::boxed::Box;
#[cfg(loom)]
use loom::sync::atomic::AtomicPtr;
#[cfg(not(loom))]
use portable_atomic::AtomicPtr;

use crate::clock::Clock;
use crate::cursor::{Cursor, Rule};
use crate::error::{Detail, Error};
use crate::options::Resolved;

/// What shapes the bits of an ID. Layouts that differ in their fields' names only, or in how the node's bits
/// are divided, make equal IDs.
#[derive(PartialEq, Eq)]
struct Key {
    epoch_ms: u64,
    tick_ms: u64,
    timestamp: (u32, u32),
    sequence: (u32, u32),
    placed_node: u64,
}

struct Entry {
    key: Key,
    max_backward_ms: u32,
    max_ahead_ms: u32,
    cursor: Cursor,
    /// The entry made before this one.
    next: AtomicPtr<Entry>,
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
    #[cfg(feature = "std")]
    super::fork::Generation::of_this_process();
    let layout = &options.layout;
    let key = Key {
        epoch_ms: layout.epoch_ms(),
        tick_ms: layout.tick_ms(),
        timestamp: (layout.timestamp_bits(), layout.timestamp_shift()),
        sequence: (layout.sequence_bits(), layout.sequence_shift()),
        placed_node: layout.place_node(options.node),
    };
    let mut newest = NEWEST.load(Ordering::Acquire);
    if let Some(entry) = entries(newest).find(|entry| entry.key == key) {
        return shared(entry, options);
    }
    let made = Box::into_raw(Box::new(Entry {
        key,
        max_backward_ms: options.max_backward_ms,
        max_ahead_ms: options.max_ahead_ms,
        cursor: Cursor::new(rule.used_up_to(clock.unix_ms()?)),
        next: AtomicPtr::new(newest),
    }));
    // SAFETY: leaked just now, and freed below only where no other thread has seen it.
    #[allow(unsafe_code)]
    let entry: &'static Entry = unsafe { &*made };
    while let Err(now) = NEWEST.compare_exchange(newest, made, Ordering::AcqRel, Ordering::Acquire) {
        // Another thread was faster, and may have made what is wanted here. (The mutants, here and elsewhere, are
        // there to show that core/tests/models.rs notices.)
        let same_key = |theirs: &&Entry| theirs.key == entry.key && !cfg!(mutant = "second_cursor");
        if let Some(theirs) = entries(now).find(same_key) {
            // SAFETY: the exchange has never succeeded, so that this function alone knows the entry.
            #[allow(unsafe_code)]
            drop(unsafe { Box::from_raw(made) });
            return shared(theirs, options);
        }
        if !cfg!(mutant = "lost_cursor") {
            entry.next.store(now, Ordering::Release);
        }
        newest = now;
    }
    Ok(&entry.cursor)
}

/// The cursor of an entry that is there already.
fn shared(entry: &'static Entry, options: &Resolved) -> Result<&'static Cursor, Error> {
    if entry.cursor.is_disowned() {
        return Err(Detail::Forked.into());
    }
    options.same_bounds(entry.max_backward_ms, entry.max_ahead_ms)?;
    Ok(&entry.cursor)
}

/// In a child just forked: every cursor so far is the parent's.
#[cfg(all(unix, feature = "std"))]
pub(super) fn disown_all() {
    entries(NEWEST.load(Ordering::Acquire)).for_each(|entry| entry.cursor.disown());
}

#[cfg(all(test, unix, feature = "std"))]
mod tests {
    use super::*;
    use crate::{ErrorCode, Snowflake};
    use std::collections::HashSet;
    use std::thread;
    use std::vec::Vec;

    const THREADS: usize = 4;
    const NODES: u64 = 8;

    /// Where the node's cursor is.
    fn cursor(node: u64) -> Result<usize, Error> {
        let options = Snowflake::builder().layout("leaf").node(node).resolve()?;
        let rule = Rule::new(&options.layout, node, 0, 0, options.sequence_start);
        process_cursor(&options, &rule, &|| Ok(1_700_000_000_000)).map(|cursor| ptr::from_ref(cursor).addr())
    }

    #[test]
    fn threads_at_once_make_one_cursor_for_each_node_and_a_child_has_none() {
        let all = || (0..NODES).map(|node| cursor(node).unwrap()).collect::<Vec<_>>();
        let found: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(all)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let first = all();
        assert!(found.iter().all(|cursors| *cursors == first));
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), first.len());

        // What happens in a child. No other unit test uses a cursor of the process.
        disown_all();
        assert!((0..NODES).all(|node| cursor(node).unwrap_err().code() == ErrorCode::Forked));
        assert!(cursor(NODES).is_ok());
    }
}
