//! Leased nodes, and the events about leases, counters and sequences that JavaScript receives.

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

/// Options, and the lease acquired with them. If no Snowflake takes the lease, its node stays reserved until the TTL
/// expires.
pub(crate) struct Opened(RefCell<Option<(Options, Leased)>>);

/// Acquires a lease, then calls `done` with an error or with an `Opened`.
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

/// Creates a Snowflake on an acquired lease.
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

/// A JavaScript callback for events. It does not keep the process alive.
type Publish = ThreadsafeFunction<LeaseEvent, (), LeaseEvent, Status, false, true>;

/// Each main or worker thread has one callback here for each copy of the JavaScript half that it loaded.
static PUBLISHERS: Mutex<Vec<Publish>> = Mutex::new(Vec::new());
static LISTEN: Once = Once::new();

/// From now on, calls `publish` with the events of all leases, counters and sequences in this process.
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

/// Runs on the keeper's thread.
fn tell(event: &Event) {
    publishers().retain(|publish| publish.call(event.into(), NonBlocking) != Status::Closing);
}

fn publishers() -> std::sync::MutexGuard<'static, Vec<Publish>> {
    PUBLISHERS.lock().unwrap_or_else(PoisonError::into_inner)
}
