//! The core's errors as JavaScript errors.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use napi::bindgen_prelude::*;
use napi::{JsValue, check_status, sys};
use polyflake::ErrorCode;

type Arguments = FnArgs<(i32, &'static str, String, Either<f64, ()>, Either<f64, ()>)>;

/// `coreError` from `js/errors.ts`. Every call passes it, because an environment (the main thread or a worker thread)
/// may load the JavaScript half more than once, and each copy has a different `PolyflakeError`.
pub(crate) type CoreError<'a> = Function<'a, Arguments, Unknown<'static>>;
pub(crate) type CoreErrorRef = FunctionRef<Arguments, Unknown<'static>>;

/// The reason a call into the core failed.
pub(crate) enum Failure {
    Core(polyflake::Error),
    Panic,
}

pub(crate) type CoreResult<T> = std::result::Result<T, polyflake::Error>;

/// Calls into the core, and turns a panic into a failure.
#[inline]
pub(crate) fn catch<T>(call: impl FnOnce() -> CoreResult<T>) -> std::result::Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(call)).map_or(Err(Failure::Panic), |outcome| outcome.map_err(Failure::Core))
}

/// Like `catch`, but turns the failure into a `PolyflakeError`.
pub(crate) fn run<T>(
    env: &Env,
    core_error: &CoreError<'_>,
    body: impl FnOnce() -> CoreResult<T>,
) -> Result<T> {
    catch(body).map_err(|failure| failure.into_js(env, core_error))
}

/// Turns a failure into a `PolyflakeError`, for a call that does not have `coreError` among its arguments.
pub(crate) fn js_error(core_error: &CoreErrorRef, env: &Env, failure: Failure) -> Error {
    core_error.borrow_back(env).map_or_else(|error| error, |core_error| failure.into_js(env, &core_error))
}

impl Failure {
    /// Returns the `PolyflakeError` to throw, exactly as `coreError` created it.
    #[cold]
    pub(crate) fn into_js(self, env: &Env, core_error: &CoreError<'_>) -> Error {
        // `Error::from` would run JavaScript, and follow the entire chain of causes, no matter how long.
        self.to_unknown(env, core_error).map_or_else(|error| error, Error::from_unknown_without_coercion)
    }

    pub(crate) fn to_unknown(&self, env: &Env, core_error: &CoreError<'_>) -> Result<Unknown<'static>> {
        let (code, message, behind_ms, retry_after_ms) = match self {
            Self::Core(error) => {
                (error.code(), error.camel_case().to_string(), error.behind_ms(), error.retry_after_ms())
            }
            Self::Panic => {
                let code = ErrorCode::Internal;
                (code, format!("{code}: {}", code.message()), None, None)
            }
        };
        let ms = |ms: Option<u64>| ms.map_or(Either::B(()), |ms| Either::A(number(ms)));
        let arguments = (code.number(), code.name(), message, ms(behind_ms), ms(retry_after_ms));
        call(env, core_error, arguments.into())
    }
}

/// Calls a JavaScript function. An exception stays pending, so it reaches the caller. napi's own `call` converts the
/// exception to text, which runs more JavaScript; after a stack overflow, that fails as well, in an endless loop.
pub(crate) fn call<A: JsValuesTupleIntoVec, R: FromNapiValue>(
    env: &Env,
    function: &Function<'_, A, R>,
    arguments: A,
) -> Result<R> {
    let arguments = arguments.into_vec(env.raw())?;
    let (count, arguments) = (arguments.len(), arguments.as_ptr());
    let (mut this, mut returned) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the environment belongs to this thread, the values belong to the environment, and `arguments` holds
    // `count` of them.
    unsafe {
        check_status!(sys::napi_get_undefined(env.raw(), &raw mut this))?;
        let function = function.raw();
        check_status!(sys::napi_call_function(
            env.raw(),
            this,
            function,
            count,
            arguments,
            &raw mut returned
        ))?;
        R::from_napi_value(env.raw(), returned)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts and ms, exact to 2^53")]
pub(crate) fn number(value: u64) -> f64 {
    value as f64
}
