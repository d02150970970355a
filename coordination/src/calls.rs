//! Runs waiting calls on one shared thread, for bindings to languages that await calls. A waiting call then
//! blocks neither the caller's thread nor a thread created just for it.

use core::pin::pin;
use core::time::Duration;

use polyflake::{Error, ErrorCode};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;

use crate::keeper::{Call, Keeper, start_thread};
use crate::watched::lock;

/// The interval at which a call checks whether anything is still waiting for it.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Runs a call on the thread for waiting calls, then passes the result to `done`. The result is `None` if the
/// call panics, or if `is_gone` returns true because nothing is waiting for the call any more. A slow `done`
/// delays other calls, but not leases.
///
/// # Errors
///
/// Returns `internal` if the thread cannot be started.
#[doc(hidden)]
pub fn spawn<T: Send + 'static>(
    call: impl Future<Output = T> + Send + 'static,
    is_gone: impl Fn() -> bool + Send + 'static,
    done: impl FnOnce(Option<T>) + Send + 'static,
) -> Result<(), Error> {
    let call = async move {
        let mut call = pin!(call);
        loop {
            match timeout(LOOK_EVERY, &mut call).await {
                Ok(value) => return Some(value),
                Err(_) if is_gone() => return None,
                Err(_) => {}
            }
        }
    };
    let call: Call = Box::pin(async { done(tokio::spawn(call).await.ok().flatten()) });
    let mut calls = lock(&Keeper::of_this_process().calls);
    let call = match &*calls {
        // The thread runs until the process exits, unless `done` panics.
        Some(sender) => match sender.send(call) {
            Ok(()) => return Ok(()),
            Err(unsent) => unsent.0,
        },
        None => call,
    };
    let (sender, receiver) = unbounded_channel();
    let _ = sender.send(call);
    let started = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .and_then(|runtime| start_thread("polyflake-calls", move || runtime.block_on(run(receiver))));
    let failed = |error| {
        let why = format!("cannot start a thread for waiting calls: {error}");
        Error::from_outside(ErrorCode::Internal, &why)
    };
    started.map_err(failed)?;
    *calls = Some(sender);
    Ok(())
}

async fn run(mut receiver: UnboundedReceiver<Call>) {
    while let Some(call) = receiver.recv().await {
        tokio::spawn(call);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn waited_for() -> bool {
        false
    }

    #[test]
    fn a_call_that_waits_holds_no_other_up() {
        let (sender, receiver) = channel();
        let (release, released) = tokio::sync::oneshot::channel();
        let told = sender.clone();
        let done = move |outcome: Option<Result<_, _>>| told.send(outcome.and_then(Result::ok)).unwrap();
        spawn(released, waited_for, done).unwrap();
        spawn(async { 1 }, waited_for, move |outcome| sender.send(outcome).unwrap()).unwrap();
        assert_eq!(receiver.recv_timeout(LONG), Ok(Some(1)));
        release.send(2).unwrap();
        assert_eq!(receiver.recv_timeout(LONG), Ok(Some(2)));
    }

    #[test]
    fn one_that_panics_is_told_and_others_go_on() {
        let (sender, receiver) = channel();
        let told = sender.clone();
        let panics = async {
            assert!(waited_for(), "on purpose");
        };
        spawn(panics, waited_for, move |outcome| told.send(outcome.is_none()).unwrap()).unwrap();
        assert_eq!(receiver.recv_timeout(LONG), Ok(true));
        spawn(async {}, waited_for, |_| panic!("on purpose, in `done`")).unwrap();
        spawn(async {}, waited_for, move |outcome| sender.send(outcome.is_some()).unwrap()).unwrap();
        assert_eq!(receiver.recv_timeout(LONG), Ok(true));
    }

    #[test]
    fn one_for_which_nobody_waits_ends() {
        let (sender, receiver) = channel();
        let done = move |outcome: Option<()>| sender.send(outcome).unwrap();
        spawn(std::future::pending(), || true, done).unwrap();
        assert_eq!(receiver.recv_timeout(LONG), Ok(None));
    }
}
