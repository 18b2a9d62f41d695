//! [`Outcome`]: the result or error of a request, and its encoding.

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use toolyard_core::{
    RawJson, RevisionFamily, sanitize,
    text::{join_json_lines, sanitize_json},
};
use toolyard_mcp::{RequestId, RpcError, WireError, error_code};

use crate::json_fields::has_field;

/// Larger results are sent from their own buffer instead of being copied into the message.
const MAX_COPIED_BYTES: usize = 16 << 10;

/// Larger results are sanitized on a thread for blocking work, so that other requests do not wait.
const MAX_INLINE_SANITIZED_BYTES: usize = 128 << 10;

/// What follows the entries of a list: the ends of the list, the result and the message.
pub(crate) const LIST_END: &str = "]}}";

#[derive(Debug)]
pub(crate) enum Outcome {
    /// A result of this server, on one line.
    Result(String),
    /// A result of this server whose end, up to the end of the message, is shared by many responses. On one line.
    SharedTail { head: String, tail: Bytes },
    /// A result of a tool or content service, and the fields to add if they are missing.
    RawResult { raw: RawJson, required: RequiredFields },
    /// An error of this server, and its HTTP status.
    Error { error: RpcError, status: StatusCode },
    /// An error of an upstream server, and its HTTP status.
    RawError { raw: RawJson, status: StatusCode },
}

/// Fields that modern revisions require in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequiredFields {
    None,
    ResultType,
    ResultTypeAndCaching,
}

impl RequiredFields {
    /// The missing fields of an object, each followed by a comma.
    fn missing(self, object: &RawJson) -> String {
        let mut missing = String::new();
        if self != Self::None && !has_field(object, "resultType") {
            missing.push_str(r#""resultType":"complete","#);
        }
        if self == Self::ResultTypeAndCaching {
            if !has_field(object, "ttlMs") {
                missing.push_str(r#""ttlMs":0,"#);
            }
            if !has_field(object, "cacheScope") {
                missing.push_str(r#""cacheScope":"private","#);
            }
        }
        missing
    }
}

/// A message in up to three chunks, each of which may be shared.
#[derive(Debug, Default, Clone)]
pub(crate) struct MessageChunks {
    pub(crate) head: Bytes,
    pub(crate) shared: Bytes,
    pub(crate) tail: Bytes,
}

impl Outcome {
    pub(crate) fn result(text: impl Into<String>) -> Self {
        Self::Result(text.into())
    }

    /// A result of a tool, for a client of this revision family.
    pub(crate) fn raw_result(raw: RawJson, family: RevisionFamily) -> Self {
        let required =
            if family == RevisionFamily::Modern { RequiredFields::ResultType } else { RequiredFields::None };
        Self::RawResult { raw, required }
    }

    /// An error with HTTP status 200.
    pub(crate) fn error(code: i64, message: impl Into<String>) -> Self {
        Self::error_with_status(StatusCode::OK, code, message)
    }

    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::error(error_code::INVALID_PARAMS, message)
    }

    pub(crate) fn internal_error(message: impl Into<String>) -> Self {
        Self::error(error_code::INTERNAL_ERROR, message)
    }

    pub(crate) fn error_with_status(status: StatusCode, code: i64, message: impl Into<String>) -> Self {
        Self::Error { error: RpcError { code, message: message.into(), data: None }, status }
    }

    pub(crate) fn with_data(mut self, json: &Value) -> Self {
        if let Self::Error { error, .. } = &mut self {
            error.data = Some(RawJson::from_value(json));
        }
        self
    }

    /// The outcome of a tool or content service, without characters that deceive a reader or control a terminal.
    pub(crate) async fn sanitized(self) -> Self {
        match self {
            Self::RawResult { raw, required } => Self::RawResult { raw: sanitize_raw(raw).await, required },
            Self::RawError { raw, status } => Self::RawError { raw: sanitize_raw(raw).await, status },
            Self::Error { error: RpcError { code, message, data }, status } => {
                let message = sanitize(&message).0.into_owned();
                let data = match data {
                    Some(data) => Some(sanitize_raw(data).await),
                    None => None,
                };
                Self::Error { error: RpcError { code, message, data }, status }
            }
            own @ (Self::Result(_) | Self::SharedTail { .. }) => own,
        }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Error { status, .. } | Self::RawError { status, .. } => *status,
            _ => StatusCode::OK,
        }
    }

    pub(crate) fn into_chunks(self, id: &RequestId) -> MessageChunks {
        let id = id.0.get();
        match self {
            Self::Result(text) => {
                MessageChunks::single(&[r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#, &text, "}"])
            }
            Self::SharedTail { head, tail } => MessageChunks {
                head: concat_bytes(&[r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#, &head]),
                shared: tail,
                tail: Bytes::new(),
            },
            Self::RawResult { raw, required } => result_chunks(id, raw, required),
            Self::RawError { raw, .. } => {
                MessageChunks::single(&[r#"{"jsonrpc":"2.0","id":"#, id, r#","error":"#, raw.get(), "}"])
            }
            Self::Error { error, .. } => {
                let raw = error.to_raw();
                MessageChunks::single(&[r#"{"jsonrpc":"2.0","id":"#, id, r#","error":"#, raw.get(), "}"])
            }
        }
    }
}

fn result_chunks(id: &str, raw: RawJson, required: RequiredFields) -> MessageChunks {
    let text = raw.get();
    let mut prefix = if text.starts_with('{') { required.missing(&raw) } else { String::new() };
    // The prefix replaces the opening brace.
    let replaced_bytes = usize::from(!prefix.is_empty());
    if replaced_bytes == 1 {
        prefix.insert(0, '{');
        let rest = text.get(1..).unwrap_or_default();
        if rest.trim_ascii_start() == "}" {
            // No comma before the closing brace.
            prefix.pop();
        }
    }
    let head = [r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#, &prefix];
    if text.len() <= MAX_COPIED_BYTES {
        let [a, b, c, d] = head;
        return MessageChunks::single(&[a, b, c, d, text.get(replaced_bytes..).unwrap_or_default(), "}"]);
    }
    let head = concat_bytes(&head);
    MessageChunks {
        head,
        shared: Bytes::from_owner(SharedJson(raw)).slice(replaced_bytes..),
        tail: Bytes::from_static(b"}"),
    }
}

async fn sanitize_raw(raw: RawJson) -> RawJson {
    if raw.get().len() <= MAX_INLINE_SANITIZED_BYTES {
        return sanitize_json(&raw).0;
    }
    // Fails only if the runtime shuts down; then nobody receives the result.
    let sanitized = tokio::task::spawn_blocking(move || sanitize_json(&raw).0).await;
    sanitized.unwrap_or_else(|_| RawJson::empty_object())
}

pub(crate) fn missing_capability_error(missing: &str) -> Outcome {
    let required: Value = serde_json::from_str(missing).unwrap_or_default();
    let message = format!("the client lacks a required capability: {missing}");
    Outcome::error_with_status(StatusCode::BAD_REQUEST, error_code::MISSING_CAPABILITY, message)
        .with_data(&json!({"requiredCapabilities": required}))
}

pub(crate) fn invalid_request_state() -> Outcome {
    let message = "invalid requestState: issued for another request, modified, or expired; the outcome of the call is unknown";
    Outcome::invalid_params(message)
}

/// The error for a call that another process suspended or continued, and that process is gone.
pub(crate) fn suspending_process_gone() -> Outcome {
    let message = "invalid requestState: the server process that asked for input is gone; the outcome of the call is unknown";
    Outcome::invalid_params(message)
}

pub(crate) fn error_without_id(code: i64, message: &str) -> MessageChunks {
    let error = RpcError { code, message: message.to_owned(), data: None };
    MessageChunks::single(&[r#"{"jsonrpc":"2.0","error":"#, error.to_raw().get(), "}"])
}

/// The response to a message that could not be parsed.
pub(crate) fn invalid_message(error: &WireError) -> MessageChunks {
    let code = match error {
        WireError::NotJson(_) | WireError::NotUtf8 => error_code::PARSE_ERROR,
        _ => error_code::INVALID_REQUEST,
    };
    error_without_id(code, &error.to_string())
}

/// Raw JSON that is sent without copying.
struct SharedJson(RawJson);

impl AsRef<[u8]> for SharedJson {
    fn as_ref(&self) -> &[u8] {
        self.0.get().as_bytes()
    }
}

fn concat_bytes(texts: &[&str]) -> Bytes {
    Bytes::from(texts.concat())
}

impl MessageChunks {
    pub(crate) fn single(texts: &[&str]) -> Self {
        Self { head: concat_bytes(texts), ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.shared.len() + self.tail.len()
    }

    /// The message on one line.
    pub(crate) fn to_line(&self) -> Bytes {
        self.to_line_between(b"", b"")
    }

    /// The message on one line, between a prefix and a suffix.
    pub(crate) fn to_line_between(&self, prefix: &[u8], suffix: &[u8]) -> Bytes {
        let mut line = Vec::with_capacity(prefix.len() + self.len() + suffix.len());
        line.extend_from_slice(prefix);
        for chunk in [&self.head, &self.shared, &self.tail] {
            line.extend_from_slice(chunk);
        }
        join_json_lines(line.get_mut(prefix.len()..).unwrap_or_default());
        line.extend_from_slice(suffix);
        line.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(raw: &str, required: RequiredFields) -> String {
        let id = RequestId(RawJson::parse("7".to_owned()).unwrap());
        let outcome = Outcome::RawResult { raw: RawJson::parse(raw.to_owned()).unwrap(), required };
        let text = String::from_utf8(outcome.into_chunks(&id).to_line().to_vec()).unwrap();
        text.strip_prefix(r#"{"jsonrpc":"2.0","id":7,"result":"#)
            .unwrap()
            .strip_suffix('}')
            .unwrap()
            .to_owned()
    }

    #[test]
    fn required_fields_are_added_once() {
        assert_eq!(encode("{ }", RequiredFields::None), "{ }");
        assert_eq!(encode("{ }", RequiredFields::ResultType), r#"{"resultType":"complete" }"#);
        assert_eq!(encode("{\n\"a\":1}", RequiredFields::ResultType), r#"{"resultType":"complete", "a":1}"#);
        let complete = r#"{"a":1,"resultType":"input_required"}"#;
        assert_eq!(encode(complete, RequiredFields::ResultType), complete);
        assert_eq!(encode("[1]", RequiredFields::ResultType), "[1]");
        assert_eq!(
            encode(r#"{"ttlMs":5}"#, RequiredFields::ResultTypeAndCaching),
            r#"{"resultType":"complete","cacheScope":"private","ttlMs":5}"#
        );
    }

    #[test]
    fn large_results_encode_like_small_ones() {
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_COPIED_BYTES));
        let small =
            encode(r#"{"a":"x"}"#, RequiredFields::ResultType).replace("x", &"x".repeat(MAX_COPIED_BYTES));
        assert_eq!(encode(&large, RequiredFields::ResultType), small);
    }
}
