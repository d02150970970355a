//! Options: names and texts, parsed by the core.

use core::ffi::{c_char, c_int, c_void};
use std::borrow::Cow;
use std::ffi::OsStr;

use polyflake::{Clock, ClockError, Number, Options, UnixTime};

use crate::layout::polyflake_layout;
use crate::status::{
    Failure, given, given_bytes, given_counted, given_text, guard, output, polyflake_detail, polyflake_status,
};

/// What a Snowflake is made from. One thread at a time may use it.
#[derive(Debug)]
pub struct polyflake_options {
    pub(crate) options: Options,
    pub(crate) clock: Option<CallersClock>,
}

/// A caller's clock: writes Unix ms to *unix_ms and returns 0, or returns anything else for
/// POLYFLAKE_CLOCK_FAILED. user is the pointer given with it. It may be called from any thread that uses the
/// Snowflake, from several at once, and must neither throw nor longjmp out.
pub type polyflake_clock = Option<unsafe extern "C" fn(user: *mut c_void, unix_ms: *mut i64) -> c_int>;

#[derive(Debug, Clone, Copy)]
pub(crate) struct CallersClock {
    read: unsafe extern "C" fn(*mut c_void, *mut i64) -> c_int,
    user: *mut c_void,
}

// SAFETY: the header asks for a clock that any thread may call with its user pointer, several at once.
unsafe impl Send for CallersClock {}
// SAFETY: as above.
unsafe impl Sync for CallersClock {}

impl Clock for CallersClock {
    #[inline]
    fn unix_ms(&self) -> Result<i64, ClockError> {
        let mut now = 0;
        // SAFETY: the pointers are those that polyflake_options_set_clock was given.
        match unsafe { (self.read)(self.user, &raw mut now) } {
            0 => Ok(now),
            _ => Err(ClockError::new("the caller's clock returned an error")),
        }
    }
}

/// New options, at their defaults; only the node has none. Free them with polyflake_options_free. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_options_new() -> *mut polyflake_options {
    Box::into_raw(Box::new(polyflake_options { options: Options::default(), clock: None }))
}

/// Frees options. Snowflakes made from them live on. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_free(options: *mut polyflake_options) {
    if !options.is_null() {
        // SAFETY: the caller gives back what polyflake_options_new gave, once.
        drop(unsafe { Box::from_raw(options) });
    }
}

/// Sets an option from its name and its value's text. Setting it again replaces its value.
///
/// layout           a preset's name or a layout's text; "twitter" by default
/// node             "7", or "datacenter=1,worker=7"; required unless the layout has no node field
/// max_backward_ms  how many ms the clock may step back and IDs still be issued; "1000" by default
/// max_ahead_ms     how many ms IDs may run ahead of the clock to serve a burst; "0" by default
/// max_wait_ms      the longest that polyflake_next_id waits, and a batch between two of its runs, in ms of real
///                  time; a tick + 1000 by default, "0" never waits
/// sequence_start   "spread" (the default) or "zero": the first sequence number of a fresh tick
/// clock            "system" (the default) or "steady", in place of what polyflake_options_set_clock gave
/// state            the path of a file through which all processes of this host share the node, in any bytes;
///                  none by default
///
/// Those in ms take 0 to 4294967295.
///
/// POLYFLAKE_INVALID_LAYOUT, POLYFLAKE_UNKNOWN_LAYOUT or POLYFLAKE_INVALID_OPTION leaves the options as they
/// were; a node is checked when the Snowflake is made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_set(
    options: *mut polyflake_options,
    name: *const c_char,
    value: *const c_char,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        unsafe { set(options, name, || given_bytes(value, "value is NULL")) }
    })
}

/// polyflake_options_set with a value of length bytes, for languages whose texts may hold a NUL: one in a value is
/// refused, and does not end it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_set_bytes(
    options: *mut polyflake_options,
    name: *const c_char,
    value: *const c_char,
    length: usize,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        unsafe { set(options, name, || given_counted(value, length, "value is NULL")) }
    })
}

/// # Safety
/// As the header asks of `polyflake_options_set`.
unsafe fn set<'a>(
    options: *mut polyflake_options,
    name: *const c_char,
    value: impl FnOnce() -> Result<&'a [u8], Failure>,
) -> Result<(), Failure> {
    // SAFETY: as the caller promises.
    let (options, name) = unsafe { (given_mut(options)?, given_text(name, "name is NULL")?) };
    options.options.set_os(&name, &os_text(value()?))?;
    if name == "clock" {
        options.clock = None;
    }
    Ok(())
}

/// Sets one field of the node, such as "worker" to "7", for callers that hold the fields apart: no text has to be
/// put together. A whole node set before goes. The node is checked when the Snowflake is made, and a field that was
/// set twice refused then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_set_node_field(
    options: *mut polyflake_options,
    field: *const c_char,
    value: *const c_char,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (options, field, value) = unsafe {
            (given_mut(options)?, given_text(field, "field is NULL")?, given_text(value, "value is NULL")?)
        };
        options.options = core::mem::take(&mut options.options).node_field(&field, Number::parse(&value));
        Ok(())
    })
}

/// Sets the layout to one that is parsed already, which is copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_set_layout(
    options: *mut polyflake_options,
    layout: *const polyflake_layout,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (options, layout) = unsafe { (given_mut(options)?, given(layout, "layout is NULL")?) };
        options.options = core::mem::take(&mut options.options).layout(layout.0);
        Ok(())
    })
}

/// Gives the Snowflake the caller's own clock, in place of a built-in one; it then has a cursor of its own, or that
/// of a state file. user must stay valid as long as any Snowflake made from these options. A NULL clock goes back to
/// the built-in one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_set_clock(
    options: *mut polyflake_options,
    clock: polyflake_clock,
    user: *mut c_void,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        unsafe { given_mut(options)? }.clock = clock.map(|read| CallersClock { read, user });
        Ok(())
    })
}

/// The ID of an instant (Unix ms, rounded down to its tick) and a sequence number by the layout and the node of these
/// options; their other options do not count. For moving rows into an ID space, and for tests: nothing keeps it from
/// repeating an ID that was issued.
///
/// POLYFLAKE_TIME_OUT_OF_RANGE, POLYFLAKE_INVALID_NODE, or POLYFLAKE_INVALID_OPTION for a sequence number that the
/// layout has no room for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_compose(
    options: *const polyflake_options,
    unix_ms: i64,
    sequence: u64,
    id: *mut u64,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (options, id) = unsafe { (given(options, "options is NULL")?, output(id, "id is NULL")?) };
        id.write(options.options.compose(UnixTime::from_ms(unix_ms), sequence)?);
        Ok(())
    })
}

/// Sets a state file's cursor back to the system clock, where it stands ahead of it: the way out when a clock that was
/// wrong has moved a cursor far into the future. Stop the processes that use the file first: those that go on are
/// refused with POLYFLAKE_STATE_FILE until they restart. The risk: IDs that were issued ahead of the clock are issued
/// again when the clock gets there. A file whose cursor is not ahead of the clock is left as it is.
///
/// path has length bytes, which need not be UTF-8. POLYFLAKE_STATE_FILE, also where there is no such file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_reset_state(
    path: *const c_char,
    length: usize,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let path = unsafe { given_counted(path, length, "path is NULL")? };
        Ok(polyflake::reset_state(&*os_text(path))?)
    })
}

/// The path of a state file, or what any other option's value is read from.
#[cfg(unix)]
fn os_text(bytes: &[u8]) -> Cow<'_, OsStr> {
    Cow::Borrowed(std::os::unix::ffi::OsStrExt::from_bytes(bytes))
}

/// There are no state files here, and so no paths that are not UTF-8.
#[cfg(not(unix))]
fn os_text(bytes: &[u8]) -> Cow<'_, OsStr> {
    Cow::Owned(String::from_utf8_lossy(bytes).into_owned().into())
}

unsafe fn given_mut<'a>(options: *mut polyflake_options) -> Result<&'a mut polyflake_options, Failure> {
    // SAFETY: the caller gives NULL or options that no other thread uses.
    unsafe { options.as_mut() }.ok_or(Failure::Misuse("options is NULL"))
}
