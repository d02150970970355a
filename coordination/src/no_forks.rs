//! Stands in for `forks.rs` on Windows, where no process is forked.

use std::io::Write as _;

use tokio::runtime::Builder;

pub(crate) struct Running;

impl Running {
    pub(crate) const fn begin() -> Self {
        Self
    }
}

pub(crate) const fn register() {}

pub(crate) fn runtime() -> Builder {
    let mut runtime = Builder::new_current_thread();
    runtime.enable_all();
    runtime
}

pub(crate) const fn give_way() {}

pub(crate) fn aside<T>(run: impl FnOnce() -> T) -> T {
    run()
}

pub(crate) fn write_to_stderr(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
