//! Values that exist once per process. A forked child gets its own.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use polyflake::ThisProcess;

/// This process's value, or a value that the process inherited from its parent. A child does not use an
/// inherited value, since a lock inside it may be held forever.
#[doc(hidden)]
#[derive(Debug)]
pub struct PerProcess<T: 'static>(AtomicPtr<Of<T>>);

#[derive(Debug)]
struct Of<T> {
    process: ThisProcess,
    value: T,
}

impl<T: Send + Sync> PerProcess<T> {
    /// Creates an empty holder. The first call to [`get`](Self::get) in each process creates the value.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Returns this process's value if it exists.
    pub fn present(&self) -> Option<&'static T> {
        // SAFETY: `self.0` is null, or points to a value that was leaked in `get`.
        #[allow(unsafe_code)]
        let newest = unsafe { self.0.load(Ordering::Acquire).as_ref() };
        newest.filter(|it| it.process.is_alive()).map(|it| &it.value)
    }

    /// Returns this process's value. If it does not exist yet, creates it by calling `new` with the parent's
    /// value, if there is one.
    pub fn get(&self, new: impl Fn(Option<&'static T>) -> T) -> &'static T {
        let mut newest = self.0.load(Ordering::Acquire);
        loop {
            // SAFETY: `self.0` is null, or points to a value that was leaked below.
            #[allow(unsafe_code)]
            let present = unsafe { newest.as_ref() };
            if let Some(own) = present.filter(|it| it.process.is_alive()) {
                return &own.value;
            }
            let made = Of { process: ThisProcess::now(), value: new(present.map(|it| &it.value)) };
            let made = ptr::from_ref(Box::leak(Box::new(made))).cast_mut();
            match self.0.compare_exchange(newest, made, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => newest = made,
                // Another thread created the value first. The value from this thread stays leaked.
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
