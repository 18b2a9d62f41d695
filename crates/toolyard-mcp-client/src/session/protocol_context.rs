//! What every request says about us, in the negotiated revision.

use std::sync::LazyLock;

use serde_json::json;
use toolyard_core::{Caller, RevisionFamily, telemetry::SpanContext};
use toolyard_mcp::{FieldEdit, JsonObject, edit_fields, versions::MODERN_REVISION};

use crate::{
    session::client_capabilities::{ANNOUNCED_CAPABILITIES, input_capabilities},
    transport::{http::headers, requests::in_flight::RequestOrigin},
};

const TRACE_PARENT: &str = "traceparent";
const TRACE_KEYS: [&str; 3] = [TRACE_PARENT, "tracestate", "baggage"];
const PROGRESS_TOKEN: &str = "progressToken";
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
        if let Some(caller_meta) = caller.and_then(Caller::request_meta) {
            meta = meta.merged_with(&edit_fields(caller_meta, |key, _| match belongs_to_connection(key) {
                true => FieldEdit::Remove,
                false => FieldEdit::Keep,
            }));
        }
        if let Some(token) = progress_token {
            meta = meta.with_value(PROGRESS_TOKEN, &json!(token));
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

/// Whether a `_meta` field of a caller is about its own connection to the gateway, or is set by this client.
fn belongs_to_connection(key: &str) -> bool {
    key == PROGRESS_TOKEN
        || TRACE_KEYS.contains(&key)
        || key.starts_with("io.modelcontextprotocol/")
        || key.starts_with("toolyard/")
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use toolyard_core::RawJson;

    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[derive(Debug)]
    struct MetaCaller {
        trace_context: Vec<(String, String)>,
        request_meta: Option<RawJson>,
    }

    impl Caller for MetaCaller {
        fn session_id(&self) -> u64 {
            1
        }

        fn trace_context(&self) -> &[(String, String)] {
            &self.trace_context
        }

        fn request_meta(&self) -> Option<&RawJson> {
            self.request_meta.as_ref()
        }
    }

    /// The `_meta` of a request for a caller that sent this one.
    fn sent_meta(context: &ProtocolContext, request_meta: Option<RawJson>) -> RawJson {
        let trace_context = vec![(TRACE_PARENT.to_owned(), PARENT.to_owned())];
        let caller = MetaCaller { trace_context, request_meta };
        let origin = RequestOrigin::Caller(Arc::new(caller), None);
        let params = context.params(JsonObject::new(), Some(5), &origin, None).to_raw();
        toolyard_mcp::raw_field(&params, "_meta").unwrap()
    }

    #[test]
    fn fields_of_the_callers_connection_are_not_forwarded() {
        let request_meta = json!({
            "com.example/tenant": {"id": [1, "\u{200b}"]},
            "com.mcp.tools/reserved": "mine",
            "plain": null,
            "progressToken": "mine",
            "traceparent": "mine",
            "tracestate": "mine",
            "baggage": "mine",
            "io.modelcontextprotocol/protocolVersion": "mine",
            "io.modelcontextprotocol/related-task": "mine",
            "toolyard/key": "mine",
        });
        for context in [ProtocolContext::modern(), ProtocolContext::legacy("2025-11-25")] {
            let sent = sent_meta(&context, Some(request_meta.clone().into())).to_value();
            let without = sent_meta(&context, None).to_value();
            let mut expected = without.clone();
            expected["com.example/tenant"] = request_meta["com.example/tenant"].clone();
            expected["com.mcp.tools/reserved"] = json!("mine");
            expected["plain"] = json!(null);
            assert_eq!(sent, expected);
            assert_eq!((&without["progressToken"], &without["traceparent"]), (&json!(5), &json!(PARENT)));
        }
    }

    #[test]
    fn forwarded_fields_stay_as_the_caller_wrote_them() {
        let request_meta = RawJson::parse(r#"{ "com.example/amount": 1.50 }"#.to_owned()).unwrap();
        let sent = sent_meta(&ProtocolContext::legacy("2025-11-25"), Some(request_meta));
        let expected = format!(r#"{{"traceparent":"{PARENT}","com.example/amount":1.50,"progressToken":5}}"#);
        assert_eq!(sent.get(), expected);
        for ignored in [json!([1]), json!("text"), json!({})] {
            let sent = sent_meta(&ProtocolContext::legacy("2025-11-25"), Some(ignored.into()));
            assert_eq!(sent.to_value(), json!({"traceparent": PARENT, "progressToken": 5}));
        }
    }
}
