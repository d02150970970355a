//! One cursor per node and process: Snowflakes whose IDs could be equal find the same one.

use std::boxed::Box;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::clock::{BuiltinClock, Clock};
use crate::cursor::{Cursor, Rule};
use crate::error::Error;
use crate::options::Resolved;

/// What shapes the bits of an ID. Layouts that differ in their fields' names only, or in how the node's bits
/// are divided, make equal IDs.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    epoch_ms: u64,
    tick_ms: u64,
    timestamp: (u32, u32),
    sequence: (u32, u32),
    placed_node: u64,
}

struct Entry {
    max_backward_ms: u32,
    max_ahead_ms: u32,
    cursor: Cursor,
}

/// Entries are never taken out: a cursor lives as long as the process.
static CURSORS: Mutex<BTreeMap<Key, &'static Entry>> = Mutex::new(BTreeMap::new());

/// The cursor of these options' IDs, made if this process has none yet.
pub(crate) fn process_cursor(
    options: &Resolved,
    rule: &Rule,
    clock: &BuiltinClock,
) -> Result<&'static Cursor, Error> {
    let layout = &options.layout;
    let key = Key {
        epoch_ms: layout.epoch_ms(),
        tick_ms: layout.tick_ms(),
        timestamp: (layout.timestamp_bits(), layout.timestamp_shift()),
        sequence: (layout.sequence_bits(), layout.sequence_shift()),
        placed_node: layout.place_node(options.node),
    };
    // The table is whole whenever the lock is free: an insertion is its last step.
    let mut cursors = CURSORS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(entry) = cursors.get(&key) {
        options.same_bounds(entry.max_backward_ms, entry.max_ahead_ms)?;
        return Ok(&entry.cursor);
    }
    let entry: &Entry = Box::leak(Box::new(Entry {
        max_backward_ms: options.max_backward_ms,
        max_ahead_ms: options.max_ahead_ms,
        cursor: Cursor::new(rule.used_up_to(clock.unix_ms()?)),
    }));
    cursors.insert(key, entry);
    Ok(&entry.cursor)
}
