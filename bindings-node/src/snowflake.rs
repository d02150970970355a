//! Snowflakes, as objects of closures: calling a method of a napi-rs class costs about 400 ns, a closure about 60.

use std::ffi::CStr;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;
use std::time::Duration;

use napi::bindgen_prelude::*;
use napi::{JsError, check_status, sys};
use napi_derive::napi;
use polyflake::{BoundMove, BuiltinClock, Clock, ClockError, Number, Options, Snowflake};

use crate::errors::{CoreError, CoreErrorRef, CoreResult, Failure, call, catch, number, run};
use crate::layout::{NodeTexts, node_of, pairs};

#[napi(object, object_from_js = false)]
pub(crate) struct Stats {
    pub waits: f64,
    pub rollbacks: f64,
    pub lead_ms: f64,
    pub last_issued_ms: Either<u64, Null>,
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

/// A Snowflake whose `nextId` writes its ID into `id`.
#[napi]
pub(crate) fn snowflake<'env>(
    env: &'env Env,
    core_error: CoreError<'_>,
    id: BigUint64Array,
    options: Vec<String>,
    node: Option<NodeTexts>,
    clock: Option<Function<'_, (), Option<BigInt>>>,
) -> Result<Object<'env>> {
    let options = || -> CoreResult<Options> {
        let mut built = Options::default();
        for (name, value) in pairs(&options) {
            built.set_camel_case(name, value)?;
        }
        Ok(match &node {
            Some(node) => built.node(node_of(node)),
            None => built,
        })
    };
    match clock {
        None => {
            let ids = run(env, &core_error, || options()?.build())?;
            let snowflake = NativeSnowflake::new(ids, &core_error)?;
            let mut object = snowflake.object(env, id)?;
            snowflake.method(env, &mut object, "nextIdsOnThread", |this, call| {
                Ok(AsyncTask::new(Batch { snowflake: Arc::clone(this), size: call.get(0)? }))
            })?;
            Ok(object)
        }
        Some(clock) => {
            let clock = CallersClock { env: *env, read: clock.create_ref()? };
            let ids = run(env, &core_error, || options()?.build_with_clock(clock))?;
            NativeSnowflake::new(ids, &core_error)?.object(env, id)
        }
    }
}

/// What the functions of a Snowflake share.
struct NativeSnowflake<C> {
    ids: Snowflake<C>,
    core_error: Arc<CoreErrorRef>,
}

impl<C: Clock + 'static> NativeSnowflake<C> {
    fn new(ids: Snowflake<C>, core_error: &CoreError<'_>) -> Result<Arc<Self>> {
        Ok(Arc::new(Self { ids, core_error: Arc::new(core_error.create_ref()?) }))
    }

    fn object<'env>(self: &Arc<Self>, env: &'env Env, id: BigUint64Array) -> Result<Object<'env>> {
        let mut object = Object::new(env)?;
        object.set("layout", self.ids.layout().to_string())?;
        object.set("node", number(self.ids.node()))?;
        let fast = FastCalls::new(Arc::clone(self), id)?;
        object.set("nextId", fast.function(env, c"nextId", FastCalls::<C>::next_id)?)?;
        object.set("fillNew", fast.function(env, c"fillNew", FastCalls::<C>::fill_new)?)?;
        self.method(env, &mut object, "tryNextId", |this, call| {
            this.run(call.env, || this.ids.try_next_id())
        })?;
        self.method(env, &mut object, "fill", |this, call| this.fill(call))?;
        self.method(env, &mut object, "fillSome", |this, call| this.fill_some(call))?;
        self.method(env, &mut object, "stats", |this, call| this.stats(call.env))?;
        self.method(env, &mut object, "close", |this, _| {
            this.ids.close();
            Ok(())
        })?;
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

fn js_error(core_error: &CoreErrorRef, env: &Env, failure: Failure) -> Error {
    core_error.borrow_back(env).map_or_else(|error| error, |core_error| failure.into_js(env, &core_error))
}

/// `nextId` and `fillNew`, without napi-rs's wrappers: they write IDs where JavaScript reads them, and return nothing.
/// That is the cheapest way across, and saves 30 ns of 80: making a bigint here costs 20, and napi-rs's closures
/// allocate at every call.
struct FastCalls<C> {
    snowflake: Arc<NativeSnowflake<C>>,
    /// In the array that `_kept` keeps alive.
    place: NonNull<u64>,
    _kept: BigUint64Array,
}

impl<C: Clock + 'static> FastCalls<C> {
    fn new(snowflake: Arc<NativeSnowflake<C>>, mut id: BigUint64Array) -> Result<Arc<Self>> {
        // SAFETY: `js/native.ts` keeps it to itself, and no JavaScript runs meanwhile.
        let place = unsafe { id.as_mut() }.first_mut().map(NonNull::from);
        let place = place.ok_or_else(|| Error::new(Status::InvalidArg, "the array has no room for an ID"))?;
        Ok(Arc::new(Self { snowflake, place, _kept: id }))
    }

    fn function<'env>(
        self: &Arc<Self>,
        env: &'env Env,
        name: &CStr,
        call: unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> sys::napi_value,
    ) -> Result<Function<'env, (), ()>> {
        let mut function = ptr::null_mut();
        // SAFETY: the name is NUL-terminated, and `call` gets the data it expects, which lives as long as the function:
        // its finalizer holds it.
        let mut function: Function<'_, (), ()> = unsafe {
            let data = Arc::as_ptr(self).cast_mut().cast();
            let (name, length) = (name.as_ptr(), name.count_bytes().cast_signed());
            check_status!(sys::napi_create_function(
                env.raw(),
                name,
                length,
                Some(call),
                data,
                &raw mut function
            ))?;
            Function::from_napi_value(env.raw(), function)?
        };
        function.add_finalizer(Arc::clone(self), (), |_| ())?;
        Ok(function)
    }

    /// A call's data and its first argument.
    ///
    /// # Safety
    /// The environment and the call must be Node's, of a `function` of this type.
    unsafe fn of<'a>(
        env: sys::napi_env,
        info: sys::napi_callback_info,
    ) -> Option<(&'a Self, sys::napi_value)> {
        let (mut data, mut argument, mut count) = (ptr::null_mut(), ptr::null_mut(), 1);
        // SAFETY: there is room for one argument, which is set to undefined if there is none.
        unsafe {
            let status = sys::napi_get_cb_info(
                env,
                info,
                &raw mut count,
                &raw mut argument,
                ptr::null_mut(),
                &raw mut data,
            );
            let this = data.cast::<Self>().as_ref().filter(|_| status == sys::Status::napi_ok)?;
            Some((this, argument))
        }
    }

    #[cold]
    fn throw(&self, env: sys::napi_env, failure: Failure) {
        let error = self.snowflake.error(&Env::from_raw(env), failure);
        // SAFETY: this is the call's environment.
        unsafe { JsError::from(error).throw_into(env) }
    }

    unsafe extern "C" fn next_id(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
        // SAFETY: Node calls what `function` created.
        if let Some((this, _)) = unsafe { Self::of(env, info) } {
            match catch(|| this.snowflake.ids.next_id()) {
                // SAFETY: the array keeps its memory (nothing else can transfer it), and only this thread uses it.
                Ok(id) => unsafe { this.place.write(id) },
                Err(failure) => this.throw(env, failure),
            }
        }
        ptr::null_mut()
    }

    /// Fills an array that nothing else refers to: neither another thread nor a caller's clock can touch it meanwhile.
    unsafe extern "C" fn fill_new(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
        // SAFETY: Node calls what `function` created.
        let Some((this, array)) = (unsafe { Self::of(env, info) }) else { return ptr::null_mut() };
        let (mut kind, mut length, mut first) = (-1, 0, ptr::null_mut());
        // SAFETY: the array belongs to this call; it has `length` words at `first`, and none if that is null.
        let ids = unsafe {
            sys::napi_get_typedarray_info(
                env,
                array,
                &raw mut kind,
                &raw mut length,
                &raw mut first,
                ptr::null_mut(),
                ptr::null_mut(),
            );
            let is_ids = kind == sys::TypedarrayType::biguint64_array && !first.is_null();
            if is_ids { slice::from_raw_parts_mut(first.cast::<u64>(), length) } else { &mut [] }
        };
        if let Err(failure) = catch(|| this.snowflake.ids.fill(ids)) {
            this.throw(env, failure);
        }
        ptr::null_mut()
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

    fn stats(&self, env: &Env) -> Result<Stats> {
        let stats = self.run(env, || self.ids.stats())?;
        Ok(Stats {
            waits: number(stats.waits),
            rollbacks: number(stats.rollbacks),
            lead_ms: number(stats.lead_ms),
            last_issued_ms: stats.last_issued_ms.map_or(Either::B(Null), Either::A),
        })
    }
}

/// Copies `ids` to the call's array from `at`, as far as they fit, and returns how much room is left after them.
fn copy(ids: &[u64], call: &FunctionCallContext<'_>, at: usize) -> Result<usize> {
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
struct CallersClock {
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
