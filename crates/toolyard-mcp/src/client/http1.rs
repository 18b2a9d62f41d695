//! HTTP/1.1 as bytes: what a request looks like, the head of its answer, and where the answer's body ends. No IO.

use std::mem::MaybeUninit;

use bytes::{Buf as _, BytesMut};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE},
};
use httparse::{ParserConfig, Status};
use url::{Position, Url};

use super::{http::SESSION_ID, http_target::DPOP_NONCE};

/// A head longer than this, or with more lines, is an attack.
const MOST_HEAD: usize = 400 << 10;
const MOST_HEADERS: usize = 100;
/// What may stand beside the data of a chunked body, all of it together: extensions of chunks, and what follows the last.
const MOST_BESIDE: usize = 16 << 10;
/// The headers of an answer that mean anything to us besides those about its length.
static KEPT: [HeaderName; 6] =
    [CONTENT_TYPE, SESSION_ID, CONTENT_ENCODING, LOCATION, WWW_AUTHENTICATE, DPOP_NONCE];

/// Why an answer cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum HttpFault {
    #[error("its answer is not HTTP ({0})")]
    NotHttp(httparse::Error),
    #[error("the head of its answer does not end")]
    LongHead,
    #[error("its answer changes the protocol, which nobody asked for")]
    Upgrade,
    #[error("its answer says in two ways, or in none that is known, how long it is")]
    Length,
    #[error("its answer is in chunks that are none")]
    Chunk,
    #[error("it hung up before the end of its answer")]
    HungUp,
}

/// A request as it is written, up to its body.
pub(super) fn request_head(
    method: &Method,
    url: &Url,
    headers: &HeaderMap,
    length: Option<usize>,
) -> Vec<u8> {
    // More than most heads have, so that the body of a small message finds room behind it.
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

/// What is known of an answer once its head has come.
#[derive(Debug)]
pub(super) struct AnswerHead {
    pub(super) status: StatusCode,
    /// Those in [`KEPT`].
    pub(super) headers: HeaderMap,
    pub(super) body: Framing,
    /// Whether the connection may be used again once the body has ended.
    pub(super) reusable: bool,
}

/// Takes the head of an answer off the front of what came; none while it is not complete. Answers that only say that
/// another one follows are passed over. `seen` is how much was looked at before.
pub(super) fn take_head(came: &mut BytesMut, seen: &mut usize) -> Result<Option<AnswerHead>, HttpFault> {
    loop {
        if !has_blank_line(came, *seen) {
            *seen = came.len();
            return if came.len() > MOST_HEAD { Err(HttpFault::LongHead) } else { Ok(None) };
        }
        *seen = 0;
        let mut lines = [const { MaybeUninit::uninit() }; MOST_HEADERS];
        let mut parsed = httparse::Response::new(&mut []);
        let outcome =
            ParserConfig::default().parse_response_with_uninit_headers(&mut parsed, came, &mut lines);
        let length = match outcome.map_err(HttpFault::NotHttp)? {
            Status::Complete(length) if length <= MOST_HEAD => length,
            Status::Partial if came.len() <= MOST_HEAD => return Ok(None),
            Status::Complete(_) | Status::Partial => return Err(HttpFault::LongHead),
        };
        let head = read_head(&parsed)?;
        came.advance(length);
        if !head.status.is_informational() {
            return Ok(Some(head));
        }
    }
}

/// Whether an empty line stands in what came, which ends a head. What was looked at before is not looked at again.
fn has_blank_line(came: &[u8], seen: usize) -> bool {
    // The end of the line before it may have come already.
    let fresh = came.get(seen.saturating_sub(2)..).unwrap_or_default();
    memchr::memchr_iter(b'\n', fresh).any(|at| {
        let rest = fresh.get(at + 1..).unwrap_or_default();
        rest.starts_with(b"\n") || rest.starts_with(b"\r\n")
    })
}

fn read_head(parsed: &httparse::Response<'_, '_>) -> Result<AnswerHead, HttpFault> {
    let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(HttpFault::NotHttp(httparse::Error::Status))?;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Err(HttpFault::Upgrade);
    }
    let mut headers = HeaderMap::with_capacity(4);
    let (mut lengths, mut reusable) = (Lengths::default(), parsed.version == Some(1));
    for line in parsed.headers.iter() {
        if line.name.eq_ignore_ascii_case("content-length") {
            lengths.announced(line.value)?;
        } else if line.name.eq_ignore_ascii_case("transfer-encoding") {
            lengths.encoded(line.value)?;
        } else if line.name.eq_ignore_ascii_case("connection") {
            reusable &= !has_word(line.value, b"close");
        } else if let Some(name) = KEPT.iter().find(|name| line.name.eq_ignore_ascii_case(name.as_str()))
            && let Ok(value) = HeaderValue::from_bytes(line.value)
        {
            headers.append(name.clone(), value);
        }
    }
    let place = match (lengths.chunked, lengths.announced) {
        _ if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) => Place::Ended,
        // Whoever stands between may have believed the other one; what follows is nobody's answer then.
        (true, announced) => {
            reusable &= announced.is_none() && parsed.version == Some(1);
            Place::Size { size: 0, digits: 0 }
        }
        (false, Some(length)) => Place::Length(length),
        (false, None) => {
            reusable = false;
            Place::UntilClose
        }
    };
    let body = Framing { announced: lengths.announced.filter(|_| !lengths.chunked), place, beside: 0 };
    Ok(AnswerHead { status, headers, body, reusable })
}

/// What a head says about the length of its body.
#[derive(Debug, Default)]
struct Lengths {
    announced: Option<u64>,
    chunked: bool,
}

impl Lengths {
    fn announced(&mut self, value: &[u8]) -> Result<(), HttpFault> {
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(value).ok().filter(|_| digits).and_then(|text| text.parse().ok());
        match (length, self.announced.replace(length.ok_or(HttpFault::Length)?)) {
            (Some(now), Some(before)) if now != before => Err(HttpFault::Length),
            _ => Ok(()),
        }
    }

    fn encoded(&mut self, value: &[u8]) -> Result<(), HttpFault> {
        let again = std::mem::replace(&mut self.chunked, true);
        if again || !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Err(HttpFault::Length);
        }
        Ok(())
    }
}

fn has_word(list: &[u8], word: &[u8]) -> bool {
    list.split(|byte| *byte == b',').any(|item| item.trim_ascii().eq_ignore_ascii_case(word))
}

/// Where in a body we are, and how its end is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Framing {
    /// How long it will be, if the head said so.
    pub(super) announced: Option<u64>,
    place: Place,
    /// Bytes so far that were neither data nor needed.
    beside: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Ended,
    Length(u64),
    UntilClose,
    /// In the digits of a chunk's size.
    Size {
        size: u64,
        digits: u8,
    },
    /// In what may follow the digits.
    Extension {
        size: u64,
    },
    /// Before the line feed that ends the line with the size.
    SizeEnd {
        size: u64,
    },
    Data {
        left: u64,
    },
    /// Before the carriage return and the line feed after the data of a chunk.
    DataReturn,
    DataFeed,
    /// In the lines after the last chunk: how many bytes this line has so far.
    Trailer {
        bytes: usize,
    },
    TrailerFeed {
        bytes: usize,
    },
}

/// What stands at the front of what came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// So many bytes of the body.
    Data(usize),
    /// Nothing yet: more must come.
    More,
    /// The body has ended.
    Ended,
}

impl Framing {
    /// Takes everything off the front of what came that is not data of the body.
    pub(super) fn step(&mut self, came: &mut BytesMut) -> Result<Step, HttpFault> {
        let mut at = 0;
        let step = loop {
            let room = came.len() - at;
            match self.place {
                Place::Ended | Place::Length(0) => break Step::Ended,
                _ if room == 0 => break Step::More,
                Place::UntilClose => break Step::Data(room),
                Place::Length(left) | Place::Data { left } => {
                    break Step::Data(usize::try_from(left).map_or(room, |left| left.min(room)));
                }
                _ => {}
            }
            if let Some(&byte) = came.get(at) {
                self.place = self.after(byte)?;
            }
            at += 1;
        };
        came.advance(at);
        Ok(step)
    }

    /// Takes data off the front, as much as a step said.
    pub(super) fn take(&mut self, came: &mut BytesMut, bytes: usize) {
        let bytes = bytes.min(came.len());
        came.advance(bytes);
        let gone = bytes as u64;
        self.place = match self.place {
            Place::Length(left) => Place::Length(left.saturating_sub(gone)),
            Place::Data { left } if left <= gone => Place::DataReturn,
            Place::Data { left } => Place::Data { left: left - gone },
            other => other,
        };
    }

    /// The other side hung up: the end of a body whose end is known by that, and otherwise not.
    pub(super) fn hung_up(&mut self) -> Result<(), HttpFault> {
        match self.place {
            Place::Ended | Place::UntilClose | Place::Length(0) => {
                self.place = Place::Ended;
                Ok(())
            }
            _ => Err(HttpFault::HungUp),
        }
    }

    /// Where we are after one more byte of what surrounds the data of chunks.
    fn after(&mut self, byte: u8) -> Result<Place, HttpFault> {
        let place = match (self.place, byte) {
            (Place::Size { size, digits }, _) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16).map_or(0, u64::from);
                // More digits than these do not fit, whatever they are.
                if digits >= 16 {
                    return Err(HttpFault::Chunk);
                }
                Place::Size { size: (size << 4) | digit, digits: digits + 1 }
            }
            (Place::Size { digits: 0, .. }, _) => return Err(HttpFault::Chunk),
            (Place::Size { size, .. } | Place::Extension { size }, b'\r') => Place::SizeEnd { size },
            (Place::Size { size, .. }, b';' | b' ' | b'\t') => Place::Extension { size },
            (Place::Extension { size }, _) if byte != b'\n' => self.beside(Place::Extension { size })?,
            (Place::SizeEnd { size: 0 }, b'\n') => Place::Trailer { bytes: 0 },
            (Place::SizeEnd { size }, b'\n') => Place::Data { left: size },
            (Place::DataReturn, b'\r') => Place::DataFeed,
            (Place::DataFeed, b'\n') => Place::Size { size: 0, digits: 0 },
            (Place::Trailer { bytes }, b'\r') => Place::TrailerFeed { bytes },
            (Place::Trailer { bytes }, _) if byte != b'\n' => {
                self.beside(Place::Trailer { bytes: bytes + 1 })?
            }
            (Place::TrailerFeed { bytes: 0 }, b'\n') => Place::Ended,
            (Place::TrailerFeed { .. }, b'\n') => Place::Trailer { bytes: 0 },
            _ => return Err(HttpFault::Chunk),
        };
        Ok(place)
    }

    /// Counts a byte that says nothing.
    fn beside(&mut self, place: Place) -> Result<Place, HttpFault> {
        self.beside += 1;
        if self.beside > MOST_BESIDE { Err(HttpFault::Chunk) } else { Ok(place) }
    }
}

#[cfg(test)]
#[path = "http1_tests.rs"]
mod tests;
