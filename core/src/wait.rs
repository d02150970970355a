//! Waiting for the clock.

use core::time::Duration;

use crate::error::Error;

/// How a call waits for the clock: a timer and a pause. With `std`, use [`ThreadWait`](crate::ThreadWait). An
/// interpreter that must handle signals, or a system without threads, supplies a different implementation.
pub trait Wait {
    /// The error that ends a call: Polyflake's error, or the reason a pause was interrupted.
    type Error: From<Error>;

    /// Returns the real time since this method was first called. It is monotonic, regardless of the wall
    /// clock.
    fn elapsed(&mut self) -> Duration;

    /// Pauses for roughly `pause`. A pause of zero just checks whether the call must end, while another call
    /// waits for the same cursor on its behalf.
    ///
    /// # Errors
    ///
    /// The reason the call must end.
    fn pause(&mut self, pause: Duration) -> Result<(), Self::Error>;

    /// Runs `work`, which blocks: it writes to a disk, or waits up to 50 ms for another call to wake it. A
    /// caller holding a lock that others need (such as an interpreter's) releases it while `work` runs. The
    /// default implementation just runs `work`.
    fn block_on(&mut self, work: &mut (dyn FnMut() + Send)) {
        work();
    }
}
