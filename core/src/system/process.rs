//! This process, told apart from the children that it forks, without a system call for an ID.
//!
//! A word says that the process is alive. In a child it reads 0: the kernel wipes the page it lies in, however the
//! child was made, and where the kernel does not know how to, a handler of `fork` stores the 0. So what was made in the
//! parent fails in the child, and the parent's memory is not touched.

use core::ptr;
use core::sync::atomic::AtomicPtr;

use portable_atomic::{AtomicU64, Ordering};
use std::boxed::Box;
use std::sync::{Mutex, PoisonError};

use super::queue::{Queue, Turn};
use crate::layout::ones;

/// A process, or what a child has inherited of its parent's.
#[derive(Debug)]
pub(crate) struct Process {
    /// The last slot of layouts by the bits of their slots, and 0 in every child: the limits of all that is issued only by
    /// the process that made them.
    limits: &'static Limits,
    /// Whether the kernel wipes them.
    is_wiped: bool,
    /// How many words of the last page are handed out.
    handed_out: Mutex<usize>,
    queue: Queue,
}

/// A page of words that read 0 in every child.
#[derive(Debug)]
struct Limits {
    /// Those by the bits of slots, then those of leased nodes.
    words: [AtomicU64; Self::LEN],
    /// More of them, for a process that leased hundreds of nodes.
    more: AtomicPtr<Limits>,
}

impl Limits {
    /// As many as fit a page with the pointer.
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
        // SAFETY: only what lives as long as the process is ever stored there.
        #[allow(unsafe_code)]
        unsafe {
            self.more.load(Ordering::Acquire).as_ref()
        }
    }
}

/// The newest one, in this process or a parent of it. No lock: a fork in the middle of anything leaves it whole.
static CURRENT: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());

impl Process {
    /// This process, whose children are noticed from here on.
    pub(crate) fn current() -> &'static Self {
        notice_forks();
        let mut newest = CURRENT.load(Ordering::Acquire);
        loop {
            // SAFETY: only what was leaked below is ever stored there.
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
                    // SAFETY: the exchange failed, so only this function knows it. (Its page stays mapped.)
                    #[allow(unsafe_code)]
                    drop(unsafe { Box::from_raw(made) });
                    newest = other;
                }
            }
        }
    }

    /// Whether this still is the process that it was made in.
    pub(crate) fn is_alive(&self) -> bool {
        self.limit(64).load(Ordering::Acquire) != 0
    }

    /// A call that wants this many slots joins those of this process that wait for the same `key`.
    pub(crate) fn wait_for(&'static self, key: (usize, usize), wanted: u64) -> Turn {
        Turn::join(&self.queue, key, wanted)
    }

    /// The same for a call that has no thread to wait in, and is polled.
    pub(crate) fn poll_for(&'static self, key: (usize, usize), wanted: u64) -> Turn {
        Turn::join_polled(&self.queue, key, wanted)
    }

    /// The limit of what only this process issues, of layouts whose slots have this many bits: their last slot, and none in
    /// its children.
    pub(crate) fn limit(&self, slot_bits: u32) -> &'static AtomicU64 {
        self.limits.by_bits(slot_bits)
    }

    /// A word of a leased node: 0 until its limit is stored there, and 0 in every child. `None` if there is no memory.
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
        // Where the kernel wipes, it wipes the pointer to this page too, so that a handler would not find it.
        let unwiped = || (!self.is_wiped).then(|| &*Box::leak(Box::new(Limits::new())));
        let more = wiped_words().or_else(unwiped)?;
        page.more.store(ptr::from_ref(more).cast_mut(), Ordering::Release);
        *handed_out = 1;
        more.words.first()
    }
}

/// In a child, before it starts threads: no other thread is reading the clock.
fn after_fork() {
    super::time::KEPT.after_fork();
    super::counter::after_fork();
}

/// Words that hold the last slots, and 0 in every child; and whether the kernel sees to that.
fn limits(is_child: bool) -> (&'static Limits, bool) {
    static OF_FIRST: Limits = Limits::new();
    let wiped = wiped_words();
    // Where a handler of forks stores the 0, a child needs another word: its parent's must stay 0.
    let words =
        wiped.unwrap_or_else(|| if is_child { Box::leak(Box::new(Limits::new())) } else { &OF_FIRST });
    for (bits, word) in (0..).zip(words.words.iter().take(Limits::BY_BITS)) {
        word.store(ones(bits), Ordering::Release);
    }
    (words, wiped.is_some())
}

/// Words in a page that the kernel wipes in children: those of `_Fork` and of a bare `clone` too, which run no handlers.
/// `None` where the kernel cannot (Linux can from 4.14 on).
#[cfg(all(any(target_os = "linux", target_os = "android"), target_has_atomic = "64", not(miri)))]
fn wiped_words() -> Option<&'static Limits> {
    let page = memmap2::MmapOptions::new().len(size_of::<Limits>()).map_anon().ok()?;
    let page = core::mem::ManuallyDrop::new(memmap2::MmapRaw::from(page));
    // SAFETY: the page was mapped just now, only for this, and is never unmapped; words and pointer start as zeros.
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

    // It stores only to atomics, in the child's own copy of the memory.
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
        // Two threads may both come here: a handler that runs twice does no harm, and one that is not there yet
        // when a Snowflake is, would.
        // SAFETY: the handler is async-signal-safe and is never unloaded: the shared library of the C ABI is linked so,
        // and Python unloads no extension module.
        #[allow(unsafe_code)]
        let refused = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        // It fails only when memory is short; the next Snowflake tries again.
        NOTICED.store(refused == 0, Ordering::Release);
    }
}

/// Where there is no `fork`, there is nothing to notice.
#[cfg(not(unix))]
fn notice_forks() {}
