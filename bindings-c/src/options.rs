//! Options of Snowflakes, counters and sequences, set by name to string values, which the core parses.

use core::ffi::{c_char, c_int, c_void};
use core::fmt;
use std::borrow::Cow;
use std::ffi::OsStr;

use polyflake::{Clock, ClockError, Number, Options, UnixTime};

use crate::layout::polyflake_layout;
use crate::status::{
    Failure, given, given_bytes, given_counted, given_text, guard, output, polyflake_detail, polyflake_status,
};

/// The options of a Snowflake, a counter or sequences. Only one thread may use them at a time.
#[derive(Default)]
pub struct polyflake_options {
    options: Options,
    clock: Option<CallersClock>,
    /// Everything set so far, in order. Counters and sequences check it when they are opened.
    set: Vec<(String, String)>,
}

/// Omits the values, because an address may contain a password.
impl fmt::Debug for polyflake_options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("polyflake_options").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl polyflake_options {
    fn set(&mut self, name: &str, value: &[u8]) -> Result<(), Failure> {
        if Options::has(name) {
            self.options.set_os(name, &os_text(value))?;
            if name == "clock" {
                self.clock = None;
            }
            self.was_set(name, String::from_utf8_lossy(value).into_owned());
            return Ok(());
        }
        let value =
            core::str::from_utf8(value).map_err(|_| Failure::Misuse("the option's value is not UTF-8"))?;
        self.was_set(name, value.into());
        Ok(())
    }

    fn was_set(&mut self, name: &str, value: String) {
        self.set.push((name.into(), value));
    }

    /// The options of a Snowflake, and its clock.
    pub(crate) fn snowflake(&self) -> Result<(&Options, Option<CallersClock>), Failure> {
        if let Some((name, value)) = self.set.iter().find(|(name, _)| !Options::has(name)) {
            // This error lists the options that exist.
            Options::default().set(name, value)?;
        }
        Ok((&self.options, self.clock))
    }

    /// The options of a counter or of sequences: `new` takes the name, and `set` adds each of the others.
    pub(crate) fn named<T>(&self, new: impl FnOnce(&str) -> T, set: impl Fn(T, &str, &str) -> T) -> T {
        let name = self.set.iter().rfind(|(name, _)| name == "name").map_or("", |(_, value)| value);
        let others = self.set.iter().filter(|(name, _)| name != "name");
        others.fold(new(name), |options, (name, value)| set(options, name, value))
    }
}

/// A custom clock, which writes Unix ms to *unix_ms and returns 0. Any other return value makes the call fail with
/// POLYFLAKE_CLOCK_FAILED. user is the pointer that was passed along with the clock. Any thread that uses the Snowflake
/// may call the clock, and several may call it at once. It must not throw or longjmp out.
pub type polyflake_clock = Option<unsafe extern "C" fn(user: *mut c_void, unix_ms: *mut i64) -> c_int>;

#[derive(Debug, Clone, Copy)]
pub(crate) struct CallersClock {
    read: unsafe extern "C" fn(*mut c_void, *mut i64) -> c_int,
    user: *mut c_void,
}

// SAFETY: the header requires that several threads may call the clock at once, with its user pointer.
unsafe impl Send for CallersClock {}
// SAFETY: as above.
unsafe impl Sync for CallersClock {}

impl Clock for CallersClock {
    #[inline]
    fn unix_ms(&self) -> Result<i64, ClockError> {
        let mut now = 0;
        // SAFETY: the pointers are those passed to polyflake_options_set_clock.
        match unsafe { (self.read)(self.user, &raw mut now) } {
            0 => Ok(now),
            _ => Err(ClockError::new("the caller's clock returned an error")),
        }
    }
}

/// Returns new options with their default values, never NULL. A Snowflake's node and the name and store of a counter or
/// sequences have no default. Free the options with polyflake_options_free.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_options_new() -> *mut polyflake_options {
    Box::into_raw(Box::default())
}

/// Frees options. Snowflakes, counters and sequences created from them are not affected. Does nothing for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_free(options: *mut polyflake_options) {
    if !options.is_null() {
        // SAFETY: the pointer came from polyflake_options_new and is freed only once.
        drop(unsafe { Box::from_raw(options) });
    }
}

/// Sets an option by name to a string value. A later value replaces an earlier one, except for a counter's stores.
///
/// Options of a Snowflake:
///
/// layout           the name of a preset or a layout as text; "twitter" by default
/// node             "7", or "datacenter=1,worker=7"; required unless the layout has no node field
/// max_backward_ms  how far, in ms, the clock may step back while IDs are still issued; "1000" by default
/// max_ahead_ms     how far, in ms, IDs may run ahead of the clock to serve a burst; "0" by default
/// max_wait_ms      the longest that polyflake_next_id waits, and that a batch waits between two runs of IDs, in ms of
///                  real time; a tick + 1000 by default. With "0", calls never wait
/// sequence_start   the first sequence number of a fresh tick: "spread" (the default) or "zero"
/// clock            "system" (the default) or "steady"; replaces a clock set by polyflake_options_set_clock
/// state            the path of a file through which all processes on this host share the node; none by default. It may
///                  consist of any bytes
/// lease            the address of a store from which the node is leased, such as "redis://host/0"; none by default.
///                  With a lease, node is optional, and narrows the choice if it is set
///
/// The values in ms range from 0 to 4294967295.
///
/// Options of a counter:
///
/// name             the counter's name in the store: 1 to 100 characters; required
/// store            the address of a store, such as "redis://host/0"; required. Each call adds a store. Several stores
///                  divide up the numbers, and calls go to each store in turn, so numbers are unique but not ordered.
///                  Every process must name the stores in the same order
/// start            the first number, if the store does not have the counter yet: 1 to 2^63-1; "1" by default
/// step             how many numbers a segment has: 1 to 1000000000, or "auto" (the default), which starts at 100 and
///                  grows, to at most 1000000, until a segment lasts ten minutes. With "1", the store is asked for each
///                  number, and numbers increase across all processes
/// max_wait_ms      the longest that a call waits for the store, in ms: 0 to 4294967295; "10000" by default
///
/// Options of sequences:
///
/// name             the sequences' name in the store: 1 to 100 characters; required
/// store            the address of a store, such as "postgres://host/chat?label=10.0.0.7:8080"; required, and only one
///                  is allowed. While this process holds the lease, other processes are shown the label
/// sections         how many bounds the store keeps: 1 to 16384; "1024" by default. Keys are spread across them.
///                  The number cannot be changed later
/// step             the size of a step: 1 to 1000000000 numbers; "10000" by default. A bound is moved to two steps
///                  above its section's highest number
/// max_keys         how many keys stay in memory, at no more than 40 bytes each: 1 to 1000000000; "1000000" by default
/// max_wait_ms      the longest that a call waits for the store, in ms: 0 to 4294967295; "10000" by default
///
/// Returns POLYFLAKE_INVALID_LAYOUT, POLYFLAKE_UNKNOWN_LAYOUT or POLYFLAKE_INVALID_OPTION for an invalid value of a
/// Snowflake's option, and then leaves the options unchanged. The node, the other options of counters and sequences,
/// and unknown names are checked only when the Snowflake, the counter or the sequences are created.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_set(
    options: *mut polyflake_options,
    name: *const c_char,
    value: *const c_char,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        unsafe { set(options, name, || given_bytes(value, "value is NULL")) }
    })
}

/// Like polyflake_options_set, but takes a value of length bytes, for languages whose strings may contain a NUL. A NUL
/// does not terminate the value, but makes it invalid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_set_bytes(
    options: *mut polyflake_options,
    name: *const c_char,
    value: *const c_char,
    length: usize,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        unsafe { set(options, name, || given_counted(value, length, "value is NULL")) }
    })
}

/// # Safety
/// As the header requires of `polyflake_options_set`.
unsafe fn set<'a>(
    options: *mut polyflake_options,
    name: *const c_char,
    value: impl FnOnce() -> Result<&'a [u8], Failure>,
) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    let (options, name) = unsafe { (given_mut(options)?, given_text(name, "name is NULL")?) };
    options.set(&name, value()?)
}

/// Sets one field of the node, such as "worker" to "7", so that callers need not build a string. Discards any node that
/// was set earlier as a whole. The node is checked when the Snowflake is created, which fails if a field was set twice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_set_node_field(
    options: *mut polyflake_options,
    field: *const c_char,
    value: *const c_char,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (options, field, value) = unsafe {
            (given_mut(options)?, given_text(field, "field is NULL")?, given_text(value, "value is NULL")?)
        };
        options.options = core::mem::take(&mut options.options).node_field(&field, Number::parse(&value));
        options.was_set("node", value.into_owned());
        Ok(())
    })
}

/// Sets the layout to a copy of a parsed layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_set_layout(
    options: *mut polyflake_options,
    layout: *const polyflake_layout,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (options, layout) = unsafe { (given_mut(options)?, given(layout, "layout is NULL")?) };
        options.options = core::mem::take(&mut options.options).layout(layout.0);
        options.was_set("layout", String::new());
        Ok(())
    })
}

/// Sets a custom clock in place of the built-in one. The Snowflake then shares no cursor with others, except through a
/// state file. user must stay valid as long as any Snowflake created from these options exists. A NULL clock restores
/// the built-in one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_set_clock(
    options: *mut polyflake_options,
    clock: polyflake_clock,
    user: *mut c_void,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let options = unsafe { given_mut(options)? };
        options.clock = clock.map(|read| CallersClock { read, user });
        options.was_set("clock", String::new());
        Ok(())
    })
}

/// Composes an ID from an instant (Unix ms, rounded down to its tick), a sequence number, and the layout and node of
/// these options. A Snowflake's other options are ignored. Use this to migrate rows and in tests: nothing prevents it
/// from repeating an ID that was already issued.
///
/// Returns POLYFLAKE_TIME_OUT_OF_RANGE for an instant outside the layout's range, POLYFLAKE_INVALID_NODE for a missing
/// or invalid node, or POLYFLAKE_INVALID_OPTION for a sequence number that does not fit the layout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_compose(
    options: *const polyflake_options,
    unix_ms: i64,
    sequence: u64,
    id: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let (options, id) = unsafe { (given(options, "options is NULL")?, output(id, "id is NULL")?) };
        id.write(options.snowflake()?.0.compose(UnixTime::from_ms(unix_ms), sequence)?);
        Ok(())
    })
}

/// Sets the cursor of a state file back to the system clock. Use it when a wrong clock has moved the cursor far into
/// the future. First stop the processes that use the file: in any process that is still running, calls fail with
/// POLYFLAKE_STATE_FILE until it restarts. The risk is that IDs issued ahead of the clock are issued again once the
/// clock catches up. A file whose cursor is not ahead of the clock is left unchanged.
///
/// path has length bytes, which need not be UTF-8.
///
/// Returns POLYFLAKE_STATE_FILE if the file does not exist or cannot be used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_reset_state(
    path: *const c_char,
    length: usize,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let path = unsafe { given_counted(path, length, "path is NULL")? };
        Ok(polyflake::reset_state(&*os_text(path))?)
    })
}

/// Converts a path or another option's value, which need not be UTF-8.
#[cfg(unix)]
fn os_text(bytes: &[u8]) -> Cow<'_, OsStr> {
    Cow::Borrowed(std::os::unix::ffi::OsStrExt::from_bytes(bytes))
}

/// Only a state file's path may contain bytes that are not UTF-8, and this platform has no state files.
#[cfg(not(unix))]
fn os_text(bytes: &[u8]) -> Cow<'_, OsStr> {
    Cow::Owned(String::from_utf8_lossy(bytes).into_owned().into())
}

unsafe fn given_mut<'a>(options: *mut polyflake_options) -> Result<&'a mut polyflake_options, Failure> {
    // SAFETY: the pointer is NULL, or points to options that no other thread uses.
    unsafe { options.as_mut() }.ok_or(Failure::Misuse("options is NULL"))
}
