//! Runs work that may wait for a network, off the event loop. It does not run on libuv's pool, because an exiting
//! process waits for work there, and programs need the pool for files and host names.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use napi::bindgen_prelude::*;
use napi::threadsafe_function::ThreadsafeFunction;
use napi::threadsafe_function::ThreadsafeFunctionCallMode::NonBlocking;

/// Returns whether the environment waiting for the work has shut down.
pub(crate) type IsGone<'a> = &'a dyn Fn() -> bool;

/// A JavaScript function to call with a value from another thread. It keeps the process alive until the call, unless
/// the process is told to exit.
struct Later<T, A: JsValuesTupleIntoVec + 'static> {
    // If the environment shuts down first, napi never drops the queued callbacks, but it does drop what `into_js`
    // holds.
    place: Weak<Mutex<Option<T>>>,
    done: Arc<ThreadsafeFunction<(), (), A, Status, false>>,
}

impl<T: Send + 'static, A: JsValuesTupleIntoVec + 'static> Later<T, A> {
    fn new(done: &Function<'_, A, ()>, into_js: impl Fn(&Env, T) -> Result<A> + 'static) -> Result<Self> {
        let outcome = Arc::new(Mutex::new(None));
        let place = Arc::downgrade(&outcome);
        let done = done.build_threadsafe_function::<()>().build_callback(move |call| {
            outcome
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take()
                .map_or_else(|| Err(Error::from_status(Status::Closing)), |value| into_js(&call.env, value))
        })?;
        Ok(Self { place, done: Arc::new(done) })
    }

    fn call(self, value: T) {
        if let Some(place) = self.place.upgrade() {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        }
        self.done.call((), NonBlocking);
    }
}

/// Runs `work` on a new thread, which it may block, then calls `done` with the result.
pub(crate) fn on_thread<T, A>(
    name: &str,
    done: &Function<'_, A, ()>,
    work: impl FnOnce(IsGone<'_>) -> T + Send + 'static,
    into_js: impl Fn(&Env, T) -> Result<A> + 'static,
) -> Result<()>
where
    T: Send + 'static,
    A: JsValuesTupleIntoVec + 'static,
{
    let later = Later::new(done, into_js)?;
    let work = move || {
        let value = work(&|| later.done.aborted());
        later.call(value);
    };
    let started = std::thread::Builder::new().name(name.into()).spawn(work);
    started.map(drop).map_err(|error| Error::from_reason(format!("cannot start a thread: {error}")))
}

/// Awaits a call that waits for a store, then calls `done` with the result. `into_js` receives `None` if the call
/// panicked. One thread serves all such calls.
pub(crate) fn awaited<T, A>(
    done: &Function<'_, A, ()>,
    call: impl Future<Output = T> + Send + 'static,
    into_js: impl Fn(&Env, Option<T>) -> Result<A> + 'static,
) -> Result<()>
where
    T: Send + 'static,
    A: JsValuesTupleIntoVec + 'static,
{
    let later = Later::new(done, into_js)?;
    let of_caller = Arc::clone(&later.done);
    let spawned = polyflake_coordination::spawn(call, move || of_caller.aborted(), |value| later.call(value));
    spawned.map_err(|error| Error::from_reason(error.to_string()))
}
