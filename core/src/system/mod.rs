//! What needs an operating system: its time, waiting, telling a process from its children, and state files. `no_system` is
//! the stand-in without `std`.

mod cached_clock;
mod counter;
pub(crate) mod host;
mod process;
mod queue;
#[cfg(all(unix, target_has_atomic = "64"))]
mod state_file;
#[cfg(not(all(unix, target_has_atomic = "64")))]
#[path = "no_state_file.rs"]
mod state_file;
mod thread_wait;
mod time;

pub(crate) use process::Process;
pub(crate) use queue::Turn;
pub(crate) use state_file::{StateFault, StateFile};
pub use state_file::{reset_state, reset_state_with_clock};
pub(crate) use std::path::PathBuf as StatePath;
pub use thread_wait::ThreadWait;
pub use time::StdTime;
