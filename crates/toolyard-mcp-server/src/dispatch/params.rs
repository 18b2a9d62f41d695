//! [`Params`]: the parameters of a request that the server itself uses, read in one pass; the rest stays raw.

use toolyard_core::{JsonCursor, JsonError, JsonKind, JsonText, RawJson};
use toolyard_mcp::JsonObject;

use crate::{
    json_fields::each_field,
    session::{log_level::LogLevel, peer::truncate_client_name},
};

/// Longer values of the trace context are not forwarded.
const MAX_TRACE_VALUE_BYTES: usize = 8 << 10;
/// More metadata is not forwarded.
const MAX_FORWARDED_META_BYTES: usize = 16 << 10;

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
    /// Whether `inputResponses` is null, or not empty and without any object.
    has_only_invalid_responses: bool,
    /// The name of a field that has the wrong type.
    pub(crate) invalid_field: Option<&'static str>,
}

#[derive(Debug, Default)]
pub(crate) struct Meta {
    pub(crate) revision: Option<String>,
    pub(crate) client_name: Option<String>,
    pub(crate) capabilities: Option<RawJson>,
    pub(crate) log_level: Option<LogLevel>,
    pub(crate) progress_token: Option<RawJson>,
    /// The W3C trace context of the request.
    pub(crate) trace_context: Vec<(String, String)>,
    /// The fields that this server does not use, up to [`MAX_FORWARDED_META_BYTES`].
    other_fields: JsonObject,
    /// The size of all these fields.
    other_bytes: usize,
}

/// The keys of a trace, as headers and in `_meta`.
const TRACE_KEYS: [&str; 2] = ["traceparent", "tracestate"];

impl Params {
    /// Takes the trace of the HTTP request if the message itself has none.
    pub(crate) fn add_trace_headers(&mut self, headers: &http::HeaderMap) {
        let has_trace =
            |meta: &Meta| meta.trace_context.iter().any(|(key, _)| TRACE_KEYS.contains(&key.as_str()));
        if !headers.contains_key("traceparent") || self.meta.as_ref().is_some_and(has_trace) {
            return;
        }
        let values = TRACE_KEYS.into_iter().filter_map(|key| {
            let value = headers.get(key)?.to_str().ok()?;
            Some((key.to_owned(), value.to_owned()))
        });
        self.meta.get_or_insert_default().trace_context.extend(values);
    }

    /// Reads parameters; problems are recorded in `invalid_field`.
    pub(crate) fn read(raw: Option<RawJson>) -> Self {
        let mut params = Self::default();
        if let Some(raw) = raw {
            match params.read_fields(&raw) {
                // With a state, the input requests are sent again; without one, there is nothing to send again.
                Ok(true) if params.has_only_invalid_responses && params.request_state.is_none() => {
                    params.invalid_field = Some("inputResponses");
                }
                Ok(true) => {}
                // An error cannot happen: the message was already parsed within the depth limit.
                Ok(false) | Err(_) => params.invalid_field = Some("params"),
            }
            params.raw = Some(raw);
        }
        params
    }

    /// Returns false if the parameters are not an object.
    fn read_fields(&mut self, raw: &RawJson) -> Result<bool, JsonError> {
        let mut reader = JsonCursor::of(raw);
        if !reader.enter_object()? {
            return Ok(false);
        }
        while let Some(key) = reader.next_key()? {
            match key.as_ref() {
                "name" => self.name = self.read_text("name", reader.next_value()?),
                "uri" => self.uri = self.read_text("uri", reader.next_value()?),
                "cursor" => self.cursor = self.read_text("cursor", reader.next_value()?),
                "requestState" => self.request_state = self.read_text("requestState", reader.next_value()?),
                "arguments" => self.arguments = self.read_object("arguments", reader.next_value()?, raw),
                "inputResponses" => self.input_responses = self.read_responses(reader.next_value()?, raw)?,
                "_meta" => self.meta = Meta::read(&mut reader, raw)?,
                _ => drop(reader.next_value()?),
            }
        }
        Ok(true)
    }

    fn read_responses(&mut self, value: JsonText<'_>, raw: &RawJson) -> Result<Option<RawJson>, JsonError> {
        let (mut responses, mut objects) = (0_usize, 0_usize);
        each_field(value.get(), |_, response| {
            responses += 1;
            objects += usize::from(response.kind() == JsonKind::Object);
            Ok(())
        })?;
        self.has_only_invalid_responses = value.kind() == JsonKind::Null || (responses > 0 && objects == 0);
        Ok(self.read_object("inputResponses", value, raw))
    }

    fn read_text(&mut self, field: &'static str, value: JsonText<'_>) -> Option<String> {
        let text = value.string();
        if text.is_none() && value.kind() != JsonKind::Null {
            self.invalid_field = Some(field);
        }
        text.map(std::borrow::Cow::into_owned)
    }

    fn read_object(&mut self, field: &'static str, value: JsonText<'_>, raw: &RawJson) -> Option<RawJson> {
        match value.kind() {
            JsonKind::Object => Some(raw.part(value)),
            JsonKind::Null => None,
            _ => {
                self.invalid_field = Some(field);
                None
            }
        }
    }
}

impl Meta {
    fn read(reader: &mut JsonCursor<'_>, raw: &RawJson) -> Result<Option<Self>, JsonError> {
        if !reader.enter_object()? {
            reader.next_value()?;
            return Ok(None);
        }
        let mut meta = Self::default();
        while let Some(key) = reader.next_key()? {
            match key.as_ref() {
                "io.modelcontextprotocol/protocolVersion" => {
                    meta.revision = reader.next_value()?.string().map(std::borrow::Cow::into_owned);
                }
                "io.modelcontextprotocol/clientInfo" => meta.client_name = read_client_name(reader)?,
                "io.modelcontextprotocol/clientCapabilities" => {
                    let value = reader.next_value()?;
                    meta.capabilities = (value.kind() == JsonKind::Object).then(|| raw.part(value));
                }
                "io.modelcontextprotocol/logLevel" => {
                    meta.log_level =
                        reader.next_value()?.string().and_then(|level| LogLevel::from_name(&level));
                }
                "traceparent" | "tracestate" | "baggage" => {
                    let value =
                        reader.next_value()?.string().filter(|value| value.len() <= MAX_TRACE_VALUE_BYTES);
                    meta.trace_context.extend(value.map(|value| (key.into_owned(), value.into_owned())));
                }
                "progressToken" => {
                    let value = reader.next_value()?;
                    let is_token = matches!(value.kind(), JsonKind::String | JsonKind::Number);
                    meta.progress_token = is_token.then(|| raw.part(value));
                }
                other => {
                    let value = reader.next_value()?;
                    meta.other_bytes += other.len() + value.get().len();
                    if meta.other_bytes <= MAX_FORWARDED_META_BYTES {
                        let fields = std::mem::take(&mut meta.other_fields);
                        meta.other_fields = fields.with_raw(other, &raw.part(value));
                    }
                }
            }
        }
        Ok(Some(meta))
    }

    /// The fields that this server does not use; none if there are none or they are too large.
    pub(crate) fn forwarded_fields(&self) -> Option<RawJson> {
        if self.other_bytes > MAX_FORWARDED_META_BYTES {
            tracing::debug!(
                bytes = self.other_bytes,
                "the `_meta` of a tool call is too large to be forwarded"
            );
            return None;
        }
        (!self.other_fields.is_empty()).then(|| self.other_fields.to_raw())
    }
}

fn read_client_name(reader: &mut JsonCursor<'_>) -> Result<Option<String>, JsonError> {
    let mut name = None;
    if !reader.enter_object()? {
        reader.next_value()?;
        return Ok(None);
    }
    while let Some(key) = reader.next_key()? {
        let value = reader.next_value()?;
        if key == "name" {
            name = value.string().and_then(|name| truncate_client_name(&name));
        }
    }
    Ok(name)
}
