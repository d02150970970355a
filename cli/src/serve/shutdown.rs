//! Shutdown: a signal arrives, running requests are served, then leases are given back.

#[cfg(unix)]
use std::future::poll_fn;
#[cfg(unix)]
use std::task::Poll;

use tokio::sync::watch;

use crate::failure::Failure;

/// Reports when the server is shutting down.
#[derive(Debug, Clone)]
pub(crate) struct Ending(watch::Receiver<bool>);

impl Ending {
    pub(crate) fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Waits for the shutdown to begin.
    pub(crate) async fn begins(&mut self) {
        // This fails if the sender has been dropped, which also means that the server is shutting down.
        let _ = self.0.wait_for(|is_ending| *is_ending).await;
    }
}

/// The action that a signal requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Reread the certificate and the tokens.
    Reload,
    /// Shut down, after giving load balancers time to notice.
    End,
    /// Shut down now, since someone at a terminal is waiting.
    EndNow,
}

/// The signals that the server handles. Once this exists, none of them terminates the process at once.
#[cfg(unix)]
pub(crate) struct Signals([(Asked, tokio::signal::unix::Signal); 4]);

#[cfg(unix)]
impl Signals {
    pub(crate) fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let of = |asked, kind| {
            let signal = signal(kind).map_err(|error| Failure::io("signals", &error))?;
            Ok::<_, Failure>((asked, signal))
        };
        Ok(Self([
            of(Asked::End, SignalKind::terminate())?,
            of(Asked::End, SignalKind::quit())?,
            of(Asked::EndNow, SignalKind::interrupt())?,
            of(Asked::Reload, SignalKind::hangup())?,
        ]))
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Asked {
        poll_fn(|context| {
            for (asked, signal) in &mut self.0 {
                if let Poll::Ready(Some(())) = signal.poll_recv(context) {
                    return Poll::Ready(*asked);
                }
            }
            Poll::Pending
        })
        .await
    }
}

#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn new() -> Result<Self, Failure> {
        Ok(Self)
    }

    pub(crate) async fn next(&mut self) -> Asked {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Asked::EndNow
    }
}

impl Signals {
    /// Waits for a signal to shut down, and calls `reload` for any other signal.
    pub(crate) async fn end(&mut self, reload: impl Fn()) -> Asked {
        loop {
            match self.next().await {
                Asked::Reload => reload(),
                asked => return asked,
            }
        }
    }
}
