//! 128 bits as 22 digits of 0-9A-Za-z, highest first. By arithmetic, because a table would tell a key's digits to what
//! shares the processor's cache; and compilers do it for many digits at once.

pub(super) const DIGITS: usize = 22;
/// 2^128-1.
pub(super) const HIGHEST: &str = "7n42DGM5Tflk9n8mt7Fhc7";

/// How many digits are worked on as one number of 64 bits.
const RUN: usize = 10;
/// 62^10 and 62^20, so that a number is two digits, and two runs of ten.
const RUN_BASE: u64 = 62_u64.pow(10);
const RUNS_BASE: u128 = RUN_BASE as u128 * RUN_BASE as u128;

/// The digits of a number.
pub(super) fn write(number: u128) -> [u8; DIGITS] {
    let (high, rest) = (number / RUNS_BASE, number % RUNS_BASE);
    let runs = [high, rest / u128::from(RUN_BASE), rest % u128::from(RUN_BASE)];
    let mut digits = [0; DIGITS];
    let (high, low) = digits.split_at_mut(DIGITS - 2 * RUN);
    for (places, run) in core::iter::once(high).chain(low.chunks_exact_mut(RUN)).zip(runs) {
        #[expect(clippy::cast_possible_truncation, reason = "below 62^10")]
        let mut run = run as u64;
        for place in places.iter_mut().rev() {
            *place = (run % 62) as u8;
            run /= 62;
        }
    }
    digits.map(digit)
}

/// The number of digits, unless one is none, or they pass 128 bits.
pub(super) fn read(digits: &[u8; DIGITS]) -> Option<u128> {
    let values = digits.map(value_or_foreign);
    // Without a branch for each digit.
    if values.iter().fold(0, |all, value| all | value) & FOREIGN != 0 {
        return None;
    }
    let number = |values: &[u8]| values.iter().fold(0, |number: u64, value| number * 62 + u64::from(*value));
    let (high, low) = values.split_at(DIGITS - 2 * RUN);
    let (middle, low) = low.split_at(RUN);
    let rest = u128::from(number(middle)) * u128::from(RUN_BASE) + u128::from(number(low));
    u128::from(number(high)).checked_mul(RUNS_BASE)?.checked_add(rest)
}

/// The digit of a value below 62.
pub(super) const fn digit(value: u8) -> u8 {
    value + b'0' + (value > 9) as u8 * (b'A' - b'9' - 1) + (value > 35) as u8 * (b'a' - b'Z' - 1)
}

/// The value of a digit.
pub(super) const fn value(digit: u8) -> Option<u8> {
    match value_or_foreign(digit) {
        FOREIGN => None,
        value => Some(value),
    }
}

/// A bit that no value has.
const FOREIGN: u8 = 0x80;

const fn value_or_foreign(digit: u8) -> u8 {
    let (number, upper, lower) =
        (digit.wrapping_sub(b'0'), digit.wrapping_sub(b'A'), digit.wrapping_sub(b'a'));
    // Each is all ones where the digit is of that kind, and else 0.
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
    use crate::text::Format;

    #[test]
    fn digits_are_those_of_base62() {
        let alphabet = Format::Base62.alphabet().as_bytes();
        for (value, digit) in (0..).zip(alphabet) {
            assert_eq!((super::digit(value), super::value(*digit)), (*digit, Some(value)));
        }
        for foreign in (0..=u8::MAX).filter(|byte| !alphabet.contains(byte)) {
            assert_eq!(value(foreign), None);
            let mut digits = [b'0'; DIGITS];
            digits[7] = foreign;
            assert_eq!(read(&digits), None);
        }
    }

    #[test]
    fn numbers_at_the_edges_have_their_digits() {
        let edges =
            [0, 1, 61, 62, u128::from(RUN_BASE), RUNS_BASE, 482 * RUNS_BASE, 1 << 64, 1 << 127, u128::MAX];
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
