//! How a call waits for the clock.

use core::time::Duration;

use crate::error::Error;

/// How a call waits for the clock: real time, and a pause. With `std` there is [`ThreadWait`](crate::ThreadWait); an
/// interpreter that must see to signals, or a system without threads, brings its own.
pub trait Wait {
    /// What ends a call: Polyflake's error, or whatever interrupts a pause.
    type Error: From<Error>;

    /// Real time since the first call of this method: monotonic, whatever the wall clock does.
    fn elapsed(&mut self) -> Duration;

    /// Lets about `pause` pass. A pause of zero only asks whether the call must end: it waits for others that wait for the
    /// same cursor.
    ///
    /// # Errors
    ///
    /// Why the call must end.
    fn pause(&mut self, pause: Duration) -> Result<(), Self::Error>;

    /// Runs `work`, which blocks: it writes to a disk, or waits until another call wakes it, for at most 50 ms. A caller that
    /// holds a lock which others need (an interpreter's) releases it for that long. By default it just runs it.
    fn block_on(&mut self, work: &mut (dyn FnMut() + Send)) {
        work();
    }
}
