//! A JSON-RPC error, read leniently: whatever a server puts there, something useful is said.

use toolyard_core::{JsonCursor, JsonFault, JsonKind, JsonText, RawJson, SharedText, shown};

use super::{JsonObject, walk::shortened};

/// No message of an error is kept beyond this many bytes; it travels into logs, journals and prompts.
const MAX_MESSAGE: usize = 16 << 10;
/// What else an error says is dropped beyond this many bytes.
const MAX_DATA: usize = 1 << 20;

/// A JSON-RPC error as the other side sent it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RpcError {
    /// Such as -32601; 0 where none was sent.
    pub code: i64,
    /// What it says.
    pub message: String,
    /// Anything else it says.
    pub data: Option<RawJson>,
}

impl RpcError {
    /// The error as JSON, for whoever passes it on.
    pub fn to_raw(&self) -> RawJson {
        let error =
            JsonObject::new().with_value("code", &self.code.into()).with_text("message", &self.message);
        match &self.data {
            Some(data) => error.with_raw("data", data).to_raw(),
            None => error.to_raw(),
        }
    }

    /// Reads what stands under `error`. It may be anything: a text alone, or an object without the fields it should
    /// have, is still the news that something failed.
    pub(crate) fn read(error: JsonText<'_>, text: &SharedText) -> Self {
        match read_fields(error) {
            Ok(Some((code, message, data))) => Self {
                code: code.map_or(0, number),
                message: words(message.unwrap_or(error)),
                data: data.filter(|data| data.get().len() <= MAX_DATA).map(|data| text.part(data)),
            },
            _ => Self { code: 0, message: words(error), data: None },
        }
    }
}

type Fields<'t> = (Option<JsonText<'t>>, Option<JsonText<'t>>, Option<JsonText<'t>>);

fn read_fields(error: JsonText<'_>) -> Result<Option<Fields<'_>>, JsonFault> {
    let mut cursor = JsonCursor::new(error.get(), usize::MAX);
    if !cursor.enter_object()? {
        return Ok(None);
    }
    let (mut code, mut message, mut data) = (None, None, None);
    while let Some(key) = cursor.next_key()? {
        let value = Some(cursor.skip()?).filter(|value| value.kind() != JsonKind::Null);
        match key.as_ref() {
            "code" => code = value,
            "message" => message = value,
            "data" => data = value,
            _ => {}
        }
    }
    Ok(Some((code, message, data)))
}

/// A code, also where it is spelt as a text or with a decimal point.
fn number(code: JsonText<'_>) -> i64 {
    let spelt = code.string().unwrap_or(code.get().into());
    let whole = spelt.strip_suffix(".0").unwrap_or(&spelt);
    whole.trim().parse().unwrap_or(0)
}

/// What a text says, or the JSON of anything else, fit to be shown.
fn words(value: JsonText<'_>) -> String {
    let words = shortened(&value.string().unwrap_or(value.get().into()), MAX_MESSAGE);
    shown(&words).into_owned()
}
