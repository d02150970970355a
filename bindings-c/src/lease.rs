//! Leases: what a Snowflake has, and what happens to them.

use core::ffi::{c_char, c_int, c_void};

use polyflake::{LeaseInfo, LeaseState};

use crate::snowflake::{SNOWFLAKE, polyflake_snowflake, with};
use crate::status::{copy_text, given, guard, length_with, polyflake_detail, polyflake_status, write_sized};

/// The Snowflake has no lease: its node is given.
pub const POLYFLAKE_LEASE_STATE_NONE: c_int = 0;
/// It has a node, and the store answers.
pub const POLYFLAKE_LEASE_STATE_HELD: c_int = 1;
/// It has a node, and the store did not answer when it was last asked. Issuing goes on up to the bound.
pub const POLYFLAKE_LEASE_STATE_UNREACHABLE: c_int = 2;
/// It has expired: no ID is issued until the store has renewed it or has given another node.
pub const POLYFLAKE_LEASE_STATE_LOST: c_int = 3;
/// The Snowflake is closed.
pub const POLYFLAKE_LEASE_STATE_CLOSED: c_int = 4;

/// The room for a store's address. A longer one is cut.
pub const POLYFLAKE_STORE_SIZE: usize = 256;

/// A Snowflake's lease, filled in by polyflake_snowflake_lease.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_lease {
    /// sizeof(polyflake_lease), set by the caller.
    pub size: usize,
    /// The node that it has, or had last: all node bits together, the highest field first.
    pub node: u64,
    /// Until when it may issue without hearing from the store, in Unix ms; 0 if it has no node now.
    pub bound_ms: u64,
    /// How many ms that is from now.
    pub left_ms: u64,
    /// POLYFLAKE_LEASE_STATE_NONE or another of these numbers.
    pub state: c_int,
    /// The store's address, without password, NUL-terminated.
    pub store: [c_char; POLYFLAKE_STORE_SIZE],
}

/// Gets the lease of a Snowflake. Set lease->size first. Works on a closed Snowflake too. Without a lease, state is
/// POLYFLAKE_LEASE_STATE_NONE and the rest 0. Reads the clock once.
///
/// Returns POLYFLAKE_CLOCK_FAILED if the caller's clock fails, or POLYFLAKE_FORKED in a child process if there is no
/// state file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_snowflake_lease(
    snowflake: *const polyflake_snowflake,
    lease: *mut polyflake_lease,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        // SAFETY: as the header requires.
        let snowflake = unsafe { given(snowflake, SNOWFLAKE)? };
        let mut value = polyflake_lease {
            size: 0,
            node: 0,
            bound_ms: 0,
            left_ms: 0,
            state: POLYFLAKE_LEASE_STATE_NONE,
            store: [0; POLYFLAKE_STORE_SIZE],
        };
        if let Some(LeaseInfo { node, bound_ms, left_ms, store, state, .. }) =
            with!(snowflake, ids => ids.lease())?
        {
            value = polyflake_lease { node, bound_ms, left_ms, state: number_of(state), ..value };
            copy_text(&store, &mut value.store);
        }
        // SAFETY: as the header requires.
        unsafe {
            write_sized(lease, length_with!(polyflake_lease, store: [c_char; POLYFLAKE_STORE_SIZE]), &value)
        }
    })
}

const fn number_of(state: LeaseState) -> c_int {
    match state {
        LeaseState::Held => POLYFLAKE_LEASE_STATE_HELD,
        LeaseState::Unreachable => POLYFLAKE_LEASE_STATE_UNREACHABLE,
        LeaseState::Closed => POLYFLAKE_LEASE_STATE_CLOSED,
        // A state that is added later has no ID either, or it would be one of the above.
        _ => POLYFLAKE_LEASE_STATE_LOST,
    }
}

/// Returns the permanent name of a lease's state: "none", "held", "unreachable", "lost" or "closed"; "unknown" for any
/// other number. A static string.
#[unsafe(no_mangle)]
pub extern "C" fn polyflake_lease_state_name(state: c_int) -> *const c_char {
    let name = match state {
        POLYFLAKE_LEASE_STATE_NONE => c"none",
        POLYFLAKE_LEASE_STATE_HELD => c"held",
        POLYFLAKE_LEASE_STATE_UNREACHABLE => c"unreachable",
        POLYFLAKE_LEASE_STATE_LOST => c"lost",
        POLYFLAKE_LEASE_STATE_CLOSED => c"closed",
        _ => c"unknown",
    };
    name.as_ptr()
}

/// What happened to a lease or a counter, for a log. Valid only during the call of the listener.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_lease_event {
    /// sizeof(polyflake_lease_event), set by the library: a later one may be larger.
    pub size: usize,
    /// What: "acquired", "lost", "replaced" (another node came for one that was lost), "released", "store_unreachable",
    /// "store_reachable", "clock_differs", "asynchronous_replicas", "lead_differs", "waiting" (nobody can have a node for a
    /// while: all are in use, or the store may have lost records), "init_always" (the address has init=always, which is for
    /// development and tests), "writes_lost" (it has), "numbers_may_repeat" (those of a counter that
    /// this process gave) or "counter_stopped" (the store gives no numbers of a counter). Later versions may have more.
    pub kind: *const c_char,
    /// The store's address, without password.
    pub store: *const c_char,
    /// All of it as a sentence, without secrets.
    pub message: *const c_char,
    /// The node, if has_node is 1.
    pub node: u64,
    /// Whether it is about a node.
    pub has_node: c_int,
    /// Whether somebody should look at it.
    pub is_warning: c_int,
}

/// A function that is told what happens to leases. user is the pointer that was given with it. It is called on the
/// library's own thread, which renews the leases: it must not block, call any function of this library, throw or
/// longjmp out. A write to stderr is fine.
pub type polyflake_lease_listener =
    Option<unsafe extern "C" fn(user: *mut c_void, event: *const polyflake_lease_event)>;

/// Calls a function with everything that happens to the leases and counters of this process from now on: a lease was
/// acquired, lost or given back, a store does not answer, a counter has stopped. There is one listener at a time: another
/// one replaces it, and NULL ends it. Once this has returned, the one before is not called any more.
///
/// Until the first call of this function or of polyflake_next_lease_event, warnings are written to stderr.
///
/// user must stay valid until then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_set_lease_listener(
    listener: polyflake_lease_listener,
    user: *mut c_void,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        events::set_callback(listener.map(|call| Callback { call, user }));
        Ok(())
    })
}

/// An event that was kept, filled in by polyflake_next_lease_event.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_lease_record {
    /// sizeof(polyflake_lease_record), set by the caller.
    pub size: usize,
    /// The node, if has_node is 1.
    pub node: u64,
    /// Whether it is about a node.
    pub has_node: c_int,
    /// Whether somebody should look at it.
    pub is_warning: c_int,
    /// What happened, as in polyflake_lease_event, NUL-terminated. Empty if there is no event.
    pub kind: [c_char; 32],
    /// The store's address, without password, NUL-terminated.
    pub store: [c_char; POLYFLAKE_STORE_SIZE],
    /// All of it as a sentence, without secrets, NUL-terminated.
    pub message: [c_char; 496],
}

/// Takes the oldest event that was kept, for languages whose functions cannot be called on another thread. The first
/// call begins to keep events: at most 100, and what happens while there are as many is not kept. Set record->size
/// first. kind is empty if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn polyflake_next_lease_event(
    record: *mut polyflake_lease_record,
    detail: *mut polyflake_detail,
) -> polyflake_status {
    guard(detail, || {
        let mut value = polyflake_lease_record {
            size: 0,
            node: 0,
            has_node: 0,
            is_warning: 0,
            kind: [0; 32],
            store: [0; POLYFLAKE_STORE_SIZE],
            message: [0; 496],
        };
        let first = length_with!(polyflake_lease_record, message: [c_char; 496]);
        // SAFETY: as the header requires. Before an event is taken, since it is lost if there is no room for it.
        unsafe { write_sized(record, first, &value)? };
        if events::next_into(&mut value) {
            // SAFETY: as above.
            unsafe { write_sized(record, first, &value)? };
        }
        Ok(())
    })
}

#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(feature = "coordination"), expect(dead_code, reason = "nothing calls it without leases"))]
struct Callback {
    call: unsafe extern "C" fn(*mut c_void, *const polyflake_lease_event),
    user: *mut c_void,
}

// SAFETY: the header says that the function is called on another thread with its user pointer.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

/// How events come from the keeper.
#[cfg(feature = "coordination")]
mod events {
    use std::collections::VecDeque;
    use std::ffi::CString;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use polyflake_coordination::{Event, PerProcess, Replaced, replace_listener};

    use super::{Callback, polyflake_lease_event, polyflake_lease_record};
    use crate::status::copy_text;

    /// How many events are kept.
    const MOST_KEPT: usize = 100;

    /// The present callback. Each process has its own lock, which a fork cannot leave locked in the child.
    static CALLBACK: PerProcess<Mutex<Option<Callback>>> = PerProcess::new();
    /// Whether events are kept, and those that are.
    static IS_KEEPING: AtomicBool = AtomicBool::new(false);
    static KEPT: PerProcess<Mutex<VecDeque<Event>>> = PerProcess::new();

    fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn callback() -> MutexGuard<'static, Option<Callback>> {
        // The parent's, if no thread of it was just setting one.
        let inherited =
            |parents: &'static Mutex<Option<Callback>>| parents.try_lock().ok().and_then(|it| *it);
        lock(CALLBACK.get(|parents| Mutex::new(parents.and_then(inherited))))
    }

    fn kept() -> MutexGuard<'static, VecDeque<Event>> {
        lock(KEPT.get(|_| Mutex::default()))
    }

    fn listen(callback: Option<Callback>) -> Replaced {
        if callback.is_none() && !IS_KEEPING.load(Ordering::Acquire) {
            return replace_listener(None);
        }
        replace_listener(Some(Box::new(move |event| {
            if let Some(callback) = &callback {
                callback.tell(event);
            }
            if IS_KEEPING.load(Ordering::Acquire) {
                let mut kept = kept();
                // Otherwise the reader has gone away.
                if kept.len() < MOST_KEPT {
                    kept.push_back(event.clone());
                }
            }
        })))
    }

    pub(super) fn set_callback(new: Option<Callback>) {
        let mut present = callback();
        *present = new;
        let before = listen(new);
        drop(present);
        // Its user pointer may be freed then. Without the lock, which nobody holds for longer than an instant.
        before.wait();
    }

    pub(super) fn next_into(record: &mut polyflake_lease_record) -> bool {
        if !IS_KEEPING.swap(true, Ordering::AcqRel) {
            // A callback's listener looks itself whether events are kept.
            let present = callback();
            if present.is_none() {
                // The one before had no user pointer.
                drop(listen(None));
            }
            return false;
        }
        let Some(event) = kept().pop_front() else { return false };
        record.node = event.node.unwrap_or(0);
        record.has_node = event.node.is_some().into();
        record.is_warning = event.kind.is_warning().into();
        copy_text(event.kind.name(), &mut record.kind);
        copy_text(&event.store, &mut record.store);
        copy_text(&event.message, &mut record.message);
        true
    }

    impl Callback {
        fn tell(&self, event: &Event) {
            let [kind, store, message] = [event.kind.name(), &event.store, &event.message].map(text);
            let event = polyflake_lease_event {
                size: size_of::<polyflake_lease_event>(),
                kind: kind.as_ptr(),
                store: store.as_ptr(),
                message: message.as_ptr(),
                node: event.node.unwrap_or(0),
                has_node: event.node.is_some().into(),
                is_warning: event.kind.is_warning().into(),
            };
            // SAFETY: the pointers are those passed to polyflake_set_lease_listener, and the texts live until it returns.
            unsafe { (self.call)(self.user, &raw const event) };
        }
    }

    /// No text has a NUL, and one that had would be cut there.
    fn text(text: &str) -> CString {
        let end = text.find('\0').unwrap_or(text.len());
        CString::new(&text[..end]).unwrap_or_default()
    }
}

/// Without leases nothing happens to them.
#[cfg(not(feature = "coordination"))]
mod events {
    pub(super) const fn set_callback(_: Option<super::Callback>) {}

    pub(super) const fn next_into(_: &mut super::polyflake_lease_record) -> bool {
        false
    }
}
