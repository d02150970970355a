//! Serves calls waiting for the same cursor fairly.
//!
//! One of the calls, the leader, waits for the clock. When slots become available, it takes as many as all
//! waiting calls want and gives each call its share, so no call waits for more than a tick if a tick has
//! enough slots. The leader is running at that moment and can use up the rest of the tick, so the next leader
//! is the thread that has gone longest without leading.

use core::cell::Cell;
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

/// The maximum time before a call notices that it was closed or interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// All of a process's waiting calls.
#[derive(Debug)]
pub(super) struct Queue {
    /// 0 in a child of the process.
    alive: &'static AtomicU64,
    places: Mutex<BTreeMap<Order, Arc<Place>>>,
}

/// Determines which call leads first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    /// What the call is waiting for. Calls with different keys are independent.
    key: Key,
    /// True for a polled call. Threads are ordered before polled calls, so that no thread waits for a polled
    /// call to lead. A polled call itself does not wait to be first: see [`Turn::leads_anyway`].
    is_polled: bool,
    /// When the thread last led, or 0 if it never has.
    led: u64,
    /// When the call arrived.
    came: u64,
}

/// The address of a cursor, and the address of the Snowflake whose clock the call is waiting for, or 0 for
/// the system's clock.
pub(crate) type Key = (usize, usize);

/// Counts leaders and calls.
static TURNS: AtomicU64 = AtomicU64::new(1);

std::thread_local! {
    static LED: Cell<u64> = const { Cell::new(0) };
    /// The number of waiting calls on this thread. They nest if a signal handler or a clock takes IDs.
    static WAITING: Cell<u32> = const { Cell::new(0) };
}

#[cfg(all(test, not(loom)))]
std::thread_local! {
    /// The longest time that a call on this thread has waited for a leader. Used by a test.
    pub(crate) static LONGEST_WAIT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// A waiting call.
#[derive(Debug)]
pub(crate) struct Place {
    order: Order,
    wanted: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    /// The previous leader has left, and this call is next.
    ToLead,
    Given(Taken),
    /// The slots come from a polled call. Since no thread led, this call counts as having led.
    GivenByPolled(Taken),
    Left,
}

impl Order {
    /// Returns the position before all calls that wait for `key`.
    const fn before(key: Key) -> Self {
        Self { key, is_polled: false, led: 0, came: 0 }
    }
}

impl Queue {
    pub(super) fn new(alive: &'static AtomicU64) -> Self {
        Self { alive, places: Mutex::new(BTreeMap::new()) }
    }

    /// Returns true in the process to which these calls belong.
    fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire) != 0
    }

    fn places(&self) -> MutexGuard<'_, BTreeMap<Order, Arc<Place>>> {
        lock(&self.places)
    }
}

impl Place {
    /// Waits until slots are available for this call, until it leads, or until `longest` has passed.
    pub(crate) fn wait(&self, longest: Duration) {
        let longest = longest.min(LOOK_EVERY);
        #[cfg(all(test, not(loom)))]
        LONGEST_WAIT.set(LONGEST_WAIT.get().max(longest));
        let mut state = self.state();
        if *state == State::Waiting {
            let waited = self.changed.wait_timeout(state, longest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if *state == State::ToLead {
            *state = State::Waiting;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn wanted(&self) -> u64 {
        self.wanted.load(Ordering::Relaxed)
    }
}

/// A panic cannot leave the data inconsistent, so poisoning is ignored.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn first_of(places: &BTreeMap<Order, Arc<Place>>, key: Key) -> Option<&Arc<Place>> {
    places.range(Order::before(key)..).next().map(|(_, place)| place).filter(|place| place.order.key == key)
}

/// Records that this thread has just led.
fn count_as_led() {
    let _ = LED.try_with(|led| led.set(TURNS.fetch_add(1, Ordering::Relaxed)));
}

/// Wakes the next leader: the previous one has left, or a polled call had removed this one from the queue.
fn tell_first(places: &BTreeMap<Order, Arc<Place>>, key: Key) {
    if let Some(first) = first_of(places, key) {
        let mut state = first.state();
        // It may have checked whether it leads, but not started waiting yet.
        if *state == State::Waiting {
            *state = State::ToLead;
            first.changed.notify_one();
        }
    }
}

/// A call's place in the queue, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    queue: &'static Queue,
    place: Arc<Place>,
    /// True if it may lead without being the first: it is polled, or it is nested in another call on its
    /// thread, which it must not wait for.
    leads_anyway: bool,
}

impl Turn {
    /// Adds a call that wants `wanted` slots, and that blocks its thread, to the calls waiting for the same
    /// `key`.
    pub(super) fn join(queue: &'static Queue, key: Key, wanted: u64) -> Self {
        let outer = WAITING.try_with(|waiting| waiting.replace(waiting.get() + 1)).unwrap_or(0);
        Self::new(queue, key, wanted, false, outer > 0)
    }

    /// Adds a polled call.
    pub(super) fn join_polled(queue: &'static Queue, key: Key, wanted: u64) -> Self {
        Self::new(queue, key, wanted, true, true)
    }

    fn new(queue: &'static Queue, key: Key, wanted: u64, is_polled: bool, leads_anyway: bool) -> Self {
        let led = LED.try_with(Cell::get).unwrap_or(0);
        let order = Order { key, is_polled, led, came: TURNS.fetch_add(1, Ordering::Relaxed) };
        let state = Mutex::new(State::Waiting);
        let wanted = AtomicU64::new(wanted);
        let place = Arc::new(Place { order, wanted, state, changed: Condvar::new() });
        queue.places().insert(order, Arc::clone(&place));
        Self { queue, place, leads_anyway }
    }

    /// Updates the number of wanted slots. A polled call may want more than before.
    pub(crate) fn wants(&self, wanted: u64) {
        self.place.wanted.store(wanted, Ordering::Relaxed);
    }

    /// Returns true if this call must wait for the clock while the others wait for this call.
    pub(crate) fn leads(&self) -> bool {
        self.leads_anyway || !self.queue.is_alive() || self.is_first()
    }

    fn is_first(&self) -> bool {
        first_of(&self.queue.places(), self.place.order.key)
            .is_some_and(|first| Arc::ptr_eq(first, &self.place))
    }

    /// The maximum time a leader pauses.
    pub(crate) fn longest_pause() -> Duration {
        LOOK_EVERY
    }

    /// The place where this call waits. Another thread may hold a reference to it.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the slots that a leader took for this call.
    pub(crate) fn given(&self) -> Option<Taken> {
        if !self.queue.is_alive() {
            return None;
        }
        match *self.place.state() {
            State::Given(taken) => Some(taken),
            State::GivenByPolled(taken) => {
                if !self.place.order.is_polled {
                    count_as_led();
                }
                Some(taken)
            }
            _ => None,
        }
    }

    /// Returns all other calls that are waiting now, for a leader that is about to take slots for them. Later
    /// calls are left out, because greater slots than those taken here may have been issued before they
    /// began.
    pub(crate) fn others(&self) -> Others<'_> {
        if !self.queue.is_alive() {
            return Others { turn: self, places: Vec::new() };
        }
        let key = self.place.order.key;
        let mut places = self.queue.places();
        let orders: Vec<Order> = places
            .range(Order::before(key)..)
            .map(|(order, _)| *order)
            .take_while(|order| order.key == key)
            .filter(|order| *order != self.place.order)
            .collect();
        let mut places: Vec<_> = orders.iter().filter_map(|order| places.remove(order)).collect();
        // Polling affects who leads, but not who is served first.
        places.sort_by_key(|place| (place.order.led, place.order.came));
        Others { turn: self, places }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.place.order.is_polled {
            let _ = WAITING.try_with(|waiting| waiting.set(waiting.get() - 1));
        }
        if !self.queue.is_alive() {
            return;
        }
        *self.place.state() = State::Left;
        let mut places = self.queue.places();
        places.remove(&self.place.order);
        tell_first(&places, self.place.order.key);
    }
}

/// Calls for which a leader takes slots. Calls that get none keep waiting.
#[derive(Debug)]
pub(crate) struct Others<'a> {
    turn: &'a Turn,
    places: Vec<Arc<Place>>,
}

impl Others<'_> {
    /// Returns the total number of slots that these calls want.
    pub(crate) fn wanted(&self) -> u64 {
        self.places.iter().fold(0, |sum, place| sum.saturating_add(place.wanted()))
    }

    /// Distributes a run from the front, and returns the leader's share.
    pub(crate) fn share(mut self, taken: Taken) -> Taken {
        // If a call has left since it was gathered, nobody takes its slots. The same applies in a child that
        // the clock forked when it was read.
        let is_alive = self.turn.queue.is_alive();
        self.places.retain(|place| is_alive && *place.state() != State::Left);
        if self.places.is_empty() {
            let Run { first, last, .. } = taken.run;
            let last = last.min(first.saturating_add(self.turn.place.wanted().saturating_sub(1)));
            return Taken { run: Run { last, ..taken.run }, ..taken };
        }
        let run = taken.run;
        count_as_led();
        let wants = core::iter::once(&self.turn.place).chain(&self.places).map(|place| place.wanted());
        let shares = shares((run.last - run.first).saturating_add(1), &wants.collect::<Vec<_>>());
        let mut shares = shares.into_iter();
        // The leader comes first, so that it gets at least one slot.
        let mine = Run { last: run.first + (shares.next().unwrap_or(1).max(1) - 1), ..run };
        let mut last = mine.last;
        let is_polled = self.turn.place.order.is_polled;
        self.places.retain(|place| {
            let share = shares.next().unwrap_or(0);
            if share == 0 {
                return true;
            }
            let theirs = Run { first: last + 1, last: last + share, ..run };
            last = theirs.last;
            let mut state = place.state();
            if *state != State::Left {
                let taken = Taken { run: theirs, ..taken };
                *state = if is_polled { State::GivenByPolled(taken) } else { State::Given(taken) };
                place.changed.notify_one();
            }
            false
        });
        Taken { run: mine, ..taken }
    }
}

/// Returns how many of these slots each call gets: as many as it wants, but no more than an equal share. If
/// there are fewer slots than calls, the first calls get one each.
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
        if self.places.is_empty() || !self.turn.queue.is_alive() {
            return;
        }
        let mut places = self.turn.queue.places();
        for place in self.places.drain(..) {
            if *place.state() != State::Left {
                places.insert(place.order, place);
            }
        }
        // A leading thread is itself first, but a polled call had removed the first call from the queue.
        if self.turn.leads_anyway {
            tell_first(&places, self.turn.place.order.key);
        }
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use core::mem::ManuallyDrop;
    use loom::sync::atomic::AtomicU64;
    use loom::thread;
    use std::boxed::Box;

    static ALIVE: portable_atomic::AtomicU64 = portable_atomic::AtomicU64::new(1);

    /// Takes the next slots. Each tick has two.
    fn take(turn: &Turn, next: &AtomicU64) -> u64 {
        let others = turn.others();
        let count = (others.wanted() + 1).min(2);
        let first = next.fetch_add(count, Ordering::AcqRel);
        let run = Run { first, last: first + count - 1, rolled_back: false };
        others.share(Taken { run, placed_node: 0 }).run.first
    }

    /// A call that waits until a leader has slots for it. No clock wakes it, so a call that is not notified
    /// waits forever.
    fn call(queue: &'static Queue, next: Arc<AtomicU64>) -> u64 {
        let turn = Turn::join(queue, (1, 1), 1);
        loop {
            if let Some(taken) = turn.given() {
                return taken.run.first;
            }
            if turn.is_first() {
                return take(&turn, &next);
            }
            turn.place().wait(LOOK_EVERY);
        }
    }

    /// Runs each call in its own thread, and `polled` in this one. No two calls get the same slot.
    fn all_are_served<const N: usize>(polled: fn(&Turn, &AtomicU64) -> Option<u64>) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let queue: &'static Queue = Box::leak(Box::new(Queue::new(&ALIVE)));
            let next = Arc::new(AtomicU64::new(0));
            let threads = [(); N].map(|()| {
                let next = Arc::clone(&next);
                thread::spawn(move || call(queue, next))
            });
            let turn = Turn::join_polled(queue, (1, 1), 1);
            let mine = turn.given().map(|taken| taken.run.first).or_else(|| polled(&turn, &next));
            // A call that has its slot leaves. Otherwise, the polled call stays, and is not polled again
            // while the threads wait.
            let turn = mine.is_none().then_some(turn).map(ManuallyDrop::new);
            // If a thread waits forever, no loom object may be dropped during the panic that reports it.
            drop(next);
            let mut slots: std::vec::Vec<_> = threads.map(|thread| thread.join().unwrap()).into();
            slots.extend(mine);
            slots.extend(turn.as_ref().and_then(|turn| turn.given()).map(|taken| taken.run.first));
            drop(turn.map(ManuallyDrop::into_inner));
            slots.sort_unstable();
            assert!(slots.is_sorted_by(|a, b| a < b), "{slots:?}");
            assert!(queue.places().is_empty());
        });
    }

    /// Each tick has two slots.
    #[test]
    fn calls_that_wait_are_all_served_and_get_slots_of_their_own() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.check(|| {
            let queue: &'static Queue = Box::leak(Box::new(Queue::new(&ALIVE)));
            let next = Arc::new(AtomicU64::new(0));
            let threads = [(); 2].map(|()| {
                let next = Arc::clone(&next);
                thread::spawn(move || call(queue, next))
            });
            let mut slots = [call(queue, next); 3];
            for (slot, thread) in slots.iter_mut().zip(threads) {
                *slot = thread.join().unwrap();
            }
            slots.sort_unstable();
            assert!(slots.is_sorted_by(|a, b| a < b), "{slots:?}");
        });
    }

    #[test]
    fn a_polled_call_that_finds_no_slots_keeps_nobody_waiting() {
        all_are_served::<2>(|turn, _| {
            drop(turn.others());
            None
        });
    }

    #[test]
    fn a_polled_call_that_serves_others_keeps_nobody_waiting() {
        all_are_served::<2>(|turn, next| Some(take(turn, next)));
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

    #[test]
    fn a_call_that_is_polled_leads_no_thread_and_gets_its_share() {
        let polled = Process::current().poll_for((5, 5), 2);
        let threads = [1, 1].map(|wanted| join((5, 5), wanted));
        assert_eq!([&polled, &threads[0], &threads[1]].map(Turn::is_first), [false, true, false]);
        // The polled call arrived first, and is served first after the leader.
        assert_eq!(threads[0].others().share(run(7, 9)), run(7, 7));
        assert_eq!((polled.given(), threads[1].given()), (Some(run(8, 8)), Some(run(9, 9))));
        drop(threads);
        // A polled call that is polled in time serves the others.
        let polled = Process::current().poll_for((5, 5), 2);
        let thread = join((5, 5), 1);
        assert!(polled.leads() && thread.leads());
        assert_eq!(polled.others().share(run(10, 12)), run(10, 11));
        assert_eq!(thread.given(), Some(run(12, 12)));
    }

    #[test]
    fn a_leader_whose_place_a_polled_call_had_is_told_that_it_leads() {
        let (leader, polled) = (join((7, 7), 1), Process::current().poll_for((7, 7), 1));
        let others = polled.others();
        // Meanwhile, the leader sees that it is not first, and sleeps.
        assert!(!leader.leads());
        drop(others);
        assert!(leader.leads());
        assert_eq!(*leader.place.state(), State::ToLead);
    }

    /// If such a thread did not count as having led, it would be served in every tick, and the others never.
    #[test]
    fn a_thread_that_a_polled_call_serves_counts_as_one_that_led() {
        let first = join((9, 9), 1);
        let polled = Process::current().poll_for((9, 9), 1);
        assert_eq!(polled.others().share(run(1, 2)), run(1, 1));
        assert_eq!(first.given(), Some(run(2, 2)));
        drop(first);
        let served = join((9, 9), 1);
        let waits = std::thread::spawn(|| {
            let waits = join((9, 9), 1);
            waits.is_first()
        });
        assert!(waits.join().unwrap());
        drop(served);
    }

    #[test]
    fn a_polled_call_may_want_more_than_before() {
        let polled = Process::current().poll_for((10, 10), 1);
        let other = join((10, 10), 1);
        polled.wants(3);
        assert_eq!(polled.others().share(run(1, 4)), run(1, 3));
        assert_eq!(other.given(), Some(run(4, 4)));
    }

    /// A leader has gathered others, and all of them leave before it has slots: nobody gets the rest of the
    /// run.
    #[test]
    fn a_leader_whose_others_have_left_gets_no_more_than_it_wants() {
        let [leader, leaves] = [2, 5].map(|wanted| join((8, 8), wanted));
        let others = leader.others();
        drop(leaves);
        assert_eq!(others.share(run(1, 7)), run(1, 2));
    }

    /// The child must not touch the parent's locks, because one that is held would block it forever.
    #[cfg(all(unix, not(miri)))]
    #[test]
    fn an_inherited_turn_leads_alone_and_touches_no_lock() {
        let turn = join((6, 6), 2);
        let other = join((6, 6), 1);
        // A leader whose clock forks the process.
        let others = other.others();
        let queue = turn.queue;
        let (places, state) = (queue.places(), turn.place.state());
        // SAFETY: the child only does what is tested here, and exits with `_exit`.
        #[allow(unsafe_code)]
        let child = unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(60);
                let is_alone = turn.leads()
                    && turn.given().is_none()
                    && turn.others().wanted() == 0
                    && turn.others().share(run(1, 2)) == run(1, 2)
                    && others.share(run(3, 9)) == run(3, 3);
                drop(core::ptr::read(&raw const turn));
                libc::_exit(i32::from(!is_alone))
            }
            child
        };
        drop((places, state));
        let mut status = 0;
        // SAFETY: the child belongs to this test.
        #[allow(unsafe_code)]
        unsafe {
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        }
        assert_eq!(status, 0, "the child hung or took part in its parent's queue");
    }
}
