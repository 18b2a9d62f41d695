//! Return types of function tools.

use std::{any::Any, fmt};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use toolyard_core::{ContentBlock, ErrorKind, RawJson, ToolError, ToolOutput};

use crate::arguments::output_schema_of;

/// A value that a function tool can return.
#[diagnostic::on_unimplemented(
    message = "a function tool cannot return `{Self}`",
    label = "not an output",
    note = "return `Json(value)` for a type with `#[derive(Serialize, JsonSchema)]`",
    note = "outputs are text, numbers, booleans, `()`, `Json<T>`, `Vec<T>`, `Option<T>`, `Image`, `serde_json::Value`, `ToolOutput`, and `Result` of these"
)]
pub trait IntoOutput {
    /// Converts the value to the tool's output.
    fn into_output(self) -> Result<ToolOutput, ToolError>;

    /// The JSON Schema of the structured output. `None` if the type has none, or if it is not an object, which MCP requires.
    fn output_schema() -> Option<RawJson> {
        None
    }
}

/// Returns a serializable value as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// Returns an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    data: String,
    mime_type: String,
}

impl Image {
    /// An image from its encoded bytes, such as the contents of a PNG file.
    pub fn new(mime_type: impl Into<String>, bytes: &[u8]) -> Self {
        Self { data: STANDARD.encode(bytes), mime_type: mime_type.into() }
    }

    /// A PNG image.
    pub fn png(bytes: &[u8]) -> Self {
        Self::new("image/png", bytes)
    }
}

impl IntoOutput for Image {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        let mut output = ToolOutput::default();
        output.content.push(ContentBlock::Image { data: self.data, mime_type: self.mime_type });
        Ok(output)
    }
}

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

impl<T: Serialize + JsonSchema> IntoOutput for Json<T> {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        to_json_output(&self.0)
    }

    fn output_schema() -> Option<RawJson> {
        output_schema_of::<T>()
    }
}

/// A list is returned as JSON.
impl<T: Serialize> IntoOutput for Vec<T> {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        to_json_output(&self)
    }
}

/// `None` is returned as the text `nothing found`.
impl<T: IntoOutput> IntoOutput for Option<T> {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        match self {
            Some(output) => output.into_output(),
            None => Ok(ToolOutput::text("nothing found")),
        }
    }
}

/// Any error type can be returned. A [`ToolError`] keeps its kind and hint.
impl<T: IntoOutput, E: fmt::Display + 'static> IntoOutput for Result<T, E> {
    fn into_output(self) -> Result<ToolOutput, ToolError> {
        match self {
            Ok(output) => output.into_output(),
            Err(error) => Err(match (&error as &dyn Any).downcast_ref::<ToolError>() {
                Some(tool_error) => tool_error.clone(),
                None => ToolError::failed(error.to_string()),
            }),
        }
    }

    fn output_schema() -> Option<RawJson> {
        T::output_schema()
    }
}

fn to_json_output(value: &impl Serialize) -> Result<ToolOutput, ToolError> {
    RawJson::from_serialize(value).map(ToolOutput::json).map_err(|error| {
        ToolError::new(ErrorKind::Internal, format!("failed to serialize the output: {error}"))
    })
}

/// Text is `42` instead of `42.0`, because models read it; the structured content is the JSON value.
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
