//! The hash of a key, which determines its section.

use xxhash_rust::xxh3;

use super::key::{Kind, SequenceKey};

/// The name of the hash, which the store's records contain. A process that used a different hash would count
/// keys in different sections.
pub(crate) const HASH: &str = "xxh3-64";

/// The seed for integers. It makes an integer and a string with the same bytes hash differently.
const INTEGERS: u64 = 1;

impl SequenceKey<'_> {
    /// Returns the hash that represents the key. The hash function must not change, since the numbers in the
    /// store depend on it. For a string, it is the 64-bit XXH3 of the UTF-8 bytes with seed 0. For an
    /// integer, it is the 64-bit XXH3 of the 16-byte two's complement, lowest byte first, with seed 1.
    #[inline]
    pub(crate) fn hash(self) -> u64 {
        match self.0 {
            Kind::Text(text) => xxh3::xxh3_64(text.as_bytes()),
            Kind::Integer(integer) => xxh3::xxh3_64_with_seed(&integer.to_le_bytes(), INTEGERS),
        }
    }
}

/// Returns the section that a key with this hash belongs to.
#[allow(clippy::cast_possible_truncation, reason = "below `sections`")]
#[inline]
pub(crate) fn section_of(hash: u64, sections: usize) -> usize {
    ((u128::from(hash) * sections as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_stay_what_they_are() {
        let hash = |key: SequenceKey<'_>| format!("{:016x}", key.hash());
        // The values come from the reference implementation (Python's xxhash 3.6).
        assert_eq!(hash("".into()), "2d06800538d394c2");
        assert_eq!(hash("5".into()), "dedb980100c87e72");
        assert_eq!(hash(5.into()), "7e142e568ae2cb81");
        assert_eq!(hash(u64::MAX.into()), "01b80a2a163c4e10");
        assert_eq!(hash((-1).into()), "bd660b692698ae41");
        assert_ne!(hash("\u{5}\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".into()), hash(5.into()));
    }

    #[test]
    fn each_section_has_its_part_of_the_hashes() {
        for sections in [1, 2, 3, 1024, 16_384] {
            let parts = u64::try_from(sections).unwrap();
            for section in 0..sections {
                let first =
                    u64::try_from((u128::try_from(section).unwrap() << 64).div_ceil(u128::from(parts)))
                        .unwrap();
                assert_eq!(section_of(first, sections), section);
                assert_eq!(section_of(first.wrapping_sub(1), sections), (section + sections - 1) % sections);
            }
        }
    }
}
