//! The head of a state file, which is written once.

use std::vec::Vec;

use super::fault::StateFault;
use crate::decode::out_of_range;
use crate::error::Error;
use crate::layout::{Key, ones};
use crate::rule::Tolerance;

const MAGIC: [u8; 8] = *b"plyflake";
const BYTE_ORDER: u32 = 0x0102_0304;
const VERSION: u32 = 1;

/// The contents of a state file's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) key: Key,
    pub(super) tolerance: Tolerance,
}

impl Head {
    /// The length in bytes: words in this machine's byte order, the last of which is the checksum of the
    /// others.
    pub(super) const LEN: usize = 64;

    pub(super) fn bytes(&self) -> Vec<u8> {
        let Key { epoch_ms, tick_ms, placed_node, bits } = self.key;
        let Tolerance { max_backward_ms, max_ahead_ms } = self.tolerance;
        let tolerance = u64::from(max_backward_ms) << 32 | u64::from(max_ahead_ms);
        let order_and_version = u64::from(BYTE_ORDER) << 32 | u64::from(VERSION);
        let words =
            [u64::from_ne_bytes(MAGIC), order_and_version, epoch_ms, tick_ms, placed_node, bits, tolerance];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend(u64::from(crc32fast::hash(&bytes)).to_ne_bytes());
        bytes
    }

    pub(super) fn read(bytes: &[u8; Self::LEN]) -> Result<Self, StateFault> {
        let mut words = [0; Self::LEN / 8];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = bytes.try_into().map_or(0, u64::from_ne_bytes);
        }
        let [magic, order_and_version, epoch_ms, tick_ms, placed_node, bits, tolerance, checksum] = words;
        if magic.to_ne_bytes() != MAGIC {
            return Err(StateFault::Foreign);
        }
        if halves(order_and_version.swap_bytes()).0 == BYTE_ORDER {
            return Err(StateFault::ByteOrder);
        }
        let checked = bytes.get(..Self::LEN - 8).unwrap_or_default();
        let (order, version) = halves(order_and_version);
        if u64::from(crc32fast::hash(checked)) != checksum || order != BYTE_ORDER {
            return Err(StateFault::Damaged);
        }
        if version != VERSION {
            return Err(StateFault::Version { version });
        }
        let (max_backward_ms, max_ahead_ms) = halves(tolerance);
        let key = Key { epoch_ms, tick_ms, placed_node, bits };
        let (timestamp_bits, sequence_bits) = slot_bits(&key);
        if tick_ms == 0 || timestamp_bits + sequence_bits > 64 {
            return Err(StateFault::Damaged);
        }
        Ok(Self { key, tolerance: Tolerance { max_backward_ms, max_ahead_ms } })
    }

    /// The layout's last slot.
    pub(super) const fn last_slot(&self) -> u64 {
        let (timestamp_bits, sequence_bits) = slot_bits(&self.key);
        ones(timestamp_bits + sequence_bits)
    }

    /// Returns the last slot that may have been taken when the clock was at `now_ms`.
    pub(super) fn used_up_to(&self, now_ms: i64) -> Result<u64, Error> {
        let Key { epoch_ms, tick_ms, .. } = self.key;
        let (timestamp_bits, sequence_bits) = slot_bits(&self.key);
        let last_tick = ones(timestamp_bits);
        let after = u64::try_from(now_ms).ok().and_then(|now_ms| now_ms.checked_sub(epoch_ms));
        let ends_at_ms = epoch_ms.saturating_add(last_tick.saturating_mul(tick_ms));
        let after = after.ok_or_else(|| out_of_range(now_ms.into(), epoch_ms, ends_at_ms))?;
        let tick = (after / tick_ms + u64::from(self.tolerance.max_ahead_ms) / tick_ms).min(last_tick);
        Ok(tick.checked_shl(sequence_bits).unwrap_or(0) | ones(sequence_bits))
    }
}

/// The widths of the timestamp and the sequence.
const fn slot_bits(key: &Key) -> (u32, u32) {
    let [timestamp, _, sequence, ..] = key.bits.to_le_bytes();
    (timestamp as u32, sequence as u32)
}

/// Returns the high half and the low half.
fn halves(word: u64) -> (u32, u32) {
    (u32::try_from(word >> 32).unwrap_or(0), u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0))
}
