//! Processes sharing a state file are killed at random moments, while the clock steps at random and the power
//! fails now and then. No ID may repeat. `make soak` runs 200 rounds; `POLYFLAKE_SEED` repeats a run's
//! choices.
#![cfg(all(unix, not(loom)))]

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use polyflake::{ClockError, Options, Snowflake};

const PROCESSES: usize = 3;
/// The positions in the state file of the words that this test reads and changes.
const SYNCED: usize = 120;
const WRITTEN: usize = 128;
const BOOT: usize = 136;

#[test]
fn eight_rounds_repeat_nothing() {
    rounds(8);
}

#[test]
#[ignore = "long: `make soak` runs it"]
fn two_hundred_rounds_repeat_nothing() {
    rounds(200);
}

fn options(path: &Path) -> Options {
    Snowflake::builder().node(1).max_backward_ms(300).state(path)
}

/// One of the processes in a round. It issues single IDs and batches until it is killed. Each result is
/// written out in a single write, so that no issued ID is lost. The first process of a round never
/// pauses, so that ticks fill up and it is killed at work. If no process paused, the check would take minutes.
#[test]
#[ignore = "the other tests start it"]
fn a_process_of_a_round() {
    let Some(folder) = std::env::var_os("POLYFLAKE_CRASH_FOLDER").map(PathBuf::from) else { return };
    let clock = File::open(folder.join("clock")).unwrap();
    let clock = move || {
        let mut step_ms = [0; 8];
        clock.read_exact_at(&mut step_ms, 0).map_err(|_| ClockError::new("no clock"))?;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Ok(i64::try_from(now.as_millis()).unwrap() + i64::from_ne_bytes(step_ms))
    };
    let pauses = std::env::var_os("POLYFLAKE_CRASH_PAUSES").is_some();
    let name = format!("{}.ids", std::process::id());
    let mut issued = OpenOptions::new().create(true).append(true).open(folder.join(name)).unwrap();
    let ids = options(&folder.join("state")).build_with_clock(clock).unwrap_or_else(|error| {
        fs::write(folder.join("refused"), error.to_string()).unwrap();
        panic!("{error}");
    });
    let mut buffer = [0; 64];
    for n in 1_usize.. {
        let batch = &mut buffer[..if n % 3 == 0 { n % 64 + 1 } else { 1 }];
        // Fails while the clock is set too far back, until the clock steps again or the next round begins.
        if ids.fill(batch).is_ok() {
            let bytes: Vec<u8> = batch.iter().flat_map(|id| id.to_ne_bytes()).collect();
            issued.write_all(&bytes).unwrap();
        }
        if pauses && n % 64 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// SplitMix64, for choices that can be reproduced from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

fn rounds(count: u64) {
    let seed = std::env::var("POLYFLAKE_SEED")
        .map_or_else(|_| u64::from(std::process::id()), |it| it.parse().unwrap());
    println!("POLYFLAKE_SEED={seed}");
    let mut random = Random(seed);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("crash-{}-{count}", std::process::id()));
    // Left behind if an earlier process with the same ID failed.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let state = folder.join("state");
    let clock =
        OpenOptions::new().create(true).truncate(false).write(true).open(folder.join("clock")).unwrap();
    let mut step_ms = 0_i64;
    clock.write_all_at(&step_ms.to_ne_bytes(), 0).unwrap();
    let (mut round, mut power_losses, mut killed_early) = (0, 0, 0);
    // All processes of a short round may be killed before they issue an ID, but the test needs IDs from before and
    // after a restart.
    let two_rounds_issued = || {
        let files = files_of_ids(&folder);
        files.iter().filter(|file| fs::metadata(file).unwrap().len() > 0).count() > PROCESSES
    };
    while round < count || round < 100 && !two_rounds_issued() {
        round += 1;
        let start = Instant::now();
        let running: Vec<_> = (0..PROCESSES).map(|i| start_process(&folder, i > 0)).collect();
        // With a new file, and after a power loss, all processes wait a second.
        let lasts = Duration::from_millis(random.below(1200));
        // The possible contents of the disk: every version of the page so far, unless a newer one is known to
        // be on disk.
        let mut pages = Vec::new();
        while start.elapsed() < lasts {
            pages.extend(fs::read(&state).ok());
            if random.below(60) == 0 {
                // A random walk of less than a minute, beyond which a file is rejected.
                step_ms = (step_ms + i64::try_from(random.below(1601)).unwrap() - 800).clamp(-15_000, 15_000);
                clock.write_all_at(&step_ms.to_ne_bytes(), 0).unwrap();
            }
            std::thread::sleep(Duration::from_micros(random.below(5000)));
        }
        drop(running);
        if let Ok(refused) = fs::read_to_string(folder.join("refused")) {
            panic!("a killed process left a file that is refused: {refused}, of seed {seed}");
        }
        killed_early += u32::from(!state.exists());
        if random.below(4) == 0 {
            if let Ok(now) = fs::read(&state) {
                let synced = word(&now, SYNCED);
                let mut page = pages.into_iter().find(|page| word(page, WRITTEN) >= synced).unwrap_or(now);
                page[BOOT] = page[BOOT].wrapping_add(1);
                fs::write(&state, page).unwrap();
                power_losses += 1;
            }
        }
    }
    let files = files_of_ids(&folder);
    let mut issued = Vec::new();
    for file in &files {
        let bytes = fs::read(file).unwrap();
        issued.extend(bytes.chunks_exact(8).map(|id| (u64::from_ne_bytes(id.try_into().unwrap()), file)));
    }
    issued.sort_unstable();
    if let Some(pair) = issued.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let [(id, file), (_, other)] = [pair[0], pair[1]];
        panic!("{id} is repeated, in {} and {}, of seed {seed}", file.display(), other.display());
    }
    println!(
        "{round} rounds of {PROCESSES} processes: {} IDs, {power_losses} power losses, {killed_early} rounds over \
         before there was a file, 0 repeats",
        issued.len()
    );
    assert!(two_rounds_issued());
    fs::remove_dir_all(folder).unwrap();
}

fn files_of_ids(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "ids")).collect()
}

fn start_process(folder: &Path, pauses: bool) -> Killed {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "a_process_of_a_round"]).env("POLYFLAKE_CRASH_FOLDER", folder);
    if pauses {
        command.env("POLYFLAKE_CRASH_PAUSES", "1");
    }
    Killed(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

fn word(page: &[u8], at: usize) -> u64 {
    page.get(at..at + 8).map_or(0, |bytes| u64::from_ne_bytes(bytes.try_into().unwrap()))
}
