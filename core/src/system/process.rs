//! Distinguishes this process from the children that it forks, without a system call per ID.
//!
//! A word tells whether the process is alive. In a child, it reads 0: the kernel wipes its page, no matter
//! how the child was created. If the kernel does not support this, a `fork` handler stores the 0. Anything
//! created in the parent therefore fails in the child, and the parent's memory is left untouched.

use core::ptr;
use core::sync::atomic::AtomicPtr;

use portable_atomic::{AtomicU64, Ordering};
use std::boxed::Box;
use std::sync::{Mutex, PoisonError};

use super::queue::{Queue, Turn};
use crate::layout::ones;

/// A process, or the state that a child has inherited from its parent.
#[derive(Debug)]
pub(crate) struct Process {
    /// The last slot of a layout, indexed by the width of its slots, and 0 in every child. These are the
    /// limits for slots that only the process that created this value may issue.
    limits: &'static Limits,
    /// True if the kernel wipes the limits in children.
    is_wiped: bool,
    /// The number of words in use on the last page.
    handed_out: Mutex<usize>,
    queue: Queue,
}

/// A page of words that read 0 in every child.
#[derive(Debug)]
struct Limits {
    /// The words for slot widths, followed by those for leased nodes.
    words: [AtomicU64; Self::LEN],
    /// Another page of words, for a process that has leased hundreds of nodes.
    more: AtomicPtr<Limits>,
}

impl Limits {
    /// As many as fit on a page along with the pointer.
    const LEN: usize = 511;
    const BY_BITS: usize = 65;
    const fn new() -> Self {
        Self { words: [const { AtomicU64::new(0) }; Self::LEN], more: AtomicPtr::new(ptr::null_mut()) }
    }

    fn by_bits(&self, slot_bits: u32) -> &AtomicU64 {
        let [first, ..] = &self.words;
        self.words.get(slot_bits.min(64) as usize).unwrap_or(first)
    }

    fn more(&self) -> Option<&'static Self> {
        // SAFETY: only values that live as long as the process are ever stored there.
        #[allow(unsafe_code)]
        unsafe {
            self.more.load(Ordering::Acquire).as_ref()
        }
    }
}

/// The newest process, which is this one or an ancestor. There is no lock, so it is consistent no matter when
/// a fork happens.
static CURRENT: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());

impl Process {
    /// Returns this process. Its children are detected from now on.
    pub(crate) fn current() -> &'static Self {
        notice_forks();
        let mut newest = CURRENT.load(Ordering::Acquire);
        loop {
            // SAFETY: only values that were leaked below are ever stored there.
            #[allow(unsafe_code)]
            if let Some(process) = unsafe { newest.as_ref() }.filter(|process| process.is_alive()) {
                return process;
            }
            let is_child = !newest.is_null();
            if is_child {
                after_fork();
            }
            let (limits, is_wiped) = limits(is_child);
            let handed_out = Mutex::new(Limits::BY_BITS);
            let queue = Queue::new(limits.by_bits(64));
            let made = Self { limits, is_wiped, handed_out, queue };
            let made = Box::into_raw(Box::new(made));
            match CURRENT.compare_exchange(newest, made, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => newest = made,
                Err(other) => {
                    // SAFETY: the exchange failed, so only this function knows about it. (Its page stays
                    // mapped.)
                    #[allow(unsafe_code)]
                    drop(unsafe { Box::from_raw(made) });
                    newest = other;
                }
            }
        }
    }

    /// Returns true if this is still the process that created the value.
    pub(crate) fn is_alive(&self) -> bool {
        self.limit(64).load(Ordering::Acquire) != 0
    }

    /// Adds a call that wants `wanted` slots to this process's calls waiting for the same `key`.
    pub(crate) fn wait_for(&'static self, key: (usize, usize), wanted: u64) -> Turn {
        Turn::join(&self.queue, key, wanted)
    }

    /// Does the same for a call that must be polled because it has no thread to block.
    pub(crate) fn poll_for(&'static self, key: (usize, usize), wanted: u64) -> Turn {
        Turn::join_polled(&self.queue, key, wanted)
    }

    /// Returns the limit for layouts whose slots have `slot_bits` bits, if only this process issues them:
    /// their last slot. In child processes, it allows no slots.
    pub(crate) fn limit(&self, slot_bits: u32) -> &'static AtomicU64 {
        self.limits.by_bits(slot_bits)
    }

    /// Returns a word for a leased node. It is 0 until the limit is stored there, and 0 in every child.
    /// `None` if memory is exhausted.
    pub(crate) fn new_limit(&self) -> Option<&'static AtomicU64> {
        let mut handed_out = self.handed_out.lock().unwrap_or_else(PoisonError::into_inner);
        let mut page = self.limits;
        while let Some(more) = page.more() {
            page = more;
        }
        if let Some(word) = page.words.get(*handed_out) {
            *handed_out += 1;
            return Some(word);
        }
        // If the kernel wipes pages, it also wipes the pointer to this page, so a handler would not find the
        // page.
        let unwiped = || (!self.is_wiped).then(|| &*Box::leak(Box::new(Limits::new())));
        let more = wiped_words().or_else(unwiped)?;
        page.more.store(ptr::from_ref(more).cast_mut(), Ordering::Release);
        *handed_out = 1;
        more.words.first()
    }
}

/// Called in a child before it starts threads, when no other thread is reading the clock.
fn after_fork() {
    super::time::KEPT.after_fork();
    super::counter::after_fork();
}

/// Returns words that hold the last slots (0 in every child), and whether the kernel wipes them.
fn limits(is_child: bool) -> (&'static Limits, bool) {
    static OF_FIRST: Limits = Limits::new();
    let wiped = wiped_words();
    // If a fork handler stores the 0, a child needs a different word, because its parent's word must stay 0.
    let words =
        wiped.unwrap_or_else(|| if is_child { Box::leak(Box::new(Limits::new())) } else { &OF_FIRST });
    for (bits, word) in (0..).zip(words.words.iter().take(Limits::BY_BITS)) {
        word.store(ones(bits), Ordering::Release);
    }
    (words, wiped.is_some())
}

/// Returns words in a page that the kernel wipes in children, even in those created by `_Fork` or a bare
/// `clone`, which run no handlers. `None` if the kernel cannot do this (Linux has been able to since 4.14).
#[cfg(all(any(target_os = "linux", target_os = "android"), target_has_atomic = "64", not(miri)))]
fn wiped_words() -> Option<&'static Limits> {
    let page = memmap2::MmapOptions::new().len(size_of::<Limits>()).map_anon().ok()?;
    let page = core::mem::ManuallyDrop::new(memmap2::MmapRaw::from(page));
    // SAFETY: the page was just mapped for this purpose, and is never unmapped. The words and the pointer
    // start as zeros.
    #[allow(unsafe_code, clippy::cast_ptr_alignment)]
    unsafe {
        let wiped = libc::madvise(page.as_mut_ptr().cast(), page.len(), libc::MADV_WIPEONFORK);
        (wiped == 0).then(|| &*page.as_mut_ptr().cast::<Limits>())
    }
}

#[cfg(not(all(any(target_os = "linux", target_os = "android"), target_has_atomic = "64", not(miri))))]
fn wiped_words() -> Option<&'static Limits> {
    None
}

#[cfg(unix)]
fn notice_forks() {
    use core::sync::atomic::AtomicBool;

    static NOTICED: AtomicBool = AtomicBool::new(false);

    // This stores only to atomics, in the child's copy of the memory.
    extern "C" fn in_child() {
        // SAFETY: as in `Process::current`.
        #[allow(unsafe_code)]
        if let Some(parent) = unsafe { CURRENT.load(Ordering::Acquire).as_ref() } {
            let pages = core::iter::successors(Some(parent.limits), |page| page.more());
            pages.flat_map(|page| &page.words).for_each(|word| word.store(0, Ordering::Release));
        }
        after_fork();
    }

    // Miri has no `fork`.
    if !NOTICED.load(Ordering::Acquire) && !cfg!(miri) {
        // Two threads may get here at the same time. A handler that runs twice is harmless, but a Snowflake
        // without a handler would not be. SAFETY: the handler is async-signal-safe and is never unloaded: the
        // shared library of the C ABI is linked accordingly, and Python unloads no extension module.
        #[allow(unsafe_code)]
        let refused = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        // It fails only if memory is low. The next Snowflake then tries again.
        NOTICED.store(refused == 0, Ordering::Release);
    }
}

/// Without `fork` there is nothing to detect.
#[cfg(not(unix))]
fn notice_forks() {}
