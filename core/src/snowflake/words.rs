//! The words that the hot path reads and writes, for languages in which calling into this library is
//! expensive.

use crate::clock::BuiltinClock;
use crate::snowflake::Snowflake;
use crate::system::StdTime;

/// The words that [`Snowflake::poll_next_id`] uses for an ID in the cursor's current tick. `polyflake.h`
/// explains how to use them (at `polyflake_words`). If that path changes, the header and the Go binding must
/// change too.
///
/// All words are 64 bits wide and accessed atomically. `limit` is a word that holds a pointer to another
/// word.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// The value of the processor's counter when the clock was last read.
    pub clock_start: *const u64,
    /// The result of that reading: Unix ms, and in the low 20 bits the number of counts from `clock_start`
    /// for which it is valid.
    pub clock_kept: *const u64,
    /// The last slot taken.
    pub cursor: *const u64,
    /// Points to the word that holds the last slot that may be taken.
    pub limit: *const *const u64,
    /// The start of tick 0, in Unix ms.
    pub epoch_ms: u64,
    /// The length of a tick, in ms.
    pub tick_ms: u64,
    /// The node's bits at their positions. Read this after `limit`, because a lease may change both.
    pub placed_node: *const u64,
    /// The width of the sequence.
    pub sequence_bits: u32,
    /// The number of bits below the timestamp.
    pub timestamp_shift: u32,
    /// The number of bits below the sequence.
    pub sequence_shift: u32,
}

impl Snowflake {
    /// Returns the words, or `None` if the clock is not the system's. `limit` and `placed_node` live as long
    /// as the Snowflake, the others as long as the process.
    #[doc(hidden)]
    pub fn words(&self) -> Option<Words> {
        let BuiltinClock::System(_) = self.clock else { return None };
        let [clock_start, clock_kept] = StdTime::words();
        Some(Words {
            clock_start,
            clock_kept,
            cursor: self.cursor().slot.as_ptr().cast_const(),
            limit: self.limit.pointer(),
            epoch_ms: self.rule.epoch_ms(),
            tick_ms: self.rule.tick_ms(),
            placed_node: self.placed_node.as_ptr().cast_const(),
            sequence_bits: self.sequence_bits,
            timestamp_shift: self.timestamp_shift,
            sequence_shift: self.sequence_shift,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClockName, Options};
    use core::sync::atomic::{AtomicU64, Ordering};

    /// Reads a word of a live Snowflake.
    fn read(word: *const u64) -> u64 {
        // SAFETY: it points to an atomic of the same width, which lives for the whole test.
        #[allow(unsafe_code)]
        unsafe { AtomicU64::from_ptr(word.cast_mut()) }.load(Ordering::Acquire)
    }

    fn limit(words: Words) -> u64 {
        // SAFETY: no other thread has this Snowflake, and the word's target lives as long as the process.
        #[allow(unsafe_code)]
        read(unsafe { *words.limit })
    }

    fn options() -> Options {
        Snowflake::builder().layout("timestamp:35|sequence:8|node:10@1735689600000/10ms").node(911)
    }

    #[test]
    fn the_words_are_those_of_the_path() {
        let ids = options().build().unwrap();
        let words = ids.words().unwrap();
        assert_eq!((words.epoch_ms, words.tick_ms, read(words.placed_node)), (1_735_689_600_000, 10, 911));
        assert_eq!((words.timestamp_shift, words.sequence_shift, words.sequence_bits), (18, 10, 8));
        assert_eq!(limit(words), 0);
        let id = ids.next_id().unwrap();
        assert_eq!(read(words.cursor), id >> 10);
        assert_eq!(limit(words), (1 << 43) - 1);
        let [start, kept] = StdTime::words();
        assert_eq!((words.clock_start, words.clock_kept), (start, kept));
        ids.close();
        assert_eq!(limit(words), 0);
    }

    #[test]
    fn only_the_system_clock_has_words() {
        assert!(options().clock(ClockName::Steady).build().unwrap().words().is_none());
    }
}
