//! One thread for the calls of bindings that wait, whose languages await them: neither the caller's thread nor one for each call.

use core::pin::Pin;

use polyflake::{Error, ErrorCode};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::keeper::{Keeper, start_thread};
use crate::watched::lock;

type Call = Pin<Box<dyn Future<Output = ()> + Send>>;

/// To the thread of a process, once it has one.
pub(crate) type Calls = std::sync::Mutex<Option<UnboundedSender<Call>>>;

/// Runs a call on the thread for calls that wait, and `done` with what it gave: `None` if it panicked. What `done` does delays
/// other calls, and no lease.
///
/// # Errors
///
/// `internal` if the thread cannot be started.
#[doc(hidden)]
pub fn spawn<T: Send + 'static>(
    call: impl Future<Output = T> + Send + 'static,
    done: impl FnOnce(Option<T>) + Send + 'static,
) -> Result<(), Error> {
    let call: Call = Box::pin(async { done(tokio::spawn(call).await.ok()) });
    let mut calls = lock(&Keeper::of_this_process().calls);
    let call = match &*calls {
        // It runs as long as the process, but for a panic in `done`.
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
        let why = format!("no thread for calls that wait can be started: {error}");
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
    use std::time::Duration;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_call_that_waits_holds_no_other_up() {
        let (sender, receiver) = channel();
        let (release, released) = tokio::sync::oneshot::channel();
        let told = sender.clone();
        spawn(released, move |outcome| told.send(outcome.and_then(Result::ok)).unwrap()).unwrap();
        spawn(async { 1 }, move |outcome| sender.send(outcome).unwrap()).unwrap();
        assert_eq!(receiver.recv_timeout(LONG), Ok(Some(1)));
        release.send(2).unwrap();
        assert_eq!(receiver.recv_timeout(LONG), Ok(Some(2)));
    }

    #[test]
    fn one_that_panics_is_told_and_others_go_on() {
        let (sender, receiver) = channel();
        let told = sender.clone();
        let panics = async {
            assert!(told_nothing(), "on purpose");
        };
        spawn(panics, move |outcome| told.send(outcome.is_none()).unwrap()).unwrap();
        assert_eq!(receiver.recv_timeout(LONG), Ok(true));
        spawn(async {}, |_| panic!("on purpose, in `done`")).unwrap();
        spawn(async {}, move |outcome| sender.send(outcome.is_some()).unwrap()).unwrap();
        assert_eq!(receiver.recv_timeout(LONG), Ok(true));
    }

    fn told_nothing() -> bool {
        std::hint::black_box(false)
    }
}
