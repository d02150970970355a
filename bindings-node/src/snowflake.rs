//! Snowflakes, as objects of closures: calling a method of a napi-rs class costs about 400 ns, a closure about 60.

use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use napi::bindgen_prelude::*;
use napi_derive::napi;
use polyflake::{BoundMove, BuiltinClock, Clock, ClockError, Number, Options, Snowflake};

use crate::errors::{CoreError, CoreErrorRef, CoreResult, Failure, call, catch, js_error, number, run};
use crate::fast::{AnyGenerator, FastCalls};
use crate::layout::{NodeTexts, node_of, pairs};
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

/// A Snowflake. Its `number` is what the fast calls know it by, as long as the object lives.
#[napi]
pub(crate) fn snowflake<'env>(
    env: &'env Env,
    core_error: CoreError<'_>,
    fast: &External<Rc<FastCalls>>,
    options: Vec<String>,
    node: Option<NodeTexts>,
    clock: Option<Function<'_, (), Option<BigInt>>>,
) -> Result<Object<'env>> {
    let options = || options_of(&options, node.as_ref());
    match clock {
        None => {
            let ids = run(env, &core_error, || {
                let options = options()?;
                #[cfg(feature = "coordination")]
                crate::lease::check_no_lease(&options)?;
                options.build()
            })?;
            NativeSnowflake::on_builtin_clock(ids, &core_error, env, fast)
        }
        Some(clock) => {
            let clock = CallersClock { env: *env, read: clock.create_ref()? };
            let ids = run(env, &core_error, || options()?.build_with_clock(clock))?;
            NativeSnowflake::new(ids, &core_error)?.object(env, fast, AnyGenerator::Callers)
        }
    }
}

/// `options`: each option's name followed by its text.
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

/// What the functions of a Snowflake share.
pub(crate) struct NativeSnowflake<C> {
    pub(crate) ids: Snowflake<C>,
    core_error: Arc<CoreErrorRef>,
    has_lease: bool,
    /// The thread that gives back the node, after `close`.
    giving_back: Mutex<Option<JoinHandle<()>>>,
}

impl NativeSnowflake<BuiltinClock> {
    pub(crate) fn on_builtin_clock<'env>(
        ids: Snowflake,
        core_error: &CoreError<'_>,
        env: &'env Env,
        fast: &Rc<FastCalls>,
    ) -> Result<Object<'env>> {
        let snowflake = Self::new(ids, core_error)?;
        let mut object = snowflake.object(env, fast, AnyGenerator::Builtin)?;
        snowflake.method(env, &mut object, "nextIdsOnThread", |this, call| {
            Ok(AsyncTask::new(Batch { snowflake: Arc::clone(this), size: call.get(0)? }))
        })?;
        Ok(object)
    }
}

impl<C: Clock + 'static> NativeSnowflake<C> {
    fn new(ids: Snowflake<C>, core_error: &CoreError<'_>) -> Result<Arc<Self>> {
        let core_error = Arc::new(core_error.create_ref()?);
        let has_lease = matches!(ids.lease(), Ok(Some(_)));
        Ok(Arc::new(Self { ids, core_error, has_lease, giving_back: Mutex::default() }))
    }

    fn object<'env>(
        self: &Arc<Self>,
        env: &'env Env,
        fast: &Rc<FastCalls>,
        any: fn(Arc<Self>) -> AnyGenerator,
    ) -> Result<Object<'env>> {
        let mut object = Object::new(env)?;
        object.set("layout", self.ids.layout().to_string())?;
        let place = fast.add(any(Arc::clone(self)));
        object.set("number", place.number())?;
        object.add_finalizer(place, (), |_| ())?;
        self.method(env, &mut object, "tryNextId", |this, call| {
            this.run(call.env, || this.ids.try_next_id())
        })?;
        self.method(env, &mut object, "fill", |this, call| this.fill(call))?;
        self.method(env, &mut object, "fillSome", |this, call| this.fill_some(call))?;
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

    fn method<R: ToNapiValue>(
        self: &Arc<Self>,
        env: &Env,
        object: &mut Object<'_>,
        name: &str,
        body: impl Fn(&Arc<Self>, &FunctionCallContext<'_>) -> Result<R> + 'static,
    ) -> Result<()> {
        let this = Arc::clone(self);
        let function = env.create_function_from_closure::<(), R, _>(name, move |call| body(&this, &call))?;
        object.set(name, function)
    }

    #[inline]
    fn run<T>(&self, env: &Env, body: impl FnOnce() -> CoreResult<T>) -> Result<T> {
        catch(body).map_err(|failure| self.error(env, failure))
    }

    fn error(&self, env: &Env, failure: Failure) -> Error {
        js_error(&self.core_error, env, failure)
    }
}

/// How many IDs are issued before they are copied to JavaScript's memory. They are not written there directly: a caller's
/// clock may take the array's memory away (`transfer`), and another thread may write to shared memory.
const CHUNK: usize = 1024;

impl<C: Clock + 'static> NativeSnowflake<C> {
    fn fill(&self, call: &FunctionCallContext<'_>) -> Result<()> {
        let mut chunk = [0; CHUNK];
        let mut at = 0;
        let mut left = call.get::<BigUint64ArraySlice<'_>>(0)?.len();
        if self.has_lease {
            // A batch has one node, and the lease may bring another between two chunks.
            let mut ids = vec![0; left];
            self.run(call.env, || self.ids.fill(&mut ids))?;
            copy(&ids, call, 0)?;
            return Ok(());
        }
        while left > 0 {
            let part = &mut chunk[..left.min(CHUNK)];
            self.run(call.env, || self.ids.fill(part))?;
            left = copy(part, call, at)?;
            at += part.len();
        }
        Ok(())
    }

    /// Returns how far the array is filled, and what to wait for: so many ms, or work on the disk.
    fn fill_some(&self, call: &FunctionCallContext<'_>) -> Result<(u32, f64, Option<AsyncTask<DiskWork>>)> {
        let from = call.get::<u32>(1)?;
        let waited_ms = call.get::<Option<f64>>(2)?;
        let mut chunk = [0; CHUNK];
        let mut at = from as usize;
        let mut left = call.get::<BigUint64ArraySlice<'_>>(0)?.len().saturating_sub(at);
        let (mut pause, mut work) = (None, None);
        while left > 0 && pause.is_none() && work.is_none() {
            let part = &mut chunk[..left.min(CHUNK)];
            let filled = self.run(call.env, || {
                let Err(blocked) = self.ids.poll_fill(part) else { return Ok(part.len()) };
                work = self.ids.bound_move(&blocked);
                if work.is_none() {
                    let nothing_yet = at == from as usize && blocked.filled() == 0;
                    let waited = waited_ms.filter(|_| nothing_yet);
                    let waited = waited.map(|ms| Duration::from_secs_f64(ms.max(0.0) / 1e3));
                    pause = Some(self.ids.pause_after(&blocked, waited)?);
                }
                Ok(blocked.filled())
            })?;
            left = copy(&part[..filled], call, at)?;
            at += filled;
        }
        let work = work.map(|bound_move| {
            AsyncTask::new(DiskWork { bound_move, core_error: Arc::clone(&self.core_error) })
        });
        Ok((u32::try_from(at).unwrap_or(u32::MAX), pause.unwrap_or_default().as_secs_f64() * 1e3, work))
    }

    /// Ends this Snowflake at once. Its node is given back on a thread, which may take as long as the store does.
    fn close(&self) {
        if let Some(give_back) = self.ids.close_later() {
            let thread = std::thread::Builder::new().name("polyflake-close".into());
            // If there is no thread, the node is kept for a TTL.
            *self.giving_back() = thread.spawn(|| give_back.run()).ok();
        }
    }

    /// Calls back when the node was given back, or cannot be; returns whether it will.
    fn when_given_back(&self, call: &FunctionCallContext<'_>) -> Result<bool> {
        let done = call.get::<Function<'_, (), ()>>(0)?;
        let Some(thread) = self.giving_back().take() else { return Ok(false) };
        let joined = move |_: IsGone<'_>| drop(thread.join());
        on_thread("polyflake-closed", &done, joined, |_, ()| Ok(()))?;
        Ok(true)
    }

    fn giving_back(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.giving_back.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Copies `ids` to the call's array from `at`, as far as they fit, and returns how much room is left after them.
pub(crate) fn copy(ids: &[u64], call: &FunctionCallContext<'_>, at: usize) -> Result<usize> {
    let target = call.get::<BigUint64ArraySlice<'_>>(0)?;
    let Some(room) = target.len().checked_sub(at) else { return Ok(0) };
    let count = ids.len().min(room);
    // SAFETY: the array has `room` words from `at`, and no JavaScript of this thread runs between asking for them and the
    // copy. `ids` is elsewhere.
    unsafe { target.as_ptr().cast_mut().add(at).copy_from_nonoverlapping(ids.as_ptr(), count) };
    Ok(room - count)
}

/// A batch on a thread of libuv's pool.
struct Batch {
    snowflake: Arc<NativeSnowflake<BuiltinClock>>,
    size: u32,
}

impl Task for Batch {
    type Output = std::result::Result<Vec<u64>, Failure>;
    type JsValue = BigUint64Array;

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(catch(|| self.snowflake.ids.next_ids(u64::from(self.size))))
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> Result<BigUint64Array> {
        output.map(BigUint64Array::new).map_err(|failure| self.snowflake.error(&env, failure))
    }
}

/// Disk work that a call waits for, on a thread of libuv's pool.
struct DiskWork {
    bound_move: BoundMove,
    core_error: Arc<CoreErrorRef>,
}

impl Task for DiskWork {
    type Output = std::result::Result<(), Failure>;
    type JsValue = ();

    fn compute(&mut self) -> Result<Self::Output> {
        Ok(catch(|| self.bound_move.run()))
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> Result<()> {
        output.map_err(|failure| js_error(&self.core_error, &env, failure))
    }
}

/// A `Reading` of `bindings-wasm/js/backend.ts`.
pub(crate) struct CallersClock {
    env: Env,
    read: FunctionRef<(), Option<BigInt>>,
}

impl Clock for CallersClock {
    fn unix_ms(&self) -> std::result::Result<i64, ClockError> {
        // In its own scope: a long batch reads the clock often, and its readings would pile up until the call ends.
        let reading = self.env.run_in_scope(|| call(&self.env, &self.read.borrow_back(&self.env)?, ()));
        match reading {
            Ok(Some(ms)) => Ok(ms.get_i64().0),
            _ => Err(ClockError::new("the clock failed")),
        }
    }
}
