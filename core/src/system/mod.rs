//! What needs an operating system: the built-in clocks, waiting, and one cursor per node and process.

mod clock;
mod table;
mod wait;

pub(crate) use clock::builtin_clock;
pub use clock::{SteadyClock, SystemClock};
pub(crate) use table::process_cursor;
pub use wait::ThreadWait;
