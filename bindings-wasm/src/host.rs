//! The module's imports from `js/host.ts`: clocks, sleeping, and access to JavaScript objects.

use alloc::string::String;
use core::time::Duration;

use js_sys::{BigUint64Array, Uint32Array};
use polyflake::{BuiltinClock, Clock, ClockError, Error, ErrorCode, TimeSource, Wait};
use wasm_bindgen::prelude::*;

#[wasm_bindgen(module = "polyflake/host")]
extern "C" {
    #[wasm_bindgen(js_name = wallMs)]
    fn wall_ms() -> f64;
    #[wasm_bindgen(js_name = monotonicMs)]
    fn monotonic_ms() -> f64;
    #[wasm_bindgen(js_name = readClock)]
    fn read_clock(clock: &JsValue) -> Option<i64>;
    #[wasm_bindgen(js_name = elapsedMs)]
    fn elapsed_ms() -> f64;
    #[wasm_bindgen(js_name = untilMs)]
    fn until_ms(now_ms: f64, target_ms: f64, is_builtin: bool) -> f64;
    fn rest(ms: f64);
    fn failed(
        number: i32,
        name: &str,
        message: &JsValue,
        behind_ms: Option<f64>,
        retry_after_ms: Option<f64>,
    );
    /// Copies as many of the `ids` as fit into `target`, starting at index `at`.
    pub(crate) fn store(target: &BigUint64Array, at: u32, ids: &[u64]);
    #[wasm_bindgen(js_name = store)]
    pub(crate) fn store_narrow(target: &Uint32Array, at: u32, values: &[u32]);
    pub(crate) fn layout(
        text: &JsValue,
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
    pub(crate) fn stats(waits: f64, rollbacks: f64, lead_ms: f64, last_issued_ms: Option<u64>) -> JsValue;
}

#[expect(clippy::cast_precision_loss, reason = "counts and ms: exact to 2^53")]
pub(crate) fn number(value: u64) -> f64 {
    value as f64
}

/// Returns the core's value. If there is an error, reports it to the host and returns a meaningless value.
pub(crate) fn settle<T: Default>(outcome: Result<T, Error>) -> T {
    outcome.unwrap_or_else(|error| {
        report(&error);
        T::default()
    })
}

#[cold]
#[inline(never)]
fn report(error: &Error) {
    let code = error.code();
    let message = text(&mut |out| error.write_camel_case(out));
    let (behind_ms, retry_after_ms) = (error.behind_ms().map(number), error.retry_after_ms().map(number));
    failed(code.number(), code.name(), &message, behind_ms, retry_after_ms);
}

/// Reports an error on behalf of JavaScript code, with the core's number and, if `why` is empty, the core's message.
#[wasm_bindgen]
pub fn fail(code: &str, why: &str) {
    let known = ErrorCode::ALL.into_iter().find(|known| known.name() == code);
    let code = known.unwrap_or(ErrorCode::Internal);
    let why = if why.is_empty() { code.message() } else { why };
    let message = text(&mut |out| [code.name(), ": ", why].into_iter().for_each(out));
    failed(code.number(), code.name(), &message, None, None);
}

/// Receives a string in pieces.
type Out<'a> = dyn FnMut(&str) + 'a;

/// Collects a string that is written in pieces.
pub(crate) fn text(write: &mut dyn FnMut(&mut Out<'_>)) -> JsValue {
    let mut text = String::new();
    write(&mut |piece| text.push_str(piece));
    JsValue::from_str(&text)
}

/// The runtime's own clocks.
pub(crate) struct Runtime;

impl TimeSource for Runtime {
    fn wall_ns(&self) -> i64 {
        self.wall_ms().saturating_mul(1_000_000)
    }

    fn monotonic_ns(&self) -> i64 {
        ns(monotonic_ms())
    }

    #[expect(clippy::cast_possible_truncation, reason = "Date.now returns whole ms within ±8.64e15")]
    #[inline(always)]
    fn wall_ms(&self) -> i64 {
        wall_ms() as i64
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a page does not stay open for 292 years")]
fn ns(ms: f64) -> i64 {
    (ms * 1e6) as i64
}

/// The runtime's clocks, or the caller's function.
pub(crate) enum HostClock {
    Builtin(BuiltinClock<Runtime>),
    Callers(JsValue),
}

impl Clock for HostClock {
    #[inline(always)]
    fn unix_ms(&self) -> Result<i64, ClockError> {
        match self {
            Self::Builtin(clock) => clock.unix_ms(),
            Self::Callers(clock) => read_clock(clock).ok_or(ClockError::new("the clock failed")),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "Unix ms: exact to 2^53")]
    fn until(&self, now_ms: i64, target_ms: i64) -> Duration {
        duration(until_ms(now_ms as f64, target_ms as f64, matches!(self, Self::Builtin(_))))
    }
}

/// Waits by sleeping or by reading the clock, as the runtime allows.
pub(crate) struct RuntimeWait;

impl Wait for RuntimeWait {
    type Error = Error;

    fn elapsed(&mut self) -> Duration {
        duration(elapsed_ms())
    }

    fn pause(&mut self, pause: Duration) -> Result<(), Error> {
        rest(to_ms(pause));
        Ok(())
    }
}

pub(crate) fn to_ms(pause: Duration) -> f64 {
    number(pause.as_secs()) * 1e3 + f64::from(pause.subsec_micros()) / 1e3
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; saturates")]
pub(crate) fn duration(ms: f64) -> Duration {
    Duration::from_micros((ms * 1e3) as u64)
}
