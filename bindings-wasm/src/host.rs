//! What JavaScript gives: time, sleep, and its own objects. The functions stand in `bindings-node/js/host.ts`.

use std::cell::Cell;
use std::time::Duration;

use js_sys::BigUint64Array;
use polyflake::{Clock, ClockError, Error, TimeSource, Wait};
use wasm_bindgen::prelude::*;

#[wasm_bindgen(module = "polyflake/host")]
extern "C" {
    #[wasm_bindgen(js_name = wallMs)]
    fn wall_ms() -> f64;
    #[wasm_bindgen(js_name = monotonicMs)]
    fn monotonic_ms() -> f64;
    #[wasm_bindgen(js_name = readClock)]
    fn read_clock(clock: &JsValue) -> Option<i64>;
    fn sleep(ms: f64) -> bool;
    #[wasm_bindgen(js_name = error)]
    fn js_error(
        number: i32,
        name: &str,
        message: &str,
        behind_ms: Option<f64>,
        retry_after_ms: Option<f64>,
    ) -> JsValue;
    pub(crate) fn failed(error: &JsValue);
    pub(crate) fn pause(ms: f64);
    pub(crate) fn layout(
        text: &str,
        epoch_ms: u64,
        tick_ms: u64,
        ends_at_ms: u64,
        ids_per_tick: f64,
        nodes: f64,
        total_bits: u32,
        node_bits: u32,
    ) -> JsValue;
    #[wasm_bindgen(js_name = addField)]
    pub(crate) fn add_field(parts: &JsValue, name: &str, bits: u32, shift: u32, mask: u64);
    pub(crate) fn decoded(id: u64, timestamp_ms: u64, ticks: u64, node: f64, sequence: f64) -> JsValue;
    #[wasm_bindgen(js_name = addValue)]
    pub(crate) fn add_value(parts: &JsValue, name: &str, value: f64);
    pub(crate) fn stats(
        waits: f64,
        rollbacks: f64,
        lead_ms: f64,
        last_issued_ms: Option<u64>,
    ) -> JsValue;
}

#[expect(clippy::cast_precision_loss, reason = "counts and ms: exact to 2^53")]
pub(crate) fn number(value: u64) -> f64 {
    value as f64
}

pub(crate) fn error(error: &Error) -> JsValue {
    let code = error.code();
    js_error(
        code.number(),
        code.name(),
        &error.camel_case().to_string(),
        error.behind_ms().map(number),
        error.retry_after_ms().map(number),
    )
}

/// The runtime's own clocks.
pub(crate) struct Runtime;

impl TimeSource for Runtime {
    fn wall_ns(&self) -> i64 {
        self.wall_ms() * 1_000_000
    }

    fn monotonic_ns(&self) -> i64 {
        ns(monotonic_ms())
    }

    #[expect(clippy::cast_possible_truncation, reason = "Date.now gives whole ms within ±8.64e15")]
    fn wall_ms(&self) -> i64 {
        wall_ms() as i64
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a page does not live for 292 years")]
fn ns(ms: f64) -> i64 {
    (ms * 1e6) as i64
}

/// A function of the caller's.
pub(crate) struct CallersClock(pub(crate) JsValue);

impl Clock for CallersClock {
    fn unix_ms(&self) -> Result<i64, ClockError> {
        read_clock(&self.0).ok_or(ClockError::new("the clock failed"))
    }
}

/// What a reading of the clock takes at least. A clock that is coarse (browsers round to as much as 100 ms), or
/// stands still (workerd's, between events), is taken to have moved on by this with every reading.
const READING: Duration = Duration::from_nanos(100);

/// The stretch of a pause that is not slept: timers end late.
const SPIN: Duration = Duration::from_micros(200);

/// Waits asleep where the thread may sleep, and else by reading the clock, for no longer than it is asked to.
pub(crate) struct RuntimeWait {
    last: Cell<f64>,
    unmoved: Cell<u32>,
}

impl RuntimeWait {
    pub(crate) const fn new() -> Self {
        Self { last: Cell::new(0.0), unmoved: Cell::new(0) }
    }

    fn now(&self) -> Duration {
        let now = monotonic_ms();
        #[expect(clippy::float_cmp, reason = "whether the clock gave the very same reading")]
        let unmoved = if now == self.last.replace(now) { self.unmoved.get().saturating_add(1) } else { 0 };
        self.unmoved.set(unmoved);
        Duration::from_nanos(u64::try_from(ns(now)).unwrap_or(0)) + READING * unmoved
    }
}

impl Wait for RuntimeWait {
    type Error = Error;

    fn elapsed(&mut self) -> Duration {
        self.now()
    }

    fn pause(&mut self, pause: Duration) -> Result<(), Error> {
        if let Some(asleep) = pause.checked_sub(SPIN).filter(|asleep| *asleep > SPIN) {
            if sleep(asleep.as_secs_f64() * 1e3) {
                return Ok(());
            }
        }
        // A wall clock of whole ms may turn any moment: look again soon.
        let until = self.now() + pause.min(SPIN / 8);
        while self.now() < until {}
        Ok(())
    }
}

/// IDs on their way into JavaScript's memory.
pub(crate) const CHUNK: usize = 512;

/// Copies `ids` to `target` from `at` on.
pub(crate) fn copy(ids: &[u64], target: &BigUint64Array, at: u32) {
    let end = at + u32::try_from(ids.len()).unwrap_or(0);
    target.subarray(at, end).copy_from(ids);
}
