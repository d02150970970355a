//! What needs an operating system: its time, waiting, noticing `fork`; and one cursor per node and process, for
//! which a heap is enough.

#[cfg(feature = "std")]
mod counter;
#[cfg(feature = "std")]
mod deadline;
#[cfg(feature = "std")]
mod fork;
#[cfg(all(feature = "std", unix, target_has_atomic = "64"))]
mod state;
#[cfg(all(feature = "std", not(all(unix, target_has_atomic = "64"))))]
#[path = "no_state.rs"]
mod state;
mod table;
#[cfg(feature = "std")]
mod time;
#[cfg(feature = "std")]
mod wait;

#[cfg(feature = "std")]
pub(crate) use fork::Generation;
#[cfg(feature = "std")]
pub(crate) use state::StateFile;
#[cfg(feature = "std")]
pub use state::{reset_state, reset_state_with_clock};
#[cfg(feature = "std")]
pub(crate) use table::host_cursor;
pub(crate) use table::process_cursor;
#[cfg(feature = "std")]
pub use time::StdTime;
#[cfg(feature = "std")]
pub use wait::ThreadWait;
