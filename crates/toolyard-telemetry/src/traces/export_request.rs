//! The body of an export, and what the response to it says.

use opentelemetry_proto::tonic::{
    collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse},
    common::v1::InstrumentationScope,
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span},
};
use prost::Message as _;

use super::span::text_attribute;

/// What the spans of this process have in common.
#[derive(Debug)]
pub(super) struct SpanOrigin {
    resource: Resource,
    scope: InstrumentationScope,
}

impl SpanOrigin {
    /// `attributes` describe this process.
    pub(super) fn new(attributes: &[(String, String)]) -> Self {
        let attributes = attributes.iter().map(|(name, value)| text_attribute(name, value)).collect();
        let scope = InstrumentationScope {
            name: "toolyard".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        Self { resource: Resource { attributes, ..Resource::default() }, scope }
    }

    /// The body of an export of these spans.
    pub(super) fn export(&self, spans: Vec<Span>) -> Vec<u8> {
        let scope_spans = ScopeSpans { scope: Some(self.scope.clone()), spans, ..ScopeSpans::default() };
        let resource_spans = ResourceSpans {
            resource: Some(self.resource.clone()),
            scope_spans: vec![scope_spans],
            ..ResourceSpans::default()
        };
        ExportTraceServiceRequest { resource_spans: vec![resource_spans] }.encode_to_vec()
    }
}

/// Spans that the receiver refused although the export succeeded, and why. A response in another format refuses none.
pub(super) fn rejected_spans(response: &[u8]) -> (u64, String) {
    let decoded = ExportTraceServiceResponse::decode(response).unwrap_or_default();
    let partial_success = decoded.partial_success.unwrap_or_default();
    (u64::try_from(partial_success.rejected_spans).unwrap_or(0), partial_success.error_message)
}
