//! Generators of IDs.

use std::time::Duration;

use js_sys::BigUint64Array;
use polyflake::{BuiltinClock, Options, Snowflake};
use wasm_bindgen::prelude::*;

use crate::host::{self, CHUNK, CallersClock, Runtime, RuntimeWait};
use crate::layout::{OrThrow, node_of, pairs};

#[wasm_bindgen]
pub struct Generator(Ids);

enum Ids {
    Builtin(Snowflake<BuiltinClock<Runtime>>),
    Callers(Snowflake<CallersClock>),
}

/// Calls `$call` on the core's Snowflake, whichever clock it has.
macro_rules! with {
    ($self:ident, $ids:ident => $call:expr) => {
        match &$self.0 {
            Ids::Builtin($ids) => $call,
            Ids::Callers($ids) => $call,
        }
    };
}

#[wasm_bindgen]
impl Generator {
    #[wasm_bindgen(constructor)]
    pub fn new(
        options: Vec<String>,
        node: Option<String>,
        node_fields: Option<Vec<String>>,
        clock: JsValue,
    ) -> Result<Generator, JsValue> {
        let mut built = Options::default();
        for (name, value) in pairs(&options) {
            built.set_camel_case(name, value).or_throw()?;
        }
        if node.is_some() || node_fields.is_some() {
            built = built.node(node_of(node, &node_fields.unwrap_or_default()));
        }
        Ok(Self(if clock.is_undefined() {
            Ids::Builtin(built.build_on(Runtime).or_throw()?)
        } else {
            Ids::Callers(built.build_with_clock(CallersClock(clock)).or_throw()?)
        }))
    }

    /// The next ID, or 0, which is no ID of any generator, after `failed` was told why.
    #[wasm_bindgen(js_name = nextId)]
    pub fn next_id(&self) -> u64 {
        let outcome = with!(self, ids => ids.next_id_with(&mut RuntimeWait::new()));
        outcome.unwrap_or_else(|error| {
            host::failed(&host::error(&error));
            0
        })
    }

    #[wasm_bindgen(js_name = tryNextId)]
    pub fn try_next_id(&self) -> Result<u64, JsValue> {
        with!(self, ids => ids.try_next_id()).or_throw()
    }

    pub fn fill(&self, target: &BigUint64Array) -> Result<(), JsValue> {
        let mut chunk = [0; CHUNK];
        let length = target.length();
        let mut at = 0;
        while at < length {
            let size = usize::try_from(length - at).unwrap_or(CHUNK).min(CHUNK);
            let ids = chunk.get_mut(..size).unwrap_or_default();
            with!(self, flake => flake.fill_with(ids, &mut RuntimeWait::new())).or_throw()?;
            host::copy(ids, target, at);
            at += u32::try_from(size).unwrap_or(0);
        }
        Ok(())
    }

    /// How far `target` is filled; where it is not to its end, `pause` was told for how long to pause.
    #[wasm_bindgen(js_name = fillSome)]
    pub fn fill_some(&self, target: &BigUint64Array, from: u32, waited_ms: Option<f64>) -> Result<u32, JsValue> {
        let mut chunk = [0; CHUNK];
        let length = target.length();
        let mut at = from;
        host::pause(0.0);
        while at < length {
            let size = usize::try_from(length - at).unwrap_or(CHUNK).min(CHUNK);
            let ids = chunk.get_mut(..size).unwrap_or_default();
            let blocked = with!(self, flake => flake.poll_fill(ids)).err();
            let filled = blocked.map_or(size, |blocked| blocked.filled());
            host::copy(ids.get(..filled).unwrap_or_default(), target, at);
            at += u32::try_from(filled).unwrap_or(0);
            if let Some(blocked) = blocked {
                let waited = waited_ms.filter(|_| at == from).map(|ms| Duration::from_secs_f64(ms.max(0.0) / 1e3));
                let pause = with!(self, flake => flake.pause_after(&blocked, waited)).or_throw()?;
                host::pause(pause.as_secs_f64() * 1e3);
                break;
            }
        }
        Ok(at)
    }

    pub fn stats(&self) -> Result<JsValue, JsValue> {
        let stats = with!(self, ids => ids.stats()).or_throw()?;
        let (waits, rollbacks) = (host::number(stats.waits), host::number(stats.rollbacks));
        Ok(host::stats(waits, rollbacks, host::number(stats.lead_ms), stats.last_issued_ms))
    }

    #[wasm_bindgen(getter)]
    pub fn layout(&self) -> String {
        with!(self, ids => ids.layout().to_string())
    }

    #[wasm_bindgen(getter)]
    pub fn node(&self) -> f64 {
        host::number(with!(self, ids => ids.node()))
    }
}
