//! [`RpcError`]: a JSON-RPC error, decoded leniently.

use toolyard_core::{JsonCursor, JsonError, JsonKind, JsonText, RawJson, SharedText, escape_unsafe};

use crate::json::{JsonObject, truncate};

/// Longer messages are truncated: they end up in logs, journals and prompts.
const MAX_MESSAGE_BYTES: usize = 16 << 10;
/// Larger `data` is dropped.
const MAX_DATA_BYTES: usize = 1 << 20;

/// The other side answered with a JSON-RPC error; the text is its own.
///
/// Remedy: read the text; see the log of the server with `toolyard servers logs NAME`. The codes are at the end of this
/// page.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RpcError {
    /// The code; 0 if none was sent.
    pub code: i64,
    /// The message.
    pub message: String,
    /// Additional data.
    pub data: Option<RawJson>,
}

impl RpcError {
    /// The error as JSON.
    pub fn to_raw(&self) -> RawJson {
        let error =
            JsonObject::new().with_value("code", &self.code.into()).with_text("message", &self.message);
        match &self.data {
            Some(data) => error.with_raw("data", data).to_raw(),
            None => error.to_raw(),
        }
    }

    /// Reads the field `error` of a message, which may be anything: a bare string or an incomplete object still reports a failure.
    pub(crate) fn read(error: JsonText<'_>, message_text: &SharedText) -> Self {
        match read_fields(error) {
            Ok(Some((code, message, data))) => Self {
                code: code.map_or(0, parse_code),
                message: sanitized_text(message.unwrap_or(error)),
                data: data
                    .filter(|data| data.get().len() <= MAX_DATA_BYTES)
                    .map(|data| message_text.part(data)),
            },
            _ => Self { code: 0, message: sanitized_text(error), data: None },
        }
    }
}

type Fields<'t> = (Option<JsonText<'t>>, Option<JsonText<'t>>, Option<JsonText<'t>>);

fn read_fields(error: JsonText<'_>) -> Result<Option<Fields<'_>>, JsonError> {
    // No limit on nesting beyond that of the cursor itself, which is 128 levels.
    let mut cursor = JsonCursor::new(error.get(), usize::MAX);
    if !cursor.enter_object()? {
        return Ok(None);
    }
    let (mut code, mut message, mut data) = (None, None, None);
    while let Some(key) = cursor.next_key()? {
        let value = Some(cursor.next_value()?).filter(|value| value.kind() != JsonKind::Null);
        match key.as_ref() {
            "code" => code = value,
            "message" => message = value,
            "data" => data = value,
            _ => {}
        }
    }
    Ok(Some((code, message, data)))
}

/// A code, also as a string or with a decimal point.
fn parse_code(code: JsonText<'_>) -> i64 {
    let text = code.string().unwrap_or(code.get().into());
    let whole = text.strip_suffix(".0").unwrap_or(&text);
    whole.trim().parse().unwrap_or(0)
}

/// A string, or the JSON of another value, with unsafe characters escaped.
fn sanitized_text(value: JsonText<'_>) -> String {
    let truncated = truncate(&value.string().unwrap_or(value.get().into()), MAX_MESSAGE_BYTES);
    escape_unsafe(&truncated).into_owned()
}
