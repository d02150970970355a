//! Test processes whose clocks are set through libfaketime.

use std::fs;
use std::path::{Path, PathBuf};

use crate::journals::{Holder, Journals};

/// Returns the path of Debian's libfaketime.
fn library() -> PathBuf {
    let folders = fs::read_dir("/usr/lib").unwrap().map(|entry| entry.unwrap().path());
    let found = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|path| path.exists());
    found.expect("libfaketime is installed")
}

/// Starts one of the ignored tests in its own process, with a clock that is set through a file.
pub fn start_with(journals: &Journals, address: &str, test: &str, clock: &Path) -> Holder {
    set(clock, 0);
    let (library, file) = (library(), clock.display().to_string());
    let environment = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("FAKETIME_TIMESTAMP_FILE", &*file),
        ("FAKETIME_NO_CACHE", "1"),
        // The monotonic clock continues unchanged, just as it does when a machine's clock is set.
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("DONT_FAKE_MONOTONIC", "1"),
    ];
    journals.start_with(address, test, &environment)
}

/// Sets the clock. The file is replaced atomically, so it is never read half-written.
pub fn set(clock: &Path, by_s: i32) {
    let new = clock.with_extension("new");
    fs::write(&new, format!("{by_s:+}\n")).unwrap();
    fs::rename(new, clock).unwrap();
}
