//! Snowflakes.

use js_sys::{Array, BigUint64Array};
use polyflake::{Error, Options, Snowflake};
use wasm_bindgen::prelude::*;

use crate::host::{self, HostClock, Runtime, RuntimeWait, settle};
use crate::layout::{node_of, pairs, text_of};

/// How many IDs are issued before they are copied to JavaScript's memory.
const CHUNK: usize = 512;

#[wasm_bindgen]
pub struct WasmSnowflake(Option<Snowflake<HostClock>>);

#[wasm_bindgen]
impl WasmSnowflake {
    /// `options`: each option's name followed by its text. `node` and `clock` may be undefined.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &Array, node: &JsValue, clock: JsValue) -> WasmSnowflake {
        Self(settle(build(options, node, clock).map(Some)))
    }

    /// The next ID, or 0, which is never an ID, on failure.
    #[wasm_bindgen(js_name = nextId)]
    pub fn next_id(&self) -> u64 {
        settle(self.ids().next_id_with(&mut RuntimeWait))
    }

    #[wasm_bindgen(js_name = tryNextId)]
    pub fn try_next_id(&self) -> u64 {
        settle(self.ids().try_next_id())
    }

    pub fn fill(&self, target: &BigUint64Array) {
        settle(
            in_chunks(target, 0, &mut |ids| self.ids().fill_with(ids, &mut RuntimeWait).map(|()| ids.len()))
                .map(drop),
        );
    }

    /// Fills `target` from index `from` without waiting, and returns how many are filled. If it is not full, has told
    /// the host's `pause` how long to pause.
    #[wasm_bindgen(js_name = fillSome)]
    pub fn fill_some(&self, target: &BigUint64Array, from: u32, waited_ms: f64) -> u32 {
        let mut waited = (waited_ms >= 0.0).then(|| host::duration(waited_ms));
        settle(in_chunks(target, from, &mut |ids| {
            let Err(blocked) = self.ids().poll_fill(ids) else {
                waited = None;
                return Ok(ids.len());
            };
            let waited = waited.filter(|_| blocked.filled() == 0);
            host::pause(host::to_ms(self.ids().pause_after(&blocked, waited)?));
            Ok(blocked.filled())
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

/// Fills `target` from index `from`, a chunk at a time, until a chunk is not full. Returns how many are filled.
fn in_chunks(
    target: &BigUint64Array,
    from: u32,
    fill: &mut dyn FnMut(&mut [u64]) -> Result<usize, Error>,
) -> Result<u32, Error> {
    let mut chunk = [0; CHUNK];
    let length = target.length();
    let mut at = from;
    while at < length {
        let size = CHUNK.min((length - at) as usize);
        let ids = chunk.get_mut(..size).unwrap_or_default();
        let filled = fill(ids)?;
        let end = at + u32::try_from(filled).unwrap_or(0);
        host::store(target, at, ids.get(..filled).unwrap_or_default());
        at = end;
        if filled < size {
            break;
        }
    }
    Ok(at)
}
