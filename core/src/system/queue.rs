//! Calls that wait for the same cursor are served fairly.
//!
//! One of them, the leader, waits for the clock. When there are slots, it takes as many as all waiting calls want and
//! gives each its share, so no call waits for more than a tick while a tick has enough slots. The leader is running at
//! that moment and can use up the rest of the tick, so the next to lead is the thread that led longest ago.

use core::cell::Cell;
use core::marker::PhantomData;
use core::time::Duration;
#[cfg(loom)]
use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
use portable_atomic::{AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::PoisonError;
#[cfg(not(loom))]
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::vec::Vec;

use crate::rule::{Run, Taken};

/// How long a call may not notice that it was closed or interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// All calls of a process that wait.
#[derive(Debug, Default)]
pub(super) struct Queue {
    places: Mutex<BTreeMap<Order, Arc<Place>>>,
}

/// Which call leads first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    /// What they wait for. Others do not matter to each other.
    key: Key,
    /// When the thread led last; 0 for never.
    led: u64,
    /// When the call came.
    came: u64,
}

/// A cursor's address, and the address of the Snowflake whose clock is waited for, or 0 for the system's clock.
pub(crate) type Key = (usize, usize);

/// Counts leaders and calls.
static TURNS: AtomicU64 = AtomicU64::new(1);

std::thread_local! {
    static LED: Cell<u64> = const { Cell::new(0) };
    /// How many calls of this thread wait: one inside the other, where a signal's handler or a clock takes IDs itself.
    static WAITING: Cell<u32> = const { Cell::new(0) };
}

/// A waiting call.
#[derive(Debug)]
pub(crate) struct Place {
    order: Order,
    wanted: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    /// The one that led has left, and this one is the next.
    ToLead,
    Given(Taken),
    Left,
}

impl Queue {
    fn places(&self) -> MutexGuard<'_, BTreeMap<Order, Arc<Place>>> {
        lock(&self.places)
    }
}

impl Place {
    /// Waits until there are slots for this call, until it leads, or for a while.
    pub(crate) fn wait(&self) {
        let mut state = self.state();
        if *state == State::Waiting {
            let waited = self.changed.wait_timeout(state, LOOK_EVERY);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if *state == State::ToLead {
            *state = State::Waiting;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// No invariant is open when a panic could come.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn first_of(places: &BTreeMap<Order, Arc<Place>>, key: Key) -> Option<&Arc<Place>> {
    let from = Order { key, led: 0, came: 0 };
    places.range(from..).next().map(|(_, place)| place).filter(|place| place.order.key == key)
}

/// A call's place in the queue, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    queue: &'static Queue,
    place: Arc<Place>,
    /// Inside another call of its thread: it must not wait for that one to lead.
    is_inner: bool,
    _counted: Counted,
}

/// Counts in its thread's `WAITING`.
#[derive(Debug)]
struct Counted(PhantomData<*const ()>);

impl Drop for Counted {
    fn drop(&mut self) {
        let _ = WAITING.try_with(|waiting| waiting.set(waiting.get() - 1));
    }
}

impl Turn {
    /// A call that wants so many slots joins those that wait for the same `key`.
    pub(super) fn join(queue: &'static Queue, key: Key, wanted: u64) -> Self {
        let outer = WAITING.try_with(|waiting| waiting.replace(waiting.get() + 1)).unwrap_or(0);
        let led = LED.try_with(Cell::get).unwrap_or(0);
        let order = Order { key, led, came: TURNS.fetch_add(1, Ordering::Relaxed) };
        let state = Mutex::new(State::Waiting);
        let place = Arc::new(Place { order, wanted, state, changed: Condvar::new() });
        queue.places().insert(order, Arc::clone(&place));
        Self { queue, place, is_inner: outer > 0, _counted: Counted(PhantomData) }
    }

    /// Whether this call is to wait for the clock, and the others for it.
    pub(crate) fn leads(&self) -> bool {
        self.is_inner || self.is_first()
    }

    fn is_first(&self) -> bool {
        first_of(&self.queue.places(), self.place.order.key)
            .is_some_and(|first| Arc::ptr_eq(first, &self.place))
    }

    /// The longest pause of a leader.
    pub(crate) fn longest_pause() -> Duration {
        LOOK_EVERY
    }

    /// Where this call waits, which another thread may know of.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// The slots that a leader took for this call.
    pub(crate) fn given(&self) -> Option<Taken> {
        match *self.place.state() {
            State::Given(taken) => Some(taken),
            _ => None,
        }
    }

    /// All others that wait now, for a leader that is about to take slots for them. Calls that come later are left out:
    /// before they begin, greater slots than those taken here may have been issued.
    pub(crate) fn others(&self) -> Others<'_> {
        let key = self.place.order.key;
        let mut places = self.queue.places();
        let orders: Vec<Order> = places
            .range(Order { key, led: 0, came: 0 }..)
            .map(|(order, _)| *order)
            .take_while(|order| order.key == key)
            .filter(|order| *order != self.place.order)
            .collect();
        Others { turn: self, places: orders.iter().filter_map(|order| places.remove(order)).collect() }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *self.place.state() = State::Left;
        let mut places = self.queue.places();
        places.remove(&self.place.order);
        if let Some(first) = first_of(&places, self.place.order.key) {
            let mut state = first.state();
            // It may have looked whether it leads, and not be waiting yet.
            if *state == State::Waiting {
                *state = State::ToLead;
                first.changed.notify_one();
            }
        }
    }
}

/// Calls for which a leader takes slots. Those that get none wait on.
#[derive(Debug)]
pub(crate) struct Others<'a> {
    turn: &'a Turn,
    places: Vec<Arc<Place>>,
}

impl Others<'_> {
    /// How many slots they want, all together.
    pub(crate) fn wanted(&self) -> u64 {
        self.places.iter().fold(0, |sum, place| sum.saturating_add(place.wanted))
    }

    /// Shares out a run, from its front on, and leaves the leader its part.
    pub(crate) fn share(mut self, taken: Taken) -> Taken {
        self.places.retain(|place| *place.state() != State::Left);
        if self.places.is_empty() {
            return taken;
        }
        let run = taken.run;
        let _ = LED.try_with(|led| led.set(TURNS.fetch_add(1, Ordering::Relaxed)));
        let wants = core::iter::once(&self.turn.place).chain(&self.places).map(|place| place.wanted);
        let shares = shares((run.last - run.first).saturating_add(1), &wants.collect::<Vec<_>>());
        let mut shares = shares.into_iter();
        // The leader comes first, so that it gets one at least.
        let mine = Run { last: run.first + (shares.next().unwrap_or(1).max(1) - 1), ..run };
        let mut last = mine.last;
        self.places.retain(|place| {
            let share = shares.next().unwrap_or(0);
            if share == 0 {
                return true;
            }
            let theirs = Run { first: last + 1, last: last + share, ..run };
            last = theirs.last;
            let mut state = place.state();
            if *state != State::Left {
                *state = State::Given(Taken { run: theirs, ..taken });
                place.changed.notify_one();
            }
            false
        });
        Taken { run: mine, ..taken }
    }
}

/// How many of so many slots each call gets: at most what it wants, and else as many as the others. Where there are fewer
/// slots than calls, those that come first get one.
fn shares(slots: u64, wants: &[u64]) -> Vec<u64> {
    if slots < wants.len() as u64 {
        return (0..wants.len() as u64).map(|n| u64::from(n < slots)).collect();
    }
    let mut by_wants: Vec<(usize, u64)> = wants.iter().copied().enumerate().collect();
    by_wants.sort_by_key(|(_, wanted)| *wanted);
    let mut left = slots;
    let mut shares = std::vec![0; wants.len()];
    for (calls, (n, wanted)) in (1..=wants.len() as u64).rev().zip(by_wants) {
        let share = left.div_ceil(calls).min(wanted);
        left -= share;
        if let Some(place) = shares.get_mut(n) {
            *place = share;
        }
    }
    shares
}

impl Drop for Others<'_> {
    fn drop(&mut self) {
        let mut places = self.turn.queue.places();
        for place in self.places.drain(..) {
            if *place.state() != State::Left {
                places.insert(place.order, place);
            }
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::atomic::AtomicU64;
    use loom::thread;
    use std::boxed::Box;

    /// Calls that wait until a leader has slots for them, with no clock that would wake them: a call that is not told waits for
    /// ever. Each tick has two slots.
    #[test]
    fn calls_that_wait_are_all_served_and_get_slots_of_their_own() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(|| {
            let queue: &'static Queue = Box::leak(Box::default());
            let next = Arc::new(AtomicU64::new(0));
            let call = move |next: Arc<AtomicU64>| {
                let turn = Turn::join(queue, (1, 1), 1);
                loop {
                    if let Some(taken) = turn.given() {
                        return taken.run.first;
                    }
                    if turn.is_first() {
                        let others = turn.others();
                        let count = (others.wanted() + 1).min(2);
                        let first = next.fetch_add(count, Ordering::AcqRel);
                        let run = Run { first, last: first + count - 1, rolled_back: false };
                        return others.share(Taken { run, placed_node: 0 }).run.first;
                    }
                    turn.place().wait();
                }
            };
            let threads = [(); 2].map(|()| {
                let next = Arc::clone(&next);
                thread::spawn(move || call(next))
            });
            let mut slots = [call(next); 3];
            for (slot, thread) in slots.iter_mut().zip(threads) {
                *slot = thread.join().unwrap();
            }
            slots.sort_unstable();
            assert!(slots.is_sorted_by(|a, b| a < b), "{slots:?}");
        });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::system::Process;
    use std::vec;

    const KEY: Key = (1, 1);

    fn join(key: Key, wanted: u64) -> Turn {
        Process::current().wait_for(key, wanted)
    }

    fn run(first: u64, last: u64) -> Taken {
        Taken { run: Run { first, last, rolled_back: false }, placed_node: 7 }
    }

    #[test]
    fn slots_are_shared_out_evenly_and_whole() {
        for (slots, wants, expected) in [
            (4, vec![1, 1, 1], vec![1, 1, 1]),
            (3, vec![1, 1, 1], vec![1, 1, 1]),
            (2, vec![1, 1, 1], vec![1, 1, 0]),
            (1, vec![5, 1], vec![1, 0]),
            (9, vec![100, 1, 100], vec![4, 1, 4]),
            (102, vec![1000, 1, 101], vec![50, 1, 51]),
            (102, vec![1, 200, 1], vec![1, 100, 1]),
            (u64::MAX, vec![u64::MAX, 1], vec![u64::MAX - 1, 1]),
            (1, vec![7], vec![1]),
        ] {
            assert_eq!(shares(slots, &wants), expected, "{slots} slots for {wants:?}");
        }
    }

    #[test]
    fn the_first_to_come_leads_and_serves_all_that_wait() {
        let turns = [1, 5, 1].map(|wanted| join(KEY, wanted));
        let other = join((2, 2), 1);
        assert_eq!([&turns[0], &turns[1], &turns[2], &other].map(Turn::is_first), [true, false, false, true]);
        let others = turns[0].others();
        assert_eq!(others.wanted(), 6);
        let late = join(KEY, 1);
        assert_eq!(others.share(run(100, 106)), run(100, 100));
        assert_eq!(turns[1].given(), Some(run(101, 105)));
        assert_eq!(turns[2].given(), Some(run(106, 106)));
        assert_eq!((late.given(), other.given()), (None, None));
        drop(turns);
        assert!(late.is_first());
    }

    #[test]
    fn those_that_get_none_wait_on_and_lead_before_those_that_have_led() {
        let turns = [1, 1, 1].map(|wanted| join((3, 3), wanted));
        assert_eq!(turns[0].others().share(run(7, 8)), run(7, 7));
        assert_eq!((turns[1].given(), turns[2].given()), (Some(run(8, 8)), None));
        let [first, second, third] = turns;
        drop((first, second));
        assert!(third.is_first());
        // This thread has led before, and others have not.
        let again = join((3, 3), 1);
        let order = again.place.order;
        std::thread::spawn(move || assert!(join((3, 3), 1).place.order < order)).join().unwrap();
    }

    #[test]
    fn a_call_that_has_left_gets_nothing_and_a_leader_that_fails_gives_nothing() {
        let [leader, leaves, stays] = [1, 1, 1].map(|wanted| join((4, 4), wanted));
        drop(leader.others());
        let others = leader.others();
        drop(leaves);
        assert_eq!(others.share(run(7, 8)), run(7, 7));
        assert_eq!(stays.given(), Some(run(8, 8)));
        drop(leader);
        assert!(!stays.is_first());
    }
}
