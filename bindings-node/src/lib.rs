//! The native half of the npm package `polyflake`: the backend of `js/backend.ts`, for Node. It converts types, and
//! the core decides.

#![allow(
    clippy::needless_pass_by_value,
    clippy::trivially_copy_pass_by_ref,
    reason = "napi passes what it has made by value, and its environment by reference"
)]
#![cfg_attr(test, allow(dead_code, reason = "napi exports nothing there"))]

mod errors;
mod layout;
mod snowflake;
