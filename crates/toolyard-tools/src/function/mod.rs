//! Tools made from async functions; the schema is derived from the argument type.

mod context;
mod into_output;
mod tool_function;

use std::fmt;

use toolyard_core::{
    BoxFuture, CallContext, Capability, RawJson, Tool, ToolCallRequest, ToolError, ToolOutput, ToolSpec,
};

pub use context::ToolContext;
pub use into_output::{Image, IntoOutput, Json};
pub use tool_function::{FunctionFuture, ToolFunction};

type BoxedFunction = dyn Fn(&RawJson, ToolContext) -> Result<FunctionFuture, ToolError> + Send + Sync;

/// A tool that calls a function; made by [`function()`].
pub struct FunctionTool {
    spec: ToolSpec,
    call: Box<BoxedFunction>,
}

/// Makes a tool from an async function.
///
/// Its parameter is a struct with named fields, from which the schema of the arguments is derived. A second parameter, a
/// [`ToolContext`], reports progress, asks the user and knows the deadline. A function may also have no parameter at all.
///
/// It returns anything that is [`IntoOutput`]: text, a number, [`Json`] of a serializable type, an [`Image`], a
/// [`ToolOutput`], or a `Result` of these. An error becomes the error of the call. A hub catches a panic and reports it as a
/// failed call.
pub fn function<Parameters>(
    name: impl Into<String>,
    description: impl Into<String>,
    f: impl ToolFunction<Parameters>,
) -> FunctionTool {
    function_tool(name.into(), description.into(), f)
}

fn function_tool<Parameters, F: ToolFunction<Parameters>>(
    name: String,
    description: String,
    f: F,
) -> FunctionTool {
    let mut spec = ToolSpec::new(name, description).with_input_schema(F::input_schema());
    spec.output_schema = F::output_schema();
    FunctionTool { spec, call: Box::new(move |arguments, context| f.call(arguments, context)) }
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
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let (context, guard) = ToolContext::new(context);
        let called = (self.call)(&request.arguments, context);
        Box::pin(async move {
            let _guard = guard;
            called?.await
        })
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
