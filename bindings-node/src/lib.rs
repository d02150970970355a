//! The native half of the npm package `polyflake`, for Node. Together with `js/native.ts`, it implements the `Backend`
//! from `bindings-wasm/js/backend.ts`. It converts types, and the core makes every decision.

#![allow(
    clippy::needless_pass_by_value,
    clippy::trivially_copy_pass_by_ref,
    reason = "napi passes what it created by value, and its environment by reference"
)]
#![allow(clippy::inline_always, reason = "the path of an ID, as in the core")]
#![cfg_attr(test, allow(dead_code, reason = "napi exports nothing there"))]

mod counter;
mod errors;
mod fast;
mod layout;
mod lease;
mod methods;
mod objects;
mod public_ids;
mod sequences;
mod snowflake;
mod thread;
