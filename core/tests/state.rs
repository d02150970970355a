//! State files: all processes on a host share one node.
#![cfg(all(unix, not(loom)))]

mod common;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use common::{code, in_child};
use polyflake::{
    Clock, ClockError, Error, ErrorCode, Options, Snowflake, reset_state, reset_state_with_clock,
};

const START: i64 = 1_800_000_000_000;
const FORKED: u8 = ErrorCode::Forked as u8;
const STATE_FILE: u8 = ErrorCode::StateFile as u8;

/// The positions in the state file of the words that these tests read and change.
mod at {
    pub(crate) const CURSOR: u64 = 64;
    pub(crate) const ROLLBACKS: u64 = 80;
    pub(crate) const SOFT: u64 = 112;
    pub(crate) const SYNCED: u64 = 120;
    pub(crate) const WRITTEN: u64 = 128;
    pub(crate) const BOOT: u64 = 136;
    pub(crate) const SYNCS: u64 = 144;
}

/// A folder for a single test. Dropping it deletes it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicI64 = AtomicI64::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("state-{}-{n}", std::process::id()));
        // Left behind if an earlier process with the same ID failed.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("polyflake.state")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn word(path: &Path, at: u64) -> u64 {
    let mut bytes = [0; 8];
    fs::File::open(path).unwrap().read_exact_at(&mut bytes, at).unwrap();
    u64::from_ne_bytes(bytes)
}

fn set_word(path: &Path, at: u64, value: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(&value.to_ne_bytes(), at).unwrap();
}

/// Changes the file the way a reboot would.
fn reboot(path: &Path) {
    set_word(path, at::BOOT, word(path, at::BOOT).wrapping_add(1));
}

/// A clock that the test moves.
#[derive(Clone)]
struct Moved(Arc<AtomicI64>);

impl Moved {
    fn new() -> Self {
        Self(Arc::new(AtomicI64::new(START)))
    }

    fn add(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::Relaxed);
    }

    /// Builds a Snowflake on this clock with a new file. The file begins a second ahead of the clock, so this
    /// advances the clock by more than that.
    fn make(&self, options: &Options) -> Snowflake<Self> {
        let ids = options.build_with_clock(self.clone()).unwrap();
        self.add(NEW_FILE_MS);
        ids
    }
}

/// How far ahead of the clock a new file's first tick is, in ms, if a tick lasts 1 ms.
const NEW_FILE_MS: i64 = 1001;

impl Clock for Moved {
    fn unix_ms(&self) -> Result<i64, ClockError> {
        Ok(self.0.load(Ordering::Relaxed))
    }
}

/// Each test uses different nodes, because a process has only one cursor per node, no matter where it is
/// stored.
fn builder(node: u64, path: &Path) -> Options {
    Snowflake::builder().node(node).state(path)
}

fn error_of(options: &Options) -> String {
    let error = options.build().unwrap_err();
    assert_eq!(error.code(), ErrorCode::StateFile, "{error}");
    error.to_string()
}

/// Returns the error message from a process that has not opened the file. The child passes it back as bytes.
fn refusal_elsewhere(options: &Options) -> String {
    let bytes: [u8; 512] = in_child(|| {
        let mut bytes = [b' '; 512];
        let message = options.build().map_or_else(|error| error.to_string(), |_| "opened".to_owned());
        bytes[..message.len()].copy_from_slice(message.as_bytes());
        bytes
    });
    String::from_utf8(bytes.to_vec()).unwrap().trim_end().to_owned()
}

#[test]
fn a_new_file_is_one_page_that_its_owner_alone_can_read() {
    let folder = Folder::new();
    let ids = builder(1, &folder.file()).build().unwrap();
    let first = ids.next_id().unwrap();
    assert!(ids.next_id().unwrap() > first);
    let metadata = fs::metadata(folder.file()).unwrap();
    assert_eq!(metadata.len(), 4096);
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert!(metadata.blocks() * 512 >= 4096, "it has its blocks");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "nothing else is left behind");
}

#[test]
fn a_file_opened_twice_is_one_cursor() {
    let folder = Folder::new();
    let path = folder.file();
    let all = [
        builder(2, &path).build().unwrap(),
        builder(2, &path).layout("leaf").build().unwrap(),
        builder(2, &folder.0.join(".").join("polyflake.state")).build().unwrap(),
    ];
    let clock = builder(2, &path).build_with_clock(|| Ok(now_ms())).unwrap();
    let mut last = 0;
    for _ in 0..1000 {
        for ids in &all {
            let id = ids.next_id().unwrap();
            assert!(id > last);
            last = id;
        }
        let id = clock.next_id().unwrap();
        assert!(id > last);
        last = id;
    }
}

fn now_ms() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

#[test]
fn a_claim_that_does_not_fit_an_earlier_one_is_refused() {
    let folder = Folder::new();
    let (path, other) = (folder.file(), folder.0.join("other"));
    let _with = builder(3, &path).build().unwrap();
    let _without = Snowflake::builder().node(4).build().unwrap();
    for (options, says) in [
        (Snowflake::builder().node(3), "with the state file `"),
        (builder(3, &other), "with the state file `"),
        (
            builder(4, &path),
            "state is given, but this process already issues IDs for this layout and node without",
        ),
        (builder(3, &path).max_ahead_ms(5), "max_ahead_ms is 5, but"),
        (builder(3, &path).max_backward_ms(5), "max_backward_ms is 5, but"),
    ] {
        let error = options.build().unwrap_err();
        assert_eq!(error.code(), ErrorCode::InvalidOption, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    // The file determines the tolerance for other processes too.
    assert!(
        refusal_elsewhere(&builder(3, &path).max_ahead_ms(5))
            .starts_with("invalid_option: max_ahead_ms is 5")
    );
    // Without a file, a Snowflake on a caller's clock has its own cursor, as always.
    assert!(Snowflake::builder().node(3).build_with_clock(|| Ok(START)).unwrap().next_id().is_ok());
}

#[test]
fn a_path_that_is_none_is_refused_when_it_is_set() {
    let mut options = Options::default();
    for error in [options.set("state", "").unwrap_err(), options.set_os("state", OsStr::new("")).unwrap_err()]
    {
        assert_eq!(error.code(), ErrorCode::InvalidOption);
        assert!(error.to_string().contains("state is `"), "{error}");
    }
    assert_eq!(builder(5, Path::new("")).build().unwrap_err().code(), ErrorCode::InvalidOption);
    options.set("state", "a\0b").unwrap();
    assert!(error_of(&options.node(5)).contains("the path is not valid"));
}

#[test]
fn a_path_of_any_bytes_is_taken_as_it_is() {
    let folder = Folder::new();
    // U+FFFD is an ordinary letter, 0xff does not occur in UTF-8, and these are four different files.
    for (node, name) in
        [(61, &b"caf\xc3\xa9"[..]), (62, b"caf\xff"), (63, b"caf\xef\xbf\xbd"), (64, b"caf\xfe")]
    {
        let path = folder.file().with_file_name(OsStr::from_bytes(name));
        let mut options = Snowflake::builder().node(node);
        options.set_os("state", path.as_os_str()).unwrap();
        assert_eq!(options.build().unwrap().node(), node);
        assert!(path.exists());
        reset_state(&path).unwrap();
    }
    let mut options = Options::default();
    options.set_os("max_wait_ms", OsStr::new("5")).unwrap();
    for name in ["max_wait_ms", "sequence"] {
        let error = options.set_os(name, OsStr::from_bytes(b"5\xff")).unwrap_err();
        assert!(error.code() == ErrorCode::InvalidOption && error.to_string().contains(name), "{error}");
    }
}

#[test]
fn another_key_is_refused_and_the_file_left_alone() {
    let folder = Folder::new();
    let path = folder.file();
    builder(6, &path).build().unwrap().next_id().unwrap();
    let before = fs::read(&path).unwrap();
    for options in
        [builder(7, &path), builder(6, &path).layout("cosid"), builder(6, &path).layout("sonyflake2")]
    {
        let message = error_of(&options);
        assert!(
            message.contains("belongs to another layout or node (epoch 1288834974657, tick 1 ms"),
            "{message}"
        );
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn what_is_no_whole_state_file_is_refused_and_left_alone() {
    let folder = Folder::new();
    let path = folder.file();
    builder(8, &path).build().unwrap().next_id().unwrap();
    let whole = fs::read(&path).unwrap();
    let copy = folder.0.join("copy");
    let refused = |bytes: &[u8]| {
        fs::write(&copy, bytes).unwrap();
        let message = refusal_elsewhere(&builder(9, &copy));
        assert_eq!(fs::read(&copy).unwrap(), bytes, "it is never overwritten");
        message
    };
    for len in [0, 1, 63, 64, 512, 4095] {
        assert!(refused(&whole[..len]).contains(&format!("only part of one: it has {len} bytes")));
    }
    assert!(refused(&[&whole[..], b"x"].concat()).contains("it has 4097 bytes"));
    assert!(refused(&[b'x'; 4096]).contains("is not a state file"));
    // Each byte of the head, with its lowest bit flipped.
    for n in 0..64 {
        let mut bytes = whole.clone();
        bytes[n] ^= 1;
        let message = refused(&bytes);
        let says = if n < 8 { "is not a state file: it has an unknown header" } else { "is damaged" };
        assert!(message.contains(says), "byte {n}: {message}");
    }
    // Words that are out of order.
    for at in [at::CURSOR, at::SOFT, at::SYNCED] {
        let mut bytes = whole.clone();
        let at = usize::try_from(at).unwrap();
        bytes[at..at + 8].fill(0xFF);
        assert!(refused(&bytes).contains("is damaged"));
    }
    // Words in order, but past the layout's last slot.
    let mut bytes = whole.clone();
    for at in [at::SOFT, at::SYNCED, at::WRITTEN] {
        let at = usize::try_from(at).unwrap();
        bytes[at..at + 8].copy_from_slice(&(1_u64 << 53).to_ne_bytes());
    }
    assert!(refused(&bytes).contains("is damaged"));
    // A valid file in the other byte order.
    let mut swapped = whole.clone();
    swapped[8..64].chunks_exact_mut(8).for_each(<[u8]>::reverse);
    assert!(refused(&swapped).contains("with the other byte order"));
    // A future format with a correct checksum.
    let mut newer = whole.clone();
    let version = (0x0102_0304_u64 << 32 | 2).to_ne_bytes();
    newer[8..16].copy_from_slice(&version);
    let checksum = u64::from(crc32(&newer[..56]));
    newer[56..64].copy_from_slice(&checksum.to_ne_bytes());
    assert!(refused(&newer).contains("has format 2"));
}

/// Computed as in the reference, not by the library.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0xEDB8_8320 } else { 0 })
    })
}

#[test]
fn places_that_cannot_hold_one_are_refused() {
    let folder = Folder::new();
    let missing = error_of(&builder(10, &folder.0.join("missing").join("file")));
    assert!(missing.contains("could not be created (No such file or directory"), "{missing}");
    let itself = error_of(&builder(10, &folder.0));
    assert!(itself.contains("could not be opened (Is a directory"), "{itself}");
    let nowhere = folder.0.join("nowhere");
    std::os::unix::fs::symlink(folder.0.join("missing"), &nowhere).unwrap();
    assert!(error_of(&builder(10, &nowhere)).contains("could not be opened (No such file"));
    let pipe = folder.0.join("pipe");
    let name = std::ffi::CString::new(pipe.to_str().unwrap()).unwrap();
    // SAFETY: the name ends in a NUL.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert!(error_of(&builder(10, &pipe)).contains("is not a regular file"));
    if cfg!(target_os = "linux") {
        let proc = error_of(&builder(10, Path::new("/proc/self/comm")));
        assert!(proc.contains("file system (type 40864)"), "{proc}");
    }
}

#[test]
fn without_permission_it_is_refused() {
    let folder = Folder::new();
    let path = folder.file();
    builder(11, &path).build().unwrap().next_id().unwrap();
    let copy = folder.0.join("copy");
    fs::copy(&path, &copy).unwrap();
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o555)).unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o400)).unwrap();
    let codes = in_child(|| {
        // Root may do anything as long as it has its capabilities. Another user might not even be able to
        // reach the folder.
        #[cfg(target_os = "linux")]
        {
            let (version_3_of_this_process, none) = ([0x2008_0522_u32, 0], [0_u32; 6]);
            // SAFETY: a plain system call in a child. It reads two arrays of these sizes.
            let status =
                unsafe { libc::syscall(libc::SYS_capset, version_3_of_this_process.as_ptr(), none.as_ptr()) };
            assert_eq!(status, 0);
        }
        let says = |options: Options, what: &str| {
            options
                .build()
                .is_err_and(|error| error.code() == ErrorCode::StateFile && error.to_string().contains(what))
        };
        [
            says(builder(12, &folder.0.join("new")), "could not be created (Permission denied"),
            says(builder(12, &copy), "could not be opened (Permission denied"),
        ]
        .map(u8::from)
    });
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(codes, [1, 1]);
}

#[test]
fn a_full_disk_is_an_error() {
    let folder = Folder::new();
    let path = folder.file();
    let says = in_child(|| {
        // The closest thing to a full disk that needs no privileges: no file may grow past 100 bytes. SAFETY:
        // plain system calls in a child.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            let limit = libc::rlimit { rlim_cur: 100, rlim_max: 100 };
            assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
        }
        let error = builder(13, &path).build().unwrap_err();
        [u8::from(error.code() == ErrorCode::StateFile && error.to_string().contains("could not be created"))]
    });
    assert_eq!(says, [1]);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0, "no half of a file is left behind");
    // The limit applied only to the child.
    assert!(builder(13, &path).build().is_ok());
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_file_system_is_an_error_when_the_file_is_made_and_none_later() {
    let folder = Folder::new();
    let mount = folder.0.join("tiny");
    fs::create_dir(&mount).unwrap();
    let text = |text: &str| std::ffi::CString::new(text).unwrap();
    let (kind, place) = (text("tmpfs"), text(mount.to_str().unwrap()));
    // SAFETY: the strings end in a NUL.
    let mounted = unsafe {
        libc::mount(kind.as_ptr(), place.as_ptr(), kind.as_ptr(), 0, text("size=16k").as_ptr().cast())
    };
    if mounted != 0 {
        println!("skipped: mounting a file system needs root");
        return;
    }
    let fill = |name: &str| {
        let mut bytes = 1 << 20;
        while bytes > 0 {
            bytes = if fs::write(mount.join(name), vec![1; bytes]).is_ok() { 0 } else { bytes / 2 };
        }
    };
    let outcome = std::panic::catch_unwind(|| {
        let path = mount.join("polyflake.state");
        fill("before");
        let message = error_of(&builder(14, &path));
        assert!(message.contains("could not be created (No space left on device"), "{message}");
        fs::remove_file(mount.join("before")).unwrap();
        let clock = Moved::new();
        let ids = clock.make(&builder(14, &path));
        fill("after");
        for _ in 0..100 {
            ids.next_id().unwrap();
            clock.add(300);
        }
    });
    // SAFETY: the string ends in a NUL.
    unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) };
    outcome.unwrap();
}

#[test]
fn a_child_does_not_repeat_what_its_parent_had_taken_for_itself() {
    let folder = Folder::new();
    let layout = "timestamp:38|worker:6|sequence:20@0/1s";
    let clock = Moved::new();
    let options = Snowflake::builder().layout(layout).node(21).state(folder.file());
    let ids = clock.make(&options);
    clock.add(1000);
    let mut ids = ids.into_local();
    let first = ids.next_id().unwrap();
    let taken = in_child(|| ids.next_id().unwrap().to_ne_bytes());
    let (child, next) = (u64::from_ne_bytes(taken), ids.next_id().unwrap());
    assert!(first < child && child < next, "{first} {child} {next}");
    // The child takes an ID immediately, before anything has advanced the cursor.
    let taken = in_child(|| ids.next_id().unwrap().to_ne_bytes());
    assert!(u64::from_ne_bytes(taken) > next);
}

#[test]
fn it_goes_on_in_forked_children_and_shares_the_cursor() {
    const EACH: usize = 2000;
    let folder = Folder::new();
    let path = folder.file();
    let ids = builder(20, &path).max_wait_ms(60_000).build().unwrap();
    let mut all = HashSet::new();
    let take = || {
        let mut bytes = [0; EACH * 8];
        for bytes in bytes.chunks_exact_mut(8) {
            bytes.copy_from_slice(&ids.next_id().unwrap().to_ne_bytes());
        }
        bytes
    };
    std::thread::scope(|scope| {
        let children: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    in_child(|| {
                        // A new Snowflake on the parent's cursor works just like the inherited one.
                        let own = builder(20, &path).max_wait_ms(60_000).build().unwrap();
                        let _ = own.next_id().unwrap();
                        assert_eq!(
                            code(Snowflake::builder().node(20).build()),
                            ErrorCode::InvalidOption as u8
                        );
                        take()
                    })
                })
            })
            .collect();
        let mine = take();
        let mut issued = vec![mine];
        issued.extend(children.into_iter().map(|child| child.join().unwrap()));
        for bytes in &issued {
            for id in bytes.chunks_exact(8) {
                assert!(all.insert(u64::from_ne_bytes(id.try_into().unwrap())), "a repeat");
            }
        }
    });
    assert_eq!(all.len(), 5 * EACH);
}

#[test]
fn a_node_that_the_parent_had_without_a_file_stays_the_parents() {
    let folder = Folder::new();
    let _ids = Snowflake::builder().node(21).build().unwrap();
    let codes = in_child(|| [code(builder(21, &folder.file()).build())]);
    assert_eq!(codes, [FORKED]);
}

#[test]
fn two_creators_at_once_make_one_file() {
    const ROUNDS: usize = 5;
    let folder = Folder::new();
    for round in 0..ROUNDS {
        let path = folder.0.join(round.to_string());
        let issued: Vec<u64> = std::thread::scope(|scope| {
            let children: Vec<_> = (0..4)
                .map(|_| {
                    let path = &path;
                    scope.spawn(move || {
                        let ids = in_child(|| {
                            let ids = builder(22, path).layout("cosid").max_wait_ms(60_000).build().unwrap();
                            ids.next_id().unwrap().to_ne_bytes()
                        });
                        u64::from_ne_bytes(ids)
                    })
                })
                .collect();
            children.into_iter().map(|child| child.join().unwrap()).collect()
        });
        assert_eq!(issued.iter().collect::<HashSet<_>>().len(), issued.len());
    }
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), ROUNDS, "nothing else is left behind");
}

#[test]
fn a_restart_with_the_clock_set_back_keeps_to_the_rules() {
    let folder = Folder::new();
    let path = folder.file();
    let after = |ms: i64| {
        u64::from_ne_bytes(in_child(|| {
            let clock = Moved::new();
            clock.add(ms);
            let ids = builder(23, &path).build_with_clock(clock).unwrap();
            ids.next_id().map_or(0, |id| id).to_ne_bytes()
        }))
    };
    Moved::new().make(&builder(23, &path));
    let first = after(NEW_FILE_MS);
    assert_eq!(after(NEW_FILE_MS - 500), first + 1, "tolerated: the same tick");
    assert_eq!(after(NEW_FILE_MS - 5000), 0, "refused");
    assert!(after(NEW_FILE_MS + 1) > first + 1);
}

#[test]
fn a_file_that_loses_its_name_or_place_stops_issuing() {
    let folder = Folder::new();
    let delete = |path: &Path| fs::remove_file(path).unwrap();
    let rename = |path: &Path| fs::rename(path, path.with_extension("old")).unwrap();
    let replace = |path: &Path| {
        let copy = path.with_extension("copy");
        fs::copy(path, &copy).unwrap();
        fs::rename(copy, path).unwrap();
    };
    let changes: [&dyn Fn(&Path); 3] = [&delete, &rename, &replace];
    for (node, change) in (24..).zip(changes) {
        let path = folder.0.join(node.to_string());
        let clock = Moved::new();
        let ids = clock.make(&builder(node, &path));
        let first = ids.next_id().unwrap();
        let hidden = path.with_extension("hidden");
        fs::hard_link(&path, &hidden).unwrap();
        change(&path);
        clock.add(1000);
        let error = ids.next_id().unwrap_err();
        assert_eq!(error.code(), ErrorCode::StateFile);
        assert!(error.to_string().contains("was renamed, deleted or replaced while in use"), "{error}");
        assert_eq!(ids.try_next_id().unwrap_err(), error);
        assert_eq!(ids.next_ids(10).unwrap_err(), error);
        // A new Snowflake does not use the replacement either.
        assert_eq!(builder(node, &path).build().unwrap_err(), error);
        // Once the file is put back, the Snowflake resumes.
        fs::rename(hidden, &path).unwrap();
        assert!(ids.next_id().unwrap() > first);
    }
}

#[test]
fn every_id_is_reserved_and_the_disk_is_written_twice_a_second() {
    let folder = Folder::new();
    let path = folder.file();
    let clock = Moved::new();
    let ids = clock.make(&builder(27, &path));
    for _ in 0..10_000 {
        let slot = ids.next_id().map(|_| word(&path, at::CURSOR)).unwrap();
        assert!(slot <= word(&path, at::SYNCED) && word(&path, at::SYNCED) <= word(&path, at::WRITTEN));
        clock.add(1);
    }
    // Ten seconds have passed.
    assert!((15..=25).contains(&word(&path, at::SYNCS)), "{}", word(&path, at::SYNCS));
}

#[test]
fn a_batch_past_what_is_reserved_reserves_more() {
    let folder = Folder::new();
    let path = folder.file();
    let clock = Moved::new();
    let ids = clock.make(&builder(28, &path).max_ahead_ms(5000));
    clock.add(5000);
    let batch = ids.next_ids(4096 * 4000).unwrap();
    assert!(batch.is_sorted_by(|a, b| a < b));
    assert!(word(&path, at::CURSOR) <= word(&path, at::SYNCED));
}

#[test]
fn after_a_reboot_it_goes_on_above_what_was_reserved() {
    let folder = Folder::new();
    let path = folder.file();
    let last = u64::from_ne_bytes(in_child(|| {
        let ids = builder(29, &path).build().unwrap();
        ids.next_ids(1000).unwrap()[999].to_ne_bytes()
    }));
    let reserved = word(&path, at::WRITTEN);
    reboot(&path);
    // The wait happens when the file is opened. Otherwise, the first ID would have to wait longer than
    // allowed.
    let (id, slot) = {
        let ids = builder(29, &path).build().unwrap();
        (ids.next_id().unwrap(), word(&path, at::CURSOR))
    };
    assert!(id > last && slot > reserved);
}

#[test]
fn after_a_power_loss_nothing_repeats_however_old_the_page() {
    let folder = Folder::new();
    let path = folder.file();
    let mut all = HashSet::new();
    let mut now = 0;
    for round in 0..6_u64 {
        // Each process issues IDs for a while, and keeps a copy of the last state that reached the disk.
        let issued: [u8; 800 * 8] = in_child(|| {
            let clock = Moved::new();
            clock.add(now);
            let ids = builder(30, &path).build_with_clock(clock.clone()).unwrap();
            let (mut issued, mut syncs) = (Vec::new(), u64::MAX);
            for step in 0..800 {
                // After a reboot, the clock must first pass everything that was reserved.
                while issued.len() == step * 8 {
                    match ids.try_next_id() {
                        Ok(id) => issued.extend(id.to_ne_bytes()),
                        Err(_) => clock.add(10),
                    }
                }
                if word(&path, at::SYNCS) != syncs {
                    syncs = word(&path, at::SYNCS);
                    fs::copy(&path, path.with_extension("synced")).unwrap();
                }
                clock.add(i64::try_from(round % 4).unwrap());
            }
            issued.try_into().unwrap()
        });
        for id in issued.chunks_exact(8) {
            assert!(all.insert(u64::from_ne_bytes(id.try_into().unwrap())), "a repeat");
        }
        fs::rename(path.with_extension("synced"), &path).unwrap();
        reboot(&path);
        // The clock after the next boot: on time, behind, or ahead.
        now = [0, -700, 3000][usize::try_from(round % 3).unwrap()] + i64::try_from(round).unwrap() * 2400;
    }
}

#[test]
fn a_cursor_far_ahead_of_the_clock_is_refused_until_it_is_reset() {
    let folder = Folder::new();
    let path = folder.file();
    let in_2080 = 3_471_292_800_000;
    in_child(|| {
        let clock = Moved::new();
        clock.add(in_2080 - START);
        [code(clock.make(&builder(31, &path)).next_id())]
    });
    let message = error_of(&builder(31, &path));
    assert!(message.contains(" ms ahead of the clock; ") && message.contains("reset_state"), "{message}");
    // A cursor that is a minute ahead is still accepted.
    let near = builder(31, &path).build_with_clock(move || Ok(in_2080 - 58_000)).unwrap();
    assert_eq!(near.next_id().unwrap_err().code(), ErrorCode::ClockMovedBackwards);

    reset_state(&path).unwrap();
    // A process that still has the old file gets an error instead of waiting for 2080.
    assert_eq!(near.next_id().unwrap_err().code(), ErrorCode::StateFile);
    assert!(builder(31, &path).build().unwrap().next_id().is_ok());
    // A cursor that is not ahead of the clock is left unchanged.
    let inode = fs::metadata(&path).unwrap().ino();
    reset_state(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
    reset_state_with_clock(&path, &|| Ok(START - 100 * 86_400_000_000)).unwrap_err();
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "nothing else is left behind");
}

#[test]
fn resetting_what_is_no_state_file_is_refused() {
    let folder = Folder::new();
    let path = folder.file();
    assert_eq!(reset_state(&path).unwrap_err().code(), ErrorCode::StateFile);
    fs::write(&path, b"precious").unwrap();
    assert_eq!(reset_state(&path).unwrap_err().code(), ErrorCode::StateFile);
    assert_eq!(fs::read(&path).unwrap(), b"precious");
}

#[test]
fn a_longer_lead_that_the_options_allow_is_not_far() {
    let folder = Folder::new();
    let path = folder.file();
    let open = |node, ms: i64, options: fn(Options) -> Options| {
        let [code] = in_child(|| {
            let clock = Moved::new();
            clock.add(ms);
            let options = options(builder(node, &path.with_extension(node.to_string())));
            let ids = options.build_with_clock(clock.clone());
            // A new file begins a second plus max_ahead_ms ahead of the clock.
            clock.add(if ms == 0 { NEW_FILE_MS + 600_000 } else { 0 });
            [code(ids.and_then(|ids| ids.next_id()))]
        });
        code
    };
    for (node, options) in [
        (32, (|options| options.max_backward_ms(600_000)) as fn(Options) -> Options),
        (33, |options| options.max_ahead_ms(600_000)),
    ] {
        assert_eq!(open(node, 0, options), 0);
        assert_eq!(open(node, 300_000, options), 0);
        assert_eq!(open(node, -300_000, options), STATE_FILE);
    }
}

#[test]
fn a_closed_snowflake_refuses_and_the_others_go_on() {
    let folder = Folder::new();
    let path = folder.file();
    let (closed, other) = (builder(34, &path).build().unwrap(), builder(34, &path).build().unwrap());
    let first = closed.next_id().unwrap();
    closed.close();
    closed.close();
    let refused = |result: Result<(), Error>| assert_eq!(result.unwrap_err().code(), ErrorCode::Closed);
    refused(closed.next_id().map(drop));
    refused(closed.try_next_id().map(drop));
    refused(closed.next_ids(10).map(drop));
    refused(closed.stats().map(drop));
    assert_eq!(closed.decode(first).unwrap().node(), 34);
    assert!(other.next_id().unwrap() > first);
    assert!(builder(34, &path).build().unwrap().next_id().is_ok());
    // The same without a state file.
    let plain = Snowflake::builder().node(35).build().unwrap();
    plain.close();
    refused(plain.next_id().map(drop));
    let callers = Snowflake::builder().node(35).build_with_clock(|| Ok(START)).unwrap();
    callers.close();
    refused(callers.next_id().map(drop));
}

#[test]
fn a_file_is_found_from_another_folder() {
    let folder = Folder::new();
    let path = folder.file();
    let codes = in_child(|| {
        std::env::set_current_dir(&folder.0).unwrap();
        let clock = Moved::new();
        let ids = clock.make(&builder(36, Path::new("polyflake.state")));
        std::env::set_current_dir("/").unwrap();
        clock.add(5000);
        [code(ids.next_id())]
    });
    assert_eq!(codes, [0]);
    assert!(path.exists());
}

/// Issues IDs in another process until a call fails, and returns its last ID and the error code. The process
/// creates the file `ready` after its first ID.
fn issue_until_refused(options: &Options, ready: &Path, pause: std::time::Duration) -> (u64, u8) {
    let outcome: [u8; 9] = in_child(|| {
        let ids = options.build().unwrap();
        let mut last = ids.next_id().unwrap();
        fs::write(ready, b"").unwrap();
        let refused = loop {
            match ids.next_id() {
                Ok(id) => {
                    assert!(id > last);
                    last = id;
                }
                Err(error) => break error,
            }
            std::thread::sleep(pause);
        };
        let mut outcome = [u8::try_from(refused.code().number()).unwrap(); 9];
        outcome[..8].copy_from_slice(&last.to_ne_bytes());
        outcome
    });
    (u64::from_ne_bytes(outcome[..8].try_into().unwrap()), outcome[8])
}

fn wait_for_file(path: &Path) {
    while !path.exists() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn a_file_in_the_place_of_one_in_use_begins_above_all_that_is_still_issued() {
    // Full load, under which a process notices the change at the end of a tick, and occasional IDs, for which
    // it checks twice a second.
    let layouts = ["timestamp:41|worker:10|sequence:4@1577203200000/1ms", "cosid"];
    let pauses = [0, 1].map(std::time::Duration::from_millis);
    let delete = |path: &Path| fs::remove_file(path).unwrap();
    let put_back = |path: &Path| fs::rename(path.with_extension("copy"), path).unwrap();
    let changes: [&(dyn Fn(&Path) + Sync); 2] = [&delete, &put_back];
    for (node, (n, change)) in (40..).zip([0, 1].into_iter().flat_map(|n| changes.map(|change| (n, change))))
    {
        let folder = Folder::new();
        let (path, ready) = (folder.file(), folder.0.join("ready"));
        let options = builder(node, &path).layout(layouts[n]).max_wait_ms(60_000);
        let ((last, refused), first) = std::thread::scope(|scope| {
            let old = scope.spawn(|| issue_until_refused(&options, &ready, pauses[n]));
            wait_for_file(&ready);
            fs::copy(&path, path.with_extension("copy")).unwrap();
            // In the middle of the slots that the process may issue without checking.
            let syncs = word(&path, at::SYNCS);
            while word(&path, at::SYNCS) == syncs {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            change(&path);
            let first = in_child(|| options.build().unwrap().next_id().unwrap().to_ne_bytes());
            (old.join().unwrap(), u64::from_ne_bytes(first))
        });
        assert_eq!(refused, STATE_FILE);
        assert!(first > last, "{first} is not above {last}");
    }
}

#[test]
fn opening_a_file_of_another_boot_disturbs_nobody() {
    let folder = Folder::new();
    let (path, ready, stop) = (folder.file(), folder.0.join("ready"), folder.0.join("stop"));
    // This process opens none of the files, because its children would inherit them.
    let options = builder(50, &path).max_wait_ms(60_000);
    let opened = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            in_child(|| {
                let ids = options.build().unwrap();
                let mut last = 0;
                while !stop.exists() {
                    let id = ids.next_id().unwrap();
                    assert!(id > last);
                    last = id;
                    fs::write(&ready, b"").unwrap();
                }
                []
            })
        });
        wait_for_file(&ready);
        // As in a container with a different boot ID, and in one with no boot ID at all.
        let opened = [7, 0].map(|boot| {
            set_word(&path, at::BOOT, boot);
            let [opened] = in_child(|| [code(options.build().and_then(|ids| ids.next_id()))]);
            (opened, word(&path, at::BOOT) == boot)
        });
        fs::write(&stop, b"").unwrap();
        running.join().unwrap();
        opened
    });
    assert_eq!(word(&path, at::ROLLBACKS), 0);
    assert_eq!(opened, [(0, false); 2], "the next to open it need not wait");
}

#[test]
fn two_that_open_a_file_after_a_reboot_do_not_disturb_each_other() {
    const EACH: usize = 2000;
    let folder = Folder::new();
    let path = folder.file();
    let options = builder(51, &path).max_wait_ms(60_000);
    in_child(|| [code(options.build().and_then(|ids| ids.next_id()))]);
    let reserved = word(&path, at::WRITTEN);
    reboot(&path);
    let issued: Vec<[u8; (EACH + 1) * 8]> = std::thread::scope(|scope| {
        let open = || {
            in_child(|| {
                let ids = options.build().unwrap();
                let mut issued: Vec<u64> = ids.iter().take(EACH).map(Result::unwrap).collect();
                issued.push(ids.stats().unwrap().rollbacks);
                issued.iter().flat_map(|id| id.to_ne_bytes()).collect::<Vec<_>>().try_into().unwrap()
            })
        };
        let both = [scope.spawn(open), scope.spawn(open)];
        both.map(|child| child.join().unwrap()).into()
    });
    let mut all = HashSet::new();
    for bytes in &issued {
        let mut words: Vec<u64> =
            bytes.chunks_exact(8).map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap())).collect();
        assert_eq!(words.pop(), Some(0), "no step back was seen");
        assert!(words.into_iter().all(|id| all.insert(id)));
    }
    assert!(word(&path, at::CURSOR) > reserved);
}

#[test]
fn a_clock_that_fails_while_a_file_is_opened_fails_the_opening() {
    let folder = Folder::new();
    for fails_at in 0..4 {
        let readings = std::cell::Cell::new(0);
        let clock = || {
            readings.set(readings.get() + 1);
            if readings.get() > fails_at { Err(ClockError::new("interrupted")) } else { Ok(START) }
        };
        // For a new file: when it is created, when it is opened, and during the wait for its first tick.
        let path = folder.0.join(fails_at.to_string());
        let error = builder(52, &path).build_with_clock(clock).unwrap_err();
        assert_eq!(error.to_string(), "clock_failed: interrupted");
        assert_eq!(readings.get(), fails_at + 1, "it is not asked again");
    }
}

#[test]
fn the_first_id_of_a_new_file_spreads() {
    const FILES: u64 = 24;
    let folder = Folder::new();
    let first = |n: u64| {
        // Nodes that no other test uses, all with the same layout.
        let layout = "timestamp:41|worker:10|sequence:12@1767225600000/1ms";
        let options = builder(600 + n, &folder.0.join(n.to_string())).layout(layout).max_wait_ms(60_000);
        let taken = in_child(|| {
            let ids = options.build().unwrap();
            ids.decode(ids.next_id().unwrap()).unwrap().sequence().to_ne_bytes()
        });
        u64::from_ne_bytes(taken) % 16
    };
    let residues: HashSet<u64> = std::thread::scope(|scope| {
        let children: Vec<_> = (0..FILES)
            .map(|n| {
                // Staggers the processes, so that most begin in different ticks.
                std::thread::sleep(std::time::Duration::from_millis(2));
                scope.spawn(move || first(n))
            })
            .collect();
        children.into_iter().map(|child| child.join().unwrap()).collect()
    });
    // Each node draws its own residue in each tick. 24 random draws cover five of the 16 residues or fewer in less
    // than one run in 100 million.
    assert!(residues.len() >= 6, "{residues:?}");
}
