//! What needs an operating system: its time, waiting, noticing `fork`; and one cursor per node and process, for
//! which a heap is enough.

#[cfg(feature = "std")]
mod fork;
mod table;
#[cfg(feature = "std")]
mod time;
#[cfg(feature = "std")]
mod wait;

#[cfg(feature = "std")]
pub(crate) use fork::Generation;
pub(crate) use table::process_cursor;
#[cfg(feature = "std")]
pub use time::StdTime;
#[cfg(feature = "std")]
pub use wait::ThreadWait;
