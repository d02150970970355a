//! Snowflakes, exposed as objects whose methods are closures. Calling a closure costs about 60 ns, and calling a method
//! of a napi-rs class about 400.

use std::mem::take;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use napi::bindgen_prelude::*;
use napi_derive::napi;
use polyflake::{BuiltinClock, Clock, ClockError, Number, Options, Polled, Reservation, Snowflake, Waiting};

use crate::errors::{CoreError, CoreErrorRef, CoreResult, Failure, call, catch, js_error, number, run};
use crate::layout::{NodeTexts, node_of, pairs};
use crate::methods::Methods as _;
use crate::thread::{IsGone, on_thread};

#[napi(object, object_from_js = false)]
pub(crate) struct Stats {
    pub waits: f64,
    pub rollbacks: f64,
    pub lead_ms: f64,
    pub last_issued_ms: Either<u64, Null>,
    pub lease_losses: f64,
}

#[napi(object, object_from_js = false)]
pub(crate) struct LeaseInfo {
    pub node: f64,
    pub bound_ms: u64,
    pub left_ms: f64,
    pub store: String,
    pub state: &'static str,
}

#[napi]
pub(crate) fn batch_size(env: &Env, core_error: CoreError<'_>, n: String) -> Result<u32> {
    let n = run(env, &core_error, || polyflake::batch_size(Number::parse(&n)))?;
    Ok(u32::try_from(n).unwrap_or(u32::MAX))
}

#[napi]
pub(crate) fn reset_state(env: &Env, core_error: CoreError<'_>, path: String) -> Result<()> {
    run(env, &core_error, || polyflake::reset_state(&path))
}

/// Returns a string that identifies this library's cursors, whichever copy of the JavaScript half uses them, and a
/// warning if the process has other copies of the library. The warning is returned only once, even if several worker
/// threads call this.
#[napi]
pub(crate) fn copies() -> (String, Option<String>) {
    static IS_TOLD: AtomicBool = AtomicBool::new(false);
    let warning = polyflake::copies_warning().filter(|_| !IS_TOLD.swap(true, Ordering::Relaxed));
    (format!("{:p}", &raw const IS_TOLD), warning)
}

/// Builds options from a list that contains each option's name followed by its text.
pub(crate) fn options_of(options: &[String], node: Option<&NodeTexts>) -> CoreResult<Options> {
    let mut built = Options::default();
    for (name, value) in pairs(options) {
        built.set_camel_case(name, value)?;
    }
    Ok(match node {
        Some(node) => built.node(node_of(node)),
        None => built,
    })
}

/// The state that a Snowflake's functions share.
pub(crate) struct NativeSnowflake<C> {
    pub(crate) ids: Snowflake<C>,
    core_error: Arc<CoreErrorRef>,
    has_lease: bool,
    /// The calls that are waiting in the event loop. Together they take up one place in the queue.
    waiting: Arc<Mutex<Waiting>>,
    /// The disk work that those calls are waiting for.
    reservation: Mutex<Option<Reservation>>,
    /// The thread that gives the node back after `close`.
    giving_back: Mutex<Option<JoinHandle<()>>>,
}

impl NativeSnowflake<BuiltinClock> {
    /// Adds `fillOnThread`, which needs a clock that any thread may read.
    pub(crate) fn add_fill_on_thread(self: &Arc<Self>, env: &Env, object: &mut Object<'_>) -> Result<()> {
        self.method(env, object, "fillOnThread", |this, call| {
            let (ids, from, n) = (call.get(0)?, call.get::<u32>(1)?, call.get::<u32>(2)?);
            Ok(AsyncTask::new(Part { snowflake: Arc::clone(this), ids, from: from as usize, n: n as usize }))
        })
    }
}

impl<C: Clock + 'static> NativeSnowflake<C> {
    pub(crate) fn new(ids: Snowflake<C>, core_error: &CoreError<'_>) -> Result<Arc<Self>> {
        let core_error = Arc::new(core_error.create_ref()?);
        let has_lease = matches!(ids.lease(), Ok(Some(_)));
        Ok(Arc::new(Self {
            ids,
            core_error,
            has_lease,
            waiting: Arc::default(),
            reservation: Mutex::default(),
            giving_back: Mutex::default(),
        }))
    }

    pub(crate) fn object<'env>(self: &Arc<Self>, env: &'env Env) -> Result<Object<'env>> {
        let mut object = Object::new(env)?;
        object.set("layout", self.ids.layout().to_string())?;
        self.method(env, &mut object, "tryNextId", |this, call| {
            this.run(call.env, || this.ids.try_next_id())
        })?;
        self.method(env, &mut object, "fill", |this, call| this.fill(call))?;
        self.method(env, &mut object, "disk", |this, _| Ok(this.disk()))?;
        self.method(env, &mut object, "stats", |this, call| this.stats(call.env))?;
        self.method(env, &mut object, "node", |this, _| Ok(number(this.ids.node())))?;
        self.method(env, &mut object, "lease", |this, call| this.lease(call.env))?;
        self.method(env, &mut object, "close", |this, _| {
            this.close();
            Ok(())
        })?;
        self.method(env, &mut object, "whenGivenBack", |this, call| this.when_given_back(call))?;
        Ok(object)
    }

    #[inline]
    fn run<T>(&self, env: &Env, body: impl FnOnce() -> CoreResult<T>) -> Result<T> {
        catch(body).map_err(|failure| self.error(env, failure))
    }

    fn error(&self, env: &Env, failure: Failure) -> Error {
        js_error(&self.core_error, env, failure)
    }
}

/// The number of IDs issued before they are copied to JavaScript's memory. They are not written there directly, because
/// a caller's clock may detach the array's memory (`transfer`), and another thread may write to shared memory.
const CHUNK: usize = 1024;

impl<C: Clock + 'static> NativeSnowflake<C> {
    fn fill(&self, call: &FunctionCallContext<'_>) -> Result<()> {
        let mut chunk = [0; CHUNK];
        let mut at = 0;
        let mut left = call.get::<BigUint64ArraySlice<'_>>(0)?.len();
        if self.has_lease {
            // All IDs in a batch must have the same node, but a lease may change the node between two chunks.
            let mut ids = vec![0; left];
            self.run(call.env, || self.ids.fill(&mut ids))?;
            copy(&ids, call, 0)?;
            return Ok(());
        }
        loop {
            // An empty part is passed on too, because the core decides whether it is valid.
            let part = &mut chunk[..left.min(CHUNK)];
            self.run(call.env, || self.ids.fill(part))?;
            left = copy(part, call, at)?;
            at += part.len();
            if left == 0 {
                return Ok(());
            }
        }
    }

    /// Implements `poll` from `bindings-wasm/js/backend.ts`.
    pub(crate) fn poll(&self, ids: &mut [u64], waited_ms: f64) -> CoreResult<f64> {
        let waited = (waited_ms >= 0.0).then(|| Duration::from_secs_f64(waited_ms / 1e3));
        // The lock is not held during the call, because a caller's clock may make calls.
        let mut waiting = take(&mut *lock(&self.waiting));
        let polled = self.ids.poll_waiting(&mut waiting, ids, waited);
        *lock(&self.waiting) = waiting;
        Ok(match polled? {
            Polled::Filled(count) => number(count as u64),
            Polled::Pause(pause) => -pause.as_secs_f64() * 1e3,
            Polled::Disk(reservation) => {
                *lock(&self.reservation) = Some(reservation);
                f64::NAN
            }
        })
    }

    /// Starts the disk work that the last `poll` asked for.
    fn disk(&self) -> AsyncTask<DiskWork> {
        let reservation = lock(&self.reservation).take();
        let (waiting, core_error) = (Arc::clone(&self.waiting), Arc::clone(&self.core_error));
        AsyncTask::new(DiskWork { reservation, waiting, core_error })
    }

    /// Closes this Snowflake at once. A separate thread gives its node back, because the store may be slow to respond.
    fn close(&self) {
        if let Some(give_back) = self.ids.close_later() {
            let thread = std::thread::Builder::new().name("polyflake-close".into());
            // If no thread can be started, the node stays reserved until the TTL expires.
            *lock(&self.giving_back) = thread.spawn(|| give_back.run()).ok();
        }
    }

    /// Calls back when the node has been given back or cannot be. Returns whether it will call back.
    fn when_given_back(&self, call: &FunctionCallContext<'_>) -> Result<bool> {
        let done = call.get::<Function<'_, (), ()>>(0)?;
        let Some(thread) = lock(&self.giving_back).take() else { return Ok(false) };
        let joined = move |_: IsGone<'_>| drop(thread.join());
        on_thread("polyflake-closed", &done, joined, |_, ()| Ok(()))?;
        Ok(true)
    }

    fn lease(&self, env: &Env) -> Result<Option<LeaseInfo>> {
        let lease = self.run(env, || self.ids.lease())?;
        Ok(lease.map(|lease| LeaseInfo {
            node: number(lease.node),
            bound_ms: lease.bound_ms,
            left_ms: number(lease.left_ms),
            store: lease.store,
            state: lease.state.name(),
        }))
    }

    fn stats(&self, env: &Env) -> Result<Stats> {
        let stats = self.run(env, || self.ids.stats())?;
        Ok(Stats {
            waits: number(stats.waits),
            rollbacks: number(stats.rollbacks),
            lead_ms: number(stats.lead_ms),
            last_issued_ms: stats.last_issued_ms.map_or(Either::B(Null), Either::A),
            lease_losses: number(stats.lease_losses),
        })
    }
}

/// Copies as many of the `ids` as fit into the call's array, starting at index `at`, and returns how much room is left
/// after them.
pub(crate) fn copy(ids: &[u64], call: &FunctionCallContext<'_>, at: usize) -> Result<usize> {
    let target = call.get::<BigUint64ArraySlice<'_>>(0)?;
    let Some(room) = target.len().checked_sub(at) else { return Ok(0) };
    let count = ids.len().min(room);
    // SAFETY: the array has `room` words from `at` on, and this thread runs no JavaScript between looking up the array
    // and the copy. `ids` does not overlap it.
    unsafe { target.as_ptr().cast_mut().add(at).copy_from_nonoverlapping(ids.as_ptr(), count) };
    Ok(room - count)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Part of a batch, filled by a thread from libuv's pool.
struct Part {
    snowflake: Arc<NativeSnowflake<BuiltinClock>>,
    ids: BigUint64Array,
    from: usize,
    n: usize,
}

impl Task for Part {
    type Output = std::result::Result<(), Failure>;
    type JsValue = ();

    fn compute(&mut self) -> Result<Self::Output> {
        // SAFETY: `js/waiting.ts` keeps the array to itself until it is full, and fills one part at a time. The
        // reference keeps its memory alive, and an environment that is shutting down waits for work on the pool.
        let ids = unsafe { self.ids.as_mut() };
        let part = ids.get_mut(self.from..).unwrap_or_default();
        let n = self.n.min(part.len());
        Ok(catch(|| self.snowflake.ids.fill(part.get_mut(..n).unwrap_or_default())))
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> Result<()> {
        output.map_err(|failure| self.snowflake.error(&env, failure))
    }
}

/// Disk work that a call waits for, done on a thread from libuv's pool.
struct DiskWork {
    reservation: Option<Reservation>,
    waiting: Arc<Mutex<Waiting>>,
    core_error: Arc<CoreErrorRef>,
}

impl Task for DiskWork {
    type Output = std::result::Result<(), Failure>;
    type JsValue = ();

    fn compute(&mut self) -> Result<Self::Output> {
        let done = catch(|| self.reservation.map_or(Ok(()), Reservation::run));
        if done.is_err() {
            // The waiting calls have failed. Anything taken for them from here on would belong to other calls.
            *lock(&self.waiting) = Waiting::default();
        }
        Ok(done)
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> Result<()> {
        output.map_err(|failure| js_error(&self.core_error, &env, failure))
    }
}

/// The caller's clock: a `Reading` from `bindings-wasm/js/backend.ts`.
pub(crate) struct CallersClock {
    pub(crate) env: Env,
    pub(crate) read: FunctionRef<(), Option<BigInt>>,
}

impl Clock for CallersClock {
    fn unix_ms(&self) -> std::result::Result<i64, ClockError> {
        // In a separate scope, because a long batch reads the clock often, and the readings would otherwise pile up
        // until the call returns.
        let reading = self.env.run_in_scope(|| call(&self.env, &self.read.borrow_back(&self.env)?, ()));
        match reading {
            Ok(Some(ms)) => Ok(ms.get_i64().0),
            _ => Err(ClockError::new("the clock failed")),
        }
    }
}
