//! Limits the memory for answers, and returns it to the system.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::error::Error;

/// Answers with fewer IDs are not counted: each connection may use a little memory.
const FEW: usize = 100;
/// The most memory that an ID takes while its answer is being written; UUIDs take this much.
const OF_ID: usize = 256;
/// How long a request waits for others' answers to be read.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How often to check for freed memory, and how much of it is worth returning to the system.
const LOOK_EVERY: Duration = Duration::from_secs(5);
const WORTH_KIB: usize = 16 * 1024;

/// The memory for answers that clients have not read.
pub(crate) struct Output {
    free: Arc<Semaphore>,
    kib: usize,
}

/// A reserved part of that memory.
pub(crate) type Room = OwnedSemaphorePermit;

impl Output {
    pub(crate) fn new(kib: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(kib)), kib }
    }

    /// Reserves room for an answer with `n` IDs, if it needs any.
    pub(crate) async fn room(&self, n: usize) -> Result<Option<Room>, Error> {
        if n <= FEW {
            return Ok(None);
        }
        let room = Arc::clone(&self.free).acquire_many_owned(self.part(n.saturating_mul(OF_ID)));
        match timeout(LONGEST_WAIT, room).await {
            Ok(Ok(room)) => Ok(Some(room)),
            Ok(Err(_)) | Err(_) => Err(Error::new(
                "busy",
                format!(
                    "answers that clients have not read use all the memory set aside for them: ask for {FEW} or fewer"
                ),
            )),
        }
    }

    /// Reserves room for `bytes` bytes, if that much is free now.
    pub(crate) fn room_now(&self, bytes: usize) -> Option<Room> {
        Arc::clone(&self.free).try_acquire_many_owned(self.part(bytes)).ok()
    }

    /// Gives back all of the room except `bytes` bytes.
    pub(crate) fn keep(room: &mut Room, bytes: usize) {
        let kept = bytes.div_ceil(1024);
        drop(room.num_permits().checked_sub(kept).and_then(|more| room.split(more)));
    }

    fn part(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(1024).min(self.kib)).unwrap_or(u32::MAX)
    }

    pub(crate) fn used_kib(&self) -> usize {
        self.kib.saturating_sub(self.free.available_permits())
    }
}

/// Returns memory to the system once clients have left, since the allocator keeps freed memory that lies
/// between blocks in use. `used`: how much is in use now, in KiB.
pub(crate) async fn keep_little(used: impl Fn() -> usize) {
    let mut most = 0;
    loop {
        sleep(LOOK_EVERY).await;
        most = most.max(used());
        if most - used().min(most) >= WORTH_KIB {
            most = used();
            let _ = tokio::task::spawn_blocking(trim).await;
        }
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn trim() {
    // SAFETY: it only releases pages that are not in use.
    unsafe { libc::malloc_trim(0) };
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
const fn trim() {}
