//! HTTP/1.1 as bytes, without I/O: encodes request heads, parses response heads and finds the end of bodies.

use std::mem::MaybeUninit;

use bytes::{Buf as _, BytesMut};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE},
};
use httparse::{ParserConfig, Status};
use url::{Position, Url};

use crate::transport::http::headers::SESSION_ID;

/// Limits of a response head.
const MAX_HEAD_BYTES: usize = 400 << 10;
const MAX_HEADERS: usize = 100;
/// Chunk extensions and trailers of one body, together.
const MAX_CHUNK_OVERHEAD_BYTES: usize = 16 << 10;
/// Informational responses (1xx) before a response. A server that sends more keeps the client busy for nothing.
const MAX_INFORMATIONAL_RESPONSES: usize = 32;
/// The response headers that this crate reads, besides those about the length.
static KEPT_HEADERS: [HeaderName; 6] =
    [CONTENT_TYPE, SESSION_ID, CONTENT_ENCODING, LOCATION, WWW_AUTHENTICATE, RETRY_AFTER];

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Http1Error {
    /// The peer does not speak HTTP/1.1, or sent a malformed response.
    ///
    /// Remedy: check scheme and port of `url`: `https` for TLS ports.
    #[error("invalid HTTP response ({0})")]
    NotHttp(httparse::Error),
    /// The response has too many or too long headers.
    ///
    /// Remedy: report it to the author of the server, or check the proxy before it.
    #[error("response head is too long")]
    HeadTooLong,
    /// The server sent one informational response after another.
    ///
    /// Remedy: report it to the author of the server, or check the proxy before it.
    #[error("too many informational responses")]
    TooManyInformational,
    /// The server answered with a change of protocol that was not requested.
    ///
    /// Remedy: check `url`: it must be an HTTP endpoint, not a WebSocket.
    #[error("unexpected protocol upgrade")]
    UnexpectedUpgrade,
    /// The headers say in two ways, or in an unknown way, how long the body is.
    ///
    /// Remedy: report it to the author of the server, or check the proxy before it.
    #[error("conflicting or unsupported body length")]
    InvalidLength,
    /// The body is not encoded as its headers say.
    ///
    /// Remedy: report it to the author of the server, or check the proxy before it.
    #[error("invalid chunked body")]
    InvalidChunk,
    /// The connection was closed in the middle of a response.
    ///
    /// Remedy: see the log of the server (`toolyard servers logs NAME`); it, or a proxy before it, may have crashed or
    /// timed out.
    #[error("disconnected before the end of the response")]
    Disconnected,
}

/// A request up to its body.
pub(super) fn encode_head(method: &Method, url: &Url, headers: &HeaderMap, length: Option<usize>) -> Vec<u8> {
    // Space for the body of a small message as well.
    let mut head = Vec::with_capacity(1_024);
    let (path, host) =
        (&url[Position::BeforePath..Position::AfterQuery], &url[Position::BeforeHost..Position::AfterPort]);
    for part in [method.as_str(), " ", path, " HTTP/1.1\r\nhost: ", host, "\r\n"] {
        head.extend_from_slice(part.as_bytes());
    }
    for (name, value) in headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            head.extend_from_slice(part);
        }
    }
    if let Some(length) = length {
        head.extend_from_slice(b"content-length: ");
        head.extend_from_slice(length.to_string().as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[derive(Debug)]
pub(super) struct ResponseHead {
    pub(super) status: StatusCode,
    /// Those in [`KEPT_HEADERS`].
    pub(super) headers: HeaderMap,
    pub(super) body: BodyFraming,
    /// Whether the connection may be reused after the body.
    pub(super) is_reusable: bool,
}

/// What is known of a response whose head is incomplete.
#[derive(Debug, Default)]
pub(super) struct HeadProgress {
    /// How many bytes were searched for the end of the head.
    scanned: usize,
    /// How many informational responses were skipped.
    informational: usize,
}

/// Removes a response head from the front of `buffer`; none while it is incomplete. A few informational responses are skipped.
pub(super) fn parse_head(
    buffer: &mut BytesMut,
    progress: &mut HeadProgress,
) -> Result<Option<ResponseHead>, Http1Error> {
    loop {
        if !has_blank_line(buffer, progress.scanned) {
            progress.scanned = buffer.len();
            return if buffer.len() > MAX_HEAD_BYTES { Err(Http1Error::HeadTooLong) } else { Ok(None) };
        }
        progress.scanned = 0;
        let mut lines = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut parsed = httparse::Response::new(&mut []);
        let outcome =
            ParserConfig::default().parse_response_with_uninit_headers(&mut parsed, buffer, &mut lines);
        let length = match outcome.map_err(Http1Error::NotHttp)? {
            Status::Complete(length) if length <= MAX_HEAD_BYTES => length,
            Status::Partial if buffer.len() <= MAX_HEAD_BYTES => return Ok(None),
            Status::Complete(_) | Status::Partial => return Err(Http1Error::HeadTooLong),
        };
        let head = interpret_head(&parsed)?;
        buffer.advance(length);
        if !head.status.is_informational() {
            return Ok(Some(head));
        }
        progress.informational += 1;
        if progress.informational > MAX_INFORMATIONAL_RESPONSES {
            return Err(Http1Error::TooManyInformational);
        }
    }
}

/// Whether the buffer contains an empty line, which ends a head. Bytes before `scanned` are not searched again.
fn has_blank_line(buffer: &[u8], scanned: usize) -> bool {
    // The end of the previous line may be among the scanned bytes.
    let unscanned = buffer.get(scanned.saturating_sub(2)..).unwrap_or_default();
    memchr::memchr_iter(b'\n', unscanned).any(|at| {
        let rest = unscanned.get(at + 1..).unwrap_or_default();
        rest.starts_with(b"\n") || rest.starts_with(b"\r\n")
    })
}

fn interpret_head(parsed: &httparse::Response<'_, '_>) -> Result<ResponseHead, Http1Error> {
    let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(Http1Error::NotHttp(httparse::Error::Status))?;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(Http1Error::UnexpectedUpgrade);
    }
    let mut headers = HeaderMap::with_capacity(4);
    let (mut length, mut is_reusable) = (BodyLength::default(), parsed.version == Some(1));
    for line in parsed.headers.iter() {
        if line.name.eq_ignore_ascii_case("content-length") {
            length.set_content_length(line.value)?;
        } else if line.name.eq_ignore_ascii_case("transfer-encoding") {
            length.set_transfer_encoding(line.value)?;
        } else if line.name.eq_ignore_ascii_case("connection") {
            is_reusable &= !has_token(line.value, b"close");
        } else if let Some(name) =
            KEPT_HEADERS.iter().find(|name| line.name.eq_ignore_ascii_case(name.as_str()))
            && let Ok(value) = HeaderValue::from_bytes(line.value)
        {
            headers.append(name.clone(), value);
        }
    }
    let state = match (length.is_chunked, length.content_length) {
        _ if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) => BodyState::End,
        // With both headers, a proxy may have used the other one, so what follows is not trusted.
        (true, content_length) => {
            is_reusable &= content_length.is_none() && parsed.version == Some(1);
            BodyState::Size { size: 0, digits: 0 }
        }
        (false, Some(length)) => BodyState::Length(length),
        (false, None) => {
            is_reusable = false;
            BodyState::UntilClose
        }
    };
    let content_length = length.content_length.filter(|_| !length.is_chunked);
    let body = BodyFraming { content_length, state, overhead: 0 };
    Ok(ResponseHead { status, headers, body, is_reusable })
}

#[derive(Debug, Default)]
struct BodyLength {
    content_length: Option<u64>,
    is_chunked: bool,
}

impl BodyLength {
    fn set_content_length(&mut self, value: &[u8]) -> Result<(), Http1Error> {
        let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(value).ok().filter(|_| is_number).and_then(|text| text.parse().ok());
        match (length, self.content_length.replace(length.ok_or(Http1Error::InvalidLength)?)) {
            (Some(now), Some(before)) if now != before => Err(Http1Error::InvalidLength),
            _ => Ok(()),
        }
    }

    fn set_transfer_encoding(&mut self, value: &[u8]) -> Result<(), Http1Error> {
        let was_chunked = std::mem::replace(&mut self.is_chunked, true);
        if was_chunked || !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Err(Http1Error::InvalidLength);
        }
        Ok(())
    }
}

fn has_token(list: &[u8], word: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|item| item.trim_ascii().eq_ignore_ascii_case(word))
}

/// How far a body has been decoded, and how its end is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BodyFraming {
    /// The length that the head announced.
    pub(super) content_length: Option<u64>,
    state: BodyState,
    /// Bytes of chunk extensions and trailers so far.
    overhead: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyState {
    End,
    Length(u64),
    UntilClose,
    /// In the digits of a chunk size.
    Size {
        size: u64,
        digits: u8,
    },
    /// After the digits.
    Extension {
        size: u64,
    },
    /// Before the line feed of the size line.
    SizeEnd {
        size: u64,
    },
    Data {
        left: u64,
    },
    /// Before the carriage return and the line feed after a chunk.
    DataReturn,
    DataFeed,
    /// In a trailer line, with the bytes of this line so far.
    Trailer {
        bytes: usize,
    },
    TrailerFeed {
        bytes: usize,
    },
}

/// What is at the front of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DecodeStep {
    Data(usize),
    NeedMore,
    End,
}

impl BodyFraming {
    /// Removes everything from the front of the buffer that is not data.
    pub(super) fn step(&mut self, buffer: &mut BytesMut) -> Result<DecodeStep, Http1Error> {
        let mut at = 0;
        let step = loop {
            let available = buffer.len() - at;
            match self.state {
                BodyState::End | BodyState::Length(0) => break DecodeStep::End,
                _ if available == 0 => break DecodeStep::NeedMore,
                BodyState::UntilClose => break DecodeStep::Data(available),
                BodyState::Length(left) | BodyState::Data { left } => {
                    break DecodeStep::Data(
                        usize::try_from(left).map_or(available, |left| left.min(available)),
                    );
                }
                _ => {}
            }
            if let Some(&byte) = buffer.get(at) {
                self.state = self.next_state(byte)?;
            }
            at += 1;
        };
        buffer.advance(at);
        Ok(step)
    }

    /// Removes data that a step reported.
    pub(super) fn consume(&mut self, buffer: &mut BytesMut, bytes: usize) {
        let bytes = bytes.min(buffer.len());
        buffer.advance(bytes);
        let consumed = bytes as u64;
        self.state = match self.state {
            BodyState::Length(left) => BodyState::Length(left.saturating_sub(consumed)),
            BodyState::Data { left } if left <= consumed => BodyState::DataReturn,
            BodyState::Data { left } => BodyState::Data { left: left - consumed },
            other => other,
        };
    }

    /// The connection ended: the end of a body without a length, and an error in every other.
    pub(super) fn end_of_stream(&mut self) -> Result<(), Http1Error> {
        match self.state {
            BodyState::End | BodyState::UntilClose | BodyState::Length(0) => {
                self.state = BodyState::End;
                Ok(())
            }
            _ => Err(Http1Error::Disconnected),
        }
    }

    /// The state after one more byte of chunk framing.
    fn next_state(&mut self, byte: u8) -> Result<BodyState, Http1Error> {
        let state = match (self.state, byte) {
            (BodyState::Size { size, digits }, _) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                // More digits do not fit into a u64.
                if digits >= 16 {
                    return Err(Http1Error::InvalidChunk);
                }
                BodyState::Size { size: (size << 4) | digit, digits: digits + 1 }
            }
            (BodyState::Size { digits: 0, .. }, _) => return Err(Http1Error::InvalidChunk),
            (BodyState::Size { size, .. } | BodyState::Extension { size }, b'\r') => {
                BodyState::SizeEnd { size }
            }
            (BodyState::Size { size, .. }, b';' | b' ' | b'\t') => BodyState::Extension { size },
            (BodyState::Extension { size }, _) if byte != b'\n' => {
                self.count_overhead(BodyState::Extension { size })?
            }
            (BodyState::SizeEnd { size: 0 }, b'\n') => BodyState::Trailer { bytes: 0 },
            (BodyState::SizeEnd { size }, b'\n') => BodyState::Data { left: size },
            (BodyState::DataReturn, b'\r') => BodyState::DataFeed,
            (BodyState::DataFeed, b'\n') => BodyState::Size { size: 0, digits: 0 },
            (BodyState::Trailer { bytes }, b'\r') => BodyState::TrailerFeed { bytes },
            (BodyState::Trailer { bytes }, _) if byte != b'\n' => {
                self.count_overhead(BodyState::Trailer { bytes: bytes + 1 })?
            }
            (BodyState::TrailerFeed { bytes: 0 }, b'\n') => BodyState::End,
            (BodyState::TrailerFeed { .. }, b'\n') => BodyState::Trailer { bytes: 0 },
            _ => return Err(Http1Error::InvalidChunk),
        };
        Ok(state)
    }

    fn count_overhead(&mut self, state: BodyState) -> Result<BodyState, Http1Error> {
        self.overhead += 1;
        if self.overhead > MAX_CHUNK_OVERHEAD_BYTES { Err(Http1Error::InvalidChunk) } else { Ok(state) }
    }
}

#[cfg(test)]
#[path = "http1_tests.rs"]
mod tests;
