//! Options: names and texts, parsed by the core.

use core::ffi::{c_char, c_int, c_void};

use polyflake::{Clock, ClockError, Number, Options};

use crate::layout::polyflake_layout;
use crate::status::{Failure, given, given_text, guard, polyflake_detail, polyflake_status};

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
/// max_backward_ms  how far the clock may step back and IDs still be issued; "1000"
/// max_ahead_ms     how far IDs may run ahead of the clock to serve a burst; "0"
/// max_wait_ms      the longest polyflake_next_id waits; a tick + 10
/// sequence_start   "spread" or "zero"
/// clock            "system" or "steady", in place of what polyflake_options_set_clock gave
/// state            the path, in UTF-8, of a file through which all processes of this host share the node
///
/// POLYFLAKE_INVALID_LAYOUT, POLYFLAKE_UNKNOWN_LAYOUT or POLYFLAKE_INVALID_OPTION leaves the options as they
/// were; a node is checked when the Snowflake is made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_set(
    options: *mut polyflake_options,
    name: *const c_char,
    value: *const c_char,
) -> polyflake_status {
    // SAFETY: as the header asks.
    unsafe { polyflake_options_set_detailed(options, name, value, core::ptr::null_mut()) }
}

/// polyflake_options_set, with what is wrong in detail (NULL for none).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_options_set_detailed(
    options: *mut polyflake_options,
    name: *const c_char,
    value: *const c_char,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let (options, name, value) = unsafe {
            (given_mut(options)?, given_text(name, "name is NULL")?, given_text(value, "value is NULL")?)
        };
        options.options.set(&name, &value)?;
        if name == "clock" {
            options.clock = None;
        }
        Ok(())
    })
}

/// Sets one field of the node, such as "worker" to "7": for callers that hold the fields apart. A whole node set
/// before goes; a field set twice is POLYFLAKE_INVALID_NODE. It is checked when the Snowflake is made; detail may
/// be NULL.
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

/// Sets the layout to one that is parsed already, which is copied; detail may be NULL.
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
/// of a state file.
/// user must stay valid as long as any Snowflake made from these options. A NULL clock goes back to the
/// built-in one; detail may be NULL.
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

/// Sets a state file's cursor back to the system clock, where it stands ahead of it: the way out when a clock that was
/// wrong has moved a cursor far into the future. Stop the processes that use the file first: those that go on are
/// refused with POLYFLAKE_STATE_FILE until they restart. The risk: IDs that were issued ahead of the clock are issued
/// again when the clock gets there. A file whose cursor is not ahead of the clock is left as it is.
///
/// POLYFLAKE_STATE_FILE, also where there is none; detail may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_reset_state(
    path: *const c_char,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header asks.
        let path = unsafe { given_text(path, "path is NULL")? };
        Ok(polyflake::reset_state(&*path)?)
    })
}

unsafe fn given_mut<'a>(options: *mut polyflake_options) -> Result<&'a mut polyflake_options, Failure> {
    // SAFETY: the caller gives NULL or options that no other thread uses.
    unsafe { options.as_mut() }.ok_or(Failure::Misuse("options is NULL"))
}
