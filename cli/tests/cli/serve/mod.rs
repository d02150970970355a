//! `polyflake serve`, by its clients.

mod bounds;
mod config;
#[cfg(target_os = "linux")]
mod crowd;
mod http;
mod many;
mod minute;
mod own;
mod page;
mod resp;
mod server;
mod signals;
mod tls;

pub(super) use server::{Server, http};
use server::{eventually, redis};
