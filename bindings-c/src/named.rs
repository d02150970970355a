//! Options of what has a name in a store: counters and sequences.

use core::ffi::c_char;
use core::fmt;

use crate::status::{Failure, given_bytes};

/// A name, and the other options as they were set.
#[derive(Default)]
pub(crate) struct Named {
    name: String,
    /// Names and values, in the order in which they were set.
    others: Vec<(String, String)>,
}

/// Without the values: an address may hold a password.
impl fmt::Debug for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Named").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Named {
    /// Sets an option by name. `None` where the options are NULL.
    ///
    /// # Safety
    /// The name is NULL, or points to bytes that end with a NUL.
    pub(crate) unsafe fn set<'a>(
        options: Option<&mut Self>,
        name: *const c_char,
        value: impl FnOnce() -> Result<&'a [u8], Failure>,
    ) -> Result<(), Failure> {
        let options = options.ok_or(Failure::Misuse("options is NULL"))?;
        // SAFETY: as the caller promises.
        let name = unsafe { given_bytes(name, "name is NULL")? };
        let text =
            |bytes, what| core::str::from_utf8(bytes).map(String::from).map_err(|_| Failure::Misuse(what));
        let name = text(name, "the option's name is not UTF-8")?;
        let value = text(value()?, "the option's value is not UTF-8")?;
        if name == "name" {
            options.name = value;
        } else {
            options.others.push((name, value));
        }
        Ok(())
    }

    /// The core's options, from new ones of that name.
    pub(crate) fn build<T>(&self, new: impl FnOnce(&str) -> T, set: impl Fn(T, &str, &str) -> T) -> T {
        self.others.iter().fold(new(&self.name), |options, (name, value)| set(options, name, value))
    }
}
