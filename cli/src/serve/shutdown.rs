//! The end: a signal, then what runs is served, then leases are given back.

use std::future::pending;

use tokio::sync::watch;

use crate::failure::Failure;

/// Says when the server ends.
#[derive(Debug, Clone)]
pub(crate) struct Ending(watch::Receiver<bool>);

impl Ending {
    pub(crate) fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Waits for it.
    pub(crate) async fn begins(&mut self) {
        // It fails where the sender is gone: that is the end too.
        let _ = self.0.wait_for(|is_ending| *is_ending).await;
    }
}

/// The signals that end it. From when this is made, none ends it at once.
#[cfg(unix)]
pub(crate) struct Signals(tokio::signal::unix::Signal, tokio::signal::unix::Signal);

#[cfg(unix)]
impl Signals {
    pub(crate) fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let of = |kind| signal(kind).map_err(|error| Failure::io("signals", &error));
        Ok(Self(of(SignalKind::terminate())?, of(SignalKind::interrupt())?))
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        let came = tokio::select! { came = self.0.recv() => came, came = self.1.recv() => came };
        if came.is_none() {
            pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self)
    }

    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            pending::<()>().await;
        }
    }
}
