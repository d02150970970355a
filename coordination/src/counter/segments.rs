//! The numbers that a process has fetched, segment by segment. Calls take numbers without a lock.
//!
//! The cursor holds the current segment's serial number, and the count of numbers taken from that segment. A
//! call reads the segment's values before it moves the cursor. If the cursor is still in that segment at the
//! time of the move, the values belong to the segment, since a segment's place is overwritten only after the
//! cursor has left the segment.
//!
//! A call that takes several numbers moves the cursor by compare-and-swap, which fails if another call has
//! moved it. A call that takes one number adds to the cursor without reading it first, so the cache line
//! moves between threads once per number, and no thread has to retry. The call finds the current segment in
//! [`known`](Segments::known). The cursor's old value determines the result of the claim:
//!
//! - A number in that segment.
//! - Nothing, because the segment has no more numbers. The call then marks the segment as used up in `known`,
//!   or moves to the next segment, before it adds again. So each thread overshoots by at most one per
//!   segment, and there is room for that: see [`NONE_LEFT`].
//! - A number in a later segment. The call reads that segment's values, and then checks whether the cursor is
//!   still in that segment. If it is not, another segment may have overwritten the values, and the call gives
//!   up the number.

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

/// The shift for the serial number, which is the upper half of the cursor.
const SERIAL: u32 = 32;
/// The mask for the lower half of the cursor.
const HALF: u64 = u32::MAX as u64;
/// A count of taken numbers that is greater than the size of any segment, so no numbers are left. The values
/// from here up to [`HALF`] leave room for threads that add one too many. With fewer than 2^31 threads, these
/// additions do not overflow into the serial number.
const NONE_LEFT: u64 = 1 << 31;
/// See [`Segments::known`].
const USED_UP: u64 = 1;

/// The segments of a counter. One thread at a time calls [`install`](Self::install) and [`end`](Self::end);
/// any number of threads call [`take`](Self::take), [`take_one`](Self::take_one) and
/// [`take_run`](Self::take_run).
#[derive(Debug)]
pub(crate) struct Segments {
    cursor: Aligned<AtomicU64>,
    /// The cursor's value at the start of its segment, plus [`USED_UP`] if that segment has no numbers left.
    /// This value may lag behind the cursor; a call that notices this updates it. Calls read this value far
    /// more often than they change it.
    known: AtomicU64,
    /// The serial number of the last installed segment.
    newest: AtomicU64,
    /// See [`given_up`](Self::given_up).
    given_up: AtomicU64,
    /// The places for the current segment and the next one.
    places: [Place; 2],
}

/// Puts the cursor on a separate cache line, since calls only read the places.
#[derive(Debug)]
#[repr(align(128))]
struct Aligned<T>(T);

#[derive(Debug)]
struct Place {
    first: AtomicU64,
    stride: AtomicU64,
    /// The segment's size, which is below [`NONE_LEFT`].
    count: AtomicU64,
    /// How many numbers must be taken before the next segment is requested.
    ask_at: AtomicU64,
}

/// The result of a claim that turned out to be in a later segment.
enum Claimed {
    /// A number, and whether to request the next segment now.
    Number(u64, bool),
    Nothing,
    /// A claim in a segment that no longer exists. The claim may have been for a number.
    Lost,
}

/// A run of numbers: `first`, `first + stride`, and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: u64,
    pub(crate) stride: u64,
    pub(crate) count: u64,
}

impl Run {
    /// Returns the last number. The run must not be empty.
    pub(crate) const fn last(&self) -> u64 {
        self.first + (self.count - 1) * self.stride
    }

    /// Splits off the first `count` numbers, if the run has that many.
    pub(crate) const fn split_off(&mut self, count: u64) -> Option<Self> {
        let Some(left) = self.count.checked_sub(count) else { return None };
        let run = Self { count, ..*self };
        self.first += count * self.stride;
        self.count = left;
        Some(run)
    }

    /// Writes as many numbers as fit.
    #[inline]
    pub(crate) fn write(&self, to: &mut [u64]) {
        let mut number = self.first;
        if self.stride == 1 {
            // With a constant stride, the compiler writes eight numbers in a few instructions.
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

/// The fetched numbers, as returned by [`Segments::end`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rest {
    /// The last installed segment, or an empty run if there was none.
    pub(crate) newest: Run,
    /// How many numbers were taken from that segment.
    pub(crate) taken: u64,
    /// How many numbers are left in that segment and the one before it.
    pub(crate) left: u64,
    /// The segment before it, and how many numbers are left there, if that was still the current segment.
    pub(crate) before: Option<(Run, u64)>,
}

impl Segments {
    pub(crate) fn new() -> Self {
        Self {
            cursor: Aligned(AtomicU64::new(0)),
            known: AtomicU64::new(USED_UP),
            newest: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
            places: [Place::new(), Place::new()],
        }
    }

    /// Takes one number, and calls `ask` if it is time to request the next segment. Returns `None` if no
    /// fetched numbers are left.
    #[inline]
    pub(crate) fn take_one(&self, ask: impl Fn()) -> Option<u64> {
        let known = self.known.load(Ordering::Acquire);
        if known & HALF == USED_UP {
            return self.take_one_of_next(known, None, ask);
        }
        match self.claim(known) {
            Ok((number, is_time_to_ask)) => {
                if is_time_to_ask {
                    ask();
                }
                Some(number)
            }
            Err(claimed) => self.take_one_of_next(known, Some(claimed), ask),
        }
    }

    /// Claims a number in the known segment. Returns the number, and true if it is time to request the next
    /// segment. If that segment has no more numbers or the cursor has left it, returns the cursor's old value
    /// as the error.
    #[inline]
    fn claim(&self, known: u64) -> Result<(u64, bool), u64> {
        let place = self.place(known >> SERIAL);
        let count = place.count.load(Ordering::Relaxed);
        let first = place.first.load(Ordering::Relaxed);
        let stride = place.stride.load(Ordering::Relaxed);
        let ask_at = place.ask_at.load(Ordering::Relaxed);
        let claimed = self.cursor.0.fetch_add(1, Ordering::AcqRel);
        // If the cursor has left the known segment, this is larger than any count.
        let taken = claimed.wrapping_sub(known);
        if taken < count { Ok((first + taken * stride, taken + 1 == ask_at)) } else { Err(claimed) }
    }

    /// Continues [`take_one`](Self::take_one) if the known segment is used up or the cursor has left it.
    #[cold]
    #[inline(never)]
    fn take_one_of_next(&self, mut known: u64, mut claimed: Option<u64>, ask: impl Fn()) -> Option<u64> {
        loop {
            match claimed.filter(|&claimed| split(claimed).0 != split(known).0).map(|it| self.look_at(it)) {
                Some(Claimed::Number(number, is_time_to_ask)) => {
                    if is_time_to_ask {
                        ask();
                    }
                    return Some(number);
                }
                Some(Claimed::Lost) => {
                    self.given_up.fetch_add(1, Ordering::Relaxed);
                    // The lost number may have been the one that triggers the request for the next segment.
                    ask();
                }
                Some(Claimed::Nothing) | None => {}
            }
            known = self.find_next()?;
            claimed = match self.claim(known) {
                Ok((number, is_time_to_ask)) => {
                    if is_time_to_ask {
                        ask();
                    }
                    return Some(number);
                }
                Err(claimed) => Some(claimed),
            };
        }
    }

    /// Resolves a claim that turned out to be in a later segment.
    fn look_at(&self, claimed: u64) -> Claimed {
        let (serial, taken) = split(claimed);
        let place = self.place(serial);
        let Run { first, stride, count } = place.run();
        let ask_at = place.ask_at.load(Ordering::Relaxed);
        // This is a write, so it either precedes the write that leaves the segment, or sees its result.
        let (present, _) = split(self.cursor.0.fetch_add(0, Ordering::AcqRel));
        if present != serial {
            Claimed::Lost
        } else if taken < count {
            self.tell(join(serial, 0));
            Claimed::Number(first + taken * stride, taken + 1 == ask_at)
        } else {
            Claimed::Nothing
        }
    }

    /// Moves the cursor to the next segment if the current segment is used up. Sets [`known`](Self::known) to
    /// the cursor's segment, and returns it. Returns `None` if no fetched numbers are left.
    fn find_next(&self) -> Option<u64> {
        loop {
            let cursor = self.cursor.0.load(Ordering::Acquire);
            let (serial, taken) = split(cursor);
            if taken < self.place(serial).count.load(Ordering::Relaxed) {
                self.tell(join(serial, 0));
                return Some(join(serial, 0));
            }
            let next = join(following(serial), 0);
            if self.newest.load(Ordering::Acquire) == following(serial) {
                let _ = self.cursor.0.compare_exchange(cursor, next, Ordering::AcqRel, Ordering::Acquire);
            } else if split(self.cursor.0.load(Ordering::Acquire)).0 == serial {
                self.tell(join(serial, USED_UP));
                return None;
            }
        }
    }

    /// Moves [`known`](Self::known) forward, but not back, since a used-up segment stays used up.
    fn tell(&self, now: u64) {
        let mut known = self.known.load(Ordering::Relaxed);
        // Serial numbers wrap around.
        while now != known && now.wrapping_sub(known) <= u64::MAX / 2 {
            match self.known.compare_exchange_weak(known, now, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => known = other,
            }
        }
    }

    /// Takes `wanted` consecutive numbers, or all that are left in the current segment if it has fewer. Also
    /// returns true if it is time to request the next segment. Returns `None` if no fetched numbers are left.
    #[inline]
    pub(crate) fn take(&self, wanted: u64) -> Option<(Run, bool)> {
        loop {
            let cursor = self.cursor.0.load(Ordering::Acquire);
            let (serial, taken) = split(cursor);
            let place = self.place(serial);
            let left = place.count.load(Ordering::Relaxed).saturating_sub(taken);
            if left == 0 {
                self.find_next()?;
                continue;
            }
            let count = wanted.min(left);
            let first = place.first.load(Ordering::Relaxed);
            let stride = place.stride.load(Ordering::Relaxed);
            let ask_at = place.ask_at.load(Ordering::Relaxed);
            let next = cursor + count;
            if self.cursor.0.compare_exchange_weak(cursor, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
            {
                let run = Run { first: first + taken * stride, stride, count };
                return Some((run, taken < ask_at && taken + count >= ask_at));
            }
            // Another thread took some numbers. Pause, since two threads that retry at once compete for the
            // cache line.
            spin_loop();
        }
    }

    /// Takes a run of exactly `wanted` numbers from the current segment, or from the next if the current
    /// segment has too few. In the second case, the rest of the current segment is skipped. Also returns how
    /// many numbers were skipped. Returns `None` if neither segment has enough numbers.
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

    /// Returns true if another segment is needed and there is room for it.
    pub(crate) fn wants_more(&self) -> bool {
        let (serial, taken) = split(self.cursor.0.load(Ordering::Acquire));
        self.newest.load(Ordering::Relaxed) == serial
            && taken >= self.place(serial).ask_at.load(Ordering::Relaxed)
    }

    /// Returns the number of claims that threads gave up because other threads had used up the segment first.
    /// At most that many numbers were lost.
    pub(crate) fn given_up(&self) -> u64 {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Returns how many fetched numbers have not been taken.
    pub(crate) fn left(&self) -> u64 {
        let (serial, taken) = split(self.cursor.0.load(Ordering::Acquire));
        let count = |serial| self.place(serial).count.load(Ordering::Relaxed);
        let next = if self.newest.load(Ordering::Acquire) == serial { 0 } else { count(following(serial)) };
        count(serial).saturating_sub(taken) + next
    }

    /// Installs a segment after the current one. There must be [room](Self::wants_more) for the segment. If
    /// it has more numbers than the cursor can count, skips the rest. Rows in other systems' tables may have
    /// such large steps.
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

    /// Removes all fetched numbers and returns them. Until the next segment is installed, calls receive no
    /// numbers.
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

/// Returns the serial number that follows `serial`. Serial numbers wrap around after 2^32 segments.
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

    /// Returns `Segments` with only `segment` installed.
    fn with(segment: Run) -> Segments {
        after(0, segment)
    }

    /// Like [`with`], but after `serial` earlier segments.
    fn after(serial: u64, segment: Run) -> Segments {
        let segments = Segments::new();
        segments.cursor.0.store(join(serial, NONE_LEFT), Ordering::Relaxed);
        segments.known.store(join(serial, USED_UP), Ordering::Relaxed);
        segments.newest.store(serial, Ordering::Relaxed);
        segments.install(segment);
        segments
    }

    fn taken(segments: &Segments, wanted: u64) -> Option<Run> {
        segments.take(wanted).map(|(run, _)| run)
    }

    fn one(segments: &Segments) -> Option<u64> {
        segments.take_one(|| {})
    }

    #[test]
    fn nothing_is_in_hand_at_first() {
        let segments = Segments::new();
        assert_eq!((segments.take(1), segments.take_run(1), segments.left()), (None, None, 0));
        assert_eq!(one(&segments), None);
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
        // The call receives only the rest of the current segment.
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
    fn one_number_after_the_other() {
        let segments = with(run(5, 1, 2));
        assert_eq!((one(&segments), one(&segments), one(&segments)), (Some(5), Some(6), None));
        segments.install(run(100, 7, 4));
        assert_eq!(one(&segments), Some(100));
        // Calls that take several numbers also move the cursor.
        assert_eq!(taken(&segments, 2), Some(run(107, 7, 2)));
        assert_eq!(one(&segments), Some(121));
        segments.install(run(50, 1, 3));
        assert_eq!(segments.left(), 3);
        assert_eq!(taken(&segments, 2), Some(run(50, 1, 2)));
        assert_eq!((one(&segments), one(&segments)), (Some(52), None));
        segments.install(run(60, 1, 3));
        assert_eq!((segments.take_run(2), one(&segments)), (Some((run(60, 1, 2), 0)), Some(62)));
        segments.install(run(70, 1, 3));
        let before = Some((run(60, 1, 3), 0));
        assert_eq!(segments.end(), Rest { newest: run(70, 1, 3), taken: 0, left: 3, before });
        assert_eq!((one(&segments), segments.left(), segments.given_up()), (None, 0, 0));
        segments.install(run(80, 1, 3));
        assert_eq!((one(&segments), one(&segments)), (Some(80), Some(81)));
        assert_eq!(segments.end(), Rest { newest: run(80, 1, 3), taken: 2, left: 1, before: None });
        assert_eq!(segments.end(), Rest { newest: run(80, 1, 3), taken: 3, left: 0, before: None });
    }

    /// There is room for one failed claim per thread and segment, but not for one per call.
    #[test]
    fn calls_that_get_nothing_claim_nothing() {
        let segments = with(run(1, 1, 2));
        let claims = || segments.cursor.0.load(Ordering::Relaxed) & HALF;
        for more in [false, true] {
            assert!(one(&segments).is_some() && one(&segments).is_some());
            for _ in 0..100 {
                assert_eq!(one(&segments), None);
            }
            assert_eq!(claims(), 3);
            if !more {
                segments.install(run(11, 1, 2));
            }
        }
        segments.end();
        assert_eq!(((0..100).find_map(|_| one(&segments)), claims()), (None, NONE_LEFT));
        segments.install(run(21, 1, 2));
        segments.end();
        // If `known` lags behind, one call still makes a claim.
        segments.known.store(join(3, 0), Ordering::Relaxed);
        assert_eq!(((0..100).find_map(|_| one(&segments)), claims()), (None, NONE_LEFT + 1));
        assert_eq!(segments.end().left, 0);
    }

    /// A thread may be delayed both before and after its claim.
    #[test]
    fn a_claim_may_be_of_a_later_segment() {
        let segments = with(run(1, 1, 2));
        assert_eq!((one(&segments), one(&segments)), (Some(1), Some(2)));
        segments.install(run(11, 3, 20));
        assert_eq!(one(&segments), Some(11));
        let of_first = join(1, 0);
        segments.known.store(of_first, Ordering::Relaxed);
        assert_eq!((one(&segments), segments.given_up()), (Some(14), 0));
        assert_eq!(segments.known.load(Ordering::Relaxed), join(2, 0));
        // `known` does not go back to a segment that no longer exists.
        segments.tell(of_first);
        segments.tell(join(1, USED_UP));
        assert_eq!(segments.known.load(Ordering::Relaxed), join(2, 0));
        // The thread that claims the second number requests the next segment.
        let asked = core::cell::Cell::new(0);
        let ask = || asked.set(asked.get() + 1);
        let lost = segments.take_one_of_next(of_first, Some(join(3, 1)), ask);
        assert_eq!((lost, segments.given_up(), asked.get()), (Some(17), 1, 1));
        assert_eq!(segments.take_one_of_next(of_first, Some(join(2, 1)), ask), Some(14));
        assert_eq!((segments.left(), asked.get()), (17, 2));
        assert_eq!(segments.take_one_of_next(of_first, Some(join(2, 20)), ask), Some(20));
        assert_eq!(segments.take_one_of_next(of_first, Some(join(1, 2)), ask), Some(23));
        assert_eq!((segments.given_up(), asked.get()), (1, 2));
    }

    #[test]
    fn the_next_is_asked_for_once_a_tenth_is_taken() {
        let segments = with(run(1, 1, 40));
        let asks = |wanted| segments.take(wanted).unwrap().1;
        assert!(!asks(1) && !segments.wants_more());
        assert!(!asks(2) && !segments.wants_more());
        assert!(asks(1) && segments.wants_more());
        // The call does not ask a second time, but the segment is wanted until it arrives.
        assert!(!asks(1) && segments.wants_more());
        segments.install(run(41, 1, 40));
        assert!(!segments.wants_more());
        // A call that takes a whole segment asks for the next, even if the segment has only one number.
        assert_eq!(with(run(1, 1, 40)).take(40), Some((run(1, 1, 40), true)));
        assert_eq!(with(run(1, 1, 1)).take(1), Some((run(1, 1, 1), true)));
        // Numbers are taken one by one.
        for (count, asking) in [(40, 4), (1, 1)] {
            let segments = with(run(1, 1, count));
            let asked = core::cell::RefCell::new(Vec::new());
            for at in 1..=count {
                assert_eq!(segments.take_one(|| asked.borrow_mut().push(at)), Some(at));
            }
            assert_eq!(asked.into_inner(), [asking]);
        }
    }

    #[test]
    fn a_run_is_of_one_segment() {
        let segments = with(run(1, 2, 10));
        assert_eq!(segments.take_run(11), None);
        assert_eq!(segments.take_run(1), Some((run(1, 2, 1), 0)));
        segments.install(run(101, 2, 10));
        assert_eq!(segments.take_run(11), None);
        assert_eq!(segments.take_run(4), Some((run(3, 2, 4), 0)));
        // The current segment has too few numbers, so the call skips them.
        assert_eq!(segments.take_run(6), Some((run(101, 2, 6), 5)));
        assert_eq!(segments.take_run(4), Some((run(113, 2, 4), 0)));
        assert_eq!((segments.take_run(1), segments.left()), (None, 0));
        // If neither segment has enough numbers, nothing is skipped.
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
        // The second time, no numbers are left.
        assert_eq!(segments.end(), Rest { newest: run(1, 1, 10), taken: 10, left: 0, before: None });
        segments.install(run(11, 1, 10));
        assert_eq!(taken(&segments, 3), Some(run(11, 1, 3)));
        segments.install(run(21, 1, 10));
        let before = Some((run(11, 1, 10), 7));
        assert_eq!(segments.end(), Rest { newest: run(21, 1, 10), taken: 0, left: 17, before });
        assert!(segments.wants_more());
    }

    /// Before the first take, the cursor is still on the previous segment.
    #[test]
    fn the_end_before_the_first_take() {
        let segments = with(run(1, 1, 10));
        assert_eq!(segments.end(), Rest { newest: run(1, 1, 10), taken: 0, left: 10, before: None });
        segments.install(run(21, 1, 10));
        // The previous segment has no numbers left.
        let before = Some((run(1, 1, 10), 0));
        assert_eq!(segments.end(), Rest { newest: run(21, 1, 10), taken: 0, left: 10, before });
    }

    #[test]
    fn the_serial_numbers_come_round() {
        let segments = after(HALF - 1, run(1, 1, 2));
        for at in 0..5 {
            let next = |count| run(1 + 2 * at, 1, count);
            let number = if at < 2 { one(&segments) } else { taken(&segments, 1).map(|run| run.first) };
            assert_eq!(number, Some(next(1).first), "{at}");
            segments.install(run(3 + 2 * at, 1, 2));
            assert_eq!(segments.left(), 3);
            if at % 2 == 0 {
                assert_eq!(taken(&segments, 9), Some(Run { first: 2 + 2 * at, ..next(1) }));
            } else {
                // The current segment has too few numbers, so the call skips them.
                assert_eq!(segments.take_run(2), Some((run(3 + 2 * at, 1, 2), 1)));
                assert_eq!(segments.end().left, 0);
                segments.install(run(3 + 2 * at, 1, 2));
            }
        }
        let (serial, _) = split(segments.cursor.0.load(Ordering::Relaxed));
        assert!(serial < 9, "{serial}");
        let ending = after(HALF, run(1, 1, 2));
        assert_eq!(ending.end(), Rest { newest: run(1, 1, 2), taken: 0, left: 2, before: None });
        let segments = after(HALF - 1, run(1, 1, 1));
        for at in 1..5 {
            assert_eq!((one(&segments), one(&segments)), (Some(at), None));
            segments.install(run(at + 1, 1, 1));
        }
        assert_eq!(split(segments.known.load(Ordering::Relaxed)), (2, USED_UP));
    }

    /// A row in another system's table may have any step.
    #[test]
    fn of_a_segment_that_is_too_large_the_rest_is_passed_over() {
        for count in [NONE_LEFT - 1, NONE_LEFT, NONE_LEFT + 1, u64::MAX / 2] {
            let segments = with(run(1, 1, count));
            let most = NONE_LEFT - 1;
            assert_eq!(taken(&segments, 1), Some(run(1, 1, 1)));
            assert_eq!(taken(&segments, u64::MAX), Some(run(2, 1, most - 1)));
            assert_eq!((taken(&segments, 1), one(&segments), segments.left()), (None, None, 0));
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

    /// Threads take numbers while another thread installs and ends segments. No number is taken twice, and
    /// each number is taken, skipped, returned by `end`, or given up.
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
                } else if wanted == 1 {
                    one(&segments).map(|number| run(number, 1, 1))
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
            let threads = [(1, false), (1, false), (1, false), (5, false), (3, true)]
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
        let lost = installed - count - skipped - ended;
        assert!(lost <= segments.given_up(), "{lost} are lost");
    }
}
