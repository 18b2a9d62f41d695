//! Makes a tool of an async function; the schema comes from the type of its argument.

use std::{any::Any, fmt};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use toolyard_core::{
    BoxFuture, CallContext, Capability, ErrorKind, RawJson, Tool, ToolCallRequest, ToolError, ToolOutput,
    ToolSpec,
};

use crate::arguments::{read_arguments, schema_of};

type Call = dyn Fn(&RawJson) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send + Sync;

/// A function that can be called as a tool; made by [`function()`].
pub struct FunctionTool {
    spec: ToolSpec,
    call: Box<Call>,
}

/// A tool of an async function whose one argument is a type with named fields.
///
/// The function may answer with anything that is [`IntoOutput`]: text, a number, [`Json`] of a type of your own, a
/// [`ToolOutput`], or a `Result` of these. A panic inside the function is not caught.
pub fn function<A, F, Fut>(name: impl Into<String>, description: impl Into<String>, f: F) -> FunctionTool
where
    A: DeserializeOwned + JsonSchema,
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoOutput> + Send + 'static,
{
    FunctionTool::new(name, description, f)
}

impl FunctionTool {
    /// See [`function()`].
    pub fn new<A, F, Fut>(name: impl Into<String>, description: impl Into<String>, f: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoOutput> + Send + 'static,
    {
        let call = move |arguments: &RawJson| -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
            match read_arguments::<A>(arguments) {
                Ok(arguments) => {
                    let answer = f(arguments);
                    Box::pin(async move { answer.await.into_output() })
                }
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        };
        let spec = ToolSpec::new(name.into(), description.into()).with_input_schema(schema_of::<A>());
        Self { spec, call: Box::new(call) }
    }

    /// The same tool, declared to change nothing.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.spec.hints.read_only = Some(true);
        self
    }

    /// The same tool, declared to be repeatable without harm.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.spec.hints.idempotent = Some(true);
        self
    }

    /// The same tool with one more capability.
    #[must_use]
    pub fn capability(mut self, capability: impl Into<Capability>) -> Self {
        self.spec.capabilities.push(capability.into());
        self
    }

    /// The same tool with a name for people.
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

/// What a function may answer with.
pub trait IntoOutput {
    /// The answer of the tool.
    fn into_output(self) -> Result<ToolOutput, ToolError>;
}

/// A value that is answered as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl IntoOutput for ToolOutput {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(self)
    }
}

impl IntoOutput for String {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoOutput for &str {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text(self))
    }
}

impl IntoOutput for () {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::text("done"))
    }
}

impl IntoOutput for Value {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::json(self))
    }
}

impl<T: Serialize> IntoOutput for Json<T> {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        RawJson::from_serialize(&self.0).map(ToolOutput::json).map_err(|error| {
            ToolError::new(ErrorKind::Internal, format!("failed to write the answer: {error}"))
        })
    }
}

/// Any error can be answered with. A [`ToolError`] keeps its kind and hint.
impl<T: IntoOutput, E: fmt::Display + 'static> IntoOutput for Result<T, E> {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        match self {
            Ok(answer) => answer.into_output(),
            Err(error) => Err(match (&error as &dyn Any).downcast_ref::<ToolError>() {
                Some(known) => known.clone(),
                None => ToolError::failed(error.to_string()),
            }),
        }
    }
}

/// Read by a model as plain text (`42`, not `42.0`), by a program as a JSON value.
macro_rules! plain_values_into_output {
    ($($plain:ty)*) => {$(
        impl IntoOutput for $plain {
            fn into_output(self) -> Result<ToolOutput, ToolError> {
                let mut output = ToolOutput::text(self.to_string());
                output.structured = Some(Value::from(self)).filter(|value| !value.is_null()).map(RawJson::from);
                Ok(output)
            }
        }
    )*};
}

plain_values_into_output!(bool f32 f64 i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

#[cfg(test)]
#[path = "function_tests.rs"]
mod tests;
