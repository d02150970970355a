//! Counters, exposed as objects whose methods are closures, like Snowflakes. A single thread awaits all calls that wait
//! for a store, and then calls back.

use std::sync::Arc;

use napi::bindgen_prelude::*;
use napi_derive::napi;
use polyflake::Number;
use polyflake_coordination::{Counter, CounterOptions};

use crate::errors::{CoreError, CoreErrorRef, CoreResult, Failure, catch, js_error, number};
use crate::layout::pairs;
use crate::methods::Methods as _;
use crate::snowflake::copy;
use crate::thread::{IsGone, awaited, on_thread};

/// A JavaScript callback, which takes an error or the result.
pub(crate) type Done<'a, R> = Function<'a, Outcome<R>, ()>;
pub(crate) type Outcome<R> = FnArgs<(Either<Unknown<'static>, ()>, Option<R>)>;

#[napi(object, object_from_js = false)]
pub(crate) struct CounterStats {
    pub in_hand: f64,
    pub step: f64,
    pub segments: f64,
    pub skipped: f64,
    pub waits: f64,
}

/// An open counter, which JavaScript passes on to `counter` in `objects.rs`.
pub(crate) struct OpenedCounter(Arc<Counter>);

/// Opens a counter, then calls `done` with an error or with an `OpenedCounter`.
#[napi]
pub(crate) fn open_counter(
    core_error: CoreError<'_>,
    name: String,
    options: Vec<String>,
    done: Done<'_, External<OpenedCounter>>,
) -> Result<()> {
    let core_error = core_error.create_ref()?;
    let open = async move {
        let options = pairs(&options)
            .fold(CounterOptions::new(&name), |options, (name, value)| options.set_camel_case(name, value));
        options.open_async().await
    };
    let opened = |counter| External::new(OpenedCounter(Arc::new(counter)));
    later(Arc::new(core_error), &done, open, opened)
}

/// The state that a counter's functions share.
pub(crate) struct NativeCounter {
    counter: Arc<Counter>,
    core_error: Arc<CoreErrorRef>,
}

impl NativeCounter {
    pub(crate) fn new(opened: &OpenedCounter, core_error: &CoreError<'_>) -> Result<Arc<Self>> {
        let core_error = Arc::new(core_error.create_ref()?);
        Ok(Arc::new(Self { counter: Arc::clone(&opened.0), core_error }))
    }

    pub(crate) fn object<'env>(self: &Arc<Self>, env: &'env Env) -> Result<Object<'env>> {
        let mut object = Object::new(env)?;
        object.set("name", self.counter.name())?;
        self.method(env, &mut object, "take", |this, _| Ok(this.counter.try_next_id().ok()))?;
        self.method(env, &mut object, "fill", |this, call| this.fill(call))?;
        self.method(env, &mut object, "stats", |this, call| this.stats(call.env))?;
        self.method(env, &mut object, "fillLater", |this, call| this.fill_later(call))?;
        self.method(env, &mut object, "nextBlock", |this, call| {
            let n = call.get::<String>(0)?;
            this.later(
                call,
                1,
                move |counter| async move { counter.next_block_async(Number::parse(&n)).await },
            )
        })?;
        self.method(env, &mut object, "peek", |this, call| {
            this.later(call, 0, |counter| async move { counter.peek_async().await })
        })?;
        self.method(env, &mut object, "raise", |this, call| {
            let to = call.get::<String>(0)?;
            this.later(call, 1, move |counter| async move { counter.raise_async(Number::parse(&to)).await })
        })?;
        self.method(env, &mut object, "remove", |this, call| {
            this.later(call, 0, |counter| async move { counter.remove_async().await })
        })?;
        self.method(env, &mut object, "close", |this, call| this.close(call))?;
        Ok(object)
    }

    /// Starts a call that waits for the store, and passes its result to the callback, which is the call's argument at
    /// index `done`.
    fn later<R: ToNapiValue + Send + 'static, F: Future<Output = CoreResult<R>> + Send + 'static>(
        &self,
        call: &FunctionCallContext<'_>,
        done: usize,
        asked: impl FnOnce(Arc<Counter>) -> F,
    ) -> Result<()> {
        let done = call.get::<Done<'_, R>>(done)?;
        later(Arc::clone(&self.core_error), &done, asked(Arc::clone(&self.counter)), |value| value)
    }

    /// Returns the next number in hand.
    pub(crate) fn next_in_hand(&self) -> CoreResult<u64> {
        self.counter.try_next_id()
    }

    /// Fills an array with numbers in hand.
    pub(crate) fn fill_in_hand(&self, numbers: &mut [u64]) -> CoreResult<()> {
        self.counter.try_fill(numbers)
    }

    fn fill(&self, call: &FunctionCallContext<'_>) -> Result<()> {
        let mut numbers = vec![0; call.get::<BigUint64ArraySlice<'_>>(0)?.len()];
        catch(|| self.fill_in_hand(&mut numbers)).map_err(|failure| self.error(call.env, failure))?;
        copy(&numbers, call, 0)?;
        Ok(())
    }

    fn fill_later(&self, call: &FunctionCallContext<'_>) -> Result<()> {
        let size = call.get::<u32>(0)? as usize;
        let done = call.get::<Done<'_, BigUint64Array>>(1)?;
        let counter = Arc::clone(&self.counter);
        let fill = async move {
            let mut numbers = vec![0; size];
            counter.fill_async(&mut numbers).await?;
            Ok(numbers)
        };
        later(Arc::clone(&self.core_error), &done, fill, BigUint64Array::new)
    }

    fn stats(&self, env: &Env) -> Result<CounterStats> {
        let stats = catch(|| self.counter.stats()).map_err(|failure| self.error(env, failure))?;
        Ok(CounterStats {
            in_hand: number(stats.in_hand),
            step: number(stats.step),
            segments: number(stats.segments),
            skipped: number(stats.skipped),
            waits: number(stats.waits),
        })
    }

    /// Closes the counter at once, and calls back when the numbers in hand have been given back or cannot be. Without a
    /// callback, the numbers are still given back, but the process is not kept alive to do so.
    fn close(&self, call: &FunctionCallContext<'_>) -> Result<()> {
        let give_back = self.counter.close_later();
        let Some(done) = call.get::<Option<Function<'_, (), ()>>>(0)? else { return Ok(()) };
        let wait = move |_: IsGone<'_>| {
            if let Some(give_back) = give_back {
                give_back.run();
            }
        };
        on_thread("polyflake-close", &done, wait, |_, ()| Ok(()))
    }

    fn error(&self, env: &Env, failure: Failure) -> Error {
        js_error(&self.core_error, env, failure)
    }
}

/// Awaits a call, then calls `done` with the outcome.
pub(crate) fn later<T: Send + 'static, R: ToNapiValue + 'static>(
    core_error: Arc<CoreErrorRef>,
    done: &Done<'_, R>,
    call: impl Future<Output = CoreResult<T>> + Send + 'static,
    into_js: impl Fn(T) -> R + 'static,
) -> Result<()> {
    awaited(done, call, move |env, outcome| {
        let failure = match outcome {
            Some(Ok(value)) => return Ok((Either::B(()), Some(into_js(value))).into()),
            Some(Err(error)) => Failure::Core(error),
            None => Failure::Panic,
        };
        let core_error = core_error.borrow_back(env)?;
        Ok((Either::A(failure.to_unknown(env, &core_error)?), None).into())
    })
}
