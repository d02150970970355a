//! The numbers that a process has in hand: one segment after the other, taken without a lock.
//!
//! The cursor has the serial number of the present segment and how many of it are taken. Whoever takes some reads what it needs
//! of that segment first and then moves the cursor by compare-and-swap: if that succeeds, the segment was the present one all
//! along, because its place is written again only when the cursor has left it.

#[cfg(not(loom))]
use core::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, Ordering},
};
#[cfg(loom)]
use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicU64, Ordering},
};

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

    /// The first so many, which it has; the others are left.
    pub(crate) const fn split_off(&mut self, count: u64) -> Self {
        let run = Self { count, ..*self };
        self.first += count * self.stride;
        self.count -= count;
        run
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
        loop {
            let cursor = self.cursor.0.load(Ordering::Acquire);
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
                Ok(_) => {}
                // Another thread took some. Where both try again at once, each has to wait for the other's cache line.
                Err(_) => spin_loop(),
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

    /// Puts a segment behind the present one. There must be [room](Self::wants_more) for it. Of one that has more numbers than a
    /// cursor counts, the rest is passed over: tables of others may give such.
    pub(crate) fn install(&self, segment: Run) {
        let serial = following(self.newest.load(Ordering::Relaxed));
        let place = self.place(serial);
        let count = segment.count.min(NONE_LEFT - 1);
        place.first.store(segment.first, Ordering::Relaxed);
        place.stride.store(segment.stride, Ordering::Relaxed);
        place.count.store(count, Ordering::Relaxed);
        place.ask_at.store((count / 10).max(1), Ordering::Relaxed);
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn run(first: u64, stride: u64, count: u64) -> Run {
        Run { first, stride, count }
    }

    /// With this one in hand.
    fn with(segment: Run) -> Segments {
        after(0, segment)
    }

    /// As [`with`], where so many were there before.
    fn after(serial: u64, segment: Run) -> Segments {
        let segments = Segments::new();
        segments.cursor.0.store(join(serial, NONE_LEFT), Ordering::Relaxed);
        segments.newest.store(serial, Ordering::Relaxed);
        segments.install(segment);
        segments
    }

    fn taken(segments: &Segments, wanted: u64) -> Option<Run> {
        segments.take(wanted).map(|(run, _)| run)
    }

    #[test]
    fn nothing_is_in_hand_at_first() {
        let segments = Segments::new();
        assert_eq!((segments.take(1), segments.take_run(1), segments.left()), (None, None, 0));
        assert!(segments.wants_more());
        let rest = segments.end();
        assert_eq!((rest.newest.count, rest.taken, rest.left, rest.before), (0, 0, 0, None));
        assert!(segments.wants_more());
    }

    #[test]
    fn one_segment_after_the_other() {
        let segments = with(run(5, 1, 3));
        assert_eq!((segments.left(), segments.wants_more()), (3, false));
        assert_eq!(taken(&segments, 1), Some(run(5, 1, 1)));
        segments.install(run(100, 7, 2));
        assert_eq!(segments.left(), 4);
        // No more than the present one has.
        assert_eq!(taken(&segments, 9), Some(run(6, 1, 2)));
        assert_eq!((segments.left(), segments.wants_more()), (2, false));
        assert_eq!(taken(&segments, 1), Some(run(100, 7, 1)));
        assert!(segments.wants_more());
        segments.install(run(50, 1, 1));
        assert!(!segments.wants_more());
        assert_eq!(taken(&segments, 9), Some(run(107, 7, 1)));
        assert_eq!(taken(&segments, 9), Some(run(50, 1, 1)));
        assert_eq!((taken(&segments, 1), segments.left()), (None, 0));
        segments.install(run(60, 1, 1));
        assert_eq!(taken(&segments, 1), Some(run(60, 1, 1)));
    }

    #[test]
    fn the_next_is_asked_for_once_a_tenth_is_taken() {
        let segments = with(run(1, 1, 40));
        let asks = |wanted| segments.take(wanted).unwrap().1;
        assert!(!asks(1) && !segments.wants_more());
        assert!(!asks(2) && !segments.wants_more());
        assert!(asks(1) && segments.wants_more());
        // Once is enough, and it is wanted until it is there.
        assert!(!asks(1) && segments.wants_more());
        segments.install(run(41, 1, 40));
        assert!(!segments.wants_more());
        // All at once, and of a segment too small to have a tenth.
        assert_eq!(with(run(1, 1, 40)).take(40), Some((run(1, 1, 40), true)));
        assert_eq!(with(run(1, 1, 1)).take(1), Some((run(1, 1, 1), true)));
    }

    #[test]
    fn a_run_is_of_one_segment() {
        let segments = with(run(1, 2, 10));
        assert_eq!(segments.take_run(11), None);
        assert_eq!(segments.take_run(1), Some((run(1, 2, 1), 0)));
        segments.install(run(101, 2, 10));
        assert_eq!(segments.take_run(11), None);
        assert_eq!(segments.take_run(4), Some((run(3, 2, 4), 0)));
        // The end of the present one is met: what is left of it is given up.
        assert_eq!(segments.take_run(6), Some((run(101, 2, 6), 5)));
        assert_eq!(segments.take_run(4), Some((run(113, 2, 4), 0)));
        assert_eq!((segments.take_run(1), segments.left()), (None, 0));
        // What does not fit gives up nothing.
        segments.install(run(201, 1, 3));
        assert_eq!(taken(&segments, 1), Some(run(201, 1, 1)));
        assert_eq!((segments.take_run(3), segments.left()), (None, 2));
        assert_eq!(taken(&segments, 5), Some(run(202, 1, 2)));
    }

    #[test]
    fn the_end_takes_out_what_is_left() {
        let segments = with(run(1, 1, 10));
        assert_eq!(taken(&segments, 4), Some(run(1, 1, 4)));
        assert_eq!(segments.end(), Rest { newest: run(1, 1, 10), taken: 4, left: 6, before: None });
        assert_eq!((segments.take(1), segments.take_run(1), segments.left()), (None, None, 0));
        // A second time, there is nothing to give back.
        assert_eq!(segments.end(), Rest { newest: run(1, 1, 10), taken: 10, left: 0, before: None });
        segments.install(run(11, 1, 10));
        assert_eq!(taken(&segments, 3), Some(run(11, 1, 3)));
        segments.install(run(21, 1, 10));
        let before = Some((run(11, 1, 10), 7));
        assert_eq!(segments.end(), Rest { newest: run(21, 1, 10), taken: 0, left: 17, before });
        assert!(segments.wants_more());
    }

    /// Before the first take, the cursor is on what was there before.
    #[test]
    fn the_end_before_the_first_take() {
        let segments = with(run(1, 1, 10));
        assert_eq!(segments.end(), Rest { newest: run(1, 1, 10), taken: 0, left: 10, before: None });
        segments.install(run(21, 1, 10));
        // Of the one before nothing is left.
        let before = Some((run(1, 1, 10), 0));
        assert_eq!(segments.end(), Rest { newest: run(21, 1, 10), taken: 0, left: 10, before });
    }

    #[test]
    fn the_serial_numbers_come_round() {
        let segments = after(HALF - 1, run(1, 1, 2));
        for at in 0..5 {
            let next = |count| run(1 + 2 * at, 1, count);
            assert_eq!(taken(&segments, 1), Some(next(1)), "{at}");
            segments.install(run(3 + 2 * at, 1, 2));
            assert_eq!(segments.left(), 3);
            if at % 2 == 0 {
                assert_eq!(taken(&segments, 9), Some(Run { first: 2 + 2 * at, ..next(1) }));
            } else {
                // Over the end of the present one.
                assert_eq!(segments.take_run(2), Some((run(3 + 2 * at, 1, 2), 1)));
                assert_eq!(segments.end().left, 0);
                segments.install(run(3 + 2 * at, 1, 2));
            }
        }
        let (serial, _) = split(segments.cursor.0.load(Ordering::Relaxed));
        assert!(serial < 9, "{serial}");
        let ending = after(HALF, run(1, 1, 2));
        assert_eq!(ending.end(), Rest { newest: run(1, 1, 2), taken: 0, left: 2, before: None });
    }

    /// The row of another's table may have any step.
    #[test]
    fn of_a_segment_that_is_too_large_the_rest_is_passed_over() {
        for count in [NONE_LEFT - 1, NONE_LEFT, NONE_LEFT + 1, u64::MAX / 2] {
            let segments = with(run(1, 1, count));
            let most = NONE_LEFT - 1;
            assert_eq!(taken(&segments, 1), Some(run(1, 1, 1)));
            assert_eq!(taken(&segments, u64::MAX), Some(run(2, 1, most - 1)));
            assert_eq!((taken(&segments, 1), segments.left()), (None, 0));
            let segments = with(run(1, 1, count));
            let rest = segments.end();
            assert_eq!((rest.newest.last(), rest.left), (most, most));
            assert_eq!((taken(&segments, 1), segments.left()), (None, 0));
        }
    }

    #[test]
    fn a_run_is_written_out() {
        let mut numbers = [0; 11];
        run(5, 1, 11).write(&mut numbers);
        assert!(numbers.iter().copied().eq(5..16), "{numbers:?}");
        run(5, 3, 11).write(&mut numbers);
        assert!(numbers.iter().copied().eq((5..38).step_by(3)), "{numbers:?}");
        assert_eq!(run(5, 3, 11).last(), 35);
    }

    /// Threads that take while one installs and ends: nothing twice, and all but what `end` returns is taken.
    #[test]
    fn threads_share_them_out() {
        let segments = Segments::new();
        let is_over = core::sync::atomic::AtomicBool::new(false);
        let take = |wanted: u64, as_runs: bool| {
            let (mut all, mut skipped) = (Vec::new(), 0);
            loop {
                let ended = is_over.load(Ordering::Acquire);
                let run = if as_runs {
                    let run = segments.take_run(wanted);
                    skipped += run.map_or(0, |(_, skipped)| skipped);
                    run.map(|(run, _)| run)
                } else {
                    taken(&segments, wanted)
                };
                match run {
                    Some(run) => all.extend(run.first..=run.last()),
                    None if ended => return (all, skipped),
                    None => std::thread::yield_now(),
                }
            }
        };
        let (mut installed, mut ended) = (0, 0);
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads = [(1, false), (1, false), (5, false), (3, true)]
                .map(|(wanted, as_runs)| scope.spawn(move || take(wanted, as_runs)));
            while installed < 10_000 {
                if segments.wants_more() {
                    segments.install(run(installed + 1, 1, 50));
                    installed += 50;
                    if installed % 1_000 == 0 {
                        ended += segments.end().left;
                    }
                }
                std::thread::yield_now();
            }
            ended += segments.end().left;
            is_over.store(true, Ordering::Release);
            threads.map(|thread| thread.join().unwrap()).into()
        });
        for (numbers, _) in &results {
            assert!(numbers.is_sorted_by(|a, b| a < b));
        }
        let mut all: Vec<_> = results.iter().flat_map(|(numbers, _)| numbers).collect();
        let count = all.len() as u64;
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len() as u64, count, "a number is given twice");
        let skipped: u64 = results.iter().map(|(_, skipped)| skipped).sum();
        assert_eq!(count + skipped + ended, installed);
    }
}
