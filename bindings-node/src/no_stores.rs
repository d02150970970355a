//! Stands in for counters and sequences in a build without the `coordination` feature.

use napi::bindgen_prelude::*;
use napi_derive::napi;
use polyflake::Error;

use crate::errors::{CoreError, run};

#[napi]
pub(crate) fn open_counter(env: &Env, core_error: CoreError<'_>) -> Result<()> {
    run(env, &core_error, || Err(Error::no_stores("counters")))
}

#[napi]
pub(crate) fn open_sequences(env: &Env, core_error: CoreError<'_>) -> Result<()> {
    run(env, &core_error, || Err(Error::no_stores("sequences")))
}

/// Does nothing, because there are no events without leases.
#[napi]
pub(crate) fn on_lease_event() {}
