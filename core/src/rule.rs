//! The rule that decides which slots are taken.
//!
//! A slot is `tick << sequence_bits | sequence`. [`Rule::step`] is the whole algorithm: it takes the last
//! slot and the time as arguments, and does no I/O.

use core::str::FromStr;

use crate::error::{Error, error};
use crate::layout::{Layout, ones};

/// The first sequence number of a fresh tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SequenceStart {
    /// `zero`.
    Zero,
    /// `spread`: varies from tick to tick within the lower quarter of the sequence's range, so that IDs
    /// issued at a low rate do not all end in the same bits and `id % n` distributes them evenly across
    /// shards.
    #[default]
    Spread,
}

impl FromStr for SequenceStart {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        match name {
            "zero" => Ok(Self::Zero),
            "spread" => Ok(Self::Spread),
            _ => Err(error!(
                InvalidOption,
                "sequence_start is `%`; it takes zero or spread",
                Bytes(name.as_bytes())
            )),
        }
    }
}

/// How far IDs may be from the clock. The tolerance belongs to the cursor: all Snowflakes that share a cursor
/// have the same tolerance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tolerance {
    pub(crate) max_backward_ms: u32,
    pub(crate) max_ahead_ms: u32,
}

impl Tolerance {
    /// Returns an error if this tolerance differs from `first`, with which the cursor was created.
    pub(crate) fn check_same(self, first: Self) -> Result<(), Error> {
        for (option, value, first) in [
            ("max_backward_ms", self.max_backward_ms, first.max_backward_ms),
            ("max_ahead_ms", self.max_ahead_ms, first.max_ahead_ms),
        ] {
            if value != first {
                return Err(error!(
                    InvalidOption,
                    "% is %, but this process already issues IDs for this layout and node with % %: give every Snowflake of \
                     the node the same value",
                    Option(option),
                    Number(value.into()),
                    Option(option),
                    Number(first.into())
                ));
            }
        }
        Ok(())
    }
}

/// The parameters of a step, in ticks: everything about a Snowflake except its node's bits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    epoch_ms: u64,
    tick_ms: u64,
    last_tick: u64,
    sequence_bits: u32,
    ahead: u64,
    back: u64,
    start: SequenceStart,
    node: u64,
}

/// Slots to take: all from `first` to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// True if the clock has stepped back, but within the tolerance.
    pub(crate) rolled_back: bool,
}

/// Slots that have been taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) run: Run,
    /// The bits of the slots' node, at their positions. With a lease, later slots may have another node.
    pub(crate) placed_node: u64,
}

/// The reason no slot can be taken now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The clock is before the epoch or past the last tick.
    OutOfRange,
    /// The next slot would be past the last tick.
    Ended,
    /// The clock has stepped back by more than is tolerated.
    Backwards { behind_ms: u64, retry_at_ms: u64 },
    /// A slot becomes free when the clock reaches `retry_at_ms`. `behind_ms` is set if the clock has stepped
    /// back.
    Exhausted { behind_ms: Option<u64>, retry_at_ms: u64 },
}

impl Rule {
    pub(crate) fn new(layout: &Layout, node: u64, tolerance: Tolerance, start: SequenceStart) -> Self {
        Self {
            epoch_ms: layout.epoch_ms(),
            tick_ms: layout.tick_ms(),
            last_tick: ones(layout.timestamp_bits()),
            sequence_bits: layout.sequence_bits(),
            ahead: u64::from(tolerance.max_ahead_ms) / layout.tick_ms(),
            back: u64::from(tolerance.max_backward_ms).div_ceil(layout.tick_ms()),
            start,
            node,
        }
    }

    /// Returns the same rule for another node.
    pub(crate) const fn of_node(self, node: u64) -> Self {
        Self { node, ..self }
    }

    /// Returns the slots that a caller who wants `count` slots (at least 1) may take, if the cursor was at
    /// `last` before the clock returned `now_ms`.
    #[inline(always)]
    pub(crate) fn step(&self, last: u64, now_ms: i64, count: u64) -> Result<Run, Stop> {
        let last_tick = last >> self.sequence_bits;
        let now = self.tick_near(last_tick, now_ms).ok_or(Stop::OutOfRange)?;
        let horizon = now.saturating_add(self.ahead);
        if last_tick.saturating_sub(horizon) > self.back {
            return Err(self.backwards(last, now_ms));
        }
        let first = match last.checked_add(1) {
            Some(next) if self.tick_of(next) >= now => next,
            Some(_) => self.fresh(now),
            None => return Err(Stop::Ended),
        };
        let tick = self.tick_of(first);
        if tick > self.last_tick {
            return Err(Stop::Ended);
        }
        let rolled_back = last_tick > horizon;
        if tick > horizon && tick != last_tick {
            return Err(self.exhausted(last, tick, now_ms));
        }
        // Every slot up to the end of the furthest allowed tick may be taken.
        let end = horizon.max(tick).min(self.last_tick) << self.sequence_bits | ones(self.sequence_bits);
        Ok(Run { first, last: end.min(first.saturating_add(count - 1)), rolled_back })
    }

    /// Returns the slot after `last` if it is in the clock's current tick. [`step`](Self::step) would then
    /// return it too, regardless of the options. `last` must be below the layout's last slot: the caller
    /// compares it with a [`Limit`](crate::limit::Limit).
    #[inline(always)]
    pub(crate) const fn next_in_tick(&self, last: u64, now_ms: i64) -> Option<u64> {
        let next = last.wrapping_add(1);
        let start_ms = self.tick_of(next).wrapping_mul(self.tick_ms).wrapping_add(self.epoch_ms);
        // Every tick ends by 2^63 ms, and a time before 1970 is 2^63 or more here, so such a time falls in no
        // tick.
        #[expect(clippy::cast_sign_loss, reason = "modulo 2^64")]
        let since_ms = (now_ms as u64).wrapping_sub(start_ms);
        if since_ms < self.tick_ms { Some(next) } else { None }
    }

    /// Returns the first run of a cursor that has not issued anything yet, given the `run` that the rule
    /// allows. It starts in the same tick, at the sequence number of a fresh tick.
    pub(crate) fn first_run(&self, run: Run) -> Run {
        let first = self.fresh(self.tick_of(run.first)).max(run.first);
        Run { first, last: first.saturating_add(run.last - run.first).min(self.end_of_tick(first)), ..run }
    }

    /// Returns the tick of an instant, if the instant is within the layout.
    #[inline(always)]
    pub(crate) fn tick_at(&self, now_ms: i64) -> Option<u64> {
        self.tick_near(0, now_ms)
    }

    /// Like [`tick_at`](Self::tick_at), but without a division if the tick is `likely` or ticks last 1 ms.
    #[inline(always)]
    fn tick_near(&self, likely: u64, now_ms: i64) -> Option<u64> {
        let after = u64::try_from(now_ms).ok()?.checked_sub(self.epoch_ms)?;
        let tick = if self.tick_ms == 1 {
            after
        } else {
            let start = likely.checked_mul(self.tick_ms);
            match start.and_then(|start| after.checked_sub(start)) {
                Some(since) if since < self.tick_ms => likely,
                _ => after / self.tick_ms,
            }
        };
        (tick <= self.last_tick).then_some(tick)
    }

    #[inline]
    pub(crate) const fn tick_of(&self, slot: u64) -> u64 {
        slot >> self.sequence_bits
    }

    /// The Unix ms at which a tick begins.
    pub(crate) const fn start_ms(&self, tick: u64) -> u64 {
        // The ticks a step refers to are at most one past the layout's last, which ends before 2^63. The
        // ticks of a disowned cursor can be anywhere, but their start is not used.
        self.epoch_ms.saturating_add(tick.saturating_mul(self.tick_ms))
    }

    /// Returns the last slot that an earlier process may have used when the clock was at `now_ms`: the last
    /// slot in the furthest tick that `ahead` allows.
    #[inline(never)]
    pub(crate) fn used_up_to(&self, now_ms: i64) -> u64 {
        match self.tick_at(now_ms) {
            Some(now) => {
                let tick = now.saturating_add(self.ahead).min(self.last_tick);
                tick << self.sequence_bits | ones(self.sequence_bits)
            }
            // Nothing is issued past the end, and nothing was issued before the epoch.
            None => 0,
        }
    }

    #[cfg(all(feature = "std", not(loom)))]
    pub(crate) const fn epoch_ms(&self) -> u64 {
        self.epoch_ms
    }

    pub(crate) const fn tick_ms(&self) -> u64 {
        self.tick_ms
    }

    /// Returns the last slot of the tick that contains `slot`.
    pub(crate) const fn end_of_tick(&self, slot: u64) -> u64 {
        slot | ones(self.sequence_bits)
    }

    /// Returns how far a slot is ahead of the clock, beyond what `max_ahead_ms` allows.
    pub(crate) fn lead_ms(&self, slot: u64, now_ms: i64) -> u64 {
        self.behind_ms(self.tick_of(slot), now_ms)
    }

    /// Returns the time, in Unix ms, from which the tick after the slot's tick can be used.
    pub(crate) fn passed_at_ms(&self, slot: u64) -> u64 {
        self.start_ms(self.tick_of(slot).saturating_add(1).saturating_sub(self.ahead))
    }

    #[inline]
    fn fresh(&self, tick: u64) -> u64 {
        let start = match self.start {
            SequenceStart::Zero => 0,
            SequenceStart::Spread => {
                mix(tick ^ (self.node << 48)) & ones(self.sequence_bits.saturating_sub(2))
            }
        };
        tick << self.sequence_bits | start
    }

    #[cold]
    fn backwards(&self, last: u64, now_ms: i64) -> Stop {
        let last_tick = self.tick_of(last);
        let next_tick = last.checked_add(1).map(|next| self.tick_of(next));
        let retry_tick = if next_tick == Some(last_tick) {
            last_tick.saturating_sub(self.ahead).saturating_sub(self.back)
        } else {
            last_tick.saturating_add(1).saturating_sub(self.ahead)
        };
        let retry_at_ms = self.start_ms(retry_tick);
        Stop::Backwards { behind_ms: self.behind_ms(last_tick, now_ms), retry_at_ms }
    }

    #[cold]
    fn exhausted(&self, last: u64, tick: u64, now_ms: i64) -> Stop {
        let last_tick = self.tick_of(last);
        let behind_ms = self.behind_ms(last_tick, now_ms);
        let retry_at_ms = self.start_ms(tick.saturating_sub(self.ahead));
        Stop::Exhausted { behind_ms: (behind_ms > 0).then_some(behind_ms), retry_at_ms }
    }

    /// Returns how far the clock is behind the first tick that would not count as a step back from
    /// `last_tick`.
    fn behind_ms(&self, last_tick: u64, now_ms: i64) -> u64 {
        ms_until(now_ms, self.start_ms(last_tick.saturating_sub(self.ahead)))
    }
}

/// Returns the ms from `now_ms` to `target_ms`, or 0 if that time has passed.
pub(crate) fn ms_until(now_ms: i64, target_ms: u64) -> u64 {
    match u64::try_from(now_ms) {
        Ok(now_ms) => target_ms.saturating_sub(now_ms),
        Err(_) => target_ms.saturating_add(now_ms.unsigned_abs()),
    }
}

/// The output function of SplitMix64 (Steele, Lea and Flood, 2014; constants of Stafford's variant 13):
/// <https://prng.di.unimi.it/splitmix64.c>
#[inline]
const fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(all(test, not(loom), not(miri)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Holds for all layouts, options and clocks.
        #[test]
        fn the_next_slot_of_the_tick_is_the_rules(
            (timestamp_bits, sequence_bits) in (1_u32..=63, 1_u32..=32).prop_filter("64 bits", |(t, s)| t + s <= 64),
            tick_ms in prop_oneof![Just(1_u64), Just(1000), 1_u64..1 << 40, Just(1 << 62)],
            epoch_ms in prop_oneof![Just(0_u64), 0_u64..1 << 62],
            max_ahead_ms in 0_u32..5000,
            last in any::<u64>(),
            near in -3_i64..3,
            far_ms in any::<i64>(),
            is_near in any::<bool>(),
        ) {
            let fields = [("timestamp", timestamp_bits), ("sequence", sequence_bits)];
            let Ok(layout) = Layout::new(&fields, epoch_ms, tick_ms) else { return Ok(()) };
            let tolerance = Tolerance { max_backward_ms: 1000, max_ahead_ms };
            let rule = Rule::new(&layout, 0, tolerance, SequenceStart::Zero);
            let last_slot = ones(timestamp_bits + sequence_bits);
            let last = (last & last_slot).min(last_slot - 1);
            let start_ms = i64::try_from(rule.start_ms(rule.tick_of(last + 1))).unwrap();
            let now_ms = if is_near {
                start_ms.saturating_add(near.saturating_mul(i64::try_from(tick_ms / 2 + 1).unwrap()))
            } else {
                far_ms
            };
            if let Some(next) = rule.next_in_tick(last, now_ms) {
                prop_assert_eq!(rule.step(last, now_ms, 1), Ok(Run { first: next, last: next, rolled_back: false }));
            }
            prop_assert_eq!(rule.next_in_tick(last, start_ms), Some(last + 1));
        }
    }

    #[test]
    fn no_time_before_1970_is_in_a_tick_that_ends_last() {
        let layout = Layout::new(&[("timestamp", 1), ("sequence", 2)], 0, 1 << 62).unwrap();
        let rule =
            Rule::new(&layout, 0, Tolerance { max_backward_ms: 0, max_ahead_ms: 0 }, SequenceStart::Zero);
        // In the last tick, from 2^62 to 2^63 - 1.
        for (now_ms, next) in [(i64::MAX, Some(6)), (1 << 62, Some(6)), (i64::MIN, None), (-1, None)] {
            assert_eq!(rule.next_in_tick(5, now_ms), next, "{now_ms}");
        }
    }
}
