//! The core's errors as JavaScript's, and what JavaScript lends the addon.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};

use napi::bindgen_prelude::*;
use napi::{JsValue, check_status, sys};
use napi_derive::napi;
use polyflake::ErrorCode;

/// `coreError` of `js/errors.ts`.
type CoreError<'a> = FnArgs<(i32, &'a str, String, Either<f64, ()>, Either<f64, ()>)>;

/// What JavaScript lends for as long as the environment lives: every worker thread has one of its own.
struct Lent {
    core_error: FunctionRef<CoreError<'static>, Unknown<'static>>,
    /// Where `nextId` leaves its ID.
    id: BigUint64Array,
}

#[napi]
pub(crate) fn connect(
    env: &Env,
    core_error: Function<'_, CoreError<'static>, Unknown<'static>>,
    id: BigUint64Array,
) -> Result<()> {
    if id.is_empty() {
        return Err(Error::new(Status::InvalidArg, "the array has no room for an ID"));
    }
    env.set_instance_data(Lent { core_error: core_error.create_ref()?, id }, (), |_| ())
}

fn lent(env: &Env) -> Result<&Lent> {
    let missing = || Error::new(Status::GenericFailure, "connect comes first");
    env.get_instance_data::<Lent>()?.map(|lent| &*lent).ok_or_else(missing)
}

/// The place of `nextId`'s ID, which lives as long as the environment.
pub(crate) fn place_of_id(env: &Env) -> Result<NonNull<u64>> {
    Ok(NonNull::from(&lent(env)?.id[0]))
}

/// Why a call into the core gave nothing.
pub(crate) enum Failure {
    Core(polyflake::Error),
    Panic,
}

pub(crate) type CoreResult<T> = std::result::Result<T, polyflake::Error>;

/// Calls into the core; a panic in it becomes a failure.
#[inline]
pub(crate) fn catch<T>(call: impl FnOnce() -> CoreResult<T>) -> std::result::Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(call)).map_or(Err(Failure::Panic), |outcome| outcome.map_err(Failure::Core))
}

/// `catch`, with the failure as a `PolyflakeError`.
#[inline]
pub(crate) fn run<T>(env: &Env, call: impl FnOnce() -> CoreResult<T>) -> Result<T> {
    catch(call).map_err(|failure| failure.into_js(env))
}

impl Failure {
    /// The `PolyflakeError` to throw: the very object that `coreError` made.
    #[cold]
    pub(crate) fn into_js(self, env: &Env) -> Error {
        // `Error::from` would run JavaScript, and follow a chain of causes to its end, however deep.
        self.to_unknown(env).map_or_else(|error| error, Error::from_unknown_without_coercion)
    }

    fn to_unknown<'env>(&self, env: &'env Env) -> Result<Unknown<'env>> {
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
        call(env, &lent(env)?.core_error, arguments.into())
    }
}

/// Calls a JavaScript function. What it throws stays pending, and so passes through: napi's own `call` makes a text
/// of it, which runs JavaScript again, and where the stack is used up that fails again, for ever.
pub(crate) fn call<A: JsValuesTupleIntoVec, R: FromNapiValue>(
    env: &Env,
    function: &FunctionRef<A, R>,
    arguments: A,
) -> Result<R> {
    let function = function.borrow_back(env)?;
    let arguments = arguments.into_vec(env.raw())?;
    let (count, arguments) = (arguments.len(), arguments.as_ptr());
    let (mut this, mut returned) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: the environment is this thread's, and the values are its own; `arguments` has `count` of them.
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

#[expect(clippy::cast_precision_loss, reason = "counts and ms: exact to 2^53")]
pub(crate) fn number(value: u64) -> f64 {
    value as f64
}
