//! Creates the JavaScript objects for Snowflakes and counters. Each object has a number that identifies it in the fast
//! calls.

use std::rc::Rc;

use napi::bindgen_prelude::*;
use napi_derive::napi;
use polyflake::{ErrorCode, Snowflake};

use crate::counter::{NativeCounter, OpenedCounter};
use crate::errors::{CoreError, run};
use crate::fast::{AnyGenerator, FastCalls};
use crate::layout::NodeTexts;
use crate::snowflake::{CallersClock, NativeSnowflake, options_of};

/// Creates a Snowflake. Its `number` identifies it in the fast calls for as long as the object lives.
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
                if options.lease_terms()?.is_some() {
                    polyflake_coordination::check_leases()?;
                    return Err(no_lease());
                }
                options.build()
            })?;
            on_builtin_clock(ids, &core_error, env, fast)
        }
        Some(clock) => {
            let clock = CallersClock { env: *env, read: clock.create_ref()? };
            let ids = run(env, &core_error, || options()?.build_with_clock(clock))?;
            let this = NativeSnowflake::new(ids, &core_error)?;
            placed(this.object(env)?, fast, AnyGenerator::Callers(this))
        }
    }
}

/// Returns the error for a constructor that would have to wait for a lease.
fn no_lease() -> polyflake::Error {
    let message = "a constructor cannot wait for a lease: use await Snowflake.open(options)";
    polyflake::Error::from_outside(ErrorCode::InvalidOption, message)
}

pub(crate) fn on_builtin_clock<'env>(
    ids: Snowflake,
    core_error: &CoreError<'_>,
    env: &'env Env,
    fast: &Rc<FastCalls>,
) -> Result<Object<'env>> {
    let this = NativeSnowflake::new(ids, core_error)?;
    let mut object = this.object(env)?;
    this.add_fill_on_thread(env, &mut object)?;
    placed(object, fast, AnyGenerator::Builtin(this))
}

/// Creates the object for an open counter. Its `number` identifies it in the fast calls for as long as the object
/// lives.
#[napi]
pub(crate) fn counter<'env>(
    env: &'env Env,
    core_error: CoreError<'_>,
    fast: &External<Rc<FastCalls>>,
    opened: &External<OpenedCounter>,
) -> Result<Object<'env>> {
    let this = NativeCounter::new(opened, &core_error)?;
    placed(this.object(env)?, fast, AnyGenerator::Counter(this))
}

/// Assigns the object a number in the fast calls for as long as it lives.
fn placed<'env>(
    mut object: Object<'env>,
    fast: &Rc<FastCalls>,
    generator: AnyGenerator,
) -> Result<Object<'env>> {
    let place = fast.add(generator);
    object.set("number", place.number())?;
    object.add_finalizer(place, (), |_| ())?;
    Ok(object)
}
