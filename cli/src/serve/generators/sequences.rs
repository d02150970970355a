//! Sequences: a count for each of many keys. One server at a time issues the numbers, and the others stand
//! by.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use polyflake::ErrorCode;
use polyflake_coordination::{Sequences, SequencesOptions};

use super::{Generator, Ids, Later, Made, Options};
use crate::serve::error::Error;

struct Keys {
    options: SequencesOptions,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Calls within this time receive the same answer, since asking the store may take a long time.
const TRY_EVERY: Duration = Duration::from_secs(1);
/// How long a call waits for the lease. A thread may wait much longer.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

enum State {
    /// Another process holds the lease, or the store is not answering. A later call tries again.
    Waiting(Option<(Instant, Error)>),
    /// A thread is waiting for the lease. Holds the last error from before the thread started.
    Opening(Option<Error>),
    Open(Arc<Sequences>),
    Closed,
}

pub(super) fn make(options: &Options) -> Result<Made, Error> {
    let mut builder = SequencesOptions::new(options.name());
    builder.check()?;
    let mut has_store = false;
    for (name, values) in options.all() {
        let [value] = values else { return Err(Error::option(name, "it takes one value")) };
        has_store |= name == "store";
        builder = builder.set(name, value);
        builder.check().map_err(|error| Error::from(error).about_option(name))?;
    }
    if !has_store {
        builder = builder.store(&options.store()?);
    }
    Ok(Made::new(move || {
        let state = Mutex::new(State::Waiting(None));
        let keys = Keys { options: builder, shared: Arc::new(Shared { state, changed: Condvar::new() }) };
        match keys.open() {
            // Stand by, so that either of two servers can be stopped at any time.
            Err(error) if error.code() != ErrorCode::LeaseUnavailable => return Err(error),
            Err(error) => tracing::warn!(kind = "standing_by", "{error}"),
            Ok(_) => {}
        }
        Ok(Box::new(keys))
    }))
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs on a thread, and waits for the lease.
    fn open(&self, options: &SequencesOptions) {
        let opened = options.open();
        let mut state = self.state();
        match (&*state, opened) {
            (State::Closed, Ok(opened)) => {
                drop(state);
                opened.close();
            }
            (State::Closed, Err(_)) => {}
            (_, Ok(opened)) => *state = State::Open(Arc::new(opened)),
            (_, Err(error)) => *state = State::Waiting(Some((Instant::now(), error.into()))),
        }
        self.changed.notify_all();
    }
}

impl Keys {
    /// The sequences, if they are open. The lock is held only briefly.
    fn present(&self) -> Option<Arc<Sequences>> {
        match &*self.shared.state() {
            State::Open(open) => Some(Arc::clone(open)),
            _ => None,
        }
    }

    fn open(&self) -> Result<Arc<Sequences>, Error> {
        let until = Instant::now() + LONGEST_WAIT;
        let mut state = self.shared.state();
        loop {
            match &*state {
                State::Open(open) => return Ok(Arc::clone(open)),
                State::Closed => return Err(Error::of(ErrorCode::Closed, "the server ends")),
                State::Waiting(Some((at, error))) if at.elapsed() < TRY_EVERY => return Err(error.clone()),
                State::Waiting(before) => {
                    let before = before.as_ref().map(|(_, error)| error.clone());
                    let (options, shared) = (self.options.clone(), Arc::clone(&self.shared));
                    let thread = std::thread::Builder::new().name("polyflake-lease".into());
                    let spawned = thread.spawn(move || shared.open(&options));
                    spawned.map_err(|error| Error::of(ErrorCode::LeaseUnavailable, error.to_string()))?;
                    *state = State::Opening(before);
                }
                State::Opening(before) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(before.clone().unwrap_or_else(waits));
                    }
                    let waited = self.shared.changed.wait_timeout(state, left);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }
}

fn waits() -> Error {
    let why = "this server is waiting for the lease: another server has it, or the store does not answer";
    Error::of(ErrorCode::LeaseUnavailable, why)
}

impl Generator for Keys {
    fn ids(&self, _: usize) -> Result<Ids, Error> {
        Err(Error::invalid("sequences need a key, such as `?key=alice` or `PF.SEQ name alice`"))
    }

    fn block(&self, n: usize) -> Result<u64, Error> {
        self.ids(n).map(|_| 0)
    }

    fn of_key(&self, key: &str) -> Result<u64, Error> {
        Ok(self.open()?.next_id(key)?)
    }

    fn try_of_key(&self, key: &str) -> Result<Option<u64>, Error> {
        let Some(open) = self.present() else { return Ok(None) };
        match open.try_next_id(key) {
            Ok(number) => Ok(Some(number)),
            Err(error) if error.code() == ErrorCode::Closed => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    fn of_key_later<'a>(&'a self, key: &'a str) -> Option<Later<'a, u64>> {
        let open = self.present()?;
        Some(Box::pin(async move { Ok(open.next_id_async(key.into()).await?) }))
    }

    fn trouble(&self) -> Option<String> {
        match &*self.shared.state() {
            State::Open(open) if open.stats().is_ok_and(|stats| stats.time_left_ms > 0) => None,
            State::Waiting(Some((_, error))) | State::Opening(Some(error)) => Some(error.to_string()),
            State::Closed => Some("it is closed".into()),
            State::Open(_) | State::Waiting(None) | State::Opening(None) => Some(waits().to_string()),
        }
    }

    fn is_only_here(&self) -> bool {
        self.present().is_some()
    }

    /// No one sends requests to a server that is standing by, so it tries to take the lease on its own.
    fn look(&self) {
        let _ = self.open();
    }

    #[allow(clippy::cast_precision_loss, reason = "for graphs")]
    fn facts(&self) -> Vec<(&'static str, f64)> {
        let Some(stats) = self.present().and_then(|open| open.stats().ok()) else { return Vec::new() };
        vec![
            ("keys", stats.keys as f64),
            ("evicted_total", stats.evicted as f64),
            ("moves_total", stats.moves as f64),
            ("waits_total", stats.waits as f64),
            ("lease_left_seconds", stats.time_left_ms as f64 / 1e3),
        ]
    }

    fn close(&self) {
        let state = std::mem::replace(&mut *self.shared.state(), State::Closed);
        if let State::Open(open) = state {
            open.close();
        }
    }
}
