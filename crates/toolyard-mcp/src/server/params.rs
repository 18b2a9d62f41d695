//! The parameters of a request, read in one walk: what the server itself looks at; everything else stays as it came.

use toolyard_core::{JsonCursor, JsonFault, JsonKind, JsonText, RawJson};

use super::{
    log_level::LogLevel,
    speaker::{client_name, fields},
};

/// What a request says about its trace is passed on up to this many bytes.
const MAX_TRACE: usize = 8 << 10;

/// What is looked at in the parameters of any request.
#[derive(Debug, Default)]
pub(super) struct Params {
    /// All of them.
    pub(super) raw: Option<RawJson>,
    pub(super) name: Option<String>,
    pub(super) uri: Option<String>,
    pub(super) cursor: Option<String>,
    pub(super) arguments: Option<RawJson>,
    /// Answers to the questions of an earlier try.
    pub(super) responses: Option<RawJson>,
    /// What that earlier try wanted to be reminded of.
    pub(super) state: Option<String>,
    pub(super) meta: Option<Meta>,
    /// Whether there are answers and none of them can be one.
    useless: bool,
    /// Whether something that must be an object or a text is something else.
    pub(super) misshapen: Option<&'static str>,
}

/// What stands under `_meta`.
#[derive(Debug, Default)]
pub(super) struct Meta {
    pub(super) version: Option<String>,
    pub(super) client: Option<String>,
    pub(super) capabilities: Option<RawJson>,
    pub(super) log_level: Option<LogLevel>,
    pub(super) progress_token: Option<RawJson>,
    /// The trace that the request is part of.
    pub(super) trace: Vec<(String, String)>,
}

impl Params {
    /// Reads parameters, whatever they are.
    pub(super) fn read(raw: Option<RawJson>) -> Self {
        let mut params = Self::default();
        if let Some(raw) = raw {
            match params.walk(&raw) {
                // Whoever comes back is asked again for what is wrong; whoever begins with nothing but that is told so.
                Ok(true) if params.useless && params.state.is_none() => {
                    params.misshapen = Some("inputResponses");
                }
                Ok(true) => {}
                Ok(false) => params.misshapen = Some("params"),
                // Messages were walked over before: they cannot be too deep.
                Err(_) => params.misshapen = Some("params"),
            }
            params.raw = Some(raw);
        }
        params
    }

    fn walk(&mut self, raw: &RawJson) -> Result<bool, JsonFault> {
        let mut cursor = JsonCursor::of(raw);
        if !cursor.enter_object()? {
            return Ok(false);
        }
        while let Some(key) = cursor.next_key()? {
            match key.as_ref() {
                "name" => self.name = self.text("name", cursor.skip()?),
                "uri" => self.uri = self.text("uri", cursor.skip()?),
                "cursor" => self.cursor = self.text("cursor", cursor.skip()?),
                "requestState" => self.state = self.text("requestState", cursor.skip()?),
                "arguments" => self.arguments = self.object("arguments", cursor.skip()?, raw),
                "inputResponses" => self.responses = self.responses(cursor.skip()?, raw)?,
                "_meta" => self.meta = Meta::read(&mut cursor, raw)?,
                _ => drop(cursor.skip()?),
            }
        }
        Ok(true)
    }

    /// Answers are objects.
    fn responses(&mut self, value: JsonText<'_>, raw: &RawJson) -> Result<Option<RawJson>, JsonFault> {
        let (mut answers, mut objects) = (0_usize, 0_usize);
        fields(value.get(), |_, answer| {
            answers += 1;
            objects += usize::from(answer.kind() == JsonKind::Object);
            Ok(())
        })?;
        self.useless = value.kind() == JsonKind::Null || (answers > 0 && objects == 0);
        Ok(self.object("inputResponses", value, raw))
    }

    fn text(&mut self, what: &'static str, value: JsonText<'_>) -> Option<String> {
        let text = value.string();
        if text.is_none() && value.kind() != JsonKind::Null {
            self.misshapen = Some(what);
        }
        text.map(std::borrow::Cow::into_owned)
    }

    fn object(&mut self, what: &'static str, value: JsonText<'_>, raw: &RawJson) -> Option<RawJson> {
        match value.kind() {
            JsonKind::Object => Some(raw.part(value)),
            JsonKind::Null => None,
            _ => {
                self.misshapen = Some(what);
                None
            }
        }
    }
}

impl Meta {
    fn read(cursor: &mut JsonCursor<'_>, raw: &RawJson) -> Result<Option<Self>, JsonFault> {
        if !cursor.enter_object()? {
            cursor.skip()?;
            return Ok(None);
        }
        let mut meta = Self::default();
        while let Some(key) = cursor.next_key()? {
            match key.as_ref() {
                "io.modelcontextprotocol/protocolVersion" => {
                    meta.version = cursor.skip()?.string().map(std::borrow::Cow::into_owned);
                }
                "io.modelcontextprotocol/clientInfo" => meta.client = name_of(cursor)?,
                "io.modelcontextprotocol/clientCapabilities" => {
                    let value = cursor.skip()?;
                    meta.capabilities = (value.kind() == JsonKind::Object).then(|| raw.part(value));
                }
                "io.modelcontextprotocol/logLevel" => {
                    meta.log_level = cursor.skip()?.string().and_then(|level| LogLevel::named(&level));
                }
                "traceparent" | "tracestate" | "baggage" => {
                    let value = cursor.skip()?.string().filter(|value| value.len() <= MAX_TRACE);
                    meta.trace.extend(value.map(|value| (key.into_owned(), value.into_owned())));
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

/// The name in a description of a client.
fn name_of(cursor: &mut JsonCursor<'_>) -> Result<Option<String>, JsonFault> {
    let mut name = None;
    if !cursor.enter_object()? {
        cursor.skip()?;
        return Ok(None);
    }
    while let Some(key) = cursor.next_key()? {
        let value = cursor.skip()?;
        if key == "name" {
            name = value.string().and_then(|name| client_name(&name));
        }
    }
    Ok(name)
}
