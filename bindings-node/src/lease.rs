//! Leased nodes, and events of leases and counters for JavaScript.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, Once, PoisonError};

use napi::bindgen_prelude::*;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode::NonBlocking};
use napi_derive::napi;
use polyflake::{Options, StdTime};
use polyflake_coordination::{Event, Leased};

use crate::counter::{Done, later};
use crate::errors::{CoreError, Failure, run};
use crate::fast::FastCalls;
use crate::layout::NodeTexts;
use crate::objects;
use crate::snowflake::options_of;

/// Options, and the lease that was acquired for them. A lease that is not taken out is kept for a TTL.
pub(crate) struct Opened(RefCell<Option<(Options, Leased)>>);

/// Acquires a lease, and then calls `done` with an error, or with what `snowflake_on_lease` takes.
#[napi]
pub(crate) fn lease(
    env: &Env,
    core_error: CoreError<'_>,
    options: Vec<String>,
    node: Option<NodeTexts>,
    done: Done<'_, External<Opened>>,
) -> Result<()> {
    let options = run(env, &core_error, || options_of(&options, node.as_ref()))?;
    let core_error = core_error.create_ref()?;
    let acquire = async move {
        let leased = polyflake_coordination::lease_async(&options).await?;
        Ok((options, leased))
    };
    let opened = |opened| External::new(Opened(RefCell::new(Some(opened))));
    later(Arc::new(core_error), &done, acquire, opened)
}

/// The Snowflake for an acquired lease.
#[napi]
pub(crate) fn snowflake_on_lease<'env>(
    env: &'env Env,
    core_error: CoreError<'_>,
    fast: &External<Rc<FastCalls>>,
    opened: &External<Opened>,
) -> Result<Object<'env>> {
    let Some((options, leased)) = opened.0.borrow_mut().take() else {
        return Err(Failure::Panic.into_js(env, &core_error));
    };
    let ids = run(env, &core_error, || options.build_on_lease(leased.lease(), StdTime, |clock| clock))?;
    objects::on_builtin_clock(ids, &core_error, env, fast)
}

#[napi(object, object_from_js = false)]
pub(crate) struct LeaseEvent {
    pub kind: &'static str,
    pub node: Either<f64, Null>,
    pub store: String,
    pub message: String,
    pub is_warning: bool,
}

impl From<&Event> for LeaseEvent {
    fn from(event: &Event) -> Self {
        Self {
            kind: event.kind.name(),
            node: event.node.map_or(Either::B(Null), |node| Either::A(crate::errors::number(node))),
            store: event.store.clone(),
            message: event.message.clone(),
            is_warning: event.kind.is_warning(),
        }
    }
}

/// It keeps no process alive.
type Publish = ThreadsafeFunction<LeaseEvent, (), LeaseEvent, Status, false, true>;

/// One for each main or worker thread, and for each copy of the JavaScript half there.
static PUBLISHERS: Mutex<Vec<Publish>> = Mutex::new(Vec::new());
static LISTEN: Once = Once::new();

/// Calls `publish` with this process's events of leases and counters from now on.
#[napi]
pub(crate) fn on_lease_event(
    _core_error: CoreError<'_>,
    publish: Function<'_, LeaseEvent, ()>,
) -> Result<()> {
    let publish = publish.build_threadsafe_function().weak::<true>().build()?;
    publishers().push(publish);
    LISTEN.call_once(|| polyflake_coordination::set_listener(Some(Box::new(tell))));
    Ok(())
}

/// On the keeper's thread.
fn tell(event: &Event) {
    publishers().retain(|publish| publish.call(event.into(), NonBlocking) != Status::Closing);
}

fn publishers() -> std::sync::MutexGuard<'static, Vec<Publish>> {
    PUBLISHERS.lock().unwrap_or_else(PoisonError::into_inner)
}
