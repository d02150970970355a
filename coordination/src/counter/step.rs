//! Chooses the size of the next segment.

use core::time::Duration;

/// The size of the first segment.
const FIRST: u64 = 100;
/// The largest size that `auto` chooses.
const LARGEST: u64 = 1_000_000;
/// How long a segment should last.
const LASTS: Duration = Duration::from_secs(600);

/// The size of the segments: either fixed, or adjusted to the rate at which numbers are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Fixed(u64),
    Auto { present: u64, was_quiet: bool },
}

impl Step {
    pub(crate) const AUTO: Self = Self::Auto { present: FIRST, was_quiet: false };

    /// Returns the size of the next segment.
    pub(crate) const fn present(self) -> u64 {
        match self {
            Self::Fixed(step) | Self::Auto { present: step, .. } => step,
        }
    }

    /// Returns the next step after `used` numbers were used in the time `within`. The step at most doubles.
    /// It halves after two segments in a row for which half the step would have been enough.
    #[must_use]
    pub(crate) fn after(self, used: u64, within: Duration) -> Self {
        let Self::Auto { present, was_quiet } = self else { return self };
        let wanted = u128::from(used) * LASTS.as_nanos() / within.as_nanos().max(1);
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX).clamp(FIRST, LARGEST);
        let is_quiet = wanted <= present / 2;
        if is_quiet && was_quiet {
            return Self::Auto { present: present / 2, was_quiet: false };
        }
        Self::Auto { present: wanted.clamp(present, present.saturating_mul(2)), was_quiet: is_quiet }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn presents(mut step: Step, used: &[(u64, u64)]) -> Vec<u64> {
        used.iter()
            .map(|&(used, secs)| {
                step = step.after(used, Duration::from_secs(secs));
                step.present()
            })
            .collect()
    }

    #[test]
    fn it_doubles_up_to_ten_minutes_of_numbers() {
        // At 50 numbers per second, 30,000 numbers last ten minutes.
        let steps = presents(Step::AUTO, &[(10, 0); 5]);
        assert_eq!(steps, [200, 400, 800, 1600, 3200]);
        let steps = presents(Step::AUTO, &[(50, 1); 12]);
        assert_eq!(steps[7..], [25_600, 30_000, 30_000, 30_000, 30_000]);
    }

    #[test]
    fn it_has_a_largest() {
        let steps = presents(Step::AUTO, &[(u64::MAX, 0); 20]);
        assert_eq!(steps[12..16], [819_200, 1_000_000, 1_000_000, 1_000_000]);
        // The largest segment lasts ten minutes at up to 1,667 numbers per second.
        let steps = presents(Step::Auto { present: LARGEST, was_quiet: false }, &[(1_000_000, 600); 3]);
        assert_eq!(steps, [LARGEST; 3]);
    }

    #[test]
    fn two_quiet_ones_in_a_row_halve_it() {
        let large = Step::Auto { present: 10_000, was_quiet: false };
        assert_eq!(presents(large, &[(1, 60); 5]), [10_000, 5_000, 5_000, 2_500, 2_500]);
        assert_eq!(
            presents(large, &[(1, 60), (9_000, 600), (1, 60), (1, 60)]),
            [10_000, 10_000, 10_000, 5_000]
        );
        assert_eq!(presents(Step::AUTO, &[(1, 3600); 9]), [100; 9]);
    }

    #[test]
    fn a_given_one_stays() {
        assert_eq!(presents(Step::Fixed(7), &[(1_000_000, 1), (0, 3600)]), [7, 7]);
    }
}
