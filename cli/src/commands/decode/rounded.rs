//! Detects IDs that were rounded to floating-point numbers, as all numbers are in JavaScript.

use polyflake::Decoded;

/// Fewer IDs than this prove nothing.
const FEWEST: u64 = 10;
/// How many bits a floating-point number keeps.
const KEPT: u32 = 53;

/// Counts IDs that have lost digits.
#[derive(Default)]
pub(super) struct Rounded {
    /// IDs with more bits than a floating-point number keeps.
    large: u64,
    /// IDs that are the shortest decimal form of a floating-point number, as JavaScript prints it: 1 in 10 to
    /// 100 by chance.
    printed: u64,
    /// IDs that equal a floating-point number, as in a column of such numbers: 1 in 128 or fewer by chance.
    /// If sequences start at zero, many IDs are exact although nothing was lost.
    exact: u64,
    exact_in_sequence: u64,
}

impl Rounded {
    pub(super) fn see(&mut self, decoded: &Decoded) {
        let id = decoded.id();
        let Some(lost) = (u64::BITS - id.leading_zeros()).checked_sub(KEPT).filter(|lost| *lost > 0) else {
            return;
        };
        self.large += 1;
        #[expect(clippy::cast_precision_loss, reason = "this is what is looked for")]
        let is_printed = || (id as f64).to_string() == id.to_string();
        if id % 10 == 0 && is_printed() {
            self.printed += 1;
        }
        if id.trailing_zeros() >= lost {
            self.exact += 1;
            self.exact_in_sequence += u64::from(decoded.sequence() > 0);
        }
    }

    /// Returns a warning if chance alone cannot explain the count.
    pub(super) fn warning(&self) -> Option<String> {
        let Self { large, printed, exact, exact_in_sequence } = *self;
        let count = if large >= FEWEST && printed * 2 >= large {
            printed
        } else if large >= FEWEST && exact * 10 >= large * 9 && exact_in_sequence * 2 >= exact {
            exact
        } else {
            return None;
        };
        Some(format!(
            "{count} of {large} IDs look rounded, as floating-point numbers beyond 2^53 are: their last digits are lost. Keep IDs as strings or 64-bit integers on the way here"
        ))
    }
}
