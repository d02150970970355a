//! Sequences, exposed as objects whose methods are closures, like counters (see `counter.rs`).

use std::sync::Arc;

use napi::bindgen_prelude::*;
use napi::{JsValue, ValueType};
use napi_derive::napi;
use polyflake::Number;
use polyflake_coordination::{OwnedKey as Key, SequenceKey, Sequences, SequencesOptions};

use crate::counter::{Done, later};
use crate::errors::{CoreError, CoreErrorRef, CoreResult, Failure, catch, js_error, number};
use crate::layout::pairs;
use crate::methods::Methods as _;
use crate::thread::{IsGone, on_thread};

#[napi(object, object_from_js = false)]
pub(crate) struct SequencesStats {
    pub keys: f64,
    pub evicted: f64,
    pub moves: f64,
    pub waits: f64,
    pub time_left_ms: f64,
}

/// Open sequences, which JavaScript passes on to `sequences`.
pub(crate) struct OpenedSequences(Arc<Sequences>);

/// Opens sequences, then calls `done` with an error or with an `OpenedSequences`.
#[napi]
pub(crate) fn open_sequences(
    core_error: CoreError<'_>,
    name: String,
    options: Vec<String>,
    done: Done<'_, External<OpenedSequences>>,
) -> Result<()> {
    let core_error = core_error.create_ref()?;
    let open = async move {
        let options = pairs(&options)
            .fold(SequencesOptions::new(&name), |options, (name, value)| options.set_camel_case(name, value));
        options.open_async().await
    };
    let opened = |sequences| External::new(OpenedSequences(Arc::new(sequences)));
    later(Arc::new(core_error), &done, open, opened)
}

/// Creates the object for open sequences.
#[napi]
pub(crate) fn sequences<'env>(
    env: &'env Env,
    core_error: CoreError<'_>,
    opened: &External<OpenedSequences>,
) -> Result<Object<'env>> {
    let core_error = Arc::new(core_error.create_ref()?);
    let this = Arc::new(NativeSequences { sequences: Arc::clone(&opened.0), core_error });
    let mut object = Object::new(env)?;
    object.set("name", this.sequences.name())?;
    this.method(env, &mut object, "nextId", |this, call| {
        let key = this.key(call, 0)?;
        this.run(call.env, || this.sequences.try_next_id(&key))
    })?;
    this.method(env, &mut object, "take", |this, call| {
        Ok(this.sequences.try_next_id(&this.key(call, 0)?).ok())
    })?;
    this.method(env, &mut object, "nextIds", |this, call| {
        let keys = this.keys(call, 0)?;
        this.run(call.env, || this.sequences.try_next_ids(&keys)).map(BigUint64Array::new)
    })?;
    this.method(env, &mut object, "nextIdsLater", |this, call| this.next_ids_later(call))?;
    this.method(env, &mut object, "stats", |this, call| this.stats(call.env))?;
    this.method(env, &mut object, "close", |this, call| this.close(call))?;
    Ok(object)
}

/// The state shared by the functions of a sequences object.
struct NativeSequences {
    sequences: Arc<Sequences>,
    core_error: Arc<CoreErrorRef>,
}

impl NativeSequences {
    fn key(&self, call: &FunctionCallContext<'_>, at: usize) -> Result<Key> {
        self.key_of(call.env, &call.get::<Unknown<'_>>(at)?)
    }

    fn keys(&self, call: &FunctionCallContext<'_>, at: usize) -> Result<Vec<Key>> {
        call.get::<Vec<Unknown<'_>>>(at)?.iter().map(|key| self.key_of(call.env, key)).collect()
    }

    /// Converts a key. It is a string, a safe integer or a bigint, because `js/sequences.ts` rejects anything else.
    fn key_of(&self, env: &Env, key: &Unknown<'_>) -> Result<Key> {
        match key.get_type()? {
            ValueType::Number => Ok(Key::Integer(key.coerce_to_number()?.get_int64()?.into())),
            ValueType::BigInt => {
                let digits = key.coerce_to_string()?.into_utf8()?.into_owned()?;
                let integer = self.run(env, || SequenceKey::try_from(Number::parse(&digits)))?;
                Ok(Key::Integer(integer))
            }
            _ => Ok(Key::Text(key.coerce_to_string()?.into_utf8()?.into_owned()?)),
        }
    }

    /// Takes one number per key, waiting for the store if necessary, and passes the numbers to the last argument.
    fn next_ids_later(&self, call: &FunctionCallContext<'_>) -> Result<()> {
        let keys = self.keys(call, 0)?;
        let done = call.get::<Done<'_, BigUint64Array>>(1)?;
        let sequences = Arc::clone(&self.sequences);
        let next = async move {
            let keys: Vec<SequenceKey<'_>> = keys.iter().map(Into::into).collect();
            sequences.next_ids_async(&keys).await
        };
        later(Arc::clone(&self.core_error), &done, next, BigUint64Array::new)
    }

    fn stats(&self, env: &Env) -> Result<SequencesStats> {
        let stats = self.run(env, || self.sequences.stats())?;
        Ok(SequencesStats {
            keys: number(stats.keys),
            evicted: number(stats.evicted),
            moves: number(stats.moves),
            waits: number(stats.waits),
            time_left_ms: number(stats.time_left_ms),
        })
    }

    /// Closes the sequences at once, and calls back when the lease has been given back or cannot be. Without a
    /// callback, the lease is still given back, but the process is not kept alive to do so.
    fn close(&self, call: &FunctionCallContext<'_>) -> Result<()> {
        let give_back = self.sequences.close_later();
        let Some(done) = call.get::<Option<Function<'_, (), ()>>>(0)? else { return Ok(()) };
        let wait = move |_: IsGone<'_>| {
            if let Some(give_back) = give_back {
                give_back.run();
            }
        };
        on_thread("polyflake-close", &done, wait, |_, ()| Ok(()))
    }

    #[inline]
    fn run<T>(&self, env: &Env, body: impl FnOnce() -> CoreResult<T>) -> Result<T> {
        catch(body).map_err(|failure| self.error(env, failure))
    }

    fn error(&self, env: &Env, failure: Failure) -> Error {
        js_error(&self.core_error, env, failure)
    }
}
