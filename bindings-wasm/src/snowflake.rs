//! Snowflakes.

use js_sys::{Array, BigUint64Array};
use polyflake::{Error, Options, Polled, Snowflake, Waiting};
use wasm_bindgen::prelude::*;

use crate::host::{self, HostClock, Runtime, RuntimeWait, settle};
use crate::layout::{node_of, pairs, text_of};

/// The number of IDs issued before they are copied to JavaScript's memory.
const CHUNK: usize = 512;

#[wasm_bindgen]
pub struct WasmSnowflake(Option<Snowflake<HostClock>>);

#[wasm_bindgen]
impl WasmSnowflake {
    /// Creates a Snowflake. `options` contains each option's name followed by its text. `node` and `clock` may be
    /// undefined.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &Array, node: &JsValue, clock: JsValue) -> WasmSnowflake {
        Self(settle(build(options, node, clock).map(Some)))
    }

    /// Returns the next ID, or 0 on failure. 0 is never an ID.
    #[wasm_bindgen(js_name = nextId)]
    pub fn next_id(&self) -> u64 {
        settle(self.ids().next_id_with(&mut RuntimeWait))
    }

    #[wasm_bindgen(js_name = tryNextId)]
    pub fn try_next_id(&self) -> u64 {
        settle(self.ids().try_next_id())
    }

    /// Fills `target` in chunks. An empty `target` is passed on too, because the core decides whether it is valid.
    /// JavaScript guarantees that `length` is the length of `target`.
    pub fn fill(&self, target: &BigUint64Array, length: u32) {
        let mut chunk = [0; CHUNK];
        let mut at = 0;
        settle(loop {
            let size = CHUNK.min((length - at) as usize);
            let ids = chunk.get_mut(..size).unwrap_or_default();
            if let Err(error) = self.ids().fill_with(ids, &mut RuntimeWait) {
                break Err(error);
            }
            host::store(target, at, ids);
            at += u32::try_from(size).unwrap_or(0);
            if at == length {
                break Ok(());
            }
        });
    }

    /// Implements `poll` from `js/backend.ts`. If the array is long, it fills only the front.
    pub fn poll(&self, target: &BigUint64Array, waited_ms: f64) -> f64 {
        let mut chunk = [0; CHUNK];
        let size = CHUNK.min(target.length() as usize);
        let ids = chunk.get_mut(..size).unwrap_or_default();
        let waited = (waited_ms >= 0.0).then(|| host::duration(waited_ms));
        // Nothing needs to be kept for the next poll, because no other thread and no disk is involved.
        settle(self.ids().poll_waiting(&mut Waiting::default(), ids, waited).map(|polled| match polled {
            Polled::Filled(count) => {
                host::store(target, 0, ids.get(..count).unwrap_or_default());
                host::number(count as u64)
            }
            Polled::Pause(pause) => -host::to_ms(pause),
            Polled::Disk(_) => f64::NAN,
        }))
    }

    pub fn close(&self) {
        self.ids().close();
    }

    pub fn stats(&self) -> JsValue {
        settle(self.ids().stats().map(|stats| {
            let (waits, rollbacks) = (host::number(stats.waits), host::number(stats.rollbacks));
            host::stats(waits, rollbacks, host::number(stats.lead_ms), stats.last_issued_ms)
        }))
    }

    #[wasm_bindgen(getter)]
    pub fn layout(&self) -> JsValue {
        text_of(self.ids().layout())
    }

    #[wasm_bindgen(getter)]
    pub fn node(&self) -> f64 {
        host::number(self.ids().node())
    }
}

impl WasmSnowflake {
    #[inline(always)]
    fn ids(&self) -> &Snowflake<HostClock> {
        // JavaScript drops a Snowflake whose constructor failed.
        self.0.as_ref().unwrap_or_else(|| core::arch::wasm32::unreachable())
    }
}

fn build(options: &Array, node: &JsValue, clock: JsValue) -> Result<Snowflake<HostClock>, Error> {
    let mut built = Options::default();
    for (name, value) in pairs(options) {
        built.set_camel_case(&name, &value)?;
    }
    if !node.is_undefined() {
        built = built.node(node_of(node));
    }
    if clock.is_undefined() {
        built.build_on(Runtime, HostClock::Builtin)
    } else {
        built.build_with_clock(HostClock::Callers(clock))
    }
}
