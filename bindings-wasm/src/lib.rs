//! The WebAssembly half of the npm package `polyflake`: the backend of `bindings-node/js/backend.ts`, for every
//! runtime that loads no native addon.
//!
//! Texts come in, numbers among them, and the core parses them. A call that refuses tells the host's `failed` why,
//! and returns a value that means nothing: that takes less code than a result does in each export.
#![cfg_attr(target_family = "wasm", no_std)]
#![cfg(target_family = "wasm")]
#![allow(clippy::inline_always, reason = "the path of an ID, as in the core")]
#![allow(
    unreachable_pub,
    missing_docs,
    missing_debug_implementations,
    reason = "exported to JavaScript alone"
)]

extern crate alloc;

mod host;
mod layout;
mod snowflake;

/// Small, for a heap of a few generators and of texts that live for one call.
// SAFETY: without the `atomics` feature, a module has one thread.
#[global_allocator]
static HEAP: lol_alloc::AssumeSingleThreaded<lol_alloc::FreeListAllocator> =
    unsafe { lol_alloc::AssumeSingleThreaded::new(lol_alloc::FreeListAllocator::new()) };

/// A panic traps, and JavaScript makes an error of the trap.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
