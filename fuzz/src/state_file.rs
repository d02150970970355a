use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use polyflake::{ErrorCode, Snowflake, reset_state_with_clock};

use crate::check_error;

const PAGE: usize = 4096;
const HEAD: usize = 64;

/// The input is eight bytes for the clock, a byte that selects what to repair (the checksum, the length), and
/// the bytes of a state file. An invalid file must be left unchanged, and a valid file must stay valid.
pub fn state_file(data: &[u8]) {
    let Some((clock_ms, [right, bytes @ ..])) = data.split_first_chunk() else { return };
    let clock_ms = i64::from_le_bytes(*clock_ms);
    let mut file = bytes.to_vec();
    if right & 1 == 0 {
        file.resize(PAGE, 0);
    }
    if right & 2 == 0 && file.len() >= HEAD {
        let checksum = u64::from(crc32(&file[..HEAD - 8]));
        file.splice(HEAD - 8..HEAD, checksum.to_ne_bytes());
    }
    let path = &*PATH;
    fs::write(path, &file).unwrap();
    let reset = reset_state_with_clock(path, &|| Ok(clock_ms));
    let after = fs::read(path).unwrap();
    match reset {
        Ok(()) => {
            let whole = Whole::read(&file).expect("not a state file");
            let used_up = whole.used_up_to(clock_ms).expect("a clock before the epoch");
            if whole.cursor > used_up {
                assert_eq!(Whole::read(&after).map(|after| after.cursor), Some(used_up));
                assert_eq!(after[..HEAD], file[..HEAD]);
            } else {
                assert!(after == file);
            }
        }
        Err(error) => {
            let is_file = error.code() != ErrorCode::StateFile;
            check_error(&error, &[ErrorCode::StateFile, ErrorCode::TimeOutOfRange]);
            assert_eq!(Whole::read(&file).is_some(), is_file, "{error}");
            assert!(Whole::read(&file).is_none_or(|whole| whole.used_up_to(clock_ms).is_none()));
            assert!(after == file);
            // An opened file becomes a cursor for the rest of the process, so only invalid files are opened
            // here.
            if !is_file {
                let opened = Snowflake::builder().node(1).state(path).build_with_clock(|| Ok(clock_ms));
                assert_eq!(opened.unwrap_err().code(), ErrorCode::StateFile);
                assert!(fs::read(path).unwrap() == file);
            }
        }
    }
    fs::remove_file(path).unwrap();
}

/// In an in-memory folder, if the system has one.
static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    folder.join(format!("polyflake-fuzz-{}", std::process::id()))
});

/// The contents of a valid state file.
struct Whole {
    epoch_ms: u128,
    tick_ms: u128,
    timestamp_bits: u32,
    sequence_bits: u32,
    ahead_ms: u128,
    cursor: u128,
}

impl Whole {
    fn read(file: &[u8]) -> Option<Self> {
        let words: Vec<u64> =
            file.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
        if file.len() != PAGE
            || file[..8] != *b"plyflake"
            || words[1] != 0x0102_0304_0000_0001
            || words[7] != u64::from(crc32(&file[..HEAD - 8]))
        {
            return None;
        }
        let [timestamp_bits, _, sequence_bits, ..] = words[5].to_le_bytes().map(u32::from);
        let (cursor, soft, synced, written) = (words[8], words[14], words[15], words[16]);
        let is_in_order = soft <= synced && synced <= written && cursor <= written;
        let is_in_layout = u128::from(written) < 1 << (timestamp_bits + sequence_bits).min(64);
        (words[3] != 0 && timestamp_bits + sequence_bits <= 64 && is_in_order && is_in_layout).then(|| Self {
            epoch_ms: words[2].into(),
            tick_ms: words[3].into(),
            timestamp_bits,
            sequence_bits,
            ahead_ms: (words[6] & u64::from(u32::MAX)).into(),
            cursor: cursor.into(),
        })
    }

    /// The last slot that may be used up at the clock's time.
    fn used_up_to(&self, clock_ms: i64) -> Option<u128> {
        let after = u128::try_from(clock_ms).ok()?.checked_sub(self.epoch_ms)?;
        let tick = after / self.tick_ms + self.ahead_ms / self.tick_ms;
        let last_tick = (1 << self.timestamp_bits) - 1;
        Some(((tick.min(last_tick) + 1) << self.sequence_bits) - 1)
    }
}

/// CRC-32 as in zlib and PNG, bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}
