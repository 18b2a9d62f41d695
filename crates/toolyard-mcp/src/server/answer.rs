//! What a request is answered with, as the bytes that are sent.

use bytes::Bytes;
use http::StatusCode;
use toolyard_core::{JsonCursor, JsonFault, RawJson};

use super::speaker::Era;
use crate::wire::{RequestId, RpcError};

/// Results up to this size are copied into the message; of larger ones the bytes themselves are sent.
const COPIED: usize = 16 << 10;

/// What a request is answered with, before it has the request's number.
#[derive(Debug)]
pub(super) enum Outcome {
    /// A result of our own, on one line.
    Own(String),
    /// A result of our own that ends, and the message with it, in bytes that many answers share. All on one line.
    Ending { before: String, shared: Bytes },
    /// A result as somebody else wrote it, with what must be said and is not.
    Result { raw: RawJson, must_say: MustSay },
    /// An error of our own, and the status it has over HTTP.
    Error { error: RpcError, status: StatusCode },
    /// An error as a server sent it, and the status it has over HTTP.
    RawError { raw: RawJson, status: StatusCode },
}

/// What the modern era wants to be said in every result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MustSay {
    Nothing,
    /// Of what kind it is.
    Kind,
    /// Of what kind it is, and whether it may be kept.
    KindAndCaching,
}

impl MustSay {
    /// The fields that are missing in an object, with a comma after each.
    fn missing(self, object: &RawJson) -> String {
        let mut missing = String::new();
        if self != Self::Nothing && !has_field(object, "resultType") {
            missing.push_str(r#""resultType":"complete","#);
        }
        if self == Self::KindAndCaching {
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

/// A message in up to three pieces, each of which may be shared.
#[derive(Debug, Default, Clone)]
pub(super) struct Pieces {
    pub(super) head: Bytes,
    pub(super) shared: Bytes,
    pub(super) tail: Bytes,
}

impl Outcome {
    /// A result of our own.
    pub(super) fn result(text: impl Into<String>) -> Self {
        Self::Own(text.into())
    }

    /// A result as somebody else wrote it, for a client of this era.
    pub(super) fn raw(raw: RawJson, era: Era) -> Self {
        let must_say = if era == Era::Modern { MustSay::Kind } else { MustSay::Nothing };
        Self::Result { raw, must_say }
    }

    /// An error that is one of the request, not of its transport.
    pub(super) fn error(code: i64, message: impl Into<String>) -> Self {
        Self::refused(StatusCode::OK, code, message)
    }

    /// An error with a status of its own.
    pub(super) fn refused(status: StatusCode, code: i64, message: impl Into<String>) -> Self {
        Self::Error { error: RpcError { code, message: message.into(), data: None }, status }
    }

    /// The same with something for programs.
    pub(super) fn with_data(mut self, json: &serde_json::Value) -> Self {
        if let Self::Error { error, .. } = &mut self {
            error.data = Some(RawJson::from_value(json));
        }
        self
    }

    pub(super) fn status(&self) -> StatusCode {
        match self {
            Self::Error { status, .. } | Self::RawError { status, .. } => *status,
            _ => StatusCode::OK,
        }
    }

    /// The whole message.
    pub(super) fn pieces(self, id: &RequestId) -> Pieces {
        let id = id.0.get();
        match self {
            Self::Own(text) => Pieces::whole(&[r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#, &text, "}"]),
            Self::Ending { before, shared } => Pieces {
                head: joined(&[r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#, &before]),
                shared,
                tail: Bytes::new(),
            },
            Self::Result { raw, must_say } => result_pieces(id, raw, must_say),
            Self::RawError { raw, .. } => {
                Pieces::whole(&[r#"{"jsonrpc":"2.0","id":"#, id, r#","error":"#, raw.get(), "}"])
            }
            Self::Error { error, .. } => {
                Pieces::whole(&[r#"{"jsonrpc":"2.0","id":"#, id, r#","error":"#, &error_text(&error), "}"])
            }
        }
    }
}

fn result_pieces(id: &str, raw: RawJson, must_say: MustSay) -> Pieces {
    let text = raw.get();
    let mut say = if text.starts_with('{') { must_say.missing(&raw) } else { String::new() };
    let skipped = usize::from(!say.is_empty());
    if skipped == 1 {
        say.insert(0, '{');
        let rest = text.get(1..).unwrap_or_default();
        if rest.trim_ascii_start() == "}" {
            // No comma before the end.
            say.pop();
        }
    }
    let head = [r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#, &say];
    if text.len() <= COPIED {
        let [a, b, c, d] = head;
        return Pieces::whole(&[a, b, c, d, text.get(skipped..).unwrap_or_default(), "}"]);
    }
    let head = joined(&head);
    Pieces { head, shared: Bytes::from_owner(Held(raw)).slice(skipped..), tail: Bytes::from_static(b"}") }
}

/// An error that answers no request in particular.
pub(super) fn error_without_id(code: i64, message: &str) -> Pieces {
    let error = RpcError { code, message: message.to_owned(), data: None };
    Pieces::whole(&[r#"{"jsonrpc":"2.0","error":"#, &error_text(&error), "}"])
}

fn error_text(error: &RpcError) -> String {
    let message = serde_json::Value::from(error.message.as_str());
    match &error.data {
        None => format!(r#"{{"code":{},"message":{message}}}"#, error.code),
        Some(data) => format!(r#"{{"code":{},"message":{message},"data":{}}}"#, error.code, data.get()),
    }
}

/// Whether an object has a field.
pub(super) fn has_field(object: &RawJson, wanted: &str) -> bool {
    let look = || -> Result<bool, JsonFault> {
        let mut cursor = JsonCursor::of(object);
        if !cursor.enter_object()? {
            return Ok(false);
        }
        while let Some(key) = cursor.next_key()? {
            if key == wanted {
                return Ok(true);
            }
            cursor.skip()?;
        }
        Ok(false)
    };
    look().unwrap_or(false)
}

/// Raw JSON that is sent without being copied.
struct Held(RawJson);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.0.get().as_bytes()
    }
}

fn joined(texts: &[&str]) -> Bytes {
    Bytes::from(texts.concat())
}

impl Pieces {
    /// A message in one piece.
    pub(super) fn whole(texts: &[&str]) -> Self {
        Self { head: joined(texts), ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.head.len() + self.shared.len() + self.tail.len()
    }

    /// The message between two texts, on one line: for standard output and for events.
    pub(super) fn line(&self, before: &[u8], after: &[u8]) -> Bytes {
        let mut line = Vec::with_capacity(before.len() + self.len() + after.len());
        line.extend_from_slice(before);
        for piece in [&self.head, &self.shared, &self.tail] {
            line.extend_from_slice(piece);
        }
        one_line(line.get_mut(before.len()..).unwrap_or_default());
        line.extend_from_slice(after);
        line.into()
    }
}

/// The same JSON on one line: line ends stand only between its tokens.
pub(super) fn one_line(mut json: &mut [u8]) {
    while let Some(at) = memchr::memchr2(b'\n', b'\r', json) {
        let Some((end, rest)) = json.get_mut(at..).and_then(<[u8]>::split_first_mut) else { return };
        *end = b' ';
        json = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(raw: &str, must_say: MustSay) -> String {
        let id = RequestId(RawJson::parse("7".to_owned()).unwrap());
        let outcome = Outcome::Result { raw: RawJson::parse(raw.to_owned()).unwrap(), must_say };
        let text = String::from_utf8(outcome.pieces(&id).line(b"", b"").to_vec()).unwrap();
        text.strip_prefix(r#"{"jsonrpc":"2.0","id":7,"result":"#)
            .unwrap()
            .strip_suffix('}')
            .unwrap()
            .to_owned()
    }

    #[test]
    fn what_must_be_said_is_said_once() {
        assert_eq!(written("{ }", MustSay::Nothing), "{ }");
        assert_eq!(written("{ }", MustSay::Kind), r#"{"resultType":"complete" }"#);
        assert_eq!(written("{\n\"a\":1}", MustSay::Kind), r#"{"resultType":"complete", "a":1}"#);
        let said = r#"{"a":1,"resultType":"input_required"}"#;
        assert_eq!(written(said, MustSay::Kind), said);
        assert_eq!(written("[1]", MustSay::Kind), "[1]");
        assert_eq!(
            written(r#"{"ttlMs":5}"#, MustSay::KindAndCaching),
            r#"{"resultType":"complete","cacheScope":"private","ttlMs":5}"#
        );
    }

    #[test]
    fn large_results_are_the_same_in_pieces() {
        let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(COPIED));
        let small = written(r#"{"a":"x"}"#, MustSay::Kind).replace("x", &"x".repeat(COPIED));
        assert_eq!(written(&large, MustSay::Kind), small);
    }
}
