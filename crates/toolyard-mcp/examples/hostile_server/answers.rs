//! Answers that are wrong in themselves, whichever way they travel.

use std::{
    io,
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    Play, definitions,
    protocol::{Request, good, notification, said},
};

/// Carries messages to the client.
pub(crate) trait Way {
    fn begin(&mut self) -> io::Result<()>;
    fn piece(&mut self, bytes: &[u8]) -> io::Result<()>;
    fn end(&mut self) -> io::Result<()>;

    fn message(&mut self, text: &str) -> io::Result<()> {
        self.begin()?;
        self.piece(text.as_bytes())?;
        self.end()
    }
}

/// How long a flood lasts, once it began.
const FLOOD: Duration = Duration::from_millis(600);
const DEEP: usize = 100_000;
const HUGE_MEGABYTES: usize = 300;

/// Answers as the case wants it.
pub(crate) fn answer(play: &Play, request: &Request, way: &mut dyn Way) -> io::Result<()> {
    if request.id.is_none() {
        return Ok(());
    }
    let case = play.case.as_str();
    let told = match request.method.as_str() {
        "server/discover" if play.legacy => None,
        "server/discover" | "initialize" => introduction(case, request),
        "tools/list" => definitions::list(case, request),
        "tools/call" => {
            if call_in_pieces(play, request, way)? {
                return Ok(());
            }
            wrong_envelope(case, request).or_else(|| wrong_result(case, request))
        }
        _ => None,
    };
    match told.or_else(|| good(request, play.legacy)) {
        Some(text) => way.message(&text),
        None => Ok(()),
    }
}

fn introduction(case: &str, request: &Request) -> Option<String> {
    let legacy = request.method == "initialize";
    let versions = |version: &Value| {
        let capabilities = json!({"tools": {}});
        if legacy {
            json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": {"name": "x", "version": "1"}})
        } else {
            json!({"resultType": "complete", "supportedVersions": [version], "capabilities": capabilities,
                "ttlMs": 0, "cacheScope": "private"})
        }
    };
    match case {
        "unknown-version" => Some(request.result(&versions(&json!("2099-01-01")))),
        "version-number" => Some(request.result(&versions(&json!(7)))),
        "version-of-1mb" => Some(request.result(&versions(&json!("9".repeat(1 << 20))))),
        "introduction-null" => Some(request.raw_result("null")),
        "introduction-number" => Some(request.raw_result("7")),
        "introduction-list" => Some(request.raw_result("[]")),
        "introduction-empty" => Some(request.raw_result("{}")),
        "introduction-deep" => Some(request.raw_result(&nested(DEEP))),
        "introduction-wrong-error" => {
            Some(request.raw_result("1").replace("\"result\":1", "\"error\":\"no\""))
        }
        "introduction-refused" => {
            Some(raw_error(request, &format!(r#"{{"code":-32022,"message":"{}"}}"#, "n".repeat(10 << 20))))
        }
        _ => None,
    }
}

/// An error that is JSON already. Large values are written as text: a server made of slow code must not take long itself.
fn raw_error(request: &Request, error: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{},"error":{error}}}"#, request.number())
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

/// Answers whose envelope is wrong.
fn wrong_envelope(case: &str, request: &Request) -> Option<String> {
    let with_id = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, said("poison"));
    let number = request.number();
    Some(match case {
        "wrong-id" => with_id(&(number + 1_000_000).to_string()),
        "next-id" => with_id(&(number + 1).to_string()),
        "string-id" => with_id(&format!("\"{number}\"")),
        "float-id" => with_id(&format!("{number}.0")),
        "exponent-id" => with_id(&format!("{number}e0")),
        "negative-id" => with_id(&format!("-{number}")),
        "huge-id" => with_id(&"9".repeat(1 << 20)),
        "null-id" => with_id("null"),
        "object-id" => with_id("{}"),
        "no-id" => format!(r#"{{"jsonrpc":"2.0","result":{}}}"#, said("poison")),
        "duplicate-id-keys" => {
            format!(r#"{{"jsonrpc":"2.0","id":{},"id":{number},"result":{}}}"#, number + 1, said("poison"))
        }
        "duplicate-result-keys" => {
            format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{},"result":{}}}"#, said("one"), said("two"))
        }
        "result-and-error" => {
            format!(
                r#"{{"jsonrpc":"2.0","id":{number},"result":{},"error":{{"code":1,"message":"no"}}}}"#,
                said("one")
            )
        }
        "neither-result-nor-error" => format!(r#"{{"jsonrpc":"2.0","id":{number}}}"#),
        "version-1" => with_id(&number.to_string()).replace("\"2.0\"", "\"1.0\""),
        "error-text" => format!(r#"{{"jsonrpc":"2.0","id":{number},"error":"no"}}"#),
        "error-list" => format!(r#"{{"jsonrpc":"2.0","id":{number},"error":[1,2,3]}}"#),
        "error-wrong-fields" => {
            format!(
                r#"{{"jsonrpc":"2.0","id":{number},"error":{{"code":"x","message":{{"a":1}},"data":1e400}}}}"#
            )
        }
        "error-deep" => format!(
            r#"{{"jsonrpc":"2.0","id":{number},"error":{{"code":1,"message":"no","data":{}}}}}"#,
            nested(DEEP)
        ),
        "error-10mb" => {
            raw_error(request, &format!(r#"{{"code":-32000,"message":"{}"}}"#, "n".repeat(10 << 20)))
        }
        "error-data-10mb" => raw_error(
            request,
            &format!(r#"{{"code":-32000,"message":"no","data":"{}"}}"#, "n".repeat(10 << 20)),
        ),
        "error-code-1e400" => {
            format!(r#"{{"jsonrpc":"2.0","id":{number},"error":{{"code":1e400,"message":"no"}}}}"#)
        }
        "escapes-in-error" => request.error(&json!({"code": 1, "message": "\u{1b}[2J\u{202e}no\u{0}"})),
        _ => return None,
    })
}

/// Results that are no result of a call, or an odd one.
fn wrong_result(case: &str, request: &Request) -> Option<String> {
    let raw = |result: &str| Some(request.raw_result(result));
    let content = |content: &str| raw(&format!(r#"{{"resultType":"complete","content":{content}}}"#));
    match case {
        "deep-result" => raw(&nested(DEEP)),
        "deep-content" => content(&nested(DEEP)),
        "result-null" => raw("null"),
        "result-number" => raw("7"),
        "result-text" => raw("\"done\""),
        "result-list" => raw("[]"),
        "result-empty" => raw("{}"),
        "content-null" => content("null"),
        "content-text" => content("\"done\""),
        "content-of-nothing" => {
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
        "asks-without-end" => raw(
            r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object"}}}},"requestState":"s"}"#,
        ),
        "asks-nothing-without-end" => {
            raw(r#"{"resultType":"input_required","inputRequests":{},"requestState":"s"}"#)
        }
        "asks-10000-things" => {
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

/// Answers of several messages, or of pieces; whether the case is one of these.
fn call_in_pieces(play: &Play, request: &Request, way: &mut dyn Way) -> io::Result<bool> {
    let good = || good(request, play.legacy).unwrap_or_default();
    let bytes = |way: &mut dyn Way, before: &[u8], bad: &[u8], after: &[u8]| {
        way.begin()?;
        way.piece(format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, request.number()).as_bytes())?;
        way.piece(br#"{"resultType":"complete","content":[{"type":"text","text":""#)?;
        for piece in [before, bad, after] {
            way.piece(piece)?;
        }
        way.piece(br#""}]}}"#)?;
        way.end()
    };
    match play.case.as_str() {
        "huge-result" | "huge-results" => huge(way, request)?,
        "invalid-utf8" => bytes(way, b"a", b"\xff\xfe\xc0\x80", b"b")?,
        "half-a-character" => bytes(way, b"a", b"\xf0\x9f", b"b")?,
        "nul-byte" => bytes(way, b"a", b"\0", b"b")?,
        "raw-control" => bytes(way, b"a", b"\x01\x1b[31m", b"b")?,
        "byte-order-mark" => way.message(&format!("\u{feff}{}", good()))?,
        "duplicate-answers" => {
            for _ in 0..100 {
                way.message(&good())?;
            }
        }
        "batch-100000" => {
            let one = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
            way.message(&format!("[{},{}]", vec![one; 100_000].join(","), good()))?;
        }
        "batch-of-batches" => way.message(&format!("[[{}]]", good()))?,
        "empty-batch" => way.message("[]")?,
        "slow-drip" => drip(way, &good())?,
        "notifications-then-answer"
        | "list-changed-flood"
        | "progress-flood"
        | "progress-without-end"
        | "log-flood"
        | "ping-flood"
        | "sampling-flood"
        | "elicitation-flood"
        | "large-notifications"
        | "unknown-requests-flood" => {
            flood(play, request, way)?;
        }
        "late-answer" => {
            sleep(Duration::from_millis(1_500));
            way.message(&request.result(&said("late")))?;
        }
        "late-first-answer" => {
            if request.text() == "first" {
                sleep(Duration::from_millis(700));
            }
            way.message(&request.result(&said(&request.text())))?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// A result much larger than anyone takes.
fn huge(way: &mut dyn Way, request: &Request) -> io::Result<()> {
    way.begin()?;
    way.piece(
        format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[{{"type":"text","text":""#,
            request.number()
        )
        .as_bytes(),
    )?;
    let megabyte = vec![b'x'; 1 << 20];
    for _ in 0..HUGE_MEGABYTES {
        way.piece(&megabyte)?;
    }
    way.piece(br#""}]}}"#)?;
    way.end()
}

/// One byte a second.
fn drip(way: &mut dyn Way, text: &str) -> io::Result<()> {
    way.begin()?;
    for byte in text.bytes() {
        way.piece(&[byte])?;
        sleep(Duration::from_secs(1));
    }
    way.end()
}

/// As many messages as can be written for a while, then the answer; progress has no end.
fn flood(play: &Play, request: &Request, way: &mut dyn Way) -> io::Result<()> {
    let case = play.case.as_str();
    let started = Instant::now();
    let mut number = 0_u64;
    while number < 100_000 || case == "progress-without-end" {
        way.message(&flooding(case, number, &request.progress_token()))?;
        if case == "progress-without-end" {
            sleep(Duration::from_millis(100));
        } else if started.elapsed() > FLOOD {
            break;
        }
        number += 1;
    }
    way.message(&good(request, play.legacy).unwrap_or_default())
}

fn flooding(case: &str, number: u64, token: &Value) -> String {
    let asked = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": format!("s{number}"), "method": method, "params": params}).to_string()
    };
    match case {
        "progress-flood" | "progress-without-end" => {
            notification("notifications/progress", &json!({"progressToken": token, "progress": number}))
        }
        "log-flood" => {
            notification("notifications/message", &json!({"level": "info", "data": "x".repeat(200)}))
        }
        "large-notifications" => notification("notifications/message", &json!({"data": "x".repeat(1 << 20)})),
        "ping-flood" => asked("ping", json!({})),
        "sampling-flood" => asked("sampling/createMessage", json!({"messages": [], "maxTokens": 1})),
        "elicitation-flood" => {
            asked("elicitation/create", json!({"message": "?", "requestedSchema": {"type": "object"}}))
        }
        "unknown-requests-flood" => asked("give/me", json!({"x": "y".repeat(200)})),
        _ => notification("notifications/tools/list_changed", &json!({})),
    }
}
