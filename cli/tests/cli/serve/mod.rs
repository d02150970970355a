//! `polyflake serve`, tested by its clients.

mod bad_clients;
mod config;
mod custom_generator;
mod guide;
mod http;
mod killed_servers;
#[cfg(target_os = "linux")]
mod many_clients;
mod resp;
mod server;
mod several_servers;
mod signals;
mod tls;

pub(super) use server::{Server, http};
use server::{eventually, redis};
