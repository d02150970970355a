//! The state file: a cursor in a small file that all processes on a host map, so that they share a node.
//!
//! The file is one page. Its head is written once, when the file is created: it identifies the file, the
//! owner of the cursor and the cursor's tolerance, and has a checksum. The live half changes only in atomic
//! steps, each of which leaves the file consistent, since a process may be killed between any two of them.
//! Nothing is locked, and no descriptor is kept open.
//!
//! | bytes | what, in this machine's byte order |
//! |---|---|
//! | 0 to 7 | `plyflake` |
//! | 8 to 15 | 0x01020304 in the high half, to tell the byte order; the format's version in the low one |
//! | 16 to 47 | epoch (Unix ms), tick (ms), the node's bits in their place, widths and shifts ([`Key`]) |
//! | 48 to 55 | `max_backward_ms` in the high half, `max_ahead_ms` in the low one |
//! | 56 to 63 | the CRC-32 of everything before it |
//! | 64 to 151 | the live half ([`Live`]); zeros follow, to 4096 |
//!
//! Issued slots are at or below `synced`, and `synced` is at or below a `written` that was already on disk.
//! After a power loss, every slot that was issued is therefore at or below the file's `written`, no matter
//! how old the rest of the file is.
//!
//! While a process has a file open, the file can lose its name, or another file can take the name. A process
//! therefore checks for this before it reserves more slots, and reserves at most [`AHEAD_MS`] ahead of the
//! clock. A new file, or one that replaced another, begins that far ahead, and is not used until the clock
//! gets there.

use core::sync::atomic::Ordering;

use memmap2::{MmapOptions, MmapRaw};
use portable_atomic::AtomicU64;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::Process;
use crate::clock::Clock;
use crate::cursor::Cursor;
use crate::error::{Error, error};
use crate::layout::Key;
use crate::rule::{Rule, Tolerance, ms_until};
use crate::word::Word;

mod create;
mod fault;
mod head;
mod reset;

use create::{check_file_system, create};
pub(crate) use fault::StateFault;
use head::Head;
pub use reset::{reset_state, reset_state_with_clock};

/// How far ahead of the clock slots are reserved.
const AHEAD_MS: i64 = 1000;
/// How far ahead of the clock a cursor may be when its file is opened, unless the options allow more.
const MAX_LEAD_MS: u64 = 60_000;

/// How many times to try opening or creating a file while other processes keep creating and deleting it.
/// With a dangling link, all attempts fail.
const TRIES: usize = 8;

const SIZE: usize = 4096;
/// The start of the live half, on a different cache line from the head.
const LIVE: usize = Head::LEN;

/// The live half. Every bit pattern is valid.
#[derive(Debug)]
#[repr(C)]
struct Live {
    cursor: Cursor,
    /// Identifies this file ([`Identity::word`]). In a copy that replaced the file, the word does not match.
    place: AtomicU64,
    /// One of the threads that issue slots past this one reserves more.
    soft: AtomicU64,
    /// Slots up to here are reserved: a `written` at least this high is known to be on disk. No slot past
    /// this is issued.
    synced: AtomicU64,
    /// The next value of `synced`, on its way to disk.
    written: AtomicU64,
    /// Identifies the machine boot to which `cursor` belongs.
    boot: AtomicU64,
    /// The number of reservations. Counting them ensures that there is something to write.
    syncs: AtomicU64,
}

impl Live {
    /// Returns true if the words are in order, and none is past the layout's last slot.
    fn is_in_order(&self, last_slot: u64) -> bool {
        // The words are loaded in this order because they grow while the file is in use. `stop` sets `soft` and
        // `synced` to 0, so a check that fails is repeated: see `map`.
        let (soft, synced) = (self.soft.load(Ordering::Acquire), self.synced.load(Ordering::Acquire));
        let cursor = self.cursor.load();
        let written = self.written.load(Ordering::Acquire);
        soft <= synced && synced <= written && cursor <= written && written <= last_slot
    }
}

const _: () =
    assert!(LIVE + size_of::<Live>() <= 512, "the live half lies in one sector, which a disk writes whole");

/// A state file that this process has mapped.
#[derive(Debug)]
pub(crate) struct StateFile {
    map: MmapRaw,
    head: Head,
    /// Absolute, because the working directory may change.
    path: PathBuf,
    identity: Identity,
    boot: Option<u64>,
    /// This process issues no slots up to here, because another process may have issued them: they were
    /// reserved before a reboot, or in another file.
    floor: u64,
}

/// Distinguishes a file from another that has taken its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(metadata: &fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// Returns a word that differs between files, and is not 0.
    const fn word(&self) -> u64 {
        self.inode ^ self.device.rotate_right(20) | 1 << 63
    }
}

impl StateFile {
    /// Opens the state file for these options, or creates it.
    pub(crate) fn open(
        path: &Path,
        key: &Key,
        tolerance: Tolerance,
        rule: &Rule,
        clock: &impl Clock,
    ) -> Result<Self, Error> {
        let refuse = |fault: StateFault| fault.error(path);
        let path = std::path::absolute(path).map_err(|error| refuse(StateFault::os(OPENED, &error)))?;
        let head = Head { key: *key, tolerance };
        let mut tries = 0..TRIES;
        let file = loop {
            let last = tries.next().is_none();
            match Self::map(&path).and_then(|file| file.check_place().map(|()| file)) {
                Ok(file) => break file,
                Err(StateFault::Os { errno: libc::ENOENT, .. }) if !last => {
                    // The clock is read after the file is found missing. A process that still uses a deleted
                    // file last saw it in place before that, and issues nothing later than its clock reading
                    // at that time plus `AHEAD_MS`.
                    let first = rule.used_up_to(clock.unix_ms_uncached()?.saturating_add(AHEAD_MS));
                    create(&path, &head, first).map_err(refuse)?;
                }
                // Another file has since taken the name, so use that one.
                Err(StateFault::Gone) if !last => {}
                Err(fault) => return Err(refuse(fault)),
            }
        };
        if file.head.key != *key {
            let Key { epoch_ms, tick_ms, placed_node, .. } = file.head.key;
            return Err(refuse(StateFault::OtherKey { epoch_ms, tick_ms, placed_node }));
        }
        file.check_tolerance(tolerance)?;
        Ok(file)
    }

    /// Maps an existing file if it is a state file.
    fn map(path: &Path) -> Result<Self, StateFault> {
        let opened = |error| StateFault::os(OPENED, &error);
        // Opening a pipe must not wait for the other end.
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = file.map_err(opened)?;
        let metadata = file.metadata().map_err(opened)?;
        if !metadata.is_file() {
            return Err(StateFault::NotAFile);
        }
        check_file_system(&file)?;
        if metadata.len() != SIZE as u64 {
            return Err(StateFault::Size { len: metadata.len() });
        }
        let mut bytes = [0; Head::LEN];
        file.read_exact_at(&mut bytes, 0).map_err(opened)?;
        let head = Head::read(&bytes)?;
        let map =
            MmapOptions::new().len(SIZE).map_raw(&file).map_err(|error| StateFault::os("mapped", &error))?;
        let identity = Identity::of(&metadata);
        let file = Self { map, head, path: path.to_path_buf(), identity, boot: boot_id(), floor: 0 };
        // Checked twice, because other processes may be changing the words.
        let is_in_order = || file.live().is_in_order(file.head.last_slot());
        if !is_in_order() && !is_in_order() {
            return Err(StateFault::Damaged);
        }
        Ok(file)
    }

    /// Returns an error if the tolerance differs from the one with which the file was created.
    pub(crate) fn check_tolerance(&self, tolerance: Tolerance) -> Result<(), Error> {
        tolerance.check_same(self.head.tolerance)
    }

    /// The error for a Snowflake whose cursor is in this file, but whose options name another file, or none.
    pub(crate) fn is_other(&self) -> Error {
        error!(
            InvalidOption,
            "this process already issues IDs for this layout and node with the state file `%`: one node has one cursor; \
             give every Snowflake of this node that file as state",
            Word(Word::path(&self.path))
        )
    }

    fn live(&self) -> &Live {
        // SAFETY: the mapping is as long as the file was, page-aligned, and lives as long as `self`. `Live`
        // lies within it and holds only atomics, for which every bit pattern is valid and which other
        // processes may change.
        #[allow(unsafe_code, clippy::cast_ptr_alignment)]
        unsafe {
            &*self.map.as_ptr().add(LIVE).cast::<Live>()
        }
    }

    /// The cursor, shared by all processes that have the file open.
    #[inline]
    pub(crate) fn cursor(&self) -> &Cursor {
        &self.live().cursor
    }

    /// The word that holds the last slot that can be taken without further work. Of the calls that go past it,
    /// one reserves more, and the others may go on up to `synced`: see [`may_pass`](Self::may_pass).
    pub(crate) fn limit(&'static self) -> &'static AtomicU64 {
        &self.live().soft
    }

    /// Returns true if slots up to `to`, past the limit that was `seen`, may be taken anyway: they are
    /// reserved, and another caller is about to reserve more. A caller that gets `false` must reserve them.
    pub(crate) fn may_pass(&self, to: u64, seen: u64) -> bool {
        let synced = self.live().synced.load(Ordering::Acquire);
        to <= synced
            && self.live().soft.compare_exchange(seen, synced, Ordering::AcqRel, Ordering::Relaxed).is_err()
    }

    /// Returns true if slots up to `to` are reserved on disk.
    pub(crate) fn is_reserved(&self, to: u64) -> bool {
        to <= self.live().synced.load(Ordering::Acquire)
    }

    /// Reserves slots up to `to`, and those of the next [`AHEAD_MS`], on disk. Any number of processes may do
    /// this concurrently.
    pub(crate) fn reserve(&self, rule: &Rule, to: u64, now_ms: i64) -> Result<(), StateFault> {
        // This process may be a child that has not noticed the fork yet.
        Process::current();
        let live = self.live();
        if let Err(fault) = self.check_place() {
            if fault == StateFault::Gone {
                self.stop();
            }
            return Err(fault);
        }
        let needed = rule.end_of_tick(to);
        let reserved = rule.used_up_to(now_ms.saturating_add(AHEAD_MS)).max(needed);
        // Halfway through these slots, one of the callers reserves more, so the others need not wait for the
        // disk.
        let soft = rule.used_up_to(now_ms.saturating_add(AHEAD_MS / 2)).max(needed).min(reserved);
        live.written.fetch_max(reserved, Ordering::AcqRel);
        // A page that has been clean since a failure would be synced without being written.
        live.syncs.fetch_add(1, Ordering::AcqRel);
        match self.sync() {
            Ok(()) => {}
            // These slots are reserved already. The call that goes past them returns the error.
            Err(_) if to <= live.synced.load(Ordering::Acquire) => return Ok(()),
            Err(error) => return Err(StateFault::os("synced to disk", &error)),
        }
        live.synced.fetch_max(reserved, Ordering::AcqRel);
        live.soft.fetch_max(soft, Ordering::AcqRel);
        Ok(())
    }

    /// Returns an error, and stops all use of the file, if its path no longer leads to it. Called whenever
    /// the clock seems to have stepped back or a tick is used up.
    pub(crate) fn still_in_place(&self) -> Result<(), StateFault> {
        if self.check_place() == Err(StateFault::Gone) {
            self.stop();
            return Err(StateFault::Gone);
        }
        Ok(())
    }

    /// Stops all processes that have this file open from issuing IDs, because the same IDs may now be issued
    /// from another file.
    fn stop(&self) {
        self.live().soft.store(0, Ordering::Release);
        self.live().synced.store(0, Ordering::Release);
    }

    fn sync(&self) -> io::Result<()> {
        #[cfg(test)]
        if tests::SYNC_FAILS.get() {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        self.map.flush()
    }

    /// Returns an error if the path no longer leads to this file.
    pub(crate) fn check_place(&self) -> Result<(), StateFault> {
        match fs::metadata(&self.path) {
            Ok(there) if Identity::of(&there) == self.identity => Ok(()),
            Ok(_) => Err(StateFault::Gone),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StateFault::Gone),
            Err(error) => Err(StateFault::os("looked up", &error)),
        }
    }

    /// Returns true if `path` leads to this file. Fails if the file's own path no longer does.
    pub(crate) fn is_at(&self, path: &Path) -> Result<bool, Error> {
        let there = fs::metadata(path).is_ok_and(|there| Identity::of(&there) == self.identity);
        if !there {
            self.check_place().map_err(|fault| self.error_of(fault))?;
        }
        Ok(there)
    }

    pub(crate) fn error_of(&self, fault: StateFault) -> Error {
        fault.error(&self.path)
    }

    /// Prepares a newly opened file for issuing IDs. If the file was written before a reboot or in another
    /// place, or nothing has been issued from it yet, this waits until the clock has passed everything that
    /// another process may have issued. The cursor is not moved before that, because others may be issuing
    /// from it.
    pub(crate) fn begin(&mut self, rule: &Rule, clock: &impl Clock) -> Result<(), Error> {
        let live = self.live();
        let now_ms = clock.unix_ms_uncached()?;
        let (mut floor, written) = (0, live.written.load(Ordering::Acquire));
        if self.boot.is_none_or(|boot| boot != live.boot.load(Ordering::Acquire)) {
            floor = written;
        }
        if self.identity.word() != live.place.load(Ordering::Acquire) {
            floor = rule.used_up_to(now_ms.saturating_add(AHEAD_MS)).max(written);
        }
        let last = live.cursor.load();
        self.check_lead_of(rule, last.max(floor), now_ms)?;
        wait_for(rule, clock, now_ms, if live.cursor.began_at(last) { last.max(floor) } else { floor })?;
        self.floor = floor;
        Ok(())
    }

    /// The slot up to which this process issues nothing.
    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    /// Records that the cursor is past the floor, so the next process that opens the file need not wait.
    pub(crate) fn has_begun(&self) {
        let live = self.live();
        live.place.store(self.identity.word(), Ordering::Release);
        live.boot.store(self.boot.unwrap_or_default(), Ordering::Release);
    }

    /// Returns an error if the cursor is far ahead of the clock.
    pub(crate) fn check_lead(&self, rule: &Rule, now_ms: i64) -> Result<(), Error> {
        self.check_lead_of(rule, self.cursor().load(), now_ms)
    }

    fn check_lead_of(&self, rule: &Rule, slot: u64, now_ms: i64) -> Result<(), Error> {
        let lead_ms = rule.lead_ms(slot, now_ms);
        if lead_ms > MAX_LEAD_MS.max(self.head.tolerance.max_backward_ms.into()) {
            return Err(self.error_of(StateFault::FarAhead { lead_ms }));
        }
        Ok(())
    }

    /// Returns true if `reset_state` has replaced this file, so nothing is issued from it any more.
    pub(crate) fn was_reset(&self) -> bool {
        self.cursor().load() == u64::MAX && self.check_place() == Err(StateFault::Gone)
    }
}

/// Waits until the clock has passed a slot's tick, but no longer than that should take, so that a clock that
/// stands still cannot block this forever. If the clock was set back, the rule decides what happens.
fn wait_for(rule: &Rule, clock: &impl Clock, now_ms: i64, slot: u64) -> Result<(), Error> {
    let target_ms = rule.passed_at_ms(slot);
    let longest_ms = ms_until(now_ms, target_ms);
    if longest_ms > AHEAD_MS.unsigned_abs() + rule.tick_ms() {
        return Ok(());
    }
    let (start, longest) = (Instant::now(), core::time::Duration::from_millis(longest_ms));
    let target_ms = i64::try_from(target_ms).unwrap_or(i64::MAX);
    while let Some(left) = longest.checked_sub(start.elapsed()) {
        let now_ms = clock.unix_ms_uncached()?;
        if now_ms >= target_ms {
            break;
        }
        std::thread::sleep(clock.until(now_ms, target_ms).min(left));
    }
    Ok(())
}

const OPENED: &str = "opened";
const CREATED: &str = "created";

/// Returns a number that identifies the current boot of the machine. `None` if it is unknown: each time the
/// file is opened then counts as a boot.
fn boot_id() -> Option<u64> {
    // The UUID is random, and so are the 60 bits taken from it.
    let uuid = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: std::string::String = uuid.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use std::string::ToString;

    use crate::{ClockError, Error, ErrorCode, Polled, Snowflake, Waiting};

    std::thread_local! {
        /// Makes this thread's syncs fail.
        pub(super) static SYNC_FAILS: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn a_failed_sync_stops_past_what_is_reserved_and_no_earlier() {
        let folder = std::env::temp_dir().join(std::format!("polyflake-sync-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let now = Cell::new(1_800_000_000_000_i64);
        let clock = || Ok::<_, ClockError>(now.get());
        let options = Snowflake::builder().node(1).state(folder.join("state"));
        let ids = options.build_with_clock(clock).unwrap();
        now.set(now.get() + super::AHEAD_MS + 1);
        let mut last = ids.next_id().unwrap();
        SYNC_FAILS.set(true);
        let start_ms = now.get();
        let mut up =
            |id: Result<u64, Error>| id.inspect(|id| assert!(core::mem::replace(&mut last, *id) < *id));
        let error = loop {
            now.set(now.get() + 1);
            match up(ids.next_id()) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(now.get() - start_ms, super::AHEAD_MS + 1, "every reserved ID is issued");
        assert_eq!(error.code(), ErrorCode::StateFile);
        let cause = std::io::Error::from_raw_os_error(libc::EIO);
        assert!(
            error.to_string().contains(&std::format!("could not be synced to disk ({cause})")),
            "{error}"
        );
        assert_eq!(ids.try_next_id(), Err(error));
        assert_eq!(ids.next_ids(5), Err(error));
        // Waits the way an event loop would.
        let (mut waiting, mut id) = (Waiting::default(), [0]);
        let Polled::Disk(reservation) = ids.poll_waiting(&mut waiting, &mut id, None).unwrap() else {
            panic!()
        };
        assert_eq!(reservation.run(), Err(error));
        SYNC_FAILS.set(false);
        reservation.run().unwrap();
        assert!(matches!(ids.poll_waiting(&mut waiting, &mut id, None), Ok(Polled::Filled(1))));
        up(Ok(id[0])).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_polled_call_takes_its_run_however_long_the_disk_took() {
        let folder = std::env::temp_dir().join(std::format!("polyflake-slow-sync-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let now = Cell::new(1_800_000_000_000_i64);
        let clock = || Ok::<_, ClockError>(now.get());
        let options = Snowflake::builder().node(2).max_wait_ms(500).state(folder.join("state"));
        let ids = options.build_with_clock(clock).unwrap();
        now.set(now.get() + 10 * super::AHEAD_MS);
        let (mut waiting, mut id) = (Waiting::default(), [0]);
        let mut disks = 0;
        let mut waited = None;
        while let Polled::Disk(reservation) = ids.poll_waiting(&mut waiting, &mut id, waited).unwrap() {
            disks += 1;
            assert!(disks < 3, "each time the disk is done, the clock has passed all that is reserved");
            reservation.run().unwrap();
            // Past everything that was written.
            now.set(now.get() + super::AHEAD_MS + 300);
            waited = Some(core::time::Duration::from_millis(1300));
        }
        assert_eq!(disks, 1);
        assert!(id[0] > 0);
        // If another call gets there first every time, this call fails.
        let start = now.get();
        let error = loop {
            assert!(now.get() < start + 20 * super::AHEAD_MS, "it does not end");
            match ids.poll_waiting(&mut waiting, &mut id, Some(core::time::Duration::from_millis(501))) {
                Ok(Polled::Disk(reservation)) => reservation.run().unwrap(),
                polled => break polled.unwrap_err(),
            }
            ids.next_id().unwrap();
            now.set(now.get() + super::AHEAD_MS + 300);
        };
        assert_eq!(error.code(), ErrorCode::SequenceExhausted);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
