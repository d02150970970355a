//! `polyflake serve`, by its clients.

mod bounds;
mod config;
mod http;
mod many;
mod own;
mod page;
mod resp;
mod server;
mod tls;

use server::{Server, http, redis};
