//! Measures how fast a counter advances, based on one process's checks.

use super::Text;

const MINUTE_MS: u64 = 60_000;

/// The checks from the last minute. The list starts over if the number changes in any way other than by
/// reserving numbers or giving them back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(super) struct Looks {
    incarnation: String,
    raised: u64,
    /// The time of each check, and the record's number at that time.
    of: Vec<(u64, u64)>,
}

impl Looks {
    /// Adds a check. Returns the record's new `skip`, if that is larger than the current `skip`.
    pub(super) fn saw(&mut self, number: u64, text: &Text, elapsed_ms: u64) -> Option<u64> {
        if (&self.incarnation, self.raised) != (&text.incarnation, text.raised) {
            self.of.clear();
            self.incarnation.clone_from(&text.incarnation);
            self.raised = text.raised;
        }
        self.of.retain(|&(at_ms, _)| at_ms.saturating_add(MINUTE_MS) >= elapsed_ms);
        let advance = self.of.iter().map(|&(_, before)| number.saturating_sub(before)).max();
        self.of.push((elapsed_ms, number));
        let skip = rounded_up(advance?.saturating_mul(2));
        (skip > text.skip).then_some(skip)
    }

    #[cfg(test)]
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Rounds up by at most an eighth, so that the record seldom changes while the rate rises slowly.
fn rounded_up(skip: u64) -> u64 {
    let unit = (skip / 8).checked_next_power_of_two().map_or(1, |it| it / 2).max(1);
    skip.checked_next_multiple_of(unit).unwrap_or(skip)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Place;

    fn text() -> Text {
        Text::new("id".into(), Place::ONLY, "a".into())
    }

    #[test]
    fn it_is_twice_the_most_within_a_minute() {
        let mut looks = Looks::default();
        let skips: Vec<_> = [(0, 0), (30_000, 4), (60_000, 8), (90_000, 8), (120_000, 9), (240_000, 5_000)]
            .map(|(at_ms, number)| looks.saw(number, &text(), at_ms))
            .into();
        assert_eq!(skips, [None, Some(8), Some(16), Some(8), Some(2), None]);
        assert_eq!(looks.saw(5_004, &Text { skip: 8, ..text() }, 241_000), None);
        assert_eq!(looks.saw(5_005, &Text { skip: 8, ..text() }, 241_000), Some(10));
    }

    #[test]
    fn what_is_raised_or_turned_over_is_no_advance() {
        let mut looks = Looks::default();
        assert_eq!(looks.saw(10, &text(), 0), None);
        assert_eq!(looks.saw(1_000, &Text { raised: 1, ..text() }, 3_000), None);
        assert_eq!(looks.saw(1_001, &Text { raised: 1, incarnation: "b".into(), ..text() }, 6_000), None);
        // Numbers that have been given back do not count either.
        assert_eq!(looks.saw(900, &Text { raised: 1, incarnation: "b".into(), ..text() }, 9_000), None);
    }

    #[test]
    fn it_is_rounded_by_an_eighth_at_most() {
        for skip in (0..5_000).chain([1 << 40, (1 << 40) + 1, u64::MAX]) {
            let rounded = rounded_up(skip);
            assert!(rounded >= skip && rounded - skip <= skip / 8, "{skip} {rounded}");
        }
        let steps: std::collections::BTreeSet<_> = (0..100_000).map(rounded_up).collect();
        assert!(steps.len() < 200, "{}", steps.len());
    }
}
