//! The state file: a cursor in a small file that every process of a host maps, so that they share one node.
//!
//! The file is one page. Its head is written once, when it is made: what it is, whose cursor it holds, and the
//! cursor's tolerance, under a checksum. Its live half changes only by atomic steps, each of which leaves a whole
//! file behind: a process may be killed between any two of them. Nothing is locked, and no descriptor is kept.
//!
//! | bytes | what, in this machine's byte order |
//! |---|---|
//! | 0 to 7 | `plyflake` |
//! | 8 to 15 | 0x01020304 in the high half, to tell the byte order; the format's version in the low one |
//! | 16 to 47 | epoch (Unix ms), tick (ms), the node's bits in their place, widths and shifts ([`Key`]) |
//! | 48 to 55 | `max_backward_ms` in the high half, `max_ahead_ms` in the low one |
//! | 56 to 63 | the CRC-32 of all before |
//! | 64 to 151 | the live half ([`Live`]); zeros follow, to 4096 |
//!
//! What is issued lies at or below `synced`, and `synced` at or below a `written` that was on disk before. So after
//! a power loss the file's `written` is above all that was issued, however old the rest of the file is.
//!
//! A file can lose its name, or another can take it, while a process has it open. A process looks before it
//! reserves more, and reserves at most [`AHEAD_MS`] ahead of the clock: so a new file, or one that was put in its place,
//! begins that far ahead, and waits for the clock to get there.

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
/// How far ahead of the clock a cursor may be when its file is opened, if no option allows more.
const MAX_LEAD_MS: u64 = 60_000;

/// How often a file that others make and delete meanwhile is looked for; a link to nowhere is never found.
const TRIES: usize = 8;

const SIZE: usize = 4096;
/// Where the live half begins: on another cache line.
const LIVE: usize = Head::LEN;

/// The live half. Every bit pattern is valid.
#[derive(Debug)]
#[repr(C)]
struct Live {
    cursor: Cursor,
    /// Which file this is ([`Identity::word`]): a copy that is put in its place says something else.
    place: AtomicU64,
    /// A thread that issues past this reserves more.
    soft: AtomicU64,
    /// Slots up to here are reserved: so much of `written` is known to be on disk. Nothing is issued past this.
    synced: AtomicU64,
    /// As `synced`, on its way to the disk.
    written: AtomicU64,
    /// Of which boot of the machine `cursor` is.
    boot: AtomicU64,
    /// How often slots were reserved. Counting makes sure that there is something to write.
    syncs: AtomicU64,
}

impl Live {
    /// Whether its words are in their order, and none is past the layout's last slot.
    fn is_in_order(&self, last_slot: u64) -> bool {
        // Loaded in this order, because they grow.
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
    /// Absolute, for the folder may change.
    path: PathBuf,
    identity: Identity,
    boot: Option<u64>,
    /// This process issues nothing up to here, because another may have: all that was reserved before a reboot, or in another file.
    floor: u64,
}

/// What tells a file from one that has taken its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(metadata: &fs::Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// A word that differs from another file's, and is not 0.
    const fn word(&self) -> u64 {
        self.inode ^ self.device.rotate_right(20) | 1 << 63
    }
}

impl StateFile {
    /// Opens or makes the state file of these options.
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
                    // The clock is read after the file was found missing. A process that still has a deleted one found it
                    // in its place earlier, and issues nothing past its reading then and `AHEAD_MS`.
                    let first = rule.used_up_to(clock.unix_ms_uncached()?.saturating_add(AHEAD_MS));
                    create(&path, &head, first).map_err(refuse)?;
                }
                // Another has taken its name meanwhile: that one, then.
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

    /// Maps a file that is there, if it is a state file.
    fn map(path: &Path) -> Result<Self, StateFault> {
        let opened = |error| StateFault::os(OPENED, &error);
        // Opening a pipe must not wait for its other end.
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
        // Twice, for other processes move them meanwhile.
        let is_in_order = || file.live().is_in_order(file.head.last_slot());
        if !is_in_order() && !is_in_order() {
            return Err(StateFault::Damaged);
        }
        Ok(file)
    }

    /// An error for a tolerance other than the one that the file was made with.
    pub(crate) fn check_tolerance(&self, tolerance: Tolerance) -> Result<(), Error> {
        tolerance.check_same(self.head.tolerance)
    }

    /// The error for a Snowflake whose cursor is in this file, and which names another file, or none.
    pub(crate) fn is_other(&self) -> Error {
        error!(
            InvalidOption,
            "this process already issues IDs for this layout and node with the state file `%`: one node has one cursor; \
             give every Snowflake of this node that file as state",
            Word(Word::path(&self.path))
        )
    }

    fn live(&self) -> &Live {
        // SAFETY: the mapping is as long as the file was, page-aligned, and lives as long as `self`; `Live` lies
        // within it and holds only atomics, for which every bit pattern is valid and which other processes may change.
        #[allow(unsafe_code, clippy::cast_ptr_alignment)]
        unsafe {
            &*self.map.as_ptr().add(LIVE).cast::<Live>()
        }
    }

    /// The cursor, which all processes that have the file open share.
    #[inline]
    pub(crate) fn cursor(&self) -> &Cursor {
        &self.live().cursor
    }

    /// The word that says up to which slot there is nothing to do but to take it.
    pub(crate) fn limit(&'static self) -> &'static AtomicU64 {
        &self.live().soft
    }

    /// Whether slots up to `to`, past the limit that was `seen`, may be taken all the same: they are reserved, and another
    /// caller is about to reserve more. A caller that gets `false` must do so.
    pub(crate) fn may_pass(&self, to: u64, seen: u64) -> bool {
        let synced = self.live().synced.load(Ordering::Acquire);
        to <= synced
            && self.live().soft.compare_exchange(seen, synced, Ordering::AcqRel, Ordering::Relaxed).is_err()
    }

    /// Whether slots up to `to` are reserved, on disk.
    pub(crate) fn is_reserved(&self, to: u64) -> bool {
        to <= self.live().synced.load(Ordering::Acquire)
    }

    /// Reserves slots up to `to`, and those of the next [`AHEAD_MS`], on disk. Any number of processes may do this at once.
    pub(crate) fn reserve(&self, rule: &Rule, to: u64, now_ms: i64) -> Result<(), StateFault> {
        // This process may be a child by now that has not noticed the fork yet.
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
        // Half way there, someone comes here again, and the others need not wait for the disk.
        let soft = rule.used_up_to(now_ms.saturating_add(AHEAD_MS / 2)).max(needed).min(reserved);
        live.written.fetch_max(reserved, Ordering::AcqRel);
        // A page that is clean since a failure would be synced without being written.
        live.syncs.fetch_add(1, Ordering::AcqRel);
        match self.sync() {
            Ok(()) => {}
            // These are reserved already; the call that goes past them returns the error.
            Err(_) if to <= live.synced.load(Ordering::Acquire) => return Ok(()),
            Err(error) => return Err(StateFault::os("synced to disk", &error)),
        }
        live.synced.fetch_max(reserved, Ordering::AcqRel);
        live.soft.fetch_max(soft, Ordering::AcqRel);
        Ok(())
    }

    /// Whether the file has not lost its place, which is looked at whenever the clock seems to have stepped back, or a tick
    /// is used up.
    pub(crate) fn still_in_place(&self) -> Result<(), StateFault> {
        if self.check_place() == Err(StateFault::Gone) {
            self.stop();
            return Err(StateFault::Gone);
        }
        Ok(())
    }

    /// Ends issuing for all that have this file open: another may issue the same IDs now.
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

    /// Whether the path still leads to this file.
    pub(crate) fn check_place(&self) -> Result<(), StateFault> {
        match fs::metadata(&self.path) {
            Ok(there) if Identity::of(&there) == self.identity => Ok(()),
            Ok(_) => Err(StateFault::Gone),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(StateFault::Gone),
            Err(error) => Err(StateFault::os("looked up", &error)),
        }
    }

    /// Whether a path leads to this file. It is an error where its own no longer does.
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

    /// Makes a file that was just opened ready to issue from. If it is of another boot or of another place, or nothing was
    /// issued yet, it waits until the clock has passed what another process may have issued. The cursor is not moved before
    /// that, because others may be issuing from it.
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

    /// Up to which slot this process issues nothing.
    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    /// The cursor is past the floor, so the next process that opens the file need not wait.
    pub(crate) fn has_begun(&self) {
        let live = self.live();
        live.place.store(self.identity.word(), Ordering::Release);
        live.boot.store(self.boot.unwrap_or_default(), Ordering::Release);
    }

    /// An error for a cursor that is far ahead of the clock.
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

    /// Whether `reset_state` has put another file in its place, so that nothing comes of this one any more.
    pub(crate) fn was_reset(&self) -> bool {
        self.cursor().load() == u64::MAX && self.check_place() == Err(StateFault::Gone)
    }
}

/// Waits until the clock has passed a slot's tick, or as long as it would take: a clock that does not move must not
/// hang this. A clock that was set back is for the rule to judge.
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

/// What tells this boot of the machine from all others. `None`: there is no telling, and each opening counts as one.
fn boot_id() -> Option<u64> {
    // Random, and so are the 60 bits taken of it.
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
        // An event loop's way to wait.
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
            // Past what was written.
            now.set(now.get() + super::AHEAD_MS + 300);
            waited = Some(core::time::Duration::from_millis(1300));
        }
        assert_eq!(disks, 1);
        assert!(id[0] > 0);
        // Where another call is faster each time, it ends.
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
