//! Resetting a state file's cursor.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

use super::create::{Unnamed, sync_folder};
use super::fault::StateFault;
use super::{Identity, OPENED, StateFile};
use crate::clock::{Clock, SystemClock};
use crate::error::Error;
use crate::system::StdTime;

/// Resets a state file's cursor to the system clock if the cursor is ahead of it. Use this if a wrong clock
/// has moved a cursor far into the future. First stop the processes that use the file: in any that keep
/// running, calls fail with `state_file` until they restart.
///
/// The risk: IDs that were issued ahead of the clock are issued again when the clock gets there, unless you
/// find and delete them first. A file whose cursor is not ahead of the clock is left unchanged.
///
/// # Errors
///
/// `state_file`, including when the file does not exist.
///
/// ```no_run
/// polyflake::reset_state("/var/lib/app/polyflake.state")?;
/// # Ok::<(), polyflake::Error>(())
/// ```
pub fn reset_state(path: impl AsRef<Path>) -> Result<(), Error> {
    reset_state_with_clock(path, &SystemClock::<StdTime>::default())
}

/// Like [`reset_state`], but with the caller's clock.
///
/// # Errors
///
/// `state_file` or `clock_failed`.
pub fn reset_state_with_clock(path: impl AsRef<Path>, clock: &impl Clock) -> Result<(), Error> {
    let path = path.as_ref();
    let refuse = |fault: StateFault| fault.error(path);
    let opened = |error| refuse(StateFault::os(OPENED, &error));
    let absolute = std::path::absolute(path).map_err(opened)?;
    loop {
        let locked = File::open(&absolute).map_err(opened)?;
        lock(&locked).map_err(opened)?;
        let old = StateFile::map(&absolute).map_err(refuse)?;
        if Identity::of(&locked.metadata().map_err(opened)?) != old.identity {
            // Another reset got there first, so look at its file.
            continue;
        }
        let first = old.head.used_up_to(clock.unix_ms_uncached()?)?;
        if first >= old.cursor().load() {
            return Ok(());
        }
        // Replaces the old file instead of resetting it, because a process may be in the middle of a step on
        // it.
        let made = Unnamed::write(&absolute, &old.head, first).map_err(refuse)?;
        let replaced = fs::rename(&made.path, &absolute).and_then(|()| sync_folder(&absolute));
        replaced.map_err(|error| refuse(StateFault::os("replaced", &error)))?;
        old.cursor().use_up();
        old.stop();
        return Ok(());
    }
}

/// Waits until no other process is resetting this file.
fn lock(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open. Closing it releases the lock.
    #[allow(unsafe_code)]
    match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
