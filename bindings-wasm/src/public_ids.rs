//! Public IDs, for Node and workers. Browsers get a module without public IDs, because their users must not have the
//! keys.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use js_sys::Array;
use polyflake::{Number, PublicIdKey, PublicIds};
use wasm_bindgen::prelude::*;

use crate::host::settle;

#[wasm_bindgen]
pub struct WasmPublicIds(Option<PublicIds>);

#[wasm_bindgen]
impl WasmPublicIds {
    #[wasm_bindgen(constructor)]
    pub fn new(keys: &Array, prefix: &str) -> WasmPublicIds {
        let keys: Vec<String> = keys.iter().filter_map(|key| key.as_string()).collect();
        Self(settle(PublicIds::from_texts(&keys, prefix).map(Some)))
    }

    #[wasm_bindgen(getter, js_name = keyNumbers)]
    pub fn key_numbers(&self) -> Vec<u8> {
        self.ids().key_numbers().collect()
    }

    pub fn encode(&self, id: u64) -> String {
        self.ids().encode(id).to_string()
    }

    /// Like `encode`, but for a string that may not be an ID.
    #[wasm_bindgen(js_name = encodeText)]
    pub fn encode_text(&self, id: &str) -> String {
        settle(Number::parse(id).to_id().map(|id| self.encode(id)))
    }

    pub fn decode(&self, text: &str) -> u64 {
        settle(self.ids().decode(text))
    }
}

impl WasmPublicIds {
    fn ids(&self) -> &PublicIds {
        // If the constructor fails, JavaScript drops the object.
        self.0.as_ref().unwrap_or_else(|| core::arch::wasm32::unreachable())
    }
}

/// Creates a key from these 16 random bytes.
#[wasm_bindgen(js_name = publicKey)]
pub fn public_key(number: &str, random: &[u8]) -> String {
    let bytes = random.try_into().unwrap_or_else(|_| core::arch::wasm32::unreachable());
    settle(PublicIdKey::new(Number::parse(number), bytes).map(|key| key.to_text().as_str().to_string()))
}
