//! [`Params`]: the parameters of a request that the server itself uses, read in one pass; the rest stays raw.

use toolyard_core::{JsonCursor, JsonError, JsonKind, JsonText, RawJson};

use crate::{
    json_fields::each_field,
    session::{log_level::LogLevel, peer::truncate_client_name},
};

/// Longer trace context is not forwarded.
const MAX_TRACE_BYTES: usize = 8 << 10;

/// Parameters of any request.
#[derive(Debug, Default)]
pub(crate) struct Params {
    /// All parameters as sent.
    pub(crate) raw: Option<RawJson>,
    pub(crate) name: Option<String>,
    pub(crate) uri: Option<String>,
    pub(crate) cursor: Option<String>,
    pub(crate) arguments: Option<RawJson>,
    /// Responses to the input requests of an earlier attempt.
    pub(crate) input_responses: Option<RawJson>,
    /// The sealed state of that attempt.
    pub(crate) request_state: Option<String>,
    pub(crate) meta: Option<Meta>,
    /// Whether there are input responses and none of them is an object.
    has_only_invalid_responses: bool,
    /// The name of a field that has the wrong type.
    pub(crate) invalid_field: Option<&'static str>,
}

/// The content of `_meta`.
#[derive(Debug, Default)]
pub(crate) struct Meta {
    pub(crate) revision: Option<String>,
    pub(crate) client_name: Option<String>,
    pub(crate) capabilities: Option<RawJson>,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) progress_token: Option<RawJson>,
    /// The W3C trace context of the request.
    pub(crate) trace_context: Vec<(String, String)>,
}

impl Params {
    /// Reads parameters; problems are recorded in `invalid_field`.
    pub(crate) fn read(raw: Option<RawJson>) -> Self {
        let mut params = Self::default();
        if let Some(raw) = raw {
            match params.read_fields(&raw) {
                // A retry gets its input requests again; without a state there is nothing to retry.
                Ok(true) if params.has_only_invalid_responses && params.request_state.is_none() => {
                    params.invalid_field = Some("inputResponses");
                }
                Ok(true) => {}
                Ok(false) => params.invalid_field = Some("params"),
                // The message has been parsed before: nesting cannot be too deep.
                Err(_) => params.invalid_field = Some("params"),
            }
            params.raw = Some(raw);
        }
        params
    }

    fn read_fields(&mut self, raw: &RawJson) -> Result<bool, JsonError> {
        let mut cursor = JsonCursor::of(raw);
        if !cursor.enter_object()? {
            return Ok(false);
        }
        while let Some(key) = cursor.next_key()? {
            match key.as_ref() {
                "name" => self.name = self.read_text("name", cursor.skip()?),
                "uri" => self.uri = self.read_text("uri", cursor.skip()?),
                "cursor" => self.cursor = self.read_text("cursor", cursor.skip()?),
                "requestState" => self.request_state = self.read_text("requestState", cursor.skip()?),
                "arguments" => self.arguments = self.read_object("arguments", cursor.skip()?, raw),
                "inputResponses" => self.input_responses = self.read_responses(cursor.skip()?, raw)?,
                "_meta" => self.meta = Meta::read(&mut cursor, raw)?,
                _ => drop(cursor.skip()?),
            }
        }
        Ok(true)
    }

    fn read_responses(&mut self, value: JsonText<'_>, raw: &RawJson) -> Result<Option<RawJson>, JsonError> {
        let (mut answers, mut objects) = (0_usize, 0_usize);
        each_field(value.get(), |_, answer| {
            answers += 1;
            objects += usize::from(answer.kind() == JsonKind::Object);
            Ok(())
        })?;
        self.has_only_invalid_responses = value.kind() == JsonKind::Null || (answers > 0 && objects == 0);
        Ok(self.read_object("inputResponses", value, raw))
    }

    fn read_text(&mut self, what: &'static str, value: JsonText<'_>) -> Option<String> {
        let text = value.string();
        if text.is_none() && value.kind() != JsonKind::Null {
            self.invalid_field = Some(what);
        }
        text.map(std::borrow::Cow::into_owned)
    }

    fn read_object(&mut self, what: &'static str, value: JsonText<'_>, raw: &RawJson) -> Option<RawJson> {
        match value.kind() {
            JsonKind::Object => Some(raw.part(value)),
            JsonKind::Null => None,
            _ => {
                self.invalid_field = Some(what);
                None
            }
        }
    }
}

impl Meta {
    fn read(cursor: &mut JsonCursor<'_>, raw: &RawJson) -> Result<Option<Self>, JsonError> {
        if !cursor.enter_object()? {
            cursor.skip()?;
            return Ok(None);
        }
        let mut meta = Self::default();
        while let Some(key) = cursor.next_key()? {
            match key.as_ref() {
                "io.modelcontextprotocol/protocolVersion" => {
                    meta.revision = cursor.skip()?.string().map(std::borrow::Cow::into_owned);
                }
                "io.modelcontextprotocol/clientInfo" => meta.client_name = read_client_name(cursor)?,
                "io.modelcontextprotocol/clientCapabilities" => {
                    let value = cursor.skip()?;
                    meta.capabilities = (value.kind() == JsonKind::Object).then(|| raw.part(value));
                }
                "io.modelcontextprotocol/logLevel" => {
                    meta.log_level = cursor.skip()?.string().and_then(|level| LogLevel::named(&level));
                }
                "traceparent" | "tracestate" | "baggage" => {
                    let value = cursor.skip()?.string().filter(|value| value.len() <= MAX_TRACE_BYTES);
                    meta.trace_context.extend(value.map(|value| (key.into_owned(), value.into_owned())));
                }
                "progressToken" => {
                    let value = cursor.skip()?;
                    let is_token = matches!(value.kind(), JsonKind::String | JsonKind::Number);
                    meta.progress_token = is_token.then(|| raw.part(value));
                }
                _ => drop(cursor.skip()?),
            }
        }
        Ok(Some(meta))
    }
}

/// The name in `clientInfo`.
fn read_client_name(cursor: &mut JsonCursor<'_>) -> Result<Option<String>, JsonError> {
    let mut name = None;
    if !cursor.enter_object()? {
        cursor.skip()?;
        return Ok(None);
    }
    while let Some(key) = cursor.next_key()? {
        let value = cursor.skip()?;
        if key == "name" {
            name = value.string().and_then(|name| truncate_client_name(&name));
        }
    }
    Ok(name)
}
