//! Encodes 128 bits as 22 digits of 0-9A-Za-z, most significant first.

#![allow(clippy::cast_possible_truncation, reason = "what is cast was divided until it fits")]

use crate::text::Format;

pub(super) const DIGITS: usize = 22;
/// 2^128-1.
pub(super) const HIGHEST: &str = "7n42DGM5Tflk9n8mt7Fhc7";

/// The digits are two leading digits and two runs of ten.
const RUN: usize = 10;
const RUN_BASE: u64 = 62_u64.pow(10);
const RUNS_BASE: u128 = RUN_BASE as u128 * RUN_BASE as u128;
/// Multiplying by this and by 2^-120 divides by 62^10.
const RECIPROCAL: u128 = (1 << 120) / RUN_BASE as u128;

/// Returns the digits of a number. The table lookups may leak them to programs that share the processor's
/// cache. This is harmless, because public IDs are not secret and a key is only written out where it is
/// created.
pub(super) fn write(number: u128) -> [u8; DIGITS] {
    let (top, middle, bottom) = split(number);
    let mut digits = [0; DIGITS];
    let (high, low) = digits.split_at_mut(DIGITS - 2 * RUN);
    high.copy_from_slice(&[digit(top / 62), digit(top % 62)]);
    let (first, second) = low.split_at_mut(RUN);
    let (mut middle, mut bottom) = (fraction(middle), fraction(bottom));
    // The two runs are independent of each other.
    for (first, second) in first.iter_mut().zip(second) {
        (*first, middle) = next(middle);
        (*second, bottom) = next(bottom);
    }
    digits
}

/// Returns a run divided by 62^10, as a 64-bit binary fraction. Multiplying it by 62 repeatedly yields its
/// digits, most significant first. The result is too large by less than 3 units, and 62^10 times that is less
/// than 2^64, the weight of the last digit.
const fn fraction(run: u64) -> u64 {
    const BITS: u32 = 123;
    let inverse = (1 << BITS) / RUN_BASE as u128 + 1;
    ((run as u128 * inverse) >> (BITS - 64)) as u64 + 1
}

/// Returns the first digit of a fraction, and the remaining fraction.
fn next(fraction: u64) -> (u8, u64) {
    let shifted = u128::from(fraction) * 62;
    (digit((shifted >> 64) as u64), shifted as u64)
}

/// Splits a number into groups of two, ten and ten digits. It multiplies instead of dividing, because a
/// 128-bit division takes longer than AES.
const fn split(number: u128) -> (u64, u64, u64) {
    // At most one less than the quotient: the divisor keeps 56 of its 120 bits, and the quotient is below
    // 484.
    let mut top = (number >> 64) as u64 / ((RUNS_BASE >> 64) as u64 + 1);
    let mut rest = number - top as u128 * RUNS_BASE;
    if rest >= RUNS_BASE {
        (top, rest) = (top + 1, rest - RUNS_BASE);
    }
    // Again at most one less: the two roundings remove less than 2^56/62^10 + 2^64/2^64.
    let mut middle = (((rest >> 56) * RECIPROCAL) >> 64) as u64;
    let mut bottom = (rest - middle as u128 * RUN_BASE as u128) as u64;
    if bottom >= RUN_BASE {
        (middle, bottom) = (middle + 1, bottom - RUN_BASE);
    }
    (top, middle, bottom)
}

/// Returns the number that the digits represent, unless one of them is invalid or the number exceeds 128
/// bits. It uses arithmetic instead of a table, because it also reads keys: programs that share the
/// processor's cache must not see which table entries are used. Compilers vectorize the arithmetic.
pub(super) fn read(digits: &[u8; DIGITS]) -> Option<u128> {
    let values = digits.map(value_or_foreign);
    // Avoids a branch per digit.
    if values.iter().fold(0, |all, value| all | value) & FOREIGN != 0 {
        return None;
    }
    let number = |values: &[u8]| values.iter().fold(0, |number: u64, value| number * 62 + u64::from(*value));
    let (top, low) = values.split_at(DIGITS - 2 * RUN);
    let (middle, bottom) = low.split_at(RUN);
    let rest = u128::from(number(middle)) * u128::from(RUN_BASE) + u128::from(number(bottom));
    u128::from(number(top)).checked_mul(RUNS_BASE)?.checked_add(rest)
}

/// Returns the digit for a value below 62.
pub(super) fn digit(value: u64) -> u8 {
    let value = usize::try_from(value).unwrap_or_default();
    Format::Base62.alphabet().as_bytes().get(value).copied().unwrap_or_default()
}

/// Returns the value of a digit, or `None` if it is not a digit.
pub(super) const fn value(digit: u8) -> Option<u8> {
    match value_or_foreign(digit) {
        FOREIGN => None,
        value => Some(value),
    }
}

/// A bit that is not set in any value.
const FOREIGN: u8 = 0x80;

const fn value_or_foreign(digit: u8) -> u8 {
    let (number, upper, lower) =
        (digit.wrapping_sub(b'0'), digit.wrapping_sub(b'A'), digit.wrapping_sub(b'a'));
    // Each mask is all ones if the digit is of that kind, and 0 otherwise.
    let (is_number, is_upper, is_lower) = (mask(number < 10), mask(upper < 26), mask(lower < 26));
    (number & is_number)
        | (upper.wrapping_add(10) & is_upper)
        | (lower.wrapping_add(36) & is_lower)
        | (FOREIGN & !(is_number | is_upper | is_lower))
}

const fn mask(is: bool) -> u8 {
    (is as u8).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_base62() {
        let alphabet = Format::Base62.alphabet().as_bytes();
        for (value, digit) in (0..).zip(alphabet) {
            assert_eq!((super::digit(value.into()), super::value(*digit)), (*digit, Some(value)));
        }
        for foreign in (0..=u8::MAX).filter(|byte| !alphabet.contains(byte)) {
            assert_eq!(value(foreign), None);
            let mut digits = [b'0'; DIGITS];
            digits[7] = foreign;
            assert_eq!(read(&digits), None);
        }
    }

    #[test]
    fn numbers_are_split_as_a_division_does() {
        let run_base = u128::from(RUN_BASE);
        // Numbers around each multiple of the first divisor, and around multiples of the second.
        let multiples = (0..=483).flat_map(|top| {
            let rests = (0..60).map(|shift| (u128::from(RUN_BASE) >> shift) * run_base);
            rests.filter_map(move |rest| (top * RUNS_BASE).checked_add(rest))
        });
        for number in
            multiples.flat_map(|it| [it.wrapping_sub(1), it, it.saturating_add(1)]).chain([u128::MAX])
        {
            let (top, middle, bottom) = split(number);
            assert_eq!(u128::from(top), number / RUNS_BASE);
            assert_eq!(u128::from(middle), number % RUNS_BASE / run_base);
            assert_eq!(u128::from(bottom), number % run_base);
        }
    }

    #[test]
    fn numbers_at_the_edges_have_their_digits() {
        let edges = [
            0,
            1,
            61,
            62,
            u128::from(RUN_BASE),
            u128::from(RUN_BASE),
            RUNS_BASE,
            482 * RUNS_BASE,
            1 << 64,
            1 << 127,
            u128::MAX,
        ];
        for number in edges.into_iter().flat_map(|edge| [edge.wrapping_sub(1), edge, edge.wrapping_add(1)]) {
            let digits = write(number);
            let plainly = digits.iter().fold(0_u128, |number, digit| {
                number * 62
                    + Format::Base62.alphabet().bytes().position(|each| each == *digit).unwrap() as u128
            });
            assert_eq!((plainly, read(&digits)), (number, Some(number)));
        }
        assert_eq!(&write(u128::MAX), HIGHEST.as_bytes());
        assert_eq!(read(b"7n42DGM5Tflk9n8mt7Fhc8"), None);
        assert_eq!(read(b"7o0000000000000000000000"[..DIGITS].try_into().unwrap()), None);
        assert_eq!(read(&[b'z'; DIGITS]), None);
    }
}
