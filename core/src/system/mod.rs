//! What needs an operating system: its time, waiting, telling a process from its children; and one cursor per node and
//! process, for which a heap is enough.

#[cfg(feature = "std")]
mod cached_clock;
#[cfg(feature = "std")]
mod counter;
#[cfg(feature = "std")]
mod process;
#[cfg(not(feature = "std"))]
#[path = "no_process.rs"]
mod process;
#[cfg(feature = "std")]
mod queue;
#[cfg(not(feature = "std"))]
#[path = "no_queue.rs"]
mod queue;
#[cfg(feature = "alloc")]
mod registry;
#[cfg(all(feature = "std", unix, target_has_atomic = "64"))]
mod state_file;
#[cfg(all(feature = "std", not(all(unix, target_has_atomic = "64"))))]
#[path = "no_state_file.rs"]
mod state_file;
#[cfg(feature = "std")]
mod thread_wait;
#[cfg(feature = "std")]
mod time;

pub(crate) use process::Process;
pub(crate) use queue::Turn;
#[cfg(feature = "std")]
pub(crate) use registry::host_cursor;
#[cfg(feature = "alloc")]
pub(crate) use registry::process_cursor;
#[cfg(feature = "std")]
pub(crate) use state_file::StateFile;
#[cfg(feature = "std")]
pub use state_file::{reset_state, reset_state_with_clock};
#[cfg(feature = "std")]
pub use thread_wait::ThreadWait;
#[cfg(feature = "std")]
pub use time::StdTime;
