//! Public IDs, exposed as an object whose methods are closures, like sequences.

use std::rc::Rc;

use napi::bindgen_prelude::*;
use napi_derive::napi;
use polyflake::{Number, PublicIdKey, PublicIds};

use crate::errors::{CoreError, CoreErrorRef, CoreResult, catch, js_error, run};
use crate::methods::Methods as _;

/// Creates an object that encodes and decodes public IDs with the given keys.
#[napi]
pub(crate) fn public_ids<'env>(
    env: &'env Env,
    core_error: CoreError<'_>,
    keys: Vec<String>,
    prefix: String,
) -> Result<Object<'env>> {
    let ids = run(env, &core_error, || PublicIds::from_texts(&keys, &prefix))?;
    let this = Rc::new(NativePublicIds { ids, core_error: core_error.create_ref()? });
    let mut object = Object::new(env)?;
    object.set("keyNumbers", this.ids.key_numbers().map(u32::from).collect::<Vec<_>>())?;
    this.method(env, &mut object, "encode", |this, call| {
        let (_, id, _) = call.get::<BigInt>(0)?.get_u64();
        Ok(this.ids.encode(id).to_string())
    })?;
    this.method(env, &mut object, "encodeText", |this, call| {
        let id = call.get::<String>(0)?;
        this.run(call.env, || Ok(this.ids.encode(Number::parse(&id).to_id()?).to_string()))
    })?;
    this.method(env, &mut object, "decode", |this, call| {
        let text = call.get::<String>(0)?;
        this.run(call.env, || this.ids.decode(&text))
    })?;
    Ok(object)
}

/// Generates a random key with the given number.
#[napi]
pub(crate) fn generate_public_key(env: &Env, core_error: CoreError<'_>, number: String) -> Result<String> {
    run(env, &core_error, || Ok(PublicIdKey::generate(Number::parse(&number))?.to_text().as_str().to_owned()))
}

/// The state shared by the functions of a public-ID object.
struct NativePublicIds {
    ids: PublicIds,
    core_error: CoreErrorRef,
}

impl NativePublicIds {
    fn run<T>(&self, env: &Env, body: impl FnOnce() -> CoreResult<T>) -> Result<T> {
        catch(body).map_err(|failure| js_error(&self.core_error, env, failure))
    }
}
