//! The words that the path of an ID reads and writes, for a language to which a call into this library is dear.

use crate::clock::BuiltinClock;
use crate::snowflake::Snowflake;
use crate::system::StdTime;

/// What [`Snowflake::poll_next_id`] needs for an ID of the tick that the cursor is in. `polyflake.h` says how they are used
/// (at `polyflake_words`): what changes in that path changes there, and in Go.
///
/// All words are 64 bits wide, and are read and written as atomics; `limit` is a word that holds a pointer to a word.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// The processor's counter at a reading of the clock.
    pub clock_start: *const u64,
    /// That reading: Unix ms, and in the low 20 bits for how many counts from `clock_start` it is valid.
    pub clock_kept: *const u64,
    /// The last slot taken.
    pub cursor: *const u64,
    /// Points to the word with the last slot that may be taken.
    pub limit: *const *const u64,
    /// The start of tick 0, in Unix ms.
    pub epoch_ms: u64,
    /// The length of a tick, in ms.
    pub tick_ms: u64,
    /// The node's bits in their place. Read after `limit`: a lease may change them.
    pub placed_node: *const u64,
    /// The width of the sequence.
    pub sequence_bits: u32,
    /// The number of bits below the timestamp.
    pub timestamp_shift: u32,
    /// The number of bits below the sequence.
    pub sequence_shift: u32,
}

impl Snowflake {
    /// The words; `None` unless the clock is the system's. `limit` and
    /// `placed_node` are the Snowflake's, the others live as long as the
    /// process.
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

    /// Reads a word of a living Snowflake.
    fn read(word: *const u64) -> u64 {
        // SAFETY: it points to an atomic of as many bits, which lives for the whole test.
        #[allow(unsafe_code)]
        unsafe { AtomicU64::from_ptr(word.cast_mut()) }.load(Ordering::Acquire)
    }

    fn limit(words: Words) -> u64 {
        // SAFETY: no other thread has this Snowflake, and what the word points to lives as long as the process.
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
