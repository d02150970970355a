//! 64-bit, time-ordered, unique IDs (Snowflakes), the same in every language.
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
//! An ID's path through the crate: [`Options`] → [`Layout`] → [`Clock`] → cursor → ID, and back through
//! [`Layout::decode`]. A [`Snowflake`] is shared between threads; a [`LocalSnowflake`] has one owner. The core is `no_std`
//! and never allocates on the path of an ID; what needs an operating system (the built-in clocks, waiting, one cursor per
//! node and process, state files) is behind the `std` feature, which is on by default.
//!
//! # Guarantees
//!
//! - IDs of one cursor never repeat, whatever the number of threads and whatever the clock does.
//! - Each ID is greater than every ID whose call returned before this call began (per node only, for layouts
//!   with a node field above the timestamp).
//! - The time in an ID was the clock's during the call, or lies ahead of it by at most `max_ahead_ms` plus a
//!   tolerated step back. A step of the system clock shows within a ms ([`SystemClock`]).
//! - No ID lies before the epoch or past the layout's end; nothing is masked, wrapped or silently replaced.
//! - After `fork`, a Snowflake that the child inherited fails with `forked`, and so does a new one for a node
//!   that the parent had.
//! - With a state file ([`Options::state`], `std` and Unix), all this holds across the processes of a host that name
//!   it: forks, which it makes safe, `kill -9`, restarts, reboots and power loss.
//!
//! Without a state file, two processes that use the same node at the same time are outside these guarantees: give
//! each its own node.
//!
//! # Features
//!
//! - `std` (default): [`BuiltinClock`] on the operating system's time, [`Snowflake::next_id`] and the other calls
//!   that wait.
//! - `alloc`: one cursor per node and process without `std`, on a time of the caller's (`Options::build_on`): for
//!   WebAssembly.
//! - `serde`: layouts as their text, IDs as strings (`serde_id`).
//! - `public-ids`: [`PublicIds`], texts for the outside that hide an ID.
//! - `critical-section`: 64-bit compare-and-swap on targets without it.
#![no_std]
#![deny(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
// The path of an ID. Out of line its functions return through memory: 50 ns an ID and not 42, and 107 and not 78 in
// WebAssembly.
#![allow(clippy::inline_always)]
// Without `std` or state files, some helpers are not used.
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
