//! Return types of function tools.

use std::{any::Any, fmt};

use serde::Serialize;
use serde_json::Value;
use toolyard_core::{ErrorKind, RawJson, ToolError, ToolOutput};

/// A value that a function tool can return.
pub trait IntoOutput {
    /// Converts the value to the tool's output.
    fn into_output(self) -> Result<ToolOutput, ToolError>;
}

/// Returns a serializable value as JSON.
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
            ToolError::new(ErrorKind::Internal, format!("failed to serialize the output: {error}"))
        })
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
