//! The native half of the npm package `polyflake`: the backend of `js/backend.ts`, for Node. It converts types, and
//! the core decides.

mod errors;
mod generator;
mod layout;
