//! Adds methods to JavaScript objects: closures that share a value.

use std::rc::Rc;
use std::sync::Arc;

use napi::bindgen_prelude::*;

/// A value that an object's methods share. A method's body receives the value and the call.
pub(crate) trait Methods: Clone + 'static {
    fn method<R: ToNapiValue>(
        &self,
        env: &Env,
        object: &mut Object<'_>,
        name: &str,
        body: impl Fn(&Self, &FunctionCallContext<'_>) -> Result<R> + 'static,
    ) -> Result<()> {
        let this = self.clone();
        let function = env.create_function_from_closure::<(), R, _>(name, move |call| body(&this, &call))?;
        object.set(name, function)
    }
}

impl<T: 'static> Methods for Arc<T> {}
impl<T: 'static> Methods for Rc<T> {}
