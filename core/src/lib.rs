//! 64-bit, time-ordered, unique IDs (Snowflakes) that work the same in every language.
//!
//! ```
//! use polyflake::Snowflake;
//!
//! let ids = Snowflake::builder().node(7).build()?;
//! let id: u64 = ids.next_id()?;
//! assert_eq!(ids.decode(id)?.node(), 7);
//! # Ok::<(), polyflake::Error>(())
//! ```
//!
//! The path of an ID through the crate: [`Options`] → [`Layout`] → [`Clock`] → cursor → ID, and back through
//! [`Layout::decode`]. Threads share a [`Snowflake`]; a [`LocalSnowflake`] has a single owner. The core is
//! `no_std` and never allocates on the hot path. Everything that needs an operating system (the built-in
//! clocks, waiting, one cursor per node and process, state files) requires the `std` feature, which is on by
//! default.
//!
//! # Guarantees
//!
//! - IDs from the same cursor never repeat, no matter how many threads there are or what the clock does.
//! - Each ID is greater than every ID returned before its call began. (If a node field is above the
//!   timestamp, this holds only for IDs with the same node.)
//! - The time in an ID is the clock's time during the call, or is ahead of it by at most `max_ahead_ms` plus
//!   a tolerated step back. A step of the system clock takes effect within a millisecond ([`SystemClock`]).
//! - No ID has a time before the epoch or past the layout's end. No value is masked, wrapped or silently
//!   replaced.
//! - After `fork`, a Snowflake that the child inherited fails with `forked`, and so does a new one for a node
//!   that the parent used.
//! - With a state file ([`Options::state`], `std` and Unix), all of this holds across all processes on the
//!   host that use the file, through forks (which it makes safe), `kill -9`, restarts, reboots and power
//!   loss.
//!
//! Without a state file, these guarantees do not cover two processes that use the same node at the same time,
//! so give each process its own node.
//!
//! # Features
//!
//! - `std` (default): [`BuiltinClock`] on the operating system's time, and [`Snowflake::next_id`] and the
//!   other calls that wait.
//! - `alloc`: one cursor per node and process without `std`, on the caller's time source
//!   (`Options::build_on`). Meant for WebAssembly.
//! - `serde`: serializes layouts as text and IDs as strings (`serde_id`).
//! - `public-ids`: [`PublicIds`], public strings that hide an ID.
//! - `critical-section`: 64-bit compare-and-swap on targets that lack it.
#![no_std]
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
// For the hot path. Functions that are not inlined return their results through memory, so an ID takes 50 ns
// instead of 42, and 107 instead of 78 in WebAssembly.
#![allow(clippy::inline_always)]
// Some helpers are unused without `std` or without state files.
#![cfg_attr(not(all(feature = "std", unix)), allow(dead_code))]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod clock;
mod cursor;
mod decode;
mod error;
#[cfg(feature = "std")]
mod generator;
mod layout;
#[cfg(feature = "std")]
mod lease;
#[cfg(not(feature = "std"))]
#[path = "no_lease.rs"]
mod lease;
mod limit;
mod node;
mod number;
mod options;
#[cfg(feature = "public-ids")]
mod public_ids;
#[cfg(feature = "alloc")]
mod registry;
mod rule;
#[cfg(feature = "serde")]
pub mod serde_id;
mod snowflake;
#[cfg(feature = "std")]
mod system;
#[cfg(not(feature = "std"))]
#[path = "no_system.rs"]
mod system;
mod text;
mod wait;
mod word;

pub use clock::{BuiltinClock, Clock, ClockError, ClockName, SteadyClock, SystemClock, TimeSource};
pub use decode::{Decoded, DecodedAll, Likelihood, UnixTime};
pub use error::{CamelCase, Error, ErrorCode};
#[cfg(feature = "std")]
pub use generator::IdGenerator;
pub use layout::{Field, Layout, MAX_NODE_FIELDS, PRESETS, Preset, Warning};
#[cfg(feature = "std")]
#[doc(hidden)]
pub use lease::{GiveBack, Lease, LeaseKeeper, ThisProcess};
#[cfg(feature = "std")]
pub use lease::{LeaseInfo, LeaseState};
pub use node::Node;
pub use number::Number;
#[doc(hidden)]
#[cfg(feature = "std")]
pub use options::LeaseTerms;
pub use options::Options;
#[cfg(feature = "public-ids")]
pub use public_ids::{PublicIdKey, PublicIdKeyText, PublicIds, PublicText};
pub use rule::SequenceStart;
#[cfg(feature = "std")]
pub use snowflake::Iter;
#[cfg(all(feature = "std", not(loom)))]
#[doc(hidden)]
pub use snowflake::Words;
pub use snowflake::{
    Blocked, LocalSnowflake, MAX_BATCH, Polled, Reservation, Snowflake, Stats, Waiting, batch_size,
};
pub use system::StdTime;
#[cfg(feature = "std")]
#[doc(hidden)]
pub use system::copies_warning;
#[cfg(feature = "std")]
pub use system::{ThreadWait, reset_state, reset_state_with_clock};
pub use text::{Format, Text};
pub use wait::Wait;
#[doc(hidden)]
pub use word::{Shown, is_hidden};
