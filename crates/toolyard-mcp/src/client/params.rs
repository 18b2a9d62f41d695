//! What every message says about us, in the words of the era that is spoken.

use std::sync::LazyLock;

use serde_json::json;
use toolyard_core::{Caller, ProtocolEra, RawJson};

use super::{era::MODERN, headers, questions::askable};
use crate::wire::JsonObject;

/// What a request may say about the trace it is part of.
const TRACE: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// The headers in which the modern era repeats the method, and the name it is about.
pub(super) const METHOD: &str = "Mcp-Method";
pub(super) const NAME: &str = "Mcp-Name";

/// Room for what a request says about itself besides who speaks.
const ABOUT: usize = 256;

/// Who speaks, and how.
#[derive(Debug, Clone)]
pub(super) struct Speaker {
    pub(super) era: ProtocolEra,
    pub(super) version: &'static str,
    /// What can be asked of us.
    capabilities: RawJson,
}

impl Speaker {
    /// A speaker of the modern era.
    pub(super) fn modern(capabilities: RawJson) -> Self {
        Self { era: ProtocolEra::Modern, version: MODERN, capabilities }
    }

    /// The same speaker in the legacy era.
    pub(super) fn legacy(&self, version: &'static str) -> Self {
        Self { era: ProtocolEra::Legacy, version, ..self.clone() }
    }

    /// The parameters of `initialize`.
    pub(super) fn introduction(&self) -> JsonObject {
        JsonObject::new()
            .with_text("protocolVersion", self.version)
            .with_raw("capabilities", &self.capabilities)
            .with_object("clientInfo", &CLIENT)
    }

    /// The parameters of a request; one that may report progress says under which number. What is made for a caller says
    /// what can be asked of that caller.
    pub(super) fn params(
        &self,
        fields: JsonObject,
        progress: Option<u64>,
        caller: Option<&dyn Caller>,
    ) -> JsonObject {
        const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
        let mut meta = JsonObject::new();
        if self.era == ProtocolEra::Modern {
            // There is one modern version, so far.
            meta = MODERN_SPEAKER.with_room(ABOUT);
            meta = match caller {
                Some(caller) => meta.with_object(CAPABILITIES, &askable(&caller.capabilities())),
                None => meta.with_raw(CAPABILITIES, &self.capabilities),
            };
            if let Some(level) = caller.and_then(Caller::log_level) {
                meta = meta.with_text("io.modelcontextprotocol/logLevel", level);
            }
        }
        for (key, value) in caller.map(Caller::trace).unwrap_or_default() {
            if TRACE.contains(&key.as_str()) {
                meta = meta.with_text(key, value);
            }
        }
        if let Some(token) = progress {
            meta = meta.with_value("progressToken", &json!(token));
        }
        if meta.is_empty() { fields } else { fields.with_object("_meta", &meta) }
    }

    /// What the modern era repeats in headers: the method, and the name it is about.
    pub(super) fn headers(&self, method: &str, name: Option<&str>) -> Vec<(String, String)> {
        if self.era == ProtocolEra::Legacy {
            return Vec::new();
        }
        let mut headers = Vec::with_capacity(2);
        headers.push((METHOD.to_owned(), method.to_owned()));
        headers.extend(name.map(|name| (NAME.to_owned(), headers::value(name))));
        headers
    }
}

/// How every request of the modern era begins to speak of itself.
static MODERN_SPEAKER: LazyLock<JsonObject> = LazyLock::new(|| {
    JsonObject::new()
        .with_text("io.modelcontextprotocol/protocolVersion", MODERN)
        .with_object("io.modelcontextprotocol/clientInfo", &CLIENT)
});

/// Who we are.
static CLIENT: LazyLock<JsonObject> = LazyLock::new(|| {
    JsonObject::new()
        .with_text("name", "toolyard")
        .with_text("title", "Toolyard")
        .with_text("version", env!("CARGO_PKG_VERSION"))
});
