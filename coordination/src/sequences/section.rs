//! A section: its keys, and the bound up to which they may count.

use hashbrown::HashTable;

use crate::store::LAST_NUMBER;

/// The highest bit, which numbers do not use. It marks a key that has been used more than once.
const USED: u64 = 1 << 63;

/// A key and its last number. Only the key's hash is stored, so keys with the same hash share a count.
#[derive(Debug, Clone, Copy)]
struct Key {
    hash: u64,
    /// The key's last number, combined with [`USED`] if the key has been used more than once.
    number: u64,
}

/// A section's keys, and the limits on their numbers.
#[derive(Debug, Default)]
pub(super) struct Section {
    keys: HashTable<Key>,
    /// Keys are given only numbers above this one, since other processes may have issued this number and
    /// lower ones.
    above: u64,
    /// The highest number that an evicted key had, or `above`. An unknown key continues from here.
    left: u64,
    /// The highest number that a key has received, or `above`.
    highest: u64,
    /// The bound in the store. Keys are not given numbers above it.
    bound: u64,
    /// Whether the section is waiting for a higher bound.
    pub(super) is_asked: bool,
}

/// A key's next number, as returned by [`Section::next`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) number: u64,
    /// How many numbers are left before the section reaches its bound.
    pub(super) left: u64,
    /// The number of keys evicted to make room for this key.
    pub(super) evicted: usize,
}

/// Returns a key's position in the table. A secret is mixed in. Otherwise, an attacker who knows the hash
/// could choose keys that all have the same position.
#[inline]
fn place(hash: u64, secret: u64) -> u64 {
    let product = u128::from(hash ^ secret) * u128::from(0x9E37_79B9_7F4A_7C15_u64);
    #[allow(clippy::cast_possible_truncation, reason = "both halves count")]
    let folded = (product >> 64) as u64 ^ product as u64;
    folded
}

impl Section {
    /// Returns the key's next number, or `None` if that would exceed the bound. The section keeps at most
    /// `most` keys. If there is no room for a new key, evicts some of the others.
    #[inline]
    pub(super) fn next(&mut self, hash: u64, secret: u64, most: usize) -> Option<Given> {
        let place_of = |key: &Key| place(key.hash, secret);
        let mut evicted = 0;
        let number = if let Some(key) = self.keys.find_mut(place(hash, secret), |key| key.hash == hash) {
            let number = (key.number & !USED).max(self.above) + 1;
            if number > self.bound {
                return None;
            }
            key.number = number | USED;
            number
        } else {
            if self.left >= self.bound {
                return None;
            }
            if self.keys.len() >= most {
                evicted = self.evict();
                if self.left >= self.bound {
                    return None;
                }
            }
            let number = self.left + 1;
            self.keys.insert_unique(place(hash, secret), Key { hash, number }, place_of);
            number
        };
        self.highest = self.highest.max(number);
        Some(Given { number, left: self.left(), evicted })
    }

    /// Evicts an eighth of the keys, starting with unmarked keys. If too few keys are unmarked, removes all
    /// marks and evicts keys that were marked.
    #[cold]
    fn evict(&mut self) -> usize {
        let enough = (self.keys.len() / 8).max(1);
        let mut evicted = 0;
        for is_last_round in [false, true] {
            let left = &mut self.left;
            self.keys.retain(|key| {
                let leaves = evicted < enough && (is_last_round || key.number & USED == 0);
                if is_last_round {
                    key.number &= !USED;
                }
                if leaves {
                    evicted += 1;
                    *left = (key.number & !USED).max(*left);
                }
                !leaves
            });
            if evicted == enough {
                break;
            }
        }
        evicted
    }

    /// Takes back the key's last number, if that is `number`. No caller has seen this number, so it can be
    /// given to the key again.
    pub(super) fn take_back(&mut self, hash: u64, number: u64, secret: u64) {
        if let Some(key) = self.keys.find_mut(place(hash, secret), |key| key.hash == hash) {
            if key.number & !USED == number && number > self.above {
                key.number -= 1;
            }
        }
    }

    /// Sets the bound that is now in the store. Other processes may have issued the numbers up to `above`.
    pub(super) fn extend(&mut self, above: u64, bound: u64) {
        if above > self.above {
            self.above = above;
            self.left = self.left.max(above);
            self.highest = self.highest.max(above);
        }
        self.bound = bound;
    }

    /// Returns the bound to request, `ahead` numbers above the highest number issued.
    pub(super) fn wanted(&self, ahead: u64) -> u64 {
        self.highest.saturating_add(ahead).min(LAST_NUMBER).max(self.bound)
    }

    pub(super) fn bound(&self) -> u64 {
        self.bound
    }

    /// Returns how many numbers are left before the section reaches its bound. If the store lost writes, the
    /// bound may be below numbers that were already issued.
    pub(super) fn left(&self) -> u64 {
        self.bound.saturating_sub(self.highest)
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Forgets all keys, and stops issuing numbers. Returns the highest number that was issued.
    pub(super) fn end(&mut self) -> u64 {
        core::mem::take(self).highest
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Act {
        Next(u64),
        /// The bound moves ahead by `by`, after other processes moved it by `skipped`.
        Extend {
            skipped: u64,
            by: u64,
        },
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = prop_oneof![
            20 => (0..40_u64).prop_map(Act::Next),
            2 => (1..30_u64).prop_map(|by| Act::Extend { skipped: 0, by }),
            1 => (0..30_u64, 0..30_u64).prop_map(|(skipped, by)| Act::Extend { skipped, by }),
        ];
        proptest::collection::vec(act, 1..300)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn each_key_counts_up_within_what_was_reserved(acts in acts(), most in 1..20_usize, secret: u64) {
            let mut section = Section::default();
            let mut last: HashMap<u64, u64> = HashMap::new();
            // Keys may be given numbers above `above`, up to `bound`.
            let (mut above, mut bound) = (0, 0);
            for act in acts {
                match act {
                    Act::Next(hash) => match section.next(hash, secret, most) {
                        Some(Given { number, left, evicted }) => {
                            let before = last.insert(hash, number).unwrap_or(0);
                            prop_assert!(number > before && number > above && number <= bound);
                            prop_assert_eq!(left, section.left());
                            prop_assert!(section.len() <= most && evicted <= most);
                        }
                        // Either this key or an unknown key has reached the bound.
                        None => prop_assert!(last.values().any(|&number| number == bound) || above == bound),
                    },
                    Act::Extend { skipped, by } => {
                        let before = bound + skipped;
                        if skipped > 0 {
                            above = before;
                        }
                        let wanted = section.wanted(by);
                        prop_assert!(wanted >= section.bound());
                        bound = before + by;
                        section.extend(above, bound);
                    }
                }
            }
            let highest = last.values().copied().max().unwrap_or(0).max(above);
            prop_assert_eq!(section.end(), highest);
            prop_assert_eq!((section.next(1, secret, most), section.len()), (None, 0));
        }
    }

    fn open(bound: u64) -> Section {
        let mut section = Section::default();
        section.extend(0, bound);
        section
    }

    fn next(section: &mut Section, hash: u64) -> u64 {
        section.next(hash, 7, 4).map_or(0, |given| given.number)
    }

    #[test]
    fn the_least_used_leave_and_come_back_above_their_numbers() {
        let mut section = open(1_000);
        for _ in 0..10 {
            next(&mut section, 1);
        }
        for _ in 0..5 {
            next(&mut section, 2);
        }
        assert_eq!((next(&mut section, 3), next(&mut section, 3), next(&mut section, 4)), (1, 2, 1));
        // Key 4 was used only once, so it is evicted to make room for key 5, which continues above key 4's
        // number.
        assert_eq!((next(&mut section, 5), section.len()), (2, 4));
        // Then key 5 is evicted to make room for key 4.
        assert_eq!(next(&mut section, 4), 3);
        assert_eq!((next(&mut section, 1), next(&mut section, 2), next(&mut section, 3)), (11, 6, 3));
    }

    #[test]
    fn what_nobody_was_told_of_is_given_again() {
        let mut section = open(1_000);
        assert_eq!([next(&mut section, 1), next(&mut section, 1), next(&mut section, 2)], [1, 2, 1]);
        section.take_back(1, 2, 7);
        section.take_back(2, 1, 7);
        section.take_back(3, 1, 7);
        assert_eq!([next(&mut section, 1), next(&mut section, 2), next(&mut section, 3)], [2, 1, 1]);
        // A number is not taken back if the key has a later number, or if another process may have issued
        // later ones.
        next(&mut section, 1);
        section.take_back(1, 2, 7);
        assert_eq!(next(&mut section, 1), 4);
        section.extend(500, 1_000);
        section.take_back(1, 4, 7);
        assert_eq!(next(&mut section, 1), 501);
    }

    #[test]
    fn where_all_were_used_some_leave() {
        let mut section = open(1_000);
        for hash in [1, 2, 3, 4, 1, 2, 3, 4] {
            next(&mut section, hash);
        }
        assert_eq!((next(&mut section, 5), section.len()), (3, 4));
        // All marks were removed. Keys that are used from now on stay.
        let stays: Vec<_> = (1..5).filter(|&hash| next(&mut section, hash) == 3).collect();
        assert!(stays.len() >= 3, "{stays:?}");
        let mut section = open(10);
        assert_eq!(section.next(1, 7, 1).map(|it| it.number), Some(1));
        assert_eq!(section.next(1, 7, 1).map(|it| it.number), Some(2));
        assert_eq!(section.next(2, 7, 1), Some(Given { number: 3, left: 7, evicted: 1 }));
        assert_eq!(section.next(1, 7, 1), Some(Given { number: 4, left: 6, evicted: 1 }));
    }

    #[test]
    fn a_key_takes_at_most_40_bytes() {
        let mut section = open(LAST_NUMBER);
        for keys in 1..40_000_u64 {
            section.next(keys.wrapping_mul(0x9E37_79B9_7F4A_7C15), 7, usize::MAX);
            // With ten million keys, each of 1,024 sections has 9,766.
            if keys >= 100 {
                let size = section.keys.allocation_size() as u64;
                assert!(size <= 40 * keys, "{keys} keys have {size} bytes");
            }
        }
    }

    #[test]
    fn nothing_is_above_the_last_number() {
        let mut section = open(0);
        section.extend(LAST_NUMBER - 2, LAST_NUMBER - 1);
        assert_eq!(section.wanted(20_000), LAST_NUMBER);
        section.extend(LAST_NUMBER - 2, LAST_NUMBER);
        assert_eq!(
            [next(&mut section, 1), next(&mut section, 1), next(&mut section, 1)],
            [LAST_NUMBER - 1, LAST_NUMBER, 0]
        );
        assert_eq!(next(&mut section, 1), 0);
        assert_eq!(section.wanted(20_000), LAST_NUMBER);
    }
}
