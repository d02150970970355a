//! The WebAssembly half of the npm package `polyflake`, for every runtime without the native addon. Together with
//! `js/`, it implements the `Backend` from `js/backend.ts`.
//!
//! Most arguments, even numbers, arrive as text, which the core parses. A call that fails reports the error to the
//! host's `failed` and returns a meaningless value, which takes less code than a `Result` in each export.
#![cfg_attr(target_family = "wasm", no_std)]
#![cfg(target_family = "wasm")]
#![allow(clippy::inline_always, reason = "the path of an ID, as in the core")]
#![allow(
    unreachable_pub,
    missing_docs,
    missing_debug_implementations,
    reason = "exported to JavaScript only"
)]

extern crate alloc;

mod host;
mod layout;
#[cfg(feature = "public-ids")]
mod public_ids;
mod snowflake;

/// A small allocator is enough for a heap that holds a few Snowflakes and short-lived strings.
// SAFETY: without the `atomics` feature, a module has one thread.
#[global_allocator]
static HEAP: lol_alloc::AssumeSingleThreaded<lol_alloc::FreeListAllocator> =
    unsafe { lol_alloc::AssumeSingleThreaded::new(lol_alloc::FreeListAllocator::new()) };

/// Traps. JavaScript turns the trap into an error.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}
