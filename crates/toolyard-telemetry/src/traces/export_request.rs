//! [`ExportRequest`]: the body of an export, and what the response to it says.

use super::{
    protobuf::{Field, field_length, read_field, write_bytes, write_header},
    span::{SpanEncoder, attribute},
};

/// Fields of `ExportTraceServiceRequest`, `ResourceSpans`, `ScopeSpans`, `Resource` and `InstrumentationScope`.
const RESOURCE_SPANS: u32 = 1;
const RESOURCE: u32 = 1;
const SCOPE_SPANS: u32 = 2;
const SCOPE: u32 = 1;
const SPANS: u32 = 2;
const RESOURCE_ATTRIBUTES: u32 = 1;
const SCOPE_NAME: u32 = 1;
const SCOPE_VERSION: u32 = 2;

/// Builds the bodies of exports, `ExportTraceServiceRequest` of OTLP.
#[derive(Debug)]
pub(super) struct ExportRequest {
    /// The fields `resource` and `scope`, which are the same in every export.
    resource: Vec<u8>,
    scope: Vec<u8>,
    spans: Vec<u8>,
    span: Vec<u8>,
    encoder: SpanEncoder,
}

impl ExportRequest {
    /// `resource` is what the spans say about this process.
    pub(super) fn new(resource: &[(String, String)]) -> Self {
        let mut attributes = Vec::new();
        for (name, value) in resource {
            attribute(&mut attributes, RESOURCE_ATTRIBUTES, name, value.as_str().into());
        }
        let mut names = Vec::new();
        write_bytes(&mut names, SCOPE_NAME, b"toolyard");
        write_bytes(&mut names, SCOPE_VERSION, env!("CARGO_PKG_VERSION").as_bytes());
        let (mut resource, mut scope) = (Vec::new(), Vec::new());
        write_bytes(&mut resource, RESOURCE, &attributes);
        write_bytes(&mut scope, SCOPE, &names);
        Self { resource, scope, spans: Vec::new(), span: Vec::new(), encoder: SpanEncoder::default() }
    }

    /// Adds the span of an operation. Returns whether the operation has one.
    pub(super) fn add(&mut self, operation: &toolyard_core::telemetry::Operation) -> bool {
        self.span.clear();
        let is_span = self.encoder.encode(operation, &mut self.span);
        if is_span {
            write_bytes(&mut self.spans, SPANS, &self.span);
        }
        is_span
    }

    /// The body with the spans added since the last call.
    pub(super) fn take_body(&mut self) -> Vec<u8> {
        let scope_spans = self.scope.len() + self.spans.len();
        let resource_spans = self.resource.len() + field_length(SCOPE_SPANS, scope_spans);
        let mut body = Vec::with_capacity(field_length(RESOURCE_SPANS, resource_spans));
        write_header(&mut body, RESOURCE_SPANS, resource_spans);
        body.extend_from_slice(&self.resource);
        write_header(&mut body, SCOPE_SPANS, scope_spans);
        body.extend_from_slice(&self.scope);
        body.append(&mut self.spans);
        body
    }
}

/// Spans that the receiver refused although the export succeeded, and why. The response is `ExportTraceServiceResponse`, whose
/// field 1 has the number in field 1 and the reason in field 2.
pub(super) fn rejected_spans(mut response: &[u8]) -> (u64, String) {
    let (mut rejected, mut reason) = (0, String::new());
    while let Some((1, Field::Bytes(mut partial_success))) = read_field(&mut response) {
        while let Some(field) = read_field(&mut partial_success) {
            match field {
                (1, Field::Uint(spans)) => rejected = spans,
                (2, Field::Bytes(text)) => reason = String::from_utf8_lossy(text).into_owned(),
                _ => {}
            }
        }
    }
    (rejected, reason)
}
