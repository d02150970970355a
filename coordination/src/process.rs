//! Values that exist once per process, and again in a forked child.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use polyflake::ThisProcess;

/// This process's value, or a value that a child inherited from its parent. The child leaves an inherited
/// value alone, since a lock in it may be held forever.
#[doc(hidden)]
#[derive(Debug)]
pub struct PerProcess<T: 'static>(AtomicPtr<Of<T>>);

#[derive(Debug)]
struct Of<T> {
    process: ThisProcess,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// Creates the holder. No process has a value yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Returns this process's value. If there is none, `new` creates it from the parent's value.
    pub fn get(&self, new: impl Fn(Option<&'static T>) -> T) -> &'static T {
        let mut newest = self.0.load(Ordering::Acquire);
        loop {
            // SAFETY: only values that were leaked below are ever stored there.
            #[allow(unsafe_code)]
            let present = unsafe { newest.as_ref() };
            if let Some(own) = present.filter(|it| it.process.is_alive()) {
                return &own.value;
            }
            let made = Of { process: ThisProcess::now(), value: new(present.map(|it| &it.value)) };
            let made = ptr::from_ref(Box::leak(Box::new(made))).cast_mut();
            match self.0.compare_exchange(newest, made, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => newest = made,
                // Another thread was faster. The value made here is lost, once per process.
                Err(other) => newest = other,
            }
        }
    }
}

impl<T: Send + Sync> Default for PerProcess<T> {
    fn default() -> Self {
        Self::new()
    }
}
