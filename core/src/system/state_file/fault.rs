//! Faults in a state file, and what to do about them.

use std::io;
use std::path::Path;

use crate::error::{Error, error};
use crate::word::Word;

/// A fault in a state file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateFault {
    /// The operating system's error when the action failed.
    Os {
        action: &'static str,
        errno: i32,
    },
    NotAFile,
    #[cfg_attr(not(any(target_os = "linux", target_os = "android")), allow(dead_code))]
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
    pub(super) fn os(action: &'static str, error: &io::Error) -> Self {
        // An error without a number comes from the standard library: the path contains a NUL.
        Self::Os { action, errno: error.raw_os_error().unwrap_or(0) }
    }

    pub(super) fn error(self, path: &Path) -> Error {
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
                "the state file `%` would be on a file system (type %) that may not share memory between processes, as \
                 network and FUSE file systems may not; put it on a local one, such as ext4, XFS, Btrfs or tmpfs",
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
                "`%` is not a state file: it has an unknown header; it was left unchanged; name another",
                Word(path)
            ),
            Self::ByteOrder => error!(
                StateFile,
                "the state file `%` was made on a machine with the other byte order; name another",
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
                "the cursor in the state file `%` is % ms ahead of the clock; correct the clock if it is behind; if it \
                 was ahead before, reset_state sets the cursor back, and IDs issued ahead of the clock are issued again when \
                 the clock gets there",
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
