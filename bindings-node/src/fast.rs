//! The calls that a program makes for every ID. They bypass napi-rs's wrappers, which allocate on every call.
//!
//! Numbers are passed in an array shared with JavaScript, because creating a bigint here costs 20 ns. All Snowflakes
//! share one instance of each function. If a call site only ever calls one native function, V8 compiles the call
//! directly; if it calls several, V8 falls back to a generic routine, which costs as much as the call.

use std::cell::RefCell;
use std::ffi::CStr;
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::slice;
use std::sync::Arc;

use napi::bindgen_prelude::*;
use napi::{JsError, check_status, sys};
use napi_derive::napi;
use polyflake::{BuiltinClock, Format};

use crate::counter::NativeCounter;
use crate::errors::{CoreError, CoreErrorRef, Failure, catch, js_error};
use crate::snowflake::{CallersClock, NativeSnowflake};

/// A Snowflake with either kind of clock, or a counter.
#[derive(Clone)]
pub(crate) enum AnyGenerator {
    Builtin(Arc<NativeSnowflake<BuiltinClock>>),
    Callers(Arc<NativeSnowflake<CallersClock>>),
    Counter(Arc<NativeCounter>),
}

impl AnyGenerator {
    #[inline(always)]
    fn next_id(&self) -> std::result::Result<u64, Failure> {
        match self {
            Self::Builtin(this) => catch(|| this.ids.next_id()),
            Self::Callers(this) => catch(|| this.ids.next_id()),
            Self::Counter(this) => catch(|| this.next_in_hand()),
        }
    }

    fn poll(&self, ids: &mut [u64], waited_ms: f64) -> std::result::Result<f64, Failure> {
        match self {
            Self::Builtin(this) => catch(|| this.poll(ids, waited_ms)),
            Self::Callers(this) => catch(|| this.poll(ids, waited_ms)),
            Self::Counter(_) => Ok(0.0),
        }
    }

    fn fill(&self, ids: &mut [u64]) -> std::result::Result<(), Failure> {
        match self {
            Self::Builtin(this) => catch(|| this.ids.fill(ids)),
            Self::Callers(this) => catch(|| this.ids.fill(ids)),
            Self::Counter(this) => catch(|| this.fill_in_hand(ids)),
        }
    }
}

/// The memory that JavaScript and the fast calls share. `js/native.ts` must match these offsets.
#[derive(Clone, Copy)]
#[repr(C)]
struct Shared {
    /// The ID that a call takes or returns.
    id: u64,
    /// The number of the Snowflake or counter to call.
    snowflake: u32,
    /// The position of the text format in `Format::ALL`.
    format: u32,
    /// How long a call to `poll` has waited. `poll` replaces it with its result.
    polled: f64,
}

/// The state behind the fast calls, for one copy of the JavaScript half on one thread.
pub(crate) struct FastCalls {
    core_error: CoreErrorRef,
    /// Points into the array that `_kept` keeps alive.
    shared: NonNull<Shared>,
    _kept: BigUint64Array,
    snowflakes: RefCell<Snowflakes>,
}

#[derive(Default)]
struct Snowflakes {
    by_number: Vec<Option<AnyGenerator>>,
    unused: Vec<u32>,
}

/// Reserves a number for a Snowflake or counter. Dropping this releases the number.
pub(crate) struct Place {
    fast: Rc<FastCalls>,
    number: u32,
}

impl Place {
    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut snowflakes = self.fast.snowflakes.borrow_mut();
        let place = snowflakes.by_number.get_mut(self.number as usize);
        let dropped = place.and_then(Option::take);
        snowflakes.unused.push(self.number);
        // Dropping the Snowflake may re-enter this function.
        drop(snowflakes);
        drop(dropped);
    }
}

/// Creates the fast functions, which use `shared`, and the `state` to pass to the calls that create Snowflakes and
/// counters.
#[napi]
pub(crate) fn fast_calls<'env>(
    env: &'env Env,
    core_error: CoreError<'_>,
    mut shared: BigUint64Array,
) -> Result<Object<'env>> {
    // SAFETY: `js/native.ts` keeps the array to itself, and no JavaScript runs while `words` is in use.
    let words = unsafe { shared.as_mut() };
    if size_of_val(words) < size_of::<Shared>() {
        return Err(Error::new(Status::InvalidArg, "the array has no room for what is shared"));
    }
    let words = NonNull::from(words).cast();
    let core_error = core_error.create_ref()?;
    let fast =
        Rc::new(FastCalls { core_error, shared: words, _kept: shared, snowflakes: RefCell::default() });
    let mut object = Object::new(env)?;
    object.set("nextId", fast.function(env, c"nextId", FastCalls::next_id)?)?;
    object.set("nextIdText", fast.function(env, c"nextIdText", FastCalls::next_id_text)?)?;
    object.set("idText", fast.function(env, c"idText", FastCalls::id_text)?)?;
    object.set("fillNew", fast.function(env, c"fillNew", FastCalls::fill_new)?)?;
    object.set("poll", fast.function(env, c"poll", FastCalls::poll)?)?;
    object.set("state", External::new(fast))?;
    Ok(object)
}

type Callback = unsafe extern "C" fn(sys::napi_env, sys::napi_callback_info) -> sys::napi_value;

impl FastCalls {
    /// Assigns a number to a Snowflake or counter.
    pub(crate) fn add(self: &Rc<Self>, snowflake: AnyGenerator) -> Place {
        let mut snowflakes = self.snowflakes.borrow_mut();
        let number = snowflakes.unused.pop().unwrap_or_else(|| {
            snowflakes.by_number.push(None);
            u32::try_from(snowflakes.by_number.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(place) = snowflakes.by_number.get_mut(number as usize) {
            *place = Some(snowflake);
        }
        Place { fast: Rc::clone(self), number }
    }

    fn function<'env>(
        self: &Rc<Self>,
        env: &'env Env,
        name: &CStr,
        call: Callback,
    ) -> Result<Function<'env, (), ()>> {
        let mut function = ptr::null_mut();
        // SAFETY: the name is NUL-terminated. `call` receives the data it expects, and the function's finalizer keeps
        // that data alive for as long as the function.
        let mut function: Function<'_, (), ()> = unsafe {
            let data = Rc::as_ptr(self).cast_mut().cast();
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
        function.add_finalizer(Rc::clone(self), (), |_| ())?;
        Ok(function)
    }

    /// Returns a call's data, or throws to JavaScript and returns `None` if Node provides none. If `argument` is given,
    /// sets it to the call's first argument, or to undefined if there is none.
    ///
    /// # Safety
    /// `env` and `info` must come from Node, for a call to a function that `Self::function` created.
    #[inline(always)]
    unsafe fn of<'a>(
        env: sys::napi_env,
        info: sys::napi_callback_info,
        argument: Option<&mut sys::napi_value>,
    ) -> Option<&'a Self> {
        let (mut data, mut count) = (ptr::null_mut(), 1);
        let (count, argument): (*mut usize, *mut sys::napi_value) = match argument {
            Some(argument) => (&raw mut count, argument),
            None => (ptr::null_mut(), ptr::null_mut()),
        };
        // SAFETY: `argument` has room for one argument, or none is requested.
        unsafe {
            let status = sys::napi_get_cb_info(env, info, count, argument, ptr::null_mut(), &raw mut data);
            let this = data.cast::<Self>().as_ref().filter(|_| status == sys::Status::napi_ok);
            if this.is_none() {
                throw_lost(env);
            }
            this
        }
    }

    fn shared(&self) -> Shared {
        // SAFETY: the array keeps its memory, because nothing else can transfer it, and only this thread uses it.
        unsafe { self.shared.read() }
    }

    /// Calls the Snowflake or counter that JavaScript selected. If the call fails, throws to JavaScript and returns
    /// `None`.
    #[inline(always)]
    fn call<T>(
        &self,
        env: sys::napi_env,
        call: impl Fn(&AnyGenerator) -> std::result::Result<T, Failure>,
    ) -> Option<T> {
        let number = self.shared().snowflake as usize;
        let snowflakes = self.snowflakes.borrow();
        let Some(Some(snowflake)) = snowflakes.by_number.get(number) else {
            throw_lost(env);
            return None;
        };
        let outcome = if matches!(snowflake, AnyGenerator::Callers(_)) {
            let kept = snowflake.clone();
            drop(snowflakes);
            kept_call(&kept, call)
        } else {
            let outcome = call(snowflake);
            drop(snowflakes);
            outcome
        };
        outcome.map_err(|failure| self.throw(env, failure)).ok()
    }

    #[cold]
    fn throw(&self, env: sys::napi_env, failure: Failure) {
        let error = js_error(&self.core_error, &Env::from_raw(env), failure);
        // SAFETY: this is the call's environment.
        unsafe { JsError::from(error).throw_into(env) }
    }

    /// Takes the next ID, and writes it where JavaScript reads it.
    unsafe extern "C" fn next_id(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
        // SAFETY: Node is calling a function that `Self::function` created.
        if let Some(this) = unsafe { Self::of(env, info, None) }
            && let Some(id) = this.call(env, AnyGenerator::next_id)
        {
            // SAFETY: as in `shared`.
            unsafe { this.shared.cast().write(id) }
        }
        ptr::null_mut()
    }

    /// Returns the next ID as text.
    unsafe extern "C" fn next_id_text(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
        // SAFETY: Node is calling a function that `Self::function` created.
        let Some(this) = (unsafe { Self::of(env, info, None) }) else { return ptr::null_mut() };
        // Read before the call, because the clock may make calls that change it.
        let format = this.shared().format;
        this.call(env, AnyGenerator::next_id).map_or(ptr::null_mut(), |id| text(env, id, format))
    }

    /// Returns, as text, the ID that JavaScript wrote.
    unsafe extern "C" fn id_text(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
        // SAFETY: Node is calling a function that `Self::function` created.
        let Some(this) = (unsafe { Self::of(env, info, None) }) else { return ptr::null_mut() };
        text(env, this.shared().id, this.shared().format)
    }

    /// Fills an array that nothing else refers to, so neither another thread nor a caller's clock can touch it during
    /// the call.
    unsafe extern "C" fn fill_new(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
        let mut array = ptr::null_mut();
        // SAFETY: Node is calling a function that `Self::function` created.
        let Some(this) = (unsafe { Self::of(env, info, Some(&mut array)) }) else { return ptr::null_mut() };
        if let Some((first, length)) = words_of(env, array) {
            // SAFETY: the array belongs to this call, and has `length` words at `first`.
            this.call(env, |ids| ids.fill(unsafe { slice::from_raw_parts_mut(first.as_ptr(), length) }));
        }
        ptr::null_mut()
    }

    /// Implements `poll` from `bindings-wasm/js/backend.ts`. As in `fill_new`, nothing else may refer to the array.
    unsafe extern "C" fn poll(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
        let mut array = ptr::null_mut();
        // SAFETY: Node is calling a function that `Self::function` created.
        let Some(this) = (unsafe { Self::of(env, info, Some(&mut array)) }) else { return ptr::null_mut() };
        let waited_ms = this.shared().polled;
        if let Some((first, length)) = words_of(env, array) {
            // SAFETY: as in `fill_new`.
            let words = || unsafe { slice::from_raw_parts_mut(first.as_ptr(), length) };
            if let Some(polled) = this.call(env, |ids| ids.poll(words(), waited_ms)) {
                // SAFETY: as in `shared`, which contains the field.
                unsafe { (&raw mut (*this.shared.as_ptr()).polled).write(polled) }
            }
        }
        ptr::null_mut()
    }
}

/// Returns the address of a `BigUint64Array`'s first word, and the number of words.
fn words_of(env: sys::napi_env, array: sys::napi_value) -> Option<(NonNull<u64>, usize)> {
    let (mut kind, mut length, mut first) = (-1, 0, ptr::null_mut());
    // SAFETY: each pointer has room for its value, or is null.
    unsafe {
        sys::napi_get_typedarray_info(
            env,
            array,
            &raw mut kind,
            &raw mut length,
            &raw mut first,
            ptr::null_mut(),
            ptr::null_mut(),
        );
    }
    let first = NonNull::new(first.cast()).filter(|_| kind == sys::TypedarrayType::biguint64_array);
    first.map(|first| (first, length))
}

/// Throws an error, so that JavaScript does not mistake the previous call's ID for the result of this call.
#[cold]
fn throw_lost(env: sys::napi_env) {
    // SAFETY: this is the call's environment, and the message ends with a NUL. The code may be null.
    unsafe {
        sys::napi_throw_error(env, ptr::null(), c"the Snowflake or counter of this call is gone".as_ptr())
    };
}

/// Calls a Snowflake with a caller's clock, which may create other Snowflakes and release this one.
#[cold]
#[inline(never)]
fn kept_call<T>(
    kept: &AnyGenerator,
    call: impl Fn(&AnyGenerator) -> std::result::Result<T, Failure>,
) -> std::result::Result<T, Failure> {
    call(kept)
}

/// Returns an ID as text, in the format at the given index of `Format::ALL`.
fn text(env: sys::napi_env, id: u64, format: u32) -> sys::napi_value {
    let Some(format) = Format::ALL.get(format as usize) else { return ptr::null_mut() };
    let text = format.write(id);
    let mut value = ptr::null_mut();
    // SAFETY: the text has this length. It is ASCII, which is valid Latin-1. On failure, the value stays null.
    unsafe {
        sys::napi_create_string_latin1(env, text.as_ptr().cast(), text.len().cast_signed(), &raw mut value);
    }
    value
}
