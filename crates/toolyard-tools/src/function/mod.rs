//! Tools made from async functions; the schema is derived from the argument type.

mod into_output;

use std::fmt;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolyard_core::{
    BoxFuture, CallContext, Capability, RawJson, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec,
};

pub use into_output::{IntoOutput, Json};

use crate::arguments::{read_arguments, schema_of};

type BoxedFunction = dyn Fn(&RawJson) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// A tool that calls a function; made by [`function()`].
pub struct FunctionTool {
    spec: ToolSpec,
    call: Box<BoxedFunction>,
}

/// Makes a tool from an async function whose argument is a struct with named fields.
///
/// The function returns anything that is [`IntoOutput`]: text, a number, [`Json`] of a serializable type, a
/// [`ToolOutput`], or a `Result` of these. A panic inside the function is not caught.
pub fn function<A, F, Fut>(name: impl Into<String>, description: impl Into<String>, f: F) -> FunctionTool
where
    A: DeserializeOwned + JsonSchema,
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoOutput> + Send + 'static,
{
    let call = move |arguments: &RawJson| -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        match read_arguments::<A>(arguments) {
            Ok(arguments) => {
                let output = f(arguments);
                Box::pin(async move { output.await.into_output() })
            }
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    };
    let spec = ToolSpec::new(name.into(), description.into()).with_input_schema(schema_of::<A>());
    FunctionTool { spec, call: Box::new(call) }
}

impl FunctionTool {
    /// Declares that the tool changes nothing.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.spec.hints.read_only = Some(true);
        self
    }

    /// Declares that repeating a call has no further effect.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.spec.hints.idempotent = Some(true);
        self
    }

    /// Adds a capability.
    #[must_use]
    pub fn capability(mut self, capability: impl Into<Capability>) -> Self {
        self.spec.capabilities.push(capability.into());
        self
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.spec.title = Some(title.into());
        self
    }
}

impl Tool for FunctionTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        (self.call)(&request.arguments)
    }
}

impl fmt::Debug for FunctionTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionTool").field("spec", &self.spec).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "function_tests.rs"]
mod tests;
