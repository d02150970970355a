//! The nodes that a process may lease.

use core::ops::{Range, RangeInclusive};

use super::Random;

/// The nodes that a process may lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Nodes {
    /// The total width of the node fields, in bits.
    pub(crate) bits: u32,
    /// The fixed bits, and their values.
    pub(crate) fixed_mask: u64,
    pub(crate) fixed_value: u64,
    pub(crate) range: Option<RangeInclusive<u64>>,
}

impl Nodes {
    pub(crate) fn contains(&self, node: u64) -> bool {
        node & !self.all_bits() == 0
            && node & self.fixed_mask == self.fixed_value & self.fixed_mask
            && self.range.as_ref().is_none_or(|range| range.contains(&node))
    }

    pub(crate) fn count(&self) -> u64 {
        let places = self.places();
        places.end - places.start
    }

    /// Returns all nodes, lowest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        self.places().map(|place| self.at(place))
    }

    /// Returns up to `most` different nodes at random, or all nodes if there are fewer.
    pub(crate) fn sample(&self, most: usize, random: Random<'_>) -> Vec<u64> {
        let places = self.places();
        let count = places.end - places.start;
        if usize::try_from(count).is_ok_and(|count| count <= most) {
            return self.iter().collect();
        }
        let mut sample = Vec::with_capacity(most);
        // Draw up to twice as many nodes as requested, since a draw may repeat a node.
        for _ in 0..most.saturating_mul(2) {
            let node = self.at(places.start + random().checked_rem(count).unwrap_or(0));
            if sample.len() < most && !sample.contains(&node) {
                sample.push(node);
            }
        }
        sample
    }

    const fn all_bits(&self) -> u64 {
        match 1u64.checked_shl(self.bits) {
            Some(one) => one - 1,
            None => u64::MAX,
        }
    }

    /// Returns the positions of the range's nodes in the ascending list of all nodes that have the fixed
    /// bits.
    fn places(&self) -> Range<u64> {
        let free = (self.all_bits() & !self.fixed_mask).count_ones();
        let end = 1u64.checked_shl(free).unwrap_or(u64::MAX);
        let Some(range) = &self.range else { return 0..end };
        let first = first_place(end, |place| self.at(place) >= *range.start());
        let after = first_place(end, |place| self.at(place) > *range.end());
        first..after.max(first)
    }

    /// Returns the node at the given position. The bits of `place` become the node's free bits.
    fn at(&self, mut place: u64) -> u64 {
        let mut node = self.fixed_value & self.fixed_mask;
        let mut free = self.all_bits() & !self.fixed_mask;
        while place != 0 && free != 0 {
            let lowest = free & free.wrapping_neg();
            if place & 1 == 1 {
                node |= lowest;
            }
            free ^= lowest;
            place >>= 1;
        }
        node
    }
}

/// Returns the first position below `end` at which the test holds, or `end` if there is none. The test must
/// also hold at all later positions.
fn first_place(end: u64, is_so: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_so(middle) { high = middle } else { low = middle + 1 }
    }
    low
}
