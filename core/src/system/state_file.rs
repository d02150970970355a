//! The state file: a cursor in a small file that every process of a host maps, so that they share one node.
//!
//! The file is one page. Its head is written once, when it is made: what it is, whose cursor it holds, and the
//! cursor's bounds, under a checksum. Its live half changes only by atomic steps, each of which leaves a whole
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
//! A file can lose its name, or another can take it, while a process has it open. A process looks before it moves the
//! bound, and the bound is at most [`AHEAD_MS`] ahead of the clock: so a new file, or one that was put in its place,
//! begins that far ahead, and waits for the clock to get there.

use core::mem::offset_of;
use core::sync::atomic::Ordering;

use memmap2::{MmapOptions, MmapRaw};
use portable_atomic::AtomicU64;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::vec::Vec;

use super::{Process, StdTime};
use crate::clock::{Clock, SystemClock};
use crate::cursor::Cursor;
use crate::decode::out_of_range;
use crate::error::{Error, error};
use crate::layout::{Key, ones};
use crate::rule::{Bounds, Rule, ms_until};
use crate::word::Word;

/// How far ahead of the clock the bound is written.
const AHEAD_MS: i64 = 1000;
/// How far ahead of the clock a cursor may be when its file is opened, if no option allows more.
const MAX_LEAD_MS: u64 = 60_000;

/// How often a file that others make and delete meanwhile is looked for; a link to nowhere is never found.
const TRIES: usize = 8;

const SIZE: usize = 4096;
const MAGIC: [u8; 8] = *b"plyflake";
const BYTE_ORDER: u32 = 0x0102_0304;
const VERSION: u32 = 1;
/// Where the live half begins: on another cache line.
const LIVE: usize = Head::LEN;

/// The live half. Every bit pattern is valid.
#[derive(Debug)]
#[repr(C)]
struct Live {
    cursor: Cursor,
    /// Which file this is ([`Identity::word`]): a copy that is put in its place says something else.
    place: AtomicU64,
    /// Whoever issues past this sees to it that `synced` moves on.
    soft: AtomicU64,
    /// Nothing is issued past this: so much of `written` is known to be on disk.
    synced: AtomicU64,
    /// The bound, on its way to the disk.
    written: AtomicU64,
    /// Of which boot of the machine `cursor` is.
    boot: AtomicU64,
    /// How often the bound was written. Counting makes sure that there is something to write.
    syncs: AtomicU64,
}

impl Live {
    fn is_in_order(&self) -> bool {
        // In this order, for they grow.
        let (soft, synced) = (self.soft.load(Ordering::Acquire), self.synced.load(Ordering::Acquire));
        let cursor = self.cursor.load();
        let written = self.written.load(Ordering::Acquire);
        soft <= synced && synced <= written && cursor <= written
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
    /// This process issues nothing up to here, because another may have: the bound before a reboot, or of another file.
    floor: u64,
}

/// What is wrong with a state file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateFault {
    /// What the operating system said to an action.
    Os {
        action: &'static str,
        errno: i32,
    },
    NotAFile,
    FileSystem {
        kind: u64,
    },
    Size {
        len: u64,
    },
    Foreign,
    ByteOrder,
    Version {
        version: u32,
    },
    Damaged,
    OtherKey {
        epoch_ms: u64,
        tick_ms: u64,
        placed_node: u64,
    },
    FarAhead {
        lead_ms: u64,
    },
    Gone,
}

impl StateFault {
    fn os(action: &'static str, error: &io::Error) -> Self {
        // An error without a number is the standard library's: a path with a NUL.
        Self::Os { action, errno: error.raw_os_error().unwrap_or(0) }
    }

    fn error(self, path: &Path) -> Error {
        let path = Word::path(path);
        match self {
            Self::Os { action, errno } => error!(
                StateFile,
                "the state file `%` could not be % (%); its folder must exist and have room, and this process must be \
                 able to read and write it",
                Word(path),
                Text(action),
                Os(errno)
            ),
            Self::NotAFile => {
                error!(
                    StateFile,
                    "`%` is not a regular file, so it cannot be a state file; name another",
                    Word(path)
                )
            }
            Self::FileSystem { kind } => error!(
                StateFile,
                "the state file `%` would be on a file system (type %) that is not known to show a mapping to all \
                 processes alike, as network and FUSE file systems do not; put it on a local one, such as ext4, XFS, Btrfs \
                 or tmpfs",
                Word(path),
                Number(kind)
            ),
            Self::Size { len } => error!(
                StateFile,
                "`%` is not a state file, or only part of one: it has % bytes, not 4096; name another, or restore it",
                Word(path),
                Number(len)
            ),
            Self::Foreign => error!(
                StateFile,
                "`%` is not a state file: it begins differently; it was left as it is; name another",
                Word(path)
            ),
            Self::ByteOrder => error!(
                StateFile,
                "the state file `%` was made on a machine of the other byte order; name another",
                Word(path)
            ),
            Self::Version { version } => error!(
                StateFile,
                "the state file `%` has format %, and this version of Polyflake knows 1; use the version that made it",
                Word(path),
                Number(version.into())
            ),
            Self::Damaged => error!(
                StateFile,
                "the state file `%` is damaged; delete it once the clock has passed every ID that was issued with it: a \
                 new one then begins at the clock",
                Word(path)
            ),
            Self::OtherKey { epoch_ms, tick_ms, placed_node } => error!(
                StateFile,
                "the state file `%` belongs to another layout or node (epoch %, tick % ms, node bits in their place %); \
                 each needs its own file: name another",
                Word(path),
                Number(epoch_ms),
                Number(tick_ms),
                Number(placed_node)
            ),
            Self::FarAhead { lead_ms } => error!(
                StateFile,
                "the cursor in the state file `%` is % ms ahead of the clock; set the clock right if it is behind; if it \
                 was ahead once, reset_state sets the cursor back, and IDs that were issued ahead of the clock are then issued \
                 again when it gets there",
                Word(path),
                Number(lead_ms)
            ),
            Self::Gone => error!(
                StateFile,
                "the state file `%` was renamed, deleted or replaced while in use, and another process may issue the same \
                 IDs now; put it back, or restart every process that uses it",
                Word(path)
            ),
        }
    }
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
        bounds: Bounds,
        rule: &Rule,
        clock: &impl Clock,
    ) -> Result<Self, Error> {
        let refuse = |fault: StateFault| fault.error(path);
        let path = std::path::absolute(path).map_err(|error| refuse(StateFault::os(OPENED, &error)))?;
        let head = Head { key: *key, bounds };
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
        file.check_bounds(bounds)?;
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
        if !file.live().is_in_order() && !file.live().is_in_order() {
            return Err(StateFault::Damaged);
        }
        Ok(file)
    }

    /// An error for bounds other than those that the file was made with.
    pub(crate) fn check_bounds(&self, bounds: Bounds) -> Result<(), Error> {
        bounds.check_same(self.head.bounds)
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

    /// Whether slots up to `to`, past the limit that was `seen`, may be taken all the same: the bound allows it, and another
    /// caller is about to advance it. A caller that gets `false` must advance the bound.
    pub(crate) fn may_pass(&self, to: u64, seen: u64) -> bool {
        let synced = self.live().synced.load(Ordering::Acquire);
        to <= synced
            && self.live().soft.compare_exchange(seen, synced, Ordering::AcqRel, Ordering::Relaxed).is_err()
    }

    /// Moves the bound past `to`, on disk first. Any number of processes may do this at once.
    pub(crate) fn move_bound(&self, rule: &Rule, to: u64, now_ms: i64) -> Result<(), StateFault> {
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
        let bound = rule.used_up_to(now_ms.saturating_add(AHEAD_MS)).max(needed);
        // Half way there, someone comes here again, and the others need not wait for the disk.
        let soft = rule.used_up_to(now_ms.saturating_add(AHEAD_MS / 2)).max(needed).min(bound);
        live.written.fetch_max(bound, Ordering::AcqRel);
        // A page that is clean since a failure would be synced without being written.
        live.syncs.fetch_add(1, Ordering::AcqRel);
        match self.sync() {
            Ok(()) => {}
            // The old bound is not reached yet; the call that reaches it returns the error.
            Err(_) if to <= live.synced.load(Ordering::Acquire) => return Ok(()),
            Err(error) => return Err(StateFault::os("synced to disk", &error)),
        }
        live.synced.fetch_max(bound, Ordering::AcqRel);
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
        if lead_ms > MAX_LEAD_MS.max(self.head.bounds.max_backward_ms.into()) {
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

/// What a state file says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    key: Key,
    bounds: Bounds,
}

impl Head {
    /// Words of this machine's byte order; the last is the others' checksum.
    const LEN: usize = 64;

    fn bytes(&self) -> Vec<u8> {
        let Key { epoch_ms, tick_ms, placed_node, bits } = self.key;
        let Bounds { max_backward_ms, max_ahead_ms } = self.bounds;
        let bounds = u64::from(max_backward_ms) << 32 | u64::from(max_ahead_ms);
        let order_and_version = u64::from(BYTE_ORDER) << 32 | u64::from(VERSION);
        let words =
            [u64::from_ne_bytes(MAGIC), order_and_version, epoch_ms, tick_ms, placed_node, bits, bounds];
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.extend(u64::from(crc32fast::hash(&bytes)).to_ne_bytes());
        bytes
    }

    fn read(bytes: &[u8; Self::LEN]) -> Result<Self, StateFault> {
        let mut words = [0; Self::LEN / 8];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = bytes.try_into().map_or(0, u64::from_ne_bytes);
        }
        let [magic, order_and_version, epoch_ms, tick_ms, placed_node, bits, bounds, checksum] = words;
        if magic.to_ne_bytes() != MAGIC {
            return Err(StateFault::Foreign);
        }
        if halves(order_and_version.swap_bytes()).0 == BYTE_ORDER {
            return Err(StateFault::ByteOrder);
        }
        let checked = bytes.get(..Self::LEN - 8).unwrap_or_default();
        let (order, version) = halves(order_and_version);
        if u64::from(crc32fast::hash(checked)) != checksum || order != BYTE_ORDER {
            return Err(StateFault::Damaged);
        }
        if version != VERSION {
            return Err(StateFault::Version { version });
        }
        let (max_backward_ms, max_ahead_ms) = halves(bounds);
        let key = Key { epoch_ms, tick_ms, placed_node, bits };
        let (timestamp_bits, sequence_bits) = slot_bits(&key);
        if tick_ms == 0 || timestamp_bits + sequence_bits > 64 {
            return Err(StateFault::Damaged);
        }
        Ok(Self { key, bounds: Bounds { max_backward_ms, max_ahead_ms } })
    }

    /// The last slot that may have been taken when the clock stood at `now_ms`.
    fn used_up_to(&self, now_ms: i64) -> Result<u64, Error> {
        let Key { epoch_ms, tick_ms, .. } = self.key;
        let (timestamp_bits, sequence_bits) = slot_bits(&self.key);
        let last_tick = ones(timestamp_bits);
        let after = u64::try_from(now_ms).ok().and_then(|now_ms| now_ms.checked_sub(epoch_ms));
        let ends_at_ms = epoch_ms.saturating_add(last_tick.saturating_mul(tick_ms));
        let after = after.ok_or_else(|| out_of_range(now_ms.into(), epoch_ms, ends_at_ms))?;
        let tick = (after / tick_ms + u64::from(self.bounds.max_ahead_ms) / tick_ms).min(last_tick);
        Ok(tick.checked_shl(sequence_bits).unwrap_or(0) | ones(sequence_bits))
    }
}

/// The widths of timestamp and sequence.
const fn slot_bits(key: &Key) -> (u32, u32) {
    let [timestamp, _, sequence, ..] = key.bits.to_le_bytes();
    (timestamp as u32, sequence as u32)
}

/// The high half and the low one.
fn halves(word: u64) -> (u32, u32) {
    (u32::try_from(word >> 32).unwrap_or(0), u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0))
}

/// Makes a state file, whole and on disk before it has its name. If another process makes one meanwhile, that one is
/// kept.
fn create(path: &Path, head: &Head, first: u64) -> Result<(), StateFault> {
    let created = |error| StateFault::os(CREATED, &error);
    let made = Unnamed::write(path, head, first)?;
    match fs::hard_link(&made.path, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(created(error)),
        _ => {}
    }
    drop(made);
    sync_folder(path).map_err(created)
}

/// A state file that has not got its name yet; gone when dropped.
struct Unnamed {
    path: PathBuf,
}

impl Unnamed {
    fn write(of: &Path, head: &Head, first: u64) -> Result<Self, StateFault> {
        let created = |error| StateFault::os(CREATED, &error);
        // Random, for process IDs are not unique among containers that share a folder.
        let random = RandomState::new().hash_one(std::process::id());
        let mut name = OsString::from(of);
        name.push(std::format!(".{random:016x}.new"));
        let path = PathBuf::from(name);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path).map_err(created)?;
        let made = Self { path };
        check_file_system(&file)?;
        let mut page = head.bytes();
        page.resize(SIZE, 0);
        let slots =
            [offset_of!(Cursor, slot), offset_of!(Cursor, first)].map(|at| offset_of!(Live, cursor) + at);
        let place = Identity::of(&file.metadata().map_err(created)?).word();
        for (at, word) in [
            (slots[0], first),
            (slots[1], first),
            (offset_of!(Live, written), first),
            (offset_of!(Live, place), place),
        ] {
            page.splice(LIVE + at..LIVE + at + 8, word.to_ne_bytes());
        }
        // All of its bytes are written and synced: the disk has its blocks before anything is stored through a
        // mapping, where a full disk would be no error but a SIGBUS.
        file.write_all_at(&page, 0).and_then(|()| file.sync_all()).map_err(created)?;
        Ok(made)
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn sync_folder(of: &Path) -> io::Result<()> {
    of.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// An error for file systems that may not show a mapping's stores to all processes that map the file, such as those of a
/// network or of another kernel. On Linux, only the listed ones are known to.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn check_file_system(file: &File) -> Result<(), StateFault> {
    /// From <linux/magic.h>; those of ZFS and bcachefs from their sources.
    const LOCAL: [u64; 13] = [
        0x0000_EF53, // ext2, ext3, ext4
        0x5846_5342, // XFS
        0x9123_683E, // Btrfs
        0x0102_1994, // tmpfs
        0x8584_58F6, // ramfs
        0x794C_7630, // overlayfs
        0x2FC1_2FC1, // ZFS
        0xF2F5_2010, // F2FS
        0xCA45_1A4E, // bcachefs
        0x3153_464A, // JFS
        0x5265_4973, // ReiserFS
        0x0000_3434, // NILFS
        0x2405_1905, // UBIFS
    ];
    let mut found = core::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the descriptor is open, and the struct is written whole where 0 is returned.
    #[allow(unsafe_code)]
    let kind = unsafe {
        if libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) != 0 {
            return Err(StateFault::os(OPENED, &io::Error::last_os_error()));
        }
        found.assume_init().f_type
    };
    // Its type differs from one C library to the next; the number has 32 bits everywhere.
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation, clippy::unnecessary_cast)]
    let kind = u64::from(kind as u32);
    if LOCAL.contains(&kind) { Ok(()) } else { Err(StateFault::FileSystem { kind }) }
}

/// On other systems it is the mapping that fails.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn check_file_system(_: &File) -> Result<(), StateFault> {
    Ok(())
}

/// What tells this boot of the machine from all others. `None`: there is no telling, and each opening counts as one.
fn boot_id() -> Option<u64> {
    // Random, and so are the 60 bits taken of it.
    let uuid = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: std::string::String = uuid.chars().filter(char::is_ascii_hexdigit).take(16).collect();
    u64::from_str_radix(&digits, 16).ok()
}

/// Sets a state file's cursor back to the system clock if it is ahead of it: the way out when a wrong clock has moved a
/// cursor far into the future. Stop the processes that use the file first: in those that keep running, calls fail with
/// `state_file` until they restart.
///
/// The risk: IDs that were issued ahead of the clock are issued again when the clock gets there, unless they are
/// found and deleted before. A file whose cursor is not ahead of the clock is left as it is.
///
/// # Errors
///
/// `state_file`, also if there is no such file.
///
/// ```no_run
/// polyflake::reset_state("/var/lib/app/polyflake.state")?;
/// # Ok::<(), polyflake::Error>(())
/// ```
pub fn reset_state(path: impl AsRef<Path>) -> Result<(), Error> {
    reset_state_with_clock(path, &SystemClock::<StdTime>::default())
}

/// [`reset_state`] to the caller's clock.
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
            // Another reset was faster: its file is the one to look at.
            continue;
        }
        let first = old.head.used_up_to(clock.unix_ms_uncached()?)?;
        if first >= old.cursor().load() {
            return Ok(());
        }
        // A new file in the old one's place, and not the old one set back: some process may be amid a step of it.
        let made = Unnamed::write(&absolute, &old.head, first).map_err(refuse)?;
        let replaced = fs::rename(&made.path, &absolute).and_then(|()| sync_folder(&absolute));
        replaced.map_err(|error| refuse(StateFault::os("replaced", &error)))?;
        old.cursor().use_up();
        old.stop();
        return Ok(());
    }
}

/// Waits until no other process resets this file.
fn lock(file: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open. Closing it ends the lock.
    #[allow(unsafe_code)]
    match unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use std::string::ToString;

    use crate::{ClockError, Error, ErrorCode, Snowflake};

    std::thread_local! {
        /// Makes this thread's syncs fail.
        pub(super) static SYNC_FAILS: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn a_failed_sync_stops_at_the_bound_and_no_earlier() {
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
        assert_eq!(now.get() - start_ms, super::AHEAD_MS + 1, "every ID below the bound is issued");
        assert_eq!(error.code(), ErrorCode::StateFile);
        assert!(error.to_string().contains("could not be synced to disk (Input/output error"), "{error}");
        assert_eq!(ids.try_next_id(), Err(error));
        assert_eq!(ids.next_ids(5), Err(error));
        // An event loop's way to wait.
        let blocked = ids.poll_next_id().unwrap_err();
        assert_eq!(ids.pause_after(&blocked, None), Err(error));
        let bound_move = ids.bound_move(&blocked).unwrap();
        assert_eq!(bound_move.run(), Err(error));
        SYNC_FAILS.set(false);
        bound_move.run().unwrap();
        assert!(ids.poll_next_id().is_ok());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
