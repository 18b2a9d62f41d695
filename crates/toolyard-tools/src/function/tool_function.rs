//! [`ToolFunction`]: the async functions that can be tools, with or without arguments and context.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use toolyard_core::{BoxFuture, RawJson, ToolError, ToolOutput};

use super::{IntoOutput, ToolContext};
use crate::arguments::{read_arguments, schema_of};

/// The outcome of a function, ready to be awaited.
pub type FunctionFuture = BoxFuture<'static, Result<ToolOutput, ToolError>>;

/// An async function that can be a tool: `async fn(Arguments) -> Output`, the same with a [`ToolContext`] as second parameter,
/// or one without parameters. `Arguments` is a struct with named fields; `Output` is anything that is [`IntoOutput`].
///
/// `Parameters` only tells the kinds of functions apart; it is inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool",
    label = "not an async function of arguments that returns an output",
    note = "a tool is `async fn(Arguments) -> Output`, `async fn(Arguments, ToolContext) -> Output` or `async fn() -> Output`",
    note = "`Arguments` needs `#[derive(Deserialize, JsonSchema)]`; the type of a closure's parameter must be written: `|args: Arguments| async move {{ … }}`",
    note = "`Output` is text, a number, `Json<T>`, `Vec<T>`, `Option<T>`, `Image`, `ToolOutput` or a `Result` of these; return other values as `Json(value)`"
)]
pub trait ToolFunction<Parameters>: Send + Sync + 'static {
    /// The JSON Schema of the arguments.
    fn input_schema() -> RawJson;

    /// The JSON Schema of the structured output, if its type has one.
    fn output_schema() -> Option<RawJson>;

    /// Calls the function. Arguments that do not fit its type never reach it.
    fn call(&self, arguments: &RawJson, context: ToolContext) -> Result<FunctionFuture, ToolError>;
}

impl<F, A, Fut> ToolFunction<(A,)> for F
where
    A: DeserializeOwned + JsonSchema,
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoOutput> + Send + 'static,
{
    fn input_schema() -> RawJson {
        schema_of::<A>()
    }

    fn output_schema() -> Option<RawJson> {
        <Fut::Output as IntoOutput>::output_schema()
    }

    fn call(&self, arguments: &RawJson, _context: ToolContext) -> Result<FunctionFuture, ToolError> {
        let output = self(read_arguments::<A>(arguments)?);
        Ok(Box::pin(async move { output.await.into_output() }))
    }
}

impl<F, A, Fut> ToolFunction<(A, ToolContext)> for F
where
    A: DeserializeOwned + JsonSchema,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoOutput> + Send + 'static,
{
    fn input_schema() -> RawJson {
        schema_of::<A>()
    }

    fn output_schema() -> Option<RawJson> {
        <Fut::Output as IntoOutput>::output_schema()
    }

    fn call(&self, arguments: &RawJson, context: ToolContext) -> Result<FunctionFuture, ToolError> {
        let output = self(read_arguments::<A>(arguments)?, context);
        Ok(Box::pin(async move { output.await.into_output() }))
    }
}

/// A function without parameters ignores its arguments.
impl<F, Fut> ToolFunction<()> for F
where
    F: Fn() -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoOutput> + Send + 'static,
{
    fn input_schema() -> RawJson {
        RawJson::from_value(&serde_json::json!({"type": "object", "properties": {}}))
    }

    fn output_schema() -> Option<RawJson> {
        <Fut::Output as IntoOutput>::output_schema()
    }

    fn call(&self, _arguments: &RawJson, _context: ToolContext) -> Result<FunctionFuture, ToolError> {
        let output = self();
        Ok(Box::pin(async move { output.await.into_output() }))
    }
}
