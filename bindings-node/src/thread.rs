//! Work that may wait for a network, on a thread of its own. Not on libuv's pool: a process that ends waits for what runs
//! there, and programs need it for files and names.

use std::sync::{Arc, Mutex, PoisonError};

use napi::bindgen_prelude::*;
use napi::threadsafe_function::ThreadsafeFunctionCallMode::NonBlocking;

/// Whether the environment that waits for the work has ended.
pub(crate) type IsGone<'a> = &'a dyn Fn() -> bool;

/// Calls `done` with what `work` returned. The process lives on until then, unless it is told to end.
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
    // What waits to be called back is never dropped if the environment ends before; what `into_js` holds is.
    let outcome = Arc::new(Mutex::new(None));
    let place = Arc::clone(&outcome);
    let lock = |place: &Mutex<Option<T>>| place.lock().unwrap_or_else(PoisonError::into_inner).take();
    let done = done.build_threadsafe_function::<()>().build_callback(move |call| {
        lock(&place)
            .map_or_else(|| Err(Error::from_status(Status::Closing)), |value| into_js(&call.env, value))
    })?;
    let place = Arc::downgrade(&outcome);
    drop(outcome);
    let work = move || {
        let value = work(&|| done.aborted());
        if let Some(place) = place.upgrade() {
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        }
        done.call((), NonBlocking);
    };
    let started = std::thread::Builder::new().name(name.into()).spawn(work);
    started.map(drop).map_err(|error| Error::from_reason(format!("no thread can be started: {error}")))
}
