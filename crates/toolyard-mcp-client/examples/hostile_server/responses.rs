//! Invalid responses, independent of the transport.

use std::{
    io,
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    Scenario,
    protocol::{Request, notification, text_result, valid_response},
    tool_lists,
};

/// Writes messages to the client.
pub(crate) trait MessageWriter {
    fn begin(&mut self) -> io::Result<()>;
    fn write_piece(&mut self, bytes: &[u8]) -> io::Result<()>;
    fn end(&mut self) -> io::Result<()>;

    fn write_message(&mut self, text: &str) -> io::Result<()> {
        self.begin()?;
        self.write_piece(text.as_bytes())?;
        self.end()
    }
}

const FLOOD_DURATION: Duration = Duration::from_millis(600);
const DEEP_LEVELS: usize = 100_000;
const HUGE_MEGABYTES: usize = 300;

/// Responds as the case demands.
pub(crate) fn respond(
    scenario: &Scenario,
    request: &Request,
    writer: &mut dyn MessageWriter,
) -> io::Result<()> {
    if request.id.is_none() {
        return Ok(());
    }
    let case = scenario.case.as_str();
    let response = match request.method.as_str() {
        "server/discover" if scenario.legacy => None,
        "server/discover" | "initialize" => handshake(case, request),
        "tools/list" => tool_lists::list_response(case, request),
        "tools/call" => {
            if write_special_response(scenario, request, writer)? {
                return Ok(());
            }
            invalid_envelope(case, request).or_else(|| invalid_result(case, request))
        }
        _ => None,
    };
    match response.or_else(|| valid_response(request, scenario.legacy)) {
        Some(text) => writer.write_message(&text),
        None => Ok(()),
    }
}

fn handshake(case: &str, request: &Request) -> Option<String> {
    let legacy = request.method == "initialize";
    let handshake_result = |version: &Value| {
        let capabilities = json!({"tools": {}});
        if legacy {
            json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": {"name": "x", "version": "1"}})
        } else {
            json!({"resultType": "complete", "supportedVersions": [version], "capabilities": capabilities,
                "ttlMs": 0, "cacheScope": "private"})
        }
    };
    match case {
        "unknown-version" => Some(request.result(&handshake_result(&json!("2099-01-01")))),
        "version-not-a-string" => Some(request.result(&handshake_result(&json!(7)))),
        "version-of-1mb" => Some(request.result(&handshake_result(&json!("9".repeat(1 << 20))))),
        "handshake-null" => Some(request.raw_result("null")),
        "handshake-number" => Some(request.raw_result("7")),
        "handshake-list" => Some(request.raw_result("[]")),
        "handshake-empty" => Some(request.raw_result("{}")),
        "handshake-deep" => Some(request.raw_result(&nested(DEEP_LEVELS))),
        "handshake-error-text" => Some(request.raw_result("1").replace("\"result\":1", "\"error\":\"no\"")),
        "handshake-error-10mb" => {
            Some(raw_error(request, &format!(r#"{{"code":-32022,"message":"{}"}}"#, "n".repeat(10 << 20))))
        }
        _ => None,
    }
}

/// An error from JSON text. Large values are written as text, because this server must not be slow itself.
fn raw_error(request: &Request, error: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, request.numeric_id())
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// Responses with an invalid envelope.
fn invalid_envelope(case: &str, request: &Request) -> Option<String> {
    let with_id = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, text_result("poison"));
    let id = request.numeric_id();
    Some(match case {
        "wrong-id" => with_id(&(id + 1_000_000).to_string()),
        "next-id" => with_id(&(id + 1).to_string()),
        "string-id" => with_id(&format!("\"{id}\"")),
        "float-id" => with_id(&format!("{id}.0")),
        "exponent-id" => with_id(&format!("{id}e0")),
        "negative-id" => with_id(&format!("-{id}")),
        "huge-id" => with_id(&"9".repeat(1 << 20)),
        "null-id" => with_id("null"),
        "object-id" => with_id("{}"),
        "no-id" => format!(r#"{{"jsonrpc":"2.0","result":{}}}"#, text_result("poison")),
        "duplicate-id-keys" => {
            format!(r#"{{"jsonrpc":"2.0","id":{},"id":{id},"result":{}}}"#, id + 1, text_result("poison"))
        }
        "duplicate-result-keys" => {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{},"result":{}}}"#,
                text_result("one"),
                text_result("two")
            )
        }
        "result-and-error" => {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{},"error":{{"code":1,"message":"no"}}}}"#,
                text_result("one")
            )
        }
        "neither-result-nor-error" => format!(r#"{{"jsonrpc":"2.0","id":{id}}}"#),
        "error-text" => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"no"}}"#),
        "error-list" => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":[1,2,3]}}"#),
        "error-wrong-fields" => {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":"x","message":{{"a":1}},"data":1e400}}}}"#
            )
        }
        "error-deep" => format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":"no","data":{}}}}}"#,
            nested(DEEP_LEVELS)
        ),
        "error-10mb" => {
            raw_error(request, &format!(r#"{{"code":-32000,"message":"{}"}}"#, "n".repeat(10 << 20)))
        }
        "error-data-10mb" => raw_error(
            request,
            &format!(r#"{{"code":-32000,"message":"no","data":"{}"}}"#, "n".repeat(10 << 20)),
        ),
        "error-code-1e400" => {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1e400,"message":"no"}}}}"#)
        }
        "escapes-in-error" => request.error(&json!({"code": 1, "message": "\u{1b}[2J\u{202e}no\u{0}"})),
        _ => return None,
    })
}

/// Invalid and unusual results of a call.
fn invalid_result(case: &str, request: &Request) -> Option<String> {
    let raw = |result: &str| Some(request.raw_result(result));
    let content = |content: &str| raw(&format!(r#"{{"resultType":"complete","content":{content}}}"#));
    match case {
        "deep-result" => raw(&nested(DEEP_LEVELS)),
        "deep-content" => content(&nested(DEEP_LEVELS)),
        "result-null" => raw("null"),
        "result-number" => raw("7"),
        "result-text" => raw("\"done\""),
        "result-list" => raw("[]"),
        "result-empty" => raw("{}"),
        "content-null" => content("null"),
        "content-text" => content("\"done\""),
        "content-malformed" => {
            content(r#"[null,7,"a",[],{},{"type":7},{"type":"text"},{"type":"text","text":7}]"#)
        }
        "content-unknown" => content(r#"[{"type":"hologram","data":"x"}]"#),
        "content-100000" => {
            content(&format!("[{}]", vec![r#"{"type":"text","text":"a"}"#; 100_000].join(",")))
        }
        "image-not-base64" => content(r#"[{"type":"image","data":"§§","mimeType":"a\nb"}]"#),
        "number-1e400" => raw(
            r#"{"resultType":"complete","content":[],"structuredContent":{"n":1e400,"m":-0.0,"o":1E-999}}"#,
        ),
        "is-error-5mb" => raw(&format!(
            r#"{{"resultType":"complete","isError":true,"content":[{{"type":"text","text":"{}"}}]}}"#,
            "e".repeat(5 << 20)
        )),
        "is-error-number" => raw(r#"{"resultType":"complete","content":[],"isError":1}"#),
        "result-type-unknown" => raw(r#"{"resultType":"later","content":[]}"#),
        "lone-surrogate" => content(r#"[{"type":"text","text":"\ud800"}]"#),
        "escaped-nul" => content(r#"[{"type":"text","text":"a\u0000b"}]"#),
        "input-rounds-endless" => raw(
            r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object"}}}},"requestState":"s"}"#,
        ),
        "empty-input-rounds-endless" => {
            raw(r#"{"resultType":"input_required","inputRequests":{},"requestState":"s"}"#)
        }
        "input-requests-10000" => {
            let one = r#"{"method":"elicitation/create","params":{"message":"?"}}"#;
            let all: Vec<String> = (0..10_000).map(|key| format!(r#""{key}":{one}"#)).collect();
            raw(&format!(r#"{{"resultType":"input_required","inputRequests":{{{}}}}}"#, all.join(",")))
        }
        "state-of-1mb" => raw(&format!(
            r#"{{"resultType":"input_required","inputRequests":{{}},"requestState":"{}"}}"#,
            "s".repeat(1 << 20)
        )),
        _ => None,
    }
}

/// Cases that need the writer itself: raw bytes, several messages, batches, delays. Returns whether the case is one of these.
fn write_special_response(
    scenario: &Scenario,
    request: &Request,
    writer: &mut dyn MessageWriter,
) -> io::Result<bool> {
    let valid_response = || valid_response(request, scenario.legacy).unwrap_or_default();
    let respond_with_bytes = |writer: &mut dyn MessageWriter, before: &[u8], bad: &[u8], after: &[u8]| {
        writer.begin()?;
        writer.write_piece(
            format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, request.numeric_id()).as_bytes(),
        )?;
        writer.write_piece(br#"{"resultType":"complete","content":[{"type":"text","text":""#)?;
        for piece in [before, bad, after] {
            writer.write_piece(piece)?;
        }
        writer.write_piece(br#""}]}}"#)?;
        writer.end()
    };
    match scenario.case.as_str() {
        // Two names, because a table has at most one row per case.
        "huge-result" | "huge-results" => send_huge_result(writer, request)?,
        "invalid-utf8" => respond_with_bytes(writer, b"a", b"\xff\xfe\xc0\x80", b"b")?,
        "half-a-character" => respond_with_bytes(writer, b"a", b"\xf0\x9f", b"b")?,
        "nul-byte" => respond_with_bytes(writer, b"a", b"\0", b"b")?,
        "raw-control" => respond_with_bytes(writer, b"a", b"\x01\x1b[31m", b"b")?,
        "byte-order-mark" => writer.write_message(&format!("\u{feff}{}", valid_response()))?,
        "duplicate-responses" => {
            for _ in 0..100 {
                writer.write_message(&valid_response())?;
            }
        }
        "batch-100000" => {
            let one = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
            writer.write_message(&format!("[{},{}]", vec![one; 100_000].join(","), valid_response()))?;
        }
        "batch-of-batches" => writer.write_message(&format!("[[{}]]", valid_response()))?,
        "empty-batch" => writer.write_message("[]")?,
        "slow-drip" => send_slowly(writer, &valid_response())?,
        "list-changed-flood"
        | "progress-flood"
        | "progress-endless"
        | "log-flood"
        | "ping-flood"
        | "sampling-flood"
        | "elicitation-flood"
        | "large-notifications"
        | "unknown-requests-flood" => {
            flood(scenario, request, writer)?;
        }
        "late-response" => {
            sleep(Duration::from_millis(1_500));
            writer.write_message(&request.result(&text_result("late")))?;
        }
        "late-first-response" => {
            if request.text_argument() == "first" {
                sleep(Duration::from_millis(700));
            }
            writer.write_message(&request.result(&text_result(&request.text_argument())))?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// A result above every limit.
fn send_huge_result(writer: &mut dyn MessageWriter, request: &Request) -> io::Result<()> {
    writer.begin()?;
    writer.write_piece(
        format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":""#,
            request.numeric_id()
        )
        .as_bytes(),
    )?;
    let megabyte = vec![b'x'; 1 << 20];
    for _ in 0..HUGE_MEGABYTES {
        writer.write_piece(&megabyte)?;
    }
    writer.write_piece(br#""}]}}"#)?;
    writer.end()
}

/// Sends one byte a second.
fn send_slowly(writer: &mut dyn MessageWriter, text: &str) -> io::Result<()> {
    writer.begin()?;
    for byte in text.bytes() {
        writer.write_piece(&[byte])?;
        sleep(Duration::from_secs(1));
    }
    writer.end()
}

/// Sends messages for a while, then the response; `progress-endless` never responds.
fn flood(scenario: &Scenario, request: &Request, writer: &mut dyn MessageWriter) -> io::Result<()> {
    let case = scenario.case.as_str();
    let started = Instant::now();
    let mut number = 0_u64;
    while number < 100_000 || case == "progress-endless" {
        writer.write_message(&flood_message(case, number, &request.progress_token()))?;
        if case == "progress-endless" {
            sleep(Duration::from_millis(100));
        } else if started.elapsed() > FLOOD_DURATION {
            break;
        }
        number += 1;
    }
    writer.write_message(&valid_response(request, scenario.legacy).unwrap_or_default())
}

fn flood_message(case: &str, number: u64, token: &Value) -> String {
    let server_request = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": format!("s{number}"), "method": method, "params": params}).to_string()
    };
    match case {
        "progress-flood" | "progress-endless" => {
            notification("notifications/progress", &json!({"progressToken": token, "progress": number}))
        }
        "log-flood" => {
            notification("notifications/message", &json!({"level": "info", "data": "x".repeat(200)}))
        }
        "large-notifications" => notification("notifications/message", &json!({"data": "x".repeat(1 << 20)})),
        "ping-flood" => server_request("ping", json!({})),
        "sampling-flood" => server_request("sampling/createMessage", json!({"messages": [], "maxTokens": 1})),
        "elicitation-flood" => server_request(
            "elicitation/create",
            json!({"message": "?", "requestedSchema": {"type": "object"}}),
        ),
        "unknown-requests-flood" => server_request("give/me", json!({"x": "y".repeat(200)})),
        _ => notification("notifications/tools/list_changed", &json!({})),
    }
}
