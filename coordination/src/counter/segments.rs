//! The numbers that a process has in hand: one segment after the other, taken without a lock.
//!
//! The cursor has the serial number of the present segment and how many of it are taken. Whoever takes some reads what it needs
//! of that segment first and then moves the cursor by compare-and-swap: if that succeeds, the segment was the present one all
//! along, because its place is written again only when the cursor has left it.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

/// The serial number is in the upper half of the cursor.
const SERIAL: u32 = 32;
/// All bits of a half.
const HALF: u64 = u32::MAX as u64;
/// More than any segment has, so that none is left.
const NONE_LEFT: u64 = HALF;

/// The segments of a counter. One thread at a time calls [`install`](Self::install) and [`end`](Self::end), any number of them
/// [`take`](Self::take).
#[derive(Debug)]
pub(crate) struct Segments {
    cursor: Aligned<AtomicU64>,
    /// The serial number of the segment that was installed last.
    newest: AtomicU64,
    /// Those of the present segment and of the one that follows.
    places: [Place; 2],
}

/// On a cache line of its own: the places are only read.
#[derive(Debug)]
#[repr(align(128))]
struct Aligned<T>(T);

#[derive(Debug)]
struct Place {
    first: AtomicU64,
    stride: AtomicU64,
    /// Fewer than [`NONE_LEFT`].
    count: AtomicU64,
    /// Once so many are taken, the next segment is asked for.
    ask_at: AtomicU64,
}

/// Numbers that follow each other: `first`, `first + stride`, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: u64,
    pub(crate) stride: u64,
    pub(crate) count: u64,
}

impl Run {
    /// Of at least one number.
    pub(crate) const fn last(&self) -> u64 {
        self.first + (self.count - 1) * self.stride
    }

    /// Writes them, as many as fit.
    #[inline]
    pub(crate) fn write(&self, to: &mut [u64]) {
        let mut number = self.first;
        if self.stride == 1 {
            // With a constant stride it is a few instructions for eight of them.
            for place in to {
                *place = number;
                number = number.wrapping_add(1);
            }
        } else {
            for place in to {
                *place = number;
                number = number.wrapping_add(self.stride);
            }
        }
    }
}

/// What was in hand when the segments were ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rest {
    /// The last segment that was installed; of no numbers where there was none.
    pub(crate) newest: Run,
    /// How many of it were taken.
    pub(crate) taken: u64,
    /// How many of it and of the one before are left.
    pub(crate) left: u64,
    /// Of the one before, if it was the present one: its last number, and how many are left.
    pub(crate) before: Option<(Run, u64)>,
}

impl Segments {
    pub(crate) fn new() -> Self {
        Self {
            cursor: Aligned(AtomicU64::new(0)),
            newest: AtomicU64::new(0),
            places: [Place::new(), Place::new()],
        }
    }

    /// Takes `wanted` numbers that follow each other, or as many as the present segment has. The flag says that now is the time
    /// to ask for the next segment. `None` where nothing is in hand.
    #[inline]
    pub(crate) fn take(&self, wanted: u64) -> Option<(Run, bool)> {
        let mut cursor = self.cursor.0.load(Ordering::Acquire);
        loop {
            let (serial, taken) = split(cursor);
            let place = self.place(serial);
            let left = place.count.load(Ordering::Relaxed).saturating_sub(taken);
            let next = if left > 0 {
                cursor + wanted.min(left)
            } else if self.newest.load(Ordering::Acquire) == following(serial) {
                join(following(serial), 0)
            } else {
                return None;
            };
            let first = place.first.load(Ordering::Relaxed);
            let stride = place.stride.load(Ordering::Relaxed);
            let ask_at = place.ask_at.load(Ordering::Relaxed);
            match self.cursor.0.compare_exchange_weak(cursor, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) if left > 0 => {
                    let count = wanted.min(left);
                    let run = Run { first: first + taken * stride, stride, count };
                    return Some((run, taken < ask_at && taken + count >= ask_at));
                }
                Ok(_) => cursor = next,
                Err(other) => cursor = other,
            }
        }
    }

    /// Takes a run of exactly `wanted` numbers from the present segment, or from the next: what is left of the present one is
    /// then given up, and counted. `None` where neither has so many.
    pub(crate) fn take_run(&self, wanted: u64) -> Option<(Run, u64)> {
        let mut cursor = self.cursor.0.load(Ordering::Acquire);
        loop {
            let (serial, taken) = split(cursor);
            let left = self.place(serial).count.load(Ordering::Relaxed).saturating_sub(taken);
            let (serial, taken, skipped) = if left >= wanted {
                (serial, taken, 0)
            } else if self.newest.load(Ordering::Acquire) == following(serial)
                && self.place(following(serial)).count.load(Ordering::Relaxed) >= wanted
            {
                (following(serial), 0, left)
            } else {
                return None;
            };
            let place = self.place(serial);
            let (first, stride) = (place.first.load(Ordering::Relaxed), place.stride.load(Ordering::Relaxed));
            let next = join(serial, taken + wanted);
            match self.cursor.0.compare_exchange_weak(cursor, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    return Some((Run { first: first + taken * stride, stride, count: wanted }, skipped));
                }
                Err(other) => cursor = other,
            }
        }
    }

    /// Whether there is room for a segment, and need of one.
    pub(crate) fn wants_more(&self) -> bool {
        let (serial, taken) = split(self.cursor.0.load(Ordering::Acquire));
        self.newest.load(Ordering::Relaxed) == serial
            && taken >= self.place(serial).ask_at.load(Ordering::Relaxed)
    }

    /// How many numbers are in hand.
    pub(crate) fn left(&self) -> u64 {
        let (serial, taken) = split(self.cursor.0.load(Ordering::Acquire));
        let count = |serial| self.place(serial).count.load(Ordering::Relaxed);
        let next = if self.newest.load(Ordering::Acquire) == serial { 0 } else { count(following(serial)) };
        count(serial).saturating_sub(taken) + next
    }

    /// Puts a segment behind the present one. There must be [room](Self::wants_more) for it.
    pub(crate) fn install(&self, segment: Run) {
        let serial = following(self.newest.load(Ordering::Relaxed));
        let place = self.place(serial);
        place.first.store(segment.first, Ordering::Relaxed);
        place.stride.store(segment.stride, Ordering::Relaxed);
        place.count.store(segment.count, Ordering::Relaxed);
        place.ask_at.store((segment.count / 10).max(1), Ordering::Relaxed);
        self.newest.store(serial, Ordering::Release);
    }

    /// Takes out all that is in hand: nobody gets a number before the next segment is installed.
    pub(crate) fn end(&self) -> Rest {
        let newest = self.newest.load(Ordering::Relaxed);
        let ended = join(newest, NONE_LEFT);
        let (serial, taken) = split(self.cursor.0.swap(ended, Ordering::AcqRel));
        let left = |run: &Run| run.count.saturating_sub(taken);
        let last = self.place(newest).run();
        if serial == newest {
            let left = left(&last);
            return Rest { newest: last, taken: last.count - left, left, before: None };
        }
        let present = self.place(serial).run();
        let of_present = left(&present);
        let before = (present.count > 0).then_some((present, of_present));
        Rest { newest: last, taken: 0, left: last.count + of_present, before }
    }

    fn place(&self, serial: u64) -> &Place {
        let [even, odd] = &self.places;
        if serial & 1 == 0 { even } else { odd }
    }
}

impl Place {
    fn new() -> Self {
        Self {
            first: AtomicU64::new(0),
            stride: AtomicU64::new(0),
            count: AtomicU64::new(0),
            ask_at: AtomicU64::new(0),
        }
    }

    fn run(&self) -> Run {
        Run {
            first: self.first.load(Ordering::Relaxed),
            stride: self.stride.load(Ordering::Relaxed),
            count: self.count.load(Ordering::Relaxed),
        }
    }
}

#[inline]
const fn split(cursor: u64) -> (u64, u64) {
    (cursor >> SERIAL, cursor & HALF)
}

#[inline]
const fn join(serial: u64, taken: u64) -> u64 {
    serial << SERIAL | taken
}

/// The serial number after another. They come round after 2^32 segments.
#[inline]
const fn following(serial: u64) -> u64 {
    (serial + 1) & HALF
}
