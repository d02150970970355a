//! Stands in for `engine.rs` in a build without the `engine` feature. Bindings built without stores use it:
//! opening fails, so the types it would return have no values. Every method that a binding calls is here too;
//! `make test-store-builds` finds any that are missing.

#![allow(missing_docs, clippy::missing_errors_doc, reason = "engine.rs has the documentation")]

use core::future::{Ready, ready};
use core::pin::pin;
use core::task::{Context, Poll, Waker};

use polyflake::{Error, ErrorCode, Lease, Number, Options, Snowflake, Wait};

#[path = "sequences/key.rs"]
mod key;
mod process;

pub use key::{OwnedKey, SequenceKey};
pub use process::PerProcess;

/// Declares types without values, and their methods, which can never be called.
macro_rules! without_values {
    ($($type:ident { $($name:ident $([$generic:ident: $bound:path])? ($($given:ty),*) -> $result:ty;)* })*) => {$(
        #[derive(Debug, Clone)]
        #[non_exhaustive]
        pub enum $type {}

        impl $type {$(
            pub fn $name$(<$generic: $bound>)?(&self $(, _: $given)*) -> $result {
                match *self {}
            }
        )*}
    )*};
}

/// Declares options, which are never read: opening fails regardless of their values.
macro_rules! options {
    ($($type:ident { $($name:ident($($given:ty),*))* } opens $opened:ident, $what:literal;)*) => {$(
        #[derive(Debug, Clone)]
        #[must_use]
        pub struct $type;

        impl $type {
            pub fn new(_: &str) -> Self {
                Self
            }

            $(pub fn $name(self $(, _: $given)*) -> Self {
                self
            })*

            pub fn open(&self) -> Result<$opened, Error> {
                Err(no_stores($what))
            }

            pub fn open_with<W: Wait>(&self, _: &mut W) -> Result<$opened, W::Error> {
                Err(no_stores($what).into())
            }

            pub fn open_async(&self) -> Ready<Result<$opened, Error>> {
                ready(self.open())
            }
        }
    )*};
}

without_values! {
    Counter {
        next_id() -> Result<u64, Error>;
        next_id_with[W: Wait](&mut W) -> Result<u64, W::Error>;
        next_id_async() -> Ready<Result<u64, Error>>;
        try_next_id() -> Result<u64, Error>;
        fill(&mut [u64]) -> Result<(), Error>;
        fill_with[W: Wait](&mut [u64], &mut W) -> Result<(), W::Error>;
        fill_async(&mut [u64]) -> Ready<Result<(), Error>>;
        try_fill(&mut [u64]) -> Result<(), Error>;
        next_block(impl Into<Number>) -> Result<u64, Error>;
        next_block_with[W: Wait](impl Into<Number>, &mut W) -> Result<u64, W::Error>;
        next_block_async(impl Into<Number>) -> Ready<Result<u64, Error>>;
        peek() -> Result<u64, Error>;
        peek_with[W: Wait](&mut W) -> Result<u64, W::Error>;
        peek_async() -> Ready<Result<u64, Error>>;
        raise(impl Into<Number>) -> Result<(), Error>;
        raise_with[W: Wait](impl Into<Number>, &mut W) -> Result<(), W::Error>;
        raise_async(impl Into<Number>) -> Ready<Result<(), Error>>;
        remove() -> Result<bool, Error>;
        remove_with[W: Wait](&mut W) -> Result<bool, W::Error>;
        remove_async() -> Ready<Result<bool, Error>>;
        close() -> ();
        close_later() -> Option<CounterGiveBack>;
        name() -> &'static str;
        stats() -> Result<CounterStats, Error>;
    }
    Sequences {
        next_id(impl Sized) -> Result<u64, Error>;
        next_id_with[W: Wait](impl Sized, &mut W) -> Result<u64, W::Error>;
        next_id_async(SequenceKey<'_>) -> Ready<Result<u64, Error>>;
        try_next_id(impl Sized) -> Result<u64, Error>;
        next_ids(impl IntoIterator) -> Result<Vec<u64>, Error>;
        next_ids_with[W: Wait](impl IntoIterator, &mut W) -> Result<Vec<u64>, W::Error>;
        next_ids_async(&[SequenceKey<'_>]) -> Ready<Result<Vec<u64>, Error>>;
        try_next_ids(impl IntoIterator) -> Result<Vec<u64>, Error>;
        close() -> ();
        close_later() -> Option<SequencesGiveBack>;
        name() -> &'static str;
        stats() -> Result<SequencesStats, Error>;
    }
    CounterGiveBack { run() -> (); }
    SequencesGiveBack { run() -> (); }
    Leased { lease() -> &'static Lease; }
    Kind {
        name() -> &'static str;
        is_warning() -> bool;
    }
}

options! {
    CounterOptions {
        store(&str) set(&str, &str) set_camel_case(&str, &str) auto_step()
        start(impl Into<Number>) step(impl Into<Number>) max_wait_ms(impl Into<Number>)
    } opens Counter, "counters";
    SequencesOptions {
        store(&str) set(&str, &str) set_camel_case(&str, &str)
        sections(impl Into<Number>) step(impl Into<Number>)
        max_keys(impl Into<Number>) max_wait_ms(impl Into<Number>)
    } opens Sequences, "sequences";
}

fn no_stores(what: &str) -> Error {
    let message = format!(
        "this build has no stores, and so no {what}: build it with POLYFLAKE_STORES=redis, or with others"
    );
    Error::from_outside(ErrorCode::InvalidOption, &message)
}

pub fn check_leases() -> Result<(), Error> {
    Err(no_stores("leases"))
}

pub fn open(options: &Options) -> Result<Snowflake, Error> {
    options.lease_terms()?;
    Err(no_stores("leases"))
}

pub fn lease<W: Wait>(options: &Options, _: &mut W) -> Result<Leased, W::Error> {
    options.lease_terms()?;
    Err(no_stores("leases").into())
}

pub fn lease_async(options: &Options) -> Ready<Result<Leased, Error>> {
    ready(options.lease_terms().and_then(|_| Err(no_stores("leases"))))
}

/// Runs the call on this thread: without the engine, no call waits.
pub fn spawn<T>(
    call: impl Future<Output = T>,
    _: impl Fn() -> bool,
    done: impl FnOnce(Option<T>),
) -> Result<(), Error> {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => done(Some(value)),
        Poll::Pending => done(None),
    }
    Ok(())
}

macro_rules! stats {
    ($($type:ident { $($field:ident)* })*) => {$(
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub struct $type {
            $(pub $field: u64,)*
        }
    )*};
}
stats! {
    CounterStats { in_hand step segments skipped waits }
    SequencesStats { keys evicted moves waits time_left_ms }
}

#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Event {
    pub kind: Kind,
    pub node: Option<u64>,
    pub store: String,
    pub message: String,
}

type Listener = dyn Fn(&Event) + Send + Sync;

/// Does nothing: without the engine, there are no events.
pub fn set_listener(_: Option<Box<Listener>>) {}

pub fn replace_listener(_: Option<Box<Listener>>) -> Replaced {
    Replaced
}

#[derive(Debug)]
#[must_use]
pub struct Replaced;

impl Replaced {
    pub fn wait(self) {}
}
