//! What needs an operating system: its time, waiting, telling a process from its children; and one cursor per node and
//! process, for which a heap is enough.

#[cfg(feature = "std")]
mod counter;
#[cfg(feature = "std")]
mod deadline;
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
#[cfg(all(feature = "std", unix, target_has_atomic = "64"))]
mod state;
#[cfg(all(feature = "std", not(all(unix, target_has_atomic = "64"))))]
#[path = "no_state.rs"]
mod state;
#[cfg(feature = "alloc")]
mod table;
#[cfg(feature = "std")]
mod time;
#[cfg(feature = "std")]
mod wait;

pub(crate) use process::Process;
pub(crate) use queue::Turn;
#[cfg(feature = "std")]
pub(crate) use state::StateFile;
#[cfg(feature = "std")]
pub use state::{reset_state, reset_state_with_clock};
#[cfg(feature = "std")]
pub(crate) use table::host_cursor;
#[cfg(feature = "alloc")]
pub(crate) use table::process_cursor;
#[cfg(feature = "std")]
pub use time::StdTime;
#[cfg(feature = "std")]
pub use wait::ThreadWait;
