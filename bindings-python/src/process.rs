//! Values that exist once per process. A forked child creates new ones.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use polyflake::ThisProcess;

/// The value of this process, or a value that a forked child inherited from its parent. The child leaves an inherited
/// value alone, because its lock may be held forever.
pub(crate) struct PerProcess<T: 'static>(AtomicPtr<Of<T>>);

struct Of<T> {
    process: ThisProcess,
    value: T,
}

impl<T: Default + Sync> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Returns this process's value if there is one.
    pub(crate) fn present(&self) -> Option<&'static T> {
        // SAFETY: every pointer stored here was leaked in `get`.
        let newest = unsafe { self.0.load(Ordering::Acquire).as_ref() };
        newest.filter(|it| it.process.is_alive()).map(|it| &it.value)
    }

    pub(crate) fn get(&self) -> &'static T {
        loop {
            if let Some(value) = self.present() {
                return value;
            }
            let parents = self.0.load(Ordering::Acquire);
            let own = Of { process: ThisProcess::now(), value: T::default() };
            let own = ptr::from_ref(Box::leak(Box::new(own))).cast_mut();
            // If another thread was faster, this value is lost, once per process.
            let _ = self.0.compare_exchange(parents, own, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}
