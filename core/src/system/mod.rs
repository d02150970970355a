//! What needs an operating system: the built-in clocks, waiting, noticing `fork`, and one cursor per node and process.

mod clock;
mod fork;
mod table;
mod wait;

pub use clock::{BuiltinClock, StdTime, SteadyClock, SystemClock, TimeSource};
pub(crate) use fork::Generation;
pub(crate) use table::process_cursor;
pub use wait::ThreadWait;
