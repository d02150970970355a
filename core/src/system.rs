//! The parts that need an operating system: its time, waiting, telling a process from its children, and state
//! files. Without `std`, `no_system` replaces them.

mod cached_clock;
#[cfg(all(any(target_os = "linux", target_os = "android"), not(miri)))]
mod copies;
#[cfg(not(all(any(target_os = "linux", target_os = "android"), not(miri))))]
#[path = "system/no_copies.rs"]
mod copies;
mod counter;
pub(crate) mod host;
mod monotonic;
mod process;
mod queue;
#[cfg(all(unix, target_has_atomic = "64"))]
mod state_file;
#[cfg(not(all(unix, target_has_atomic = "64")))]
#[path = "system/no_state_file.rs"]
mod state_file;
mod thread_wait;
mod time;

pub use copies::copies_warning;
pub(crate) use process::Process;
#[cfg(all(test, not(loom)))]
pub(crate) use queue::LONGEST_WAIT;
pub(crate) use queue::Turn;
pub(crate) use state_file::{StateFault, StateFile};
pub use state_file::{reset_state, reset_state_with_clock};
pub(crate) use std::path::PathBuf as StatePath;
pub use thread_wait::ThreadWait;
pub use time::StdTime;
