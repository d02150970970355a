//! Helpers for tests with several processes.
#![allow(dead_code, reason = "each test file uses its part")]

use std::os::fd::{FromRawFd, OwnedFd};

/// Runs `child` in a forked process and returns its result.
pub(crate) fn in_child<const N: usize>(child: impl FnOnce() -> [u8; N]) -> [u8; N] {
    // SAFETY: the child calls nothing that another thread of the parent may have left half-done: glibc makes
    // its allocator consistent again, and the child exits with `_exit`.
    in_child_of(|| unsafe { libc::fork() }, child)
}

/// Does the same in a child created by the given `fork`.
pub(crate) fn in_child_of<const N: usize>(
    fork: impl FnOnce() -> libc::pid_t,
    child: impl FnOnce() -> [u8; N],
) -> [u8; N] {
    use std::io::{Read, Write};
    let mut ends = [0; 2];
    // SAFETY: this writes two descriptors, which are owned from here on.
    let (mut from, mut to) = unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        (
            std::fs::File::from(OwnedFd::from_raw_fd(ends[0])),
            std::fs::File::from(OwnedFd::from_raw_fd(ends[1])),
        )
    };
    match fork() {
        -1 => panic!("fork failed"),
        0 => {
            let written = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child))
                .is_ok_and(|bytes| to.write_all(&bytes).is_ok());
            // SAFETY: this does not return.
            unsafe { libc::_exit(i32::from(!written)) }
        }
        pid => {
            drop(to);
            let mut bytes = [0; N];
            let read = from.read_exact(&mut bytes);
            let mut status = 0;
            // SAFETY: the child belongs to this process.
            unsafe { assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid) };
            assert_eq!(status, 0, "the child failed");
            read.unwrap();
            bytes
        }
    }
}

pub(crate) fn code<T>(result: Result<T, polyflake::Error>) -> u8 {
    result.map_or_else(|error| u8::try_from(error.code().number()).unwrap(), |_| 0)
}
