//! Creating a state file, and checking where it may live.

use core::mem::offset_of;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::fault::StateFault;
use super::head::Head;
use super::{CREATED, Identity, LIVE, Live, SIZE};
use crate::cursor::Cursor;

/// Creates a state file, which is complete and on disk before it gets its name. If another process creates
/// the file first, that file is kept.
pub(super) fn create(path: &Path, head: &Head, first: u64) -> Result<(), StateFault> {
    let created = |error| StateFault::os(CREATED, &error);
    let made = Unnamed::write(path, head, first)?;
    match fs::hard_link(&made.path, path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(created(error)),
        _ => {}
    }
    drop(made);
    sync_folder(path).map_err(created)
}

/// A state file that has no name yet. Dropping this deletes it.
pub(super) struct Unnamed {
    pub(super) path: PathBuf,
}

impl Unnamed {
    pub(super) fn write(of: &Path, head: &Head, first: u64) -> Result<Self, StateFault> {
        let created = |error| StateFault::os(CREATED, &error);
        // The name is random, because process IDs are not unique across containers that share a folder.
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
        // All bytes are written and synced, so the disk has allocated the blocks before anything is stored
        // through a mapping, where a full disk would cause a SIGBUS instead of an error.
        file.write_all_at(&page, 0).and_then(|()| file.sync_all()).map_err(created)?;
        Ok(made)
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

pub(super) fn sync_folder(of: &Path) -> io::Result<()> {
    of.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Returns an error on file systems that may not show a mapping's stores to all processes that map the file,
/// such as network file systems or another kernel's. On Linux, only the listed file systems are known to show
/// them.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn check_file_system(file: &File) -> Result<(), StateFault> {
    /// From <linux/magic.h>, except those of ZFS and bcachefs, which are from their source code.
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
    // SAFETY: the descriptor is open, and the struct is fully written if 0 is returned.
    #[allow(unsafe_code)]
    let kind = unsafe {
        if libc::fstatfs(std::os::fd::AsRawFd::as_raw_fd(file), found.as_mut_ptr()) != 0 {
            return Err(StateFault::os(super::OPENED, &io::Error::last_os_error()));
        }
        found.assume_init().f_type
    };
    // The type differs between C libraries, but the number has 32 bits everywhere.
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation, clippy::unnecessary_cast)]
    let kind = u64::from(kind as u32);
    if LOCAL.contains(&kind) { Ok(()) } else { Err(StateFault::FileSystem { kind }) }
}

/// On other systems, the mapping itself fails.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn check_file_system(_: &File) -> Result<(), StateFault> {
    Ok(())
}
