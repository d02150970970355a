//! The WebAssembly half of the npm package `polyflake`: the backend of `bindings-node/js/backend.ts`, for every
//! runtime that loads no native addon.

mod generator;
mod host;
mod layout;
