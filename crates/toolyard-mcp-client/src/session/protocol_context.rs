//! What every request says about us, in the negotiated revision.

use std::sync::LazyLock;

use serde_json::json;
use toolyard_core::{Caller, RevisionFamily, telemetry::SpanContext};
use toolyard_mcp::{JsonObject, versions::MODERN_REVISION};

use crate::{
    session::client_capabilities::{ANNOUNCED_CAPABILITIES, input_capabilities},
    transport::{http::headers, requests::in_flight::RequestOrigin},
};

const TRACE_PARENT: &str = "traceparent";
const TRACE_KEYS: [&str; 3] = [TRACE_PARENT, "tracestate", "baggage"];
/// Space for the metadata of a request besides the constant part.
const META_CAPACITY_BYTES: usize = 256;

#[derive(Debug, Clone)]
pub(crate) struct ProtocolContext {
    pub(crate) family: RevisionFamily,
    pub(crate) revision: &'static str,
}

impl ProtocolContext {
    pub(crate) fn modern() -> Self {
        Self { family: RevisionFamily::Modern, revision: MODERN_REVISION }
    }

    pub(crate) fn legacy(revision: &'static str) -> Self {
        Self { family: RevisionFamily::Legacy, revision }
    }

    pub(crate) fn initialize_params(&self) -> JsonObject {
        JsonObject::new()
            .with_text("protocolVersion", self.revision)
            .with_raw("capabilities", &ANNOUNCED_CAPABILITIES)
            .with_object("clientInfo", &CLIENT_INFO)
    }

    /// The parameters of a request, with the id under which its progress is reported. A request for a caller carries the
    /// capabilities of that caller. `span` replaces the caller's in the trace context.
    pub(super) fn params(
        &self,
        fields: JsonObject,
        progress_token: Option<u64>,
        origin: &RequestOrigin,
        span: Option<SpanContext>,
    ) -> JsonObject {
        const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
        let mut meta = JsonObject::new();
        let caller = origin.caller();
        if self.family == RevisionFamily::Modern {
            meta = MODERN_META.clone_with_capacity(META_CAPACITY_BYTES);
            meta = match origin {
                RequestOrigin::Caller(caller, _) => {
                    meta.with_object(CAPABILITIES, &input_capabilities(&caller.capabilities()))
                }
                RequestOrigin::Internal => meta.with_raw(CAPABILITIES, &ANNOUNCED_CAPABILITIES),
                // Without a caller, no input request can be answered.
                RequestOrigin::Detached => meta.with_object(CAPABILITIES, &JsonObject::new()),
            };
            if let Some(level) = caller.and_then(Caller::log_level) {
                meta = meta.with_text("io.modelcontextprotocol/logLevel", level);
            }
        }
        if let Some(span) = span {
            meta = meta.with_text(TRACE_PARENT, span.to_traceparent().as_str());
        }
        for (key, value) in caller.map(Caller::trace_context).unwrap_or_default() {
            let is_replaced = span.is_some() && key == TRACE_PARENT;
            if TRACE_KEYS.contains(&key.as_str()) && !is_replaced {
                meta = meta.with_text(key, value);
            }
        }
        if let Some(token) = progress_token {
            meta = meta.with_value("progressToken", &json!(token));
        }
        if meta.is_empty() { fields } else { fields.with_object("_meta", &meta) }
    }

    /// The headers in which modern requests repeat the method and the name they are about.
    pub(super) fn headers(&self, method: &str, name: Option<&str>) -> Vec<(String, String)> {
        if self.family == RevisionFamily::Legacy {
            return Vec::new();
        }
        let mut headers = Vec::with_capacity(2);
        headers.push((headers::METHOD_HEADER.to_owned(), method.to_owned()));
        headers.extend(name.map(|name| (headers::NAME_HEADER.to_owned(), headers::encode_value(name))));
        headers
    }
}

/// The constant metadata of every modern request.
static MODERN_META: LazyLock<JsonObject> = LazyLock::new(|| {
    JsonObject::new()
        .with_text("io.modelcontextprotocol/protocolVersion", MODERN_REVISION)
        .with_object("io.modelcontextprotocol/clientInfo", &CLIENT_INFO)
});

static CLIENT_INFO: LazyLock<JsonObject> = LazyLock::new(|| {
    JsonObject::new()
        .with_text("name", "toolyard")
        .with_text("title", "Toolyard")
        .with_text("version", env!("CARGO_PKG_VERSION"))
});
