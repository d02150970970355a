//! Leases: a Snowflake's lease, and the events of leases and counters.

use core::ffi::{c_char, c_int, c_void};

use polyflake::{LeaseInfo, LeaseState};

use crate::snowflake::{SNOWFLAKE, polyflake_snowflake, with};
use crate::status::{copy_text, given, guard, length_with, polyflake_detail, polyflake_status, write_sized};

/// The Snowflake has no lease; its node was set in the options.
pub const POLYFLAKE_LEASE_STATE_NONE: c_int = 0;
/// The Snowflake holds a node, and the store is answering.
pub const POLYFLAKE_LEASE_STATE_HELD: c_int = 1;
/// The Snowflake holds a node, but the store did not answer when it was last asked. IDs are issued up to the bound.
pub const POLYFLAKE_LEASE_STATE_UNREACHABLE: c_int = 2;
/// The lease has expired. No ID is issued until the store renews it or assigns another node.
pub const POLYFLAKE_LEASE_STATE_LOST: c_int = 3;
/// The Snowflake is closed.
pub const POLYFLAKE_LEASE_STATE_CLOSED: c_int = 4;

/// The size of the buffer for a store's address. Longer addresses are truncated.
pub const POLYFLAKE_STORE_SIZE: usize = 256;

/// A Snowflake's lease, filled in by polyflake_snowflake_lease.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_lease {
    /// sizeof(polyflake_lease), set by the caller.
    pub size: usize,
    /// The node that the Snowflake holds or last held, as the value of all node bits together, highest field first.
    pub node: u64,
    /// The time until which IDs may be issued without a reply from the store, in Unix ms; 0 if no node is held now.
    pub bound_ms: u64,
    /// The time left until bound_ms, in ms.
    pub left_ms: u64,
    /// One of the POLYFLAKE_LEASE_STATE_ numbers.
    pub state: c_int,
    /// The store's address without its password, NUL-terminated.
    pub store: [c_char; POLYFLAKE_STORE_SIZE],
}

/// Gets the lease of a Snowflake. Set lease->size first. Works on a closed Snowflake too. Without a lease, state is
/// POLYFLAKE_LEASE_STATE_NONE, and the other fields are 0. Reads the clock once.
///
/// Returns POLYFLAKE_CLOCK_FAILED if the custom clock fails, or POLYFLAKE_FORKED in a child process if there is no
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
        // No IDs are issued in a state added later either; otherwise, it would be one of the above.
        _ => POLYFLAKE_LEASE_STATE_LOST,
    }
}

/// Returns the permanent name of a lease state: "none", "held", "unreachable", "lost" or "closed"; "unknown" for any
/// other number. The string is static.
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

/// An event of a lease or a counter, for a log. Valid only until the listener returns.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_lease_event {
    /// sizeof(polyflake_lease_event), set by the library. It may be larger in a later version.
    pub size: usize,
    /// The kind: "acquired", "lost", "replaced" (another node was leased in place of a lost one), "released",
    /// "store_unreachable", "store_reachable", "clock_differs", "asynchronous_replicas", "lead_differs", "waiting" (for
    /// now, no process can lease a node: all are in use, or the store may have lost records), "init_always" (the
    /// address contains init=always, which is for development and tests), "writes_lost" (the store lost a counter's
    /// numbers or the bounds of sequences), "numbers_may_repeat" (the store lost its record of numbers this process had
    /// received, and handed them out again) or "counter_stopped" (the store hands out no numbers for a counter). Later
    /// versions may add kinds.
    pub kind: *const c_char,
    /// The store's address without its password.
    pub store: *const c_char,
    /// The whole event as a sentence, without secrets.
    pub message: *const c_char,
    /// The node, if has_node is 1.
    pub node: u64,
    /// 1 if the event is about a node, otherwise 0.
    pub has_node: c_int,
    /// 1 if someone should look into the event, otherwise 0.
    pub is_warning: c_int,
}

/// A function that receives the events of leases and counters. user is the pointer that was passed along with it. The
/// library calls it on the thread that renews the leases, so it must not block, call any function of this library,
/// throw, or longjmp out. Writing to stderr is fine.
pub type polyflake_lease_listener =
    Option<unsafe extern "C" fn(user: *mut c_void, event: *const polyflake_lease_event)>;

/// Sets the listener, a function that the library calls from now on with every event of this process's leases and
/// counters: a lease was acquired, lost or released, a store is not answering, a counter has stopped. There is only one
/// listener at a time: a new one replaces it, and NULL removes it. Once this function has returned, the library no
/// longer calls the previous listener.
///
/// Until the first call to this function or to polyflake_next_lease_event, warnings are written to stderr.
///
/// user must stay valid until the listener has been replaced or removed.
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

/// A queued event, filled in by polyflake_next_lease_event.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct polyflake_lease_record {
    /// sizeof(polyflake_lease_record), set by the caller.
    pub size: usize,
    /// The node, if has_node is 1.
    pub node: u64,
    /// 1 if the event is about a node, otherwise 0.
    pub has_node: c_int,
    /// 1 if someone should look into the event, otherwise 0.
    pub is_warning: c_int,
    /// The kind of event, NUL-terminated, as in polyflake_lease_event; empty if the queue was empty.
    pub kind: [c_char; 32],
    /// The store's address without its password, NUL-terminated.
    pub store: [c_char; POLYFLAKE_STORE_SIZE],
    /// The whole event as a sentence, without secrets, NUL-terminated.
    pub message: [c_char; 496],
}

/// Takes the oldest event from a queue, for languages whose functions cannot be called on another thread. Events are
/// queued from the first call on. The queue holds at most 100; while it is full, new events are dropped. Set
/// record->size first. If the queue is empty, so is kind.
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
        // SAFETY: as the header requires. This comes before the event is taken, because if the struct is too small,
        // the event must stay in the queue.
        unsafe { write_sized(record, first, &value)? };
        if events::next_into(&mut value) {
            // SAFETY: as above.
            unsafe { write_sized(record, first, &value)? };
        }
        Ok(())
    })
}

#[derive(Debug, Clone, Copy)]
struct Callback {
    call: unsafe extern "C" fn(*mut c_void, *const polyflake_lease_event),
    user: *mut c_void,
}

// SAFETY: the header says that the function and its user pointer are used on another thread.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

/// Passes events from the keeper on to the listener and the queue.
mod events {
    use std::collections::VecDeque;
    use std::ffi::CString;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use polyflake_coordination::{Event, PerProcess, Replaced, replace_listener};

    use super::{Callback, polyflake_lease_event, polyflake_lease_record};
    use crate::status::copy_text;

    /// The maximum number of queued events.
    const MOST_KEPT: usize = 100;

    /// The current callback. Each process has its own lock, so a fork cannot leave it locked in the child.
    static CALLBACK: PerProcess<Mutex<Option<Callback>>> = PerProcess::new();
    /// True once events are being queued.
    static IS_KEEPING: AtomicBool = AtomicBool::new(false);
    static KEPT: PerProcess<Mutex<VecDeque<Event>>> = PerProcess::new();

    fn lock<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn callback() -> MutexGuard<'static, Option<Callback>> {
        // The parent's callback, unless one of its threads was setting it during the fork.
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
                // A full queue means that nobody is reading it.
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
        // Once this function returns, the caller may free the old user pointer. Waits without holding the lock, which
        // is only ever held briefly.
        before.wait();
    }

    pub(super) fn next_into(record: &mut polyflake_lease_record) -> bool {
        if !IS_KEEPING.swap(true, Ordering::AcqRel) {
            // If there is a callback, its listener already checks whether events are being queued.
            let present = callback();
            if present.is_none() {
                // The previous listener had no user pointer, so there is no need to wait.
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
            // SAFETY: the pointers are those passed to polyflake_set_lease_listener, and the strings live until the
            // callback returns.
            unsafe { (self.call)(self.user, &raw const event) };
        }
    }

    /// No string should contain a NUL; if one does, it is truncated there.
    fn text(text: &str) -> CString {
        let end = text.find('\0').unwrap_or(text.len());
        CString::new(&text[..end]).unwrap_or_default()
    }
}
