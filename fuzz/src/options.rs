use std::cell::Cell;
use std::time::Duration;

use polyflake::{Clock, ClockError, Error, ErrorCode, Layout, Options, Snowflake, Wait};

use crate::check_error;

/// The input consists of options as `NAME=VALUE` lines, an empty line, and a script that takes IDs and moves
/// the clock. A script step has three bytes, the last two of which form a number.
pub fn options(data: &[u8]) {
    let split = data.windows(2).position(|two| two == b"\n\n").unwrap_or(data.len());
    let (lines, script) = data.split_at(split);
    let Ok(lines) = std::str::from_utf8(lines) else { return };
    let mut options = Options::default();
    let mut bounds = Bounds { backward_ms: 1000, ahead_ms: 0 };
    let mut node = "";
    for line in lines.lines() {
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        // This option could create files anywhere.
        if name == "state" {
            continue;
        }
        match options.set(name, value) {
            Ok(()) if name == "node" => node = value,
            Ok(()) => bounds.set(name, value),
            Err(error) => check_error(
                &error,
                &[ErrorCode::InvalidOption, ErrorCode::InvalidLayout, ErrorCode::UnknownLayout],
            ),
        }
    }
    let clock = Held(Cell::new(0));
    match options.build_with_clock(&clock) {
        Ok(ids) => {
            assert_eq!(node_of(ids.layout(), node), Some(ids.node()), "{node:?}");
            Checked::new(&ids, &clock, bounds).run(script.get(2..).unwrap_or_default());
        }
        Err(error) => check_error(&error, &[ErrorCode::InvalidNode]),
    }
}

/// Returns the node that a string names, if the string is valid.
fn node_of(layout: &Layout, text: &str) -> Option<u64> {
    let number = |text: &str| text.parse().ok();
    if layout.nodes() == 1 && text.is_empty() {
        return Some(0);
    }
    if !text.contains('=') {
        return number(text).filter(|node| *node < layout.nodes());
    }
    let pairs: Vec<_> = text.split(',').filter_map(|pair| pair.split_once('=')).collect();
    layout.node_fields().try_fold(0, |node, field| {
        let (_, value) = pairs.iter().find(|(name, _)| *name == field.name())?;
        Some(node << field.bits() | number(value).filter(|value| *value <= field.max())?)
    })
}

const MAX_STEPS: usize = 40;

#[derive(Clone, Copy)]
struct Bounds {
    backward_ms: i128,
    ahead_ms: i128,
}

impl Bounds {
    fn set(&mut self, name: &str, value: &str) {
        match name {
            "max_backward_ms" => self.backward_ms = value.parse().unwrap(),
            "max_ahead_ms" => self.ahead_ms = value.parse().unwrap(),
            _ => {}
        }
    }
}

struct Held(Cell<i64>);

impl Held {
    fn to(&self, ms: i128) {
        self.0.set(ms.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
    }

    fn ms(&self) -> i128 {
        self.0.get().into()
    }
}

impl Clock for &Held {
    fn unix_ms(&self) -> Result<i64, ClockError> {
        Ok(self.0.get())
    }
}

/// Time that passes only during pauses. The clock moves with it or stands still.
struct Pauses<'a> {
    clock: &'a Held,
    tick_ms: i128,
    moves: bool,
    elapsed: Duration,
}

impl Wait for Pauses<'_> {
    type Error = Error;

    fn elapsed(&mut self) -> Duration {
        self.elapsed
    }

    fn pause(&mut self, pause: Duration) -> Result<(), Error> {
        assert!(!pause.is_zero());
        if self.moves {
            // A pause may be longer than requested. Otherwise, a tick that lasts weeks would take millions of
            // pauses.
            let pause_ms = i128::max(pause.as_micros().div_ceil(1000) as i128, self.tick_ms / 4);
            self.clock.to(self.clock.ms() + pause_ms);
            self.elapsed += Duration::from_millis(pause_ms as u64);
        } else {
            self.elapsed += Duration::from_millis(u32::MAX.into());
        }
        Ok(())
    }
}

/// A Snowflake that checks all its results.
struct Checked<'a> {
    ids: &'a Snowflake<&'a Held>,
    clock: &'a Held,
    epoch_ms: i128,
    tick_ms: i128,
    last_tick: i128,
    back: i128,
    ahead: i128,
    /// The tick and sequence of the last ID.
    last: (i128, u64),
}

impl<'a> Checked<'a> {
    fn new(ids: &'a Snowflake<&'a Held>, clock: &'a Held, bounds: Bounds) -> Self {
        let layout = ids.layout();
        let tick_ms = i128::from(layout.tick_ms());
        let epoch_ms = i128::from(layout.epoch_ms());
        Self {
            ids,
            clock,
            epoch_ms,
            tick_ms,
            last_tick: (i128::from(layout.ends_at_ms()) - epoch_ms) / tick_ms,
            back: (bounds.backward_ms + tick_ms - 1) / tick_ms,
            ahead: bounds.ahead_ms / tick_ms,
            // Slot 0 of tick 0 is never issued.
            last: (0, 0),
        }
    }

    fn run(&mut self, script: &[u8]) {
        self.clock.to(self.epoch_ms + self.tick_ms * 1000.min(self.last_tick));
        for step in script.chunks_exact(3).take(MAX_STEPS) {
            let number = i128::from(i16::from_le_bytes([step[1], step[2]]));
            let count = number.unsigned_abs() as usize % 300;
            match step[0] % 9 {
                0 => self.clock.to(self.clock.ms() + number),
                1 => self.clock.to(self.clock.ms() + number * self.tick_ms),
                2 => self.clock.to(self.epoch_ms + number * self.tick_ms),
                3 => self.clock.to(self.epoch_ms + self.last_tick * self.tick_ms + number),
                4 => self.call(1, None),
                5 => self.call(count, None),
                6 => self.call(1, Some(true)),
                7 => self.call(count, Some(true)),
                _ => self.call(count, Some(false)),
            }
        }
    }

    /// Takes `count` IDs: without waiting, with a clock that moves during waits, or with a clock that stands
    /// still.
    fn call(&mut self, count: usize, moves: Option<bool>) {
        let mut batch = vec![0; count];
        let before_ms = self.clock.ms();
        let outcome = match moves {
            None if count == 1 => match self.ids.try_next_id() {
                Ok(id) => {
                    batch[0] = id;
                    Ok(())
                }
                Err(error) => {
                    batch.clear();
                    Err(error)
                }
            },
            None => match self.ids.poll_fill(&mut batch) {
                Ok(()) => Ok(()),
                Err(blocked) => {
                    batch.truncate(blocked.filled());
                    // One more call returns the reason the batch is blocked.
                    Err(self.ids.try_next_id().unwrap_err())
                }
            },
            Some(moves) => {
                let mut wait =
                    Pauses { clock: self.clock, tick_ms: self.tick_ms, moves, elapsed: Duration::ZERO };
                let outcome = self.ids.fill_with(&mut batch, &mut wait);
                // On an error, the IDs taken before it are lost, and the rest of the batch is still 0.
                batch.retain(|id| outcome.is_ok() || *id != 0);
                outcome
            }
        };
        for id in &batch {
            self.issued(*id, before_ms);
        }
        if let Err(error) = outcome {
            self.failed(&error);
        }
        self.ids.stats().unwrap();
    }

    fn tick(&self, ms: i128) -> i128 {
        (ms - self.epoch_ms).div_euclid(self.tick_ms)
    }

    /// Checks that the ID is greater than all earlier IDs, has this node, and has a time that was read during
    /// the call or is ahead of that by no more than allowed.
    fn issued(&mut self, id: u64, before_ms: i128) {
        let decoded = self.ids.decode(id).unwrap();
        let now = (i128::from(decoded.ticks()), decoded.sequence());
        assert!(now > self.last, "{now:?} after {:?}", self.last);
        self.last = now;
        assert_eq!(decoded.node(), self.ids.node());
        let (before, after) = (self.tick(before_ms), self.tick(self.clock.ms()));
        assert!(before <= now.0 && now.0 <= after + self.ahead + self.back, "{before} {now:?} {after}");
        assert!(0 <= before && now.0 <= self.last_tick);
    }

    /// Checks that the error is justified, and that its cause goes away when the error says it will.
    fn failed(&mut self, error: &Error) {
        check_error(
            error,
            &[ErrorCode::TimeOutOfRange, ErrorCode::ClockMovedBackwards, ErrorCode::SequenceExhausted],
        );
        let now_ms = self.clock.ms();
        let now = self.tick(now_ms);
        let used_up = self.last.1 == self.ids.layout().ids_per_tick() - 1;
        match error.code() {
            ErrorCode::TimeOutOfRange => {
                assert!(now < 0 || now > self.last_tick || used_up && self.last.0 == self.last_tick);
                return;
            }
            ErrorCode::ClockMovedBackwards => {
                assert!(self.last.0 > now + self.ahead + if used_up { 0 } else { self.back });
                let in_time_ms = self.epoch_ms + (self.last.0 - self.ahead) * self.tick_ms;
                assert_eq!(error.behind_ms().map(i128::from), Some(in_time_ms - now_ms));
            }
            _ => assert!(used_up && self.last.0 == now + self.ahead),
        }
        let retry_ms = now_ms + i128::from(error.retry_after_ms().unwrap());
        assert!(retry_ms > now_ms);
        self.clock.to(retry_ms - 1);
        assert!(self.ids.try_next_id().is_err(), "an ID before {retry_ms}");
        self.clock.to(retry_ms);
        match self.ids.try_next_id() {
            Ok(id) => self.issued(id, retry_ms),
            Err(error) => assert_eq!(error.code(), ErrorCode::TimeOutOfRange, "{error}"),
        }
        self.clock.to(now_ms);
    }
}
